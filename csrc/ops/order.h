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

/// sorted: in order, of equal elements the first first. If not, in the order in which selection
/// leaves them (std::nth_element over places, as MindSpore's CPU kernel has it).
struct FirstAttributes {
  int64_t count;
  bool largest, sorted;
  static constexpr auto fields() {
    return std::tuple{Field{"count", AttributeKind::Size, &FirstAttributes::count},
                      Field{"largest", AttributeKind::Flag, &FirstAttributes::largest},
                      Field{"sorted", AttributeKind::Flag, &FirstAttributes::sorted}};
  }
};

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

struct SegmentAttributes {
  int64_t count;
  bool largest;
  static constexpr auto fields() {
    return std::tuple{Field{"count", AttributeKind::Size, &SegmentAttributes::count},
                      Field{"largest", AttributeKind::Flag, &SegmentAttributes::largest}};
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

}  // namespace gradcell
