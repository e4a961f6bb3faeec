#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/system/system.h"

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace gradcell {
namespace {

/// Four threads whatever the machine has, and the default again afterwards.
class ThreadPool : public ::testing::Test {
 protected:
  void SetUp() override { set_max_threads(4); }
  void TearDown() override { set_max_threads(0); }
};

void expect_every_task_once(int n_tasks) {
  std::vector<int> ran(n_tasks);
  parallel_for(n_tasks, [&](int task, int) { ++ran[task]; });
  EXPECT_EQ(ran, std::vector<int>(n_tasks, 1));
}

TEST_F(ThreadPool, RunsEveryTaskOnce) {
  for (int n : {0, 1, 2, 3, 4, 5, 64, 1000}) expect_every_task_once(n);
}

TEST_F(ThreadPool, ManyShortCallsInARow) {
  std::atomic<int> sum{0};
  for (int i = 0; i < 5000; ++i) parallel_for(3, [&](int, int) { sum.fetch_add(1); });
  EXPECT_EQ(sum.load(), 15000);
}

TEST_F(ThreadPool, AWorkerRunsOneTaskAtATime) {
  std::vector<int> busy(max_threads());  // not atomic: ThreadSanitizer would see a second user
  for (int i = 0; i < 100; ++i) {
    parallel_for(50, [&](int, int worker) {
      ASSERT_GE(worker, 0);
      ASSERT_LT(worker, 4);
      EXPECT_EQ(busy[worker]++, 0);
      busy[worker]--;
    });
  }
}

TEST_F(ThreadPool, SeveralThreadsTakePart) {
  std::atomic<int> arrived{0};
  parallel_for(4, [&](int, int) {  // each task waits for all four: needs four threads
    arrived.fetch_add(1);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (arrived.load() < 4 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 4);
}

TEST_F(ThreadPool, MaxWorkersLimitsTheCall) {
  for (int i = 0; i < 200; ++i) {
    parallel_for(20, [&](int, int worker) { EXPECT_LT(worker, 2); }, 2);
  }
  const auto caller = std::this_thread::get_id();
  parallel_for(5, [&](int, int) { EXPECT_EQ(std::this_thread::get_id(), caller); }, 1);
}

TEST_F(ThreadPool, SetMaxThreadsGrowsAndShrinks) {
  for (int n : {1, 8, 2, 5, 3, 1, 4}) {
    set_max_threads(n);
    EXPECT_EQ(max_threads(), n);
    for (int i = 0; i < 20; ++i) {
      parallel_for(100, [&](int, int worker) { EXPECT_LT(worker, n); });
      expect_every_task_once(100);
    }
  }
  set_max_threads(0);
  EXPECT_GE(max_threads(), 1);
}

TEST_F(ThreadPool, NestedCallsRunInline) {
  std::atomic<int> inner{0};
  EXPECT_FALSE(in_parallel_region());
  parallel_for(8, [&](int, int) {
    EXPECT_TRUE(in_parallel_region());
    const auto self = std::this_thread::get_id();
    parallel_for(10, [&](int, int worker) {
      EXPECT_EQ(worker, 0);
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner.fetch_add(1);
    });
  });
  EXPECT_EQ(inner.load(), 80);
  EXPECT_FALSE(in_parallel_region());
}

TEST_F(ThreadPool, CallersAtTheSameTime) {
  std::atomic<int> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        std::vector<int> ran(17);
        parallel_for(17, [&](int task, int) { ++ran[task]; });
        total.fetch_add(std::accumulate(ran.begin(), ran.end(), 0));
      }
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(total.load(), 4 * 300 * 17);
}

TEST_F(ThreadPool, ExceptionReachesTheCaller) {
  for (int i = 0; i < 50; ++i) {
    try {
      parallel_for(100, [](int task, int) {
        if (task == 37) throw std::runtime_error("task 37");
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& e) {
      EXPECT_STREQ(e.what(), "task 37");
    }
    expect_every_task_once(20);
  }
}

#ifndef _WIN32  // where nothing forks
TEST_F(ThreadPool, WorksInAForkedChild) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not start threads in a forked child";
#endif
  expect_every_task_once(100);  // the parent's workers exist
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> sum{0};
    for (int i = 0; i < 100; ++i) parallel_for(10, [&](int, int) { sum.fetch_add(1); });
    _exit(sum.load() == 1000 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  expect_every_task_once(100);
}
#endif

TEST_F(ThreadPool, IdleWorkersSleep) {
  expect_every_task_once(100);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = system::seconds_computed();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_LT(system::seconds_computed() - before, 0.05);
}

}  // namespace
}  // namespace gradcell
