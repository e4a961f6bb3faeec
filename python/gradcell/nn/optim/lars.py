"""LARS: learning rates for each layer, around another optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from gradcell._core import Tensor, ops as _ops
from gradcell.base import bad_type, fields
from gradcell.nn.optim.optimizer import Optimizer, half_to_float, real_numbers
from gradcell.tensors.parameter import Parameter, ParameterTuple


def _norm(x: Tensor) -> Tensor:
    return _ops.sqrt(_ops.reduce_sum(_ops.square(real_numbers(x))))


def _of_the_wrapped(name: str, doc: str) -> Any:
    def put(self: LARS, value: Any) -> None:
        setattr(self.opt, name, value)

    return property(lambda self: getattr(self.opt, name), put, doc=doc)


class LARS(Optimizer):
    """Layer-wise rates around another optimiser (You et al. 2017, eq. 6).

        r = coefficient * |p| / (|g| + weight_decay * |p| + epsilon)
        use_clip: r = min(r / lr, 1)
        the optimiser gets r * (g + weight_decay * p)

    optimizer: its weight decay is taken over. lars_filter: given a Parameter, whether the rule
    applies to it; by default unless its name has LayerNorm or bias in it. coefficient: the factor
    of the rate of each layer. use_clip: whether that rate is at most the learning rate. Raises
    TypeError if optimizer is not an Optimizer, ValueError for values out of range.
    """

    by_elements = False
    _checks: ClassVar[dict[str, Any]] = {
        **Optimizer._checks,
        "epsilon": fields.number(above=0),
        "coefficient": fields.number(above=0),
        "use_clip": fields.boolean(),
    }
    epsilon: float
    coefficient: float
    use_clip: bool

    def __init__(
        self,
        optimizer: Optimizer,
        epsilon: float = 1e-5,
        coefficient: float = 1e-3,
        use_clip: bool = False,
        lars_filter: Callable[[Parameter], bool] = lambda x: (
            "LayerNorm" not in x.name and "bias" not in x.name
        ),
    ) -> None:
        if not isinstance(optimizer, Optimizer):
            bad_type(
                f"For 'LARS', the 'optimizer' must be an Optimizer, but got {type(optimizer).__name__}"
            )
        super(Optimizer, self).__init__(auto_prefix=False)
        self.opt = optimizer
        given = {"epsilon": epsilon, "coefficient": coefficient, "use_clip": use_clip}
        for name, value in given.items():
            setattr(self, name, self._checks[name].check(value, self.cls_name, name))
        self.parameters: ParameterTuple = optimizer.parameters
        self._parameters = self.parameters
        self.lars_flag: tuple[bool, ...] = tuple(bool(lars_filter(p)) for p in optimizer.parameters)
        self._factors = optimizer._decay_factor
        self.loss_scale: float = optimizer.loss_scale
        self.need_scale: bool = optimizer.need_scale
        # The rule does the decaying, on the parameters that the filter leaves in.
        optimizer._wrapped, optimizer.need_scale, optimizer.exec_weight_decay = True, False, False

    learning_rate: Any = _of_the_wrapped("learning_rate", "The wrapped optimiser's learning rate.")
    weight_decay: Any = _of_the_wrapped(
        "weight_decay", "The wrapped optimiser's weight decay, which the rule adds."
    )
    decay_flags: Any = _of_the_wrapped(
        "decay_flags", "The wrapped optimiser's flags: which parameters decay."
    )

    def get_lr(self) -> Any:
        """The wrapped optimiser's learning rate."""
        return self.opt.get_lr()

    def construct(self, gradients: Any) -> tuple[bool, ...]:
        """Scales the gradients and hands them on."""
        gradients = self.scale_grad(self.check_gradients(gradients))
        lr = self.opt.get_lr()
        rates = lr if isinstance(lr, tuple) else (lr,) * len(self.parameters)
        made = []
        for k, g in enumerate(gradients):
            if not self.lars_flag[k]:
                made.append(g)
                continue
            p = half_to_float(self.parameters[k])
            factor = self._factors(k)
            norm_p, norm_g = _norm(p), _norm(g)
            decayed = norm_g if factor is None else norm_g + factor * norm_p
            ratio = self.coefficient * norm_p / (decayed + self.epsilon)
            if self.use_clip:
                ratio = _ops.minimum(ratio / rates[k], 1.0)
            made.append(ratio * (g if factor is None else g + factor * p))
        return self.opt(tuple(made))
