#include "cuda/run/trial.h"

#include <algorithm>
#include <cstring>

#include "cuda/float_types.h"

namespace gradcell::cuda {

namespace {

constexpr size_t kNumbers = 65521;  // a prime: rows differ from one another
constexpr size_t kPiece = size_t{1} << 20;

/// From 0.5 to 1, of either sign: nowhere do sums in another order have the same bits throughout.
std::vector<char> uneven_numbers(DType dtype) {
  const FloatType& bits = float_type(dtype);
  const size_t size = item_size(dtype);
  std::vector<char> numbers(kNumbers * size);
  uint64_t state = 1;
  for (size_t i = 0; i < kNumbers; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const uint64_t number = bits.half | (state >> (64 - 8 * size) & bits.varying);
    std::memcpy(&numbers[i * size], &number, size);
  }
  return numbers;
}

}  // namespace

Trial::Trial(const Gemm& p, StreamHandle stream)
    : stream_(stream), numbers_(uneven_numbers(p.dtype)) {
  const Driver& driver = Driver::get();
  size_t used = 0;
  auto take = [&](int64_t elements) {
    const size_t at = used, bytes = static_cast<size_t>(elements) * item_size(p.dtype);
    used += (bytes + 255) / 256 * 256;
    return at;
  };
  out_bytes_ = static_cast<size_t>(p.batch * p.m * p.n) * item_size(p.dtype);
  expected_.a = take(p.batch * p.m * p.k);
  expected_.b = take(p.batch * p.k * p.n);
  expected_.bias = take(p.n);
  expected_.out = take(p.batch * p.m * p.n);
  expected_.c = p.adds ? take(p.batch * p.m * p.n) : expected_.out;
  tried_ = expected_;
  tried_.out = take(p.batch * p.m * p.n);
  if (!p.adds) tried_.c = tried_.out;
  for (EventHandle& e : events_) driver.call(driver.cuEventCreate, &e, 0u);
  size_t available = 0, total = 0;
  driver.call(driver.cuMemGetInfo, &available, &total);
  if (used > available / 2 || driver.cuMemAlloc(&memory_, used) != 0) return;
  for (Operands* all : {&expected_, &tried_})
    for (DevicePointer* at : {&all->a, &all->b, &all->c, &all->out, &all->bias}) *at += memory_;
  fill(memory_, used);
  fill(expected_.out, out_bytes_);
}

Trial::~Trial() {
  const Driver& driver = Driver::get();
  for (EventHandle e : events_)
    if (e) driver.cuEventDestroy(e);
  if (memory_) driver.cuMemFree(memory_);
}

void Trial::fill(DevicePointer to, size_t bytes) const {
  const Driver& driver = Driver::get();
  size_t full = std::min(bytes, numbers_.size());
  driver.call(driver.cuMemcpyHtoDAsync, to, numbers_.data(), full, stream_);
  for (; full < bytes; full = std::min(bytes, 2 * full))
    driver.call(driver.cuMemcpyDtoDAsync, to + full, to, std::min(full, bytes - full), stream_);
}

bool Trial::are_equal() const {
  const Driver& driver = Driver::get();
  std::vector<char> one(std::min(out_bytes_, kPiece)), other(one.size());
  for (size_t at = 0; at < out_bytes_; at += kPiece) {
    const size_t bytes = std::min(kPiece, out_bytes_ - at);
    driver.call(driver.cuMemcpyDtoHAsync, one.data(), expected_.out + at, bytes, stream_);
    driver.call(driver.cuMemcpyDtoHAsync, other.data(), tried_.out + at, bytes, stream_);
    driver.call(driver.cuStreamSynchronize, stream_);
    if (std::memcmp(one.data(), other.data(), bytes) != 0) return false;
  }
  return true;
}

}  // namespace gradcell::cuda
