"""What a compiled function prints: at every call, with that call's values, and without a second trace."""

from __future__ import annotations

import builtins
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, context, nn, ops

X = np.arange(3.0)


@pytest.fixture(autouse=True)
def no_second_trace() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
    assert not hasattr(builtins.print, "__code__")  # the interpreter's own again


def printed(f: Callable[..., Any], *args: Any, capsys: Any) -> str:
    f(*args)
    out: str = capsys.readouterr().out
    return out


def test_at_every_call(capsys):
    traces = 0

    @gc.jit
    def f(x):
        nonlocal traces
        traces += 1
        print("x:", x, "and", x * 2, sep="|", end="!\n")
        return ops.sin(x)

    for k in range(3):
        wanted = f"x:|{Tensor(X + k)}|and|{Tensor(2 * (X + k))}!\n"
        assert printed(f, Tensor(X + k), capsys=capsys) == wanted
    assert traces == 1


def test_what_holds_no_tensor_too(capsys):
    f = gc.jit(lambda x: (print("first"), print(x), print("last", 3), x + 1)[-1])
    for _ in range(2):
        assert printed(f, Tensor(X), capsys=capsys) == f"first\n{Tensor(X)}\nlast 3\n"


def test_in_containers(capsys):
    f = gc.jit(lambda x: (print({"y": x * 2, "k": 1}, [x, "a"]), x)[1])
    for k in range(2):
        x = Tensor(X + k)
        assert printed(f, x, capsys=capsys) == f"{ {'y': x * 2, 'k': 1} } {[x, 'a']}\n"


@pytest.mark.parametrize(
    "transform",
    [gc.grad, gc.value_and_grad, gc.hessian, gc.laplacian, lambda f: lambda x: gc.recompute(f, x)],
)
def test_inside_a_transform(transform, capsys):
    def f(x):
        print("in", x)
        return (x**3).sum()

    f = gc.jit(transform(f))
    for k in range(3):
        out = printed(f, Tensor(X + k), capsys=capsys)
        assert out and set(out.splitlines()) == {f"in {Tensor(X + k)}"}


def test_the_value_of_the_moment(capsys):
    """A later assignment in place does not change what was printed before it."""

    def f(x):
        y = x * 1
        print(y)
        y[0] = 7
        print(y)
        return y

    f = gc.jit(f)
    for k in range(2):
        after = X + k
        after[0] = 7
        assert printed(f, Tensor(X + k), capsys=capsys) == f"{Tensor(X + k)}\n{Tensor(after)}\n"


def test_print_op(capsys):
    f = gc.jit(lambda x: (ops.Print()("sum", x.sum()), x)[1])
    for k in range(2):
        assert printed(f, Tensor(X + k), capsys=capsys) == f"sum\n{Tensor((X + k).sum())!r}\n"


def test_in_a_network_in_graph_mode(capsys):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(X), name="w")

        def construct(self, x):
            y = self.w * x
            print(y, self.w)
            return y

    before = context.get_context("mode")
    context.set_context(mode=context.GRAPH_MODE)
    try:
        net = Net()
        for k in range(3):
            out = printed(net, Tensor(X + k), capsys=capsys)
            assert out == f"{Tensor(X * (X + k))} {net.w}\n"
    finally:
        context.set_context(mode=before)


def test_before_an_error(capsys):
    @gc.jit
    def f(x):
        print("seen", x * 2)
        raise KeyError("wrong")

    with pytest.raises(KeyError, match="wrong"):
        f(Tensor(X))
    assert capsys.readouterr().out == f"seen {Tensor(2 * X)}\n"


def test_another_thread_compiles_while_an_error_is_on_its_way(monkeypatch):
    """print is still the recording one then."""
    written, plain = [], builtins.print
    other = threading.Thread(target=gc.jit(lambda x: (print("inner"), x)[1]), args=(Tensor(X),))

    class Terminal:
        def write(self, text: str) -> None:
            written.append(text)
            if len(written) == 1:
                other.start()
                other.join()

        def flush(self) -> None:
            pass

    @gc.jit
    def f(x):
        print("outer")
        raise KeyError("wrong")

    monkeypatch.setattr("sys.stdout", Terminal())
    with pytest.raises(KeyError):
        f(Tensor(X))
    assert builtins.print is plain
    print("after")
    assert [text for text in written if text != "\n"] == ["outer", "inner", "after"]


def test_elsewhere_than_on_the_terminal(capsys, tmp_path):
    with open(tmp_path / "log", "w") as log:
        f = gc.jit(lambda x: (print(x, file=log), x)[1])
        f(Tensor(X)), f(Tensor(X + 1))
    assert (tmp_path / "log").read_text() == f"{Tensor(X)}\n{Tensor(X + 1)}\n"
    assert capsys.readouterr().out == ""


def test_of_another_thread(capsys):
    """Only the thread that traces has its calls recorded."""

    def f(x):
        other = threading.Thread(target=lambda: print("other"))
        other.start()
        other.join()
        print("own", x)
        return x

    f = gc.jit(f)
    assert printed(f, Tensor(X), capsys=capsys) == f"other\nown {Tensor(X)}\n"
    assert printed(f, Tensor(X + 1), capsys=capsys) == f"own {Tensor(X + 1)}\n"


def test_one_example_has_no_value():
    with pytest.raises(ValueError, match="differs from example to example"):
        gc.jit(gc.vmap(lambda x: (print(x), x)[1]))(Tensor(X))


def test_texts_ask_for_the_value(capsys):
    """A text that is made at once needs the value at once: right, and with a warning."""
    f = gc.jit(lambda x: (print(f"<{x}>"), x)[1])
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        assert printed(f, Tensor(X), capsys=capsys) == f"<{Tensor(X)}>\n"
    assert printed(f, Tensor(X + 1), capsys=capsys) == f"<{Tensor(X + 1)}>\n"
