"""Cells around a network: its loss, its gradients, one training step."""

from __future__ import annotations

import functools
import warnings
from typing import Any

from gradcell._core import Tensor, float32, in_trace, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, tree
from gradcell.communication.sharing import (
    _get_device_num,
    _get_gradients_mean,
    _get_parallel_mode,
    _shares_data,
)
from gradcell.communication.start import same_parameters
from gradcell.derivatives.transform import GradOperation, grad, value_and_grad
from gradcell.nn.cell import Cell
from gradcell.nn.optim import Optimizer
from gradcell.nn.wrap.grad_reducer import DistributedGradReducer
from gradcell.nn.wrap.scale_update import check_scale
from gradcell.tensors.parameter import Parameter, ParameterTuple


class WithLossCell(Cell):
    """A network and its loss as one cell: loss_fn(backbone(data), label).

    backbone: a Cell, the network. Raises TypeError unless backbone is a Cell and loss_fn can be
    called.
    """

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(backbone, Cell) or not callable(loss_fn):
            bad_type(
                f"WithLossCell: expected a Cell and a loss function, got {type(backbone).__name__} and "
                f"{type(loss_fn).__name__}"
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


class _VirtualDatasetCell(Cell):
    """The network: on several devices MindSpore lays out its inputs differently."""

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any) -> Any:
        return self._backbone(*inputs)


class ParameterUpdate(Cell):
    """Writes a parameter: called with its new value, of the same shape and dtype. Returns that.

    param: the Parameter to write. Raises TypeError if param is not a Parameter, ValueError for
    another shape.
    """

    def __init__(self, param: Parameter) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(param, Parameter):
            bad_type(f"For 'ParameterUpdate', 'param' must be 'Parameter', but got {type(param)}.")
        self._param = param

    def construct(self, x: Tensor) -> Tensor:
        self._param.set_data(x)
        return x


class WithEvalCell(Cell):
    """(loss, output, label) of a network: what metrics are made of.

    add_cast_fp32: compute the loss in float32. loss_fn None: a loss of 0.
    """

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = network
        self._loss_fn = loss_fn
        self.add_cast_fp32: bool = arguments.boolean(add_cast_fp32, "WithEvalCell", "add_cast_fp32")

    def construct(self, data: Any, label: Any) -> Any:
        """(loss, output, label)."""
        out = self._network(data)
        if self.add_cast_fp32:
            label = _as_float32(label)
            out = tree.map_leaves(_as_float32, out)
        return self._loss_fn(out, label) if self._loss_fn is not None else Tensor(0.0), out, label


def _as_they_are(gradients: Any) -> Any:
    return gradients


def _as_float32(x: Any) -> Any:
    half = isinstance(x, Tensor) and x.dtype.is_floating and not x.dtype.is_complex
    return _ops.cast(x, float32) if half else x


class WithGradCell(Cell):
    """The gradients of a network, or of its loss, by its trainable parameters.

    sens: the cotangent of the output, or None for ones. loss_fn: a function or Cell of (output,
    label) that gives the loss.
    """

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        self.loss_fn = loss_fn
        self.weights: ParameterTuple = ParameterTuple(network.trainable_params())
        self.sens = sens
        whole = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss: Cell | WithLossCell = whole
        self.network_with_loss.set_train()

    def construct(self, *inputs: Any) -> Any:
        """A tuple of gradients, one for each of `weights`."""
        if self.sens is None:
            return grad(self.network_with_loss, None, self.weights)(*inputs)
        gradient = GradOperation(get_by_list=True, sens_param=True)
        return gradient(self.network_with_loss, self.weights)(*inputs, self.sens)


class ForwardValueAndGrad(Cell):
    """A cell that gives the output of a network and its gradients.

    weights: parameters to differentiate with respect to with get_by_list. get_all: by all inputs
    too. sens_param: the last input is the cotangent of the output. get_by_list: whether to
    differentiate with respect to weights. Raises TypeError for wrong types.
    """

    def __init__(
        self, network: Any, weights: Any = None, get_all: bool = False, get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(auto_prefix=False)
        if not callable(network):
            bad_type(f"ForwardValueAndGrad: the network must be callable, got {network!r}")
        if get_by_list and weights is None:
            bad_type("ForwardValueAndGrad: get_by_list needs weights")
        if isinstance(network, Cell):
            network.set_grad()
        self.network = network
        self.weights = weights
        self.get_all: bool = get_all
        self.get_by_list: bool = get_by_list
        self.sens_param: bool = sens_param
        self.grad: GradOperation = GradOperation(get_all, get_by_list, sens_param)

    def construct(self, *inputs: Any) -> Any:
        """(output, gradients); the gradients as ops.GradOperation gives them."""
        outputs = []

        @functools.wraps(self.network, updated=())
        def forward(*args: Any) -> Any:
            # Run once: what is random, or counts its calls, is the same for value and gradients.
            outputs.append(self.network(*args))
            return outputs[0]

        grads = self.grad(forward, self.weights)(*inputs)
        return outputs[0], grads


def _check_optimizer(owner: str, network: Any, optimizer: Any) -> None:
    """Raises TypeError for wrong types, ValueError if the optimiser's parameters are another
    net's."""
    if not isinstance(network, Cell):
        bad_type(f"For '{owner}', the 'network' must be a Cell, but got {type(network).__name__}")
    if not isinstance(optimizer, Cell) or not hasattr(optimizer, "parameters"):
        bad_type(
            f"For '{owner}', the 'optimizer' must be an Optimizer, but got {type(optimizer).__name__}"
        )
    own = {id(p) for p in network.get_parameters()}
    strange = [p.name for p in optimizer.parameters if id(p) not in own]
    if not own or not strange:
        return
    if len(strange) == len(optimizer.parameters):
        bad_value(
            f"For '{owner}', none of the optimizer's parameters belongs to the network: it holds "
            f"{strange[0]!r}, the network {next(network.get_parameters()).name!r}. Was the optimizer made "
            "for another network?"
        )
    warnings.warn(
        f"{owner}: the optimizer's parameter {strange[0]!r} is not one of the network's",
        RuntimeWarning,
        stacklevel=4,
    )


class TrainOneStepCell(Cell):
    """One training step: the loss, its gradients with respect to the optimiser's parameters, and
    the update.

    network: a Cell that returns the loss. If the loss has several elements, their sum is minimised,
    with one warning. sens: a factor of the gradients, which does not affect the returned loss.
    return_grad: whether the result is (loss, {parameter name: gradient}).

    If several processes share the data (set_auto_parallel_context, ParallelMode.DATA_PARALLEL), the
    gradients are summed or averaged over all of them, and the loss is that of this process's part. The
    first step makes sure that all processes begin with the same parameters.

    Raises TypeError for wrong types, ValueError if the optimiser belongs to another network.
    """

    def __init__(
        self, network: Cell, optimizer: Optimizer, sens: Any = None, return_grad: bool = False
    ) -> None:
        super().__init__(auto_prefix=False)
        _check_optimizer(self.cls_name, network, optimizer)
        self.network = network
        self.network.set_grad()
        self.optimizer = optimizer
        self.weights: ParameterTuple = optimizer.parameters
        self.grad: GradOperation = GradOperation(get_by_list=True, sens_param=True)
        self.grad_no_sens: GradOperation = GradOperation(get_by_list=True)
        self.sens = sens
        if sens is not None and not isinstance(sens, Tensor):
            check_scale(self.cls_name, "sens", sens)
        self.return_grad: bool = arguments.boolean(return_grad, self.cls_name, "return_grad")
        self.parallel_mode: str = _get_parallel_mode()
        self.reducer_flag: bool = _shares_data()
        self.mean: bool = _get_gradients_mean()
        self.degree: int = _get_device_num()
        self.grad_reducer: Any = _as_they_are
        if self.reducer_flag:
            self.grad_reducer = DistributedGradReducer(self.weights, self.mean, self.degree)
        object.__setattr__(self, "_begun", not self.reducer_flag)
        object.__setattr__(self, "_warned", False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._begun and not in_trace():
            same_parameters(self.get_parameters())
            object.__setattr__(self, "_begun", True)
        return super().__call__(*args, **kwargs)

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
            bad_type(
                f"For '{self.cls_name}', the network must return its loss, a floating Tensor, but returned "
                f"{got}"
            )
        if isinstance(out, Tensor) and out.size != 1 and not self._warned:
            object.__setattr__(self, "_warned", True)
            warnings.warn(
                f"{self.cls_name}: the loss has shape {list(out.shape)}; its sum is minimised",
                RuntimeWarning,
                stacklevel=2,
            )

    def reduced(self, grads: Any) -> Any:
        """Reduce gradients over all processes; of parameters whose state is shared out, to this
        process's parts."""
        shards = getattr(self.optimizer, "shards", None)
        if shards is None or not self.reducer_flag:
            return self.grad_reducer(grads)
        return shards.scattered(self.grad_reducer, grads)

    def construct(self, *inputs: Any) -> Any:
        """Makes the step; inputs are the network's."""
        loss, grads = self.value_and_gradients(self.sens, inputs)
        if self.return_grad:
            grads = self.grad_reducer(grads)
        else:
            grads = self.reduced(grads)
        self.optimizer(grads)
        if self.return_grad:
            return loss, {p.name: g for p, g in zip(self.weights, grads, strict=True)}
        return loss


def _scaled(t: Tensor, scale: Any) -> Tensor:
    if not t.dtype.is_floating:
        return t
    return t * (_ops.cast(scale, t.dtype) if isinstance(scale, Tensor) else scale)
