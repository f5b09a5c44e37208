#include "app/secret.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace tenure::app {
namespace {

// Marked _RK_SENSITIVE in librdkafka 2.15.1 (rdkafka_conf.c) and not caught by a name pattern.
constexpr std::array<std::string_view, 5> sensitive_properties = {
    "kafka.ssl.key.location", "kafka.ssl_key", "kafka.sasl.username",
    "kafka.sasl.oauthbearer.config", "kafka.sasl.oauthbearer.assertion.private.key.file"};

// Caught by a pattern or marked sensitive, but a place, a public certificate or a name.
constexpr std::array<std::string_view, 6> no_secret = {
    "kafka.ssl.key.location",
    "kafka.sasl.username",
    "kafka.ssl.ca.pem",
    "kafka.ssl.certificate.pem",
    "kafka.sasl.oauthbearer.token.endpoint.url",
    "kafka.sasl.oauthbearer.assertion.private.key.file"};

constexpr std::array<std::string_view, 6> patterns = {"password", "secret",     "token",
                                                      "pem",      "passphrase", "authorization"};

constexpr std::size_t largest_secret = 64 * 1024;

Result<std::string> read_secret(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return fail(Code::invalid, "cannot read " + path + ": it is a directory");
  }
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    return fail(Code::invalid, "cannot read " + path + ": " + std::strerror(errno));
  }
  std::string text(largest_secret + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return fail(Code::invalid, "cannot read " + path);
  if (text.size() > largest_secret) return fail(Code::invalid, path + " is larger than 64 KiB");
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  if (text.empty()) return fail(Code::invalid, path + " is empty");
  if (text.find('\0') != std::string::npos) return fail(Code::invalid, path + " has a NUL byte");
  return text;
}

bool plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  });
}

Result<std::string> resolve(std::string_view scheme, const std::string& name,
                            const Environment& environment) {
  if (scheme == "env") {
    const auto found = environment.find(name);
    if (found == environment.end()) {
      return fail(Code::invalid, "the environment has no " + name);
    }
    return found->second;
  }
  if (scheme == "file") return read_secret(name);
  const auto directory = environment.find(std::string_view("CREDENTIALS_DIRECTORY"));
  if (directory == environment.end() || directory->second.empty()) {
    return fail(Code::invalid, "${cred:" + name +
                                   "} needs CREDENTIALS_DIRECTORY; systemd sets it by "
                                   "LoadCredential=" +
                                   name + ":PATH");
  }
  return read_secret(directory->second + "/" + name);
}

}  // namespace

Environment process_environment() {
  Environment copy;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    copy.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return copy;
}

bool is_sensitive(std::string_view key_path) {
  if (key_path == "dsn" || key_path.ends_with(".dsn")) return true;
  if (std::find(sensitive_properties.begin(), sensitive_properties.end(), key_path) !=
      sensitive_properties.end()) {
    return true;
  }
  std::string lower(key_path);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  });
  return std::any_of(patterns.begin(), patterns.end(), [&](std::string_view pattern) {
    return lower.find(pattern) != std::string::npos;
  });
}

bool needs_reference(std::string_view key_path) {
  return is_sensitive(key_path) &&
         std::find(no_secret.begin(), no_secret.end(), key_path) == no_secret.end();
}

Result<Expansion> expand(std::string_view written, const Environment& environment) {
  Expansion result;
  bool literal = false;
  std::size_t references = 0;
  std::size_t i = 0;
  while (i < written.size()) {
    const std::string_view rest = written.substr(i);
    if (rest.starts_with("$${")) {
      result.text += "${";
      literal = true;
      i += 3;
      continue;
    }
    if (!rest.starts_with("${")) {
      result.text += rest.front();
      literal = true;
      ++i;
      continue;
    }
    const std::size_t end = rest.find('}');
    const std::size_t colon = rest.find(':');
    std::string_view scheme;
    std::string name;
    if (end != std::string_view::npos && colon < end) {
      scheme = rest.substr(2, colon - 2);
      name = rest.substr(colon + 1, end - colon - 1);
    }
    const bool known = scheme == "file" ? !name.empty()
                                        : (scheme == "env" || scheme == "cred") &&
                                              plain_name(name) && name != "." && name != "..";
    if (!known) {
      return fail(Code::invalid,
                  "a bare ${..}; write ${file:PATH}, ${cred:NAME} or ${env:NAME}, and $${ for the "
                  "characters themselves");
    }
    auto value = resolve(scheme, name, environment);
    if (!value) return tl::unexpected(value.error());
    result.text += *value;
    result.secret = result.secret || scheme != "env";
    ++references;
    i += end + 1;
  }
  result.only_references = references > 0 && !literal;
  return result;
}

}  // namespace tenure::app
