"""Building blocks of second-order optimisers: products with Gauss-Newton and Fisher matrices, and the
gradients of single samples. No matrix is ever made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import arguments, tree
from gradcell.base.errors import bad_type, bad_value
from gradcell.compilation.compiled import function_name, run
from gradcell.derivatives.batching import vmap
from gradcell.derivatives.checks import (
    alias_of,
    check_argument,
    check_outputs,
    check_positions,
    check_weights,
)
from gradcell.derivatives.transform import grad

__all__ = ["fisher_product", "gauss_newton_product", "per_sample_gradients"]


def gauss_newton_product(
    fn: Callable[..., Any],
    grad_position: Any = None,
    weights: Any = None,
    loss: Callable[..., Tensor] | None = None,
) -> Callable[..., Any]:
    """A function of (fn's arguments, v) that gives the generalised Gauss-Newton matrix times v.

    That matrix is J^T H J, with J the Jacobian of fn's outputs by an argument (grad_position) or by
    Parameters (weights), and H the Hessian of the convex function `loss` of those outputs; without loss
    it is half the sum of their squares, and H the identity (least squares). It is the Hessian of
    loss(fn(...)) without the curvature of fn, and positive semi-definite. One pass forward and one back
    (N. N. Schraudolph, Neural Computation 14, 2002, section 3).

    v is what the gradient would be: a tensor for one position or Parameter, else a tuple; so is the
    result. Raises ValueError unless exactly one of grad_position and weights is given, or if v has
    other shapes; TypeError for arguments or outputs that cannot be differentiated.
    """
    arguments.function(fn, "gauss_newton_product")
    if (grad_position is None) == (weights is None):
        bad_value("gauss_newton_product: one of grad_position and weights must be given")
    positions = () if grad_position is None else check_positions(grad_position)
    parameters = [] if weights is None else check_weights(weights)
    single = isinstance(grad_position, int) or isinstance(weights, Tensor)

    def product(*args: Any) -> Any:
        if not args:
            bad_type("gauss_newton_product: the last argument is the vector, but there is none")
        for p in positions:
            check_argument(function_name(fn), args[:-1], p)
        return run(record, args, {}, None)

    def record(*args: Any) -> Any:
        given, vectors = list(args[:-1]), tree.leaves(args[-1])
        wrt: list[Tensor] = []
        try:
            for p in positions:
                given[p] = alias_of(function_name(fn), given, p)
                wrt.append(_core.record(given[p]))
            wrt += [_core.push_alias(p) for p in parameters]
            _check_vectors(vectors, wrt)
            outputs = tree.leaves(fn(*given))
            check_outputs(function_name(fn), outputs)
            moved = _core.tangent(outputs, wrt, vectors)
            if loss is not None:
                moved = _curvature(loss, outputs, moved)
            found = _core.adjoint(outputs, moved, wrt)
        finally:
            _core.dissolve(wrt)
        return found[0] if single else tuple(found)

    return product


def _check_vectors(vectors: list[Tensor], wrt: list[Tensor]) -> None:
    got = [(list(v.shape), v.dtype) for v in vectors]
    wanted = [(list(x.shape), x.dtype) for x in wrt]
    if got != wanted:
        bad_value(
            "gauss_newton_product: the vector must have the shapes and dtypes of the argument or "
            f"Parameters, {[s for s, _ in wanted]}, but got {[s for s, _ in got]}"
        )


def _curvature(loss: Callable[..., Tensor], outputs: list[Tensor], v: list[Tensor]) -> list[Tensor]:
    """The Hessian of loss at the outputs, times v."""
    points = [_core.alias(y) for y in outputs]
    try:
        value = loss(*[_core.record(p) for p in points])
        if not isinstance(value, Tensor) or value.size != 1:
            bad_type(
                "gauss_newton_product: loss must give one number of the outputs, got "
                f"{list(value.shape) if isinstance(value, Tensor) else type(value).__name__}"
            )
        slope = _core.adjoint([value], [None], points)
        return _core.tangent(slope, points, v)
    finally:
        _core.dissolve(points)


def fisher_product(
    log_likelihoods: Callable[..., Tensor], grad_position: Any = None, weights: Any = None
) -> Callable[..., Any]:
    """A function of (arguments, v) that gives the empirical Fisher matrix times v: the mean over samples
    of g g^T v, with g the gradient of the sample's log-likelihood.

    log_likelihoods gives one number for each sample, of shape [N] or [N, 1]. The Fisher matrix under the
    model's own distribution is, for the usual ones, a Gauss-Newton matrix: gauss_newton_product with the
    cross entropy as loss. Arguments, v and errors as there.

    log_likelihoods: a function of tensors, or a Cell.
    """
    arguments.function(log_likelihoods, "fisher_product")

    def record(*args: Any) -> Any:
        count = 1

        def counted(*given: Any) -> Tensor:
            nonlocal count
            out = log_likelihoods(*given)
            count = out.size
            return out

        summed = gauss_newton_product(counted, grad_position, weights)(*args)
        return tree.map_leaves(lambda t: t / count, summed)

    def product(*args: Any) -> Any:
        return run(record, args, {}, None)

    return product


def per_sample_gradients(
    fn: Callable[..., Any], weights: Any, in_axes: Any = 0
) -> Callable[..., Any]:
    """A function of batches that gives the gradients of fn by Parameters for each sample: of shape
    [N, ...] where a Parameter is [...].

    fn: the loss of one sample, or of a sample and others' arguments. in_axes: as in vmap. The result is a
    tensor for one Parameter, else a tuple. It is vmap(grad(fn, None, weights)), one pass for all samples.
    """
    return vmap(grad(fn, None, weights), in_axes)
