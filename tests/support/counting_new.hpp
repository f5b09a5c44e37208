// Operators new and delete that count (allocation_count.hpp). Include in exactly one source of a
// program. No library, since an archive with these operators would be linked into every test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "support/allocation_count.hpp"

namespace {

thread_local std::uint64_t allocation_count_ = 0;

void* allocate(std::size_t size) {
  ++allocation_count_;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

void* allocate(std::size_t size, std::align_val_t align) {
  ++allocation_count_;
  const auto boundary = static_cast<std::size_t>(align);
  const std::size_t rounded = (size + boundary - 1) / boundary * boundary;
  if (void* memory = std::aligned_alloc(boundary, rounded)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::uint64_t tenure::test::allocations() {
  return allocation_count_;
}

// All forms, since sanitizers bring their own of those that are missing.
void* operator new(std::size_t size) {
  return allocate(size);
}
void* operator new[](std::size_t size) {
  return allocate(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size);
}
void* operator new(std::size_t size, std::align_val_t align) {
  return allocate(size, align);
}
void* operator new[](std::size_t size, std::align_val_t align) {
  return allocate(size, align);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
