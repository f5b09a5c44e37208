#include "app/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <utility>

#include "app/config_schema.hpp"

namespace tenure::app {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

std::string last_name(const FlagSpec& flag) { return split(flag.names, ',').back(); }

const VerbSpec* find_verb(const ProgramSpec& program, std::string_view path) {
  const auto found = std::find_if(program.verbs.begin(), program.verbs.end(),
                                  [&](const VerbSpec& verb) { return verb.path == path; });
  return found == program.verbs.end() ? nullptr : &*found;
}

/// "config" in "config show" is no verb by itself but the beginning of some.
bool begins_verb(const ProgramSpec& program, std::string_view path) {
  return std::any_of(program.verbs.begin(), program.verbs.end(), [&](const VerbSpec& verb) {
    return verb.path.starts_with(std::string(path) + " ");
  });
}

std::vector<FlagSpec> flags_of(const ProgramSpec& program, const VerbSpec* verb) {
  std::vector<FlagSpec> flags = verb != nullptr ? verb->flags : std::vector<FlagSpec>();
  flags.insert(flags.end(), program.flags.begin(), program.flags.end());
  return flags;
}

const FlagSpec* find_flag(const std::vector<FlagSpec>& flags, std::string_view name) {
  for (const FlagSpec& flag : flags) {
    const std::vector<std::string> names = split(flag.names, ',');
    if (std::find(names.begin(), names.end(), name) != names.end()) return &flag;
  }
  return nullptr;
}

std::string nearest_of(std::string_view text, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  const auto found = nearest(text, views);
  return found ? std::string(*found) : std::string();
}

ParseEnd usage(const ProgramSpec& program, std::string_view path, const std::string& problem) {
  std::string text = fmt::format("{}: {}\n", program.name, problem);
  text += fmt::format("Try '{}{}{} --help'.\n", program.name, path.empty() ? "" : " ", path);
  return {ExitCode::usage, std::move(text)};
}

ParseEnd unknown_verb(const ProgramSpec& program, std::string_view path, const std::string& word) {
  std::vector<std::string> candidates;
  const std::string prefix = path.empty() ? std::string() : std::string(path) + " ";
  for (const VerbSpec& verb : program.verbs) {
    if (verb.hidden || !verb.path.starts_with(prefix)) continue;
    const std::string next = split(verb.path.substr(prefix.size()), ' ').front();
    if (std::find(candidates.begin(), candidates.end(), next) == candidates.end()) {
      candidates.push_back(next);
    }
  }
  std::string all;
  for (const std::string& candidate : candidates) {
    all += (all.empty() ? "" : ", ") + candidate;
  }
  if (word.empty()) {
    return usage(program, path, fmt::format("a verb is missing; there are {}", all));
  }
  const bool later =
      std::find(program.later.begin(), program.later.end(), prefix + word) != program.later.end();
  const std::string near = nearest_of(word, candidates);
  std::string problem = later ? fmt::format("{} comes in a later version", quote(prefix + word))
                              : fmt::format("unknown verb {}", quote(prefix + word));
  problem += near.empty() ? fmt::format("; there are {}", all)
                          : fmt::format("; nearest: {}", quote(prefix + near));
  return usage(program, path, problem);
}

/// Only the name: what follows '=' may be a secret.
std::string flag_name(std::string_view argument) {
  return std::string(argument.substr(0, argument.find('=')));
}

ParseEnd unknown_flag(const ProgramSpec& program, const VerbSpec* verb, std::string_view path,
                      std::string_view argument) {
  std::vector<std::string> candidates;
  for (const FlagSpec& flag : flags_of(program, verb)) {
    for (const std::string& name : split(flag.names, ',')) candidates.push_back(name);
  }
  const std::string name = flag_name(argument);
  const std::string near = nearest_of(name, candidates);
  std::string problem = fmt::format("unknown flag {}", quote(name));
  if (!near.empty()) problem += fmt::format("; did you mean {}?", quote(near));
  return usage(program, path, problem);
}

/// The verb's words at the front, wherever flags stand between them.
struct Head {
  std::string path;
  std::vector<std::string> rest;  ///< without the verb's words
  std::string stray;              ///< first word that continues no verb
  bool help = false;
};

Head take_verb(const ProgramSpec& program, const std::vector<std::string>& arguments) {
  Head head;
  bool flags_end = false;
  const bool verbs = !program.verbs.empty();
  bool complete = !verbs;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool flag = !flags_end && argument.size() > 1 && argument.front() == '-';
    if (flag) {
      if (argument == "--") flags_end = true;
      if (argument == "-h" || argument == "--help") {
        head.help = true;
        continue;
      }
      head.rest.push_back(argument);
      const std::vector<FlagSpec> flags = flags_of(program, find_verb(program, head.path));
      const FlagSpec* known = find_flag(flags, flag_name(argument));
      if (known == nullptr || known->value.empty() || argument.find('=') != std::string::npos) {
        continue;
      }
      // Its value is no verb.
      if (i + 1 < arguments.size()) head.rest.push_back(arguments[++i]);
      while (known->list && i + 1 < arguments.size() && !arguments[i + 1].starts_with('-') &&
             complete) {
        head.rest.push_back(arguments[++i]);
      }
      continue;
    }
    if (complete) {
      head.rest.push_back(argument);
      continue;
    }
    const std::string longer = head.path.empty() ? argument : head.path + " " + argument;
    if (find_verb(program, longer) == nullptr && !begins_verb(program, longer)) {
      if (head.stray.empty()) head.stray = argument;
      complete = true;
      continue;
    }
    head.path = longer;
    complete = find_verb(program, longer) != nullptr;
  }
  return head;
}

std::string column(std::string_view left, std::string_view right) {
  std::string line = fmt::format("  {:<26}", left);
  if (left.size() > 25) line = fmt::format("  {}\n  {:<26}", left, "");
  return line + std::string(right) + "\n";
}

std::string flag_lines(const std::vector<FlagSpec>& flags) {
  std::string out;
  for (const FlagSpec& flag : flags) {
    if (flag.doc.empty()) continue;
    std::string left;
    for (const std::string& name : split(flag.names, ',')) {
      left += (left.empty() ? "" : ", ") + name;
    }
    std::string value = flag.value;
    if (!flag.words.empty()) {
      value.clear();
      for (const std::string& word : flag.words) value += (value.empty() ? "" : "|") + word;
    }
    if (!value.empty()) left += " " + value;
    if (flag.list) left += "..";
    out += column(left, flag.doc);
  }
  return out;
}

}  // namespace

int Parsed::count(std::string_view flag) const {
  const auto found = counts.find(flag);
  return found == counts.end() ? 0 : found->second;
}

std::optional<std::string> Parsed::value(std::string_view flag) const {
  const auto found = values.find(flag);
  if (found == values.end() || found->second.empty()) return {};
  return found->second.back();
}

std::vector<std::string> Parsed::all(std::string_view flag) const {
  const auto found = values.find(flag);
  return found == values.end() ? std::vector<std::string>() : found->second;
}

std::string help(const ProgramSpec& program, std::string_view path) {
  const VerbSpec* verb = find_verb(program, path);
  std::string out = "Examples:\n";
  for (const std::string& example : verb != nullptr ? verb->examples : program.examples) {
    out += "  " + example + "\n";
  }
  out += "\n" + (verb != nullptr ? verb->summary : program.summary) + "\n";
  if (verb != nullptr) out += verb->details;
  if (verb == nullptr && !program.verbs.empty()) {
    out += "\nVerbs:\n";
    for (const VerbSpec& each : program.verbs) {
      if (each.hidden) continue;
      if (!path.empty() && !each.path.starts_with(std::string(path) + " ")) continue;
      out += column(each.path, each.summary);
    }
  }
  if (verb != nullptr && !verb->flags.empty()) {
    out += fmt::format("\nFlags of {}:\n", verb->path) + flag_lines(verb->flags);
  }
  out += fmt::format("\nFlags{}:\n", program.verbs.empty() ? "" : " of every verb");
  out += flag_lines(program.flags);
  out += column("-h, --help", "this text");
  return out;
}

std::variant<Parsed, ParseEnd> parse(const ProgramSpec& program,
                                     const std::vector<std::string>& arguments) {
  Head head = take_verb(program, arguments);
  const VerbSpec* verb = find_verb(program, head.path);
  if (head.help && head.stray.empty()) return ParseEnd{ExitCode::ok, help(program, head.path)};
  if (!head.stray.empty()) return unknown_verb(program, head.path, head.stray);
  if (verb == nullptr && !program.verbs.empty()) return unknown_verb(program, head.path, {});

  CLI::App parser;
  parser.set_help_flag();
  parser.allow_extras();
  const std::vector<FlagSpec> flags = flags_of(program, verb);
  std::vector<std::pair<std::string, CLI::Option*>> options;
  for (const FlagSpec& flag : flags) {
    CLI::Option* option = nullptr;
    if (flag.value.empty()) {
      option = parser.add_flag(flag.names);
    } else {
      option = parser.add_option(flag.names);
      option->expected(1, flag.list ? CLI::detail::expected_max_vector_size : 1);
      option->allow_extra_args(flag.list);
      option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    }
    options.emplace_back(last_name(flag), option);
  }
  // CLI11 takes them from the back.
  std::vector<std::string> reversed(head.rest.rbegin(), head.rest.rend());
  try {
    parser.parse(reversed);
  } catch (const CLI::ArgumentMismatch& error) {
    // "--config: 1 required FILE missing": its texts name flags only.
    const std::string name = split(error.what(), ':').front();
    const FlagSpec* flag = find_flag(flags, name);
    return usage(program, head.path,
                 fmt::format("{} needs {}", name, flag == nullptr ? "a value" : flag->value));
  } catch (const CLI::ParseError&) {
    return usage(program, head.path, "the command line cannot be read");
  }
  for (const std::string& extra : parser.remaining()) {
    if (extra == "--") continue;
    if (extra.starts_with('-') && extra.size() > 1) {
      return unknown_flag(program, verb, head.path, extra);
    }
    return usage(program, head.path,
                 fmt::format("unexpected argument {}", quote(flag_name(extra))));
  }

  Parsed parsed;
  parsed.verb = head.path;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const auto& [name, option] = options[i];
    const FlagSpec& flag = flags[i];
    if (option->count() == 0) continue;
    if (flag.value.empty()) {
      parsed.counts[name] = static_cast<int>(option->count());
      continue;
    }
    const std::vector<std::string> values = option->results();
    for (const std::string& value : values) {
      if (flag.words.empty() ||
          std::find(flag.words.begin(), flag.words.end(), value) != flag.words.end()) {
        continue;
      }
      const std::string near = nearest_of(value, flag.words);
      std::string all;
      for (const std::string& word : flag.words) all += (all.empty() ? "" : ", ") + word;
      return usage(program, head.path,
                   fmt::format("{} takes one of {}{}", name, all,
                               near.empty() ? "" : fmt::format("; did you mean {}?", quote(near))));
    }
    parsed.values[name] = values;
  }
  return parsed;
}

}  // namespace tenure::app
