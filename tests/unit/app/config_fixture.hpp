// A configuration file in a folder of its own, and what loading it says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "app/config.hpp"

namespace tenure::app {

/// Dotted path -> YAML text of the value.
using Lines = std::map<std::string, std::string, std::less<>>;

/// Block style; client properties keep their dots.
inline std::string yaml(const Lines& lines) {
  std::string text;
  std::string open;
  for (const auto& [path, value] : lines) {
    const bool client = path.starts_with("kafka.");
    std::string section;
    std::size_t depth = 0;
    std::size_t start = 0;
    for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', start)) {
      section = path.substr(0, dot);
      if (open != section && !open.starts_with(section + ".")) {
        text += std::string(2 * depth, ' ') + path.substr(start, dot - start) + ":\n";
        open = section;
      }
      ++depth;
      start = dot + 1;
      if (client) break;
    }
    open = section;
    text += std::string(2 * depth, ' ') + path.substr(start) + ": " + value + "\n";
  }
  return text;
}

/// The least that loads under `tenure run`.
inline Lines least() {
  return {{"version", "1"},
          {"kafka.bootstrap.servers", "b1:9092"},
          {"kafka.group.id", "billing"},
          {"topics", "[orders]"},
          {"handler.exec.command", "[./charge.py]"}};
}

inline Lines least_sql() {
  Lines lines = least();
  lines.erase("handler.exec.command");
  lines["handler.sql.statements"] = "[\"insert into t values (:key)\"]";
  lines["store.sqlite.path"] = "./t.db";
  return lines;
}

inline Lines with(Lines lines, const Lines& more) {
  for (const auto& [path, value] : more) lines[path] = value;
  return lines;
}

class ConfigFile : public testing::Test {
 protected:
  ConfigFile() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "tenure-config-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~ConfigFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view text) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  LoadedConfig load(std::string_view text) {
    sources_.file = write("tenure.yaml", text);
    return load_config(sources_);
  }
  LoadedConfig load(const Lines& lines) { return load(yaml(lines)); }
  LoadedConfig load(const char* text) { return load(std::string_view(text)); }

  /// Faults as printed, without the folder.
  std::vector<std::string> said(const LoadedConfig& loaded) const {
    std::vector<std::string> lines;
    for (const Fault& fault : loaded.faults) {
      std::string line = to_string(fault);
      for (std::size_t at = 0; (at = line.find(folder_ + "/")) != std::string::npos;) {
        line.erase(at, folder_.size() + 1);
      }
      lines.push_back(line);
    }
    return lines;
  }
  template <class Text>
  std::vector<std::string> faults(const Text& text) {
    return said(load(text));
  }

  static std::string joined(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  std::string folder_;
  ConfigSources sources_;
};

using Said = std::vector<std::string>;

}  // namespace tenure::app
