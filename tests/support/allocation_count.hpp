// Counts what the program takes from the heap by operator new. Only programs that call
// allocations() get the counting operators.
#pragma once

#include <cstdint>

namespace tenure::test {

/// Calls of operator new, in all its forms, by this thread since it began.
std::uint64_t allocations();

}  // namespace tenure::test
