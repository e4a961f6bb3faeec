#include "cpu/run/engine.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/thread_pool.h"
#include "cpu/calls/calls.h"
#include "cpu/kernels/pair_kernels.h"
#include "cpu/kernels/tile_kernels.h"
#include "cpu/run/band_runner.h"
#include "cpu/run/line_runner.h"
#include "cpu/run/loop_runner.h"
#include "cpu/run/profile.h"
#include "cpu/run/tile_runner.h"
#include "ir/fold.h"

namespace gradcell::cpu {

namespace {

/// Below this many estimated nanoseconds a stage is not worth waking a thread.
constexpr double kParallelWork = 15000;
/// Nor is merging fewer bytes than this, or packing fewer elements of weights.
constexpr size_t kParallelMerge = 64 << 10;
constexpr int64_t kParallelPack = 12000;

void prepare_uniforms(const RegionRun& run, const RunState& s) {
  if (run.region->uniforms.empty()) return;
  const TileTranspose& t = tile_kernels().transpose;
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

/// Weights to pack; `wide`: where those of a narrow dtype are widened before.
struct Packing {
  const RegionRun* run;
  size_t index;
  std::byte* wide;
};

/// Bytes for the wide form of weights that are not packed as they are.
size_t wide_bytes(const PackedWeights& w) {
  const bool as_they_are =
      by_pairs(w.dtype) || w.dtype == DType::Float32 || w.dtype == DType::Float64;
  return as_they_are ? 0 : rounded(w.k * size_t(w.m) * compute_size(w.type));
}

void pack_one(const Packing& packing, const RunState& s) {
  const auto& [of, index, wide_at] = packing;
  const RegionRun& run = *of;
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
    if (wide_bytes(w) == 0)
      return mm.pack_weights(static_cast<const T*>(from), w.k_stride, w.m_stride, w.k, w.m, to);
    auto* wide = reinterpret_cast<T*>(wide_at);
    tile_kernels().transpose.load(from, w.dtype, wide, static_cast<size_t>(w.k) * size_t(w.m));
    mm.pack_weights(wide, w.k_stride, w.m_stride, w.k, w.m, to);
  });
}

/// Packs all weights of a stage, each in a task of its own where there are large ones. `all` and
/// `wide` have room for them.
void pack(std::span<const RegionRun> runs, const RunState& s, std::vector<Packing>& all,
          std::byte* wide) {
  if (std::ranges::all_of(runs, [](const RegionRun& r) { return r.region->weights.empty(); }))
    return;
  all.clear();
  int64_t elements = 0;
  for (const RegionRun& run : runs)
    for (size_t i = 0; i < run.region->weights.size(); ++i) {
      const PackedWeights& w = run.region->weights[i];
      all.push_back({&run, i, wide});
      wide += wide_bytes(w);
      elements += int64_t(w.k) * w.m;
    }
  auto one = [&](int i, int) { pack_one(all[static_cast<size_t>(i)], s); };
  parallel_if(elements > kParallelPack, all.size(), one);
}

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
  return narrow<int>((a.count() + kMergePiece - 1) / kMergePiece);
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

// Steps -------------------------------------------------------------------------------------------

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

void bind_step(const Plan& plan, std::byte* arena, std::byte* own, int64_t step,
               Runner::BindStep bind, StepPointers& p) {
  p.in.resize(plan.inputs.size());
  p.out.assign(plan.outputs.size(), nullptr);
  bind(own, step, p.in.data(), p.out.data());
  bind_buffers(plan, arena, p.in.data(), p.out.data(), p.buffers);
}

/// After so many steps, and before the last, all that a loop reads and writes lies as far from
/// where it was two steps ago: it goes along an array, or two places take turns.
constexpr int64_t kIrregular = 4;

class StepMoves {
 public:
  void note(int64_t step, const std::vector<void*>& buffers) {
    std::vector<void*>& last = last_[step & 1];
    if (step == kIrregular) {
      moves_.resize(buffers.size());
      for (size_t b = 0; b < buffers.size(); ++b)
        moves_[b] = static_cast<std::byte*>(buffers[b]) - static_cast<std::byte*>(last[b]);
    }
    last = buffers;
  }
  void apply(int64_t step, std::vector<void*>& buffers) {
    std::vector<void*>& last = last_[step & 1];
    for (size_t b = 0; b < buffers.size(); ++b)
      buffers[b] = last[b] = static_cast<std::byte*>(last[b]) + moves_[b];
  }

 private:
  std::vector<void*> last_[2];
  std::vector<ptrdiff_t> moves_;
};

/// Rows of a tile that goes through all steps: few, so that there are tiles for all threads.
int32_t step_rows(int64_t rows) {
  constexpr int64_t kTiles = 4;
  return narrow<int32_t>((rows + 16 * kTiles - 1) / (16 * kTiles) * 16);
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

/// The most that a stage needs.
struct StageNeeds {
  size_t regions = 0, weights = 0, wide = 0;
};

StageNeeds stage_needs(const Plan& plan) {
  StageNeeds most;
  for (const Stage& stage : plan.stages) {
    size_t weights = 0, wide = 0;
    for (const Region& r : stage.regions) {
      weights += r.weights.size();
      for (const PackedWeights& w : r.weights) wide += wide_bytes(w);
    }
    most.regions = std::max(most.regions, stage.regions.size());
    most.weights = std::max(most.weights, weights);
    most.wide = std::max(most.wide, wide);
  }
  return most;
}

}  // namespace

struct Runner::Context {
  Scratch arena, side, wide, own;
  std::byte* steps = nullptr;  ///< where a loop's own memory begins
  bool prepared = false;
  std::vector<void*> buffers;
  std::vector<RegionRun> runs;
  std::vector<Packing> packing;
  /// What a thread keeps from one chunk to the next.
  struct Worker {
    const RegionRun* run = nullptr;
    std::optional<TileRunner> runner;
    std::optional<LineRunner> lines;
    std::optional<BandRunner> bands;
    std::vector<Bound> program;
    std::array<BoundRow, 2> rows;
    Dims line;
    StepPointers step;
    StepMoves moves;
  };
  std::vector<Worker> workers;
  StepPointers step;
  std::optional<RunState> state;
};

struct Runner::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> idle;  ///< with room for all there are
  size_t made = 0;
};

/// A context taken from the pool for one run.
class Runner::ContextLease {
 public:
  explicit ContextLease(Pool& pool) : pool_(pool) {
    std::lock_guard lock(pool_.mutex);
    if (pool_.idle.empty()) {
      context_ = std::make_unique<Context>();
      pool_.idle.reserve(++pool_.made);
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

Runner::Runner(Plan plan, const std::vector<StepInput>& inputs, std::vector<Room> room,
               std::span<const Carry> carried, bool ends)
    : Runner(std::move(plan)) {
  room_ = std::move(room);
  ends_ = ends;
  apart_ = rows_apart(program_, inputs);
  const std::vector<Stage>& stages = this->plan().stages;
  alone_ = stages.size() == 1 && stages[0].calls.empty() && stages[0].regions.size() == 1 &&
           !program_.stages[0][0].lines && !program_.stages[0][0].bands && work_ < kParallelWork;
  if (!apart_) return;
  TileProgram& p = program_.stages[0][0];
  const Region& region = stages[0].regions[0];
  const int64_t rows = region.rows;
  if (!p.lines) {
    p.tile_rows = std::min(p.tile_rows, step_rows(rows));
    keep_carried(this->plan(), region, p, carried);
  }
  p.chunks = narrow<int32_t>(std::clamp<int64_t>((rows + p.tile_rows - 1) / p.tile_rows, 1, 64));
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

void Runner::run_steps(int64_t steps, size_t own_bytes, BindStep bind, EndStep end,
                       FunctionRef<void(std::byte* own)> finish) const {
  ContextLease lease(*pool_);
  Context& context = *lease;
  if (apart_) {
    run_apart(context, steps, own_bytes, bind, end);
    return finish(context.steps);
  }
  std::byte* arena = context.arena.get(std::max<size_t>(plan().arena_bytes, 64));
  std::byte* const own = context.own.get(std::max<size_t>(own_bytes, 64));
  for (int64_t step = 0; step < steps; ++step) {
    bind_step(plan(), arena, own, step, bind, context.step);
    context.buffers.swap(context.step.buffers);
    run(context, nullptr, nullptr, nullptr, alone_ && step > 0);
    if (ends_) end(own, step, 0, 1, 1);
  }
  finish(own);
}

/// Each chunk of rows through all steps.
void Runner::run_apart(Context& context, int64_t steps, size_t own_bytes, BindStep bind,
                       EndStep end) const {
  const Region& region = plan().stages[0].regions[0];
  const TileProgram& p = program_.stages[0][0];
  context.workers.resize(static_cast<size_t>(max_threads()));
  // A load waits for an earlier store to an address that differs by whole pages alone. So all that
  // short steps read and write lies together, at places within a page above those of the stack's
  // top, which every call reads and writes.
  constexpr size_t kPage = 4096, kFrame = 256;
  const size_t lines = region.rows == 1 ? LineRunner::scratch_bytes(region, p) : 0;
  std::byte* own = context.own.get(rounded(own_bytes) + lines + program_.side_bytes + kPage);
  const size_t above = rounded(reinterpret_cast<uintptr_t>(&own)) + kFrame;
  own += (above - reinterpret_cast<uintptr_t>(own)) % kPage;
  std::byte* const scratch = own + rounded(own_bytes);
  std::byte* const side = scratch + lines;
  context.steps = own;
  bind_step(plan(), nullptr, own, 0, bind, context.step);
  context.runs.assign(
      1, {&region, &p, side, side + p.uniform_bytes, side + p.uniform_bytes + p.packed_bytes});
  const RegionRun& run = context.runs[0];
  const RunState first{plan(), context.step.buffers.data(), nullptr};
  prepare_uniforms(run, first);
  pack(context.runs, first, context.packing, context.wide.get(stage_needs(plan()).wide));
  const int64_t tiles = (region.rows + p.tile_rows - 1) / p.tile_rows;
  auto body = [&](int chunk, int worker) {
    Context::Worker& w = context.workers[static_cast<size_t>(worker)];
    w.step.buffers.resize(plan().buffers.size());
    const RunState state{plan(), w.step.buffers.data(), nullptr};
    const int64_t from = tiles * chunk / p.chunks * p.tile_rows;
    const int64_t to = std::min(tiles * (chunk + 1) / p.chunks * p.tile_rows, region.rows);
    auto go = [&](auto& runner) {
      for (int64_t step = 0; step < steps; ++step) {
        if (step <= kIrregular || step + 1 == steps) {
          bind_step(plan(), nullptr, own, step, bind, w.step);
          w.moves.note(step, w.step.buffers);
        } else {
          w.moves.apply(step, w.step.buffers);
        }
        if constexpr (std::is_same_v<decltype(runner), LineRunner&>)
          if (step == 1 || step + 1 == steps)
            runner.give_room(step > 0 ? room_.data() : nullptr, step + 1 == steps);
        if constexpr (std::is_same_v<decltype(runner), TileRunner&>)
          runner.at_step(step == 0, step + 1 == steps);
        runner.chunk(chunk);
        if (ends_) end(own, step, from, to, region.rows);
      }
    };
    w.run = nullptr;
    if (p.lines)
      go(w.lines.emplace(run, state, w.rows, w.line, lines > 0 ? scratch : nullptr));
    else
      go(w.runner.emplace(run, state, w.program, w.line));
  };
  parallel_if(p.work * static_cast<double>(steps) >= kParallelWork, p.chunks, body,
              narrow<int>(context.workers.size()));
}

void Runner::run_whole(const Call& call, const void* const* in, std::span<void* const> buffers,
                       const uint64_t* constants) const {
  void* results[64];
  std::vector<void*> many;
  void** p = results;
  if (call.more.size() >= 64) many.resize(call.more.size() + 1), p = many.data();
  p[0] = buffers[call.output];
  for (size_t k = 0; k < call.more.size(); ++k) p[k + 1] = buffers[call.more[k]];
  if (call.loop)
    loops_.at(call.loop.get())->run(in, p);
  else if (!call.joined.empty())
    attend_together(call, in, p);
  else
    run_call(call, in, p[0], constants);
}

/// Regions that update variables in place must not fail, so all that they need is there before.
void Runner::prepare_context(Context& context, const RunState& state) const {
  const StageNeeds needs = stage_needs(plan());
  context.runs.reserve(needs.regions);
  context.packing.reserve(needs.weights);
  context.wide.get(std::max<size_t>(needs.wide, 64));
  std::byte* const side = context.side.get(program_.side_bytes);
  for (size_t at = 0; at < plan().stages.size(); ++at)
    for (size_t i = 0; i < plan().stages[at].regions.size(); ++i) {
      const TileProgram& p = program_.stages[at][i];
      const RegionRun run{&plan().stages[at].regions[i], &p, side, side, side};
      for (Context::Worker& w : context.workers) {
        w.program.reserve(run.region->program.size());
        if (run.region->rows == 1)
          for (BoundRow& row : w.rows) row.reserve(*run.region);
      }
      if (p.lines)
        LineRunner(run, state, context.workers[0].rows, context.workers[0].line);
      else
        TileRunner(run, state, context.workers[0].program, context.workers[0].line);
    }
  context.prepared = true;
}

void Runner::run(Context& context, const uint64_t* constants, Exchange* exchange,
                 ProfiledPlan* profile, bool again) const {
  using Clock = ProfiledPlan::Clock;
  auto now = [&] { return profile ? Clock::now() : Clock::time_point(); };
  const auto start = now();
  const Plan& plan = program_.plan;
  const RunState& state = context.state.emplace(RunState{plan, context.buffers.data(), constants});
  if (const auto threads = static_cast<size_t>(max_threads()); context.workers.size() != threads)
    context.workers.resize(threads), context.prepared = again = false;

  std::byte* const side_begin = context.side.get(program_.side_bytes);
  if (!context.prepared) prepare_context(context, state);
  std::byte* const wide = context.wide.get(0);
  for (size_t at = 0; at < plan.stages.size(); ++at) {
    const Stage& stage = plan.stages[at];
    const auto number = narrow<int>(at);
    auto run_one = [&](size_t place) {
      const Call& call = stage.calls[place];
      const auto begin = now();
      const void* in[64];
      std::vector<const void*> many;
      const void** p = in;
      if (call.inputs.size() > 64) many.resize(call.inputs.size()), p = many.data();
      for (size_t i = 0; i < call.inputs.size(); ++i) p[i] = context.buffers[call.inputs[i]];
      if (call.sequence < 0)
        run_whole(call, p, context.buffers, constants);
      else
        exchange->start(call, p[0], context.buffers[call.output]);
      if (profile) profile->add_call(number, narrow<int>(place), begin, Clock::now());
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
    pack(context.runs, state, context.packing, wide);
    const auto packed = now();
    if (!again)  // (else a runner of tiles goes on as it is)
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
          if (other) w.lines.emplace(run, state, w.rows, w.line);
          return run_chunk(*w.lines, *run.region, task, profile, number, region, worker);
        }
        if (run.program->bands && BandRunner::suits(run, state)) {
          if (other) w.bands.emplace(run, state);
          return run_chunk(*w.bands, *run.region, task, profile, number, region, worker);
        }
        if (other) w.runner.emplace(run, state, w.program, w.line);
        return run_chunk(*w.runner, *run.region, task, profile, number, region, worker);
      }
    };
    parallel_if(work >= kParallelWork, tasks, body, narrow<int>(context.workers.size()));
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
