// Products of equal sizes, one launch for all: the text of product_groups.h's kernels. Text for
// NVRTC, behind convolution.cuh.
//
// A block of 8 warps takes 64 rows by 64 columns of one product, and of its terms one of `parts`
// shares, 32 terms at a time. While warps multiply, what they need next is on its way to their
// registers; a tile has two places, so that a step has one barrier.

namespace gradcell {
namespace scalar {

// A thread's share of 64 lines of a matrix and 32 terms, 0 beyond the last of both. Neighbouring
// threads have neighbours in memory: lines of one term, or terms of one line.
template <bool along_lines, class T>
GRADCELL_DEVICE void gc_gather_lines(T (&v)[8], const T* from, gc_index line, gc_index lines,
                                     gc_index term, gc_index terms) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const gc_index l = line + (along_lines ? gc_member() % 64 : gc_member() / 32 + 8 * i);
    const gc_index t =
        term + (along_lines ? 4 * (gc_member() / 64 + i / 4 * 4) + i % 4 : gc_member() % 32);
    v[i] = T(0);
    if (l < lines && t < terms) v[i] = from[along_lines ? t * lines + l : l * terms + t];
  }
}

#ifdef GRADCELL_SHIM
// The same by any number of threads.
template <class Kind, class F, class T, bool transpose_a, bool transpose_b, class Left, class Right,
          class Store>
void gc_products_one_by_one(gc_index count, gc_index m, gc_index n, gc_index k, gc_index parts,
                            Left left, Right right, Store store) {
  const gc_index steps = (k + 31) / 32, all = count * parts * m * n;
  for (gc_index e = blockIdx.x * gc_threads() + gc_thread(); e < all;
       e += gridDim.x * gc_threads()) {
    const gc_index column = e % n, row = e / n % m, part = e / (m * n) % parts;
    const gc_index product = e / (m * n) / parts;
    const gc_index end = (gc_index)((gc_long)steps * (part + 1) / parts) * 32;
    const T* const a = left(product);
    const T* const b = right(product);
    F sum = 0;
    for (gc_index t = (gc_index)((gc_long)steps * part / parts) * 32; t < end && t < k; ++t)
      sum = gc_fma(Kind::decoded(a[transpose_a ? t * m + row : row * k + t]),
                   Kind::decoded(b[transpose_b ? column * k + t : t * n + column]), sum);
    store(product)(part, row * n + column, column, sum);
  }
}
#endif

// `count` products of m x k by k x n matrices: left(p) and right(p) are where those of product p
// are, of T; store(p) is what is called with a part, a place, its column and the sum.
template <class Kind, class F, class T, bool transpose_a, bool transpose_b, class Left, class Right,
          class Store>
GRADCELL_DEVICE void gc_products(gc_index count, gc_index m, gc_index n, gc_index k, gc_index parts,
                                 Left left, Right right, Store store) {
  const gc_index down = (m + 63) / 64, across = (n + 63) / 64, steps = (k + 31) / 32;
#ifdef GRADCELL_SHIM  // tests have other blocks too
  if (blockDim.x != 32 || blockDim.y != 8)
    return gc_products_one_by_one<Kind, F, T, transpose_a, transpose_b>(count, m, n, k, parts, left,
                                                                        right, store);
#endif
  constexpr int pitch = gc_pitch<T>(32), tile = 128 * pitch;
  T* const tiles = gc_in_tile<T>(0);
  for (gc_index job = blockIdx.x; job < count * parts * down * across; job += gridDim.x) {
    gc_index rest = job;
    const gc_index column = rest % across * 64;
    rest /= across;
    const gc_index row = rest % down * 64;
    rest /= down;
    const gc_index part = rest % parts, product = rest / parts;
    const T* const a = left(product);
    const T* const b = right(product);
    const gc_index first = (gc_index)((gc_long)steps * part / parts);
    const gc_index end = (gc_index)((gc_long)steps * (part + 1) / parts);
    T x[8], y[8];
    auto gather = [&](gc_index step) {
      gc_gather_lines<transpose_a>(x, a, row, m, step * 32, k);
      gc_gather_lines<!transpose_b>(y, b, column, n, step * 32, k);
    };
    auto put = [&](gc_index step) {
      T* const to = tiles + (step & 1) * tile;
      gc_put<64, transpose_a>(to, x);
      gc_put<64, !transpose_b>(to + tile / 2, y);
    };
    F sum[1][4][4] = {};
    if (first < end) gather(first), put(first);
    __syncthreads();
    for (gc_index step = first; step < end; ++step) {
      const bool more = step + 1 < end;
      if (more) gather(step + 1);
      const T* const at = tiles + (step & 1) * tile;
      gc_add_terms<Kind, 1>(sum, at, at + tile / 2);
      if (more) put(step + 1);
      __syncthreads();
    }
    auto to = store(product);
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      const gc_index r = row + gc_halved::row(0, i / 8 * 2),
                     c = column + gc_halved::other(i % 8 / 2, i % 2);
      if (r < m && c < n) to(part, r * n + c, c, sum[0][i % 8 / 2][i / 8 * 2 + i % 2]);
    }
  }
}

}  // namespace scalar
}  // namespace gradcell
