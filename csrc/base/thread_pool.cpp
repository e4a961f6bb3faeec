// A pool in which nobody waits for a worker that has not come: the caller opens a job, works,
// closes it, and waits only for the workers that joined. A worker that wakes up late finds the job
// closed.
#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/parts.h"
#include "base/system/sleep.h"
#include "base/system/system.h"

namespace gradcell {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);  // then a thread with nothing to do sleeps

thread_local bool t_in_task = false;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

/// Spins for about kSpin, or until ready(); returns the last ready().
template <class Ready>
bool spin_until(Ready ready) {
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

int default_threads() {
  static const int n = [] {
    const char* text = std::getenv("GRADCELL_NUM_THREADS");
    const long asked = text ? std::strtol(text, nullptr, 10) : 0;
    return narrow<int>(
        std::min<long>(asked > 0 ? asked : system::usable_processors(), kMaxThreads));
  }();
  return n;
}

std::atomic<int> g_max_threads{0};  // 0: the default

/// Marks this thread as running tasks while it lives.
struct TaskScope {
  const bool outer = t_in_task;
  TaskScope() { t_in_task = true; }
  ~TaskScope() { t_in_task = outer; }
};

class Pool {
 public:
  std::mutex callers;  ///< held by the one caller whose job the workers see

  /// Needs `callers` held.
  void run(int n_tasks, FunctionRef<void(int, int)> body, int limit, int threads) {
    resize(threads - 1);
    limit = std::min(limit, workers_ + 1);
    if (share_count_ < limit) {
      shares_ = std::make_unique<Share[]>(static_cast<size_t>(limit));
      share_count_ = limit;
    }
    body_ = &body;
    for (int w = 0; w < limit; ++w) {
      shares_[w].next.store(int64_t(n_tasks) * w / limit, std::memory_order_relaxed);
      shares_[w].end = int64_t(n_tasks) * (w + 1) / limit;
    }
    limit_ = limit;
    failed_.store(false, std::memory_order_relaxed);
    error_ = nullptr;
    state_.store(kOpen | narrow<uint32_t>(limit) << kLimitShift, std::memory_order_release);
    wake(std::min(n_tasks, limit) - 1, limit > workers_);
    work(0);
    state_.fetch_and(kActiveMask, std::memory_order_acq_rel);  // closed: from here nobody joins
    await_workers();
    if (failed_.load(std::memory_order_relaxed)) {
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
  }

 private:
  // state_: is a job open, which workers may join (those below the limit), how many are in it.
  static constexpr uint32_t kOpen = 1u << 31;
  static constexpr uint32_t kLimitShift = 16;
  static constexpr uint32_t kActiveMask = (1u << kLimitShift) - 1;

  /// A worker's own tasks, neighbours of each other; those who are done with theirs help.
  struct alignas(64) Share {
    std::atomic<int64_t> next{0};
    int64_t end = 0;
  };

  void work(int worker) {
    TaskScope scope;
    for (int i = 0; i < limit_; ++i) work_on(shares_[(worker + i) % limit_], worker);
  }

  void work_on(Share& share, int worker) {
    while (share.next.load(std::memory_order_relaxed) < share.end &&
           !failed_.load(std::memory_order_relaxed)) {
      const int64_t task = share.next.fetch_add(1, std::memory_order_relaxed);
      if (task >= share.end) return;
      try {
        (*body_)(low_bits<int>(task), worker);
      } catch (...) {
        if (!failed_.exchange(true, std::memory_order_relaxed)) error_ = std::current_exception();
      }
    }
  }

  bool join(int worker) {
    uint32_t state = state_.load(std::memory_order_acquire);
    while ((state & kOpen) && narrow<uint32_t>(worker) < ((state & ~kOpen) >> kLimitShift)) {
      if (state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  void leave() {
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == 1) system::wake_all(state_);
  }

  void await_workers() {
    auto done = [&] { return state_.load(std::memory_order_acquire) == 0; };
    if (done() || spin_until(done)) return;
    for (uint32_t state; (state = state_.load(std::memory_order_acquire)) != 0;)
      system::sleep_while(state_, state);
  }

  /// Sleepers are counted so that a call whose workers still spin costs no system call.
  void wake(int wanted, bool any_will_do) {
    signal_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
    if (wanted >= workers_ || !any_will_do) return system::wake_all(signal_);
    for (; wanted > 0; --wanted) system::wake_one(signal_);
  }

  void await_signal(uint32_t seen) {
    auto signalled = [&] { return signal_.load(std::memory_order_acquire) != seen; };
    if (spin_until(signalled)) return;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (signal_.load(std::memory_order_seq_cst) == seen) system::sleep_while(signal_, seen);
    sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  }

  void worker_loop(int worker) {
    for (;;) {
      const uint32_t seen = signal_.load(std::memory_order_acquire);
      if (worker > wanted_workers_.load(std::memory_order_acquire)) break;
      if (join(worker)) {
        work(worker);
        leave();
      }
      await_signal(seen);
    }
    alive_.fetch_sub(1, std::memory_order_release);
    system::wake_all(alive_);
  }

  /// Threads are detached and counted: the pool lives as long as the process.
  void resize(int n) {
    if (n == wanted_workers_.load(std::memory_order_relaxed)) return;
    wanted_workers_.store(n, std::memory_order_release);
    if (n < workers_) {
      signal_.fetch_add(1, std::memory_order_seq_cst);
      system::wake_all(signal_);
      for (uint32_t a; (a = alive_.load(std::memory_order_acquire)) > narrow<uint32_t>(n);)
        system::sleep_while(alive_, a);
      workers_ = n;
      return;
    }
    const system::WithoutSignals scope;  // they are for the program's own threads
    try {
      for (; workers_ < n; ++workers_) {
        alive_.fetch_add(1, std::memory_order_relaxed);
        std::thread([this, worker = workers_ + 1] { worker_loop(worker); }).detach();
      }
    } catch (const std::system_error&) {  // no more threads to be had: go on with those we have
      alive_.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  // The job. Written by the caller while state_ is not open and nobody is in.
  const FunctionRef<void(int, int)>* body_ = nullptr;
  int limit_ = 0;
  std::unique_ptr<Share[]> shares_;
  int share_count_ = 0;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
  int workers_ = 0;

  alignas(64) system::Number state_{0};
  alignas(64) system::Number signal_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<int> wanted_workers_{0};
  system::Number alive_{0};
};

std::atomic<Pool*> g_pool{nullptr};  // never freed: workers may outlive static destructors

Pool& pool() {
  if (Pool* p = g_pool.load(std::memory_order_acquire)) return *p;
  static std::once_flag once;
  std::call_once(once, [] {
    // The child has none of the workers, and may have copied a pool in the middle of a job.
    system::in_forked_children([] { g_pool.store(nullptr, std::memory_order_release); });
  });
  auto* fresh = new Pool;
  Pool* expected = nullptr;
  if (g_pool.compare_exchange_strong(expected, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *expected;
}

}  // namespace

void parallel_for(int64_t tasks, FunctionRef<void(int task, int worker)> body, int max_workers) {
  const int n_tasks = narrow<int>(tasks), threads = max_threads();
  const int limit = std::min(max_workers, threads);
  if (n_tasks > 1 && limit > 1 && !t_in_task) {
    Pool& p = pool();
    if (std::unique_lock lock(p.callers, std::try_to_lock); lock) {
      return p.run(n_tasks, body, limit, threads);
    }
  }
  for (int task = 0; task < n_tasks; ++task) body(task, 0);
}

void by_parts(int64_t n, int64_t each, FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n == 0) return;
  const int64_t parts = std::clamp<int64_t>(n * each / 16384, 1, std::min<int64_t>(n, 64));
  parallel_for(parts, [&](int p, int) { body(n * p / parts, n * (p + 1) / parts); });
}

void split(int64_t n, int64_t work, FunctionRef<void(int64_t begin, int64_t end)> body) {
  const int64_t pieces = std::min<int64_t>({n, work / 65536, 4 * max_threads()});
  if (pieces <= 1 || max_threads() == 1) return body(int64_t(0), n);
  parallel_for(pieces, [&](int p, int) { body(n * p / pieces, n * (p + 1) / pieces); });
}

int max_threads() {
  const int n = g_max_threads.load(std::memory_order_relaxed);
  return n > 0 ? n : default_threads();
}

void set_max_threads(int n) {
  g_max_threads.store(std::clamp(n, 0, kMaxThreads), std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_task; }

}  // namespace gradcell
