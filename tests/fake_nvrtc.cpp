// NVRTC of the made-up GPU: a kernel's text is compiled as C++ with cuda_shim.h.
#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
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

std::string without(std::string text, const std::string& what) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
  return text;
}

std::string read(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// What compilers have made of a text, in the folder that all processes of the tests share.
std::string kept(const char* kind, const std::string& text) {
  return FAKE_KEPT "/" + (kind + std::to_string(std::hash<std::string>()(text)));
}

/// A header with cuda_shim.h and what comes before kernels, compiled by the first process that
/// needs it. Empty: it does not compile.
std::string header_of(const std::string& prelude, const std::string& flags,
                      const std::string& log) {
  const std::string header = kept("prelude_", flags + prelude) + ".h";
  if (std::filesystem::exists(header + ".gch")) return header;
  std::string mine = FAKE_KEPT "/making_XXXXXX";
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
  const std::string mark = "__global__ void __launch_bounds__(";
  for (size_t begin = source.find(mark), next; begin != std::string::npos; begin = next) {
    next = source.find(mark, begin + 1);
    const size_t name = source.find(") ", begin) + 2, open = source.find('(', name),
                 close = source.find(')', open);
    std::vector<std::string> types;
    std::string rest = source.substr(open + 1, close - open - 1);
    size_t at = 0;
    while (at < rest.size()) {
      size_t comma = rest.find(',', at);
      if (comma != std::string::npos && rest.find('<', at) < comma)  // gc_each<float, 3>
        comma = rest.find(',', rest.find('>', at));
      std::string one = rest.substr(at, comma == std::string::npos ? comma : comma - at);
      one = one.substr(0, one.find_last_of(" *") + 1);
      types.push_back(without(one, "__restrict__"));
      at = comma == std::string::npos ? rest.size() : comma + 1;
    }
    const bool warps =
        source.substr(begin, next - begin).find("GC_NEEDS_WARPS()") != std::string::npos;
    const int threads = std::stoi(source.substr(begin + mark.size()));
    found[source.substr(name, open - name)] = {static_cast<unsigned>(threads), warps, types};
  }
  return found;
}

/// By the file's name, libnvrtc.so.12; else 13.
API nvrtcVersion(int* major, int* minor) {
  const std::string file = place();
  const size_t end = file.rfind(".so.");
  return *major = end == std::string::npos ? 13 : std::stoi(file.substr(end + 4)), *minor = 0, 0;
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
    const std::string option = options[i], name = option.substr(0, option.find('=') + 1),
                      value = option.substr(name.size());
    if (name == "--define-macro=") p->macros += " -D" + value;
    if (name != "--gpu-architecture=") continue;
    p->ptx = value.starts_with("compute_");
    arch = std::stoi(value.substr(value.find('_') + 1));
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
  const size_t begin = p->source.rfind("\nnamespace gradcell {\nnamespace scalar {\n");
  const std::string kernels = begin == std::string::npos ? p->source : p->source.substr(begin);
  const std::string flags = p->macros +
                            " -std=c++20 -O0 -w -fwrapv -ffp-contract=off -fPIC -DSHIM_SINGLE "
                            "-fsanitize=alignment -fsanitize-undefined-trap-on-error";
  const std::string end = kernels + std::string(1, '\0'),
                    done = kept("kernels_", flags + p->source);
  if (idle) return p->binary = "0\n" + end, 0;
  p->binary = read(done);
  if (p->binary.ends_with(end)) return 0;
  std::string base = FAKE_KEPT "/making_XXXXXX";
  if (!mkdtemp(base.data())) return 1;
  std::string source = kernels + "\nusing namespace gradcell::scalar;\n";
  for (auto& [name, declared] : kernels_of(kernels)) {
    const auto& types = declared.types;
    source += "extern \"C\" void run_" + name + "(void** a) { " + name + "(";
    for (size_t i = 0; i < types.size(); ++i) {
      std::string type =
          types[i].find('*') != std::string::npos ? types[i] : without(types[i], "const ");
      source += (i ? ", *(" : "*(") + type + "*)a[" + std::to_string(i) + "]";
    }
    source += "); }\nextern \"C\" unsigned long sizes_" + name + "[] = {";
    for (const std::string& type : types) source += "sizeof(" + type + "), ";
    source += "0};\n";
  }
  std::ofstream(base + "/k.cpp") << source;
  const std::string log = base + "/log";
  const std::string header =
      header_of(p->source.substr(0, p->source.size() - kernels.size()), flags, log);
  const bool failed = header.empty() || run(flags + " -shared -include " + header + " " + base +
                                                "/k.cpp -o " + base + "/k.so",
                                            log) != 0;
  p->log = read(log);
  std::string library = read(base + "/k.so");
  p->binary = std::to_string(library.size()) + "\n" + library + end;
  if (!failed) {
    std::ofstream(base + "/whole", std::ios::binary) << p->binary;
    std::filesystem::rename(base + "/whole", done);
  }
  std::filesystem::remove_all(base);
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
