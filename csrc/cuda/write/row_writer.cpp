// Kernels that take whole rows: some threads a row, reductions of rows among what they compute.
//
// What several loops over a row read is read once where there is much of it, and held in registers,
// as is what costs much and is needed again behind a reduction: the exponentials of a softmax.
#include <algorithm>
#include <climits>

#include "cuda/fuse/far_reads.h"
#include "cuda/write/single_node_writer.h"
#include "plan/costs.h"

namespace gradcell::cuda {

namespace {

/// Rows that keep a GPU busy where each has a warp, and how long they may be for that.
constexpr int64_t kManyRows = 1 << 13, kLongForWarp = 1 << 12;

/// Fours of an array that a thread holds at most, and bytes of all arrays.
constexpr int64_t kMostHeld = 8, kMostBytesHeld = 256;
/// Elements in all rows from which on it pays to have a kernel of another text for them.
constexpr int64_t kWorthHolding = 1 << 18;
/// Instructions of an element that is held.
constexpr int kWorthKeeping = 8;

class RowWriter : Writer {
 public:
  RowWriter(const WriterInputs& in, int32_t stage, int64_t rows) : Writer(in, stage) {
    rows_ = rows;
  }

  Written run(std::span<const NodeId> outputs) {
    body_.indent = "    ";
    for (NodeId id : outputs) unstored_[collect(id)].push_back(id);
    int levels = 0;
    for (auto& [id, level] : level_) levels = std::max(levels, level);
    choose_lanes();
    for (int level = 1; level <= levels; ++level) reduce_level(level);
    store();

    std::string n = size(rows_);
    std::string text = "  for (gc_index r0 = blockIdx.x * blockDim.y; r0 < " + n +
                       "; r0 += gridDim.x * blockDim.y) {\n"
                       "    const bool live = r0 + threadIdx.y < " +
                       n +
                       ";\n"
                       "    const gc_index r = live ? r0 + threadIdx.y : " +
                       n + " - 1;\n" + body_.text + "  }\n";
    step_.block_x = lanes_;
    step_.block_y = std::max<uint32_t>(1, kBlock / lanes_);
    if (!held_.empty()) text = "  GC_NEEDS_WARPS();\n" + text;
    step_.grid = grid_for(rows_, step_.block_y);
    return written(std::move(text), "rows");
  }

 private:
  int64_t features(NodeId id) const { return g_.count(id) / rows_; }

  void choose_lanes() {
    for (const auto& [id, level] : level_)
      longest_ = std::max(longest_, trailing_reduction(g_, id));
    for (const auto& [depth, ids] : unstored_)
      for (NodeId id : ids) longest_ = std::max(longest_, features(id));
    // About four elements a lane, at most a block a row.
    while (lanes_ < kMaxBlock && static_cast<int64_t>(lanes_) * 4 < longest_) lanes_ *= 2;
    // Eight rows a warp: of what lies across, their elements side by side are a sector, and of what
    // lies along, 16 bytes of each lane are two.
    if (across_ && rows_ >= kEnoughRows)
      lanes_ = std::min<uint32_t>(lanes_, kBlock / narrow<uint32_t>(kRowsAcross));
    // A warp puts together what its lanes have without waiting for others.
    else if (rows_ >= kManyRows && longest_ <= kLongForWarp)
      lanes_ = std::min<uint32_t>(lanes_, 32);
    if (across_ || longest_ % 4 != 0 || rows_ * longest_ < kWorthHolding || loops() < 2) return;
    while (lanes_ < kMaxBlock && longest_ > 4 * kMostHeld * lanes_) lanes_ *= 2;
    const int64_t each = divide_up(longest_ / 4, lanes_);
    if (each <= kMostHeld) fours_a_lane_ = each;
  }

  /// How many loops over the longest rows there are.
  int loops() const {
    std::set<int> levels;
    for (const auto& [id, level] : level_)
      if (trailing_reduction(g_, id) == longest_) levels.insert(level);
    int last = 0;  // of what is stored, where it waits for a reduction
    for (const auto& [depth, ids] : unstored_)
      if (depth > 0 && std::ranges::count(ids, longest_, [&](NodeId id) { return features(id); }))
        last = 1;
    return narrow<int>(levels.size()) + last;
  }

  /// The row reductions below a node, with their depth.
  int collect(NodeId id) {
    id = f_.storage[id];
    const Fused& node = f_.node[id];
    bool here = (node.role == Role::Map || node.role == Role::RowReduce) &&
                !(node.stored && node.stage < stage_);
    if (!here) return 0;
    if (auto it = depth_.find(id); it != depth_.end()) return it->second;
    across_ |= reads_across(g_, id, rows_);
    int depth = 0;
    for (NodeId i : g_.inputs(id)) {
      depth = std::max(depth, collect(i));
      ++uses_[f_.storage[i]];
    }
    if (node.role == Role::RowReduce) level_[id] = ++depth;
    return depth_[id] = depth;
  }

  /// All reductions of one depth: one loop for each length, which stores as well what is of that
  /// length and needs none of them.
  void reduce_level(int level) {
    std::map<int64_t, std::vector<NodeId>> by_length;
    for (auto& [id, l] : level_)
      if (l == level) by_length[trailing_reduction(g_, id)].push_back(id);
    for (auto& [n, ids] : by_length) {
      struct Sum {
        NodeId id;
        std::string name, type, op;
      };
      std::vector<Sum> sums;
      std::vector<Array> written;
      const Scope inside = of_element(n, [&] {
        for (NodeId id : ids) {
          const std::string type = type_name(compute_type(g_.dtype(id)));
          const Sum s{id, "s" + std::to_string(next_++), type,
                      in_reduction(spec(g_, id).combine, type)};
          std::string v = input(id, 0, Index{"", "r", "k"});
          keep(f_.storage[g_.input(id, 0)], v, n);
          line(is_sum(g_, id) ? s.name + " += " + v + ";"
                              : s.name + " = " + s.op + "::of(" + s.name + ", " + v + ");");
          sums.push_back(s);
          count_node(id);
        }
        if (n > 1) written = stores_of(n, level - 1);
      });
      for (const Sum& s : sums) line(s.type + " " + s.name + " = " + s.op + "::none();");
      over_row(n, inside, written);
      for (const Sum& s : sums) {
        const std::string across = "gc_across<" + s.op + ">(" + s.name + ")";
        line(s.name + " = " + narrowed(g_.dtype(s.id), across) + ";");
        done_[s.id] = s.name;
      }
    }
  }

  std::string reduced(NodeId id, const Index& at) override {
    auto it = done_.find(id);
    if (it == done_.end() || (at.row != "r" && at.linear != "r")) return Writer::reduced(id, at);
    return it->second;
  }

  // Elements of a row, four neighbours at a time where four divides their number.

  struct Array {
    std::string pointer, type;
    bool for_all_rows = false;  ///< one row, which all have
    /// What an element of it is called: x3 or y3, of p3 or q3.
    std::string element() const {
      return (pointer[0] == 'p' ? "x" : pointer[0] == 'q' ? "y" : "z") + pointer.substr(1);
    }
    /// The four, and the element, that a loop is at.
    std::string four() const {
      return "gc_load(" + pointer + (for_all_rows ? ", k" : ", j") + ", packs > 0)";
    }
    std::string one(const std::string& length) const {
      return pointer + (for_all_rows ? "[k]" : "[r * " + length + " + k]");
    }
    /// What a thread holds of it.
    std::string held() const { return "h_" + pointer; }
  };

  template <class F>
  Scope of_element(int64_t n, F write) {
    direct_.clear(), making_.clear(), length_ = n;
    const Scope inside = nested([&] {
      if (holds(n))
        for (const auto& [id, array] : kept_) know(id, Index{"", "r", "k"}, array.element());
      write();
    });
    length_ = 0;
    return inside;
  }

  bool holds(int64_t n) const { return fours_a_lane_ > 0 && n == longest_; }

  /// Holds a value of this loop for later ones, where it is worth that.
  void keep(NodeId id, const std::string& v, int64_t n) {
    const bool again = f_.node[id].role == Role::Map && uses_[id] > 1 && !in_memory(id);
    const std::string type = type_name(compute_type(g_.dtype(id)));
    if (!holds(n) || !again || kept_.contains(id) || making_.contains(id) ||
        !is_elementwise(g_[id].op) || element_cost(g_, id).gpu_instructions < kWorthKeeping ||
        !has_room(type))
      return;
    const Array array{"v" + std::to_string(next_++) + "_", type};
    line(array.element() + " = " + v + ";");
    making_[id] = array;
  }

  /// For one more array that is held.
  bool has_room(const std::string& type) {
    const int64_t more = 4 * fours_a_lane_ * (type == "double" || type == "long long" ? 8 : 4);
    if (bytes_held_ + more > kMostBytesHeld) return false;
    bytes_held_ += more;
    return true;
  }

  std::string load(NodeId id, const Index& at) override {
    const bool own = at.row == "r" && at.feature == "k" && features(id) == length_;
    const bool for_all = at.row.empty() && at.linear == "k" && g_.count(id) == length_;
    if (length_ < 2 || !(own || for_all)) return Writer::load(id, at);
    const DType t = g_.dtype(id);
    const Array from{reads(id), stored_type(t), for_all};
    if (std::ranges::find(direct_, from.pointer, &Array::pointer) == direct_.end())
      direct_.push_back(from);
    const std::string value = decoded(t, from.element());
    return value == from.element() ? value : let(type_name(compute_type(t)), value, "v");
  }

  void over_row(int64_t n, const Scope& inside, const std::vector<Array>& written) {
    const bool held = holds(n);
    const std::string at = "at" + std::to_string(next_++), indent = held ? "        " : "      ";
    const std::string count = held ? "" : size(n);
    std::string formal = "gc_index k", loads, stores, of_four = "4 * k + u", of_one = "k";
    auto give = [&](const Array& a, const char* constant, const std::string& four) {
      formal += str(", ", constant, a.type, *constant ? " " : "& ", a.element());
      of_four += ", " + four + ".at[u]", of_one += ", " + a.one(count);
    };
    auto declare = [&](const Array& a) {
      line(str("gc_pack<", a.type, "> ", a.held(), "[", fours_a_lane_, "];"));
    };
    for (const Array& a : direct_) {
      const bool known = held && std::ranges::count(held_, a.pointer, &Array::pointer) > 0;
      const bool hold = known || (held && !a.for_all_rows && has_room(a.type));
      const std::string four = hold ? a.held() + "[i]" : a.element();
      give(a, "const ", four);
      if (hold && !known) declare(a), held_.push_back(a);
      if (!known)
        loads +=
            str(indent, hold ? "" : "const gc_pack<" + a.type + "> ", four, " = ", a.four(), ";\n");
    }
    if (held)
      for (const auto& [id, a] : kept_) give(a, "const ", a.held() + "[i]");
    for (const auto& [id, a] : making_) {
      declare(a), kept_[id] = a;
      give(a, "", a.held() + "[i]");
    }
    for (const Array& a : written) {
      give(a, "", a.element());
      loads += str(indent, "gc_pack<", a.type, "> ", a.element(), ";\n");
      stores += str(indent, held ? "if (live) " : "", "gc_store(", a.pointer, ", j, ", a.element(),
                    ", packs > 0);\n");
    }
    line("auto " + at + " = [&](" + formal + ") {");
    scopes_.back()->text += inside.text;
    line("};");
    auto of_fours = [&] {
      scopes_.back()->text += loads;
      line("#pragma unroll");
      line(str(indent.substr(4), "for (int u = 0; u < 4; ++u) ", at, "(", of_four, ");"));
      scopes_.back()->text += stores;
    };
    if (held) {  // each lane has as many fours of it
      const std::string fours = fours_of(n);
      line("#pragma unroll");
      line(str("for (int i = 0; i < ", fours_a_lane_, "; ++i) {"));
      line("  const gc_index k = threadIdx.x + i * blockDim.x, j = r * " + fours + " + k;");
      line(str("  if (k < ", fours, ") {"));
      of_fours();
      line("  }");
      return line("}");
    }
    const std::string live = written.empty() ? "" : "live && ";
    const size_t arrays = direct_.size() + written.size();
    std::string first = "threadIdx.x";
    if (arrays > 0 && arrays <= kMostRowPacks) {
      const std::string fours = fours_of(n);
      line("for (gc_index k = threadIdx.x; " + live + "k < " + fours + "; k += blockDim.x) {");
      line("  const gc_index j = r * " + fours + " + k;");
      of_fours();
      line("}");
      first = "4 * " + fours + " + threadIdx.x";
    }
    line("for (gc_index k = " + first + "; " + live + "k < " + count + "; k += blockDim.x) " + at +
         "(" + of_one + ");");
  }

  /// An argument, whatever the number: the text has no sizes.
  std::string fours_of(int64_t n) {
    if (fours_.empty()) packs(1);
    auto [it, fresh] = fours_.try_emplace(n, "fours" + std::to_string(fours_.size()));
    if (fresh)
      parameter("const gc_index", it->second,
                {Argument::Kind::Size, 0, n % 4 == 0 ? n / 4 : 0, Compute::I64});
    return it->second;
  }

  /// Stores what is left.
  void store() {
    std::set<int64_t> lengths;
    for (const auto& [depth, ids] : unstored_)
      for (NodeId id : ids) lengths.insert(features(id));
    for (int64_t n : lengths) {
      std::vector<Array> written;
      const Scope inside = of_element(n, [&] { written = stores_of(n, INT_MAX); });
      if (n == 1)
        block("if (live && threadIdx.x == 0)", inside);
      else
        over_row(n, inside, written);
    }
  }

  /// Writes an element of each output of this length that needs reductions of this depth at most,
  /// and was not written before.
  std::vector<Array> stores_of(int64_t n, int depth) {
    std::vector<Array> written;
    for (auto& [level, ids] : unstored_)
      for (NodeId id : ids) {
        if (level > depth || features(id) != n) continue;
        const std::string v = encoded(g_.dtype(id), value(id, Index{"", "r", n == 1 ? "0" : "k"}));
        const Array to{writes(id), stored_type(g_.dtype(id))};
        line((n == 1 ? to.pointer + "[r]" : to.element()) + " = " + v + ";");
        written.push_back(to);
        count_node(id);
      }
    for (auto& [level, ids] : unstored_)
      if (level <= depth) std::erase_if(ids, [&](NodeId id) { return features(id) == n; });
    return written;
  }

  std::vector<Array> direct_;  ///< read at the element's own place
  std::vector<Array> held_;    ///< of those what is in registers
  /// What is there of earlier loops, and what this one leaves.
  std::map<NodeId, Array> kept_, making_;
  std::unordered_map<NodeId, int> uses_;  ///< by nodes of this kernel
  uint32_t lanes_ = 1;
  int64_t fours_a_lane_ = 0;  ///< that are held; 0: none
  int64_t bytes_held_ = 0;    ///< by a thread
  int64_t length_ = 0;
  std::map<int64_t, std::string> fours_;
  std::map<NodeId, int> level_, depth_;
  std::map<NodeId, std::string> done_;
  std::map<int, std::vector<NodeId>> unstored_;  ///< outputs, by depth
  bool across_ = false;                          ///< something lies across the rows
  int64_t longest_ = 1;
};

}  // namespace

Written write_rows(const WriterInputs& in, int32_t stage, int64_t rows,
                   std::span<const NodeId> outputs) {
  return RowWriter(in, stage, rows).run(outputs);
}

}  // namespace gradcell::cuda
