#include "cli/check.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <utility>
#include <variant>

#include "app/wiring.hpp"
#include "runtime/topic_pattern.hpp"
#include "tenure/kafka/source.hpp"
#include "tenure/sqlite/store.hpp"

namespace tenure::cli {
namespace {

using app::Config;
using std::chrono::milliseconds;

constexpr std::array<int, 3> client_least = {2, 14, 2};

/// File systems whose locks are not to be trusted by a database.
struct Remote {
  std::uint64_t magic;
  std::string_view name;
};
constexpr std::array remote_systems = {
    Remote{0x6969, "NFS"},      Remote{0xFF534D42, "CIFS"}, Remote{0xFE534D42, "SMB2"},
    Remote{0x517B, "SMB"},      Remote{0x01021997, "9P"},   Remote{0x00C36400, "Ceph"},
    Remote{0x65735546, "FUSE"}, Remote{0x47504653, "GPFS"}, Remote{0x0BD00BD0, "Lustre"},
};

std::string seconds_text(milliseconds time) {
  return fmt::format("{} ms", time.count());
}

std::array<int, 3> numbers_of(const std::string& version) {
  std::array<int, 3> out{};
  std::size_t at = 0;
  for (int& number : out) {
    while (at < version.size() && version[at] >= '0' && version[at] <= '9') {
      number = number * 10 + (version[at++] - '0');
    }
    if (at < version.size() && version[at] == '.') ++at;
  }
  return out;
}

Finding topic_finding(const std::string& topic, const app::BrokerFacts& facts) {
  Finding finding;
  finding.id = "topic." + topic;
  finding.expected = topic.starts_with('^') ? "topics match it" : "the topic exists";
  finding.evidence = "metadata of all topics that this client may see";
  finding.consequence = "no record is handled until it is there";
  finding.fix = "create the topic, correct its name, or allow Describe on it";
  if (topic.starts_with('^')) {
    std::size_t matches = 0;
    // The loader has refused what is no expression at all.
    if (const auto pattern = runtime::TopicPattern::compile(topic)) {
      for (const auto& [name, partitions] : facts.topics) {
        if (pattern->matches(name)) ++matches;
      }
    }
    finding.observed = fmt::format("{} topics match", matches);
    finding.health = matches > 0 ? Health::ok : Health::warn;
    return finding;
  }
  const auto found = facts.topics.find(topic);
  if (found != facts.topics.end()) {
    finding.observed = fmt::format("{} partitions", found->second);
    return finding;
  }
  finding.health = Health::fail;
  const auto broken = facts.broken.find(topic);
  finding.observed = broken == facts.broken.end() ? "no such topic" : broken->second;
  return finding;
}

Finding local_disk(const std::string& path) {
  Finding finding;
  finding.id = "store.local";
  finding.expected = "the file is on a local disk";
  finding.consequence = "locks of a network file system do not keep two writers apart";
  finding.fix = "move the file to a local disk";
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  finding.evidence = "statfs of " + folder.string();
  struct statfs facts = {};
  if (::statfs(folder.c_str(), &facts) != 0) {
    finding.health = Health::unreachable;
    finding.observed = std::strerror(errno);
    return finding;
  }
  const auto magic = static_cast<std::uint64_t>(facts.f_type) & 0xFFFFFFFFU;
  const auto remote = std::find_if(remote_systems.begin(), remote_systems.end(),
                                   [&](const Remote& each) { return each.magic == magic; });
  if (remote == remote_systems.end()) {
    finding.observed = fmt::format("file system 0x{:x}", magic);
  } else {
    finding.health = remote->name == "FUSE" ? Health::warn : Health::fail;
    finding.observed = remote->name;
  }
  return finding;
}

Finding writable(const std::string& path) {
  Finding finding;
  finding.id = "store.writable";
  finding.expected = "this user may write the file and its folder";
  finding.evidence = "access and statvfs of " + path;
  finding.consequence = "no effect is written; records wait";
  finding.fix = "change the owner or mode of file and folder";
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  struct statvfs facts = {};
  if (::access(path.c_str(), W_OK) != 0 || ::access(folder.c_str(), W_OK) != 0) {
    finding.observed = std::strerror(errno);
    finding.health = Health::fail;
  } else if (::statvfs(path.c_str(), &facts) == 0 && (facts.f_flag & ST_RDONLY) != 0) {
    finding.observed = "the file system is read-only";
    finding.health = Health::fail;
  } else {
    finding.observed = "yes";
  }
  return finding;
}

Finding tables(const sqlite::Options& options) {
  Finding finding;
  finding.id = "store.tables";
  finding.expected = fmt::format("Tenure's tables, version {}", sqlite::schema_version);
  finding.evidence = "read of " + options.path;
  finding.consequence = "a member does not start";
  const Result<sqlite::Status> status = sqlite::status(options);
  if (status) {
    finding.observed = fmt::format("version {}, {} partitions, SQLite {}", status->schema,
                                   status->domains.size(), status->library);
    return finding;
  }
  finding.health = status.error().retriable ? Health::unreachable : Health::fail;
  finding.observed = status.error().message;
  finding.fix = status.error().hint.empty() ? "tenure store init --execute" : status.error().hint;
  if (options.create && !std::filesystem::exists(options.path)) {
    finding.health = Health::ok;
    finding.observed = "not there yet; store.create makes it at the start";
  }
  return finding;
}

}  // namespace

std::string_view name(Health health) {
  switch (health) {
    case Health::ok: return "ok";
    case Health::warn: return "warn";
    case Health::fail: return "fail";
    case Health::unreachable: return "unreachable";
  }
  return "unknown";
}

std::vector<Finding> check_client(const Config&) {
  Finding finding;
  finding.id = "client.version";
  finding.expected = fmt::format("librdkafka {}.{}.{} or later", client_least[0], client_least[1],
                                 client_least[2]);
  finding.observed = kafka::client_version();
  finding.evidence = "version of the linked library";
  finding.consequence = "older ones break promises that Tenure makes";
  finding.fix = "install a newer librdkafka";
  if (numbers_of(finding.observed) < client_least) finding.health = Health::fail;
  return {finding};
}

std::vector<Finding> check_brokers(const Config& config, const Result<app::BrokerFacts>& facts) {
  std::vector<Finding> findings;
  Finding reachable;
  reachable.id = "broker.reachable";
  reachable.expected = "a broker answers";
  reachable.evidence = "metadata request to " + config.kafka.bootstrap_servers;
  reachable.consequence = "nothing is read and nothing is committed";
  if (!facts) {
    reachable.health =
        facts.error().code == Code::unavailable ? Health::unreachable : Health::fail;
    reachable.observed = facts.error().message;
    reachable.fix = facts.error().hint;
    return {reachable};
  }
  reachable.observed = fmt::format("{} brokers", facts->brokers);
  findings.push_back(reachable);
  Finding cluster;
  cluster.id = "broker.cluster_id";
  cluster.expected = "the cluster has an id";
  cluster.evidence = reachable.evidence;
  cluster.observed = facts->cluster.empty() ? "none" : facts->cluster;
  cluster.consequence = "domains of two clusters cannot be told apart at the store";
  cluster.fix = "use brokers of version 0.10.1 or later";
  if (facts->cluster.empty()) cluster.health = Health::warn;
  findings.push_back(cluster);
  for (const std::string& topic : config.topics) {
    findings.push_back(topic_finding(topic, *facts));
  }
  return findings;
}

std::vector<Finding> check_store(const Config& config) {
  const auto* sqlite = std::get_if<Config::Sqlite>(&config.store);
  if (sqlite == nullptr) {
    Finding finding;
    finding.id = "store";
    finding.expected = "a database that is the authority over effects";
    finding.observed = config.has_store() ? "memory" : "none";
    finding.evidence = "configuration";
    finding.consequence = "a late effect of a former owner is not refused by a store";
    finding.fix = "add store: {sqlite: {path: ..}} where effects are rows";
    finding.health = Health::warn;
    return {finding};
  }
  const sqlite::Options options = app::sqlite_options(config, *sqlite);
  std::vector<Finding> findings = {tables(options), local_disk(options.path)};
  if (std::filesystem::exists(options.path)) findings.push_back(writable(options.path));
  return findings;
}

std::vector<Finding> check_budgets(const Config& config) {
  // R7: what a drain may take is what the group leaves. The loader refuses the impossible.
  const milliseconds margin = std::max(config.drain.margin, config.kafka.heartbeat_interval);
  const milliseconds left = config.kafka.max_poll_interval - margin - config.drain.commit;
  Finding drain;
  drain.id = "budget.drain";
  drain.expected = fmt::format("drain.budget_ms {} fits into max.poll.interval.ms {} less margin "
                               "{} and drain.commit_ms {}",
                               config.drain.budget.count(), config.kafka.max_poll_interval.count(),
                               margin.count(), config.drain.commit.count());
  drain.observed = seconds_text(std::min(config.drain.budget, left)) + " effective";
  drain.evidence = "configuration (R7)";
  drain.consequence = "the drain is cut short and what it leaves is replayed";
  drain.fix = fmt::format("lower drain.budget_ms to {} or less", left.count());
  if (config.drain.budget > left) drain.health = Health::fail;

  Finding session;
  session.id = "budget.session";
  session.expected = "commit.interval_ms is at most half the session";
  session.observed = fmt::format("commit.interval_ms {}, session {}",
                                 config.commit.interval.count(),
                                 config.kafka.session_timeout.count());
  session.evidence = "configuration (R8)";
  session.consequence = "the lease of an owner is confirmed by commits: it would stop by itself";
  session.fix = fmt::format("lower commit.interval_ms to {} or less",
                            config.kafka.session_timeout.count() / 2);
  if (config.commit.interval * 2 > config.kafka.session_timeout) session.health = Health::warn;

  Finding shutdown;
  shutdown.id = "budget.shutdown";
  const milliseconds whole = config.shutdown.budget + config.drain.commit + config.shutdown.close;
  shutdown.expected = "whoever stops the process waits longer than its shutdown takes";
  shutdown.observed = seconds_text(whole) + " at most from SIGTERM to the end";
  shutdown.evidence = "configuration (R10)";
  shutdown.consequence = "a kill before that loses nothing but leaves records to be replayed";
  shutdown.fix = fmt::format("give it {} s or more (TimeoutStopSec, "
                             "terminationGracePeriodSeconds)",
                             (whole.count() + 5'999) / 1000);
  return {drain, session, shutdown};
}

app::ExitCode exit_code_of(const std::vector<Finding>& findings) {
  const auto any = [&](Health health) {
    return std::any_of(findings.begin(), findings.end(),
                       [&](const Finding& finding) { return finding.health == health; });
  };
  if (any(Health::unreachable)) return app::ExitCode::unreachable;
  return any(Health::fail) ? app::ExitCode::failed : app::ExitCode::ok;
}

}  // namespace tenure::cli
