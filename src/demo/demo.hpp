// Runs one demo from its first line to its verdict.
#pragma once

#include <functional>
#include <string>

#include "app/exit_code.hpp"
#include "demo/plan.hpp"

namespace tenure::demo {

/// Prints to `print`, one line a call. Call Signals::block() first, and on the main thread: the
/// members die with the thread that starts them. PASS 0, FAIL 1, INCONCLUSIVE or interrupted 2,
/// no broker 69, bug 70.
app::ExitCode run_demo(const Plan& plan, const std::function<void(const std::string&)>& print);

}  // namespace tenure::demo
