// A member process of a demo: the hidden verb `demo-member`.
//
// Reads its settings from the first line of stdin and commands from the others; writes what
// happens to stdout. Ends at SIGTERM as `tenure run` does, and with its parent, however that ends.
#pragma once

#include "app/exit_code.hpp"

namespace tenure::demo {

/// Call Signals::block() first.
app::ExitCode run_member();

}  // namespace tenure::demo
