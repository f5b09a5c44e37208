// Which values are secret, how a configuration refers to them, and how they are kept out of sight.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tenure/result.hpp"

namespace tenure::app {

/// The process environment as the configuration sees it; tests hand in their own.
using Environment = std::map<std::string, std::string, std::less<>>;

/// Copy of this process's environment. Any thread, while nobody calls setenv().
Environment process_environment();

/// What stands in place of a value that must not be seen.
inline constexpr std::string_view scrubbed_text = "********";

/// True when the value of this key path is never shown: `dsn`, the client's sensitive properties,
/// and keys with password, secret, token, pem, passphrase or authorization in their name.
bool is_sensitive(std::string_view key_path);

/// True when the value itself is the secret, not the name of a file or an account: such a value
/// is accepted by reference only (or from the environment).
bool needs_reference(std::string_view key_path);

/// A text in which `${file:PATH}`, `${cred:NAME}` and `${env:NAME}` have been replaced.
struct Expansion {
  std::string text;
  bool secret = false;           ///< a part came from a file or a credential
  bool only_references = false;  ///< nothing but references was written
};

/// Replaces references; `$${` stands for a literal `${`. `cred` reads $CREDENTIALS_DIRECTORY/NAME.
/// One line end at the end of a file is dropped. Errors name the file or the variable, never a
/// value; any other `${` is an error, and its text is not repeated. Reads files; any thread.
Result<Expansion> expand(std::string_view written, const Environment& environment);

}  // namespace tenure::app
