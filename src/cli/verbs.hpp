// One function a verb. Main thread; data to stdout, talk to stderr.
#pragma once

#include <string_view>

#include "app/command_line.hpp"
#include "app/exit_code.hpp"

namespace tenure::cli {

app::ExitCode run_verb(const app::Parsed& line);
app::ExitCode demo_verb(const app::Parsed& line);
app::ExitCode check_verb(const app::Parsed& line);
app::ExitCode config_show_verb(const app::Parsed& line);
app::ExitCode config_schema_verb(const app::Parsed& line);
app::ExitCode store_plan_verb(const app::Parsed& line);
app::ExitCode store_init_verb(const app::Parsed& line);
app::ExitCode store_status_verb(const app::Parsed& line);
app::ExitCode version_verb(const app::Parsed& line);

void print(std::string_view text);  ///< stdout, as it is
void say(std::string_view line);    ///< stderr, with a line end
/// `-o json`.
bool json_wanted(const app::Parsed& line);

}  // namespace tenure::cli
