"""Gradients by integers, bools, numbers, and tuples, lists and dicts of them; and of functions that return
integers: what MindSpore gives is in golden/integer_gradients.json.

`python tests/python/support/cases/integer_gradient_cases.py` in an environment with MindSpore writes that.
The functions come from a file made of the table, since MindSpore compiles from source.
"""

from __future__ import annotations

import atexit
import importlib
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

GOLDEN = Path(__file__).parents[2] / "golden" / "integer_gradients.json"

#: What the letters in a case stand for.
VALUES: dict[str, Any] = {
    "i": np.array([1, 2, 3], np.int32),
    "j": np.array([4, -2, 1], np.int32),
    "l": np.array([2**40, -3, 5], np.int64),
    "u": np.array([20, 3, 0], np.uint8),
    "h": np.array([7, -8, 9], np.int16),
    "b": np.array([True, False, True]),
    "x": np.array([0.5, 1.5, 2.5], np.float32),
    "y": np.array([[1.5, 2.0, -0.5], [0.25, 3.0, 1.0]], np.float32),
    "m": np.array([[1, 2, 3], [4, 5, 6]], np.int32),
    "k": np.array([0, 2], np.int32),
    "p": np.array([[0], [1]], np.int32),
    "v": np.array([1.0, 2.0], np.float32),
    "2": 2, "3": 3, "2.0": 2.0, "0.5": 0.5, "True": True, "-4": -4,
}  # fmt: skip

#: By name: the function's body, of arguments a, b, c; its arguments; what it is differentiated by.
CASES: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "square": ("a * a", ("i",), 0),
    "square of int64": ("a * a", ("l",), 0),
    "square of uint8": ("a * a", ("u",), 0),
    "square of int16": ("a * a", ("h",), 0),
    "cube": ("a * a * a", ("i",), 0),
    "power": ("a ** 2", ("i",), 0),
    "product of two": ("a * b", ("i", "j"), (0, 1)),
    "sum of two": ("a + b", ("i", "j"), (0, 1)),
    "difference": ("a - 3 * b", ("i", "j"), (0, 1)),
    "negative": ("-a", ("i",), 0),
    "polynomial": ("2 * a * a * a - 5 * a + 7", ("j",), 0),
    "square op": ("ops.square(a)", ("i",), 0),
    "absolute": ("ops.abs(a)", ("j",), 0),
    "sum": ("a.sum()", ("i",), 0),
    "sum of squares": ("(a * a).sum()", ("l",), 0),
    "sum by axis": ("(a * a).sum(0)", ("m",), 0),
    "cumsum": ("ops.cumsum(a, 0)", ("i",), 0),
    "reshape": ("a.reshape(3, 1)", ("i",), 0),
    "transpose": ("a.T * 2", ("m",), 0),
    "broadcast": ("a * b", ("m", "i"), (0, 1)),
    "concatenation": ("ops.concat((a, b * 2))", ("i", "j"), (0, 1)),
    "stack": ("ops.stack((a, a * b))", ("i", "j"), (0, 1)),
    "slice": ("a[1:] * 3", ("i",), 0),
    "element": ("a[2] * a[0]", ("i",), 0),
    "maximum": ("ops.maximum(a, b)", ("i", "j"), (0, 1)),
    "minimum": ("ops.minimum(a, b)", ("i", "j"), (0, 1)),
    "choice": ("ops.where(b > 0, a, a * a)", ("i", "j"), (0, 1)),
    "floor division": ("a // 2", ("i",), 0),
    "bitwise and": ("ops.bitwise_and(a, b)", ("i", "j"), (0, 1)),
    "greater": ("a > 2", ("i",), 0),
    "equal": ("ops.equal(a, b)", ("i", "j"), (0, 1)),
    "not equal of floats": ("ops.not_equal(a, 1.5)", ("x",), 0),
    "greater of floats": ("a > 1.0", ("x",), 0),
    "less equal of floats": ("ops.less_equal(a, b)", ("x", "x"), (0, 1)),
    "isfinite": ("ops.isfinite(a)", ("x",), 0),
    "argmax of floats": ("ops.argmax(a)", ("x",), 0),
    "logical and": ("ops.logical_and(a, b)", ("b", "b"), (0, 1)),
    "logical not": ("ops.logical_not(a)", ("b",), 0),
    "times floats": ("a * b", ("i", "x"), (0, 1)),
    "plus floats": ("a + b", ("i", "x"), (0, 1)),
    "times a float": ("a * 2.5", ("i",), 0),
    "cast and sine": ("ops.sin(a.astype(ms.float32))", ("i",), 0),
    "cast and product": ("ops.matmul(a.astype(ms.float32), b)", ("i", "x"), (0, 1)),
    "cast and mean": ("(a.astype(ms.float32) * 6).mean()", ("i",), 0),
    "bools times floats": ("a * b", ("b", "x"), (0, 1)),
    "choice by bools": ("ops.where(a, b, -b)", ("b", "x"), (0, 1)),
    "gather": ("ops.gather(a, b, 0)", ("x", "k"), (0, 1)),
    "gather of integers": ("ops.gather(a, b, 0)", ("i", "k"), (0, 1)),
    "scatter": ("ops.tensor_scatter_add(a, b, c)", ("x", "p", "v"), (0, 1, 2)),
    "scatter update": ("ops.tensor_scatter_update(a, b, c)", ("x", "p", "v"), (0, 1, 2)),
    "one hot": ("ops.one_hot(a, 4, ms.Tensor(1.0, ms.float32), ms.Tensor(0.0, ms.float32))", ("i",), 0),
    "no path": ("b * b", ("i", "x"), (0, 1)),
    "constant": ("ops.ones((2,), ms.float32) * 3", ("i",), 0),
    "of two outputs": ("(a * a, b * 2)", ("i", "x"), (0, 1)),
    "number": ("a * b", ("2.0", "x"), 0),
    "integer number": ("a * b", ("3", "x"), 0),
    "bool": ("a * b", ("True", "x"), 0),
    "number, all": ("a * b", ("2.0", "x"), "all"),
    "integers, all": ("a * b", ("i", "x"), "all"),
    "numbers alone, all": ("a * a * b", ("2.0", "3"), "all"),
    "tuple": ("a[0] * a[1]", (("i", "x"),), 0),
    "tuple of integers": ("a[0] * a[1]", (("i", "j"),), 0),
    "tuple of numbers": ("a[0] * a[1] * b", (("2", "0.5"), "x"), 0),
    "list": ("a[0] * a[1]", (["i", "x"],), 0),
    "dict": ("a['u'] * a['w']", ({"u": "i", "w": "x"},), 0),
    "dict of numbers": ("a['u'] * a['w'] * b", ({"u": "2.0", "w": "-4"}, "x"), 0),
    "mutable tuple": ("a[0] * a[1]", (("mutable", ("i", "x")),), 0),
    "mutable tuple of integers": ("a[0] * a[1] * a[1]", (("mutable", ("i", "j")),), 0),
    "mutable list": ("a[0] * a[1]", (("mutable", ["l", "l"]),), 0),
    "mutable dict": ("a['u'] * a['w']", (("mutable", {"u": "i", "w": "x"}),), 0),
    "mutable number": ("a * b", (("mutable", "2.0"), "x"), 0),
    "mutable integer": ("a * b", (("mutable", "3"), "x"), 0),
    "mutable tuple of numbers": ("a[0] * a[1] * b", (("mutable", ("2", "0.5")), "x"), 0),
    "mutable, all": ("a[0] * b", (("mutable", ("i", "x")), "x"), "all"),
    "second order": ("a * a * a", ("i",), "second"),
    "with sens": ("a * a", ("i", "j"), "sens"),
    "value and gradient": ("(a * a).sum()", ("i",), "value"),
    "value and gradient of bools": ("a > 1", ("i",), "value"),
}  # fmt: skip


def made(package: Any, value: Any) -> Any:
    """A case's arguments for a package."""
    if isinstance(value, tuple) and value[0] == "mutable":
        return package.mutable(made(package, value[1]))
    if isinstance(value, (tuple, list)):
        return type(value)(made(package, v) for v in value)
    if isinstance(value, dict):
        return {k: made(package, v) for k, v in value.items()}
    found = VALUES[value]
    return package.Tensor(found) if isinstance(found, np.ndarray) else found


def functions(package: Any) -> dict[str, Any]:
    """The cases' functions and their gradient functions, of a file."""
    lines = [f"import {package.__name__} as ms", f"from {package.__name__} import ops"]
    for n, (body, given, by) in enumerate(CASES.values()):
        names = ", ".join("abc"[: len(given) - (by == "sens")])
        lines += ["", f"def f{n}({names}):", f"    return {body}"]
    folder = tempfile.mkdtemp()  # MindSpore reads it while it compiles
    atexit.register(shutil.rmtree, folder)
    name = f"gradients_of_{package.__name__}"
    (Path(folder) / f"{name}.py").write_text("\n".join(lines) + "\n")
    sys.path.insert(0, folder)
    sys.modules.pop(name, None)
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    return {name: getattr(module, f"f{n}") for n, name in enumerate(CASES)}


def result(package: Any, name: str, fn: Any) -> Any:
    """What a case gives: nested lists of [dtype, values], or ["error", ...]."""
    _, given, by = CASES[name]
    arguments = made(package, given)
    if by == "all":
        gradient = package.ops.GradOperation(get_all=True)(fn)
    elif by == "sens":
        gradient = package.ops.GradOperation(sens_param=True)(fn)
    elif by == "second":
        gradient = package.grad(package.grad(fn))
    elif by == "value":
        gradient = package.value_and_grad(fn)
    else:
        gradient = package.grad(fn, by)
    return plain(package, gradient(*arguments))


def plain(package: Any, out: Any) -> Any:
    if isinstance(out, package.Tensor):
        return [str(out.dtype), out.asnumpy().tolist()]
    if isinstance(out, (tuple, list)):
        return [type(out).__name__, *(plain(package, v) for v in out)]
    if isinstance(out, dict):
        return ["dict", *([k, plain(package, v)] for k, v in out.items())]
    return ["number", out]


def write() -> None:
    package = importlib.import_module("mindspore")
    stored: dict[str, Any] = {}
    for mode, number in (("graph", 0), ("pynative", 1)):
        package.set_context(mode=number)
        for name, fn in functions(package).items():
            try:
                found = result(package, name, fn)
            except Exception as error:
                found = ["error", type(error).__name__]
            stored.setdefault(name, {})[mode] = found
    lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in stored.items())
    GOLDEN.write_text(f"{{\n{lines}\n}}\n")  # a line for each case


if __name__ == "__main__":
    sys.exit(write())
