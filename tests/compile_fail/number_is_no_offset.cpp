// expect: could not convert|cannot convert|no viable conversion
// F4: a bare number never becomes an offset; "none" is an empty optional, not -1.
#include <optional>

#include <tenure/ids.hpp>

std::optional<tenure::Offset> none() {
#ifdef TENURE_CORRECT
  return {};
#else
  return -1;
#endif
}
