"""Cells around a network: its loss, its gradients, one training step."""

from __future__ import annotations

import warnings
from typing import Any

from gradcell import _core, context, tree
from gradcell._core import Tensor
from gradcell.amp.loss_scale import check_scale, not_finite
from gradcell.amp.overflow import locate_overflow, values_of, warn_of
from gradcell.common.random_state import random_state, set_random_state
from gradcell.nn.cell import Cell
from gradcell.nn.optim import Optimizer
from gradcell.parallel._utils import (
    ParallelMode,
    _get_device_num,
    _get_gradients_mean,
    _get_parallel_mode,
)
from gradcell.parameter import Parameter, ParameterTuple
from gradcell.transform import GradOperation, grad, value_and_grad

_ops = _core.ops


def _where() -> str:
    return f" ({_core.user_location()})"


class WithLossCell(Cell):
    """loss_fn(backbone(data), label): a network and its loss as one cell.

    Raises TypeError unless backbone is a Cell and loss_fn can be called.
    """

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(backbone, Cell) or not callable(loss_fn):
            raise TypeError(
                f"WithLossCell: expected a Cell and a loss function, got "
                f"{type(backbone).__name__} and {type(loss_fn).__name__}{_where()}"
            )
        self._backbone = backbone
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        """The loss of one batch."""
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without the loss."""
        return self._backbone


class WithEvalCell(Cell):
    """(loss, output, label) of a network: what metrics are made of.

    add_cast_fp32: compute the loss in float32. loss_fn None: a loss of 0.
    """

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(add_cast_fp32, bool):
            raise TypeError(f"WithEvalCell: 'add_cast_fp32' must be a bool{_where()}")
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32 = add_cast_fp32

    def construct(self, data: Any, label: Any) -> Any:
        """(loss, output, label)."""
        out = self._network(data)
        if self.add_cast_fp32:
            label = _as_float32(label)
            out = tree.map_leaves(_as_float32, out)
        return self._loss_fn(out, label) if self._loss_fn is not None else Tensor(0.0), out, label


def _as_float32(x: Any) -> Any:
    half = isinstance(x, Tensor) and x.dtype.is_floating
    return _ops.cast(x, _core.float32) if half else x


class WithGradCell(Cell):
    """The gradients of a network, or of its loss, by its trainable parameters.

    sens: the cotangent of the output, or None for ones.
    """

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights = ParameterTuple(network.trainable_params())
        self.sens = sens
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()

    def construct(self, *inputs: Any) -> Any:
        """A tuple of gradients, one for each of `weights`."""
        if self.sens is None:
            return grad(self.network_with_loss, None, self.weights)(*inputs)
        gradient = GradOperation(get_by_list=True, sens_param=True)
        return gradient(self.network_with_loss, self.weights)(*inputs, self.sens)


class ForwardValueAndGrad(Cell):
    """(a network's output, its gradients).

    weights: parameters to differentiate by with get_by_list. get_all: by all inputs too.
    sens_param: the last input is the cotangent of the output. Raises TypeError for wrong types.
    """

    def __init__(
        self,
        network: Any,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            raise TypeError(
                f"ForwardValueAndGrad: the network must be callable, got "
                f"{type(network).__name__}{_where()}"
            )
        if get_by_list and weights is None:
            raise TypeError(f"ForwardValueAndGrad: get_by_list needs weights{_where()}")
        if isinstance(network, Cell):
            network.set_grad()
        self.network = network
        self.weights = weights
        self.get_all, self.get_by_list, self.sens_param = get_all, get_by_list, sens_param
        self.grad = GradOperation(get_all, get_by_list, sens_param)

    def construct(self, *inputs: Any) -> Any:
        """(output, gradients); the gradients as ops.GradOperation gives them."""
        forward = inputs[:-1] if self.sens_param else inputs
        # The same nodes twice: the graph holds them once.
        out = self.network(*forward)
        return out, self.grad(self.network, self.weights)(*inputs)


class DistributedGradReducer(Cell):
    """Adds gradients up over all devices; mean: their mean. There is one device: the gradients."""

    def __init__(
        self,
        parameters: Any,
        mean: bool | None = None,
        degree: int | None = None,
        fusion_type: int = 1,
        group: Any = None,
    ) -> None:
        super().__init__(auto_prefix=False)
        if degree is not None and (isinstance(degree, bool) or not isinstance(degree, int)):
            raise TypeError(f"DistributedGradReducer: 'degree' must be an int{_where()}")
        if degree is not None and degree < 1:
            raise ValueError(f"DistributedGradReducer: 'degree' must be positive{_where()}")
        self.mean = _get_gradients_mean() if mean is None else mean
        self.degree = _get_device_num() if degree is None else degree

    def construct(self, grads: Any) -> Any:
        """The gradients."""
        return grads


def _check_optimizer(owner: str, network: Any, optimizer: Any) -> None:
    """Raises TypeError for wrong types, ValueError if the optimiser's parameters are another net's."""
    if not isinstance(network, Cell):
        raise TypeError(
            f"For '{owner}', the 'network' must be a Cell, but got {type(network).__name__}{_where()}"
        )
    if not isinstance(optimizer, Cell) or not hasattr(optimizer, "parameters"):
        raise TypeError(
            f"For '{owner}', the 'optimizer' must be an Optimizer, but got "
            f"{type(optimizer).__name__}{_where()}"
        )
    own = {id(p) for p in network.get_parameters()}
    strange = [p.name for p in optimizer.parameters if id(p) not in own]
    if not own or not strange:
        return
    if len(strange) == len(optimizer.parameters):
        raise ValueError(
            f"For '{owner}', none of the optimizer's parameters belongs to the network: it holds "
            f"{strange[0]!r}, the network {next(network.get_parameters()).name!r}. Was the "
            f"optimizer made for another network?{_where()}"
        )
    warnings.warn(
        f"{owner}: the optimizer's parameter {strange[0]!r} is not one of the network's",
        RuntimeWarning,
        stacklevel=4,
    )


class TrainOneStepCell(Cell):
    """One training step: the loss, its gradients by the optimiser's parameters, the update.

    network: a Cell that returns the loss. A loss of more than one element is minimised in sum, and a
    warning says so once. sens: what the gradients are multiplied by; the loss returned is not.
    return_grad: return (loss, {parameter name: gradient}).

    Raises TypeError for wrong types, ValueError if the optimiser holds another network's parameters.
    """

    def __init__(
        self, network: Cell, optimizer: Optimizer, sens: Any = None, return_grad: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        _check_optimizer(self.cls_name, network, optimizer)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens = GradOperation(get_by_list=True)
        self.sens = sens
        if sens is not None and not isinstance(sens, Tensor):
            check_scale(self.cls_name, "sens", sens)
        if not isinstance(return_grad, bool):
            raise TypeError(
                f"For '{self.cls_name}', the 'return_grad' must be a bool, but got "
                f"{type(return_grad).__name__}{_where()}"
            )
        self.return_grad = return_grad
        self.parallel_mode = _get_parallel_mode()
        self.reducer_flag = self.parallel_mode in (
            ParallelMode.DATA_PARALLEL,
            ParallelMode.HYBRID_PARALLEL,
        )
        self.mean, self.degree = _get_gradients_mean(), _get_device_num()
        self.grad_reducer: Any = lambda grads: grads
        object.__setattr__(self, "_warned", False)

    @property
    def hyper_map(self) -> Any:
        """ops.HyperMap, for subclasses."""
        from gradcell import ops

        return ops.HyperMap()

    def value_and_gradients(self, scale: Any, inputs: Any) -> tuple[Any, Any]:
        """(the network's output, its gradients by the weights times scale); scale None: 1."""

        def forward(*args: Any) -> Any:
            out = self.network(*args)
            self._check_loss(out)
            if scale is None:
                return out, out
            return tree.map_leaves(lambda t: _scaled(t, scale), out), out

        (_, loss), grads = value_and_grad(forward, None, self.weights, has_aux=True)(*inputs)
        return loss, grads

    def _check_loss(self, out: Any) -> None:
        leaves = tree.leaves(out)
        if not leaves or not leaves[0].dtype.is_floating:
            got = leaves[0].dtype if leaves else type(out).__name__
            raise TypeError(
                f"For '{self.cls_name}', the network must return its loss, a floating Tensor, but "
                f"returned {got}{_where()}"
            )
        if isinstance(out, Tensor) and out.size != 1 and not self._warned:
            object.__setattr__(self, "_warned", True)
            warnings.warn(
                f"{self.cls_name}: the loss has shape {list(out.shape)}; its sum is minimised",
                RuntimeWarning,
                stacklevel=2,
            )

    def construct(self, *inputs: Any) -> Any:
        """Makes the step; inputs are the network's."""
        loss, grads = self.value_and_gradients(self.sens, inputs)
        grads = self.grad_reducer(grads)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, grads, strict=True)}
        return loss


def _scaled(t: Tensor, scale: Any) -> Tensor:
    if not t.dtype.is_floating:
        return t
    return t * (_ops.cast(scale, t.dtype) if isinstance(scale, Tensor) else scale)


def unless(skip: Tensor, cell: Cell, *inputs: Any) -> Any:
    """cell(*inputs), with its parameters left as they were where skip, a 0-d bool tensor, is true.

    A select for each parameter assigned: nothing is read on the host.
    """
    before = [(p, p.value()) for p in cell.get_parameters()]
    out = cell(*inputs)
    for p, old in before:
        p._set_array(_ops.where(skip, old, p.value()))
    return out


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """One training step with loss scaling: a step whose gradients overflow changes no parameter.

    scale_sense: a FixedLossScaleUpdateCell or DynamicLossScaleUpdateCell, or a Tensor of one element
    with the scale. The scale is a float32 Parameter, `scale_sense`.

    Called with the network's inputs; returns (loss, overflow, scale after the step). The decision is
    a select of the step's own plan: no value is read on the host. Subclasses may define construct
    from start_overflow_check, grad, hyper_map, get_overflow_status and process_loss_scale.

    Raises TypeError for wrong types, ValueError for a scale that is not positive and finite, and
    RuntimeError at the call after one that overflowed at the smallest dynamic scale.
    """

    def __init__(self, network: Cell, optimizer: Optimizer, scale_sense: Any) -> None:
        super().__init__(network, optimizer)
        self.loss_scaling_manager: Any = None
        if isinstance(scale_sense, Cell) and hasattr(scale_sense, "get_loss_scale"):
            self.loss_scaling_manager = scale_sense
            value = Tensor(float(scale_sense.get_loss_scale()), _core.float32)
        elif isinstance(scale_sense, Tensor):
            value = self._checked(scale_sense)
        else:
            raise TypeError(
                f"For '{self.cls_name}', the 'scale_sense' must be Cell or Tensor, but got "
                f"'scale_sense' type: {type(scale_sense)}.{_where()}"
            )
        self.scale_sense = Parameter(value, name="scale_sense", requires_grad=False)

    def _checked(self, scale: Tensor) -> Tensor:
        if tuple(scale.shape) not in ((), (1,)):
            raise ValueError(
                f"For '{self.cls_name}', the shape of 'scale_sense' must be (1,) or (), but got "
                f"{tuple(scale.shape)}{_where()}"
            )
        check_scale(self.cls_name, "scale_sense", float(scale.asnumpy().reshape(())))
        return _ops.cast(scale, _core.float32)

    def set_sense_scale(self, sens: Tensor) -> None:
        """Sets the scale. Raises TypeError unless sens is a Tensor, ValueError for a bad scale."""
        if not isinstance(sens, Tensor):
            raise TypeError(
                f"For '{self.cls_name}', the input type must be Tensor, but got "
                f"{type(sens)}{_where()}"
            )
        value = sens if _core.in_trace() else self._checked(sens)
        self.scale_sense.set_data(_ops.reshape(value, list(self.scale_sense.shape)))

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """(status, compute_input): where overflow detection starts; the gradients themselves are
        looked at, so nothing has to be cleared."""
        return None, compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Whether compute_output, gradients, holds inf or nan: a 0-d bool tensor."""
        return not_finite(compute_output)

    def process_loss_scale(self, overflow: Tensor) -> Tensor:
        """Lets the update cell adapt the scale. Returns overflow."""
        if self.loss_scaling_manager is not None:
            return self.loss_scaling_manager(self.scale_sense, overflow)  # type: ignore[no-any-return]
        return overflow

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        check = getattr(self.loss_scaling_manager, "check_floor", None)
        if check is not None:
            check()
        if not context.get_context("locate_overflow") or _core.in_trace():
            return super().__call__(*args, **kwargs)
        return self._watched(args, kwargs)

    def _watched(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The step; if it overflows, it is run again to name the op, in a warning."""
        before = values_of(self.get_parameters())
        random = random_state()
        out = super().__call__(*args, **kwargs)
        if isinstance(out, tuple) and len(out) > 1 and bool(out[1]):
            after, random_after = values_of(self.get_parameters()), random_state()
            for p, value in before:
                p.set_data(value)
            set_random_state(random)
            try:
                warn_of(locate_overflow(self._gradients_only, *args, **kwargs))
            finally:
                for p, value in after:
                    p.set_data(value)
                set_random_state(random_after)
        return out

    def _gradients_only(self, *inputs: Any) -> Any:
        scale = _ops.reshape(self.scale_sense.value(), [])
        return self.value_and_gradients(scale, inputs)

    def construct(self, *inputs: Any) -> Any:
        """Makes the step, unless it overflows."""
        scale = self.scale_sense.value()
        loss, grads = self.value_and_gradients(_ops.reshape(scale, []), inputs)
        inverse = 1.0 / _ops.reshape(scale, [])
        # In float32 at least: what the scale kept from underflowing must not do so now.
        grads = tuple(_unscaled(g, inverse) for g in grads)
        grads = self.grad_reducer(grads)
        overflow = self.get_overflow_status(None, grads)
        overflow = self.process_loss_scale(overflow)
        unless(overflow, self.optimizer, grads)
        return loss, overflow, self.scale_sense.value()


def _unscaled(g: Tensor, inverse: Tensor) -> Tensor:
    return g * inverse  # float16 times float32 is float32
