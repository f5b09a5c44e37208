// The program `tenure`: its verbs and flags, and who does them.
#pragma once

#include <string>
#include <vector>

#include "app/command_line.hpp"
#include "app/exit_code.hpp"

namespace tenure::cli {

const app::ProgramSpec& program();

/// `arguments` without the program's name. Main thread, signals blocked.
app::ExitCode run(const std::vector<std::string>& arguments);

}  // namespace tenure::cli
