#include "runtime/exchange.h"

#include "cuda/run/device.h"
#include "runtime/executable.h"

namespace gradcell {

namespace {

constexpr int kCuda = 2;           // kDLCUDA
constexpr int kDeviceOrdinal = 9;  // CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
constexpr uint64_t kLegacy = 1;    // the default stream

cuda::StreamHandle handle(uint64_t stream) { return reinterpret_cast<cuda::StreamHandle>(stream); }

DLDataType type_code(DType t) {
  uint8_t code = t == DType::Bool     ? 6
                 : is_narrow_float(t) ? narrow_float(t).dlpack
                 : is_complex(t)      ? 5
                 : is_floating(t)     ? 2
                 : is_unsigned(t)     ? 1
                                      : 0;
  return {code, narrow<uint8_t>(item_size(t) * 8), 1};
}

DType dtype_of(DLDataType type) {
  for (int i = 0; i < kDTypeCount; ++i) {
    DLDataType mine = type_code(static_cast<DType>(i));
    if (mine.code == type.code && mine.bits == type.bits && type.lanes == 1)
      return static_cast<DType>(i);
  }
  fail(ErrorKind::Type, "from_dlpack: gradcell has no dtype for DLPack's type code ",
       int{type.code}, " of ", int{type.bits}, " bits");
}

void require_dense(const DLTensor& t) {
  int64_t expected = 1;
  for (int k = t.ndim; t.strides && k-- > 0;) {
    if (t.shape[k] == 0) return;
    require(t.shape[k] == 1 || t.strides[k] == expected, ErrorKind::Value,
            "from_dlpack: the array is not contiguous in row-major order: copy it first");
    expected *= t.shape[k];
  }
}

}  // namespace

cuda::Device& gpu_in_use(const char* what) {
  const int number = settings().device;
  require(number >= 0, ErrorKind::Runtime, what,
          " is on a GPU, but device_target is 'CPU'. Call set_context(device_target='GPU'), or "
          "copy it to the host first");
  return cuda::Device::get(number);
}

cuda::Device& Foreign::arrived() const {
  cuda::Device& device = gpu_in_use("the array");
  if (bytes() == 0) return device;
  int where = -1;
  const cuda::Driver& driver = cuda::Driver::get();
  const int unknown =
      device.enter([&] { return driver.cuPointerGetAttribute(&where, kDeviceOrdinal, pointer); });
  require(unknown == 0, ErrorKind::Value, "the array's pointer is not to memory of a GPU");
  require(where == device.number(), ErrorKind::Value, "the array is on GPU ", where,
          ", but device_id is ", device.number(),
          ": call set_context(device_target='GPU', "
          "device_id=",
          where, "), or copy it to GPU ", device.number());
  if (stream) device.wait_for(handle(*stream));
  return device;
}

Array Foreign::shared(std::function<void()> give_back) const {
  cuda::Device& device = arrived();
  if (bytes() == 0) {
    give_back();
    return empty_array(dtype, dims);
  }
  auto block = std::make_shared<cuda::DeviceBlock>(device, pointer, bytes(), std::move(give_back));
  return {dtype, dims, Storage::on_device(std::move(block), bytes())};
}

Array Foreign::copied() const {
  cuda::Device& device = arrived();
  if (bytes() == 0) return empty_array(dtype, dims);
  auto block = std::make_shared<cuda::DeviceBlock>(device, bytes());
  device.copy(block->pointer(), pointer, bytes());
  device.let_wait(handle(stream.value_or(kLegacy)));
  return {dtype, dims, Storage::on_device(std::move(block), bytes())};
}

uint64_t pointer_for_others(const Array& a) {
  cuda::Device& device = gpu_in_use("what others see as an array");
  auto block = a.storage->on(device);
  block->share();
  device.synchronise();
  return block->pointer();
}

DLManagedTensor* to_dlpack(const Array& a, std::optional<uint64_t> stream) {
  struct Exported {
    DLManagedTensor tensor;
    Array array;
    std::shared_ptr<cuda::DeviceBlock> block;
  };
  cuda::Device& device = gpu_in_use("what others see as an array");
  auto e = std::make_unique<Exported>();
  e->array = a;
  e->block = a.storage->on(device);
  e->block->share();
  if (stream) device.let_wait(handle(*stream));
  e->tensor.manager_ctx = e.get();
  e->tensor.deleter = [](DLManagedTensor* t) { delete static_cast<Exported*>(t->manager_ctx); };
  e->tensor.dl_tensor = {reinterpret_cast<void*>(e->block->pointer()),
                         {kCuda, device.number()},
                         narrow<int32_t>(a.dims.size()),
                         type_code(a.dtype),
                         e->array.dims.data(),
                         nullptr,
                         0};
  return &e.release()->tensor;
}

Array from_dlpack(const DLManagedTensor* tensor, std::function<void()> give_back) {
  const DLTensor& t = tensor->dl_tensor;
  require(t.device.device_type == kCuda, ErrorKind::Value,
          "from_dlpack: the array is on a device of another kind (", t.device.device_type, ")");
  require_dense(t);
  Foreign f{reinterpret_cast<uint64_t>(t.data) + t.byte_offset, dtype_of(t.dtype),
            Dims(t.shape, t.shape + t.ndim), std::nullopt};
  return f.shared(std::move(give_back));
}

}  // namespace gradcell
