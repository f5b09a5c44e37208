// Assertions for broken invariants: a bug of ours, never a failure of the world around us.
//
// TENURE_ASSERT is always on: going on after a broken rule of ownership could commit or apply
// what nobody owns, which is worse than a crash that replays. TENURE_ASSERT_SLOW is for checks
// that cost too much on the record path; on when TENURE_SLOW_CHECKS is 1, by default in builds
// without NDEBUG. Both print place, condition and text to stderr and abort. The text starts with
// the number of the rule: TENURE_ASSERT(now >= before, "F2 the frontier never goes back").
// Threads: any. The condition is evaluated once, or not at all when the check is off.
#pragma once

#ifndef TENURE_SLOW_CHECKS
#ifdef NDEBUG
#define TENURE_SLOW_CHECKS 0
#else
#define TENURE_SLOW_CHECKS 1
#endif
#endif

namespace tenure::detail {

/// Writes one report to stderr and aborts. `text` says which rule is broken.
[[noreturn]] void assertion_failed(const char* file, int line, const char* condition,
                                   const char* text) noexcept;

}  // namespace tenure::detail

#define TENURE_ASSERT(condition, text)               \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::tenure::detail::assertion_failed(__FILE__, __LINE__, #condition, text))

#if TENURE_SLOW_CHECKS
#define TENURE_ASSERT_SLOW(condition, text) TENURE_ASSERT(condition, text)
#else
// Never evaluated; names used only here still count as used.
#define TENURE_ASSERT_SLOW(condition, text) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
