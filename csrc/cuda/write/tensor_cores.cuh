// Products of a tile of rows by tensor cores: mma.m16n8k8 with TF32, m16n8k16 with half types. Text
// for NVRTC, behind tiles.cuh; tests/cuda_shim.h has the instructions for C++.
//
// A warp multiplies its own rows by its own columns, and each thread gets the sums that gc_multiply
// would give it. Lane l = 4 q + t has of a left factor the rows q and q + 8, of a right one the
// column q, of a result the rows q and q + 8 and the columns 2 t and 2 t + 1 (PTX ISA, "Matrix
// Fragments for mma.m16n8k8" and "m16n8k16"). In which order terms are taken is free, as long as
// both factors have the same: a lane's i-th is term t + 4 i, so that with an odd stride of features
// the threads of a warp read from different banks. Which 16 rows of a tile are a left factor is
// free too: those of lanes 4 q to 4 q + 3 are in results of these same lanes.

namespace gradcell {
namespace scalar {

#ifndef GRADCELL_SHIM
#define GRADCELL_TENSOR_CORES __CUDA_ARCH__  // as the compute capability, times 10
GRADCELL_DEVICE unsigned gc_to_tf32(float x) {
  unsigned u = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(u) : "f"(x));
#endif
  return u;
}
// The larger one, or NaN if one is.
GRADCELL_DEVICE float gc_most(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return maximum(a, b);
#endif
}
// Two floats to the nearest bfloat16 numbers.
GRADCELL_DEVICE unsigned gc_bfloat_pair(float low, float high) {
  unsigned u = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
#endif
  return u;
}
// The same to the nearest float16 numbers.
GRADCELL_DEVICE unsigned gc_half_pair(float low, float high) {
  unsigned u = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(high), "f"(low));
#endif
  return u;
}
// 2^x, with an error of 2 u; what is below 2^-126 is 0.
GRADCELL_DEVICE float gc_power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
// Sixteen bytes on their way from memory to shared memory, or as many zeros, which are there behind
// gc_arrived().
GRADCELL_DEVICE void gc_send_sixteen(void* to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"((unsigned)__cvta_generic_to_shared(to)),
      "l"(from), "r"(there ? 16 : 0)
      : "memory");
#endif
}
// Four matrices of 8 x 8 halves in shared memory. Lane 4 q + t gets of the i-th, in to[i], row q's
// elements 2 t and 2 t + 1, or, of transposed ones, column q's. Matrix i lies (i % 2 * r0 + i / 2 *
// r1) * 8 rows below the first, and with c0 and c1 so many columns further.
template <bool transposed, int r0, int r1, int c0, int c1, int pitch>
GRADCELL_DEVICE void gc_matrices(unsigned (&to)[4], const unsigned short* first, int lane) {
#if __CUDA_ARCH__ >= 750
  const int i = lane / 8;
  const unsigned short* const row =
      first + (8 * (i % 2 * r0 + i / 2 * r1) + lane % 8) * pitch + 8 * (i % 2 * c0 + i / 2 * c1);
  const unsigned at = (unsigned)__cvta_generic_to_shared(row);
  if constexpr (transposed)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(at)
                 : "memory");
#endif
}
GRADCELL_DEVICE void gc_mma_tf32(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
GRADCELL_DEVICE void gc_mma_bfloat(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
GRADCELL_DEVICE void gc_mma_half(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
  for (int k = 0; k < 2; ++k)  // m16n8k8: the first and the second half of the terms
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
        "{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[2 * k]), "r"(a[2 * k + 1]), "r"(b[k]));
#endif
}
#endif

// How a float32 product is computed, or one of half types. Each has `slots` terms a lane and an
// instruction; factors are registers from floats, right ones from what is stored too.

// Each factor as a sum of two in TF32; of their four products the smallest is left out. The tensor
// cores truncate sums, so that a few terms at a time are added up by them, the rest by the others.
struct gc_tf32x3 : gc_as_stored {
  static constexpr bool there = GRADCELL_TENSOR_CORES >= 800;
  static constexpr int slots = 2;
  struct Left {
    unsigned big[4], small[4];
  };
  struct Right {
    unsigned big[2], small[2];
  };
  // The tensor cores read the upper 19 bits. The first part is rounded to these; of what is left,
  // 12 bits at most, the last may be cut off. (A number that is none stays one: the rest of it is,
  // too.)
  static GRADCELL_DEVICE void split(float x, unsigned& big, unsigned& small) {
    big = (gc_float_bits(x) + 0x1000u) & 0xffffe000u;
    small = gc_float_bits(x - gc_bits_float(big));
  }
  static GRADCELL_DEVICE Left left(const float (&x)[2][2]) {
    Left a;
#pragma unroll
    for (int i = 0; i < 4; ++i) split(x[i % 2][i / 2], a.big[i], a.small[i]);
    return a;
  }
  static GRADCELL_DEVICE Right right(const float (&x)[2]) {
    Right b;
#pragma unroll
    for (int i = 0; i < 2; ++i) split(x[i], b.big[i], b.small[i]);
    return b;
  }
  static GRADCELL_DEVICE void add(float (&sum)[4], const Left& a, const Right& b) {
    float d[4] = {};
    gc_mma_tf32(d, a.small, b.big);
    gc_mma_tf32(d, a.big, b.small);
    gc_mma_tf32(d, a.big, b.big);
#pragma unroll
    for (int i = 0; i < 4; ++i) sum[i] += d[i];
  }
};

struct gc_tf32 : gc_as_stored {
  static constexpr bool there = GRADCELL_TENSOR_CORES >= 800;
  static constexpr int slots = 2;
  struct Left {
    unsigned at[4];
  };
  struct Right {
    unsigned at[2];
  };
  static GRADCELL_DEVICE Left left(const float (&x)[2][2]) {
    return {gc_to_tf32(x[0][0]), gc_to_tf32(x[1][0]), gc_to_tf32(x[0][1]), gc_to_tf32(x[1][1])};
  }
  static GRADCELL_DEVICE Right right(const float (&x)[2]) {
    return {gc_to_tf32(x[0]), gc_to_tf32(x[1])};
  }
  static GRADCELL_DEVICE void add(float (&sum)[4], const Left& a, const Right& b) {
    gc_mma_tf32(sum, a.at, b.at);
  }
};

// What is held as floats are numbers of the type: packing rounds nothing.
template <class Type>
struct gc_pairs_of_halves : Type {
  static constexpr int slots = 4;
  struct Left {
    unsigned at[4];
  };
  struct Right {
    unsigned at[2];
  };
  static GRADCELL_DEVICE unsigned pair(unsigned short low, unsigned short high) {
    return (unsigned)low | (unsigned)high << 16;
  }
  static GRADCELL_DEVICE unsigned pair(float low, float high) {
    return pair(Type::encoded(low), Type::encoded(high));
  }
  static GRADCELL_DEVICE Left left(const float (&x)[2][4]) {
    return {pair(x[0][0], x[0][1]), pair(x[1][0], x[1][1]), pair(x[0][2], x[0][3]),
            pair(x[1][2], x[1][3])};
  }
  template <class T>
  static GRADCELL_DEVICE Right right(const T (&x)[4]) {
    return {pair(x[0], x[1]), pair(x[2], x[3])};
  }
};
struct gc_bfloat : gc_pairs_of_halves<gc_as_bfloat> {
  static constexpr bool there = GRADCELL_TENSOR_CORES >= 800;
  static GRADCELL_DEVICE unsigned rounded(float low, float high) {
    return gc_bfloat_pair(low, high);
  }
  static GRADCELL_DEVICE void add(float (&sum)[4], const Left& a, const Right& b) {
    gc_mma_bfloat(sum, a.at, b.at);
  }
};
struct gc_half : gc_pairs_of_halves<gc_as_half> {
  static constexpr bool there = GRADCELL_TENSOR_CORES >= 750;
  static GRADCELL_DEVICE unsigned rounded(float low, float high) { return gc_half_pair(low, high); }
  static GRADCELL_DEVICE void add(float (&sum)[4], const Left& a, const Right& b) {
    gc_mma_half(sum, a.at, b.at);
  }
};

// A launch has whole warps, each with the rows and groups that gc_row and gc_group say. (Tests have
// other blocks too.)
template <int height>
GRADCELL_DEVICE bool gc_whole_warps() {
#ifdef GRADCELL_SHIM
  return (int)blockDim.x == height && gc_threads() % 32 == 0;
#else
  return true;
#endif
}
template <class Kind, int stride>
__device__ constexpr bool gc_has_warps() {
  return Kind::there && (stride == 33 || stride == 17);
}

// Lane t of four neighbours has places 0 to 3 of v, then place t of all four.
GRADCELL_DEVICE void gc_transpose_quad(float (&v)[4][2], int t) {
#pragma unroll
  for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (j & bit) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const bool upper = (t & bit) != 0;
        const float other = gc_shuffle(upper ? v[j][e] : v[j | bit][e], bit);
        v[j][e] = upper ? other : v[j][e];
        v[j | bit][e] = upper ? v[j | bit][e] : other;
      }
    }
}

// Whether a sum is neither infinite, nor NaN, nor about to be.
GRADCELL_DEVICE bool gc_ordinary(float x) { return (gc_float_bits(x) & 0x7f800000u) < 0x7f000000u; }

// gc_multiply by tensor cores: rows of K values times the columns y * apart, ..., y * apart + C -
// 1, of which no later one than `last` is there. With P: columns in packs of P, with a width of
// `k_stride`; without: where they are stored.
template <class Kind, int K, int M, int C, int P, int k_stride, int m_stride, int stride, class W>
__device__ __noinline__ gc_sums<float, C> gc_multiply_warp(const float* rows, const W* w, int y) {
  if constexpr (gc_has_warps<Kind, stride>()) {
    if (gc_whole_warps<stride - 1>()) {
      constexpr bool tall = stride == 33;  // else a warp has 16 rows of two groups
      constexpr int slots = Kind::slots, parts = (C + 7) / 8, apart = P ? P : C;
      constexpr int last = P ? k_stride - 1 : M - 1;
      const int lane = gc_thread() % 32, q = lane / 4, t = lane % 4;
      const int first = (tall ? y : y & ~1) * apart + q, row = tall ? 4 * q : 2 * q;
      float d[2][parts][4] = {};
#pragma unroll 2
      for (int k0 = 0; k0 < K; k0 += 4 * slots) {
        typename Kind::Left a[2];
#pragma unroll
        for (int i = 0; i < (tall ? 2 : 1); ++i) {
          float x[2][slots];
#pragma unroll
          for (int s = 0; s < slots; ++s) {
            const int k = k0 + t + 4 * s;
#pragma unroll
            for (int u = 0; u < 2; ++u)
              x[u][s] = K % (4 * slots) == 0 || k < K ? rows[k * stride + row + 2 * i + u] : 0;
          }
          a[i] = Kind::left(x);
        }
#pragma unroll
        for (int p = 0; p < parts; ++p)
#pragma unroll
          for (int g = 0; g < (tall ? 1 : 2); ++g) {
            const int m = first + g * apart + 8 * p, column = m < last ? m : last;
            W x[slots];
#pragma unroll
            for (int s = 0; s < slots; ++s) {
              const int k = k0 + t + 4 * s;
              x[s] = K % (4 * slots) == 0 || k < K ? w[k * k_stride + column * m_stride] : W(0);
            }
            const typename Kind::Right b = Kind::right(x);
#pragma unroll
            for (int i = 0; i < (tall ? 2 : 1); ++i) Kind::add(d[tall ? i : g][p], a[i], b);
          }
      }
      gc_sums<float, C> to;
      bool ordinary = true;
#pragma unroll
      for (int p = 0; p < parts; ++p) {
        float v[4][2];
#pragma unroll
        for (int j = 0; j < 8; ++j) v[j / 2][j % 2] = d[j / 4][p][j % 4];
        gc_transpose_quad(v, t);
#pragma unroll
        for (int j = 0; j < 8; ++j)
          if (8 * p + j < C) {
            to.at[8 * p + j] = v[j / 2][j % 2];
            ordinary &= gc_ordinary(v[j / 2][j % 2]);
          }
      }
      // A split of infinity is none, and the largest numbers become infinite. The warp stays
      // together: the next product needs all of it.
      if (__all_sync(0xffffffffu, ordinary)) return to;
    }
  }
  if constexpr (P > 0)
    return gc_multiply<K, C, P, k_stride, stride>(rows + gc_row(), w + y * P);
  else
    return gc_multiply_stored<Kind, K, M, C, k_stride, m_stride, stride, false>(rows + gc_row(), w,
                                                                                y * C);
}

// gc_add_outer by tensor cores, for a block of so many threads. A lane's terms are rows: a quarter
// of the tile's.
template <class Kind, int K, int M, int stride, int threads, int n>
__device__ __noinline__ void gc_add_outer_warps(double* to, gc_factors<float, n> of, int rows) {
  if constexpr (gc_has_warps<Kind, stride>()) {
    if (gc_whole_warps<stride - 1>()) {
      constexpr int slots = Kind::slots, quarter = (stride - 1) / 4;
      constexpr int down = (K + 15) / 16, across = (M + 7) / 8, warps = threads / 32;
      constexpr int wide = down * ((across + 3) / 4) >= warps && across >= 4   ? 4
                           : down * ((across + 1) / 2) >= warps && across >= 2 ? 2
                                                                               : 1;
      constexpr int strips = (across + wide - 1) / wide, jobs = down * strips;
      const int lane = gc_thread() % 32, q = lane / 4, t = lane % 4, many = gc_threads() / 32;
      // Whether an element is there, which most shapes need not ask.
      auto there = [&](int k, int m) {
        return (K % 16 == 0 || k < K) && (M % (8 * wide) == 0 || m < M);
      };
      for (int begin = 0; begin < jobs; begin += many) {
        const int mine = begin + gc_thread() / 32, job = gc_feature(mine, jobs);
        const int k0 = job / strips * 16 + q, m0 = job % strips * wide * 8;
        float d[wide][4] = {};
#pragma unroll 1
        for (int pair = 0; pair < n; ++pair) {
          const float *const a = of.a[pair], *const b = of.b[pair];
#pragma unroll
          for (int s0 = 0; s0 < quarter; s0 += slots) {
            const int row = t * quarter + s0;
            float x[2][slots];
#pragma unroll
            for (int u = 0; u < 2; ++u)
#pragma unroll
              for (int s = 0; s < slots; ++s)
                x[u][s] = row + s < rows ? a[gc_feature(k0 + 8 * u, K) * stride + row + s] : 0;
            const typename Kind::Left left = Kind::left(x);
#pragma unroll
            for (int p = 0; p < wide; ++p) {
              float z[slots];
#pragma unroll
              for (int s = 0; s < slots; ++s)
                z[s] = row + s < rows ? b[gc_feature(m0 + 8 * p + q, M) * stride + row + s] : 0;
              Kind::add(d[p], left, Kind::right(z));
            }
          }
        }
        const bool busy = GC_KNOWN(jobs % warps == 0, false) || mine < jobs;
        bool ordinary = true;
#pragma unroll
        for (int p = 0; p < wide; ++p)
#pragma unroll
          for (int i = 0; i < 4; ++i) ordinary &= gc_ordinary(d[p][i]);
        if (!__all_sync(0xffffffffu, ordinary)) {
#pragma unroll 1
          for (int e = 0; e < 4 * wide; ++e) {
            const int k = k0 + e % 4 / 2 * 8, m = m0 + 8 * (e / 4) + 2 * t + e % 2;
            if (!busy || !there(k, m)) continue;
            float sum = 0;
#pragma unroll 1
            for (int pair = 0; pair < n; ++pair)
#pragma unroll 1
              for (int r = 0; r < rows; ++r)
                sum = gc_fma(of.a[pair][k * stride + r], of.b[pair][m * stride + r], sum);
            gc_set_sum(to + k * M + m, gc_sum_at(to + k * M + m) + sum);
          }
        } else {
          double before[wide][4];
#pragma unroll
          for (int p = 0; p < wide; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int k = k0 + i / 2 * 8, m = m0 + 8 * p + 2 * t + i % 2;
              before[p][i] = busy && there(k, m) ? gc_sum_at(to + k * M + m) : 0;
            }
#pragma unroll
          for (int p = 0; p < wide; ++p)
#pragma unroll
            for (int i = 0; i < 4; ++i) {
              const int k = k0 + i / 2 * 8, m = m0 + 8 * p + 2 * t + i % 2;
              if (busy && there(k, m)) gc_set_sum(to + k * M + m, before[p][i] + d[p][i]);
            }
        }
      }
      return;
    }
  }
  gc_add_outer<K, M, stride, threads>(to, of, rows);
}

}  // namespace scalar
}  // namespace gradcell
