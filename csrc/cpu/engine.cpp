#include "cpu/engine.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/thread_pool.h"
#include "cpu/calls/calls.h"
#include "cpu/line_runner.h"
#include "cpu/loop_runner.h"
#include "cpu/pair_kernels.h"
#include "cpu/profile.h"
#include "cpu/tile_kernels.h"
#include "ir/fold.h"

namespace gradcell::cpu {

namespace {

/// Below this many estimated nanoseconds a stage is not worth waking a thread.
constexpr double kParallelWork = 15000;
/// Nor is merging fewer bytes than this, or packing fewer elements of weights.
constexpr size_t kParallelMerge = 64 << 10;
constexpr int64_t kParallelPack = 12000;

void prepare_uniforms(const RegionRun& run, const RunState& s) {
  for (size_t i = 0; i < run.region->uniforms.size(); ++i) {
    const Uniform& u = run.region->uniforms[i];
    void* to = run.uniforms + run.program->uniforms[i];
    if (u.constant >= 0) {
      by_compute(u.type, [&](auto t) {
        *static_cast<decltype(t)*>(to) = from_bits<decltype(t)>(u.dtype, s.constants[u.constant]);
      });
      continue;
    }
    auto* from = static_cast<const std::byte*>(s.buffers[u.buffer]);
    const TileTranspose& t = tile_kernels().transpose;
    if (u.map.empty()) {
      t.load(from, u.dtype, to, static_cast<size_t>(u.count));
      continue;
    }
    size_t size = compute_size(u.type), item = item_size(u.dtype);
    for (size_t f = 0; f < u.map.size(); ++f)
      t.load(from + static_cast<size_t>(u.map[f]) * item, u.dtype,
             static_cast<std::byte*>(to) + f * size, 1);
  }
}

void pack_one(const RegionRun& run, size_t index, const RunState& s) {
  const PackedWeights& w = run.region->weights[index];
  if (by_pairs(w.dtype))
    return pair_kernels()->pack_weights(
        static_cast<const uint16_t*>(s.buffers[w.buffer]), w.k_stride, w.m_stride, w.k, w.m,
        reinterpret_cast<Pair*>(run.packed + run.program->weights[index]));
  by_float(w.type, [&](auto t) {
    using T = decltype(t);
    auto* to = reinterpret_cast<T*>(run.packed + run.program->weights[index]);
    const auto& mm = tile_kernels().matmul<T>();
    const void* from = s.buffers[w.buffer];
    if (w.dtype == DType::Float32 || w.dtype == DType::Float64)
      return mm.pack_weights(static_cast<const T*>(from), w.k_stride, w.m_stride, w.k, w.m, to);
    std::vector<T> wide(static_cast<size_t>(w.k) * static_cast<size_t>(w.m));
    tile_kernels().transpose.load(from, w.dtype, wide.data(), wide.size());
    mm.pack_weights(wide.data(), w.k_stride, w.m_stride, w.k, w.m, to);
  });
}

/// Packs all weights of a stage, each in a task of its own where there are large ones.
void pack(std::span<const RegionRun> runs, const RunState& s) {
  std::vector<std::pair<const RegionRun*, size_t>> all;
  int64_t elements = 0;
  for (const RegionRun& run : runs)
    for (const PackedWeights& w : run.region->weights) {
      all.emplace_back(&run, &w - run.region->weights.data());
      elements += int64_t(w.k) * w.m;
    }
  auto one = [&](int i, int) { pack_one(*all[i].first, all[i].second, s); };
  parallel_if(elements > kParallelPack, static_cast<int>(all.size()), one);
}

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

  void chunk(int32_t c) {
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
    valid_ = static_cast<int32_t>(std::min<int64_t>(p_.tile_rows, r_.rows - first_));
    const int32_t rows = (valid_ + 15) / 16 * 16;
    const bool full = rows == valid_;
    if (rows != rows_) {
      rows_ = rows;
      for (size_t v = 0; v < r_.values.size(); ++v) keep_in_scratch(v);
      for (size_t i = 0; i < bound_.size(); ++i) bind(i);
    }
    for (const TileProgram::Direct& d : p_.direct)
      full ? keep_in_buffer(d) : keep_in_scratch(d.value);
    for (uint32_t i : p_.moving) bind(i);
    for (size_t i = 0; i < r_.loads.size(); ++i) {
      if (full && p_.loads_direct[i]) continue;
      const RowLoad& l = r_.loads[i];
      const TileValue& v = r_.values[l.value];
      if (l.viewed()) {
        load_view(l, at_[l.value]);
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
    seconds_ ? program(Measured{seconds_}) : program([](size_t, auto f) { f(); });
    for (size_t i = 0; i < r_.stores.size(); ++i) {
      if (full && p_.stores_direct[i]) continue;
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
        if (bound_[i].loop)
          bound_[i].loop(bound_[i].args);
        else
          execute(r_.program[i], bound_[i].args);
      });
      ++i;
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
        for (int k = 0; k < at.operand_count; ++k) {
          const Operand& o = at.operand[k];
          const Compute type = o.uniform ? r_.uniforms[o.value].type : r_.values[o.value].type;
          a.p[k] = static_cast<const std::byte*>(a.p[k]) +
                   f * a.s[k] * static_cast<ptrdiff_t>(compute_size(type));
        }
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

  void keep_in_scratch(size_t value) {
    at_[value] = scratch_ + r_.values[value].offset * static_cast<size_t>(p_.tile_rows);
    pitch_[value] = rows_;
  }
  void keep_in_buffer(const TileProgram::Direct& d) {
    const TileValue& v = r_.values[d.value];
    const int64_t place = first_ / d.pitch * v.features * d.pitch + first_ % d.pitch;
    at_[d.value] = static_cast<std::byte*>(s_.buffers[d.buffer]) +
                   static_cast<size_t>(place) * compute_size(v.type);
    pitch_[d.value] = v.features > 1 ? d.pitch : rows_;
  }
  /// Elements from one feature of an operand's value to the next.
  ptrdiff_t pitch(const Operand& o) const { return o.uniform ? 1 : pitch_[o.value]; }

  /// The tile's rows, run by run along the view's last dimension.
  void load_view(const RowLoad& l, std::byte* to) {
    const View& v = l.view;
    const size_t item = item_size(l.dtype), size = compute_size(compute_type(l.dtype));
    const int64_t length = v.dims.back(), step = v.strides.back();
    const size_t outer = v.dims.size() - 1;
    int64_t inside = first_ % length, at = v.offset;
    line_.resize(outer);
    for (size_t k = outer, rest = static_cast<size_t>(first_ / length); k-- > 0;) {
      const auto n = static_cast<size_t>(v.dims[k]);
      line_[k] = static_cast<int64_t>(rest % n);
      at += line_[k] * v.strides[k];
      rest /= n;
    }
    for (int64_t row = 0; row < valid_; inside = 0) {
      const int64_t n = std::min(length - inside, valid_ - row);
      load_run(static_cast<const std::byte*>(s_.buffers[l.buffer]) +
                   (at + inside * step) * static_cast<ptrdiff_t>(item),
               l.dtype, step, to + static_cast<size_t>(row) * size, static_cast<size_t>(n));
      row += n;
      for (size_t k = outer; k-- > 0;) {  // the next line
        at += v.strides[k];
        if (++line_[k] < v.dims[k]) break;
        at -= line_[k] * v.strides[k];
        line_[k] = 0;
      }
    }
    for (int32_t r = valid_; r < rows_; ++r)
      std::memcpy(to + static_cast<size_t>(r) * size, to + static_cast<size_t>(r - 1) * size, size);
  }

  /// n elements, `step` apart, in their compute type.
  void load_run(const std::byte* from, DType dtype, int64_t step, std::byte* to, size_t n) const {
    if (step == 1) {
      if (is_compute_type(dtype))
        copy_rows(from, to, n * item_size(dtype));
      else
        t_.transpose.load(from, dtype, to, n);
    } else if (step == 0) {
      alignas(8) std::byte one[8];
      t_.transpose.load(from, dtype, one, 1);
      LoopArgs fill;
      fill.d = to, fill.p[0] = one, fill.s[0] = 0, fill.features = 1;
      fill.rows = static_cast<int32_t>(n);
      k_.expand(compute_type(dtype), true)(fill);
    } else if (is_compute_type(dtype)) {
      by_compute(compute_type(dtype), [&](auto t) {
        using T = decltype(t);
        const T* x = reinterpret_cast<const T*>(from);
        T* z = reinterpret_cast<T*>(to);
        if (step == -1)
          for (size_t i = 0; i < n; ++i) z[i] = *(x - i);
        else
          for (size_t i = 0; i < n; ++i) z[i] = x[static_cast<ptrdiff_t>(i) * step];
      });
    } else {
      const size_t item = item_size(dtype), size = compute_size(compute_type(dtype));
      for (size_t i = 0; i < n; ++i)
        t_.transpose.load(from + static_cast<ptrdiff_t>(i) * step * static_cast<ptrdiff_t>(item),
                          dtype, to + i * size, 1);
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
    const size_t to_pitch = static_cast<size_t>(rows_) * size;
    for_runs(v.features, block, [&](size_t place, size_t row, size_t n) {
      auto* from = static_cast<const std::byte*>(s_.buffers[l.buffer]) + place * item;
      std::byte* to = at_[l.value] + row * size;
      for (int32_t f = 0; f < v.features; ++f, from += pitch, to += to_pitch) {
        if (f + kAhead < v.features) fetch<false>(from + kAhead * pitch, n * item);
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
    const ptrdiff_t apart = this->pitch(s.from) * static_cast<ptrdiff_t>(size);
    for_runs(s.features, block, [&](size_t place, size_t row, size_t n) {
      const std::byte* from = pointer(s.from) + row * size;
      auto* to = static_cast<std::byte*>(s_.buffers[s.buffer]) + place * item;
      for (int32_t f = 0; f < s.features; ++f, from += apart, to += pitch) {
        if (f + kAhead < s.features) fetch<true>(to + kAhead * pitch, n * item);
        if (is_compute_type(s.dtype))
          copy_rows(from, to, n * item);
        else
          t_.transpose.store(from, s.dtype, to, n);
      }
    });
  }

  /// Rows of neighbouring features lie too far apart for the machine to foresee the next.
  static constexpr int32_t kAhead = 8;
  template <bool write>
  static void fetch(const std::byte* at, size_t bytes) {
    for (size_t i = 0; i < bytes; i += 64) __builtin_prefetch(at + i, write);
  }

  /// Few bytes, most often a multiple of 64: a call of memcpy would cost as much again.
  static void copy_rows(const std::byte* from, std::byte* to, size_t bytes) {
    size_t at = 0;
    for (; at + 64 <= bytes; at += 64) std::memcpy(to + at, from + at, 64);
    if (at < bytes) std::memcpy(to + at, from + at, bytes - at);
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
      a.p[k] = pointer(o);
      a.s[k] = o.stride * pitch(o);
    }
    a.features = i.features;
    a.rows = rows_;
  }

  void execute(const Instruction& i, const LoopArgs& args) {
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
      case TileOp::FeatureReduce:
        return k_.feature_reduce(i.combine, i.type, at_[i.dst], pointer(i.operand[0]),
                                 pitch(i.operand[0]), r_.maps[i.map].data(), i.features,
                                 r_.maps[i.map2].data(), i.inner, rows_);
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
};

/// A chunk, measured if somebody asks.
template <class R>
void run_chunk(R& runner, const Region& r, int32_t c, ProfiledPlan* profile, int stage, int region,
               int worker) {
  if (!profile) return runner.chunk(c);
  using Clock = ProfiledPlan::Clock;
  std::vector<double> seconds(r.program.size() + 1, 0.0);
  const auto begin = Clock::now();
  runner.measure(seconds.data());
  runner.chunk(c);
  runner.measure(nullptr);
  const auto end = Clock::now();
  double rest = std::chrono::duration<double>(end - begin).count();
  for (double s : seconds) rest -= s;
  seconds.back() = std::max(0.0, rest);
  profile->add_chunk(stage, region, worker, begin, end, seconds);
}

/// So many elements of all chunks' partial results fit in the first-level cache, as a rule.
constexpr size_t kMergePiece = 512;

int merge_pieces(const Accumulator& a) {
  return static_cast<int>((a.count() + kMergePiece - 1) / kMergePiece);
}

/// Merges a piece of the chunks' partial results pairwise, in an order that depends on their number
/// alone.
void merge(const RegionRun& run, size_t accumulator, int piece, const RunState& s) {
  const Accumulator& a = run.region->accumulators[accumulator];
  const int32_t chunks = run.program->chunks;
  const size_t begin = static_cast<size_t>(piece) * kMergePiece;
  const size_t n = std::min(kMergePiece, a.count() - begin);
  auto of = [&](int32_t c) { return result(run, c, accumulator) + begin * compute_size(a.type); };
  for (int32_t step = 1; step < chunks; step *= 2)
    for (int32_t c = 0; c + step < chunks; c += 2 * step)
      kernels().merge(a.combine, a.type, of(c), of(c + step), n);
  auto* to = static_cast<std::byte*>(s.buffers[a.buffer]) + begin * item_size(a.dtype);
  tile_kernels().transpose.store(of(0), a.dtype, to, n);
}

/// The results of the stage's reductions over rows, in tasks of a piece each where they are large.
void merge(std::span<const RegionRun> runs, const RunState& s) {
  int tasks = 0;
  size_t bytes = 0;
  for (const RegionRun& run : runs) {
    for (const Accumulator& a : run.region->accumulators) tasks += merge_pieces(a);
    bytes += run.program->result_bytes * static_cast<size_t>(run.program->chunks);
  }
  auto one = [&](int task, int) {
    for (const RegionRun& run : runs) {
      const std::vector<Accumulator>& all = run.region->accumulators;
      for (size_t a = 0; a < all.size(); ++a) {
        if (task < merge_pieces(all[a])) return merge(run, a, task, s);
        task -= merge_pieces(all[a]);
      }
    }
  };
  parallel_if(bytes > kParallelMerge, tasks, one);
}

}  // namespace

namespace {

/// Where the inputs and outputs of a step lie.
struct StepPointers {
  std::vector<const void*> in;
  std::vector<void*> out, buffers;
};

/// Where a plan's buffers lie in a run.
void bind_buffers(const Plan& plan, std::byte* arena, const void* const* inputs,
                  void* const* outputs, std::vector<void*>& buffers) {
  buffers.resize(plan.buffers.size());
  for (size_t b = 0; b < plan.buffers.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    buffers[b] = buffer.place == Place::Input    ? const_cast<void*>(inputs[buffer.index])
                 : buffer.place == Place::Output ? outputs[buffer.index]
                                                 : arena + buffer.offset;
  }
}

void bind_step(const Plan& plan, std::byte* arena, int64_t step, Runner::BindStep bind,
               StepPointers& p) {
  p.in.resize(plan.inputs.size());
  p.out.assign(plan.outputs.size(), nullptr);
  bind(step, p.in.data(), p.out.data());
  bind_buffers(plan, arena, p.in.data(), p.out.data(), p.buffers);
}

/// Rows of a tile that goes through all steps: few, so that there are tiles for all threads.
int32_t step_rows(int64_t rows) {
  constexpr int64_t kTiles = 4;
  return static_cast<int32_t>((rows + 16 * kTiles - 1) / (16 * kTiles) * 16);
}

/// Whether each thread can take its rows through all steps: all that a step makes of rows is rows,
/// and it reads nothing else of what steps make.
bool rows_apart(const Program& program, const std::vector<StepInput>& inputs) {
  const Plan& plan = program.plan;
  if (plan.stages.size() != 1 || !plan.stages[0].calls.empty() ||
      plan.stages[0].regions.size() != 1)
    return false;
  const Region& r = plan.stages[0].regions[0];
  auto is = [&](BufferId b, StepInput kind) {
    return plan.buffers[b].place == Place::Input && inputs[plan.buffers[b].index] == kind;
  };
  for (const Uniform& u : r.uniforms)
    if (!is(u.buffer, StepInput::Same)) return false;
  for (const PackedWeights& w : r.weights)
    if (!is(w.buffer, StepInput::Same)) return false;
  for (const RowLoad& l : r.loads)
    if (l.viewed() && is(l.buffer, StepInput::Carried)) return false;
  for (const PlanOutput& o : plan.outputs)  // what lies elsewhere is copied by rows
    if (o.desc.count % r.rows != 0) return false;
  return r.accumulators.empty() && r.block == 1;
}

}  // namespace

struct Runner::Context {
  Scratch arena, side;
  std::vector<void*> buffers;
  std::vector<RegionRun> runs;
  /// What a thread keeps from one chunk to the next.
  struct Worker {
    const RegionRun* run = nullptr;
    std::optional<TileRunner> runner;
    std::optional<LineRunner> lines;
    std::vector<Bound> program;
    Dims line;
    StepPointers step;
  };
  std::vector<Worker> workers;
  StepPointers step;
};

struct Runner::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;
};

/// A context taken from the pool for one run.
class Runner::ContextLease {
 public:
  explicit ContextLease(Pool& pool) : pool_(pool) {
    std::lock_guard lock(pool_.mutex);
    if (pool_.idle.empty()) {
      context_ = std::make_unique<Context>();
    } else {
      context_ = std::move(pool_.idle.back());
      pool_.idle.pop_back();
    }
  }
  ~ContextLease() {
    if (!context_) return;
    std::lock_guard lock(pool_.mutex);
    pool_.idle.push_back(std::move(context_));
  }
  ContextLease(const ContextLease&) = delete;
  ContextLease& operator=(const ContextLease&) = delete;
  Context& operator*() const { return *context_; }
  /// Nobody gets it again: what was left behind may still write to it.
  void leave() { static_cast<void>(context_.release()); }

 private:
  Pool& pool_;
  std::unique_ptr<Context> context_;
};

Runner::Runner(Plan plan)
    : program_(prepare(std::move(plan))), agenda_(program_.plan), pool_(std::make_unique<Pool>()) {
  static std::atomic<uint64_t> made{0};
  serial_ = made++;
  work_ = program_.work;
  for (const Stage& stage : program_.plan.stages)
    for (const Call& c : stage.calls) {
      if (!c.loop) continue;
      work_ += (loops_[c.loop.get()] = std::make_unique<LoopRunner>(*c.loop))->work();
    }
}

Runner::Runner(Plan plan, const std::vector<StepInput>& inputs) : Runner(std::move(plan)) {
  apart_ = rows_apart(program_, inputs);
  if (!apart_) return;
  TileProgram& p = program_.stages[0][0];
  const int64_t rows = this->plan().stages[0].regions[0].rows;
  if (!p.lines) p.tile_rows = std::min(p.tile_rows, step_rows(rows));
  p.chunks =
      static_cast<int32_t>(std::clamp<int64_t>((rows + p.tile_rows - 1) / p.tile_rows, 1, 64));
}

Runner::~Runner() = default;

void Runner::run(const void* const* inputs, void* const* outputs, const uint64_t* constants) const {
  const Plan& plan = program_.plan;
  ContextLease lease(*pool_);
  Context& context = *lease;
  std::byte* arena = context.arena.get(std::max<size_t>(plan.arena_bytes, 64));
  bind_buffers(plan, arena, inputs, outputs, context.buffers);
  const std::shared_ptr<ProfiledPlan> profile = profiled(serial_, plan);
  if (plan.collectives == 0) return run(context, constants, nullptr, profile.get());
  try {
    Exchange exchange(agenda_);
    try {
      run(context, constants, &exchange, profile.get());
      exchange.finish();
    } catch (const std::exception& e) {
      exchange.failed(e.what());
      throw;
    }
  } catch (...) {
    if (left_behind()) lease.leave();
    throw;
  }
}

void Runner::run_steps(int64_t steps, BindStep bind, EndStep end) const {
  ContextLease lease(*pool_);
  Context& context = *lease;
  if (apart_) return run_apart(context, steps, bind, end);
  std::byte* arena = context.arena.get(std::max<size_t>(plan().arena_bytes, 64));
  for (int64_t step = 0; step < steps; ++step) {
    bind_step(plan(), arena, step, bind, context.step);
    context.buffers.swap(context.step.buffers);
    run(context, nullptr, nullptr, nullptr);
    end(step, 0, 1, 1);
  }
}

/// Each chunk of rows through all steps.
void Runner::run_apart(Context& context, int64_t steps, BindStep bind, EndStep end) const {
  const Region& region = plan().stages[0].regions[0];
  const TileProgram& p = program_.stages[0][0];
  context.workers.resize(static_cast<size_t>(max_threads()));
  bind_step(plan(), nullptr, 0, bind, context.step);
  std::byte* side = context.side.get(program_.side_bytes);
  context.runs.assign(
      1, {&region, &p, side, side + p.uniform_bytes, side + p.uniform_bytes + p.packed_bytes});
  const RegionRun& run = context.runs[0];
  const RunState first{plan(), context.step.buffers.data(), nullptr};
  prepare_uniforms(run, first);
  pack(context.runs, first);
  const int64_t tiles = (region.rows + p.tile_rows - 1) / p.tile_rows;
  auto body = [&](int chunk, int worker) {
    Context::Worker& w = context.workers[static_cast<size_t>(worker)];
    w.step.buffers.resize(plan().buffers.size());
    const RunState state{plan(), w.step.buffers.data(), nullptr};
    const int64_t from = tiles * chunk / p.chunks * p.tile_rows;
    const int64_t to = std::min(tiles * (chunk + 1) / p.chunks * p.tile_rows, region.rows);
    auto go = [&](auto& runner) {
      for (int64_t step = 0; step < steps; ++step) {
        bind_step(plan(), nullptr, step, bind, w.step);
        runner.chunk(chunk);
        end(step, from, to, region.rows);
      }
    };
    w.run = nullptr;
    if (p.lines)
      go(w.lines.emplace(run, state));
    else
      go(w.runner.emplace(run, state, w.program, w.line));
  };
  parallel_if(p.work * static_cast<double>(steps) >= kParallelWork, p.chunks, body,
              static_cast<int>(context.workers.size()));
}

void Runner::run_loop(const Call& call, const void* const* in,
                      std::span<void* const> buffers) const {
  void* results[64];
  std::vector<void*> many;
  void** p = results;
  if (call.more.size() >= 64) many.resize(call.more.size() + 1), p = many.data();
  p[0] = buffers[call.output];
  for (size_t k = 0; k < call.more.size(); ++k) p[k + 1] = buffers[call.more[k]];
  loops_.at(call.loop.get())->run(in, p);
}

void Runner::run(Context& context, const uint64_t* constants, Exchange* exchange,
                 ProfiledPlan* profile) const {
  using Clock = ProfiledPlan::Clock;
  auto now = [&] { return profile ? Clock::now() : Clock::time_point(); };
  const auto start = now();
  const Plan& plan = program_.plan;
  RunState state{plan, context.buffers.data(), constants};
  context.workers.resize(static_cast<size_t>(max_threads()));

  std::byte* const side_begin = context.side.get(program_.side_bytes);
  for (size_t at = 0; at < plan.stages.size(); ++at) {
    const Stage& stage = plan.stages[at];
    const auto number = static_cast<int>(at);
    auto run_one = [&](size_t place) {
      const Call& call = stage.calls[place];
      const auto begin = now();
      const void* in[64];
      std::vector<const void*> many;
      const void** p = in;
      if (call.inputs.size() > 64) many.resize(call.inputs.size()), p = many.data();
      for (size_t i = 0; i < call.inputs.size(); ++i) p[i] = context.buffers[call.inputs[i]];
      void* out = context.buffers[call.output];
      if (call.loop)
        run_loop(call, p, context.buffers);
      else
        call.sequence < 0 ? run_call(call, p, out, constants) : exchange->start(call, p[0], out);
      if (profile) profile->add_call(number, static_cast<int>(place), begin, Clock::now());
    };
    if (exchange) exchange->progress();
    for (int32_t collective : stage.waits) exchange->wait(collective);
    size_t collectives = 0;
    while (collectives < stage.calls.size() && stage.calls[collectives].sequence >= 0)
      run_one(collectives++);

    const auto before = now();
    std::byte* side = side_begin;
    context.runs.clear();
    int32_t tasks = 0;
    double work = 0;
    for (size_t i = 0; i < stage.regions.size(); ++i) {
      const TileProgram& p = program_.stages[at][i];
      RegionRun run{&stage.regions[i], &p, side, side + p.uniform_bytes,
                    side + p.uniform_bytes + p.packed_bytes};
      side += p.side_bytes();
      prepare_uniforms(run, state);
      context.runs.push_back(run);
      tasks += p.chunks;
      work += p.work;
    }
    pack(context.runs, state);
    const auto packed = now();
    for (Context::Worker& w : context.workers) w.run = nullptr;
    auto body = [&](int task, int worker) {
      Context::Worker& w = context.workers[worker];
      int region = 0;
      for (const RegionRun& run : context.runs) {
        if (task >= run.program->chunks) {
          task -= run.program->chunks;
          ++region;
          continue;
        }
        const bool other = w.run != &run;
        w.run = &run;
        if (run.program->lines) {
          if (other) w.lines.emplace(run, state);
          return run_chunk(*w.lines, *run.region, task, profile, number, region, worker);
        }
        if (other) w.runner.emplace(run, state, w.program, w.line);
        return run_chunk(*w.runner, *run.region, task, profile, number, region, worker);
      }
    };
    parallel_if(work >= kParallelWork, tasks, body, static_cast<int>(context.workers.size()));
    const auto ran = now();
    merge(context.runs, state);
    if (profile && !stage.regions.empty()) {
      profile->add_around(number, before, packed);
      profile->end_regions(number, std::chrono::duration<double>(ran - packed).count());
      profile->add_around(number, ran, Clock::now());
    }
    for (size_t i = collectives; i < stage.calls.size(); ++i) {
      if (exchange) exchange->progress();
      run_one(i);
    }
  }
  if (profile) profile->end_run(std::chrono::duration<double>(Clock::now() - start).count());
}

}  // namespace gradcell::cpu
