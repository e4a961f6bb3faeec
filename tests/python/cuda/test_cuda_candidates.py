"""Which of cuBLASLt's algorithms a product is computed by, on the made-up GPU: the fastest with the bits of
the first, timed in the second run of a plan and kept on disk."""

from __future__ import annotations

import pathlib

import pytest
from made_up_gpu import Process

pytestmark = pytest.mark.one_in(8)  # each has a process of its own, and compiles kernels

#: Twice the product of one shape in each of six runs: just large enough to be timed.
RUNS = """
ms.set_context(device_target="GPU")
def twice(x, w): return ops.matmul(ops.tanh(ops.matmul(x, w)), w)
values = [rng.standard_normal(s).astype(np.float32) for s in ((128, 256), (256, 256))]
x, w = (Tensor(v) for v in values)
step = ms.jit(twice)
results = [step(x, w).asnumpy() for _ in range(6)]
assert len({r.tobytes() for r in results}) == 1
a, b = (v.astype(np.float64) for v in values)
np.testing.assert_allclose(results[0], np.tanh(a @ b) @ b, rtol=1e-4, atol=1e-4)
"""
TIMED = 6  # once to load its kernels, five times by the clock


@pytest.fixture
def process(process: Process) -> Process:
    """The second algorithm is the fastest but has other bits; the third takes half of the first's time."""
    process.environment |= {"FAKE_CUBLASLT_TIMES": "4 1 2 3", "FAKE_CUBLASLT_BITS": "0 1 0 0"}
    return process


def candidates(process: Process) -> list[int]:
    """How many products each algorithm computed."""
    counts = process.counts()
    return [counts[f"candidate{k}"] for k in range(4)]


def files(process: Process) -> list[pathlib.Path]:
    return sorted((process.folder / "cache").glob("**/*.product*"))


FIRST_TIME = [2 + TIMED + 1, TIMED + 1, TIMED + 1 + 5 * 2, TIMED]
LATER = [0, 0, 6 * 2, 0]


def test_the_fastest_with_the_same_bits_is_taken_in_the_second_run(process: Process) -> None:
    process.good(RUNS)
    assert candidates(process) == FIRST_TIME
    assert process.counts()["captures"] == 1 and process.counts()["graphs"] == 3


def test_the_choice_outlives_the_process(process: Process) -> None:
    process.good(RUNS)
    assert len(files(process)) == 1
    process.good(RUNS)
    assert candidates(process) == LATER and process.counts()["checks"] == 1


ALL_KINDS = """
ms.set_context(device_target="GPU")
def every(x, w, b, c):
    y = ops.matmul(x, w)
    return ops.matmul(x, w.T) + b, ops.matmul(ops.sin(x), w) + c, ops.matmul(w.T, x.T), y
for dtype, tolerance in ((np.float32, 1e-4), (np.float64, 1e-12), (np.float16, 0.1)):
    shapes = (128, 256), (256, 256), (256,), (128, 256)
    values = [rng.standard_normal(s).astype(dtype) for s in shapes]
    given = [Tensor(v) for v in values]
    step = ms.jit(every)
    results = [[r.asnumpy() for r in step(*given)] for _ in range(4)]
    for r in results[1:]:
        assert [v.tobytes() for v in r] == [v.tobytes() for v in results[0]]
    x, w, b, c = (v.astype(np.float64) for v in values)
    expected = x @ w.T + b, np.sin(x) @ w + c, w.T @ x.T, x @ w
    for r, e in zip(results[0], expected):
        np.testing.assert_allclose(r, e, rtol=tolerance, atol=tolerance)
"""


@pytest.mark.one_in(6)
def test_all_types_and_what_is_added(process: Process) -> None:
    process.good(ALL_KINDS)
    assert process.counts()["additions"] > 0 and process.counts()["biases"] > 0
    assert len(files(process)) == 12
    compared = 12  # by the second algorithm: once each, and never in a plan
    assert candidates(process)[1] == 12 * TIMED + compared
    process.good(ALL_KINDS)
    assert candidates(process) == [0, 0, 4 * 12, 0]


def test_nothing_faster_has_the_same_bits(process: Process) -> None:
    bits = {"FAKE_CUBLASLT_BITS": "0 1 1 1"}
    process.good(RUNS, **bits)
    assert candidates(process) == [2 + TIMED + 1 + 5 * 2, TIMED + 1, TIMED + 1, TIMED + 1]
    process.good(RUNS, **bits)
    assert candidates(process) == [6 * 2, 0, 0, 0]


def test_small_differences_in_time_are_none(process: Process) -> None:
    process.good(RUNS, FAKE_CUBLASLT_TIMES="100 98 97 96", FAKE_CUBLASLT_BITS="0")
    assert candidates(process) == [2 + TIMED + 1 + 5 * 2, TIMED, TIMED, TIMED]


def test_timing_can_be_switched_off(process: Process) -> None:
    process.good(RUNS, GRADCELL_CUDA_TUNE="0")
    assert candidates(process) == [6 * 2, 0, 0, 0] and not files(process)


def test_one_run_is_not_worth_it(process: Process) -> None:
    process.good(RUNS.replace("range(6)", "range(1)"))
    assert candidates(process) == [2, 0, 0, 0] and not files(process)


def test_small_products_are_not_timed(process: Process) -> None:
    process.good(RUNS.replace("(128, 256)", "(127, 256)"))
    assert candidates(process) == [6 * 2, 0, 0, 0] and not files(process)


def test_timing_takes_two_seconds_at_most(process: Process) -> None:
    process.good(RUNS, FAKE_CUBLASLT_TIMES="300000 1 2 3")  # 0.6 seconds each
    assert candidates(process) == [2 + TIMED + 1 + 5 * 2, 0, 0, 0] and not files(process)


def test_no_memory_to_try_in(process: Process) -> None:
    # The workspace of 32 MiB and the tensors leave less than twice of what a trial takes.
    process.good(RUNS, FAKE_CUDA_MEMORY=str((32 << 20) + (2 << 20)))
    assert candidates(process) == [6 * 2, 0, 0, 0] and not files(process)


@pytest.mark.one_in(6)
def test_files_that_cannot_be_trusted_are_written_again(process: Process) -> None:
    both = RUNS + RUNS.replace("(128, 256)", "(130, 256)")
    process.good(both)
    one, other = files(process)
    good = one.read_bytes(), other.read_bytes()
    for bad in (good[0][:-8], b"rubbish", good[1], good[0][:-1] + b"?"):
        one.write_bytes(bad)
        process.good(both)
        assert process.counts()["checks"] == 1
        assert (one.read_bytes(), other.read_bytes()) == good


def test_an_algorithm_that_is_gone_is_not_taken(process: Process) -> None:
    process.good(RUNS)
    process.good(RUNS, FAKE_CUBLASLT_TIMES="4 1", FAKE_CUBLASLT_BITS="0")
    assert process.counts()["checks"] == 1
    assert candidates(process) == [2 + TIMED + 1, TIMED + 1 + 5 * 2, 0, 0]


def test_choices_are_of_one_version_of_the_library_and_one_gpu(process: Process) -> None:
    process.good(RUNS)
    for number, other in enumerate(
        ({"FAKE_CUBLASLT_VERSION": "130100"}, {"FAKE_CUDA_CAPABILITY": "80"})
    ):
        process.good(RUNS, **other)
        assert candidates(process) == FIRST_TIME and process.counts()["checks"] == 0
        assert len(files(process)) == 2 + number


@pytest.mark.one_in(6)
def test_where_nothing_can_be_written(process: Process) -> None:
    process.good(RUNS)
    file = files(process)[0]
    file.unlink()
    file.mkdir()
    (file / "inside").write_text("")
    process.good(RUNS)
    assert candidates(process) == FIRST_TIME
    assert files(process) == [file]  # nothing half-written
    nowhere = process.folder / "file"
    nowhere.write_text("")
    process.good(RUNS, GRADCELL_CACHE_DIR=str(nowhere / "below"))
    assert candidates(process) == FIRST_TIME


def test_a_capture_that_is_refused_changes_nothing(process: Process) -> None:
    process.good(RUNS, FAKE_CUDA_REFUSE_CAPTURE="1")
    assert candidates(process) == FIRST_TIME
