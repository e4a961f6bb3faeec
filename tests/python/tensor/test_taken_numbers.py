"""Numbers taken from tensors that are being differentiated: a program writes functions that take a number in
each way and do something with it in each way, and every one warns, or does not, as it should."""

from __future__ import annotations

import importlib.util
import math
import sys
import warnings
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops
from gradcell.tensors import taken

#: Every way to take a number or an array; x is a tensor of one element.
EXPLICIT = """\
float(x)
int(x)
complex(x).real
x.item()
x.asnumpy()
x.numpy()
x.tolist()
x.__float__()
np.frombuffer(x.get_bytes(), np.float32)[0]
x.asnumpy()[...]
[float(x)][0]
[float(v) for v in [x]][0]
float(x) + 1
-x.item()
abs(float(x))
math.sqrt(float(x))
np.sin(x.asnumpy())
round(float(x), 3)
max(x.item(), 0.5)""".splitlines()
#: Conversions by the way: by functions that want numbers.
IMPLICIT = [
    f"math.{name}(x)"
    for name in sorted(vars(math))
    if name
    in "asinh atan atanh ceil cos cosh degrees erf erfc exp expm1 fabs floor gamma lgamma "
    "log log10 log1p log2 radians sin sinh sqrt tan tanh cbrt exp2".split()
] + [
    "math.atan2(x, 2)",
    "math.pow(x, 3)",
    "math.hypot(x, 1)",
    "cmath.exp(x).real",
    "array.array('d', [x])[0]",
]
#: Arrays that another library makes of a tensor: where those may be lost, that is an error.
ARRAYS = """\
np.asarray(x)
np.array(x)
np.array([x])
np.array([x, 1.0]).sum()
np.float32(x)
np.ascontiguousarray(x)
np.from_dlpack(x)
np.array(x).sum()
x.__array__()
2 * np.asarray(x)
np.exp(x)
np.add.reduce(x)
np.add(x, 1, dtype=np.float64)
np.mean(x)
np.stack([x, x]).sum()
np.linalg.norm(x)
np.nan_to_num(x)
scipy.special.erf(x)
scipy.special.logsumexp(x)
scipy.stats.norm.cdf(x)""".splitlines()
#: What loses it: N is the number.
LOST = [
    "return x * (N)",
    "return (N) + x * 2",
    "return ops.exp(x) * (N)",
    "return -(N) * x",
    "return x * (2 * (N) + 1)",
    "return ops.mul(x, N)",
    "return x.pow(N)",
    "return net(x * (N))",
    "n = N\n    y = x + n\n    return y * x",
    "n = N\n    m = 2 * n\n    print(n)\n    return m * x",
    "y = x + 1\n    y *= N\n    return y",
    "return (gc.Tensor(N) * x).sum()",
    "c = gc.Tensor(N)\n    return (c * x).sum()",
    "w = [N, N]\n    return x * w[0]",
    "if (n := N) > 100:\n        return x\n    return x * n",
]
#: What only says it, keeps it or decides by it.
USED = [
    "print(N)\n    return x * x",
    'print(f"{N}")\n    return x * x',
    'print("%s" % (N))\n    return x * x',
    'print("{}".format(N))\n    return x * x',
    "log.append(N)\n    return x * x",
    "log.append((0, N))\n    return x * x",
    "history['loss'] = N\n    return x * x",
    "holder.value = N\n    return x * x",
    "logging.getLogger('quiet').debug('%s', N)\n    return x * x",
    "if np.all(N) > 3:\n        return x\n    return x * x",
    "if not (N):\n        return x\n    return x * x",
    "assert np.isfinite(N)\n    return x * x",
    "while np.sum(N) > 100:\n        x = x / 2\n    return x * x",
    "n = N\n    print(n, n)\n    log.append(n)\n    return x * x",
    "n = 2 * np.asarray(N) + 1\n    print(f'{n}')\n    return x * x",
    "str(N)\n    return x * x",
    "y = x if np.all(N) > 100 else x * x\n    return y",
    "return [x * x, x][0 if np.all(N) < 1e9 else 1]",
]
#: What nobody can know: only the switch names it.
UNKNOWN = [
    "return x * elsewhere(N)",
    "table = {'a': N}\n    return x * unpacked(**table)",
]
HEADER = """
import array, cmath, logging, math, types
import numpy as np
import scipy.special, scipy.stats
import gradcell as gc
from gradcell import nn, ops
log, history, holder = [], {}, types.SimpleNamespace()
net = nn.ReLU()
def elsewhere(n): return 1.0
def unpacked(a): return 1.0
"""


@pytest.fixture
def written(tmp_path, capsys):
    """Writes functions f0, f1, ... of x with these bodies into a module; gives them."""

    def write(bodies):
        path = tmp_path / "written.py"
        path.write_text(HEADER + "".join(f"def f{i}(x):\n    {b}\n" for i, b in enumerate(bodies)))
        spec = importlib.util.spec_from_file_location("written", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return [getattr(module, f"f{i}") for i in range(len(bodies))]

    taken._places.clear()
    yield write
    taken._places.clear()
    capsys.readouterr()


def said(function, x):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gc.grad(function)(x)
    return [str(w.message) for w in caught if "takes numbers out" in str(w.message)]


X = Tensor(np.float32(0.75))
#: Without columns (Python 3.10) only lines are known, on which other calls may stand.
columns = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows only lines")


@columns
@pytest.mark.one_in(5)
@pytest.mark.parametrize("number", EXPLICIT + IMPLICIT)
def test_what_is_lost_is_said_and_what_is_used_is_not(number, written):
    cases = [use.replace("N", number) for use in LOST + USED]
    for k, (body, f) in enumerate(zip(cases, written(cases), strict=True)):
        gc.set_context(locate_constants=k >= len(LOST))  # even so
        try:
            found = said(f, X)
        finally:
            gc.set_context(locate_constants=False)
        assert bool(found) == (k < len(LOST)), body
        line = f.__code__.co_firstlineno
        for text in found:
            assert line < int(text.rsplit(":", 1)[1][:-1]) <= line + 4 and "written.py:" in text
        assert said(f, X) == []  # once for a place


@columns
@pytest.mark.one_in(4)
@pytest.mark.parametrize("taken_as", ARRAYS)
def test_an_array_is_refused_unless_it_is_known_to_be_used(taken_as, written):
    """In each way of use, those that nobody can know among them; the error names the line."""
    cases = [use.replace("N", taken_as) for use in LOST + UNKNOWN + USED]
    plain = written([f"return {taken_as}"])[0]
    assert isinstance(plain(X), (np.ndarray, np.generic, float))
    for k, (body, f) in enumerate(zip(cases, written(cases), strict=True)):
        if k >= len(LOST + UNKNOWN):
            assert said(f, X) == [], body
            continue
        with pytest.raises(TypeError, match="cannot be differentiated") as raised:
            gc.grad(f)(X)
        line, text = f.__code__.co_firstlineno, str(raised.value)
        assert line < int(text.rsplit(":", 1)[1][:-1]) <= line + 4 and "written.py:" in text, body
        with pytest.raises(TypeError, match="cannot be differentiated"):  # at every call
            gc.grad(f)(X)


@columns
def test_an_array_of_what_is_not_differentiated_is_no_error(written):
    """Outside of transforms, in jit, of other tensors, and where a constant is asked for."""
    (f,) = written(["return x * gc.Tensor(np.asarray(x))"])
    other = Tensor(2.0)
    for y in (
        f(other),
        gc.grad(lambda x: x * f(other))(X),
        gc.grad(lambda x: x * f(ops.stop_gradient(x)))(other),
        gc.grad(lambda x: x * f(other * 1))(X),
    ):
        assert y.asnumpy() == 4.0
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        assert gc.jit(f)(other).asnumpy() == 4.0
    with pytest.raises(TypeError, match="cannot be differentiated"):
        gc.jvp(f, X, X)
    with pytest.raises(TypeError, match="cannot be differentiated"):
        w = Parameter(X, name="w")
        gc.grad(lambda: f(w), None, [w])()


@columns
def test_what_nobody_can_know_the_switch_names(written):
    cases = [use.replace("N", number) for number in EXPLICIT for use in UNKNOWN]
    functions = written(cases)
    for body, f in zip(cases, functions, strict=True):
        assert said(f, X) == [], body
    gc.set_context(locate_constants=True)
    try:
        for body, f in zip(cases, functions, strict=True):
            assert len(said(f, X)) >= 1, body
    finally:
        gc.set_context(locate_constants=False)


@columns
def test_a_conversion_by_the_way_is_said_also_where_the_number_leaves_the_function(written):
    for body, f in zip(IMPLICIT, written([f"return {i}" for i in IMPLICIT]), strict=True):
        assert len(said(lambda x, f=f: x * f(x), X)) == 1, body


def test_where_nothing_is_differentiated_nothing_is_said(written):
    """Outside of transforms, in jit, of other tensors, and where a constant is asked for."""
    (f,) = written(["return x * float(x)"])
    other = Tensor(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(X)
        gc.grad(lambda x: x * f(other))(X)
        gc.grad(lambda x: x * f(ops.stop_gradient(x)))(X)
        gc.grad(lambda x: x * f(other * 2))(X)
    with pytest.warns(RuntimeWarning, match="asked for a tensor's value"):
        gc.jit(f)(X)
    assert len(said(f, X)) == 1


@columns
def test_every_transform_says_it(written):
    def hessian(f, x):
        return gc.hessian(f)(x)

    def watched(f, x):
        with gc.watch(x) as y:
            return gc.gradients(f(y), y)

    def by_weight(f, x):
        w = Parameter(x, name="w")
        return gc.grad(lambda: f(w), None, [w])()

    transforms = {
        "grad": lambda f, x: gc.grad(f)(x),
        "jvp": lambda f, x: gc.jvp(f, x, x),
        "vjp": lambda f, x: gc.vjp(f, x)[1](x),
        "jacrev": lambda f, x: gc.jacrev(f)(x),
        "jacfwd": lambda f, x: gc.jacfwd(f)(x),
        "hessian": hessian,
        "jet": lambda f, x: ops.jet(f, x, Tensor(np.ones(2, np.float32))),
        "watch": watched,
        "a weight": by_weight,
        "grad in jit": lambda f, x: gc.jit(gc.grad(f))(x),
    }
    functions = written(["return x * math.sin(x)"] * len(transforms))
    for (name, transform), f in zip(transforms.items(), functions, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            transform(f, X)
        assert [w for w in caught if str(w.message).startswith("math.sin(x) takes numbers")], name


def test_a_training_loop_that_logs_is_silent(mode):
    net = nn.Dense(3, 1)
    optimiser = nn.SGD(net.trainable_params(), 0.1)
    losses, best = [], math.inf

    def forward(x, y):
        nonlocal best
        loss = ((net(x) - y) ** 2).mean()
        losses.append(loss.item())
        if float(loss) < best:
            best = float(loss)
        print(f"loss {float(loss):.4f}", loss.asnumpy())
        return loss, float(loss)

    step = gc.value_and_grad(forward, None, optimiser.parameters, has_aux=True)
    x, y = Tensor(np.ones((4, 3), np.float32)), Tensor(np.zeros((4, 1), np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*asked for a tensor's value.*")
        for _ in range(3):
            (loss, _), grads = step(x, y)
            optimiser(grads)
            print(loss, loss.item(), float(loss), loss.asnumpy().mean())
    assert len(losses) == 3


def test_without_its_text_a_function_is_silent_but_for_the_switch():
    space: dict[str, Any] = {}
    exec(compile("def f(x): return x * float(x)", "<made>", "exec"), space)
    taken._places.clear()
    assert said(space["f"], X) == []
    gc.set_context(locate_constants=True)
    try:
        assert len(said(space["f"], X)) == 1
    finally:
        gc.set_context(locate_constants=False)
