// The configuration as other people read it: `config show`, `config schema`, config.loaded.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "app/config.hpp"

namespace tenure::app {

/// A value of the configuration as it may be shown: a secret as the references it was written
/// with, else as ********.
nlohmann::json shown(const Setting& setting);

/// "default", "builder", "file", "environment" or "flag".
std::string_view name(Origin origin);

/// Effective values, nested by section; client properties under "kafka" with their dots. Secrets
/// scrubbed. With `origins`: {"config": .., "origins": {KEY.PATH: {"origin": .., "at": ..}}}.
nlohmann::json config_json(const Config& config, bool origins);

/// The same as YAML that loads again, sections in the order of the schema; with `origins` a
/// comment on each line. A secret that was written out (environment) cannot load again.
std::string config_yaml(const Config& config, bool origins);

/// JSON Schema (draft 2020-12) of the file, for editors; keys of later versions and refused client
/// properties under "x-tenure-later" and "x-tenure-refused".
nlohmann::json config_schema_json();

/// SHA-256, 64 hex digits, of the effective values: equal for equal configurations, wherever they
/// came from. Secrets count by reference only, so the hash tells nothing of them.
std::string config_sha256(const Config& config);

}  // namespace tenure::app
