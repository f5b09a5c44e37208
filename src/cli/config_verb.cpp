#include <nlohmann/json.hpp>

#include "app/app_run.hpp"
#include "app/config.hpp"
#include "app/config_json.hpp"
#include "cli/verbs.hpp"

namespace tenure::cli {

using app::ExitCode;

ExitCode config_show_verb(const app::Parsed& line) {
  app::ConfigSources sources = app::sources_of(line);
  sources.handlers = app::HandlerRule::at_most_one;
  const app::LoadedConfig loaded = load_config(sources);
  app::print_faults(loaded.faults, true);
  if (!loaded.config) return ExitCode::config_invalid;
  const bool origins = line.on("--origin");
  print(json_wanted(line) ? config_json(*loaded.config, origins).dump() + "\n"
                          : config_yaml(*loaded.config, origins));
  return ExitCode::ok;
}

ExitCode config_schema_verb(const app::Parsed& line) {
  print(app::config_schema_json().dump(json_wanted(line) ? -1 : 2) + "\n");
  return ExitCode::ok;
}

}  // namespace tenure::cli
