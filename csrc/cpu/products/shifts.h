// How a convolution reads an image at shifts: the arithmetic of places, along one dimension and of
// a band of the whole.
//
// An image's plane is copied with zeros around it (a margin): the zeros before a row are those
// behind the row above, so a row takes `pitch` places and rows lie one behind the other. A result
// at place p then reads, for a kernel's element, the copy at p plus a number: its shift. Where
// windows move in steps of several elements, the copy has a plane for each remainder (phase) of the
// step.
#pragma once

#include <vector>

#include "ops/combining/convolution.h"

namespace gradcell::cpu {

/// Along one dimension.
struct ShiftAxis {
  struct Tap {
    int64_t kernel;        ///< which element of the kernel
    int64_t phase, shift;  ///< what it reads: a place in `phases`, and how far from the result
  };
  /// Results first, first + step, ...: `count` of them.
  struct Class {
    int64_t first, count;
    std::vector<Tap> taps;
  };

  int64_t source;               ///< elements of the image
  int64_t stride;               ///< the step that windows move in
  int64_t step;                 ///< between the results of a class
  std::vector<int64_t> phases;  ///< remainders of the stride that are read
  int64_t width = 0, count = 0;
  int64_t low = 0, high = 0;  ///< the least and largest shift
  int64_t pitch = 0;
  std::vector<Class> classes;

  /// Of results that read x (forwards), or of gradients by x, that read y.
  ShiftAxis(const WindowAxis& a, bool forwards);

  /// How many elements of the image have that remainder.
  int64_t elements(int64_t phase) const {
    return source > phase ? (source - phase + stride - 1) / stride : 0;
  }
  /// Zeros before the plane's first element.
  int64_t before() const { return low < 0 ? -low : 0; }
};

/// All dimensions, and the bands that results are made in.
struct Shifts {
  std::vector<ShiftAxis> axes;
  std::vector<int64_t> stride;  ///< between places of the copy, along each dimension
  int64_t lead = 0;             ///< zeros before a plane's first row
  int64_t planes = 1;           ///< of a channel: one for each phase

  Shifts(const ConvolutionSizes& sizes, bool forwards);

  /// Rows of the outermost dimension that results [begin, end) read.
  int64_t rows(int64_t begin, int64_t end) const {
    return end - begin + axes[0].high - axes[0].low;
  }
  int64_t plane_size(int64_t begin, int64_t end) const {
    return (lead + rows(begin, end) * stride[0] + 63) / 16 * 16;
  }
  /// Places from the first to the last result, a multiple of 16.
  int64_t places(int64_t begin, int64_t end) const;
  size_t class_count() const;
  /// A class of results: one class of each dimension.
  std::vector<const ShiftAxis::Class*> class_of(size_t number) const;
};

/// What the kernel's elements read in a class: for each, its place in the kernel (row-major) and
/// where the copy of a channel of `plane` elements a plane is read.
struct ShiftTap {
  int64_t kernel, at;
};
std::vector<ShiftTap> taps_of(const Shifts& shifts, const ConvolutionSizes& sizes,
                              const std::vector<const ShiftAxis::Class*>& of, int64_t plane);

}  // namespace gradcell::cpu
