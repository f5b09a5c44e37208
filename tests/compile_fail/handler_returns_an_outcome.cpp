// expect: a handler returns tenure::Outcome, or takes a tenure::Completion
#include <tenure/options.hpp>

#ifdef TENURE_CORRECT
tenure::Outcome charge(const tenure::Record&, const tenure::Owner&) {
  return tenure::done();
}
#else
bool charge(const tenure::Record&, const tenure::Owner&) {
  return true;
}
#endif

void program(tenure::Builder& build) {
  build.on("orders", charge);
}
