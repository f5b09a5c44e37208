#include "tenure/record.hpp"

namespace tenure {

Bytes Record::header(std::string_view name) const {
  Bytes found;
  for (const Header& header : headers()) {
    if (header.first == name) found = header.second;
  }
  return found;
}

std::string Record::identity() const {
  std::string identity = origin_->cluster;
  identity += '/';
  identity += origin_->topic_id.text();
  identity += '/';
  identity += std::to_string(partition());
  identity += '/';
  identity += std::to_string(offset());
  return identity;
}

}  // namespace tenure
