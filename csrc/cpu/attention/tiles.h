// What computes attention and its sums in tiles (ops/combining/attention.h): 64 queries, or keys,
// of a head are the lanes, which meet 64 of the others at a time. A tile's scores are a product
// with packed vectors, what they weigh is added up by another one, and no tile outlives its turn.
//
// Where products and a softmax were written (AttentionAttributes::written), a block that a mask
// hides is passed over only if that changes nothing: all that it would be multiplied with is
// finite, and its weights are 0.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <vector>

#include "base/scratch.h"
#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"
#include "ops/combining/attention.h"

namespace gradcell::cpu::attention {

constexpr int64_t kBlock = 64;
/// Work that is cut for the threads: below, waking them would take as long.
constexpr int64_t kParallelWork = 500'000;

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::Float32 : DType::Float64;

constexpr int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }

template <class F>
void for_each(int64_t tasks, int64_t work, F body) {
  if (work >= kParallelWork) return parallel_for(tasks, body);
  for (int task = 0; task < tasks; ++task) body(task, 0);
}

/// A tensor [heads, rows, width], or [..., rows, between, width] with the last `between` of the
/// heads inside.
struct Operand {
  std::byte* data = nullptr;
  DType type{};
  int64_t rows = 0, width = 0, between = 1;

  int64_t pitch() const { return between * width; }  ///< elements from row to row
  std::byte* at(int64_t head, int64_t row) const {
    const int64_t first = (head / between * rows + row) * between + head % between;
    return data + static_cast<size_t>(first * width) * item_size(type);
  }
  /// Rows [row, row + count) of a head one behind the other, in the type that is computed in.
  template <class T>
  void load(int64_t head, int64_t row, int64_t count, T* to) const {
    const int64_t runs = between == 1 ? 1 : count, run = between == 1 ? count * width : width;
    for (int64_t r = 0; r < runs; ++r)
      tile_kernels().transpose.load(at(head, row + r), type, to + r * run,
                                    static_cast<size_t>(run));
  }
};

/// What a mask does to a block of scores.
enum class Seen : uint8_t { All, Some, None };

class Mask {
 public:
  Mask(const TensorDesc& t, const void* data, const Dims& queries)
      : data_(static_cast<const std::byte*>(data)), type_(t.dtype) {
    const size_t rank = queries.size();
    queries_ = t.dims[rank - 2], keys_ = t.dims[rank - 1];
    Dims stride = row_major(t.dims);
    for (size_t k = 0; k + 1 < rank; ++k)
      if (t.dims[k] == 1) stride[k] = 0;
    by_query_ = stride[rank - 2];
    lead_ = Dims(queries.begin(), queries.end() - 2);
    stride_ = Dims(stride.begin(), stride.end() - 2);
    heads_ = product(t.dims, 0, rank - 2);
    seen_.resize(static_cast<size_t>(heads_ * blocks(queries_) * blocks(keys_)));
    const int64_t down = heads_ * blocks(queries_);
    for_each(down, t.count, [&](int task, int) { look(task); });
  }

  DType type() const { return type_; }
  int64_t by_query() const { return by_query_; }
  /// Of a head's scores: where its mask begins.
  int64_t first(int64_t head) const {
    int64_t at = 0;
    for (size_t k = lead_.size(); k-- > 0; head /= lead_[k]) at += head % lead_[k] * stride_[k];
    return at;
  }
  const std::byte* at(int64_t element) const {
    return data_ + static_cast<size_t>(element) * item_size(type_);
  }
  Seen seen(int64_t first, int64_t query_block, int64_t key_block) const {
    const int64_t head = first / std::max<int64_t>(1, queries_ * keys_);
    const int64_t q = by_query_ == 0 ? 0 : query_block;
    return seen_[static_cast<size_t>((head * blocks(queries_) + q) * blocks(keys_) + key_block)];
  }

 private:
  void look(int64_t task) {
    const int64_t head = task / blocks(queries_), from = task % blocks(queries_) * kBlock;
    for (int64_t b = 0; b < blocks(keys_); ++b) {
      const int64_t n = std::min(kBlock, keys_ - b * kBlock);
      int64_t hidden = 0, plain = 0, all = 0;
      for (int64_t q = from; q < std::min(from + kBlock, queries_); ++q) {
        const std::byte* row = at((head * queries_ + q) * keys_ + b * kBlock);
        by_dtype(type_, [&]<class S>() {
          const auto* x = reinterpret_cast<const S*>(row);
          int32_t none = 0, zero = 0;
          for (int64_t i = 0; i < n; ++i) {
            if constexpr (std::is_same_v<S, uint8_t>) {
              none += x[i] != 0, zero += x[i] == 0;
            } else {
              using C = typename ComputeOf<S>::type;
              const auto v = static_cast<C>(x[i]);
              if constexpr (std::is_floating_point_v<C>)
                none += v == -std::numeric_limits<C>::infinity();
              zero += v == C(0);
            }
          }
          hidden += none, plain += zero;
        });
        all += n;
      }
      seen_[static_cast<size_t>(task * blocks(keys_) + b)] = hidden == all  ? Seen::None
                                                             : plain == all ? Seen::All
                                                                            : Seen::Some;
    }
  }

  const std::byte* data_;
  DType type_;
  int64_t queries_ = 0, keys_ = 0, heads_ = 0, by_query_ = 0;
  Dims lead_, stride_;
  std::vector<Seen> seen_;
};

/// Queries or keys [first, first + count).
struct Range {
  int64_t first, count;
};

/// Below this, exp is 0.
template <class T>
constexpr T kNothing = sizeof(T) == 4 ? T(-104) : T(-746);

/// How far numbers are from 0 at most; infinity where one is not finite.
template <class T>
T farthest(const T* x, int64_t n) {
  return tile_kernels().attention<T>().farthest(x, static_cast<size_t>(n));
}

/// What all sums over one set of scores have in common: queries, keys, mask, dropout.
template <class T>
class ScoreTiles {
 protected:
  ScoreTiles(const Call& c, const void* const* in)
      : at_(decode<AttentionAttributes>(c.attributes)), inputs_(attention_inputs(c.op, at_)) {
    const Dims queries = heads_outside(c.in[0].dims, at_.inside);
    const size_t rank = queries.size();
    heads_ = product(queries, 0, rank - 2);
    q_ = operand(c, in, 0), k_ = operand(c, in, 1);
    queries_ = q_.rows, keys_ = k_.rows;
    scale_ = static_cast<T>(std::bit_cast<double>(at_.scale));
    fill_ = static_cast<T>(std::bit_cast<double>(at_.fill));
    if (inputs_.log_sum >= 0) log_sum_ = operand(c, in, inputs_.log_sum);
    if (inputs_.mask >= 0)
      mask_.emplace(c.in[static_cast<size_t>(inputs_.mask)], in[static_cast<size_t>(inputs_.mask)],
                    queries);
    if (inputs_.state >= 0) {
      const auto* state = static_cast<const int64_t*>(in[static_cast<size_t>(inputs_.state)]);
      key_ = static_cast<uint64_t>(state[0]), counter_ = static_cast<uint64_t>(state[1]);
      keep_ = std::bit_cast<double>(at_.keep);
    }
    watched_ = at_.written && mask_;
  }

  Operand operand(const TensorDesc& t, const void* data) const {
    const Dims dims = heads_outside(t.dims, at_.inside);
    const size_t rank = dims.size();
    return {static_cast<std::byte*>(const_cast<void*>(data)), t.dtype, dims[rank - 2],
            dims[rank - 1], at_.inside ? dims[rank - 3] : 1};
  }
  Operand operand(const Call& c, const void* const* in, int k) const {
    return operand(c.in[static_cast<size_t>(k)], in[k]);
  }

  /// 0: what a thread packs for itself, 1: what is packed for all, 2: a tile's, 3: sums of a task.
  template <int Use>
  static T* scratch(int64_t elements) {
    thread_local Scratch kept;
    return reinterpret_cast<T*>(kept.get(static_cast<size_t>(elements) * sizeof(T)));
  }

  /// Rows [first, first + count) as products read them: their features as terms, or (`across`) the
  /// rows as terms.
  void pack(const Operand& o, int64_t head, Range r, bool across, bool scaled, T* to) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const auto width = narrow<int>(o.width), count = narrow<int>(r.count);
    const bool changes = scaled && scale_ != T(1);
    thread_local std::vector<T> wide;
    const T* from = reinterpret_cast<const T*>(o.at(head, r.first));
    int64_t pitch = o.pitch();
    if (o.type != kType<T> || changes) {
      wide.resize(static_cast<size_t>(r.count * o.width));
      o.load(head, r.first, r.count, wide.data());
      if (changes)
        for (T& x : wide) x *= scale_;
      from = wide.data(), pitch = o.width;
    }
    across ? mm.pack_weights(from, pitch, 1, count, width, to)
           : mm.pack_weights(from, 1, pitch, width, count, to);
  }

  /// Rows as lanes, [features][R].
  void spread(const Operand& o, int64_t head, Range r, bool scaled, T* to, int64_t R) const {
    tile_kernels().transpose.load_rows(o.at(head, r.first), o.type, o.pitch(), narrow<int>(r.count),
                                       narrow<int>(o.width), to, R, narrow<int>(R));
    if (scaled && scale_ != T(1))
      for (int64_t i = 0; i < o.width * R; ++i) to[i] *= scale_;
  }

  /// How far from 0 lanes [features][R] are, `count` of them.
  static T farthest_lane(const T* x, int64_t features, int64_t R, int64_t count) {
    T most = 0;
    for (int64_t f = 0; f < features; ++f) most = std::max(most, farthest(x + f * R, count));
    return most;
  }
  /// Whether products of `terms` numbers no farther from 0 than these are finite.
  static bool calm(T a, T b, int64_t terms) {
    return a * b * static_cast<T>(terms + 1) < std::numeric_limits<T>::max();
  }
  /// Whether exp of what hides, less each of these numbers, is 0.
  bool weighs_nothing(const T* above, int64_t n) const {
    for (int64_t i = 0; i < n; ++i)
      if (!(fill_ - above[i] < kNothing<T>)) return false;
    return true;
  }

  /// Which pairs of a block are seen, by the mask and the band.
  Seen seen(int64_t mask, Range q, Range k) const {
    const int64_t most = k.first + k.count - 1 - q.first, least = k.first - (q.first + q.count - 1);
    if (least > at_.ahead || -most > at_.behind) return Seen::None;
    const bool inside = most <= at_.ahead && -least <= at_.behind;
    const Seen of_mask = mask_ ? mask_->seen(mask, q.first / kBlock, k.first / kBlock) : Seen::All;
    return of_mask == Seen::All && !inside ? Seen::Some : of_mask;
  }

  /// Adds the mask to a tile of scores [others][R lanes], and hides what is beyond the band.
  /// by_keys: the lanes are keys.
  void hide(int64_t mask, Range lanes, Range others, int64_t R, bool by_keys, T* s, T* room) const {
    if (mask_) add_mask(mask, lanes, others, R, by_keys, fill_, s, room);
    if (at_.ahead >= keys_ && at_.behind >= queries_) return;
    for (int64_t i = 0; i < others.count; ++i) {
      // Lanes below `from` or from `to` on are beyond the band.
      const int64_t other = others.first + i - lanes.first;
      const int64_t low = by_keys ? at_.behind : at_.ahead, high = by_keys ? at_.ahead : at_.behind;
      const int64_t from = std::clamp<int64_t>(other - std::min(low, other + R), 0, R);
      const int64_t to = high >= R - other ? R : std::clamp<int64_t>(other + high + 1, 0, R);
      constexpr T kNone = -std::numeric_limits<T>::infinity();
      std::fill(s + i * R, s + i * R + from, kNone);
      std::fill(s + i * R + std::max(from, to), s + i * R + R, kNone);
    }
  }

  /// hiding: what is put where a mask of bools hides.
  void add_mask(int64_t mask, Range lanes, Range others, int64_t R, bool by_keys, T hiding, T* s,
                T* room) const {
    const TileTranspose& t = tile_kernels().transpose;
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const bool flags = mask_->type() == DType::Bool;
    const auto n = static_cast<size_t>(others.count * R);
    auto* const hidden = reinterpret_cast<int32_t*>(room);
    if (by_keys) {  // a query's mask lies as the lanes do
      for (int64_t i = 0; i < others.count; ++i) {
        const int64_t from = mask + (others.first + i) * mask_->by_query() + lanes.first;
        std::byte* to = reinterpret_cast<std::byte*>(room) +
                        static_cast<size_t>(i * R) * (flags ? sizeof(int32_t) : sizeof(T));
        std::memset(to, 0, static_cast<size_t>(R) * (flags ? sizeof(int32_t) : sizeof(T)));
        t.load(mask_->at(from), mask_->type(), to, static_cast<size_t>(lanes.count));
      }
    } else {
      const int64_t from = mask + lanes.first * mask_->by_query() + others.first;
      t.load_rows(mask_->at(from), mask_->type(), mask_->by_query(), narrow<int>(lanes.count),
                  narrow<int>(others.count), room, R, narrow<int>(R));
    }
    flags ? tile.hide(s, hidden, hiding, n) : tile.add(s, room, n);
  }

  /// Multiplies by what dropout leaves of each pair.
  void drop(int64_t head, Range lanes, Range others, int64_t R, bool by_keys, T* w, T* room) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const Range q = by_keys ? others : lanes, k = by_keys ? lanes : others;
    alignas(64) float drawn[kBlock + 8];
    auto* const u = reinterpret_cast<float*>(room);
    std::fill_n(u, others.count * R, 1.0f);
    for (int64_t i = 0; i < q.count; ++i) {
      const int64_t first = ((head % at_.period) * queries_ + q.first + i) * keys_ + k.first;
      tile.uniform(key_, counter_ + static_cast<uint64_t>(first / 4),
                   static_cast<size_t>((first % 4 + k.count + 3) / 4), drawn);
      for (int64_t j = 0; j < k.count; ++j)
        u[by_keys ? i * R + j : j * R + i] = drawn[first % 4 + j];
    }
    tile.drop(w, u, static_cast<float>(keep_), static_cast<T>(1 / keep_),
              static_cast<size_t>(others.count * R));
  }

  /// Numbers of queries, as T.
  static const T* numbers(const Operand& o, int64_t head, Range q, int64_t R, T* room) {
    std::fill_n(room, R, T(0));
    o.load(head, q.first, q.count, room);
    return room;
  }

  /// Of queries what the exponentials of their scores are divided by.
  struct Normalisers {
    const T *log_sum, *rest;  ///< rest: what it has more, if softmax was written
  };
  Normalisers normalisers(int64_t head, Range q, int64_t R, T* room) const {
    if (!at_.written) return {numbers(log_sum_, head, q, R, room), nullptr};
    spread(log_sum_, head, q, false, room, R);
    return {room, room + R};
  }

  bool hides_by_bools() const { return mask_ && mask_->type() == DType::Bool; }

  AttentionAttributes at_;
  AttentionInputs inputs_;
  int64_t heads_ = 0, queries_ = 0, keys_ = 0;
  Operand q_, k_, log_sum_;
  std::optional<Mask> mask_;
  uint64_t key_ = 0, counter_ = 0;
  double keep_ = 1;
  T scale_, fill_;
  bool watched_ = false;  ///< whether a hidden block may not be passed over
};

}  // namespace gradcell::cpu::attention
