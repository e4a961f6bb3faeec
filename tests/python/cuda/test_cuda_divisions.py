"""Indices are divided by multiplication, exactly, by multipliers that the host computes."""

from __future__ import annotations

import ctypes
import pathlib
import re
import subprocess
from typing import Any

import numpy as np
import pytest
from cuda_cases import CASES
from cuda_emulation import SHIM, Batch, Nvrtc, compile_with, divisor, module, runner
from cuda_op_cases import tensor
from disassembly import disassembler

import gradcell as gc
from gradcell import _core, cuda, ops

pytestmark = pytest.mark.one_in(32, days=4)  # each compiles kernels with a C++ compiler or NVRTC

core = _core.ops
ROOT = pathlib.Path(__file__).resolve().parents[3]

#: Divides by prelude.cuh's divisors, made by the engine's divisor.h, and by the machine.
CHECK = """
namespace {
using namespace gradcell::scalar;
const int bits = 8 * sizeof(gc_index) - 1;
gc_divisor made(gc_index by) {
  const auto d = gradcell::cuda::divisor(by, bits);
  return {by, (gc_index)d.multiplier, (gc_index)d.shift};
}
}
extern "C" void made_of(gc_index by, gc_index* to) {
  const gc_divisor d = made(by);
  to[0] = d.by, to[1] = d.multiplier, to[2] = d.shift;
}
// Of divisors from begin to end the first that is wrong for an n next to a multiple, 0 if none is.
extern "C" gc_index first_wrong(gc_index begin, gc_index end) {
  const gc_index most = (gc_index)(((unsigned long long)1 << bits) - 1);
  for (gc_index by = begin;; ++by) {
    const gc_divisor d = made(by);
    const gc_index last = most / by * by;  // the largest multiple; the one before may be 0
    const gc_index numbers[] = {0,    1,         by - 1, by,       most / 2, most / 3, last - by,
                                last, last - 1, most,   most - 1};
    for (gc_index n : numbers)
      if (n / d != n / by || n % d != n % by) return by;
    if (by == end) return 0;
  }
}
"""


@pytest.mark.parametrize(("index", "bits"), [("int", 31), ("long long", 63)])
def test_quotients_and_remainders_are_exact(index: str, bits: int, tmp_path: pathlib.Path) -> None:
    plan = cuda.plan_of(lambda x: x + 1.0, tensor(2))
    prelude = plan.raw["prelude"].replace("typedef int gc_index", f"typedef {index} gc_index")
    header = f'#include "{ROOT}/csrc/cuda/run/divisor.h"\n'
    (tmp_path / "check.cpp").write_text(header + module(prelude, []) + CHECK)
    target = tmp_path / "check.so"
    source = str(tmp_path / "check.cpp")
    compile_with(
        "-O2", "-include", str(SHIM), "-shared", source, runner(tmp_path), "-o", str(target)
    )
    library = ctypes.CDLL(str(target))
    number = ctypes.c_int if bits == 31 else ctypes.c_longlong
    library.first_wrong.argtypes, library.first_wrong.restype = [number, number], number
    library.made_of.argtypes, library.made_of.restype = [number, ctypes.c_void_p], None

    assert library.first_wrong(2, 1 << 20) == 0
    most = (1 << bits) - 1
    for k in range(20, bits + 1):
        assert library.first_wrong((1 << k) - 2000, min((1 << k) + 2000, most)) == 0
    assert library.first_wrong(most // 3 - 1000, most // 3 + 1000) == 0
    for by in (2, 3, 7, 10, 641, 65_537, (1 << bits - 1) + 1, most):
        found = (number * 3)()
        library.made_of(by, found)
        assert list(found) == list(divisor(by, number))  # that the emulator passes


def test_a_divisor_beyond_the_index_leaves_all_of_it(tmp_path: pathlib.Path) -> None:
    by, multiplier, shift = divisor(1 << 40, ctypes.c_int)
    assert (by, multiplier, shift) == (0, 0, 0)  # n / by is 0, n % by is n
    x = tensor(10)
    slope = gc.grad(lambda x: (x[:: 1 << 40] * 2.0).sum())
    (found,) = Batch([cuda.plan_of(slope, x)], tmp_path).run(0)
    np.testing.assert_array_equal(found, [2.0] + [0.0] * 9)


def test_no_kernel_divides_by_a_size() -> None:
    for name, (fn, arguments) in CASES.items():
        for _, text in cuda.plan_of(fn, *arguments).kernels:
            assert not re.search(r"[/%] \(?n\d", text), (name, text)


#: By name: a function, its arguments, and SASS instructions of its kernels together when they divided.
KERNELS: dict[str, Any] = {
    "channels": (lambda x, b: x + b, (tensor(8, 16, 33, 31), tensor(16, 1, 1)), 748),
    "transposed": (lambda x: ops.transpose(x, (0, 2, 1)), (tensor(8, 100, 70),), 810),
    "gather": (
        lambda x, i: ops.gather(x, i, 1),
        (tensor(8, 100, 70), tensor(50, dtype="int32", low=0)),
        449,
    ),
    "middle axis": (lambda x: core.reduce_sum(x, [1], False), (tensor(8, 10_000, 7),), 401),
}


def disassembled(plan: Any, folder: pathlib.Path) -> list[str]:
    """The instructions of a plan's kernels on sm_90."""
    file = folder / "kernels.cubin"
    text = module(plan.raw["prelude"], [text for _, text in plan.kernels])
    file.write_bytes(Nvrtc().compile(text, "sm_90"))
    command = [disassembler(), "-c", str(file)]
    sass = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.findall(r"/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\d+ )?([A-Z][A-Z0-9_.]+)", sass)
    return [name for name in found if name != "NOP"]


@pytest.mark.parametrize("name", KERNELS)
def test_machine_code_has_few_instructions(name: str, tmp_path: pathlib.Path) -> None:
    """The table in docs/cuda-kernels.md. A reciprocal is of a division; the compiler divides once a loop, to
    count the rounds of one that it unrolls."""
    fn, arguments, before = KERNELS[name]
    found = disassembled(cuda.plan_of(fn, *arguments), tmp_path)
    assert sum(i.startswith("MUFU.RCP") for i in found) <= 2
    assert len(found) <= {"middle axis": 0.92}.get(name, 0.58) * before, len(found)
