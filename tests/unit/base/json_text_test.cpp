#include "base/json_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tenure {
namespace {

using namespace std::string_view_literals;

std::string json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

std::string base64(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

TEST(JsonText, AcceptsUtf8OfEveryLength) {
  EXPECT_TRUE(valid_utf8(""));
  EXPECT_TRUE(valid_utf8("plain ascii longer than eight bytes"));
  EXPECT_TRUE(valid_utf8("\0nul"sv));
  EXPECT_TRUE(valid_utf8("\u00e4 \u20ac \U0001F600 \U0010FFFF \uD7FF \uE000"));
}

TEST(JsonText, RefusesWhatRfc3629Refuses) {
  for (const std::string_view bad :
       {"\x80"sv, "\xBF"sv, "\xC0\xAF"sv, "\xC1\xBF"sv, "\xE0\x80\xAF"sv, "\xE0\x9F\xBF"sv,
        "\xED\xA0\x80"sv, "\xED\xBF\xBF"sv, "\xF0\x80\x80\xAF"sv, "\xF0\x8F\xBF\xBF"sv,
        "\xF4\x90\x80\x80"sv, "\xF5\x80\x80\x80"sv, "\xFE"sv, "\xFF"sv, "\xC3"sv, "\xE2\x82"sv,
        "\xF0\x9F\x98"sv, "\xC3("sv, "\xE2(\xA1"sv}) {
    EXPECT_FALSE(valid_utf8(bad)) << json(bad);
    EXPECT_EQ(utf8_prefix("12345678ab" + std::string(bad)), 10U) << json(bad);
  }
}

TEST(JsonText, CutsBetweenCharacters) {
  EXPECT_EQ(cut_utf8("a\u20acb", 1), "a");
  EXPECT_EQ(cut_utf8("a\u20acb", 2), "a");
  EXPECT_EQ(cut_utf8("a\u20acb", 3), "a");
  EXPECT_EQ(cut_utf8("a\u20acb", 4), "a\u20ac");
  EXPECT_EQ(cut_utf8("a\u20acb", 99), "a\u20acb");
}

TEST(JsonText, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(to_utf8("a\xFF\xE2\x82z"), "a\uFFFD\uFFFD\uFFFDz");
  EXPECT_EQ(json("a\xFFz"), "\"a\uFFFDz\"");
}

TEST(JsonText, EscapesWhatJsonAsksFor) {
  EXPECT_EQ(json("a\"b\\c\n\r\t\0\x1f\x7f\u20ac"sv),
            "\"a\\\"b\\\\c\\n\\r\\t\\u0000\\u001f\x7f\u20ac\"");
  EXPECT_EQ(json(""), "\"\"");
}

TEST(JsonText, Base64PadsAsRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("\xFF\xFE\xFD\x00"sv), "//79AA==");
}

}  // namespace
}  // namespace tenure
