#include "ir/verify.h"

#include <bit>

#include "ir/fold.h"
#include "ir/print.h"
#include "ir/spec.h"

namespace gradcell {

namespace {

class Checker {
 public:
  Checker(const Graph& g, const char* pass, GraphStage stage) : g_(g), pass_(pass), stage_(stage) {}

  void check(NodeId id) {
    id_ = id;
    want(static_cast<size_t>(g_[id].op) < static_cast<size_t>(Op::Count), "no such op");
    for (NodeId i : g_.inputs(id)) want(i < id, "input %", i, " does not come before it");
    const Spec& s = spec(g_, id);
    const size_t inputs = s.input_count(), given = g_.inputs(id).size();
    want(inputs == Spec::kMany ? given > 0 : given == inputs, "expected ", inputs, " inputs");
    attributes(s);
    if (s.form == Form::Constant) number();
    if (s.form == Form::Marker) want(stage_ == GraphStage::Recorded, "it should be gone");
    if (s.form == Form::Product)
      want(given == 2 || stage_ == GraphStage::Cleaned,
           "several pairs of inputs outside the planner");
    type(s);
  }

 private:
  template <class... Args>
  void want(bool ok, const Args&... what) const {
    if (!ok)
      fail(ErrorKind::Runtime, "invalid graph after ", pass_, ": ", to_text(g_, id_), ": ",
           what...);
  }

  void attributes(const Spec& s) const {
    const auto numbers = g_.attrs(id_);
    size_t lists = 0;
    for (const Attribute& a : s.attributes) lists += is_list(a.kind);
    const size_t single = s.attributes.size() - lists;
    want(numbers.size() >= single &&
             (lists ? (numbers.size() - single) % lists == 0 : numbers.size() == single),
         "expected ", s.attributes.size(), " attributes");
    for_each_attribute(s.attributes, numbers,
                       [&](const Attribute& a, std::span<const int64_t> values) {
                         if (a.kind == AttributeKind::Flag)
                           want(values[0] == 0 || values[0] == 1, "a flag is ", values[0]);
                       });
  }

  void number() const {
    const DType t = g_.dtype(id_);
    const uint64_t bits = g_[id_].bits;
    const double v = is_floating(t) ? std::bit_cast<double>(bits) : 0;
    want(v != v || convert_bits(t, t, bits) == bits, "its value is none of its dtype");
  }

  /// What the op infers again must be what the node says.
  void type(const Spec& s) const {
    Type inferred;
    try {
      inferred = s.infer(g_, {g_.inputs(id_), g_.attrs(id_), {g_.dtype(id_), g_.dims(id_)}});
    } catch (const Error& e) {
      want(false, e.what());
    }
    want(g_.dtype(id_) == inferred.dtype, "its dtype follows as ", name(inferred.dtype));
    if (g_.dims(id_) != inferred.dims)
      want(false, "its shape follows as ", to_string(inferred.dims));
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
