"""Choices by tensors: cond, and which of two results counts where the answer differs by the example."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from gradcell import _core
from gradcell._core import Tensor, ops as _ops
from gradcell.base import arguments, bad_value, tree, with_tensors
from gradcell.ops.elements.complex_numbers import real_valued
from gradcell.ops.matrices.factorisations import inverse, svd
from gradcell.ops.matrices.norms import norm

__all__ = ["cond"]


R = TypeVar("R")


@overload
def cond(
    A: Tensor | bool, p: Callable[..., R], false_fun: Callable[..., R], *operands: Any
) -> R: ...
@overload
def cond(A: Tensor, p: float | str | None = None) -> Tensor: ...
def cond(A: Any, p: Any = None, false_fun: Any = None, *operands: Any) -> Any:
    """true_fun(*operands) where a condition holds, else false_fun(*operands): cond(pred, true_fun, false_fun,
    *operands).

    pred: a bool, or a tensor of one element. true_fun: a function of the operands that returns a tree of
    tensors; numbers become tensors. false_fun: one that returns a tree of the same structure, shapes and
    dtypes. operands: trees of tensors.

    Only the function that is chosen runs. Under jit its way is compiled once, as that of an `if` is. Where
    the condition differs from example to example (in vmap) or from step to step (in loops) both are recorded,
    and the results and derivatives are those of the one that holds there. Such functions cannot assign
    Parameters.

    cond(A, p) is MindSpore's condition number of matrices: the norm times that of the inverse. A: a tensor
    [..., n, n]. p: the order of the norm, as norm takes it; None for 2, the largest over the smallest
    singular value; infinite for zeros. The result is real.

    Raises TypeError if only one of the two is a function, ValueError for a condition of several elements and
    for results that do not fit.
    """
    if not (callable(p) or callable(false_fun)):
        return _condition_number(A, p)
    for name, fun in (("true_fun", p), ("false_fun", false_fun)):
        arguments.function(fun, "cond", name)
    operands = with_tensors(operands)
    if isinstance(A, Tensor) and not has_value(A):
        return chosen("cond", A, p, false_fun, operands)
    return as_tensors((p if A else false_fun)(*operands))


@real_valued
def _condition_number(A: Tensor, p: Any) -> Tensor:
    if p not in (None, 2, -2):
        return norm(A, p, (-2, -1)) * norm(inverse(A), p, (-2, -1))
    values = real_valued(svd)(A, compute_uv=False)
    first, last = values[..., 0], values[..., -1]
    of_zeros = _ops.equal(first, 0)
    above, below = (last, first) if p == -2 else (first, last)
    return _ops.where(of_zeros, float("inf"), above / _ops.where(of_zeros, 1, below))


def has_value(x: Tensor) -> bool:
    """Return whether a tensor has one value where it is asked for now."""
    return not _core.in_trace() or _core.has_value(x)


def as_tensors(value: Any) -> Any:
    """A tree of tensors and numbers as one of tensors."""
    return tree.map_all(lambda v: v if v is None or isinstance(v, Tensor) else Tensor(v), value)


def chosen(
    name: str,
    pred: Tensor,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    operands: tuple[Any, ...],
) -> Any:
    """The results of both functions, each where it counts. Elsewhere no derivative passes through it, since
    that may be infinite there."""
    if pred.size != 1:
        bad_value(
            f"For '{name}', the condition must have one element, but its shape is {list(pred.shape)}"
        )
    holds = _ops.reshape(_ops.not_equal(pred, 0), [])
    before = _core.assigned_nodes()

    def side(fun: Callable[..., Any], here: Tensor) -> Any:
        def given(t: Tensor) -> Tensor:
            return _ops.where(here, t, _ops.stop_gradient(t))

        return as_tensors(fun(*tree.map_leaves(given, operands)))

    yes, no = side(true_fun, holds), side(false_fun, _ops.logical_not(holds))
    if _core.assigned_nodes() != before:
        bad_value(
            f"{name}: both functions are recorded where the condition differs from example to example: they "
            "cannot assign Parameters or draw random numbers. Return the values"
        )
    others = iter(tree.matched(f"For '{name}', the results", no, yes))

    def one(t: Tensor) -> Tensor:
        other = next(others)
        if not isinstance(other, Tensor) or (t.shape, t.dtype) != (other.shape, other.dtype):
            what = (
                f"{other.dtype}{list(other.shape)}"
                if isinstance(other, Tensor)
                else type(other).__name__
            )
            bad_value(
                f"For '{name}', both functions must return tensors of one shape and dtype, but got "
                f"{t.dtype}{list(t.shape)} and {what}"
            )
        return _ops.where(holds, t, other)

    return tree.map_leaves(one, yes)
