// expect: a handler takes .record or batch, owner
#include <tenure/options.hpp>

void program(tenure::Builder& build) {
#ifdef TENURE_CORRECT
  build.on("orders", [](const tenure::Record&, const tenure::Owner&) { return tenure::done(); });
#else
  build.on("orders", [](const tenure::Record&) { return tenure::done(); });
#endif
}
