"""has_aux means one thing to all transforms: of (value, more, ...) the first is differentiated, and the rest
comes back as it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops
from gradcell.base import tree

X = np.array([0.3, 0.7, 1.1])
ONES = Tensor(np.ones(3))


def wave(x: Tensor) -> Tensor:
    return ops.sum(ops.sin(x) * x)


def field(x: Tensor) -> Tensor:
    return ops.sin(x) * x


def rows(x: Tensor) -> Tensor:
    return (ops.sin(x) * x).sum(-1, keepdims=True)


def stepped(has_aux: bool, f: Any) -> Any:
    w = Parameter(Tensor(X), name="w")
    step = gc.train_step(lambda: f(w), nn.SGD([w], 0.1), has_aux=has_aux)
    return step() if has_aux else (step(),)


def sampled(has_aux: bool, f: Any) -> Any:
    w = Parameter(Tensor(X), name="w")
    more = {"has_aux": True} if has_aux else {}
    return gc.per_sample_gradients(lambda x: f(w * x), w, **more)(ONES)


#: Each transform: the function that it takes, and what it gives of it, without and with aux: (..., aux).
TRANSFORMS: dict[str, tuple[Any, Callable[[bool, Any], Any]]] = {
    "grad": (wave, lambda a, f: gc.grad(f, has_aux=a)(Tensor(X))),
    "value_and_grad": (wave, lambda a, f: gc.value_and_grad(f, has_aux=a)(Tensor(X))),
    "jvp": (field, lambda a, f: gc.jvp(f, Tensor(X), ONES, has_aux=a)),
    "vjp": (wave, lambda a, f: gc.vjp(f, Tensor(X), has_aux=a)),
    "linearize": (field, lambda a, f: gc.linearize(f, Tensor(X), has_aux=a)),
    "hvp": (wave, lambda a, f: gc.hvp(f, Tensor(X), ONES, has_aux=a)),
    "jacrev": (field, lambda a, f: gc.jacrev(f, has_aux=a)(Tensor(X))),
    "jacfwd": (field, lambda a, f: gc.jacfwd(f, has_aux=a)(Tensor(X))),
    "hessian": (wave, lambda a, f: gc.hessian(f, has_aux=a)(Tensor(X))),
    "laplacian": (rows, lambda a, f: gc.laplacian(f, has_aux=a)(Tensor(X[None]))),
    "biharmonic": (rows, lambda a, f: gc.biharmonic(f, has_aux=a)(Tensor(X[None]))),
    "divergence": (field, lambda a, f: gc.divergence(f, has_aux=a)(Tensor(X[None]))),
    "partials": (rows, lambda a, f: gc.partials(f, [0, (1, 1)], has_aux=a)(Tensor(X[None]))),
    "gauss_newton_product": (
        field,
        lambda a, f: gc.gauss_newton_product(f, 0, has_aux=a)(Tensor(X), ONES),
    ),
    "per_sample_gradients": (wave, sampled),
    "train_step": (wave, stepped),
}
#: Transforms without it, and why.
WITHOUT = {
    "GradOperation": "MindSpore's, with its options",
    "vmap": "all outputs are mapped",
    "jet": "all outputs have series",
    "derivative": "all outputs have derivatives",
    "fisher_product": "the outputs are the samples' log-likelihoods",
    "check_grads": "it compares, and returns nothing",
    "custom_jvp": "it makes a function",
    "custom_vjp": "it makes a function",
    "recompute": "the function itself",
    "get_grad": "it takes gradients",
}
AUX: dict[str, Any] = {
    "one tensor": lambda x: (x + 1,),
    "two": lambda x: (x + 1, ops.sum(x)),
    "a tree": lambda x: ({"a": x * 2, "b": [x, (x, None)]},),
    "no tensors": lambda x: ("word", 3, None),
    "integers": lambda x: (ops.argmax(x), x > 0.5),
}
every = pytest.mark.parametrize("name", TRANSFORMS)


def transforms() -> Iterator[str]:
    for name in gc.__all__:
        value = getattr(gc, name)
        if not (callable(value) and str(value.__module__).startswith("gradcell.derivatives")):
            continue
        first = next(iter(inspect.signature(value).parameters), "")
        if first in ("fn", "fun", "function", "log_likelihoods"):
            yield name


def test_every_transform_is_here() -> None:
    assert {*transforms(), "train_step"} <= set(TRANSFORMS) | set(WITHOUT)
    for name in TRANSFORMS:
        assert "has_aux" in inspect.signature(getattr(gc, name)).parameters, name
    for name in set(WITHOUT) & set(transforms()):
        assert "has_aux" not in inspect.signature(getattr(gc, name)).parameters, name


def flat(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def assert_same(got: Any, wanted: Any) -> None:
    if isinstance(wanted, Tensor):
        np.testing.assert_allclose(got.asnumpy(), wanted.asnumpy(), rtol=1e-12)
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        assert_same(list(got.values()), list(wanted.values()))
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted) and isinstance(got, type(wanted))
        for g, w in zip(got, wanted, strict=True):
            assert_same(g, w)
    elif not callable(wanted):
        assert got == wanted


@pytest.mark.parametrize("kind", AUX)
@pytest.mark.parametrize("listed", [False, True])
@every
def test_the_rest_comes_back_as_it_is(name: str, kind: str, listed: bool) -> None:
    function, made = TRANSFORMS[name]
    at = X if name not in ("laplacian", "biharmonic", "divergence", "partials") else X[None]
    if name == "per_sample_gradients":
        if kind in ("no tensors", "a tree"):
            pytest.skip("vmap maps tensors")
        want_aux = tuple(
            ops.stack([AUX[kind](Tensor(X))[k]] * 3, 0) for k in range(len(AUX[kind](Tensor(X))))
        )
    else:
        want_aux = AUX[kind](Tensor(at))

    def with_aux(x: Tensor) -> Any:
        out = function(x), *AUX[kind](x)
        return [*out] if listed else out

    plain, found = made(False, function), made(True, with_aux)
    if name in ("grad", "per_sample_gradients"):  # MindSpore's grad: always a tuple
        result, aux = found
        assert_same(aux, want_aux)
    elif name == "train_step":
        result, *aux = found
        assert_same(tuple(aux), want_aux)
    elif name == "value_and_grad":
        (value, *aux), slope = found
        result = (value, slope)
        assert_same(tuple(aux), want_aux)
    else:
        *result, aux = found
        assert_same(aux, want_aux[0] if len(want_aux) == 1 else want_aux)
        result = tuple(result) if len(result) > 1 else result[0]
    assert_same(flat(result), flat(plain))
    if name in ("vjp", "linearize"):
        given = Tensor(1.0, gc.float64) if name == "vjp" else ONES
        assert_same(result[1](given), plain[1](given))


@every
def test_what_is_refused(name: str) -> None:
    function, made = TRANSFORMS[name]
    for wrong in (function, lambda x: (function(x),), lambda x: {"value": function(x), "more": x}):
        with pytest.raises(ValueError, match=r"has_aux is True.*more than one"):
            made(True, wrong)
    if name != "per_sample_gradients":
        with pytest.raises(TypeError, match="has_aux"):
            made("yes", function)  # type: ignore[arg-type]


@every
def test_the_rest_has_no_part_in_derivatives(name: str) -> None:
    """Not even where its derivative is not finite."""
    function, made = TRANSFORMS[name]
    found = made(True, lambda x: (function(x), ops.sqrt(x - x)))
    plain = made(False, function)
    got = tree.leaves(found if name != "vjp" else found[1](Tensor(1.0, gc.float64)))
    want = tree.leaves(plain if name != "vjp" else plain[1](Tensor(1.0, gc.float64)))
    assert all(np.isfinite(t.asnumpy()).all() for t in got)
    assert {t.asnumpy().tobytes() for t in want} <= {t.asnumpy().tobytes() for t in got}
