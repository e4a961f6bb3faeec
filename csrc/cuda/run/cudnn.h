// Convolutions by cuDNN, with its deterministic algorithms. Float32 is computed in float32, or in
// TF32 where a plan says so, half types with float32 accumulation.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "cuda/cuda_plan.h"
#include "cuda/run/driver.h"

namespace gradcell::cuda {

class Cudnn {
 public:
  /// Throws Runtime, naming the extra that installs it, if cuDNN is missing.
  Cudnn();
  ~Cudnn();
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;

  /// Opens the library and no more: its version (92801: 9.28.1) and where it is.
  static std::pair<size_t, std::string> library();

  static constexpr size_t kWorkspace = size_t(256) << 20;

  /// On the stream, with kWorkspace bytes of scratch. Called with the device's mutex held.
  void convolve(const Convolved& c, DevicePointer a, DevicePointer b, DevicePointer out,
                DevicePointer workspace, StreamHandle stream);

 private:
  struct Api;
  struct Prepared;
  std::unique_ptr<Api> api_;
  void* handle_ = nullptr;
  std::map<std::vector<int64_t>, std::unique_ptr<Prepared>> prepared_;  ///< by sizes and dtype
};

}  // namespace gradcell::cuda
