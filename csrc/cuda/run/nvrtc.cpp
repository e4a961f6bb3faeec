#include "cuda/run/nvrtc.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/error.h"
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
    int result = compile_(program, static_cast<int>(texts.size()), texts.data());
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

/// 128 bits as 32 hexadecimal digits: two FNV-1a hashes from different starts, mixed at the end.
std::string digest(const std::string& text) {
  uint64_t a = 0xCBF29CE484222325ull, b = 0x9AE16A3B2F90404Full;
  for (unsigned char c : text) {
    a = (a ^ c) * 0x100000001B3ull;
    b = ((b ^ c) + (b << 7)) * 0x9E3779B97F4A7C15ull;
    b ^= b >> 29;
  }
  a ^= b >> 31;
  char hex[33];
  std::snprintf(hex, sizeof hex, "%016llx%016llx", static_cast<unsigned long long>(a),
                static_cast<unsigned long long>(b));
  return hex;
}

/// GRADCELL_CACHE_DIR, or the user's cache directory; made if need be. Empty: there is none.
fs::path cache_directory() {
  auto variable = [](const char* name) {
    const char* v = std::getenv(name);
    return std::string(v ? v : "");
  };
  fs::path dir = variable("GRADCELL_CACHE_DIR");
  if (dir.empty() && !variable("XDG_CACHE_HOME").empty())
    dir = fs::path(variable("XDG_CACHE_HOME")) / "gradcell";
  if (dir.empty() && !variable("HOME").empty())
    dir = fs::path(variable("HOME")) / ".cache" / "gradcell";
  if (dir.empty()) return dir;
  dir /= "cuda";
  std::error_code error;
  fs::create_directories(dir, error);
  return fs::is_directory(dir, error) ? dir : fs::path();
}

constexpr std::string_view kMark = "gradcell-cubin-1 ";

/// The file's contents if its mark, its length and its digest are right; else empty.
std::string read_entry(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  std::string all((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  size_t header = kMark.size() + 33;
  if (all.size() <= header || all.compare(0, kMark.size(), kMark) != 0) return {};
  std::string cubin = all.substr(header);
  return all.compare(kMark.size(), 32, digest(cubin)) == 0 ? cubin : std::string();
}

void write_entry(const fs::path& file, const std::string& cubin) {
  static std::atomic<unsigned> counter{0};
  fs::path temporary = file;
  temporary += "." + std::to_string(::getpid()) + "." + std::to_string(counter++);
  std::error_code ignored;
  {
    std::ofstream out(temporary, std::ios::binary);
    out << kMark << digest(cubin) << '\n' << cubin;
    out.close();
    if (!out) {
      fs::remove(temporary, ignored);
      return;  // a read-only or full disk: the kernel stays in memory
    }
  }
  fs::rename(temporary, file, ignored);
  if (ignored) fs::remove(temporary, ignored);
}

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
  fs::path dir = cache_directory();
  fs::path file = dir.empty() ? dir : dir / (key + ".cubin");
  std::string cubin = file.empty() ? std::string() : read_entry(file);
  bool found = !cubin.empty();
  if (!found) {
    cubin = nvrtc.compile(source, options);
    if (!file.empty()) write_entry(file, cubin);
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
