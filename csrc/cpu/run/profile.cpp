#include "cpu/run/profile.h"

#include <cstring>
#include <map>
#include <set>

#include "base/thread_pool.h"
#include "cpu/kernels/tile_kernels.h"
#include "ops/ops.h"

namespace gradcell::cpu {

namespace {

constexpr size_t kMostSpans = 1 << 20;

std::string name_of(const Instruction& i) {
  if (i.kind == TileOp::Elementwise) return info(i.op).name;
  const std::string name = info(i.kind).profiled;
  return name == "reduction" ? str(name, " (", combine_name(i.combine), ")") : name;
}

double operations_of(const Region& r, const Instruction& i) {
  if (info(i.kind).work != TileOpInfo::Work::Product) return 0;
  return 2.0 * static_cast<double>(r.rows) * i.features * i.inner;
}

ProfiledStep describe(const Region& r, int stage) {
  ProfiledStep step{"region", stage, r.rows, 0, {}};
  const auto rows = static_cast<double>(r.rows);
  for (const Instruction& i : r.program) {
    ProfiledOp op{name_of(i), i.location};
    op.operations = operations_of(r, i);
    op.elements = rows * i.features;
    step.ops.push_back(std::move(op));
  }
  ProfiledOp moved{"loads and stores", {}};
  for (const RowLoad& l : r.loads)
    moved.bytes += rows * r.values[l.value].features * static_cast<double>(item_size(l.dtype));
  for (const RowStore& s : r.stores)
    moved.bytes += rows * s.features * static_cast<double>(item_size(s.dtype));
  step.ops.push_back(std::move(moved));
  return step;
}

double operations_of_products(const Call& c) {
  double total = 0;
  for (size_t k = 0; k < c.in.size(); k += 2) {
    const ProductSizes s =
        sizes_of(c.in[k].dims, c.out.dims, decode<ProductAttributes>(c.attributes));
    total += 2.0 * static_cast<double>(s.k) * static_cast<double>(c.out.count);
  }
  return total;
}

AttentionInputs operands_of(const Call& c) {
  return attention_inputs(c.op, decode<AttentionAttributes>(c.attributes));
}

double operations_of_attention(const Call& c) {
  if (!c.joined.empty()) {  // scores, and what they are multiplied with, once
    double total = 0;
    std::set<std::pair<BufferId, BufferId>> known;
    for (const Call& one : c.joined) {
      Call rest = one;
      for (auto f = static_cast<size_t>(operands_of(one).factors); f + 1 < one.in.size(); f += 2)
        if (!known.insert({one.inputs[f], one.inputs[f + 1]}).second) rest.in[f].dims.back() = 0;
      if (!known.insert({one.inputs[0], one.inputs[1]}).second) rest.in[0].dims.back() = 0;
      total += operations_of_attention(rest);
    }
    return total;
  }
  const auto a = decode<AttentionAttributes>(c.attributes);
  const AttentionInputs at = attention_inputs(c.op, a);
  auto width = [&](size_t i) { return static_cast<double>(c.in[i].dims.back()); };
  double widths = width(0);
  for (auto f = static_cast<size_t>(at.factors); f < c.in.size(); f += 2) widths += width(f);
  if (at.c >= 0) widths += width(static_cast<size_t>(at.c));
  const Dims q = heads_outside(c.in[0].dims, a.inside), k = heads_outside(c.in[1].dims, a.inside);
  const int64_t queries = q[q.size() - 2], keys = k[k.size() - 2];
  double seen = 0;  // pairs of a head within the band
  for (int64_t m = 0; m < queries; ++m) {
    const int64_t first = std::max<int64_t>(m - std::min(a.behind, m), 0);
    const int64_t last = a.ahead >= keys - m ? keys : m + a.ahead + 1;
    seen += static_cast<double>(std::max<int64_t>(last - first, 0));
  }
  return 2.0 * static_cast<double>(product(q, 0, q.size() - 2)) * seen * widths;
}

double operations_of(const Plan& plan);

/// Multiplications and additions of what multiplies matrices; of others nobody counts them.
double operations_of(const Call& c) {
  if (c.form == Form::Product) return operations_of_products(c);
  if (c.form == Form::Attend) return operations_of_attention(c);
  if (c.loop) return static_cast<double>(c.loop->steps) * operations_of(c.loop->body);
  if (c.form != Form::Convolve) return 0;
  const auto a = decode<ConvolutionAttributes>(c.attributes);
  const auto s = convolution_sizes(c.op, c.in[0].dims, c.in[1].dims, c.out.dims, a);
  return 2.0 * static_cast<double>(s.work());
}

double operations_of(const Plan& plan) {
  double total = 0;
  for (const Stage& stage : plan.stages) {
    for (const Region& r : stage.regions)
      for (const Instruction& i : r.program) total += operations_of(r, i);
    for (const Call& c : stage.calls) total += operations_of(c);
  }
  return total;
}

/// What a call reads and writes; of parts that were made where the whole stands, nothing.
double bytes_of(const Plan& plan, const Call& c) {
  auto bytes = static_cast<double>(c.out.bytes());
  for (size_t k = 0; k < c.in.size(); ++k) {
    const bool in_place = c.form == Form::Move && plan.buffers[c.inputs[k]].within == c.output;
    bytes += (in_place ? -1.0 : 1.0) * static_cast<double>(c.in[k].bytes());
  }
  return bytes;
}

ProfiledStep describe(const Plan& plan, const Call& c, int stage) {
  ProfiledOp op{info(c.op).name, c.location};
  op.operations = operations_of(c);
  op.elements = static_cast<double>(c.out.count);
  op.bytes = bytes_of(plan, c);
  return {"call", stage, 0, 0, {std::move(op)}};
}

struct Recorder {
  std::mutex mutex;
  ProfiledPlan::Clock::time_point since;
  std::map<uint64_t, std::shared_ptr<ProfiledPlan>> of;
  std::vector<std::shared_ptr<ProfiledPlan>> plans;
};

std::atomic<bool> measuring{false};

Recorder& recorder() {
  static Recorder r;
  return r;
}

}  // namespace

ProfiledPlan::ProfiledPlan(const Plan& plan, Clock::time_point since) : since_(since) {
  for (size_t at = 0; at < plan.stages.size(); ++at) {
    const Stage& stage = plan.stages[at];
    const auto number = narrow<int>(at);
    first_.push_back(steps_.size());
    regions_.push_back(stage.regions.size());
    steps_.push_back({"packing and merging", number, 0, 0, {{"packing and merging", {}}}});
    for (const Region& r : stage.regions) steps_.push_back(describe(r, number));
    for (const Call& c : stage.calls) steps_.push_back(describe(plan, c, number));
  }
  for (const ProfiledStep& s : steps_) thread_seconds_.emplace_back(s.ops.size(), 0.0);
}

void ProfiledPlan::add_span(size_t step, int worker, Clock::time_point begin,
                            Clock::time_point end) {
  if (spans_.size() < kMostSpans)
    spans_.push_back({narrow<int>(step), worker, since(begin), since(end)});
}

void ProfiledPlan::add_chunk(int stage, int region, int worker, Clock::time_point begin,
                             Clock::time_point end, std::span<const double> seconds) {
  const size_t step = first_[static_cast<size_t>(stage)] + 1 + static_cast<size_t>(region);
  std::lock_guard lock(mutex_);
  for (size_t k = 0; k < seconds.size(); ++k) thread_seconds_[step][k] += seconds[k];
  add_span(step, worker, begin, end);
}

void ProfiledPlan::end_regions(int stage, double seconds) {
  const size_t first = first_[static_cast<size_t>(stage)] + 1;
  const size_t last = first + regions_[static_cast<size_t>(stage)];
  std::lock_guard lock(mutex_);
  double total = 0;
  for (size_t s = first; s < last; ++s)
    for (double t : thread_seconds_[s]) total += t;
  const double share = total > 0 ? seconds / total : 0;
  for (size_t s = first; s < last; ++s)
    for (size_t k = 0; k < thread_seconds_[s].size(); ++k) {
      const double mine = thread_seconds_[s][k] * share;
      steps_[s].ops[k].seconds += mine, steps_[s].seconds += mine;
      thread_seconds_[s][k] = 0;
    }
}

void ProfiledPlan::add_call(int stage, int call, Clock::time_point begin, Clock::time_point end) {
  const auto at = static_cast<size_t>(stage);
  const size_t step = first_[at] + 1 + regions_[at] + static_cast<size_t>(call);
  const double seconds = std::chrono::duration<double>(end - begin).count();
  std::lock_guard lock(mutex_);
  steps_[step].seconds += seconds, steps_[step].ops[0].seconds += seconds;
  add_span(step, 0, begin, end);
}

void ProfiledPlan::add_around(int stage, Clock::time_point begin, Clock::time_point end) {
  const size_t step = first_[static_cast<size_t>(stage)];
  const double seconds = std::chrono::duration<double>(end - begin).count();
  std::lock_guard lock(mutex_);
  steps_[step].seconds += seconds, steps_[step].ops[0].seconds += seconds;
  add_span(step, 0, begin, end);
}

void ProfiledPlan::end_run(double seconds) {
  std::lock_guard lock(mutex_);
  ++runs_, seconds_ += seconds;
}

std::vector<ProfiledStep> ProfiledPlan::steps() const {
  std::lock_guard lock(mutex_);
  return steps_;
}

void start_profile() {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  r.since = ProfiledPlan::Clock::now();
  r.of.clear(), r.plans.clear();
  measuring = true;
}

std::vector<std::shared_ptr<ProfiledPlan>> stop_profile() {
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  measuring = false;
  r.of.clear();
  return std::move(r.plans);
}

std::shared_ptr<ProfiledPlan> profiled(uint64_t serial, const Plan& plan) {
  if (!measuring.load(std::memory_order_relaxed)) return nullptr;
  Recorder& r = recorder();
  std::lock_guard lock(r.mutex);
  if (!measuring) return nullptr;
  auto& mine = r.of[serial];
  if (!mine) r.plans.push_back(mine = std::make_shared<ProfiledPlan>(plan, r.since));
  return mine;
}

namespace {

/// Of several tries the shortest, in seconds.
template <class F>
double shortest(F f) {
  double best = 1e9;
  for (int t = 0; t < 5; ++t) {
    const auto begin = ProfiledPlan::Clock::now();
    f();
    best =
        std::min(best, std::chrono::duration<double>(ProfiledPlan::Clock::now() - begin).count());
  }
  return best;
}

double measured_operations() {
  constexpr int kRows = 64, kInner = 96, kFeatures = 96, kTimes = 300;
  const TileMatmul<float>& mm = tile_kernels().matmul<float>();
  const int threads = max_threads();
  const double seconds = shortest([&] {
    parallel_for(threads, [&](int, int) {
      std::vector<float> w(kInner * kFeatures, 1.0f), x(kInner * kRows, 1.0f);
      std::vector<float> packed(mm.packed_size(kInner, kFeatures)), y(kFeatures * kRows);
      mm.pack_weights(w.data(), 1, kInner, kInner, kFeatures, packed.data());
      for (int t = 0; t < kTimes; ++t)
        mm.matmul(packed.data(), x.data(), kRows, y.data(), kRows, kInner, kFeatures, kRows,
                  nullptr, false);
    });
  });
  return 2.0 * kRows * kInner * kFeatures * kTimes * threads / seconds;
}

double measured_bytes() {
  constexpr size_t kPart = 16 << 20;
  const int threads = max_threads();
  std::vector<std::vector<char>> from, to;
  for (int t = 0; t < threads; ++t) from.emplace_back(kPart, 1), to.emplace_back(kPart, 0);
  const double seconds = shortest([&] {
    parallel_for(threads, [&](int t, int) {
      const auto at = static_cast<size_t>(t);
      std::memcpy(to[at].data(), from[at].data(), kPart);
    });
  });
  return 2.0 * static_cast<double>(kPart) * threads / seconds;
}

}  // namespace

MachinePeaks machine_peaks() { return {measured_operations(), measured_bytes()}; }

}  // namespace gradcell::cpu
