#include "cuda/run/nvrtc.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/narrow.h"
#include "cuda/run/cache_files.h"
#include "cuda/run/library.h"

namespace gradcell::cuda {

namespace {

namespace fs = std::filesystem;

using Program = void*;

class Nvrtc {
 public:
  static const Nvrtc& get() {
    static const auto* nvrtc = new Nvrtc;
    return *nvrtc;
  }

  std::string version() const { return str(major_, ".", minor_); }

  /// "sm_90", or where this NVRTC is older than the GPU the newest architecture it knows: of the
  /// same generation as machine code, which runs there, of an older one as PTX ("compute_90"),
  /// which the driver translates.
  std::string target(int capability) const {
    int best = 0;
    for (int known : architectures_)
      if (known <= capability) best = std::max(best, known);
    require(best > 0, ErrorKind::Runtime, "NVRTC ", version(),
            " cannot compile for a GPU of compute capability ", capability / 10, ".",
            capability % 10);
    return str(best / 10 == capability / 10 ? "sm_" : "compute_", best);
  }

  /// A CUBIN, or PTX where the first option asks for a virtual architecture.
  std::string compile(const std::string& source, const std::vector<std::string>& options) const {
    Program program = nullptr;
    check(create_(&program, source.c_str(), "gradcell.cu", 0, nullptr, nullptr),
          "nvrtcCreateProgram");
    auto destroy = [this](Program* p) { destroy_(p); };
    std::unique_ptr<Program, decltype(destroy)> owner(&program, destroy);
    std::vector<const char*> texts;
    for (const std::string& o : options) texts.push_back(o.c_str());
    int result = compile_(program, narrow<int>(texts.size()), texts.data());
    if (result != 0) {
      size_t size = 0;
      std::string log;
      if (log_size_(program, &size) == 0 && size > 0) {
        log.resize(size);
        log_(program, log.data());
      }
      fail(ErrorKind::Runtime, "NVRTC ", version(), " could not compile a kernel for ", options[0],
           ": ", error_(result), "\n", log.c_str());
    }
    size_t size = 0;
    bool ptx = options[0].find("compute_") != std::string::npos;
    check((ptx ? ptx_size_ : cubin_size_)(program, &size), "nvrtcGetCUBINSize");
    std::string code(size, '\0');
    check((ptx ? ptx_ : cubin_)(program, code.data()), "nvrtcGetCUBIN");
    return code;
  }

 private:
  Nvrtc()
      : library_({library_paths().nvrtc, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                 "NVRTC, which compiles kernels for the GPU, was not found. Install it with pip "
                 "install 'gradcell[cuda13]' (or 'gradcell[cuda12]' for a driver of CUDA 12)") {
    check(version_(&major_, &minor_), "nvrtcVersion");
    library_.open_beside("libnvrtc-builtins.so." + version());
    int count = 0;
    check(architecture_count_(&count), "nvrtcGetNumSupportedArchs");
    architectures_.resize(static_cast<size_t>(count));
    check(supported_(architectures_.data()), "nvrtcGetSupportedArchs");
  }

  void check(int result, const char* what) const {
    require(result == 0, ErrorKind::Runtime, what, " failed: ", error_(result));
  }

  Library library_;
  Function<int(int*, int*)> version_{library_, "nvrtcVersion"};
  Function<int(Program*, const char*, const char*, int, const char* const*, const char* const*)>
      create_{library_, "nvrtcCreateProgram"};
  Function<int(Program*)> destroy_{library_, "nvrtcDestroyProgram"};
  Function<int(Program, int, const char* const*)> compile_{library_, "nvrtcCompileProgram"};
  Function<int(Program, size_t*)> log_size_{library_, "nvrtcGetProgramLogSize"};
  Function<int(Program, char*)> log_{library_, "nvrtcGetProgramLog"};
  Function<int(Program, size_t*)> cubin_size_{library_, "nvrtcGetCUBINSize"};
  Function<int(Program, char*)> cubin_{library_, "nvrtcGetCUBIN"};
  Function<int(Program, size_t*)> ptx_size_{library_, "nvrtcGetPTXSize"};
  Function<int(Program, char*)> ptx_{library_, "nvrtcGetPTX"};
  Function<int(int*)> architecture_count_{library_, "nvrtcGetNumSupportedArchs"};
  Function<int(int*)> supported_{library_, "nvrtcGetSupportedArchs"};
  Function<const char*(int)> error_{library_, "nvrtcGetErrorString"};
  std::vector<int> architectures_;
  int major_ = 0, minor_ = 0;
};

struct Cache {
  std::mutex mutex;
  std::unordered_map<std::string, std::shared_ptr<const std::string>> entries;
  size_t compiled = 0, from_disk = 0, from_memory = 0;
  static Cache& get() {
    static auto* cache = new Cache;
    return *cache;
  }
};

}  // namespace

std::shared_ptr<const std::string> compiled(const std::string& source, int capability,
                                            size_t shared_bytes) {
  // No contraction of products and sums: the results are the CPU's.
  const Nvrtc& nvrtc = Nvrtc::get();
  std::vector<std::string> options{"--gpu-architecture=" + nvrtc.target(capability), "--std=c++17",
                                   "--fmad=false", "--diag-suppress=177",
                                   str("--define-macro=GRADCELL_SHARED=", shared_bytes)};
  std::string key_text = source;
  for (const std::string& o : options) key_text += "\n" + o;
  std::string key = digest(key_text + "\n" + nvrtc.version());
  Cache& cache = Cache::get();
  {
    std::lock_guard lock(cache.mutex);
    if (auto it = cache.entries.find(key); it != cache.entries.end()) {
      ++cache.from_memory;
      return it->second;
    }
  }
  const std::string file = key + ".cubin";
  std::string cubin = read_cached(file);
  bool found = !cubin.empty();
  if (!found) {
    cubin = nvrtc.compile(source, options);
    write_cached(file, cubin);
  }
  std::lock_guard lock(cache.mutex);
  ++(found ? cache.from_disk : cache.compiled);
  auto& entry = cache.entries[key];
  if (!entry) entry = std::make_shared<const std::string>(std::move(cubin));
  return entry;
}

std::string nvrtc_version() { return Nvrtc::get().version(); }

KernelCacheInfo kernel_cache_info() {
  KernelCacheInfo info{};
  fs::path dir = cache_directory();
  info.directory = dir.string();
  std::error_code error;
  if (!dir.empty())
    for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() != ".cubin") continue;
      ++info.files;
      std::error_code gone;
      auto size = it->file_size(gone);
      if (!gone) info.bytes += size;
    }
  Cache& cache = Cache::get();
  std::lock_guard lock(cache.mutex);
  info.compiled = cache.compiled;
  info.from_disk = cache.from_disk;
  info.from_memory = cache.from_memory;
  return info;
}

void clear_kernel_cache() {
  Cache& cache = Cache::get();
  std::lock_guard lock(cache.mutex);
  cache.entries.clear();
}

}  // namespace gradcell::cuda
