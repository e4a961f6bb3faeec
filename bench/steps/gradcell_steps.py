"""gradcell: compiled (GRAPH_MODE and jit), and traced at every call (variant "pynative")."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import inputs
from inputs import Array
from steps import Step, gradcell_transforms, mindspore_api, op_steps

ms = mindspore_api.use("gradcell")


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    if kind == "op":
        return op(params)
    if variant == "bfloat16":
        params = {**params, "dtype": variant}
    pynative = variant == "pynative"
    ms.set_context(mode=ms.PYNATIVE_MODE if pynative else ms.GRAPH_MODE)
    if kind == "laplacian":
        return laplacian_step(params)
    if kind == "tanh_log":
        return tanh_log_step(params)
    if kind in gradcell_transforms.KINDS:
        return gradcell_transforms.build(kind, params)
    return mindspore_api.build(kind, params, compiled=not pynative, wait=None)


def op(params: dict[str, Any]) -> Step:
    ms.set_context(mode=ms.PYNATIVE_MODE)
    names = {"ms": ms, "ops": ms.ops, "nn": ms.nn, "written": written}
    return op_steps.build(params, lambda c: c.gradcell, names, ms.Tensor, gradient, values)


def written(x: Any, write: Callable[[Any], None]) -> Any:
    """A copy of x after the write."""
    t = x.copy()
    write(t)
    return t


def gradient(f: Callable[..., Any], arguments: list[Any], by: list[int]) -> Callable[[], Any]:
    weights = ms.Tensor(op_steps.weights(tuple(f(*arguments).shape)))

    def weighted(weights: Any, *arguments: Any) -> Any:
        return ms.ops.reduce_sum(f(*arguments) * weights)

    derivative = ms.grad(weighted, tuple(k + 1 for k in by))
    return lambda: derivative(weights, *arguments)


def values(result: Any) -> Array:
    array: Array = (result.astype(ms.float32) if result.dtype == ms.bfloat16 else result).asnumpy()
    return array


def laplacian_step(params: dict[str, Any]) -> Step:
    """The mean square Laplacian of a network, with its gradient by the weights if asked for."""
    given = inputs.field(**{k: v for k, v in params.items() if k != "gradient"})
    layers = [(ms.Parameter(ms.Tensor(w)), ms.Parameter(ms.Tensor(b))) for w, b in given.layers]

    def network(x: Any) -> Any:
        for w, b in layers[:-1]:
            x = ms.ops.tanh(x @ w + b)
        w, b = layers[-1]
        return x @ w + b

    def loss(x: Any) -> Any:
        return (ms.laplacian(network)(x) ** 2).mean()

    weights = [p for layer in layers for p in layer]
    whole = ms.value_and_grad(loss, None, weights)
    step = ms.jit(whole if params.get("gradient", True) else ms.laplacian(network))
    x = ms.Tensor(given.points)
    return Step(lambda: step(x), mindspore_api.arrays)


def tanh_log_step(params: dict[str, Any]) -> Step:
    def f(x: Any) -> Any:
        return ms.ops.tanh(x) * ms.ops.log(1 + x * x)

    step = ms.jit(lambda x: ms.ops.derivative(f, x, params["order"])[1])
    x = ms.Tensor(inputs.points_on_line(params["elements"]))
    return Step(lambda: step(x), mindspore_api.arrays)


def planning_seconds(kind: str, params: dict[str, Any]) -> float:
    """What a step takes longer when its plan is not in the cache: best of 15 against best of 15."""
    step = build(kind, params, "pynative")
    assert step is not None
    best = {True: float("inf"), False: float("inf")}
    launches = itertools.count(1 << 21)
    for _ in range(15):
        for planned in (False, True):
            if not planned:
                ms._core.weigh_cuda_plans(
                    launch=next(launches)
                )  # no plan is kept by these settings
            start = time.perf_counter()
            step.call()
            best[planned] = min(best[planned], time.perf_counter() - start)
    return best[False] - best[True]
