// expect: the third argument of a handler that returns an outcome is a store's Transaction&
// It either answers at once or completes later, not both.
#include <tenure/options.hpp>
#include <tenure/sqlite/store.hpp>

#ifdef TENURE_CORRECT
using Third = tenure::sqlite::Transaction&;
#else
using Third = tenure::Completion;
#endif

void program(tenure::Builder& build) {
  build.on("orders",
           [](const tenure::Record&, const tenure::Owner&, Third) { return tenure::done(); });
}
