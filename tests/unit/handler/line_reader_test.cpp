#include "handler/line_reader.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenure::handler {
namespace {

std::vector<std::string> lines(LineReader& reader) {
  std::vector<std::string> all;
  std::string_view line;
  while (reader.next(line)) all.emplace_back(line);
  return all;
}

TEST(LineReader, CutsWhateverThePiecesWere) {
  const std::string text = "one\n\ntwo three\nend";
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    LineReader reader(9);
    std::vector<std::string> all;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      reader.append(text.substr(at, piece));
      for (std::string& line : lines(reader)) all.push_back(std::move(line));
      EXPECT_FALSE(reader.too_long());
    }
    EXPECT_EQ(all, (std::vector<std::string>{"one", "", "two three"})) << piece;
    EXPECT_EQ(reader.rest(), "end");
  }
}

TEST(LineReader, ALineOfExactlyTheLimitPasses) {
  LineReader reader(4);
  reader.append("1234\n12345");
  EXPECT_EQ(lines(reader), (std::vector<std::string>{"1234"}));
  EXPECT_TRUE(reader.too_long());
}

TEST(LineReader, ALongerLineIsSeenWithAndWithoutItsEnd) {
  LineReader whole(4);
  whole.append("12345\n1\n");
  EXPECT_TRUE(lines(whole).empty());
  EXPECT_TRUE(whole.too_long());
  whole.clear();
  EXPECT_FALSE(whole.too_long());
  whole.append("1\n");
  EXPECT_EQ(lines(whole).size(), 1U);
}

TEST(LineReader, LongLinesComeInPiecesWhenAskedFor) {
  LineReader reader(4);
  reader.append("1234567890\nab\nc");
  std::vector<std::string> all;
  std::string_view piece;
  while (reader.next_piece(piece)) all.emplace_back(piece);
  EXPECT_EQ(all, (std::vector<std::string>{"1234", "5678", "90", "ab"}));
  EXPECT_EQ(reader.rest(), "c");
}

}  // namespace
}  // namespace tenure::handler
