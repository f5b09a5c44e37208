// The smallest program that needs a library of a subproject.
#include <cstdio>

#include <tenure/ids.hpp>
#include <tenure/version.hpp>

int main() {
  std::printf("tenure %s, order %s\n", TENURE_VERSION,
              std::string(tenure::name(tenure::Order::key)).c_str());
}
