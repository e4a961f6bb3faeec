"""A traceback has the user's lines alone, wherever it is shown; and gradcell's too where they are asked for.

Each case is a program, whose line at fault ends with `# here`.
"""

from __future__ import annotations

import builtins
import json
import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import traceback
from pathlib import Path
from typing import Any

import pytest

import gradcell as gc
from gradcell import ops

PACKAGE = str(Path(gc.__file__).parent)

BEGINNING = """
import numpy as np
import gradcell as gc
from gradcell import mint, nn, ops

x = gc.Tensor(np.linspace(0, 1, 10, dtype=np.float32).reshape(5, 2))
wrong = gc.Tensor(np.zeros((4, 3), np.float32))
w = gc.Parameter(gc.Tensor(np.ones(2, np.float32)), name="w")
net = nn.SequentialCell(nn.Dense(2, 8), nn.Tanh(), nn.Dense(8, 1))

def broken(t):
    return ops.tanh(t) + wrong  # here

def total(t):
    return ops.sum(broken(t))
"""

PROGRAMS = {
    "residual": """
        def residual(t):
            return gc.laplacian(net)(t) - wrong  # here

        def loss(t):
            return ops.mean(residual(t) ** 2)

        gc.jit(gc.value_and_grad(loss, None, net.trainable_params()))(x)
    """,
    "construct": """
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.layer = nn.Dense(2, 3)

            def construct(self, t):
                return self.layer(t) + wrong  # here

        nn.SequentialCell(Net(), nn.ReLU())(x)
    """,
    "grad": "gc.grad(total)(x)",
    "graph mode": """
        gc.set_context(mode=gc.GRAPH_MODE)
        try:
            gc.value_and_grad(total)(x)
        finally:
            gc.set_context(mode=gc.PYNATIVE_MODE)
    """,
    "optimiser": """
        adam = nn.Adam(net.trainable_params())
        adam((wrong,))  # here
    """,
    "training": """
        from gradcell import dataset, train

        class Loss(nn.Cell):
            def construct(self, found, wanted):
                return ops.mean(found - wanted - wrong)  # here

        data = dataset.NumpySlicesDataset((np.ones((6, 2), np.float32), np.ones((6, 1), np.float32)))
        train.Model(net, Loss(), nn.SGD(net.trainable_params())).train(1, data.batch(2))
    """,
    "callback": """
        from gradcell import dataset, train

        class Stops(train.Callback):
            def on_train_step_end(self, context):
                raise KeyError("mine")  # here

        data = dataset.NumpySlicesDataset((np.ones((6, 2), np.float32), np.ones((6, 1), np.float32)))
        model = train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()))
        model.train(1, data.batch(2), callbacks=[Stops()])
    """,
    "map": """
        from gradcell import dataset

        def change(column):
            return column + np.zeros(7)  # here

        data = dataset.NumpySlicesDataset(np.ones((6, 2), np.float32)).map(change)
        next(data.create_tuple_iterator())
    """,
    "map on threads": """
        from gradcell import dataset

        def change(column):
            return column + np.zeros(7)  # here

        data = dataset.NumpySlicesDataset(np.ones((6, 2))).map(change, num_parallel_workers=2)
        list(data.create_tuple_iterator())
    """,
    "map in processes": """
        from gradcell import dataset

        def change(column):
            return (gc.Tensor(column) + wrong).asnumpy()

        data = dataset.NumpySlicesDataset(np.ones((6, 2))).map(
            change, num_parallel_workers=2, python_multiprocessing=True
        )
        list(data.create_tuple_iterator())  # here
    """,
    "generator": """
        from gradcell import dataset

        def rows():
            yield np.ones(2)
            raise OSError("no more")  # here

        list(dataset.GeneratorDataset(rows, ["a"]).create_tuple_iterator())
    """,
    "dtype": "ops.bitwise_and(x, x)  # here",
    "operator": "x + wrong  # here",
    "method": "x.reshape(3, 3)  # here",
    "vmap": "gc.vmap(broken)(x)",
    "jacrev": "gc.jacrev(broken)(x)",
    "hessian": "gc.hessian(total)(x)",
    "partials": "gc.partials(broken, [(0, 0)])(x)",
    "jvp": "gc.jvp(broken, x, x)",
    "direction": "gc.jvp(ops.sin, x, wrong)  # here",
    "vjp": "gc.vjp(ops.sin, x)[1](wrong)  # here",
    "rule": """
        @gc.custom_vjp
        def f(t):
            return ops.sin(t)

        f.defvjp(lambda t: (ops.sin(t), t), lambda t, d: (d + wrong,))  # here
        gc.grad(lambda t: ops.sum(f(t)))(x)
    """,
    "scan": """
        def step(carried, row):
            return carried + ops.concat([row, row, row]), row  # here

        ops.scan(step, gc.Tensor([0.0, 0.0]), x)
    """,
    "while": "ops.WhileLoop()(lambda t: ops.sum(t) < 9, broken, x)  # here",
    "LBFGS": "gc.LBFGS(lambda t: ops.sum(broken(t) * w[0]), [w], x).run(3)",
    "GaussNewton": "gc.GaussNewton(lambda t: broken(t * w), [w]).step(x)",
    "checkpoint": "gc.load_checkpoint('nowhere.ckpt')  # here",
    "layer": "nn.Conv2d(3, 4, kernel=3)  # here",
    "call of a layer": "nn.Dense(3, 4)(x)  # here",
    "mint": "mint.cat([x, wrong], dim=1)  # here",
    "numpy": "gc.numpy.concatenate([x, wrong], axis=1)  # here",
    "keyword": "gc.grad(total, argnums=0)  # here",
    "name": "ops.no_such_op  # here",
    "recursion": """
        def again(t):
            return gc.grad(again)(t)  # here

        again(x)
    """,
    "cause": """
        def f(t):
            try:
                return broken(t)
            except ValueError as error:
                raise KeyError("mine") from error  # here

        gc.jit(f)(x)
    """,
    "context, slots and None": """
        class Mine(Exception):
            __slots__ = ("told",)

        def f(t):
            try:
                return broken(t)
            except ValueError:
                raise Mine from None  # here

        gc.vmap(f)(x)
    """,
}

#: Runs the programs of a folder; prints all frames of each error, and what is shown of it, short and full.
DRIVER = """
import contextlib, io, json, pathlib, sys
import gradcell

def frames(error):
    entry = error.__traceback__
    while entry is not None:
        yield entry.tb_frame.f_code.co_filename, entry.tb_lineno
        entry = entry.tb_next

found = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.py")):
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(path.read_text(), str(path), "exec"), {"__name__": "__main__"})
    except Exception as raised:
        error = raised.with_traceback(raised.__traceback__.tb_next)
        found[path.stem] = [list(frames(error))]
        for full in (False, True):
            gradcell.set_context(full_tracebacks=full)
            with contextlib.redirect_stderr(io.StringIO()) as shown:
                sys.excepthook(type(error), error, error.__traceback__)
            found[path.stem].append(shown.getvalue())
        gradcell.set_context(full_tracebacks=False)
json.dump(found, sys.stdout)
"""


def run(*arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **given})


def written(folder: Path, name: str) -> Path:
    path = folder / f"{name}.py"
    path.write_text(BEGINNING + textwrap.dedent(PROGRAMS[name]))
    return path


def frames(text: str) -> list[tuple[str, int]]:
    """The files and lines that a traceback shows, or several."""
    found = re.findall(r'^ +(?:\| )?File "(.+)", line (\d+)', text, re.MULTILINE)
    return [(file, int(line)) for file, line in found]


def own(shown: list[tuple[str, int]]) -> list[tuple[str, int]]:
    return [frame for frame in shown if frame[0].startswith(PACKAGE)]


def at_fault(path: Path) -> tuple[str, int]:
    lines = path.read_text().splitlines()
    return str(path), max(n for n, line in enumerate(lines, 1) if line.endswith("# here"))


def test_errors_show_the_users_lines(tmp_path: Path) -> None:
    paths = {name: written(tmp_path, name) for name in PROGRAMS}
    done = run("-c", DRIVER, str(tmp_path))
    found = json.loads(done.stdout)
    assert set(found) == set(PROGRAMS), done.stderr
    for name, (every, short, full) in found.items():
        shown = [frame for frame in frames(short) if "/concurrent/futures/" not in frame[0]]
        assert {file for file, _ in shown} == {str(paths[name])}, short
        assert shown[-1] == at_fault(paths[name]), short
        if "repeated" not in full:
            assert frames(full)[-len(every) :] == [tuple(frame) for frame in every], full
    assert sum(bool(own(frames(full))) for _, _, full in found.values()) > 20


def test_a_script_of_gradcell_run(tmp_path: Path) -> None:
    path = written(tmp_path, "construct")
    for full in ("0", "1"):
        done = run("-m", "gradcell", "run", str(path), GRADCELL_FULL_TRACEBACKS=full)
        shown = frames(done.stderr)
        assert bool(own(shown)) == (full == "1") and shown[-1] == at_fault(path)
        assert full == "1" or {file for file, _ in shown} == {str(path)}


@pytest.mark.one_in(2)
def test_a_demo_that_is_interrupted() -> None:
    options = ["demo", "burgers", "--points=20", "--steps=100000"]
    command = [sys.executable, "-um", "gradcell", *options]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    try:
        demo = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGINT, before)
    with demo:
        assert demo.stdout is not None and demo.stderr is not None
        next(line for line in demo.stdout if line.startswith("step"))
        demo.send_signal(signal.SIGINT)
        assert demo.stderr.read() == "KeyboardInterrupt\n"


def a_fault() -> None:
    gc.jit(lambda x: ops.ones((2,)) + ops.ones((3,)))(gc.Tensor(1.0))


@pytest.fixture
def short() -> Any:
    gc.set_context(full_tracebacks=False)
    yield
    gc.set_context(full_tracebacks=True)


@pytest.mark.usefixtures("short")
def test_what_the_standard_library_formats(caplog: pytest.LogCaptureFixture) -> None:
    try:
        a_fault()
    except ValueError as error:
        logging.getLogger("gradcell.test").exception("it failed")
        texts = [caplog.text, traceback.format_exc()]
        gc.set_context(full_tracebacks=True)
        whole = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        gc.set_context(full_tracebacks=False)
        texts.append("".join(traceback.format_exception(type(error), error, error.__traceback__)))
    for text in texts:
        assert len(frames(text)) == text.count(f'File "{__file__}"') == 3, text
    assert own(frames(whole)) and whole.count(f'File "{__file__}"') == 3


@pytest.mark.usefixtures("short")
def test_errors_that_gradcell_caught_and_groups() -> None:
    group = getattr(builtins, "ExceptionGroup", None)

    def caught() -> Exception:
        try:
            a_fault()
        except ValueError as error:
            return error
        raise AssertionError

    error: BaseException = KeyError("outer")
    error.__cause__ = caught()
    error.__cause__.__context__ = caught()
    if group is not None:
        error.__cause__.__context__ = group("two", [caught(), caught()])
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    assert PACKAGE not in text
    assert text.count("do not broadcast") == (2 if group is None else 3)


def test_threads_and_debuggers(tmp_path: Path) -> None:
    path = tmp_path / "threads.py"
    path.write_text(
        BEGINNING
        + textwrap.dedent("""
            import pdb, sys, threading
            thread = threading.Thread(target=gc.grad(total), args=(x,))
            thread.start()
            thread.join()
            before = sys.excepthook
            def hook(*given):
                before(*given)
                pdb.Pdb.interaction = lambda self, frame, trace: print(
                    self.get_stack(frame, getattr(trace, '__traceback__', trace))[0][-1])
                sys.last_traceback = given[2]
                sys.last_exc = given[1]
                pdb.pm()
            sys.excepthook = hook
            gc.grad(total)(x)
        """)
    )
    done = run(str(path))
    assert not own(frames(done.stderr)) and done.stderr.count(str(path)) >= 4, done.stderr
    assert str(path) in done.stdout and "in broken" not in done.stdout
    assert re.search(rf"'{path}', line {at_fault(path)[1]}, code broken", done.stdout), done.stdout


@pytest.mark.one_in(2)
def test_pytest_of_users(tmp_path: Path) -> None:
    test = tmp_path / "test_mine.py"
    test.write_text(f"{BEGINNING}\ndef test_it():\n    gc.grad(total)(x)\n")
    command = ["-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, str(test)]
    text = run(*command, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1").stdout
    assert "1 failed" in text and "+ wrong  # here" in text and PACKAGE not in text, text


def test_notebooks(tmp_path: Path) -> None:
    pytest.importorskip("IPython")
    path = written(tmp_path, "grad")
    code = """
import sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance(colors="NoColor")
shell.run_cell(open(sys.argv[1]).read())
shell.run_cell("gc.set_context(full_tracebacks=True)")
shell.run_cell("%tb")
"""
    short, full = run("-c", code, str(path)).stdout.split("Traceback (most recent call last)")[1:]
    assert "+ wrong" in short and "+ wrong" in full
    assert PACKAGE not in short and short.count("\nCell In") == 3 and PACKAGE in full


def test_the_switch() -> None:
    before = gc.get_context("full_tracebacks")
    with pytest.raises(TypeError, match="full_tracebacks must be a bool"):
        gc.set_context(full_tracebacks=1)
    assert gc.get_context("full_tracebacks") is before
