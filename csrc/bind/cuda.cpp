// What the CUDA planner makes of a trace, to look at with or without a GPU.
#include "bind/bind.h"
#include "cuda/cuda_plan.h"
#include "cuda/run/device.h"
#include "cuda/run/engine.h"
#include "cuda/run/nccl.h"
#include "cuda/run/nvrtc.h"
#include "runtime/executable.h"

namespace gradcell::bind {

namespace {

py::dict describe(const TensorDesc& d) {
  return py::dict(py::arg("dtype") = std::string(name(d.dtype)), py::arg("shape") = d.dims);
}

py::tuple argument(const cuda::Argument& a) {
  using Kind = cuda::Argument::Kind;
  static constexpr const char* kTypes[] = {"float", "double", "int", "long long"};
  switch (a.kind) {
    case Kind::Buffer:
      return py::make_tuple("buffer", a.index);
    case Kind::Size:
      return py::make_tuple("size", a.value);
    case Kind::Divisor:
      return py::make_tuple("divisor", a.value);
    case Kind::Packs:
      return py::make_tuple("packs", a.value);
    case Kind::Constant:
      return py::make_tuple("constant", a.index, kTypes[narrow<int>(a.type)]);
    default:
      return py::make_tuple("status");
  }
}

using Kernels = std::vector<cuda::Kernel>;
void add_listing(py::dict& d, const cuda::CudaPlan& plan, const Kernels& kernels);

py::dict listing(const cuda::Loop& loop, const Kernels& kernels) {
  static constexpr const char* kKinds[] = {"carried", "sliced", "same"};
  py::list inputs, carried, kept;
  for (const LoopFrame::Input& i : loop.inputs)
    inputs.append(py::make_tuple(kKinds[narrow<int>(i.kind)], i.index));
  for (const LoopFrame::Carried& c : loop.carried)
    carried.append(py::make_tuple(c.first, c.output, c.result));
  for (const LoopFrame::Kept& k : loop.kept) kept.append(py::make_tuple(k.output, k.result));
  py::dict body;
  add_listing(body, loop.body, kernels);
  return py::dict(py::arg("steps") = loop.steps, py::arg("reverse") = loop.reverse,
                  py::arg("inputs") = inputs, py::arg("carried") = carried, py::arg("kept") = kept,
                  py::arg("reads") = loop.reads, py::arg("writes") = loop.writes,
                  py::arg("arena") = loop.arena, py::arg("body") = body);
}

py::dict step(const cuda::CudaPlan& plan, const cuda::Step& s, const Kernels& kernels) {
  py::dict d;
  if (s.kernel >= 0) {
    d["kernel"] = kernels[static_cast<size_t>(s.kernel)].name;
    d["grid"] = s.grid;
    d["block"] = py::make_tuple(s.block_x, s.block_y);
    py::list arguments;
    for (const cuda::Argument& a : s.arguments) arguments.append(argument(a));
    d["arguments"] = arguments;
    d["segments"] = s.segments;
    d["shared"] = py::make_tuple(s.shared_bytes, s.shared_row_bytes);
    if (s.tile_rounds > 0) d["tile"] = py::make_tuple(s.tile_rounds, s.tile_cycles);
  } else if (s.loop >= 0) {
    d["loop"] = listing(plan.loops[static_cast<size_t>(s.loop)], kernels);
  } else if (s.passage) {
    const cuda::Passage& p = *s.passage;
    d["collective"] =
        py::dict(py::arg("op") = info(p.op).name, py::arg("reduction") = combine_name(p.combine),
                 py::arg("dtype") = std::string(name(p.dtype)), py::arg("group") = p.group,
                 py::arg("root") = p.root, py::arg("given") = p.given, py::arg("had") = p.had,
                 py::arg("in") = p.in, py::arg("out") = p.out);
  } else if (s.routine) {
    d["routine"] = py::dict(py::arg("op") = info(s.routine->op).name,
                            py::arg("in") = s.routine->inputs, py::arg("out") = s.routine->output);
  } else if (s.convolution) {
    static constexpr const char* kParts[] = {"output", "input", "weight"};
    const cuda::Convolved& c = *s.convolution;
    py::list axes;
    for (const WindowAxis& a : c.sizes.axes)
      axes.append(py::dict(py::arg("input") = a.input, py::arg("kernel") = a.kernel,
                           py::arg("output") = a.output, py::arg("stride") = a.stride,
                           py::arg("dilation") = a.dilation, py::arg("before") = a.before));
    d["convolution"] =
        py::dict(py::arg("part") = kParts[narrow<int>(c.part)], py::arg("a") = c.a,
                 py::arg("b") = c.b, py::arg("out") = c.out,
                 py::arg("dtype") = std::string(name(c.dtype)), py::arg("tf32") = c.tf32,
                 py::arg("channels_last") = c.channels_last, py::arg("images") = c.sizes.images,
                 py::arg("groups") = c.sizes.groups, py::arg("inputs") = c.sizes.inputs,
                 py::arg("outputs") = c.sizes.outputs, py::arg("axes") = axes);
  } else {
    const cuda::Gemm& p = s.product;
    d["matmul"] = py::dict(
        py::arg("a") = p.a, py::arg("b") = p.b, py::arg("out") = p.out,
        py::arg("dtype") = std::string(name(p.dtype)), py::arg("transpose_a") = p.transpose_a,
        py::arg("transpose_b") = p.transpose_b, py::arg("accumulate") = p.accumulate,
        py::arg("tf32") = p.tf32, py::arg("batch") = p.batch, py::arg("m") = p.m,
        py::arg("n") = p.n, py::arg("k") = p.k, py::arg("a_parts") = p.a_parts,
        py::arg("b_parts") = p.b_parts, py::arg("out_parts") = p.out_parts);
    if (p.adds) d["matmul"]["addend"] = p.addend;
    if (p.has_bias) {
      d["matmul"]["bias"] = p.bias;
      d["add_bias"] = step(plan, plan.bias_steps[p.add_bias], kernels);
    }
  }
  d["nodes"] = s.nodes;
  d["bytes_read"] = s.bytes_read;
  d["bytes_written"] = s.bytes_written;
  d["flops"] = s.flops;
  d["instructions"] = s.instructions;
  d["stage"] = s.stage;
  d["location"] = s.location.text();
  return d;
}

/// What plans have, those of loops' bodies too.
void add_listing(py::dict& d, const cuda::CudaPlan& plan, const Kernels& kernels) {
  static constexpr const char* kPlaces[] = {"input", "output", "temporary"};
  py::list inputs, outputs, buffers, steps;
  for (const TensorDesc& t : plan.inputs) inputs.append(describe(t));
  for (const PlanOutput& o : plan.outputs) {
    py::dict out = describe(o.desc);
    out["alias_input"] = o.alias_input;
    out["alias_output"] = o.alias_output;
    outputs.append(out);
  }
  for (const Buffer& b : plan.buffers)
    buffers.append(py::make_tuple(kPlaces[narrow<int>(b.place)], b.index, b.offset, b.bytes));
  for (const cuda::Step& s : plan.steps) steps.append(step(plan, s, kernels));
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["buffers"] = buffers;
  d["steps"] = steps;
  d["arena_bytes"] = plan.arena_bytes;
  d["node_count"] = plan.node_count;
}

py::dict listing(const cuda::CudaPlan& plan) {
  py::dict d;
  add_listing(d, plan, plan.kernels);
  py::list kernels, constants;
  for (const cuda::Kernel& k : plan.kernels) kernels.append(py::make_tuple(k.name, k.text));
  for (DType t : plan.constants) constants.append(std::string(name(t)));
  d["kernels"] = kernels;
  d["constant_dtypes"] = constants;
  d["prelude"] = plan.prelude;
  d["source"] = plan.source();
  return d;
}

}  // namespace

void bind_cuda(py::module_& m) {
  m.def(
      "cuda_plan", in_trace(+[](Trace& t, const std::vector<TensorPtr>& outputs) {
        Trace::Work work = t.work(nodes(t, outputs));
        cuda::CudaPlan plan = cuda::make_cuda_plan(t.graph, work.live, work.roots, t.cuts(),
                                                   target_of(t.graph.settings()));
        py::dict d = listing(plan);
        py::list values, constants;
        for (const Array& a : work.inputs) values.append(view(a, false));
        for (size_t i = 0; i < work.constants.size(); ++i)
          constants.append(number(plan.constants[i], work.constants[i]));
        d["input_values"] = values;
        d["constants"] = constants;
        return d;
      }),
      "The CUDA plan of the current trace: what would run for these outputs, and on which values.");

  m.def(
      "set_cuda_paths",
      [](std::string driver, std::string nvrtc, std::string cublaslt, std::string nccl,
         std::string cudnn) {
        cuda::library_paths() = {std::move(driver), std::move(nvrtc), std::move(cublaslt),
                                 std::move(nccl), std::move(cudnn)};
      },
      "Where the CUDA libraries are; empty: where the system has them, but cuDNN is not used.");
  m.def("require_device", &require_device, "Raises RuntimeError if that GPU cannot be used.");
  m.def("use_device", &use_device, "-1: the CPU. Otherwise that GPU, from the next trace on.");
  m.def("device_in_use", [] { return settings().device; });
  m.def(
      "nccl_version",
      [] { return py::make_tuple(cuda::Nccl::get().version(), cuda::Nccl::get().path()); },
      "(22703 for 2.27.3, where it is). Raises RuntimeError if it is missing.");
  m.def("nccl_unique_id", [] {
    const cuda::NcclId id = cuda::Nccl::get().unique_id();
    return py::bytes(id.data(), id.size());
  });
  m.def(
      "nccl_add_group",
      [](int64_t group, const py::bytes& id_bytes, int size, int rank, int device) {
        const std::string bytes = id_bytes;
        cuda::NcclId id{};
        require(bytes.size() == id.size(), ErrorKind::Value, "an id of NCCL has 128 bytes");
        std::copy(bytes.begin(), bytes.end(), id.begin());
        WithoutGil nogil;
        cuda::Device::get(device).enter(
            [&] { cuda::Nccl::get().add_group(group, id, size, rank); });
      },
      "Joins the processes with that id, each with its device: all of them call this.");
  m.def(
      "nccl_remove_group",
      [](int64_t group, int device) {
        cuda::Device::get(device).enter([&] { cuda::Nccl::get().remove_group(group); });
      },
      py::arg("group"), py::arg("device"), "Leaves the group with that device.");
  m.def(
      "allow_tf32",
      [](bool allowed) { change_settings([&](Settings& s) { s.target.tf32 = allowed; }); },
      "Whether float32 products and convolutions on a GPU may be computed in TF32.");
  m.def(
      "plan_for_cuda",
      [](int capability, size_t shared_bytes, bool cudnn, int multiprocessors) {
        require(multiprocessors > 0, ErrorKind::Value, "a GPU has multiprocessors");
        change_settings([&](Settings& s) {
          s.target = {capability,      shared_bytes,  cudnn,
                      multiprocessors, s.target.tf32, s.target.weights};
        });
      },
      py::arg("capability") = Target{}.capability, py::arg("shared_bytes") = Target{}.shared_bytes,
      py::arg("cudnn") = Target{}.cudnn, py::arg("multiprocessors") = Target{}.multiprocessors,
      "Which GPU cuda_plan() plans for where none is in use: its compute capability (90: sm_90), "
      "the bytes of shared memory that a block can have, whether cuDNN computes large "
      "convolutions, and how many multiprocessors there are.");
  m.def(
      "weigh_cuda_plans",
      [](double launch, double instructions, std::optional<bool> tiles, bool groups,
         bool loop_kernels) {
        const Tiles kept = !tiles ? Tiles::WhereQuicker : *tiles ? Tiles::Always : Tiles::Never;
        change_settings([&](Settings& s) {
          s.target.weights = {launch, instructions, kept, groups, loop_kernels};
        });
      },
      py::arg("launch") = Weights{}.launch, py::arg("instructions") = Weights{}.instructions,
      py::arg("tiles") = py::none(), py::arg("groups") = Weights{}.groups,
      py::arg("loop_kernels") = Weights{}.loop_kernels,
      "What plans for a GPU weigh: the bytes that a launch is worth, the instructions a byte; and "
      "whether narrow networks are kernels of their own: where that is quicker, unless it is "
      "said; whether small products may share a launch, and whether loops may be kernels.");
  m.def(
      "cuda_driver_info",
      [] {
        const cuda::Driver& driver = cuda::Driver::get();
        py::list devices;
        for (int i = 0; i < driver.device_count; ++i) {
          cuda::DeviceProperties p = cuda::properties_of(i);
          cuda::Device* d = cuda::Device::if_made(i);
          devices.append(py::dict(py::arg("name") = p.name, py::arg("capability") = p.capability,
                                  py::arg("in_use") = d ? d->in_use() : 0,
                                  py::arg("cached") = d ? d->cached() : 0));
        }
        return py::dict(py::arg("version") = driver.version, py::arg("devices") = devices);
      },
      "The driver's CUDA version and the GPUs. Raises RuntimeError where there are none.");
  m.def("nvrtc_version", &cuda::nvrtc_version);
  m.def(
      "cublaslt_path", [] { return cuda::CublasLt::library_path(); },
      "Which cuBLASLt is found. Raises RuntimeError where there is none.");
  m.def(
      "cudnn_version", [] { return cuda::Cudnn::library(); },
      "(92801 for 9.28.1, where it is). Raises RuntimeError if it is missing.");
  m.def("kernel_cache_info", [] {
    cuda::KernelCacheInfo i = cuda::kernel_cache_info();
    return py::dict(py::arg("directory") = i.directory, py::arg("files") = i.files,
                    py::arg("bytes") = i.bytes, py::arg("compiled") = i.compiled,
                    py::arg("from_disk") = i.from_disk, py::arg("from_memory") = i.from_memory);
  });
  m.def("clear_kernel_cache", &cuda::clear_kernel_cache,
        "Forgets the kernels in memory, not the files.");
  m.def(
      "release_cached_device_memory",
      [](int number) {
        WithoutGil nogil;
        cuda::Device::get(number).release_kept();
      },
      "Gives what a GPU's memory holds for later back: free blocks, and what plans keep.");
}

}  // namespace gradcell::bind
