// Work on n things in parts, as many as pay for waking threads.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"

namespace gradcell {

/// body(begin, end) for parts of n things of `each` elements, on all threads.
void by_parts(int64_t n, int64_t each, FunctionRef<void(int64_t begin, int64_t end)> body);

/// body(begin, end) for pieces of [0, n) that are worth a thread, if `work` elements in all are.
void split(int64_t n, int64_t work, FunctionRef<void(int64_t begin, int64_t end)> body);

}  // namespace gradcell
