#include "ir/print.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <sstream>

#include "ir/body.h"
#include "ir/op_info.h"
#include "ir/spec.h"

namespace gradcell {

namespace {

/// The shortest text that reads back as the same number of that dtype.
std::string number(DType dtype, uint64_t bits) {
  if (!is_floating(dtype)) return std::to_string(std::bit_cast<int64_t>(bits));
  auto v = std::bit_cast<double>(bits);
  char text[32];
  auto end = dtype == DType::Float64
                 ? std::to_chars(text, text + sizeof text, v)
                 : std::to_chars(text, text + sizeof text, static_cast<float>(v));
  return std::string(text, end.ptr);
}

/// Loops' bodies, which stand below a listing by numbers.
class Bodies {
 public:
  std::string label(std::span<const int64_t> body) {
    const Dims numbers(body.begin(), body.end());
    auto at = std::ranges::find(all_, numbers);
    if (at == all_.end()) at = all_.insert(at, numbers);
    return "@" + std::to_string(at - all_.begin());
  }
  /// Their listings; bodies in them follow.
  std::string text();

 private:
  std::vector<Dims> all_;
};

/// The attributes as named arguments, each after a comma; flags that are not set are left out.
std::string attributes(const Graph& g, NodeId id, Bodies& bodies) {
  std::string text;
  for_each_attribute(spec(g, id).attributes, g.attrs(id),
                     [&](const Attribute& a, std::span<const int64_t> values) {
                       if (a.kind == AttributeKind::Body)
                         text += str(", ", a.name, "=", bodies.label(values));
                       else if (is_list(a.kind))
                         text += str(", ", a.name, "=", to_string(values));
                       else if (a.kind != AttributeKind::Flag)
                         text += str(", ", a.name, "=", values[0]);
                       else if (values[0])
                         text += str(", ", a.name);
                     });
  return text;
}

template <class Name>
std::string call(const Graph& g, NodeId id, Name name, Bodies& bodies) {
  std::string s;
  for (NodeId i : g.inputs(id)) s += (s.empty() ? "" : ", ") + name(i);
  std::string rest = form(g, id) == Form::Constant ? ", " + number(g.dtype(id), g[id].bits)
                                                   : attributes(g, id, bodies);
  if (s.empty() && rest.size() > 2) rest.erase(0, 2);
  return std::string(info(g[id].op).name) + "(" + s + rest + ")";
}

std::string type(const Graph& g, NodeId id) {
  return std::string(name(g.dtype(id))) + to_string(g.dims(id));
}

std::string label_of(NodeId id) { return "%" + std::to_string(id); }

std::string comment(const Graph& g, NodeId id, const Remark& remark) {
  const Node& n = g[id];
  std::string s = remark ? remark(id) : "";
  if (n.order) s += (s.empty() ? "order " : ", order ") + std::to_string(n.order);
  return s.empty() ? s : "  # " + s;
}

/// The live nodes and their numbers in the listing.
struct Listing {
  std::vector<NodeId> nodes;
  std::vector<NodeId> number;
  Listing(const Graph& g, std::span<const NodeId> roots)
      : nodes(live_nodes(g, roots)), number(g.size(), kNoNode) {
    for (size_t i = 0; i < nodes.size(); ++i) number[nodes[i]] = narrow<NodeId>(i);
  }
  std::string operator()(NodeId id) const { return label_of(number[id]); }
};

std::string Bodies::text() {
  std::string text;
  for (size_t k = 0; k < all_.size(); ++k) {
    const Body body = read_body(all_[k]);
    text += str("@", k, "\n");
    for (NodeId id = 0; id < body.graph.size(); ++id)
      text += str("  ", label_of(id), " = ", call(body.graph, id, label_of, *this), " : ",
                  type(body.graph, id), "\n");
    text += "  next";
    for (size_t i = 0; i < body.next.size(); ++i)
      text += str(i ? ", " : " ", label_of(body.next[i]));
    text += "\n";
  }
  return text;
}

const char* fill(int order) {
  static constexpr const char* kBlues[] = {"#ffffff", "#dbe9f6", "#b0d2e7", "#7fb8da", "#539ecd"};
  return kBlues[std::min(order, 4)];
}

}  // namespace

std::string to_text(const Graph& g, NodeId id) {
  Bodies bodies;
  return label_of(id) + " = " + call(g, id, label_of, bodies) + " : " + type(g, id);
}

std::string to_text(const Graph& g, std::span<const NodeId> roots, const Remark& remark) {
  Listing listing(g, roots);
  std::ostringstream out;
  Bodies bodies;
  for (NodeId id : listing.nodes)
    out << listing(id) << " = " << call(g, id, listing, bodies) << " : " << type(g, id)
        << comment(g, id, remark) << "\n";
  out << "return";
  for (size_t i = 0; i < roots.size(); ++i) out << (i ? ", " : " ") << listing(roots[i]);
  out << "\n" << bodies.text();
  return out.str();
}

std::string to_dot(const Graph& g, std::span<const NodeId> roots, const Remark& remark) {
  Listing listing(g, roots);
  auto key = [&](NodeId id) { return "n" + std::to_string(listing.number[id]); };
  std::ostringstream out;
  Bodies bodies;
  out << "digraph {\n"
         "  node [shape=ellipse, style=filled, fontname=\"sans-serif\", fontsize=11];\n"
         "  edge [arrowsize=0.6, fontname=\"sans-serif\", fontsize=9];\n";
  for (NodeId id : listing.nodes) {
    const Node& n = g[id];
    const bool is_number = form(g, id) == Form::Constant, is_input = form(g, id) == Form::Input;
    bool root = std::find(roots.begin(), roots.end(), id) != roots.end();
    std::string text = is_number ? number(n.dtype, n.bits) : info(n.op).name;
    if (!is_number) text += attributes(g, id, bodies).substr(0, 60);
    if (is_input && remark && !remark(id).empty()) text = remark(id);
    out << "  " << key(id) << " [label=\"" << text << "\\n"
        << type(g, id) << "\", fillcolor=\"" << fill(n.order) << "\""
        << (is_input || root ? ", shape=box" : "") << (root ? ", peripheries=2" : "") << "];\n";
    for (size_t k = 0; k < g.inputs(id).size(); ++k) {
      out << "  " << key(g.inputs(id)[k]) << " -> " << key(id);
      // Which input an edge is matters only where the order of the inputs does.
      if (g.inputs(id).size() > 1 && !commutes(n.op)) out << " [label=\"" << k << "\"]";
      out << ";\n";
    }
  }
  out << "}\n";
  return out.str();
}

}  // namespace gradcell
