// Bad input and a database in trouble: nothing is committed, the message says what to do, and
// it goes on by itself where that is possible.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "unit/sqlite/sqlite_rig.hpp"

namespace tenure::sqlite {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

class SqliteTrouble : public Rig {
 protected:
  /// Why open() of a store on `options` fails; fails the test when it does not.
  Error open_error() {
    struct : StoreSink {
      void reserved(Reserved) override {}
      void activated(Activated) override {}
      void idle_advanced(IdleAdvanced) override {}
      void looked_up(LookedUp) override {}
    } sink;
    const auto store = make_store(seconds(10));
    const auto opened = store->open(sink);
    EXPECT_FALSE(opened);
    return opened ? Error{} : opened.error();
  }
  static bool says(const Error& error, std::string_view text) {
    return (error.message + " / " + error.hint).find(text) != std::string::npos;
  }
  /// One effect of lane 0, from offset to offset + 1.
  UnitResult insert(StoreProcess& process, const Holder& holder, std::int64_t offset) {
    const auto one = process.open_unit(holder, 0, Offset(offset));
    transaction(*one).execute("INSERT INTO t VALUES (?, 1)", offset);
    return StoreProcess::commit(*one, Offset(offset + 1));
  }
};

TEST_F(SqliteTrouble, OptionsNameEveryFaultAtOnce) {
  options.path = "";
  options.busy_timeout = milliseconds(0);
  options.unit_timeout = milliseconds(1);
  options.vfs = "nonsense";
  const auto valid = options.validate();
  ASSERT_FALSE(valid);
  EXPECT_EQ(valid.error().code, Code::invalid);
  for (const char* part : {"path", "busy_timeout", "unit_timeout: 1 ms is outside 10..", "vfs"}) {
    EXPECT_TRUE(says(valid.error(), part)) << part << " in " << valid.error().message;
  }
  for (const char* path : {":memory:", "file:x.db?mode=ro"}) {
    Options other;
    other.path = path;
    EXPECT_FALSE(other.validate()) << path;
    EXPECT_FALSE(sqlite::make_store(other)) << path;
  }
  Options good;
  good.path = "x.db";
  EXPECT_TRUE(good.validate());
  good.busy_timeout = milliseconds(1);
  good.unit_timeout = milliseconds(10);
  EXPECT_TRUE(good.validate());
  good.busy_timeout = std::chrono::hours(1);
  good.unit_timeout = std::chrono::hours(24);
  EXPECT_TRUE(good.validate());
  good.busy_timeout += milliseconds(1);
  EXPECT_FALSE(good.validate());
}

TEST_F(SqliteTrouble, AMissingFileIsNotMadeUnlessAsked) {
  const Error error = open_error();
  EXPECT_EQ(error.code, Code::refused);
  EXPECT_TRUE(says(error, options.path)) << error.message;
  EXPECT_TRUE(says(error, "store init")) << error.hint;
  EXPECT_FALSE(fs::exists(options.path));
  options.create = true;
  StoreProcess process(*this);
  EXPECT_EQ(process.acquire(domain_of(), rule).fence.token, Token(1));
}

TEST_F(SqliteTrouble, AMissingFolderIsNamed) {
  options.create = true;
  options.path = (folder / "none" / "effects.db").string();
  const Error error = open_error();
  EXPECT_TRUE(says(error, options.path)) << error.message;
  EXPECT_TRUE(says(error, "folder")) << error.hint;
}

TEST_F(SqliteTrouble, AFolderIsNoDatabase) {
  options.path = folder.string();
  EXPECT_TRUE(says(open_error(), "it is a folder"));
}

TEST_F(SqliteTrouble, AFileThatIsNoDatabaseIsLeftAlone) {
  std::ofstream(options.path) << "name,amount\nand no database at all, for many, many bytes\n";
  for (const bool create : {false, true}) {
    options.create = create;
    const Error error = open_error();
    EXPECT_EQ(error.code, Code::refused);
    EXPECT_TRUE(says(error, "NOTADB")) << error.message;
  }
  std::ifstream in(options.path);
  std::string first;
  std::getline(in, first);
  EXPECT_EQ(first, "name,amount");
}

TEST_F(SqliteTrouble, ADatabaseWithoutOurTablesSaysWhatToRun) {
  outside("CREATE TABLE account(id)");
  const Error error = open_error();
  EXPECT_EQ(error.code, Code::refused);
  EXPECT_TRUE(says(error, "no Tenure tables")) << error.message;
  EXPECT_TRUE(says(error, "store init")) << error.hint;
  EXPECT_EQ(outside("SELECT count(*) FROM sqlite_master"), "1");
}

TEST_F(SqliteTrouble, ADamagedDatabaseIsRefused) {
  create();
  outside("PRAGMA wal_checkpoint(TRUNCATE)");
  {
    std::fstream file(options.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(3000, '\x5A');
  }
  const Error error = open_error();
  EXPECT_TRUE(says(error, "CORRUPT") || says(error, "malformed")) << error.message;
}

TEST_F(SqliteTrouble, TablesOfAnotherVersionAreRefusedAndLeftAlone) {
  create();
  outside("UPDATE tenure_schema SET version = 2");
  for (const bool create : {false, true}) {
    options.create = create;
    const Error error = open_error();
    EXPECT_EQ(error.code, Code::refused);
    EXPECT_TRUE(says(error, "version 2") && says(error, "version 1")) << error.message;
  }
  EXPECT_FALSE(init(options));
  EXPECT_EQ(outside("SELECT version FROM tenure_schema"), "2");
}

TEST_F(SqliteTrouble, TablesChangedUnderOurFeetStopTheAcquisition) {
  create();
  StoreProcess process(*this);
  outside("UPDATE tenure_schema SET version = 2");
  const Reserved::Item reserved = process.reserve(process.grant(domain_of(), rule));
  EXPECT_EQ(reserved.error, StoreError::schema);
  EXPECT_NE(reserved.message.find("version"), std::string::npos);
  outside("DROP TABLE tenure_schema");
  EXPECT_EQ(process.reserve(process.grant(domain_of(), rule)).error, StoreError::schema);
  EXPECT_EQ(outside("SELECT count(*) FROM tenure_ticket"), "0");
}

TEST_F(SqliteTrouble, AReadOnlyFileIsRefusedAtOpen) {
  create();
  // Root may write everything: look through the eyes of somebody else.
  OtherProcess other([&](const std::function<void()>&) {
    const bool root = ::geteuid() == 0;
    fs::permissions(options.path, fs::perms(0444));
    fs::permissions(folder, fs::perms(0755));
    if (root && (::setegid(65534) != 0 || ::seteuid(65534) != 0)) return 2;
    const Error error = open_error();
    return error.code == Code::refused && says(error, "may not write") &&
                   says(error, options.path) && says(error, "permission")
               ? 0
               : 1;
  });
  EXPECT_EQ(other.join(), 0);
}

TEST_F(SqliteTrouble, AWriteLockOfAnotherProcessIsContentionUntilItEnds) {
  create();
  options.busy_timeout = milliseconds(150);
  OtherProcess locker([&](const std::function<void()>& until_told) {
    ::sqlite3* database = nullptr;
    sqlite3_open(options.path.c_str(), &database);
    if (sqlite3_exec(database, "BEGIN IMMEDIATE; INSERT INTO t VALUES ('other', 1)", nullptr,
                     nullptr, nullptr) != SQLITE_OK) {
      return 1;
    }
    until_told();
    const int code = sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
    sqlite3_close(database);
    return code == SQLITE_OK ? 0 : 1;
  });
  locker.wait_ready();
  StoreProcess process(*this);  // opening needs no lock
  const Reserved::Item reserved = process.reserve(process.grant(domain_of(), rule));
  EXPECT_EQ(reserved.error, StoreError::contention) << reserved.message;
  EXPECT_NE(reserved.message.find(options.path), std::string::npos) << reserved.message;
  EXPECT_TRUE(process.store().still_there());
  EXPECT_EQ(locker.finish(), 0);
  Holder holder = process.acquire(domain_of(), rule, Offset(0));
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("SELECT k FROM t ORDER BY rowid"), "other,0");
}

TEST_F(SqliteTrouble, AUnitBehindAForeignLockIsContentionAndGoesOnAfterAKill) {
  create();
  options.busy_timeout = milliseconds(150);
  // Its lock is taken only once the test says so: a pipe of its own.
  int go[2];
  ASSERT_EQ(::pipe(go), 0);
  OtherProcess locker([&](const std::function<void()>& until_told) {
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) return 1;
    ::sqlite3* database = nullptr;
    sqlite3_open(options.path.c_str(), &database);
    sqlite3_exec(database, "BEGIN IMMEDIATE; INSERT INTO t VALUES ('lost', 1)", nullptr, nullptr,
                 nullptr);
    until_told();
    return 0;
  });
  {
    StoreProcess process(*this);
    const Holder holder = process.acquire(domain_of(), rule, Offset(0));
    ASSERT_EQ(::write(go[1], "g", 1), 1);
    locker.wait_ready();
    EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::contention);
    // Frozen inside its write lock: no cure but thaw or kill, and no failure (T6).
    locker.signal(SIGSTOP);
    locker.wait_stopped();
    EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::contention);
    locker.signal(SIGKILL);
    locker.join();
    EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::applied);
  }
  EXPECT_EQ(outside("SELECT k FROM t"), "0");
  ::close(go[0]);
  ::close(go[1]);
}

TEST_F(SqliteTrouble, ABusyProcessDoesNotStarveAnother) {
  create();
  OtherProcess busy([&](const std::function<void()>& until_told) {
    StoreProcess process(*this);
    std::atomic<bool> over{false};
    std::vector<std::thread> streams;
    for (std::uint16_t lane = 0; lane < 4; ++lane) {
      const Holder holder = process.acquire(domain_of(lane + 1), rule, Offset(0));
      streams.emplace_back([&process, &over, holder, lane] {
        for (std::int64_t offset = 0; !over;) {
          const UnitResult result = process.apply(holder, lane, Offset(offset), Offset(offset + 1));
          if (result.verdict == UnitVerdict::applied) ++offset;
        }
      });
    }
    until_told();
    over = true;
    for (std::thread& stream : streams) stream.join();
    return 0;
  });
  busy.wait_ready();
  {
    StoreProcess process(*this);
    const auto began = std::chrono::steady_clock::now();
    const Holder holder = process.acquire(domain_of(), rule, Offset(0));
    for (std::int64_t offset = 0; offset < 20; ++offset) {
      EXPECT_EQ(insert(process, holder, offset).verdict, UnitVerdict::applied);
    }
    const auto took = std::chrono::steady_clock::now() - began;
    RecordProperty("took_ms",
                   static_cast<int>(std::chrono::duration_cast<milliseconds>(took).count()));
    EXPECT_LT(took, seconds(10));
  }
  EXPECT_EQ(busy.finish(), 0);
}

TEST_F(SqliteTrouble, AFullDiskIsUnavailableAndKeepsNothing) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  testing::FaultVfs::get().fail_log_writes = SQLITE_FULL;
  const UnitResult result = insert(process, holder, 0);
  EXPECT_EQ(result.verdict, UnitVerdict::unavailable) << result.message;
  EXPECT_NE(result.message.find("full"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find(options.path), std::string::npos) << result.message;
  EXPECT_EQ(process.reserve(process.grant(domain_of(1), rule)).error, StoreError::unavailable);
  testing::FaultVfs::get().fail_log_writes = SQLITE_OK;
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTrouble, E3_AnInputOutputErrorInACommitIsInDoubt) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  testing::FaultVfs::get().fail_next_log_sync = SQLITE_IOERR_FSYNC;
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::in_doubt);
  EXPECT_EQ(process.look_up(holder, 0).next_offset, Offset(0));
  Holder next = process.grant(domain_of(), rule);
  next.fence.token = process.reserve(next).token;
  testing::FaultVfs::get().fail_next_log_sync = SQLITE_IOERR_FSYNC;
  EXPECT_EQ(process.activate(next, Offset(0)).error, StoreError::in_doubt);
  EXPECT_EQ(process.activate(next, Offset(0)).error, StoreError::none);
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::superseded);
  EXPECT_EQ(insert(process, next, 0).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTrouble, E3_ARequestInDoubtIsFollowedByANewConnection) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  const auto one = process.open_unit(holder, 0, Offset(0));
  // Lives as long as the connection: every commit happens and is answered with an error.
  sqlite3_wal_hook(
      transaction(*one).native(), [](void*, ::sqlite3*, const char*, int) { return SQLITE_IOERR; },
      nullptr);
  one->roll_back();
  EXPECT_EQ(process.reserve(process.grant(domain_of(), rule)).error, StoreError::in_doubt);
  const Reserved::Item next = process.reserve(process.grant(domain_of(), rule));
  EXPECT_EQ(next.error, StoreError::none);
  EXPECT_EQ(next.token, Token(3)) << "the draw in doubt had happened";
}

TEST_F(SqliteTrouble, ADeletedFileStopsEverything) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  EXPECT_TRUE(process.store().still_there());
  // Open when it happens.
  const auto open = process.open_unit(holder, 0, Offset(0));
  transaction(*open).execute("INSERT INTO t VALUES (1, 1)");
  fs::remove(options.path);
  const auto there = process.store().still_there();
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, Code::unavailable);
  EXPECT_TRUE(says(there.error(), options.path)) << there.error().message;
  EXPECT_TRUE(says(there.error(), "restart")) << there.error().hint;
  EXPECT_EQ(StoreProcess::commit(*open, Offset(1)).verdict, UnitVerdict::unavailable);
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::unavailable);
  EXPECT_EQ(process.reserve(process.grant(domain_of(), rule)).error, StoreError::unavailable);
  EXPECT_EQ(process.look_up(holder, 0).error, StoreError::unavailable);
  EXPECT_EQ(process.advance_idle(holder, {{1, Offset(0), Offset(1)}}).error,
            StoreError::unavailable);
  // Another file under the name is another database.
  ASSERT_TRUE(init(options));
  EXPECT_FALSE(process.store().still_there());
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::unavailable);
  EXPECT_EQ(outside("SELECT count(*) FROM tenure_lane"), "0");
}

TEST_F(SqliteTrouble, ARenamedFileThatComesBackIsTakenUpAgain) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  fs::rename(options.path, options.path + ".away");
  EXPECT_FALSE(process.store().still_there());
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::unavailable);
  fs::rename(options.path + ".away", options.path);
  EXPECT_TRUE(process.store().still_there());
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::applied);
  EXPECT_EQ(outside("SELECT k FROM t"), "0");
}

TEST_F(SqliteTrouble, ADeletedLogStopsEverything) {
  create();
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  fs::remove(options.path + "-wal");
  const auto there = process.store().still_there();
  ASSERT_FALSE(there);
  EXPECT_TRUE(says(there.error(), "-wal")) << there.error().message;
  EXPECT_EQ(insert(process, holder, 0).verdict, UnitVerdict::unavailable);
}

TEST_F(SqliteTrouble, StillThereDoesNotWaitForAWriter) {
  create();
  StoreProcess process(*this, seconds(5));
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  const auto one = process.open_unit(holder, 0, Offset(0));
  std::atomic<bool> started{false};
  std::thread handler([&] {
    started = true;
    (void)transaction(*one).query(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n");
  });
  while (!started) std::this_thread::yield();
  const auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(process.store().still_there());
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(2));
  process.store().cancel(holder.owner);
  handler.join();
}

TEST_F(SqliteTrouble, T6_AWaitingUnitGivesUpAfterBusyTimeout) {
  create();
  options.busy_timeout = milliseconds(100);
  StoreProcess process(*this);
  const Holder holder = process.acquire(domain_of(), rule, Offset(0));
  const auto first = process.open_unit(holder, 0, Offset(0));
  transaction(*first).execute("INSERT INTO t VALUES (1, 1)");
  const auto second = process.open_unit(holder, 1, Offset(0));
  const auto rows = transaction(*second).query("SELECT 1");
  ASSERT_FALSE(rows);
  EXPECT_EQ(rows.error().code, Code::unavailable);
  EXPECT_TRUE(rows.error().retriable);
  EXPECT_EQ(StoreProcess::commit(*second, Offset(1)).verdict, UnitVerdict::contention);
  EXPECT_EQ(StoreProcess::commit(*first, Offset(1)).verdict, UnitVerdict::applied);
}

TEST_F(SqliteTrouble, T1_T3_TokensWaitForTheDiskAlsoWhereEffectsDoNot) {
  std::atomic<int>& syncs = testing::FaultVfs::get().log_syncs;
  create();
  for (const Synchronous level : {Synchronous::normal, Synchronous::full}) {
    options.synchronous = level;
    StoreProcess process(*this);
    Holder holder = process.grant(domain_of(), rule);
    int before = syncs;
    holder.fence.token = process.reserve(holder).token;
    EXPECT_GT(syncs, before) << "a drawn ticket is durable";
    before = syncs;
    const Activated::Item activated = process.activate(holder, Offset(0));
    EXPECT_EQ(activated.error, StoreError::none);
    EXPECT_GT(syncs, before) << "an activation is durable, with all that was committed before";
    for (std::int64_t i = 0; i < 2; ++i) {
      before = syncs;
      const std::int64_t at = activated.lanes.at(0).next_offset->value() + i;
      EXPECT_EQ(insert(process, holder, at).verdict, UnitVerdict::applied);
      EXPECT_EQ(syncs > before, level == Synchronous::full) << "an effect, by the option";
    }
    before = syncs;
    process.reserve(process.grant(domain_of(1), rule));
    EXPECT_GT(syncs, before) << "a ticket drawn after effects, too";
  }
}

TEST_F(SqliteTrouble, CreationByTwoProcessesAtOnceIsNoProblem) {
  options.create = true;
  const auto body = [&](const std::function<void()>&) {
    StoreProcess process(*this);
    return process.reserve(process.grant(domain_of(), rule)).token > Token(0) ? 0 : 1;
  };
  OtherProcess one(body);
  OtherProcess two(body);
  EXPECT_EQ(one.join(), 0);
  EXPECT_EQ(two.join(), 0);
  EXPECT_EQ(outside("SELECT next FROM tenure_ticket"), "2");
}

TEST_F(SqliteTrouble, UnitsAndRequestsOutliveACloseThatCannotWait) {
  create();
  auto process = std::make_unique<StoreProcess>(*this);
  const Holder holder = process->acquire(domain_of(), rule, Offset(0));
  auto one = process->open_unit(holder, 0, Offset(0));
  transaction(*one).execute("INSERT INTO t VALUES (1, 1)");
  process.reset();  // an abandoned worker (R9) still holds its unit
  EXPECT_FALSE(transaction(*one).query("SELECT 1"));
  EXPECT_EQ(transaction(*one).native(), nullptr);
  one.reset();
  EXPECT_EQ(outside("SELECT count(*) FROM t"), "0");
}

}  // namespace
}  // namespace tenure::sqlite
