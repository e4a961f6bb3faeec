// Matrix products by cuBLASLt. Float32 is computed in float32, or in TF32 where a plan says so,
// half types with float32 accumulation.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/cuda_plan.h"
#include "cuda/run/driver.h"

namespace gradcell::cuda {

class CublasLt {
 public:
  /// Throws Runtime, naming the extra that installs it, if cuBLASLt is missing.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  /// Opens the library and no more: where it is.
  static std::string library_path();

  static constexpr size_t kWorkspace = size_t(32) << 20;

  /// out = a b, or out = c + a b, where c may be out; row-major, on the stream, with kWorkspace
  /// bytes of scratch.
  void multiply(const Gemm& p, DevicePointer a, DevicePointer b, DevicePointer c, DevicePointer out,
                DevicePointer workspace, StreamHandle stream);
  /// The same with a bias added to every row. False, and nothing done, where the library has no
  /// algorithm that does both.
  bool multiply_and_add(const Gemm& p, DevicePointer a, DevicePointer b, DevicePointer bias,
                        DevicePointer out, DevicePointer workspace, StreamHandle stream);

 private:
  struct Api;
  struct Product;
  Product& product(const Gemm& p, uint32_t alignment, bool with_bias);
  void enqueue(const Product& product, const Gemm& p, DevicePointer a, DevicePointer b,
               DevicePointer c, DevicePointer out, DevicePointer workspace, StreamHandle stream);
  std::unique_ptr<Api> api_;
  void* handle_ = nullptr;
  std::mutex mutex_;
  std::map<std::array<int64_t, 7>, std::unique_ptr<Product>> products_;  ///< by shape
};

}  // namespace gradcell::cuda
