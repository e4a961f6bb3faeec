#include "cuda/run/staging.h"

#include <algorithm>
#include <cstring>

namespace gradcell::cuda {

Staging::Staging(const Driver& driver) : driver_(driver) {
  void* memory = nullptr;
  if (driver_.cuMemHostAlloc(&memory, 2 * kHalf + sizeof(int), 0) != 0) return;
  for (int k = 0; k < 2; ++k) {
    driver_.call(driver_.cuEventCreate, &halves_[k].done, kNoTiming);
    halves_[k].memory = static_cast<unsigned char*>(memory) + k * kHalf;
  }
  word_ = reinterpret_cast<int*>(halves_[1].memory + kHalf);
}

void Staging::wait(const Half& h) const { driver_.call(driver_.cuEventSynchronize, h.done); }

void Staging::upload(DevicePointer to, const void* from, size_t bytes, StreamHandle stream) {
  std::lock_guard lock(mutex_);
  if (!halves_[1].memory) {
    driver_.call(driver_.cuMemcpyHtoDAsync, to, from, bytes, stream);
    driver_.call(driver_.cuStreamSynchronize, stream);
    return;
  }
  for (size_t at = 0; at < bytes; at += kHalf, next_ ^= 1) {
    const Half& h = halves_[next_];
    size_t n = std::min(kHalf, bytes - at);
    wait(h);
    std::memcpy(h.memory, static_cast<const unsigned char*>(from) + at, n);
    driver_.call(driver_.cuMemcpyHtoDAsync, to + at, h.memory, n, stream);
    driver_.call(driver_.cuEventRecord, h.done, stream);
  }
}

int* Staging::take_word() {
  std::lock_guard lock(mutex_);
  if (words_.empty()) {
    void* memory = nullptr;
    if (driver_.cuMemHostAlloc(&memory, kWords * sizeof(int), 0) != 0)
      memory = pageable_.emplace_back(std::make_unique<int[]>(kWords)).get();
    for (size_t k = 0; k < kWords; ++k) words_.push_back(static_cast<int*>(memory) + k);
  }
  int* const word = words_.back();
  words_.pop_back();
  return word;
}

void Staging::give_word(int* word) {
  std::lock_guard lock(mutex_);
  words_.push_back(word);
}

int Staging::download(void* to, DevicePointer from, size_t bytes, StreamHandle stream,
                      DevicePointer flag) {
  std::lock_guard lock(mutex_);
  *word_ = 0;
  if (flag) {  // there when what comes after it in the stream is
    driver_.call(driver_.cuMemcpyDtoHAsync, word_, flag, sizeof *word_, stream);
    driver_.call(driver_.cuMemsetD8Async, flag, 0, sizeof *word_, stream);
  }
  if (!halves_[1].memory) {
    driver_.call(driver_.cuMemcpyDtoHAsync, to, from, bytes, stream);
    driver_.call(driver_.cuStreamSynchronize, stream);
    return *word_;
  }
  auto start = [&](size_t at) {
    const Half& h = halves_[at / kHalf % 2];
    wait(h);
    driver_.call(driver_.cuMemcpyDtoHAsync, h.memory, from + at, std::min(kHalf, bytes - at),
                 stream);
    driver_.call(driver_.cuEventRecord, h.done, stream);
  };
  start(0);
  for (size_t at = 0; at < bytes; at += kHalf) {
    if (at + kHalf < bytes) start(at + kHalf);
    const Half& h = halves_[at / kHalf % 2];
    wait(h);
    std::memcpy(static_cast<unsigned char*>(to) + at, h.memory, std::min(kHalf, bytes - at));
  }
  return *word_;
}

}  // namespace gradcell::cuda
