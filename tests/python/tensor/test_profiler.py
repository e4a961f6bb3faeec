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


# profile ----------------------------------------------------------------------------------------


def network(x, w, v):
    h = ops.tanh(ops.matmul(x, w))
    return ops.exp(ops.cumsum(ops.matmul(h, v), 0)).sum()


def numbers(*shape):
    return Tensor(np.full(shape, 0.01, np.float32))


def test_profile_names_ops_and_lines():
    given = numbers(4000, 64), numbers(64, 48), numbers(48, 8)
    report = ms.profiler.profile(ms.grad(network, (1, 2)), *given, repeat=3)
    first = network.__code__.co_firstlineno
    here = f"test_profiler.py:{first + 1}"
    by_op = {line.op: line for line in report.ops() if line.place == here}
    assert {"MatMul", "Tanh", "MatMul, of weights' gradients"} <= set(by_op)
    # forward, the gradient by w; x has none
    assert by_op["MatMul"].operations == 2 * 4000 * 64 * 48
    assert by_op["MatMul, of weights' gradients"].operations == 2 * 4000 * 64 * 48
    scan = [line for line in report.ops() if line.op == "CumSum"]
    assert {line.place for line in scan} == {f"test_profiler.py:{first + 2}"}
    assert scan[0].bytes == 2 * (2 * 4000 * 8 * 4)  # forward, and its adjoint
    total = sum(line.seconds for line in report.ops())
    assert 0 < total <= report.measured <= report.seconds / report.repeat
    assert total > 0.5 * report.measured
    assert [p["runs"] for p in report.plans] == [3]
    text = report.table()
    assert "GFLOPS" in text and here in text and "region of 4000 rows" in text


def operations(f, *given):
    return sum(line.operations for line in ms.profiler.profile(f, *given, repeat=1).ops())


@pytest.mark.parametrize("layout", ["BNSD", "BSH"])
@pytest.mark.parametrize("causal", [False, True])
def test_products_of_attention_are_counted(layout, causal):
    batch, heads, tokens, features = 2, 3, 64, 16

    def attend(q):
        mode = {"sparse_mode": 2} if causal else {}
        return ops.flash_attention_score(q, 2 * q, 3 * q, heads, input_layout=layout, **mode)

    inside = (batch, tokens, heads * features)
    x = numbers(*(inside if layout == "BSH" else (batch, heads, tokens, features)))
    pairs = tokens * (tokens + 1) // 2 if causal else tokens**2
    assert operations(ms.jit(attend), x) == 2 * (2 * batch * heads * pairs * features)


def test_products_in_a_loop_are_counted():
    def walk(x, w):
        return ops.scan(lambda x, _: (ops.tanh(x @ w), None), x, None, 7)[0]

    assert operations(ms.jit(walk), numbers(32, 48), numbers(48, 48)) == 7 * 2 * 32 * 48 * 48


def test_nothing_is_measured_when_nobody_asks():
    f, x = ms.grad(lambda x: ops.sin(x).sum()), numbers(50)
    ms._core.start_profile()
    f(x)
    assert len(ms._core.stop_profile()) == 1
    f(x)
    assert ms._core.stop_profile() == []


def test_plans_that_are_dropped_while_measured():
    ms._core.start_profile()
    for n in range(1, 20):
        ops.exp(ops.cumsum(ops.sin(numbers(n, 3)), 0))
        network(numbers(n, 4), numbers(4, 2), numbers(2, 3))
    others = 2048  # as many are kept: those used longest ago are dropped
    for n in range(others):
        ops.sin(numbers(n + 1))
    plans = ms._core.stop_profile()
    assert len(plans) >= 38 + others and all(p["runs"] >= 1 for p in plans)


def test_picture_and_trace(tmp_path):
    import json
    import xml.etree.ElementTree as ElementTree

    given = numbers(300, 64), numbers(64, 48), numbers(48, 8)
    report = ms.profiler.profile(ms.grad(network, (1, 2)), *given, repeat=2)
    report.picture(tmp_path / "profile.svg")
    words = "".join(ElementTree.parse(tmp_path / "profile.svg").getroot().itertext())
    assert "Tanh" in words and "test_profiler.py" in words
    report.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {"region", "CumSum"} <= {e["name"] for e in events}
    assert all(e["ph"] == "X" and e["dur"] >= 0 and e["ts"] >= 0 for e in events)


def test_profile_refuses():
    with pytest.raises(TypeError, match="function"):
        ms.profiler.profile(3)
    with pytest.raises(ValueError, match="repeat"):
        ms.profiler.profile(ops.sin, Tensor([1.0]), repeat=0)


def test_profiler_writes_ops_too(tmp_path):
    with Profiler(output_path=str(tmp_path)):
        ms.grad(network, (1, 2))(numbers(30, 64), numbers(64, 48), numbers(48, 8))
    assert "Tanh  test_profiler.py" in (tmp_path / "profile.txt").read_text()
    assert (tmp_path / "profile.svg").exists() and (tmp_path / "trace.json").exists()
