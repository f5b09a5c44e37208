// expect: no member named .commit
// The transaction ends with the handler's outcome; a handler cannot commit it.
#include <tenure/sqlite/store.hpp>

void write(tenure::sqlite::Transaction& tx) {
  tx.execute("insert into t values (1)");
#ifndef TENURE_CORRECT
  tx.commit();
#endif
}
