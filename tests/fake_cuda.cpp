// A GPU for tests, on the CPU: the functions that the CUDA engine uses of the driver (this file),
// of NVRTC (fake_nvrtc.cpp), cuBLASLt, NCCL and cuDNN (fake_*.cpp), in one library. Device memory
// is host memory, "compiling" a kernel is compiling its text as C++ with cuda_shim.h. What the real
// libraries forbid fails here too: work without a current context or with another's stream or
// function, memory that was freed or belongs to another GPU, and what must not happen while a
// stream captures.
//
// Streams are late: nothing enqueued runs before somebody waits for it. So memory that is handed on
// too early, or waits that are missing, show as wrong values.
//
// Environment: FAKE_CUDA_VERSION (13000), FAKE_CUDA_DEVICES (1), FAKE_CUDA_MEMORY in bytes of each
// device (1 GiB), FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_REFUSE_CAPTURE, FAKE_CUDA_REFUSE_UPDATES,
// FAKE_CUDA_REFUSE_CONTEXT_EVENTS, FAKE_CUDA_MULTIPROCESSORS (132),
// FAKE_NVRTC_ARCHS ("75 80 90 100"), FAKE_CUDA_IDLE (fake_cuda.h), FAKE_CUDA_COUNTS: a file that
// what happened is written to in the end (a script asks fake_count()), FAKE_CUDA_SIZES: one that
// gets the bytes of each allocation.
#include "fake_cuda.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <memory>

using namespace fake;

namespace {

constexpr size_t kMaxParameters = 4096;  // bytes a kernel can have, by drivers before CUDA 12.1

std::map<Address, size_t> pinned;

bool is_pinned(const void* p) {
  auto at = reinterpret_cast<Address>(p);
  auto it = pinned.upper_bound(at);
  return it != pinned.begin() && at < std::prev(it)->first + std::prev(it)->second;
}

struct Event {
  Stream* stream = nullptr;
  long at = 0;
  bool timed = false;
  std::shared_ptr<double> time = {};  ///< the stream's, when it gets there; null: not recorded
  std::vector<std::pair<Stream*, long>> all = {};  ///< of a whole context

  void drain() const {
    if (stream) stream->drain(at);
    for (auto [s, until] : all) s->drain(until);
  }
};

/// What a thread that captures in thread-local mode must not call.
int forbidden() {
  if (!capturing_here) return 0;
  capturing_here->invalid = true;
  return kCaptureUnsupported;
}

void drain_all(int device) {
  for (Stream* s : streams)
    if (s->device == device) s->drain();
  legacy[device].drain();
}

using Kernel = void (*)(void**);
struct Function {
  Kernel kernel;
  int device;
  unsigned most;  ///< threads of a block
  bool warps;
  unsigned shared = 48 << 10;  ///< bytes that a launch may ask for
  std::vector<size_t> sizes;   ///< bytes of each parameter
  std::vector<bool> pointers;
};
struct Module {
  void* library;
  std::string path;
  std::map<std::string, Function> functions;
};

int launch_of(void* function, unsigned gx, unsigned bx, unsigned by, unsigned shared,
              void** parameters, Call& call);
constexpr unsigned kNoTiming = 2;
constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76, kMostShared = 97, kMostDynamic = 8;

/// CUDA_KERNEL_NODE_PARAMS_v2
struct KernelNode {
  void* function;
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  void** parameters;
  void** extra;
  void *kernel, *context;
};

}  // namespace

/// What has been counted so far by the file's names; launches are those of graphs too, once done.
extern "C" __attribute__((visibility("default"))) long fake_count(const char* name) {
  const std::map<std::string, std::atomic<long>*> all{{"launches", &counts.launches},
                                                      {"graphs", &counts.graphs},
                                                      {"captures", &counts.captures},
                                                      {"uploads", &counts.uploads},
                                                      {"downloads", &counts.downloads},
                                                      {"products", &counts.products},
                                                      {"copies", &counts.copies},
                                                      {"waits", &counts.waits},
                                                      {"nodes", &counts.nodes},
                                                      {"enqueued", &counts.enqueued},
                                                      {"allocations", &counts.allocations}};
  return all.at(name)->load();
}

API cuInit(unsigned) { return setting("FAKE_CUDA_DEVICES", 1) > 0 ? 0 : kNoDevice; }
API cuDriverGetVersion(int* v) {
  return *v = static_cast<int>(setting("FAKE_CUDA_VERSION", 13000)), 0;
}
API cuGetErrorString(int error, const char** text) {
  *text = error == kNoDevice ? "no CUDA-capable device is detected" : "a made-up error";
  return 0;
}
API cuDeviceGetCount(int* n) { return *n = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1)), 0; }
API cuDeviceGet(int* d, int n) { return *d = n, 0; }
API cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<size_t>(size), "Fake GPU"), 0;
}
API cuDeviceGetAttribute(int* v, int attribute, int) {
  const long capability = setting("FAKE_CUDA_CAPABILITY", 90);
  if (attribute == kMajor) return *v = static_cast<int>(capability / 10), 0;
  if (attribute == kMinor) return *v = static_cast<int>(capability % 10), 0;
  if (attribute == kMultiprocessors)
    return *v = static_cast<int>(setting("FAKE_CUDA_MULTIPROCESSORS", 132)), 0;
  if (attribute != kMostShared) return kInvalid;
  return *v = (capability >= 90 ? 227 : capability >= 80 ? 163 : 64) << 10, 0;
}
API cuDevicePrimaryCtxRetain(void** c, int device) { return *c = &contexts[device], 0; }
API cuCtxGetCurrent(void** c) { return *c = current, 0; }
API cuCtxSetCurrent(void* c) { return current = static_cast<Context*>(c), 0; }
API cuCtxSynchronize() {
  LOCKED;
  if (!current) return kNoContext;
  ++counts.waits;
  for (Stream* s : streams)
    if (s->device == current->device && s->capturing) {
      s->invalid = true;
      return kCaptureUnsupported;
    }
  drain_all(current->device);
  return sticky;
}
API cuMemGetInfo_v2(size_t* available, size_t* total) {
  LOCKED;
  if (!current) return kNoContext;
  *total = static_cast<size_t>(setting("FAKE_CUDA_MEMORY", 1L << 30));
  *available = *total - held[current->device];
  return 0;
}
API cuMemAlloc_v2(Address* p, size_t bytes) {
  LOCKED;
  if (!current) return kNoContext;
  if (int error = forbidden()) return error;
  size_t& mine = held[current->device];
  if (mine + bytes > static_cast<size_t>(setting("FAKE_CUDA_MEMORY", 1L << 30)))
    return kOutOfMemory;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!idle) std::memset(memory, 0xFF, bytes);
  *p = reinterpret_cast<Address>(memory);
  blocks[*p] = {bytes, current->device};
  ++counts.allocations;
  if (const char* file = std::getenv("FAKE_CUDA_SIZES"))
    std::ofstream(file, std::ios::app) << bytes << "\n";
  mine += bytes;
  return 0;
}
/// Freed memory is kept for a while, so that no other block gets its address: who still uses it is
/// caught.
static void retire(Address p, size_t bytes) {
  static std::deque<std::pair<Address, size_t>> retired;
  static size_t kept = 0;
  retired.emplace_back(p, bytes);
  kept += bytes;
  for (; kept > size_t{64} << 20; retired.pop_front()) {
    std::free(reinterpret_cast<void*>(retired.front().first));
    kept -= retired.front().second;
  }
}
API cuMemFree_v2(Address p) {
  LOCKED;
  if (!current) return kNoContext;
  if (int error = forbidden()) return error;
  auto it = blocks.find(p);
  if (it == blocks.end()) return kInvalid;
  drain_all(it->second.device);
  held[it->second.device] -= it->second.bytes;
  retire(p, it->second.bytes);
  blocks.erase(it);
  return 0;
}
API cuMemHostAlloc(void** p, size_t bytes, unsigned) {
  LOCKED;
  if (!current) return kNoContext;
  if (int error = forbidden()) return error;
  *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  pinned[reinterpret_cast<Address>(*p)] = bytes;
  return 0;
}
API cuPointerGetAttribute(void* to, int attribute, Address p) {
  LOCKED;
  int device = device_of(p);
  if (attribute != 9 || device < 0) return kInvalid;
  return *static_cast<int*>(to) = device, 0;
}
API cuMemcpyHtoDAsync_v2(Address to, const void* from, size_t n, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  ++counts.uploads;
  auto target = reinterpret_cast<void*>(to);
  int device = current->device;
  if (is_pinned(from)) {  // read when the copy runs
    enqueue(s, [=] {
      if (there(to, device)) std::memcpy(target, from, n);
    });
  } else {
    auto bytes = static_cast<const char*>(from);
    enqueue(s, [=, copy = std::vector<char>(bytes, bytes + n)] {
      if (there(to, device)) std::memcpy(target, copy.data(), n);
    });
  }
  return 0;
}
API cuMemcpyDtoHAsync_v2(void* to, Address from, size_t n, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  ++counts.downloads;
  if (idle) std::memset(to, 0, n);
  int device = current->device;
  enqueue(s, [=] {
    if (there(from, device)) std::memcpy(to, reinterpret_cast<void*>(from), n);
  });
  return 0;
}
API cuMemcpyDtoDAsync_v2(Address to, Address from, size_t n, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  ++counts.copies;
  int device = current->device;
  enqueue(s, [=] {
    if (there(from, device) && there(to, device))
      std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n);
  });
  return 0;
}
API cuMemsetD8Async(Address to, unsigned char v, size_t n, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  enqueue(s, [=] { std::memset(reinterpret_cast<void*>(to), v, n); });
  return 0;
}
API cuStreamCreate(void** s, unsigned) {
  LOCKED;
  if (!current) return kNoContext;
  auto stream = new Stream;
  stream->device = current->device;
  streams.push_back(stream);
  return *s = stream, 0;
}
API cuStreamSynchronize(void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Stream* stream = stream_of(s);
  if (stream->capturing) {
    stream->invalid = true;
    return kCaptureUnsupported;
  }
  stream->drain();
  return sticky;
}
API cuEventCreate(void** e, unsigned flags) {
  LOCKED;
  if (!current) return kNoContext;
  auto event = new Event;
  event->timed = !(flags & kNoTiming);
  return *e = event, 0;
}
API cuEventRecord(void* e, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Stream* stream = stream_of(s);
  if (stream->capturing) return kCaptureUnsupported;
  auto& event = *static_cast<Event*>(e);
  event = {stream, stream->enqueued, event.timed, {}, {}};
  if (event.timed) {
    event.time = std::make_shared<double>(-1);
    enqueue(s, [time = event.time, stream] { *time = stream->clock; });
    event.at = stream->enqueued;
  }
  return 0;
}
/// By a clock that each launch and product moves on.
API cuEventElapsedTime(float* ms, void* first, void* then) {
  LOCKED;
  const Event &a = *static_cast<Event*>(first), &b = *static_cast<Event*>(then);
  if (!a.time || !b.time) return kBadHandle;
  if (*a.time < 0 || *b.time < 0) return kNotReady;
  return *ms = static_cast<float>(*b.time - *a.time), sticky;
}
API cuEventQuery(void* e) {
  LOCKED;
  const Event& event = *static_cast<Event*>(e);
  bool done = !event.stream || event.stream->done >= event.at;
  for (auto [s, until] : event.all) done = done && s->done >= until;
  return done ? sticky : kNotReady;
}
API cuEventSynchronize(void* e) {
  LOCKED;
  static_cast<Event*>(e)->drain();
  return sticky;
}
API cuEventDestroy_v2(void* e) {
  LOCKED;
  if (!current) return kNoContext;
  return delete static_cast<Event*>(e), 0;
}
API cuCtxRecordEvent(void* context, void* e) {
  LOCKED;
  if (setting("FAKE_CUDA_REFUSE_CONTEXT_EVENTS", 0)) return kNotSupported;
  auto& event = *static_cast<Event*>(e);
  event = {nullptr, 0, event.timed, {}, {}};
  const int device = static_cast<Context*>(context)->device;
  for (Stream* s : streams) {
    if (s->device != device) continue;
    if (s->capturing) {
      s->invalid = true;
      return kCaptureUnsupported;
    }
    event.all.emplace_back(s, s->enqueued);
  }
  event.all.emplace_back(&legacy[device], legacy[device].enqueued);
  return 0;
}
API cuStreamIsCapturing(void* s, int* status) {
  LOCKED;
  if (int error = wrong(s)) return error;
  return *status = stream_of(s)->capturing ? 1 : 0, 0;
}
API cuStreamWaitEvent(void* s, void* e, unsigned) {
  LOCKED;
  if (!current) return kNoContext;
  Event event = *static_cast<Event*>(e);
  Stream* mine = stream_of(s);
  if (event.stream == mine) event.stream = nullptr;
  std::erase_if(event.all, [&](auto& one) { return one.first == mine; });
  if (event.stream || !event.all.empty()) enqueue(s, [event] { event.drain(); });
  return 0;
}
API cuStreamBeginCapture_v2(void* s, int mode) {
  std::unique_lock lock(everything);
  if (int error = wrong(s)) return error;
  Stream* stream = stream_of(s);
  if (setting("FAKE_CUDA_REFUSE_CAPTURE", 0)) return kCaptureUnsupported;
  if (stream->capturing || mode != 1 || reinterpret_cast<uintptr_t>(s) <= 2) return kInvalid;
  stream->capturing = true;
  stream->invalid = false;
  stream->captured.clear();
  capturing_here = stream;
  lock.unlock();
  usleep(5000);  // so that other threads have their turn in the middle of it
  return 0;
}
API cuStreamEndCapture(void* s, void** graph) {
  LOCKED;
  Stream* stream = stream_of(s);
  *graph = nullptr;
  if (!stream->capturing || capturing_here != stream) return kInvalid;
  stream->capturing = false;
  capturing_here = nullptr;
  if (stream->invalid) return kCaptureInvalidated;
  *graph = new Nodes(std::move(stream->captured));
  ++counts.captures;
  return 0;
}
/// A captured stream is a chain: what comes next depends on the latest node alone.
API cuStreamGetCaptureInfo_v2(void* s, int* status, unsigned long long* id, void** graph,
                              void* const** dependencies, size_t* count) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Stream* stream = stream_of(s);
  *status = !stream->capturing ? 0 : stream->invalid ? 2 : 1;
  if (*status != 1) return 0;
  thread_local void* latest;
  latest = stream->captured.back().get();
  *id = 1, *graph = stream, *dependencies = &latest, *count = 1;
  return 0;
}
API cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = new Nodes(*static_cast<Nodes*>(graph)), 0;
}
API cuGraphExecKernelNodeSetParams_v2(void* exec, void* node, const KernelNode* k) {
  LOCKED;
  if (!current) return kNoContext;
  if (setting("FAKE_CUDA_REFUSE_UPDATES", 0)) return kGraphUpdateFailure;
  for (std::shared_ptr<GraphNode>& mine : *static_cast<Nodes*>(exec)) {
    if (mine->original != node) continue;
    Call call;
    if (mine->function != k->function) return kInvalid;
    if (int error = launch_of(k->function, k->grid_x, k->block_x, k->block_y, k->shared_bytes,
                              k->parameters, call))
      return error;
    ++counts.updates;
    // What was launched before keeps what it had.
    mine = std::make_shared<GraphNode>(GraphNode{std::move(call), mine->function, node});
    return 0;
  }
  return kInvalid;  // a node of another graph
}
API cuGraphLaunch(void* exec, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  ++counts.graphs;
  counts.nodes += static_cast<long>(static_cast<Nodes*>(exec)->size());
  enqueue(s, [nodes = *static_cast<Nodes*>(exec)] {
    for (auto& node : nodes) node->call();
  });
  return 0;
}
API cuGraphExecDestroy(void* exec) { return delete static_cast<Nodes*>(exec), 0; }
API cuGraphDestroy(void* graph) { return delete static_cast<Nodes*>(graph), 0; }

API cuModuleLoadData(void** module, const void* image) {
  LOCKED;
  if (!current) return kNoContext;
  // The image: a line with the library's size, the library, then its kernels' text.
  const char* text = static_cast<const char*>(image);
  char* rest = nullptr;
  size_t size = std::strtoull(text, &rest, 10);
  if (rest == text || *rest != '\n') return kBadImage;
  auto m = new Module;
  if (idle) {
    for (auto& [name, declared] : kernels_of(rest + 1 + size))
      m->functions[name] = {nullptr, current->device, declared.most, declared.warps, 48 << 10, {},
                            {}};
    return *module = m, 0;
  }
  m->path = "/tmp/fake_cuda_XXXXXX";
  int file = mkstemp(m->path.data());
  if (file < 0) return kInvalid;
  FILE* out = fdopen(file, "wb");
  std::fwrite(rest + 1, 1, size, out);
  std::fclose(out);
  m->library = dlopen(m->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::remove(m->path.c_str());
  if (!m->library) return kBadImage;
  for (auto& [name, declared] : kernels_of(std::string(rest + 1 + size))) {
    Function f{reinterpret_cast<Kernel>(dlsym(m->library, ("run_" + name).c_str())),
               current->device,
               declared.most,
               declared.warps,
               48 << 10,
               {},
               {}};
    auto sizes = static_cast<const size_t*>(dlsym(m->library, ("sizes_" + name).c_str()));
    if (!f.kernel || !sizes) return kNotFound;
    size_t all = 0;
    for (const std::string& t : declared.types) {
      f.sizes.push_back(*sizes++);
      f.pointers.push_back(t.find('*') != std::string::npos);
      all += f.sizes.back();
    }
    if (all > kMaxParameters) return kBadImage;
    m->functions[name] = f;
  }
  *module = m;
  return 0;
}
API cuModuleUnload(void* module) {
  LOCKED;
  if (!current) return kNoContext;
  return delete static_cast<Module*>(module), 0;
}
API cuFuncSetAttribute(void* function, int attribute, int value) {
  LOCKED;
  int most = 0;
  cuDeviceGetAttribute(&most, kMostShared, 0);
  if (attribute != kMostDynamic || value < 0 || value > most) return kInvalid;
  return static_cast<Function*>(function)->shared = static_cast<unsigned>(value), 0;
}
API cuModuleGetFunction(void** f, void* module, const char* name) {
  auto& functions = static_cast<Module*>(module)->functions;
  auto it = functions.find(name);
  if (it == functions.end()) return kNotFound;
  *f = &it->second;
  return 0;
}
namespace {

int launch_of(void* function, unsigned gx, unsigned bx, unsigned by, unsigned shared,
              void** parameters, fake::Call& call) {
  Function f = *static_cast<Function*>(function);
  if (f.device != current->device) return kBadHandle;
  if (f.warps && !idle) return kNotSupported;  // there is one thread here
  if (gx == 0 || bx == 0 || (bx * by % 32 != 0 && bx * by > 32)) return kInvalid;
  if (bx * by > f.most) return kNoResources;
  if (shared > f.shared) return kInvalid;
  // As the driver does, the values are taken now.
  std::vector<std::vector<uint64_t>> values(f.sizes.size());
  for (size_t i = 0; i < values.size(); ++i) {
    values[i].resize((f.sizes[i] + 7) / 8);
    std::memcpy(values[i].data(), parameters[i], f.sizes[i]);
  }
  call = [f, values]() mutable {
    ++counts.launches;
    std::vector<void*> p;
    for (size_t i = 0; i < values.size(); ++i) {
      if (f.pointers[i])
        for (Address a : values[i])  // 0: an array without elements, which no kernel reads
          if (a != 0 && !there(a, f.device)) return;
      p.push_back(values[i].data());
    }
    f.kernel(p.data());
  };
  return 0;
}

}  // namespace

API cuLaunchKernel(void* function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned by,
                   unsigned, unsigned shared, void* s, void** parameters, void**) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Call call;
  if (int error = launch_of(function, gx, bx, by, shared, parameters, call)) return error;
  Stream* stream = stream_of(s);
  counts.enqueued += !stream->capturing;
  enqueue(s, [call = std::move(call), stream] { stream->clock += kLaunchTime, call(); }, function);
  return 0;
}
