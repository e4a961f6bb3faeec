"""Arrays of other libraries on the GPU, both ways, with a made-up GPU and a made-up CuPy.

Work on the made-up GPU runs when somebody waits for it, and the made-up CuPy overwrites what it frees
on streams of its own: a wait that is missing shows as a wrong value.
"""

from __future__ import annotations

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

GPU = """
ms.set_context(device_target="GPU")
import gc
import made_up_cupy as cp
def values(*shape): return np.arange(1, 1 + np.prod(shape), dtype=np.float32).reshape(shape)
"""


@pytest.mark.parametrize("version", [2, 3])
def test_a_tensor_of_a_gpu_array_is_a_copy(process: Process, version: int) -> None:
    process.good(
        GPU
        + f"""
a = cp.Array(values(3, 4), version={version})
"""
        + """
if a.version < 3:
    a.stream = 1  # an older interface names no stream: that is the default one
    a.set(values(3, 4))
x = Tensor(a)
a.set(np.zeros((3, 4)))  # after the copy, on its own stream
a.get()
np.testing.assert_array_equal((x * 2.0).asnumpy(), 2 * values(3, 4))
del a
gc.collect()
assert cp.alive == 0
np.testing.assert_array_equal(x.asnumpy(), values(3, 4))
"""
    )
    assert process.counts()["uploads"] == (3 if version < 3 else 2)  # no way by the host


@pytest.mark.parametrize("make", ["Tensor.from_numpy(a)", "ms.from_numpy(a)", "ms.from_dlpack(a)"])
def test_a_shared_array_is_not_copied(process: Process, make: str) -> None:
    process.good(
        GPU
        + f"""
a = cp.Array(values(5))
x = {make}
"""
        + """
assert x.__cuda_array_interface__["data"][0] == a.pointer
np.testing.assert_array_equal((x * 2.0).asnumpy(), 2 * values(5))
np.testing.assert_array_equal(x.asnumpy(), values(5))
a.set(10 * values(5))  # its owner changes it and waits
a.get()
np.testing.assert_array_equal((x * 2.0).asnumpy(), 20 * values(5))
np.testing.assert_array_equal(x.asnumpy(), 10 * values(5))
assert not x.asnumpy().flags.writeable
"""
    )
    assert process.counts()["copies"] == 0


@pytest.mark.parametrize("make", ["Tensor.from_numpy(a)", "ms.from_dlpack(a)"])
def test_shared_memory_goes_back_when_the_work_on_it_is_done(process: Process, make: str) -> None:
    process.good(
        GPU
        + f"""
a = cp.Array(values(6))
x = {make}
"""
        + """
del a
gc.collect()
assert cp.alive == 1
y = x * 3.0  # not waited for
del x
gc.collect()
assert cp.alive == 0 and not cp.exported
np.testing.assert_array_equal(y.asnumpy(), 3 * values(6))
"""
    )


def test_gpu_arrays_are_taken_wherever_numpy_arrays_are(process: Process) -> None:
    process.good(
        GPU
        + """
v = values(2, 3)
a = cp.Array(v)
x = Tensor(v)
for got, want in [
    (x + a, v + v), (a + x, v + v), (x * a, v * v), (a * x, v * v), (x == a, v == v),
    (ops.maximum(x, a), v),
    (x[cp.Array(np.array([1, 0]))], v[[1, 0]]), (x[cp.Array(v > 3)], v[v > 3]),
    (Parameter(a, name="p"), v), (Tensor(a, ms.float64), v.astype(np.float64)),
    (Tensor(cp.Array(v[0]), ms.bfloat16).astype(ms.float32), v[0]),
    (Tensor(cp.Array(np.zeros((0, 3), np.float32))), np.zeros((0, 3))),
    (Tensor(cp.Array(np.float32(2.5))), np.float32(2.5)), (x * cp.Array(np.float32(2.5)), v * 2.5),
]:
    np.testing.assert_allclose(got.asnumpy(), want, rtol=1e-6)
x[0] = cp.Array(v[1])
np.testing.assert_array_equal(x.asnumpy()[0], v[1])

@ms.jit
def twice(t):
    return ops.mul(t, 2.0)

for k in range(3):  # what is in an array is no part of a signature
    a.set(v + k)
    np.testing.assert_array_equal(twice(a).asnumpy(), 2 * (v + k))
"""
    )


def test_one_launch_for_arrays_of_which_one_is_not_aligned(process: Process) -> None:
    process.good(
        GPU
        + """
arrays = [values(n) for n in (9, 33, 4)]
x = [ms.from_numpy(cp.Array(v, offset=o)) for v, o in zip(arrays, (0, 4, 0))]
@ms.jit
def f(a, b, c): return [v * 2.0 + 1.0 for v in (a, b, c)]
for _ in range(4): got = [y.asnumpy() for y in f(*x)]
for g, v in zip(got, arrays): np.testing.assert_array_equal(g, 2 * v + 1)
"""
    )
    assert process.counts()["launches"] == 4


def test_a_bias_that_is_not_aligned(process: Process) -> None:
    process.good(
        GPU
        + """
v, b = values(3, 8), values(8)
x, w = Tensor(v), Tensor(v.T.copy() @ v)
@ms.jit
def layer(bias): return ops.matmul(x, w) + bias
for offset in (0, 4):
    bias = ms.from_numpy(cp.Array(b, offset=offset))
    np.testing.assert_allclose(layer(bias).asnumpy(), v @ v.T @ v + b)
"""
    )
    counts = process.counts()
    assert counts["biases"] == 1 and counts["launches"] == 1


def test_arrays_that_are_not_contiguous_or_not_aligned(process: Process) -> None:
    process.good(
        GPU
        + """
v = values(3, 4)
a = cp.Array(v)
a.shape, a.strides = (4, 3), (4, 16)
np.testing.assert_array_equal((Tensor(a) * 1.0).asnumpy(), v.T)
b = cp.Array(v, offset=4)
x = ms.from_dlpack(b)
np.testing.assert_array_equal((x + x).asnumpy(), 2 * v)
np.testing.assert_allclose(ops.matmul(x, Tensor(v.T.copy())).asnumpy(), v @ v.T)
"""
    )


@pytest.mark.one_in(1)
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("Tensor(cp.Array(values(3), device=1))", "ValueError: the array is on GPU 1, but device_id"),
        ("ms.from_dlpack(cp.Array(values(3), device=1))", "ValueError: from_dlpack: the array is on GPU 1"),
        ("a = cp.Array(values(3)); a.stream = 0; Tensor(a)", "ValueError: Tensor: the GPU array names no"),
        ("a = cp.Array(values(3)); p = a.pointer; a.pointer = 4096\ntry: Tensor(a)\nfinally: a.pointer = p",
         "ValueError: the array's pointer is not"),
        ("Tensor(cp.Array(values(3).astype(np.longdouble)))", "TypeError: Tensor: the NumPy dtype float128"),
        ("Tensor(cp.Array(values(3).astype('>f4')))", "TypeError: Tensor: the GPU array is big-endian"),
        ("ms.set_context(device_target='CPU'); Tensor(cp.Array(values(3)))",
         "RuntimeError: the array is on a GPU, but device_target is 'CPU'"),
        ("ms.set_context(device_target='CPU'); Tensor(values(3)) + cp.Array(values(3))",
         "RuntimeError: the array is on a GPU, but device_target is 'CPU'"),
        ("ms.set_context(device_target='CPU'); ms.from_dlpack(cp.Array(values(3)))",
         "RuntimeError: from_dlpack: the array is on a GPU, but device_target is 'CPU'"),
        ("ms.set_context(device_target='CPU'); Tensor(values(3)).move_to('GPU')",
         "RuntimeError: where to move it is on a GPU, but device_target is 'CPU'"),
        ("Tensor(values(3)).move_to('TPU')", "ValueError: move_to: expected 'CPU' or 'GPU', got 'TPU'"),
    ],
)  # fmt: skip
def test_what_cannot_be_taken_is_said(process: Process, script: str, message: str) -> None:
    error = process.error(GPU + script, FAKE_CUDA_DEVICES="2")
    assert error.startswith(message)
    assert "<string>" in error  # the user's line


def test_memory_that_was_refused_is_not_kept(process: Process) -> None:
    process.good(
        GPU
        + """
a = cp.Array(values(3), device=1)
for fn in (Tensor, ms.from_numpy, ms.from_dlpack):
    try:
        fn(a)
    except ValueError:
        pass
    else:
        raise AssertionError(fn)
del a
gc.collect()
assert cp.alive == 0
""",
        FAKE_CUDA_DEVICES="2",
    )


# What goes out -----------------------------------------------------------------------------------


def test_the_interface_of_a_tensor(process: Process) -> None:
    process.good(
        GPU
        + """
v = values(3, 4)
x = Tensor(v) * 2.0
interface = x.__cuda_array_interface__
assert interface["shape"] == (3, 4) and interface["typestr"] == "<f4"
assert interface["version"] == 3 and interface["strides"] is None and interface["stream"] is None
# Another library reads it on a stream that never heard of this one's.
np.testing.assert_array_equal(cp.read(interface["data"][0], (3, 4), np.float32, cp.new_stream()), 2 * v)
back = Tensor(type("Other", (), {"__cuda_array_interface__": interface})())
np.testing.assert_array_equal(back.asnumpy(), 2 * v)
for dtype in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float64"):
    t = Tensor(np.ones(2, dtype))
    assert t.__cuda_array_interface__["typestr"] == np.dtype(dtype).str
    np.testing.assert_array_equal(ms.from_dlpack(t).asnumpy(), np.ones(2, dtype))
half = Tensor(v, ms.bfloat16)
assert not hasattr(half, "__cuda_array_interface__")
np.testing.assert_array_equal(ms.from_dlpack(half).asnumpy(), v)
ms.set_context(device_target="CPU")
assert not hasattr(x, "__cuda_array_interface__")
assert x.__dlpack_device__() == (1, 0)
np.testing.assert_array_equal(np.from_dlpack(x), 2 * v)
"""
    )


def test_dlpack_orders_the_other_stream_after_this_one(process: Process) -> None:
    process.good(
        GPU
        + """
v = values(64)
x = Tensor(v) * 2.0  # not waited for
assert x.__dlpack_device__() == (2, 0)
stream = cp.new_stream()
taken = cp.Taken(x, stream)
got = taken.enqueue_copy()
cp.call("cuStreamSynchronize", cp.ctypes.c_void_p(stream))
np.testing.assert_array_equal(got, 2 * v)
try:
    x.__dlpack__(stream=0)
except ValueError:
    pass
else:
    raise AssertionError
host = type("Host", (), {"__dlpack_device__": lambda _: (1, 0),
                         "__dlpack__": lambda _, **k: x.__dlpack__(dl_device=(1, 0))})
np.testing.assert_array_equal(np.from_dlpack(host()), 2 * v)  # a consumer that asks for the host
"""
    )


def test_memory_that_went_out_is_not_used_again_while_others_read_it(process: Process) -> None:
    process.good(
        GPU
        + """
v = values(1000)
t = Tensor(v).move_to("GPU")
x = t * 2.0
pointer = x.__cuda_array_interface__["data"][0]
stream = cp.new_stream()
taken = cp.Taken(x, stream)
got = taken.enqueue_copy()  # on its stream, late
del taken, x
gc.collect()
assert not cp.exported
y = t * 5.0  # takes the block that was given back
assert y.__cuda_array_interface__["data"][0] == pointer
np.testing.assert_array_equal(y.asnumpy(), 5 * v)
cp.call("cuStreamSynchronize", cp.ctypes.c_void_p(stream))
np.testing.assert_array_equal(got, 2 * v)
"""
    )


def test_a_step_leaves_what_went_out_alone(process: Process) -> None:
    process.good(
        GPU
        + """
p = Parameter(Tensor(np.zeros(3, np.float32)), name="p")

@ms.jit
def step(x):
    p.set_data(p + x)
    return p * 1.0

x = Tensor(np.ones(3, np.float32))
kept = []
for k in range(1, 9):
    y = step(x)
    kept.append((k, ms.from_dlpack(p.value()), cp.Taken(y, cp.new_stream())))
for k, shared, taken in kept:
    np.testing.assert_array_equal(shared.asnumpy(), np.full(3, k))
    got = taken.enqueue_copy()
    cp.call("cuStreamSynchronize", cp.ctypes.c_void_p(taken.stream))
    np.testing.assert_array_equal(got, np.full(3, k))
"""
    )


def test_move_to(process: Process) -> None:
    process.good(
        GPU
        + """
x = Tensor(values(4))
assert ms._core.device_of(x) == -1
y = x.move_to("GPU")
assert ms._core.device_of(y) == 0
np.testing.assert_array_equal(y.move_to("CPU").asnumpy(), values(4))
ms.cuda.synchronize()
"""
    )
