#include "cuda/run/library.h"

#include "base/error.h"
#include "base/system/system.h"

namespace gradcell::cuda {

Library::Library(const std::vector<std::string>& names, const std::string& missing) {
  for (const std::string& name : names) {
    if (name.empty()) continue;
    handle_ = system::open_library(name);
    path_ = name;
    if (handle_) return;
  }
  const std::string why = system::why_not_opened();
  fail(ErrorKind::Runtime, missing, why.empty() ? "" : str(" (", why, ")"));
}

void* Library::find(const char* name) const { return system::find_symbol(handle_, name); }

void* Library::address(const char* name) const {
  void* p = find(name);
  require(p != nullptr, ErrorKind::Runtime, path_, " has no function ", name,
          ": it is too old for this version of gradcell");
  return p;
}

void Library::open_beside(const std::string& name) const {
  if (size_t slash = path_.find_last_of("/\\"); slash != std::string::npos)
    system::open_library(path_.substr(0, slash + 1) + name);
}

LibraryPaths& library_paths() {
  static auto* paths = new LibraryPaths;
  return *paths;
}

}  // namespace gradcell::cuda
