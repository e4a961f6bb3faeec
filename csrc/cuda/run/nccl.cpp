#include "cuda/run/nccl.h"

#include "base/error.h"
#include "cuda/float_types.h"
#include "ops/collective.h"

namespace gradcell::cuda {

namespace {

// Values of nccl.h.
constexpr int kInt8 = 0, kUint8 = 1, kInt32 = 2, kInt64 = 4;  // ncclDataType_t

/// The dtype in NCCL's terms; -1: it has none.
int nccl_type(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::UInt8:
      return kUint8;
    case DType::Int8:
      return kInt8;
    case DType::Int32:
      return kInt32;
    case DType::Int64:
      return kInt64;
    case DType::Float16:
    case DType::BFloat16:
    case DType::Float32:
    case DType::Float64:
      return float_type(t).nccl;
    case DType::Int16:
    case DType::UInt16:
    case DType::UInt32:
    case DType::UInt64:
    case DType::Complex64:
    case DType::Complex128:
      return -1;
  }
  return -1;
}

/// ncclRedOp_t has Combine's order.
int reduction(Combine c) { return narrow<int>(c); }

}  // namespace

struct Nccl::Api {
  Library library{{library_paths().nccl, "libnccl.so.2"},
                  "NCCL, which exchanges data between GPUs, was not found. Install it with pip "
                  "install 'gradcell[cuda13]' (or 'gradcell[cuda12]' for a driver of CUDA 12)"};
  Function<int(int*)> get_version{library, "ncclGetVersion"};
  Function<const char*(int)> error_string{library, "ncclGetErrorString"};
  Function<int(NcclId*)> get_unique_id{library, "ncclGetUniqueId"};
  Function<int(void**, int, NcclId, int)> init_rank{library, "ncclCommInitRank"};
  Function<int(void*)> destroy{library, "ncclCommDestroy"};
  Function<int(const void*, void*, size_t, int, int, void*, StreamHandle)> all_reduce{
      library, "ncclAllReduce"};
  Function<int(const void*, void*, size_t, int, int, int, void*, StreamHandle)> reduce{
      library, "ncclReduce"};
  Function<int(const void*, void*, size_t, int, int, void*, StreamHandle)> reduce_scatter{
      library, "ncclReduceScatter"};
  Function<int(const void*, void*, size_t, int, void*, StreamHandle)> all_gather{library,
                                                                                 "ncclAllGather"};
  Function<int(const void*, void*, size_t, int, int, void*, StreamHandle)> broadcast{
      library, "ncclBroadcast"};
  Function<int(const void*, size_t, int, int, void*, StreamHandle)> send{library, "ncclSend"};
  Function<int(void*, size_t, int, int, void*, StreamHandle)> receive{library, "ncclRecv"};
  Function<int()> group_start{library, "ncclGroupStart"};
  Function<int()> group_end{library, "ncclGroupEnd"};
};

Nccl::Nccl() : api_(std::make_unique<Api>()) {
  check(api_->get_version(&version_), "ncclGetVersion");
}

Nccl& Nccl::get() {
  static auto* nccl = new Nccl;  // its threads may outlive everything else
  return *nccl;
}

const std::string& Nccl::path() const { return api_->library.path(); }

void Nccl::check(int result, const char* what) const {
  require(result == 0, ErrorKind::Runtime, what, ": ", api_->error_string(result));
}

NcclId Nccl::unique_id() const {
  NcclId id{};
  check(api_->get_unique_id(&id), "ncclGetUniqueId");
  return id;
}

void Nccl::add_group(int64_t group, const NcclId& id, int size, int rank) {
  void* made = nullptr;
  check(api_->init_rank(&made, size, id, rank), "ncclCommInitRank");
  std::lock_guard lock(mutex_);
  groups_[group] = made;
}

void Nccl::remove_group(int64_t group) {
  std::lock_guard lock(mutex_);
  auto it = groups_.find(group);
  if (it == groups_.end()) return;
  check(api_->destroy(it->second), "ncclCommDestroy");
  groups_.erase(it);
}

void Nccl::enqueue(const Passage& p, DevicePointer in, DevicePointer out, StreamHandle stream) {
  void* group = nullptr;
  {
    std::lock_guard lock(mutex_);
    auto it = groups_.find(p.group);
    require(it != groups_.end(), ErrorKind::Runtime, info(p.op).name,
            ": these processes have no group on their GPUs; choose the device before "
            "communication.init");
    group = it->second;
  }
  const auto* from = reinterpret_cast<const char*>(in);
  auto* to = reinterpret_cast<char*>(out);
  const auto given = static_cast<size_t>(p.given), had = static_cast<size_t>(p.had);
  const size_t item = item_size(p.dtype);
  const int type = nccl_type(p.dtype), how = reduction(p.combine), root = narrow<int>(p.root);
  const Pattern pattern = gradcell::pattern(p.op);
  require(!reduces(pattern) || type >= 0, ErrorKind::NotImplemented, info(p.op).name, " of ",
          name(p.dtype), " on the GPU: NCCL has no such type; cast to int32 first");
  const Driver& driver = Driver::get();
  switch (pattern) {
    case Pattern::Reduced:
      return check(api_->all_reduce(from, to, given, type, how, group, stream), "ncclAllReduce");
    case Pattern::ReducedParts:
      return check(api_->reduce_scatter(from, to, had, type, how, group, stream),
                   "ncclReduceScatter");
    case Pattern::ReducedAtRoot:
      if (p.rank != p.root)
        driver.check(driver.cuMemsetD8Async(out, 0, had * item, stream), "cuMemsetD8Async");
      return check(api_->reduce(from, to, given, type, how, root, group, stream), "ncclReduce");
    // What is only moved goes as bytes.
    case Pattern::Gathered:
      return check(api_->all_gather(from, to, given * item, kUint8, group, stream),
                   "ncclAllGather");
    case Pattern::FromRoot:
      return check(api_->broadcast(from, to, given * item, kUint8, root, group, stream),
                   "ncclBroadcast");
    case Pattern::Swapped: {
      const size_t part = given * item / static_cast<size_t>(p.size);
      check(api_->group_start(), "ncclGroupStart");
      for (int r = 0; r < p.size; ++r) {
        check(api_->send(from + part * size_t(r), part, kUint8, r, group, stream), "ncclSend");
        check(api_->receive(to + part * size_t(r), part, kUint8, r, group, stream), "ncclRecv");
      }
      return check(api_->group_end(), "ncclGroupEnd");
    }
    case Pattern::Nothing:  // a sum of nothing that all have to wait for
      driver.check(driver.cuMemsetD8Async(out, 0, had * item, stream), "cuMemsetD8Async");
      return check(api_->all_reduce(to, to, had, type, how, group, stream), "ncclAllReduce");
  }
}

}  // namespace gradcell::cuda
