// XXH64 with seed 0: the only hash that spreads records over lanes (3-effects, Lanes). A stored
// offset means other records under another hash, so this never changes.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tenure {

inline std::uint64_t xxh64(std::span<const char> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

/// Of an offset, as 8 bytes little endian: for records that no key tells apart.
inline std::uint64_t xxh64_of_offset(std::int64_t offset) {
  auto rest = static_cast<std::uint64_t>(offset);
  std::array<char, 8> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(rest & 0xFF);
    rest >>= 8;
  }
  return xxh64(bytes);
}

}  // namespace tenure
