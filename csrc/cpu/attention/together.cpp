// Sums over the same scores in one pass. The gradients of attention by queries, keys and values are
// such: exp(s - l) is computed once for the three, and what two of them weigh with, too. Keys are
// the lanes; what belongs to keys is complete when their tile is, what belongs to queries is added
// up tile by tile, for blocks of tiles apart, so that threads do not meet.
#include "cpu/attention/together.h"

#include <algorithm>

#include "cpu/attention/tiles.h"

namespace gradcell::cpu::attention {

namespace {

/// Into how many parts, whatever the threads are, the keys of few heads are cut.
constexpr int64_t kParts = 8;

template <class T>
class Sums : ScoreTiles<T> {
  using Base = ScoreTiles<T>;
  using Base::at_, Base::heads_, Base::queries_, Base::keys_, Base::mask_, Base::keep_,
      Base::watched_, Base::q_, Base::k_, Base::log_sum_;

 public:
  Sums(const Call& c, const void* const* in, void* const* out) : Base(c.joined[0], in) {
    size_t first = 0;
    for (size_t j = 0; j < c.joined.size(); first += c.joined[j++].in.size())
      add(c.joined[j], std::span(c.inputs).subspan(first), in + first, out[j]);
    widest_ = q_.width, packed_ = q_.width, spread_ = k_.width;
    for (const Pair& p : pairs_) {
      packed_ += p.of_queries.width, spread_ += p.of_queries.width;
      widest_ = std::max(widest_, p.of_queries.width);
    }
    for (const Result& r : results_) {
      (r.of_keys ? packed_ : spread_) += r.c.width;
      if (!r.of_keys) by_query_ += r.c.width;
    }
    parts_ = std::clamp<int64_t>(kParts / std::max<int64_t>(1, heads_), 1,
                                 std::max<int64_t>(1, blocks(keys_)));
    if (by_query_ == 0) parts_ = heads_ >= kParts ? 1 : blocks(keys_);
  }

  void run() {
    const int64_t per_head = queries_ * keys_ * (packed_ + spread_ + 16);
    if (heads_ >= kParts || per_head < kParallelWork) {
      for_each(heads_, per_head * heads_, [&](int head, int) {
        T* const packed = this->template scratch<0>(queries_ * packed_ + blocks(queries_));
        for (int64_t b = 0; b < blocks(queries_); ++b) pack_block(head, b, packed);
        T* const sums = this->template scratch<1>(queries_ * by_query_ * parts_);
        for (int64_t p = 0; p < parts_; ++p) part(head, p, packed, sums);
        for (int64_t b = 0; b < blocks(queries_); ++b) add_up(head, b, sums);
      });
      return;
    }
    for (int64_t head = 0; head < heads_; ++head) {
      T* const packed = this->template scratch<0>(queries_ * packed_ + blocks(queries_));
      for_each(blocks(queries_), per_head, [&](int b, int) { pack_block(head, b, packed); });
      T* const sums = this->template scratch<1>(queries_ * by_query_ * parts_);
      for_each(parts_, per_head, [&](int p, int) { part(head, p, packed, sums); });
      for_each(blocks(queries_), per_head, [&](int b, int) { add_up(head, b, sums); });
    }
  }

 private:
  struct Pair {
    BufferId a, b;
    Operand of_queries, of_keys;
  };
  /// What exp(s - l) is multiplied with.
  struct Weights {
    std::vector<size_t> pairs;
    BufferId shift_id = UINT32_MAX;
    Operand shift;
    bool of_scores = false;
  };
  struct Result {
    bool of_keys;
    size_t weights;
    Operand c, out;
  };

  void add(const Call& c, std::span<const BufferId> ids, const void* const* in, void* out) {
    const auto a = decode<AttentionAttributes>(c.attributes);
    const AttentionInputs at = attention_inputs(c.op, a);
    Weights w;
    for (size_t f = static_cast<size_t>(at.factors); f < c.in.size(); f += 2) {
      const auto same = std::ranges::find_if(
          pairs_, [&](const Pair& p) { return p.a == ids[f] && p.b == ids[f + 1]; });
      w.pairs.push_back(static_cast<size_t>(same - pairs_.begin()));
      if (same != pairs_.end()) continue;
      const auto k = narrow<int>(f);
      pairs_.push_back({ids[f], ids[f + 1], this->operand(c, in, k), this->operand(c, in, k + 1)});
    }
    if (at.shift >= 0) {
      w.shift_id = ids[static_cast<size_t>(at.shift)];
      w.shift = this->operand(c, in, at.shift);
    }
    w.of_scores = a.of_scores;
    const auto same = std::ranges::find_if(weights_, [&](const Weights& o) {
      return o.pairs == w.pairs && o.shift_id == w.shift_id && o.of_scores == w.of_scores;
    });
    const auto place = static_cast<size_t>(same - weights_.begin());
    if (same == weights_.end()) weights_.push_back(std::move(w));
    results_.push_back(
        {attention_by_keys(c.op), place, this->operand(c, in, at.c), this->operand(c.out, out)});
  }

  Range query_block(int64_t b) const {
    return {b * kBlock, std::min(kBlock, queries_ - b * kBlock)};
  }

  /// Block b of queries and what belongs to them, as products read it; behind all blocks, how far
  /// from 0 each is.
  void pack_block(int64_t head, int64_t b, T* packed) {
    const Range r = query_block(b);
    T* const begin = packed + r.first * packed_;
    T* to = begin;
    auto pack = [&](const Operand& o, bool across, bool scaled) {
      this->pack(o, head, r, across, scaled, to);
      to += r.count * o.width;
    };
    pack(q_, false, true);
    for (const Pair& p : pairs_) pack(p.of_queries, false, false);
    for (const Result& s : results_)
      if (s.of_keys) pack(s.c, true, false);
    if (watched_) reach(packed)[b] = farthest(begin, r.count * packed_);
  }
  template <class P>
  P* reach(P* packed) const {
    return packed + queries_ * packed_;
  }

  /// Where part p adds up what belongs to queries: a matrix [queries][features] for each result.
  T* sums_of(int64_t p, T* sums) const { return sums + p * queries_ * by_query_; }

  void part(int64_t head, int64_t p, const T* packed, T* sums) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    // For each result of queries and each block of them an accumulator.
    std::vector<size_t> at;
    size_t size = 0;
    for (const Result& r : results_)
      for (int64_t b = 0; !r.of_keys && b < blocks(queries_); ++b) {
        at.push_back(size);
        size += mm.grad_accumulator_size(narrow<int>(r.c.width), narrow<int>(query_block(b).count));
      }
    T* const accumulators = this->template scratch<3>(static_cast<int64_t>(size));
    std::fill_n(accumulators, size, T(0));
    const int64_t tiles = blocks(keys_);
    for (int64_t t = tiles * p / parts_; t < tiles * (p + 1) / parts_; ++t)
      key_block(head, t, packed, accumulators, at);
    T* to = sums_of(p, sums);
    size_t next = 0;
    for (const Result& r : results_) {
      if (r.of_keys) continue;
      const auto width = narrow<int>(r.c.width);
      for (int64_t b = 0; b < blocks(queries_); ++b) {
        const Range q = query_block(b);
        mm.grad_finish(accumulators + at[next++], width, narrow<int>(q.count),
                       to + q.first * r.c.width, 1, r.c.width);
      }
      to += queries_ * r.c.width;
    }
  }

  /// Adds the parts of a block of queries up, in their order.
  void add_up(int64_t head, int64_t b, T* sums) const {
    const Range q = query_block(b);
    int64_t before = 0;
    for (const Result& r : results_) {
      if (r.of_keys) continue;
      T* const total = sums + before * queries_ + q.first * r.c.width;
      for (int64_t p = 1; p < parts_; ++p)
        tile_kernels().attention<T>().add(total, sums_of(p, total),
                                          static_cast<size_t>(q.count * r.c.width));
      for (int64_t i = 0; i < q.count; ++i)
        tile_kernels().transpose.store(total + i * r.c.width, r.out.type,
                                       r.out.at(head, q.first + i), static_cast<size_t>(r.c.width));
      before += r.c.width;
    }
  }

  /// A block of keys, and the arrays it works with.
  struct Keys {
    int64_t head = 0;
    Range rows{};
    int64_t R = 0;  ///< keys in its arrays: rows.count made whole
    int width = 0;
    int64_t mask = 0;  ///< where the head's mask begins
    const T* k = nullptr;
    std::vector<const T*> of_pair{}, c{};  ///< of each pair; of each result of queries
    std::vector<T*> sums{};                ///< of each result of keys
    T *e = nullptr, *w = nullptr, *room = nullptr, *kept = nullptr;  ///< tiles
    T* factors = nullptr;                                            ///< a tile a pair
    T* log_room = nullptr;
    std::vector<T*> shifts{};  ///< of each of the weights that has one
    T most = -1;               ///< how far from 0 the keys are, once it has been asked for
  };

  Keys keys_of(int64_t head, int64_t block) const {
    Keys l;
    l.head = head;
    l.rows = {block * kBlock, std::min(kBlock, keys_ - block * kBlock)};
    const int64_t R = l.R = (l.rows.count + 15) / 16 * 16;
    l.width = narrow<int>(R);
    l.mask = mask_ ? mask_->first(head) : 0;
    int64_t of_keys = 0;
    for (const Result& r : results_) of_keys += r.of_keys ? r.c.width : 0;
    const auto pairs = static_cast<int64_t>(pairs_.size());
    T* next = this->template scratch<2>(R * (spread_ + of_keys + (pairs + 4) * kBlock) +
                                        static_cast<int64_t>(weights_.size() + 2) * kBlock);
    auto take = [&next](int64_t elements) {
      T* const place = next;
      next += elements;
      return place;
    };
    auto spread = [&](const Operand& o) {
      T* const to = take(o.width * R);
      this->spread(o, head, l.rows, false, to, R);
      return to;
    };
    l.k = spread(k_);
    for (const Pair& p : pairs_) l.of_pair.push_back(spread(p.of_keys));
    for (const Result& r : results_) l.c.push_back(r.of_keys ? nullptr : spread(r.c));
    for (const Result& r : results_) {
      l.sums.push_back(r.of_keys ? take(r.c.width * R) : nullptr);
      if (r.of_keys) std::fill_n(l.sums.back(), r.c.width * R, T(0));
    }
    l.e = take(kBlock * R), l.w = take(kBlock * R), l.room = take(kBlock * R);
    l.kept = take(kBlock * R), l.factors = take(kBlock * R * pairs), l.log_room = take(2 * kBlock);
    for (const Weights& x : weights_) l.shifts.push_back(x.shift.data ? take(kBlock) : nullptr);
    return l;
  }

  void key_block(int64_t head, int64_t block, const T* packed, T* accumulators,
                 const std::vector<size_t>& at) const {
    Keys l = keys_of(head, block);
    for (int64_t b = 0; b < blocks(queries_); ++b) meet(l, b, packed, accumulators, at);
    for (size_t j = 0; j < results_.size(); ++j) {
      const Result& r = results_[j];
      if (r.of_keys)
        tile_kernels().transpose.store_rows(l.sums[j], l.R, r.out.type, narrow<int>(l.rows.count),
                                            narrow<int>(r.out.width), r.out.at(head, l.rows.first),
                                            r.out.pitch());
    }
  }

  /// Adds what the keys and block b of the queries give.
  void meet(Keys& l, int64_t b, const T* packed, T* accumulators,
            const std::vector<size_t>& at) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const Range q = query_block(b);
    const Seen what = this->seen(l.mask, q, l.rows);
    if (what == Seen::None && !watched_) return;
    const auto by = this->normalisers(l.head, q, kBlock, l.log_room);
    for (size_t i = 0; i < weights_.size(); ++i)
      if (l.shifts[i]) this->numbers(weights_[i].shift, l.head, q, kBlock, l.shifts[i]);
    if (what == Seen::None && adds_nothing(l, q, by.log_sum, reach(packed)[b])) return;
    const auto count = narrow<int>(q.count);
    const T* from = packed + q.first * packed_;
    auto product = [&](const Operand& o, const T* x, T* to) {
      mm.matmul(from, x, l.R, to, l.R, narrow<int>(o.width), count, l.width, nullptr, false);
      from += q.count * o.width;
    };
    product(q_, l.k, l.e);
    if (what != Seen::All) this->hide(l.mask, l.rows, q, l.R, true, l.e, l.room);
    tile_kernels().attention<T>().weigh(l.e, nullptr, l.R, count, l.width, by.log_sum, nullptr,
                                        false, by.rest);
    for (size_t i = 0; i < pairs_.size(); ++i)
      product(pairs_[i].of_queries, l.of_pair[i], factor(l, i));
    if (keep_ < 1) {
      std::fill_n(l.kept, q.count * l.R, T(1));
      this->drop(l.head, l.rows, q, l.R, true, l.kept, l.room);
    }
    for (size_t i = 0; i < weights_.size(); ++i) {
      const T* const with = weighted(l, i, count);
      if (weights_[i].of_scores && what != Seen::All && this->hides_by_bools())
        this->add_mask(l.mask, l.rows, q, l.R, true, T(0), l.w, l.room);
      sum_up(l, i, with, b, from, accumulators, at);
    }
  }

  /// Of a hidden block of queries, whose packed vectors are `far` from 0 at most.
  bool adds_nothing(Keys& l, Range q, const T* log_sum, T far) const {
    if (l.most < 0) l.most = this->farthest_lane(l.k, spread_, l.R, l.rows.count);
    return std::ranges::all_of(l.shifts,
                               [&](const T* x) {
                                 return !x || farthest(x, q.count) <= std::numeric_limits<T>::max();
                               }) &&
           this->weighs_nothing(log_sum, q.count) && this->calm(l.most, far, widest_);
  }

  static T* factor(const Keys& l, size_t pair) {
    return l.factors + static_cast<int64_t>(pair) * kBlock * l.R;
  }

  /// e times what weights i multiply it with: e itself, or in w.
  const T* weighted(const Keys& l, size_t i, int count) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const Weights& x = weights_[i];
    const auto n = static_cast<size_t>(count * l.R);
    if (x.pairs.empty() && keep_ >= 1 && !l.shifts[i] && !x.of_scores) return l.e;
    bool begun = false;
    auto by = [&](const T* y) {
      begun ? tile.multiply(l.w, y, n) : static_cast<void>(std::copy_n(y, n, l.w));
      begun = true;
    };
    if (keep_ < 1) by(l.kept);
    for (size_t p : x.pairs) by(factor(l, p));
    if (!begun) std::fill_n(l.w, n, T(1));
    tile.weigh_by(l.w, l.e, l.R, count, l.width, l.shifts[i]);
    return l.w;
  }

  /// Adds the products with weights i to the results that have them. from: where block b's vectors
  /// of results of keys begin.
  void sum_up(Keys& l, size_t i, const T* with, int64_t b, const T* from, T* accumulators,
              const std::vector<size_t>& at) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const auto count = narrow<int>(query_block(b).count);
    size_t of_queries = 0;
    for (size_t j = 0; j < results_.size(); ++j) {
      const Result& r = results_[j];
      const auto size = narrow<int>(r.c.width);
      if (r.weights == i && r.of_keys)
        mm.matmul(from, with, l.R, l.sums[j], l.R, count, size, l.width, nullptr, true);
      else if (r.weights == i)
        mm.weight_grad(
            l.c[j], l.R, with, l.R, size, count, l.width, narrow<int>(l.rows.count),
            accumulators +
                at[of_queries * static_cast<size_t>(blocks(queries_)) + static_cast<size_t>(b)]);
      if (r.of_keys)
        from += count * r.c.width;
      else
        ++of_queries;
    }
  }

  std::vector<Pair> pairs_;
  std::vector<Weights> weights_;
  std::vector<Result> results_;
  int64_t packed_ = 0, spread_ = 0;  ///< of a query what is packed, of a key what is spread
  int64_t by_query_ = 0;             ///< of a query what is added up
  int64_t widest_ = 0, parts_ = 1;
};

}  // namespace

void sum_together(const Call& c, const void* const* in, void* const* out) {
  if (compute_type(c.in[0].dtype) == Compute::F64) return Sums<double>(c, in, out).run();
  Sums<float>(c, in, out).run();
}

}  // namespace gradcell::cpu::attention
