#include "tenure/port/effect_store.hpp"

namespace tenure {

std::string_view name(UnitVerdict verdict) {
  switch (verdict) {
    case UnitVerdict::applied:
      return "applied";
    case UnitVerdict::already_applied:
      return "already_applied";
    case UnitVerdict::superseded:
      return "superseded";
    case UnitVerdict::moved:
      return "moved";
    case UnitVerdict::contention:
      return "contention";
    case UnitVerdict::unavailable:
      return "unavailable";
    case UnitVerdict::in_doubt:
      return "in_doubt";
    case UnitVerdict::retired:
      return "retired";
    case UnitVerdict::handler_down:
      return "handler_down";
    case UnitVerdict::timeout:
      return "timeout";
    case UnitVerdict::data:
      return "data";
    case UnitVerdict::constraint:
      return "constraint";
    case UnitVerdict::sql:
      return "sql";
    case UnitVerdict::misuse:
      return "misuse";
  }
  return "unknown";
}

}  // namespace tenure
