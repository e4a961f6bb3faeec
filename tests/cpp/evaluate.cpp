#include "evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "base/half.h"
#include "base/philox.h"
#include "cpu/run/engine.h"
#include "ir/body.h"
#include "ir/print.h"
#include "matrix_reference.h"
#include "ops/moving/order.h"
#include "ops/ops.h"
#include "plan/planner.h"
#include "scalar_reference.h"

namespace gradcell::testing {

namespace {

using Bits = std::vector<uint64_t>;

template <class S>
void put(void* p, int64_t i, S v) {
  std::memcpy(static_cast<S*>(p) + i, &v, sizeof v);
}
template <class S>
S get(const void* p, int64_t i) {
  S v;
  std::memcpy(&v, static_cast<const S*>(p) + i, sizeof v);
  return v;
}

void put_bits(const Array& a, int64_t i, uint64_t bits) {
  auto f = std::bit_cast<double>(bits);
  auto n = std::bit_cast<int64_t>(bits);
  switch (a.dtype) {
    case DType::Bool:
    case DType::UInt8:
      return put(a.data(), i, static_cast<uint8_t>(n));
    case DType::Int8:
      return put(a.data(), i, static_cast<int8_t>(n));
    case DType::Int16:
      return put(a.data(), i, static_cast<int16_t>(n));
    case DType::Int32:
      return put(a.data(), i, static_cast<int32_t>(n));
    case DType::Int64:
      return put(a.data(), i, n);
    case DType::UInt16:
      return put(a.data(), i, static_cast<uint16_t>(n));
    case DType::UInt32:
      return put(a.data(), i, static_cast<uint32_t>(n));
    case DType::UInt64:
      return put(a.data(), i, static_cast<uint64_t>(n));
    case DType::Float16:
      return put(a.data(), i, float_to_half(static_cast<float>(f)));
    case DType::BFloat16:
      return put(a.data(), i, float_to_bfloat(static_cast<float>(f)));
    case DType::Float32:
      return put(a.data(), i, static_cast<float>(f));
    case DType::Float64:
      return put(a.data(), i, f);
    default:
      fail(ErrorKind::Runtime, "no elements of ", name(a.dtype), " here");
  }
}

uint64_t get_bits(const Array& a, int64_t i) {
  auto real = [](double v) { return std::bit_cast<uint64_t>(v); };
  auto whole = [](int64_t v) { return static_cast<uint64_t>(v); };
  switch (a.dtype) {
    case DType::Bool:
    case DType::UInt8:
      return whole(get<uint8_t>(a.data(), i));
    case DType::Int8:
      return whole(get<int8_t>(a.data(), i));
    case DType::Int16:
      return whole(get<int16_t>(a.data(), i));
    case DType::Int32:
      return whole(get<int32_t>(a.data(), i));
    case DType::Int64:
      return whole(get<int64_t>(a.data(), i));
    case DType::UInt16:
      return whole(get<uint16_t>(a.data(), i));
    case DType::UInt32:
      return whole(get<uint32_t>(a.data(), i));
    case DType::UInt64:
      return get<uint64_t>(a.data(), i);
    case DType::Float16:
      return real(half_to_float(get<uint16_t>(a.data(), i)));
    case DType::BFloat16:
      return real(bfloat_to_float(get<uint16_t>(a.data(), i)));
    case DType::Float32:
      return real(get<float>(a.data(), i));
    case DType::Float64:
      return real(get<double>(a.data(), i));
    default:
      fail(ErrorKind::Runtime, "no elements of ", name(a.dtype), " here");
  }
}

Array from_bits(DType dtype, const Dims& dims, const Bits& bits) {
  Array a = empty_array(dtype, dims);
  for (size_t i = 0; i < bits.size(); ++i) put_bits(a, static_cast<int64_t>(i), bits[i]);
  return a;
}

/// The multi-index of a linear index, and back.
Dims unravel(int64_t i, const Dims& dims) {
  Dims at(dims.size());
  for (size_t k = dims.size(); k-- > 0;) at[k] = i % dims[k], i /= dims[k];
  return at;
}
int64_t ravel(const Dims& at, const Dims& dims) {
  int64_t i = 0;
  for (size_t k = 0; k < dims.size(); ++k) i = i * dims[k] + at[k];
  return i;
}

class Interpreter {
 public:
  Interpreter(const Graph& g, const Leaves& leaves) : g_(g), leaves_(leaves), value_(g.size()) {}

  Bits value(NodeId root) {
    NodeId roots[] = {root};
    for (NodeId id : live_nodes(g_, roots)) value_[id] = compute(id);
    return value_[root];
  }

 private:
  const Bits& in(NodeId id, int k) const { return value_[g_.input(id, k)]; }
  const Dims& in_dims(NodeId id, int k) const { return g_.dims(g_.input(id, k)); }

  /// One element for each place of the result.
  template <class F>
  Bits each(NodeId id, F f) const {
    Bits y(static_cast<size_t>(g_.count(id)));
    for (int64_t i = 0; i < g_.count(id); ++i) y[i] = f(unravel(i, g_.dims(id)));
    return y;
  }
  uint64_t element(NodeId id, int k, const Dims& at) const {
    return in(id, k)[ravel(at, in_dims(id, k))];
  }

  static Real number(DType t, uint64_t bits) {
    return is_floating(t) ? std::bit_cast<double>(bits)
                          : static_cast<Real>(std::bit_cast<int64_t>(bits));
  }
  Real number(NodeId id, int k, const Dims& at) const {
    return number(g_.dtype(g_.input(id, k)), element(id, k, at));
  }

  Bits elementwise(NodeId id) const {
    Op op = g_[id].op;
    size_t n = g_.inputs(id).size();
    DType t = g_.dtype(g_.input(id, static_cast<int>(n) - 1));
    Bits y(static_cast<size_t>(g_.count(id)));
    for (size_t i = 0; i < y.size(); ++i) {
      if (op == Op::Select) {
        y[i] = in(id, 0)[i] ? in(id, 1)[i] : in(id, 2)[i];
        continue;
      }
      const uint64_t a = in(id, 0)[i], b = n > 1 ? in(id, 1)[i] : 0;
      y[i] = is_floating(t) ? bits_of(g_.dtype(id), reference(op, number(t, a), number(t, b)))
                            : bits_of(g_.dtype(id), reference(op, std::bit_cast<int64_t>(a),
                                                              std::bit_cast<int64_t>(b)));
    }
    return y;
  }

  Bits broadcast(NodeId id) const {
    const Dims& from = in_dims(id, 0);
    return each(id, [&](const Dims& at) {
      Dims source(at.end() - static_cast<int64_t>(from.size()), at.end());
      for (size_t k = 0; k < from.size(); ++k)
        if (from[k] == 1) source[k] = 0;
      return element(id, 0, source);
    });
  }

  Bits slice_scatter(NodeId id) const {
    auto a = g_.attrs(id);
    const Dims &small = in_dims(id, 0), &large = g_.dims(id);
    Bits y(static_cast<size_t>(g_.count(id)), 0);
    for (int64_t i = 0; i < element_count(small); ++i) {
      Dims at = unravel(i, small);
      for (size_t k = 0; k < at.size(); ++k) at[k] = a[k] + at[k] * a[at.size() + k];
      y[ravel(at, large)] = in(id, 0)[i];
    }
    return y;
  }

  Bits concat(NodeId id) const {
    auto axis = static_cast<size_t>(g_.attrs(id)[0]);
    return each(id, [&](Dims at) {
      int k = 0;
      while (at[axis] >= in_dims(id, k)[axis]) at[axis] -= in_dims(id, k++)[axis];
      return element(id, k, at);
    });
  }

  Bits reduce(NodeId id) const {
    Op op = g_[id].op;
    auto axes = g_.attrs(id);
    DType t = g_.dtype(id);
    const Dims& from = in_dims(id, 0);
    std::vector<std::vector<uint64_t>> parts(static_cast<size_t>(g_.count(id)));
    for (int64_t i = 0; i < element_count(from); ++i) {
      Dims at = unravel(i, from), kept;
      for (size_t k = 0; k < at.size(); ++k)
        if (!std::binary_search(axes.begin(), axes.end(), static_cast<int64_t>(k)))
          kept.push_back(at[k]);
      parts[ravel(kept, g_.dims(id))].push_back(in(id, 0)[i]);
    }
    Bits y;
    for (const auto& part : parts) {
      const bool adds = op == Op::ReduceSum, multiplies = op == Op::ReduceProd;
      Real sum = multiplies ? 1 : 0;
      uint64_t whole = multiplies ? 1 : 0;  // integers wrap
      for (size_t i = 0; i < part.size(); ++i) {
        Real v = number(t, part[i]);
        if (adds)
          sum += v, whole += part[i];
        else if (multiplies)
          sum *= v, whole *= part[i];
        else if (i == 0 || v != v || (op == Op::ReduceMax ? v > sum : v < sum))
          sum = v;
        if (!adds && !multiplies && sum != sum) break;
      }
      bool exact = !is_floating(t) && (adds || multiplies);
      y.push_back(exact ? bits_of(t, static_cast<int64_t>(whole)) : bits_of(t, sum));
    }
    return y;
  }

  Bits matmul(NodeId id) const {
    bool ta = g_.attrs(id)[0], tb = g_.attrs(id)[1];
    DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      Real sum = 0;
      size_t r = at.size();
      for (int pair = 0; pair < g_[id].input_count; pair += 2) {
        int64_t inner = in_dims(id, pair)[ta ? r - 2 : r - 1];
        for (int64_t k = 0; k < inner; ++k) {
          Dims a = at, b = at;
          a[r - 2] = ta ? k : at[r - 2], a[r - 1] = ta ? at[r - 2] : k;
          b[r - 2] = tb ? at[r - 1] : k, b[r - 1] = tb ? k : at[r - 1];
          sum += number(t, element(id, pair, a)) * number(t, element(id, pair + 1, b));
        }
      }
      return bits_of(t, sum);
    });
  }

  Bits cumsum(NodeId id) const {
    auto a = g_.attrs(id);
    DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      Real sum = 0;
      int64_t n = g_.dims(id)[a[0]], here = at[a[0]];
      for (int64_t k = 0; k < n; ++k) {
        bool before = a[2] ? k > here : k < here;
        Dims from = at;
        from[a[0]] = k;
        if (before || (k == here && !a[1])) sum += number(t, element(id, 0, from));
      }
      return bits_of(t, sum);
    });
  }

  /// Each element from the first of its line on.
  Bits linear_recurrence(NodeId id) const {
    const auto how = attributes<ScanAttributes>(g_, id);
    const DType t = g_.dtype(id);
    const int64_t n = g_.dims(id)[how.axis];
    return each(id, [&](Dims at) {
      const int64_t here = at[how.axis], steps = how.reverse ? n - 1 - here : here;
      Real y = 0, before = 0;
      for (int64_t k = 0; k <= steps; ++k) {
        at[how.axis] = how.reverse ? n - 1 - k : k;
        before = y;
        y = number(t, element(id, 0, at)) * y + number(t, element(id, 1, at));
      }
      return bits_of(t, how.exclusive ? before : y);
    });
  }

  int64_t index(NodeId id, int k, const Dims& at, int64_t size) const {
    auto i = std::bit_cast<int64_t>(element(id, k, at));
    return i < 0 ? i + size : i;
  }

  Bits gather(NodeId id) const {
    auto axis = static_cast<size_t>(g_.attrs(id)[0]);
    size_t n = in_dims(id, 1).size();
    return each(id, [&](const Dims& at) {
      Dims where(at.begin() + axis, at.begin() + axis + n), from(at.begin(), at.begin() + axis);
      from.push_back(index(id, 1, where, in_dims(id, 0)[axis]));
      from.insert(from.end(), at.begin() + axis + n, at.end());
      return element(id, 0, from);
    });
  }

  Bits scatter_add(NodeId id) const {
    auto axis = static_cast<size_t>(g_.attrs(id)[0]);
    size_t n = in_dims(id, 0).size();
    DType t = g_.dtype(id);
    std::vector<Real> sums(static_cast<size_t>(g_.count(id)), 0);
    for (int64_t i = 0; i < element_count(in_dims(id, 1)); ++i) {
      Dims at = unravel(i, in_dims(id, 1));
      Dims where(at.begin() + axis, at.begin() + axis + n), to(at.begin(), at.begin() + axis);
      to.push_back(index(id, 0, where, g_.dims(id)[axis]));
      to.insert(to.end(), at.begin() + axis + n, at.end());
      sums[ravel(to, g_.dims(id))] += number(t, in(id, 1)[i]);
    }
    Bits y;
    for (Real s : sums) y.push_back(bits_of(t, s));
    return y;
  }

  Bits last_writer(NodeId id) const {
    int64_t n = g_.count(id);
    Bits y(static_cast<size_t>(n), std::bit_cast<uint64_t>(int64_t{-1}));
    for (int64_t i = 0; i < g_.count(g_.input(id, 0)); ++i)
      y[index(id, 0, unravel(i, in_dims(id, 0)), n)] = static_cast<uint64_t>(i);
    return y;
  }

  Bits arg_reduce(NodeId id) const {
    auto axis = g_.attrs(id)[0];
    DType t = g_.dtype(g_.input(id, 0));
    return each(id, [&](Dims at) {
      at.insert(at.begin() + axis, 0);
      Real best = number(t, element(id, 0, at));
      int64_t found = 0;
      for (int64_t k = 1; k < in_dims(id, 0)[axis] && best == best; ++k) {
        at[axis] = k;
        Real v = number(t, element(id, 0, at));
        if (v != v || (g_[id].op == Op::ArgMax ? v > best : v < best)) best = v, found = k;
      }
      return static_cast<uint64_t>(found);
    });
  }

  /// Term by term of the form that ops/combining/convolution.h states.
  Bits convolution(NodeId id) const {
    const DType t = g_.dtype(id);
    const auto at = attributes<ConvolutionAttributes>(g_, id);
    const ConvolutionSizes s =
        convolution_sizes(g_[id].op, in_dims(id, 0), in_dims(id, 1), g_.dims(id), at);
    const ConvolutionPart part = convolution_part(g_[id].op);
    std::vector<Real> sums(static_cast<size_t>(g_.count(id)), 0);
    Dims box{s.images, s.groups, s.outputs, s.inputs};
    for (const WindowAxis& a : s.axes) box.push_back(a.output), box.push_back(a.kernel);
    for_each_index(box, [&](int64_t, const Dims& i) {
      Dims x{i[0], i[1] * s.inputs + i[3]}, w{i[1] * s.outputs + i[2], i[3]}, y{i[0], w[0]};
      for (size_t k = 0; k < s.axes.size(); ++k) {
        const WindowAxis& a = s.axes[k];
        y.push_back(i[4 + 2 * k]), w.push_back(i[5 + 2 * k]);
        x.push_back(y.back() * a.stride + w.back() * a.dilation - a.before);
        if (x.back() < 0 || x.back() >= a.input) return;
      }
      const Dims& first = part == ConvolutionPart::Input ? y : x;
      const Dims& second = part == ConvolutionPart::Weight ? y : w;
      const Dims& to = part == ConvolutionPart::Output ? y : part == ConvolutionPart::Input ? x : w;
      const Dims strides = row_major(g_.dims(id));
      int64_t place = 0;
      for (size_t k = 0; k < to.size(); ++k) place += to[k] * strides[k];
      sums[static_cast<size_t>(place)] +=
          number(t, element(id, 0, first)) * number(t, element(id, 1, second));
    });
    Bits y;
    for (Real v : sums) y.push_back(bits_of(t, v));
    return y;
  }

  Bits window(NodeId id) const {
    const auto a = attributes<WindowAttributes>(g_, id);
    const std::vector<WindowAxis> axes = window_axes(in_dims(id, 0), a);
    const DType t = g_.dtype(g_.input(id, 0));
    const size_t lead = in_dims(id, 0).size() - axes.size();
    return each(id, [&](const Dims& at) {
      Real best = -std::numeric_limits<double>::infinity();
      int64_t found = -1;
      Dims kernel;
      for (const WindowAxis& axis : axes) kernel.push_back(axis.kernel);
      for_each_index(kernel, [&](int64_t, const Dims& u) {
        Dims from(at.begin(), at.begin() + static_cast<ptrdiff_t>(lead));
        int64_t place = 0;
        for (size_t k = 0; k < axes.size(); ++k) {
          const int64_t i =
              at[lead + k] * axes[k].stride + u[k] * axes[k].dilation - axes[k].before;
          if (i < 0 || i >= axes[k].input) return;
          place = place * axes[k].input + i;
          from.push_back(i);
        }
        const Real v = number(t, element(id, 0, from));
        if (found < 0 || v > best || v != v) best = v, found = place;
      });
      return g_[id].op == Op::WindowArgMax ? static_cast<uint64_t>(found) : bits_of(t, best);
    });
  }

  Bits take_along(NodeId id) const {
    return each(id, [&](const Dims& at) {
      const auto place = static_cast<int64_t>(element(id, 1, at));
      return place < 0 ? uint64_t{0} : element(id, 0, {at[0], place});
    });
  }

  Bits put_along(NodeId id) const {
    const DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      Real sum = 0;
      for (int64_t i = 0; i < in_dims(id, 0)[1]; ++i)
        if (static_cast<int64_t>(element(id, 0, {at[0], i})) == at[1])
          sum += number(t, element(id, 1, {at[0], i}));
      return bits_of(t, sum);
    });
  }

  Bits uniform(NodeId id) const {
    auto seed = in(id, 0)[0], offset = in(id, 0)[1];
    Bits y(static_cast<size_t>(g_.count(id)));
    for (size_t i = 0; i < y.size(); ++i)
      y[i] = bits_of(DType::Float32, Real(philox(seed, offset + i / 4)[i % 4] >> 8) * 0x1p-24L);
    return y;
  }

  Bits cumprod(NodeId id) const {
    const auto how = attributes<ScanAttributes>(g_, id);
    const DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      const int64_t n = g_.dims(id)[how.axis], here = at[how.axis];
      Real product = 1;
      uint64_t whole = 1;
      for (int64_t k = 0; k < n; ++k) {
        if (!(how.reverse ? k > here : k < here) && (k != here || how.exclusive)) continue;
        Dims from = at;
        from[how.axis] = k;
        product *= number(id, 0, from), whole *= element(id, 0, from);
      }
      return is_floating(t) ? bits_of(t, product) : bits_of(t, static_cast<int64_t>(whole));
    });
  }

  Bits fourier(NodeId id) const {
    const auto a = attributes<FourierAttributes>(g_, id);
    const int64_t n = g_.dims(id)[a.axis];
    return each(id, [&](const Dims& at) {
      Number sum = 0;
      for (int64_t j = 0; j < n; ++j) {
        Dims re = at, im = at;
        re[a.axis] = im[a.axis] = j, re.back() = 0, im.back() = 1;
        const Real turn = static_cast<Real>(at[a.axis] * j % n) / static_cast<Real>(n);
        const Real angle = (a.inverse ? 2 : -2) * std::numbers::pi_v<Real> * turn;
        sum += Number(number(id, 0, re), number(id, 0, im)) * std::polar(Real(1), angle);
      }
      return bits_of(g_.dtype(id), at.back() == 0 ? sum.real() : sum.imag());
    });
  }

  /// Term by term of the form that ops/moving/sampling.h states.
  Bits sample(NodeId id) const {
    const SamplePart part = sample_part(g_[id].op);
    const Dims &places = in_dims(id, 1), &out = g_.dims(id);
    std::vector<Real> sums(static_cast<size_t>(g_.count(id)), 0);
    const int64_t channels = part == SamplePart::Weight ? in_dims(id, 2)[1] : out[1];
    for_each_index(Dims{places[0], channels, places[1], places[2]}, [&](int64_t, const Dims& i) {
      const int64_t at = index(id, 1, {i[0], i[2], i[3]}, 0);
      if (at < 0) return;
      const Dims y{i[0], i[1], i[3]}, w{i[0], i[2], i[3]}, x{i[0], i[1], at};
      const Dims& first = part == SamplePart::Source ? y : x;
      const Dims& last = part == SamplePart::Weight ? y : w;
      const Dims& to = part == SamplePart::Result ? y : part == SamplePart::Source ? x : w;
      sums[ravel(to, out)] += number(id, 0, first) * number(id, 2, last);
    });
    Bits y;
    for (Real v : sums) y.push_back(bits_of(g_.dtype(id), v));
    return y;
  }

  /// As ops/combining/attention.h states the family, score by score.
  Bits attention(NodeId id) const {
    const Op op = g_[id].op;
    const auto a = attributes<AttentionAttributes>(g_, id);
    const AttentionInputs at = attention_inputs(op, a);
    auto outside = [&](int k) { return heads_outside(in_dims(id, k), a.inside); };
    const Dims q = outside(0), keys = outside(1), lead(q.begin(), q.end() - 2);
    const int64_t queries = q[lead.size()], seen = keys[lead.size()];
    const int64_t heads = element_count(lead);
    const Real scale = std::bit_cast<double>(a.scale), fill = std::bit_cast<double>(a.fill),
               keep = std::bit_cast<double>(a.keep);
    auto place = [&](int64_t head, int64_t row, int64_t feature) {
      Dims i = unravel(head, lead);
      i.push_back(row), i.push_back(feature);
      return heads_outside(i, a.inside);
    };
    auto dot = [&](int left, int right, int64_t h, int64_t m, int64_t n) {
      Real sum = 0;
      for (int64_t f = 0; f < outside(left).back(); ++f)
        sum += number(id, left, place(h, m, f)) * number(id, right, place(h, n, f));
      return sum;
    };
    auto mask = [&](int64_t h, int64_t m, int64_t n) {
      Dims i = unravel(h, lead);
      i.push_back(m), i.push_back(n);
      for (size_t k = 0; k < i.size(); ++k)
        if (in_dims(id, at.mask)[k] == 1) i[k] = 0;
      return number(id, at.mask, i);
    };
    const bool bools = at.mask >= 0 && g_.dtype(g_.input(id, at.mask)) == DType::Bool;
    std::vector<Real> sums(static_cast<size_t>(g_.count(id)), 0);
    const Dims to = heads_outside(g_.dims(id), a.inside);
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t m = 0; m < queries; ++m) {
        std::vector<Real> s;
        Real most = -INFINITY, total = 0;
        for (int64_t n = 0; n < seen; ++n) {
          Real score = scale * dot(0, 1, h, m, n);
          if (bools && mask(h, m, n) != 0) score = fill;
          if (!bools && at.mask >= 0) score += mask(h, m, n);
          if (n - m > a.ahead || m - n > a.behind) score = -INFINITY;
          s.push_back(score), most = std::fmax(most, score);
        }
        for (Real score : s) total += score == -INFINITY ? 0 : std::exp(score - most);
        auto add = [&](int64_t row, int64_t f, Real v) {
          sums[ravel(place(h, row, f), g_.dims(id))] += v;
        };
        if (op == Op::AttentionLogSum) {
          if (a.written)
            add(m, 0, most), add(m, 1, std::log(total));
          else
            add(m, 0, most + std::log(total));
          continue;
        }
        for (int64_t n = 0; n < seen; ++n) {
          Real norm = most + std::log(total);
          if (at.log_sum >= 0) norm = number(id, at.log_sum, place(h, m, 0));
          if (at.log_sum >= 0 && a.written) norm += number(id, at.log_sum, place(h, m, 1));
          Real w = s[n] == -INFINITY && !a.written ? 0 : std::exp(s[n] - norm);
          Real factor = 1;
          if (at.state >= 0) {
            const int64_t drawn = (h % a.period * queries + m) * seen + n;
            const Bits& state = in(id, at.state);
            const auto words = philox(state[0], state[1] + static_cast<uint64_t>(drawn / 4));
            const Real u = Real(words[static_cast<size_t>(drawn % 4)] >> 8) * 0x1p-24L;
            factor = u < static_cast<float>(keep) ? 1 / keep : 0;
          }
          for (int k = at.factors; k < g_[id].input_count; k += 2) factor *= dot(k, k + 1, h, m, n);
          if (at.shift >= 0) factor -= number(id, at.shift, place(h, m, 0));
          w *= factor;
          if (bools && a.of_scores && mask(h, m, n) != 0) w = 0;
          const bool by_keys = attention_by_keys(op);
          for (int64_t f = 0; f < to.back(); ++f)
            add(by_keys ? n : m, f, w * number(id, at.c, place(h, by_keys ? m : n, f)));
        }
      }
    Bits y;
    for (Real v : sums) y.push_back(bits_of(g_.dtype(id), v));
    return y;
  }

  // Routines: f(problem's inputs) for each, whose last `rank` dimensions are a problem ------------

  int64_t problem_size(NodeId id, int k) const {
    const Dims& dims = in_dims(id, k);
    return product(dims, dims.size() - spec(g_, id).problem_rank(g_.attrs(id), k), dims.size());
  }
  Matrix matrix(NodeId id, int k, int64_t problem) const {
    const bool pairs = g_.attrs(id)[0];
    const Dims& dims = in_dims(id, k);
    const size_t lead = dims.size() - (pairs ? 3 : 2);
    Matrix a(dims[lead], dims[lead + 1]);
    const auto part = [&](size_t i) {
      return number(g_.dtype(g_.input(id, k)),
                    in(id, k)[static_cast<size_t>(problem * problem_size(id, k)) + i]);
    };
    for (size_t i = 0; i < a.at.size(); ++i)
      a.at[i] = pairs ? Number(part(2 * i), part(2 * i + 1)) : Number(part(i));
    return a;
  }
  static void append(std::vector<Number>& to, const Matrix& a) {
    to.insert(to.end(), a.at.begin(), a.at.end());
  }
  static Matrix front(const Matrix& a, int64_t rows, int64_t columns) {
    Matrix y(rows, columns);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) y(i, j) = a(i, j);
    return y;
  }

  std::vector<Number> factorised(NodeId id, int64_t p) const {
    const auto flags = g_.attrs(id);
    const Matrix a = matrix(id, 0, p);
    const int64_t n = a.columns;
    std::vector<Number> y;
    std::vector<int64_t> pivots;
    const auto packed = [&] {  // of LUFactors
      for (int64_t k = 0; k < n; ++k) pivots.push_back(std::llround(a(n, k).real()) - 1);
      return turned(front(a, n, n), false);
    };
    switch (g_[id].op) {
      case Op::LUFactors:
        append(y, turned(lu(turned(a, false), pivots), false));
        for (int64_t k : pivots) y.push_back(static_cast<Real>(k + 1));
        return y;
      case Op::LUSolve: {
        const Matrix f = packed();
        Matrix b = matrix(id, 1, p);
        if (!flags[1]) return solved(f, pivots, b).at;
        // The conjugate transpose of what is factored: P L U conjugated.
        Matrix original = identity(n);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            Number sum = i <= j ? f(i, j) : 0;
            for (int64_t k = 0; k < std::min(i, j + 1); ++k) sum += f(i, k) * f(k, j);
            original(i, j) = sum;
          }
        for (int64_t k = n; k-- > 0;)
          for (int64_t j = 0; j < n; ++j)
            std::swap(original(k, j), original(pivots[static_cast<size_t>(k)], j));
        for (Number& v : original.at) v = std::conj(v);
        return solved(original, b).at;
      }
      case Op::LUInverse:
        return solved(packed(), pivots, identity(n)).at;
      case Op::LUDeterminant: {
        Number det = 1;
        const Matrix f = packed();
        for (int64_t k = 0; k < n; ++k)
          det *= pivots[static_cast<size_t>(k)] == k ? f(k, k) : -f(k, k);
        const Number sign = det == Number(0) ? det : det / std::abs(det);
        return {sign.real(), sign.imag(), std::log(std::abs(det)), det.real(), det.imag()};
      }
      case Op::CholeskyFactor:
        return cholesky(of_lower(a)).at;
      case Op::DampedCholeskyFactor: {
        Matrix damped = of_lower(a);
        for (int64_t k = 0; k < n; ++k) damped(k, k) += matrix(id, 1, p)(0, 0);
        return cholesky(damped).at;
      }
      case Op::TriangularSolve: {
        Matrix l = a;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = i + 1; j < n; ++j) l(i, j) = 0;
        return solved(flags[1] ? turned(l, true) : l, matrix(id, 1, p)).at;
      }
      case Op::CholeskySolve:
      case Op::CholeskyInverse: {
        Matrix l = a;
        for (int64_t i = 0; i < n && g_[id].op == Op::CholeskySolve; ++i)
          for (int64_t j = i + 1; j < n; ++j) l(i, j) = 0;
        const Matrix whole = times(l, turned(l, true));
        return solved(whole, g_[id].op == Op::CholeskySolve ? matrix(id, 1, p) : identity(n)).at;
      }
      case Op::QRFactors: {
        const auto [q, r] = qr(a);
        const int64_t c = flags[1] ? a.rows : std::min(a.rows, n);
        if (flags[2]) append(y, front(q, a.rows, c));
        append(y, front(r, c, n));
        return y;
      }
      case Op::EigenFactors: {
        const auto [values, vectors] = eigen(of_lower(a));
        y.assign(values.begin(), values.end());
        append(y, vectors);
        return y;
      }
      case Op::SingularFactors: {
        const int64_t k = std::min(a.rows, n);
        // Of a wide matrix: that of its conjugate transpose, whose factors change places.
        const bool wide = a.rows < n;
        const Singular s = testing::singular(wide ? turned(a, true) : a);
        y.assign(s.values.begin(), s.values.end());
        if (!flags[2]) return y;
        auto full = [&](const Matrix& m, int64_t size) {
          Matrix q(size, size);
          for (int64_t i = 0; i < size; ++i)
            for (int64_t j = 0; j < m.columns; ++j) q(i, j) = m(i, j);
          complete(q, m.columns);
          return front(q, size, flags[1] ? size : k);
        };
        append(y, full(wide ? s.v : s.u, a.rows));
        append(y, turned(full(wide ? s.u : s.v, n), true));
        return y;
      }
      default:
        fail(ErrorKind::Runtime, info(g_[id].op).name, " is no factorisation");
    }
  }
  Bits factorisation(NodeId id) const {
    const int64_t problems =
        problem_size(id, 0) ? g_.count(g_.input(id, 0)) / problem_size(id, 0) : 0;
    Bits y;
    for (int64_t p = 0; p < problems; ++p)
      for (const Number v : factorised(id, p)) {
        y.push_back(bits_of(g_.dtype(id), v.real()));
        if (g_.attrs(id)[0] && g_[id].op != Op::LUDeterminant)
          y.push_back(bits_of(g_.dtype(id), v.imag()));
      }
    y.resize(static_cast<size_t>(g_.count(id)));
    return y;
  }

  /// Row r of an input whose last dimension holds rows.
  std::vector<Real> row(NodeId id, int k, int64_t r) const {
    const int64_t n = in_dims(id, k).back();
    std::vector<Real> v;
    for (int64_t i = 0; i < n; ++i)
      v.push_back(number(g_.dtype(g_.input(id, k)), in(id, k)[static_cast<size_t>(r * n + i)]));
    return v;
  }
  /// NaN is larger than any number.
  static bool before(Real a, Real b) { return std::isnan(b) ? !std::isnan(a) : a < b; }
  template <class F>
  Bits rows(NodeId id, F f) const {
    const int64_t n = in_dims(id, 0).back();
    Bits y;
    for (int64_t r = 0; n && r < g_.count(g_.input(id, 0)) / n; ++r)
      for (int64_t v : f(r)) y.push_back(bits_of(g_.dtype(id), v));
    y.resize(static_cast<size_t>(g_.count(id)));
    return y;
  }
  using Places = std::vector<int64_t>;

  Places ordered(const std::vector<Real>& x, bool descending) const {
    Places at(x.size());
    std::iota(at.begin(), at.end(), 0);
    std::ranges::stable_sort(at, [&](int64_t i, int64_t j) {
      return descending ? before(x[j], x[i]) : before(x[i], x[j]);
    });
    return at;
  }
  Bits first_in_order(NodeId id) const {
    const auto a = attributes<FirstAttributes>(g_, id);
    return rows(id, [&](int64_t r) {
      const std::vector<Real> x = row(id, 0, r);
      Places at(x.size());
      std::iota(at.begin(), at.end(), 0);
      if (a.sorted)
        at = ordered(x, a.largest);
      else  // as selection leaves them
        std::nth_element(at.begin(), at.begin() + a.count, at.end(), [&](int64_t i, int64_t j) {
          if (a.largest) return x[i] > x[j] || (std::isnan(x[i]) && !std::isnan(x[j]));
          return x[i] < x[j] || (!std::isnan(x[i]) && std::isnan(x[j]));
        });
      at.resize(static_cast<size_t>(a.count));
      return at;
    });
  }
  Bits running_best(NodeId id) const {
    const auto a = attributes<RunningAttributes>(g_, id);
    const size_t axis = g_.dims(id).size() - 1 - static_cast<size_t>(a.inner);
    return each(id, [&](Dims at) {
      int64_t best = 0;
      auto value = [&](int64_t k) {
        at[axis] = k;
        return number(id, 0, at);
      };
      for (int64_t k = 1, here = at[axis]; k <= here; ++k) {
        const Real v = value(k), old = value(best);
        if (std::isnan(v) || (a.largest ? v >= old : v <= old)) best = k;
      }
      at[axis] = best;
      return a.values ? element(id, 0, at) : bits_of(g_.dtype(id), best);
    });
  }
  Bits segment_best(NodeId id) const {
    const auto a = attributes<SegmentAttributes>(g_, id);
    const size_t lead = in_dims(id, 0).size() - 2;
    const DType t = g_.dtype(g_.input(id, 0));
    Real end = is_floating(t) ? INFINITY : 0;  // the dtype's limit
    if (t == DType::Float16) end = 65504;
    if (t == DType::BFloat16) end = 0x1.fep127;
    if (t == DType::Float32) end = std::numeric_limits<float>::max();
    if (t == DType::Float64) end = std::numeric_limits<double>::max();
    if (is_floating(t) && a.largest) end = -end;
    if (!is_floating(t)) {
      const int bits = static_cast<int>(8 * item_size(t));
      const bool whole = is_unsigned(t) || t == DType::Bool;
      end = a.largest          ? (whole ? 0 : -std::ldexp(Real(1), bits - 1))
            : t == DType::Bool ? 1
                               : std::ldexp(Real(1), whole ? bits : bits - 1) - 1;
    }
    return each(id, [&](Dims at) {
      const int64_t segment = at[lead];
      int64_t best = -1;
      auto value = [&](int64_t i) {
        at[lead] = i;
        return number(id, 0, at);
      };
      for (int64_t i = 0; i < in_dims(id, 0)[lead]; ++i) {
        Dims of(at.begin(), at.begin() + static_cast<ptrdiff_t>(lead));
        of.push_back(i);
        if (std::bit_cast<int64_t>(element(id, 1, of)) != segment) continue;
        if (best < 0 || (a.largest ? value(i) > value(best) : value(i) < value(best))) best = i;
      }
      if (!a.values) return bits_of(g_.dtype(id), best);
      at[lead] = best;
      return best < 0 ? bits_of(t, end) : element(id, 0, at);
    });
  }
  Bits count_between(NodeId id) const {
    return rows(id, [&](int64_t r) {
      const std::vector<Real> edges = row(id, 1, r);
      Places counts(edges.size() - 1);
      for (Real v : row(id, 0, r))
        for (size_t b = 0; b < counts.size(); ++b) {
          const bool last = b + 1 == counts.size();
          counts[b] += v >= edges[b] && (last ? v <= edges[b + 1] : v < edges[b + 1]);
        }
      return counts;
    });
  }
  Bits draw_by_weights(NodeId id) const {
    return rows(id, [&](int64_t r) {
      Places at;
      const std::vector<Real> weights = row(id, 0, r);
      double whole = 0;  // the weights' sum is a double's, as the op defines it
      for (Real w : weights) whole += static_cast<double>(w);
      for (Real u : row(id, 1, r)) {
        const double wanted = std::min(static_cast<double>(u) * whole, std::nextafter(whole, 0.0));
        double sum = 0;
        int64_t k = 0;
        while ((sum += static_cast<double>(weights[static_cast<size_t>(k)])) <= wanted) ++k;
        at.push_back(k);
      }
      return at;
    });
  }
  Bits of_integers(NodeId id) const {
    const auto function =
        static_cast<IntegerFunction>(attributes<IntegersAttributes>(g_, id).function);
    const DType t = g_.dtype(id);
    const int64_t bits = 8 * static_cast<int64_t>(item_size(t));
    Bits y(static_cast<size_t>(g_.count(id)));
    for (size_t i = 0; i < y.size(); ++i) {
      const auto a = std::bit_cast<int64_t>(in(id, 0)[in_dims(id, 0).empty() ? 0 : i]),
                 b = std::bit_cast<int64_t>(in(id, 1)[in_dims(id, 1).empty() ? 0 : i]);
      const auto shift = [&](bool left) {
        if (b < 0 || b >= bits) return left || a >= 0 ? int64_t{0} : int64_t{-1};
        return left ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : a >> b;
      };
      switch (function) {
          // clang-format off
        case IntegerFunction::And: y[i] = bits_of(t, a & b); break;
        case IntegerFunction::Or: y[i] = bits_of(t, a | b); break;
        case IntegerFunction::Xor: y[i] = bits_of(t, a ^ b); break;
        case IntegerFunction::LeftShift: y[i] = bits_of(t, shift(true)); break;
        case IntegerFunction::RightShift: y[i] = bits_of(t, shift(false)); break;
        case IntegerFunction::Gcd: y[i] = bits_of(t, std::gcd(a, b)); break;
        case IntegerFunction::Lcm: y[i] = bits_of(t, a && b ? std::lcm(a, b) : 0); break;
          // clang-format on
      }
    }
    return y;
  }

  /// Step by step, each a graph's interpretation.
  Bits recurrence(NodeId id) const {
    const auto a = attributes<LoopAttributes>(g_, id);
    const Body body = read_body(a.body);
    std::vector<Bits> state;
    for (int64_t k = 0; k < a.carried; ++k) state.push_back(in(id, static_cast<int>(k)));
    Bits kept(static_cast<size_t>(g_.count(id)));
    for (int64_t n = 0; n < a.steps; ++n) {
      const int64_t t = a.reverse ? a.steps - 1 - n : n;
      Interpreter step(body.graph, leaves_);
      for (size_t k = 0; k < body.inputs.size(); ++k) {
        const int64_t count = body.graph.count(body.inputs[k]);
        const auto i = static_cast<int64_t>(k);
        if (i < a.carried) {
          step.value_[k] = state[k];
        } else {
          const Bits& all = in(id, static_cast<int>(k));
          const bool sliced = i < a.carried + a.sliced;
          const auto from = all.begin() + (sliced ? t * count : 0);
          step.value_[k].assign(from, from + count);
        }
      }
      for (NodeId node = static_cast<NodeId>(body.inputs.size()); node < body.graph.size(); ++node)
        step.value_[node] = step.compute(node);
      for (size_t k = 0; k < state.size(); ++k) state[k] = step.value_[body.next[k]];
      if (a.last) continue;
      const Bits& of = step.value_[static_cast<size_t>(a.result)];
      std::ranges::copy(of, kept.begin() + t * static_cast<int64_t>(of.size()));
    }
    return a.last ? state[static_cast<size_t>(a.result)] : kept;
  }

  /// Every op has a case: the compiler names one that is forgotten.
  Bits compute(NodeId id) const {
    Op op = g_[id].op;
    auto a = g_.attrs(id);
    switch (op) {
#define ROW(Name, ...) case Op::Name:
#include "ir/rows.h"
      return elementwise(id);
      case Op::Leaf:
        return element_bits(leaves_.at(id));
      case Op::Const:
        return Bits(static_cast<size_t>(g_.count(id)), g_[id].bits);
      case Op::Iota:
        return each(id, [&](const Dims& at) { return bits_of(g_.dtype(id), at[a[0]]); });
      case Op::Alias:
      case Op::StopGradient:
      case Op::CallOutput:
      case Op::ValueOf:
      case Op::After:
      case Op::Reshape:
      case Op::ViewAsReal:  // what is complex is a pair of elements here
      case Op::ViewAsComplex:
        return in(id, 0);
      case Op::Cast: {
        Bits y = in(id, 0);
        const DType from = g_.dtype(g_.input(id, 0)), to = g_.dtype(id);
        for (uint64_t& b : y)
          b = is_floating(from) ? bits_of(to, number(from, b))
                                : bits_of(to, std::bit_cast<int64_t>(b));
        return y;
      }
      case Op::Transpose:
        return each(id, [&](const Dims& at) {
          Dims from(at.size());
          for (size_t k = 0; k < at.size(); ++k) from[a[k]] = at[k];
          return element(id, 0, from);
        });
      case Op::BroadcastTo:
        return broadcast(id);
      case Op::Slice:
        return each(id, [&](Dims at) {
          for (size_t k = 0; k < at.size(); ++k) at[k] = a[k] + at[k] * a[at.size() + k];
          return element(id, 0, at);
        });
      case Op::SliceScatter:
        return slice_scatter(id);
      case Op::Concat:
        return concat(id);
      case Op::MatMul:
        return matmul(id);
      case Op::ReduceSum:
      case Op::ReduceProd:
      case Op::ReduceMax:
      case Op::ReduceMin:
        return reduce(id);
      case Op::ArgMax:
      case Op::ArgMin:
        return arg_reduce(id);
      case Op::CumSum:
        return cumsum(id);
      case Op::CumProd:
        return cumprod(id);
      case Op::LinearRecurrence:
        return linear_recurrence(id);
      case Op::FourierTransform:
        return fourier(id);
      case Op::Convolution:
      case Op::ConvolutionInput:
      case Op::ConvolutionWeight:
        return convolution(id);
      case Op::WindowMax:
      case Op::WindowArgMax:
        return window(id);
      case Op::Attention:
      case Op::AttentionLogSum:
      case Op::AttentionRows:
      case Op::AttentionColumns:
        return attention(id);
      case Op::TakeAlong:
        return take_along(id);
      case Op::PutAlong:
        return put_along(id);
      case Op::Sample:
      case Op::SampleSource:
      case Op::SampleWeight:
        return sample(id);
      case Op::Gather:
      case Op::Label:
        return gather(id);
      case Op::ScatterAdd:
        return scatter_add(id);
      case Op::LastWriter:
        return last_writer(id);
      case Op::RandomUniform:
        return uniform(id);
      case Op::LUFactors:
      case Op::LUSolve:
      case Op::LUInverse:
      case Op::LUDeterminant:
      case Op::CholeskyFactor:
      case Op::DampedCholeskyFactor:
      case Op::CholeskySolve:
      case Op::CholeskyInverse:
      case Op::TriangularSolve:
      case Op::QRFactors:
      case Op::EigenFactors:
      case Op::SingularFactors:
        return factorisation(id);
      case Op::Order:
        return rows(id, [&](int64_t r) { return ordered(row(id, 0, r), a[0] != 0); });
      case Op::FirstInOrder:
        return first_in_order(id);
      case Op::RunningBest:
        return running_best(id);
      case Op::SegmentBest:
        return segment_best(id);
      case Op::PlaceInLine:
        return rows(id, [&](int64_t r) {
          Places at;
          for (Real v : row(id, 1, r))
            at.push_back(std::ranges::count_if(
                row(id, 0, r), [&](Real x) { return before(x, v) || (a[0] && !before(v, x)); }));
          return at;
        });
      case Op::Among:
        return rows(id, [&](int64_t r) {
          Places found;
          const std::vector<Real> tests = row(id, 1, r);
          for (Real v : row(id, 0, r)) found.push_back(std::ranges::find(tests, v) != tests.end());
          return found;
        });
      case Op::CountBetween:
        return count_between(id);
      case Op::DrawByWeights:
        return draw_by_weights(id);
      case Op::OfIntegers:
        return of_integers(id);
      case Op::Permitted:
        return Bits(static_cast<size_t>(g_.count(id)), 0);
      case Op::Recurrence:
        return recurrence(id);
      case Op::AllReduce:
      case Op::AllGather:
      case Op::ReduceScatter:
      case Op::Broadcast:
      case Op::CollectiveReduce:
      case Op::AllToAll:
      case Op::Barrier:
        require(attributes<CollectiveAttributes>(g_, id).size == 1, ErrorKind::NotImplemented,
                "processes are interpreted alone");
        return g_[id].input_count ? in(id, 0) : Bits(static_cast<size_t>(g_.count(id)), 0);
      case Op::Count:
        break;
    }
    fail(ErrorKind::Runtime, "no op");
  }

  const Graph& g_;
  const Leaves& leaves_;
  std::vector<Bits> value_;
};

}  // namespace

Array make_array(DType dtype, const Dims& dims, const std::vector<double>& values) {
  Array a = empty_array(dtype, dims);
  EXPECT_EQ(static_cast<size_t>(a.count()), values.size());
  for (size_t i = 0; i < values.size(); ++i)
    put_bits(a, static_cast<int64_t>(i), bits_of(dtype, Real(values[i])));
  return a;
}

std::vector<uint64_t> element_bits(const Array& a) {
  Bits bits;
  for (int64_t i = 0; i < a.count(); ++i) bits.push_back(get_bits(a, i));
  return bits;
}

std::vector<double> numbers(const Array& a) {
  std::vector<double> v;
  for (uint64_t b : element_bits(a))
    v.push_back(is_floating(a.dtype) ? std::bit_cast<double>(b)
                                     : static_cast<double>(std::bit_cast<int64_t>(b)));
  return v;
}

std::vector<Array> run(const Graph& g, std::span<const NodeId> roots, const Leaves& leaves) {
  std::vector<NodeId> live = live_nodes(g, roots);
  cpu::Runner runner(make_plan(g, live, roots, {}));
  std::vector<const void*> in;
  std::vector<uint64_t> constants;
  std::vector<Array> used, out;
  for (NodeId id : live) {
    if (g[id].op == Op::Leaf) used.push_back(leaves.at(id)), in.push_back(used.back().data());
    if (g[id].op == Op::Const) constants.push_back(g[id].bits);
  }
  std::vector<void*> to;
  for (const PlanOutput& o : runner.plan().outputs) {
    out.push_back(empty_array(o.desc.dtype, o.desc.dims));
    to.push_back(o.alias_input < 0 && o.alias_output < 0 ? out.back().data() : nullptr);
  }
  runner.run(in.data(), to.data(), constants.data());
  for (size_t i = 0; i < out.size(); ++i) {
    const PlanOutput& o = runner.plan().outputs[i];
    if (o.alias_input >= 0) out[i].storage = used[o.alias_input].storage;
    if (o.alias_output >= 0) out[i].storage = out[o.alias_output].storage;
  }
  return out;
}

Array run(const Graph& g, NodeId root, const Leaves& leaves) {
  NodeId roots[] = {root};
  return run(g, roots, leaves)[0];
}

Array interpret(const Graph& g, NodeId root, const Leaves& leaves) {
  return from_bits(g.dtype(root), g.dims(root), Interpreter(g, leaves).value(root));
}

void expect_close(const Array& got, const Array& expected, double tolerance) {
  ASSERT_EQ(name(got.dtype), name(expected.dtype));
  ASSERT_EQ(got.dims, expected.dims);
  std::vector<double> a = numbers(got), b = numbers(expected);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != a[i] && b[i] != b[i]) continue;
    bool same = tolerance == 0 ? std::bit_cast<uint64_t>(a[i]) == std::bit_cast<uint64_t>(b[i])
                               : a[i] == b[i] || std::fabs(a[i] - b[i]) <=
                                                     tolerance * std::max(1.0, std::fabs(b[i]));
    ASSERT_TRUE(same) << "element " << i << " of " << a.size() << ": got " << a[i] << ", expected "
                      << b[i];
  }
}

std::vector<double> random_numbers(int64_t n, double low, double high, uint64_t seed) {
  std::vector<double> v;
  for (int64_t i = 0; i < n; ++i)
    v.push_back(low + (high - low) * uniform_from_bits(philox(seed, static_cast<uint64_t>(i))[0]));
  return v;
}

NodeId random_leaf(Graph& g, Leaves& leaves, DType dtype, const Dims& dims, double low,
                   double high) {
  const NodeId id = leaf(g, dtype, dims);
  leaves[id] = make_array(dtype, dims, random_numbers(g.count(id), low, high, 3 + id));
  return id;
}

NodeId odd_leaf(Graph& g, Leaves& leaves, DType dtype, int64_t rows, double low, double high) {
  const NodeId id = leaf(g, dtype, Dims{rows});
  std::vector<double> numbers = random_numbers(rows, low, high, 7 + id);
  numbers[0] = 0, numbers[1] = -0.0, numbers[2] = NAN, numbers[3] = INFINITY, numbers[4] = 1e-40;
  leaves[id] = make_array(dtype, Dims{rows}, numbers);
  return id;
}

}  // namespace gradcell::testing
