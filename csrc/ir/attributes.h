// Typed attributes of structured ops. A family declares a struct and lists its fields once; the
// form in the graph (numbers in one pool), their names in text, their checks and what Python may
// say follow from the list.
//
//   struct ScanAttributes {
//     int64_t axis;
//     bool exclusive, reverse;
//     static constexpr auto fields() {
//       return std::tuple{Field{"axis", AttributeKind::Axis, &ScanAttributes::axis}, ...};
//     }
//   };
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

#include "base/dims.h"

namespace gradcell {

enum class AttributeKind : uint8_t {
  Axis,  ///< of the first input (of the result, where there is none), counted from the front
  Flag,
  Size,  ///< how many places there are
  Axes,  ///< ascending
  Perm,  ///< every axis once
  Box,   ///< one number an axis
  Body,  ///< a graph, see ir/body.h
};

constexpr bool is_list(AttributeKind k) { return k >= AttributeKind::Axes; }

struct Attribute {
  const char* name;
  AttributeKind kind;
};

/// A member of an attribute struct: int64_t, bool, or a span for the kinds that are lists.
template <class Struct, class T>
struct Field {
  const char* name;
  AttributeKind kind;
  T Struct::* member;
};

/// How many numbers each list takes of a pool entry; all lists of an op are equally long.
constexpr size_t list_length(std::span<const Attribute> attributes, size_t numbers) {
  size_t lists = 0;
  for (const Attribute& a : attributes) lists += is_list(a.kind);
  return lists == 0 ? 0 : (numbers - (attributes.size() - lists)) / lists;
}

/// f(attribute, its numbers) for each attribute.
template <class F>
void for_each_attribute(std::span<const Attribute> attributes, std::span<const int64_t> numbers,
                        F f) {
  const size_t length = list_length(attributes, numbers.size());
  for (const Attribute& a : attributes) {
    const size_t n = is_list(a.kind) ? length : 1;
    f(a, numbers.first(n));
    numbers = numbers.subspan(n);
  }
}

template <class A>
inline constexpr auto kAttributes = std::apply(
    [](auto... f) { return std::array<Attribute, sizeof...(f)>{Attribute{f.name, f.kind}...}; },
    A::fields());

/// The struct of what a node holds; its spans point into it.
template <class A>
A decode(std::span<const int64_t> numbers) {
  A a{};
  size_t at = 0;
  const size_t length = list_length(kAttributes<A>, numbers.size());
  auto one = [&]<class T>(T A::* member) {
    if constexpr (std::is_same_v<T, std::span<const int64_t>>) {
      a.*member = numbers.subspan(at, length);
      at += length;
    } else {
      a.*member = static_cast<T>(numbers[at++]);
    }
  };
  std::apply([&](auto... f) { (one(f.member), ...); }, A::fields());
  return a;
}

template <class A>
Dims encode(const A& a) {
  Dims numbers;
  auto one = [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, std::span<const int64_t>>)
      numbers.insert(numbers.end(), value.begin(), value.end());
    else
      numbers.push_back(static_cast<int64_t>(value));
  };
  std::apply([&](auto... f) { (one(a.*f.member), ...); }, A::fields());
  return numbers;
}

/// Of an op that has nothing but a size; an axis.
struct SizeAttributes {
  int64_t size;
  static constexpr auto fields() {
    return std::tuple{Field{"size", AttributeKind::Size, &SizeAttributes::size}};
  }
};
struct AxisAttributes {
  int64_t axis;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", AttributeKind::Axis, &AxisAttributes::axis}};
  }
};

}  // namespace gradcell
