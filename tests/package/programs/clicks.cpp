// The batch sample: one lane, offsets ascending, one outcome.
#include <atomic>

#include "sample.hpp"

using namespace tenure;
using namespace std::chrono_literals;

int main() {
  const sample::Folder folder;
  const std::string file = folder.file("clicks.db");
  sample::Connection database(file);
  database.run("create table click(id integer primary key, key text, value integer)");
  testing::World world;
  world.create_topic("clicks", 2);
  for (int i = 0; i < 100; ++i) {
    world.produce("clicks", i % 2,
                  {.key = "k" + std::to_string(i % 5), .value = std::to_string(i)});
  }

  std::atomic<std::size_t> longest{0};
  Builder build;
  build.group("test");
  build
      .on("clicks",
          [&longest](Batch batch, const Owner&, sqlite::Transaction& tx) -> Outcome {
            if (batch.size() > longest) longest = batch.size();
            for (const Record& record : batch) {
              tx.execute("insert into click(key, value) values (?1, ?2)", record.key(),
                         record.value());
            }
            return done();
          })
      .batch({.records_max = 200, .wait_max = 20ms});

  const sample::Member member(build, sample::ports(world, "A", file));
  sample::Checks check;
  check(sample::eventually(world,
                           [&] {
                             return world.committed("clicks", 0) == Offset(50) &&
                                    world.committed("clicks", 1) == Offset(50);
                           }),
        "all are committed");
  check(database.number("select count(*) from click") == 100, "each record has one row");
  check(database.number("select count(distinct value) from click") == 100, "and its own");
  check(database.number("select count(*) from click a join click b on b.id > a.id and "
                        "b.key = a.key and b.value % 2 = a.value % 2 and b.value < a.value") == 0,
        "rows of a key of a partition are in log order");
  check(longest > 1, "records came together");
  return check.failed();
}
