// A GPU for tests, on the CPU: the driver's, NVRTC's and cuBLASLt's functions that the CUDA engine
// uses, in one library. Device memory is host memory, "compiling" a kernel is compiling its text as
// C++ with cuda_shim.h. What the real libraries forbid fails here too: work without a current
// context or with another's stream or function, memory that was freed or belongs to another GPU,
// and what must not happen while a stream captures.
//
// Streams are late: nothing enqueued runs before somebody waits for it. So memory that is handed on
// too early, or waits that are missing, show as wrong values.
//
// Environment: FAKE_CUDA_VERSION (13000), FAKE_CUDA_DEVICES (1), FAKE_CUDA_MEMORY in bytes of each
// device (1 GiB), FAKE_CUDA_CAPABILITY (90), FAKE_CUDA_REFUSE_CAPTURE, FAKE_NVRTC_ARCHS
// ("75 80 90 100"), FAKE_CUDA_COUNTS: a file that what happened is written to in the end.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Address = unsigned long long;

std::recursive_mutex everything;
#define LOCKED std::lock_guard lock(everything)

constexpr int kInvalid = 1, kOutOfMemory = 2, kNoDevice = 100, kBadImage = 200, kNoContext = 201,
              kBadHandle = 400, kNotFound = 500, kNoResources = 701, kIllegalAddress = 700,
              kCaptureUnsupported = 900, kCaptureInvalidated = 901;

long setting(const char* name, long otherwise) {
  const char* v = std::getenv(name);
  return v ? std::atol(v) : otherwise;
}

struct Counts {
  std::atomic<long> launches{0}, graphs{0}, captures{0}, compiles{0}, uploads{0}, downloads{0},
      products{0}, copies{0}, ptx{0};
  ~Counts() {
    const char* file = std::getenv("FAKE_CUDA_COUNTS");
    if (!file) return;
    std::ofstream(file) << "launches " << launches << "\ngraphs " << graphs << "\ncaptures "
                        << captures << "\ncompiles " << compiles << "\nuploads " << uploads
                        << "\ndownloads " << downloads << "\nproducts " << products << "\ncopies "
                        << copies << "\nptx " << ptx << "\n";
  }
} counts;

// Contexts, memory, streams
// -----------------------------------------------------------------------------------------------

struct Context {
  int device;
};
Context contexts[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local Context* current = nullptr;

struct Block {
  size_t bytes;
  int device;
};
std::map<Address, Block> blocks;
std::map<Address, size_t> pinned;
size_t held[8] = {};

/// The device that holds an address; -1: none.
int device_of(Address p) {
  auto it = blocks.upper_bound(p);
  if (it == blocks.begin()) return -1;
  --it;
  return p < it->first + std::max<size_t>(1, it->second.bytes) ? it->second.device : -1;
}
bool is_pinned(const void* p) {
  auto at = reinterpret_cast<Address>(p);
  auto it = pinned.upper_bound(at);
  return it != pinned.begin() && at < std::prev(it)->first + std::prev(it)->second;
}

int sticky = 0;  // an error of work that ran late: every wait from then on reports it

using Call = std::function<void()>;
struct Stream {
  int device = 0;
  std::deque<Call> waiting;
  long enqueued = 0, done = 0;
  bool capturing = false, invalid = false;
  std::vector<Call> captured;

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
std::vector<Stream*> streams;
Stream legacy[8] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
thread_local Stream* capturing_here = nullptr;

Stream* stream_of(void* s) {
  auto handle = reinterpret_cast<uintptr_t>(s);
  if (handle <= 2) return current ? &legacy[current->device] : nullptr;
  return static_cast<Stream*>(s);
}

/// 0, or why work cannot be put on the stream now.
int wrong(void* s) {
  if (!current) return kNoContext;
  return stream_of(s)->device == current->device ? 0 : kBadHandle;
}

void enqueue(void* s, Call call) {
  Stream* stream = stream_of(s);
  if (stream->capturing) return stream->captured.push_back(std::move(call));
  stream->waiting.push_back(std::move(call));
  ++stream->enqueued;
}

struct Event {
  Stream* stream = nullptr;
  long at = 0;
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

/// Late work touches memory that has to be there and on its device.
bool there(Address p, int device) {
  if (device_of(p) == device) return true;
  sticky = kIllegalAddress;
  return false;
}

// Kernels
// ---------------------------------------------------------------------------------------------------

using Kernel = void (*)(void**);
struct Function {
  Kernel kernel;
  int device;
  unsigned most;              ///< threads of a block
  std::vector<size_t> sizes;  ///< bytes of each parameter
  std::vector<bool> pointers;
};
struct Module {
  void* library;
  std::string path;
  std::map<std::string, Function> functions;
};

struct Program {
  std::string source, log, binary;
  bool ptx = false;
};

struct Declared {
  unsigned most;
  std::vector<std::string> types;
};

/// The kernels of a source by name.
std::map<std::string, Declared> kernels_of(const std::string& source) {
  std::map<std::string, Declared> found;
  std::regex kernel("__global__ void __launch_bounds__\\((\\d+)\\) (\\w+)\\(([^)]*)\\) \\{");
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) {
    std::vector<std::string> types;
    std::string rest = (*it)[3];
    size_t at = 0;
    while (at < rest.size()) {
      size_t comma = rest.find(',', at);
      std::string one = rest.substr(at, comma == std::string::npos ? comma : comma - at);
      one = one.substr(0, one.find_last_of(" *") + 1);
      one = std::regex_replace(one, std::regex("__restrict__"), "");
      types.push_back(one);
      at = comma == std::string::npos ? rest.size() : comma + 1;
    }
    found[(*it)[2]] = {static_cast<unsigned>(std::stoi((*it)[1])), types};
  }
  return found;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

// Driver
// ----------------------------------------------------------------------------------------------------

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
  long capability = setting("FAKE_CUDA_CAPABILITY", 90);
  return *v = static_cast<int>(attribute == 75 ? capability / 10 : capability % 10), 0;
}
API cuDevicePrimaryCtxRetain(void** c, int device) { return *c = &contexts[device], 0; }
API cuCtxSetCurrent(void* c) { return current = static_cast<Context*>(c), 0; }
API cuCtxSynchronize() {
  LOCKED;
  if (!current) return kNoContext;
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
  std::memset(memory, 0xFF, bytes);
  *p = reinterpret_cast<Address>(memory);
  blocks[*p] = {bytes, current->device};
  mine += bytes;
  return 0;
}
API cuMemFree_v2(Address p) {
  LOCKED;
  if (!current) return kNoContext;
  if (int error = forbidden()) return error;
  auto it = blocks.find(p);
  if (it == blocks.end()) return kInvalid;
  drain_all(it->second.device);
  held[it->second.device] -= it->second.bytes;
  blocks.erase(it);
  std::free(reinterpret_cast<void*>(p));
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
API cuEventCreate(void** e, unsigned) {
  LOCKED;
  if (!current) return kNoContext;
  return *e = new Event, 0;
}
API cuEventRecord(void* e, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Stream* stream = stream_of(s);
  if (stream->capturing) return kCaptureUnsupported;
  *static_cast<Event*>(e) = {stream, stream->enqueued};
  return 0;
}
API cuEventSynchronize(void* e) {
  LOCKED;
  auto event = static_cast<Event*>(e);
  if (event->stream) event->stream->drain(event->at);
  return sticky;
}
API cuStreamWaitEvent(void* s, void* e, unsigned) {
  LOCKED;
  if (!current) return kNoContext;
  Event event = *static_cast<Event*>(e);
  if (event.stream && event.stream != stream_of(s))
    enqueue(s, [event] { event.stream->drain(event.at); });
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
  *graph = new std::vector<Call>(std::move(stream->captured));
  ++counts.captures;
  return 0;
}
API cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = new std::shared_ptr<std::vector<Call>>(
             std::make_shared<std::vector<Call>>(*static_cast<std::vector<Call>*>(graph))),
         0;
}
API cuGraphLaunch(void* exec, void* s) {
  LOCKED;
  if (int error = wrong(s)) return error;
  ++counts.graphs;
  auto calls = *static_cast<std::shared_ptr<std::vector<Call>>*>(exec);
  enqueue(s, [calls] {
    for (auto& call : *calls) call();
  });
  return 0;
}
API cuGraphExecDestroy(void* exec) {
  return delete static_cast<std::shared_ptr<std::vector<Call>>*>(exec), 0;
}
API cuGraphDestroy(void* graph) { return delete static_cast<std::vector<Call>*>(graph), 0; }

API cuModuleLoadData(void** module, const void* image) {
  LOCKED;
  if (!current) return kNoContext;
  // The image: a line with the library's size, the library, then its source.
  const char* text = static_cast<const char*>(image);
  char* rest = nullptr;
  size_t size = std::strtoull(text, &rest, 10);
  if (rest == text || *rest != '\n') return kBadImage;
  auto m = new Module;
  m->path = "/tmp/fake_cuda_XXXXXX";
  int file = mkstemp(m->path.data());
  if (file < 0) return kInvalid;
  FILE* out = fdopen(file, "wb");
  std::fwrite(rest + 1, 1, size, out);
  std::fclose(out);
  m->library = dlopen(m->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::remove(m->path.c_str());
  if (!m->library) return kBadImage;
  std::string source(rest + 1 + size);
  size_t index = source.find("typedef long long gc_index") != std::string::npos ? 8 : 4;
  for (auto& [name, declared] : kernels_of(source)) {
    const auto& types = declared.types;
    Function f{reinterpret_cast<Kernel>(dlsym(m->library, ("run_" + name).c_str())),
               current->device,
               declared.most,
               {},
               {}};
    if (!f.kernel) return kNotFound;
    for (const std::string& t : types) {
      bool pointer = t.find('*') != std::string::npos,
           eight = t.find("double") != std::string::npos || t.find("long") != std::string::npos;
      f.sizes.push_back(pointer || eight ? 8 : t.find("gc_index") != std::string::npos ? index : 4);
      f.pointers.push_back(pointer);
    }
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
API cuModuleGetFunction(void** f, void* module, const char* name) {
  auto& functions = static_cast<Module*>(module)->functions;
  auto it = functions.find(name);
  if (it == functions.end()) return kNotFound;
  *f = &it->second;
  return 0;
}
API cuLaunchKernel(void* function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned by,
                   unsigned, unsigned, void* s, void** parameters, void**) {
  LOCKED;
  if (int error = wrong(s)) return error;
  Function f = *static_cast<Function*>(function);
  if (f.device != current->device) return kBadHandle;
  if (gx == 0 || bx == 0 || bx * by % 32 != 0) return kInvalid;
  if (bx * by > f.most) return kNoResources;
  // As the driver does, the values are taken now.
  std::vector<uint64_t> values(f.sizes.size());
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], parameters[i], f.sizes[i]);
  enqueue(s, [f, values]() mutable {
    ++counts.launches;
    std::vector<void*> p;
    for (size_t i = 0; i < values.size(); ++i) {
      if (f.pointers[i] && !there(values[i], f.device)) return;
      p.push_back(&values[i]);
    }
    f.kernel(p.data());
  });
  return 0;
}

// NVRTC
// -----------------------------------------------------------------------------------------------------

namespace {

std::vector<int> architectures() {
  const char* given = std::getenv("FAKE_NVRTC_ARCHS");
  std::istringstream in(given ? given : "75 80 90 100");
  std::vector<int> all;
  for (int a; in >> a;) all.push_back(a);
  return all;
}

}  // namespace

API nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
API nvrtcGetNumSupportedArchs(int* n) { return *n = static_cast<int>(architectures().size()), 0; }
API nvrtcGetSupportedArchs(int* to) {
  for (int a : architectures()) *to++ = a;
  return 0;
}
extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int) {
  return "a made-up error";
}
API nvrtcCreateProgram(void** p, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *p = new Program{source, {}, {}}, 0;
}
API nvrtcDestroyProgram(void** p) { return delete static_cast<Program*>(*p), 0; }
API nvrtcCompileProgram(void* program, int count, const char* const* options) {
  auto* p = static_cast<Program*>(program);
  int arch = 0;
  for (int i = 0; i < count; ++i) {
    std::smatch found;
    std::string option = options[i];
    if (!std::regex_match(option, found, std::regex("--gpu-architecture=(sm|compute)_(\\d+)")))
      continue;
    p->ptx = found[1] == "compute";
    arch = std::stoi(found[2]);
  }
  bool known = false;
  for (int a : architectures()) known |= a == arch;
  if (!known) {
    p->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
    return 5;
  }
  ++counts.compiles;
  counts.ptx += p->ptx;
  char folder[] = "/tmp/fake_nvrtc_XXXXXX";
  if (!mkdtemp(folder)) return 1;
  std::string base = folder, source = p->source + "\nusing namespace gradcell::scalar;\n";
  for (auto& [name, declared] : kernels_of(p->source)) {
    const auto& types = declared.types;
    source += "extern \"C\" void run_" + name + "(void** a) { " + name + "(";
    for (size_t i = 0; i < types.size(); ++i) {
      std::string type = types[i].find('*') != std::string::npos
                             ? types[i]
                             : std::regex_replace(types[i], std::regex("const "), "");
      source += (i ? ", *(" : "*(") + type + "*)a[" + std::to_string(i) + "]";
    }
    source += "); }\n";
  }
  std::ofstream(base + "/k.cpp") << source;
  std::string command =
      std::string(FAKE_CXX) +
      " -std=c++20 -O0 -w -fwrapv -ffp-contract=off -fPIC -shared -DSHIM_SINGLE -include " +
      FAKE_SHIM + " " + base + "/k.cpp -o " + base + "/k.so 2> " + base + "/log";
  int failed = std::system(command.c_str());
  auto read = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  p->log = read(base + "/log");
  std::string library = read(base + "/k.so");
  p->binary = std::to_string(library.size()) + "\n" + library + p->source + std::string(1, '\0');
  for (const char* file : {"/k.cpp", "/k.so", "/log", ""}) std::remove((base + file).c_str());
  return failed ? 6 : 0;
}
API nvrtcGetProgramLogSize(void* p, size_t* n) {
  return *n = static_cast<Program*>(p)->log.size() + 1, 0;
}
API nvrtcGetProgramLog(void* p, char* to) {
  return std::strcpy(to, static_cast<Program*>(p)->log.c_str()), 0;
}
API nvrtcGetCUBINSize(void* p, size_t* n) {
  auto* program = static_cast<Program*>(p);
  return *n = program->ptx ? 0 : program->binary.size(), 0;
}
API nvrtcGetCUBIN(void* p, char* to) {
  auto& b = static_cast<Program*>(p)->binary;
  return std::memcpy(to, b.data(), b.size()), 0;
}
API nvrtcGetPTXSize(void* p, size_t* n) {
  auto* program = static_cast<Program*>(p);
  return *n = program->ptx ? program->binary.size() : 0, 0;
}
API nvrtcGetPTX(void* p, char* to) { return nvrtcGetCUBIN(p, to); }

// cuBLASLt: column-major products
// ---------------------------------------------------------------------------------------------------

namespace {

struct Description {
  int compute, scale, transpose[2] = {0, 0};
};
struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

double element(const void* p, int type, int64_t i) {
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

void put(void* p, int type, int64_t i, double v) {
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

}  // namespace

// As the library does, a handle belongs to the device that is current when it is made: the first
// one where there is none.
API cublasLtCreate(void** h) { return *h = current ? current : &contexts[0], 0; }
API cublasLtDestroy(void*) { return 0; }
API cublasLtMatmulDescCreate(void** d, int compute, int scale) {
  return *d = new Description{compute, scale}, 0;
}
API cublasLtMatmulDescDestroy(void* d) { return delete static_cast<Description*>(d), 0; }
API cublasLtMatmulDescSetAttribute(void* d, int which, const void* v, size_t size) {
  if ((which != 3 && which != 4) || size != 4) return 7;
  return std::memcpy(&static_cast<Description*>(d)->transpose[which - 3], v, 4), 0;
}
API cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return *l = new Layout{type, rows, columns, ld}, 0;
}
API cublasLtMatrixLayoutDestroy(void* l) { return delete static_cast<Layout*>(l), 0; }
API cublasLtMatrixLayoutSetAttribute(void* l, int which, const void* v, size_t size) {
  auto* layout = static_cast<Layout*>(l);
  if (which == 5 && size == 4) return std::memcpy(&layout->batch, v, 4), 0;
  if (which == 6 && size == 8) return std::memcpy(&layout->stride, v, 8), 0;
  return 7;
}

// An algorithm of this library remembers the alignment that it was chosen for.
API cublasLtMatmulPreferenceCreate(void** p) { return *p = new uint32_t[4]{256, 256, 256, 256}, 0; }
API cublasLtMatmulPreferenceDestroy(void* p) { return delete[] static_cast<uint32_t*>(p), 0; }
API cublasLtMatmulPreferenceSetAttribute(void* p, int which, const void* v, size_t size) {
  if (which == 1 && size == 8) return 0;
  if (which < 5 || which > 8 || size != 4) return 7;
  return std::memcpy(static_cast<uint32_t*>(p) + (which - 5), v, 4), 0;
}
API cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void* preference, int,
                                   void* result, int* found) {
  std::memcpy(result, preference, 16);
  return *found = 1, 0;
}
API cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* la,
                   const void* b, void* lb, const void* beta, const void*, void*, void* out,
                   void* lo, const void* algorithm, void* workspace, size_t, void* stream) {
  LOCKED;
  if (handle != current || wrong(stream)) return 13;
  auto alignment = static_cast<const uint32_t*>(algorithm);
  auto aligned = [&](const void* p, int k) {
    return reinterpret_cast<uintptr_t>(p) % alignment[k] == 0;
  };
  if (!aligned(a, 0) || !aligned(b, 1) || !aligned(out, 2) || !aligned(out, 3)) return 15;
  int device = current->device;
  if (device_of(reinterpret_cast<Address>(workspace)) != device) return 13;
  Description d = *static_cast<Description*>(desc);
  Layout A = *static_cast<Layout*>(la), B = *static_cast<Layout*>(lb),
         C = *static_cast<Layout*>(lo);
  auto number = [&](const void* p) {
    return d.scale == 1 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  double one = number(alpha), keep = number(beta);
  uint64_t inner = d.transpose[0] ? A.rows : A.columns;
  if (inner != (d.transpose[1] ? B.columns : B.rows)) return 7;
  if (C.rows != (d.transpose[0] ? A.columns : A.rows) ||
      C.columns != (d.transpose[1] ? B.rows : B.columns))
    return 7;
  enqueue(stream, [=] {
    ++counts.products;
    for (const void* p : {a, b, static_cast<const void*>(out)})
      if (!there(reinterpret_cast<Address>(p), device)) return;
    for (int32_t n = 0; n < C.batch; ++n)
      for (uint64_t j = 0; j < C.columns; ++j)
        for (uint64_t i = 0; i < C.rows; ++i) {
          double sum = 0;
          for (uint64_t k = 0; k < inner; ++k)
            sum += element(a, A.type,
                           static_cast<int64_t>(d.transpose[0] ? k + i * A.ld : i + k * A.ld) +
                               n * A.stride) *
                   element(b, B.type,
                           static_cast<int64_t>(d.transpose[1] ? j + k * B.ld : k + j * B.ld) +
                               n * B.stride);
          int64_t at = static_cast<int64_t>(i + j * C.ld) + n * C.stride;
          put(out, C.type, at, one * sum + (keep != 0 ? keep * element(out, C.type, at) : 0));
        }
  });
  return 0;
}
