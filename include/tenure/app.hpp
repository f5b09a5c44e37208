// A whole program around handlers: configuration, flags, signals, drain, exit code.
//
//   int main(int argc, char** argv) {
//     return tenure::app(argc, argv, [](tenure::Builder& build) { build.on("orders", charge); });
//   }
//
// The program takes the flags of `tenure run` (-c -b -g -X ... --help), the same configuration
// file without a handler section, and TENURE_SECTION__KEY variables. What `build` sets is a
// default that file, environment and flags override. Topics come from `build`; with one handler
// `topics` of the configuration, or -t, moves it to others.
#pragma once

#include <functional>

#include "tenure/handler.hpp"
#include "tenure/options.hpp"

namespace tenure {

/// Runs the member until TERM or INT and returns the exit code (6-interface, section 2). Main
/// thread, before any other thread is made: it blocks the signals it takes. When a handler that
/// was given up is still running, it ends the process instead of returning.
int app(int argc, char** argv, const std::function<void(Builder& build)>& build);

}  // namespace tenure
