#include "cuda/run/cudnn.h"

#include <algorithm>

#include "base/error.h"
#include "cuda/float_types.h"

namespace gradcell::cuda {

namespace {

using Part = ConvolutionPart;

// Values of cudnn_graph.h and cudnn_ops.h.
constexpr int kChannelsSecond = 0, kChannelsLast = 1;                        // cudnnTensorFormat_t
constexpr int kAnyMath = 0, kTensorMath = 1, kHalvedMath = 2, kFmaMath = 3;  // cudnnMathType_t
constexpr int kDeterministic = 1;                                            // cudnnDeterminism_t
constexpr int kCrossCorrelation = 1;      // cudnnConvolutionMode_t
constexpr int kMostAlgorithms = 16;       // more than there are of any kind
constexpr size_t kLeastAxes = 2;          // of a convolution: a line is a plane one pixel high
constexpr DevicePointer kAlignment = 16;  // that algorithms for tensor cores take for granted

/// cudnnConvolutionFwdAlgoPerf_t, and the same of both adjoints.
struct AlgorithmFound {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

}  // namespace

struct Cudnn::Api {
  Library library{{library_paths().cudnn, "libcudnn.so.9", "libcudnn.so.8"},
                  "cuDNN, which computes large convolutions on the GPU, was not found. Install it "
                  "with pip install 'gradcell[cudnn13]' (or 'gradcell[cudnn12]' for a driver of "
                  "CUDA 12)"};
  Function<size_t()> version{library, "cudnnGetVersion"};
  Function<const char*(int)> error_string{library, "cudnnGetErrorString"};
  Function<int(void**)> create{library, "cudnnCreate"};
  Function<int(void*)> destroy{library, "cudnnDestroy"};
  Function<int(void*, StreamHandle)> set_stream{library, "cudnnSetStream"};
  Function<int(void**)> tensor_create{library, "cudnnCreateTensorDescriptor"};
  Function<int(void*)> tensor_destroy{library, "cudnnDestroyTensorDescriptor"};
  Function<int(void*, int, int, const int*, const int*)> tensor_set{library,
                                                                    "cudnnSetTensorNdDescriptor"};
  Function<int(void**)> filter_create{library, "cudnnCreateFilterDescriptor"};
  Function<int(void*)> filter_destroy{library, "cudnnDestroyFilterDescriptor"};
  Function<int(void*, int, int, int, const int*)> filter_set{library, "cudnnSetFilterNdDescriptor"};
  Function<int(void**)> windows_create{library, "cudnnCreateConvolutionDescriptor"};
  Function<int(void*)> windows_destroy{library, "cudnnDestroyConvolutionDescriptor"};
  Function<int(void*, int, const int*, const int*, const int*, int, int)> windows_set{
      library, "cudnnSetConvolutionNdDescriptor"};
  Function<int(void*, int)> set_groups{library, "cudnnSetConvolutionGroupCount"};
  Function<int(void*, int)> set_math{library, "cudnnSetConvolutionMathType"};

  // Of a convolution and its adjoints, each: what it reads, what it writes.
  using Search = int(void*, void*, void*, void*, void*, int, int*, AlgorithmFound*);
  using Run = int(void*, const void*, void*, const void*, void*, const void*, void*, int, void*,
                  size_t, const void*, void*, void*);
  Function<Search> search_output{library, "cudnnGetConvolutionForwardAlgorithm_v7"};
  Function<Search> search_input{library, "cudnnGetConvolutionBackwardDataAlgorithm_v7"};
  Function<Search> search_weight{library, "cudnnGetConvolutionBackwardFilterAlgorithm_v7"};
  Function<Run> run_output{library, "cudnnConvolutionForward"};
  Function<Run> run_input{library, "cudnnConvolutionBackwardData"};
  Function<Run> run_weight{library, "cudnnConvolutionBackwardFilter"};

  template <class F>
  const Function<F>& of(Part part, const Function<F>& output, const Function<F>& input,
                        const Function<F>& weight) const {
    return part == Part::Output ? output : part == Part::Input ? input : weight;
  }
  template <class F, class... Arguments>
  void call(const Function<F>& f, Arguments... arguments) const {
    const int status = static_cast<F*>(f)(arguments...);
    require(status == 0, ErrorKind::Runtime, f.name, " failed: ", error_string(status), instead());
  }
  static const char* instead() {
    return " (GRADCELL_CUDNN=0 in the environment: gradcell's own kernels compute convolutions)";
  }
};

/// Descriptors of one convolution, and its algorithm.
struct Cudnn::Prepared {
  explicit Prepared(const Api& api) : api(api) {}
  Prepared(const Api& api, void* handle, const Convolved& c) : Prepared(api) {
    std::vector<WindowAxis> axes = c.sizes.axes;
    if (axes.size() < kLeastAxes) axes.insert(axes.begin(), {1, 1, 1, 1, 1, 0});
    const int64_t groups = c.sizes.groups;
    api.call(api.tensor_create, &x);
    api.call(api.tensor_create, &y);
    set(x, c, groups * c.sizes.inputs, each(axes, &WindowAxis::input));
    set(y, c, groups * c.sizes.outputs, each(axes, &WindowAxis::output));

    std::vector<int> weights = each(axes, &WindowAxis::kernel);
    weights.insert(weights.begin(),
                   {narrow<int>(groups * c.sizes.outputs), narrow<int>(c.sizes.inputs)});
    api.call(api.filter_create, &w);
    api.call(api.filter_set, w, float_type(c.dtype).cudnn,
             c.channels_last ? kChannelsLast : kChannelsSecond, narrow<int>(weights.size()),
             weights.data());

    const std::vector<int> before = each(axes, &WindowAxis::before),
                           stride = each(axes, &WindowAxis::stride),
                           dilation = each(axes, &WindowAxis::dilation);
    api.call(api.windows_create, &windows);
    api.call(api.windows_set, windows, narrow<int>(axes.size()), before.data(), stride.data(),
             dilation.data(), kCrossCorrelation, float_type(DType::Float32).cudnn);
    api.call(api.set_groups, windows, narrow<int>(groups));
    first = c.part == Part::Input ? w : x;
    second = c.part == Part::Output ? w : y;
    result = c.part == Part::Output ? y : c.part == Part::Input ? x : w;
    choose(handle, c);
  }
  ~Prepared() {
    for (void* t : {x, y})
      if (t) api.tensor_destroy(t);
    if (w) api.filter_destroy(w);
    if (windows) api.windows_destroy(windows);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  /// A number of each axis.
  static std::vector<int> each(const std::vector<WindowAxis>& axes, int64_t WindowAxis::* number) {
    std::vector<int> all;
    for (const WindowAxis& a : axes) all.push_back(narrow<int>(a.*number));
    return all;
  }

  void set(void* tensor, const Convolved& c, int64_t channels, std::vector<int> dims) const {
    dims.insert(dims.begin(), {narrow<int>(c.sizes.images), narrow<int>(channels)});
    std::vector<int> strides(dims.size());
    int stride = 1;
    auto next = [&](size_t axis) { strides[axis] = stride, stride *= dims[axis]; };
    if (c.channels_last) next(1);
    for (size_t axis = dims.size() - 1; axis > 1; --axis) next(axis);
    if (!c.channels_last) next(1);
    next(0);
    api.call(api.tensor_set, tensor, float_type(c.dtype).cudnn, narrow<int>(dims.size()),
             dims.data(), strides.data());
  }

  /// The fastest, as the library expects, of those that are deterministic and as exact as the plan
  /// wants.
  void choose(void* handle, const Convolved& c) {
    const bool plain = c.dtype == DType::Float32;
    const int math = !plain ? kTensorMath : c.tf32 ? kAnyMath : kFmaMath;
    api.call(api.set_math, windows, math);
    std::vector<AlgorithmFound> found(kMostAlgorithms);
    int count = 0;
    api.call(api.of(c.part, api.search_output, api.search_input, api.search_weight), handle, first,
             second, windows, result, kMostAlgorithms, &count, found.data());
    found.resize(static_cast<size_t>(count));
    const auto best = std::ranges::find_if(found, [&](const AlgorithmFound& f) {
      const bool exact = f.math != kHalvedMath && (math != kFmaMath || f.math != kTensorMath);
      return f.status == 0 && f.determinism == kDeterministic && f.memory <= kWorkspace && exact;
    });
    require(best != found.end(), ErrorKind::Runtime, "cuDNN has no deterministic algorithm with ",
            kWorkspace >> 20, " MiB of workspace for a convolution of ", name(c.dtype), ", ",
            c.sizes.groups * c.sizes.inputs, " to ", c.sizes.groups * c.sizes.outputs, " channels",
            Api::instead());
    algorithm = best->algorithm;
    if (math != kFmaMath) api.call(api.set_math, windows, best->math);
  }

  void run(void* handle, const Convolved& c, DevicePointer a, DevicePointer b, DevicePointer out,
           DevicePointer workspace) const {
    auto at = [](DevicePointer p) { return reinterpret_cast<void*>(p); };
    const float one = 1, zero = 0;
    if (c.part == Part::Input) std::swap(a, b);  // it takes the weights first
    api.call(api.of(c.part, api.run_output, api.run_input, api.run_weight), handle, &one, first,
             at(a), second, at(b), windows, algorithm, at(workspace), kWorkspace, &zero, result,
             at(out));
  }

  const Api& api;
  void *x = nullptr, *y = nullptr, *w = nullptr, *windows = nullptr;
  void *first = nullptr, *second = nullptr,
       *result = nullptr;  ///< of these, in the library's order
  int algorithm = 0;
};

std::pair<size_t, std::string> Cudnn::library() {
  const Api api;
  return {api.version(), api.library.path()};
}

Cudnn::Cudnn() : api_(std::make_unique<Api>()) { api_->call(api_->create, &handle_); }

Cudnn::~Cudnn() {
  prepared_.clear();
  if (handle_) api_->destroy(handle_);
}

void Cudnn::convolve(const Convolved& c, DevicePointer a, DevicePointer b, DevicePointer out,
                     DevicePointer workspace, StreamHandle stream) {
  // Another library's memory may start anywhere.
  require((a | b | out) % kAlignment == 0, ErrorKind::Runtime,
          "cuDNN needs arrays whose addresses are multiples of ", kAlignment,
          ": copy the array that another library shares", Api::instead());
  std::vector<int64_t> key{static_cast<int64_t>(c.part),
                           static_cast<int64_t>(c.dtype),
                           c.tf32,
                           c.channels_last,
                           c.sizes.images,
                           c.sizes.groups,
                           c.sizes.inputs,
                           c.sizes.outputs};
  for (const WindowAxis& w : c.sizes.axes)
    key.insert(key.end(), {w.input, w.kernel, w.output, w.stride, w.dilation, w.before});
  auto& prepared = prepared_[key];
  if (!prepared) prepared = std::make_unique<Prepared>(*api_, handle_, c);
  api_->call(api_->set_stream, handle_, stream);
  prepared->run(handle_, c, a, b, out, workspace);
}

}  // namespace gradcell::cuda
