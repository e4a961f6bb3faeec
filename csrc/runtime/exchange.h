// Arrays of other libraries on the GPU, both ways, without a copy: by pointer, and as DLPack.
//
// What comes in keeps its owner until this engine's stream is done with it; what goes out is not
// used again before every stream is (cuda::DeviceBlock). Streams are passed as the protocols have
// them: 1 the legacy default stream, 2 the per-thread one, other numbers are handles.
#pragma once

#include <functional>
#include <optional>

#include "runtime/dlpack.h"
#include "runtime/storage.h"

namespace gradcell {

/// Memory of a GPU as another library describes it: dense, row-major.
struct Foreign {
  uint64_t pointer;
  DType dtype;
  Dims dims;
  std::optional<uint64_t> stream;  ///< what fills it is on this stream; none: it is filled

  Array shared(std::function<void()> give_back) const;
  /// The owner may change its memory on `stream` (or on the default stream) afterwards.
  Array copied() const;

 private:
  size_t bytes() const { return static_cast<size_t>(element_count(dims)) * item_size(dtype); }
  /// The GPU in use, whose work comes after what fills the memory. Throws Value if it is elsewhere.
  cuda::Device& arrived() const;
};

/// Where an array is for others: a pointer of the GPU in use. All work on it has been done.
uint64_t pointer_for_others(const Array& a);
/// For others' work on `stream`; none: they wait themselves.
DLManagedTensor* to_dlpack(const Array& a, std::optional<uint64_t> stream);
/// Takes the tensor over, unless it throws: Value for strides and devices, Type for dtypes.
/// `give_back` calls its deleter, where that can be called.
Array from_dlpack(const DLManagedTensor* tensor, std::function<void()> give_back);

/// The GPU in use. Throws Runtime on the CPU.
cuda::Device& gpu_in_use(const char* what);

}  // namespace gradcell
