"""Arguments of a kind that an op does not take: the error names the op, the argument and the user's line."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor, nn, ops

X = Tensor(np.ones((2, 3), np.float32))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: X.amin(0, {}), TypeError, "ReduceMin: keep_dims must be a bool, got {}"),
        (
            lambda: ms.mint.amin(X, 0, []),
            TypeError,
            r"ReduceMin: keep_dims must be a bool, got \[\]",
        ),
        (
            lambda: ops.argsort(X, 1, X),
            TypeError,
            r"Order: descending must be a bool, got a Tensor",
        ),
        (
            lambda: nn.ReLU()(x=X, input_data=X),
            TypeError,
            r"construct\(\) got the same input twice, as 'x' and as 'input_data': give one",
        ),
        (lambda: ms.numpy.ix_(X), ValueError, r"ix_: vectors are needed, got shapes \[\[2, 3\]\]"),
    ],
)
def test_names_the_argument(call: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=rf"{text}[^(]*\(.*test_wrong_arguments\.py:\d+\)"):
        call()


def test_diag_of_a_large_matrix_says_what_takes_the_diagonal() -> None:
    text = r"diag: of shape \[3000, 3000\].*ops\.diagonal\(x\) takes the diagonal"
    with pytest.raises(MemoryError, match=text):
        ops.diag(ms.numpy.zeros((3000, 3000), ms.bool))


def f(x: Any) -> Any:
    return x * x


F64 = Tensor(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("jvp", lambda v: ms.jvp(f, X, v)),
        ("vjp", lambda v: ms.vjp(f, X)[1](v)),
        ("gradients", lambda v: watched(v)),
        ("sens", lambda v: ms.grad(f, sens_param=True)(X, v)),
        ("gauss_newton_product", lambda v: ms.gauss_newton_product(f, grad_position=0)(X, v)),
    ],
)
def test_directions_and_cotangents_fit(name: str, call: Callable[[Any], Any]) -> None:
    """Of another shape, dtype or structure they are refused by the name of what they were given to."""
    call(X)
    wrong: list[Any] = [
        Tensor(np.ones(3, np.float32)),
        Tensor(np.ones((3, 2), np.float32)),
        Tensor(np.ones((2, 1), np.float32)),
        Tensor(np.ones((1, 2, 3), np.float32)),
        (X, X),
        [],
        {"a": X, "b": X},
    ]
    if name != "gradients":
        wrong.append(F64)
    if name in ("jvp", "vjp", "gauss_newton_product"):
        wrong += [Tensor(np.float32(1)), Tensor(np.ones(1, np.float32)), "text", None]
    for v in wrong:
        with pytest.raises(
            (ValueError, TypeError), match=rf"{name}.*test_wrong_arguments\.py:\d+\)"
        ):
            call(v)


def watched(v: Any) -> Any:
    with ms.watch(X) as x:
        return ms.gradients(f(x), x, v)


class Thing:
    """What no function takes."""


def public() -> Iterator[tuple[str, Any]]:
    for name, space in {"ops": ops, "nn": nn, "mint": ms.mint, "numpy": ms.numpy}.items():
        for attribute in space.__all__ if hasattr(space, "__all__") else dir(space):
            found = getattr(space, attribute)
            if callable(found) and not attribute.startswith("_"):
                yield f"{name}.{attribute}", found


def required(function: Any) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return 1
    return sum(p.default is p.empty and p.kind in (0, 1) for p in parameters) or 1


def letters(text: str) -> str:
    return re.sub("[^a-z0-9]", "", text.lower())


@pytest.mark.filterwarnings("ignore")
def test_every_function_s_errors_name_it() -> None:
    """With an object in the place of each argument. Python's own TypeErrors (of `scalar_add`, say) have no
    line of the user's and are none of these."""
    named, wrong = 0, []
    for name, function in public():
        try:
            function(*(Thing() for _ in range(required(function))))
        except Exception as error:
            text = str(error)
            if not re.search(r"\.py:\d+\)$", text):
                continue
            names = {name.partition(".")[2], getattr(function, "__name__", "")} - {""}
            if any(letters(n) in letters(text) for n in names):
                named += 1
            else:
                wrong.append(f"{name}: {text}")
    assert named > 1000
    assert not wrong
