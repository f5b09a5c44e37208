// What is behind tenure::app(). Apart, because the public function and the namespace of this
// folder have the same name: no file sees both.
#pragma once

#include <functional>

namespace tenure {
class Builder;
namespace detail {
int app_main(int argc, char** argv, const std::function<void(Builder& build)>& build);
}
}  // namespace tenure
