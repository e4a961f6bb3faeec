"""train_step: loss, gradients, loss scaling and the optimiser's update as one compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell._core import Tensor, ops as _ops, same_node
from gradcell.amp.loss_scale import LossScaler, all_finite
from gradcell.base import Made, arguments, bad_type, bad_value, door, kind_of, transform, tree
from gradcell.communication.sharing import _shares_data
from gradcell.communication.start import same_parameters
from gradcell.compilation.compiled import jit
from gradcell.derivatives.checks import aux_of
from gradcell.derivatives.transform import value_and_grad
from gradcell.nn.cell import Cell
from gradcell.nn.optim import FunctionalOptimizer
from gradcell.nn.optim.optimizer import half_to_float
from gradcell.nn.wrap.grad_reducer import DistributedGradReducer
from gradcell.nn.wrap.loss_scale import overflow_anywhere, unless


def _checked(out: Any, has_aux: bool) -> Tensor:
    """The loss of what the function returned."""
    value = aux_of(out)[0] if has_aux else out
    if isinstance(value, tuple) and not has_aux:
        bad_type(
            f"train_step: the loss function returned a tuple of {len(value)}; with has_aux=True the first "
            "of them is the loss"
        )
    if not isinstance(value, Tensor) or not value.dtype.is_floating or value.dtype.is_complex:
        got = value.dtype if isinstance(value, Tensor) else kind_of(value)
        bad_type(f"train_step: the loss must be a real Tensor, got {got}")
    if value.size != 1:
        bad_value(
            f"train_step: the loss has shape {list(value.shape)}: return one number, such as its mean()"
        )
    return value


def _take_arrays(compiled: Any, weights: Any) -> None:
    """Has arrays in the arguments take the dtype of the parameters."""
    compiled._weights = Cell(auto_prefix=False)
    compiled._weights.parameters = weights
    door.of(compiled, compiled._weights)


def _reduction(optimizer: Any) -> Callable[[tuple[Tensor, ...]], tuple[Tensor, ...]]:
    """Return what puts the gradients of all processes together."""
    if not _shares_data():
        return lambda grads: grads
    if isinstance(optimizer, FunctionalOptimizer):
        return DistributedGradReducer(())
    same_parameters(optimizer.get_parameters())
    reducer = DistributedGradReducer(optimizer.parameters)
    shards = getattr(optimizer, "shards", None)
    return reducer if shards is None else lambda grads: shards.scattered(reducer, grads)


@transform()
def train_step(
    loss: Callable[..., Any], optimizer: Any, *, has_aux: bool = False,
    scaler: LossScaler | None = None,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function that makes a training step, compiled as a whole: step(x, y) computes loss(x, y) and
    its gradients by the optimiser's parameters, updates these, and returns the loss before the update.

    loss: a function, or a Cell, that returns one number. optimizer: an optimiser of `nn`; or one of trees
    of tensors, as nn.Adam.functional(learning_rate=1e-3): then loss is a function of such a tree and the
    data, and params, state, value = step(params, state, x, y) changes nothing. has_aux: loss returns
    (value, more, ...), and the step returns all of it in the value's place; only the value is
    differentiated. scaler: a loss scale of `amp`, by which the value is multiplied and the gradients
    divided, in float32 at least; a step whose gradients overflow changes no parameter.

    Arrays in the arguments of a step get the dtype of the parameters. If several processes share the data,
    the gradients are those of all, as in nn.TrainOneStepCell.

    Raises TypeError for arguments of a wrong kind. The step raises TypeError or ValueError where loss does
    not return one real number, ValueError where it depends on none of the parameters.
    """
    functional = isinstance(optimizer, FunctionalOptimizer)
    arguments.boolean(has_aux, "train_step", "has_aux")
    if not callable(loss):
        bad_type(f"train_step: expected a loss function, got {kind_of(loss)}")
    if not functional and not (isinstance(optimizer, Cell) and hasattr(optimizer, "parameters")):
        bad_type(
            "train_step: expected an optimiser, such as nn.Adam(net.trainable_params(), 1e-3), got "
            f"{kind_of(optimizer)}"
        )
    if scaler is not None and not isinstance(scaler, LossScaler):
        bad_type(
            "train_step: scaler must be a loss scale such as amp.DynamicLossScaler(2**16, 2, 1000), got "
            f"{kind_of(scaler)}"
        )
    weights = None if functional else optimizer.parameters
    reduced = _reduction(optimizer)
    shared_out = getattr(optimizer, "shards", None) is not None

    def scaled(*args: Any, **kwargs: Any) -> Any:
        out = loss(*args, **kwargs)
        value = _checked(out, has_aux)
        return (value if scaler is None else scaler.scale(value)), out

    gradients = value_and_grad(scaled, 0 if functional else None, weights, has_aux=True)

    def found(args: Any, kwargs: Any) -> tuple[Any, Any, Tensor | None]:
        """(what loss returns, the gradients, whether they overflow)."""
        (_, out), grads = gradients(*args, **kwargs)
        zeros = ((g, _ops.full(list(g.shape), 0.0, g.dtype)) for g in tree.leaves(grads))
        if all(same_node(g, zero) for g, zero in zeros):
            bad_value(
                "train_step: the loss depends on none of the parameters that the optimiser has: was it made "
                "for another network?"
            )
        if scaler is not None:
            grads = tree.map_leaves(lambda g: scaler.unscale(half_to_float(g)), grads)
        leaves = iter(reduced(tuple(tree.leaves(grads))))
        grads = tree.map_leaves(lambda _: next(leaves), grads)
        if scaler is None:
            return out, grads, None
        overflow = _ops.logical_not(all_finite(grads))
        if shared_out:
            overflow = overflow_anywhere(overflow)
        scaler.adjust(_ops.logical_not(overflow))
        return out, grads, overflow

    def step(*args: Any, **kwargs: Any) -> Any:
        out, grads, overflow = found(args, kwargs)
        if overflow is None:
            optimizer(grads)
        else:
            unless(overflow, optimizer, grads)
        return out

    def pure(params: Any, state: Any, *args: Any, **kwargs: Any) -> Any:
        out, grads, overflow = found((params, *args), kwargs)
        before, after = (params, state), optimizer.update(params, state, grads)
        if overflow is not None:
            old = iter(tree.leaves(before))
            after = tree.map_leaves(lambda new: _ops.where(overflow, next(old), new), after)
        return (*after, out)

    step.__qualname__ = pure.__qualname__ = "step"
    compiled: Any = jit(pure if functional else step)
    if not functional:
        _take_arrays(compiled, weights)
    check = getattr(scaler, "check", None)
    if check is None:
        return compiled  # type: ignore[no-any-return]

    def checked(*args: Any, **kwargs: Any) -> Any:
        check()  # warns of a scale that cannot fall
        return compiled(*args, **kwargs)

    return Made(checked)
