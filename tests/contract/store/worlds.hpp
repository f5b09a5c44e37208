// The worlds that the conformance suite is run in.
#pragma once

#include <memory>
#include <string_view>

#include "contract/store/store_conformance.hpp"

namespace tenure::testing {

std::unique_ptr<StoreWorld> memory_world();
/// In a temporary folder of its own.
std::unique_ptr<StoreWorld> sqlite_world();
/// SQLite with effects that need not wait for the disk.
std::unique_ptr<StoreWorld> sqlite_normal_world();

/// A store that checks the fence by an unlocked SELECT EXISTS before its transaction: the form
/// that effects.md (section 3) measured to be none. Must fail the suite.
std::unique_ptr<StoreWorld> mutant_world();

}  // namespace tenure::testing
