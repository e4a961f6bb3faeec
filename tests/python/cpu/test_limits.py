"""Sizes beyond 16 and 32 bits, floats that become places, and threads with small stacks.

Arrays of 2^31 elements are zeros that nobody has written: they take addresses, but no memory.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any

import far_places
import forked_scripts
import numpy as np
import pytest

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Tensor, mint, ops

FAR = 2**31 + 5


def far_zeros(columns: int = 1) -> np.ndarray:
    return np.zeros((FAR, columns) if columns > 1 else FAR, np.int8)


# Places -------------------------------------------------------------------------------------------


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["argmax", pytest.param("argmin", marks=pytest.mark.slow)])
def test_the_place_of_an_extreme_beyond_32_bits(name: str) -> None:
    x = far_zeros()
    x[-2:] = 1 if name == "argmax" else -1
    found = getattr(mint, name)(Tensor.from_numpy(x))
    assert found.dtype == gc.int64
    assert int(found) == FAR - 2


@pytest.mark.slow
def test_the_places_of_columns_extremes_beyond_32_bits() -> None:
    x = far_zeros(2)
    x[2**30 + 7, 0] = x[-1, 1] = 1
    found = mint.argmax(Tensor.from_numpy(x), 0)
    assert found.asnumpy().tolist() == [2**30 + 7, FAR - 1]


@pytest.mark.one_in(4)
def test_rows_beyond_32_bits_of_elements_are_read_where_they_are() -> None:
    table = np.zeros((FAR // 4 + 2, 4), np.int8)
    table[-1] = [1, 2, 3, 4]
    table[0] = 100
    x = np.arange(40, dtype=np.int8).reshape(10, 4)
    for added in (lambda x, t: x + t[-1], lambda x, t: x + t[-1:, :] + 0 * x):
        got = gc.jit(added)(Tensor(x), Tensor.from_numpy(table))
        np.testing.assert_array_equal(got.asnumpy(), x + table[-1])


def test_indices_beyond_32_bits() -> None:
    x = far_zeros()
    x[-3:] = [7, 8, 9]
    t = Tensor.from_numpy(x)
    at = np.array([0, FAR - 1, -2, FAR - 3], np.int64)
    np.testing.assert_array_equal(ops.gather(t, Tensor(at), 0).asnumpy(), x[at])
    np.testing.assert_array_equal(t[FAR - 2 :].asnumpy(), [8, 9])
    np.testing.assert_array_equal(t[Tensor(at)].asnumpy(), x[at])
    with pytest.raises(IndexError, match=str(FAR)):
        ops.gather(t, Tensor(np.array([FAR])), 0)


#: Places and counts beyond 32 bits that need no memory: they came as int32, whose upper bits were lost.
BEYOND: dict[str, tuple[Callable[[], Tensor | tuple[Tensor, ...]], list[Any]]] = {
    "unravel_index": (lambda: gnp.unravel_index(Tensor([2**33 + 1]), (2**40,)), [2**33 + 1]),
    "ravel_multi_index": (
        lambda: gnp.ravel_multi_index((Tensor([2**20 - 1]), Tensor([63])), (2**20, 64)), [2**26 - 1]
    ),
    "count_nonzero": (lambda: ops.count_nonzero(Tensor.from_numpy(far_zeros()) + 1), FAR),
    "count_nonzero of numpy": (lambda: gnp.count_nonzero(Tensor.from_numpy(far_zeros()) + 1), FAR),
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] * ("count" in n)) for n in BEYOND]
)
def test_numbers_of_places_beyond_32_bits(name: str) -> None:
    made, want = BEYOND[name]
    found = made()
    assert (found[0] if isinstance(found, tuple) else found).tolist() == want


@pytest.mark.parametrize("change", [ops.inplace_add, ops.inplace_sub, ops.inplace_update])
def test_an_index_beyond_32_bits_is_out_of_range(change: Callable[..., Tensor]) -> None:
    with pytest.raises(IndexError, match="4294967296"):
        change(Tensor([[1.0], [2.0]]), Tensor([[3.0]]), [2**32])


def test_a_label_beyond_32_bits_is_no_class() -> None:
    labels = ops.CTCLoss()
    x = Tensor(np.zeros((4, 1, 5)), gc.float32)
    with pytest.raises((IndexError, ValueError), match="out of range"):
        labels(x, Tensor([[0, 0]], gc.int64), Tensor([2**32], gc.int64), Tensor([4], gc.int32))


@pytest.mark.parametrize(
    "dtype, n", [("int8", 128), ("uint8", 256), ("int16", 2**15), ("int32", 2**31)]
)
def test_a_range_is_of_a_dtype_that_holds_it(dtype: str, n: int) -> None:
    from gradcell import _core

    def recorded(n: int) -> Any:
        return gc.graph_text(lambda: _core.ops.iota([n], getattr(gc, dtype), 0))

    assert f"{dtype}[{n}]" in recorded(n)
    with pytest.raises(ValueError, match=f"{dtype} does not count {n + 1} elements"):
        recorded(n + 1)


def test_places_and_counts_of_an_axis_beyond_32_bits() -> None:
    """A sample of what far_places.py records."""
    trials = list(
        far_places.trials(n for n in far_places.CASES if "count_nonzero" in n or "argmin" in n)
    )
    assert len(trials) > 15
    for trial in trials:
        assert far_places.trial(*trial) == ("recorded", []), trial


@pytest.mark.slow
def test_all_places_and_counts_of_an_axis_beyond_32_bits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts, wrong = far_places.counted(far_places.trials(far_places.CASES))
    with capsys.disabled():
        print(f"\n{counts}")
    assert wrong == []
    assert counts["recorded"] > 1000


@pytest.mark.parametrize("sort", [ops.sort, ops.argsort, lambda x: ops.topk(x, 2)])
def test_what_orders_more_than_32_bits_count_says_so(sort: Callable[[Tensor], Any]) -> None:
    with pytest.raises(ValueError, match=f"{FAR} elements"):
        sort(Tensor.from_numpy(far_zeros()))


# Constructors -------------------------------------------------------------------------------------

N = 2**62
MADE: dict[str, Callable[[], Any]] = {
    "eye": lambda: ops.eye(N),
    "eye of mint": lambda: mint.eye(N),
    "eye, wide": lambda: ops.eye(3, N),
    "identity": lambda: gnp.identity(N),
    "eye of numpy": lambda: gnp.eye(N),
    "full": lambda: ops.full((N,), 1.0),
    "zeros": lambda: mint.zeros((N, N)),
    "ones": lambda: mint.ones(2**40, 2**40),
    "empty": lambda: mint.empty((N,)),
    "zeros of ops": lambda: ops.zeros((N,)),
    "zeros of numpy": lambda: gnp.zeros((2**31, 2**31)),
    "tri": lambda: gnp.tri(N),
    "arange": lambda: ops.arange(0, N, 1),
    "arange of numpy": lambda: gnp.arange(N),
    "linspace": lambda: mint.linspace(0, 1, N),
    "linspace of numpy": lambda: gnp.linspace(0, 1, N),
    "logspace": lambda: gnp.logspace(0, 1, N),
    "rand": lambda: mint.rand(N),
    "randn": lambda: ops.randn(N),
    "randint": lambda: ops.randint(0, 5, (N,)),
    "uniform": lambda: ops.uniform((N,), Tensor(0.0), Tensor(1.0)),
    "StandardNormal": lambda: ops.standard_normal((N,)),
    "tril_indices": lambda: ops.tril_indices(2**40, 2**40),
    "triu_indices of numpy": lambda: gnp.triu_indices(2**40),
    "hanning": lambda: gnp.hanning(N),
    "broadcast_to": lambda: Tensor([1.0]).broadcast_to((N,)),
    "tile": lambda: Tensor([1.0]).tile((N,)),
    "one_hot": lambda: ops.one_hot(Tensor([1]), N),
    "repeat_interleave": lambda: mint.repeat_interleave(Tensor([1.0]), N),
    "vander": lambda: gnp.vander(Tensor([1.0]), N),
}


@pytest.mark.parametrize("name", MADE)
def test_what_no_memory_can_hold_is_refused_with_its_shape(name: str) -> None:
    with pytest.raises(
        MemoryError, match=r"a tensor of shape \[.*\d{10,}.*\] has more elements"
    ) as e:
        MADE[name]()
    assert __file__.rsplit("/", 1)[-1] in str(e.value)


@pytest.mark.parametrize(
    "name", ["eye", "eye of mint", "full", "arange", "linspace", "randn", "zeros", "tril_indices"]
)
def test_and_names_the_function(name: str) -> None:
    with pytest.raises(MemoryError, match=rf"^{name.split(' of ')[0]}: "):
        MADE[name]()


# Floats as places ---------------------------------------------------------------------------------

HUGE = np.finfo(np.float64).max / 1.5
EDGES = {
    "one place": [1.0, 1.0],
    "two at the beginning": [1.0, 1.0, 1.0, 2.0],
    "two in the middle": [0.0, 1.0, 1.0, 1.0, 3.0],
    "two at the end": [0.0, 2.0, 2.0],
    "neighbours": [1.0, np.nextafter(1.0, 2.0), 2.0],
    "denormal": [0.0, 5e-324, 1e-323],
    "as far apart as no number is": [-HUGE, 0.0, HUGE],
    "huge": [1e300, 1e300, 1e301],
}
VALUES = [0.0, 5e-324, 0.5, 1.0, np.nextafter(1.0, 2.0), 2.0, 2.5, 3.0, 1e300, HUGE, -HUGE]


@pytest.mark.parametrize("kind", EDGES)
def test_counts_between_edges_that_coincide(kind: str) -> None:
    edges = np.array(EDGES[kind])
    x = np.repeat([*VALUES, np.nan, np.inf, -np.inf], np.arange(1, len(VALUES) + 4))
    want = np.histogram(x, edges)[0]
    got = gc._core.ops.count_between(Tensor(x), Tensor(edges))
    np.testing.assert_array_equal(got.asnumpy(), want)


@pytest.mark.parametrize("value", [1.0, 1e30, 3e38, -3e38, 1e-45, 0.0, 2.0**24])
@pytest.mark.parametrize("bins", [1, 4, 100])
def test_equal_values_are_counted_once_each(value: float, bins: int) -> None:
    x = Tensor(np.full(5, value, np.float32))
    for counts in (ops.histc(x, bins), mint.histc(x, bins), gnp.histogram(x, bins)[0]):
        assert counts.asnumpy().sum() == 5
        assert (counts.asnumpy() > 0).sum() == 1


@pytest.mark.parametrize("right", [False, True])
def test_buckets_of_what_is_no_place(right: bool) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1.0, 2.0], np.float32)
    edges = [1.0, 1.0, 2.0]
    got = ops.bucketize(Tensor(x), edges, right=right)
    want = np.searchsorted(edges, x, "left" if right else "right")
    np.testing.assert_array_equal(got.asnumpy(), want)


# Small stacks -------------------------------------------------------------------------------------

SMALL_STACK = """
import threading
import numpy as np
import gradcell as gc
from gradcell import Tensor, mint, nn, ops

rng = np.random.default_rng(0)

def tensor(*shape, dtype=np.float64):
    return Tensor(rng.normal(size=shape).astype(dtype))

def half(*shape):
    return Tensor(rng.normal(size=shape).astype(np.float16))

def work():
    for dtype in (np.float32, np.float64):
        for m, n, k in ((200, 64, 300), (300, 300, 300), (64, 500, 2000), (17, 33, 65), (700, 16, 16)):
            for a in (tensor(m, k, dtype=dtype), tensor(k, m, dtype=dtype).T):
                mint.matmul(a, tensor(k, n, dtype=dtype)).asnumpy()
                mint.matmul(a, tensor(n, k, dtype=dtype).T).asnumpy()
        s = tensor(70, 70, dtype=dtype)
        for f in (mint.inverse, ops.svd, mint.linalg.qr, ops.cholesky):
            f(s @ s.T + 70 * mint.eye(70, dtype=s.dtype) if f is ops.cholesky else s)
        x = tensor(2, 8, 33, 33, dtype=dtype)
        w = tensor(16, 8, 3, 3, dtype=dtype)
        gc.grad(lambda w: ops.conv2d(x, w).sum())(w).asnumpy()
        gc.grad(lambda x: ops.conv2d(x, w).sum())(x).asnumpy()
        q = tensor(1, 4, 130, 32, dtype=dtype)
        mint.nn.functional.softmax(q @ q.transpose(0, 1, 3, 2), -1).asnumpy()
        for f in (ops.sort, lambda x: ops.topk(x, 2), mint.argmax, lambda x: mint.cumsum(x, -1)):
            f(tensor(3000, 3, dtype=dtype))
    for m, n, k in ((200, 64, 300), (600, 600, 600)):
        mint.matmul(half(m, k), half(k, n)).asnumpy()
        mint.matmul(half(k, m).T, half(k, n)).asnumpy()
    half(3000, 1000).sum(0).asnumpy()
    half(3, 100_000).sum(1).asnumpy()
    net = nn.SequentialCell(nn.Dense(4, 60), nn.Tanh(), nn.Dense(60, 60), nn.Tanh(), nn.Dense(60, 1))
    step = gc.value_and_grad(lambda x: net(x).sum(), None, net.trainable_params())
    gc.jit(step)(tensor(500, 4, dtype=np.float32))
    done.append(True)

done = []
threading.stack_size(128 * 1024)
thread = threading.Thread(target=work)
thread.start()
thread.join()
assert done
"""


def test_a_thread_with_a_small_stack() -> None:
    done = forked_scripts.run(SMALL_STACK)
    assert done.returncode == 0, done.stderr


# A shared BLAS ------------------------------------------------------------------------------------

SHARED_BLAS = """
import ctypes, os
import numpy as np
from gradcell import Tensor, mint, ops

library = ctypes.CDLL(os.environ["GRADCELL_BLAS"])
library.scipy_openblas_set_num_threads(3)
a = np.random.default_rng(0).normal(size=(300, 300))
x = Tensor(a)
np.testing.assert_allclose(mint.matmul(x, x + 1).asnumpy(), a @ (a + 1), rtol=1e-9, atol=1e-9)
np.testing.assert_allclose(mint.inverse(x).asnumpy(), np.linalg.inv(a), rtol=1e-6, atol=1e-6)
for kind in (np.float32, np.float64):
    y = Tensor(a.astype(kind))
    mint.matmul(y.T, y).asnumpy()
    mint.matmul(y, Tensor(np.ones((300, 7), kind))).asnumpy()
    ops.svd(y)[0].asnumpy()
assert library.scipy_openblas_get_num_threads() == 3
"""


def test_a_blas_that_others_use_keeps_their_number_of_threads() -> None:
    scipy_openblas32 = pytest.importorskip("scipy_openblas32")
    folder = pathlib.Path(scipy_openblas32.__file__).parent / "lib"
    (library,) = folder.glob("libscipy_openblas*.so")
    done = forked_scripts.run(
        SHARED_BLAS,
        {**os.environ, "GRADCELL_BLAS": str(library), "PYTHONPATH": forked_scripts.PYTHONPATH},
    )
    assert done.returncode == 0, done.stderr
