#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace tenure::detail {

// noexcept and without allocation: it must work whatever is broken.
[[gnu::cold]] void assertion_failed(const char* file, int line, const char* condition,
                                    const char* text) noexcept {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n  %s\n", file, line, condition, text);
  std::fflush(stderr);
  std::abort();
}

}  // namespace tenure::detail
