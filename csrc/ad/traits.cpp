#include "ad/traits.h"

#include <vector>

#include "ops/ops.h"

namespace gradcell::ad {

namespace {

Traits traits_of(Op op) {
  const Spec& s = spec(op);
  Traits t{0, s.differentiable(), s.form == Form::Loop || is_call_output(op)};
  for (int k = 0; k < Traits::kInputs; ++k)
    if (s.computes_with(k)) t.computed |= narrow<uint16_t>(1u << k);
  return t;
}

}  // namespace

const Traits* traits() {
  static const std::vector<Traits> all = [] {
    std::vector<Traits> made;
    for (size_t op = 0; op < static_cast<size_t>(Op::Count); ++op)
      made.push_back(traits_of(static_cast<Op>(op)));
    return made;
  }();
  return all.data();
}

}  // namespace gradcell::ad
