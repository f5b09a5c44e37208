// expect: a handler's second argument is const tenure::Owner&
#include <tenure/options.hpp>

void program(tenure::Builder& build) {
#ifdef TENURE_CORRECT
  build.on("orders", [](const tenure::Record&, const tenure::Owner&) { return tenure::done(); });
#else
  build.on("orders", [](const tenure::Record&, int) { return tenure::done(); });
#endif
}
