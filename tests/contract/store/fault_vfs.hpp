// A SQLite VFS over the default one whose next write or sync of a log file can be made to fail.
// Process-wide: tests that use it run one after the other.
#pragma once

#include <sqlite3.h>

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

namespace tenure::testing {

class FaultVfs {
 public:
  static constexpr const char* name = "tenure-fault";

  /// Registers it once.
  static FaultVfs& get() {
    static FaultVfs vfs;
    return vfs;
  }

  /// Result code of the next sync of a log ("-wal"); SQLITE_OK = none is due.
  std::atomic<int> fail_next_log_sync{SQLITE_OK};
  /// Result code of every write to a log while set.
  std::atomic<int> fail_log_writes{SQLITE_OK};
  /// Called whenever somebody asks whether a file has moved. Set while no store is at work.
  std::function<void()> on_moved_question;
  /// Syncs of logs so far.
  std::atomic<int> log_syncs{0};

 private:
  struct File {
    sqlite3_file base;
    sqlite3_file* real;
    bool log;
  };

  FaultVfs() {
    real_ = sqlite3_vfs_find(nullptr);
    vfs_ = *real_;
    vfs_.zName = name;
    vfs_.szOsFile = static_cast<int>(sizeof(File)) + real_->szOsFile;
    vfs_.pNext = nullptr;
    vfs_.pAppData = real_->pAppData;
    vfs_.xOpen = &FaultVfs::open;
    methods_ = {3,       close,       read,     write,         truncate,
                sync,    size,        lock,     unlock,        reserved,
                control, sector_size, features, shared_memory, shm_lock_call,
                barrier, unmap,       fetch,    unfetch};
    sqlite3_vfs_register(&vfs_, 0);
  }

  static File& of(sqlite3_file* file) { return *reinterpret_cast<File*>(file); }
  static sqlite3_file* real(sqlite3_file* file) { return of(file).real; }
  static const sqlite3_io_methods& call(sqlite3_file* file) { return *real(file)->pMethods; }

  static int open(sqlite3_vfs*, const char* path, sqlite3_file* file, int flags, int* out) {
    FaultVfs& self = get();
    File& mine = of(file);
    mine.real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(File));
    mine.log = (flags & SQLITE_OPEN_WAL) != 0;
    mine.base.pMethods = nullptr;
    const int code = self.real_->xOpen(self.real_, path, mine.real, flags, out);
    if (mine.real->pMethods != nullptr) mine.base.pMethods = &self.methods_;
    return code;
  }
  static int close(sqlite3_file* file) { return call(file).xClose(real(file)); }
  static int read(sqlite3_file* file, void* data, int bytes, sqlite3_int64 at) {
    return call(file).xRead(real(file), data, bytes, at);
  }
  static int write(sqlite3_file* file, const void* data, int bytes, sqlite3_int64 at) {
    const int code = get().fail_log_writes.load();
    if (of(file).log && code != SQLITE_OK) return code;
    return call(file).xWrite(real(file), data, bytes, at);
  }
  static int truncate(sqlite3_file* file, sqlite3_int64 to) {
    return call(file).xTruncate(real(file), to);
  }
  static int sync(sqlite3_file* file, int flags) {
    if (of(file).log) {
      ++get().log_syncs;
      const int code = get().fail_next_log_sync.exchange(SQLITE_OK);
      if (code != SQLITE_OK) return code;
    }
    return call(file).xSync(real(file), flags);
  }
  static int size(sqlite3_file* file, sqlite3_int64* out) {
    return call(file).xFileSize(real(file), out);
  }
  static int lock(sqlite3_file* file, int level) { return call(file).xLock(real(file), level); }
  static int unlock(sqlite3_file* file, int level) { return call(file).xUnlock(real(file), level); }
  static int reserved(sqlite3_file* file, int* out) {
    return call(file).xCheckReservedLock(real(file), out);
  }
  static int control(sqlite3_file* file, int what, void* argument) {
    if (what == SQLITE_FCNTL_HAS_MOVED && get().on_moved_question) get().on_moved_question();
    return call(file).xFileControl(real(file), what, argument);
  }
  static int sector_size(sqlite3_file* file) { return call(file).xSectorSize(real(file)); }
  static int features(sqlite3_file* file) { return call(file).xDeviceCharacteristics(real(file)); }
  static int shared_memory(sqlite3_file* file, int page, int bytes, int extend,
                           void volatile** out) {
    return call(file).xShmMap(real(file), page, bytes, extend, out);
  }
  static int shm_lock_call(sqlite3_file* file, int offset, int count, int flags) {
    return call(file).xShmLock(real(file), offset, count, flags);
  }
  static void barrier(sqlite3_file* file) { call(file).xShmBarrier(real(file)); }
  static int unmap(sqlite3_file* file, int remove) {
    return call(file).xShmUnmap(real(file), remove);
  }
  static int fetch(sqlite3_file* file, sqlite3_int64 at, int bytes, void** out) {
    return call(file).xFetch(real(file), at, bytes, out);
  }
  static int unfetch(sqlite3_file* file, sqlite3_int64 at, void* data) {
    return call(file).xUnfetch(real(file), at, data);
  }

  sqlite3_vfs* real_ = nullptr;
  sqlite3_vfs vfs_{};
  sqlite3_io_methods methods_{};
};

}  // namespace tenure::testing
