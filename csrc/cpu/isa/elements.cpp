// Loops over whole tensors that look at one element at a time: conversions, logic, indices, copies,
// bits.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "cpu/isa/conversion.h"
#include "cpu/isa/whole.h"
#include "ir/op_info.h"
#include "math/scalar.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace gradcell::cpu::GRADCELL_ISA {

namespace {

// Conversions -------------------------------------------------------------------------------------

/// As tiles have it: a bool is 1 where its byte is not 0, and narrow integers wrap.
template <bool from_bool, bool to_bool, class S, class D>
void convert_all(const S* x, D* y, size_t n) {
  using C = std::conditional_t<std::is_integral_v<D> && sizeof(D) < 4, int32_t, D>;
  for (size_t i = 0; i < n; ++i) {
    if constexpr (from_bool || to_bool)
      y[i] = static_cast<D>(x[i] != S(0));
    else
      y[i] = static_cast<D>(converted<C>(x[i]));
  }
}

#if defined(__AVX512F__)
/// Where the processor's conversion gives INT_MIN for all that is out of range.
template <>
void convert_all<false, false, double, int32_t>(const double* x, int32_t* y, size_t n) {
  const __m512d high = _mm512_set1_pd(0x1p31);
  const __m256i largest = _mm256_set1_epi32(INT32_MAX);
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m512d v = _mm512_loadu_pd(x + i);
    __m256i r = _mm512_maskz_cvttpd_epi32(_mm512_cmp_pd_mask(v, v, _CMP_ORD_Q), v);
    r = _mm256_mask_mov_epi32(r, _mm512_cmp_pd_mask(v, high, _CMP_GE_OQ), largest);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), r);
  }
  for (; i < n; ++i) y[i] = converted<int32_t>(x[i]);
}
#endif

/// Whether it makes a difference to D that S is not signed.
template <class S, class D>
constexpr bool kSignOfSource =
    std::is_unsigned_v<S> && (std::is_floating_point_v<D> || sizeof(D) > sizeof(S));

}  // namespace

void convert(DType from, DType to, const void* x, void* y, size_t n) {
  const bool from_bool = from == DType::Bool, to_bool = to == DType::Bool;
  if (to_bool) to = DType::Int8;
  if (from_bool || to_bool) from = as_signed(from_bool ? DType::UInt8 : from);
  to = as_signed(to);  // the same bits: floats become uint32 by way of int64 (ops/identity.cpp)
  if (!is_floating(to) && item_size(to) <= item_size(from)) from = as_signed(from);
  by_type(from, [&]<class S>() {
    by_type(to, [&]<class D>() {
      auto* a = static_cast<const S*>(x);
      auto* b = static_cast<D*>(y);
      if constexpr (std::is_same_v<S, int8_t> && !std::is_unsigned_v<D>)
        if (from_bool) return convert_all<true, false>(a, b, n);
      if constexpr (std::is_same_v<D, int8_t> && !std::is_unsigned_v<S>)
        if (to_bool) return convert_all<false, true>(a, b, n);
      if constexpr ((!std::is_unsigned_v<S> || kSignOfSource<S, D>) && !std::is_unsigned_v<D>)
        convert_all<false, false>(a, b, n);
    });
  });
}

namespace {

// The rows of bools, on their bytes. (The other rows' texts are not looked at.)
template <class T>
void logical_rows(Op op, const T* p, const T* q, T* y, size_t n) {
  switch (op) {
#define UNARY(Name, fn, cls, cost, forward, adjoint)               \
  case Op::Name:                                                   \
    if constexpr (OpClass::cls == OpClass::Bool && sizeof(T) == 1) \
      for (size_t i = 0; i < n; ++i) {                             \
        const T x = p[i];                                          \
        y[i] = forward;                                            \
      }                                                            \
    return;
#define BINARY(Name, fn, cls, cost, forward, da, db)               \
  case Op::Name:                                                   \
    if constexpr (OpClass::cls == OpClass::Bool && sizeof(T) == 1) \
      for (size_t i = 0; i < n; ++i) {                             \
        const T a = p[i], b = q[i];                                \
        y[i] = forward;                                            \
      }                                                            \
    return;
#define COMPARE(...)
#define PREDICATE(...)
#include "ir/rows.h"
    default:
      return;
  }
}

}  // namespace

void logical(Op op, const uint8_t* a, const uint8_t* b, uint8_t* y, size_t n) {
  logical_rows(op, a, b, y, n);
}

namespace {

// Indices -----------------------------------------------------------------------------------------

/// Which those are nobody foretells: there is no branch.
template <class I>
int64_t select_from(const I* x, size_t first, size_t n, int64_t size, int64_t low, int64_t count,
                    int64_t found_so_far, int32_t* found, int32_t* place) {
  int64_t k = found_so_far;
  bool bad = false;
  for (size_t i = first; i < n; ++i) {
    const int64_t at = x[i] < 0 ? static_cast<int64_t>(x[i]) + size : static_cast<int64_t>(x[i]);
    bad |= static_cast<uint64_t>(at) >= static_cast<uint64_t>(size);
    found[k] = low_bits<int32_t>(i);
    place[k] = low_bits<int32_t>(at - low);
    k += static_cast<uint64_t>(at - low) < static_cast<uint64_t>(count);
  }
  return bad ? -1 : k;
}

}  // namespace

int64_t select(DType type, const void* x, size_t n, int64_t size, int64_t low, int64_t count,
               int32_t* found, int32_t* place) {
  size_t i = 0;
  int64_t k = 0;
#if defined(__AVX512F__)
  bool bad = false;
  if (type == DType::Int64) {
    const auto* p = static_cast<const int64_t*>(x);
    const __m512i all = _mm512_set1_epi64(size), from = _mm512_set1_epi64(low);
    const __m512i width = _mm512_set1_epi64(count);
    __m256i here = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (; i + 8 <= n; i += 8) {
      __m512i at = _mm512_loadu_si512(p + i);
      at = _mm512_mask_add_epi64(at, _mm512_movepi64_mask(at), at, all);
      bad |= _mm512_cmpge_epu64_mask(at, all) != 0;
      const __m512i over = _mm512_sub_epi64(at, from);
      const __mmask8 hit = _mm512_cmplt_epu64_mask(over, width);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(found + k),
                          _mm256_maskz_compress_epi32(hit, here));
      _mm256_storeu_si256(
          reinterpret_cast<__m256i*>(place + k),
          _mm256_maskz_compress_epi32(hit, _mm512_maskz_cvtepi64_epi32(0xff, over)));
      k += __builtin_popcount(hit);
      here = _mm256_add_epi32(here, _mm256_set1_epi32(8));
    }
  } else {
    const auto* p = static_cast<const int32_t*>(x);
    const __m512i all = _mm512_set1_epi32(narrow<int32_t>(size));
    const __m512i from = _mm512_set1_epi32(narrow<int32_t>(low));
    const __m512i width = _mm512_set1_epi32(narrow<int32_t>(count));
    __m512i here = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (; i + 16 <= n; i += 16) {
      __m512i at = _mm512_loadu_si512(p + i);
      at = _mm512_mask_add_epi32(at, _mm512_movepi32_mask(at), at, all);
      bad |= _mm512_cmpge_epu32_mask(at, all) != 0;
      const __m512i over = _mm512_sub_epi32(at, from);
      const __mmask16 hit = _mm512_cmplt_epu32_mask(over, width);
      _mm512_storeu_si512(found + k, _mm512_maskz_compress_epi32(hit, here));
      _mm512_storeu_si512(place + k, _mm512_maskz_compress_epi32(hit, over));
      k += __builtin_popcount(hit);
      here = _mm512_add_epi32(here, _mm512_set1_epi32(16));
    }
  }
  if (bad) return -1;
#endif
  if (type == DType::Int64)
    return select_from(static_cast<const int64_t*>(x), i, n, size, low, count, k, found, place);
  return select_from(static_cast<const int32_t*>(x), i, n, size, low, count, k, found, place);
}

namespace {

// Copies ------------------------------------------------------------------------------------------

struct Pair {
  uint64_t part[2];
};

/// A step that the compiler knows becomes vectors.
template <class T>
void copy_steps(const T* x, ptrdiff_t step, T* y, size_t n) {
  auto by = [&](auto known) {
    for (size_t i = 0; i < n; ++i) y[i] = x[static_cast<ptrdiff_t>(i) * known];
  };
  switch (step) {
    case -1:
      return by(std::integral_constant<ptrdiff_t, -1>());
    case 2:
      return by(std::integral_constant<ptrdiff_t, 2>());
    case 4:
      return by(std::integral_constant<ptrdiff_t, 4>());
    default:
      return by(step);
  }
}

}  // namespace

void copy_apart(size_t item, const void* x, ptrdiff_t step, void* y, size_t n) {
  auto as = [&]<class T>() { copy_steps(static_cast<const T*>(x), step, static_cast<T*>(y), n); };
  switch (item) {
    case 1:
      return as.template operator()<uint8_t>();
    case 2:
      return as.template operator()<uint16_t>();
    case 4:
      return as.template operator()<uint32_t>();
    case 8:
      return as.template operator()<uint64_t>();
    default:
      return as.template operator()<Pair>();
  }
}

namespace {

// Bits --------------------------------------------------------------------------------------------

template <Bits what, class T>
inline T of_bits(T a, T b) {
  using U = std::make_unsigned_t<T>;
  constexpr U kBits = 8 * sizeof(T);
  const U by = static_cast<U>(b), within = by < kBits ? by : static_cast<U>(kBits - 1);
  if constexpr (what == Bits::And)
    return static_cast<T>(a & b);
  else if constexpr (what == Bits::Or)
    return static_cast<T>(a | b);
  else if constexpr (what == Bits::Xor)
    return static_cast<T>(a ^ b);
  else if constexpr (what == Bits::LeftShift)
    return by < kBits ? static_cast<T>(static_cast<U>(a) << within) : T(0);
  else if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> within);
  else
    return by < kBits ? static_cast<T>(a >> within) : T(0);
}

constexpr bool shifts(Bits what) { return what == Bits::LeftShift || what == Bits::RightShift; }

template <Bits what, class T>
void bits_of(const T* a, const T* b, bool many_b, T* y, size_t n) {
  if constexpr (shifts(what))
    if (!many_b) {
      for (size_t i = 0; i < n; ++i) y[i] = of_bits<what>(a[i], *b);
      return;
    }
  for (size_t i = 0; i < n; ++i) y[i] = of_bits<what>(a[i], b[i]);
}

/// All but shifts see bytes.
void run_bits(Bits what, DType type, const void* a, const void* b, bool many_b, void* y, size_t n) {
  auto run = [&]<Bits which, class T>(size_t count) {
    bits_of<which>(static_cast<const T*>(a), static_cast<const T*>(b), many_b, static_cast<T*>(y),
                   count);
  };
  const size_t bytes = n * item_size(type);
  if (what == Bits::And) return run.template operator()<Bits::And, uint8_t>(bytes);
  if (what == Bits::Or) return run.template operator()<Bits::Or, uint8_t>(bytes);
  if (what == Bits::Xor) return run.template operator()<Bits::Xor, uint8_t>(bytes);
  by_type(what == Bits::LeftShift ? as_signed(type) : type, [&]<class T>() {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (what == Bits::LeftShift) return run.template operator()<Bits::LeftShift, T>(n);
      run.template operator()<Bits::RightShift, T>(n);
    }
  });
}

/// A number over and over.
struct Repeated {
  static constexpr size_t kBytes = 1024;
  alignas(64) std::byte bytes[kBytes];
  Repeated(const void* one, size_t item) {
    std::memcpy(bytes, one, item);
    for (size_t k = item; k < kBytes; k *= 2) std::memcpy(bytes + k, bytes, k);
  }
};

}  // namespace

void bits(Bits what, DType type, const void* a, bool many_a, const void* b, bool many_b, void* y,
          size_t n) {
  if (n == 0) return;  // and nothing to repeat
  const size_t item = item_size(type);
  const bool repeats_b = !many_b && !shifts(what);
  if (many_a && !repeats_b) return run_bits(what, type, a, b, many_b, y, n);
  const Repeated of_a(a, item), of_b(b, item);
  constexpr size_t kBytes = Repeated::kBytes;
  for (size_t at = 0; at < n * item; at += kBytes) {
    auto part = [&](const void* x, bool many, const Repeated& repeated) {
      return many ? static_cast<const std::byte*>(x) + at : repeated.bytes;
    };
    run_bits(what, type, part(a, many_a, of_a), repeats_b || many_b ? part(b, many_b, of_b) : b,
             repeats_b || many_b, static_cast<std::byte*>(y) + at,
             std::min(kBytes, n * item - at) / item);
  }
}

namespace {

template <class I>
bool places_of(const I* at, size_t n, int64_t size, int64_t* places) {
  int64_t outside = 0;
  for (size_t i = 0; i < n; ++i) {
    const int64_t given = at[i], p = given + (given < 0 ? size : 0);
    outside |= p | (size - 1 - p);  // below 0 where one of them is
    places[i] = p;
  }
  return outside >= 0;
}

}  // namespace

bool places(DType type, const void* at, size_t n, int64_t size, int64_t* to) {
  return type == DType::Int32 ? places_of(static_cast<const int32_t*>(at), n, size, to)
                              : places_of(static_cast<const int64_t*>(at), n, size, to);
}

}  // namespace gradcell::cpu::GRADCELL_ISA
