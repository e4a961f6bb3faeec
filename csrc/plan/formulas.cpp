#include "plan/joining.h"

#include <array>
#include <optional>
#include <string_view>

#include "plan/uses.h"

namespace gradcell {

namespace {

constexpr std::string_view kLetters = "abcst";

/// An expression: a letter (op is Count), or an op of one or two expressions.
struct Pattern {
  Op op = Op::Count;
  int letter = 0;  ///< index into kLetters
  std::vector<Pattern> parts = {};
};

template <class... Parts>
Pattern apply(Op op, Parts... parts) {
  Pattern p{op};
  (p.parts.push_back(std::move(parts)), ...);
  return p;
}

/// Reads an expression as C++ would.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Pattern sum() {
    Pattern left = product();
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
  Pattern product() {
    Pattern left = factor();
    while (char c = accept("*/"))
      left = apply(c == '*' ? Op::Mul : Op::Div, std::move(left), factor());
    return left;
  }
  Pattern factor() {
    constexpr std::string_view kRoot = "sqrt";
    next();
    if (text_.starts_with(kRoot)) {
      text_.remove_prefix(kRoot.size());
      return apply(Op::Sqrt, factor());
    }
    if (accept("(")) {
      Pattern inner = sum();
      accept(")");
      return inner;
    }
    return {Op::Count, static_cast<int>(kLetters.find(accept(kLetters)))};
  }

  std::string_view text_;
};

const std::vector<Pattern>& patterns() {
  static const std::vector<Pattern> all = {
#define FORMULA(Name, expression) Parser(#expression).sum(),
#include "plan/formulas.def"
#undef FORMULA
  };
  return all;
}

bool same(const Operand& a, const Operand& b) {
  return a.uniform == b.uniform && a.value == b.value && a.base == b.base && a.stride == b.stride;
}

class Matcher {
 public:
  Matcher(const Region& region, const Uses& uses) : r_(region), uses_(uses) {}

  /// Whether `root` computes the pattern.
  bool match(const Pattern& p, const Instruction& root) {
    bound_ = {};
    inside.clear();
    features_ = root.features;
    type_ = root.type;
    return node(p, root);
  }

  /// Those of the pattern that matched, in the order of their letters.
  std::vector<Operand> operands() const {
    std::vector<Operand> used;
    for (const auto& o : bound_)
      if (o) used.push_back(*o);
    return used;
  }

  std::vector<int32_t> inside;  ///< instructions that vanish

 private:
  bool node(const Pattern& p, const Instruction& i) {
    if (i.kind != TileOp::Elementwise || i.type != type_ || i.features != features_) return false;
    bool square = i.op == Op::Square && p.op == Op::Mul;
    if (i.op != p.op && !square) return false;
    const Operand &first = i.operand[0], &second = square ? first : i.operand[1];
    if (p.parts.size() == 1) return part(p.parts[0], first);
    auto bound_before = bound_;
    size_t inside_before = inside.size();
    if (part(p.parts[0], first) && part(p.parts[1], second)) return true;
    bound_ = bound_before;
    inside.resize(inside_before);
    return commutes(p.op) && part(p.parts[0], second) && part(p.parts[1], first);
  }

  bool part(const Pattern& p, const Operand& o) {
    if (p.op == Op::Count) return letter(p.letter, o);
    const int32_t maker = uses_.only_for(o);
    if (maker < 0 || r_.values[o.value].features != features_) return false;
    inside.push_back(maker);
    return node(p, r_.program[static_cast<size_t>(maker)]);
  }

  bool letter(int letter, const Operand& o) {
    bool number = kLetters[letter] >= 's';
    if (o.uniform != number) return false;
    if (number && o.stride != 0 && features_ != 1) return false;
    if (bound_[letter]) return same(*bound_[letter], o);
    bound_[letter] = o;
    return true;
  }

  const Region& r_;
  const Uses& uses_;
  std::array<std::optional<Operand>, kLetters.size()> bound_;
  int32_t features_ = 0;
  Compute type_ = Compute::F32;
};

}  // namespace

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
      for (int32_t inside : matcher.inside) dropped[static_cast<size_t>(inside)] = 1;
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
