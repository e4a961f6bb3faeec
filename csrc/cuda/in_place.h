// Which outputs of a plan may take over an input's memory: an update in place, if the caller no
// longer needs the input. Each element is read before it is written, and nothing follows that may
// fail: the host's routines and collectives may at any time, products by a library in a plan's
// first runs, launches of kernels never.
#pragma once

#include "cuda/cuda_plan.h"

namespace gradcell::cuda {

class UpdatesInPlace {
 public:
  explicit UpdatesInPlace(const CudaPlan& plan);

  /// Whether a run may give the output the memory of the input.
  bool allowed(size_t output, size_t input) const;
  /// Whether only once the plan has run, products and all.
  bool follows_trial(size_t output) const { return written_[output].at < tried_; }

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
  int safe_ = 0, tried_ = 0;  ///< behind the last routine or collective; the last of a library
};

}  // namespace gradcell::cuda
