#include "plan/joining.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "ir/op_info.h"
#include "plan/costs.h"
#include "plan/region/uses.h"

namespace gradcell {

namespace {

constexpr std::string_view kLetters = "abcpqrst";
/// From here on they are numbers.
constexpr char kFirstNumber = 'p';

/// An expression: a letter (op is Count), or an op of one or two expressions.
struct FormulaPattern {
  Op op = Op::Count;
  int letter = 0;  ///< index into kLetters
  std::vector<FormulaPattern> parts = {};
};

template <class... Parts>
FormulaPattern apply(Op op, Parts... parts) {
  FormulaPattern p{op};
  (p.parts.push_back(std::move(parts)), ...);
  return p;
}

/// Reads an expression as C++ would.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  FormulaPattern sum() {
    FormulaPattern left = product();
    while (char c = accept("+-"))
      left = apply(c == '+' ? Op::Add : Op::Sub, std::move(left), product());
    return left;
  }

 private:
  char next() {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
    return text_.empty() ? '\0' : text_[0];
  }
  char accept(std::string_view any) {
    char c = next();
    if (c == '\0' || any.find(c) == any.npos) return '\0';
    text_.remove_prefix(1);
    return c;
  }
  FormulaPattern product() {
    FormulaPattern left = factor();
    while (char c = accept("*/"))
      left = apply(c == '*' ? Op::Mul : Op::Div, std::move(left), factor());
    return left;
  }
  /// A comparison, or a predicate.
  FormulaPattern condition() {
    static constexpr std::pair<std::string_view, Op> kComparisons[] = {
        {"==", Op::Equal},        {"!=", Op::NotEqual}, {"<=", Op::LessEqual},
        {">=", Op::GreaterEqual}, {"<", Op::Less},      {">", Op::Greater}};
    FormulaPattern left = sum();
    next();
    for (const auto& [text, op] : kComparisons)
      if (text_.starts_with(text)) {
        text_.remove_prefix(text.size());
        return apply(op, std::move(left), sum());
      }
    return left;
  }
  std::string_view name() {
    next();
    size_t n = 0;
    while (n < text_.size() && text_[n] >= 'a' && text_[n] <= 'z') ++n;
    const std::string_view found = text_.substr(0, n);
    text_.remove_prefix(n);
    return found;
  }
  FormulaPattern factor() {
    if (accept("(")) {
      FormulaPattern inner = sum();
      accept(")");
      return inner;
    }
    const std::string_view word = name();
    if (word.size() == 1) return {Op::Count, narrow<int>(kLetters.find(word[0]))};
    FormulaPattern p{find_function(word)};
    accept("(");
    p.parts.push_back(p.op == Op::Select ? condition() : sum());
    while (accept(",")) p.parts.push_back(sum());
    accept(")");
    return p;
  }
  static Op find_function(std::string_view name) {
    for (size_t op = 0; op < static_cast<size_t>(Op::Count); ++op)
      if (name == info(static_cast<Op>(op)).function) return static_cast<Op>(op);
    fail(ErrorKind::Runtime, "a formula has a function that is no op");
  }

  std::string_view text_;
};

const std::vector<FormulaPattern>& patterns() {
  static const std::vector<FormulaPattern> all = {
#define FORMULA(Name, expression) Parser(#expression).sum(),
#include "plan/region/formulas.def"
#undef FORMULA
  };
  return all;
}

double dearest_ns(const FormulaPattern& p) {
  double most = element_cost(p.op == Op::Count ? OpCost::Arithmetic : info(p.op).cost).cpu_ns;
  for (const FormulaPattern& part : p.parts) most = std::max(most, dearest_ns(part));
  return most;
}

bool same(const Operand& a, const Operand& b) {
  return a.uniform == b.uniform && a.value == b.value && a.base == b.base && a.stride == b.stride;
}

class Matcher {
 public:
  Matcher(const Region& region, const Uses& uses) : r_(region), uses_(uses) {}

  /// Whether `root` computes the pattern.
  bool match(const FormulaPattern& p, const Instruction& root) {
    bound_ = {};
    used_.clear();
    features_ = root.features;
    type_ = root.type;
    return node(p, root) && nothing_else_uses();
  }

  /// Those of the pattern that matched, in the order of their letters.
  std::vector<Operand> operands() const {
    std::vector<Operand> used;
    for (const auto& o : bound_)
      if (o) used.push_back(*o);
    return used;
  }

  /// Instructions that vanish.
  std::vector<int32_t> inside() const {
    std::vector<int32_t> makers;
    for (const Operand* o : used_) makers.push_back(uses_.maker[o->value]);
    return makers;
  }

 private:
  bool node(const FormulaPattern& p, const Instruction& i) {
    if (i.kind != TileOp::Elementwise || i.type != type_ || i.features != features_) return false;
    bool square = i.op == Op::Square && p.op == Op::Mul;
    if (i.op != p.op && !square) return false;
    const Operand* operand[3] = {&i.operand[0], &i.operand[square ? 0 : 1], &i.operand[2]};
    const Bound bound_before = bound_;
    const size_t used_before = used_.size();
    const auto parts = [&](const Operand* first, const Operand* second) {
      bound_ = bound_before;
      used_.resize(used_before);
      const Operand* in_order[] = {first, second, operand[2]};
      for (size_t k = 0; k < p.parts.size(); ++k)
        if (!part(p.parts[k], *in_order[k])) return false;
      return true;
    };
    return parts(operand[0], operand[1]) || (commutes(p.op) && parts(operand[1], operand[0]));
  }

  bool part(const FormulaPattern& p, const Operand& o) {
    if (p.op == Op::Count) return letter(p.letter, o);
    const int32_t maker = uses_.made_for(o);
    if (maker < 0 || r_.values[o.value].features != features_) return false;
    used_.push_back(&o);
    return node(p, r_.program[static_cast<size_t>(maker)]);
  }

  /// Whether the parts' results are operands of the pattern's instructions alone.
  bool nothing_else_uses() {
    std::ranges::sort(used_);
    used_.erase(std::unique(used_.begin(), used_.end()), used_.end());
    return std::ranges::all_of(used_, [&](const Operand* o) {
      const auto n = std::ranges::count(used_, o->value, &Operand::value);
      return n == uses_.count[o->value] && !is_letter(*o);
    });
  }
  /// An operand may be a letter at one place of the pattern and what it is made of at another.
  bool is_letter(const Operand& o) const {
    return std::ranges::any_of(bound_, [&](const std::optional<Operand>& b) {
      return b && b->uniform == o.uniform && b->value == o.value;
    });
  }

  bool letter(int letter, const Operand& o) {
    const bool number = kLetters[letter] >= kFirstNumber;
    if (o.uniform != number) return false;
    if (number && o.stride != 0 && features_ != 1) return false;
    if (bound_[letter]) return same(*bound_[letter], o);
    bound_[letter] = o;
    return true;
  }

  const Region& r_;
  const Uses& uses_;
  using Bound = std::array<std::optional<Operand>, kLetters.size()>;
  Bound bound_;
  std::vector<const Operand*> used_;  ///< operands that are results of other instructions
  int32_t features_ = 0;
  Compute type_ = Compute::F32;
};

}  // namespace

double formula_ns(Formula f) { return dearest_ns(patterns()[static_cast<size_t>(f)]); }

void form_formulas(Region& region) {
  auto& program = region.program;
  const Uses uses(region);
  Matcher matcher(region, uses);
  std::vector<uint8_t> dropped(program.size(), 0);
  for (size_t at = program.size(); at-- > 0;) {
    Instruction& i = program[at];
    if (dropped[at] || i.kind != TileOp::Elementwise || !exact(i.dtype)) continue;
    for (size_t f = 0; f < patterns().size(); ++f) {
      if (!matcher.match(patterns()[f], i)) continue;
      for (int32_t inside : matcher.inside()) dropped[static_cast<size_t>(inside)] = 1;
      i.kind = TileOp::Formula;
      i.formula = static_cast<Formula>(f);
      i.operand_count = 0;
      for (const Operand& o : matcher.operands()) i.operand[i.operand_count++] = o;
      break;
    }
  }
  erase_marked(program, dropped);
}

}  // namespace gradcell
