// Matrix products by cuBLASLt. Float32 is computed in float32, or in TF32 where a plan says so,
// half types with float32 accumulation.
//
// The library's heuristic names several algorithms for a product, the one that it thinks fastest
// first. That one is taken, or, once they have been timed, a faster one whose results have the same
// bits. The choice is kept beside the compiled kernels.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda/cuda_plan.h"
#include "cuda/run/driver.h"

namespace gradcell::cuda {

/// Where a product's matrices lie. `c`, which may be added, may be `out`.
struct Operands {
  DevicePointer a, b, c, out, bias;
};

class CublasLt {
 public:
  /// For the device that is current, of this name. Throws Runtime, naming the extra that installs
  /// it, if cuBLASLt is missing.
  explicit CublasLt(const std::string& device);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Opens the library and no more: where it is.
  static std::string library_path();

  static constexpr size_t kWorkspace = size_t(32) << 20;

  /// Where work goes: a stream, with kWorkspace bytes of scratch. `may_wait`: algorithms that have
  /// not been timed yet may be now, with waits for the stream, which nobody is capturing.
  struct Place {
    DevicePointer workspace;
    StreamHandle stream;
    bool may_wait;
  };
  /// out = a b, or out = c + a b; row-major.
  void multiply(const Gemm& p, const Operands& at, const Place& place);
  /// The same with a bias added to every row. False, and nothing done, where the library has no
  /// algorithm that does both.
  bool multiply_and_add(const Gemm& p, const Operands& at, const Place& place);

 private:
  struct Api;
  struct Product;
  Product& product(const Gemm& p, const Operands& at, bool with_bias);
  /// cuBLASLt's status.
  int enqueue(const Product& product, size_t candidate, const Gemm& p, const Operands& at,
              const Place& place) const;
  void multiply(Product& product, const Gemm& p, const Operands& at, const Place& place);
  /// Leaves the product with one algorithm.
  void choose(Product& product, const Gemm& p, const Place& place);
  std::unique_ptr<Api> api_;
  void* handle_ = nullptr;
  std::string kind_;   ///< of library and GPU
  bool tunes_;         ///< algorithms are timed
  float timing_left_;  ///< milliseconds
  std::mutex mutex_;
  std::map<std::array<int64_t, 7>, std::unique_ptr<Product>> products_;  ///< by shape
};

}  // namespace gradcell::cuda
