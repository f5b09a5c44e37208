// expect: a handler that returns nothing takes a tenure::Completion by value
#include <utility>

#include <tenure/options.hpp>

void program(tenure::Builder& build) {
#ifdef TENURE_CORRECT
  build.on("orders", [](const tenure::Record&, const tenure::Owner&, tenure::Completion c) {
    std::move(c).complete(tenure::done());
  });
#else
  build.on("orders", [](const tenure::Record&, const tenure::Owner&) {});
#endif
}
