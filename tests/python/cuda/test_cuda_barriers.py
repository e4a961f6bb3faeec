"""Every barrier of the kernels is needed, and the emulation of tests/cuda_shim.cpp sees that: each one left
out, of the prelude and of what the writers put around it, is an access that nothing orders.

`python tests/python/cuda/test_cuda_barriers.py` prints the table of docs/cuda-kernels.md.
"""

from __future__ import annotations

import collections
import ctypes
import pathlib
import re
import sys
import tempfile
import types
from typing import Any

import numpy as np
import pytest

if __name__ == "__main__":
    support = pathlib.Path(__file__).parents[1] / "support"
    sys.path[:0] = [str(support), str(support / "cases")]
from cuda_emulation import Batch, compiled
from network_cases import Case, burgers_step, first_order

import gradcell as gc
from gradcell import Tensor, _core, cuda, ops
from gradcell.ops.control.loops import loop

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

rng = np.random.default_rng(29)
core = _core.ops


def values(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(rng.standard_normal(shape).astype(dtype))


def attention(q: Tensor, k: Tensor) -> Any:
    def attended(q: Tensor, k: Tensor) -> Tensor:
        gc.set_seed(5)
        return ops.flash_attention_score(
            q, k, k, 2, input_layout="BNSD", keep_prob=0.9, scalar_value=0.3
        )

    return attended(q, k), *gc.grad(lambda *a: (attended(*a) ** 2).sum(), (0, 1))(q, k)


def second(q: Tensor, k: Tensor) -> Any:
    """What the second derivative's weights, products of several factors, are computed by."""
    slope = gc.grad(lambda a: (attention(a, k)[0] ** 2).sum())
    return gc.grad(lambda a: (slope(a) ** 2).sum())(q)


def convolution(x: Tensor, w: Tensor) -> Any:
    def of(x: Tensor, w: Tensor) -> Tensor:
        return ops.conv2d(x, w, None, 1, "same")

    return of(x, w), *gc.grad(lambda *a: (of(*a) ** 2).sum(), (0, 1))(x, w)


def looped(x: Tensor, h: Tensor, w: Tensor) -> Tensor:
    """Steps with a product, what follows it and a sum along rows, of more rows than a block takes."""

    def step(s: Any, x: Any) -> Any:
        y = ops.tanh(x[0] + ops.matmul(s[0], w))
        return [y - y.mean(-1, keep_dims=True)], [y]

    last, kept = loop(step, [h], [x], 4)
    return last[0].sum() + kept[0].sum()


def one_phase(x: Tensor, h: Tensor) -> Tensor:
    """Steps that read only what is carried, of other threads; an odd number of them."""
    return loop(lambda s, x: ([ops.sin(ops.roll(s[0], 2, 1)) + x[0]], []), [h], [x], 3)[0][0]


PLACES = Tensor(rng.integers(0, 70, 3000))
#: A few kernels of each writer, at sizes at which a block goes round its loops more than once.
CASES: dict[str, Case] = {
    "rows": (lambda x: ops.softmax(x * 2.0, -1), (values(9, 700),)),
    "short rows": (lambda x: ops.softmax(x * 2.0, -1), (values(900, 7),)),
    "columns": (lambda x: core.reduce_max(x * 2.0, [0], False), (values(3000, 5),)),
    "places of the largest": (lambda x: ops.argmax(x, -1), (values(7, 3000),)),
    "a scan": (lambda x: core.cumsum(x, 1, False, False), (values(3, 20_000),)),
    "short scans": (lambda x: core.cumsum(x, 1, False, False), (values(40, 9),)),
    "a sum of all": (lambda x: (x * x).sum(), (values(70_000),)),
    "sums at places": (
        lambda p, u: core.put_along(p, u, 70),
        (Tensor((np.arange(3000)[None] % 70).astype(np.int32)), values(1, 3000)),
    ),
    "sorted sums": (
        lambda i, w: ops.grad(lambda e: (ops.gather(e, i, 0) ** 2).sum())(w),
        (Tensor(rng.integers(0, 300, (30, 80))), values(300, 6)),
    ),
    "last writers": (lambda p: core.last_writer(p, 70), (PLACES,)),
    "transposes": (lambda x, y: ops.transpose(x, (1, 0)) - ops.transpose(y, (1, 0)),
                   (values(150, 141), values(150, 141))),
    "attention": (attention, (values(1, 2, 70, 5), values(1, 2, 70, 5))),
    "attention of halves": (attention, (values(1, 2, 150, 8, dtype="float16"),) * 2),
    "attention of wide halves": (attention, (values(1, 2, 70, 72, dtype="float16"),) * 2),
    "attention without tensor cores": (attention, (values(1, 2, 70, 40), values(1, 2, 70, 40))),
    "the same, second order": (second, (values(1, 2, 40, 8), values(1, 2, 40, 8))),
    "grouped products": (lambda a, b, c, d: (ops.matmul(a, b), ops.matmul(c, d)),
                         (values(70, 40), values(40, 9), values(70, 40), values(40, 9))),
    "convolution": (convolution, (values(2, 24, 6, 5), values(70, 24, 3, 3))),
    "a narrow network": first_order([5, 20, 20, 3], 150, ops.tanh),
    "a narrow network's equation": burgers_step([6, 6, 6], 150),
    "a network for tensor cores": first_order([3, 64, 64, 1], 150, ops.tanh),
    "a loop in a phase": (one_phase, (values(3, 300, 12), values(300, 12))),
    "a loop": (looped, (values(4, 300, 12), values(300, 12), values(12, 12))),
}  # fmt: skip
#: As on a GPU that has none.
WITHOUT = ("attention without tensor cores", "the same, second order")
TWICE = "a narrow network's equation"
WRITERS = {
    "gc_rows(": "tile", "gc_square": "attention", "gc_dots_warp": "attention by tensor cores",
    "gc_count(": "sort", "tile0[": "transpose", "GC_ALL_TURNS": "loop",
}  # fmt: skip


class Mutants:
    def __init__(self, folder: pathlib.Path) -> None:
        self.plans = []
        _core.weigh_cuda_plans(tiles=True)
        for name, (fn, args) in CASES.items():
            _core.plan_for_cuda(75 if name in WITHOUT else 90)
            self.plans.append(cuda.plan_of(fn, *args))
        _core.plan_for_cuda()
        _core.weigh_cuda_plans()
        self.batch = Batch(self.plans, folder)
        barriers = self.batch.barriers
        self.count = len(barriers.where)
        #: The cases that reach each.
        self.cases: dict[int, list[int]] = collections.defaultdict(list)
        library = self.batch.library
        for i in range(len(self.plans)):
            library.shim_forget()
            self.run(i)
            for k in range(1, self.count):
                if library.shim_reached(k):
                    self.cases[k].append(i)

    def run(self, case: int, order: int = 0) -> list[np.ndarray]:
        return self.batch.run(case, threads=None, grid=1, order=order)

    def name(self, barrier: int) -> str:
        """The function of the prelude, or the writer and which of its kernel's barriers it is."""
        before = self.batch.barriers.where[barrier]
        if "__global__" not in before:
            function = re.findall(
                r"^GRADCELL_DEVICE .*?(\w+)\(|^__device__ .*?(\w+)\(", before, re.M
            )
            name = "".join(function[-1])
            return f"{name}, {before[before.rindex(name + '(') :].count('__syncthreads')}"
        writer = next((w for mark, w in WRITERS.items() if mark in before), "other")
        return f"{writer}, {before.count('__syncthreads') + before.count('shim_barrier')}"

    def caught(self, barrier: int) -> str:
        """What is found without a barrier; "": nothing."""
        self.batch.library.shim_leave_out(barrier)
        try:
            for case in self.cases[barrier]:
                for order in (0, 1, 5):
                    try:
                        self.run(case, order)
                    except AssertionError as error:
                        return f"{list(CASES)[case]}: {str(error).partition(': ')[2]}"
        finally:
            self.batch.library.shim_leave_out(-1)
        return ""


@pytest.fixture(scope="module")
def mutants(tmp_path_factory: pytest.TempPathFactory) -> Mutants:
    return Mutants(tmp_path_factory.mktemp("barriers"))


def test_every_barrier_is_met(mutants: Mutants) -> None:
    assert mutants.count > 41
    assert [mutants.name(b) for b in range(1, mutants.count) if not mutants.cases[b]] == []


@pytest.mark.one_in(192)
@pytest.mark.parametrize("part", range(6))
def test_every_barrier_that_is_left_out_is_caught(mutants: Mutants, part: int) -> None:
    barriers = range(1 + part, mutants.count, 6)
    uncaught = {mutants.name(b): mutants.cases[b] for b in barriers if not mutants.caught(b)}
    # The writer separates a scatter from the writer of what it reads, which here is the same thread; so
    # of two barriers one is enough.
    assert uncaught.keys() <= {"tile, 1", "tile, 2"}
    assert all(cases == [list(CASES).index(TWICE)] for cases in uncaught.values())


def test_a_feature_is_read_by_its_owner_alone(tmp_path: pathlib.Path) -> None:
    """A thread without a feature of its own must not read another one's, which is written in the same phase,
    though it has no use for the value."""
    fn, arguments = CASES["a narrow network's equation"]
    plan = cuda.plan_of(fn, *arguments)
    guard = re.compile(r"= own \? (.*) : 0;")
    texts = [(name, guard.sub(r"= \1;", text)) for name, text in plan.kernels]
    assert texts != plan.kernels
    reports = []
    for number, kernels in enumerate((plan.kernels, texts)):
        folder = tmp_path / str(number)
        folder.mkdir()
        batch = Batch([types.SimpleNamespace(raw=plan.raw, kernels=kernels)], folder)
        found = ""
        for order in range(6):
            try:
                batch.run(0, threads=None, grid=1, order=order)
            except AssertionError as error:
                found = str(error)
        reports.append(found)
    assert reports[0] == ""
    assert "two threads" in reports[1]


def test_a_warp_barrier_that_is_left_out_is_caught(tmp_path: pathlib.Path) -> None:
    """A shuffle makes lanes wait, but orders no memory."""
    file = tmp_path / "warps.cpp"
    file.write_text(
        """
        extern "C" void run(void** a) {
          static int at[32];
          const int lane = threadIdx.x % 32;
          at[lane] = lane;
          gradcell::scalar::__shfl_xor_sync(0xffffffffu, lane, 1);
          shim_warp_barrier(1);
          ((int*)a[0])[threadIdx.x] = at[31 - lane];
        }"""
    )
    library = ctypes.CDLL(str(compiled([file], tmp_path)))
    library.shim_report.restype = ctypes.c_char_p
    out = np.zeros(32, np.int32)
    arguments = (ctypes.c_void_p * 1)(out.ctypes.data)
    for left_out, expected in ((-1, b""), (1, b"two threads of a warp, no barrier between: read")):
        library.shim_leave_out(left_out)
        assert library.shim_launch(library.run, arguments, 1, 32, 1, 0) == 0
        report = library.shim_report()
        assert report.startswith(expected) and bool(report) == bool(expected)
    np.testing.assert_array_equal(out, np.arange(32)[::-1])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("p[threadIdx.x + 1] = 0;", b"outside of what the launch was given: write"),
        ("static volatile int s[64]; if (blockIdx.x > 9) s[0] = 1; p[threadIdx.x] = s[threadIdx.x];",
         b"shared memory that nobody wrote"),
        ("p[threadIdx.x] = *(int*)(gc_tile + 8);", b"outside of what the launch was given: read"),
        ("p[0] = threadIdx.x;", b"two threads of a warp"),
        ("p[threadIdx.x % 32] = 0;", b"two threads of a block"),
        ("p[threadIdx.x] = 0; if (blockIdx.x) p[threadIdx.x] = 1;", b"two blocks"),
        ("if (threadIdx.x < 32) shim_barrier(1); else shim_barrier(2);",
         b"threads of a block wait at different barriers"),
        ("if (threadIdx.x < 5) gradcell::scalar::__all_sync(~0u, 1); else __syncthreads();",
         b"some lanes of a warp wait where the others do not come"),
        ("gradcell::scalar::__all_sync(0xffff, 1);", b"a mask of other lanes than there are"),
    ],
)  # fmt: skip
def test_what_is_undefined_is_found(text: str, found: bytes, tmp_path: pathlib.Path) -> None:
    assert found in report_of(text, tmp_path)


def report_of(text: str, folder: pathlib.Path) -> bytes:
    """Of 2 blocks of 64 threads, which are given 64 integers p."""
    file = folder / "undefined.cpp"
    file.write_text(f'extern "C" void run(void** a) {{ int* p = *(int**)a[0]; {text} }}')
    library = ctypes.CDLL(str(compiled([file], folder)))
    library.shim_report.restype = ctypes.c_char_p
    out = np.zeros(65, np.int32)
    pointer = ctypes.c_void_p(out.ctypes.data)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
    begin = (ctypes.c_ulong * 3)(out.ctypes.data, *map(ctypes.addressof, (pointer, arguments)))
    end = (ctypes.c_ulong * 3)(*(b + size for b, size in zip(begin, (64 * 4, 8, 8), strict=True)))
    library.shim_ranges(3, begin, end)
    library.shim_launch(library.run, arguments, 2, 64, 1, 8)
    return bytes(library.shim_report())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("c[i] = 0; __syncthreads(); if (i % 4 == 0) w[i / 4] += 1;", b""),
        ("w[i] = 0; __syncthreads(); c[i] = 1; __syncthreads(); w[i] = 2; c[4 * i] = 3;", b""),
        ("w[i] = 0; __syncthreads(); c[i / 2] = 1;", b"two threads of a warp"),
        ("c[i] = 0; w[i] = 1;", b"two threads"),
        ("if (i == 33) c[9] = 1; if (i == 2) w[2] = 1;", b"two threads of a block"),
        ("w[i] = 0; c[4 * (63 - i) + 3] = 1;", b"two threads"),
    ],
)
def test_bytes_of_a_word_are_memory_of_their_own(
    text: str, found: bytes, tmp_path: pathlib.Path
) -> None:
    start = "if (blockIdx.x) return; volatile int* w = p; volatile char* c = (char*)p;"
    report = report_of(f"{start} const int i = threadIdx.x; {text}", tmp_path)
    assert found in report and bool(found) == bool(report), report


@pytest.mark.one_in(1)
def test_a_case_that_was_not_compiled_cannot_be_run(tmp_path: pathlib.Path) -> None:
    fn, arguments = CASES["short scans"]
    batch = Batch([None, cuda.plan_of(fn, *arguments)], tmp_path)
    assert len(batch.run(1)) == 1
    with pytest.raises(AttributeError):
        batch.run(0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = Mutants(pathlib.Path(folder))
        for barrier in range(1, found.count):
            what = found.caught(barrier) if found.cases[barrier] else "NOT REACHED"
            print(
                f"| {found.name(barrier)} | {what.splitlines()[0][:150] if what else 'NOT CAUGHT'} |"
            )
