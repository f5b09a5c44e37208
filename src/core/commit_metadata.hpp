// The printable text beside a committed offset: which log it speaks of (C10).
//
//   tenure/1 log=<cluster id>/<topic id> at=5113 epoch=41 gap=37 crc=1a2b3c4d
//
// CRC-32C, 8 hexadecimal digits, of everything before " crc=". Unknown keys are skipped; another
// version, a bad CRC or foreign text is `foreign`: the offset counts, the rest does not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tenure/ids.hpp"

namespace tenure::core {

struct CommitMetadata {
  std::string cluster;   ///< empty = not known
  std::string topic_id;  ///< as printed by Uuid::text(); empty = not known
  Offset at;             ///< the offset it was written for
  std::int32_t epoch = -1;
  std::uint64_t gap = 0;  ///< records completed above the frontier
};

/// Never longer than 512 bytes.
std::string encode(const CommitMetadata& metadata);
/// Empty for foreign text, another version, or a bad CRC.
std::optional<CommitMetadata> decode(std::string_view text);

/// CRC-32C (Castagnoli), as in iSCSI.
std::uint32_t crc32c(std::string_view bytes);

}  // namespace tenure::core
