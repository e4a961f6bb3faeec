#include "ir/verify.h"

#include <algorithm>

#include "ir/fold.h"
#include "ir/print.h"

namespace gradcell {

namespace {

class Checker {
 public:
  Checker(const Graph& g, const char* pass, GraphStage stage) : g_(g), pass_(pass), stage_(stage) {}

  void check(NodeId id) {
    id_ = id;
    want(static_cast<size_t>(op()) < static_cast<size_t>(Op::Count), "no such op");
    for (NodeId i : g_.inputs(id)) want(i < id, "input %", i, " does not come before it");
    if (is_elementwise(op()))
      elementwise();
    else
      structured();
  }

 private:
  template <class... Args>
  void want(bool ok, const Args&... what) const {
    if (!ok)
      fail(ErrorKind::Runtime, "invalid graph after ", pass_, ": ", to_text(g_, id_), ": ",
           what...);
  }

  Op op() const { return g_[id_].op; }
  const Dims& dims() const { return g_.dims(id_); }
  DType dtype() const { return g_.dtype(id_); }
  std::span<const int64_t> attrs() const { return g_.attrs(id_); }
  size_t input_count() const { return g_.inputs(id_).size(); }
  NodeId input(int k) const { return g_.input(id_, k); }
  const Dims& dims(int k) const { return g_.dims(input(k)); }
  DType dtype(int k) const { return g_.dtype(input(k)); }

  void counts(size_t inputs, size_t attributes) const {
    want(input_count() == inputs, "expected ", inputs, " inputs");
    want(attrs().size() == attributes, "expected ", attributes, " attributes");
  }
  void is(DType inferred_dtype, const Dims& inferred) const {
    want(dtype() == inferred_dtype, "its dtype follows as ", name(inferred_dtype));
    if (dims() != inferred) want(false, "its shape follows as ", to_string(inferred));
  }
  void is_axis(int64_t axis, const Dims& of) const {
    want(axis >= 0 && axis < static_cast<int64_t>(of.size()), "axis ", axis, " is out of range");
  }
  void is_flag(int64_t flag) const { want(flag == 0 || flag == 1, "a flag is ", flag); }
  void is_index(DType t) const {
    want(t == DType::Int32 || t == DType::Int64, "indices of dtype ", name(t));
  }

  void elementwise() const {
    const OpInfo& row = info(op());
    size_t n = row.kind == OpKind::Ternary                                 ? 3
               : row.kind == OpKind::Binary || row.kind == OpKind::Compare ? 2
                                                                           : 1;
    counts(n, 0);
    int first = row.kind == OpKind::Ternary ? 1 : 0, last = static_cast<int>(n) - 1;
    for (int k = 0; k <= last; ++k) want(dims(k) == dims(last), "its inputs' shapes differ");
    for (int k = first; k < last; ++k) want(dtype(k) == dtype(last), "its inputs' dtypes differ");
    if (first == 1) want(dtype(0) == DType::Bool, "its condition is ", name(dtype(0)));
    DType t = dtype(last);
    want(row.cls != OpClass::Float || is_floating(t), "not defined for ", name(t));
    want(row.cls != OpClass::Bool || t == DType::Bool, "not defined for ", name(t));
    bool truth = row.kind == OpKind::Compare || row.kind == OpKind::Predicate;
    is(truth ? DType::Bool : t, dims(last));
  }

  void constant() const {
    counts(0, 0);
    uint64_t bits = g_[id_].bits;
    double v = is_floating(dtype()) ? constant_value(g_, id_) : 0;
    want(v != v || convert_bits(dtype(), dtype(), bits) == bits, "its value is none of its dtype");
  }

  void broadcast() const {
    counts(1, 0);
    want(dtype() == dtype(0), "its dtype follows as ", name(dtype(0)));
    const Dims &from = dims(0), &to = dims();
    want(from.size() <= to.size(), "its rank is below its input's");
    for (size_t k = 0; k < from.size(); ++k) {
      int64_t d = from[k], e = to[to.size() - from.size() + k];
      want(d == e || d == 1, "its input does not broadcast to its shape");
    }
  }

  /// start + i * step stays inside `large` for i in each dimension of `small`.
  void box(const Dims& small, const Dims& large) const {
    size_t rank = large.size();
    counts(1, 2 * rank);
    want(dtype() == dtype(0), "its dtype follows as ", name(dtype(0)));
    want(small.size() == rank, "its rank differs from its input's");
    for (size_t k = 0; k < rank; ++k) {
      int64_t start = attrs()[k], step = attrs()[rank + k];
      if (small[k] == 0) continue;
      int64_t last = start + (small[k] - 1) * step;
      want(start >= 0 && start < large[k] && last >= 0 && last < large[k], "dimension ", k,
           " reaches from ", start, " to ", last, " of ", large[k]);
      want(step != 0 || small[k] == 1, "dimension ", k, " has step 0");
    }
  }

  void transpose() const {
    counts(1, dims(0).size());
    Dims inferred;
    std::vector<uint8_t> seen(dims(0).size(), 0);
    for (int64_t axis : attrs()) {
      is_axis(axis, dims(0));
      want(!seen[axis], "axis ", axis, " appears twice");
      seen[axis] = 1;
      inferred.push_back(dims(0)[axis]);
    }
    is(dtype(0), inferred);
  }

  void concat() const {
    want(input_count() >= 2, "expected at least 2 inputs");
    counts(input_count(), 1);
    int64_t axis = attrs()[0];
    is_axis(axis, dims(0));
    Dims inferred = dims(0);
    for (size_t k = 1; k < input_count(); ++k) {
      int i = static_cast<int>(k);
      want(dtype(i) == dtype(0), "its inputs' dtypes differ");
      Dims d = dims(i);
      want(d.size() == inferred.size(), "its inputs' ranks differ");
      inferred[axis] += d[axis];
      d[axis] = dims(0)[axis];
      want(d == dims(0), "its inputs differ elsewhere than on the axis");
    }
    is(dtype(0), inferred);
  }

  void matmul() const {
    size_t n = input_count();
    want(n >= 2 && n % 2 == 0, "expected pairs of inputs");
    want(n == 2 || stage_ == GraphStage::Cleaned, "several pairs of inputs outside the planner");
    counts(n, 2);
    is_flag(attrs()[0]), is_flag(attrs()[1]);
    for (int k = 0; k < static_cast<int>(n); k += 2) {
      const Dims &a = dims(k), &b = dims(k + 1);
      size_t r = a.size();
      want(r >= 2 && b.size() == r && std::equal(a.begin(), a.end() - 2, b.begin()),
           "ranks or batch dimensions of pair ", k / 2, " differ");
      want(dtype(k) == dtype(0) && dtype(k + 1) == dtype(0), "its inputs' dtypes differ");
      bool ta = attrs()[0], tb = attrs()[1];
      want(a[ta ? r - 2 : r - 1] == b[tb ? r - 1 : r - 2], "pair ", k / 2, " does not multiply");
      Dims inferred(a.begin(), a.end() - 2);
      inferred.push_back(a[ta ? r - 1 : r - 2]);
      inferred.push_back(b[tb ? r - 2 : r - 1]);
      is(dtype(0), inferred);
    }
  }

  void reduction() const {
    counts(1, attrs().size());
    want(!attrs().empty(), "no axes");
    Dims inferred;
    int64_t last = -1;
    for (int64_t axis : attrs()) {
      is_axis(axis, dims(0));
      want(axis > last, "its axes are not ascending");
      last = axis;
    }
    for (size_t k = 0; k < dims(0).size(); ++k) {
      bool gone = std::binary_search(attrs().begin(), attrs().end(), static_cast<int64_t>(k));
      if (!gone)
        inferred.push_back(dims(0)[k]);
      else
        want(op() == Op::ReduceSum || dims(0)[k] > 0, "an empty reduction");
    }
    is(dtype(0), inferred);
  }

  void arg_reduction() const {
    counts(1, 1);
    is_axis(attrs()[0], dims(0));
    Dims inferred = dims(0);
    want(inferred[attrs()[0]] > 0, "an empty reduction");
    inferred.erase(inferred.begin() + attrs()[0]);
    is(DType::Int32, inferred);
  }

  void gather() const {
    counts(2, 1);
    int64_t axis = attrs()[0];
    is_axis(axis, dims(0));
    is_index(dtype(1));
    Dims inferred(dims(0).begin(), dims(0).begin() + axis);
    inferred.insert(inferred.end(), dims(1).begin(), dims(1).end());
    inferred.insert(inferred.end(), dims(0).begin() + axis + 1, dims(0).end());
    is(dtype(0), inferred);
  }

  void scatter_add() const {
    counts(2, 1);
    int64_t axis = attrs()[0];
    is_axis(axis, dims());
    is_index(dtype(0));
    const Dims &at = dims(0), &from = dims(1);
    want(axis + at.size() <= from.size() && std::equal(at.begin(), at.end(), from.begin() + axis),
         "its updates do not fit its indices");
    Dims inferred(from.begin(), from.begin() + axis);
    inferred.push_back(dims()[axis]);
    inferred.insert(inferred.end(), from.begin() + axis + static_cast<int64_t>(at.size()),
                    from.end());
    is(dtype(1), inferred);
  }

  void structured() const {
    bool recorded = stage_ == GraphStage::Recorded;
    switch (op()) {
      case Op::Leaf:
        return counts(0, 0);
      case Op::Const:
        return constant();
      case Op::Iota:
        counts(0, 1);
        return is_axis(attrs()[0], dims());
      case Op::Alias:
      case Op::StopGradient:
        want(recorded, "it should be gone");
        counts(1, 0);
        return is(dtype(0), dims(0));
      case Op::Cast:
        counts(1, 0);
        return is(dtype(), dims(0));
      case Op::Reshape:
        counts(1, 0);
        want(g_.count(id_) == g_.count(input(0)),
             "its number of elements differs from its input's");
        return want(dtype() == dtype(0), "its dtype follows as ", name(dtype(0)));
      case Op::Transpose:
        return transpose();
      case Op::BroadcastTo:
        return broadcast();
      case Op::Slice:
        return box(dims(), dims(0));
      case Op::SliceScatter:
        return box(dims(0), dims());
      case Op::Concat:
        return concat();
      case Op::MatMul:
        return matmul();
      case Op::ReduceSum:
      case Op::ReduceMax:
      case Op::ReduceMin:
        return reduction();
      case Op::ArgMax:
      case Op::ArgMin:
        return arg_reduction();
      case Op::CumSum:
        counts(1, 3);
        is_axis(attrs()[0], dims(0));
        is_flag(attrs()[1]), is_flag(attrs()[2]);
        return is(dtype(0), dims(0));
      case Op::Gather:
        return gather();
      case Op::ScatterAdd:
        return scatter_add();
      case Op::LastWriter:
        counts(1, 0);
        is_index(dtype(0));
        return want(dtype() == DType::Int64 && dims().size() == 1, "it is no int64 vector");
      case Op::RandomUniform:
        counts(1, 0);
        want(dtype(0) == DType::Int64 && dims(0) == Dims{2}, "its state is no int64[2]");
        return want(dtype() == DType::Float32, "its dtype follows as float32");
      default:
        want(false, "the verifier does not know this op");
    }
  }

  const Graph& g_;
  const char* pass_;
  GraphStage stage_;
  NodeId id_ = 0;
};

}  // namespace

void verify(const Graph& g, const char* pass, NodeId first, GraphStage stage) {
  Checker checker(g, pass, stage);
  for (NodeId id = first; id < g.size(); ++id) checker.check(id);
}

}  // namespace gradcell
