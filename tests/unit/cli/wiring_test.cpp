// A configuration and the options of the runtime say the same.
#include "app/wiring.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace tenure::app {
namespace {

using std::chrono::milliseconds;

LoadedConfig loaded(const std::vector<Given>& builder, const std::vector<Given>& flags = {}) {
  ConfigSources sources;
  sources.flags = {{"kafka.bootstrap.servers", {"b:1"}, "-b"}, {"kafka.group.id", {"g"}, "-g"}};
  sources.flags.insert(sources.flags.end(), flags.begin(), flags.end());
  sources.builder = builder;
  sources.handlers = HandlerRule::none;
  return load_config(sources);
}

Outcome nothing(const Record&, const Owner&) { return done(); }

Options after_a_round(const Builder& builder, const std::vector<Given>& flags = {}) {
  const LoadedConfig result = loaded(given_by(builder), flags);
  for (const Fault& fault : result.faults) {
    if (fault.severity == Fault::Severity::error) ADD_FAILURE() << to_string(fault);
  }
  return result.config ? runtime_options(*result.config) : Options{};
}

TEST(Wiring, WhatABuilderSetsArrivesAtTheRuntime) {
  Builder builder;
  Options& set = builder.options();
  set.reset = Reset::latest;
  set.order = Order::none;
  set.lanes = std::uint16_t{4};
  set.concurrency = 7;
  set.window = {10, 70'000, 20, 80'000};
  set.retry = {3, milliseconds(5), milliseconds(50), 0.5, 9, OutcomeKind::stop};
  set.effect.kind = Effect::idempotent;
  set.effect.scope = "billing";
  set.batch = {11, milliseconds(12)};
  set.commit = {milliseconds(500), 0, false};
  set.drain = {milliseconds(100), milliseconds(200), milliseconds(300)};
  set.shutdown = {milliseconds(400), milliseconds(500)};
  builder.on("orders", nothing);
  const Options got = after_a_round(builder);
  EXPECT_EQ(got.group, "g");
  EXPECT_EQ(got.reset, Reset::latest);
  EXPECT_EQ(got.order, Order::none);
  EXPECT_EQ(got.lanes, 4);
  EXPECT_EQ(got.concurrency, 7U);
  EXPECT_EQ(got.window.records, 10U);
  EXPECT_EQ(got.window.bytes, 70'000U);
  EXPECT_EQ(got.window.records_total, 20U);
  EXPECT_EQ(got.window.bytes_total, 80'000U);
  EXPECT_EQ(got.retry.attempts, 3);
  EXPECT_EQ(got.retry.backoff_min, milliseconds(5));
  EXPECT_EQ(got.retry.backoff_max, milliseconds(50));
  EXPECT_DOUBLE_EQ(got.retry.jitter, 0.5);
  EXPECT_EQ(got.retry.waiting_max, 9U);
  EXPECT_EQ(got.retry.exhausted, OutcomeKind::stop);
  EXPECT_EQ(got.effect.kind, Effect::idempotent);
  EXPECT_EQ(got.effect.scope, "billing");
  EXPECT_EQ(got.batch.records_max, 11U);
  EXPECT_EQ(got.batch.wait_max, milliseconds(12));
  EXPECT_EQ(got.commit.interval, milliseconds(500));
  EXPECT_EQ(got.commit.metadata_bytes, 0U);
  EXPECT_FALSE(got.commit.start_position);
  EXPECT_EQ(got.drain.budget, milliseconds(100));
  EXPECT_EQ(got.drain.commit, milliseconds(200));
  EXPECT_EQ(got.drain.margin, milliseconds(300));
  EXPECT_EQ(got.shutdown.budget, milliseconds(400));
  EXPECT_EQ(got.shutdown.close, milliseconds(500));
}

TEST(Wiring, TheDefaultsOfConfigurationAndRuntimeAreTheSame) {
  Builder builder;
  builder.on("orders", nothing);
  EXPECT_EQ(given_by(builder).size(), 1U) << "topics";
  const Options got = after_a_round(builder);
  const Options fallback;
  EXPECT_EQ(got.order, fallback.order);
  EXPECT_EQ(got.concurrency, fallback.concurrency);
  EXPECT_EQ(got.window.records, fallback.window.records);
  EXPECT_EQ(got.window.bytes, fallback.window.bytes);
  EXPECT_EQ(got.window.records_total, fallback.window.records_total);
  EXPECT_EQ(got.window.bytes_total, fallback.window.bytes_total);
  EXPECT_EQ(got.retry.attempts, fallback.retry.attempts);
  EXPECT_EQ(got.retry.backoff_min, fallback.retry.backoff_min);
  EXPECT_EQ(got.retry.backoff_max, fallback.retry.backoff_max);
  EXPECT_DOUBLE_EQ(got.retry.jitter, fallback.retry.jitter);
  EXPECT_EQ(got.retry.waiting_max, fallback.retry.waiting_max);
  EXPECT_EQ(got.retry.exhausted, fallback.retry.exhausted);
  EXPECT_EQ(got.batch.records_max, fallback.batch.records_max);
  EXPECT_EQ(got.batch.wait_max, fallback.batch.wait_max);
  EXPECT_EQ(got.commit.interval, fallback.commit.interval);
  EXPECT_EQ(got.commit.metadata_bytes, fallback.commit.metadata_bytes);
  EXPECT_EQ(got.commit.start_position, fallback.commit.start_position);
  EXPECT_EQ(got.drain.budget, fallback.drain.budget);
  EXPECT_EQ(got.drain.commit, fallback.drain.commit);
  EXPECT_EQ(got.drain.margin, fallback.drain.margin);
  EXPECT_EQ(got.shutdown.budget, fallback.shutdown.budget);
  EXPECT_EQ(got.shutdown.close, fallback.shutdown.close);
}

TEST(Wiring, AFlagWinsOverTheBuilder) {
  Builder builder;
  builder.on("orders", nothing).concurrency(7);
  EXPECT_EQ(after_a_round(builder, {{"concurrency", {"9"}, "--concurrency"}}).concurrency, 9U);
}

TEST(Wiring, EveryWayARunEndsHasItsExitCode) {
  using Reason = StopReport::Reason;
  EXPECT_EQ(number(exit_code_of(Reason::drained)), 0);
  EXPECT_EQ(number(exit_code_of(Reason::outcome_stop)), 3);
  EXPECT_EQ(number(exit_code_of(Reason::fatal)), 70);
  EXPECT_EQ(number(exit_code_of(Reason::cut_short)), 75);
  EXPECT_EQ(number(exit_code_of(Reason::fenced)), 76);
  EXPECT_EQ(number(exit_code_of(Reason::config)), 78);
}

}  // namespace
}  // namespace tenure::app
