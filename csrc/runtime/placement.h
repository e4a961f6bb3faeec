// What is known at once of tensors with values, without a plan: writes of slices at indices, draws
// by weights, places of what is not zero, arithmetic on the bits and divisors of integers.
#pragma once

#include "runtime/trace.h"

namespace gradcell {

/// Writes slices of x along `count` axes from `axis` on, taken as one, at places [m] in their
/// order: `values`, in x's dtype, broadcasts to them. False, and nothing is written, where x is a
/// view of other elements or the values lie in another way than in rows. Throws Index.
bool write_slices(const TensorPtr& x, int64_t axis, int64_t count, const Array& places,
                  const Array& values);

/// x with values[.., i, ..] at index[.., i, ..] along an axis; of several for one place the last
/// stays. index and values have one shape, x's but along the axis. Throws Index.
Array with_elements(const Array& x, int64_t axis, const Array& index, const Array& values);

/// For each row of weights [rows, n] and each of its numbers u [rows, k] in [0, 1) the first place
/// up to which the weights sum to more than u of their whole; int32 [rows, k].
Array drawn_by_weights(const Array& weights, const Array& u);

/// The coordinates of the elements that are not zero, in order: int64 [count, rank].
Array places_not_zero(const Array& x);

/// A function of two tensors of integers, of one dtype and shape (or one has one element): "and",
/// "or", "xor", "left_shift", "right_shift", "gcd" or "lcm".
Array of_integers(const std::string& function, const Array& a, const Array& b);

}  // namespace gradcell
