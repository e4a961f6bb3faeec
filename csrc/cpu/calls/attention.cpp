// Attention and its sums (ops/combining/attention.h) in tiles: 64 queries, or keys, of a head are
// the lanes, which meet 64 of the others at a time. A tile's scores are a product with packed
// vectors, what they weigh is added up by another one, and no tile outlives its turn.
#include "ops/combining/attention.h"

#include <bit>
#include <cstring>
#include <limits>

#include "base/scratch.h"
#include "cpu/calls/elements.h"
#include "cpu/kernels/tile_kernels.h"

namespace gradcell::cpu {

namespace {

constexpr int64_t kBlock = 64;
/// Work that is cut for the threads: below, waking them would take as long.
constexpr int64_t kParallelWork = 500'000;

template <class T>
constexpr DType kType = sizeof(T) == 4 ? DType::Float32 : DType::Float64;

constexpr int64_t blocks(int64_t n) { return (n + kBlock - 1) / kBlock; }

template <class F>
void for_each(int64_t tasks, int64_t work, F body) {
  if (work >= kParallelWork) return parallel_for(static_cast<int>(tasks), body);
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

template <class T>
class Attention {
 public:
  Attention(const Call& c, const void* const* in, void* out)
      : at_(decode<AttentionAttributes>(c.attributes)), op_(c.op) {
    const AttentionInputs places = attention_inputs(op_, at_);
    const Dims queries = heads_outside(c.in[0].dims, at_.inside);
    const size_t rank = queries.size();
    heads_ = product(queries, 0, rank - 2);
    by_keys_ = attention_by_keys(op_);
    known_ = places.log_sum >= 0;
    queries_ = queries[rank - 2], keys_ = heads_outside(c.in[1].dims, at_.inside)[rank - 2];
    auto described = [&](const TensorDesc& t, const void* data) {
      const Dims dims = heads_outside(t.dims, at_.inside);
      return Operand{static_cast<std::byte*>(const_cast<void*>(data)), t.dtype, dims[rank - 2],
                     dims[rank - 1], at_.inside ? dims[rank - 3] : 1};
    };
    auto operand = [&](int k) {
      const auto i = static_cast<size_t>(k);
      return described(c.in[i], in[i]);
    };
    out_ = described(c.out, out);
    auto pair = [&](int of_queries, int of_keys) {
      lanes_.push_back(operand(by_keys_ ? of_keys : of_queries));
      others_.push_back(operand(by_keys_ ? of_queries : of_keys));
    };
    pair(0, 1);
    for (auto f = places.factors; f < static_cast<int>(c.in.size()); f += 2) pair(f, f + 1);
    if (places.c >= 0) c_ = operand(places.c);
    if (known_) log_sum_ = operand(places.log_sum);
    if (places.shift >= 0) shift_ = operand(places.shift);
    if (places.mask >= 0)
      mask_.emplace(c.in[static_cast<size_t>(places.mask)], in[static_cast<size_t>(places.mask)],
                    queries);
    if (places.state >= 0) {
      const auto* state = static_cast<const int64_t*>(in[static_cast<size_t>(places.state)]);
      key_ = static_cast<uint64_t>(state[0]), counter_ = static_cast<uint64_t>(state[1]);
      keep_ = std::bit_cast<double>(at_.keep);
    }
    for (const Operand& o : lanes_) widths_ += o.width;
    size_ = c_.width;
  }

  void run() const {
    const int64_t m = by_keys_ ? keys_ : queries_, n = by_keys_ ? queries_ : keys_;
    const int64_t tiles = blocks(m), per_head = m * n * (widths_ + size_ + 16);
    const int64_t packed = n * (widths_ + size_);
    if (heads_ >= 4 * max_threads() || per_head < kParallelWork) {
      for_each(heads_, per_head * heads_, [&](int head, int) {
        T* const to = scratch<0>(packed);
        for (int64_t b = 0; b < blocks(n); ++b) pack(head, b, to);
        for (int64_t t = 0; t < tiles; ++t) lane_block(head, t, to);
      });
      return;
    }
    for (int64_t head = 0; head < heads_; ++head) {
      T* const to = scratch<1>(packed);
      for_each(blocks(n), per_head, [&](int b, int) { pack(head, b, to); });
      for_each(tiles, per_head, [&](int t, int) { lane_block(head, t, to); });
    }
  }

 private:
  /// 0: what a thread packs for itself, 1: what is packed for all, 2: a tile's.
  template <int Use>
  static T* scratch(int64_t elements) {
    thread_local Scratch kept;
    return reinterpret_cast<T*>(kept.get(static_cast<size_t>(elements) * sizeof(T)));
  }

  /// Block b of what the lanes meet, as products read it.
  void pack(int64_t head, int64_t b, T* packed) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const int64_t first = b * kBlock;
    T* to = packed + first * (widths_ + size_);
    std::vector<T> wide;
    struct Rows {
      const T* at;
      int64_t pitch;
    };
    auto rows = [&](const Operand& o, int64_t count) -> Rows {
      if (o.type == kType<T>) return {reinterpret_cast<const T*>(o.at(head, first)), o.pitch()};
      wide.resize(static_cast<size_t>(count * o.width));
      o.load(head, first, count, wide.data());
      return {wide.data(), o.width};
    };
    for (const Operand& o : others_) {
      const int64_t count = std::min(kBlock, o.rows - first);
      const Rows from = rows(o, count);
      mm.pack_weights(from.at, 1, from.pitch, static_cast<int>(o.width), static_cast<int>(count),
                      to);
      to += count * o.width;
    }
    if (size_ == 0) return;
    const int64_t count = std::min(kBlock, c_.rows - first);
    const Rows from = rows(c_, count);
    mm.pack_weights(from.at, from.pitch, 1, static_cast<int>(count), static_cast<int>(size_), to);
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
  void hide(int64_t mask, Range lanes, Range others, int64_t R, T* s, T* room) const {
    if (mask_) add_mask(mask, lanes, others, R, s, room);
    if (at_.ahead >= keys_ && at_.behind >= queries_) return;
    for (int64_t i = 0; i < others.count; ++i) {
      // Lanes below `from` or from `to` on are beyond the band.
      const int64_t other = others.first + i - lanes.first;
      const int64_t low = by_keys_ ? at_.behind : at_.ahead,
                    high = by_keys_ ? at_.ahead : at_.behind;
      const int64_t from = std::clamp<int64_t>(other - std::min(low, other + R), 0, R);
      const int64_t to = high >= R - other ? R : std::clamp<int64_t>(other + high + 1, 0, R);
      constexpr T kNone = -std::numeric_limits<T>::infinity();
      std::fill(s + i * R, s + i * R + from, kNone);
      std::fill(s + i * R + std::max(from, to), s + i * R + R, kNone);
    }
  }

  void add_mask(int64_t mask, Range lanes, Range others, int64_t R, T* s, T* room) const {
    const TileTranspose& t = tile_kernels().transpose;
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const bool flags = mask_->type() == DType::Bool;
    const auto n = static_cast<size_t>(others.count * R);
    auto* const hidden = reinterpret_cast<int32_t*>(room);
    if (by_keys_) {  // a query's mask lies as the lanes do
      for (int64_t i = 0; i < others.count; ++i) {
        const int64_t from = mask + (others.first + i) * mask_->by_query() + lanes.first;
        std::byte* to = reinterpret_cast<std::byte*>(room) +
                        static_cast<size_t>(i * R) * (flags ? sizeof(int32_t) : sizeof(T));
        std::memset(to, 0, static_cast<size_t>(R) * (flags ? sizeof(int32_t) : sizeof(T)));
        t.load(mask_->at(from), mask_->type(), to, static_cast<size_t>(lanes.count));
      }
    } else {
      const int64_t from = mask + lanes.first * mask_->by_query() + others.first;
      t.load_rows(mask_->at(from), mask_->type(), mask_->by_query(), static_cast<int>(lanes.count),
                  static_cast<int>(others.count), room, R, static_cast<int>(R));
    }
    flags ? tile.hide(s, hidden, n) : tile.add(s, room, n);
  }

  /// Multiplies by what dropout leaves of each pair.
  void drop(int64_t head, Range lanes, Range others, int64_t R, T* w, T* room) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const Range q = by_keys_ ? others : lanes, k = by_keys_ ? lanes : others;
    alignas(64) float drawn[kBlock + 8];
    auto* const u = reinterpret_cast<float*>(room);
    std::fill_n(u, others.count * R, 1.0f);
    for (int64_t i = 0; i < q.count; ++i) {
      const int64_t first = ((head % at_.period) * queries_ + q.first + i) * keys_ + k.first;
      tile.uniform(key_, counter_ + static_cast<uint64_t>(first / 4),
                   static_cast<size_t>((first % 4 + k.count + 3) / 4), drawn);
      for (int64_t j = 0; j < k.count; ++j)
        u[by_keys_ ? i * R + j : j * R + i] = drawn[first % 4 + j];
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

  void lane_block(int64_t head, int64_t block, const T* packed) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const int64_t m = lanes_[0].rows, n = others_[0].rows;
    const Range lanes{block * kBlock, std::min(kBlock, m - block * kBlock)};
    const int64_t R = (lanes.count + 15) / 16 * 16;
    const auto width = static_cast<int>(R);
    T* next = scratch<2>(R * (widths_ + size_ + 3 * kBlock + 8) + 2 * kBlock);
    auto take = [&next](int64_t elements) {
      T* const at = next;
      next += elements;
      return at;
    };
    std::vector<const T*> x;
    for (const Operand& o : lanes_) {
      T* const to = take(o.width * R);
      tile_kernels().transpose.load_rows(o.at(head, lanes.first), o.type, o.pitch(),
                                         static_cast<int>(lanes.count), static_cast<int>(o.width),
                                         to, R, width);
      x.push_back(to);
    }
    T *const sums = take(size_ * R), *const s = take(kBlock * R), *const f = take(kBlock * R);
    T *const room = take(kBlock * R), *const top = take(R), *const total = take(R);
    T *const scale = take(R), *const log_room = take(std::max(R, kBlock));
    T* const shift_room = take(std::max(R, kBlock));
    std::fill_n(sums, size_ * R, T(0));
    std::fill_n(top, R, -std::numeric_limits<T>::infinity());
    std::fill_n(total, R, T(0));
    const T *log_sum = nullptr, *shift = nullptr;
    if (known_ && !by_keys_) log_sum = numbers(log_sum_, head, lanes, R, log_room);
    if (shift_.data && !by_keys_) shift = numbers(shift_, head, lanes, R, shift_room);
    const int64_t mask = mask_ ? mask_->first(head) : 0;
    for (int64_t b = 0; b < blocks(n); ++b) {
      const Range others{b * kBlock, std::min(kBlock, n - b * kBlock)};
      const Seen what = by_keys_ ? seen(mask, others, lanes) : seen(mask, lanes, others);
      if (what == Seen::None) continue;
      const auto count = static_cast<int>(others.count);
      const auto tile_size = static_cast<size_t>(others.count * R);
      const T* w = packed + others.first * (widths_ + size_);
      auto scores = [&](size_t k, T* to) {
        const auto features = static_cast<int>(lanes_[k].width);
        mm.matmul(w, x[k], R, to, R, features, count, width, nullptr, false);
        w += others.count * lanes_[k].width;
      };
      scores(0, s);
      if (what == Seen::Some) hide(mask, lanes, others, R, s, room);
      if (known_) {
        if (by_keys_) {
          log_sum = numbers(log_sum_, head, others, kBlock, log_room);
          if (shift_.data) shift = numbers(shift_, head, others, kBlock, shift_room);
        }
        T* factors = nullptr;
        for (size_t k = 1; k < lanes_.size(); ++k) {
          scores(k, factors ? room : f);
          if (factors) tile.multiply(factors, room, tile_size);
          factors = f;
        }
        if (!factors && (keep_ < 1 || shift)) {
          factors = f;
          std::fill_n(f, tile_size, T(1));
        }
        if (keep_ < 1) drop(head, lanes, others, R, factors, room);
        tile.weigh(s, factors, R, count, width, log_sum, shift, !by_keys_);
      } else {
        tile.soften(s, R, count, width, top, total, scale);
        if (size_ == 0) continue;
        tile.scale_lanes(sums, R, static_cast<int>(size_), width, scale);
        if (keep_ < 1) drop(head, lanes, others, R, s, room);
      }
      mm.matmul(w, s, R, sums, R, count, static_cast<int>(size_), width, nullptr, true);
    }
    if (op_ == Op::AttentionLogSum) {
      tile.finish(top, total, R);
      return store(head, lanes, total, R);
    }
    if (!known_) {
      for (int64_t r = 0; r < R; ++r) scale[r] = total[r] == T(0) ? T(0) : T(1) / total[r];
      tile.scale_lanes(sums, R, static_cast<int>(size_), width, scale);
    }
    store(head, lanes, sums, R);
  }

  void store(int64_t head, Range lanes, const T* from, int64_t R) const {
    tile_kernels().transpose.store_rows(from, R, out_.type, static_cast<int>(lanes.count),
                                        static_cast<int>(out_.width), out_.at(head, lanes.first),
                                        out_.pitch());
  }

  AttentionAttributes at_;
  Op op_;
  bool by_keys_ = false, known_ = false;  ///< known: the normalisers are
  int64_t heads_ = 0, queries_ = 0, keys_ = 0;
  std::vector<Operand> lanes_, others_;  ///< whose products are the scores, then the factors
  Operand c_, log_sum_, shift_, out_;
  std::optional<Mask> mask_;
  uint64_t key_ = 0, counter_ = 0;
  double keep_ = 1;
  int64_t widths_ = 0, size_ = 0;
};

}  // namespace

void attend(const Call& c, const void* const* in, void* out) {
  if (compute_type(c.in[0].dtype) == Compute::F64) return Attention<double>(c, in, out).run();
  Attention<float>(c, in, out).run();
}

}  // namespace gradcell::cpu
