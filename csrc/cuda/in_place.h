// Which outputs of a plan may take over an input's memory: an update in place, if the caller no
// longer needs the input. Each element is read before it is written, and nothing but kernels
// follows, whose launches do not fail.
#pragma once

#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

class UpdatesInPlace {
 public:
  explicit UpdatesInPlace(const CudaPlan& plan);

  /// Whether a run may give the output the memory of the input.
  bool allowed(size_t output, size_t input) const;

 private:
  /// Of an input the last step that reads it, of an output the first that writes it.
  struct Uses {
    size_t bytes = 0;  ///< 0: an output is the input itself
    int at = -1;
    int times = 0;   ///< in that step
    int group = -1;  ///< by element
  };
  Uses& uses(const Buffer& b) { return (b.place == Place::Input ? read_ : written_)[b.index]; }
  std::vector<Uses> written_, read_;
  int safe_ = 0;  ///< the step from which on all are kernels
};

}  // namespace gradcell::cuda
