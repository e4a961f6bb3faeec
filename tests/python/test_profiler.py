"""Profiler: what it counts, what it writes, when it refuses."""

import pstats

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, ops
from gradcell.profiler import Profiler


def slowly(x):
    # (cProfile of Python 3.13.0 loses callers of functions that pass on their *args)
    return ops.sin(x)


def test_report(tmp_path):
    x = Tensor(np.arange(5, dtype=np.float32))
    profiler = Profiler(output_path=str(tmp_path / "out"), profile_communication=False)
    for _ in range(7):
        slowly(x)
    profiler.stop()
    slowly(x)
    profiler.start()
    ms.grad(lambda y: ops.sin(y).sum())(x)
    profiler.analyse()
    text = (tmp_path / "out/profile.txt").read_text()
    assert " s; plans: " in text
    assert "slowly" in text
    stats = pstats.Stats(str(tmp_path / "out/profile.pstats")).stats
    counts = {name: row[0] for (_, _, name), row in stats.items()}
    assert counts["slowly"] == 7  # not the one in between


def test_as_a_block(tmp_path):
    with Profiler(start_profile=False, output_path=tmp_path) as profiler:
        slowly(Tensor([1.0]))
    assert "slowly" in profiler.report()
    assert (tmp_path / "profile.txt").exists()


def test_order_of_calls():
    profiler = Profiler(start_profile=False)
    with pytest.raises(RuntimeError, match="not measuring"):
        profiler.stop()
    profiler.start()
    with pytest.raises(RuntimeError, match="already"):
        profiler.start()
    profiler.stop()
    with pytest.raises(TypeError, match="output_path"):
        Profiler(output_path=3)
