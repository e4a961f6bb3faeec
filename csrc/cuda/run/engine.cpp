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

/// Outputs of one step are inputs of the next: two sets alternate, each with its graph.
constexpr size_t kMaxGraphs = 4;
constexpr size_t kMaxOutputSets = 3;
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
  std::vector<DevicePointer> inputs;
  std::shared_ptr<Blocks> outputs;
  std::shared_ptr<DeviceBlock> arena;
  Device& device;
  void *source = nullptr, *graph = nullptr;  ///< CUgraph, whose nodes name CUgraphExec's
  std::vector<uint64_t> constants;           ///< of the graph
  Constants launches;
  Recorded(std::vector<DevicePointer> i, std::shared_ptr<Blocks> o, std::shared_ptr<DeviceBlock> a,
           Device& d)
      : inputs(std::move(i)), outputs(std::move(o)), arena(std::move(a)), device(d) {}
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
  const Driver& driver = Driver::get();
  wide_ = plan_.wide;
  launches_ = plan_.launches();
  sources_.resize(plan_.inputs.size());
  if (plan_.uses_status) device_.status();
  const char* waits = std::getenv("CUDA_LAUNCH_BLOCKING");
  if (waits && std::string_view(waits) == "1") name_steps(plan_);
  description_ = std::make_shared<const std::string>(description(plan_));
  if (plan_.kernels.empty()) return;
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

Blocks Launcher::fresh_outputs() const {
  Blocks blocks(plan_.outputs.size());
  for (const Buffer& b : plan_.buffers)
    if (b.place == Place::Output) blocks[b.index] = std::make_shared<DeviceBlock>(device_, b.bytes);
  return blocks;
}

bool Launcher::make_free(const Blocks& outputs, const std::vector<DevicePointer>& inputs) const {
  std::vector<size_t> kept;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i] || copied_[i]) continue;
    if (outputs[i].use_count() == 1) {
      if (!outputs[i]->take_back()) return false;
      continue;
    }
    bool is_input = std::find(inputs.begin(), inputs.end(), outputs[i]->pointer()) != inputs.end();
    if (is_input || outputs[i]->bytes() > kMaxCopied) return false;
    kept.push_back(i);
  }
  if (kept.empty()) return true;
  // Who holds a block keeps it; the sets get others. Nothing changes if there is no memory for
  // them.
  Blocks others;
  for (size_t i : kept)
    for (size_t k = 0; k < outputs_.size(); ++k)
      others.push_back(std::make_shared<DeviceBlock>(device_, outputs[i]->bytes()));
  for (Recorded& r : recorded_) r.forget();
  auto next = others.begin();
  for (size_t i : kept) {
    copied_[i] = 1;
    for (auto& set : outputs_) (*set)[i] = std::move(*next++);
  }
  return true;
}

std::shared_ptr<Blocks> Launcher::free_outputs(const std::vector<DevicePointer>& inputs) const {
  for (auto it = outputs_.begin(); it != outputs_.end(); ++it) {
    if (!make_free(**it, inputs)) continue;
    outputs_.splice(outputs_.begin(), outputs_, it);
    return outputs_.front();
  }
  if (outputs_.size() == kMaxOutputSets) {
    std::erase_if(recorded_, [&](const Recorded& r) { return r.outputs == outputs_.back(); });
    outputs_.pop_back();
  }
  outputs_.push_front(std::make_shared<Blocks>(fresh_outputs()));
  return outputs_.front();
}

Launcher::Places Launcher::places(const std::vector<DevicePointer>& inputs, const Blocks& outputs,
                                  DevicePointer arena) const {
  std::vector<DevicePointer> out;
  for (const auto& block : outputs) out.push_back(block ? block->pointer() : 0);
  return located(plan_, inputs, out, arena);
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
    enqueue(plan_, places(r.inputs, *r.outputs, arena_ ? arena_->pointer() : 0),
            {r.constants.data(), stream, &r.launches});
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
  const auto buffers = places(r.inputs, *r.outputs, arena_ ? arena_->pointer() : 0);
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

Blocks Launcher::handed_out(const Blocks& outputs) const {
  const Driver& driver = Driver::get();
  Blocks result = outputs;
  for (size_t i = 0; i < result.size(); ++i) {
    if (!result[i] || !copied_[i] || result[i]->bytes() == 0) continue;
    auto copy = std::make_shared<DeviceBlock>(device_, outputs[i]->bytes());
    driver.call(driver.cuMemcpyDtoDAsync, copy->pointer(), outputs[i]->pointer(),
                outputs[i]->bytes(), device_.stream());
    result[i] = std::move(copy);
  }
  return result;
}

bool Launcher::is_captured() const {
  return !plan_.has_routines() && launches_ >= kWorthwhile && launches_ <= kMostCaptured;
}

bool Launcher::needs_slot(size_t input, DevicePointer at) const {
  Source& s = sources_[input];
  if (s.slot || at == s.latest) return s.slot != nullptr;
  const bool returns = at == s.before;
  s.before = std::exchange(s.latest, at);
  return !returns && ++s.changes > kMaxChanges && is_captured() &&
         plan_.inputs[input].bytes() <= kSlotBytes * launches_;
}

std::vector<DevicePointer> Launcher::settled(const std::vector<DevicePointer>& inputs) const {
  std::vector<DevicePointer> at = inputs;
  for (size_t i = 0; i < at.size(); ++i) {
    if (!needs_slot(i, inputs[i])) continue;
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

Blocks Launcher::run(const std::vector<DevicePointer>& inputs, const uint64_t* constants) const {
  return device_.enter([&] { return run_entered(inputs, constants); });
}

Blocks Launcher::run_entered(const std::vector<DevicePointer>& inputs,
                             const uint64_t* constants) const {
  std::lock_guard lock(mutex_);
  std::lock_guard stream_lock(device_.mutex());
  device_.note(description_);
  if (device_.exact_memory()) {
    Blocks outputs = fresh_outputs();
    const Separate separate(plan_, device_);
    Places at = places(inputs, outputs, 0);
    separate.place(plan_, at);
    enqueue(plan_, at, {constants, device_.stream()});
    return outputs;
  }
  if (!ran_) {  // the first time may be the last: nothing is kept
    DeviceBlock arena(device_, plan_.arena_bytes);
    Blocks outputs = fresh_outputs();
    enqueue(plan_, places(inputs, outputs, arena.pointer()), {constants, device_.stream()});
    ran_ = true;
    return outputs;
  }
  arena_ = device_.arena(plan_.arena_bytes);
  copied_.resize(plan_.outputs.size());
  const std::vector<DevicePointer> at = settled(inputs);

  auto it = std::ranges::find_if(
      recorded_, [&](const Recorded& r) { return r.inputs == at && r.arena == arena_; });
  if (it != recorded_.end()) {
    if (make_free(*it->outputs, inputs)) {
      recorded_.splice(recorded_.begin(), recorded_, it);
      set_constants(*it, constants);
      if (!it->graph) {
        it->constants.assign(constants, constants + plan_.constants.size());
        capture(*it);
      }
      const Driver& driver = Driver::get();
      if (it->graph)
        driver.call(driver.cuGraphLaunch, it->graph, device_.stream());
      else
        enqueue(plan_, places(at, *it->outputs, arena_ ? arena_->pointer() : 0),
                {constants, device_.stream()});
      return handed_out(*it->outputs);
    }
    recorded_.erase(it);
  }
  std::shared_ptr<Blocks> outputs = free_outputs(inputs);
  enqueue(plan_, places(at, *outputs, arena_ ? arena_->pointer() : 0),
          {constants, device_.stream()});
  if (recorded_.size() == kMaxGraphs) recorded_.pop_back();
  recorded_.emplace_front(at, outputs, arena_, device_);
  return handed_out(*outputs);
}

}  // namespace gradcell::cuda
