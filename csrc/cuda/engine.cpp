#include "cuda/engine.h"

#include <bit>

#include "cuda/nvrtc.h"
#include "ir/error.h"

namespace gradcell::cuda {

namespace {

/// Buffers alternate between a few places from step to step; each has its graph.
constexpr size_t kMaxGraphs = 4;
constexpr int kThreadLocal = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL

union Value {
  DevicePointer pointer;
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
};

Value constant(Compute type, bool floating, uint64_t bits) {
  Value v{};
  double f =
      floating ? std::bit_cast<double>(bits) : static_cast<double>(std::bit_cast<int64_t>(bits));
  int64_t i = floating ? 0 : std::bit_cast<int64_t>(bits);
  switch (type) {
    case Compute::F32:
      v.f32 = static_cast<float>(f);
      break;
    case Compute::F64:
      v.f64 = f;
      break;
    case Compute::I32:
      v.i32 = static_cast<int32_t>(i);
      break;
    case Compute::I64:
      v.i64 = i;
      break;
  }
  return v;
}

}  // namespace

/// What one capture depends on, and the graph once there is one.
struct Executable::Recorded {
  std::vector<DevicePointer> buffers;
  std::vector<uint64_t> constants;
  void* graph = nullptr;  ///< CUgraphExec
  Recorded(std::vector<DevicePointer> b, std::vector<uint64_t> c)
      : buffers(std::move(b)), constants(std::move(c)) {}
  ~Recorded() {
    if (graph) Driver::get().cuGraphExecDestroy(graph);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
};

Executable::Executable(CudaPlan plan, Device& device) : plan_(std::move(plan)), device_(device) {
  const Driver& driver = Driver::get();
  device_.enter();
  wide_ = plan_.wide;
  if (plan_.uses_status) device_.status();
  if (plan_.kernels.empty()) return;
  auto cubin = compiled(plan_.source(), device_.capability());
  driver.check(driver.cuModuleLoadData(&module_, cubin->data()), "cuModuleLoadData");
  for (const Kernel& k : plan_.kernels) {
    void* function = nullptr;
    driver.check(driver.cuModuleGetFunction(&function, module_, k.name.c_str()),
                 "cuModuleGetFunction");
    functions_.push_back(function);
  }
}

Executable::~Executable() {
  if (!module_) return;
  // What is still running uses the module; errors have nowhere to go from here.
  const Driver& driver = Driver::get();
  driver.cuStreamSynchronize(device_.stream());
  recorded_.clear();
  driver.cuModuleUnload(module_);
}

void Executable::launch(const Step& s, const std::vector<DevicePointer>& buffers,
                        const uint64_t* constants) const {
  std::vector<Value> values(s.arguments.size());
  std::vector<void*> pointers(s.arguments.size());
  bool aligned = true;
  for (const Argument& a : s.arguments)
    if (a.kind == Argument::Kind::Buffer) aligned &= buffers[a.index] % 16 == 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const Argument& a = s.arguments[i];
    Value& v = values[i];
    auto size = [&](int64_t n) { wide_ ? void(v.i64 = n) : void(v.i32 = static_cast<int32_t>(n)); };
    switch (a.kind) {
      case Argument::Kind::Buffer:
        v.pointer = buffers[a.index];
        break;
      case Argument::Kind::Size:
        size(a.value);
        break;
      case Argument::Kind::Packs:
        size(aligned ? a.value : 0);
        break;
      case Argument::Kind::Constant:
        v = constant(a.type, is_floating(plan_.constants[a.index]), constants[a.index]);
        break;
      case Argument::Kind::Status:
        v.pointer = device_.status();
        break;
    }
    pointers[i] = &v;
  }
  const Driver& driver = Driver::get();
  driver.check(driver.cuLaunchKernel(functions_[s.kernel], s.grid, 1, 1, s.block_x, s.block_y, 1, 0,
                                     device_.stream(), pointers.data(), nullptr),
               plan_.kernels[s.kernel].name.c_str());
}

void Executable::enqueue(const std::vector<DevicePointer>& buffers,
                         const uint64_t* constants) const {
  const Driver& driver = Driver::get();
  for (const Step& s : plan_.steps) {
    if (s.kernel >= 0) {
      launch(s, buffers, constants);
      continue;
    }
    const MatMul& p = s.product;
    DevicePointer out = buffers[p.out];
    if (p.k == 0) {
      if (!p.accumulate)
        driver.check(driver.cuMemsetD8Async(out, 0, plan_.buffers[p.out].bytes, device_.stream()),
                     "cuMemsetD8Async");
      continue;
    }
    device_.products().multiply(p, buffers[p.a], buffers[p.b], out, device_.workspace(),
                                device_.stream());
  }
}

void Executable::run(const DevicePointer* inputs, const DevicePointer* outputs,
                     const uint64_t* constants) const {
  std::lock_guard lock(mutex_);
  std::lock_guard stream_lock(device_.mutex());
  device_.enter();
  if (!arena_ && plan_.arena_bytes > 0)
    arena_ = std::make_unique<DeviceBlock>(device_, plan_.arena_bytes);
  std::vector<DevicePointer> buffers(plan_.buffers.size());
  for (size_t b = 0; b < buffers.size(); ++b) {
    const Buffer& buffer = plan_.buffers[b];
    buffers[b] = buffer.place == Place::Input    ? inputs[buffer.index]
                 : buffer.place == Place::Output ? outputs[buffer.index]
                 : arena_                        ? arena_->pointer() + buffer.offset
                                                 : 0;
  }
  std::vector<uint64_t> values(constants, constants + plan_.constants.size());
  auto it = recorded_.begin();
  while (it != recorded_.end() && !(it->buffers == buffers && it->constants == values)) ++it;
  if (it == recorded_.end()) {  // the first time: as it comes
    enqueue(buffers, constants);
    if (recorded_.size() == kMaxGraphs) recorded_.pop_back();
    recorded_.emplace_front(std::move(buffers), std::move(values));
    return;
  }
  recorded_.splice(recorded_.begin(), recorded_, it);
  const Driver& driver = Driver::get();
  if (!it->graph) {
    // Everything the capture calls has been called before: nothing allocates or waits inside it.
    driver.check(driver.cuStreamBeginCapture(device_.stream(), kThreadLocal),
                 "cuStreamBeginCapture");
    void* graph = nullptr;
    try {
      enqueue(it->buffers, constants);
    } catch (...) {
      if (driver.cuStreamEndCapture(device_.stream(), &graph) == 0 && graph)
        driver.cuGraphDestroy(graph);
      throw;
    }
    driver.check(driver.cuStreamEndCapture(device_.stream(), &graph), "cuStreamEndCapture");
    int result = driver.cuGraphInstantiate(&it->graph, graph, 0);
    driver.cuGraphDestroy(graph);
    driver.check(result, "cuGraphInstantiate");
    ++captures_;
  }
  driver.check(driver.cuGraphLaunch(it->graph, device_.stream()), "cuGraphLaunch");
}

}  // namespace gradcell::cuda
