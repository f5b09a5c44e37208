// expect: a handler's first argument is const tenure::Record& or tenure::Batch
#include <string>

#include <tenure/options.hpp>

#ifdef TENURE_CORRECT
using First = tenure::Record;
#else
using First = std::string;
#endif

tenure::Outcome charge(const First&, const tenure::Owner&) {
  return tenure::done();
}

void program(tenure::Builder& build) {
  build.on("orders", charge);
}
