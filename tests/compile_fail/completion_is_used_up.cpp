// expect: discards qualifiers|as .this. argument|rvalue ref-qualifier
// complete() takes the Completion: what is left of it cannot be used by accident.
#include <utility>

#include <tenure/completion.hpp>

tenure::Verdict finish(tenure::Completion completion) {
#ifdef TENURE_CORRECT
  return std::move(completion).complete(tenure::done());
#else
  return completion.complete(tenure::done());
#endif
}
