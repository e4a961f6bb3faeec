"""What is a view and what a copy: every line of the table in docs/views.md, and what writes do.

Values and derivatives of programs with writes are measured against NumPy's own views
(write_programs.py), which know nothing of gradcell.
"""

from __future__ import annotations

import copy
import pathlib
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import write_programs

import gradcell as ms
from gradcell import Parameter, Tensor, mint, nn, ops  # noqa: F401 (the table's calls)

TABLE = pathlib.Path(__file__).parents[3] / "docs" / "views.md"


@pytest.fixture(params=["pynative", "graph"])
def mode(request: Any) -> Iterator[str]:
    ms.set_context(mode=ms.GRAPH_MODE if request.param == "graph" else ms.PYNATIVE_MODE)
    yield request.param
    ms.set_context(mode=ms.PYNATIVE_MODE)


def R(*dims: int) -> np.ndarray:
    return np.arange(1.0, 1.0 + np.prod(dims), dtype=np.float32).reshape(dims)


SHAPES = {"x": (4, 6), "c": (2, 2, 4), "v": (6,), "one": (1, 6), "p": (4, 6)}


def rows_of_the_table() -> list[tuple[str, bool, bool]]:
    """(call, whether it is a view, whether its elements may share places)."""
    rows = []
    for line in TABLE.read_text().splitlines():
        cells = [c.strip() for c in line.split(" | ")]
        if not line.startswith("| `"):
            continue
        for call in re.findall(r"`([^`]+)`", cells[0]):
            rows.append((call, cells[1].startswith("view"), "raises ValueError" in cells[1]))
    return rows


ROWS = rows_of_the_table()


def test_the_table_is_read() -> None:
    assert len(ROWS) > 180
    assert sum(view for _, view, _ in ROWS) > 90


def called(call: str, name: str, base: Any) -> Any:
    env = {n: Tensor(R(*dims)) for n, dims in SHAPES.items() if n != "p"}
    env["p"] = Parameter(Tensor(R(4, 6)), name="p")
    env[name] = base
    env["m"], env["rows"] = Tensor(R(4, 6) > 3), Tensor([0, 1])
    y = eval(call, {**globals(), **env})
    return y[0] if isinstance(y, (tuple, list)) else y


def name_in(call: str) -> str:
    found = re.findall(r"(?<![\w.])(x|c|v|one|p)(?!\w)", call)
    found = [n for n in found if n != "p" or "p=" not in call]
    return str(found[0])


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
@pytest.mark.parametrize(("call", "view", "shares"), ROWS, ids=[r[0] for r in ROWS])
def test_a_line_of_the_table(call: str, view: bool, shares: bool) -> None:
    """A write to the result shows in the base, and the other way round, if and only if it is a view:
    eagerly, in jit, in grad, in GRAPH_MODE."""
    name = name_in(call)

    def written(base: Any) -> Tensor:
        y = called(call, name, base)
        y[(0,) * y.ndim] = 99.0
        return (base == 99.0).astype(ms.float32).sum()

    def read(base: Any) -> Tensor:
        y = called(call, name, base)
        base[...] = 99.0
        return (y == 99.0).astype(ms.float32).sum() / y.size

    def fresh() -> Any:
        t = Tensor(R(*SHAPES[name]))
        return Parameter(t, name="p") if name == "p" else t

    def with_gradient(f: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def g(z: Tensor) -> tuple[Tensor, Tensor]:
            base = fresh() if name == "p" else fresh() * (z * 0.0 + 1.0)
            return z * 1.0, f(base)

        return lambda: ms.grad(g, has_aux=True)(Tensor(1.0))[1][0]

    for f in (written, read):
        seen = [f(fresh()), ms.jit(lambda f=f: f(fresh()))(), with_gradient(f)()]
        ms.set_context(mode=ms.GRAPH_MODE)
        seen.append(with_gradient(f)())
        ms.set_context(mode=ms.PYNATIVE_MODE)
        assert [float(s) for s in seen] == [1.0 if view else 0.0] * 4
    if shares:
        y = called(call, name, fresh())
        if call != "x.broadcast_to((4, 6))":
            with pytest.raises(ValueError, match=r"write to that, or to a copy.*test_views.py:\d+"):
                y[...] = 1.0


#: Functions that hand on what they are given, tensors or not, and tuples' elements.
HANDING_ON = set(
    """make_list make_tuple tuple_getitem tuple_reversed tuple_setitem add_flags
scalar_to_array scalar_max scalar_min set_const_arg Print print_ """.split()
)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("place", [ops, mint, ms.numpy, Tensor], ids=lambda place: place.__name__)
def test_what_the_table_does_not_name_is_a_copy(place: Any) -> None:
    """Every function that can be called with a tensor and few other arguments."""
    named = {re.sub(r"\(.*", "", call).rpartition(".")[2] for call, view, _ in ROWS if view}
    assert {"reshape", "T", "narrow", "Tensor"} <= named
    seen = 0
    for name in dir(place):
        function = getattr(place, name, None)
        if name in named | HANDING_ON or name.startswith("_") or name.endswith("_"):
            continue
        if "assign" in name or not callable(function) or isinstance(function, type):
            continue
        for array in (R(3, 4), R(1), np.arange(6)):
            for arguments in ((), (0,), ((),), (1, 1), ("x",), (0.0,), (ms.float32,)):
                x = Tensor(array)
                given = [x if a == "x" else a for a in arguments]
                try:
                    y = function(x, *given)
                except Exception:  # not how it is called
                    continue
                y = y[0] if isinstance(y, (tuple, list)) and len(y) else y
                if not isinstance(y, Tensor) or y.dtype == ms.bool or not y.size:
                    continue
                seen += 1
                y[...] = 77
                assert (x.asnumpy() == array).all(), f"{name}({arguments})"
    assert seen > 600


# Writes through views -------------------------------------------------------------------------------


def test_writes_of_the_usual_kinds(mode: str) -> None:
    x = Tensor(R(3, 4))
    x[0][1] += 5
    x[1][2] = 9
    for row in x:
        row[0] = 1
    y = x.T
    y[3] = -1
    x.view(12)[5] = 7
    x.reshape(2, 6)[1, 1] = 8
    x.split(1)[2][0, 2] = 6
    x.expand_dims(0)[0, 0, 2] = 5
    expected = np.array([[1, 7, 5, -1], [1, 7, 9, 8], [1, 10, 6, -1]], np.float32)
    assert (x.asnumpy() == expected).all()
    assert (y.asnumpy() == expected.T).all()


def test_a_view_of_a_parameter(mode: str) -> None:
    p = Parameter(Tensor(R(2, 3)), name="p")
    y, first = p.T, p[0]

    def f(z: Tensor) -> Tensor:
        y[0] = z * 3.0
        return (first * first * p[1]).sum()

    value, slope = ms.value_and_grad(f)(Tensor(2.0))
    expected = R(2, 3)
    expected[:, 0] = 6.0
    assert float(value) == (expected[0] ** 2 * expected[1]).sum()
    assert float(slope) == 3 * 3 * 6.0**2
    assert (p.asnumpy() == expected).all()
    assert (y.asnumpy() == expected.T).all()
    p.set_data(Tensor(R(2, 3)))
    assert (first.asnumpy() == R(2, 3)[0]).all()
    ops.assign(p, Tensor(2 * R(2, 3)))
    assert (first.asnumpy() == 2 * R(2, 3)[0]).all()


def test_a_compiled_function_reads_a_view_of_a_parameter() -> None:
    p = Parameter(Tensor(R(2, 3)), name="p")
    y = p[1]
    f = ms.jit(lambda x: (x * y).sum())
    one = Tensor(np.ones(3, np.float32))
    assert float(f(one)) == 15
    p[1, 0] = 10.0
    assert float(f(one)) == 21


def test_a_compiled_function_sees_writes_to_the_base_of_a_captured_view() -> None:
    x = Tensor(R(2, 3))
    y = x[1]
    f = ms.jit(lambda z: (z * y).sum())
    one = Tensor(np.ones(3, np.float32))
    assert float(f(one)) == float(f(one)) == 15
    x[1, 0] = 10.0
    assert float(f(one)) == 21


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value")
def test_a_compiled_function_that_writes_to_a_captured_tensor() -> None:
    c = Tensor(R(3))

    @ms.jit
    def f(x: Tensor) -> Tensor:
        c[0] = x[0]
        return c

    for k in (5.0, 6.0, 7.0):
        out = f(Tensor([k]))
        assert c.asnumpy()[0] == out.asnumpy()[0] == k
    out[1] = 77.0
    assert c.asnumpy()[1] == 2


def test_a_function_that_fails_has_changed_nothing() -> None:
    c, p = Tensor(R(3)), Parameter(Tensor(R(3)), name="p")
    part = p[1:]

    def f(x: Tensor) -> Tensor:
        c[0] = x
        part[0] = x
        raise RuntimeError("no")

    for run in (ms.grad(f), ms.jit(f)):
        with pytest.raises(RuntimeError, match="no"):
            run(Tensor(5.0))
        assert (c.asnumpy() == R(3)).all()
        assert (p.asnumpy() == R(3)).all()
        assert (part.asnumpy() == R(3)[1:]).all()


def test_arguments_and_results_go_by_value(mode: str) -> None:
    def f(x: Tensor) -> tuple[Tensor, Tensor]:
        x[0] = 5.0
        return x, x[:2]

    for run in (ms.jit(f), lambda x: ms.jvp(f, x, ops.ones_like(x))[0]):
        x = Tensor(R(3))
        for _ in range(2):
            a, b = run(x)
            b[1] = 9.0
            assert (x.asnumpy() == R(3)).all()
            assert (a.asnumpy() == [5, 2, 3]).all()


def test_copies_in_a_trace(mode: str) -> None:
    for duplicate in (lambda a: a.copy(), copy.copy, copy.deepcopy):

        def f(x: Tensor, duplicate: Any = duplicate) -> Tensor:
            a = x * 1.0
            b = duplicate(a)
            b[0] = 100.0
            return a.sum() + 0.0 * b.sum()

        assert float(ms.jit(f)(Tensor(R(4)))) == 10
        assert (ms.grad(f)(Tensor(R(4))).asnumpy() == 1).all()


def test_the_gradient_goes_through_a_tensor_made_of_a_tensor(mode: str) -> None:
    """MindSpore's gradients of the same functions."""
    x = Tensor(R(3))
    assert (ms.grad(lambda x: (Tensor(x) * x).sum())(x).asnumpy() == [2, 4, 6]).all()
    assert (ms.grad(lambda x: (Tensor(x) ** 2 * x).sum())(x).asnumpy() == [3, 12, 27]).all()
    assert (ms.grad(lambda x: (ms.tensor(x) * x).sum())(x).asnumpy() == [2, 4, 6]).all()
    wide = ms.grad(lambda x: (Tensor(x, ms.float64) * x).sum())(x)
    assert wide.dtype == ms.float32
    assert (wide.asnumpy() == [2, 4, 6]).all()
    p = Parameter(Tensor(R(3)), name="p")
    slope = ms.grad(lambda: (Tensor(p) * p.value() * p).sum(), None, p)()
    assert (slope.asnumpy() == [3, 12, 27]).all()


def test_data_is_a_view_without_derivatives(mode: str) -> None:
    """MindSpore 2.10 prints 3 and [6]; what is written through data has no derivative, its neighbours keep
    theirs."""
    x, p = Tensor([3.0]), Parameter(Tensor([3.0]), name="p")
    assert float(ms.grad(lambda x: (x.data * x).sum())(x)[0]) == 3
    assert float(ms.jit(ms.grad(lambda x: (x.data * x).sum()))(x)[0]) == 3
    assert float(ms.grad(lambda x: (p.data * p * x).sum(), None, [p])(Tensor([2.0]))[0][0]) == 6

    def written(x: Tensor) -> Tensor:
        y = x * 1.0
        y.data[0] = 9.0 * x[1]
        y.data.T[1:2] = x[:1]
        return (y * y * x).sum()

    found = ms.value_and_grad(written)(Tensor([3.0, 2.0, 5.0]))
    np.testing.assert_array_equal(found[0].asnumpy(), 18**2 * 3 + 3**2 * 2 + 5**2 * 5)
    np.testing.assert_array_equal(found[1].asnumpy(), [18**2, 3**2, 3 * 5**2])
    slope = ms.jvp(written, Tensor([3.0, 2.0, 5.0]), Tensor([1.0, 1.0, 1.0]))[1]
    assert float(slope) == 18**2 + 3**2 + 3 * 5**2
    x.data[0], p.data[0] = 9.0, 8.0
    x.data.add_(1.0)
    assert float(x[0]) == 10 and float(p[0]) == 8


def test_a_write_to_a_part_of_an_expanded_tensor() -> None:
    def f(x: Tensor) -> Tensor:
        one = x * 1.0
        wide = one.broadcast_to((4, 6))
        wide[2] = wide[1] * 2.0
        wide[:, 0][1] = 7.0
        wide.reshape(4, 2, 3)[0, 0, 2] = 8.0
        return (one * one).sum()

    x = R(1, 6)
    expected = 2 * x[0]
    expected[[0, 2]] = 7, 8
    assert float(f(Tensor(x))) == float(ms.jit(f)(Tensor(x))) == (expected**2).sum()
    slope = 8 * x
    slope[0, [0, 2]] = 0
    assert (ms.grad(f)(Tensor(x)).asnumpy() == slope).all()
    with pytest.raises(ValueError, match=r"shape \[4, 6\].*test_views.py"):
        ms.grad(lambda x: (x * 1.0).broadcast_to((4, 6)).add_(1.0).sum())(Tensor(x))


def test_numpy_writes_to_one_of_two_that_share() -> None:
    x = Tensor(R(3)) + 1
    y = +x
    array = y.asnumpy()
    array[0] = 50.0
    assert (x.asnumpy() == R(3) + 1).all()
    z = y.copy()
    array[1] = 60.0
    assert z.asnumpy()[1] == 3
    half = x.reshape(3, 1)
    x.asnumpy()[2] = 70.0
    assert half.asnumpy()[2, 0] == 70


# Costs ----------------------------------------------------------------------------------------------


def elements(text: str) -> int:
    """How many elements the nodes of a graph's text have."""
    shapes = re.findall(r" : \w+\[([\d, ]*)\]", text)
    return sum(int(np.prod([int(n) for n in s.split(",") if n], dtype=int)) for s in shapes)


READS: dict[str, Callable[[Tensor], list[Tensor]]] = {
    "index": lambda x: [x[t] for t in range(x.shape[0])],
    "iteration": lambda x: list(x),
    "backwards": lambda x: [x[-t - 1] for t in range(x.shape[0])],
    "columns": lambda x: [x[:, t] for t in range(x.shape[1])],
    "elements": lambda x: [x[t][t % 3] for t in range(x.shape[0])],
    "all elements": lambda x: [x[t, k] for t in range(x.shape[0]) for k in range(3)],
    "windows": lambda x: [x[t : t + 2] for t in range(x.shape[0] - 1)],
    "twice": lambda x: [x[t] for t in range(x.shape[0])] * 2 + [x[t] for t in range(x.shape[0])],
    "every other": lambda x: [x[t] for t in range(0, x.shape[0], 2)],
    "steps": lambda x: [x[t::2] for t in range(2)] + [x[5::-1], x[1:9:3]],
    "split": lambda x: list(x.split(1)),
    "views of views": lambda x: [row for part in x.split(4) for row in part.T],
}


@pytest.mark.parametrize("name", list(READS))
def test_gradients_of_slices_in_a_loop(name: str) -> None:
    """They are right to second order, and their cost is linear in the tensor's size."""
    read = READS[name]
    columns = name == "columns"

    def f(x: Tensor) -> Tensor:
        total: Any = 0.0
        for k, r in enumerate(read(x)):
            total = total + (ops.sin(r) * (0.1 * k + 1.0)).sum()
        return total

    def second(x: Tensor) -> Tensor:
        return (ms.grad(f)(x) * ms.Tensor(weights)).sum()

    cost = {}
    for n in (24, 96):
        x = np.random.default_rng(n).uniform(-1, 1, (3, n) if columns else (n, 3))
        weights = np.cos(np.arange(x.size).reshape(x.shape))
        numbers = np.arange(x.size).reshape(x.shape)
        slope, curve = np.zeros(x.size), np.zeros(x.size)
        for k, r in enumerate(read(Tensor(numbers))):
            at = r.asnumpy().ravel()
            np.add.at(slope, at, (0.1 * k + 1.0) * np.cos(x.ravel()[at]))
            np.add.at(curve, at, -(0.1 * k + 1.0) * np.sin(x.ravel()[at]))
        t = Tensor(x)
        np.testing.assert_allclose(ms.grad(f)(t).asnumpy().ravel(), slope, rtol=1e-12)
        got = ms.grad(second)(t).asnumpy().ravel()
        np.testing.assert_allclose(got, curve * weights.ravel(), rtol=1e-12)
        cost[n] = [elements(ms.graph_text(g, t)) for g in (ms.grad(f), ms.grad(second))]
    for small, large in zip(cost[24], cost[96], strict=True):
        assert large < 4.6 * small


# Random programs ------------------------------------------------------------------------------------


def check_program(seed: int) -> None:
    """A program's value, derivatives and parameter, every way to run it, against NumPy's."""
    program = write_programs.program(seed)
    env = {**globals(), **program.constants}
    exec(program.source, env)
    function = env["program"]
    rng = np.random.default_rng(seed)
    dx, dp = (rng.uniform(-1, 1, (2, *a.shape)) for a in (program.x, program.p))
    out, p_now = program.run_model(dx, dp)
    p = Parameter(Tensor(program.p), name="p")

    def f(x: Tensor) -> Tensor:
        return function(x, p)

    def slopes(x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        return ms.value_and_grad(f, 0, p)(x)

    def curvature(x: Tensor) -> Tensor:
        return ms.jvp(lambda x: (ms.grad(f)(x) * Tensor(dx[0])).sum(), x, Tensor(dx[0]))[1]

    def close(what: str, got: Any, expected: Any) -> None:
        got = got.asnumpy() if isinstance(got, Tensor) else np.asarray(got)
        np.testing.assert_allclose(
            got, expected, rtol=1e-8, atol=1e-9, err_msg=f"{what}, seed {seed}\n{program.source}"
        )

    ways: list[tuple[str, Callable[[], None]]] = []

    def value(run: Any) -> Callable[[], None]:
        return lambda: close("value", run(Tensor(program.x)), out[0, 0])

    def derivative(run: Any) -> Callable[[], None]:
        def check() -> None:
            y, (gx, gp) = run(Tensor(program.x))
            close("value", y, out[0, 0])
            for i in range(2):
                along = (gx.asnumpy() * dx[i]).sum() + (gp.asnumpy() * dp[i]).sum()
                close("derivative", along, out[1, i])

        return check

    compiled, compiled_slopes = ms.jit(f), ms.jit(slopes)
    ways += [("eager", value(f)), ("jit", value(compiled)), ("jit again", value(compiled))]
    ways += [("grad", derivative(slopes)), ("jit of grad", derivative(compiled_slopes))]
    ways += [("jit of grad again", derivative(compiled_slopes))]
    ways += [("GRAPH_MODE", derivative(ms.value_and_grad(f, 0, p)))]
    if seed % 2 == 0:
        along_x, _ = program.run_model(dx, np.zeros_like(dp))
        ways.append(
            ("second", lambda: close("second", curvature(Tensor(program.x)), 2 * along_x[2, 0]))
        )
    for name, check in ways:
        p.set_data(Tensor(program.p))
        ms.set_context(mode=ms.GRAPH_MODE if name == "GRAPH_MODE" else ms.PYNATIVE_MODE)
        try:
            check()
            close("the parameter", p, p_now[0, 0])
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from None
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}: {error}\n{program.source}") from error
        finally:
            ms.set_context(mode=ms.PYNATIVE_MODE)


@pytest.mark.one_in(10)
@pytest.mark.parametrize("chunk", range(10))
def test_random_programs(chunk: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(30 * chunk, 30 * chunk + 30):
            check_program(seed)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(100))
def test_ten_thousand_random_programs(chunk: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for seed in range(1000 + 100 * chunk, 1100 + 100 * chunk):
            check_program(seed)
