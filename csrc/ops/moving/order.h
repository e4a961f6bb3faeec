// The family of what the order of elements says: places, counts, membership; and functions of
// integers' bits and divisors. NaN counts as larger than any number, zeros of both signs are equal.
// Places are int32, rows along the last dimension.
#pragma once

#include "ir/spec.h"

namespace gradcell {

struct OrderAttributes {
  bool descending;
  static constexpr auto fields() {
    return std::tuple{Field{"descending", AttributeKind::Flag, &OrderAttributes::descending}};
  }
};

/// sorted: in order, of equal elements the first first. If not, in any order: a CPU's is that in
/// which selection leaves them (std::nth_element over places, as MindSpore's CPU kernel has it).
struct FirstAttributes {
  int64_t count;
  bool largest, sorted;
  static constexpr auto fields() {
    return std::tuple{Field{"count", AttributeKind::Size, &FirstAttributes::count},
                      Field{"largest", AttributeKind::Flag, &FirstAttributes::largest},
                      Field{"sorted", AttributeKind::Flag, &FirstAttributes::sorted}};
  }
};

/// What of the rows of an Order or a FirstInOrder is wanted.
struct Wanted {
  int64_t count;
  bool descending;
};
Wanted wanted_of(const Graph& g, NodeId id);

/// inner: how many dimensions stand behind the axis that it runs along; values: the elements
/// themselves, not their places.
struct RunningAttributes {
  int64_t inner;
  bool largest, values;
  static constexpr auto fields() {
    return std::tuple{Field{"inner", AttributeKind::Size, &RunningAttributes::inner},
                      Field{"largest", AttributeKind::Flag, &RunningAttributes::largest},
                      Field{"values", AttributeKind::Flag, &RunningAttributes::values}};
  }
};

/// values: the elements themselves, not their rows.
struct SegmentAttributes {
  int64_t count;
  bool largest, values;
  static constexpr auto fields() {
    return std::tuple{Field{"count", AttributeKind::Size, &SegmentAttributes::count},
                      Field{"largest", AttributeKind::Flag, &SegmentAttributes::largest},
                      Field{"values", AttributeKind::Flag, &SegmentAttributes::values}};
  }
};

struct LineAttributes {
  bool right;
  static constexpr auto fields() {
    return std::tuple{Field{"right", AttributeKind::Flag, &LineAttributes::right}};
  }
};

enum class IntegerFunction : uint8_t { And, Or, Xor, LeftShift, RightShift, Gcd, Lcm };

struct IntegersAttributes {
  int64_t function;  ///< an IntegerFunction
  static constexpr auto fields() {
    return std::tuple{Field{"function", AttributeKind::Size, &IntegersAttributes::function}};
  }
};

NodeId of_integers(Graph& g, IntegerFunction function, NodeId a, NodeId b);

/// What integers have to be for one of those ops: divisors not 0, exponents not below 0; and for
/// counts in intervals and for draws, whose conditions are not 0 where they hold.
enum class IntegerLimit : uint8_t { FloorDiv, Mod, Pow, Fmod, Edges, Weights };
inline constexpr IntegerLimit kIntegerLimits[] = {IntegerLimit::FloorDiv, IntegerLimit::Mod,
                                                  IntegerLimit::Pow,      IntegerLimit::Fmod,
                                                  IntegerLimit::Edges,    IntegerLimit::Weights};

/// rank: how many dimensions a problem has.
struct PermittedAttributes {
  int64_t limit;  ///< an IntegerLimit
  int64_t rank;
  static constexpr auto fields() {
    return std::tuple{Field{"limit", AttributeKind::Size, &PermittedAttributes::limit},
                      Field{"rank", AttributeKind::Size, &PermittedAttributes::rank}};
  }
};

inline const char* broken(IntegerLimit limit) {
  switch (limit) {
    case IntegerLimit::FloorDiv:
      return "FloorDiv: integer division by zero";
    case IntegerLimit::Mod:
      return "Mod: integer division by zero";
    case IntegerLimit::Fmod:
      return "Fmod: integer division by zero";
    case IntegerLimit::Edges:
      return "histogram: the edges must be finite and in ascending order";
    case IntegerLimit::Weights:
      return "multinomial: weights must be finite, not negative and not all zero";
    case IntegerLimit::Pow:
      break;
  }
  return "Pow: integers to negative powers are fractions: cast them to a float first";
}
template <class T>
bool permits(IntegerLimit limit, T v) {
  return limit == IntegerLimit::Pow ? v >= T(0) : v != T(0);
}
/// x, plus a 0 that fails when it is computed if an integer of x is not permitted.
NodeId permitted(Graph& g, NodeId x, IntegerLimit limit);

}  // namespace gradcell
