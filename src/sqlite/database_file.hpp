// The database file under its name.
//
// Role: opens connections to one and the same file, and knows whether that file is still what
//   its name leads to: SQLite goes on writing into a file that was deleted or renamed.
// Owns: a connection of its own that stays open, so that the file's identity (inode) cannot be
//   given to another file, and the write-ahead log cannot go while we live.
// Threads: any. Lifecycle: open() once; ends last.
// Promises: connect() never yields a connection to another file than the first.
// Does not promise: a file put back by copy is another file: that needs a restart.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "sqlite/connection.hpp"
#include "tenure/result.hpp"

namespace tenure::sqlite {

class DatabaseFile {
 public:
  /// Opens, switches to write-ahead logging, checks the tables; creates file and tables when the
  /// options say so.
  static Result<std::unique_ptr<DatabaseFile>> open(const Options& options);

  /// A connection that only looks: switches and creates nothing.
  static Result<std::unique_ptr<Connection>> open_to_read(const Options& options);

  /// Does the name still lead to the file we write, and its log's name to the log? Cheap: two
  /// stat calls.
  [[nodiscard]] Result<void> still_there() const;

  /// A new connection to the same file.
  [[nodiscard]] Result<std::unique_ptr<Connection>> connect() const;

  [[nodiscard]] const std::string& path() const { return settings_.path; }

 private:
  DatabaseFile(Connection::Settings settings, std::unique_ptr<Connection> keeper)
      : settings_(std::move(settings)), keeper_(std::move(keeper)) {}

  const Connection::Settings settings_;  ///< absolute path
  const std::unique_ptr<Connection> keeper_;
  dev_t log_device_ = 0;
  ino_t log_inode_ = 0;
};

}  // namespace tenure::sqlite
