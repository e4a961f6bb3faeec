// cuDNN of the made-up GPU: convolutions and their adjoints in float64, of TF32 where that is
// allowed. Tensors lie row by row with their channels second or last, all three alike.
//
// Environment: FAKE_CUDNN_ALGORITHMS=0: only such are found as must not be taken; FAKE_CUDNN_FAILS:
// the name of a function that fails.
#include <algorithm>
#include <array>

#include "fake_cuda.h"

using namespace fake;

namespace {

constexpr int kBadParameter = 2000, kUnsupported = 3000, kInternalError = 4000;
constexpr int kHalf = 2, kBrainHalf = 9;                       // cudnnDataType_t
constexpr int kAnyMath = 0, kTensorMath = 1, kHalvedMath = 2;  // cudnnMathType_t
constexpr int kGoodAlgorithm = 3;

struct Handle {
  Context* context;
  void* stream = nullptr;
};

/// A tensor or weights.
struct Array {
  int type = 0;
  std::vector<int> dims, strides;
  bool second = false, last = false;  ///< where the channels are; both: there is no difference

  void set(int number, const int* of, int rank) { type = number, dims.assign(of, of + rank); }
  std::vector<int> packed(bool channels_last) const {
    std::vector<int> found(dims.size());
    int stride = 1;
    auto next = [&](size_t axis) { found[axis] = stride, stride *= dims[axis]; };
    if (channels_last) next(1);
    for (size_t axis = dims.size() - 1; axis > 1; --axis) next(axis);
    if (!channels_last) next(1);
    next(0);
    return found;
  }
  size_t count() const {
    size_t n = 1;
    for (int d : dims) n *= static_cast<size_t>(d);
    return n;
  }
};

struct Windows {
  std::vector<int> before, stride, dilation;
  int groups = 1, math = kAnyMath;
};

struct Measured {  // cudnnConvolutionFwdAlgoPerf_t
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, math, reserved[3];
};

bool fails(const char* name) {
  const char* wanted = std::getenv("FAKE_CUDNN_FAILS");
  return wanted && std::string(wanted) == name;
}
#define CALLED \
  LOCKED;      \
  if (fails(__func__)) return kInternalError

/// 0, or why these do not go together.
int wrong_sizes(const Array& x, const Array& w, const Array& y, const Windows& how) {
  const size_t rank = x.dims.size();
  if (w.dims.size() != rank || y.dims.size() != rank || how.stride.size() + 2 != rank)
    return kBadParameter;
  if (x.type != w.type || x.type != y.type) return kBadParameter;
  if (x.dims[0] != y.dims[0] || x.dims[1] != w.dims[1] * how.groups || y.dims[1] != w.dims[0] ||
      w.dims[0] % how.groups != 0)
    return kBadParameter;
  for (size_t k = 0; k + 2 < rank; ++k) {
    const int room = x.dims[k + 2] + 2 * how.before[k] - (w.dims[k + 2] - 1) * how.dilation[k] - 1;
    if (room < 0 || y.dims[k + 2] != room / how.stride[k] + 1) return kBadParameter;
  }
  const bool alike = (x.second && w.second && y.second) || (x.last && w.last && y.last);
  return alike ? 0 : kUnsupported;
}

/// Calls term(element of x, of w, of y) for all products of the form.
template <class F>
void for_terms(const Array& x, const Array& w, const Array& y, const Windows& how, F term) {
  // A plane is a space one high.
  std::array<int, 3> in, taps, out, sx, sw, sy, stride, dilation, before;
  const size_t missing = 5 - x.dims.size();
  for (size_t k = 0; k < 3; ++k) {
    const bool there = k >= missing;
    const size_t from = there ? k - missing : 0;
    auto of = [&](const std::vector<int>& v, size_t skipped, int otherwise) {
      return there ? v[from + skipped] : otherwise;
    };
    in[k] = of(x.dims, 2, 1), taps[k] = of(w.dims, 2, 1), out[k] = of(y.dims, 2, 1);
    sx[k] = of(x.strides, 2, 0), sw[k] = of(w.strides, 2, 0), sy[k] = of(y.strides, 2, 0);
    stride[k] = of(how.stride, 0, 1), dilation[k] = of(how.dilation, 0, 1);
    before[k] = of(how.before, 0, 0);
  }
  const int inputs = w.dims[1], outputs = w.dims[0] / how.groups;
  std::array<int, 3> p, u;
  for (p[0] = 0; p[0] < out[0]; ++p[0])
    for (p[1] = 0; p[1] < out[1]; ++p[1])
      for (p[2] = 0; p[2] < out[2]; ++p[2])
        for (u[0] = 0; u[0] < taps[0]; ++u[0])
          for (u[1] = 0; u[1] < taps[1]; ++u[1])
            for (u[2] = 0; u[2] < taps[2]; ++u[2]) {
              int at_x = 0, at_w = 0, at_y = 0;
              bool inside = true;
              for (size_t k = 0; k < 3; ++k) {
                const int q = p[k] * stride[k] + u[k] * dilation[k] - before[k];
                inside = inside && q >= 0 && q < in[k];
                at_x += q * sx[k], at_w += u[k] * sw[k], at_y += p[k] * sy[k];
              }
              if (!inside) continue;
              for (int n = 0; n < x.dims[0]; ++n)
                for (int o = 0; o < w.dims[0]; ++o) {
                  const int first = o / outputs * inputs;
                  for (int c = 0; c < inputs; ++c)
                    term(at_x + n * x.strides[0] + (first + c) * x.strides[1],
                         at_w + o * w.strides[0] + c * w.strides[1],
                         at_y + n * y.strides[0] + o * y.strides[1]);
                }
            }
}

int data_type(int type) { return type == kBrainHalf ? 14 : type; }  // as cudaDataType

double as_tf32(double v) {
  auto f = static_cast<float>(v);
  uint32_t u;
  std::memcpy(&u, &f, 4);
  u = (u + 0x1000) & ~uint32_t{0x1FFF};
  std::memcpy(&f, &u, 4);
  return f;
}

enum Part { kOutput, kInput, kWeight };

/// What it is of these: (x, w) to y, (w, y) to x, (x, y) to w.
struct Convolution {
  Array x, w, y;
  Windows how;
};
Convolution convolution(Part part, void* a, void* b, void* windows, void* out) {
  const Array &first = *static_cast<Array*>(a), &second = *static_cast<Array*>(b),
              &result = *static_cast<Array*>(out);
  const Windows& how = *static_cast<Windows*>(windows);
  if (part == kOutput) return {first, second, result, how};
  if (part == kInput) return {result, first, second, how};
  return {first, result, second, how};
}

/// Fastest first: such as must not be taken come before the one that may.
int search(Part part, void* a, void* b, void* windows, void* out, int most, int* count,
           Measured* found) {
  const Convolution c = convolution(part, a, b, windows, out);
  if (int status = wrong_sizes(c.x, c.w, c.y, c.how)) return status;
  const int math = c.how.math;
  std::vector<Measured> all{{0, 0, 0.1f, 0, 0, math, {}},                // not deterministic
                            {1, 0, 0.2f, size_t(1) << 40, 1, math, {}},  // too much memory
                            {2, kUnsupported, -1, 0, 1, math, {}},       // not possible
                            {4, 0, 0.3f, 0, 1, kHalvedMath, {}}};        // float16 inside
  if (math != kAnyMath && math != kTensorMath) all.push_back({5, 0, 0.4f, 0, 1, kTensorMath, {}});
  if (setting("FAKE_CUDNN_ALGORITHMS", 1))
    all.push_back({kGoodAlgorithm, 0, 0.5f, 1 << 20, 1, math, {}});
  *count = std::min(most, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *count, found);
  return 0;
}

int run(Part part, void* handle, const void* alpha, void* a, const void* from_a, void* b,
        const void* from_b, void* windows, int algorithm, void* workspace, size_t bytes,
        const void* beta, void* out, void* to) {
  const Handle& h = *static_cast<Handle*>(handle);
  if (h.context != current || wrong(h.stream)) return kBadParameter;
  if (*static_cast<const float*>(alpha) != 1 || *static_cast<const float*>(beta) != 0)
    return kUnsupported;
  const int device = current->device;
  if (bytes < 1 << 20 || device_of(reinterpret_cast<Address>(workspace)) != device)
    return kBadParameter;
  const Convolution c = convolution(part, a, b, windows, out);
  if (int status = wrong_sizes(c.x, c.w, c.y, c.how)) return status;
  const bool halves = c.x.type == kHalf || c.x.type == kBrainHalf;
  if (algorithm != kGoodAlgorithm || (halves && c.how.math != kTensorMath)) return kUnsupported;
  Stream* on = stream_of(h.stream);
  enqueue(h.stream, [=] {
    on->clock += kLaunchTime;
    ++counts.convolutions;
    for (const void* p : {from_a, from_b, static_cast<const void*>(to)}) {
      if (reinterpret_cast<uintptr_t>(p) % 16 != 0) sticky = kMisaligned;
      if (!there(reinterpret_cast<Address>(p), device)) return;
    }
    const int type = data_type(c.x.type);
    auto values = [&](const void* p, const Array& of) {
      std::vector<double> all(of.count());
      for (size_t i = 0; i < all.size(); ++i) {
        all[i] = element(p, type, static_cast<int64_t>(i));
        if (!halves && c.how.math == kAnyMath) all[i] = as_tf32(all[i]);
      }
      return all;
    };
    const Array &first = part == kInput ? c.w : c.x, &second = part == kOutput ? c.w : c.y;
    const std::vector<double> p = values(from_a, first), q = values(from_b, second);
    std::vector<double> sums((part == kOutput ? c.y : part == kInput ? c.x : c.w).count());
    auto add_up = [&](auto term) { for_terms(c.x, c.w, c.y, c.how, term); };
    if (part == kOutput) add_up([&](int i, int j, int k) { sums[k] += p[i] * q[j]; });
    if (part == kInput) add_up([&](int i, int j, int k) { sums[i] += p[j] * q[k]; });
    if (part == kWeight) add_up([&](int i, int j, int k) { sums[j] += p[i] * q[k]; });
    for (size_t i = 0; i < sums.size(); ++i) put(to, type, static_cast<int64_t>(i), sums[i]);
  });
  return 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cudnnGetVersion() { return 92801; }
extern "C" __attribute__((visibility("default"))) const char* cudnnGetErrorString(int status) {
  return status == 0               ? "CUDNN_STATUS_SUCCESS"
         : status == kBadParameter ? "CUDNN_STATUS_BAD_PARAM"
         : status == kUnsupported  ? "CUDNN_STATUS_NOT_SUPPORTED"
                                   : "CUDNN_STATUS_INTERNAL_ERROR";
}

API cudnnCreate(void** h) {
  CALLED;
  if (!current) return kBadParameter;
  return *h = new Handle{current}, 0;
}
API cudnnDestroy(void* h) { return delete static_cast<Handle*>(h), 0; }
API cudnnSetStream(void* h, void* stream) {
  CALLED;
  return static_cast<Handle*>(h)->stream = stream, 0;
}

API cudnnCreateTensorDescriptor(void** t) { return *t = new Array, 0; }
API cudnnDestroyTensorDescriptor(void* t) { return delete static_cast<Array*>(t), 0; }
API cudnnSetTensorNdDescriptor(void* t, int type, int rank, const int* dims, const int* strides) {
  CALLED;
  if (rank < 4 || rank > 5) return kBadParameter;
  Array& of = *static_cast<Array*>(t);
  of.set(type, dims, rank);
  of.strides.assign(strides, strides + rank);
  of.second = of.strides == of.packed(false), of.last = of.strides == of.packed(true);
  return of.second || of.last ? 0 : kUnsupported;
}
API cudnnCreateFilterDescriptor(void** w) { return *w = new Array, 0; }
API cudnnDestroyFilterDescriptor(void* w) { return delete static_cast<Array*>(w), 0; }
API cudnnSetFilterNdDescriptor(void* w, int type, int format, int rank, const int* dims) {
  CALLED;
  if (rank < 4 || rank > 5 || format < 0 || format > 1) return kBadParameter;
  Array& of = *static_cast<Array*>(w);
  of.set(type, dims, rank);
  of.strides = of.packed(format == 1);
  of.second = format == 0, of.last = format == 1;
  return 0;
}
API cudnnCreateConvolutionDescriptor(void** c) { return *c = new Windows, 0; }
API cudnnDestroyConvolutionDescriptor(void* c) { return delete static_cast<Windows*>(c), 0; }
API cudnnSetConvolutionNdDescriptor(void* c, int rank, const int* before, const int* stride,
                                    const int* dilation, int mode, int compute) {
  CALLED;
  // Cross-correlation, added up in float32.
  if (rank < 2 || rank > 3 || mode != 1 || compute != 0) return kBadParameter;
  for (int k = 0; k < rank; ++k)
    if (before[k] < 0 || stride[k] < 1 || dilation[k] < 1) return kBadParameter;
  Windows& of = *static_cast<Windows*>(c);
  of.before.assign(before, before + rank), of.stride.assign(stride, stride + rank);
  of.dilation.assign(dilation, dilation + rank);
  return 0;
}
API cudnnSetConvolutionGroupCount(void* c, int groups) {
  CALLED;
  return static_cast<Windows*>(c)->groups = groups, 0;
}
API cudnnSetConvolutionMathType(void* c, int math) {
  CALLED;
  return static_cast<Windows*>(c)->math = math, 0;
}

#define CONVOLUTION(part, Search, Run)                                                          \
  API Search(void*, void* a, void* b, void* windows, void* out, int most, int* count,           \
             Measured* found) {                                                                 \
    CALLED;                                                                                     \
    return search(part, a, b, windows, out, most, count, found);                                \
  }                                                                                             \
  API Run(void* handle, const void* alpha, void* a, const void* from_a, void* b,                \
          const void* from_b, void* windows, int algorithm, void* workspace, size_t bytes,      \
          const void* beta, void* out, void* to) {                                              \
    CALLED;                                                                                     \
    return run(part, handle, alpha, a, from_a, b, from_b, windows, algorithm, workspace, bytes, \
               beta, out, to);                                                                  \
  }
CONVOLUTION(kOutput, cudnnGetConvolutionForwardAlgorithm_v7, cudnnConvolutionForward)
CONVOLUTION(kInput, cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnConvolutionBackwardData)
CONVOLUTION(kWeight, cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnConvolutionBackwardFilter)
