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
  void* address(const char* name) const;
  /// Null instead.
  void* find(const char* name) const;
  const std::string& path() const { return path_; }
  /// Opens what lies beside this library under that name, if it is there: the library then finds it
  /// by its name alone, which not all of NVIDIA's wheels see to.
  void open_beside(const std::string& name) const;

 private:
  void* handle_ = nullptr;
  std::string path_;
};

/// Of a function that older libraries may lack: it is null then.
enum MayLack { kMayLack };

/// A function of a library: Function<int(void*)> f{library, "f"}.
template <class Signature>
class Function {
 public:
  Function(const Library& library, const char* name)
      : name(name), pointer_(reinterpret_cast<Signature*>(library.address(name))) {}
  Function(const Library& library, const char* name, MayLack)
      : name(name), pointer_(reinterpret_cast<Signature*>(library.find(name))) {}
  operator Signature*() const { return pointer_; }  // so it can be called
  const char* const name;

 private:
  Signature* pointer_;
};

/// Where Python found the libraries; empty: the system's. Set before anything is opened.
struct LibraryPaths {
  std::string driver, nvrtc, cublaslt, nccl;
  std::string cudnn;  ///< empty: not used
};
LibraryPaths& library_paths();

}  // namespace gradcell::cuda
