// What kernels that sort share: passes of a stable radix sort, each a count of digits by chunks of
// elements, sums of the counts, and a move of keys and of where they come from.
#pragma once

#include <algorithm>
#include <functional>
#include <set>

#include "cuda/write/single_node_writer.h"

namespace gradcell::cuda {

/// What one pass sorts by, and the chunks that blocks count; see gc_count.
inline constexpr int kDigitBits = 6, kDigits = 1 << kDigitBits, kSorters = 128;
inline constexpr int64_t kSmallestChunk = 2048, kMostChunks = 256;
/// Sums and counts of whole blocks.
inline constexpr uint32_t kSummers = 512;

/// How so many elements are sorted: by their number alone.
struct Sorting {
  int64_t n;
  int passes;
  int64_t chunk, chunks;
};

inline Sorting sorting_of(int64_t n, int passes) {
  const int64_t chunk = std::max(kSmallestChunk, divide_up(n, kMostChunks));
  return {n, passes, chunk, divide_up(n, chunk)};
}
/// The passes for so many values of a key, at least one.
inline int passes_of(int64_t values) {
  int passes = 1;
  while ((int64_t(1) << (kDigitBits * passes)) < values) ++passes;
  return passes;
}

/// The temporary buffers of a sort: keys and places of even and of odd passes, and counts.
enum Temporary { Keys, At, OtherKeys, OtherAt, Counts, kSortTemporaries };

inline std::vector<size_t> sorting_memory(const Sorting& s, size_t key_size, bool wide) {
  const size_t index = wide ? 8 : 4, n = static_cast<size_t>(s.n);
  std::vector<size_t> bytes{n * key_size, n * index, n * key_size, n * index};
  if (s.passes == 1) bytes[OtherKeys] = bytes[OtherAt] = 0;
  bytes.push_back(static_cast<size_t>(kDigits * s.chunks) * index);
  return bytes;
}

/// One pass. shift: of the bits that it sorts by. key: writes what returns the key of element k
/// before the pass, given the temporary buffers; none: the key that the pass before has left.
struct Pass {
  int number, shift;
  std::function<void(std::span<const BufferId>)> key;
};

class SortWriter : protected AloneWriter {
 public:
  /// key: the type of keys.
  SortWriter(const WriterInputs& in, NodeId id, const Sorting& sorting, std::string key,
             size_t key_size)
      : AloneWriter(in, id), sorting_(sorting), key_(std::move(key)), key_size_(key_size) {}

  /// How often each digit is in each chunk.
  Written counts(const Pass& pass, std::span<const BufferId> t) {
    chunk_bounds();
    const std::string key = key_of(pass, t);
    const std::string q = temporary(t[Counts], "gc_index", true, "q0", counts_bytes());
    line("gc_count(at, begin, end, " + key + ", shift);");
    line("for (int d = gc_thread(); d < " + str(kDigits) + "; d += gc_threads()) " + q + "[d * " +
         size(sorting_.chunks) + " + t] = gc_in_all(at[d]);");
    line("__syncthreads();");
    return sorters("sort_count");
  }

  /// Where each chunk's elements with a digit go: how many elements are before them. One block.
  Written starts(std::span<const BufferId> t) {
    const std::string q = temporary(t[Counts], "gc_index", true, "q0", counts_bytes());
    step_.bytes_read += counts_bytes();
    const std::string n = str(kDigits, " * ", size(sorting_.chunks));
    step_.grid = 1, step_.block_x = kSummers;
    return written("  if (blockIdx.x == 0) gc_counts_before(" + q + ", " + n + ");\n",
                   "sort_starts", kSummers);
  }

  Written moves(const Pass& pass, std::span<const BufferId> t) {
    const bool odd = pass.number % 2 != 0;
    chunk_bounds();
    const std::string key = key_of(pass, t), count = size(sorting_.chunks);
    const std::string p = temporary(t[Counts], "gc_index", false, "p_count", counts_bytes());
    const std::string keys =
        temporary(t[odd ? OtherKeys : Keys], key_.c_str(), true, "q0", keys_bytes());
    const std::string places =
        temporary(t[odd ? OtherAt : At], "gc_index", true, "q1", places_bytes());
    const std::string from = pass.number > 0 ? left(pass.number, t) + "[k]" : "k";
    line("gc_count(at, begin, end, " + key + ", shift);");
    line("for (int d = gc_thread(); d < " + str(kDigits) + "; d += gc_threads()) gc_ranks(at[d]);");
    line("__syncthreads();");
    line("gc_index own, last;");
    line("gc_share(begin, end, own, last);");
    line("for (gc_index k = own; k < last; ++k) {");
    line("  const " + key_ + " key = " + key + "(k);");
    line("  const int d = gc_digit(key, shift);");
    line("  const gc_index to = " + p + "[d * " + count + " + t] + at[d][gc_thread()]++;");
    line("  " + keys + "[to] = key;");
    line("  " + places + "[to] = " + from + ";");
    line("}");
    line("__syncthreads();");
    return sorters("sort_move");
  }

 protected:
  std::string temporary(BufferId b, const char* type, bool written, const std::string& name,
                        size_t size) {
    if (seen_.insert(b).second) (written ? step_.bytes_written : step_.bytes_read) += size;
    return buffer(b, type, written, name);
  }

  /// Where elements come from, as the pass before has left them.
  std::string left(int pass, std::span<const BufferId> t) {
    return temporary(t[pass % 2 != 0 ? At : OtherAt], "gc_index", false, "p_at", places_bytes());
  }

  /// Keys, or where they come from, after all passes.
  std::string sorted(std::span<const BufferId> t, Temporary what, const std::string& name) {
    const int last = sorting_.passes % 2 == 0 ? OtherKeys : Keys;
    return temporary(t[static_cast<size_t>(what + last)], what == Keys ? key_.c_str() : "gc_index",
                     false, "p_" + name, what == Keys ? keys_bytes() : places_bytes());
  }

 private:
  size_t index_size() const { return in_.wide ? 8 : 4; }
  size_t keys_bytes() const { return static_cast<size_t>(sorting_.n) * key_size_; }
  size_t places_bytes() const { return static_cast<size_t>(sorting_.n) * index_size(); }
  size_t counts_bytes() const {
    return static_cast<size_t>(kDigits * sorting_.chunks) * index_size();
  }

  void chunk_bounds() {
    const std::string chunk = size(sorting_.chunk), n = size(sorting_.n);
    line("const gc_index begin = t * " + chunk + ";");
    line("const gc_index end = begin + " + chunk + " < " + n + " ? begin + " + chunk + " : " + n +
         ";");
  }

  /// A function for the key of an element as the passes before have left it, and `shift`.
  std::string key_of(const Pass& pass, std::span<const BufferId> t) {
    const Scope inside = nested([&] {
      if (pass.key) return pass.key(t);
      const BufferId before = t[pass.number % 2 != 0 ? Keys : OtherKeys];
      line("return " + temporary(before, key_.c_str(), false, "p_key", keys_bytes()) + "[k];");
    });
    line("auto key_of = [&](gc_index k) -> " + key_ + " {");
    body_.text += inside.text;
    line("};");
    parameter("const gc_index", "shift", {Argument::Kind::Size, 0, pass.shift, {}});
    return "key_of";
  }

  Written sorters(const char* title) {
    step_.grid = grid_for(sorting_.chunks, 1), step_.block_x = kSorters;
    return written(str("  __shared__ int at[", kDigits, "][", kSorters,
                       " + 1];\n  for (gc_index t = blockIdx.x; t < ", size(sorting_.chunks),
                       "; t += gridDim.x) {\n", body_.text, "  }\n"),
                   title, kSorters);
  }

  Sorting sorting_;
  std::set<BufferId> seen_;  ///< of the temporary ones
  std::string key_;
  size_t key_size_;
};

/// All passes of a sort, each kernel by a writer of its own.
template <class Make>
void add_passes(std::vector<Written>& steps, int passes, std::span<const BufferId> t, Make make) {
  for (int k = 0; k < passes; ++k) {
    auto count = make(), move = make();
    steps.push_back(count.counts(count.pass(k), t));
    steps.push_back(make().starts(t));
    steps.push_back(move.moves(move.pass(k), t));
  }
}

}  // namespace gradcell::cuda
