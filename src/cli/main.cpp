#include <string>
#include <vector>

#include "app/app_signals.hpp"
#include "cli/program.hpp"

int main(int argc, char** argv) {
  tenure::app::Signals::block();
  return tenure::app::number(
      tenure::cli::run(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc)));
}
