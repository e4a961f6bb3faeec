// Work on a long graph can be ended from outside, as by Ctrl-C. Passes ask between their parts, and
// whoever makes nodes asks once in a while; what they have made by then is given up.
#pragma once

#include <atomic>

namespace gradcell {

/// Throws if the work shall end. The binding sets it.
inline std::atomic<void (*)()> interrupt_check{nullptr};

inline void check_interrupt() {
  if (auto* check = interrupt_check.load(std::memory_order_relaxed)) check();
}

}  // namespace gradcell
