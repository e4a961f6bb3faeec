// The weights of attention on tiles of scores (contract: cpu/kernels/tile_kernels.h).
#include <limits>

#include "cpu/isa/row_values.h"
#include "cpu/isa/tile_vector.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {
namespace {

template <class T>
constexpr T kNone = -std::numeric_limits<T>::infinity();

/// A register, of the type that vector functions take.
template <class T>
using Lane = std::conditional_t<sizeof(T) == 4, VecF, VecD>;
template <class T>
GRADCELL_INLINE Lane<T> lanes_at(const T* p) {
  return load_as<Lane<T>>(p);
}
template <class T>
GRADCELL_INLINE Lane<T> all_of(T x) {
  return math::all<Lane<T>>(x);
}

template <class T>
void soften(T* s, ptrdiff_t ld, int n, int R, T* top, T* sum, T* scale) {
  const Lane<T> none = all_of<T>(kNone<T>);
  for (int r = 0; r < R; r += kLanes<T>) {
    const Lane<T> before = lanes_at(top + r);
    Lane<T> most = before;
    for (int i = 0; i < n; ++i) {
      const Lane<T> x = lanes_at(s + i * ld + r);
      most = x > most ? x : most;
    }
    const Lane<T> from = most == none ? Lane<T>{} : most;
    const Lane<T> factor = math::scalar::exp(before - from);
    Lane<T> total = lanes_at(sum + r) * factor;
    for (int i = 0; i < n; ++i) {
      const Lane<T> e = math::scalar::exp(lanes_at(s + i * ld + r) - from);
      store(s + i * ld + r, e);
      total += e;
    }
    store(top + r, most);
    store(scale + r, factor);
    store(sum + r, total);
  }
}

template <class T>
void finish(const T* top, T* sum, int R) {
  for (int r = 0; r < R; r += kLanes<T>)
    store(sum + r, lanes_at(top + r) + math::scalar::log(lanes_at(sum + r)));
}

/// exp(s - l), 0 where s is -inf.
template <class T>
GRADCELL_INLINE Lane<T> weight(Lane<T> s, Lane<T> l) {
  return s == all_of<T>(kNone<T>) ? Lane<T>{} : math::scalar::exp(s - l);
}

template <class T>
void weigh(T* s, const T* factors, ptrdiff_t ld, int n, int R, const T* log_sum, const T* shift,
           bool by_lane, const T* rest) {
  for (int i = 0; i < n; ++i) {
    for (int r = 0; r < R; r += kLanes<T>) {
      auto number = [&](const T* of) { return by_lane ? lanes_at(of + r) : all_of(of[i]); };
      const Lane<T> l = number(log_sum);
      T* const at = s + i * ld + r;
      Lane<T> e =
          rest ? math::scalar::exp(lanes_at(at) - l - number(rest)) : weight<T>(lanes_at(at), l);
      if (factors) {
        Lane<T> w = lanes_at(factors + i * ld + r);
        if (shift) w -= number(shift);
        e *= w;
      }
      store(at, e);
    }
  }
}

template <class T>
void weigh_by(T* w, const T* e, ptrdiff_t ld, int n, int R, const T* shift) {
  for (int i = 0; i < n; ++i) {
    const T less = shift ? shift[i] : T(0);
    for (int r = 0; r < R; ++r) w[i * ld + r] = e[i * ld + r] * (w[i * ld + r] - less);
  }
}

template <class T>
T farthest(const T* x, size_t n) {
  Lane<T> most{}, sum{};
  size_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Lane<T> at = lanes_at(x + i), size = at < Lane<T>{} ? -at : at;
    most = size > most ? size : most;
    sum += at * Lane<T>{};  // NaN for what is not finite
  }
  T found = 0, none = 0;
  for (int l = 0; l < narrow<int>(kLanes<T>); ++l) {
    found = most[l] > found ? most[l] : found;
    none += sum[l];
  }
  for (; i < n; ++i) {
    const T size = x[i] < 0 ? -x[i] : x[i];
    found = size > found ? size : found;
    none += x[i] * T(0);
  }
  return none == 0 ? found : std::numeric_limits<T>::infinity();
}

template <class T>
void scale_lanes(T* x, ptrdiff_t ld, int n, int R, const T* by) {
  for (int i = 0; i < n; ++i)
    for (int r = 0; r < R; r += kLanes<T>)
      store(x + i * ld + r, load(x + i * ld + r) * load(by + r));
}

template <class T>
void multiply(T* x, const T* by, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] *= by[i];
}

template <class T>
void add(T* x, const T* y, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] += y[i];
}

template <class T>
void hide(T* x, const int32_t* hidden, T by, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = hidden[i] ? by : x[i];
}

template <class T>
void drop(T* x, const float* u, float keep, T by, size_t n) {
  for (size_t i = 0; i < n; ++i) x[i] = u[i] < keep ? x[i] * by : T(0);
}

/// Philox 4x32-10 (base/philox.h), a few blocks side by side.
void uniform(uint64_t key, uint64_t counter, size_t blocks, float* out) {
  constexpr int kAtOnce = 16;
  for (size_t b = 0; b < blocks; b += kAtOnce) {
    uint32_t c0[kAtOnce], c1[kAtOnce], c2[kAtOnce], c3[kAtOnce];
    for (int i = 0; i < kAtOnce; ++i) {
      const uint64_t at = counter + b + static_cast<uint64_t>(i);
      c0[i] = low_bits<uint32_t>(at);
      c1[i] = low_bits<uint32_t>(at >> 32);
      c2[i] = c3[i] = 0;
    }
    auto k0 = low_bits<uint32_t>(key), k1 = low_bits<uint32_t>(key >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int i = 0; i < kAtOnce; ++i) {
        const uint64_t p0 = uint64_t(0xD2511F53u) * c0[i], p1 = uint64_t(0xCD9E8D57u) * c2[i];
        c0[i] = low_bits<uint32_t>(p1 >> 32) ^ c1[i] ^ k0;
        c1[i] = low_bits<uint32_t>(p1);
        c2[i] = low_bits<uint32_t>(p0 >> 32) ^ c3[i] ^ k1;
        c3[i] = low_bits<uint32_t>(p0);
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const size_t n = blocks - b < kAtOnce ? blocks - b : kAtOnce;
    for (size_t i = 0; i < n; ++i) {
      float* const to = out + 4 * (b + i);
      to[0] = static_cast<float>(low_bits<int32_t>(c0[i] >> 8)) * 0x1p-24f;
      to[1] = static_cast<float>(low_bits<int32_t>(c1[i] >> 8)) * 0x1p-24f;
      to[2] = static_cast<float>(low_bits<int32_t>(c2[i] >> 8)) * 0x1p-24f;
      to[3] = static_cast<float>(low_bits<int32_t>(c3[i] >> 8)) * 0x1p-24f;
    }
  }
}

template <class T>
constexpr TileAttention<T> table() {
  return {soften<T>,   finish<T>, weigh<T>, weigh_by<T>, farthest<T>, scale_lanes<T>,
          multiply<T>, add<T>,    hide<T>,  drop<T>,     uniform};
}

}  // namespace

extern const PerFloat<TileAttention> kTileAttention = {table<float>(), table<double>()};

}  // namespace gradcell::cpu::GRADCELL_ISA
