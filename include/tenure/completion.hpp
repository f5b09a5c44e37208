// The right to give one record its outcome, later, from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "tenure/outcome.hpp"

namespace tenure {

/// accepted: the outcome was handed to the record's owner. late: the owner had ended; nothing
/// was changed, and the late completion was counted.
enum class Verdict : std::uint8_t { accepted, late };
std::string_view name(Verdict verdict);

namespace detail {
/// Where a Completion goes. Reference-counted by the Completion; may outlive the Runtime.
class CompletionTarget {
 public:
  virtual Verdict complete(Outcome outcome) noexcept = 0;
  virtual void release() noexcept = 0;

 protected:
  ~CompletionTarget() = default;
};
}  // namespace detail

/// Move-only; use it once. Dropped without use: `retry`, class `no_outcome`. Any thread; may
/// outlive the Runtime (then: late).
class Completion {
 public:
  /// Takes over one reference of `target`.
  explicit Completion(detail::CompletionTarget* target) : target_(target) {}
  Completion(Completion&& other) noexcept : target_(other.target_) { other.target_ = nullptr; }
  Completion& operator=(Completion&& other) noexcept {
    if (this != &other) {
      drop();
      target_ = other.target_;
      other.target_ = nullptr;
    }
    return *this;
  }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;
  ~Completion() { drop(); }

  Verdict complete(Outcome outcome) && {
    detail::CompletionTarget* target = target_;
    target_ = nullptr;
    if (target == nullptr) return Verdict::late;
    const Verdict verdict = target->complete(std::move(outcome));
    target->release();
    return verdict;
  }

 private:
  void drop() noexcept {
    if (target_ == nullptr) return;
    static_cast<void>(target_->complete(retry({}, "completion dropped", "no_outcome")));
    target_->release();
    target_ = nullptr;
  }

  detail::CompletionTarget* target_;
};

}  // namespace tenure
