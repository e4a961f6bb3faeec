"""Building blocks of second-order optimisers: products with Gauss-Newton and Fisher matrices, and the
gradients of single samples. No matrix is ever made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, adjoint, tangent
from gradcell.base import Made, arguments, bad_type, bad_value, door, transform, tree
from gradcell.compilation.compiled import cache_for
from gradcell.derivatives.batching import vmap
from gradcell.derivatives.checks import refuse_in_no_grad
from gradcell.derivatives.differentiating import By, Call, differentiating
from gradcell.derivatives.transform import grad

__all__ = ["fisher_product", "gauss_newton_product", "per_sample_gradients"]


@transform()
def gauss_newton_product(
    fn: Callable[..., Any],
    grad_position: Any = None,
    weights: Any = None,
    loss: Callable[..., Tensor] | None = None,
    has_aux: bool = False,
) -> Callable[..., Any]:
    """A function of (fn's arguments, v) that gives the generalised Gauss-Newton matrix times v.

    That matrix is J^T H J, with J the Jacobian of fn's outputs by an argument (grad_position) or by
    Parameters (weights), and H the Hessian of the convex function `loss` of those outputs; without loss
    it is half the sum of their squares, and H the identity (least squares). It is the Hessian of
    loss(fn(...)) without the curvature of fn, and positive semi-definite. One pass forward and one back
    (N. N. Schraudolph, Neural Computation 14, 2002, section 3).

    v is what the gradient would be: a tensor for one position or Parameter, else a tuple; so is the result.
    has_aux: only fn's first output is differentiated, and the result is (product, second output), or has a
    tuple of several. Raises ValueError unless exactly one of grad_position and weights is given, or if v has
    other shapes; TypeError for arguments or outputs that cannot be differentiated.
    """
    arguments.function(fn, "gauss_newton_product")
    if (grad_position is None) == (weights is None):
        bad_value("gauss_newton_product: one of grad_position and weights must be given")
    by = By("gauss_newton_product", fn, grad_position, weights, has_aux)

    def record(v: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
        vectors = tree.leaves(v)
        with Call(by, args, kwargs) as call:
            _check_vectors(vectors, call.wrt)
            moved = tangent(call.outputs, call.wrt, vectors)
            if loss is not None:
                moved = _curvature(loss, call.outputs, moved)
            return call.with_aux(call.arranged(adjoint(call.outputs, moved, call.wrt)))

    def product(*args: Any, **kwargs: Any) -> Any:
        refuse_in_no_grad()
        if not args:
            bad_type("gauss_newton_product: the last argument is the vector, but there is none")
        given, kwargs = by.placed(args[:-1], kwargs)
        v = door.numbers_too(args[-1], fn)
        return cache_for(fn, (by.name, by.key))(record, v, loss, *given, **kwargs)

    return Made(product)


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
    with differentiating(outputs) as (given, points):
        value = loss(*given)
        if not isinstance(value, Tensor) or value.size != 1:
            bad_type(
                "gauss_newton_product: loss must give one number of the outputs, got "
                f"{list(value.shape) if isinstance(value, Tensor) else type(value).__name__}"
            )
        slope = adjoint([value], [None], points)
        return tangent(slope, points, v)


@transform()
def fisher_product(
    log_likelihoods: Callable[..., Tensor], grad_position: Any = None, weights: Any = None
) -> Callable[..., Any]:
    """A function of (arguments, v) that gives the empirical Fisher matrix times v: the mean over samples
    of g g^T v, with g the gradient of the sample's log-likelihood.

    log_likelihoods gives one number for each sample, of shape [N] or [N, 1]. The Fisher matrix under the
    model's own distribution is, for the usual ones, a Gauss-Newton matrix: gauss_newton_product with the
    cross entropy as loss. Arguments, v and errors as there.

    log_likelihoods: a function of tensors, or a Cell. grad_position: the index, or a tuple of
    indices, of the arguments. weights: Parameters to differentiate with respect to, or None.
    """
    arguments.function(log_likelihoods, "fisher_product")
    key = ("fisher_product", By("fisher_product", log_likelihoods, grad_position, weights).key)

    def record(*args: Any, **kwargs: Any) -> Any:
        count = 1

        @functools.wraps(log_likelihoods, updated=())
        def counted(*given: Any, **named: Any) -> Tensor:
            nonlocal count
            out = log_likelihoods(*given, **named)
            count = out.size if isinstance(out, Tensor) else 1
            return out

        summed = gauss_newton_product(counted, grad_position, weights)(*args, **kwargs)
        return tree.map_leaves(lambda t: t / count, summed)

    def product(*args: Any, **kwargs: Any) -> Any:
        return cache_for(log_likelihoods, key)(record, *args, **kwargs)

    return Made(product)


@transform()
def per_sample_gradients(
    fn: Callable[..., Any], weights: Any, in_axes: Any = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function of batches that gives the gradients of fn by Parameters for each sample: of shape
    [N, ...] where a Parameter is [...].

    fn: the loss of one sample, or of a sample and others' arguments. in_axes: as in vmap. The result is a
    tensor for one Parameter, else a tuple. has_aux: as in grad. It is vmap(grad(fn, None, weights)), one pass
    for all samples.
    """
    return vmap(grad(fn, None, weights, has_aux), in_axes)
