// Elementwise loops for every row of ops.def, conversions, and the reductions of tiles.
#include <cmath>
#include <cstring>
#include <type_traits>

#include "cpu/isa/conversion.h"
#include "cpu/isa/row_values.h"
#include "cpu/kernels/combine.h"
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu::GRADCELL_ISA {

Loop formula(Compute type, Formula which);  // formulas.cpp

namespace {

#define IVDEP _Pragma("GCC ivdep")

// One functor a row ---------------------------------------------------------------------------

template <OpClass cls, class T>
inline constexpr bool kAllowed =
    cls == OpClass::Number || (cls == OpClass::Float) == std::is_floating_point_v<T>;

#define FUNCTOR(Name, parameters, forward)                 \
  struct Name##Row {                                       \
    static constexpr bool kComposed = calls(#forward) > 1; \
    template <class V>                                     \
    GRADCELL_INLINE static auto call parameters {          \
      [[maybe_unused]] constexpr ToValue<V> T{};           \
      return forward;                                      \
    }                                                      \
  };
#define UNARY(Name, fn, cls, cost, forward, adjoint) FUNCTOR(Name, (const V& x), forward)
#define BINARY(Name, fn, cls, cost, forward, da, db) \
  FUNCTOR(Name, (const V& a, const V& b), forward)
#define TERNARY(Name, fn, forward, da, db) \
  FUNCTOR(Name, (const MaskOf<V>& c, const V& a, const V& b), forward)
#include "ir/rows.h"
#undef FUNCTOR

// Loops ---------------------------------------------------------------------------------------

/// Tiles have a multiple of kLanes rows: the loops over them need no tail.
inline void assume_whole(ptrdiff_t rows) {
  if (rows % kLanes != 0 || rows <= 0) __builtin_unreachable();
}

/// Whether an operand is one number for all rows. Either: that is known as the loop runs, and there
/// is one loop for both.
enum class Uniform { No, Yes, Either };

template <class V, class X>
struct EitherOperand {
  X spread_out[static_cast<size_t>(step<V>())];
  const X* from;
  ptrdiff_t mask;  // of a row's number: none of its bits if there is one number
  EitherOperand(const X* p, bool uniform) : from(p), mask(uniform ? 0 : -1) {
    if (!uniform) return;
    for (X& x : spread_out) x = *p;
    from = spread_out;
  }
  EitherOperand(const EitherOperand&) = delete;
  GRADCELL_INLINE V operator()(ptrdiff_t i, ptrdiff_t n) const {
    return read<V>(from + (i & mask), n - i);
  }
};

/// What gives V at row i of n.
template <Uniform uniform, class V, class X>
GRADCELL_INLINE auto operand(const X* p, [[maybe_unused]] bool is_uniform) {
  if constexpr (uniform == Uniform::Either)
    return EitherOperand<V, X>(p, is_uniform);
  else if constexpr (uniform == Uniform::Yes)
    return [u = spread<V>(*p)](ptrdiff_t, ptrdiff_t) -> const V& { return u; };
  else
    return [p](ptrdiff_t i, ptrdiff_t n) { return read<V>(p + i, n - i); };
}

/// d = Row(operands), in steps of V over numbers T. The first of three operands is a bool. Bit k of
/// `set` says whether operand k is uniform.
template <class Row, class V, class T, class R, Uniform... uniform>
GRADCELL_INLINE void run_loop(const LoopArgs& args, unsigned set) {
  const LoopArgs p = args;  // which no store changes
  [&]<size_t... k>(std::index_sequence<k...>) {
    ptrdiff_t n = p.rows, features = p.features;
    if (p.pitch == n && ((p.s[k] == (set >> k & 1 ? 0 : n)) && ...)) n *= features, features = 1;
    assume_whole(n);
    for (ptrdiff_t f = 0; f < features; ++f) {
      R* z = static_cast<R*>(p.d) + f * p.pitch;
      const auto run = [=](const auto&... x) {
        IVDEP for (ptrdiff_t i = 0; i < n; i += step<V>())
            write(z + i, Row::template call<V>(x(i, n)...));
      };
      constexpr auto is_bool = [](size_t place) { return sizeof...(k) == 3 && place == 0; };
      run(operand<uniform, std::conditional_t<is_bool(k), MaskOf<V>, V>>(
          static_cast<const std::conditional_t<is_bool(k), int32_t, T>*>(p.p[k]) + f * p.s[k],
          set >> k & 1)...);
    }
  }(std::make_index_sequence<sizeof...(uniform)>());
}

template <class Row, class V, class T, class R, bool... uniform>
void loop(const LoopArgs& p) {
  unsigned set = 0, bit = 1;
  ((set |= uniform ? bit : 0, bit <<= 1), ...);
  run_loop<Row, V, T, R, (uniform ? Uniform::Yes : Uniform::No)...>(p, set);
}

template <class Row, class V, class T, class R, size_t... k>
[[gnu::noinline, gnu::noclone]] void either_loop(const LoopArgs& p, unsigned set) {
  run_loop<Row, V, T, R, (static_cast<void>(k), Uniform::Either)...>(p, set);
}

/// One loop for all sets of uniform operands, at the level of machines from before 2013, where half
/// the text serves. (Elsewhere what is made of one number is made once, such as the logarithm of a
/// base. Loops over integers are the compiler's, which makes vectors of what is known to be uniform
/// or not.)
template <class T>
constexpr bool kOneLoop = std::is_floating_point_v<T> && !math::kHasFma;

/// The loop for a set of uniform operands.
template <size_t set, class Row, class V, class T, class R, size_t... k>
constexpr Loop loop_for(std::index_sequence<k...>) {
  if constexpr (kOneLoop<T> && sizeof...(k) > 1)
    return [](const LoopArgs& p) { either_loop<Row, V, T, R, k...>(p, set); };
  else
    return &loop<Row, V, T, R, bool(set >> k & 1)...>;
}

/// The loop for a set of uniform operands; null if that is all of them.
template <class Row, class T, class R, size_t... k>
Loop pick(unsigned uniform, std::index_sequence<k...>) {
  using V = typename StepOf<T, Row::kComposed>::type;
  return [&]<size_t... set>(std::index_sequence<set...>) {
    static constexpr Loop kLoops[] = {loop_for<set, Row, V, T, R>(std::index_sequence<k...>())...};
    return uniform < sizeof...(set) ? kLoops[uniform] : nullptr;
  }(std::make_index_sequence<(1 << sizeof...(k)) - 1>());
}

template <class T>
Loop find(Op op, unsigned uniform) {
  constexpr std::index_sequence<0> one;
  constexpr std::index_sequence<0, 1> two;
  constexpr std::index_sequence<0, 1, 2> three;
  switch (op) {
#define LOOP(Name, R, cls, operands)                                                          \
  case Op::Name:                                                                              \
    if constexpr (kAllowed<OpClass::cls, T>) return pick<Name##Row, T, R>(uniform, operands); \
    return nullptr;
#define UNARY(Name, fn, cls, cost, forward, adjoint) LOOP(Name, T, cls, one)
#define BINARY(Name, fn, cls, cost, forward, da, db) LOOP(Name, T, cls, two)
#define COMPARE(Name, fn, forward) LOOP(Name, int32_t, Number, two)
#define PREDICATE(Name, fn, forward) LOOP(Name, int32_t, Number, one)
#define TERNARY(Name, fn, forward, da, db) LOOP(Name, T, Number, three)
#include "ir/rows.h"
#undef LOOP
    default:
      return nullptr;
  }
}

Loop elementwise(Op op, Compute type, unsigned uniform) {
  return by_compute(type, [&](auto t) { return find<decltype(t)>(op, uniform); });
}

// Choices ----------------------------------------------------------------------------------------

template <class Comparison>
struct ChoiceRow {
  template <class V>
  GRADCELL_INLINE static V call(const V& a, const V& b, const V& c, const V& d) {
    return where(Comparison::template call<V>(a, b), c, d);
  }
};

/// `uniform` of all operands but the first, which is not.
template <class Comparison, class T>
Loop pick_choice(unsigned uniform) {
  using V = typename StepOf<T, false>::type;
  return [&]<size_t... set>(std::index_sequence<set...>) {
    static constexpr Loop kLoops[] = {
        loop_for<2 * set, ChoiceRow<Comparison>, V, T, T>(std::make_index_sequence<4>())...};
    return kLoops[uniform];
  }(std::make_index_sequence<8>());
}

template <class T>
Loop find_choice(Op op, unsigned uniform) {
  switch (op) {
#define COMPARE(Name, fn, forward) \
  case Op::Name:                   \
    return pick_choice<Name##Row, T>(uniform);
#include "ir/rows.h"
    default:
      return nullptr;
  }
}

Loop choose(Op op, Compute type, unsigned uniform) {
  if (uniform & 1) return nullptr;
  return type == Compute::F64   ? find_choice<double>(op, uniform >> 1)
         : type == Compute::F32 ? find_choice<float>(op, uniform >> 1)
                                : nullptr;
}

// Chains ------------------------------------------------------------------------------------------

template <Link link, class T>
inline T linked(T t, T b) {
  if constexpr (link == Link::Add)
    return t + b;
  else if constexpr (link == Link::Sub)
    return t - b;
  else if constexpr (link == Link::ReverseSub)
    return b - t;
  else
    return t * b;
}

template <class T, bool uniform_end, Link l0, Link l1, Link... more>
void chain_loop(const LoopArgs& p) {
  auto at = [&](int k, ptrdiff_t f) { return static_cast<const T*>(p.p[k]) + f * p.s[k]; };
  ptrdiff_t n = p.rows, features = p.features;
  bool flat = p.pitch == n && p.s[0] == n && p.s[1] == n &&
              (uniform_end ? p.s[2] == 0 : p.s[2] == n) && (sizeof...(more) == 0 || p.s[3] == n);
  if (flat) n *= features, features = 1;
  assume_whole(n);
  for (ptrdiff_t f = 0; f < features; ++f) {
    const T *a = at(0, f), *b = at(1, f), *c = at(2, f);
    T* z = static_cast<T*>(p.d) + f * p.pitch;
    const T u = uniform_end ? *c : T();
    if constexpr (sizeof...(more) == 0) {
      IVDEP for (ptrdiff_t i = 0; i < n; ++i) z[i] =
          linked<l1>(linked<l0>(a[i], b[i]), uniform_end ? u : c[i]);
    } else {
      const T* e = at(3, f);
      IVDEP for (ptrdiff_t i = 0; i < n; ++i) z[i] =
          (linked<more>(linked<l1>(linked<l0>(a[i], b[i]), c[i]), e[i]), ...);
    }
  }
}

/// Calls f with the link as a compile-time value. The first of a chain is not reversed.
template <bool first = false, class F>
Loop with_link(Link link, F f) {
  switch (link) {
    case Link::Add:
      return f(std::integral_constant<Link, Link::Add>());
    case Link::Sub:
      return f(std::integral_constant<Link, Link::Sub>());
    case Link::ReverseSub:
      if constexpr (!first) return f(std::integral_constant<Link, Link::ReverseSub>());
      return nullptr;
    default:
      return f(std::integral_constant<Link, Link::Mul>());
  }
}

template <class T>
Loop find_chain(const Link* links, int operands, bool uniform_end) {
  return with_link<true>(links[0], [&](auto l0) {
    return with_link(links[1], [&](auto l1) -> Loop {
      if (operands == 3)
        return uniform_end ? chain_loop<T, true, l0.value, l1.value>
                           : chain_loop<T, false, l0.value, l1.value>;
      return with_link(links[2], [&](auto l2) -> Loop {
        return chain_loop<T, false, l0.value, l1.value, l2.value>;
      });
    });
  });
}

Loop chain(Compute type, const Link* links, int operands, bool uniform_end) {
  return type == Compute::F64 ? find_chain<double>(links, operands, uniform_end)
                              : find_chain<float>(links, operands, uniform_end);
}

// Conversions -----------------------------------------------------------------------------------

struct ToBoolRow {
  template <class T>
  static int32_t call(T x) {
    return x != T(0);
  }
};
template <class To>
struct ToRow {
  template <class T>
  static To call(T x) {
    return converted<To>(x);
  }
};

Loop convert(Compute from, DType to) {
  return by_compute(from, [&](auto t) -> Loop {
    using T = decltype(t);
    if (to == DType::Bool) return loop<ToBoolRow, T, T, int32_t, false>;
    return by_compute(compute_type(to), [](auto r) -> Loop {
      return loop<ToRow<decltype(r)>, T, T, decltype(r), false>;
    });
  });
}

template <class Narrow>
struct WrapRow {
  template <class T>
  static T call(T x) {
    return static_cast<T>(static_cast<Narrow>(x));
  }
};

template <DType to>
void round_to(const LoopArgs& p) {
  auto* d = static_cast<float*>(p.d);
  ptrdiff_t n = p.rows;
  for (int32_t f = 0; f < p.features; ++f) {
    auto* a = static_cast<const float*>(p.p[0]) + f * p.s[0];
    if (d + f * n != a) std::memcpy(d + f * n, a, static_cast<size_t>(n) * sizeof(float));
  }
  tile_kernels().transpose.round(to, d, static_cast<size_t>(n) * static_cast<size_t>(p.features));
}

Loop narrow(DType to) {
  switch (to) {
#define GRADCELL_X(Name, ...) \
  case DType::Name:           \
    return round_to<DType::Name>;
    GRADCELL_NARROW_FLOATS(GRADCELL_X)
#undef GRADCELL_X
    case DType::Int8:
      return loop<WrapRow<int8_t>, int32_t, int32_t, int32_t, false>;
    case DType::UInt8:
      return loop<WrapRow<uint8_t>, int32_t, int32_t, int32_t, false>;
    case DType::Int16:
      return loop<WrapRow<int16_t>, int32_t, int32_t, int32_t, false>;
    case DType::UInt16:
      return loop<WrapRow<uint16_t>, int32_t, int32_t, int32_t, false>;
    case DType::UInt32:
      return loop<WrapRow<uint32_t>, int64_t, int64_t, int64_t, false>;
    case DType::Bool:
      return loop<ToBoolRow, int32_t, int32_t, int32_t, false>;
    default:
      return nullptr;
  }
}

// Movement --------------------------------------------------------------------------------------

template <class T, bool U>
void expand_loop(const LoopArgs& p) {
  auto* d = static_cast<T*>(p.d);
  auto* a = static_cast<const T*>(p.p[0]);
  ptrdiff_t n = p.rows;
  for (int32_t f = 0; f < p.features; ++f) {
    const T* x = a + f * p.s[0];
    T* z = d + f * p.pitch;
    const T u = U ? *x : T();
    IVDEP for (ptrdiff_t i = 0; i < n; ++i) z[i] = U ? u : x[i];
  }
}

Loop expand(Compute type, bool uniform) {
  return by_compute(type, [&](auto t) -> Loop {
    using T = decltype(t);
    return uniform ? expand_loop<T, true> : expand_loop<T, false>;
  });
}

void gather(Compute type, void* d, const void* a, ptrdiff_t pitch, const int32_t* map, int32_t n,
            int32_t rows) {
  const ptrdiff_t size = static_cast<ptrdiff_t>(compute_size(type)), block = rows * size;
  char* to = static_cast<char*>(d);
  for (int32_t f = 0; f < n; ++f, to += block) {
    const char* from = static_cast<const char*>(a) + (map ? map[f] : f) * pitch * size;
    for (ptrdiff_t at = 0; at < block; at += kLanes * 4)  // few: a call would take as long
      std::memcpy(to + at, from + at, kLanes * 4);
  }
}

void scatter(Compute type, void* d, const LoopArgs& from, bool uniform, const int32_t* map,
             int32_t n) {
  by_compute(type, [&](auto t) {
    using T = decltype(t);
    for (int32_t f = 0; f < n; ++f) {
      T* z = static_cast<T*>(d) + static_cast<ptrdiff_t>(map[f]) * from.rows;
      const T* x = static_cast<const T*>(from.p[0]) + f * from.s[0];
      if (uniform) {
        const T u = *x;
        for (int32_t i = 0; i < from.rows; ++i) z[i] = u;
      } else {
        std::memcpy(z, x, static_cast<size_t>(from.rows) * sizeof(T));
      }
    }
  });
}

// Reductions --------------------------------------------------------------------------------------

/// f.operator()<how, T>() of the type.
template <class F>
void by_reduction(Combine how, Compute type, F f) {
  by_compute(type, [&](auto t) {
    by_combine(how, [&]<Combine c>() { f.template operator()<c, decltype(t)>(); });
  });
}

/// Of equal ones the first, as the rows of the op table have it.
template <Combine how, class T>
T reduced(T a, T b) {
  if constexpr (how == Combine::Max)
    return maximum(a, b);
  else if constexpr (how == Combine::Min)
    return minimum(a, b);
  else
    return static_cast<T>(combined<how>(a, b));
}

template <class T>
using RegisterOf [[gnu::vector_size(math::kVectorBytes)]] = T;

template <class T>
RegisterOf<T> loaded(const T* from) {
  RegisterOf<T> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

/// As reduced.
template <Combine how, class V>
V taken(V a, V b) {
  return how == Combine::Max || how == Combine::Min ? combined<how>(b, a) : combined<how>(a, b);
}

/// The terms of a reduction: features of a factor.
template <class T>
struct Terms {
  const T* x;
  const int32_t* step;
  ptrdiff_t pitch;

  Terms(const Factor& of, int32_t f)
      : x(static_cast<const T*>(of.at) + of.base[f] * of.pitch), step(of.step), pitch(of.pitch) {}
  const T* term(ptrdiff_t k, ptrdiff_t row) const { return x + step[k] * pitch + row; }
  static RegisterOf<T> value(const T* term, ptrdiff_t row) { return loaded(term + row); }
  void skip(ptrdiff_t terms, ptrdiff_t rows) { step += terms, x += rows; }
};

/// Their squares. (Rounded before they are added, as those that are stored: plans agree.)
template <class T>
struct SquareTerms : Terms<T> {
  static RegisterOf<T> value(const T* term, ptrdiff_t row) {
    const RegisterOf<T> x = loaded(term + row);
    return x * x;
  }
};

/// Products of features of two factors.
template <class T>
struct ProductTerms {
  using Term = std::pair<const T*, const T*>;
  Terms<T> a, b;

  Term term(ptrdiff_t k, ptrdiff_t row) const { return {a.term(k, row), b.term(k, row)}; }
  static RegisterOf<T> value(Term t, ptrdiff_t row) {
    return loaded(t.first + row) * loaded(t.second + row);
  }
  void skip(ptrdiff_t terms, ptrdiff_t rows) { a.skip(terms, rows), b.skip(terms, rows); }
};

/// z = the terms k < n, each of `rows` rows, in as many registers at a time as there are, up to R.
template <Combine how, int R = 4, class T, class Terms>
GRADCELL_INLINE void reduce_blocks(T* z, ptrdiff_t n, ptrdiff_t rows, Terms terms,
                                   ptrdiff_t at = 0) {
  constexpr ptrdiff_t kStep = math::kVectorBytes / sizeof(T);
  for (; at + R * kStep <= rows; at += R * kStep) {
    RegisterOf<T> all[R];
    auto term = terms.term(0, at);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) all[r] = terms.value(term, r * kStep);
    for (ptrdiff_t k = 1; k < n; ++k) {
      term = terms.term(k, at);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) all[r] = taken<how>(all[r], terms.value(term, r * kStep));
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) std::memcpy(z + at + r * kStep, &all[r], sizeof all[r]);
  }
  if constexpr (R > 1)
    if (at < rows) reduce_blocks<how, R / 2>(z, n, rows, terms, at);
}

constexpr ptrdiff_t kBlockOfSum = 32;

/// Long sums are taken pairwise, block by block, which bounds the rounding error.
template <class T, class Terms>
void sum_pairwise(T* z, ptrdiff_t n, ptrdiff_t rows, const Terms& terms) {
  constexpr ptrdiff_t kStrip = 64;
  for (ptrdiff_t at = 0; at < rows; at += kStrip) {
    const ptrdiff_t width = std::min(kStrip, rows - at);
    T stack[32][kStrip];
    uint32_t filled = 0;  // bit i: stack[i] holds a sum of 2^i blocks
    auto push = [&](T* block) {
      int32_t level = 0;
      for (; filled >> level & 1; ++level) {
        IVDEP for (ptrdiff_t i = 0; i < width; ++i) block[i] += stack[level][i];
        filled &= ~(1u << level);
      }
      std::memcpy(stack[level], block, sizeof(T) * static_cast<size_t>(width));
      filled |= 1u << level;
    };
    T block[kStrip];
    for (ptrdiff_t k0 = 0; k0 < n; k0 += kBlockOfSum) {
      Terms some = terms;
      some.skip(k0, at);
      reduce_blocks<Combine::Sum>(block, std::min(kBlockOfSum, n - k0), width, some);
      push(block);
    }
    bool first = true;
    for (int32_t level = 0; level < 32; ++level) {
      if (!(filled >> level & 1)) continue;
      for (ptrdiff_t i = 0; i < width; ++i)
        z[at + i] = first ? stack[level][i] : z[at + i] + stack[level][i];
      first = false;
    }
  }
}

void feature_reduce(Combine how, Compute type, void* d, const Factor& a, const Factor* b,
                    int32_t features, int32_t n, int32_t rows) {
  by_reduction(how, type, [&]<Combine c, class T>() {
    T* z = static_cast<T*>(d);
    const auto sum = [&](const auto& terms) {
      n > kBlockOfSum ? sum_pairwise(z, n, rows, terms)
                      : reduce_blocks<Combine::Sum>(z, n, rows, terms);
    };
    for (int32_t f = 0; f < features; ++f, z += rows) {
      const Terms<T> x(a, f);
      if constexpr (c != Combine::Sum)
        reduce_blocks<c>(z, n, rows, x);
      else if (!b)
        sum(x);
      else if (b == &a)
        sum(SquareTerms<T>{x});
      else
        sum(ProductTerms<T>{x, Terms<T>(*b, f)});
    }
  });
}

/// z[lane] op= the rows of x: four independent results a lane, so chains are short, in a fixed
/// order. Lanes are taken by registers.
template <Combine how, class T>
void reduce_rows(T* z, const T* x, int32_t rows) {
  using V = RegisterOf<T>;
  constexpr int32_t kBlock = 4 * kLanes, kStep = sizeof(V) / sizeof(T);
  auto at = [](const T* from) { return loaded(from); };
  auto take = [](V a, V b) { return taken<how>(a, b); };
  auto add = [&](int32_t lane, V v) {
    v = take(at(z + lane), v);
    std::memcpy(z + lane, &v, sizeof v);
  };
  if (rows == kBlock / 2) {  // tiles of the usual heights
    for (int32_t lane = 0; lane < kLanes; lane += kStep)
      add(lane, take(at(x + lane), at(x + kLanes + lane)));
    return;
  }
  T rest[kLanes];  // of the last lanes, where they are not all there
  const int32_t whole = rows / kLanes * kLanes;
  if (whole != rows) {
    for (T& t : rest) t = identity<how, T>();
    std::memcpy(rest, x + whole, static_cast<size_t>(rows - whole) * sizeof(T));
  }
  for (int32_t lane = 0; lane < kLanes; lane += kStep) {
    V part[4];
    for (V& p : part) p = V{} + identity<how, T>();
    int32_t i = 0;
    for (; i + kBlock <= rows; i += kBlock)
      for (int32_t j = 0; j < 4; ++j) part[j] = take(part[j], at(x + i + j * kLanes + lane));
    int32_t j = 0;
    for (; i < whole; i += kLanes, ++j) part[j] = take(part[j], at(x + i + lane));
    if (whole != rows) part[j] = take(part[j], at(rest + lane));
    add(lane, take(take(part[0], part[1]), take(part[2], part[3])));
  }
}

void row_reduce(Combine how, Compute type, void* acc, const void* a, ptrdiff_t pitch,
                int32_t features, int32_t valid) {
  by_reduction(how, type, [&]<Combine c, class T>() {
    for (int32_t f = 0; f < features; ++f)
      reduce_rows<c>(static_cast<T*>(acc) + static_cast<ptrdiff_t>(f) * kLanes,
                     static_cast<const T*>(a) + f * pitch, valid);
  });
}

void row_reduce_init(Combine how, Compute type, void* acc, int32_t features) {
  by_reduction(how, type, [&]<Combine c, class T>() {
    for (int32_t i = 0; i < features * kLanes; ++i) static_cast<T*>(acc)[i] = identity<c, T>();
  });
}

void row_reduce_finish(Combine how, Compute type, const void* acc, void* out, int32_t features) {
  by_reduction(how, type, [&]<Combine c, class T>() {
    for (int32_t f = 0; f < features; ++f) {
      T lane[kLanes];
      std::memcpy(lane, static_cast<const T*>(acc) + static_cast<ptrdiff_t>(f) * kLanes,
                  sizeof lane);
      for (int half = kLanes / 2; half > 0; half /= 2)
        for (int k = 0; k < half; ++k) lane[k] = reduced<c>(lane[k], lane[k + half]);
      static_cast<T*>(out)[f] = lane[0];
    }
  });
}

void merge(Combine how, Compute type, void* to, const void* from, size_t n) {
  by_reduction(how, type, [&]<Combine c, class T>() {
    T* z = static_cast<T*>(to);
    const T* x = static_cast<const T*>(from);
    IVDEP for (size_t i = 0; i < n; ++i) z[i] = reduced<c>(z[i], x[i]);
  });
}

}  // namespace

extern const Kernels kKernels;
const Kernels kKernels = {elementwise,       choose,         chain,      formula,
                          convert,           narrow,         expand,     gather,
                          scatter,           feature_reduce, row_reduce, row_reduce_init,
                          row_reduce_finish, merge};

}  // namespace gradcell::cpu::GRADCELL_ISA
