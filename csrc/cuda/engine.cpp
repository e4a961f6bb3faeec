#include "cuda/engine.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cuda/nccl.h"
#include "cuda/nvrtc.h"
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
constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

struct Value {
  union {
    DevicePointer pointer;
    int32_t i32;
    int64_t i64;
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

}  // namespace

/// What one capture depends on, and the graph once there is one.
struct Launcher::Recorded {
  std::vector<DevicePointer> inputs;
  std::vector<uint64_t> constants;
  std::shared_ptr<Blocks> outputs;
  void* graph = nullptr;  ///< CUgraphExec
  Recorded(std::vector<DevicePointer> i, std::vector<uint64_t> c, std::shared_ptr<Blocks> o)
      : inputs(std::move(i)), constants(std::move(c)), outputs(std::move(o)) {}
  ~Recorded() { forget(); }
  void forget() {
    if (graph) Driver::get().cuGraphExecDestroy(graph);
    graph = nullptr;
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
};

Launcher::Launcher(CudaPlan plan, Device& device) : plan_(std::move(plan)), device_(device) {
  const Driver& driver = Driver::get();
  device_.enter();
  wide_ = plan_.wide;
  if (plan_.uses_status) device_.status();
  if (plan_.kernels.empty()) return;
  auto cubin = compiled(plan_.source(), device_.capability());
  driver.call(driver.cuModuleLoadData, &module_, cubin->data());
  for (const Kernel& k : plan_.kernels) {
    void* function = nullptr;
    driver.call(driver.cuModuleGetFunction, &function, module_, k.name.c_str());
    functions_.push_back(function);
  }
}

Launcher::~Launcher() {
  // What is still running uses the module and the graphs; errors have nowhere to go from here.
  const Driver& driver = Driver::get();
  device_.enter_quietly();
  driver.cuStreamSynchronize(device_.stream());
  recorded_.clear();
  if (module_) driver.cuModuleUnload(module_);
}

void Launcher::launch(const Step& s, const std::vector<DevicePointer>& buffers,
                      const uint64_t* constants, StreamHandle stream) const {
  size_t each = s.arguments.size() / s.segments;
  auto value = [&](const Argument& a, bool aligned) {
    Value v{};
    auto size = [&](int64_t n) {
      wide_ ? void(v.i64 = n) : void(v.i32 = static_cast<int32_t>(n));
      v.bytes = wide_ ? 8 : 4;
    };
    auto pointer = [&](DevicePointer p) { v.pointer = p, v.bytes = sizeof p; };
    switch (a.kind) {
      case Argument::Kind::Buffer:
        pointer(buffers[a.index]);
        break;
      case Argument::Kind::Size:
        size(a.value);
        break;
      case Argument::Kind::Packs:
        size(aligned ? a.value : 0);
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
  // The values of a parameter lie side by side, those of all segments.
  std::vector<uint64_t> bytes(s.arguments.size());
  std::vector<void*> pointers(each);
  for (size_t k = 0; k < each; ++k) pointers[k] = &bytes[k * s.segments];
  for (size_t segment = 0; segment < s.segments; ++segment) {
    std::span<const Argument> arguments(s.arguments.data() + segment * each, each);
    bool aligned = std::all_of(arguments.begin(), arguments.end(), [&](const Argument& a) {
      return a.kind != Argument::Kind::Buffer || buffers[a.index] % 16 == 0;
    });
    for (size_t k = 0; k < each; ++k) {
      Value v = value(arguments[k], aligned);
      std::memcpy(static_cast<char*>(pointers[k]) + segment * v.bytes, &v.pointer, v.bytes);
    }
  }
  const Driver& driver = Driver::get();
  driver.check(driver.cuLaunchKernel(functions_[s.kernel], s.grid, 1, 1, s.block_x, s.block_y, 1, 0,
                                     stream, pointers.data(), nullptr),
               plan_.kernels[s.kernel].name.c_str());
}

void Launcher::enqueue(const std::vector<DevicePointer>& buffers, const uint64_t* constants,
                       StreamHandle stream) const {
  const Driver& driver = Driver::get();
  for (const Step& s : plan_.steps) {
    if (s.kernel >= 0) {
      launch(s, buffers, constants, stream);
      continue;
    }
    if (s.passage) {
      const Passage& p = *s.passage;
      Nccl::get().enqueue(p, p.reads ? buffers[p.in] : 0, buffers[p.out], stream);
      continue;
    }
    const Gemm& p = s.product;
    DevicePointer out = buffers[p.out];
    if (p.k == 0) {
      if (!p.accumulate)
        driver.call(driver.cuMemsetD8Async, out, 0, plan_.buffers[p.out].bytes, stream);
      continue;
    }
    CublasLt& products = device_.products();
    DevicePointer a = buffers[p.a], b = buffers[p.b], workspace = device_.workspace();
    if (p.has_bias && products.multiply_and_add(p, a, b, buffers[p.bias], out, workspace, stream))
      continue;
    products.multiply(p, a, b, out, workspace, stream);
    if (p.has_bias) launch(plan_.bias_steps[p.add_bias], buffers, constants, stream);
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
    if (!outputs[i] || copied_[i] || outputs[i].use_count() == 1) continue;
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

std::vector<DevicePointer> Launcher::places(const std::vector<DevicePointer>& inputs,
                                            const Blocks& outputs, DevicePointer arena) const {
  std::vector<DevicePointer> at(plan_.buffers.size());
  for (size_t b = 0; b < at.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    at[b] = buffer.place == Place::Input    ? inputs[buffer.index]
            : buffer.place == Place::Output ? outputs[buffer.index]->pointer()
                                            : arena + buffer.offset;
  }
  return at;
}

void Launcher::capture(Recorded& r) const {
  if (refusals_ >= kMaxRefusals) return;
  ++refusals_;
  const Driver& driver = Driver::get();
  // Everything the capture calls has been called before: nothing allocates or waits inside it.
  StreamHandle stream = device_.capture_stream();
  if (driver.cuStreamBeginCapture(stream, kThreadLocal) != 0) return;
  bool complete = true;
  try {
    enqueue(places(r.inputs, *r.outputs, arena_ ? arena_->pointer() : 0), r.constants.data(),
            stream);
  } catch (const Error&) {
    complete = false;  // the run without a graph will say it
  }
  void* graph = nullptr;
  complete = driver.cuStreamEndCapture(stream, &graph) == 0 && complete;
  if (complete && driver.cuGraphInstantiate(&r.graph, graph, 0) != 0) r.graph = nullptr;
  if (graph) driver.cuGraphDestroy(graph);
  if (!r.graph) return;
  refusals_ = 0;
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

Blocks Launcher::run(const std::vector<DevicePointer>& inputs, const uint64_t* constants) const {
  std::lock_guard lock(mutex_);
  std::lock_guard stream_lock(device_.mutex());
  device_.enter();
  if (!ran_) {  // the first time may be the last: nothing is kept
    DeviceBlock arena(device_, plan_.arena_bytes);
    Blocks outputs = fresh_outputs();
    enqueue(places(inputs, outputs, arena.pointer()), constants, device_.stream());
    ran_ = true;
    return outputs;
  }
  if (!arena_ && plan_.arena_bytes > 0)
    arena_ = std::make_unique<DeviceBlock>(device_, plan_.arena_bytes);
  copied_.resize(plan_.outputs.size());

  std::vector<uint64_t> values(constants, constants + plan_.constants.size());
  auto it = recorded_.begin();
  while (it != recorded_.end() && !(it->inputs == inputs && it->constants == values)) ++it;
  if (it != recorded_.end()) {
    if (make_free(*it->outputs, inputs)) {
      recorded_.splice(recorded_.begin(), recorded_, it);
      if (!it->graph) capture(*it);
      const Driver& driver = Driver::get();
      if (it->graph)
        driver.call(driver.cuGraphLaunch, it->graph, device_.stream());
      else
        enqueue(places(inputs, *it->outputs, arena_ ? arena_->pointer() : 0), constants,
                device_.stream());
      return handed_out(*it->outputs);
    }
    recorded_.erase(it);
  }
  std::shared_ptr<Blocks> outputs = free_outputs(inputs);
  enqueue(places(inputs, *outputs, arena_ ? arena_->pointer() : 0), constants, device_.stream());
  if (recorded_.size() == kMaxGraphs) recorded_.pop_back();
  recorded_.emplace_front(inputs, std::move(values), outputs);
  return handed_out(*outputs);
}

}  // namespace gradcell::cuda
