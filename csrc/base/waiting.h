// What takes long, or waits for other threads, lets the rest of the process run meanwhile: a thread
// that has entered the core from an interpreter holds that one's lock.
#pragma once

#include <atomic>

#include "base/thread_pool.h"

namespace gradcell {

/// Calls f without the interpreter's lock, if this thread has it. The binding sets it.
inline std::atomic<void (*)(FunctionRef<void()> f)> wait_hook{nullptr};

template <class F>
void letting_others_run(F f) {
  if (auto* hook = wait_hook.load(std::memory_order_relaxed)) return hook(f);
  f();
}

}  // namespace gradcell
