#include "handler/sql_program.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "unit/handler/exec_rig.hpp"

namespace tenure::handler {
namespace {

using namespace std::string_literals;

tl::expected<SqlProgram, std::vector<SqlFault>> compile(std::vector<std::string> statements) {
  SqlOptions options;
  options.statements = std::move(statements);
  return compile_sql(options);
}

/// Text of the only statement; what its parameters were, behind it.
std::string compiled(const std::string& sql) {
  const auto program = compile({sql});
  if (!program) return "fault: " + describe(program.error().front());
  std::string out = program->statements[0].text;
  for (const SqlParameter& parameter : program->statements[0].parameters) {
    out += " | " + parameter.written + (parameter.required ? " required" : "");
  }
  return out;
}

std::string fault(std::vector<std::string> statements) {
  const auto program = compile(std::move(statements));
  return program ? "no fault" : describe(program.error().front());
}

TEST(SqlProgram, ParametersBecomePositions) {
  EXPECT_EQ(compiled("insert into t values (:key, :value)"),
            "insert into t values (?1, ?2) | :key | :value");
  EXPECT_EQ(compiled(":topic :partition :offset :timestamp_ms :identity :attempt"),
            "?1 ?2 ?3 ?4 ?5 ?6 | :topic | :partition | :offset | :timestamp_ms | :identity | "
            ":attempt");
  EXPECT_EQ(compiled("select :header(trace id), :json(/a/b)"),
            "select ?1, ?2 | :header(trace id) | :json(/a/b)");
}

TEST(SqlProgram, OneThatStandsTwiceIsBoundOnce) {
  EXPECT_EQ(compiled("select :key, :value, :key"), "select ?1, ?2, ?1 | :key | :value");
  EXPECT_EQ(compiled("select :json(/a), :json(/a)!"), "select ?1, ?1 | :json(/a) required");
}

TEST(SqlProgram, AFinalMarkRequires) {
  EXPECT_EQ(compiled("select :json(/id)!, :key!"),
            "select ?1, ?2 | :json(/id) required | :key required");
  EXPECT_EQ(compiled("select :json(/id)!::bigint"), "select ?1::bigint | :json(/id) required");
  EXPECT_EQ(compiled("select :key! = 1"), "select ?1 = 1 | :key required");
}

TEST(SqlProgram, NotEqualIsNoMark) {
  EXPECT_EQ(compiled("select :key!=1"), "select ?1!=1 | :key");
  EXPECT_EQ(compiled("select :json(/a)!= :key"), "select ?1!= ?2 | :json(/a) | :key");
}

TEST(SqlProgram, CastsLiteralsAndCommentsAreLeftAlone) {
  for (const std::string sql :
       {"select x::text", "select ':key'", "select 'it''s :key'", "select \":key\"",
        "select \"a\"\":key\"", "select `:key`", "select [:key]", "select 1 -- :key",
        "select 1 -- :key\n, 2", "select 1 /* :key ? ; */", "select 1 /* never closed :key",
        "select a[1:2]", "select ':' || x", "select x'3a'"}) {
    EXPECT_EQ(compiled(sql), sql);
  }
  EXPECT_EQ(compiled("select ':a''' || :key"), "select ':a''' || ?1 | :key");
}

TEST(SqlProgram, OneStatementMayEndWithASemicolon) {
  EXPECT_EQ(compiled("select :key; "), "select ?1;  | :key");
  EXPECT_EQ(compiled("select 1; -- and no more"), "select 1; -- and no more");
  EXPECT_EQ(compiled("select ';'"), "select ';'");
}

TEST(SqlProgram, FaultsSayWhereAndWhatToDo) {
  EXPECT_EQ(fault({"select 1", "select\n  :vaule"}),
            "statement 2, line 2, column 3: unknown parameter \":vaule\"; did you mean "
            "\":value\"?");
  EXPECT_EQ(fault({"select :nonsense"}),
            "statement 1, line 1, column 8: unknown parameter \":nonsense\"; there are key value "
            "topic partition offset timestamp_ms identity attempt header(NAME) json(POINTER)");
  EXPECT_NE(fault({"select :KEY"}).find("did you mean \":key\"?"), std::string::npos);
  EXPECT_EQ(fault({"select 1; select 2"}),
            "statement 1, line 1, column 11: a second statement begins here; make it an entry of "
            "its own");
  EXPECT_EQ(fault({""}), "statement 1, line 1, column 1: the statement is empty");
  EXPECT_EQ(fault({" \n-- nothing\n/* at all */"}),
            "statement 1, line 1, column 1: the statement is empty");
  EXPECT_EQ(fault({" ;"}), "statement 1, line 1, column 2: nothing stands before the ;");
  EXPECT_EQ(fault({}), "statement 1, line 1, column 1: there is no statement");
  EXPECT_EQ(fault({"select 'open"}), "statement 1, line 1, column 8: ' is never closed");
  EXPECT_EQ(fault({"select [open"}), "statement 1, line 1, column 8: [ is never closed");
}

TEST(SqlProgram, FaultsOfArguments) {
  EXPECT_NE(fault({"select :json"}).find("as in :json(/id)"), std::string::npos);
  EXPECT_NE(fault({"select :json(/id"}).find("as in :json(/id)"), std::string::npos);
  EXPECT_NE(fault({"select :json(id)"}).find("\"id\" is no JSON pointer"), std::string::npos);
  EXPECT_NE(fault({"select :json(/a~2)"}).find("no JSON pointer"), std::string::npos);
  EXPECT_NE(fault({"select :json(/a~)"}).find("no JSON pointer"), std::string::npos);
  EXPECT_NE(fault({"select :header"}).find("write :header(NAME)"), std::string::npos);
  EXPECT_NE(fault({"select :header()"}).find("the name is empty"), std::string::npos);
}

TEST(SqlProgram, ForeignPlaceholdersAreRefused) {
  for (const std::string sql : {"select ?", "select ?1", "select @key", "select $key"}) {
    EXPECT_NE(fault({sql}).find("parameters are written :name"), std::string::npos) << sql;
  }
}

TEST(SqlProgram, TheTransactionIsNotTheHandlers) {
  for (const std::string word : {"begin", "COMMIT", "Rollback", "end", "savepoint a", "release a",
                                 "pragma x", "attach 'f' as f", "detach f", "vacuum"}) {
    EXPECT_NE(fault({"/* x */ " + word}).find("Tenure begins and ends"), std::string::npos) << word;
  }
  EXPECT_EQ(compiled("select 1 as commit_count"), "select 1 as commit_count");
}

TEST(SqlProgram, AllFaultsComeAtOnceInOrder) {
  const auto program = compile({"select :a, :b", "commit", ""});
  ASSERT_FALSE(program);
  ASSERT_EQ(program.error().size(), 4U);
  EXPECT_EQ(program.error()[1].column, 12U);
  EXPECT_EQ(program.error()[3].statement, 2U);
}

// Running.

std::string shown(const SqlValue& value) {
  if (std::holds_alternative<std::nullptr_t>(value)) return "null";
  if (const auto* number = std::get_if<std::int64_t>(&value)) return std::to_string(*number);
  if (const auto* number = std::get_if<double>(&value)) return "real " + std::to_string(*number);
  if (const auto* text = std::get_if<SqlText>(&value)) return "'" + std::string(text->bytes) + "'";
  return "x'" + std::string(std::get<SqlBlob>(value).bytes) + "'";
}

class Journal final : public SqlExecutor {
 public:
  Result<std::int64_t> run(std::string_view sql, std::span<const SqlValue> values) override {
    std::string line(sql);
    for (const SqlValue& value : values) line += " " + shown(value);
    lines.push_back(line);
    if (!error.empty()) return fail(Code::refused, error);
    return changed;
  }
  std::vector<std::string> lines;
  std::int64_t changed = 1;
  std::string error;
};

class OneMessage final : public MessageReader {
 public:
  void view(std::span<const MessageHandle>, std::span<MessageView>) const override {}
  std::vector<Header> headers(MessageHandle) const override { return all; }
  std::vector<Header> all;
};

struct Running {
  OneMessage reader;
  Journal journal;
  MessageView view{Bytes(std::string_view("k")), Bytes(std::string_view("v")), 1796126671120};
  SqlOptions options;

  Outcome run(std::vector<std::string> statements) {
    options.statements = std::move(statements);
    const auto program = compile_sql(options);
    EXPECT_TRUE(program);
    test::TestOwner holder(&reader);
    const Record record(holder.origin(), nullptr, view, Offset(190014), no_leader_epoch, 3, 0,
                        Offset(0));
    return run_sql(*program, record, journal);
  }
  /// What a parameter of a record with this value is bound as.
  std::string bound(const std::string& parameter, std::string_view value) {
    view.value = Bytes(value);
    const Outcome outcome = run({"select " + parameter});
    if (outcome.kind() != OutcomeKind::done) {
      return std::string(name(outcome.kind())) + " " + outcome.failure_class() + ": " +
             outcome.reason();
    }
    return journal.lines.back().substr(std::string("select ?1 ").size());
  }
};

TEST(SqlRun, BindsEveryParameter) {
  Running running;
  running.reader.all = {{"cents", Bytes(std::string_view("1"))},
                        {"cents", Bytes(std::string_view("250"))}};
  EXPECT_EQ(running
                .run({"s :key :value :topic :partition :offset :timestamp_ms :identity "
                      ":attempt :header(cents)"})
                .kind(),
            OutcomeKind::done);
  EXPECT_EQ(running.journal.lines[0],
            "s ?1 ?2 ?3 ?4 ?5 ?6 ?7 ?8 ?9 'k' 'v' 'orders' 5 190014 1796126671120 "
            "'test-cluster/12340000-0000-0000-0000-000000000000/5/190014' 3 '250'");
}

TEST(SqlRun, WhatIsMissingIsNullOrRejected) {
  Running running;
  running.view = MessageView{Bytes(), Bytes(), -1};
  EXPECT_EQ(running.run({"s :key :value :timestamp_ms :header(h) :json(/a)"}).kind(),
            OutcomeKind::done);
  EXPECT_EQ(running.journal.lines[0], "s ?1 ?2 ?3 ?4 ?5 null null null null null");
  for (const std::string parameter :
       {":key", ":value", ":timestamp_ms", ":header(h)", ":json(/a)"}) {
    const Outcome outcome = running.run({"first", "s " + parameter + "!"});
    EXPECT_EQ(outcome.kind(), OutcomeKind::reject);
    EXPECT_EQ(outcome.failure_class(), "missing_field");
    EXPECT_EQ(outcome.reason(), "statement 2: " + parameter + " is missing");
  }
  // Nothing of such a record was run.
  EXPECT_EQ(running.journal.lines.size(), 1U);
}

TEST(SqlRun, EmptyIsNotMissing) {
  Running running;
  running.view = MessageView{Bytes(std::string_view("")), Bytes(std::string_view("")), 0};
  EXPECT_EQ(running.run({"s :key! :value! :timestamp_ms!"}).kind(), OutcomeKind::done);
  EXPECT_EQ(running.journal.lines[0], "s ?1 ?2 ?3 '' '' 0");
}

TEST(SqlRun, JsonValuesKeepTheirType) {
  Running running;
  const std::string document =
      R"({"s":"t\u20ac","i":-7,"u":9223372036854775807,"over":9223372036854775808,"f":1.5,)"
      R"("t":true,"b":false,"n":null,"o":{"z":1,"a":[2]},"l":[10,[20]],"":1,"a/b":2,"m~n":3})";
  EXPECT_EQ(running.bound(":json(/s)", document), "'t\u20ac'");
  EXPECT_EQ(running.bound(":json(/i)", document), "-7");
  EXPECT_EQ(running.bound(":json(/u)", document), "9223372036854775807");
  EXPECT_EQ(running.bound(":json(/over)", document), "real 9223372036854775808.000000");
  EXPECT_EQ(running.bound(":json(/f)", document), "real 1.500000");
  EXPECT_EQ(running.bound(":json(/t)", document), "1");
  EXPECT_EQ(running.bound(":json(/b)", document), "0");
  EXPECT_EQ(running.bound(":json(/n)", document), "null");
  EXPECT_EQ(running.bound(":json(/o)", document), "'{\"z\":1,\"a\":[2]}'");
  EXPECT_EQ(running.bound(":json(/l)", document), "'[10,[20]]'");
  EXPECT_EQ(running.bound(":json(/l/0)", document), "10");
  EXPECT_EQ(running.bound(":json(/l/1/0)", document), "20");
  EXPECT_EQ(running.bound(":json(/)", document), "1");
  EXPECT_EQ(running.bound(":json(/a~1b)", document), "2");
  EXPECT_EQ(running.bound(":json(/m~0n)", document), "3");
  EXPECT_EQ(running.bound(":json()", "[1]"), "'[1]'");
  EXPECT_EQ(running.bound(":json(/n)!", document),
            "reject missing_field: statement 1: :json(/n) is missing");
}

TEST(SqlRun, APointerThatLeadsNowhereIsMissing) {
  Running running;
  for (const std::string path : {"/x", "/s/x", "/l/2", "/l/-", "/l/00", "/l/1x", "/l/-1", "/o/0"}) {
    EXPECT_EQ(running.bound(":json(" + path + ")", R"({"s":"t","l":[1,2],"o":{}})"), "null")
        << path;
  }
}

TEST(SqlRun, AValueThatIsNoJsonIsRejectedWhereJsonIsUsed) {
  Running running;
  for (const std::string& value : {""s, "{"s, "plain"s, "{} {}"s, "{\"a\":\xFF}"s, "1e999"s}) {
    const std::string outcome = running.bound(":json(/a)", value);
    EXPECT_EQ(outcome, "reject data: the value is not JSON") << value;
    EXPECT_EQ(running.bound(":value", value).front(), value == "{\"a\":\xFF}" ? 'x' : '\'');
  }
}

TEST(SqlRun, DeepJsonIsRejectedAndNoCrash) {
  Running running;
  const std::string deep = std::string(500000, '[') + std::string(500000, ']');
  EXPECT_EQ(running.bound(":json()", deep),
            "reject data: the value's JSON is nested deeper than 1000");
  const std::string fine = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(running.bound(":json()", fine), "'" + fine + "'");
  EXPECT_EQ(running.bound(":json(/0)", "[\"" + std::string(5000, '[') + "\\\"[\"]").front(), '\'');
}

TEST(SqlRun, BytesPassUnharmed) {
  Running running;
  const std::string binary = "\xFF\x00\x01"s;
  EXPECT_EQ(running.bound(":value", binary), "x'" + binary + "'");
  EXPECT_EQ(running.bound(":value", "zero\0byte"s), "x'zero\0byte'"s);
  running.reader.all = {{"h", Bytes(binary.data(), binary.size())}};
  EXPECT_EQ(running.bound(":header(h)", ""), "x'" + binary + "'");
  running.options.text = false;
  EXPECT_EQ(running.bound(":value", "text"), "x'text'");
  EXPECT_EQ(running.bound(":key", "text"), "x'k'");
  const std::string big(1U << 20, 'b');
  EXPECT_EQ(running.bound(":value", big), "x'" + big + "'");
}

TEST(SqlRun, StatementsRunInOrderUntilOneFails) {
  Running running;
  EXPECT_EQ(running.run({"first", "second"}).kind(), OutcomeKind::done);
  EXPECT_EQ(running.journal.lines, (std::vector<std::string>{"first", "second"}));
  running.journal.lines.clear();
  running.journal.error = "no such table: t";
  const Outcome outcome = running.run({"first", "second"});
  EXPECT_EQ(outcome.kind(), OutcomeKind::retry);
  EXPECT_EQ(outcome.failure_class(), "sql");
  EXPECT_EQ(outcome.reason(), "statement 1: no such table: t");
  EXPECT_EQ(running.journal.lines.size(), 1U);
}

TEST(SqlRun, TooFewRowsAreRejected) {
  Running running;
  running.options.expect_rows = 2;
  running.journal.changed = 2;
  EXPECT_EQ(running.run({"u"}).kind(), OutcomeKind::done);
  running.journal.changed = 1;
  const Outcome outcome = running.run({"u"});
  EXPECT_EQ(outcome.kind(), OutcomeKind::reject);
  EXPECT_EQ(outcome.failure_class(), "no_rows");
  EXPECT_EQ(outcome.reason(), "statement 1 changed 1 rows; 2 are expected");
}

}  // namespace
}  // namespace tenure::handler
