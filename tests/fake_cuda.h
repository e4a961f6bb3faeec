// What the parts of the made-up GPU share: see fake_cuda.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fake {

using Address = unsigned long long;

inline std::recursive_mutex everything;
#define LOCKED std::lock_guard lock(everything)

constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kBadImage = 200, kNoContext = 201,
              kBadHandle = 400, kNotFound = 500, kNotReady = 600, kNoResources = 701,
              kIllegalAddress = 700, kMisaligned = 716, kGraphUpdateFailure = 910,
              kNotSupported = 801, kCaptureUnsupported = 900, kCaptureInvalidated = 901;

inline long setting(const char* name, long otherwise) {
  const char* v = std::getenv(name);
  return v ? std::atol(v) : otherwise;
}

struct Counts {
  std::atomic<long> launches{0}, graphs{0}, captures{0}, compiles{0}, uploads{0}, downloads{0},
      products{0}, biases{0}, copies{0}, ptx{0}, updates{0}, additions{0}, waits{0}, allocations{0},
      checks{0}, convolutions{0}, nodes{0}, enqueued{0}, by_candidate[8] = {};
  ~Counts() {
    const char* file = std::getenv("FAKE_CUDA_COUNTS");
    if (!file) return;
    std::ofstream out(file);
    out << "launches " << launches << "\ngraphs " << graphs << "\ncaptures " << captures
        << "\ncompiles " << compiles << "\nuploads " << uploads << "\ndownloads " << downloads
        << "\nproducts " << products << "\nbiases " << biases << "\ncopies " << copies << "\nptx "
        << ptx << "\nadditions " << additions << "\nupdates " << updates << "\nwaits " << waits
        << "\nallocations " << allocations << "\nchecks " << checks << "\nconvolutions "
        << convolutions << "\nnodes " << nodes << "\nenqueued " << enqueued << "\n";
    for (int k = 0; k < 8; ++k) out << "candidate" << k << " " << by_candidate[k] << "\n";
  }
};
inline Counts counts;
/// FAKE_CUDA_IDLE=1: what is enqueued is counted and done at once, without doing it, and kernels
/// are not compiled. So a driver of large programs costs little, and all values are what memory
/// held.
inline const bool idle = setting("FAKE_CUDA_IDLE", 0) != 0;

// Contexts, memory, streams
// -----------------------------------------------------------------------------------------------

struct Context {
  int device;
};
inline Context contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
inline thread_local Context* current = nullptr;

struct Block {
  size_t bytes;
  int device;
};
inline std::map<Address, Block> blocks;
inline size_t held[8] = {};

/// The device that holds an address; -1: none.
inline int device_of(Address p) {
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return -1;
  --it;
  return p < it->first + std::max<size_t>(1, it->second.bytes) ? it->second.device : -1;
}
inline int sticky = 0;  // an error of work that ran late: every wait from then on reports it

constexpr double kLaunchTime = 0.002;  ///< milliseconds

using Call = std::function<void()>;
/// A captured call; `original`: the node of the graph that this one was instantiated from.
struct GraphNode {
  Call call;
  void* function = nullptr;  ///< of a kernel's launch
  void* original = nullptr;
};
using Nodes = std::vector<std::shared_ptr<GraphNode>>;
struct Stream {
  int device = 0;
  std::deque<Call> waiting;
  long enqueued = 0, done = 0;
  double clock = 0;  ///< milliseconds of what was done
  bool capturing = false, invalid = false;
  Nodes captured;

  void drain(long until) {
    while (done < until && !waiting.empty()) {
      Call call = std::move(waiting.front());
      waiting.pop_front();
      ++done;
      call();
    }
  }
  void drain() { drain(enqueued); }
};
inline std::vector<Stream*> streams;
inline Stream legacy[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
inline thread_local Stream* capturing_here = nullptr;

inline Stream* stream_of(void* s) {
  auto handle = reinterpret_cast<uintptr_t>(s);
  if (handle <= 2) return current ? &legacy[current->device] : nullptr;
  return static_cast<Stream*>(s);
}

/// 0, or why work cannot be put on the stream now.
inline int wrong(void* s) {
  if (!current) return kNoContext;
  return stream_of(s)->device == current->device ? 0 : kBadHandle;
}

inline void enqueue(void* s, Call call, void* function = nullptr) {
  Stream* stream = stream_of(s);
  if (stream->capturing) {
    auto node = std::make_shared<GraphNode>(GraphNode{std::move(call), function, nullptr});
    node->original = node.get();
    return stream->captured.push_back(std::move(node));
  }
  ++stream->enqueued;
  if (idle)
    ++stream->done;
  else
    stream->waiting.push_back(std::move(call));
}

/// Late work touches memory that has to be there and on its device.
inline bool there(Address p, int device) {
  if (device_of(p) == device) return true;
  sticky = kIllegalAddress;
  return false;
}

// Elements of arrays by cudaDataType
// ------------------------------------------------------------------------------------------------

inline double element(const void* p, int type, int64_t i) {
  if (type == 1) return static_cast<const double*>(p)[i];
  if (type == 0) return static_cast<const float*>(p)[i];
  uint16_t h = static_cast<const uint16_t*>(p)[i];
  if (type == 14) {
    uint32_t u = uint32_t(h) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
  _Float16 f;
  std::memcpy(&f, &h, 2);
  return static_cast<double>(f);
}

inline void put(void* p, int type, int64_t i, double v) {
  if (type == 1)
    static_cast<double*>(p)[i] = v;
  else if (type == 0)
    static_cast<float*>(p)[i] = static_cast<float>(v);
  else if (type == 14) {
    float f = static_cast<float>(v);
    uint32_t u;
    std::memcpy(&u, &f, 4);
    static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>((u + 0x7FFF + (u >> 16 & 1)) >> 16);
  } else {
    auto h = static_cast<_Float16>(v);
    std::memcpy(static_cast<uint16_t*>(p) + i, &h, 2);
  }
}

// Kernels
// ---------------------------------------------------------------------------------------------------

struct Declared {
  unsigned most;
  bool warps;  ///< a kernel of one thread would be wrong
  std::vector<std::string> types;
};

/// The kernels of a source by name.
std::map<std::string, Declared> kernels_of(const std::string& source);

}  // namespace fake

#define API extern "C" __attribute__((visibility("default"))) int
