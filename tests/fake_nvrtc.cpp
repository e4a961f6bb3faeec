// NVRTC of the made-up GPU: a kernel's text is compiled as C++ with cuda_shim.h.
#include <dlfcn.h>
#include <unistd.h>

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

}  // namespace

/// By the file's name, libnvrtc.so.12; else 13.
API nvrtcVersion(int* major, int* minor) {
  Dl_info info;
  std::smatch found;
  dladdr(reinterpret_cast<void*>(&nvrtcVersion), &info);
  const std::string file = info.dli_fname;
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
    source += "); }\nextern \"C\" unsigned long sizes_" + name + "[] = {";
    for (const std::string& type : types) source += "sizeof(" + type + "), ";
    source += "0};\n";
  }
  std::ofstream(base + "/k.cpp") << source;
  std::string command = std::string(FAKE_CXX) + p->macros +
                        " -std=c++20 -O0 -w -fwrapv -ffp-contract=off -fPIC -shared -DSHIM_SINGLE "
                        "-fsanitize=alignment -fsanitize-undefined-trap-on-error -include " +
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
