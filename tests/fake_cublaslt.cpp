// cuBLASLt of the made-up GPU: column-major products, with a bias where they are asked to add one.
//
// Environment: FAKE_CUBLASLT_BIAS: 0: the search for an algorithm that adds a bias fails; -1: it
// finds none. FAKE_CUBLASLT_TIMES ("1"): for each algorithm that the search finds how many launches
// it takes; FAKE_CUBLASLT_BITS ("0"): 1 for one that adds up in another way.
// FAKE_CUBLASLT_VERSION (130000).
#include <sstream>

#include "fake_cuda.h"

using namespace fake;

namespace {

constexpr uint32_t kDefault = 1, kBias = 4;  // cublasLtEpilogue_t

struct Description {
  int compute, scale, transpose[2] = {0, 0};
  uint32_t epilogue = kDefault;
  const void* bias = nullptr;
};
/// It remembers the alignment that it was chosen for.
struct Algorithm {
  uint32_t alignment[4], number, rest[11];
};
struct Found {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

std::vector<long> numbers(const char* variable, const char* otherwise) {
  const char* given = std::getenv(variable);
  std::istringstream in(given ? given : otherwise);
  std::vector<long> all;
  for (long n; in >> n;) all.push_back(n);
  return all;
}
const std::vector<long>& times() {
  static const auto all = numbers("FAKE_CUBLASLT_TIMES", "1");
  return all;
}
bool adds_otherwise(uint32_t algorithm) {
  static const auto all = numbers("FAKE_CUBLASLT_BITS", "0");
  return algorithm < all.size() && all[algorithm];
}

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) size_t cublasLtGetVersion() {
  return static_cast<size_t>(setting("FAKE_CUBLASLT_VERSION", 130000));
}
// As the library does, a handle belongs to the device that is current when it is made: the first
// one where there is none.
API cublasLtCreate(void** h) { return *h = current ? current : &contexts[0], 0; }
API cublasLtDestroy(void*) { return 0; }
API cublasLtMatmulDescCreate(void** d, int compute, int scale) {
  return *d = new Description{compute, scale}, 0;
}
API cublasLtMatmulDescDestroy(void* d) { return delete static_cast<Description*>(d), 0; }
API cublasLtMatmulDescSetAttribute(void* d, int which, const void* v, size_t size) {
  auto* description = static_cast<Description*>(d);
  if (which == 7 && size == 4) return std::memcpy(&description->epilogue, v, 4), 0;
  if (which == 8 && size == 8) return std::memcpy(&description->bias, v, 8), 0;
  if ((which != 3 && which != 4) || size != 4) return 7;
  return std::memcpy(&description->transpose[which - 3], v, 4), 0;
}
API cublasLtMatrixLayoutCreate(void** l, int type, uint64_t rows, uint64_t columns, int64_t ld) {
  return *l = new Layout{type, rows, columns, ld}, 0;
}
API cublasLtMatrixLayoutDestroy(void* l) { return delete static_cast<Layout*>(l), 0; }
API cublasLtMatrixLayoutSetAttribute(void* l, int which, const void* v, size_t size) {
  auto* layout = static_cast<Layout*>(l);
  if (which == 5 && size == 4) return std::memcpy(&layout->batch, v, 4), 0;
  if (which == 6 && size == 8) return std::memcpy(&layout->stride, v, 8), 0;
  return 7;
}

API cublasLtMatmulPreferenceCreate(void** p) { return *p = new uint32_t[4]{256, 256, 256, 256}, 0; }
API cublasLtMatmulPreferenceDestroy(void* p) { return delete[] static_cast<uint32_t*>(p), 0; }
API cublasLtMatmulPreferenceSetAttribute(void* p, int which, const void* v, size_t size) {
  if (which == 1 && size == 8) return 0;
  if (which < 5 || which > 8 || size != 4) return 7;
  return std::memcpy(static_cast<uint32_t*>(p) + (which - 5), v, 4), 0;
}
API cublasLtMatmulAlgoGetHeuristic(void*, void* desc, void*, void*, void*, void*, void* preference,
                                   int most, Found* result, int* found) {
  auto d = static_cast<const Description*>(desc);
  *found = 0;
  if (d->epilogue != kDefault && d->epilogue != kBias) return 15;
  if (d->epilogue == kBias) {
    long able = setting("FAKE_CUBLASLT_BIAS", 1);
    // What the search is told of a bias is how its address is aligned.
    if (able == 0 || !d->bias) return 15;
    if (able < 0) return 0;
  }
  *found = std::min(most, static_cast<int>(times().size()));
  for (int k = 0; k < *found; ++k) {
    result[k] = {};
    std::memcpy(result[k].algorithm.alignment, preference, 16);
    result[k].algorithm.number = static_cast<uint32_t>(k);
  }
  return 0;
}
API cublasLtMatmulAlgoCheck(void*, void*, void*, void*, void*, void*, const Algorithm* algorithm,
                            Found* result) {
  ++counts.checks;
  if (algorithm->number >= times().size()) return 15;
  return *result = {*algorithm, 0, 0, 1, {}}, 0;
}
API cublasLtMatmul(void* handle, void* desc, const void* alpha, const void* a, void* la,
                   const void* b, void* lb, const void* beta, const void* c, void* lc, void* out,
                   void* lo, const Algorithm* algorithm, void* workspace, size_t, void* stream) {
  LOCKED;
  if (handle != current || wrong(stream)) return 13;
  const uint32_t* alignment = algorithm->alignment;
  const uint32_t number = algorithm->number;
  auto aligned = [&](const void* p, int k) {
    return reinterpret_cast<uintptr_t>(p) % alignment[k] == 0;
  };
  if (!aligned(a, 0) || !aligned(b, 1) || !aligned(c, 2) || !aligned(out, 3)) return 15;
  // Where C is the result itself the two have one layout.
  if (c == out && lc != lo) return 7;
  int device = current->device;
  if (device_of(reinterpret_cast<Address>(workspace)) != device) return 13;
  Description d = *static_cast<Description*>(desc);
  Layout A = *static_cast<Layout*>(la), B = *static_cast<Layout*>(lb),
         C = *static_cast<Layout*>(lo);
  auto scale = [&](const void* p) {
    return d.scale == 1 ? *static_cast<const double*>(p) : *static_cast<const float*>(p);
  };
  double one = scale(alpha), keep = scale(beta);
  uint64_t inner = d.transpose[0] ? A.rows : A.columns;
  if (inner != (d.transpose[1] ? B.columns : B.rows)) return 7;
  if (C.rows != (d.transpose[0] ? A.columns : A.rows) ||
      C.columns != (d.transpose[1] ? B.rows : B.columns))
    return 7;
  bool biased = d.epilogue == kBias, otherwise = adds_otherwise(number);
  Stream* on = stream_of(stream);
  enqueue(stream, [=] {
    on->clock += kLaunchTime * static_cast<double>(times().at(number));
    ++counts.products;
    ++counts.by_candidate[number];
    counts.biases += biased;
    if (biased && reinterpret_cast<uintptr_t>(d.bias) % 16 != 0) sticky = kMisaligned;
    if (biased && !there(reinterpret_cast<Address>(d.bias), device)) return;
    counts.additions += keep != 0 && c != out;
    for (const void* p :
         {a, b, keep != 0 ? c : static_cast<const void*>(out), static_cast<const void*>(out)})
      if (!there(reinterpret_cast<Address>(p), device)) return;
    // The rows or columns that are multiplied, one after the other.
    auto lines = [&](const void* p, const Layout& of, bool columns, uint64_t count, int32_t n) {
      std::vector<double> all(count * inner);
      for (uint64_t i = 0; i < count; ++i)
        for (uint64_t k = 0; k < inner; ++k) {
          auto at = static_cast<int64_t>(columns ? k + i * of.ld : i + k * of.ld);
          all[i * inner + k] = element(p, of.type, at + n * of.stride);
        }
      return all;
    };
    for (int32_t n = 0; n < C.batch; ++n) {
      const auto left = lines(a, A, d.transpose[0], C.rows, n);
      const auto right = lines(b, B, !d.transpose[1], C.columns, n);
      for (uint64_t j = 0; j < C.columns; ++j)
        for (uint64_t i = 0; i < C.rows; ++i) {
          const double *x = &left[i * inner], *y = &right[j * inner];
          auto added = [&](auto sum) {
            for (uint64_t k = 0; k < inner; ++k) {
              uint64_t at = otherwise ? inner - 1 - k : k;
              sum += static_cast<decltype(sum)>(x[at] * y[at]);
            }
            return static_cast<double>(sum);
          };
          double sum = otherwise && C.type != 1 ? added(0.0f) : added(0.0);
          int64_t at = static_cast<int64_t>(i + j * C.ld) + n * C.stride;
          sum *= one;
          if (keep != 0) sum += keep * element(c, C.type, at);
          if (biased) sum += element(d.bias, C.type, static_cast<int64_t>(i));
          put(out, C.type, at, sum);
        }
    }
  });
  return 0;
}
