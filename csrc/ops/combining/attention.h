// The family of attention. Scores are s[m, n] = scale q[m] . k[n] + mask[m, n] of queries m and
// keys n, or `fill` where a mask of bools hides; where they are -inf, as for keys that a query does
// not see, exp(s) is 0. Its ops are
//
//   AttentionLogSum   l[m] = log sum_n exp(s[m, n])
//   Attention         y[m] = sum_n exp(s[m, n] - l[m]) z[m, n] v[n]
//   AttentionRows     y[m] = sum_n w[m, n] c[n]
//   AttentionColumns  y[n] = sum_m w[m, n] c[m]
//   with              w[m, n] = exp(s[m, n] - l[m]) (z[m, n] prod_i (a_i[m] . b_i[n]) - d[m]),
//
// where z is what dropout multiplies with (1 without it), and l, d, a_i and b_i are inputs like any
// other. A query that sees no key has y = 0, but NaN where a softmax was written: then l is [m, 2],
// the largest score, a constant to derivatives, and the logarithm of the sum of exp(s - that), so
// that large scores, such as numbers that hide, lose nothing. What comes of a derivative by scores
// is 0 where a bool hides. Every derivative of such a sum is made of such sums, with one factor
// (a_i, b_i) more at most: at no order is anything of the scores' size in memory, but for the
// derivative by the mask, which has that size.
#pragma once

#include <limits>

#include "ir/spec.h"

namespace gradcell {

struct AttentionAttributes {
  bool masked, dropped, shifted;  ///< which of the inputs that may lack are there: mask, state, d
  int64_t keep;                   ///< the bits of the double: with which probability z is not 0
  int64_t period;                 ///< heads, after which the random numbers come again
  int64_t behind, ahead;          ///< query m sees keys m - behind, ..., m + ahead
  bool
      inside;  ///< tensors are [..., rows, heads, features] instead of [..., heads, rows, features]
  bool written;         ///< it stands for products and a softmax, exp(x - max) / sum, of the user's
  bool of_scores;       ///< w is 0 where a mask of bools hides, whatever `fill` is
  int64_t scale, fill;  ///< the bits of the doubles
  static constexpr auto fields() {
    using A = AttentionAttributes;
    return std::tuple{Field{"masked", AttributeKind::Flag, &A::masked},
                      Field{"dropped", AttributeKind::Flag, &A::dropped},
                      Field{"shifted", AttributeKind::Flag, &A::shifted},
                      Field{"keep", AttributeKind::Size, &A::keep},
                      Field{"period", AttributeKind::Size, &A::period},
                      Field{"behind", AttributeKind::Size, &A::behind},
                      Field{"ahead", AttributeKind::Size, &A::ahead},
                      Field{"inside", AttributeKind::Flag, &A::inside},
                      Field{"written", AttributeKind::Flag, &A::written},
                      Field{"of_scores", AttributeKind::Flag, &A::of_scores},
                      Field{"scale", AttributeKind::Size, &A::scale},
                      Field{"fill", AttributeKind::Size, &A::fill}};
  }
};

/// Which inputs of a node are what; -1: there is none. Queries and keys are the first two, the
/// factors a_1, b_1, a_2, b_2, ... the last.
struct AttentionInputs {
  int c = -1, log_sum = -1, mask = -1, state = -1, shift = -1;
  int factors = 0;
};
AttentionInputs attention_inputs(Op op, const AttentionAttributes& a);
/// Whether the results of a sum belong to keys, not to queries.
bool attention_by_keys(Op op);

/// A tensor's dimensions as [..., heads, rows, features]; and back. A mask's are so anyway.
Dims heads_outside(const Dims& dims, bool inside);

}  // namespace gradcell
