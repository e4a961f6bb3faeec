// Linux, macOS and others of their kind.
#ifndef _WIN32
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <new>
#include <thread>

#include "base/narrow.h"
#include "base/system/sleep.h"
#include "base/system/system.h"

#ifdef __linux__
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

namespace gradcell::system {

void* aligned(size_t alignment, size_t bytes) { return std::aligned_alloc(alignment, bytes); }

void release(void* block) { std::free(block); }

void take_large_pages([[maybe_unused]] void* block, [[maybe_unused]] size_t bytes) {
#ifdef MADV_HUGEPAGE
  madvise(block, bytes, MADV_HUGEPAGE);
#endif
}

void* open_library(const std::string& file) { return dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); }

std::string why_not_opened() {
  const char* why = dlerror();
  return why ? why : "";
}

void* find_symbol(void* library, const char* name) { return dlsym(library, name); }

int usable_processors() {
#ifdef __linux__
  for (int cpus = 1024; cpus <= (1 << 16); cpus *= 2) {  // EINVAL: the kernel's set is larger
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (!set) break;
    const size_t size = CPU_ALLOC_SIZE(cpus);
    const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
#endif
  return std::max(1, narrow<int>(std::thread::hardware_concurrency()));
}

size_t second_level_cache() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<size_t>(bytes) : 0;
#elif defined(__APPLE__)
  int64_t bytes = 0;
  size_t size = sizeof bytes;
  // Of the fast cores, where there are two kinds; such a core shares it with some others.
  for (const char* name : {"hw.perflevel0.l2cachesize", "hw.l2cachesize"})
    if (sysctlbyname(name, &bytes, &size, nullptr, 0) == 0 && bytes > 0)
      return static_cast<size_t>(std::min<int64_t>(bytes, 1 << 20));
  return 0;
#else
  return 0;
#endif
}

bool may_use_matrix_units() {
#if defined(__linux__) && defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

int process_id() { return ::getpid(); }

bool process_lives(int id) { return ::kill(id, 0) == 0 || errno != ESRCH; }

void in_forked_children(Hook hook) { pthread_atfork(nullptr, nullptr, hook); }

double seconds_computed() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

void wait_forever() {
  for (;;) ::pause();
}

void sleep_while(const Number& number, uint32_t seen) { number.wait(seen); }
void wake_one(Number& number) { number.notify_one(); }
void wake_all(Number& number) { number.notify_all(); }

WithoutSignals::WithoutSignals() {
  static_assert(sizeof(sigset_t) <= sizeof before_ && alignof(sigset_t) <= 8);
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, ::new (before_) sigset_t);
}

WithoutSignals::~WithoutSignals() {
  pthread_sigmask(SIG_SETMASK, reinterpret_cast<const sigset_t*>(before_), nullptr);
}

std::string cache_folder() {
  auto variable = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  if (auto named = variable("XDG_CACHE_HOME"); !named.empty()) return named;
  const auto home = variable("HOME");
  return home.empty() ? home : home + "/.cache";
}

}  // namespace gradcell::system
#endif
