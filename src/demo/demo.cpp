#include "demo/demo.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "app/app_signals.hpp"
#include "base/mutex.hpp"
#include "demo/account_book.hpp"
#include "demo/child.hpp"
#include "demo/cluster.hpp"
#include "demo/load.hpp"
#include "demo/script.hpp"
#include "demo/timeline.hpp"
#include "judge/judge.hpp"
#include "judge/topic_witness.hpp"

namespace tenure::demo {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using app::ExitCode;
using Print = std::function<void(const std::string&)>;

constexpr milliseconds turn{50};
constexpr milliseconds read_limit{20'000};
// Nobody holds the write lock longer than this but a process that was stopped in a write.
constexpr int lock_probe_ms = 700;

/// The run's folder; removed at the end unless the user keeps it.
class Folder {
 public:
  static Result<Folder> make(const std::string& keep) {
    std::error_code error;
    if (!keep.empty()) {
      std::filesystem::create_directories(keep, error);
      if (error) return fail(Code::refused, "--keep " + keep + ": " + error.message());
      if (!std::filesystem::is_empty(keep, error) || error) {
        return fail(Code::refused, "--keep " + keep + ": the folder is not empty",
                    "name a new one");
      }
      return Folder(keep, true);
    }
    std::string name = (std::filesystem::temp_directory_path() / "tenure-demo-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return fail(Code::refused, "no temporary folder");
    return Folder(name, false);
  }
  Folder(Folder&& other) noexcept
      : path_(std::exchange(other.path_, {})), keep_(other.keep_) {}
  Folder& operator=(Folder&&) = delete;
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  Folder(std::string path, bool keep) : path_(std::move(path)), keep_(keep) {}
  std::string path_;
  bool keep_;
};

/// Things that take their time, done beside the loop; what they find comes back as observations.
class Errands {
 public:
  Errands() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~Errands() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    ::close(wake_);
  }
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  template <class F>
  void start(F errand) {
    threads_.emplace_back(std::move(errand));
  }
  void found(Observation observation) {
    {
      const Lock lock(mutex_);
      found_.push_back(std::move(observation));
    }
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_, &one, sizeof one));
  }
  std::vector<Observation> take() {
    const Lock lock(mutex_);
    return std::exchange(found_, {});
  }
  /// Readable when something was found.
  [[nodiscard]] int wake() const { return wake_; }
  /// False when the run has ended first.
  bool wait(milliseconds time) const {
    const auto until = steady_clock::now() + time;
    while (!stop_ && steady_clock::now() < until) {
      std::this_thread::sleep_for(std::min(turn, time));
    }
    return !stop_;
  }
  [[nodiscard]] bool stopping() const { return stop_; }

 private:
  const int wake_;
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::vector<Observation> found_ TENURE_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

class Run {
 public:
  Run(const Plan& plan, Folder folder, std::unique_ptr<Cluster> cluster, const Print& print)
      : plan_(plan), folder_(std::move(folder)), cluster_(std::move(cluster)), script_(plan_),
        timeline_(print), print_(print), began_(steady_clock::now()) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  ExitCode play() {
    if (auto made = AccountBook::create(database(), plan_.plain); !made) return bug(made.error());
    auto load = Load::start(plan_, cluster_->brokers(), cluster_->topic());
    if (!load) return bug(load.error());
    load_ = std::move(*load);
    const app::Signals signals([this](int number) {
      if (number != SIGUSR1) interrupted_ = true;
    });
    carry_out(script_.look(now()));
    while (!script_.finished() && !interrupted_ && !error_) {
      wait();
      for (Observation& observation : errands_.take()) observe(observation);
      for (auto& [name, member] : members_) {
        for (MemberEvent& event : member.read()) observe(Told{name, std::move(event)});
        for (const Observation& observation : member.changes()) observe(observation);
      }
      timeline_.look(now());
      carry_out(script_.look(now()));
    }
    timeline_.flush();
    if (error_) return bug(*error_);
    if (interrupted_) {
      print_("INCONCLUSIVE  interrupted");
      return ExitCode::inconclusive;
    }
    return judged();
  }

 private:
  [[nodiscard]] std::string database() const { return folder_.file("demo.db"); }
  [[nodiscard]] milliseconds now() const {
    return std::chrono::duration_cast<milliseconds>(steady_clock::now() - began_);
  }

  ExitCode bug(const Error& error) {
    timeline_.flush();
    print_("demo: " + error.message + (error.hint.empty() ? "" : "; " + error.hint));
    return error.code == Code::unavailable ? ExitCode::unreachable : ExitCode::internal;
  }

  void wait() {
    std::vector<pollfd> polled = {{errands_.wake(), POLLIN, 0}};
    for (const auto& [name, member] : members_) {
      if (member.output() >= 0) polled.push_back({member.output(), POLLIN, 0});
    }
    ::poll(polled.data(), polled.size(), static_cast<int>(turn.count()));
    std::uint64_t count = 0;
    static_cast<void>(::read(errands_.wake(), &count, sizeof count));
  }

  void observe(const Observation& observation) {
    const std::vector<Action> actions = script_.observe(observation, now());
    timeline_.observe(observation, script_.world(), now());
    carry_out(actions);
  }

  void carry_out(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      std::visit([this](const auto& each) { on(each); }, action);
    }
  }

  void on(const StartMember& action) {
    MemberSettings settings;
    settings.name = action.member;
    settings.database = database();
    settings.topic = cluster_->topic();
    settings.group = cluster_->group();
    settings.kafka = cluster_->member();
    settings.kafka["client.id"] = "tenure-demo-" + action.member;
    settings.plain = plan_.plain;
    settings.seed = plan_.seed * 31 + static_cast<std::uint64_t>(action.member.front());
    settings.slow_ms = plan_.slow.count();
    Result<Child> child = Child::start(settings, folder_.file(action.member + ".log"));
    if (!child) {
      error_ = child.error();
      return;
    }
    members_.insert_or_assign(action.member, std::move(*child));
  }
  void on(const TellMember& action) {
    const auto found = members_.find(action.member);
    if (found != members_.end()) found->second.tell(action.command);
  }
  void on(const Continue& action) { signal(action.member, SIGCONT); }
  void on(const Kill& action) { signal(action.member, SIGKILL); }
  void on(const Terminate& action) { signal(action.member, SIGTERM); }
  void signal(const std::string& member, int number) {
    const auto found = members_.find(member);
    if (found != members_.end()) found->second.signal(number);
  }
  void on(const Say& action) { timeline_.say(now(), action.who, action.text); }

  void on(const ProbeLock&) {
    errands_.start([this] {
      Result<AccountBook> book = AccountBook::open(database());
      const bool free = book && book->lock(lock_probe_ms);
      if (free) book->unlock();
      errands_.found(LockProbed{free});
    });
  }
  void on(const LockStore&) {
    errands_.start([this] {
      Result<AccountBook> book = AccountBook::open(database());
      if (!book || !book->lock(10'000)) return;
      errands_.found(LockTaken{});
      errands_.wait(plan_.locked);
      book->unlock();
      errands_.found(LockGiven{});
    });
  }
  void on(const StopProducing&) {
    errands_.start([this] {
      static_cast<void>(load_->finish());  // what it says is asked again before the verdict
      auto witness = judge::TopicWitness::open(cluster_->brokers(), cluster_->topic(),
                                               cluster_->group());
      while (witness && !errands_.stopping()) {
        const auto ends = witness->ends(milliseconds(2'000));
        bool done = ends.has_value() && !ends->empty();
        for (std::size_t i = 0; done && i < ends->size(); ++i) {
          done = (*ends)[i].end == 0 || (*ends)[i].committed == (*ends)[i].end;
        }
        if (done) {
          errands_.found(CaughtUp{});
          return;
        }
        errands_.wait(milliseconds(200));
      }
    });
  }

  ExitCode judged() {
    // Nobody may write any more.
    members_.clear();
    judge::Evidence evidence;
    auto witness =
        judge::TopicWitness::open(cluster_->brokers(), cluster_->topic(), cluster_->group());
    if (!witness) return bug(witness.error());
    if (auto finished = load_->finish(); !finished) {
      print_("demo: " + finished.error().message);
    }
    auto records = witness->records(read_limit);
    if (!records) return bug(records.error());
    std::uint64_t unreadable = 0;
    for (judge::RawRecord& record : *records) {
      judge::InputRecord input;
      input.at = record.at;
      input.key = std::move(record.key);
      const char* end = record.value.data() + record.value.size();
      if (std::from_chars(record.value.data(), end, input.amount).ptr != end) ++unreadable;
      evidence.input.push_back(std::move(input));
    }
    auto ends = witness->ends(read_limit);
    if (!ends) return bug(ends.error());
    evidence.ends = std::move(*ends);
    Result<AccountBook> book = AccountBook::open(database());
    if (!book) return bug(book.error());
    if (auto read = book->read(evidence); !read) return bug(read.error());

    std::vector<judge::Sight> sights = script_.sights();
    if (evidence.input.size() < load_->delivered() || unreadable > 0) {
      sights.push_back({fmt::format("all of the {} records the broker acknowledged",
                                    load_->delivered()),
                        false});
    }
    return tell(judge::judge(evidence, sights));
  }

  ExitCode tell(const judge::Judgement& judgement) {
    using judge::Violation;
    const std::size_t reorders = judgement.count(Violation::key_reorder);
    print_(fmt::format(
        "{:.1f}s  {}  {} records  {} effects  {} lost  {} duplicate  {} refused  {}{}",
        static_cast<double>(now().count()) / 1e3, judge::name(judgement.verdict),
        judgement.records, judgement.effects, judgement.count(Violation::lost),
        judgement.count(Violation::duplicate_effect), script_.world().refused,
        reorders == 0 ? "key order kept" : fmt::format("{} key reorders", reorders),
        plan_.keep.empty() ? "" : "  kept in " + plan_.keep));
    for (const judge::Finding& finding : judgement.findings) {
      print_(fmt::format("  {} x{}  {}", judge::name(finding.violation), finding.count,
                         finding.counterexample));
    }
    if (judgement.verdict != judge::Verdict::pass) {
      for (const std::string& missing : judgement.missing) print_("  " + missing);
    }
    switch (judgement.verdict) {
      case judge::Verdict::pass: return ExitCode::ok;
      case judge::Verdict::fail: return ExitCode::failed;
      case judge::Verdict::inconclusive: break;
    }
    return ExitCode::inconclusive;
  }

  const Plan plan_;
  const Folder folder_;
  const std::unique_ptr<Cluster> cluster_;
  Script script_;
  Timeline timeline_;
  const Print print_;
  const steady_clock::time_point began_;
  std::atomic<bool> interrupted_{false};
  std::optional<Error> error_;
  std::unique_ptr<Load> load_;
  std::map<std::string, Child> members_;
  Errands errands_;
};

std::string differences(const Plan& plan) {
  if (plan.protocol == Protocol::eager) {
    return "mock: it refuses commits while a classic group rebalances, so what an eager member "
           "drains is replayed; no offsets log";
  }
  return "mock: a classic rebalance takes 2.6 s whoever has answered; no offsets log";
}

}  // namespace

ExitCode run_demo(const Plan& plan, const Print& print) {
  Result<Folder> folder = Folder::make(plan.keep);
  if (!folder) {
    print("demo: " + folder.error().message +
          (folder.error().hint.empty() ? "" : "; " + folder.error().hint));
    return ExitCode::usage;
  }
  const std::string run = fmt::format("{:x}{:x}", ::getpid(),
                                      steady_clock::now().time_since_epoch().count() & 0xffffff);
  Result<std::unique_ptr<Cluster>> cluster = Cluster::make(plan, run);
  if (!cluster) {
    print("demo: " + cluster.error().message);
    return cluster.error().code == Code::unavailable ? ExitCode::unreachable : ExitCode::internal;
  }
  print(fmt::format("demo: {} {}, SQLite, seed {}, scenario {}, {}{}",
                    (*cluster)->mock() ? "mock broker" : "brokers", (*cluster)->brokers(),
                    plan.seed, name(plan.scenario), tenure::name(plan.protocol),
                    plan.plain ? ", plain: no progress, no fence" : ""));
  if ((*cluster)->mock() && plan.protocol != Protocol::consumer) print(differences(plan));
  Run played(plan, std::move(*folder), std::move(*cluster), print);
  return played.play();
}

}  // namespace tenure::demo
