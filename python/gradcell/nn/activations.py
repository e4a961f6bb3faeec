"""Activation functions as cells: each is the function of the same name in ops, with its arguments
kept. All work elementwise on floating tensors of any shape unless noted, and give that shape and
dtype; they raise TypeError for anything but a tensor.
"""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import arguments, bad_key, bad_type, bad_value, fields, publish
from gradcell.base.signposts import kind_of, nearest
from gradcell.common.initializer import initializer
from gradcell.nn.cell import Cell, Layer
from gradcell.nn.of_functions import OfInput, OfInputX, OfX, cell_of
from gradcell.ops.elements import activations as _functions
from gradcell.ops.primitive import Primitive
from gradcell.ops.random.draws import uniform
from gradcell.tensors.parameter import Parameter


@cell_of(_ops.relu)
class ReLU(OfInput):
    """max(x, 0); 0 for the derivative at 0. Any numeric dtype."""


@cell_of(_functions.relu6)
class ReLU6(OfX):
    """$min(max(x, 0), 6)$ for each element x."""


@cell_of(_ops.tanh)
class Tanh(OfX):
    """The hyperbolic tangent of each element."""


@cell_of(_ops.sigmoid)
class Sigmoid(OfX):
    """$1 / (1 + exp(-x))$ for each element x."""


@cell_of(_functions.silu)
class SiLU(OfX):
    """$x sigmoid(x)$ for each element x, also called swish."""


@cell_of(_functions.mish)
class Mish(OfInputX):
    """$x tanh(log(1 + exp(x)))$ for each element x. Misra, Mish (2019), equation 1."""


class FastGelu(Layer):
    """x sigmoid(1.702 x) (Hendrycks & Gimpel, Gaussian error linear units (2016), section 2)."""

    def construct(self, x: Tensor) -> Tensor:
        return _ops.mul(x, _ops.sigmoid(_ops.mul(arguments.tensor(x, "FastGelu", "x"), 1.702)))


@cell_of(_functions.logsigmoid)
class LogSigmoid(OfInputX):
    """$log(1 / (1 + exp(-x)))$ for each element x, without overflow."""


@cell_of(_functions.hardsigmoid)
class HSigmoid(OfInput):
    """$min(max(x + 3, 0), 6) / 6$ for each element x."""


@cell_of(_functions.hardswish)
class HSwish(OfInput):
    """x min(max(x + 3, 0), 6) / 6. Howard et al., Searching for MobileNetV3 (2019), section 5.2."""


@cell_of(_functions.softsign)
class Softsign(OfX):
    """$x / (1 + |x|)$ for each element x."""


@cell_of(_functions.tanhshrink)
class Tanhshrink(OfX):
    """$x - tanh(x)$ for each element x."""


@cell_of(_functions.selu)
class SeLU(OfInputX):
    """scale * (x where x > 0, alpha * (exp(x) - 1) elsewhere).

    Klambauer et al., Self-normalizing neural networks (2017), equation 2.
    """


@fields.declared
class GELU(Layer):
    """x times the distribution function of the standard normal distribution.

    approximate: by tanh, $0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))$, else by erf. Hendrycks &
    Gimpel, Gaussian error linear units (2016), section 2.
    """

    approximate: bool = fields.boolean(default=True)

    def construct(self, x: Tensor) -> Tensor:
        return _functions.gelu(x, "tanh" if self.approximate else "none")


@cell_of(_functions.leaky_relu)
class LeakyReLU(OfX):
    """x where x > 0, and alpha x elsewhere."""

    alpha: float = fields.number(default=0.2)


@cell_of(_functions.elu)
class ELU(OfX):
    """x where x > 0, and $alpha (exp(x) - 1)$ elsewhere."""

    alpha: float = fields.number(default=1.0)


@cell_of(_functions.celu)
class CELU(OfX):
    """x where x > 0, and $alpha (exp(x / alpha) - 1)$ elsewhere. Raises ValueError for alpha 0."""

    alpha: float = fields.number(default=1.0)

    def _build(self) -> None:
        if self.alpha == 0:
            bad_value("For 'CELU', the 'alpha' must not be 0.")


@cell_of(_functions.softplus)
class Softplus(OfX):
    """$log(1 + exp(beta x)) / beta$, without overflow; x itself where beta x > threshold."""

    beta: float = fields.number(default=1)
    threshold: float = fields.number(default=20)


@cell_of(_functions.hardtanh)
class Hardtanh(OfX):
    """Limits each element to the interval [min_val, max_val]. Raises ValueError unless min_val <
    max_val."""

    min_val: float = fields.number(default=-1.0)
    max_val: float = fields.number(default=1.0)

    def _build(self) -> None:
        if not self.min_val < self.max_val:
            bad_value(
                f"For 'Hardtanh', the 'min_val' must be less than the 'max_val', but got {self.min_val} and "
                f"{self.max_val}."
            )


@cell_of(_functions.hardshrink)
class HShrink(OfInput):
    """x where |x| > lambd, and 0 elsewhere."""

    lambd: float = fields.number(default=0.5)


@cell_of(_functions.softshrink)
class SoftShrink(OfInput):
    """x moved towards 0 by lambd, 0 where |x| <= lambd."""

    lambd: float = fields.number(default=0.5)


@cell_of(_functions.threshold, threshold="thr")
class Threshold(OfInputX):
    """x where it exceeds the threshold, and value elsewhere."""

    threshold: float = fields.number()
    value: float = fields.number()


@cell_of(_functions.prelu, w="weight")
class PReLU(OfX):
    """x where x > 0, a x elsewhere, with a trained: one, or one for each of the channels (axis 1).

    channel: how many. w: what a starts from, a number, a list of a number for each channel or a tensor of
    shape (channel,). He et al., Delving deep into rectifiers (2015), equation 1. Parameter: w (channel,).
    Raises ValueError for a list of another length, or of anything other than numbers.
    """

    def __init__(self, channel: int = 1, w: Any = 0.25) -> None:
        super().__init__()
        arguments.integer(channel, "PReLU", "channel", 1)
        if isinstance(w, list):
            if len(w) != channel or not all(isinstance(a, (int, float)) for a in w):
                bad_value(
                    f"For 'PReLU', 'w' as a list must hold a number for each of the {channel} channels, but "
                    f"got {w}."
                )
            w = Tensor(w, float32)
        elif not isinstance(w, Tensor):
            arguments.number(w, "PReLU", "w")
        self.w: Parameter = Parameter(initializer(w, (channel,)), name="a")


@fields.declared
class RReLU(Cell):
    """x where x > 0, a x elsewhere: a uniform in [lower, upper] in training, else their mean.

    Xu et al., Empirical evaluation of rectified activations (2015), section 3.4.
    """

    lower: float = fields.number(default=1 / 8)
    upper: float = fields.number(default=1 / 3)

    def _build(self) -> None:
        if self.lower > self.upper:
            got = f"{self.lower}, {self.upper}"
            bad_value(f"For 'RReLU', 'lower' must be at most 'upper', but got {got}.")

    def construct(self, x: Tensor) -> Tensor:
        x = arguments.tensor(x, "RReLU", "x")
        if not self.training:
            return _functions.leaky_relu(x, (self.lower + self.upper) / 2)
        slopes = _ops.cast(uniform(tuple(x.shape), self.lower, self.upper), x.dtype)
        return _ops.where(_ops.greater(x, 0), x, _ops.mul(x, slopes))


def _axis(axis: Any, owner: str, name: str) -> int:
    if isinstance(axis, tuple) and len(axis) == 1:
        axis = axis[0]
    return arguments.integer(axis, owner, name)


@cell_of(_functions.softmax)
class Softmax(OfInput):
    """$exp(x) / sum(exp(x))$ along an axis, computed without overflow. Raises ValueError for an
    axis that x does not have."""

    axis: int = fields.checked(_axis, default=-1)


@cell_of(_functions.softmin)
class Softmin(OfX):
    """Softmax of -x: the larger an element, the smaller its share.

    axis: the dimension, counted from the end where negative.
    """

    axis: int = fields.checked(_axis, default=-1)


class Softmax2d(Layer):
    """Softmax over the channels of (N, C, H, W) or (C, H, W)."""

    def construct(self, x: Tensor) -> Tensor:
        return _functions.softmax(arguments.of_rank(x, [3, 4], "Softmax2d"), -3)


@cell_of(_functions.log_softmax)
class LogSoftmax(OfX):
    """The logarithm of Softmax, computed without overflow. Raises ValueError for an axis that x
    does not have."""

    axis: int = fields.checked(_axis, default=-1)


@cell_of(_functions.glu)
class GLU(OfX):
    """The first half along an axis times the sigmoid of the second.

    Dauphin et al., Language modeling with gated convolutional networks (2016), equation 1. Raises
    ValueError if the axis cannot be halved.
    """

    axis: int = fields.checked(_axis, default=-1)


_BY_NAME: dict[str, type[Cell]] = {
    "softmin": Softmin, "softmax": Softmax, "softmax2d": Softmax2d, "logsoftmax": LogSoftmax,
    "relu": ReLU, "relu6": ReLU6, "rrelu": RReLU, "silu": SiLU, "tanh": Tanh,
    "tanhshrink": Tanhshrink, "hardtanh": Hardtanh, "gelu": GELU, "fast_gelu": FastGelu, "elu": ELU,
    "sigmoid": Sigmoid, "softsign": Softsign, "softplus": Softplus, "prelu": PReLU,
    "leakyrelu": LeakyReLU, "hswish": HSwish, "hsigmoid": HSigmoid, "logsigmoid": LogSigmoid,
    "softshrink": SoftShrink, "hshrink": HShrink, "threshold": Threshold, "mish": Mish,
}  # fmt: skip


_activation = _BY_NAME  #: its name in MindSpore


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """The activation of a name, as a new cell; None for None.

    name: such as 'relu', 'gelu' or 'tanh'. prim_name: who asks, for the message of an error. Raises
    KeyError for an unknown name.
    """
    if name is None:
        return None
    if name not in _BY_NAME:
        owner = f"For '{prim_name}', the" if prim_name else "The"
        bad_key(
            f"{owner} 'name' must be in {list(_BY_NAME)}, but got {name}{nearest(str(name), _BY_NAME)}."
        )
    return _BY_NAME[name]()


def _activation_of(activation: Any, owner: str, name: str = "activation") -> Any:
    """A cell from a name, a cell, a primitive or None. Raises TypeError for anything else."""
    if activation is None or isinstance(activation, (Cell, Primitive)):
        return activation
    if isinstance(activation, str):
        return get_activation(activation)
    bad_type(
        f"For '{owner}', the '{name}' must be str or Cell or Primitive, but got {kind_of(activation)}."
    )


publish(globals())
