"""The libraries in one vocabulary, so that a program is written once.

A Library has the functions of its module of arrays under their own names (tanh, einsum, stack: all three
libraries have them with the same positional arguments), and those that the libraries spell differently under
the names in `gradcell`, `jax` and `torch` below. `build` makes a step of a program.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from field import PROGRAMS, drawn
from inputs import Array
from steps import Step

Function = Callable[..., Any]


class Library:
    """arrays: the module that has what is not among the others; tensor: makes an array of a NumPy one."""

    def __init__(self, arrays: ModuleType, tensor: Function, **others: Function) -> None:
        self.arrays, self.tensor = arrays, tensor
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.arrays, name)


def build(framework: str, params: dict[str, Any], variant: str) -> Step:
    """params: the program's name, whether with its gradient, and the dtype."""
    step: Step = {"gradcell": gradcell, "jax": jax, "torch": torch}[framework](variant, **params)
    return step


def gradcell_library() -> Library:
    import gradcell as gc
    from gradcell import ops

    return Library(
        ops, gc.Tensor, solve=ops.matrix_solve, segment_sum=ops.unsorted_segment_sum,
        solve_triangular=lambda a, b: gc.scipy.linalg.solve_triangular(a, b, lower=True),
        grad=gc.grad, jacfwd=gc.jacfwd, vjp=gc.vjp, vmap=gc.vmap, laplacian=gc.laplacian,
        custom_vjp=gc.custom_vjp,
    )  # fmt: skip


def gradcell(variant: str, program: str, gradient: bool, dtype: str) -> Step:
    import gradcell as gc

    f, arrays = drawn(program, gradcell_library(), dtype)
    step = gc.jit(gc.value_and_grad(f, PROGRAMS[program].wrt) if gradient else f)
    inputs = [gc.Tensor(a) for a in arrays]
    return Step(lambda: step(*inputs), lambda r: [leaf.asnumpy() for leaf in gc.tree.leaves(r)])


def jax(variant: str, program: str, gradient: bool, dtype: str) -> Step:
    import jax
    import jax.numpy as jnp

    def laplacian(f: Function) -> Function:
        import folx

        return lambda x: folx.forward_laplacian(f, 0)(x).laplacian

    lib = Library(
        jnp, jnp.asarray, solve=jnp.linalg.solve, segment_sum=jax.ops.segment_sum,
        solve_triangular=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
        concat=jnp.concatenate, inverse=jnp.linalg.inv, cholesky=jnp.linalg.cholesky,
        slogdet=jnp.linalg.slogdet,
        logsumexp=jax.scipy.special.logsumexp, sigmoid=jax.nn.sigmoid, softplus=jax.nn.softplus,
        rfft=jnp.fft.rfft, irfft=jnp.fft.irfft, scan=jax.lax.scan,
        stop_gradient=jax.lax.stop_gradient,
        grad=jax.grad, jacfwd=jax.jacfwd, vjp=jax.vjp, vmap=jax.vmap, custom_vjp=jax.custom_vjp,
        laplacian=laplacian,
    )  # fmt: skip
    with jax.enable_x64(dtype == "float64"):
        f, arrays = drawn(program, lib, dtype)
        step = jax.jit(jax.value_and_grad(f, PROGRAMS[program].wrt) if gradient else f)
        inputs = [jnp.asarray(a) for a in arrays]

    def call() -> Any:
        with jax.enable_x64(dtype == "float64"):
            return jax.block_until_ready(step(*inputs))

    return Step(call, lambda r: [_array(leaf) for leaf in jax.tree.leaves(r)])


def torch(variant: str, program: str, gradient: bool, dtype: str) -> Step:
    """Eager, with autograd; compiled (variant "compile"), with torch.func."""
    import torch
    from torch.utils import _pytree as tree

    importlib.import_module("steps.torch_steps")  # which sets the number of threads
    lib = Library(
        torch, torch.tensor, solve=torch.linalg.solve, segment_sum=_segment_sum,
        solve_triangular=lambda a, b: torch.linalg.solve_triangular(a, b, upper=False),
        inverse=torch.linalg.inv, cholesky=torch.linalg.cholesky, slogdet=torch.linalg.slogdet,
        softplus=torch.nn.functional.softplus, pad=torch.nn.functional.pad,
        rfft=torch.fft.rfft, irfft=torch.fft.irfft, scan=_scan, stop_gradient=torch.Tensor.detach,
        grad=torch.func.grad, jacfwd=torch.func.jacfwd, vjp=torch.func.vjp, vmap=torch.vmap,
        laplacian=_laplacian, custom_vjp=CustomVjp,
    )  # fmt: skip
    f, arrays = drawn(program, lib, dtype)
    wrt = PROGRAMS[program].wrt
    inputs = [torch.from_numpy(a) for a in arrays]
    if variant == "compile":
        whole = torch.func.grad_and_value(f, wrt) if gradient else f
        compiled = torch.compile(whole, dynamic=False)
        call = (lambda: compiled(*inputs)[::-1]) if gradient else (lambda: compiled(*inputs))
    elif gradient:
        wanted = [inputs[k].requires_grad_() for k in wrt]

        def call() -> Any:
            value = f(*inputs)
            return value, torch.autograd.grad(value, wanted)
    else:

        def call() -> Any:
            with torch.no_grad():
                return f(*inputs)

    return Step(call, lambda r: [_array(leaf.detach()) for leaf in tree.tree_leaves(r)])


def _array(leaf: Any) -> Array:
    import numpy as np

    return np.asarray(leaf)


# What PyTorch has under no name --------------------------------------------------------------------


def _scan(f: Function, init: Any, xs: Any = None, length: Any = None, reverse: bool = False) -> Any:
    """A loop in Python, which is what PyTorch's users write."""
    import torch
    from torch.utils import _pytree as tree

    leaves, spec = tree.tree_flatten(xs)
    count = len(leaves[0]) if xs is not None else length
    results = [None] * count
    for i in reversed(range(count)) if reverse else range(count):
        x = None if xs is None else tree.tree_unflatten([leaf[i] for leaf in leaves], spec)
        init, results[i] = f(init, x)
    if not count or results[0] is None:
        return init, None
    return init, tree.tree_map(lambda *ys: torch.stack(ys), *results)


def _segment_sum(x: Any, places: Any, count: int) -> Any:
    return x.new_zeros((count, *x.shape[1:])).index_add(0, places, x)


def _laplacian(f: Function) -> Function:
    """Forward over reverse mode, a direction at a time by vmap."""
    import torch

    def second(x: Any) -> Any:
        def along(e: Any) -> Any:
            return (torch.func.jvp(torch.func.grad(f), (x,), (e,))[1] * e).sum()

        return torch.vmap(along)(torch.eye(len(x), dtype=x.dtype)).sum()

    return second


class CustomVjp:
    """jax.custom_vjp's way of writing an autograd.Function of tensors."""

    def __init__(self, f: Function) -> None:
        self.call = f

    def defvjp(self, forward: Function, backward: Function) -> None:
        import torch

        def of_forward(ctx: Any, *inputs: Any) -> Any:
            out, kept = forward(*inputs)
            ctx.save_for_backward(*kept)
            return out

        methods = {
            "forward": staticmethod(of_forward),
            "backward": staticmethod(lambda ctx, given: backward(ctx.saved_tensors, given)),
        }
        self.call = type("Rule", (torch.autograd.Function,), methods).apply

    def __call__(self, *inputs: Any) -> Any:
        return self.call(*inputs)
