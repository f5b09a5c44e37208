// A thread that asks the broker what the client can only ask by waiting.
//
// Role: reading committed offsets, log ends and topic ids blocks its caller; the loop thread must
//   not wait for a broker (C1), so it hands the question over and takes the answer later.
// Owns: its thread and the questions not yet asked.
// Threads: ask() and take() on the loop thread; questions run on the inquiry's own.
// Lifecycle: stop() tells a running question, which looks at it between two short waits; the
//   destructor joins.
// Promises: answers come in the order of the questions. Does not promise an answer after stop().
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace tenure::kafka {

class Inquiry {
 public:
  /// Hands the answer to the sink; loop thread.
  using Answer = std::function<void()>;
  /// Asks and returns the answer; inquiry thread. Nobody takes the answer any more when
  /// `stopped` is true.
  using Question = std::function<Answer(const std::atomic<bool>& stopped)>;

  /// `waker` is called on the inquiry's thread when an answer is there.
  explicit Inquiry(std::function<void()> waker);
  ~Inquiry();
  Inquiry(const Inquiry&) = delete;
  Inquiry& operator=(const Inquiry&) = delete;

  void ask(Question question);
  /// Appends the answers that are there.
  void take(std::vector<Answer>& answers);
  void stop();

 private:
  void run();

  std::function<void()> waker_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Question> questions_;    // guarded by mutex_
  std::vector<Answer> answers_;       // guarded by mutex_
  std::atomic<bool> stopped_{false};  // changes under mutex_
  std::thread thread_;
};

}  // namespace tenure::kafka
