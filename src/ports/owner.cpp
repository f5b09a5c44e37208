#include "tenure/owner.hpp"

#include "ports/owner_cell.hpp"

namespace tenure {

const std::string& Owner::group() const {
  return cell_->facts().origin.group;
}
const std::string& Owner::member_id() const {
  return cell_->facts().member.id;
}
const std::string& Owner::instance_id() const {
  return cell_->facts().member.instance_id;
}
const std::string& Owner::topic() const {
  return cell_->facts().origin.topic;
}
const Uuid& Owner::topic_id() const {
  return cell_->facts().origin.topic_id;
}
const std::string& Owner::cluster() const {
  return cell_->facts().origin.cluster;
}
const std::string& Owner::scope() const {
  return cell_->facts().origin.scope;
}
std::int32_t Owner::partition() const {
  return cell_->facts().origin.partition.value();
}
Epoch Owner::epoch() const {
  return cell_->facts().member.epoch;
}
GrantId Owner::grant_id() const {
  return cell_->facts().owner.grant;
}
Protocol Owner::protocol() const {
  return cell_->facts().protocol;
}
Offset Owner::start_offset() const {
  return cell_->facts().start_offset;
}
StartSource Owner::start_source() const {
  return cell_->facts().start_source;
}
std::optional<Fence> Owner::fence() const {
  return cell_->facts().fence;
}

OwnerState Owner::state() const {
  return cell_->state();
}
std::stop_token Owner::stop_token() const {
  return cell_->stop_token();
}
std::optional<Deadline> Owner::drain_deadline() const {
  return cell_->drain_deadline();
}
Offset Owner::frontier() const {
  return cell_->frontier();
}
std::uint64_t Owner::completed_above() const {
  return cell_->above();
}
std::uint64_t Owner::window_records() const {
  return cell_->records();
}
std::uint64_t Owner::window_bytes() const {
  return cell_->bytes();
}
std::optional<Offset> Owner::committed() const {
  return cell_->committed();
}
std::optional<CommitOutcome> Owner::last_commit() const {
  return cell_->last_commit();
}
std::optional<RetiredReason> Owner::retired_reason() const {
  return cell_->retired_reason();
}

}  // namespace tenure
