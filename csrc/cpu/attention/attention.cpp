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
    for (auto f = inputs_.factors; f < static_cast<int>(c.in.size()); f += 2) pair(f, f + 1);
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

  void lane_block(int64_t head, int64_t block, const T* packed) const {
    const TileMatmul<T>& mm = tile_kernels().matmul<T>();
    const TileAttention<T>& tile = tile_kernels().attention<T>();
    const int64_t m = lanes_[0].rows, n = others_[0].rows;
    const Range lanes{block * kBlock, std::min(kBlock, m - block * kBlock)};
    const int64_t R = (lanes.count + 15) / 16 * 16;
    const auto width = static_cast<int>(R);
    T* next = this->template scratch<2>(R * (widths_ + size_ + 3 * kBlock + 8) + 3 * kBlock);
    auto take = [&next](int64_t elements) {
      T* const at = next;
      next += elements;
      return at;
    };
    std::vector<const T*> x;
    for (const Operand& o : lanes_) {
      T* const to = take(o.width * R);
      this->spread(o, head, lanes, !by_keys_ && &o == &lanes_[0], to, R);
      x.push_back(to);
    }
    T most = -1;  // how far from 0 the lanes are, once it has been asked for
    T *const sums = take(size_ * R), *const s = take(kBlock * R), *const f = take(kBlock * R);
    T *const room = take(kBlock * R), *const top = take(2 * R), *const total = top + R;
    T *const scale = take(R), *const log_room = take(2 * std::max(R, kBlock));
    T* const shift_room = take(std::max(R, kBlock));
    std::fill_n(sums, size_ * R, T(0));
    std::fill_n(top, R, -std::numeric_limits<T>::infinity());
    std::fill_n(total, R, T(0));
    typename Base::Normalisers by{};
    const T* shift = nullptr;
    if (known_ && !by_keys_) by = this->normalisers(head, lanes, R, log_room);
    if (shift_.data && !by_keys_) shift = this->numbers(shift_, head, lanes, R, shift_room);
    const int64_t mask = mask_ ? mask_->first(head) : 0;
    for (int64_t b = 0; b < blocks(n); ++b) {
      const Range others{b * kBlock, std::min(kBlock, n - b * kBlock)};
      const Seen what =
          by_keys_ ? this->seen(mask, others, lanes) : this->seen(mask, lanes, others);
      if (known_ && by_keys_) {
        by = this->normalisers(head, others, kBlock, log_room);
        if (shift_.data) shift = this->numbers(shift_, head, others, kBlock, shift_room);
      }
      if (what == Seen::None) {
        const int64_t of_rows = by_keys_ ? others.count : lanes.count;
        if (most < 0 && watched_)  // the lanes lie one behind the other
          most = this->farthest_lane(x[0], widths_, R, lanes.count);
        if (!watched_ || (this->calm(most, reach(packed)[b], widest_) &&
                          (!shift || farthest(shift, of_rows) <= std::numeric_limits<T>::max()) &&
                          ((!known_ && std::isinf(fill_)) ||
                           this->weighs_nothing(known_ ? by.log_sum : top, of_rows))))
          continue;
      }
      const auto count = static_cast<int>(others.count);
      const auto tile_size = static_cast<size_t>(others.count * R);
      const T* w = packed + others.first * (widths_ + size_);
      auto scores = [&](size_t k, T* to) {
        const auto features = static_cast<int>(lanes_[k].width);
        mm.matmul(w, x[k], R, to, R, features, count, width, nullptr, false);
        w += others.count * lanes_[k].width;
      };
      scores(0, s);
      if (what != Seen::All) this->hide(mask, lanes, others, R, by_keys_, s, room);
      if (known_) {
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
        if (keep_ < 1) this->drop(head, lanes, others, R, by_keys_, factors, room);
        tile.weigh(s, factors, R, count, width, by.log_sum, shift, !by_keys_, by.rest);
        if (at_.of_scores && what != Seen::All && this->hides_by_bools())
          this->add_mask(mask, lanes, others, R, by_keys_, T(0), s, room);
      } else {
        tile.soften(s, R, count, width, top, total, scale);
        if (size_ == 0) continue;
        tile.scale_lanes(sums, R, static_cast<int>(size_), width, scale);
        if (keep_ < 1) this->drop(head, lanes, others, R, by_keys_, s, room);
      }
      mm.matmul(w, s, R, sums, R, count, static_cast<int>(size_), width, nullptr, true);
    }
    if (!known_ && at_.written)  // as 0 / 0
      for (int64_t r = 0; r < R; ++r)
        if (total[r] == T(0)) total[r] = std::numeric_limits<T>::quiet_NaN();
    if (size_ > 0 && !known_) {
      for (int64_t r = 0; r < R; ++r) scale[r] = total[r] == T(0) ? T(0) : T(1) / total[r];
      tile.scale_lanes(sums, R, static_cast<int>(size_), width, scale);
    }
    if (size_ > 0) store(out_, head, lanes, sums, R);
    if (!log_sums_.data) return;
    std::fill_n(scale, R, T(0));
    tile.finish(at_.written ? scale : top, total, width);
    store(log_sums_, head, lanes, at_.written ? top : total, R);
  }

  static void store(const Operand& to, int64_t head, Range lanes, const T* from, int64_t R) {
    tile_kernels().transpose.store_rows(from, R, to.type, static_cast<int>(lanes.count),
                                        static_cast<int>(to.width), to.at(head, lanes.first),
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
