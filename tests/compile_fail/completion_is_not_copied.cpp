// expect: deleted (function|constructor)
// One record, one right to its outcome: a Completion is moved, never copied.
#include <utility>

#include <tenure/completion.hpp>

tenure::Completion keep(tenure::Completion& completion) {
#ifdef TENURE_CORRECT
  return std::move(completion);
#else
  return completion;
#endif
}
