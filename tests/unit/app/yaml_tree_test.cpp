#include "app/yaml_tree.hpp"

#include <gtest/gtest.h>

namespace tenure::app {
namespace {

std::string only_fault(std::string_view text) {
  const YamlTree tree = YamlTree::parse(text);
  if (tree.faults().size() != 1) return std::to_string(tree.faults().size()) + " faults";
  const YamlTree::Fault& fault = tree.faults().front();
  return std::to_string(fault.at.line) + ":" + std::to_string(fault.at.column) + " " + fault.text +
         (fault.path.empty() ? "" : " [" + fault.path + "]");
}

TEST(YamlTree, KeepsThePlaceOfEveryKeyAndValue) {
  const YamlTree tree = YamlTree::parse("a: 1\nb:\n  é: [x, 'y']\n");
  ASSERT_NE(tree.root(), nullptr);
  ASSERT_EQ(tree.root()->entries.size(), 2U);
  const auto& b = tree.root()->entries[1];
  EXPECT_EQ(b.at, (Position{2, 1}));
  const auto& list = b.value.node->entries[0];
  EXPECT_EQ(list.key, "é");
  EXPECT_EQ(list.value.at, (Position{3, 6}));  // columns count characters, not bytes
  EXPECT_EQ(list.value.node->items[1].at, (Position{3, 10}));
  EXPECT_TRUE(list.value.node->items[1].node->quoted);
  EXPECT_FALSE(list.value.node->items[0].node->quoted);
}

TEST(YamlTree, AByteOrderMarkAndWindowsLineEndsChangeNoPlace) {
  const YamlTree tree = YamlTree::parse(
      "\xEF\xBB\xBF"
      "a: 1\r\nb: 2\r\n");
  ASSERT_NE(tree.root(), nullptr);
  EXPECT_EQ(tree.root()->entries[0].at, (Position{1, 1}));
  EXPECT_EQ(tree.root()->entries[1].value.at, (Position{2, 4}));
  EXPECT_EQ(tree.root()->entries[1].value.node->text, "2");
}

TEST(YamlTree, AnAliasStandsWhereItIsUsed) {
  const YamlTree tree = YamlTree::parse("a: &x [1]\nb: *x\n");
  ASSERT_TRUE(tree.faults().empty());
  EXPECT_EQ(tree.root()->entries[1].value.at, (Position{2, 4}));
  EXPECT_EQ(tree.root()->entries[1].value.node, tree.root()->entries[0].value.node);
}

TEST(YamlTree, FaultsOfTheText) {
  EXPECT_EQ(only_fault("a: 1\nb: 2\na: 3\n"), "3:1 duplicate key \"a\"; first given in line 1 [a]");
  EXPECT_EQ(only_fault("s:\n  a: 1\n  \"a\": 3\n"),
            "3:3 duplicate key \"a\"; first given in line 2 [s.a]");
  EXPECT_EQ(only_fault("a: 1\n\tb: 2\n"), "2:1 a tab in the indentation; use spaces");
  EXPECT_EQ(only_fault("a:\n\tb: 2\n"), "2:1 a tab in the indentation; use spaces");
  EXPECT_EQ(only_fault("a: \"open\nb: 2\n"), "1:4 a quote that is never closed");
  EXPECT_EQ(only_fault("a: 'it''s open\n"), "1:4 a quote that is never closed");
  EXPECT_EQ(only_fault("a: &x \"open\nb: 2\n"), "1:7 a quote that is never closed");
  EXPECT_EQ(only_fault("a: [1, 2\n"), "2:1 a list is never closed; add \"]\"");
  EXPECT_EQ(only_fault("a: b: c\n").substr(0, 31), "1:5 a key is not allowed here; ");
  EXPECT_EQ(only_fault("a: 1\norder:key\nb: 2\n"), "2:6 a space is missing after \":\"");
  EXPECT_EQ(only_fault("a: @x\n"),
            "1:4 a value cannot start with this character; put it in quotes");
  EXPECT_EQ(only_fault("a: *nope\n"), "1:4 this alias has no anchor before it");
  EXPECT_EQ(only_fault("a: &r [*r]\n"), "1:8 this alias refers to itself [a]");
  EXPECT_EQ(only_fault("? [a]\n: 1\n"), "1:3 a key must be a word");
  EXPECT_EQ(only_fault("~: 1\n"), "1:1 a key must be a word");
  EXPECT_EQ(only_fault("a: !!str 5\n"),
            "1:4 tags such as !!str are not used here; quotes make a text [a]");
  EXPECT_EQ(only_fault("a: 1\n---\nb: 1\n"),
            "2:1 a second document starts here; one file is one configuration");
  EXPECT_EQ(only_fault("{\"a\":1} more"),
            "1:9 a second document starts here; one file is one configuration");
  EXPECT_EQ(only_fault("a: caf\xE9\n"), "1:7 not UTF-8; save the file as UTF-8");
  EXPECT_EQ(only_fault("a: \xED\xA0\x80\n"), "1:4 not UTF-8; save the file as UTF-8");
  EXPECT_EQ(only_fault("a: \xC0\xAF\n"), "1:4 not UTF-8; save the file as UTF-8");
  EXPECT_EQ(only_fault(std::string_view("\xFF\xFE"
                                        "a\0:\0",
                                        6)),
            "1:1 the file is UTF-16; save it as UTF-8");
  EXPECT_EQ(only_fault(std::string_view("a: 1\nb: \0\n", 10)),
            "2:4 a control character; remove it");
  EXPECT_EQ(only_fault("a: \"\\ud83d\\ude00\"\n").substr(0, 40),
            "1:11 this \\u escape is half of a pair; w");
}

TEST(YamlTree, DeepNestingIsAFaultAndNoCrash) {
  EXPECT_EQ(only_fault(std::string(100'000, '[')).substr(0, 21), "1:1 nested too deeply");
  std::string lists;
  for (int i = 0; i < 100'000; ++i) lists += "- ";
  EXPECT_NE(only_fault(lists).find("nested too deeply"), std::string::npos);
}

TEST(YamlTree, ABillionLaughsCostNothing) {
  std::string text = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) {
    const std::string n = std::to_string(i);
    const std::string p = std::to_string(i - 1);
    text += "a" + n + ": &a" + n + " [*a" + p + ", *a" + p + "]\n";
  }
  EXPECT_TRUE(YamlTree::parse(text).faults().empty());
}

TEST(YamlTree, JsonWithTabsIsRead) {
  const YamlTree tree = YamlTree::parse("{\n\t\"a\": {\n\t\t\"b\": \"\\u00e9\\n\"\n\t}\n}\n");
  ASSERT_TRUE(tree.faults().empty());
  EXPECT_EQ(tree.root()->entries[0].value.node->entries[0].value.node->text, "é\n");
}

TEST(YamlTree, NoDocumentHasNoRootAndNoFault) {
  for (const std::string_view text : {"", "\n", "# only words\n"}) {
    const YamlTree tree = YamlTree::parse(text);
    EXPECT_EQ(tree.root(), nullptr);
    EXPECT_TRUE(tree.faults().empty());
  }
}

}  // namespace
}  // namespace tenure::app
