// One sum of attention's family, or attention and its normalisers at once: see
// cpu/attention/tiles.h.
#include "cpu/attention/tiles.h"
#include "cpu/attention/together.h"
#include "cpu/calls/calls.h"

namespace gradcell::cpu {

namespace {

using namespace attention;

template <class T>
class OneSum : ScoreTiles<T> {
  using Base = ScoreTiles<T>;
  using Base::at_, Base::inputs_, Base::heads_, Base::queries_, Base::keys_, Base::mask_,
      Base::keep_, Base::watched_, Base::fill_, Base::log_sum_;

 public:
  /// log_sums: where the normalisers go too, or nothing.
  OneSum(const Call& c, const void* const* in, void* out, const TensorDesc* log_sums, void* to)
      : Base(c, in), by_keys_(attention_by_keys(c.op)), known_(inputs_.log_sum >= 0) {
    out_ = this->operand(c.out, out);
    if (log_sums) log_sums_ = this->operand(*log_sums, to);
    auto pair = [&](int of_queries, int of_keys) {
      lanes_.push_back(this->operand(c, in, by_keys_ ? of_keys : of_queries));
      others_.push_back(this->operand(c, in, by_keys_ ? of_queries : of_keys));
    };
    pair(0, 1);
    for (auto f = inputs_.factors; f < narrow<int>(c.in.size()); f += 2) pair(f, f + 1);
    if (inputs_.c >= 0)
      c_ = this->operand(c, in, inputs_.c);
    else
      log_sums_ = out_;
    if (inputs_.shift >= 0) shift_ = this->operand(c, in, inputs_.shift);
    for (const Operand& o : lanes_) {
      widths_ += o.width;
      widest_ = std::max(widest_, o.width);
    }
    size_ = c_.width;
  }

  void run() {
    const int64_t m = lanes_[0].rows, n = others_[0].rows;
    const int64_t tiles = blocks(m), per_head = m * n * (widths_ + size_ + 16);
    const int64_t packed = n * (widths_ + size_) + blocks(n);
    if (heads_ >= 4 * max_threads() || per_head < kParallelWork) {
      for_each(heads_, per_head * heads_, [&](int head, int) {
        T* const to = this->template scratch<0>(packed);
        for (int64_t b = 0; b < blocks(n); ++b) pack_block(head, b, to);
        for (int64_t t = 0; t < tiles; ++t) lane_block(head, t, to);
      });
      return;
    }
    for (int64_t head = 0; head < heads_; ++head) {
      T* const to = this->template scratch<1>(packed);
      for_each(blocks(n), per_head, [&](int b, int) { pack_block(head, b, to); });
      for_each(tiles, per_head, [&](int t, int) { lane_block(head, t, to); });
    }
  }

 private:
  /// Block b of what the lanes meet, as products read it; behind all blocks, how far from 0 each
  /// is.
  void pack_block(int64_t head, int64_t b, T* packed) {
    const Range r{b * kBlock, std::min(kBlock, others_[0].rows - b * kBlock)};
    T* const begin = packed + r.first * (widths_ + size_);
    T* to = begin;
    for (const Operand& o : others_) {
      this->pack(o, head, r, false, by_keys_ && &o == &others_[0], to);
      to += r.count * o.width;
    }
    if (size_ > 0) this->pack(c_, head, r, true, false, to);
    if (watched_) reach(packed)[b] = farthest(begin, r.count * (widths_ + size_));
  }
  template <class P>
  P* reach(P* packed) const {
    return packed + others_[0].rows * (widths_ + size_);
  }

  /// A block of lanes, the arrays it works with, and what of the last block of others it met.
  struct Lanes {
    int64_t head = 0;
    Range rows{};
    int64_t R = 0;  ///< lanes in its arrays: rows.count made whole
    int width = 0;
    std::vector<const T*> x{};                                 ///< the lanes of each operand
    T* sums = nullptr;                                         ///< [size, R]
    T *scores = nullptr, *factors = nullptr, *room = nullptr;  ///< tiles
    T *top = nullptr, *total = nullptr, *scale = nullptr;      ///< one of each lane
    T *log_room = nullptr, *shift_room = nullptr;              ///< for `by` and `shift`
    int64_t mask = 0;                                          ///< where the head's mask begins
    typename Base::Normalisers by{};                           ///< if they are known
    const T* shift = nullptr;
    T most = -1;  ///< how far from 0 the lanes are, once it has been asked for

    int64_t tile(Range others) const { return others.count * R; }
  };

  Lanes lanes_of(int64_t head, int64_t block) const {
    Lanes l;
    l.head = head;
    l.rows = {block * kBlock, std::min(kBlock, lanes_[0].rows - block * kBlock)};
    const int64_t R = l.R = (l.rows.count + 15) / 16 * 16;
    l.width = narrow<int>(R);
    T* next = this->template scratch<2>(R * (widths_ + size_ + 3 * kBlock + 8) + 3 * kBlock);
    auto take = [&next](int64_t elements) {
      T* const at = next;
      next += elements;
      return at;
    };
    for (const Operand& o : lanes_) {
      T* const to = take(o.width * R);
      this->spread(o, head, l.rows, !by_keys_ && &o == &lanes_[0], to, R);
      l.x.push_back(to);
    }
    l.sums = take(size_ * R), l.scores = take(kBlock * R), l.factors = take(kBlock * R);
    l.room = take(kBlock * R), l.top = take(R), l.total = take(R), l.scale = take(R);
    l.log_room = take(2 * std::max(R, kBlock)), l.shift_room = take(std::max(R, kBlock));
    std::fill_n(l.sums, size_ * R, T(0));
    std::fill_n(l.top, R, -std::numeric_limits<T>::infinity());
    std::fill_n(l.total, R, T(0));
    l.mask = mask_ ? mask_->first(head) : 0;
    if (!by_keys_) know(l, l.rows, R);
    return l;
  }

  /// What is known of the queries: the lanes, or the others of a block.
  void know(Lanes& l, Range queries, int64_t R) const {
    if (known_) l.by = this->normalisers(l.head, queries, R, l.log_room);
    if (shift_.data) l.shift = this->numbers(shift_, l.head, queries, R, l.shift_room);
  }

  void lane_block(int64_t head, int64_t block, const T* packed) const {
    Lanes l = lanes_of(head, block);
    for (int64_t b = 0; b < blocks(others_[0].rows); ++b) meet(l, b, packed);
    finish(l);
  }

  /// Adds what the lanes get from block b of the others.
  void meet(Lanes& l, int64_t b, const T* packed) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const Range others{b * kBlock, std::min(kBlock, others_[0].rows - b * kBlock)};
    const Seen what =
        by_keys_ ? this->seen(l.mask, others, l.rows) : this->seen(l.mask, l.rows, others);
    if (by_keys_) know(l, others, kBlock);
    if (what == Seen::None && adds_nothing(l, others, reach(packed) + b)) return;
    const auto count = narrow<int>(others.count);
    const T* w = packed + others.first * (widths_ + size_);
    auto scores = [&](size_t k, T* to) {
      const auto features = narrow<int>(lanes_[k].width);
      mm.matmul(w, l.x[k], l.R, to, l.R, features, count, l.width, nullptr, false);
      w += others.count * lanes_[k].width;
    };
    scores(0, l.scores);
    if (what != Seen::All) this->hide(l.mask, l.rows, others, l.R, by_keys_, l.scores, l.room);
    if (known_)
      weigh(l, others, what, scores);
    else if (!soften(l, others))
      return;
    mm.matmul(w, l.scores, l.R, l.sums, l.R, count, narrow<int>(size_), l.width, nullptr, true);
  }

  /// Of a hidden block, whose packed vectors are `far` from 0 at most.
  bool adds_nothing(Lanes& l, Range others, const T* far) const {
    if (!watched_) return true;
    if (l.most < 0)  // the lanes lie one behind the other
      l.most = this->farthest_lane(l.x[0], widths_, l.R, l.rows.count);
    const int64_t of_rows = by_keys_ ? others.count : l.rows.count;
    return this->calm(l.most, *far, widest_) &&
           (!l.shift || farthest(l.shift, of_rows) <= std::numeric_limits<T>::max()) &&
           ((!known_ && std::isinf(fill_)) ||
            this->weighs_nothing(known_ ? l.by.log_sum : l.top, of_rows));
  }

  /// Scores become weights by the normalisers that are known, times the products of the other
  /// pairs.
  template <class F>
  void weigh(Lanes& l, Range others, Seen what, F& scores) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const auto size = static_cast<size_t>(l.tile(others));
    T* factors = nullptr;
    for (size_t k = 1; k < lanes_.size(); ++k) {
      scores(k, factors ? l.room : l.factors);
      if (factors) tile.multiply(factors, l.room, size);
      factors = l.factors;
    }
    if (!factors && (keep_ < 1 || l.shift)) {
      factors = l.factors;
      std::fill_n(factors, size, T(1));
    }
    if (keep_ < 1) this->drop(l.head, l.rows, others, l.R, by_keys_, factors, l.room);
    tile.weigh(l.scores, factors, l.R, narrow<int>(others.count), l.width, l.by.log_sum, l.shift,
               !by_keys_, l.by.rest);
    if (at_.of_scores && what != Seen::All && this->hides_by_bools())
      this->add_mask(l.mask, l.rows, others, l.R, by_keys_, T(0), l.scores, l.room);
  }

  /// Scores become weights as they stand to the largest so far. False where only their sums count.
  bool soften(Lanes& l, Range others) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    tile.soften(l.scores, l.R, narrow<int>(others.count), l.width, l.top, l.total, l.scale);
    if (size_ == 0) return false;
    tile.scale_lanes(l.sums, l.R, narrow<int>(size_), l.width, l.scale);
    if (keep_ < 1) this->drop(l.head, l.rows, others, l.R, by_keys_, l.scores, l.room);
    return true;
  }

  void finish(Lanes& l) const {
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    T *const total = l.total, *const scale = l.scale;
    if (!known_ && at_.written)  // as 0 / 0
      for (int64_t r = 0; r < l.R; ++r)
        if (total[r] == T(0)) total[r] = std::numeric_limits<T>::quiet_NaN();
    if (size_ > 0 && !known_) {
      for (int64_t r = 0; r < l.R; ++r) scale[r] = total[r] == T(0) ? T(0) : T(1) / total[r];
      tile.scale_lanes(l.sums, l.R, narrow<int>(size_), l.width, scale);
    }
    if (size_ > 0) store(out_, l.head, l.rows, l.sums, l.R);
    if (!log_sums_.data) return;
    std::fill_n(scale, l.R, T(0));
    tile.finish(at_.written ? scale : l.top, total, l.width);
    store(log_sums_, l.head, l.rows, at_.written ? l.top : total, l.R);
  }

  static void store(const Operand& to, int64_t head, Range lanes, const T* from, int64_t R) {
    tile_kernels().transpose.store_rows(from, R, to.type, narrow<int>(lanes.count),
                                        narrow<int>(to.width), to.at(head, lanes.first),
                                        to.pitch());
  }

  bool by_keys_, known_;                 ///< known: the normalisers are
  std::vector<Operand> lanes_, others_;  ///< whose products are the scores, then the factors
  Operand c_, shift_, out_, log_sums_;
  int64_t widths_ = 0, size_ = 0, widest_ = 0;
};

template <class T>
void with_normalisers(const Call& c, const void* const* in, void* const* out) {
  const Call &first = c.joined[0], &second = c.joined[1];
  // Of attention and its normalisers one has values, whose inputs are the other's too.
  const bool sums = first.in.size() > second.in.size();
  const Call &of_values = sums ? first : second, &of_scores = sums ? second : first;
  OneSum<T>(of_values, sums ? in : in + first.in.size(), out[sums ? 0 : 1], &of_scores.out,
            out[sums ? 1 : 0])
      .run();
}

}  // namespace

void attend(const Call& c, const void* const* in, void* out) {
  if (compute_type(c.in[0].dtype) == Compute::F64)
    return OneSum<double>(c, in, out, nullptr, nullptr).run();
  OneSum<float>(c, in, out, nullptr, nullptr).run();
}

void attend_together(const Call& c, const void* const* in, void* const* out) {
  const auto a = decode<AttentionAttributes>(c.attributes);
  if (attention_inputs(c.op, a).log_sum >= 0) return sum_together(c, in, out);
  if (compute_type(c.in[0].dtype) == Compute::F64) return with_normalisers<double>(c, in, out);
  with_normalisers<float>(c, in, out);
}

}  // namespace gradcell::cpu
