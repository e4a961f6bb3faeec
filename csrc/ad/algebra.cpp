#include "ad/algebra.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace gradcell::ad {

namespace {

/// An element of a degree that no product but that with the value makes yet.
int add_element(Algebra& a, int degree, double unit) {
  const int e = a.size();
  a.degree.push_back(degree);
  a.unit.push_back(unit);
  a.products.push_back({{0, e, 1}});
  return e;
}

void add_product(Algebra& a, int e, int x, int y, double weight) {
  a.products[e].push_back({std::min(x, y), std::max(x, y), weight});
}

using MultiIndex = std::vector<int>;

int degree_of(const MultiIndex& m) { return std::accumulate(m.begin(), m.end(), 0); }

double factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }

/// All that are nowhere above `top`.
void add_below(const MultiIndex& top, std::vector<MultiIndex>& all) {
  MultiIndex at(top.size(), 0);
  for (bool more = true; more;) {
    all.push_back(at);
    more = false;
    for (size_t k = 0; k < at.size() && !more; ++k) {
      if (at[k] < top[k])
        ++at[k], more = true;
      else
        at[k] = 0;
    }
  }
}

}  // namespace

Algebra line(int order) {
  Algebra a;
  for (int k = 0; k <= order; ++k) {
    a.degree.push_back(k);
    a.unit.push_back(factorial(k));
    a.products.emplace_back();
    for (int j = 0; 2 * j <= k; ++j) a.products[k].push_back({j, k - j, 1});
  }
  return a;
}

Algebra partial_derivatives(std::span<const MultiIndex> wanted, std::vector<MultiIndex>& made) {
  std::vector<MultiIndex> all;
  for (const MultiIndex& m : wanted) add_below(m, all);
  std::ranges::sort(all, [](const MultiIndex& x, const MultiIndex& y) {
    const int dx = degree_of(x), dy = degree_of(y);
    return dx != dy ? dx < dy : x > y;
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::map<MultiIndex, int> element;
  for (size_t i = 0; i < all.size(); ++i) element[all[i]] = narrow<int>(i);
  Algebra a;
  for (const MultiIndex& m : all) {
    a.degree.push_back(degree_of(m));
    double unit = 1;
    for (int n : m) unit *= factorial(n);
    a.unit.push_back(unit);
    a.products.emplace_back();
    std::vector<MultiIndex> below;
    add_below(m, below);
    for (const MultiIndex& x : below) {
      MultiIndex y = m;
      for (size_t k = 0; k < y.size(); ++k) y[k] -= x[k];
      const int i = element.at(x), j = element.at(y);
      if (i <= j) a.products.back().push_back({i, j, 1});
    }
    std::ranges::sort(a.products.back(), {}, &Algebra::Pair::a);
  }
  made.assign(all.begin() + (all.empty() ? 0 : 1), all.end());
  return a;
}

Algebra laplacian(int d) {
  Algebra a{{0}, {1}, {{{0, 0, 1}}}};
  for (int i = 0; i < d; ++i) add_element(a, 1, 1);
  const int sum = add_element(a, 2, 2);
  for (int i = 1; i <= d; ++i) add_product(a, sum, i, i, 1);
  return a;
}

Algebra biharmonic(int d) {
  Algebra a{{0}, {1}, {{{0, 0, 1}}}};
  std::vector<int> first(d), third(d);
  std::vector<std::vector<int>> second(d, std::vector<int>(d));
  for (int& e : first) e = add_element(a, 1, 1);
  for (int i = 0; i < d; ++i)
    for (int j = i; j < d; ++j) {
      second[i][j] = second[j][i] = add_element(a, 2, i == j ? 2 : 1);
      add_product(a, second[i][j], first[i], first[j], 1);
    }
  // With the coefficients c of third order, 3 c_iii + sum over j of c_ijj.
  for (int i = 0; i < d; ++i) {
    third[i] = add_element(a, 3, 1);
    for (int j = 0; j < d; ++j) {
      add_product(a, third[i], first[i], second[j][j], i == j ? 3 : 1);
      if (i != j) add_product(a, third[i], first[j], second[i][j], 1);
    }
  }
  // With those of fourth order, 3 c_iiii + sum over j > i of c_iijj, added up over i.
  const int sum = add_element(a, 4, 8);
  for (int i = 0; i < d; ++i) {
    add_product(a, sum, first[i], third[i], 1);
    for (int j = i; j < d; ++j) {
      add_product(a, sum, second[i][i], second[j][j], i == j ? 3 : 1);
      if (i != j) add_product(a, sum, second[i][j], second[i][j], 1);
    }
  }
  return a;
}

}  // namespace gradcell::ad
