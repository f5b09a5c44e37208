// expect: no match for .operator<|invalid operands to binary expression
// T5: of two epochs neither is the later one; only tokens have an order.
#include <tenure/ids.hpp>

bool newer(tenure::Epoch a, tenure::Epoch b) {
#ifdef TENURE_CORRECT
  return a != b;
#else
  return a < b;
#endif
}
