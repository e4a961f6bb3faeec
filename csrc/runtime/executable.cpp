#include "runtime/executable.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <fstream>

#include "base/system/system.h"
#include "cpu/calls/calls.h"
#include "cpu/run/engine.h"
#include "cuda/in_place.h"
#include "cuda/run/engine.h"
#include "cuda/run/nvrtc.h"
#include "plan/planner.h"
#include "plan/region/in_place.h"

namespace gradcell {

namespace {

using Inputs = std::span<const std::shared_ptr<Storage>>;

/// What the outputs are to who asked: complex numbers are pairs in a plan.
std::vector<Type> types_of(const Graph& g, std::span<const NodeId> roots) {
  std::vector<Type> types;
  for (NodeId id : roots) types.push_back({g.dtype(id), g.dims(id)});
  return types;
}

/// The outputs of a run: those that alias others, and new ones from `fresh`.
template <class F>
std::vector<Array> make_outputs(const std::vector<PlanOutput>& plan, const std::vector<Type>& types,
                                Inputs inputs, F fresh) {
  std::vector<Array> outputs(plan.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const PlanOutput& o = plan[i];
    outputs[i].dtype = types[i].dtype;
    outputs[i].dims = types[i].dims;
    if (o.alias_input >= 0)
      outputs[i] = shared({types[i].dtype, types[i].dims, inputs[o.alias_input]});
    else if (o.alias_output >= 0)
      outputs[i].storage = outputs[o.alias_output].storage;
    else
      fresh(i, outputs[i]);
  }
  return outputs;
}

class OnCpu : public Executable {
 public:
  OnCpu(Plan plan, std::vector<Type> types)
      : in_place_(plan), runner_(std::move(plan)), types_(std::move(types)) {}

  std::vector<Array> run(Inputs inputs, std::span<const uint64_t> constants,
                         std::span<const int> over) const override {
    const std::vector<PlanOutput>& plan = runner_.plan().outputs;
    std::vector<const void*> in(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) in[i] = inputs[i]->data();
    std::vector<void*> out(plan.size(), nullptr);
    std::vector<Array> outputs = make_outputs(plan, types_, inputs, [&](size_t i, Array& a) {
      const auto from =
          i < over.size() && over[i] >= 0 ? inputs[static_cast<size_t>(over[i])] : nullptr;
      if (from && !from->has_device())  // that has a copy, which would not change
        a.storage = from;
      else
        a.storage = empty_array(a.dtype, a.dims).storage;
      out[i] = a.data();
    });
    try {
      runner_.run(in.data(), out.data(), constants.data());
    } catch (...) {
      // What was left behind may still read and write these.
      if (cpu::left_behind())
        new std::pair(std::move(outputs), std::vector(inputs.begin(), inputs.end()));
      throw;
    }
    return outputs;
  }

  bool may_overwrite(int input, int output) const override {
    return in_place_.allowed(static_cast<size_t>(output), static_cast<size_t>(input));
  }
  double work() const override { return runner_.work(); }

 private:
  UpdatesInPlace in_place_;
  cpu::Runner runner_;
  std::vector<Type> types_;
};

class OnGpu : public Executable {
 public:
  OnGpu(cuda::CudaPlan plan, std::vector<Type> types, cuda::Device& device)
      : in_place_(plan), launcher_(std::move(plan), device, on_host), types_(std::move(types)) {}

  std::vector<Array> run(Inputs inputs, std::span<const uint64_t> constants,
                         std::span<const int> over) const override {
    cuda::Device& device = launcher_.device();
    std::vector<std::shared_ptr<cuda::DeviceBlock>> held;  // until the work is on the stream
    std::vector<cuda::DevicePointer> in(inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      held.push_back(inputs[i]->on(device));
      in[i] = held.back()->pointer();
    }
    cuda::Blocks given(launcher_.plan().outputs.size());
    for (size_t i = 0; i < over.size(); ++i)
      if (over[i] >= 0 && (launcher_.tried() || !in_place_.follows_trial(i)))
        given[i] = alone(held[static_cast<size_t>(over[i])]);
    cuda::Blocks out = launcher_.run(in, constants.data(), std::move(given));
    std::vector<Array> outputs = make_outputs(
        launcher_.plan().outputs, types_, inputs,
        [&](size_t i, Array& a) { a.storage = Storage::on_device(std::move(out[i]), a.bytes()); });
    return outputs;
  }

  bool may_overwrite(int input, int output) const override {
    return in_place_.allowed(static_cast<size_t>(output), static_cast<size_t>(input));
  }
  double work() const override { return kLong; }

 private:
  static void on_host(const Call& c, const void* const* in, void* out) {
    cpu::run_call(c, in, out, nullptr);
  }

  /// A variable's block, if nobody but its storage and this run holds it; else null.
  static std::shared_ptr<cuda::DeviceBlock> alone(const std::shared_ptr<cuda::DeviceBlock>& block) {
    if (block.use_count() > 2) block->device().let_go(block.get());
    const bool is = block.use_count() == 2 && !block->foreign() && block->take_back();
    return is ? block : nullptr;
  }

  static constexpr double kLong = 1e6;  // another thread may hold the stream
  cuda::UpdatesInPlace in_place_;
  cuda::Launcher launcher_;
  std::vector<Type> types_;
};

/// With GRADCELL_SAVE_CUDA=folder, the CUDA text of every plan goes there, whatever the device; of
/// what is for a CPU alone, why there is none.
void save_cuda(const Graph& g, std::span<const NodeId> live, std::span<const NodeId> roots,
               std::span<const NodeId> cuts) {
  static const char* const folder = std::getenv("GRADCELL_SAVE_CUDA");
  if (!folder) return;
  static std::atomic<int> count{0};
  std::ofstream file(str(folder, "/", system::process_id(), "-", count++, ".cu"));
  try {
    file << cuda::make_cuda_plan(g, live, roots, cuts, g.settings().target).source();
  } catch (const Error& e) {
    file << "// " << e.what() << "\n";
  }
}

}  // namespace

std::shared_ptr<const Executable> make_executable(const Graph& g, std::span<const NodeId> live,
                                                  std::span<const NodeId> roots,
                                                  std::span<const NodeId> cuts) {
  save_cuda(g, live, roots, cuts);
  const Settings& s = g.settings();
  if (s.device < 0)
    return std::make_shared<OnCpu>(make_plan(g, live, roots, cuts), types_of(g, roots));
  return std::make_shared<OnGpu>(cuda::make_cuda_plan(g, live, roots, cuts, target_of(s)),
                                 types_of(g, roots), cuda::Device::get(s.device));
}

void require_device(int number) {
  if (number < 0) return;
  cuda::Device::get(number);
  std::string nvrtc = cuda::nvrtc_version();
  int driver = cuda::Driver::get().version;
  require(std::stoi(nvrtc) <= driver / 1000, ErrorKind::Runtime, "NVRTC ", nvrtc,
          " is newer than the NVIDIA driver, which supports CUDA ", driver / 1000, ".",
          driver % 1000 / 10, ". Update the driver, or install 'gradcell[cuda12]'");
  cuda::Device::get(number).products();
}

void use_device(int number) {
  require_device(number);
  change_settings([&](Settings& s) { s.device = number, s.written_attention = number < 0; });
}

Target target_of(const Settings& s) {
  return s.device < 0 ? s.target : cuda::Device::get(s.device).target(s.target);
}

}  // namespace gradcell
