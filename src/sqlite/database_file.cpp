#include "sqlite/database_file.hpp"

#include <sqlite3.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include "sqlite/schema.hpp"

namespace tenure::sqlite {
namespace {

/// Code of an Error for a problem met while opening.
Code code_of(const Problem& problem) {
  switch (problem.code & 0xFF) {
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
    case SQLITE_READONLY:
      return Code::refused;
    default:
      return Code::unavailable;
  }
}

tl::unexpected<Error> refused(const Connection& connection) {
  const Problem& problem = connection.problem();
  std::string hint;
  switch (problem.code & 0xFF) {
    case SQLITE_NOTADB:
      hint = "store.sqlite.path must name an SQLite database or a file that does not exist yet";
      break;
    case SQLITE_CORRUPT:
      hint =
          "the file is damaged: restore it from a backup (sqlite3 FILE 'PRAGMA "
          "integrity_check' shows more)";
      break;
    case SQLITE_READONLY:
      hint = "give this user write permission on the file and on its folder";
      break;
    case SQLITE_BUSY:
      hint = "another program keeps the database locked; `fuser FILE` names it";
      break;
    default:
      break;
  }
  return fail(code_of(problem), problem.message, hint);
}

/// Write-ahead logging; it is a property of the file.
Result<void> use_log(Connection& connection, SteadyTime deadline) {
  Rows mode;
  if (!connection.run_own("PRAGMA journal_mode", {}, &mode)) return refused(connection);
  if (!mode.empty() && mode.at(0, 0).text() == "wal") return {};
  while (true) {
    Rows answer;
    // The switch does not ask the busy handler when another connection is open.
    if (connection.run_own("PRAGMA journal_mode = WAL", {}, &answer)) {
      if (!answer.empty() && answer.at(0, 0).text() == "wal") return {};
      return fail(Code::refused, connection.path() + ": SQLite cannot use write-ahead logging here",
                  "put the database on a local disk");
    }
    const bool busy = connection.problem().verdict == UnitVerdict::contention;
    if (!busy || std::chrono::steady_clock::now() >= deadline) return refused(connection);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Result<std::string> absolute(const std::string& path, bool create) {
  std::error_code error;
  const std::filesystem::path full = std::filesystem::absolute(path, error);
  if (error) return fail(Code::refused, path + ": " + error.message());
  const auto kind = std::filesystem::status(full, error).type();
  if (kind == std::filesystem::file_type::directory) {
    return fail(Code::refused, full.string() + ": it is a folder",
                "store.sqlite.path must name a file");
  }
  if (kind == std::filesystem::file_type::not_found && !create) {
    return fail(Code::refused, full.string() + ": there is no such file",
                "run `tenure store init --execute`, or set store.create: true");
  }
  return full.lexically_normal().string();
}

}  // namespace

Result<std::unique_ptr<DatabaseFile>> DatabaseFile::open(const Options& options) {
  const auto path = absolute(options.path, options.create);
  if (!path) return tl::unexpected<Error>(path.error());
  Connection::Settings settings{*path, options.vfs, options.create};
  auto opened = Connection::open(settings);
  if (!opened) return tl::unexpected<Error>(opened.error());
  Connection& keeper = **opened;
  const SteadyTime deadline = std::chrono::steady_clock::now() + options.busy_timeout;
  keeper.wait_for_locks({deadline, nullptr});
  // Without write permission SQLite opens all the same.
  if (sqlite3_db_readonly(keeper.handle(), "main") == 1) {
    return fail(Code::refused, *path + ": this user may not write it",
                "give this user write permission on the file and on its folder");
  }
  if (auto log = use_log(keeper, deadline); !log) return tl::unexpected<Error>(log.error());
  const auto version = read_schema_version(keeper);
  if (!version) return tl::unexpected<Error>(version.error());
  if (!*version && options.create) {
    if (auto created = create_schema(keeper); !created) {
      return tl::unexpected<Error>(created.error());
    }
  }
  if (auto schema = require_schema(keeper); !schema) return tl::unexpected<Error>(schema.error());
  settings.create = false;
  // Not make_unique: the constructor is private.
  std::unique_ptr<DatabaseFile> file(new DatabaseFile(settings, std::move(*opened)));
  struct ::stat log{};
  if (::stat((*path + "-wal").c_str(), &log) == 0) {
    file->log_device_ = log.st_dev;
    file->log_inode_ = log.st_ino;
  }
  return file;
}

Result<std::unique_ptr<Connection>> DatabaseFile::open_to_read(const Options& options) {
  const auto path = absolute(options.path, false);
  if (!path) return tl::unexpected<Error>(path.error());
  auto opened = Connection::open({*path, options.vfs, false});
  if (!opened) return opened;
  (*opened)->wait_for_locks({std::chrono::steady_clock::now() + options.busy_timeout, nullptr});
  Rows version;
  if (!(*opened)->run_own("PRAGMA schema_version", {}, &version)) return refused(**opened);
  return opened;
}

Result<void> DatabaseFile::still_there() const {
  if (keeper_->moved()) {
    return fail(Code::unavailable,
                path() + ": the file was deleted, renamed or replaced while in use",
                "put the same file back under its name (mv), or restart with the file you mean");
  }
  struct ::stat log{};
  const std::string log_path = path() + "-wal";
  if (::stat(log_path.c_str(), &log) != 0 || log.st_dev != log_device_ ||
      log.st_ino != log_inode_) {
    return fail(Code::unavailable,
                log_path + ": the log of the database was deleted or replaced while in use",
                "put the same file back under its name (mv), or restart");
  }
  return {};
}

Result<std::unique_ptr<Connection>> DatabaseFile::connect() const {
  auto connection = Connection::open(settings_);
  if (!connection) return connection;
  // The name led to our file before and after: what was opened between is our file.
  if (auto there = still_there(); !there) return tl::unexpected<Error>(there.error());
  if ((*connection)->moved()) {
    return fail(Code::unavailable, path() + ": the file was replaced while in use",
                "restart with the file you mean");
  }
  return connection;
}

}  // namespace tenure::sqlite
