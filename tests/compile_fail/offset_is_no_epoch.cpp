// expect: no match for .operator=|no viable overloaded .=
// An offset where the leader's epoch belongs: two numbers of different meaning do not mix.
#include <tenure/store_types.hpp>

tenure::LaneProgress progress(tenure::Offset offset, tenure::LeaderEpoch epoch) {
  tenure::LaneProgress made;
#ifdef TENURE_CORRECT
  made.next_offset = offset;
  made.leader_epoch = epoch;
#else
  made.next_offset = offset;
  made.leader_epoch = offset;
#endif
  static_cast<void>(epoch);
  return made;
}
