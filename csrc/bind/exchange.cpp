// Arrays of other libraries on the GPU.
#include "runtime/exchange.h"
#include "base/crc32c.h"
#include "bind/bind.h"
#include "cuda/run/device.h"
#include "runtime/executable.h"

namespace gradcell::bind {

namespace {

constexpr const char* kCapsule = "dltensor";

/// Holds a reference, which may be given up on any thread.
std::function<void()> keeping(py::object owner) {
  std::shared_ptr<PyObject> held(owner.release().ptr(),
                                 [](PyObject* o) { with_gil([o] { Py_DECREF(o); }); });
  return [held]() mutable { held.reset(); };
}

py::object exported(const Tensor& t, std::optional<uint64_t> stream) {
  DLManagedTensor* managed = to_dlpack(t.value(), stream);
  // Who takes the tensor over renames the capsule.
  return py::reinterpret_steal<py::object>(PyCapsule_New(managed, kCapsule, [](PyObject* c) {
    if (!PyCapsule_IsValid(c, kCapsule)) return;
    auto* left = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(c, kCapsule));
    left->deleter(left);
  }));
}

TensorPtr imported(py::object capsule) {
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), kCapsule));
  if (!managed) throw py::error_already_set();
  Array a = from_dlpack(managed, [managed] {
    if (managed->deleter) with_gil([managed] { managed->deleter(managed); });
  });
  PyCapsule_SetName(capsule.ptr(), "used_dltensor");
  return std::make_shared<Tensor>(std::move(a));
}

}  // namespace

void bind_exchange(py::module_& m) {
  m.def(
      "crc32c",
      [](const py::object& data) {
        const py::buffer_info b = py::buffer(data).request();
        require(b.itemsize == 1 && b.ndim == 1 && (b.size == 0 || b.strides[0] == 1),
                ErrorKind::Value, "crc32c: bytes side by side are needed");
        return crc32c({static_cast<const uint8_t*>(b.ptr), static_cast<size_t>(b.size)});
      },
      py::arg("data"), "CRC-32C of bytes.");
  m.def(
      "from_device_pointer",
      [](uint64_t pointer, DTypeObject dtype, Dims dims, std::optional<uint64_t> stream,
         py::object owner, bool share) {
        Foreign f{pointer, dtype.value, std::move(dims), stream};
        Array a = share ? f.shared(keeping(std::move(owner))) : f.copied();
        return std::make_shared<Tensor>(std::move(a));
      },
      "A tensor over (or with a copy of) another library's memory on the GPU in use, which what is "
      "on `stream` by now fills; None: it is filled.");
  m.def(
      "device_pointer", [](const Tensor& t) { return pointer_for_others(t.value()); },
      "Where the elements are on the GPU in use, once all work on them is done.");
  m.def("to_dlpack", &exported,
        "A DLPack capsule of the elements on the GPU in use, for work on `stream`.");
  m.def("from_dlpack", &imported, "A tensor over the memory in a DLPack capsule.");
  m.def(
      "device_stream",
      [](int number) { return reinterpret_cast<uint64_t>(cuda::Device::get(number).stream()); },
      "The handle of the stream that a GPU's work is on.");
  m.def(
      "device_of", [](const Tensor& t) { return t.traced() ? -1 : t.value().storage->device(); },
      "The GPU that holds the elements; -1: the host alone.");
  m.def(
      "place",
      [](const Tensor& t, bool on_gpu) {
        Array a = t.value();
        if (on_gpu)
          a.storage->on(gpu_in_use("where to move it"));
        else
          a.data();
        return std::make_shared<Tensor>(std::move(a));
      },
      "The same elements, which are on the GPU in use, or on the host, from now on too.");
  m.def(
      "synchronize_device",
      [](int number) {
        WithoutGil nogil;
        cuda::Device::get(number).synchronise();
      },
      "Waits until a GPU has done all its work.");
}

}  // namespace gradcell::bind
