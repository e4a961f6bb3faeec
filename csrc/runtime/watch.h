// A look at a number that steps leave behind, which waits for none of them.
#pragma once

#include <memory>
#include <mutex>

#include "runtime/storage.h"

namespace gradcell {

namespace cuda {
class LateWord;
}  // namespace cuda

class Watch {
 public:
  /// Looks that go by from one copy of a GPU's number to the next.
  static constexpr int kEach = 32;

  Watch();
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  /// The int32 of an array of one element: as it is, where the host has it. One that a GPU holds is
  /// sent for at the first look and then at each kEach-th one; a look says what has come by then,
  /// 0 before the first. What has not come when the next is to be sent for is waited for.
  int32_t look(const Array& a);

 private:
  std::mutex mutex_;
  std::unique_ptr<cuda::LateWord> word_;
  int looks_ = 0;
  int32_t latest_ = 0;
};

}  // namespace gradcell
