// The asynchronous sample: one outcome, later, from any thread.
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <mutex>

#include "sample.hpp"

using namespace tenure;
using namespace std::chrono_literals;

namespace {

/// A stand-in for a mail library: sends on its own thread and calls back there. The first attempt
/// at each letter that says "flaky" fails.
class Mail {
 public:
  Mail() : sender_([this](const std::stop_token& stop) { send_all(stop); }) {}

  template <class Callback>
  void send(Bytes letter, std::string identity, std::stop_token stop, Callback callback) {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::string(letter.text()), std::move(identity), std::move(stop),
                      std::packaged_task<void(bool)>(std::move(callback))});
    changed_.notify_all();
  }
  [[nodiscard]] std::map<std::string, int> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  [[nodiscard]] int failed() const {
    const std::lock_guard lock(mutex_);
    return failed_;
  }

 private:
  struct Letter {
    std::string text;
    std::string identity;
    std::stop_token stop;
    std::packaged_task<void(bool)> callback;
  };

  void send_all(const std::stop_token& stop) {
    std::map<std::string, int> attempts;
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [this] { return !queue_.empty(); })) {
      Letter letter = std::move(queue_.front());
      queue_.pop_front();
      const bool flaky = ++attempts[letter.identity] == 1 && letter.text == "flaky";
      const bool sent = !flaky && !letter.stop.stop_requested();
      if (sent) {
        ++sent_[letter.identity];
      } else {
        ++failed_;
      }
      lock.unlock();
      letter.callback(sent);
      lock.lock();
    }
  }

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Letter> queue_;
  std::map<std::string, int> sent_;
  int failed_ = 0;
  std::jthread sender_;
};

}  // namespace

int main() {
  testing::World world;
  world.create_topic("emails", 1);
  for (const char* letter : {"first", "flaky", "third"}) {
    world.produce("emails", 0, {.key = letter, .value = letter});
  }

  Mail mail;
  Builder build;
  build.group("test");
  build
      .on("emails",
          [&mail](const Record& record, const Owner& owner, Completion completion) {
            mail.send(record.value(), record.identity(), owner.stop_token(),
                      [c = std::move(completion)](bool sent) mutable {
                        std::move(c).complete(sent ? done() : retry(5s));
                      });
          })
      .effect(Effect::idempotent);

  const sample::Member member(build, sample::ports(world, "A"));
  sample::Checks check;
  check(sample::eventually(world, [&] { return world.committed("emails", 0) == Offset(3); }),
        "all three are committed");
  check(mail.sent().size() == 3, "three letters were sent");
  for (const auto& [identity, times] : mail.sent()) check(times == 1, identity.c_str());
  check(mail.failed() == 1, "one attempt failed and was retried");
  return check.failed();
}
