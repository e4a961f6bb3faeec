#include "cuda/run/cublaslt.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "cuda/float_types.h"
#include "cuda/run/cache_files.h"
#include "cuda/run/trial.h"

namespace gradcell::cuda {

namespace {

// Values of cublasLt.h and library_types.h.
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;  // cublasComputeType_t
constexpr int kTransposeA = 3, kTransposeB = 4;  // cublasLtMatmulDescAttributes_t
constexpr int kEpilogue = 7, kBiasPointer = 8;
constexpr uint32_t kEpilogueBias = 4;                 // cublasLtEpilogue_t
constexpr int kBatchCount = 5, kBatchStride = 6;      // cublasLtMatrixLayoutAttribute_t
constexpr int kMaxWorkspace = 1, kMinAlignmentA = 5;  // cublasLtMatmulPreferenceAttributes_t
constexpr uint32_t kMaxAlignment = 16;

struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

constexpr int kMostCandidates = 8;
/// Operations of a product from which on its algorithms are timed: fewer take no longer than their
/// launch.
constexpr double kWorthTiming = 1 << 24;
constexpr int kTimedRuns = 5;
/// Milliseconds of timed runs, after which a process times no more products.
constexpr float kMostTiming = 2000;
/// Of the first algorithm's time that another may take: less would be within what times vary by.
constexpr float kFaster = 0.95f;

bool is_worth_timing(const Gemm& p) {
  return 2.0 * static_cast<double>(p.batch) * static_cast<double>(p.m) * static_cast<double>(p.n) *
             static_cast<double>(p.k) >=
         kWorthTiming;
}

}  // namespace

struct CublasLt::Api {
  Library library{
      {library_paths().cublaslt, "libcublasLt.so.13", "libcublasLt.so.12"},
      "cuBLASLt, which multiplies matrices on the GPU, was not found. Install it with pip "
      "install 'gradcell[cuda13]' (or 'gradcell[cuda12]' for a driver of CUDA 12)"};
  Function<int(void**)> create{library, "cublasLtCreate"};
  Function<int(void*)> destroy{library, "cublasLtDestroy"};
  Function<int(void**, int, int)> desc_create{library, "cublasLtMatmulDescCreate"};
  Function<int(void*)> desc_destroy{library, "cublasLtMatmulDescDestroy"};
  Function<int(void*, int, const void*, size_t)> desc_set{library,
                                                          "cublasLtMatmulDescSetAttribute"};
  Function<int(void**, int, uint64_t, uint64_t, int64_t)> layout_create{
      library, "cublasLtMatrixLayoutCreate"};
  Function<int(void*)> layout_destroy{library, "cublasLtMatrixLayoutDestroy"};
  Function<int(void*, int, const void*, size_t)> layout_set{library,
                                                            "cublasLtMatrixLayoutSetAttribute"};
  Function<int(void**)> preference_create{library, "cublasLtMatmulPreferenceCreate"};
  Function<int(void*)> preference_destroy{library, "cublasLtMatmulPreferenceDestroy"};
  Function<int(void*, int, const void*, size_t)> preference_set{
      library, "cublasLtMatmulPreferenceSetAttribute"};
  Function<int(void*, void*, void*, void*, void*, void*, void*, int, Heuristic*, int*)> heuristic{
      library, "cublasLtMatmulAlgoGetHeuristic"};
  Function<int(void*, void*, void*, void*, void*, void*, const Algorithm*, Heuristic*)> suits{
      library, "cublasLtMatmulAlgoCheck"};
  Function<size_t()> version{library, "cublasLtGetVersion"};
  Function<int(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
               const void*, void*, void*, void*, const Algorithm*, void*, size_t, void*)>
      matmul{library, "cublasLtMatmul"};

  static void check(int status, const char* what) {
    require(status == 0, ErrorKind::Runtime, what, " failed (cuBLAS status ", status, ")");
  }
  template <class F, class... Arguments>
  static void call(const Function<F>& f, Arguments... arguments) {
    check(static_cast<F*>(f)(arguments...), f.name);
  }
  template <class T>
  static void set(const Function<int(void*, int, const void*, size_t)>& setter, void* of,
                  int attribute, T value) {
    call(setter, of, attribute, &value, sizeof value);
  }
};

/// Descriptors of one shape and alignment. The library is column-major: it computes out' = b' a',
/// whose operands are the row-major matrices as they lie in memory. Its bias has an element for
/// each row of out', which is a column of out.
struct CublasLt::Product {
  Product(const Api& api, const Gemm& p, bool with_bias) : api(api), with_bias(with_bias) {
    int type = float_type(p.dtype).cublas;
    bool wide = p.dtype == DType::Float64;
    const int type_of_sums = float_type(wide ? DType::Float64 : DType::Float32).cublas;
    int compute = wide ? kCompute64 : p.tf32 ? kComputeTf32 : kCompute32;
    Api::call(api.desc_create, &desc, compute, type_of_sums);
    Api::set(api.desc_set, desc, kTransposeA,
             int{p.transpose_b});  // CUBLAS_OP_N is 0, CUBLAS_OP_T 1
    Api::set(api.desc_set, desc, kTransposeB, int{p.transpose_a});
    if (with_bias) Api::set(api.desc_set, desc, kEpilogue, kEpilogueBias);
    set_bias(kMaxAlignment);  // the search looks at an address' alignment only
    layout(b, type, p, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k);
    layout(a, type, p, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m);
    layout(out, type, p, p.n, p.m);
  }
  ~Product() {
    if (desc) api.desc_destroy(desc);
    for (void* l : {a, b, out})
      if (l) api.layout_destroy(l);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void set_bias(DevicePointer bias) const {
    if (with_bias) Api::set(api.desc_set, desc, kBiasPointer, bias);
  }

  void layout(void*& to, int type, const Gemm& p, int64_t rows, int64_t columns) {
    Api::call(api.layout_create, &to, type, static_cast<uint64_t>(rows),
              static_cast<uint64_t>(columns), rows);
    if (p.batch == 1) return;
    Api::set(api.layout_set, to, kBatchCount, narrow<int32_t>(p.batch));
    Api::set(api.layout_set, to, kBatchStride, rows * columns);
  }

  /// Candidates, the one that the library thinks fastest first.
  void search(void* handle, int64_t alignment, int most) {
    void* preference = nullptr;
    Api::call(api.preference_create, &preference);
    auto destroy = [this](void* p) { api.preference_destroy(p); };
    std::unique_ptr<void, decltype(destroy)> owner(preference, destroy);
    Api::set(api.preference_set, preference, kMaxWorkspace, uint64_t{kWorkspace});
    for (int k = 0; k < 4; ++k)
      Api::set(api.preference_set, preference, kMinAlignmentA + k, narrow<uint32_t>(alignment));
    std::array<Heuristic, kMostCandidates> found{};
    int count = 0;
    status = api.heuristic(handle, desc, b, a, out, out, preference, most, found.data(), &count);
    if (status != 0) return;
    for (const Heuristic& h : std::span(found).first(static_cast<size_t>(count)))
      if (h.state == 0) candidates.push_back(h.algorithm);
  }

  std::string file() const { return digest(key) + ".product"; }

  /// Takes what was chosen before, if that can still be done.
  void recall(void* handle) {
    const std::string text = read_cached(file());
    Algorithm found{};
    if (text.size() != key.size() + sizeof found || !text.starts_with(key)) return;
    std::memcpy(&found, text.data() + key.size(), sizeof found);
    Heuristic now{};
    if (api.suits(handle, desc, b, a, out, out, &found, &now) == 0 && now.state == 0 &&
        now.workspace <= kWorkspace)
      candidates = {found};
  }
  void remember() const {
    std::string text = key;
    text.append(reinterpret_cast<const char*>(candidates.data()), sizeof(Algorithm));
    write_cached(file(), text);
  }

  const Api& api;
  const bool with_bias;
  void *desc = nullptr, *a = nullptr, *b = nullptr, *out = nullptr;
  int status = 0;  ///< of the search
  /// The first is taken. There are more until they have been timed; none: the library has none.
  std::vector<Algorithm> candidates;
  std::string key;  ///< the choice is kept by it
};

std::string CublasLt::library_path() { return Api().library.path(); }

CublasLt::CublasLt(const std::string& device)
    : api_(std::make_unique<Api>()), timing_left_(kMostTiming) {
  Api::call(api_->create, &handle_);
  const char* tune = std::getenv("GRADCELL_CUDA_TUNE");
  tunes_ = !tune || std::string_view(tune) != "0";
  kind_ = str("cuBLASLt ", static_cast<size_t (*)()>(api_->version)(), " on ", device);
}

CublasLt::~CublasLt() {
  products_.clear();
  if (handle_) api_->destroy(handle_);
}

namespace {

/// Another library's memory may start anywhere.
int64_t alignment_of(const Operands& at) {
  DevicePointer all = at.a | at.b | at.c | at.out | kMaxAlignment;
  return static_cast<int64_t>(all & ~(all - 1));
}

}  // namespace

CublasLt::Product& CublasLt::product(const Gemm& p, const Operands& at, bool with_bias) {
  const int64_t flags = p.transpose_a + 2 * p.transpose_b + 4 * p.tf32 + 8 * with_bias +
                        16 * p.accumulate + 32 * p.adds;
  const std::array<int64_t, 7> shape{
      static_cast<int64_t>(p.dtype), flags, p.batch, p.m, p.n, p.k, alignment_of(at)};
  std::lock_guard lock(mutex_);
  auto& entry = products_[shape];
  if (entry) return *entry;
  auto made = std::make_unique<Product>(*api_, p, with_bias);
  const bool tunes = tunes_ && is_worth_timing(p);
  if (tunes) {
    made->key = kind_;
    for (int64_t n : shape) made->key += str(" ", n);
    made->key += "\n";
    made->recall(handle_);
  }
  if (made->candidates.empty())
    made->search(handle_, alignment_of(at), tunes ? kMostCandidates : 1);
  entry = std::move(made);
  return *entry;
}

int CublasLt::enqueue(const Product& product, size_t candidate, const Gemm& p, const Operands& at,
                      const Place& place) const {
  double one64 = 1, zero64 = 0;
  float one32 = 1, zero32 = 0;
  bool wide = p.dtype == DType::Float64;
  const void* one = wide ? static_cast<const void*>(&one64) : &one32;
  const void* zero = wide ? static_cast<const void*>(&zero64) : &zero32;
  auto pointer = [](DevicePointer d) { return reinterpret_cast<void*>(d); };
  return api_->matmul(handle_, product.desc, one, pointer(at.b), product.b, pointer(at.a),
                      product.a, p.accumulate || p.adds ? one : zero, pointer(at.c), product.out,
                      pointer(at.out), product.out, &product.candidates[candidate],
                      pointer(place.workspace), kWorkspace, place.stream);
}

void CublasLt::choose(Product& product, const Gemm& p, const Place& place) {
  const size_t count = product.candidates.size();
  size_t best = 0, tried = 0;
  if (const Trial trial(p, place.stream); trial.possible()) {
    product.set_bias(trial.tried().bias);
    auto run = [&](size_t k, const Operands& at) { return enqueue(product, k, p, at, place) == 0; };
    std::vector<std::pair<float, size_t>> times;
    for (; tried < count && timing_left_ > 0; ++tried) {
      if (!run(tried, trial.tried())) continue;  // loads its kernels too
      const float time = trial.time([&] {
        for (int again = 0; again < kTimedRuns; ++again) run(tried, trial.tried());
      });
      times.emplace_back(time, tried);
      timing_left_ -= time;
    }
    const bool comparable = !times.empty() && times[0].second == 0;
    const float limit = comparable ? kFaster * times[0].first : 0;
    if (comparable) run(0, trial.expected());
    std::ranges::sort(times);
    for (auto [time, k] : times) {
      if (time >= limit || best != 0) break;
      trial.refill_tried();
      if (run(k, trial.tried()) && trial.are_equal()) best = k;
    }
  }
  product.candidates = {product.candidates[best]};
  if (tried == count) product.remember();
}

void CublasLt::multiply(Product& product, const Gemm& p, const Operands& at, const Place& place) {
  if (product.candidates.size() > 1 && place.may_wait && timing_left_ > 0)
    choose(product, p, place);
  product.set_bias(at.bias);
  Api::check(enqueue(product, 0, p, at, place), api_->matmul.name);
}

void CublasLt::multiply(const Gemm& p, const Operands& at, const Place& place) {
  Product& product = this->product(p, at, false);
  Api::check(product.status, "cublasLtMatmulAlgoGetHeuristic");
  require(!product.candidates.empty(), ErrorKind::Runtime,
          "cuBLASLt has no algorithm for a product of ", name(p.dtype), " matrices, ", p.m, "x",
          p.k, " by ", p.k, "x", p.n, ", batch ", p.batch);
  multiply(product, p, at, place);
}

bool CublasLt::multiply_and_add(const Gemm& p, const Operands& at, const Place& place) {
  // Algorithms take this alignment of a bias for granted, whatever is said of it in the search.
  if (at.bias % kMaxAlignment != 0) return false;
  Product& product = this->product(p, at, true);
  if (product.candidates.empty()) return false;
  multiply(product, p, at, place);
  return true;
}

}  // namespace gradcell::cuda
