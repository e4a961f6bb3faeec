// What is known at once of tensors with values, without a plan: writes of slices at indices, places
// of what is not zero.
#pragma once

#include <optional>
#include <span>

#include "runtime/trace.h"

namespace gradcell {

/// Writes slices of x along `count` axes from `axis` on, taken as one, at places [m] in their
/// order: `values`, in x's dtype, broadcasts to them. False, and nothing is written, where x is a
/// view of other elements or the values lie in another way than in rows. Throws Index.
bool write_slices(const TensorPtr& x, int64_t axis, int64_t count, const Array& places,
                  const Array& values);

/// One index over axes of these sizes taken as one, int64, of indices along each, which may count
/// from the end. None, where they are not integers of one shape in the host's memory. Throws Index.
std::optional<Array> joined_index(std::span<const Array> indices, std::span<const int64_t> sizes);

/// The elements of x at index[.., i, ..] along an axis, in index's shape, which is x's but along
/// the axis. Throws Index.
Array elements_along(const Array& x, int64_t axis, const Array& index);

/// x with values[.., i, ..] at index[.., i, ..] along an axis; of several for one place the last
/// stays, or all are added to what is there. index and values have one shape, x's but along the
/// axis. Throws Index.
Array with_elements(const Array& x, int64_t axis, const Array& index, const Array& values,
                    bool added);

/// x with slices of values added at places [m] along an axis, in their order. Throws Index.
Array with_slices_added(const Array& x, int64_t axis, const Array& places, const Array& values);

/// The coordinates of the elements that are not zero, in order: int64 [count, rank].
Array places_not_zero(const Array& x);

/// The coordinates, rows and columns, of a matrix's elements on and below (or above) its offset-th
/// diagonal, row by row: int64 [2, count].
Array places_in_triangle(int64_t rows, int64_t columns, int64_t offset, bool below);

}  // namespace gradcell
