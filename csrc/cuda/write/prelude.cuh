// What generated kernels are written in, besides the functions of math/scalar.h. Text for NVRTC: it
// includes nothing, and under tests/cuda_shim.h it is plain C++.
//
// Every kernel is right for any number of threads and blocks, one of one included: loops step by
// the whole grid, and reductions shuffle only among as many lanes as there are.

namespace gradcell {
namespace scalar {

#define GRADCELL_DEVICE __device__ __forceinline__

#ifndef GRADCELL_SHIM  // tests/cuda_shim.h has its own
GRADCELL_DEVICE float gc_half_to_float(unsigned short h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
GRADCELL_DEVICE unsigned short gc_float_to_half(float f) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
GRADCELL_DEVICE unsigned gc_float_bits(float f) { return __float_as_uint(f); }
GRADCELL_DEVICE unsigned long long gc_double_bits(double f) { return __double_as_longlong(f); }
GRADCELL_DEVICE float gc_bits_float(unsigned u) { return __uint_as_float(u); }
GRADCELL_DEVICE void gc_flag(int* status, int what = 1) { atomicOr(status, what); }
#endif

#ifndef GRADCELL_SHARED
#define GRADCELL_SHARED 232448  // bytes of shared memory that a block can have
#endif

// The lanes of this warp. Only where shared memory is scarce has a block fewer than 32 threads: of
// a tile's kernel (kMostRowBytes, kMaxWeightBytes), the others have whole warps.
GRADCELL_DEVICE unsigned gc_lanes() {
#if defined(GRADCELL_SHIM) || GRADCELL_SHARED < 96 << 10
  const unsigned threads = blockDim.x * blockDim.y;
  if (threads < 32) return (1u << threads) - 1;
#endif
  return 0xffffffffu;
}
template <class T>
GRADCELL_DEVICE T gc_shuffle(T v, int distance) {
  return __shfl_xor_sync(gc_lanes(), v, distance);
}

GRADCELL_DEVICE float gc_bfloat_to_float(unsigned short h) {
  return gc_bits_float((unsigned)h << 16);
}
GRADCELL_DEVICE unsigned short gc_float_to_bfloat(float f) {
  const unsigned u = gc_float_bits(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)((u >> 16) | 0x40u);
  return (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
GRADCELL_DEVICE float gc_round_half(float f) { return gc_half_to_float(gc_float_to_half(f)); }
GRADCELL_DEVICE float gc_round_bfloat(float f) { return gc_bfloat_to_float(gc_float_to_bfloat(f)); }

// NaN becomes 0 and what is out of range the nearest end.
template <class F>
GRADCELL_DEVICE int gc_to_int(F x) {
  const F high = F(2147483648.0);
  return x >= high ? 2147483647 : x < -high ? -2147483647 - 1 : x != x ? 0 : (int)x;
}
template <class F>
GRADCELL_DEVICE long long gc_to_long(F x) {
  const F high = F(9223372036854775808.0);
  const long long most = 9223372036854775807ll;
  return x >= high ? most : x < -high ? -most - 1 : x != x ? 0 : (long long)x;
}

// Sums in global memory, which one thread adds to again and again: past the L1 cache, where they
// would take the place of weights.
#ifdef GRADCELL_SHIM
template <class T>
GRADCELL_DEVICE T gc_sum_at(const T* p) {
  return *p;
}
template <class T>
GRADCELL_DEVICE void gc_set_sum(T* p, T v) {
  *p = v;
}
#else
template <class T>
GRADCELL_DEVICE T gc_sum_at(const T* p) {
  return __ldcg(p);
}
template <class T>
GRADCELL_DEVICE void gc_set_sum(T* p, T v) {
  __stcg(p, v);
}
#endif

// Functions of integers that a register holds, in dtypes of so many bits. A shift by as many bits
// or more, or by less than 0, leaves nothing of what is shifted but a sign.
GRADCELL_DEVICE unsigned gc_size(int x) { return x < 0 ? 0u - (unsigned)x : (unsigned)x; }
GRADCELL_DEVICE unsigned long long gc_size(long long x) {
  return x < 0 ? 0ull - (unsigned long long)x : (unsigned long long)x;
}
template <class T>
GRADCELL_DEVICE T gc_left(T x, T by, int bits) {
  return by >= 0 && by < bits ? (T)((unsigned long long)x << by) : T(0);
}
template <class T, class S>
GRADCELL_DEVICE T gc_right(T x, S by, int bits) {
  if (by >= 0 && by < bits) return x >> by;
  return x < T(0) ? (T)-1 : T(0);
}
template <class U>
GRADCELL_DEVICE U gc_divisor_of(U a, U b) {
  while (b != 0) {
    const U rest = a % b;
    a = b, b = rest;
  }
  return a;
}
template <class U>
GRADCELL_DEVICE U gc_multiple_of(U a, U b) {
  return a == 0 || b == 0 ? U(0) : a / gc_divisor_of(a, b) * b;
}

// Where a thread starts and how far it steps.
GRADCELL_DEVICE gc_index gc_first() { return (gc_index)blockIdx.x * blockDim.x + threadIdx.x; }
GRADCELL_DEVICE gc_index gc_step() { return (gc_index)gridDim.x * blockDim.x; }

// A divisor that the host knows: the quotient of a number from 0 on is the upper half of its
// product by `multiplier`, shifted (run/divisor.h).
struct gc_divisor {
  gc_index by, multiplier, shift;
};
GRADCELL_DEVICE unsigned gc_upper_half(int a, int b) { return __umulhi(a, b); }
GRADCELL_DEVICE unsigned long long gc_upper_half(gc_long a, gc_long b) { return __umul64hi(a, b); }
GRADCELL_DEVICE gc_index operator/(gc_index n, const gc_divisor& d) {
  return (gc_index)(gc_upper_half(n, d.multiplier) >> d.shift);
}
GRADCELL_DEVICE gc_index operator%(gc_index n, const gc_divisor& d) { return n - n / d * d.by; }

// Segments: arrays of different sizes that one launch works on, each with the arguments that a
// launch of its own would have. Segment s has the blocks from end[s - 1] to end[s].
template <class T, int n>
struct gc_each {
  T of[n];
  GRADCELL_DEVICE const T& operator[](int s) const { return of[s]; }
};
template <int n>
GRADCELL_DEVICE gc_index gc_blocks(const gc_each<gc_index, n>& end) {
  return end[n - 1];
}
template <int n>
GRADCELL_DEVICE int gc_segment(const gc_each<gc_index, n>& end, gc_index block) {
  int s = 0;
  while (block >= end[s]) ++s;
  return s;
}

// Four elements that move as one.
template <class T>
struct alignas(sizeof(T) * 4 < 16 ? sizeof(T) * 4 : 16) gc_pack {
  T at[4];
};
template <class T>
GRADCELL_DEVICE gc_pack<T> gc_load(const T* p, gc_index j) {
  return reinterpret_cast<const gc_pack<T>*>(p)[j];
}
template <class T>
GRADCELL_DEVICE gc_pack<T> gc_load(const T* p, gc_index j, bool aligned) {
  if (aligned) return gc_load(p, j);
  return {p[4 * j], p[4 * j + 1], p[4 * j + 2], p[4 * j + 3]};
}
template <class T>
GRADCELL_DEVICE void gc_store(T* p, gc_index j, gc_pack<T> v) {
  reinterpret_cast<gc_pack<T>*>(p)[j] = v;
}
template <class T>
GRADCELL_DEVICE void gc_store(T* p, gc_index j, gc_pack<T> v, bool aligned) {
  if (aligned) return gc_store(p, j, v);
  for (int u = 0; u < 4; ++u) p[4 * j + u] = v.at[u];
}

template <class T>
struct gc_limits;
template <>
struct gc_limits<float> {
  static GRADCELL_DEVICE float high() { return gc_bits_float(0x7f800000u); }
  static GRADCELL_DEVICE float low() { return -high(); }
};
template <>
struct gc_limits<double> {
  static GRADCELL_DEVICE double high() { return gc_bits_float(0x7f800000u); }
  static GRADCELL_DEVICE double low() { return -high(); }
};
template <>
struct gc_limits<int> {
  static GRADCELL_DEVICE int high() { return 2147483647; }
  static GRADCELL_DEVICE int low() { return -2147483647 - 1; }
};
template <>
struct gc_limits<long long> {
  static GRADCELL_DEVICE long long high() { return 9223372036854775807ll; }
  static GRADCELL_DEVICE long long low() { return -high() - 1; }
};

template <class T>
struct gc_sum {
  static GRADCELL_DEVICE T none() { return T(0); }
  static GRADCELL_DEVICE T of(T a, T b) { return a + b; }
};
template <class T>
struct gc_product {
  static GRADCELL_DEVICE T none() { return T(1); }
  static GRADCELL_DEVICE T of(T a, T b) { return a * b; }
};
// y -> factor y + term; the one of a pair is applied first.
template <class T>
struct gc_affine {
  T factor, term;
};
template <class T>
GRADCELL_DEVICE gc_affine<T> gc_shuffle(gc_affine<T> v, int distance) {
  return {gc_shuffle(v.factor, distance), gc_shuffle(v.term, distance)};
}
template <class T>
struct gc_after {
  static GRADCELL_DEVICE gc_affine<T> none() { return {T(1), T(0)}; }
  static GRADCELL_DEVICE gc_affine<T> of(gc_affine<T> a, gc_affine<T> b) {
    return {b.factor * a.factor, b.factor * a.term + b.term};
  }
};
template <class T>
struct gc_max {
  static GRADCELL_DEVICE T none() { return gc_limits<T>::low(); }
  static GRADCELL_DEVICE T of(T a, T b) { return maximum(a, b); }
};
template <class T>
struct gc_min {
  static GRADCELL_DEVICE T none() { return gc_limits<T>::high(); }
  static GRADCELL_DEVICE T of(T a, T b) { return minimum(a, b); }
};

// Room for a value of each warp: one for all kinds of them, since a kernel of tiles may use as many
// as it likes and has little besides its tile.
GRADCELL_DEVICE void* gc_parts() {
  __shared__ double part[2 * 32];
  return part;
}

// Combines v over the threads of one y: a tree among the lanes of a warp, then the warps in order.
// blockDim.x is a power of two; every thread of the block calls this.
template <class Op, class T>
GRADCELL_DEVICE T gc_across(T v) {
  const int lanes = blockDim.x < 32 ? blockDim.x : 32;
  for (int distance = lanes / 2; distance > 0; distance /= 2)
    v = Op::of(v, gc_shuffle(v, distance));
  if (blockDim.x <= 32) return v;
  static_assert(sizeof(T) <= 16, "");
  T* const part = (T*)gc_parts();
  const int warps = blockDim.x / 32, first = threadIdx.y * warps;
  __syncthreads();
  if (threadIdx.x % 32 == 0) part[first + threadIdx.x / 32] = v;
  __syncthreads();
  v = part[first];
  for (int w = 1; w < warps; ++w) v = Op::of(v, part[first + w]);
  return v;
}

// Combines v over the threads of one x, in the order of y.
template <class Op, class T>
GRADCELL_DEVICE T gc_down(T v) {
  __shared__ T part[512];
  __syncthreads();
  part[threadIdx.y * blockDim.x + threadIdx.x] = v;
  __syncthreads();
  v = part[threadIdx.x];
  for (int y = 1; y < (int)blockDim.y; ++y) v = Op::of(v, part[y * blockDim.x + threadIdx.x]);
  return v;
}

// Combines v over the threads of one y before this one, in order; `all`: over all of them.
// blockDim.x is a power of two; every thread of the block calls this.
template <class Op, class T>
GRADCELL_DEVICE T gc_before(T v, T& all) {
  const int lanes = blockDim.x < 32 ? blockDim.x : 32, lane = threadIdx.x % 32;
  T before = Op::none();
  all = v;
  for (int distance = 1; distance < lanes; distance *= 2) {
    const T other = gc_shuffle(all, distance);
    const bool later = (lane & distance) != 0;
    if (later) before = Op::of(other, before);
    all = later ? Op::of(other, all) : Op::of(all, other);
  }
  if (blockDim.x <= 32) return before;
  static_assert(sizeof(T) <= 16, "");
  T* const part = (T*)gc_parts();
  const int warps = blockDim.x / 32, first = threadIdx.y * warps;
  __syncthreads();
  if (lane == 0) part[first + threadIdx.x / 32] = all;
  __syncthreads();
  T ahead = Op::none();
  all = Op::none();
  for (int w = 0; w < warps; ++w) {
    if (w == (int)threadIdx.x / 32) ahead = all;
    all = Op::of(all, part[first + w]);
  }
  return Op::of(ahead, before);
}

// A value and where it was found.
template <class T>
struct gc_best {
  T value;
  gc_index at;
};
template <class T>
GRADCELL_DEVICE gc_best<T> gc_shuffle(gc_best<T> v, int distance) {
  return {gc_shuffle(v.value, distance), gc_shuffle(v.at, distance)};
}
// A NaN beats all numbers, the first place (last: the last one) beats others with the same value.
template <class T, bool most, bool last = false>
struct gc_extreme {
  static GRADCELL_DEVICE gc_best<T> none() { return {T(0), -1}; }
  static GRADCELL_DEVICE gc_best<T> of(gc_best<T> a, gc_best<T> b) {
    if (b.at < 0) return a;
    if (a.at < 0) return b;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    const bool b_wins = a_nan != b_nan ? b_nan
                        : a_nan        ? false
                        : most         ? b.value > a.value
                                       : b.value < a.value;
    const bool tie = a_nan == b_nan && (a_nan || a.value == b.value);
    return b_wins || (tie && (last ? b.at > a.at : b.at < a.at)) ? b : a;
  }
};
// The best so far in the order of places: it stays beside equal ones, and if it is NaN. Later NaNs
// are passed over.
template <bool most, class T>
GRADCELL_DEVICE gc_best<T> gc_better(gc_best<T> a, gc_best<T> b) {
  if (b.at < 0) return a;
  return a.at < 0 || (most ? b.value > a.value : b.value < a.value) ? b : a;
}

// A place on an axis of n elements, from either end. What is outside is flagged and reads place 0.
GRADCELL_DEVICE gc_index gc_place(long long at, gc_index n, int* status) {
  if (at < -(long long)n || at >= (long long)n) {
    gc_flag(status);
    return 0;
  }
  return (gc_index)(at < 0 ? at + n : at);
}

// A label of n classes, none of which counts from the end.
GRADCELL_DEVICE gc_index gc_label(long long at, gc_index n, int* status) {
  return gc_place(at < 0 ? (long long)n : at, n, status);
}

// A thread's number in its block, and how many there are.
GRADCELL_DEVICE int gc_thread() { return threadIdx.y * blockDim.x + threadIdx.x; }
GRADCELL_DEVICE int gc_threads() { return blockDim.x * blockDim.y; }

// How weights are stored.
struct gc_as_stored {
  template <class T>
  static GRADCELL_DEVICE T decoded(T x) {
    return x;
  }
};
struct gc_as_half {
  static GRADCELL_DEVICE float decoded(unsigned short x) { return gc_half_to_float(x); }
  static GRADCELL_DEVICE unsigned short encoded(float x) { return gc_float_to_half(x); }
};
struct gc_as_bfloat {
  static GRADCELL_DEVICE float decoded(unsigned short x) { return gc_bfloat_to_float(x); }
  static GRADCELL_DEVICE unsigned short encoded(float x) {  // of what it can hold
    return (unsigned short)(gc_float_bits(x) >> 16);
  }
};
GRADCELL_DEVICE float gc_fma(float a, float b, float c) { return ::fmaf(a, b, c); }
GRADCELL_DEVICE double gc_fma(double a, double b, double c) { return ::fma(a, b, c); }
GRADCELL_DEVICE void gc_sincospi(float x, float& s, float& c) { ::sincospif(x, &s, &c); }
GRADCELL_DEVICE void gc_sincospi(double x, double& s, double& c) { ::sincospi(x, &s, &c); }

// Turns a point by so many of a circle's parts, of which there are `whole`.
template <class T>
GRADCELL_DEVICE void gc_turn(T& x, T& y, gc_index parts, gc_index whole) {
  const gc_index most = whole / 2;
  const gc_index near = parts > most ? parts - whole : parts < -most ? parts + whole : parts;
  T s, c;
  gc_sincospi(T(2) * T(near) / T(whole), s, c);
  const T turned = gc_fma(x, c, -y * s);
  y = gc_fma(x, s, y * c);
  x = turned;
}

// A stable sort of a chunk of keys by 6 of their bits. Each of at most 128 threads has a share of
// neighbouring keys, and a column of counts: at[digit][thread].
template <class K>
GRADCELL_DEVICE int gc_digit(K key, gc_index shift) {
  return (int)(key >> shift) & 63;
}
// Keys whose order is that of floats: NaN is behind all, zeros of both signs are equal.
GRADCELL_DEVICE unsigned gc_ordered(float x) {
  const unsigned u = gc_float_bits(x + 0.0f);
  return x != x ? ~0u : u >> 31 ? ~u : u | 1u << 31;
}
GRADCELL_DEVICE unsigned long long gc_ordered(double x) {
  const unsigned long long u = gc_double_bits(x + 0.0);
  return x != x ? ~0ull : u >> 63 ? ~u : u | 1ull << 63;
}
GRADCELL_DEVICE void gc_share(gc_index begin, gc_index end, gc_index& first, gc_index& last) {
  const gc_index each = (end - begin + gc_threads() - 1) / gc_threads();
  first = begin + gc_thread() * each;
  last = first + each < end ? first + each : end;
}
template <int digits, int width, class Key>
GRADCELL_DEVICE void gc_count(int (&at)[digits][width], gc_index begin, gc_index end, Key key,
                              gc_index shift) {
  for (int i = gc_thread(); i < digits * width; i += gc_threads()) at[i / width][i % width] = 0;
  __syncthreads();
  gc_index first, last;
  gc_share(begin, end, first, last);
  for (gc_index k = first; k < last; ++k) ++at[gc_digit(key(k), shift)][gc_thread()];
  __syncthreads();
}
template <int width>
GRADCELL_DEVICE int gc_in_all(const int (&of)[width]) {
  int s = 0;
  for (int t = 0; t < gc_threads(); ++t) s += of[t];
  return s;
}
// Of how many keys each thread's share has, how many the threads before it have.
template <int width>
GRADCELL_DEVICE void gc_ranks(int (&of)[width]) {
  int s = 0;
  for (int t = 0; t < gc_threads(); ++t) {
    const int own = of[t];
    of[t] = s;
    s += own;
  }
}
// n counts become what comes to before each, by one block.
GRADCELL_DEVICE void gc_counts_before(gc_index* count, gc_index n) {
  const gc_index each = (n + blockDim.x - 1) / blockDim.x, first = threadIdx.x * each;
  const gc_index last = first + each < n ? first + each : n;
  gc_index s = 0, all;
  for (gc_index k = first; k < last; ++k) s += count[k];
  s = gc_before<gc_sum<gc_index>>(s, all);
  if (threadIdx.y > 0) return;
  for (gc_index k = first; k < last; ++k) {
    const gc_index own = count[k];
    count[k] = s;
    s += own;
  }
}

// Attention: squares of 32 x 32 in shared memory, with a column more, so that neighbouring threads
// use different banks.
template <class T>
struct gc_square {
  T at[32][33];
};
GRADCELL_DEVICE gc_index gc_later(gc_index a, gc_index b) { return a > b ? a : b; }
GRADCELL_DEVICE gc_index gc_sooner(gc_index a, gc_index b) { return a < b ? a : b; }

// to[i][j] = sum over f of left(i, f) right(j, f). Threads wait for each other before and after;
// what changes squares element by element gives each thread the same ones.
template <class T, class Left, class Right>
GRADCELL_DEVICE void gc_dots(gc_square<T>& to, gc_square<T>& a, gc_square<T>& b, gc_index features,
                             Left left, Right right) {
  for (gc_index f0 = 0; f0 == 0 || f0 < features; f0 += 32) {
    __syncthreads();
    for (int e = gc_thread(); e < 1024; e += gc_threads()) {
      const int i = e / 32, f = e % 32;
      const bool there = f0 + f < features;
      a.at[i][f] = there ? left(i, f0 + f) : T(0);
      b.at[i][f] = there ? right(i, f0 + f) : T(0);
    }
    __syncthreads();
    for (int e = gc_thread(); e < 256; e += gc_threads()) {
      const int i = e / 32 * 4, j = e % 32;
      T s[4];
#pragma unroll
      for (int u = 0; u < 4; ++u) s[u] = f0 > 0 ? to.at[i + u][j] : T(0);
#pragma unroll 8
      for (int f = 0; f < 32; ++f)
#pragma unroll
        for (int u = 0; u < 4; ++u) s[u] = gc_fma(a.at[i + u][f], b.at[j][f], s[u]);
#pragma unroll
      for (int u = 0; u < 4; ++u) to.at[i + u][j] = s[u];
    }
  }
  __syncthreads();
}
template <class T>
GRADCELL_DEVICE void gc_times(gc_square<T>& a, const gc_square<T>& b) {
  for (int e = gc_thread(); e < 1024; e += gc_threads())
    a.at[e / 32][e % 32] *= b.at[e / 32][e % 32];
}

// The logarithm of a row's sum of exponentials is most + log(total).
template <class T>
GRADCELL_DEVICE void gc_no_sums(T (&most)[32], T (&total)[32]) {
  for (int r = gc_thread(); r < 32; r += gc_threads()) most[r] = gc_limits<T>::low(), total[r] = 0;
}
template <class T>
GRADCELL_DEVICE void gc_sum_up(const gc_square<T>& score, T (&most)[32], T (&total)[32]) {
  for (int r = gc_thread(); r < 32; r += gc_threads()) {
    T m = most[r];
    for (int j = 0; j < 32; ++j) m = maximum(m, score.at[r][j]);
    if (m == gc_limits<T>::low()) continue;
    T s = total[r] * exp(most[r] - m);
    for (int j = 0; j < 32; ++j) s += exp(score.at[r][j] - m);
    most[r] = m, total[r] = s;
  }
}

template <class T, int width>
GRADCELL_DEVICE void gc_clear(T (&sum)[32][width]) {
  for (int e = gc_thread(); e < 32 * width; e += gc_threads()) sum[e / width][e % width] = 0;
}
// sum[i][f] += sum over j of weight[i][j] row(j0 + j, f0 + f), for 32 or 64 columns.
template <int width, class T, class Row>
GRADCELL_DEVICE void gc_add_rows(T (&sum)[32][width], const gc_square<T>& weight, gc_square<T>& a,
                                 gc_square<T>& b, Row row, gc_index j0, gc_index f0) {
  for (int e = gc_thread(); e < 32 * width; e += gc_threads()) {
    const int j = e / width, f = e % width;
    (f < 32 ? a : b).at[j][f % 32] = row(j0 + j, f0 + f);
  }
  __syncthreads();
  for (int e = gc_thread(); e < 8 * width; e += gc_threads()) {
    const int f = e % width, i = e / width * 4;
    const gc_square<T>& rows = f < 32 ? a : b;
    T s[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) s[u] = sum[i + u][f];
#pragma unroll 8
    for (int j = 0; j < 32; ++j)
#pragma unroll
      for (int u = 0; u < 4; ++u) s[u] = gc_fma(weight.at[i + u][j], rows.at[j][f % 32], s[u]);
#pragma unroll
    for (int u = 0; u < 4; ++u) sum[i + u][f] = s[u];
  }
}

// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011, section 3.3): element i of a tensor is word
// i % 4 of counter offset + i / 4, as base/philox.h has it.
template <class Index>
GRADCELL_DEVICE float gc_uniform(unsigned long long key, unsigned long long offset, Index i) {
  const unsigned long long counter = offset + (unsigned long long)(i / 4);
  unsigned c0 = (unsigned)counter, c1 = (unsigned)(counter >> 32), c2 = 0, c3 = 0;
  unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    c0 = (unsigned)(b >> 32) ^ c1 ^ k0;
    c1 = (unsigned)b;
    c2 = (unsigned)(a >> 32) ^ c3 ^ k1;
    c3 = (unsigned)a;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const unsigned word = i % 4 == 0 ? c0 : i % 4 == 1 ? c1 : i % 4 == 2 ? c2 : c3;
  return (float)(word >> 8) * 5.9604644775390625e-8f;
}

}  // namespace scalar
}  // namespace gradcell
