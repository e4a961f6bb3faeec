// Which outputs of a plan may take over an input's memory: an update in place, if the caller no
// longer needs the input. Every row is read before it is written, and nothing that could still fail
// follows.
#pragma once

#include "plan/plan.h"

namespace gradcell {

class UpdatesInPlace {
 public:
  explicit UpdatesInPlace(const Plan& plan);

  /// Whether a run may give the output the memory of the input.
  bool allowed(size_t output, size_t input) const {
    const Time &written = written_[output], &read = read_[input];
    return written.rows >= 0 && written.rows == read.rows && read.at <= written.at;
  }

 private:
  /// When a region's tiles read rows of an input last, or write those of an output first.
  struct Time {
    int32_t rows = -1;  ///< whose: a region's rows of so many features of a dtype; -1: of none
    int32_t at = -1;    ///< which of the region's instructions
  };
  std::vector<Time> written_, read_;
};

}  // namespace gradcell
