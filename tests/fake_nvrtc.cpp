// NVRTC of the made-up GPU: a kernel's text is compiled as C++ with cuda_shim.h.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <regex>
#include <sstream>

#include "fake_cuda.h"

using namespace fake;

namespace {

struct Program {
  std::string source, log, binary;
  bool ptx = false;
  std::string macros;
};

std::vector<int> architectures() {
  const char* given = std::getenv("FAKE_NVRTC_ARCHS");
  std::istringstream in(given ? given : "75 80 90 100");
  std::vector<int> all;
  for (int a; in >> a;) all.push_back(a);
  return all;
}

/// Where this library is.
std::filesystem::path place() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&architectures), &info);
  return info.dli_fname;
}

int run(const std::string& compiler_flags, const std::string& log) {
  return std::system((FAKE_CXX + compiler_flags + " 2> " + log).c_str());
}

/// A header with cuda_shim.h and what comes before kernels, compiled beside this library by the
/// first process that needs it. Empty: it does not compile.
std::string header_of(const std::string& prelude, const std::string& flags,
                      const std::string& log) {
  const auto folder = std::filesystem::absolute(place()).parent_path();
  const auto number = std::hash<std::string>()(flags + prelude);
  const std::string header = folder / ("prelude_" + std::to_string(number) + ".h");
  if (std::filesystem::exists(header + ".gch")) return header;
  std::string mine = folder / "making_XXXXXX";
  if (!mkdtemp(mine.data())) return {};
  const std::string text = mine + "/text.h";
  std::ofstream(text) << "#include \"" FAKE_SHIM "\"\n" << prelude;
  const bool made = run(flags + " -x c++-header " + text + " -o " + text + ".gch", log) == 0;
  if (made)
    for (const char* end : {"", ".gch"}) std::filesystem::rename(text + end, header + end);
  std::filesystem::remove_all(mine);
  return made ? header : std::string();
}

}  // namespace

std::map<std::string, Declared> fake::kernels_of(const std::string& source) {
  std::map<std::string, Declared> found;
  std::regex kernel("__global__ void __launch_bounds__\\((\\d+), \\w+\\) (\\w+)\\(([^)]*)\\) \\{");
  for (std::sregex_iterator it(source.begin(), source.end(), kernel), end; it != end; ++it) {
    std::vector<std::string> types;
    std::string rest = (*it)[3];
    size_t at = 0;
    while (at < rest.size()) {
      size_t comma = rest.find(',', at);
      if (comma != std::string::npos && rest.find('<', at) < comma)  // gc_each<float, 3>
        comma = rest.find(',', rest.find('>', at));
      std::string one = rest.substr(at, comma == std::string::npos ? comma : comma - at);
      one = one.substr(0, one.find_last_of(" *") + 1);
      one = std::regex_replace(one, std::regex("__restrict__"), "");
      types.push_back(one);
      at = comma == std::string::npos ? rest.size() : comma + 1;
    }
    auto begin = static_cast<size_t>(it->position()), next = source.find("__global__", begin + 1);
    bool warps = source.substr(begin, next - begin).find("GC_NEEDS_WARPS()") != std::string::npos;
    found[(*it)[2]] = {static_cast<unsigned>(std::stoi((*it)[1])), warps, types};
  }
  return found;
}

/// By the file's name, libnvrtc.so.12; else 13.
API nvrtcVersion(int* major, int* minor) {
  std::smatch found;
  const std::string file = place();
  const bool named = std::regex_search(file, found, std::regex("\\.so\\.(\\d+)$"));
  return *major = named ? std::stoi(found[1]) : 13, *minor = 0, 0;
}
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
    if (std::regex_match(option, found, std::regex("--define-macro=(\\w+=\\d+)")))
      p->macros += " -D" + found[1].str();
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
  if (setting("FAKE_NVRTC_BUILTINS", 0) && !dlopen("libnvrtc-builtins.so.13.0", RTLD_NOW)) {
    p->log = "nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n";
    return 7;
  }
  ++counts.compiles;
  counts.ptx += p->ptx;
  char folder[] = "/tmp/fake_nvrtc_XXXXXX";
  if (!mkdtemp(folder)) return 1;
  const std::string base = folder;
  const size_t begin = p->source.rfind("\nnamespace gradcell {\nnamespace scalar {\n");
  const std::string kernels = begin == std::string::npos ? p->source : p->source.substr(begin);
  std::string source = kernels + "\nusing namespace gradcell::scalar;\n";
  for (auto& [name, declared] : kernels_of(kernels)) {
    const auto& types = declared.types;
    source += "extern \"C\" void run_" + name + "(void** a) { " + name + "(";
    for (size_t i = 0; i < types.size(); ++i) {
      std::string type = types[i].find('*') != std::string::npos
                             ? types[i]
                             : std::regex_replace(types[i], std::regex("const "), "");
      source += (i ? ", *(" : "*(") + type + "*)a[" + std::to_string(i) + "]";
    }
    source += "); }\nextern \"C\" unsigned long sizes_" + name + "[] = {";
    for (const std::string& type : types) source += "sizeof(" + type + "), ";
    source += "0};\n";
  }
  std::ofstream(base + "/k.cpp") << source;
  const std::string flags = p->macros +
                            " -std=c++20 -O0 -w -fwrapv -ffp-contract=off -fPIC -DSHIM_SINGLE "
                            "-fsanitize=alignment -fsanitize-undefined-trap-on-error";
  const std::string log = base + "/log";
  const std::string header =
      header_of(p->source.substr(0, p->source.size() - kernels.size()), flags, log);
  const bool failed = header.empty() || run(flags + " -shared -include " + header + " " + base +
                                                "/k.cpp -o " + base + "/k.so",
                                            log) != 0;
  auto read = [](const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  p->log = read(log);
  std::string library = read(base + "/k.so");
  p->binary = std::to_string(library.size()) + "\n" + library + kernels + std::string(1, '\0');
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
