#include <sqlite3.h>

#include "sqlite/database_file.hpp"
#include "sqlite/schema.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::sqlite {
namespace {

constexpr std::string_view status_sql =
    "SELECT t.scope, t.cluster, t.topic_id, t.partition, t.lanes, t.lane_order, t.next,"
    " max(l.token), max(l.owner), min(l.next_offset), max(l.next_offset), max(l.note),"
    " count(l.next_offset)"
    " FROM tenure_ticket AS t LEFT JOIN tenure_lane AS l USING (scope, cluster, topic_id, "
    "partition) GROUP BY t.scope, t.cluster, t.topic_id, t.partition"
    " ORDER BY t.scope, t.cluster, t.topic_id, t.partition";

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

std::optional<Uuid> parse_uuid(std::string_view text) {
  Uuid out;
  std::size_t digits = 0;
  for (const char letter : text) {
    if (letter == '-') continue;
    const int digit = digit_of(letter);
    if (digit < 0 || digits >= 32) return std::nullopt;
    std::uint8_t& byte = out.bytes[digits / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | digit);
    ++digits;
  }
  return digits == 32 ? std::optional(out) : std::nullopt;
}

std::optional<Offset> offset_of(const Cell& cell) {
  const auto number = cell.integer();
  return number ? std::optional<Offset>(Offset(*number)) : std::nullopt;
}

}  // namespace

Result<Status> status(const Options& options) {
  if (auto valid = options.validate(); !valid) return tl::unexpected<Error>(valid.error());
  auto opened = DatabaseFile::open_to_read(options);
  if (!opened) return tl::unexpected<Error>(opened.error());
  Connection& connection = **opened;
  if (auto schema = require_schema(connection); !schema) {
    return tl::unexpected<Error>(schema.error());
  }
  Rows rows;
  if (!connection.run_own(status_sql, {}, &rows)) {
    return fail(Code::unavailable, connection.problem().message);
  }
  Status out;
  out.schema = schema_version;
  out.library = sqlite3_libversion();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    DomainStatus one;
    one.domain.scope = rows.at(i, 0).text();
    one.domain.cluster = rows.at(i, 1).text();
    const auto topic_id = parse_uuid(rows.at(i, 2).text());
    if (!topic_id) {
      return fail(Code::refused,
                  connection.path() + ": tenure_ticket holds the topic id \"" +
                      std::string(rows.at(i, 2).text()) + "\", which is none",
                  "the file was changed by hand; restore it");
    }
    one.domain.topic_id = *topic_id;
    one.domain.partition =
        Partition(static_cast<std::int32_t>(rows.at(i, 3).integer().value_or(0)));
    one.rule.lanes = static_cast<std::uint16_t>(rows.at(i, 4).integer().value_or(0));
    for (const Order order : {Order::none, Order::key, Order::partition}) {
      if (rows.at(i, 5).text() == name(order)) one.rule.order = order;
    }
    one.next = Token(rows.at(i, 6).integer().value_or(0));
    one.token = Token(rows.at(i, 7).integer().value_or(0));
    one.owner = rows.at(i, 8).text();
    // Less than all lanes with progress is none that could be resumed from.
    if (rows.at(i, 12).integer() == std::int64_t{one.rule.lanes}) {
      one.minimum = offset_of(rows.at(i, 9));
      one.maximum = offset_of(rows.at(i, 10));
    }
    one.note = rows.at(i, 11).text();
    out.domains.push_back(std::move(one));
  }
  return out;
}

}  // namespace tenure::sqlite
