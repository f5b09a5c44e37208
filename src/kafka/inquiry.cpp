#include "kafka/inquiry.hpp"

#include <utility>

namespace tenure::kafka {

Inquiry::Inquiry(std::function<void()> waker)
    : waker_(std::move(waker)), thread_([this] { run(); }) {}

Inquiry::~Inquiry() {
  stop();
  thread_.join();
}

void Inquiry::ask(Question question) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  questions_.push_back(std::move(question));
  wake_.notify_one();
}

void Inquiry::take(std::vector<Answer>& answers) {
  const std::lock_guard lock(mutex_);
  for (Answer& answer : answers_) answers.push_back(std::move(answer));
  answers_.clear();
}

void Inquiry::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  questions_.clear();
  wake_.notify_one();
}

void Inquiry::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || !questions_.empty(); });
    if (stopped_) return;
    const Question question = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    Answer answer = question(stopped_);
    lock.lock();
    if (stopped_) return;
    answers_.push_back(std::move(answer));
    lock.unlock();
    waker_();
    lock.lock();
  }
}

}  // namespace tenure::kafka
