#include "app/secret.hpp"

#include "config_fixture.hpp"

namespace tenure::app {
namespace {

class Secret : public ConfigFile {
 protected:
  std::string text(std::string_view written) {
    const auto result = expand(written, environment_);
    return result ? result->text : "error: " + result.error().message;
  }
  Environment environment_;
};

TEST_F(Secret, ReferencesAreReplaced) {
  environment_["POD_NAME"] = "billing-2";
  environment_["CREDENTIALS_DIRECTORY"] = folder_;
  write("pg", "from cred\n");
  const std::string path = write("pass word", "from file\r\n");
  EXPECT_EQ(text("${env:POD_NAME}"), "billing-2");
  EXPECT_EQ(text("a-${env:POD_NAME}-b"), "a-billing-2-b");
  EXPECT_EQ(text("${cred:pg}"), "from cred");
  EXPECT_EQ(text("${file:" + path + "}"), "from file");
  EXPECT_EQ(text("$${file:x} costs $5"), "${file:x} costs $5");
  EXPECT_EQ(text("line end\n"), "line end\n");
}

TEST_F(Secret, WhatIsSecretIsMarked) {
  environment_["A"] = "a";
  const std::string path = write("s", "secret");
  EXPECT_FALSE(expand("${env:A}", environment_)->secret);
  EXPECT_TRUE(expand("${file:" + path + "}", environment_)->secret);
  EXPECT_TRUE(expand("${file:" + path + "}", environment_)->only_references);
  EXPECT_FALSE(expand("x${file:" + path + "}", environment_)->only_references);
  EXPECT_FALSE(expand("x", environment_)->only_references);
}

TEST_F(Secret, ABareReferenceIsAnErrorThatRepeatsNothing) {
  const std::string bare =
      "error: a bare ${..}; write ${file:PATH}, ${cred:NAME} or ${env:NAME}, and $${ for the "
      "characters themselves";
  for (const char* written : {"${hunter2}", "${", "a${env:X", "${env:}", "${file:}", "${vault:x}",
                              "${cred:../x}", "${env:A B}", "${cred:..}"}) {
    EXPECT_EQ(text(written), bare) << written;
  }
}

TEST_F(Secret, WhatCannotBeReadIsNamed) {
  environment_["CREDENTIALS_DIRECTORY"] = folder_;
  EXPECT_EQ(text("${env:NOPE}"), "error: the environment has no NOPE");
  EXPECT_EQ(text("${cred:nope}"),
            "error: cannot read " + folder_ + "/nope: No such file or directory");
  EXPECT_EQ(text("${file:" + folder_ + "}"),
            "error: cannot read " + folder_ + ": it is a directory");
  const std::string empty = write("empty", "\n");
  EXPECT_EQ(text("${file:" + empty + "}"), "error: " + empty + " is empty");
  const std::string large = write("large", std::string(70'000, 'x'));
  EXPECT_EQ(text("${file:" + large + "}"), "error: " + large + " is larger than 64 KiB");
  const std::string nul = write("nul", std::string_view("a\0b", 3));
  EXPECT_EQ(text("${file:" + nul + "}"), "error: " + nul + " has a NUL byte");
  environment_.clear();
  EXPECT_EQ(
      text("${cred:pg}"),
      "error: ${cred:pg} needs CREDENTIALS_DIRECTORY; systemd sets it by LoadCredential=pg:PATH");
}

TEST(ProcessEnvironment, IsCopiedWithEqualsSignsInValues) {
  ASSERT_EQ(setenv("TENURE_TEST_COPY", "a=b", 1), 0);
  EXPECT_EQ(process_environment().at("TENURE_TEST_COPY"), "a=b");
  unsetenv("TENURE_TEST_COPY");
  EXPECT_FALSE(process_environment().contains("TENURE_TEST_COPY"));
}

TEST(SensitiveKeys, AreTheClientsAndThosePatternsCatch) {
  for (const char* key : {"kafka.sasl.password", "kafka.ssl.key.password", "kafka.ssl.key.pem",
                          "kafka.ssl.keystore.password", "kafka.sasl.oauthbearer.client.secret",
                          "kafka.sasl.oauthbearer.config", "store.postgres.dsn", "http.admin_token",
                          "kafka.sasl.oauthbearer.assertion.private.key.passphrase",
                          "handler.http.headers.Authorization"}) {
    EXPECT_TRUE(is_sensitive(key)) << key;
    EXPECT_TRUE(needs_reference(key)) << key;
  }
  for (const char* key : {"kafka.sasl.username", "kafka.ssl.key.location", "kafka.ssl.ca.pem",
                          "kafka.sasl.oauthbearer.token.endpoint.url"}) {
    EXPECT_TRUE(is_sensitive(key)) << key;
    EXPECT_FALSE(needs_reference(key)) << key;
  }
  for (const char* key : {"kafka.group.id", "retry.attempts", "kafka.ssl.ca.location"}) {
    EXPECT_FALSE(is_sensitive(key)) << key;
  }
}

}  // namespace
}  // namespace tenure::app
