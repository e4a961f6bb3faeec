// A product that is only tried, to see how long it takes and what its bits are: in memory of its
// own, so that nothing of a plan is read or written.
#pragma once

#include <array>
#include <vector>

#include "cuda/run/cublaslt.h"

namespace gradcell::cuda {

class Trial {
 public:
  /// Operands and two results. Throws Runtime.
  Trial(const Gemm& p, StreamHandle stream);
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  /// Whether the GPU has the memory: not more than half of what is free is taken.
  bool possible() const { return memory_ != 0; }
  /// With the result to compare with, and with another; both hold the same numbers at first.
  const Operands& expected() const { return expected_; }
  const Operands& tried() const { return tried_; }
  /// As it was at first.
  void refill_tried() const { fill(tried_.out, out_bytes_); }
  /// Whether the results are, bit for bit. Waits for them.
  bool are_equal() const;

  /// Milliseconds that the stream takes for what f() enqueues. Waits for it.
  template <class F>
  float time(F f) const {
    const Driver& driver = Driver::get();
    driver.call(driver.cuEventRecord, events_[0], stream_);
    f();
    driver.call(driver.cuEventRecord, events_[1], stream_);
    driver.call(driver.cuEventSynchronize, events_[1]);
    float milliseconds = 0;
    driver.call(driver.cuEventElapsedTime, &milliseconds, events_[0], events_[1]);
    return milliseconds;
  }

 private:
  void fill(DevicePointer to, size_t bytes) const;

  StreamHandle stream_;
  std::array<EventHandle, 2> events_{};
  DevicePointer memory_ = 0;
  Operands expected_{}, tried_{};
  size_t out_bytes_;
  std::vector<char> numbers_;
};

}  // namespace gradcell::cuda
