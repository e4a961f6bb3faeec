#include "cuda/run/cublaslt.h"

#include <array>

#include "base/error.h"

namespace gradcell::cuda {

namespace {

// Values of cublasLt.h and library_types.h.
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealBrain16 = 14;  // cudaDataType
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeTf32 = 77;       // cublasComputeType_t
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

int cublas_type(DType t) {
  switch (t) {
    case DType::Float64:
      return kReal64;
    case DType::Float16:
      return kReal16;
    case DType::BFloat16:
      return kRealBrain16;
    case DType::Float32:
      return kReal32;
    default:
      fail(ErrorKind::NotImplemented, "cuBLASLt multiplies no matrices of ", name(t));
  }
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
  Product(const Api& api, void* handle, const Gemm& p, uint32_t alignment, bool with_bias)
      : api(api) {
    int type = cublas_type(p.dtype);
    bool wide = p.dtype == DType::Float64;
    int compute = wide ? kCompute64 : p.tf32 ? kComputeTf32 : kCompute32;
    Api::call(api.desc_create, &desc, compute, wide ? kReal64 : kReal32);
    Api::set(api.desc_set, desc, kTransposeA,
             int{p.transpose_b});  // CUBLAS_OP_N is 0, CUBLAS_OP_T 1
    Api::set(api.desc_set, desc, kTransposeB, int{p.transpose_a});
    if (with_bias) {
      Api::set(api.desc_set, desc, kEpilogue, kEpilogueBias);
      set_bias(kMaxAlignment);  // the search looks at an address' alignment only
    }
    layout(b, type, p, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k);
    layout(a, type, p, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m);
    layout(out, type, p, p.n, p.m);
    choose(handle, alignment);
  }
  ~Product() {
    if (desc) api.desc_destroy(desc);
    for (void* l : {a, b, out})
      if (l) api.layout_destroy(l);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void set_bias(DevicePointer bias) const { Api::set(api.desc_set, desc, kBiasPointer, bias); }

  void layout(void*& to, int type, const Gemm& p, int64_t rows, int64_t columns) {
    Api::call(api.layout_create, &to, type, static_cast<uint64_t>(rows),
              static_cast<uint64_t>(columns), rows);
    if (p.batch == 1) return;
    Api::set(api.layout_set, to, kBatchCount, static_cast<int32_t>(p.batch));
    Api::set(api.layout_set, to, kBatchStride, rows * columns);
  }

  void choose(void* handle, uint32_t alignment) {
    void* preference = nullptr;
    Api::call(api.preference_create, &preference);
    auto destroy = [this](void* p) { api.preference_destroy(p); };
    std::unique_ptr<void, decltype(destroy)> owner(preference, destroy);
    Api::set(api.preference_set, preference, kMaxWorkspace, uint64_t{kWorkspace});
    for (int k = 0; k < 4; ++k)
      Api::set(api.preference_set, preference, kMinAlignmentA + k, alignment);
    Heuristic found{};
    int count = 0;
    status = api.heuristic(handle, desc, b, a, out, out, preference, 1, &found, &count);
    possible = status == 0 && count > 0 && found.state == 0;
    algorithm = found.algorithm;
  }

  const Api& api;
  void *desc = nullptr, *a = nullptr, *b = nullptr, *out = nullptr;
  Algorithm algorithm{};
  int status = 0;         ///< of the search for an algorithm
  bool possible = false;  ///< there is one
};

std::string CublasLt::library_path() { return Api().library.path(); }

CublasLt::CublasLt() : api_(std::make_unique<Api>()) { Api::call(api_->create, &handle_); }

CublasLt::~CublasLt() {
  products_.clear();
  if (handle_) api_->destroy(handle_);
}

CublasLt::Product& CublasLt::product(const Gemm& p, uint32_t alignment, bool with_bias) {
  int64_t flags = p.transpose_a + 2 * p.transpose_b + 4 * p.tf32 + 8 * with_bias;
  std::array<int64_t, 7> key{
      static_cast<int64_t>(p.dtype), flags, p.batch, p.m, p.n, p.k, alignment};
  std::lock_guard lock(mutex_);
  auto& entry = products_[key];
  if (!entry) entry = std::make_unique<Product>(*api_, handle_, p, alignment, with_bias);
  return *entry;
}

namespace {

/// Another library's memory may start anywhere.
uint32_t alignment_of(DevicePointer a, DevicePointer b, DevicePointer c, DevicePointer out) {
  DevicePointer all = a | b | c | out | kMaxAlignment;
  return static_cast<uint32_t>(all & ~(all - 1));
}

}  // namespace

void CublasLt::enqueue(const Product& product, const Gemm& p, DevicePointer a, DevicePointer b,
                       DevicePointer c, DevicePointer out, DevicePointer workspace,
                       StreamHandle stream) {
  double one64 = 1, zero64 = 0;
  float one32 = 1, zero32 = 0;
  bool wide = p.dtype == DType::Float64;
  const void* one = wide ? static_cast<const void*>(&one64) : &one32;
  const void* zero = wide ? static_cast<const void*>(&zero64) : &zero32;
  auto at = [](DevicePointer d) { return reinterpret_cast<void*>(d); };
  Api::call(api_->matmul, handle_, product.desc, one, at(b), product.b, at(a), product.a,
            p.accumulate || p.adds ? one : zero, at(c), product.out, at(out), product.out,
            &product.algorithm, at(workspace), kWorkspace, stream);
}

void CublasLt::multiply(const Gemm& p, DevicePointer a, DevicePointer b, DevicePointer c,
                        DevicePointer out, DevicePointer workspace, StreamHandle stream) {
  const Product& product = this->product(p, alignment_of(a, b, c, out), false);
  Api::check(product.status, "cublasLtMatmulAlgoGetHeuristic");
  require(product.possible, ErrorKind::Runtime, "cuBLASLt has no algorithm for a product of ",
          name(p.dtype), " matrices, ", p.m, "x", p.k, " by ", p.k, "x", p.n, ", batch ", p.batch);
  enqueue(product, p, a, b, c, out, workspace, stream);
}

bool CublasLt::multiply_and_add(const Gemm& p, DevicePointer a, DevicePointer b, DevicePointer bias,
                                DevicePointer out, DevicePointer workspace, StreamHandle stream) {
  // Algorithms take this alignment of a bias for granted, whatever is said of it in the search.
  if (bias % kMaxAlignment != 0) return false;
  const Product& product = this->product(p, alignment_of(a, b, out, out), true);
  if (!product.possible) return false;
  product.set_bias(bias);
  enqueue(product, p, a, b, out, out, workspace, stream);
  return true;
}

}  // namespace gradcell::cuda
