// A shared library opened at run time. Nothing of CUDA is linked: what is missing is an error that
// says which package brings it.
#pragma once

#include <string>
#include <vector>

namespace gradcell::cuda {

class Library {
 public:
  /// The first of `names` that opens; throws Runtime with `missing` where none does. It stays open:
  /// CUDA's libraries have threads and exit handlers of their own.
  Library(const std::vector<std::string>& names, const std::string& missing);

  /// Throws Runtime if the library has no such function.
  template <class F>
  void find(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(address(name));
  }
  const std::string& path() const { return path_; }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;
  std::string path_;
};

/// Where Python found the libraries; empty: the system's. Set before anything is opened.
struct LibraryPaths {
  std::string driver, nvrtc, cublaslt, nccl;
};
LibraryPaths& library_paths();

}  // namespace gradcell::cuda
