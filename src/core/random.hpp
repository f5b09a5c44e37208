// Seeded numbers for jitter and owner nonces. Deterministic: the simulator replays by seed.
#pragma once

#include <cstdint>

#include "tenure/ids.hpp"

namespace tenure::core {

/// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }

  /// In [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

  Uuid uuid() {
    Uuid id;
    const std::uint64_t words[2] = {next(), next()};
    for (std::size_t i = 0; i < 16; ++i) {
      id.bytes[i] = static_cast<std::uint8_t>(words[i / 8] >> (8 * (i % 8)));
    }
    id.bytes[6] = static_cast<std::uint8_t>((id.bytes[6] & 0x0fu) | 0x40u);
    id.bytes[8] = static_cast<std::uint8_t>((id.bytes[8] & 0x3fu) | 0x80u);
    return id;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tenure::core
