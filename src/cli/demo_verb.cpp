#include <fmt/format.h>

#include <charconv>
#include <random>
#include <string>

#include "cli/verbs.hpp"
#include "demo/demo.hpp"
#include "demo/plan.hpp"

namespace tenure::cli {
namespace {

using app::ExitCode;

/// False: said why.
template <class Number>
bool number_of(const app::Parsed& line, const std::string& flag, Number least, Number most,
               Number& value) {
  const std::optional<std::string> text = line.value(flag);
  if (!text) return true;
  const char* end = text->data() + text->size();
  const auto [stopped, error] = std::from_chars(text->data(), end, value);
  if (error == std::errc() && stopped == end && value >= least && value <= most) return true;
  say(fmt::format("tenure: {} takes a number {}..{}", flag, least, most));
  return false;
}

}  // namespace

ExitCode demo_verb(const app::Parsed& line) {
  demo::Plan plan;
  plan.scenario = *demo::scenario_named(line.value("--scenario").value_or("tour"));
  std::random_device device;
  plan.seed = device() % 1'000'000;
  if (!number_of(line, "--members", 2, 8, plan.members) ||
      !number_of(line, "--partitions", 2, 64, plan.partitions) ||
      !number_of(line, "--rate", 20, 2000, plan.rate) ||
      !number_of<std::uint64_t>(line, "--seed", 0, ~std::uint64_t{0}, plan.seed)) {
    return ExitCode::usage;
  }
  const std::string protocol = line.value("--protocol").value_or("cooperative");
  plan.protocol = protocol == "eager"      ? Protocol::eager
                  : protocol == "consumer" ? Protocol::consumer
                                           : Protocol::cooperative;
  plan.plain = line.on("--plain");
  if (plan.plain && !has_plain(plan.scenario)) {
    say(fmt::format("tenure: --plain shows nothing in {}; it goes with tour, zombie, kill, reclaim",
                    name(plan.scenario)));
    return ExitCode::usage;
  }
  plan.brokers = line.value("--brokers").value_or("");
  plan.keep = line.value("--keep").value_or("");
  return demo::run_demo(plan, [](const std::string& text) { print(text + "\n"); });
}

}  // namespace tenure::cli
