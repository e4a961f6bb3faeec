// The process's one pool of worker threads. In: a number of tasks and a function of (task, worker).
// Out: every task ran exactly once; the function's writes are visible to the caller on return.
//
// Holds: the caller works too (as worker 0). A worker begins with an equal share of neighbouring
// tasks, so that the next job finds in its cache what this one left there, and then takes from the
// others' shares: which worker runs a task is not fixed, and code whose result must not depend on
// that keys it by task.
// A call from inside a task, or while another thread's call has the pool, runs inline as worker 0.
// A forked child starts with no workers and makes its own at its first call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "base/narrow.h"

namespace gradcell {

inline constexpr int kMaxThreads = 1024;

/// A reference to a callable: two words, never allocates, valid while the callable lives.
template <class Signature>
class FunctionRef;

template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)  // NOLINT: conversion is the point
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

/// Runs body(task, worker) for every task in [0, tasks), on at most min(max_workers,
/// max_threads()) threads. worker is below that minimum, and no two tasks of one call run at the
/// same time with the same worker (a caller that sizes scratch by worker passes the size it took as
/// max_workers). The first exception a task throws is thrown again here, after the tasks that had
/// started have ended; tasks not yet started are dropped.
void parallel_for(int64_t tasks, FunctionRef<void(int task, int worker)> body,
                  int max_workers = kMaxThreads);

/// The same where it is `worth` waking others; where not, all on this thread.
template <class F>
void parallel_if(bool worth, int64_t tasks, F body, int max_workers = kMaxThreads) {
  if (worth) return parallel_for(tasks, body, max_workers);
  for (int task = 0, n = narrow<int>(tasks); task < n; ++task) body(task, 0);
}

/// How many threads a parallel_for may use, the caller included. At first this is
/// GRADCELL_NUM_THREADS, or else the number of CPUs this process may run on.
int max_threads();

/// Takes effect at the next parallel_for; n < 1 restores the default. A call already running keeps
/// the workers it has.
void set_max_threads(int n);

/// True inside a task of parallel_for (there a nested call runs inline).
bool in_parallel_region();

}  // namespace gradcell
