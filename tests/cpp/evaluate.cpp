#include "evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/philox.h"
#include "cpu/run/engine.h"
#include "ir/fold.h"
#include "ir/print.h"
#include "ops/ops.h"
#include "plan/planner.h"

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

  double number(DType t, uint64_t bits) const {
    return is_floating(t) ? std::bit_cast<double>(bits)
                          : static_cast<double>(std::bit_cast<int64_t>(bits));
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
      uint64_t x[2] = {in(id, 0)[i], n > 1 ? in(id, 1)[i] : 0};
      y[i] = fold(op, t, g_.dtype(id), {x, n});
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
      double sum = multiplies ? 1 : 0;
      uint64_t whole = multiplies ? 1 : 0;  // integers wrap
      for (size_t i = 0; i < part.size(); ++i) {
        double v = number(t, part[i]);
        if (adds)
          sum += v, whole += part[i];
        else if (multiplies)
          sum *= v, whole *= part[i];
        else if (i == 0 || v != v || (op == Op::ReduceMax ? v > sum : v < sum))
          sum = v;
        if (!adds && !multiplies && sum != sum) break;
      }
      bool exact = !is_floating(t) && (adds || multiplies);
      y.push_back(exact ? to_bits(t, static_cast<int64_t>(whole)) : to_bits(t, sum));
    }
    return y;
  }

  Bits matmul(NodeId id) const {
    bool ta = g_.attrs(id)[0], tb = g_.attrs(id)[1];
    DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      double sum = 0;
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
      return to_bits(t, sum);
    });
  }

  Bits cumsum(NodeId id) const {
    auto a = g_.attrs(id);
    DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      double sum = 0;
      int64_t n = g_.dims(id)[a[0]], here = at[a[0]];
      for (int64_t k = 0; k < n; ++k) {
        bool before = a[2] ? k > here : k < here;
        Dims from = at;
        from[a[0]] = k;
        if (before || (k == here && !a[1])) sum += number(t, element(id, 0, from));
      }
      return to_bits(t, sum);
    });
  }

  /// Each element from the first of its line on.
  Bits linear_recurrence(NodeId id) const {
    const auto how = attributes<ScanAttributes>(g_, id);
    const DType t = g_.dtype(id);
    const int64_t n = g_.dims(id)[how.axis];
    return each(id, [&](Dims at) {
      const int64_t here = at[how.axis], steps = how.reverse ? n - 1 - here : here;
      double y = 0, before = 0;
      for (int64_t k = 0; k <= steps; ++k) {
        at[how.axis] = how.reverse ? n - 1 - k : k;
        before = y;
        y = number(t, element(id, 0, at)) * y + number(t, element(id, 1, at));
      }
      return to_bits(t, how.exclusive ? before : y);
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
    std::vector<double> sums(static_cast<size_t>(g_.count(id)), 0);
    for (int64_t i = 0; i < element_count(in_dims(id, 1)); ++i) {
      Dims at = unravel(i, in_dims(id, 1));
      Dims where(at.begin() + axis, at.begin() + axis + n), to(at.begin(), at.begin() + axis);
      to.push_back(index(id, 0, where, g_.dims(id)[axis]));
      to.insert(to.end(), at.begin() + axis + n, at.end());
      sums[ravel(to, g_.dims(id))] += number(t, in(id, 1)[i]);
    }
    Bits y;
    for (double s : sums) y.push_back(to_bits(t, s));
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
      double best = number(t, element(id, 0, at));
      int64_t found = 0;
      for (int64_t k = 1; k < in_dims(id, 0)[axis] && best == best; ++k) {
        at[axis] = k;
        double v = number(t, element(id, 0, at));
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
    std::vector<double> sums(static_cast<size_t>(g_.count(id)), 0);
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
    for (double v : sums) y.push_back(to_bits(t, v));
    return y;
  }

  Bits window(NodeId id) const {
    const auto a = attributes<WindowAttributes>(g_, id);
    const std::vector<WindowAxis> axes = window_axes(in_dims(id, 0), a);
    const DType t = g_.dtype(g_.input(id, 0));
    const size_t lead = in_dims(id, 0).size() - axes.size();
    return each(id, [&](const Dims& at) {
      double best = -std::numeric_limits<double>::infinity();
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
        const double v = number(t, element(id, 0, from));
        if (found < 0 || v > best || v != v) best = v, found = place;
      });
      return g_[id].op == Op::WindowArgMax ? static_cast<uint64_t>(found) : to_bits(t, best);
    });
  }

  Bits take_along(NodeId id) const {
    return each(id, [&](const Dims& at) {
      const auto place = static_cast<int64_t>(element(id, 1, at));
      return place < 0 ? to_bits(g_.dtype(id), 0.0) : element(id, 0, {at[0], place});
    });
  }

  Bits put_along(NodeId id) const {
    const DType t = g_.dtype(id);
    return each(id, [&](const Dims& at) {
      double sum = 0;
      for (int64_t i = 0; i < in_dims(id, 0)[1]; ++i)
        if (static_cast<int64_t>(element(id, 0, {at[0], i})) == at[1])
          sum += number(t, element(id, 1, {at[0], i}));
      return to_bits(t, sum);
    });
  }

  Bits uniform(NodeId id) const {
    auto seed = in(id, 0)[0], offset = in(id, 0)[1];
    Bits y(static_cast<size_t>(g_.count(id)));
    for (size_t i = 0; i < y.size(); ++i)
      y[i] =
          std::bit_cast<uint64_t>(double(uniform_from_bits(philox(seed, offset + i / 4)[i % 4])));
    return y;
  }

  Bits compute(NodeId id) const {
    Op op = g_[id].op;
    if (is_elementwise(op)) return elementwise(id);
    auto a = g_.attrs(id);
    switch (op) {
      case Op::Leaf:
        return element_bits(leaves_.at(id));
      case Op::Const:
        return Bits(static_cast<size_t>(g_.count(id)), g_[id].bits);
      case Op::Iota:
        return each(id, [&](const Dims& at) { return to_bits(g_.dtype(id), at[a[0]]); });
      case Op::Alias:
      case Op::StopGradient:
      case Op::CallOutput:
      case Op::ValueOf:
      case Op::After:
      case Op::Reshape:
        return in(id, 0);
      case Op::Cast: {
        Bits y = in(id, 0);
        for (uint64_t& b : y) b = convert_bits(g_.dtype(g_.input(id, 0)), g_.dtype(id), b);
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
      case Op::LinearRecurrence:
        return linear_recurrence(id);
      case Op::Convolution:
      case Op::ConvolutionInput:
      case Op::ConvolutionWeight:
        return convolution(id);
      case Op::WindowMax:
      case Op::WindowArgMax:
        return window(id);
      case Op::TakeAlong:
        return take_along(id);
      case Op::PutAlong:
        return put_along(id);
      case Op::Gather:
        return gather(id);
      case Op::ScatterAdd:
        return scatter_add(id);
      case Op::LastWriter:
        return last_writer(id);
      case Op::RandomUniform:
        return uniform(id);
      default:
        fail(ErrorKind::NotImplemented, "the interpreter lacks ", info(op).name);
    }
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
    put_bits(a, static_cast<int64_t>(i), to_bits(dtype, values[i]));
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
