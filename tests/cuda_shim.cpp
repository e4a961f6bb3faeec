// Runs kernels that were built with cuda_shim.h as a GPU may run them: a shuffle makes a warp's
// lanes wait for each other and nobody else, and in which order lanes, warps and blocks run is
// free. What is undefined there is found: the files of kernels are compiled with -fsanitize=thread,
// whose calls come here (tests/cuda_shim.h and this file need no library of a sanitizer).
//
// Found are: two accesses of which one writes, by threads that no barrier comes between (a shuffle
// orders no memory); accesses beyond the end of what a launch was given; reads of shared memory
// that nobody of the block has written; barriers that some threads do not reach, or reach
// elsewhere; masks of lanes that are not there.
#undef _FORTIFY_SOURCE  // its longjmp knows one stack

#define SHIM_RUNNER
#include "cuda_shim.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

ShimIndex threadIdx, blockIdx, blockDim, gridDim;  // constant for the kernels
alignas(16) unsigned char gc_tile[256 << 10];

// The library's own image: of the linker.
extern "C" char __ehdr_start[] __attribute__((visibility("hidden")));
extern "C" char __bss_start[] __attribute__((visibility("hidden")));
extern "C" char _end[] __attribute__((visibility("hidden")));

namespace {

constexpr size_t kStack = 128 << 10;
constexpr unsigned kMost = 1024;  // threads of a block

uintptr_t number_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// What was found ----------------------------------------------------------------------------------

enum class Fault { Block, Warp, Grid, Unwritten, Outside };
constexpr const char* kFaults[] = {
    "two threads of a block, no barrier between", "two threads of a warp, no barrier between",
    "two blocks", "shared memory that nobody wrote", "outside of what the launch was given"};

struct Reports {
  std::map<std::tuple<Fault, bool, uintptr_t, uintptr_t>, long>
      accesses;  ///< now a write, before, now
  std::vector<std::string> notes;
  void note(std::string text) {
    if (std::find(notes.begin(), notes.end(), text) == notes.end())
      notes.push_back(std::move(text));
  }
};

// What was accessed -------------------------------------------------------------------------------

/// Each block of each launch, and each stretch between barriers, has an epoch of its own.
struct Access {
  uint32_t epoch = 0, at = 0;  ///< at: of the code, from the image's start
  uint16_t thread = 0, warp_epoch = 0;
};
struct Unit {
  Access write, read;
  uint16_t other = 0;  ///< another thread that read in read.epoch, of another warp if there is one
  uint32_t earlier = 0;  ///< an epoch of a block before, in which it was read
};
/// Of each word, or of its four bytes as soon as they are not accessed together.
struct Page {
  static constexpr size_t kBytes = 4096, kWords = kBytes / 4;
  std::array<Unit, kWords> words;
  std::array<bool, kWords> apart;
  std::unique_ptr<std::array<Unit, kBytes>> bytes;

  void take_apart(size_t word) {
    if (!bytes) bytes = std::make_unique<std::array<Unit, kBytes>>();
    std::fill_n(bytes->begin() + static_cast<ptrdiff_t>(word * 4), 4, words[word]);
    apart[word] = true;
  }
  void put_together(size_t word) {
    words[word] = (*bytes)[word * 4];
    apart[word] = false;
  }
};

struct Range {
  uintptr_t begin, end;
};

struct Emulator {
  Reports found;
  std::unordered_map<uintptr_t, std::unique_ptr<Page>> pages;
  std::array<std::pair<uintptr_t, Page*>, 256> latest{};  ///< by the last bits of their numbers
  std::vector<Range> ranges;  ///< what the launch was given; none: unknown
  size_t latest_range = 0;
  bool bounded = false;
  size_t tile_bytes = sizeof gc_tile;
  uint32_t epoch = 1, block_begin = 1, launch_begin = 1;
  uint16_t warp_epoch[kMost / 32] = {};
  int running = -1;
  int order = 0;
  std::mt19937 random;
  int left_out = -1;
  std::vector<uint8_t> reached;  ///< by number of barrier

  Page& page(uintptr_t number) {
    auto& [known, page] = latest[number % latest.size()];
    if (known != number || !page) {
      auto& made = pages[number];
      if (!made) made = std::make_unique<Page>();
      known = number, page = made.get();
    }
    return *page;
  }
  bool given(uintptr_t at, uintptr_t end) {
    auto holds = [&](const Range& r) { return at >= r.begin && end <= r.end; };
    if (latest_range < ranges.size() && holds(ranges[latest_range])) return true;
    for (latest_range = 0; latest_range < ranges.size(); ++latest_range)
      if (holds(ranges[latest_range])) return true;
    return !bounded;
  }
};
Emulator& the_emulator =
    *new Emulator;  // not in the image's own memory: that is the kernels' shared
Emulator& emulator() { return the_emulator; }

char* const stacks = static_cast<char*>(mmap(nullptr, kStack* kMost, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));

/// How an access and one before, of the same block, get in each other's way.
bool clash(const Emulator& e, const Access& before, int thread, int me, Fault& fault) {
  if (before.epoch != e.epoch || thread == me) return false;
  if (thread / 32 != me / 32) return fault = Fault::Block, true;
  if (before.warp_epoch != e.warp_epoch[me / 32]) return false;
  return fault = Fault::Warp, true;
}

void check(Emulator& e, Unit& b, bool write, bool shared, uint32_t at, bool first) {
  const int me = e.running;
  Fault fault{};
  uint32_t other = 0;
  bool found = false;
  if (shared) {
    if (!write && b.write.epoch < e.block_begin) found = true, fault = Fault::Unwritten;
  } else if (b.write.epoch >= e.launch_begin && b.write.epoch < e.block_begin) {
    found = true, fault = Fault::Grid, other = b.write.at;
  } else if (write && (b.earlier >= e.launch_begin ||
                       (b.read.epoch >= e.launch_begin && b.read.epoch < e.block_begin))) {
    found = true, fault = Fault::Grid, other = b.read.at;
  }
  if (!found && clash(e, b.write, b.write.thread, me, fault)) found = true, other = b.write.at;
  if (!found && write &&
      (clash(e, b.read, b.read.thread, me, fault) || clash(e, b.read, b.other, me, fault)))
    found = true, other = b.read.at;
  if (found && first) ++e.found.accesses[{fault, write, other, at}];
  const Access now{e.epoch, at, static_cast<uint16_t>(me), e.warp_epoch[me / 32]};
  if (write) {
    b.write = now, b.read = {}, b.earlier = 0;
    return;
  }
  if (b.read.epoch == e.epoch) {
    if (b.read.thread != me && (b.other == b.read.thread || b.other / 32 == b.read.thread / 32))
      b.other = static_cast<uint16_t>(me);
    if (b.read.warp_epoch != now.warp_epoch && b.read.thread / 32 == me / 32) b.read = now;
    return;
  }
  if (b.read.epoch >= e.launch_begin && b.read.epoch < e.block_begin) b.earlier = b.read.epoch;
  b.read = now, b.other = now.thread;
}

/// Where a stretch of memory that lies in a page was accessed.
void check_all(Emulator& e, uintptr_t at, size_t size, bool write, bool shared, uint32_t code,
               bool first) {
  Page& page = e.page(at / Page::kBytes);
  for (size_t place = at % Page::kBytes, end = place + size; place < end; first = false) {
    const size_t word = place / 4, next = std::min(word * 4 + 4, end);
    const bool whole = next - place == 4;
    if (!whole && !page.apart[word]) page.take_apart(word);
    if (!page.apart[word]) {
      check(e, page.words[word], write, shared, code, first);
    } else {
      for (size_t k = place; k < next; ++k)
        check(e, (*page.bytes)[k], write, shared, code, first && k == place);
      if (whole && write) page.put_together(word);
    }
    place = next;
  }
}

void access(const void* p, size_t size, bool write, const void* code) {
  const uintptr_t at = number_of(p);
  if (at - number_of(stacks) < kStack * kMost) return;
  Emulator& e = emulator();
  if (e.running < 0) return;
  const uint32_t from = static_cast<uint32_t>(number_of(code) - number_of(__ehdr_start));
  const bool image = at >= number_of(__ehdr_start) && at < number_of(_end);
  const bool shared = image && at >= number_of(__bss_start);
  if (image && !shared && !write) return;  // a constant
  const uintptr_t tile = at - number_of(gc_tile);
  const bool inside =
      shared ? tile >= sizeof gc_tile || tile + size <= e.tile_bytes : e.given(at, at + size);
  if (!inside) ++e.found.accesses[{Fault::Outside, write, 0, from}];
  for (size_t k = 0, part; k < size; k += part) {
    part = std::min(size - k, Page::kBytes - (at + k) % Page::kBytes);
    check_all(e, at + k, part, write, shared, from, k == 0);
  }
}

// Threads -----------------------------------------------------------------------------------------

enum class State { Ready, AtBarrier, AtWarp, Done };

struct Thread {
  ucontext_t start;
  jmp_buf here;
  State state = State::Done;
  bool made = false;
  int barrier = 0;              ///< its number
  unsigned mask = 0, size = 0;  ///< of a gathering; size 0: a warp's barrier
  unsigned gatherings = 0;
};

std::vector<Thread> threads;
/// What the lanes of a warp show each other, by turns in two places: the next gathering does not
/// change what others have yet to read, and the one after it begins when all have come to the next.
using Shown = std::array<unsigned char, 32>;
std::vector<Shown> shown[2];
jmp_buf launcher;
void (*kernel_of)(void**);
void** arguments_of;

/// Back to the launcher, until it is this thread's turn again.
void wait(Thread& t, State state) {
  t.state = state;
  if (_setjmp(t.here) == 0) _longjmp(launcher, 1);
}

/// Runs the kernel whenever a block begins.
void run_kernels() {
  for (;;) {
    kernel_of(arguments_of);
    wait(threads[static_cast<size_t>(emulator().running)], State::Done);
  }
}

void resume(size_t number) {
  Thread& t = threads[number];
  const auto n = static_cast<unsigned>(number);
  threadIdx = {n % blockDim.x, n / blockDim.x, 0};
  emulator().running = static_cast<int>(number);
  t.state = State::Ready;
  if (_setjmp(launcher) == 0) {
    if (t.made) _longjmp(t.here, 1);
    t.made = true;
    getcontext(&t.start);
    t.start.uc_stack.ss_sp = stacks + kStack * number;
    t.start.uc_stack.ss_size = kStack;
    t.start.uc_link = nullptr;
    makecontext(&t.start, run_kernels, 0);
    setcontext(&t.start);
  }
  emulator().running = -1;
}

unsigned lanes_of(size_t warp, size_t count) {
  const size_t lanes = std::min<size_t>(32, count - warp * 32);
  return lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
}

/// A warp whose lanes all wait at the same place goes on. False: it waits for the block.
bool release_warp(Emulator& e, size_t warp, size_t count) {
  const size_t end = std::min(count, warp * 32 + 32);
  size_t waiting = 0;
  const Thread* first = nullptr;
  bool same = true;
  for (size_t t = warp * 32; t < end; ++t) {
    if (threads[t].state != State::AtWarp) continue;
    ++waiting;
    if (!first) first = &threads[t];
    same &= threads[t].size == first->size && threads[t].barrier == first->barrier;
  }
  if (waiting == 0) return false;
  if (waiting < end - warp * 32)
    e.found.note("some lanes of a warp wait where the others do not come");
  if (!same) e.found.note("lanes of a warp wait at different places");
  if (first->size == 0) ++e.warp_epoch[warp];
  for (size_t t = warp * 32; t < end; ++t)
    if (threads[t].state == State::AtWarp) threads[t].state = State::Ready;
  return true;
}

/// False where some threads end while others wait for them.
bool run_block(Emulator& e, size_t count) {
  for (size_t t = 0; t < count; ++t) threads[t].state = State::Ready, threads[t].gatherings = 0;
  std::vector<size_t> warps((count + 31) / 32), lanes(32);
  for (size_t w = 0; w < warps.size(); ++w) warps[w] = w;
  for (size_t l = 0; l < 32; ++l) lanes[l] = l;
  if (e.order == 1)
    std::reverse(warps.begin(), warps.end()), std::reverse(lanes.begin(), lanes.end());
  for (;;) {
    if (e.order > 1) {
      std::shuffle(warps.begin(), warps.end(), e.random);
      std::shuffle(lanes.begin(), lanes.end(), e.random);
    }
    for (size_t w : warps) do {
        for (size_t l : lanes) {
          const size_t t = w * 32 + l;
          if (t < count && threads[t].state == State::Ready) resume(t);
        }
      } while (release_warp(e, w, count));
    size_t done = 0;
    bool same = true;
    const Thread* first = nullptr;
    for (size_t t = 0; t < count; ++t) {
      if (threads[t].state == State::Done) {
        ++done;
        continue;
      }
      if (!first) first = &threads[t];
      same &= threads[t].barrier == first->barrier;
    }
    if (done == count) return true;
    if (done > 0) return false;
    if (!same) e.found.note("threads of a block wait at different barriers");
    ++e.epoch;
    std::fill(std::begin(e.warp_epoch), std::end(e.warp_epoch), uint16_t{0});
    for (size_t t = 0; t < count; ++t) threads[t].state = State::Ready;
  }
}

/// Whether a barrier is to be kept.
bool kept(int number) {
  Emulator& e = emulator();
  if (number >= static_cast<int>(e.reached.size()))
    e.reached.resize(static_cast<size_t>(number) + 1);
  e.reached[static_cast<size_t>(number)] = 1;
  return number == 0 || number != e.left_out;
}

}  // namespace

void shim_barrier(int number) {
  Emulator& e = emulator();
  if (!kept(number) || e.running < 0) return;
  Thread& t = threads[static_cast<size_t>(e.running)];
  t.barrier = number;
  wait(t, State::AtBarrier);
}

void shim_warp_barrier(int number) {
  Emulator& e = emulator();
  if (!kept(number) || e.running < 0) return;
  Thread& t = threads[static_cast<size_t>(e.running)];
  t.barrier = number, t.size = 0;
  wait(t, State::AtWarp);
}

namespace {

unsigned lane() { return static_cast<unsigned>(emulator().running) % 32; }

/// What `size` bytes of each lane of the warp are.
const Shown* gathered(unsigned mask, const void* mine, unsigned size) {
  Emulator& e = emulator();
  const auto me = static_cast<size_t>(e.running), first = me / 32 * 32;
  if (mask != lanes_of(me / 32, blockDim.x * blockDim.y))
    e.found.note("a mask of other lanes than there are");
  Thread& t = threads[me];
  auto& all = shown[t.gatherings++ % 2];
  std::memcpy(all[me].data(), mine, size);
  t.barrier = 0, t.mask = mask, t.size = size;
  wait(t, State::AtWarp);
  return &all[first];
}

}  // namespace

void shim_exchange(unsigned mask, const void* mine, unsigned size, unsigned distance, void* found) {
  const Shown* all = gathered(mask, mine, size);
  std::memcpy(found, all[lane() ^ distance].data(), size);
}

int shim_all(unsigned mask, int mine) {
  const Shown* all = gathered(mask, &mine, sizeof mine);
  for (size_t l = 0; l < 32; ++l) {
    int one;
    std::memcpy(&one, all[l].data(), sizeof one);
    if ((mask >> l & 1) && !one) return 0;
  }
  return 1;
}

// Tensor cores ------------------------------------------------------------------------------------

// A warp's matrices are put together from the registers of its threads as the PTX ISA has it,
// "Matrix Fragments for mma.m16n8k8" and "mma.m16n8k16". Nothing says how sums are rounded. Here
// addends lose what is below 24 bits of the largest, and the sum is truncated: no device that has
// been looked at does worse (Fasi, Higham, Mikaitis, Pranesh, PeerJ Comp. Sci. 7, 2021).
namespace gradcell::scalar {
namespace {

float truncated(double x) {
  const float f = static_cast<float>(x);
  return std::isfinite(f) && std::fabs(double(f)) > std::fabs(x) ? std::nextafter(f, 0.0f) : f;
}

/// Products of floats and a float: none is subnormal here, and so is no unit.
float rounded_sum(const double* addends, int n) {
  double largest = 0, sum = 0;
  for (int i = 0; i < n; ++i) {
    sum += addends[i];
    largest = std::max(largest, std::fabs(addends[i]));
  }
  if (!std::isfinite(sum) || largest == 0) return static_cast<float>(sum);
  const uint64_t exponent = std::bit_cast<uint64_t>(largest) >> 52;  // biased by 1023
  const double unit = std::bit_cast<double>((exponent - 23) << 52);
  const double inverse = std::bit_cast<double>((2046 - (exponent - 23)) << 52);
  sum = 0;
  for (int i = 0; i < n; ++i) sum += static_cast<int32_t>(addends[i] * inverse) * unit;
  return truncated(sum);
}

/// Of the rows of a thread's sums the left factor's, lane / 4 and 8 more, of the columns, 2 (lane %
/// 4) and 1 more, the right one's: `number(word, i)` is the i-th number of a register, of `packed`.
template <int packed, class Number>
void multiply(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2], Number number) {
  struct Registers {
    unsigned left[4], right[2];
  } mine{{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  const Shown* all = gathered(0xffffffffu, &mine, sizeof mine);
  auto registers = [&](unsigned lane) {
    Registers of;
    std::memcpy(&of, all[lane].data(), sizeof of);
    return of;
  };
  constexpr unsigned terms = 8 * packed;
  const unsigned me = lane();
  double rows[2][terms], columns[2][terms];
  for (unsigned in_group = 0; in_group < 4; ++in_group)
    for (unsigned side = 0; side < 2; ++side) {
      const Registers left = registers(me / 4 * 4 + in_group);
      const Registers right = registers((me % 4 * 2 + side) * 4 + in_group);
      for (unsigned half = 0; half < 2; ++half)
        for (unsigned i = 0; i < packed; ++i) {
          const unsigned k = (in_group + 4 * half) * packed + i;
          rows[side][k] = number(left.left[side + 2 * half], i);
          columns[side][k] = number(right.right[half], i);
        }
    }
  for (unsigned i = 0; i < 4; ++i) {
    double addends[terms + 1] = {d[i]};
    for (unsigned k = 0; k < terms; ++k) addends[k + 1] = rows[i / 2][k] * columns[i % 2][k];
    d[i] = rounded_sum(addends, terms + 1);
  }
}

}  // namespace

void gc_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply<1>(d, a, b, [](unsigned word, unsigned) { return gc_bits_float(word & 0xffffe000u); });
}
void gc_mma_half(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply<2>(d, a, b, [](unsigned word, unsigned i) {
    return gc_half_to_float(static_cast<unsigned short>(word >> 16 * i));
  });
}
void gc_mma_bfloat(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
  multiply<2>(d, a, b,
              [](unsigned word, unsigned i) { return gc_bits_float(word >> 16 * i << 16); });
}

}  // namespace gradcell::scalar

// What the tests ask for --------------------------------------------------------------------------

/// The arrays that the next launches are given, exactly; below 0: unknown.
extern "C" void shim_ranges(int count, const unsigned long* begin, const unsigned long* end) {
  Emulator& e = emulator();
  e.ranges.clear();
  e.bounded = count >= 0;
  for (int i = 0; i < count; ++i) e.ranges.push_back({begin[i], end[i]});
}

/// 0: lanes, warps and blocks as they are numbered; 1: the other way about; more: by chance, from
/// that seed.
extern "C" void shim_order(int order) {
  emulator().order = order;
  emulator().random.seed(static_cast<unsigned>(order));
}

/// The barrier of that number does nothing; -1: all are there.
extern "C" void shim_leave_out(int number) { emulator().left_out = number; }
/// Whether a barrier has been reached since shim_forget().
extern "C" void shim_forget() { emulator().reached.clear(); }
extern "C" int shim_reached(int number) {
  const auto& reached = emulator().reached;
  return number < static_cast<int>(reached.size()) && reached[static_cast<size_t>(number)];
}

/// What was found since the last call: a line each. "@x" is a place in the library's code.
extern "C" const char* shim_report() {
  static std::string& text = *new std::string;
  Reports& found = emulator().found;
  text.clear();
  for (const std::string& n : found.notes) text += n + "\n";
  for (const auto& [key, times] : found.accesses) {
    const auto& [fault, write, before, now] = key;
    char line[200];
    std::snprintf(line, sizeof line, "%s: %s @%lx", kFaults[static_cast<int>(fault)],
                  write ? "write" : "read", now - 1);
    text += line;
    if (before) std::snprintf(line, sizeof line, ", after @%lx", before - 1), text += line;
    text += " (" + std::to_string(times) + " times)\n";
  }
  found = {};
  return text.c_str();
}

extern "C" int shim_launch(void (*kernel)(void**), void** arguments, unsigned grid,
                           unsigned block_x, unsigned block_y, unsigned shared_bytes) {
  Emulator& e = emulator();
  const size_t count = block_x * block_y;
  if (threads.empty()) {
    threads = std::vector<Thread>(kMost);
    for (auto& place : shown) place.resize(kMost);
  }
  gridDim = {grid, 1, 1};
  blockDim = {block_x, block_y, 1};
  kernel_of = kernel, arguments_of = arguments;
  e.tile_bytes = shared_bytes;
  e.launch_begin = ++e.epoch;
  std::vector<unsigned> blocks(grid);
  for (unsigned b = 0; b < grid; ++b) blocks[b] = b;
  if (e.order == 1) std::reverse(blocks.begin(), blocks.end());
  if (e.order > 1) std::shuffle(blocks.begin(), blocks.end(), e.random);
  for (unsigned b : blocks) {
    blockIdx = {b, 0, 0};
    std::memset(gc_tile, 0xFF, std::min<size_t>(shared_bytes, sizeof gc_tile));
    e.block_begin = ++e.epoch;
    std::fill(std::begin(e.warp_epoch), std::end(e.warp_epoch), uint16_t{0});
    if (!run_block(e, count)) {
      for (Thread& t : threads) t.made = false;
      return 1;
    }
  }
  return 0;
}

// Of -fsanitize=thread ----------------------------------------------------------------------------

#define CODE __builtin_return_address(0)
#define ACCESSES(n)                                                                \
  extern "C" void __tsan_read##n(void* p) { access(p, n, false, CODE); }           \
  extern "C" void __tsan_write##n(void* p) { access(p, n, true, CODE); }           \
  extern "C" void __tsan_unaligned_read##n(void* p) { access(p, n, false, CODE); } \
  extern "C" void __tsan_unaligned_write##n(void* p) { access(p, n, true, CODE); } \
  extern "C" void __tsan_read_write##n(void* p) {                                  \
    access(p, n, false, CODE), access(p, n, true, CODE);                           \
  }
ACCESSES(1)
ACCESSES(2)
ACCESSES(4) ACCESSES(8) ACCESSES(16) extern "C" void __tsan_read_range(void* p, size_t n) {
  access(p, n, false, CODE);
}
extern "C" void __tsan_write_range(void* p, size_t n) { access(p, n, true, CODE); }
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void* __tsan_memcpy(void* to, const void* from, size_t n) {
  access(from, n, false, CODE), access(to, n, true, CODE);
  return std::memcpy(to, from, n);
}
extern "C" void* __tsan_memset(void* to, int v, size_t n) {
  access(to, n, true, CODE);
  return std::memset(to, v, n);
}
