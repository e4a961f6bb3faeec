#include "runtime/watch.h"

#include <cstring>

#include "base/error.h"
#include "base/waiting.h"
#include "cuda/run/device.h"

namespace gradcell {

Watch::Watch() = default;
Watch::~Watch() = default;

int32_t Watch::look(const Array& a) {
  require(a.dtype == DType::Int32 && a.count() == 1, ErrorKind::Runtime, "what is watched is ",
          name(a.dtype), " of shape ", to_string(a.dims), ", not an int32");
  if (a.storage->on_host()) {
    int32_t now = 0;
    std::memcpy(&now, a.data(), sizeof now);
    return now;
  }
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return 0;  // another thread looks
  cuda::Device& device = cuda::Device::get(a.storage->device());
  if (word_ && &word_->device() != &device) word_.reset();
  const bool sends = !word_ || ++looks_ >= kEach;
  if (word_ && sends && !word_->has_come()) letting_others_run([&] { word_->wait(); });
  if (word_ && word_->has_come()) latest_ = word_->value();
  if (!sends) return latest_;
  if (!word_) word_ = std::make_unique<cuda::LateWord>(device);
  word_->send_for(a.storage->on(device)->pointer());
  looks_ = 0;
  return latest_;
}

}  // namespace gradcell
