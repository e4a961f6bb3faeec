// A GPU for tests, on the CPU: the driver's, NVRTC's and cuBLASLt's functions that the CUDA engine
// uses, in one library. Device memory is host memory, "compiling" a kernel is compiling its text as
// C++ (tests/cuda_shim.h), a launch runs one thread, a captured graph is a list of calls.
//
// The environment decides what goes wrong: FAKE_CUDA_VERSION, FAKE_CUDA_DEVICES, FAKE_CUDA_MEMORY
// (bytes), FAKE_CUDA_COUNTS (a file that gets the number of calls of each kind at exit).
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <regex>
#include <string>
#include <vector>

namespace {

long setting(const char* name, long otherwise) {
  const char* v = std::getenv(name);
  return v ? std::atol(v) : otherwise;
}

struct Counts {
  std::atomic<long> launches{0}, graphs{0}, captures{0}, compiles{0}, uploads{0}, downloads{0},
      products{0};
  ~Counts() {
    const char* file = std::getenv("FAKE_CUDA_COUNTS");
    if (!file) return;
    std::ofstream(file) << "launches " << launches << "\ngraphs " << graphs << "\ncaptures "
                        << captures << "\ncompiles " << compiles << "\nuploads " << uploads
                        << "\ndownloads " << downloads << "\nproducts " << products << "\n";
  }
} counts;

using Calls = std::vector<std::function<void()>>;
Calls* capturing = nullptr;

void enqueue(std::function<void()> call) {
  if (capturing)
    capturing->push_back(std::move(call));
  else
    call();
}

std::map<unsigned long long, size_t> blocks;
size_t held = 0;

using Kernel = void (*)(void**, unsigned, unsigned, unsigned);
struct Function {
  Kernel kernel;
  std::vector<size_t> sizes;  ///< bytes of each parameter
};
struct Module {
  void* library;
  std::string path;
  std::map<std::string, Function> functions;
};

struct Program {
  std::string source, log, binary;
};

/// Parameters of each kernel of a source, by name.
std::map<std::string, std::vector<std::string>> kernels_of(const std::string& source) {
  std::map<std::string, std::vector<std::string>> found;
  std::regex kernel("__global__ void (\\w+)\\(([^)]*)\\) \\{");
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) {
    std::vector<std::string> types;
    std::string rest = (*it)[2];
    size_t at = 0;
    while (at < rest.size()) {
      size_t comma = rest.find(',', at);
      std::string one = rest.substr(at, comma == std::string::npos ? comma : comma - at);
      one = one.substr(0, one.find_last_of(" *") + 1);
      one = std::regex_replace(one, std::regex("__restrict__"), "");
      types.push_back(one);
      at = comma == std::string::npos ? rest.size() : comma + 1;
    }
    found[(*it)[1]] = types;
  }
  return found;
}

}  // namespace

#define API extern "C" __attribute__((visibility("default"))) int

// Driver
// -------------------------------------------------------------------------------------------

API cuInit(unsigned) { return setting("FAKE_CUDA_DEVICES", 1) > 0 ? 0 : 100; }
API cuDriverGetVersion(int* v) {
  return *v = static_cast<int>(setting("FAKE_CUDA_VERSION", 13000)), 0;
}
API cuGetErrorString(int, const char** text) { return *text = "a made-up error", 0; }
API cuDeviceGetCount(int* n) { return *n = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1)), 0; }
API cuDeviceGet(int* d, int n) { return *d = n, 0; }
API cuDeviceGetName(char* name, int size, int) {
  return std::snprintf(name, static_cast<size_t>(size), "Fake GPU"), 0;
}
API cuDeviceGetAttribute(int* v, int attribute, int) { return *v = attribute == 75 ? 9 : 0, 0; }
API cuDevicePrimaryCtxRetain(void** c, int) { return *c = &counts, 0; }
API cuCtxSetCurrent(void*) { return 0; }
API cuMemGetInfo_v2(size_t* available, size_t* total) {
  *total = static_cast<size_t>(setting("FAKE_CUDA_MEMORY", 1L << 30));
  *available = *total - held;
  return 0;
}
API cuMemAlloc_v2(unsigned long long* p, size_t bytes) {
  if (capturing) return 900;  // not allowed while a stream captures
  if (held + bytes > static_cast<size_t>(setting("FAKE_CUDA_MEMORY", 1L << 30))) return 2;
  void* memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(memory, 0xFF, bytes);
  *p = reinterpret_cast<unsigned long long>(memory);
  blocks[*p] = bytes;
  held += bytes;
  return 0;
}
API cuMemFree_v2(unsigned long long p) {
  auto it = blocks.find(p);
  if (it == blocks.end()) return 1;
  held -= it->second;
  blocks.erase(it);
  std::free(reinterpret_cast<void*>(p));
  return 0;
}
API cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t n, void*) {
  ++counts.uploads;
  return std::memcpy(reinterpret_cast<void*>(to), from, n), 0;
}
API cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t n, void*) {
  ++counts.downloads;
  return std::memcpy(to, reinterpret_cast<void*>(from), n), 0;
}
API cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n, void*) {
  enqueue([=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), n); });
  return 0;
}
API cuMemsetD8Async(unsigned long long to, unsigned char v, size_t n, void*) {
  enqueue([=] { std::memset(reinterpret_cast<void*>(to), v, n); });
  return 0;
}
API cuStreamCreate(void** s, unsigned) { return *s = &counts, 0; }
API cuStreamSynchronize(void*) { return capturing ? 900 : 0; }
API cuStreamBeginCapture_v2(void*, int) {
  if (capturing) return 1;
  capturing = new Calls;
  return 0;
}
API cuStreamEndCapture(void*, void** graph) {
  if (!capturing) return 1;
  *graph = capturing;
  capturing = nullptr;
  ++counts.captures;
  return 0;
}
API cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long) {
  return *exec = new Calls(*static_cast<Calls*>(graph)), 0;
}
API cuGraphLaunch(void* exec, void*) {
  ++counts.graphs;
  for (auto& call : *static_cast<Calls*>(exec)) call();
  return 0;
}
API cuGraphExecDestroy(void* exec) { return delete static_cast<Calls*>(exec), 0; }
API cuGraphDestroy(void* graph) { return delete static_cast<Calls*>(graph), 0; }

API cuModuleLoadData(void** module, const void* image) {
  // The image: a line with the library's size, the library, then its source.
  const char* text = static_cast<const char*>(image);
  char* rest = nullptr;
  size_t size = std::strtoull(text, &rest, 10);
  if (rest == text || *rest != '\n') return 200;
  auto m = new Module;
  m->path = "/tmp/fake_cuda_XXXXXX";
  int file = mkstemp(m->path.data());
  if (file < 0) return 1;
  FILE* out = fdopen(file, "wb");
  std::fwrite(rest + 1, 1, size, out);
  std::fclose(out);
  m->library = dlopen(m->path.c_str(), RTLD_NOW | RTLD_LOCAL);
  std::remove(m->path.c_str());
  if (!m->library) return 200;
  std::string source(rest + 1 + size);
  size_t index = source.find("typedef long long gc_index") != std::string::npos ? 8 : 4;
  for (auto& [name, types] : kernels_of(source)) {
    Function f{reinterpret_cast<Kernel>(dlsym(m->library, ("run_" + name).c_str())), {}};
    if (!f.kernel) return 500;
    for (const std::string& t : types) {
      bool pointer = t.find('*') != std::string::npos,
           eight = t.find("double") != std::string::npos || t.find("long") != std::string::npos;
      f.sizes.push_back(pointer || eight ? 8 : t.find("gc_index") != std::string::npos ? index : 4);
    }
    m->functions[name] = f;
  }
  *module = m;
  return 0;
}
API cuModuleUnload(void* module) { return delete static_cast<Module*>(module), 0; }
API cuModuleGetFunction(void** f, void* module, const char* name) {
  auto& functions = static_cast<Module*>(module)->functions;
  auto it = functions.find(name);
  if (it == functions.end()) return 500;
  *f = &it->second;
  return 0;
}
API cuLaunchKernel(void* function, unsigned gx, unsigned, unsigned, unsigned bx, unsigned by,
                   unsigned, unsigned, void*, void** parameters, void**) {
  auto* f = static_cast<Function*>(function);
  if (gx == 0 || bx == 0 || bx * by > 1024 || bx * by % 32 != 0) return 1;
  // As the driver does, the values are taken now.
  std::vector<uint64_t> values(f->sizes.size());
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&values[i], parameters[i], f->sizes[i]);
  enqueue([f, values]() mutable {
    ++counts.launches;
    std::vector<void*> p;
    for (auto& v : values) p.push_back(&v);
    f->kernel(p.data(), 1, 1, 1);
  });
  return 0;
}

// NVRTC
// --------------------------------------------------------------------------------------------

API nvrtcVersion(int* major, int* minor) { return *major = 13, *minor = 0, 0; }
extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(int) {
  return "a made-up error";
}
API nvrtcCreateProgram(void** p, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return *p = new Program{source, {}, {}}, 0;
}
API nvrtcDestroyProgram(void** p) { return delete static_cast<Program*>(*p), 0; }
API nvrtcCompileProgram(void* program, int, const char* const*) {
  auto* p = static_cast<Program*>(program);
  ++counts.compiles;
  char folder[] = "/tmp/fake_nvrtc_XXXXXX";
  if (!mkdtemp(folder)) return 1;
  std::string base = folder, source = p->source + "\nusing namespace gradcell::scalar;\n";
  for (auto& [name, types] : kernels_of(p->source)) {
    source += "extern \"C\" void run_" + name +
              "(void** a, unsigned g, unsigned x, unsigned y) { shim_launch(g, x, y, [=] { " +
              name + "(";
    for (size_t i = 0; i < types.size(); ++i) {
      std::string type = types[i].find('*') != std::string::npos
                             ? types[i]
                             : std::regex_replace(types[i], std::regex("const "), "");
      source += (i ? ", *(" : "*(") + type + "*)a[" + std::to_string(i) + "]";
    }
    source += "); }); }\n";
  }
  std::ofstream(base + "/k.cpp") << source;
  std::string command =
      std::string(FAKE_CXX) +
      " -std=c++20 -O0 -w -fwrapv -ffp-contract=off -fPIC -shared -pthread -include " + FAKE_SHIM +
      " " + base + "/k.cpp -o " + base + "/k.so 2> " + base + "/log";
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
  return *n = static_cast<Program*>(p)->binary.size(), 0;
}
API nvrtcGetCUBIN(void* p, char* to) {
  auto& b = static_cast<Program*>(p)->binary;
  return std::memcpy(to, b.data(), b.size()), 0;
}

// cuBLASLt: column-major products
// ------------------------------------------------------------------

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

API cublasLtCreate(void** h) { return *h = &counts, 0; }
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
API cublasLtMatmulPreferenceCreate(void** p) { return *p = &counts, 0; }
API cublasLtMatmulPreferenceDestroy(void*) { return 0; }
API cublasLtMatmulPreferenceSetAttribute(void*, int which, const void*, size_t size) {
  return (which == 1 && size == 8) || (which >= 5 && which <= 8 && size == 4) ? 0 : 7;
}
API cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int, void*,
                                   int* found) {
  return *found = 1, 0;
}
API cublasLtMatmul(void*, void* desc, const void* alpha, const void* a, void* la, const void* b,
                   void* lb, const void* beta, const void*, void*, void* out, void* lo, const void*,
                   void*, size_t, void*) {
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
  enqueue([=] {
    ++counts.products;
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
