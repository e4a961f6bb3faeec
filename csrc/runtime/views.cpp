#include "runtime/views.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "ad/row_dots.h"
#include "base/element.h"
#include "base/thread_pool.h"
#include "ops/ops.h"

namespace gradcell {

NodeId replay(Graph& g, const std::vector<Step>& steps, NodeId x) {
  for (const Step& s : steps) x = make(g, s.op, {{&x, 1}, s.attributes, {{}, s.dims}});
  return x;
}

std::vector<Step> steps_between(const Graph& g, NodeId from, NodeId to) {
  std::vector<Step> steps;
  for (; to != from; to = g.input(to, 0))
    steps.push_back({g[to].op, Dims(g.attrs(to).begin(), g.attrs(to).end()), g.dims(to)});
  std::reverse(steps.begin(), steps.end());
  return steps;
}

// Elements ----------------------------------------------------------------------------------------

namespace {

/// Of more elements, plans are faster: they use all threads and blocks of the cache.
constexpr int64_t kDirect = 1 << 15;

template <class T>
void move_elements(const View& to, char* out, const View& from, const char* in, size_t axis) {
  if (axis == to.dims.size()) {
    std::memcpy(out, in, sizeof(T));
    return;
  }
  const int64_t n = to.dims[axis], a = to.strides[axis], b = from.strides[axis];
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (axis + 1 < to.dims.size()) {
    for (int64_t i = 0; i < n; ++i)
      move_elements<T>(to, out + i * a * size, from, in + i * b * size, axis + 1);
  } else if (a == 1 && b == 1) {
    std::memcpy(out, in, static_cast<size_t>(n * size));
  } else if (a == 1 && b == 0) {
    T value;
    std::memcpy(&value, in, sizeof(T));
    std::fill_n(reinterpret_cast<T*>(out), n, value);
  } else {
    for (int64_t i = 0; i < n; ++i) std::memcpy(out + i * a * size, in + i * b * size, sizeof(T));
  }
}

/// The elements of one view to the places of another, of the same dimensions; where they are many,
/// by all threads, along the first axis.
template <class T>
void move_elements(const View& to, char* out, const View& from, const char* in) {
  const int64_t n = to.dims.empty() ? 1 : to.dims[0];
  const int64_t parts =
      std::clamp<int64_t>(element_count(to.dims) >> 15, 1, std::min<int64_t>(n, 64));
  if (parts == 1) return move_elements<T>(to, out, from, in, 0);
  parallel_for(parts, [&](int part, int) {
    const int64_t begin = n * part / parts;
    View some = to;
    some.dims[0] = n * (part + 1) / parts - begin;
    constexpr auto size = static_cast<int64_t>(sizeof(T));
    move_elements<T>(some, out + begin * to.strides[0] * size, from,
                     in + begin * from.strides[0] * size, 0);
  });
}

void move_elements(const View& to, const Array& out, const View& from, const Array& in) {
  if (element_count(to.dims) == 0) return;
  const auto size = static_cast<int64_t>(item_size(out.dtype));
  char* o = static_cast<char*>(out.data()) + to.offset * size;
  const char* i = static_cast<const char*>(in.data()) + from.offset * size;
  by_size(item_size(out.dtype), [&]<class S>() { move_elements<S>(to, o, from, i); });
}

/// A value as a view of other dimensions, to which it broadcasts.
View spread(const Dims& from, const Dims& to) {
  Graph g;
  const NodeId x = leaf(g, DType::Bool, from);
  const NodeId y = broadcast_to(g, x, to);
  View v = whole(from);
  for (const Step& s : steps_between(g, x, y)) v = *spec(s.op).lay(v, s.attributes, s.dims);
  return v;
}

}  // namespace

bool is_whole(const View& v, int64_t count) {
  if (element_count(v.dims) != count || v.offset != 0) return false;
  int64_t stride = 1;
  for (size_t k = v.dims.size(); k-- > 0;) {
    if (v.dims[k] != 1 && v.strides[k] != stride) return false;
    stride *= v.dims[k];
  }
  return true;
}

bool read_in_place(const View& v) {
  constexpr int64_t kRun = 64;
  if (element_count(v.dims) <= kDirect) return false;
  const View lines = merged(v);
  return lines.dims.back() >= kRun && (lines.strides.back() == 0 || lines.strides.back() == 1);
}

Array read(const Array& base, const Window& w) {
  if (is_whole(w.layout, base.count())) return {base.dtype, w.layout.dims, base.storage};
  if (element_count(w.layout.dims) <= kDirect && on_host(base)) {
    Array out = empty_array(base.dtype, w.layout.dims);
    move_elements(whole(w.layout.dims), out, w.layout, base);
    return out;
  }
  Trace trace;
  const NodeId y[] = {replay(trace.graph, w.steps, trace.lift(base))};
  return trace.finish(y)[0];
}

bool on_host(const Array& a) {
  return settings().device < 0 && a.storage->on_host() && !a.storage->has_device();
}

// Views -------------------------------------------------------------------------------------------

namespace {

/// Of views of views of views: the same movements in fewer steps, if there are.
void shorten(Window& w) {
  constexpr size_t kShort = 8;
  if (w.steps.size() < kShort || !std::has_single_bit(w.steps.size())) return;
  Graph g;
  const NodeId from = leaf(g, part_dtype(w.base->dtype()), w.base->dims());
  const NodeId to = replay(g, w.steps, from);
  for (NodeId x = to; x != from; x = g.input(x, 0))
    if (g[x].input_count != 1) return;
  w.steps = steps_between(g, from, to);
}

}  // namespace

TensorPtr view(const TensorPtr& x, std::vector<Step> steps, std::optional<View> layout) {
  const Window* outer = x->window();
  if (!layout) {
    layout = outer ? outer->layout : whole(x->dims());
    for (const Step& s : steps)
      if (layout) layout = spec(s.op).lay(*layout, s.attributes, s.dims);
  }
  Trace* t = current_trace();
  NodeId node = kNoNode;
  if (t) {
    Stamp stamp(t->graph);
    stamp.at(t->here());
    node = ad::with_fewer_products(t->graph, replay(t->graph, steps, x->in(*t)));
  }
  if (!layout) {
    if (t) return std::make_shared<Tensor>(t->shared_from_this(), node);
    Trace own;
    const NodeId y[] = {replay(own.graph, steps, own.lift(x->value()))};
    return std::make_shared<Tensor>(own.finish(y)[0]);
  }
  Window w{outer ? outer->base : x, outer ? outer->steps : std::vector<Step>{}, *layout};
  w.steps.insert(w.steps.end(), std::make_move_iterator(steps.begin()),
                 std::make_move_iterator(steps.end()));
  shorten(w);
  if (t) return std::make_shared<Tensor>(t->shared_from_this(), node, std::move(w));
  return std::make_shared<Tensor>(x->dtype(), std::move(w));
}

TensorPtr copy(const TensorPtr& x) {
  Trace* t = current_trace();
  Tensor& root = x->root();
  if (!t || !(x->traced() || root.traced() || root.variable())) {
    if (t) x->in(*t);  // a compiled form has to know that x is what it depends on
    return std::make_shared<Tensor>(shared(x->value()));
  }
  return std::make_shared<Tensor>(t->shared_from_this(), x->in(*t));
}

std::vector<TensorPtr> settled(const std::vector<TensorPtr>& results, bool by_value) {
  const Trace& t = required_trace();
  std::unordered_map<const Tensor*, int> times;  // that a root is among theirs
  for (const TensorPtr& x : results) ++times[&x->root()];
  std::vector<TensorPtr> out;
  for (const TensorPtr& x : results) {
    const bool own = x->root().born() == t.serial;
    const bool alone = times[&x->root()] == 1;
    const bool stays = x->window() ? !by_value && (!own || !alone) : !by_value || own;
    out.push_back(stays ? x : copy(x));
  }
  return out;
}

// Writes ------------------------------------------------------------------------------------------

namespace {

/// `base` with the elements that steps lead to replaced by those of y.
NodeId with_part(Graph& g, NodeId base, const std::vector<Step>& steps, NodeId y) {
  bool spreads = false;  // elements that the base has once
  int64_t count = g.count(base);
  for (const Step& s : steps) {
    const int64_t n = element_count(s.dims);
    spreads |= n > count;
    count = n;
  }
  if (!spreads) {
    std::vector<NodeId> xs = {base};
    for (size_t i = 0; i + 1 < steps.size(); ++i) xs.push_back(replay(g, {steps[i]}, xs.back()));
    for (size_t i = steps.size(); i-- > 0;)
      y = spec(steps[i].op).put(g, xs[i], steps[i].attributes, y);
    return y;
  }
  // Where each element of the view lies in the base, and for each place there who writes to it.
  const Dims dims = g.dims(base), all = {g.count(base)};
  const NodeId numbers = reshape(g, iota(g, DType::Int64, all, 0), dims);
  const Dims row = {g.count(y)};
  const NodeId places = reshape(g, replay(g, steps, numbers), row);
  const NodeId writer = last_writer(g, places, all[0]);
  const NodeId written = binary(g, Op::GreaterEqual, writer, constant(g, g.dtype(writer), all, 0));
  const NodeId there = gather(g, reshape(g, y, row), writer, 0);
  return reshape(g, select(g, written, there, reshape(g, base, all)), dims);
}

NodeId written(Trace& t, const TensorPtr& y, const TensorPtr& value) {
  Graph& g = t.graph;
  NodeId v = cast(g, value->in(t), y->dtype());
  if (g.dims(v) != y->dims()) v = broadcast_to(g, v, y->dims());
  const Window* w = y->window();
  if (!w) return v;
  // Steps that hide derivatives: those of the base's other elements stay, the written ones have
  // none.
  std::vector<Step> steps = w->steps;
  if (std::erase_if(steps, [](const Step& s) { return s.op == Op::StopGradient; }))
    v = stop_gradient(g, v);
  return with_part(g, w->base->in(t), steps, v);
}

}  // namespace

void write(const TensorPtr& y, const TensorPtr& value) {
  const Window* w = y->window();
  const Dims dims = y->dims();
  if (w && overlaps(w->layout))
    fail(ErrorKind::Value, "a write to a tensor of shape ", to_string(dims),
         ", several elements of which are one element of the tensor of shape ",
         to_string(w->base->dims()), " that it was expanded from: write to that, or to a copy()");
  Tensor& root = y->root();
  if (Trace* t = current_trace()) {
    Stamp stamp(t->graph);
    stamp.at(t->here());
    return root.become(*t, written(*t, y, value));
  }
  const bool whole_of_it = !w || is_whole(w->layout, element_count(root.dims()));
  if (value->dtype() == y->dtype()) {
    const Array v = value->value();
    if (whole_of_it && v.dims == dims)
      return root.become(Array{v.dtype, root.dims(), shared(v).storage});
    if (on_host(v) && on_host(root.value())) {
      const View from = spread(v.dims, dims), to = w ? w->layout : whole(dims);
      root.overwrite([&](const Array& own) { move_elements(to, own, from, v); });
      return;
    }
  }
  Trace own;
  const NodeId now[] = {written(own, y, value)};
  root.become(own.finish(now)[0]);
}

}  // namespace gradcell
