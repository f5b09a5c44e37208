#include "support/allocation_count.hpp"

#include <cstdlib>
#include <new>

namespace {

thread_local std::uint64_t count = 0;

void* take(std::size_t size) {
  ++count;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* take_aligned(std::size_t size, std::align_val_t align) {
  ++count;
  const auto boundary = static_cast<std::size_t>(align);
  const std::size_t rounded = (size + boundary - 1) / boundary * boundary;
  if (void* memory = std::aligned_alloc(boundary, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// The nothrow and array forms of the library call these.
void* operator new(std::size_t size) {
  return take(size);
}
void* operator new(std::size_t size, std::align_val_t align) {
  return take_aligned(size, align);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

std::uint64_t tenure::test::allocations() {
  return count;
}
