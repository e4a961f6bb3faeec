// Loops as kernels: a block takes a few rows through all steps, see loop_kernel.h. Text for NVRTC,
// behind tiles.cuh.

namespace gradcell {
namespace scalar {

// What all threads of a block do. (Tests have fewer, which take turns.)
#ifdef GRADCELL_SHIM
#define GC_ALL_TURNS(threads) for (int turn = 0; turn < (threads); turn += gc_threads())
#define GC_THREAD_MINE(threads) (turn + gc_thread() < (threads))
#define GC_THREAD(threads) (GC_THREAD_MINE(threads) ? turn + gc_thread() : (threads) - 1)
#else
#define GC_ALL_TURNS(threads)
#define GC_THREAD_MINE(threads) true
#define GC_THREAD(threads) gc_thread()
#endif

// An element of 4 or 8 bytes on its way from memory to shared memory, where the thread that asked
// for it finds it behind gc_arrived().
template <class T>
GRADCELL_DEVICE void gc_fetch_ahead(T* to, const T* from) {
#if !defined(GRADCELL_SHIM) && __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
      "l"(from), "n"(sizeof(T))
      : "memory");
#else
  *to = *from;
#endif
}
GRADCELL_DEVICE void gc_arrived() {
#if !defined(GRADCELL_SHIM) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

// A matrix of K x M among T threads: where there are more columns, each thread has every T-th one;
// where there are fewer, P threads share the terms of a column, in parts of whole fours.
template <int K, int M, int P, int T>
struct gc_columns {
  static constexpr int fours = ((K + P - 1) / P + 3) / 4, each = (M + T - 1) / T;
  static constexpr bool whole = 4 * fours * P == K;
  // Elements of so many fours of each column in registers.
  __device__ static constexpr int registers(int kept) { return kept > 0 ? 4 * each * kept : 1; }
  GRADCELL_DEVICE static int column(int y, int c) { return M < T ? y % M : y + c * T; }
  GRADCELL_DEVICE static int part(int y) { return M < T ? y / M : 0; }
};

// The n-th element of thread y's column c: term i of four q.
template <class Columns, int K, int M, class Type, class V, class Stored>
GRADCELL_DEVICE V gc_weight(const Stored* from, int k_stride, int m_stride, int y, int c, int q,
                            int i) {
  const int k = 4 * (Columns::part(y) * Columns::fours + q) + i, m = Columns::column(y, c);
  return k < K && m < M ? V(Type::decoded(from[k * k_stride + m * m_stride])) : V(0);
}
// What a thread has of the matrix, a four of each of its columns behind another: the first `kept`
// of each column in registers, the others in shared memory.
template <int K, int M, int P, int T, int kept, class Type, class V, int n, class Stored>
GRADCELL_DEVICE void gc_hold(gc_sums<V, n>& registers, V* held, const Stored* from, int k_stride,
                             int m_stride, int y) {
  typedef gc_columns<K, M, P, T> columns;
  static_assert(n == columns::registers(kept), "registers for what is kept");
#pragma unroll
  for (int u = 0; u < kept * columns::each; ++u)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      registers.at[4 * u + i] = gc_weight<columns, K, M, Type, V>(
          from, k_stride, m_stride, y, u % columns::each, u / columns::each, i);
  for (int u = kept * columns::each; u < columns::fours * columns::each; ++u)
    for (int i = 0; i < 4; ++i)
      held[4 * ((u - kept * columns::each) * T + y) + i] = gc_weight<columns, K, M, Type, V>(
          from, k_stride, m_stride, y, u % columns::each, u / columns::each, i);
}

// The parts [P][R][M] of the products of R rows, of which the next one is `pitch` elements on, with
// such a matrix. `packs`: the rows can be read in fours.
template <int K, int M, int P, int T, int R, int pitch, int kept, bool packs, class V, int n>
GRADCELL_DEVICE void gc_multiply_rows(V* to, const V* x, const gc_sums<V, n>& registers,
                                      const V* held, int y) {
  typedef gc_columns<K, M, P, T> columns;
  constexpr int each = columns::each;
  static_assert(n == columns::registers(kept), "registers of what is kept");
  if (columns::part(y) >= P) return;
  V s[each][R][4];
#pragma unroll
  for (int i = 0; i < each * R * 4; ++i) s[i / 4 / R][i / 4 % R][i % 4] = V(0);
  auto add = [&](int q, const gc_some<V, 4>(&w)[each]) {
    const int k = 4 * (columns::fours * columns::part(y) + q);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      gc_some<V, 4> a;
      if (packs && columns::whole) {
        a = *reinterpret_cast<const gc_some<V, 4>*>(x + r * pitch + k);
      } else {
#pragma unroll
        for (int i = 0; i < 4; ++i)
          a.at[i] = columns::whole || k + i < K ? x[r * pitch + k + i] : V(0);
      }
#pragma unroll
      for (int c = 0; c < each; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[c][r][i] = gc_fma(a.at[i], w[c].at[i], s[c][r][i]);
    }
  };
#pragma unroll
  for (int q = 0; q < kept; ++q) {
    gc_some<V, 4> w[each];
#pragma unroll
    for (int i = 0; i < each * 4; ++i) w[i / 4].at[i % 4] = registers.at[4 * each * q + i];
    add(q, w);
  }
#pragma unroll 4
  for (int q = kept; q < columns::fours; ++q) {
    gc_some<V, 4> w[each];
#pragma unroll
    for (int c = 0; c < each; ++c)
      w[c] = reinterpret_cast<const gc_some<V, 4>*>(held)[((q - kept) * each + c) * T + y];
    add(q, w);
  }
#pragma unroll
  for (int c = 0; c < each; ++c) {
    const int m = columns::column(y, c);
    if (m >= M) continue;
#pragma unroll
    for (int r = 0; r < R; ++r)
      to[(columns::part(y) * R + r) * M + m] =
          (s[c][r][0] + s[c][r][1]) + (s[c][r][2] + s[c][r][3]);
  }
}

// An element of which P parts, n elements apart, have been made.
template <class Op, int P, int n, class V>
GRADCELL_DEVICE V gc_collected(const V* parts) {
  V all = parts[0];
#pragma unroll 8
  for (int p = 1; p < P; ++p) all = Op::of(all, parts[p * n]);
  return all;
}

}  // namespace scalar
}  // namespace gradcell
