// From a configuration to the parts of a member.
//
// Pure functions but for make_store() and make_source(), which make objects that connect to
// nothing yet. Any thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/config.hpp"
#include "app/exit_code.hpp"
#include "tenure/options.hpp"
#include "tenure/port/effect_store.hpp"
#include "tenure/port/source.hpp"
#include "tenure/result.hpp"
#include "tenure/runtime.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::app {

/// The runtime's options that a configuration asks for.
Options runtime_options(const Config& config);

/// The settings of a Builder that differ from the defaults, as a source of a configuration.
std::vector<Given> given_by(const Builder& builder);

/// Null without a store.
Result<std::unique_ptr<EffectStore>> make_store(const Config& config);
sqlite::Options sqlite_options(const Config& config, const Config::Sqlite& sqlite);

/// What a source hands over as the hash of a record follows from order and store.
Result<std::unique_ptr<Source>> make_source(const Options& options,
                                            const std::vector<std::string>& topics, bool store);

ExitCode exit_code_of(StopReport::Reason reason);

}  // namespace tenure::app
