#include "cpu/products/shifts.h"

#include <algorithm>
#include <numeric>

namespace gradcell::cpu {

namespace {

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

}  // namespace

ShiftAxis::ShiftAxis(const WindowAxis& a, bool forwards)
    : source(forwards ? a.input : a.output),
      stride(forwards ? a.stride : 1),
      step(forwards ? 1 : a.stride) {
  for (int64_t first = 0; first < step; ++first) {
    Class c{first, forwards ? a.output : std::max<int64_t>(0, ceil_div(a.input - first, step)), {}};
    for (int64_t u = 0; u < a.kernel; ++u) {
      const int64_t by = u * a.dilation - a.before;
      if (forwards) {
        const int64_t shift = floor_div(by, a.stride);
        c.taps.push_back({u, by - shift * a.stride, shift});
      } else if ((first - by) % a.stride == 0) {
        c.taps.push_back({u, 0, (first - by) / a.stride});
      }
    }
    count = std::max(count, c.count);
    if (c.count > 0) classes.push_back(std::move(c));
  }
  bool any = false;
  for (Class& c : classes) {
    // What no result of the class reads but zeros would only make the margin wider.
    std::erase_if(c.taps, [&](const Tap& t) {
      return t.shift >= elements(t.phase) || t.shift + c.count <= 0;
    });
    for (Tap& t : c.taps) {
      const auto known = std::find(phases.begin(), phases.end(), t.phase);
      const auto place = known - phases.begin();
      if (known == phases.end()) phases.push_back(t.phase);
      t.phase = place;
      low = any ? std::min(low, t.shift) : t.shift;
      high = any ? std::max(high, t.shift) : t.shift;
      any = true;
    }
  }
  width = ceil_div(source, stride);
  const int64_t behind = std::max<int64_t>(0, count - 1 + high - (width - 1));
  pitch = std::max({width + std::max(before(), behind), count, int64_t{1}});
}

Shifts::Shifts(const ConvolutionSizes& sizes, bool forwards) {
  for (const WindowAxis& a : sizes.axes) axes.emplace_back(a, forwards);
  stride.assign(axes.size(), 1);
  for (size_t k = axes.size(); k-- > 1;) {
    stride[k - 1] = stride[k] * axes[k].pitch;
    lead += axes[k].before() * stride[k];
  }
  for (const ShiftAxis& a : axes) planes *= static_cast<int64_t>(a.phases.size());
}

int64_t Shifts::places(int64_t begin, int64_t end) const {
  int64_t last = (end - begin - 1) * stride[0];
  for (size_t k = 1; k < axes.size(); ++k) last += (axes[k].count - 1) * stride[k];
  return (last + 16) / 16 * 16;
}

size_t Shifts::class_count() const {
  size_t n = 1;
  for (const ShiftAxis& a : axes) n *= a.classes.size();
  return n;
}

std::vector<const ShiftAxis::Class*> Shifts::class_of(size_t number) const {
  std::vector<const ShiftAxis::Class*> of(axes.size());
  for (size_t k = axes.size(); k-- > 0;) {
    of[k] = &axes[k].classes[number % axes[k].classes.size()];
    number /= axes[k].classes.size();
  }
  return of;
}

std::vector<ShiftTap> taps_of(const Shifts& shifts, const ConvolutionSizes& sizes,
                              const std::vector<const ShiftAxis::Class*>& of, int64_t plane) {
  std::vector<ShiftTap> taps{{0, shifts.lead - shifts.axes[0].low * shifts.stride[0]}};
  std::vector<int64_t> phase{0};
  for (size_t k = 0; k < of.size(); ++k) {
    std::vector<ShiftTap> next;
    std::vector<int64_t> next_phase;
    for (size_t i = 0; i < taps.size(); ++i)
      for (const ShiftAxis::Tap& t : of[k]->taps) {
        next.push_back({taps[i].kernel * sizes.axes[k].kernel + t.kernel,
                        taps[i].at + t.shift * shifts.stride[k]});
        next_phase.push_back(phase[i] * static_cast<int64_t>(shifts.axes[k].phases.size()) +
                             t.phase);
      }
    taps = std::move(next), phase = std::move(next_phase);
  }
  for (size_t i = 0; i < taps.size(); ++i) taps[i].at += phase[i] * plane;
  return taps;
}

}  // namespace gradcell::cpu
