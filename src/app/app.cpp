#include "tenure/app.hpp"

#include "app/app_main.hpp"

namespace tenure {

int app(int argc, char** argv, const std::function<void(Builder& build)>& build) {
  return detail::app_main(argc, argv, build);
}

}  // namespace tenure
