// expect: could not convert|cannot convert|no viable conversion
// A grant is drawn in this process, a token at the store (T1); a fence takes the token.
#include <tenure/store_types.hpp>

tenure::Fence fence(tenure::GrantId grant, tenure::Token token) {
  static_cast<void>(grant);
#ifdef TENURE_CORRECT
  return {token, {}};
#else
  return {grant, {}};
#endif
}
