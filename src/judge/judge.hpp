// The verdict on a run, from witnesses alone.
//
//   J1  each record has exactly one effect                 LOST, DUPLICATE EFFECT, GHOST
//   J2  effects of a key ascend in database order          KEY REORDER
//   J3  no effect under a token after a newer activation   STALE EFFECT
//   J4  committed = log end on every partition             COMMITTED != END
//   J5  balances equal a sequential reference              BALANCE
//
// Pure functions: no client, no database, no clock. Any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "judge/evidence.hpp"

namespace tenure::judge {

enum class Verdict : std::uint8_t { pass, fail, inconclusive };
/// "PASS", "FAIL", "INCONCLUSIVE".
std::string_view name(Verdict verdict);

enum class Violation : std::uint8_t {
  lost, duplicate_effect, ghost, key_reorder, stale_effect, committed_not_end, balance,
};
inline constexpr std::size_t violations = static_cast<std::size_t>(Violation::balance) + 1;
/// As printed: "DUPLICATE EFFECT".
std::string_view name(Violation violation);

struct Finding {
  Violation violation = Violation::lost;
  std::size_t count = 0;       ///< how many places show it
  std::string counterexample;  ///< the smallest: earliest in its witness, lowest place or key
};

/// Something that must have happened in the run for a PASS to mean anything.
struct Sight {
  std::string what;
  bool seen = false;
};

struct Judgement {
  Verdict verdict = Verdict::inconclusive;
  std::vector<Finding> findings;     ///< one a violation, in the order of the enum
  std::vector<std::string> missing;  ///< why a run without findings proves nothing
  std::size_t records = 0;
  std::size_t effects = 0;
  std::array<std::size_t, 5> compared{};  ///< what J1 .. J5 compared

  [[nodiscard]] const Finding* find(Violation violation) const;
  [[nodiscard]] std::size_t count(Violation violation) const;
};

/// Any finding = FAIL. Else INCONCLUSIVE when a witness had nothing to compare or a sight was not
/// seen. Else PASS. `effects` and `fences` may come in any order.
Judgement judge(const Evidence& evidence, std::span<const Sight> sights);

}  // namespace tenure::judge
