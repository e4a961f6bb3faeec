// Attention by tensor cores: a block of 8 warps takes 64 rows of the result through the other rows,
// 64 at a time. Text for NVRTC, behind tensor_cores.cuh.
//
// Warp w has the 16 rows from 16 (w % 4) on, and of each 64 others the half w / 4; what the two
// halves come to is put together at the end. Scores stay in registers: lane l = 4 q + t has of its
// warp's 16 x 32 the rows q and q + 8 and, of each 8 columns, 2 t and 2 t + 1, as results of an mma
// lie. A sum over columns takes them as its left factor where they are: in which order terms are
// taken is free, and a lane's are columns 2 t and 2 t + 1 there.
//
// In shared memory a row of K elements is `gc_pitch` long, an odd multiple of four words, so that
// lanes which read the same place of 8 rows, or 8 places of every second row, use different banks.

namespace gradcell {
namespace scalar {

#ifdef SHIM_SINGLE
#define GC_NEEDS_WARPS() shim_needs_warps()
#else
#define GC_NEEDS_WARPS()
#endif

// A thread's number in a block of 32 x 8, which such kernels have.
GRADCELL_DEVICE int gc_member() { return threadIdx.y * 32 + threadIdx.x; }

// Where two blocks share a multiprocessor's registers and memory, if the writer says so.
#ifdef GRADCELL_SHIM
constexpr int gc_two_blocks = 2;
#else
constexpr int gc_two_blocks = __CUDA_ARCH__ == 900 ? 2 : 1;
#endif

template <class F>
struct gc_scores_of {
  F at[4][4];
};
using gc_scores = gc_scores_of<float>;

template <class T>
__device__ constexpr int gc_padded(int k) {
  return sizeof(T) == 4 ? (k + 7) / 8 * 8 : (k + 15) / 16 * 16;
}
template <class T>
__device__ constexpr int gc_pitch(int k) {
  return gc_padded<T>(k) + 16 / (int)sizeof(T);
}

// Of the block's 64 rows, and of 64 others, which the thread's place e of part p is.
GRADCELL_DEVICE int gc_warp_row(int e) {
  return gc_member() / 32 % 4 * 16 + gc_member() % 32 / 4 + e / 2 * 8;
}
GRADCELL_DEVICE int gc_warp_other(int p, int e) {
  return gc_member() / 128 * 32 + 8 * p + gc_member() % 4 * 2 + e % 2;
}

// A thread's parts of 64 rows of K elements, 16 bytes each where rows are a multiple of that. What
// is beyond the last row or element is read from the last one, and 0 only once it is put: no load
// waits for another.
template <int K, class T>
struct gc_fetched {
  static constexpr int each = sizeof(T) == 2 && K % 8 == 0 ? 8 : 4;
  static constexpr int parts = gc_padded<T>(K) / each, turns = (64 * parts + 255) / 256;
  gc_index there;  // rows
  gc_some<T, each> at[turns > 0 ? turns : 1];
};
template <int K, class T>
GRADCELL_DEVICE auto gc_fetch_part(const T* from, gc_index stride, gc_index first, gc_index rows,
                                   bool packs, int turn) {
  constexpr int each = gc_fetched<K, T>::each, parts = gc_fetched<K, T>::parts;
  const int i = gc_member() + 256 * turn, f = i % parts;
  const gc_index r = first + i / parts;
  const T* const row = from + (r < rows ? r : rows - 1) * stride;
  if (K % each == 0 && packs)
    return reinterpret_cast<const gc_some<T, each>*>(row)[each * f < K ? f : 0];
  gc_some<T, each> v;
#pragma unroll
  for (int u = 0; u < each; ++u) v.at[u] = row[each * f + u < K ? each * f + u : K - 1];
  return v;
}
template <int K, class T, int each>
GRADCELL_DEVICE void gc_put_part(T* to, gc_some<T, each> x, gc_index there, int turn) {
  constexpr int parts = gc_fetched<K, T>::parts;
  const int i = gc_member() + 256 * turn, r = i / parts, f = i % parts;
#pragma unroll
  for (int u = 0; u < each; ++u)
    if (r >= there || (K % each > 0 && each * f + u >= K) || (parts * each > K && each * f >= K))
      x.at[u] = 0;
  if (64 * parts % 256 == 0 || r < 64)
    reinterpret_cast<gc_some<T, each>*>(to + r * gc_pitch<T>(K))[f] = x;
}
template <int K, class T>
GRADCELL_DEVICE gc_fetched<K, T> gc_fetch_rows(const T* from, gc_index stride, gc_index first,
                                               gc_index rows, bool packs) {
  gc_fetched<K, T> v;
  v.there = rows - first;
  if constexpr (K > 0) {
#pragma unroll
    for (int turn = 0; turn < v.turns; ++turn)
      v.at[turn] = gc_fetch_part<K>(from, stride, first, rows, packs, turn);
  }
  return v;
}
template <int K, class T>
GRADCELL_DEVICE void gc_put_rows(T* to, const gc_fetched<K, T>& v) {
  if constexpr (K > 0) {
#pragma unroll
    for (int turn = 0; turn < v.turns; ++turn) gc_put_part<K>(to, v.at[turn], v.there, turn);
  }
}
// Both, a part at a time.
template <int K, class T>
GRADCELL_DEVICE void gc_stage_rows(T* to, const T* from, gc_index stride, gc_index first,
                                   gc_index rows, bool packs) {
#pragma unroll 1
  for (int turn = 0; turn < gc_fetched<K, T>::turns; ++turn)
    gc_put_part<K>(to, gc_fetch_part<K>(from, stride, first, rows, packs, turn), rows - first,
                   turn);
}

// What a lane has of a warp's 16 rows, and of its 32 others as four parts, from place k on: of
// floats the terms t and t + 4, of halves 2 t, 2 t + 1 and those 8 later.
template <class Kind, int pitch, class T>
GRADCELL_DEVICE typename Kind::Left gc_left_at(const T* rows, int k) {
  if constexpr (sizeof(T) == 4) {
    const T* const row = rows + gc_member() % 32 / 4 * pitch + k + gc_member() % 4;
    float x[2][2];
#pragma unroll
    for (int i = 0; i < 4; ++i) x[i % 2][i / 2] = row[i % 2 * 8 * pitch + i / 2 * 4];
    return Kind::left(x);
  } else {
    typename Kind::Left a;
    gc_matrices<false, 1, 0, 0, 1, pitch>(a.at, rows + k, gc_member() % 32);
    return a;
  }
}
template <class Kind, int pitch, class T>
GRADCELL_DEVICE void gc_right_at(typename Kind::Right (&b)[4], const T* rows, int k) {
  if constexpr (sizeof(T) == 4) {
    const T* const row = rows + gc_member() % 32 / 4 * pitch + k + gc_member() % 4;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const float x[2] = {row[8 * p * pitch], row[8 * p * pitch + 4]};
      b[p] = Kind::right(x);
    }
  } else {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      unsigned x[4];
      gc_matrices<false, 0, 1, 1, 0, pitch>(x, rows + 16 * i * pitch + k, gc_member() % 32);
#pragma unroll
      for (int j = 0; j < 4; ++j) b[2 * i + j / 2].at[j % 2] = x[j];
    }
  }
}
// The same of 32 rows as terms, columns n to n + 7: one step's factor after another's.
template <class Kind, class Type, int pitch, class T>
GRADCELL_DEVICE void gc_columns_at(typename Kind::Right (&b)[8 / Kind::slots], const T* rows,
                                   int n) {
  if constexpr (sizeof(T) == 4) {
    const T* const row = rows + gc_member() % 4 * 2 * pitch + n + gc_member() % 32 / 4;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      const float x[2] = {row[8 * p * pitch], row[(8 * p + 1) * pitch]};
      b[p] = Kind::right(x);
    }
  } else {
    unsigned x[4];
    gc_matrices<true, 1, 2, 0, 0, pitch>(x, rows + n, gc_member() % 32);
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      if constexpr (Kind::slots == 4) {
        b[p / 2].at[p % 2] = x[p];
      } else {  // halves are numbers in TF32
        b[p].at[0] = gc_float_bits(Type::decoded((unsigned short)x[p]));
        b[p].at[1] = gc_float_bits(Type::decoded((unsigned short)(x[p] >> 16)));
      }
    }
  }
}

// Products of the warp's rows of K elements and its 32 others, by multiply-adds.
template <class Type, int K, class F, class T>
__device__ __noinline__ gc_scores_of<F> gc_dots_exactly(const T* a, const T* b) {
  constexpr int pitch = gc_pitch<T>(K);
  gc_scores_of<F> s = {};
#pragma unroll 1
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int p = 0; p < 4; ++p)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        s.at[p][e] = gc_fma(Type::decoded(a[gc_warp_row(e) * pitch + k]),
                            Type::decoded(b[gc_warp_other(p, e) * pitch + k]), s.at[p][e]);
  return s;
}
// The same by tensor cores. Of floats, what may be infinite or no number is left to multiply-adds,
// as it is no sum of two numbers in TF32. Halves are taken as they are.
template <class Kind, int K, class T>
GRADCELL_DEVICE gc_scores gc_dots_warp(const T* a, const T* b) {
  if constexpr (Kind::there) {
    constexpr int pitch = gc_pitch<T>(K);
    const T* const left = a + gc_member() / 32 % 4 * 16 * pitch;
    const T* const right = b + gc_member() / 128 * 32 * pitch;
    gc_scores s = {};
#pragma unroll(K > 64 ? 1 : 2)
    for (int k = 0; k < K; k += 4 * Kind::slots) {
      const typename Kind::Left x = gc_left_at<Kind, pitch>(left, k);
      typename Kind::Right y[4];
      gc_right_at<Kind, pitch>(y, right, k);
#pragma unroll
      for (int p = 0; p < 4; ++p) Kind::add(s.at[p], x, y[p]);
    }
    if constexpr (sizeof(T) == 2) return s;
    bool ordinary = true;
#pragma unroll
    for (int i = 0; i < 16; ++i) ordinary &= gc_ordinary(s.at[i / 4][i % 4]);
    if (__all_sync(0xffffffffu, ordinary)) return s;
  }
  return gc_dots_exactly<Kind, K, float>(a, b);
}

// The columns f and f + 1, f = 8 n + 2 t, of the sums of the warp's 32 others, by multiply-adds.
template <class Type, int pitch, class T>
__device__ __noinline__ gc_sums<float, 4> gc_add_exactly(gc_scores w, const T* c, int n) {
  gc_sums<float, 4> d = {};
  const int t = gc_member() % 4;
#pragma unroll 1
  for (int far = 0; far < 4; ++far)
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const int p = i / 4, u = i / 2 % 2, s = i % 2;
      const float weight = gc_shuffle(w.at[p][2 * u + s], far);
      const T* const row = c + (gc_member() / 128 * 32 + 8 * p + 2 * (t ^ far) + s) * pitch;
#pragma unroll
      for (int e = 0; e < 2; ++e)
        d.at[2 * u + e] =
            gc_fma(weight, float(Type::decoded(row[8 * n + 2 * t + e])), d.at[2 * u + e]);
    }
  return d;
}
// Weights as left factors: a float's exponent is kept, in TF32 or as bfloat16 numbers.
template <class Kind>
GRADCELL_DEVICE typename Kind::Left gc_weights_left(const float (&x)[2][Kind::slots]) {
  if constexpr (Kind::slots == 4)
    return {gc_bfloat_pair(x[0][0], x[0][1]), gc_bfloat_pair(x[1][0], x[1][1]),
            gc_bfloat_pair(x[0][2], x[0][3]), gc_bfloat_pair(x[1][2], x[1][3])};
  else
    return Kind::left(x);
}
// sum += the warp's weights times its 32 others' rows of K elements, which are stored as Type says.
// The tensor cores go on adding to sums of halves, if those are few; to others a tile's sums are
// added, and what may be infinite or no number is left to multiply-adds.
template <class Kind, class Type, int K, int parts, class T>
GRADCELL_DEVICE void gc_add_warp(float (&sum)[parts][4], const gc_scores& w, const T* c) {
  constexpr int pitch = gc_pitch<T>(K);
  constexpr int slots = Kind::slots, steps = 8 / slots;
  typename Kind::Left left[steps];
  if constexpr (Kind::there) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      float x[2][slots];
#pragma unroll
      for (int i = 0; i < 2 * slots; ++i) {
        const int u = i / slots, s = i % slots;
        x[u][s] = w.at[slots / 2 * step + s / 2][2 * u + s % 2];
      }
      left[step] = gc_weights_left<Kind>(x);
    }
  }
  // Of many sums each is done before the next one's loads, which would not all fit into registers.
  constexpr bool one_by_one = parts > 8, in_place = Kind::there && sizeof(T) == 2 && !one_by_one;
  const T* const rows = c + gc_member() / 128 * 32 * pitch;
  bool exactly[parts] = {};
  auto repair = [&](int n) {
    if (__all_sync(0xffffffffu, !exactly[n])) return;
    const gc_sums<float, 4> exact = gc_add_exactly<Type, pitch>(w, c, n);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[n][e] += exactly[n] ? exact.at[e] : 0;
  };
#pragma unroll
  for (int n = 0; n < parts; ++n) {
    exactly[n] = !Kind::there;
    if constexpr (Kind::there) {
      typename Kind::Right right[steps];
      gc_columns_at<Kind, Type, pitch>(right, rows, 8 * n);
      float d[4] = {};
#pragma unroll
      for (int step = 0; step < steps; ++step)
        Kind::add(in_place ? sum[n] : d, left[step], right[step]);
      if constexpr (!in_place) {
#pragma unroll
        for (int e = 0; e < 4; ++e) exactly[n] |= !gc_ordinary(d[e]);
#pragma unroll
        for (int e = 0; e < 4; ++e) sum[n][e] += exactly[n] ? 0 : d[e];
      }
    }
    if constexpr (one_by_one) repair(n);
  }
  if constexpr (one_by_one || in_place) return;
  bool all = true;
#pragma unroll
  for (int n = 0; n < parts; ++n) all &= !exactly[n];
  if (__all_sync(0xffffffffu, all)) return;
#pragma unroll
  for (int n = 0; n < parts; ++n) repair(n);
}

// Scores become exponentials of what they are above the largest so far of their row; what there was
// by then counts `scale` times.
GRADCELL_DEVICE void gc_raise(gc_scores& s, float (&most)[2], float (&total)[2],
                              float (&scale)[2]) {
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    float m = most[u], sum = 0;
#pragma unroll
    for (int i = 0; i < 8; ++i) m = gc_most(m, s.at[i / 2][2 * u + i % 2]);
    m = gc_most(m, gc_shuffle(m, 1));
    m = gc_most(m, gc_shuffle(m, 2));
    const float below = m == gc_limits<float>::low() ? 0.0f : m;  // of none, all weights are 0
    scale[u] = exp(most[u] - below);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& x = s.at[i / 2][2 * u + i % 2];
      x = exp(x - below);
      sum += x;
    }
    total[u] = total[u] * scale[u] + sum;
    most[u] = m;
  }
}
template <int parts>
GRADCELL_DEVICE void gc_scale(float (&sum)[parts][4], const float (&scale)[2]) {
#pragma unroll
  for (int i = 0; i < 4 * parts; ++i) sum[i / 4][i % 4] *= scale[i % 4 / 2];
}

// What a thread of the second half has found, and the first takes: `to` is its own place of 128.
template <int parts>
GRADCELL_DEVICE void gc_give(float*& to, const float (&sum)[parts][4]) {
#pragma unroll
  for (int i = 0; i < 4 * parts; ++i) to[128 * i] = sum[i / 4][i % 4];
  to += 512 * parts;
}
template <int parts>
GRADCELL_DEVICE void gc_take(float*& from, float (&sum)[parts][4], const float (&own)[2],
                             const float (&other)[2]) {
#pragma unroll
  for (int i = 0; i < 4 * parts; ++i) {
    float& s = sum[i / 4][i % 4];
    s = s * own[i % 4 / 2] + from[128 * i] * other[i % 4 / 2];
  }
  from += 512 * parts;
}
GRADCELL_DEVICE void gc_give_totals(float*& to, const float (&most)[2], const float (&total)[2]) {
#pragma unroll
  for (int u = 0; u < 2; ++u) to[128 * u] = most[u], to[256 + 128 * u] = total[u];
  to += 512;
}
// The halves' scales: each counts by how far its largest score is below both's.
GRADCELL_DEVICE void gc_take_totals(float*& from, float (&most)[2], float (&total)[2],
                                    float (&own)[2], float (&other)[2]) {
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const float there = from[128 * u], m = maximum(most[u], there);
    const bool none = m == gc_limits<float>::low();
    own[u] = none ? 1.0f : exp(most[u] - m);
    other[u] = none ? 1.0f : exp(there - m);
    total[u] = total[u] * own[u] + from[256 + 128 * u] * other[u];
    most[u] = m;
  }
  from += 512;
}
// Over the four lanes that have a row.
GRADCELL_DEVICE void gc_over_quad(float (&total)[2]) {
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    total[u] += gc_shuffle(total[u], 1);
    total[u] += gc_shuffle(total[u], 2);
  }
}

}  // namespace scalar
}  // namespace gradcell
