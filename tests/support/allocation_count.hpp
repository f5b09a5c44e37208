// How often a program asks the heap for memory. One of its sources includes counting_new.hpp.
#pragma once

#include <cstdint>

namespace tenure::test {

/// Calls of operator new, in all its forms, by this thread since it began.
std::uint64_t allocations();

}  // namespace tenure::test
