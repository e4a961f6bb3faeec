// Attention by tensor cores: a block takes 64 rows of the result, or 128, through the other rows,
// 64 at a time. Text for NVRTC, behind tensor_cores.cuh.
//
// A block's warps are four groups; each has a fourth of the block's rows, 16 or two pieces of 16.
// Of a tile's others a warp has 8 parts of 8, all, and is alone in its group; or 4 parts, and what
// the two warps of a group come to is put together at the end. Scores stay in registers: lane l = 4
// q + t has of a piece and a part the rows q and q + 8 and the columns 2 t and 2 t + 1, as results
// of an mma lie. A sum over columns takes them as its left factor where they are: in which order
// terms are taken is free, and a lane's are columns 2 t and 2 t + 1 there.
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

// A thread's number in a block of 32 x 4 or 32 x 8, which such kernels have.
GRADCELL_DEVICE int gc_member() { return threadIdx.y * 32 + threadIdx.x; }

// Where two blocks share a multiprocessor's registers and memory, if the writer says so.
#ifdef GRADCELL_SHIM
constexpr int gc_two_blocks = 2;
#else
constexpr int gc_two_blocks = __CUDA_ARCH__ == 900 ? 2 : 1;
#endif

// How the warps of a block share its work: so many pieces of rows each, and so many parts of
// others.
template <int M, int P>
struct gc_way {
  static constexpr int pieces = M, parts = P, rows = 64 * M, threads = 1024 / P;
  static GRADCELL_DEVICE int first_row() { return gc_member() / 32 % 4 * (16 * M); }
  static GRADCELL_DEVICE int first_other() { return P == 8 ? 0 : gc_member() / 128 * (8 * P); }
  // Of the block's rows, and of the tile's others, which the thread's place e is.
  static GRADCELL_DEVICE int row(int m, int e) {
    return first_row() + 16 * m + gc_member() % 32 / 4 + e / 2 * 8;
  }
  static GRADCELL_DEVICE int other(int p, int e) {
    return first_other() + 8 * p + gc_member() % 4 * 2 + e % 2;
  }
};

// As convolutions and products have it, too.
using gc_halved = gc_way<1, 4>;

template <class F, class Way>
struct gc_scores_of {
  F at[Way::pieces][Way::parts][4];
};
template <class Way>
using gc_scores = gc_scores_of<float, Way>;

template <class T>
__device__ constexpr int gc_padded(int k) {
  return sizeof(T) == 4 ? (k + 7) / 8 * 8 : (k + 15) / 16 * 16;
}
template <class T>
__device__ constexpr int gc_pitch(int k) {
  return gc_padded<T>(k) + 16 / (int)sizeof(T);
}

// A thread's parts of n rows of K elements, 16 bytes each where rows are a multiple of that. What
// is beyond the last row or element is read from the last one, and 0 only once it is put: no load
// waits for another.
template <int threads, int n, int K, class T>
struct gc_fetched {
  static constexpr int each = sizeof(T) == 2 && K % 8 == 0 ? 8 : 4;
  static constexpr int parts = gc_padded<T>(K) / each, turns = (n * parts + threads - 1) / threads;
  gc_index there;  // rows
  gc_some<T, each> at[turns > 0 ? turns : 1];
};
template <int threads, int n, int K, class T>
GRADCELL_DEVICE auto gc_fetch_part(const T* from, gc_index stride, gc_index first, gc_index rows,
                                   bool packs, int turn) {
  using Fetched = gc_fetched<threads, n, K, T>;
  constexpr int each = Fetched::each;
  const int i = gc_member() + threads * turn, f = i % Fetched::parts;
  const gc_index r = first + i / Fetched::parts;
  const T* const row = from + (r < rows ? r : rows - 1) * stride;
  if (K % each == 0 && packs)
    return reinterpret_cast<const gc_some<T, each>*>(row)[each * f < K ? f : 0];
  gc_some<T, each> v;
#pragma unroll
  for (int u = 0; u < each; ++u) v.at[u] = row[each * f + u < K ? each * f + u : K - 1];
  return v;
}
template <int threads, int n, int K, class T, int each>
GRADCELL_DEVICE void gc_put_part(T* to, gc_some<T, each> x, gc_index there, int turn) {
  constexpr int parts = gc_fetched<threads, n, K, T>::parts;
  const int i = gc_member() + threads * turn, r = i / parts, f = i % parts;
#pragma unroll
  for (int u = 0; u < each; ++u)
    if (r >= there || (K % each > 0 && each * f + u >= K) || (parts * each > K && each * f >= K))
      x.at[u] = 0;
  if (n * parts % threads == 0 || r < n)
    reinterpret_cast<gc_some<T, each>*>(to + r * gc_pitch<T>(K))[f] = x;
}
template <int threads, int n, int K, class T>
GRADCELL_DEVICE auto gc_fetch_rows(const T* from, gc_index stride, gc_index first, gc_index rows,
                                   bool packs) {
  gc_fetched<threads, n, K, T> v;
  v.there = rows - first;
  if constexpr (K > 0) {
#pragma unroll
    for (int turn = 0; turn < v.turns; ++turn)
      v.at[turn] = gc_fetch_part<threads, n, K>(from, stride, first, rows, packs, turn);
  }
  return v;
}
template <int threads, int n, int K, class T>
GRADCELL_DEVICE void gc_put_rows(T* to, const gc_fetched<threads, n, K, T>& v) {
  if constexpr (K > 0) {
#pragma unroll
    for (int turn = 0; turn < v.turns; ++turn)
      gc_put_part<threads, n, K>(to, v.at[turn], v.there, turn);
  }
}
// Both, a part at a time.
template <int threads, int n, int K, class T>
GRADCELL_DEVICE void gc_stage_rows(T* to, const T* from, gc_index stride, gc_index first,
                                   gc_index rows, bool packs) {
#pragma unroll 1
  for (int turn = 0; turn < gc_fetched<threads, n, K, T>::turns; ++turn)
    gc_put_part<threads, n, K>(to,
                               gc_fetch_part<threads, n, K>(from, stride, first, rows, packs, turn),
                               rows - first, turn);
}
// Rows of halves on their way to shared memory, where they are found behind gc_arrived() and a
// barrier; what is beyond the last is 0.
template <int threads, int n, int K, class T>
GRADCELL_DEVICE void gc_send_rows(T* to, const T* from, gc_index stride, gc_index first,
                                  gc_index rows, bool packs) {
  if constexpr (K % 8 == 0) {
    if (packs) {
      constexpr int parts = gc_padded<T>(K) / 8, at_once = threads / parts;
      const int mine = gc_member() / parts, f = gc_member() % parts;
      const T* row = from + (first + mine) * stride + 8 * f;
#pragma unroll
      for (int r = 0; r < n; r += at_once, row += at_once * stride)
        if ((threads % parts == 0 || mine < at_once) && (n % at_once == 0 || r + mine < n))
          gc_send_sixteen(to + (r + mine) * gc_pitch<T>(K) + 8 * f, row,
                          first + r + mine < rows && (K % 16 == 0 || 8 * f < K));
      return;
    }
  }
  gc_stage_rows<threads, n, K>(to, from, stride, first, rows, packs);
}
// The same of n rows of a mask, `wide` bytes each, 16 bytes apart from each other.
template <int threads, int n, int wide>
GRADCELL_DEVICE void gc_send_mask(unsigned char* to, const unsigned char* from, gc_index stride,
                                  gc_index row, gc_index column, gc_index rows, gc_index columns,
                                  bool packs) {
  constexpr int parts = wide / 16;
  const bool whole = packs && columns % 16 == 0 && column % 16 == 0;
#pragma unroll
  for (int first = 0; first < n * parts; first += threads) {
    const int i = first + gc_member(), r = i / parts, f = i % parts * 16;
    if (n * parts % threads > 0 && i >= n * parts) break;
    unsigned char* const at = to + r * (wide + 16) + f;
    const unsigned char* const rest = from + (row + r) * stride + column + f;
    if (whole) {
      gc_send_sixteen(at, rest, row + r < rows && column + f < columns);
    } else {
#pragma unroll 1
      for (int u = 0; u < 16; ++u) at[u] = row + r < rows && column + f + u < columns ? rest[u] : 0;
    }
  }
}
// A number for each of the tile's 64 others, of which those beyond the last have its.
GRADCELL_DEVICE void gc_send_numbers(float* to, const float* from, gc_index stride, gc_index first,
                                     gc_index rows) {
  if (gc_member() >= 64) return;
  const gc_index r = first + gc_member();
  gc_fetch_ahead(to + gc_member(), from + (r < rows ? r : rows - 1) * stride);
}

// What a lane has of a piece's 16 rows, and of 16 others as two parts, from place k on: of floats
// the terms t and t + 4, of halves 2 t, 2 t + 1 and those 8 later.
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
GRADCELL_DEVICE void gc_right_at(typename Kind::Right (&b)[2], const T* rows, int k) {
  if constexpr (sizeof(T) == 4) {
    const T* const row = rows + gc_member() % 32 / 4 * pitch + k + gc_member() % 4;
#pragma unroll
    for (int p = 0; p < 2; ++p) {
      const float x[2] = {row[8 * p * pitch], row[8 * p * pitch + 4]};
      b[p] = Kind::right(x);
    }
  } else {
    unsigned x[4];
    gc_matrices<false, 0, 1, 1, 0, pitch>(x, rows + k, gc_member() % 32);
#pragma unroll
    for (int j = 0; j < 4; ++j) b[j / 2].at[j % 2] = x[j];
  }
}
// The same of 32 rows as terms, columns n to n + 7: one step's factor after another's.
template <class Kind, int pitch, class T>
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
    for (int p = 0; p < 4; ++p) b[p / 2].at[p % 2] = x[p];
  }
}

// The warp's rows of K elements as left factors: read where they are needed, or kept.
template <class Kind, class Way, int K, class T>
struct gc_rows_there {
  static constexpr bool kept = false;
  const T* rows;
  GRADCELL_DEVICE typename Kind::Left at(int m, int step) const {
    constexpr int pitch = gc_pitch<T>(K);
    return gc_left_at<Kind, pitch>(rows + (Way::first_row() + 16 * m) * pitch,
                                   4 * Kind::slots * step);
  }
};
template <class Kind, class Way, int K>
struct gc_rows_kept {
  static constexpr bool kept = true;
  typename Kind::Left x[Way::pieces][gc_padded<unsigned short>(K) / (4 * Kind::slots)];
  GRADCELL_DEVICE const typename Kind::Left& at(int m, int step) const { return x[m][step]; }
};
template <class Kind, class Way, int K, class T>
GRADCELL_DEVICE gc_rows_kept<Kind, Way, K> gc_keep_rows(const T* rows) {
  gc_rows_kept<Kind, Way, K> kept;
  const gc_rows_there<Kind, Way, K, T> there{rows};
#pragma unroll
  for (int m = 0; m < Way::pieces; ++m)
#pragma unroll
    for (int step = 0; 4 * Kind::slots * step < K; ++step) kept.x[m][step] = there.at(m, step);
  return kept;
}

// Whether a mask's bytes hide none of a warp's scores (0), some (1) or all (2).
template <class Way, bool by_keys, int pitch>
GRADCELL_DEVICE int gc_hidden(const unsigned char* tile) {
  constexpr int count = Way::pieces * Way::parts / 4;  // sixteens of a lane
  gc_some<unsigned, 4> x[count];
  unsigned any = 0, none = 0;
#pragma unroll
  for (int c = 0; c < count; ++c) {
    const int i = 32 * c + gc_member() % 32, across = by_keys ? Way::pieces : Way::parts / 2;
    const int one = i / across, other = i % across * 16;
    const int row = (by_keys ? Way::first_other() : Way::first_row()) + one;
    const int column = (by_keys ? Way::first_row() : Way::first_other()) + other;
    x[c] = *reinterpret_cast<const gc_some<unsigned, 4>*>(tile + row * pitch + column);
    any |= x[c].at[0] | x[c].at[1] | x[c].at[2] | x[c].at[3];
  }
  if (__all_sync(0xffffffffu, any == 0)) return 0;
#pragma unroll
  for (int i = 0; i < 4 * count; ++i) {
    const unsigned bytes = x[i / 4].at[i % 4];
    none |= (bytes - 0x01010101u) & ~bytes & 0x80808080u;  // a byte that is 0
  }
  return __all_sync(0xffffffffu, none == 0) ? 2 : 1;
}

// Products of the warp's rows of K elements and its others, by multiply-adds.
template <class Type, class F, class Way, int K, class T>
__device__ __noinline__ gc_scores_of<F, Way> gc_dots_exactly(const T* a, const T* b) {
  constexpr int pitch = gc_pitch<T>(K);
  gc_scores_of<F, Way> s = {};
#pragma unroll 1
  for (int k = 0; k < K; ++k)
#pragma unroll
    for (int p = 0; p < Way::parts; ++p)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        s.at[0][p][e] = gc_fma(Type::decoded(a[Way::row(0, e) * pitch + k]),
                               Type::decoded(b[Way::other(p, e) * pitch + k]), s.at[0][p][e]);
  return s;
}
// The same by tensor cores. Of floats, what may be infinite or no number is left to multiply-adds,
// as it is no sum of two numbers in TF32. Halves are taken as they are.
template <class Kind, class Way, int K, class Rows, class T>
GRADCELL_DEVICE gc_scores<Way> gc_dots_warp(const Rows& rows, const T* others) {
  constexpr int pitch = gc_pitch<T>(K);
  constexpr int unrolled = Rows::kept ? K : K > 64 ? 1 : 2;
  const T* const right = others + Way::first_other() * pitch;
  gc_scores<Way> s = {};
#pragma unroll(unrolled)
  for (int k = 0; k < K; k += 4 * Kind::slots) {
    typename Kind::Left x[Way::pieces];
#pragma unroll
    for (int m = 0; m < Way::pieces; ++m) x[m] = rows.at(m, k / (4 * Kind::slots));
#pragma unroll
    for (int p = 0; p < Way::parts; p += 2) {
      typename Kind::Right y[2];
      gc_right_at<Kind, pitch>(y, right + 8 * p * pitch, k);
#pragma unroll
      for (int i = 0; i < 2 * Way::pieces; ++i)
        Kind::add(s.at[i / 2][p + i % 2], x[i / 2], y[i % 2]);
    }
  }
  if constexpr (sizeof(T) == 4) {
    bool ordinary = true;
#pragma unroll
    for (int i = 0; i < 4 * Way::parts; ++i) ordinary &= gc_ordinary(s.at[0][i / 4][i % 4]);
    if (!__all_sync(0xffffffffu, ordinary))
      return gc_dots_exactly<Kind, float, Way, K>(rows.rows, others);
  }
  return s;
}

// The columns f and f + 1, f = 8 n + 2 t, of the sums of the warp's others, by multiply-adds.
template <class Type, class Way, int pitch, class T>
__device__ __noinline__ gc_sums<float, 4> gc_add_exactly(gc_scores<Way> w, const T* c, int n) {
  gc_sums<float, 4> d = {};
  const int t = gc_member() % 4;
#pragma unroll 1
  for (int far = 0; far < 4; ++far)
#pragma unroll
    for (int i = 0; i < 4 * Way::parts; ++i) {
      const int p = i / 4, u = i / 2 % 2, s = i % 2;
      const float weight = gc_shuffle(w.at[0][p][2 * u + s], far);
      const T* const row = c + (Way::first_other() + 8 * p + 2 * (t ^ far) + s) * pitch;
#pragma unroll
      for (int e = 0; e < 2; ++e)
        d.at[2 * u + e] =
            gc_fma(weight, float(Type::decoded(row[8 * n + 2 * t + e])), d.at[2 * u + e]);
    }
  return d;
}
// A piece's weights as left factors, row u's by[u] times, rounded as the kind has them.
template <class Kind, int parts>
GRADCELL_DEVICE typename Kind::Left gc_weights_left(const float (&w)[parts][4], int step,
                                                    const float (&by)[2]) {
  constexpr int slots = Kind::slots;
  float x[2][slots];
#pragma unroll
  for (int i = 0; i < 2 * slots; ++i) {
    const int u = i / slots, s = i % slots;
    x[u][s] = w[slots / 2 * step + s / 2][2 * u + s % 2] * by[u];
  }
  if constexpr (slots == 4)
    return {Kind::rounded(x[0][0], x[0][1]), Kind::rounded(x[1][0], x[1][1]),
            Kind::rounded(x[0][2], x[0][3]), Kind::rounded(x[1][2], x[1][3])};
  else
    return Kind::left(x);
}
// Weights of any size in float16: which power of two takes a row's largest one to 2^14 or more,
// below 2^15, and which one back.
template <int parts>
GRADCELL_DEVICE void gc_lift(const float (&w)[parts][4], float (&by)[2], float (&back)[2]) {
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    float most = 0;
#pragma unroll
    for (int i = 0; i < 2 * parts; ++i) most = gc_most(most, fabsf(w[i / 2][2 * u + i % 2]));
    most = gc_most(most, gc_shuffle(most, 1));
    most = gc_most(most, gc_shuffle(most, 2));
    const unsigned bits = gc_float_bits(most), least = 15u << 23;
    const unsigned exponent = (bits > least ? bits : least) & 0x7f800000u;
    by[u] = gc_bits_float((268u << 23) - exponent);
    back[u] = gc_bits_float(exponent - (14u << 23));
  }
}
// sum += the warp's weights times its others' rows of K elements. Where a warp has all others the
// tensor cores go on adding, but if weights are lifted. Elsewhere a tile's sums are added, and what
// may be infinite or no number is left to multiply-adds.
template <class Kind, class Way, int K, bool lifted, int parts, class T>
GRADCELL_DEVICE void gc_add_warp(float (&sum)[Way::pieces][parts][4], const gc_scores<Way>& w,
                                 const T* c) {
  constexpr int pitch = gc_pitch<T>(K), slots = Kind::slots, pieces = Way::pieces;
  constexpr int steps = 2 * Way::parts / slots, of_rows = 8 / slots;  // of 32 rows
  constexpr bool asks = Way::parts < 8, in_place = !asks && !lifted;
  const T* const rows = c + Way::first_other() * pitch;
  typename Kind::Left left[pieces][steps];
  float back[pieces][2];
#pragma unroll
  for (int m = 0; m < pieces; ++m) {
    float by[2] = {1, 1};
    back[m][0] = back[m][1] = 1;
    if constexpr (lifted) gc_lift(w.at[m], by, back[m]);
#pragma unroll
    for (int step = 0; step < steps; ++step)
      left[m][step] = gc_weights_left<Kind>(w.at[m], step, by);
  }
  // Of many sums each is done before the next one's loads, which would not all fit into registers.
  constexpr bool one_by_one = parts > 8;
  bool exactly[parts] = {};
  auto repair = [&](int n) {
    if (__all_sync(0xffffffffu, !exactly[n])) return;
    const gc_sums<float, 4> exact = gc_add_exactly<Kind, Way, pitch>(w, c, n);
#pragma unroll
    for (int e = 0; e < 4; ++e) sum[0][n][e] += exactly[n] ? exact.at[e] : 0;
  };
#pragma unroll
  for (int n = 0; n < parts; ++n) {
    float d[pieces][4] = {};
#pragma unroll
    for (int first = 0; first < steps; first += of_rows) {
      typename Kind::Right right[of_rows];
      gc_columns_at<Kind, pitch>(right, rows + 32 * (first / of_rows) * pitch, 8 * n);
#pragma unroll
      for (int i = 0; i < pieces * of_rows; ++i) {
        const int m = i / of_rows, step = i % of_rows;
        Kind::add(in_place ? sum[m][n] : d[m], left[m][first + step], right[step]);
      }
    }
    if constexpr (!in_place) {
#pragma unroll
      for (int i = 0; i < 4 * pieces; ++i) exactly[n] |= asks && !gc_ordinary(d[i / 4][i % 4]);
#pragma unroll
      for (int i = 0; i < 4 * pieces; ++i) {
        float& to = sum[i / 4][n][i % 4];
        const float x = exactly[n] ? 0 : d[i / 4][i % 4];
        to = lifted ? gc_fma(x, back[i / 4][i % 4 / 2], to) : to + x;
      }
      if constexpr (asks && one_by_one) repair(n);
    }
  }
  if constexpr (!asks || one_by_one) return;
  bool all = true;
#pragma unroll
  for (int n = 0; n < parts; ++n) all &= !exactly[n];
  if (__all_sync(0xffffffffu, all)) return;
#pragma unroll
  for (int n = 0; n < parts; ++n) repair(n);
}

// Exponentials of scores, of which `base` is that of a row's largest one. Those of halves are a
// GPU's own, of a power of two and with an error of 2 u; where weights are rounded to float16 they
// count 2^15 times, so that what is 2^-29 of the largest is a number in full, and 2^-39 is one at
// all.
template <class Kind>
struct gc_powers {
  static constexpr float counted = 1;
  static GRADCELL_DEVICE float base(float most) { return most; }
  static GRADCELL_DEVICE float of(float x, float base) { return exp(x - base); }
  static GRADCELL_DEVICE float between(float base, float next) { return exp(base - next); }
  static GRADCELL_DEVICE float weight(float x, float log_sum) { return exp(x - log_sum); }
  static GRADCELL_DEVICE float log_sum(float base, float total) { return base + log(total); }
};
constexpr float gc_log_of_e = 1.44269504f, gc_log_of_two = 0.693147181f;  // to base two, of two
template <>
struct gc_powers<gc_bfloat> {
  static constexpr float counted = 1;
  static GRADCELL_DEVICE float base(float most) { return most; }
  static GRADCELL_DEVICE float of(float x, float base) {
    return gc_power_of_two((x - base) * gc_log_of_e);
  }
  static GRADCELL_DEVICE float between(float base, float next) { return of(base, next); }
  static GRADCELL_DEVICE float weight(float x, float log_sum) { return of(x, log_sum); }
  static GRADCELL_DEVICE float log_sum(float base, float total) { return base + log(total); }
};
template <>
struct gc_powers<gc_half> {
  static constexpr float counted = 32768;
  static GRADCELL_DEVICE float base(float most) { return gc_fma(most, gc_log_of_e, -15.0f); }
  static GRADCELL_DEVICE float of(float x, float base) {
    return gc_power_of_two(gc_fma(x, gc_log_of_e, -base));
  }
  static GRADCELL_DEVICE float between(float base, float next) {
    return gc_power_of_two(base - next);
  }
  static GRADCELL_DEVICE float weight(float x, float log_sum) {
    return gc_power_of_two(gc_fma(x - log_sum, gc_log_of_e, 15.0f));
  }
  static GRADCELL_DEVICE float log_sum(float base, float total) {
    return base * gc_log_of_two + log(total);
  }
};
// Of no keys it is -inf, less which a score of -inf would be no number.
GRADCELL_DEVICE float gc_above(float log_sum) { return gc_most(log_sum, -3.40282347e38f); }
// A row's base; of none, all weights are 0.
template <class Kind>
GRADCELL_DEVICE float gc_base(float most) {
  return gc_powers<Kind>::base(most == gc_limits<float>::low() ? 0.0f : most);
}

// A piece's scores become exponentials of what they are above the largest so far of their row; what
// there was by then counts `scale` times.
template <class Kind, int parts>
GRADCELL_DEVICE void gc_raise(float (&s)[parts][4], float (&most)[2], float (&total)[2],
                              float (&scale)[2]) {
  using Powers = gc_powers<Kind>;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    float m = most[u], sum = 0;
#pragma unroll
    for (int i = 0; i < 2 * parts; ++i) m = gc_most(m, s[i / 2][2 * u + i % 2]);
    m = gc_most(m, gc_shuffle(m, 1));
    m = gc_most(m, gc_shuffle(m, 2));
    const float base = gc_base<Kind>(m);
    scale[u] = Powers::between(Powers::base(most[u]), base);
#pragma unroll
    for (int i = 0; i < 2 * parts; ++i) {
      float& x = s[i / 2][2 * u + i % 2];
      x = Powers::of(x, base);
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

// What a thread of a group's second warp has found, and the first takes: `to` is its own place of
// 128.
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
// The warps' scales: each counts by how far its largest score is below both's.
template <class Kind>
GRADCELL_DEVICE void gc_take_totals(float*& from, float (&most)[2], float (&total)[2],
                                    float (&own)[2], float (&other)[2]) {
  using Powers = gc_powers<Kind>;
#pragma unroll
  for (int u = 0; u < 2; ++u) {
    const float there = from[128 * u], m = maximum(most[u], there), base = gc_base<Kind>(m);
    own[u] = Powers::between(Powers::base(most[u]), base);
    other[u] = Powers::between(Powers::base(there), base);
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
