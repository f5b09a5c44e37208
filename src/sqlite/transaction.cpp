#include <sqlite3.h>

#include <algorithm>
#include <stdexcept>

#include "sqlite/connection.hpp"
#include "sqlite/unit_core.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::sqlite {
namespace {

constexpr char kind_tag = 's';

/// Well-formed UTF-8 (no overlong forms, no surrogates) without a zero byte, which would end the
/// text for half of SQLite's functions.
bool plain_text(std::string_view bytes) {
  std::size_t i = 0;
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
  while (i < bytes.size()) {
    const unsigned char lead = byte(i);
    if (lead == 0) return false;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    std::size_t more = 0;
    unsigned char lowest = 0x80;
    unsigned char highest = 0xBF;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) lowest = 0xA0;
      if (lead == 0xED) highest = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) lowest = 0x90;
      if (lead == 0xF4) highest = 0x8F;
    } else {
      return false;
    }
    if (bytes.size() - i <= more) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      const unsigned char next = byte(i + k);
      if (next < lowest || next > highest) return false;
      lowest = 0x80;
      highest = 0xBF;
    }
    i += more + 1;
  }
  return true;
}

}  // namespace

Value::Value(Bytes bytes) {
  if (bytes.null()) return;
  if (plain_text(bytes.text())) {
    value_ = Text{bytes.text()};
  } else {
    value_ = Blob{bytes.text()};
  }
}

std::optional<std::int64_t> Cell::integer() const {
  const auto* number = std::get_if<std::int64_t>(&value_);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::optional<double> Cell::real() const {
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  if (const auto number = integer()) return static_cast<double>(*number);
  return std::nullopt;
}

Bytes Cell::bytes() const {
  const auto* bytes = std::get_if<std::string>(&value_);
  return bytes != nullptr ? Bytes(std::string_view(*bytes)) : Bytes();
}

const Cell& Rows::at(std::size_t row, std::size_t column) const {
  if (row >= size() || column >= columns()) {
    throw std::out_of_range("sqlite::Rows::at: no row " + std::to_string(row) + ", column " +
                            std::to_string(column));
  }
  return cells_[row * columns() + column];
}

TransactionKind Transaction::kind() {
  return &kind_tag;
}

void Transaction::execute_values(std::string_view sql, std::span<const Value> values) {
  core_.run(sql, values, nullptr);
}

Result<Rows> Transaction::query_values(std::string_view sql, std::span<const Value> values) {
  Rows rows;
  if (!core_.run(sql, values, &rows)) return tl::unexpected<Error>(core_.error());
  return rows;
}

::sqlite3* Transaction::native() {
  return core_.native();
}

Advance advance_without_fence() {
  throw std::logic_error(
      "sqlite::advance: the owner has no fence; this runtime has no store, or the effect's kind "
      "is not transaction");
}

std::string state(::sqlite3* connection) {
  const int code = sqlite3_extended_errcode(connection);
  const int primary = code & 0xFF;
  if (primary == SQLITE_OK || primary == SQLITE_ROW || primary == SQLITE_DONE) return {};
  // RAISE has no other channel than its text; the constraint's kind says that it was a trigger.
  if (code == SQLITE_CONSTRAINT_TRIGGER) {
    const std::string_view message = sqlite3_errmsg(connection);
    for (const std::string_view known : {superseded, already_applied, moved}) {
      if (message.substr(0, known.size()) == known) return std::string(known);
    }
  }
  return std::string(code_name(code));
}

}  // namespace tenure::sqlite
