// A number with a meaning: two of different meaning do not mix, and conversions are named.
#pragma once

#include <compare>
#include <cstddef>
#include <functional>

namespace tenure {

/// `Tag` is any type; it only tells two `Strong`s apart. Value, trivially copyable.
template <class Tag, class Rep>
class Strong {
 public:
  using rep = Rep;
  constexpr Strong() = default;
  constexpr explicit Strong(Rep value) : value_(value) {}
  [[nodiscard]] constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

 private:
  Rep value_{};
};

}  // namespace tenure

template <class Tag, class Rep>
struct std::hash<tenure::Strong<Tag, Rep>> {
  std::size_t operator()(const tenure::Strong<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value());
  }
};
