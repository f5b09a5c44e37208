// A whole program around app(), as small as they come.
#include <tenure/app.hpp>
#include <tenure/sqlite/store.hpp>

using namespace tenure;

static Outcome keep(const Record& record, const Owner&, sqlite::Transaction& tx) {
  tx.execute("insert into seen(key, value) values (?, ?)", record.key(), record.value());
  return done();
}

int main(int argc, char** argv) {
  return app(argc, argv, [](Builder& build) { build.on("orders", keep).order(Order::key); });
}
