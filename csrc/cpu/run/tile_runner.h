// Runs a region feature by feature: a tile of rows goes through all instructions, each of which is
// a loop over the tile or a product of it. (Regions of wide rows go by lines: line_runner.h.)
#pragma once

#include <algorithm>
#include <cstring>
#include <vector>

#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/program/region_run.h"
#include "cpu/program/spread.h"
#include "cpu/run/profile.h"
#include "cpu/run/view_load.h"
#include "plan/region/scratch.h"

namespace gradcell::cpu {

/// An instruction with all that depends on the run: its loop, if it is one, and where it reads and
/// writes in tiles of the present height. (Small: a program is walked through for each tile.)
struct Bound {
  Loop loop;
  LoopArgs args;
};

/// Runs chunks of a region, one after the other, on one thread.
class TileRunner {
 public:
  TileRunner(const RegionRun& run, const RunState& s, std::vector<Bound>& program, Dims& line)
      : r_(*run.region),
        p_(*run.program),
        run_(run),
        s_(s),
        k_(kernels()),
        t_(tile_kernels()),
        bound_(program),
        line_(line) {
    const size_t n = r_.values.size();
    size_t pointers = rounded(n * (sizeof(std::byte*) + sizeof(ptrdiff_t)));
    accumulators_ = worker_scratch(pointers + p_.accumulator_bytes + p_.pair_bytes +
                                   r_.row_bytes * static_cast<size_t>(p_.tile_rows));
    at_ = reinterpret_cast<std::byte**>(accumulators_ + p_.accumulator_bytes);
    pitch_ = reinterpret_cast<ptrdiff_t*>(at_ + n);
    pairs_ = reinterpret_cast<Pair*>(accumulators_ + p_.accumulator_bytes + pointers);
    scratch_ = accumulators_ + p_.accumulator_bytes + pointers + p_.pair_bytes;
    bound_.resize(r_.program.size());
  }

  /// Adds the time of each instruction up there, from now on; null: nobody measures.
  void measure(double* seconds) { seconds_ = seconds; }

  /// Of a loop: which step comes.
  void at_step(bool first, bool last) { first_step_ = first, last_step_ = last; }

  void chunk(int32_t c) {
    repeats_loaded_ = false;
    for (uint32_t a = 0; a < r_.accumulators.size(); ++a) init(r_.accumulators[a], sums(a));
    int64_t tiles = (r_.rows + p_.tile_rows - 1) / p_.tile_rows;
    for (int64_t t = tiles * c / p_.chunks; t < tiles * (c + 1) / p_.chunks; ++t) tile(t);
    for (uint32_t a = 0; a < r_.accumulators.size(); ++a)
      finish(r_.accumulators[a], sums(a), result(run_, c, a));
  }

 private:
  std::byte* sums(uint32_t accumulator) const {
    return accumulators_ + p_.accumulators[accumulator].sums;
  }

  void init(const Accumulator& a, void* acc) const {
    if (a.kind == TileOp::RowReduce) return k_.row_reduce_init(a.combine, a.type, acc, a.features);
    if (by_pairs(a.dtype))
      return pair_kernels()->grad_zero(static_cast<float*>(acc), a.features, a.inner);
    by_float(a.type, [&](auto t) {
      t_.matmul<decltype(t)>().grad_zero(static_cast<decltype(t)*>(acc), a.features, a.inner);
    });
  }

  void finish(const Accumulator& a, const void* acc, std::byte* to) const {
    if (a.kind == TileOp::RowReduce)
      return k_.row_reduce_finish(a.combine, a.type, acc, to, a.features);
    if (by_pairs(a.dtype))
      return pair_kernels()->grad_finish(static_cast<const float*>(acc), a.features, a.inner,
                                         reinterpret_cast<float*>(to), a.inner, 1);
    by_float(a.type, [&](auto t) {
      using T = decltype(t);
      t_.matmul<T>().grad_finish(static_cast<const T*>(acc), a.features, a.inner,
                                 reinterpret_cast<T*>(to), a.inner, 1);
    });
  }

  void tile(int64_t t) {
    first_ = t * p_.tile_rows;
    valid_ = narrow<int32_t>(std::min<int64_t>(p_.tile_rows, r_.rows - first_));
    const int32_t rows = (valid_ + 15) / 16 * 16;
    full_ = rows == valid_;
    if (rows != rows_) {
      rows_ = rows;
      for (size_t v = 0; v < r_.values.size(); ++v) keep_in_scratch(v);
      for (size_t i = 0; i < bound_.size(); ++i) bind(i);
      repeats_loaded_ = false;  // features lie elsewhere
    }
    for (const TileProgram::Direct& d : p_.direct)
      stays(d) ? keep_in_buffer(d) : keep_in_scratch(d.value);
    for (uint32_t i : p_.moving) bind(i);
    for (size_t i = 0; i < r_.loads.size(); ++i) {
      if (p_.loads_direct[i] >= 0 && stays(p_.direct[p_.loads_direct[i]])) continue;
      const RowLoad& l = r_.loads[i];
      const TileValue& v = r_.values[l.value];
      if (l.viewed()) {
        const bool again = period(l) > 0 && p_.tile_rows % period(l) == 0;
        if (!again || !repeats_loaded_) load_view(l, at_[l.value]);
        continue;
      }
      if (const int64_t block = block_of(s_.plan, r_, l.buffer, v.features); block > 1) {
        load_blocks(l, v, block);
        continue;
      }
      auto* from =
          static_cast<const std::byte*>(s_.buffers[l.buffer]) +
          static_cast<size_t>(first_) * static_cast<size_t>(v.features) * item_size(l.dtype);
      t_.transpose.load_rows(from, l.dtype, v.features, valid_, v.features, at_[l.value], rows_,
                             rows_);
    }
    repeats_loaded_ = full_;
    seconds_ ? program(Measured{seconds_}) : program([](size_t, auto f) { f(); });
    for (size_t i = 0; i < r_.stores.size(); ++i) {
      if (p_.stores_direct[i] >= 0 && stays(p_.direct[p_.stores_direct[i]])) continue;
      const RowStore& st = r_.stores[i];
      if (const int64_t block = block_of(s_.plan, r_, st.buffer, st.features); block > 1) {
        store_blocks(st, block);
        continue;
      }
      auto* to =
          static_cast<std::byte*>(s_.buffers[st.buffer]) +
          static_cast<size_t>(first_) * static_cast<size_t>(st.features) * item_size(st.dtype);
      t_.transpose.store_rows(pointer(st.from), pitch(st.from), st.dtype, valid_, st.features, to,
                              st.features);
    }
  }

  /// Calls run(i, f) for every instruction i, or part of it that f does.
  template <class F>
  void program(F run) {
    auto pass = p_.passes.begin();
    for (size_t i = 0; i < bound_.size();) {
      if (pass != p_.passes.end() && pass->first == i) {
        together(*pass, run);
        i += pass->count;
        ++pass;
        continue;
      }
      run(i, [&] {
        if (!bound_[i].loop)
          execute(i, bound_[i].args);
        else if (p_.nested[i] > 0)
          nested(i);
        else
          bound_[i].loop(bound_[i].args);
      });
      ++i;
    }
  }

  /// A loop that reads spread values: over every n-th feature, n times, or over n neighbours at a
  /// time.
  void nested(size_t at) {
    const Instruction& i = r_.program[at];
    LoopArgs a = bound_[at].args;
    const int32_t n = p_.nested[at], others = i.features / n;
    const bool every = n <= others;  // the fewer and longer loops
    a.features = every ? others : n;
    ptrdiff_t next[kMaxOperands] = {};  // bytes
    for (int k = 0; k < i.operand_count; ++k) {
      const Operand& o = i.operand[k];
      const Spread* const s = spread_of(p_, o);
      const ptrdiff_t pitch = s ? pitch_[s->value] : this->pitch(o);
      const ptrdiff_t inner = pitch * (s ? s->step : o.stride);
      const ptrdiff_t outer = pitch * (s ? s->outer : ptrdiff_t{n} * o.stride);
      a.s[k] = every ? outer : inner;
      next[k] = (every ? inner : outer) * size_of(o);
    }
    const ptrdiff_t to = a.pitch * (every ? 1 : n) * size_of({false, i.dst});
    if (every) a.pitch *= n;
    for (int32_t left = every ? n : others; left > 0; --left) {
      bound_[at].loop(a);
      a.d = static_cast<std::byte*>(a.d) + to;
      for (int k = 0; k < i.operand_count; ++k)
        a.p[k] = static_cast<const std::byte*>(a.p[k]) + next[k];
    }
  }

  /// A few features after the other through all loops of a pass.
  template <class F>
  void together(const Pass& pass, F run) {
    const int32_t features = r_.program[pass.first].features;
    for (int32_t f = 0; f < features; f += pass.chunk) {
      for (size_t i = pass.first; i < pass.first + pass.count; ++i) {
        const Instruction& at = r_.program[i];
        LoopArgs a = bound_[i].args;
        a.features = std::min(pass.chunk, features - f);
        a.d = static_cast<std::byte*>(a.d) +
              f * a.pitch * static_cast<ptrdiff_t>(compute_size(r_.values[at.dst].type));
        for (int k = 0; k < at.operand_count; ++k)
          a.p[k] = static_cast<const std::byte*>(a.p[k]) + f * a.s[k] * size_of(at.operand[k]);
        run(i, [&] { bound_[i].loop(a); });
      }
    }
  }

  struct Measured {
    double* seconds;
    template <class F>
    void operator()(size_t i, F f) const {
      using Clock = ProfiledPlan::Clock;
      const auto before = Clock::now();
      f();
      seconds[i] += std::chrono::duration<double>(Clock::now() - before).count();
    }
  };

  /// Whether this tile keeps a value in its buffer, in this step.
  bool stays(const TileProgram::Direct& d) const {
    using But = TileProgram::Direct::But;
    if (d.but == But::NoStep) return full_;
    return valid_ == p_.tile_rows && !(d.but == But::First ? first_step_ : last_step_);
  }

  void keep_in_scratch(size_t value) {
    at_[value] = scratch_ + r_.values[value].offset * static_cast<size_t>(p_.tile_rows);
    pitch_[value] = rows_;
  }
  void keep_in_buffer(const TileProgram::Direct& d) {
    const TileValue& v = r_.values[d.value];
    const int64_t place = first_ / d.pitch * v.features * d.pitch + first_ % d.pitch;
    at_[d.value] = static_cast<std::byte*>(s_.buffers[d.buffer]) +
                   static_cast<size_t>(place + d.offset) * compute_size(v.type);
    pitch_[d.value] = v.features > 1 ? d.pitch : rows_;
  }
  ptrdiff_t size_of(const Operand& o) const {
    const Compute type = o.uniform ? r_.uniforms[o.value].type : r_.values[o.value].type;
    return static_cast<ptrdiff_t>(compute_size(type));
  }
  /// Elements from one feature of an operand's value to the next.
  ptrdiff_t pitch(const Operand& o) const { return o.uniform ? 1 : pitch_[o.value]; }

  /// The tile's rows, run by run along the view's last dimension.
  void load_view(const RowLoad& l, std::byte* to) {
    const size_t item = item_size(l.dtype), size = compute_size(compute_type(l.dtype));
    const int64_t step = l.view.strides.back();
    const int32_t features = r_.values[l.value].features;
    const auto* source = static_cast<const std::byte*>(s_.buffers[l.buffer]);
    for_view_runs(l.view, first_, valid_, line_, [&](int64_t at, int64_t row, int64_t n) {
      const std::byte* from = source + at * static_cast<ptrdiff_t>(item);
      std::byte* const place = to + static_cast<size_t>(row) * size;
      if (features == 1)
        load_run(from, l.dtype, step, place, static_cast<size_t>(n));
      else
        load_rows(from, l.dtype, step, features, narrow<int32_t>(n), place);
    });
    if (valid_ == rows_) return;
    std::byte* end = to + static_cast<size_t>(valid_) * size;  // rows beyond the last repeat it
    for (int32_t f = 0; f < features; ++f, end += static_cast<size_t>(rows_) * size)
      for (int32_t r = 0; r < rows_ - valid_; ++r)
        std::memcpy(end + static_cast<size_t>(r) * size, end - size, size);
  }

  /// n rows of several features, `step` elements apart, which begin anywhere in the tile.
  void load_rows(const std::byte* from, DType dtype, int64_t step, int32_t features, int32_t n,
                 std::byte* to) const {
    const size_t item = item_size(dtype), size = compute_size(compute_type(dtype));
    const size_t pitch = static_cast<size_t>(rows_) * size;
    if (step == 0) {
      for (int32_t f = 0; f < features; ++f)
        load_run(from + static_cast<size_t>(f) * item, dtype, 0,
                 to + static_cast<size_t>(f) * pitch, static_cast<size_t>(n));
      return;
    }
    const int32_t whole = n / kLanes * kLanes;
    if (whole > 0) t_.transpose.load_rows(from, dtype, step, whole, features, to, rows_, whole);
    for (int32_t r = whole; r < n; ++r) {
      const std::byte* x = from + r * step * static_cast<ptrdiff_t>(item);
      std::byte* z = to + static_cast<size_t>(r) * size;
      for (int32_t f = 0; f < features; ++f, x += item, z += pitch)
        if (!is_compute_type(dtype))
          t_.transpose.load(x, dtype, z, 1);
        else if (size == 4)
          std::memcpy(z, x, 4);
        else
          std::memcpy(z, x, 8);
    }
  }

  /// f(place in the buffer of the first feature, row of the tile, how many) for each run of rows
  /// that lie side by side. The next feature's are `block` elements further.
  template <class F>
  void for_runs(int32_t features, int64_t block, F f) const {
    for (int64_t row = 0; row < valid_;) {
      const int64_t at = first_ + row, inside = at % block;
      const int64_t n = std::min<int64_t>(block - inside, valid_ - row);
      f(static_cast<size_t>(at / block * features * block + inside), static_cast<size_t>(row),
        static_cast<size_t>(n));
      row += n;
    }
  }

  void load_blocks(const RowLoad& l, const TileValue& v, int64_t block) {
    const size_t item = item_size(l.dtype), size = compute_size(v.type);
    const size_t pitch = static_cast<size_t>(block) * item;
    const bool far = pitch >= kFar;
    const size_t to_pitch = static_cast<size_t>(rows_) * size;
    for_runs(v.features, block, [&](size_t place, size_t row, size_t n) {
      auto* from = static_cast<const std::byte*>(s_.buffers[l.buffer]) + place * item;
      std::byte* to = at_[l.value] + row * size;
      for (int32_t f = 0; f < v.features; ++f, from += pitch, to += to_pitch) {
        if (far && f + kAhead < v.features) fetch<false>(from + kAhead * pitch, n * item);
        if (is_compute_type(l.dtype))
          copy_rows(from, to, n * item);
        else
          t_.transpose.load(from, l.dtype, to, n);
      }
    });
    if (valid_ == rows_) return;
    std::byte* end = at_[l.value] + to_pitch;  // rows beyond the last repeat it
    for (int32_t f = 0; f < v.features; ++f, end += to_pitch)
      for (std::byte* to = end - static_cast<size_t>(rows_ - valid_) * size; to < end; to += size)
        std::memcpy(to, to - size, size);
  }

  void store_blocks(const RowStore& s, int64_t block) {
    const size_t item = item_size(s.dtype), size = compute_size(s.type);
    const size_t pitch = static_cast<size_t>(block) * item;
    const bool far = pitch >= kFar;
    const ptrdiff_t apart = this->pitch(s.from) * static_cast<ptrdiff_t>(size);
    for_runs(s.features, block, [&](size_t place, size_t row, size_t n) {
      const std::byte* from = pointer(s.from) + row * size;
      auto* to = static_cast<std::byte*>(s_.buffers[s.buffer]) + place * item;
      for (int32_t f = 0; f < s.features; ++f, from += apart, to += pitch) {
        if (far && f + kAhead < s.features) fetch<true>(to + kAhead * pitch, n * item);
        if (is_compute_type(s.dtype))
          copy_rows(from, to, n * item);
        else
          t_.transpose.store(from, s.dtype, to, n);
      }
    });
  }

  /// Rows of neighbouring features so many bytes apart are too far for the machine to foresee the
  /// next.
  static constexpr size_t kFar = 256;
  static constexpr int32_t kAhead = 8;
  template <bool write>
  static void fetch(const std::byte* at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, write);
  }

  std::byte* pointer(const Operand& o) const {
    if (o.uniform) {
      const Uniform& u = r_.uniforms[o.value];
      return run_.uniforms + p_.uniforms[o.value] +
             static_cast<size_t>(o.base) * compute_size(u.type);
    }
    return at_[o.value] + static_cast<ptrdiff_t>(o.base) * pitch_[o.value] *
                              static_cast<ptrdiff_t>(compute_size(r_.values[o.value].type));
  }

  void bind(size_t at) {
    const Instruction& i = r_.program[at];
    bound_[at].loop = p_.loops[at];
    if (accumulates(i)) return;
    LoopArgs& a = bound_[at].args;
    a.d = at_[i.dst];
    a.pitch = pitch_[i.dst];
    for (int k = 0; k < i.operand_count; ++k) {
      const Operand& o = i.operand[k];
      const Spread* const s = spread_of(p_, o);
      a.p[k] = pointer(s ? Operand{false, s->value, s->base} : o);
      a.s[k] = o.stride * pitch(o);
    }
    a.features = i.features;
    a.rows = rows_;
  }

  void execute(size_t at, const LoopArgs& args) {
    const Instruction& i = r_.program[at];
    if (p_.taken[at].dropped) return;
    switch (i.kind) {
      case TileOp::Elementwise:
      case TileOp::Chain:
      case TileOp::Formula:
      case TileOp::Choose:
      case TileOp::Convert:
      case TileOp::Narrow:
        return;  // loops
      case TileOp::Copy:
        return k_.gather(i.type, at_[i.dst], at_[i.operand[0].value], pitch(i.operand[0]),
                         r_.maps[i.map].data(), i.features, rows_);
      case TileOp::Scatter:
        return scatter(i, args);
      case TileOp::Surround: {
        const TileValue& v = r_.values[i.dst];
        const size_t feature = static_cast<size_t>(rows_) * compute_size(v.type);
        const size_t head = static_cast<size_t>(v.head) * feature;
        std::memset(at_[i.dst] - head, 0, head);
        std::memset(at_[i.dst] + static_cast<size_t>(v.features) * feature, 0,
                    static_cast<size_t>(v.tail) * feature);
        return;
      }
      case TileOp::FeatureReduce:
        return reduce_features(at);
      case TileOp::Product:
        if (by_pairs(r_.weights[i.weights].dtype)) return product_of_pairs(i);
        return by_float(i.type, [&](auto t) {
          using T = decltype(t);
          t_.matmul<T>().matmul(
              reinterpret_cast<const T*>(run_.packed + p_.weights[i.weights]),
              reinterpret_cast<const T*>(pointer(i.operand[0])), pitch(i.operand[0]),
              reinterpret_cast<T*>(at_[i.dst]), pitch_[i.dst], i.inner, i.features, rows_,
              i.operand_count > 1 ? reinterpret_cast<const T*>(pointer(i.operand[1])) : nullptr,
              i.accumulate);
        });
      case TileOp::RowReduce:
        return k_.row_reduce(i.combine, i.type, sums(i.dst), pointer(i.operand[0]),
                             pitch(i.operand[0]), i.features, valid_);
      case TileOp::WeightGrad:
        if (by_pairs(r_.accumulators[i.dst].dtype)) return weight_grad_of_pairs(i);
        return by_float(i.type, [&](auto t) {
          using T = decltype(t);
          t_.matmul<T>().weight_grad(
              reinterpret_cast<const T*>(pointer(i.operand[0])), pitch(i.operand[0]),
              reinterpret_cast<const T*>(pointer(i.operand[1])), pitch(i.operand[1]), i.features,
              i.inner, rows_, valid_, reinterpret_cast<T*>(sums(i.dst)));
        });
    }
  }

  void reduce_features(size_t at) {
    const Instruction& i = r_.program[at];
    const Operand& x = i.operand[0];
    Factor a{pointer(x), pitch(x), r_.maps[i.map].data(), r_.maps[i.map2].data()}, b;
    const Factor* by = nullptr;
    const int32_t products = p_.taken[at].products;
    if (products >= 0) {
      const auto factor = [&](const SumOfProducts::Factor& f) {
        return Factor{at_[f.value], pitch_[f.value], f.base.data(), f.step.data()};
      };
      const auto& factors = p_.products[static_cast<size_t>(products)].factors;
      a = factor(factors.front()), b = factor(factors.back());
      by = factors.size() == 1 ? &a : &b;
    }
    k_.feature_reduce(i.combine, i.type, at_[i.dst], a, by, i.features, i.inner, rows_);
  }

  const float* floats(const Operand& o) const { return reinterpret_cast<const float*>(pointer(o)); }

  void product_of_pairs(const Instruction& i) {
    const PairKernels& k = *pair_kernels();
    k.pair_features(floats(i.operand[0]), pitch(i.operand[0]), i.inner, rows_, pairs_);
    k.matmul(reinterpret_cast<const Pair*>(run_.packed + p_.weights[i.weights]), pairs_, rows_,
             reinterpret_cast<float*>(at_[i.dst]), pitch_[i.dst], i.inner, i.features, rows_,
             i.operand_count > 1 ? floats(i.operand[1]) : nullptr, i.accumulate);
  }

  void weight_grad_of_pairs(const Instruction& i) {
    const PairKernels& k = *pair_kernels();
    const int32_t ld = rows_ / 2;
    Pair* const dy = pairs_ + static_cast<ptrdiff_t>(i.features) * ld;
    k.pair_rows(floats(i.operand[0]), pitch(i.operand[0]), i.features, valid_, pairs_, ld);
    k.pair_rows(floats(i.operand[1]), pitch(i.operand[1]), i.inner, valid_, dy, ld);
    k.weight_grad(pairs_, ld, dy, ld, i.features, i.inner, ld, (valid_ + 1) / 2,
                  reinterpret_cast<float*>(sums(i.dst)));
  }

  void scatter(const Instruction& i, const LoopArgs& from) {
    if (i.zero)
      std::memset(at_[i.dst], 0,
                  static_cast<size_t>(i.features) * static_cast<size_t>(rows_) *
                      compute_size(r_.values[i.dst].type));
    k_.scatter(r_.values[i.dst].type, at_[i.dst], from, i.operand[0].uniform, r_.maps[i.map].data(),
               i.inner);
  }

  const Region& r_;
  const TileProgram& p_;
  const RegionRun& run_;
  const RunState& s_;
  std::byte* accumulators_;
  const Kernels& k_;
  const TileKernels& t_;
  std::vector<Bound>& bound_;
  Pair* pairs_;  ///< operands of a product
  std::byte* scratch_;
  std::byte** at_;             ///< where each value is
  ptrdiff_t* pitch_;           ///< elements from one of its features to the next
  Dims& line_;                 ///< of a view: which of its lines is loaded
  double* seconds_ = nullptr;  ///< of each instruction, while somebody measures
  int64_t first_ = 0;
  int32_t valid_ = 0, rows_ = 0;
  bool full_ = false, first_step_ = true, last_step_ = true;
  bool repeats_loaded_ = false;  ///< what comes again with each tile, since a full one
};

}  // namespace gradcell::cpu
