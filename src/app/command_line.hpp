// Command lines: a program's verbs and flags as data, and their parsing.
//
// The library that parses is named in command_line.cpp only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/exit_code.hpp"

namespace tenure::app {

struct FlagSpec {
  std::string names;  ///< "-c,--config"; the last one is what Parsed knows it by
  std::string value;  ///< "FILE"; empty: a switch, which may be repeated
  std::string doc;    ///< empty: not in help
  std::vector<std::string> words = {};  ///< when not empty: the only values
  bool list = false;                    ///< takes every word up to the next flag
};

struct VerbSpec {
  std::string path;     ///< "run", "config show"
  std::string summary;  ///< one line
  std::vector<std::string> examples = {};
  std::vector<FlagSpec> flags = {};  ///< besides those of the program
  bool hidden = false;               ///< not in help
  std::string details = {};          ///< more lines for its own help
};

struct ProgramSpec {
  std::string name;
  std::string summary;
  std::vector<std::string> examples;
  std::vector<FlagSpec> flags;        ///< of every verb
  std::vector<VerbSpec> verbs;        ///< empty: the program has no verbs
  std::vector<std::string> later;     ///< verbs of a later version: named when asked for
};

/// What was asked for.
class Parsed {
 public:
  std::string verb;  ///< path; empty in a program without verbs
  std::map<std::string, std::vector<std::string>, std::less<>> values;  ///< "--config" -> ...
  std::map<std::string, int, std::less<>> counts;                       ///< switches

  [[nodiscard]] bool on(std::string_view flag) const { return counts.contains(flag); }
  [[nodiscard]] int count(std::string_view flag) const;
  /// Last one given.
  [[nodiscard]] std::optional<std::string> value(std::string_view flag) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view flag) const;
};

/// The program ends here: help was asked for, or the line is wrong.
struct ParseEnd {
  ExitCode code = ExitCode::ok;
  std::string text;  ///< to stdout when `code` is ok, else to stderr
};

/// `arguments` without the program's name. A secret in the line is never repeated in a message:
/// nothing but names of flags and verbs is.
std::variant<Parsed, ParseEnd> parse(const ProgramSpec& program,
                                     const std::vector<std::string>& arguments);

/// Help of the program (path empty) or of one verb: examples first.
std::string help(const ProgramSpec& program, std::string_view path);

}  // namespace tenure::app
