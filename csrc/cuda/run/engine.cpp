#include "cuda/run/engine.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/narrow.h"
#include "cuda/run/divisor.h"
#include "cuda/run/nccl.h"
#include "cuda/run/nvrtc.h"
#include "ir/fold.h"

namespace gradcell::cuda {

namespace {

/// Graphs of a plan; and the nodes that they have together, unless there are few of them: outputs
/// of one step may be inputs of the next, so that two sets alternate, each with its graph.
constexpr size_t kMostGraphs = 16, kMostNodes = 1 << 14, kFewGraphs = 4;
/// Sets of outputs for each model: of which callers hold some, those of the last call. If they
/// still hold those of the one before, they keep small ones, which are copied out, or there is one
/// more for large ones.
constexpr size_t kMostOutputSets = 2;
/// The same if callers hold small outputs for several calls, as those of several models are.
constexpr size_t kManyOutputSets = 16;
/// An output that callers keep, as losses are, is copied out up to this size.
constexpr size_t kMaxCopied = 1 << 20;
/// A plan whose capture was refused so often is not captured any more.
constexpr int kMaxRefusals = 3;
/// Launches from which on one of a graph is faster.
constexpr size_t kWorthwhile = 2;
/// More than this, as loops may have, would be a large graph that takes seconds to make.
constexpr size_t kMostCaptured = 1 << 16;
/// An input that was so often in a place other than the latest two gets a slot. (State that comes
/// and goes between two sets of outputs does so three times in the beginning.)
constexpr int kMaxChanges = 4;
/// If more inputs than this are in another place, or what is updated is, it is another model's run,
/// which may come again: it is not so soon that they are said to vary.
constexpr size_t kFewInputs = 4;
/// An input that has stayed so long does without its slot again.
constexpr int kSteady = 64;
/// A slot's copy has to take less time than the launches that a graph saves: bytes for each of
/// them.
constexpr size_t kSlotBytes = 1 << 20;
constexpr size_t kMaxNamed = 4;         // steps that a plan's description names
constexpr size_t kOwnShared = 1 << 10;  // bytes that a kernel may have besides what a launch says
constexpr int kSharedLimit = 8;         // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kActive = 1;              // CU_STREAM_CAPTURE_STATUS_ACTIVE
constexpr int kThreadLocal = 1;         // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct Value {
  union {
    DevicePointer pointer;
    int32_t i32[3];
    int64_t i64[3];
  };
  size_t bytes;
};

Value constant(Compute type, DType dtype, uint64_t bits) {
  Value v{};
  by_compute(type, [&](auto number) {
    number = from_bits<decltype(number)>(dtype, bits);
    std::memcpy(&v.pointer, &number, sizeof number);
    v.bytes = sizeof number;
  });
  return v;
}

/// Each buffer of a plan, with its temporaries in an arena.
std::vector<DevicePointer> located(const PlanFrame& plan, const std::vector<DevicePointer>& inputs,
                                   const std::vector<DevicePointer>& outputs, DevicePointer arena) {
  std::vector<DevicePointer> at(plan.buffers.size());
  for (size_t b = 0; b < at.size(); ++b) {
    const Buffer& buffer = plan.buffers[b];
    at[b] = buffer.place == Place::Input    ? inputs[buffer.index]
            : buffer.place == Place::Output ? outputs[buffer.index]
                                            : arena + buffer.offset;
  }
  return at;
}

/// Temporaries of a plan that are allocations of their own, but for those that products take as
/// one.
class Separate {
 public:
  Separate(const CudaPlan& plan, Device& device) : at_(plan.buffers.size(), 0) {
    std::vector<std::vector<BufferId>> groups;
    for (const Step& s : plan.steps)
      for (const auto* parts : {&s.product.a_parts, &s.product.b_parts, &s.product.out_parts})
        if (s.is_product() && parts->size() > 1) groups.push_back(*parts);
    std::ranges::stable_sort(groups, {}, [](const auto& g) { return -std::ssize(g); });
    for (BufferId b = 0; b < at_.size(); ++b) groups.push_back({b});
    for (const auto& group : groups) {
      size_t bytes = 0;
      for (BufferId b : group) bytes += plan.buffers[b].bytes;
      if (plan.buffers[group[0]].place != Place::Temp || bytes == 0 || at_[group[0]]) continue;
      blocks_.push_back(std::make_unique<DeviceBlock>(device, bytes));
      DevicePointer p = blocks_.back()->pointer();
      for (BufferId b : group) at_[b] = p, p += plan.buffers[b].bytes;
    }
  }
  void place(const CudaPlan& plan, std::vector<DevicePointer>& at) const {
    for (BufferId b = 0; b < at.size(); ++b)
      if (plan.buffers[b].place == Place::Temp) at[b] = at_[b];
  }

 private:
  std::vector<std::unique_ptr<DeviceBlock>> blocks_;
  std::vector<DevicePointer> at_;
};

}  // namespace

/// A launch's arguments, as the driver takes them: the values of a parameter side by side, those of
/// all segments.
struct Launcher::Packed {
  std::vector<std::array<uint64_t, 3>> bytes;  // a divisor has three numbers
  std::vector<void*> pointers;
};

/// The launches in a captured graph that have constants, each with its node.
struct Launcher::Constants {
  std::vector<std::pair<const Step*, void*>> launches;
};

/// What one capture depends on, and the graph once there is one.
struct Launcher::Recorded {
  std::vector<DevicePointer> inputs, given;  ///< given: by output, 0 where it is the set's
  std::shared_ptr<Blocks> outputs;
  DevicePointer arena;
  Device& device;
  void *source = nullptr, *graph = nullptr;  ///< CUgraph, whose nodes name CUgraphExec's
  std::vector<uint64_t> constants;           ///< of the graph
  Constants launches;
  Recorded(std::vector<DevicePointer> i, std::vector<DevicePointer> g, std::shared_ptr<Blocks> o,
           DevicePointer a, Device& d)
      : inputs(std::move(i)), given(std::move(g)), outputs(std::move(o)), arena(a), device(d) {}
  ~Recorded() { forget(); }
  void forget() {
    device.enter_quietly([this] {
      if (graph) Driver::get().cuGraphExecDestroy(graph);
      if (source) Driver::get().cuGraphDestroy(source);
    });
    graph = source = nullptr;
    launches.launches.clear();
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
};

/// A loop's arrays in a run.
struct Launcher::Arrays {
  const Loop& loop;
  const Places& buffers;
  DevicePointer input(size_t i) const { return buffers[loop.reads[i]]; }
  DevicePointer result(size_t i) const { return buffers[loop.writes[i]]; }
  DevicePointer own() const { return buffers[loop.state]; }
};

Launcher::Launcher(CudaPlan plan, Device& device, RunOnHost run_on_host)
    : plan_(std::move(plan)), device_(device), run_on_host_(run_on_host) {
  wide_ = plan_.wide;
  launches_ = plan_.launches();
  sources_.resize(plan_.inputs.size());
  kept_.resize(plan_.outputs.size());
  if (plan_.uses_status) device_.status();
  const char* waits = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (waits && std::string_view(waits) == "1") name_steps(plan_);
  description_ = std::make_shared<const std::string>(description(plan_));
  load();
  device_.add(*this);
}

void Launcher::load() {
  if (plan_.kernels.empty()) return;
  const Driver& driver = Driver::get();
  auto cubin = compiled(plan_.source(), device_.capability(), device_.shared_bytes());
  device_.enter([&] {
    driver.call(driver.cuModuleLoadData, &module_, cubin->data());
    for (const Kernel& k : plan_.kernels) {
      void* function = nullptr;
      driver.call(driver.cuModuleGetFunction, &function, module_, k.name.c_str());
      functions_.push_back(function);
    }
    fit_rows(plan_);
  });
}

void Launcher::fit_rows(CudaPlan& plan) {
  const Driver& driver = Driver::get();
  for (Loop& l : plan.loops) fit_rows(l.body);
  for (Step& s : plan.steps) {
    if (s.shared_row_bytes == 0 && s.shared_bytes == 0) continue;
    const size_t room = device_.shared_bytes() - kOwnShared;
    while (s.block_x > 1 && s.dynamic_bytes() > room) s.block_x /= 2;
    require(s.dynamic_bytes() <= room, ErrorKind::Runtime, "the GPU ", device_.name(), " has ",
            device_.shared_bytes(), " bytes of shared memory, too few for a kernel");
    driver.call(driver.cuFuncSetAttribute, functions_[static_cast<size_t>(s.kernel)], kSharedLimit,
                narrow<int>(s.dynamic_bytes()));
  }
}

Launcher::~Launcher() {
  device_.remove(*this);
  // What is still running uses the module and the graphs; errors have nowhere to go from here.
  const Driver& driver = Driver::get();
  device_.enter_quietly([&] { driver.cuStreamSynchronize(device_.stream()); });
  recorded_.clear();
  device_.enter_quietly([&] {
    if (module_) driver.cuModuleUnload(module_);
  });
}

std::string Launcher::named(const CudaPlan& plan, const Step& s) const {
  const std::string where = s.location.text();
  std::string what = s.kernel >= 0   ? plan_.kernels[static_cast<size_t>(s.kernel)].name
                     : s.passage     ? info(s.passage->op).name
                     : s.routine     ? info(s.routine->op).name
                     : s.convolution ? "a convolution by cuDNN"
                                     : "a matrix product";
  if (s.loop >= 0) {
    const Loop& loop = plan.loops[static_cast<size_t>(s.loop)];
    what = str(loop.steps, " times ", description(loop.body));
  }
  return where.empty() ? what : str(what, " (", where, ")");
}

std::string Launcher::description(const CudaPlan& plan) const {
  std::string text;
  for (size_t at = 0; at < std::min(kMaxNamed, plan.steps.size()); ++at)
    text += str(at ? ", " : "", named(plan, plan.steps[at]));
  if (plan.steps.size() > kMaxNamed) text += str(" and ", plan.steps.size() - kMaxNamed, " more");
  return text;
}

void Launcher::name_steps(const CudaPlan& plan) {
  for (const Step& s : plan.steps) names_[&s] = named(plan, s);
  for (const Loop& l : plan.loops) name_steps(l.body);
}

Launcher::Packed Launcher::packed(const Step& s, const Places& buffers,
                                  const uint64_t* constants) const {
  size_t each = s.arguments.size() / s.segments;
  auto value = [&](const Argument& a, bool aligned) {
    Value v{};
    auto sizes = [&](std::initializer_list<int64_t> all) {
      wide_
          ? void(std::ranges::copy(all, v.i64))
          : void(std::ranges::transform(all, v.i32, [](int64_t n) { return narrow<int32_t>(n); }));
      v.bytes = all.size() * (wide_ ? 8 : 4);
    };
    auto pointer = [&](DevicePointer p) { v.pointer = p, v.bytes = sizeof p; };
    switch (a.kind) {
      case Argument::Kind::Buffer:
        pointer(buffers[a.index]);
        break;
      case Argument::Kind::Size:
        sizes({a.value});
        break;
      case Argument::Kind::Divisor: {
        const Divisor d = divisor(a.value, wide_ ? 63 : 31);
        const auto multiplier =
            wide_ ? static_cast<int64_t>(d.multiplier) : int64_t{low_bits<int32_t>(d.multiplier)};
        sizes({a.value, multiplier, d.shift});
        break;
      }
      case Argument::Kind::Packs:
        sizes({aligned ? a.value : 0});
        break;
      case Argument::Kind::Constant:
        v = constant(a.type, plan_.constants[a.index], constants[a.index]);
        break;
      case Argument::Kind::Status:
        pointer(device_.status());
        break;
    }
    return v;
  };
  Packed p;
  p.bytes.resize(s.arguments.size());
  for (size_t k = 0; k < each; ++k) p.pointers.push_back(&p.bytes[k * s.segments]);
  for (size_t segment = 0; segment < s.segments; ++segment) {
    std::span<const Argument> arguments(s.arguments.data() + segment * each, each);
    bool aligned = std::all_of(arguments.begin(), arguments.end(), [&](const Argument& a) {
      return a.kind != Argument::Kind::Buffer || buffers[a.index] % 16 == 0;
    });
    for (size_t k = 0; k < each; ++k) {
      Value v = value(arguments[k], aligned);
      std::memcpy(static_cast<char*>(p.pointers[k]) + segment * v.bytes, &v.pointer, v.bytes);
    }
  }
  return p;
}

void Launcher::launch(const Step& s, const Places& buffers, const Run& run) const {
  Packed p = packed(s, buffers, run.constants);
  const Driver& driver = Driver::get();
  driver.check(driver.cuLaunchKernel(functions_[s.kernel], s.grid, 1, 1, s.block_x, s.block_y, 1,
                                     narrow<unsigned>(s.dynamic_bytes()), run.stream,
                                     p.pointers.data(), nullptr),
               plan_.kernels[s.kernel].name.c_str());
  auto is_constant = [](const Argument& a) { return a.kind == Argument::Kind::Constant; };
  if (!run.capturing || std::ranges::none_of(s.arguments, is_constant)) return;
  int status = 0;
  unsigned long long id = 0;
  void *graph = nullptr, *const *latest = nullptr;
  size_t count = 0;
  driver.call(driver.cuStreamGetCaptureInfo, run.stream, &status, &id, &graph, &latest, &count);
  require(status == kActive && count == 1, ErrorKind::Runtime, "a capture was lost");
  run.capturing->launches.emplace_back(&s, latest[0]);
}

void Launcher::multiply(const CudaPlan& plan, const Gemm& p, const Places& buffers,
                        const Run& run) const {
  DevicePointer out = buffers[p.out];
  if (p.k == 0) {
    const Driver& driver = Driver::get();
    require(!p.adds, ErrorKind::Runtime, "a product without terms adds nothing");
    if (!p.accumulate)
      driver.call(driver.cuMemsetD8Async, out, 0, plan.buffers[p.out].bytes, run.stream);
    return;
  }
  CublasLt& products = device_.products();
  const Operands at{buffers[p.a], buffers[p.b], p.adds ? buffers[p.addend] : out, out,
                    p.has_bias ? buffers[p.bias] : 0};
  // A plan that runs again is worth some time for what its products are computed by.
  const CublasLt::Place place{device_.workspace(), run.stream, ran_ && !run.capturing};
  if (p.has_bias && products.multiply_and_add(p, at, place)) return;
  products.multiply(p, at, place);
  if (p.has_bias) launch(plan.bias_steps[p.add_bias], buffers, run);
}

void Launcher::compute_on_host(const Call& c, const Places& buffers, const Run& run) const {
  const Driver& driver = Driver::get();
  std::vector<std::vector<std::byte>> in(c.inputs.size());
  std::vector<const void*> from;
  for (size_t k = 0; k < in.size(); ++k) {
    in[k].resize(c.in[k].bytes());
    if (!in[k].empty())
      driver.call(driver.cuMemcpyDtoHAsync, in[k].data(), buffers[c.inputs[k]], in[k].size(),
                  run.stream);
    from.push_back(in[k].data());
  }
  driver.call(driver.cuStreamSynchronize, run.stream);
  std::vector<std::byte> out(c.out.bytes());
  run_on_host_(c, from.data(), out.data());
  if (out.empty()) return;
  driver.call(driver.cuMemcpyHtoDAsync, buffers[c.output], out.data(), out.size(), run.stream);
  driver.call(driver.cuStreamSynchronize, run.stream);  // before `out` goes
}

void Launcher::repeat(const Loop& loop, const Places& buffers, const Run& run) const {
  const Driver& driver = Driver::get();
  const LoopSteps steps(loop, loop.body, loop.places, Arrays{loop, buffers});
  std::vector<DevicePointer> inputs(loop.body.inputs.size()), outputs(loop.body.outputs.size());
  auto copy = [&](size_t bytes, DevicePointer from, DevicePointer to) {
    driver.call(driver.cuMemcpyDtoDAsync, to, from, bytes, run.stream);
  };
  std::optional<Separate> separate;
  if (device_.exact_memory()) separate.emplace(loop.body, device_);
  for (int64_t step = 0; step < loop.steps; ++step) {
    steps.bind(step, inputs.data(), outputs.data());
    Places at = located(loop.body, inputs, outputs, buffers[loop.arena]);
    if (separate) separate->place(loop.body, at);
    enqueue(loop.body, at, run);
    steps.copies(step, copy);
  }
  steps.finish(copy);
}

void Launcher::enqueue(const CudaPlan& plan, const Step& s, const Places& buffers,
                       const Run& run) const {
  if (s.kernel >= 0) return launch(s, buffers, run);
  if (s.loop >= 0) return repeat(plan.loops[static_cast<size_t>(s.loop)], buffers, run);
  if (s.is_product()) return multiply(plan, s.product, buffers, run);
  if (s.routine) return compute_on_host(*s.routine, buffers, run);
  if (s.convolution) {
    const Convolved& c = *s.convolution;
    return device_.convolutions().convolve(c, buffers[c.a], buffers[c.b], buffers[c.out],
                                           device_.convolutions_workspace(), run.stream);
  }
  const Passage& p = *s.passage;
  Nccl::get().enqueue(p, p.reads ? buffers[p.in] : 0, buffers[p.out], run.stream);
}

void Launcher::enqueue(const CudaPlan& plan, const Places& buffers, const Run& run) const {
  const Driver& driver = Driver::get();
  for (const Step& s : plan.steps) {
    enqueue(plan, s, buffers, run);
    if (!names_.empty())
      driver.check(driver.cuStreamSynchronize(run.stream), names_.at(&s).c_str());
  }
}

Blocks Launcher::fresh_outputs(const Blocks& given) const {
  Blocks blocks(plan_.outputs.size());
  for (const Buffer& b : plan_.buffers)
    if (b.place == Place::Output && !given[b.index])
      blocks[b.index] = std::make_shared<DeviceBlock>(device_, b.bytes);
  return blocks;
}

namespace {

/// Whether nobody holds a buffer of the set, and nobody is still at work on one.
bool is_free(const Blocks& set) {
  return std::ranges::all_of(
      set, [](const auto& b) { return !b || (b.use_count() == 1 && b->take_back()); });
}

}  // namespace

bool Launcher::is_for(const Blocks& set, const Blocks& given) const {
  for (size_t i = 0; i < set.size(); ++i) {
    const PlanOutput& o = plan_.outputs[i];
    const bool has = o.alias_input < 0 && o.alias_output < 0;
    if (has && (set[i] != nullptr) == (given[i] != nullptr)) return false;
  }
  return true;
}

bool Launcher::leave_to_callers(const Blocks& set, const std::vector<DevicePointer>& inputs) const {
  std::vector<std::pair<std::shared_ptr<DeviceBlock>*, size_t>> theirs;
  std::vector<const Blocks*> sets;
  for (size_t i = 0; i < set.size(); ++i) {
    if (!set[i] || (set[i].use_count() == 1 && set[i]->take_back())) continue;
    if (set[i]->bytes() > kMaxCopied || std::ranges::count(inputs, set[i]->pointer())) return false;
    for (auto& other : outputs_)
      if (auto& block = (*other)[i]; block && block.use_count() > 1)
        theirs.emplace_back(&block, i), sets.push_back(other.get());
  }
  // Nothing changes if there is no memory for the others.
  Blocks others;
  for (auto [block, output] : theirs)
    others.push_back(std::make_shared<DeviceBlock>(device_, (*block)->bytes()));
  for (size_t k = 0; k < theirs.size(); ++k) {
    *theirs[k].first = std::move(others[k]);
    kept_[theirs[k].second] = {true, 0, 0, {}};
  }
  for (Recorded& r : recorded_)
    if (std::ranges::count(sets, r.outputs.get()) > 0) r.forget();
  return is_free(set);
}

size_t Launcher::most_sets(const std::vector<DevicePointer>& given) const {
  std::vector<const std::vector<DevicePointer>*> models{&given};
  for (const Recorded& r : recorded_)
    if (std::ranges::none_of(models, [&](const auto* m) { return *m == r.given; }))
      models.push_back(&r.given);
  const size_t few = kMostOutputSets * models.size();
  return many_sets_ ? std::max(few, kManyOutputSets) : few;
}

std::shared_ptr<Blocks> Launcher::free_outputs(const std::vector<DevicePointer>& inputs,
                                               const Blocks& given, size_t most) const {
  size_t sets = 0;
  auto oldest = outputs_.end(), free = oldest;
  for (auto it = outputs_.begin(); it != outputs_.end(); ++it) {
    if (!is_for(**it, given)) continue;
    ++sets, oldest = it;
    if (free == outputs_.end() && is_free(**it)) free = it;
  }
  auto take = [&](auto it) {
    outputs_.splice(outputs_.begin(), outputs_, it);
    return outputs_.front();
  };
  // Of several models each gets sets of its own, which it finds again.
  if (free != outputs_.end() && (sets >= most || most == kMostOutputSets)) return take(free);
  if (sets >= most) {
    many_sets_ = false;
    if (leave_to_callers(**oldest, inputs)) return take(oldest);
    if (sets > most) {
      std::erase_if(recorded_, [&](const Recorded& r) { return r.outputs == *oldest; });
      outputs_.erase(oldest);
    }
  }
  outputs_.push_front(std::make_shared<Blocks>(fresh_outputs(given)));
  return outputs_.front();
}

Launcher::Places Launcher::places(const std::vector<DevicePointer>& inputs, const Blocks& outputs,
                                  DevicePointer arena) const {
  std::vector<DevicePointer> out;
  for (const auto& block : outputs) out.push_back(block ? block->pointer() : 0);
  return located(plan_, inputs, out, arena);
}

Launcher::Places Launcher::places(const Recorded& r) const {
  std::vector<DevicePointer> out = r.given;
  for (size_t i = 0; i < out.size(); ++i)
    if (const auto& block = (*r.outputs)[i]) out[i] = block->pointer();
  return located(plan_, r.inputs, out, r.arena);
}

void Launcher::capture(Recorded& r) const {
  if (refusals_ >= kMaxRefusals || !is_captured() || !names_.empty()) return;
  ++refusals_;
  const Driver& driver = Driver::get();
  // Everything the capture calls has been called before: nothing allocates or waits inside it.
  StreamHandle stream = device_.capture_stream();
  if (driver.cuStreamBeginCapture(stream, kThreadLocal) != 0) return;
  bool complete = true;
  try {
    enqueue(plan_, places(r), {r.constants.data(), stream, &r.launches});
  } catch (const Error&) {
    complete = false;  // the run without a graph will say it
  }
  complete = driver.cuStreamEndCapture(stream, &r.source) == 0 && complete;
  if (complete && driver.cuGraphInstantiate(&r.graph, r.source, 0) != 0) r.graph = nullptr;
  if (!r.graph) return r.forget();
  refusals_ = 0;
}

void Launcher::set_constants(Recorded& r, const uint64_t* constants) const {
  if (!r.graph || std::equal(r.constants.begin(), r.constants.end(), constants)) return;
  const Driver& driver = Driver::get();
  const auto buffers = places(r);
  for (auto [step, node] : r.launches.launches) {
    const bool changed = std::ranges::any_of(step->arguments, [&](const Argument& a) {
      return a.kind == Argument::Kind::Constant && r.constants[a.index] != constants[a.index];
    });
    if (!changed) continue;
    Packed p = packed(*step, buffers, constants);
    const KernelNode kernel{functions_[static_cast<size_t>(step->kernel)],
                            step->grid,
                            1,
                            1,
                            step->block_x,
                            step->block_y,
                            1,
                            narrow<unsigned>(step->dynamic_bytes()),
                            p.pointers.data(),
                            nullptr,
                            nullptr,
                            nullptr};
    if (driver.cuGraphExecKernelNodeSetParams(r.graph, node, &kernel) != 0) return r.forget();
  }
  r.constants.assign(constants, constants + r.constants.size());
}

Blocks Launcher::results(const Blocks& set, Blocks result) const {
  for (size_t i = 0; i < result.size(); ++i) {
    if (!set[i]) continue;
    result[i] = set[i];
    Kept& k = kept_[i];
    if (!k.copied || set[i]->bytes() == 0) continue;
    k.forgotten = k.copies[k.next].expired() ? k.forgotten + 1 : 0;
    if (k.forgotten > k.copies.size()) {
      k = {};
      many_sets_ =
          std::ranges::all_of(set, [](const auto& b) { return !b || b->bytes() <= kMaxCopied; });
      continue;
    }
    result[i] = std::make_shared<DeviceBlock>(device_, set[i]->bytes());
    k.copies[k.next] = result[i];
    k.next = (k.next + 1) % k.copies.size();
  }
  return result;
}

void Launcher::copy_out(const Blocks& set, const Blocks& results) const {
  for (size_t i = 0; i < set.size(); ++i)
    if (set[i] && results[i] != set[i])
      device_.copy(results[i]->pointer(), set[i]->pointer(), set[i]->bytes());
}

bool Launcher::is_captured() const {
  return !plan_.has_routines() && launches_ >= kWorthwhile && launches_ <= kMostCaptured;
}

bool Launcher::needs_slot(size_t input, DevicePointer at, bool other) const {
  Source& s = sources_[input];
  const auto end = other ? s.places.end() : s.places.begin() + 2;
  const auto found = std::find(s.places.begin(), end, at);
  const bool stays = found == s.places.begin(), returns = found != end;
  s.steady = stays ? s.steady + 1 : 0;
  if (s.slot && s.steady >= kSteady) s = {{at}, 0, 0, nullptr};
  std::rotate(s.places.begin(), returns ? found : s.places.end() - 1,
              returns ? found + 1 : s.places.end());
  s.places[0] = at;
  if (s.slot || stays) return s.slot != nullptr;
  return !returns && ++s.changes > kMaxChanges && is_captured() &&
         plan_.inputs[input].bytes() <= kSlotBytes * launches_;
}

std::vector<DevicePointer> Launcher::settled(const std::vector<DevicePointer>& inputs,
                                             const std::vector<DevicePointer>& given) const {
  std::vector<DevicePointer> at = inputs;
  std::vector<size_t> moved;
  for (size_t i = 0; i < at.size(); ++i)
    if (at[i] != sources_[i].places[0] || sources_[i].slot) moved.push_back(i);
  if (moved.empty()) return at;
  std::vector<DevicePointer> updated = given;
  std::ranges::sort(updated);
  std::erase_if(moved, [&](size_t i) {
    const bool stays = at[i] == 0 || std::ranges::binary_search(updated, at[i]);
    if (stays) sources_[i].places[0] = at[i];
    return stays;
  });
  const bool other =
      moved.size() > kFewInputs || (!recorded_.empty() && recorded_.front().given != given);
  for (size_t i : moved) {
    if (!needs_slot(i, inputs[i], other)) continue;
    const size_t bytes = plan_.inputs[i].bytes();
    auto& slot = sources_[i].slot;
    if (!slot) {
      slot = std::make_unique<DeviceBlock>(device_, bytes);
      recorded_.clear();
    }
    device_.copy(slot->pointer(), inputs[i], bytes);
    at[i] = slot->pointer();
  }
  return at;
}

void Launcher::let_go(const DeviceBlock* block) noexcept {
  if (running_) return;
  if (!block) {
    recorded_.clear();
    outputs_.clear();
    for (Source& s : sources_) s = {};
    return;
  }
  for (auto it = outputs_.begin(); it != outputs_.end();) {
    const auto next = std::next(it);
    if (std::ranges::any_of(**it, [&](const auto& b) { return b.get() == block; })) {
      std::erase_if(recorded_, [&](const Recorded& r) { return r.outputs == *it; });
      outputs_.erase(it);
    }
    it = next;
  }
}

Blocks Launcher::run(const std::vector<DevicePointer>& inputs, const uint64_t* constants,
                     Blocks given) const {
  std::lock_guard lock(device_.mutex());
  struct Running {
    bool& flag;
    explicit Running(bool& f) : flag(f) { flag = true; }
    ~Running() { flag = false; }
  } running(running_);
  return device_.enter([&] { return run_entered(inputs, constants, std::move(given)); });
}

Blocks Launcher::run_entered(const std::vector<DevicePointer>& inputs, const uint64_t* constants,
                             Blocks given) const {
  const Driver& driver = Driver::get();
  device_.note(description_);
  if (device_.exact_memory() || !ran_) {  // the first time may be the last: nothing is kept
    const Blocks fresh = fresh_outputs(given);
    Blocks outputs = std::move(given);
    for (size_t i = 0; i < outputs.size(); ++i)
      if (fresh[i]) outputs[i] = fresh[i];
    if (device_.exact_memory()) {
      const Separate separate(plan_, device_);
      Places at = places(inputs, outputs, 0);
      separate.place(plan_, at);
      enqueue(plan_, at, {constants, device_.stream()});
    } else {
      std::shared_ptr<DeviceBlock> arena = device_.arena()->block;
      if (!arena || arena->bytes() < plan_.arena_bytes)
        arena = std::make_shared<DeviceBlock>(device_, plan_.arena_bytes);
      enqueue(plan_, places(inputs, outputs, arena->pointer()), {constants, device_.stream()});
    }
    ran_ = true;
    return outputs;
  }
  // Held until the run is on the stream, though all be let go of meanwhile.
  const std::shared_ptr<DeviceBlock> arena = arena_of_run();
  const DevicePointer arena_at = arena ? arena->pointer() : 0;
  std::erase_if(recorded_, [&](const Recorded& r) { return r.arena != arena_at; });
  std::vector<DevicePointer> over;  // by output
  for (const auto& block : given) over.push_back(block ? block->pointer() : 0);
  const std::vector<DevicePointer> at = settled(inputs, over);

  auto recorded = [&](const auto& on) {
    return std::ranges::find_if(recorded_, [&](const Recorded& r) {
      return r.inputs == at && r.given == over && on(r.outputs);
    });
  };
  auto it = recorded([](const auto& set) { return is_free(*set); });
  if (it == recorded_.end()) {
    const auto outputs = free_outputs(inputs, given, most_sets(over));
    it = recorded([&](const auto& set) { return set == outputs; });
  }
  const bool again = it != recorded_.end();
  if (!again) {
    if (recorded_.size() >= most_graphs()) recorded_.pop_back();
    it = recorded_.emplace(recorded_.begin(), at, over, outputs_.front(), arena_at, device_);
  }
  // All memory is there before anything is written into what is given.
  Blocks outputs = results(*it->outputs, std::move(given));
  if (again) {
    recorded_.splice(recorded_.begin(), recorded_, it);
    set_constants(*it, constants);
    if (!it->graph) {
      it->constants.assign(constants, constants + plan_.constants.size());
      capture(*it);
    }
  }
  if (it->graph)
    driver.call(driver.cuGraphLaunch, it->graph, device_.stream());
  else
    enqueue(plan_, places(*it), {constants, device_.stream()});
  copy_out(*it->outputs, outputs);
  return outputs;
}

size_t Launcher::most_graphs() const {
  return std::clamp(kMostNodes / std::max<size_t>(1, launches_), kFewGraphs, kMostGraphs);
}

std::shared_ptr<DeviceBlock> Launcher::arena_of_run() const {
  if (plan_.arena_bytes == 0) return nullptr;
  if (!arena_) arena_ = device_.arena();
  auto& block = arena_->block;
  if (block && block->bytes() >= plan_.arena_bytes) return block;
  block.reset();  // work on it comes before that on what gets its place
  return block = std::make_shared<DeviceBlock>(device_, plan_.arena_bytes);
}

}  // namespace gradcell::cuda
