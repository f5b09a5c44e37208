// The Source that is a member of a Kafka consumer group, on librdkafka's C API.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tenure/port/source.hpp"
#include "tenure/result.hpp"

namespace tenure::kafka {

struct SourceOptions {
  /// Client properties, passed to the client as they are. Those that the runtime owns
  /// (enable.auto.commit, auto.offset.reset, enable.partition.eof ...) are set here and must not
  /// be given: make_source() refuses them with the reason.
  std::vector<std::pair<std::string, std::string>> properties;
  /// Names, or regular expressions that begin with ^. At least one.
  std::vector<std::string> topics;
  /// What Delivered::hash is made of: nothing is asked (0), the key (the offset when it is null),
  /// or the offset.
  enum class Hash : std::uint8_t { none, key, offset } hash = Hash::key;
};

/// Why a property may not be given; empty when it may. Does not ask the client.
std::optional<std::string> owned_property(std::string_view property);

/// What the linked client says against a property; empty when it takes it.
std::optional<std::string> check_property(const std::string& property, const std::string& value);

/// Creates the source; connects nothing yet. Fails when the client refuses a property.
Result<std::unique_ptr<Source>> make_source(SourceOptions options);

/// Version of the linked client, "2.15.1". At least 2.14.2 is required; make_source() checks.
std::string client_version();

}  // namespace tenure::kafka
