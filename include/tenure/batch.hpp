// Several records of one lane, offsets ascending, for handlers that take them together.
#pragma once

#include <span>

#include "tenure/record.hpp"

namespace tenure {

/// A view; never empty; until the batch's outcome.
using Batch = std::span<const Record>;

}  // namespace tenure
