#include "cuda/run/library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace gradcell::cuda {

Library::Library(const std::vector<std::string>& names, const std::string& missing) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    path_ = name;
    if (handle_) return;
  }
  const char* why = dlerror();
  fail(ErrorKind::Runtime, missing, why ? str(" (", why, ")") : "");
}

void* Library::find(const char* name) const { return dlsym(handle_, name); }

void* Library::address(const char* name) const {
  void* p = find(name);
  require(p != nullptr, ErrorKind::Runtime, path_, " has no function ", name,
          ": it is too old for this version of gradcell");
  return p;
}

void Library::open_beside(const std::string& name) const {
  if (size_t slash = path_.rfind('/'); slash != std::string::npos)
    dlopen((path_.substr(0, slash + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

LibraryPaths& library_paths() {
  static auto* paths = new LibraryPaths;
  return *paths;
}

}  // namespace gradcell::cuda
