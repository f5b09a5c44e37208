// Two threads write one int without a lock. ThreadSanitizer must end this program with a failure.
#include <thread>

int main() {
  int shared = 0;
  std::thread other([&shared] { ++shared; });
  ++shared;
  other.join();
  return 0;
}
