// What a derivative needs to know of a function, and no more: truncated power series, as tables.
//
// A series is one number for each element of a basis; element 0 is the value, an element of degree
// k belongs to k-fold differentiation. The product of two series is given by a table. Derivatives
// that are not asked for have no element, and those of which only a sum is asked for share one: a
// Laplacian in d dimensions has d + 2 elements, not the 2 d + 1 that its terms would need.
#pragma once

#include <span>
#include <vector>

#include "base/narrow.h"

namespace gradcell::ad {

struct Algebra {
  struct Pair {  ///< x[a] y[b] weight, and x[b] y[a] weight where a and b differ
    int a, b;
    double weight;
  };
  std::vector<int> degree;                  ///< ascending
  std::vector<double> unit;                 ///< the derivative that an element's 1 stands for
  std::vector<std::vector<Pair>> products;  ///< what adds up to each element of a product; a <= b

  int size() const { return narrow<int>(degree.size()); }
  int order() const { return degree.back(); }
  bool univariate() const { return order() == 0 || size() < 3 || degree[2] > 1; }
};

/// Along a line: 1, t, ..., t^order. Element k is the k-th derivative over k!.
Algebra line(int order);

/// The partial derivatives of these multi-indices (how often by each variable) and all that they
/// are made of. Element i + 1 belongs to the i-th of `made`, which is filled.
Algebra partial_derivatives(std::span<const std::vector<int>> wanted,
                            std::vector<std::vector<int>>& made);

/// The sum of second derivatives by d variables: 1, the d first derivatives, half the Laplacian.
Algebra laplacian(int d);

/// The Laplacian of the Laplacian: 1, d, d (d + 1) / 2, d and 1 elements of degrees 0 to 4. The
/// third derivatives are needed in d sums only (of each variable's with the Laplacian).
Algebra biharmonic(int d);

}  // namespace gradcell::ad
