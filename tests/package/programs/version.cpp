// The smallest program that uses the installed headers.
#include <cstdio>

#include <tenure/version.hpp>

int main() {
  return std::puts("tenure " TENURE_VERSION) < 0 ? 1 : 0;
}
