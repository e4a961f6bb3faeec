"""Initialisers: the distributions that parameters start from.

What comes in: an initialiser or its name, a shape, a dtype. What goes out: a Tensor. Numbers are
drawn in float64 from the stream that set_seed starts, then cast.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from gradcell import _core
from gradcell._core import Tensor
from gradcell.base import bad_type, bad_value, fields, publish, unsupported, where, with_tensors
from gradcell.base.seed import generator
from gradcell.base.signposts import nearest
from gradcell.tensors import tensor

_BY_NAME: dict[str, type[Initializer]] = {}


class Initializer(fields.Declares):
    """The base of initialisers: `draw(shape)` gives the values as a NumPy array.

    A subclass of the user's may instead define `_initialize(arr)`, which fills an array in place.
    """

    #: Names that stand for the class in initializer('name', ...).
    names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, names: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        if names:
            cls.names = tuple(names.split())
            _BY_NAME.update(dict.fromkeys(cls.names, cls))

    def __init__(self, **kwargs: Any) -> None:
        self._kwargs = kwargs

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Values of that shape. Raises NotImplementedError if no rule is defined."""
        array = np.zeros(shape, np.float32)
        self(array)
        return array

    def _initialize(self, arr: np.ndarray) -> None:
        if type(self).draw is Initializer.draw:
            unsupported(f"{type(self).__name__} must be overridden!")
        arr[...] = self.draw(arr.shape)

    def __call__(self, arr: np.ndarray) -> None:
        """Fills an array in place."""
        self._initialize(arr)

    def __repr__(self) -> str:
        inside = ", ".join(f"{k}={v}" for k, v in self.__dict__.items() if not k.startswith("_"))
        return f"{type(self).__name__}({inside})"


def _fans(owner: str, shape: tuple[int, ...]) -> tuple[int, int]:
    """(inputs, outputs) of one unit: the trailing dimensions are the receptive field."""
    if len(shape) < 2:
        bad_value(f"For '{owner}', the shape must have at least 2 dimensions, got {list(shape)}")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


class Zero(Initializer, names="zero zeros"):
    """Fills a parameter with zeros."""

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape)


class One(Initializer, names="one ones"):
    """Fills a parameter with ones."""

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.ones(shape)


class Constant(Initializer, names="constant"):
    """Fills a parameter with one value.

    value: a number or an array that broadcasts to the shape.
    """

    value: Any = fields.anything()

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        value = self.value.asnumpy() if isinstance(self.value, Tensor) else np.asarray(self.value)
        return np.array(np.broadcast_to(value, shape))


class Uniform(Initializer, names="uniform"):
    """Fills a parameter with uniform random numbers in (-scale, scale).

    scale: a positive number.
    """

    scale: float = fields.anything(default=0.07)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return generator().uniform(-self.scale, self.scale, shape)


class Normal(Initializer, names="normal"):
    """Fills a parameter with normal random numbers of the given mean and standard deviation."""

    sigma: float = fields.anything(default=0.01)
    mean: float = fields.anything(default=0.0)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return generator().normal(self.mean, self.sigma, shape)


def _standard_truncated(shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Standard normal values drawn again until all lie within [low, high]."""
    out = generator().standard_normal(shape)
    while True:
        outside = (out < low) | (out > high)
        count = int(outside.sum())
        if not count:
            return out
        out[outside] = generator().standard_normal(count)


class TruncatedNormal(Normal, names="truncatednormal truncated_normal"):
    """Normal with standard deviation sigma about mean, kept within [a, b].

    a, b: the ends of the interval. Raises ValueError unless a < b.
    """

    a: float = fields.anything(default=-2.0)
    b: float = fields.anything(default=2.0)

    def _build(self) -> None:
        if not self.a < self.b:
            bad_value(f"For 'TruncatedNormal', a must be below b, got {self.a} and {self.b}")

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        if not self.sigma:
            return np.full(shape, np.clip(self.mean, self.a, self.b))
        low, high = (self.a - self.mean) / self.sigma, (self.b - self.mean) / self.sigma
        if low > 3 or high < -3 or high - low < 0.1:
            return self._by_rejection(shape, low, high)
        return self.mean + self.sigma * _standard_truncated(shape, low, high)

    def _by_rejection(self, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
        """For an interval that normal values seldom hit: uniform ones, kept with the density."""
        nearest = min(max(low, 0.0), high)
        top = min(high, low + 40) if low > 0 else high
        bottom = max(low, high - 40) if high < 0 else low
        out = np.empty(math.prod(shape))
        missing = np.ones(out.shape, bool)
        while missing.any():
            z = generator().uniform(bottom, top, int(missing.sum()))
            keep = generator().uniform(size=z.size) < np.exp((nearest**2 - z**2) / 2)
            places = np.flatnonzero(missing)[keep]
            out[places] = z[keep]
            missing[places] = False
        return self.mean + self.sigma * out.reshape(shape)


class XavierUniform(Initializer, names="xavier_uniform xavieruniform"):
    """Uniform in (-l, l), l = gain * sqrt(6 / (fan_in + fan_out)).

    Glorot & Bengio, Understanding the difficulty of training deep feedforward neural networks
    (2010), equation 16. Raises ValueError for a shape of fewer than 2 dimensions.
    """

    gain: float = fields.anything(default=1)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        fan_in, fan_out = _fans("XavierUniform", shape)
        limit = self.gain * math.sqrt(6 / (fan_in + fan_out))
        return generator().uniform(-limit, limit, shape)


class XavierNormal(Initializer, names="xavier_normal xaviernormal"):
    """Normal about 0 with standard deviation gain * sqrt(2 / (fan_in + fan_out)).

    Glorot & Bengio (2010), equation 12. Raises ValueError for a shape of fewer than 2 dimensions.
    """

    gain: float = fields.anything(default=1)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        fan_in, fan_out = _fans("XavierNormal", shape)
        return generator().normal(0, self.gain * math.sqrt(2 / (fan_in + fan_out)), shape)


def _gain(owner: str, nonlinearity: str, slope: float) -> float:
    if nonlinearity == "relu":
        return math.sqrt(2)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2 / (1 + slope**2))
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "sigmoid" or nonlinearity == "linear" or nonlinearity.startswith("conv"):
        return 1.0
    bad_value(f"For '{owner}', nonlinearity {nonlinearity!r} is not supported")


class _He(Initializer):
    """Base class of HeUniform and HeNormal, with the standard deviation gain / sqrt(fan)."""

    negative_slope: float = fields.anything(default=0)
    mode: str = fields.one_of("fan_in", "fan_out", default="fan_in")
    nonlinearity: str = fields.anything(default="leaky_relu")

    def deviation(self, shape: tuple[int, ...]) -> float:
        owner = type(self).__name__
        fan = _fans(owner, shape)[self.mode == "fan_out"]
        gain = _gain(owner, self.nonlinearity, self.negative_slope)
        return gain / math.sqrt(fan) if fan else 0.0


class HeUniform(_He, names="he_uniform heuniform"):
    """Uniform in (-l, l), l = gain * sqrt(3 / fan).

    gain: sqrt(2 / (1 + negative_slope²)) for leaky_relu. fan: the inputs or outputs of one unit, as
    mode says. He et al., Delving deep into rectifiers (2015), equations 10 and 15. mode: 'fan_in'
    or 'fan_out'. Raises ValueError for an unknown mode or nonlinearity or a shape of fewer than 2
    dimensions.
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        limit = math.sqrt(3) * self.deviation(shape)
        return generator().uniform(-limit, limit, shape)


class HeNormal(_He, names="he_normal henormal"):
    """Normal about 0 with standard deviation gain / sqrt(fan). Arguments are those of HeUniform.

    nonlinearity: the activation behind the layer, which sets the factor.
    """

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        return generator().normal(0, self.deviation(shape), shape)


class VarianceScaling(Initializer, names="variancescaling variance_scaling"):
    """Variance scale / fan, where fan is fan_in, fan_out or their mean.

    distribution: 'truncated_normal' (within two standard deviations, rescaled to keep the
    variance), 'untruncated_normal' or 'uniform'. scale: a positive number. mode: 'fan_in',
    'fan_out' or 'fan_avg'. Raises ValueError for an unknown mode or distribution or a scale <= 0.
    """

    scale: float = fields.number(above=0, default=1.0)
    mode: str = fields.one_of("fan_in", "fan_out", "fan_avg", default="fan_in")
    distribution: str = fields.one_of(
        "uniform", "truncated_normal", "untruncated_normal", default="truncated_normal"
    )

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        fan_in, fan_out = _fans("VarianceScaling", shape)
        fan = {"fan_in": fan_in, "fan_out": fan_out}.get(self.mode, (fan_in + fan_out) / 2)
        deviation = math.sqrt(self.scale / max(fan, 1))
        if self.distribution == "uniform":
            limit = math.sqrt(3) * deviation
            return generator().uniform(-limit, limit, shape)
        if self.distribution == "untruncated_normal":
            return generator().normal(0, deviation, shape)
        # The standard deviation of a standard normal kept within (-2, 2).
        kept = 0.87962566103423978
        return _standard_truncated(shape, -2, 2) * (deviation / kept)


class Identity(Initializer, names="identity"):
    """Fills a matrix with the identity: ones on the diagonal, zeros elsewhere. Raises ValueError
    unless the shape has 2 dimensions."""

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) != 2:
            bad_value(f"For 'Identity', the shape must have 2 dimensions, got {list(shape)}")
        return np.eye(*shape)


class Orthogonal(Initializer, names="orthogonal"):
    """gain times a matrix with orthonormal rows or columns, uniformly distributed.

    Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks (2013). Dimensions behind the first are taken as one. Raises ValueError for a shape of
    fewer than 2 dimensions.
    """

    gain: float = fields.anything(default=1.0)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        _fans("Orthogonal", shape)
        rows, columns = shape[0], math.prod(shape[1:])
        normal = generator().standard_normal((max(rows, columns), min(rows, columns)))
        q, r = np.linalg.qr(normal)
        q *= np.sign(np.diag(r))
        return self.gain * (q if rows >= columns else q.T).reshape(shape)


class Sparse(Initializer, names="sparse"):
    """Normal values with the fraction `sparsity` of every column zero. For 2 dimensions only.

    sparsity: a fraction, from 0 to 1.
    """

    sparsity: float = fields.anything()
    sigma: float = fields.anything(default=0.01)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) != 2:
            bad_value(f"For 'Sparse', the shape must have 2 dimensions, got {list(shape)}")
        out = generator().normal(0, self.sigma, shape)
        zeros = math.ceil(self.sparsity * shape[0])
        for column in range(shape[1]):
            out[generator().permutation(shape[0])[:zeros], column] = 0
        return out


class Dirac(Initializer, names="dirac"):
    """A convolution kernel that hands its input on: one at the centre of channel i's own filter.

    For shapes of 3 to 5 dimensions whose first is divisible by groups; else ValueError.

    groups: the number of groups of the convolution.
    """

    groups: int = fields.anything(default=1)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        if len(shape) not in (3, 4, 5) or shape[0] % self.groups:
            bad_value(
                "For 'Dirac', the shape must have 3 to 5 dimensions, the first divisible by groups "
                f"{self.groups}, got {list(shape)}"
            )
        out = np.zeros(shape)
        centre = tuple(n // 2 for n in shape[2:])
        outputs = shape[0] // self.groups
        for group in range(self.groups):
            for i in range(min(outputs, shape[1])):
                out[(group * outputs + i, i, *centre)] = 1
        return out


# What MindSpore's own initialisers are made of, and users' are --------------------------------------


def _calculate_fan_in_and_fan_out(shape: Sequence[int]) -> tuple[int, int]:
    """(inputs, outputs) of one unit. Raises ValueError for fewer than 2 dimensions."""
    return _fans("initializer", tuple(shape))


def _calculate_correct_fan(shape: Sequence[int], mode: str) -> int:
    """Inputs or outputs of one unit, as mode says: 'fan_in' or 'fan_out'. Raises ValueError."""
    if mode.lower() not in ("fan_in", "fan_out"):
        bad_value(f"'mode' {mode} not supported, please use fan_in or fan_out")
    return _fans("initializer", tuple(shape))[mode.lower() == "fan_out"]


def _calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """The gain of He's initialisers; param: leaky_relu's slope, 0.01 by default. Raises ValueError."""
    return _gain("initializer", nonlinearity, 0.01 if param is None else param)


def _assignment(arr: np.ndarray, num: Any) -> np.ndarray:
    """Fills an array in place. Returns it."""
    arr[...] = num
    return arr


def _register(*aliases: str) -> Callable[[type[Initializer]], type[Initializer]]:
    """A class decorator: initializer('name', ...) knows the class by its name and by aliases."""

    def register(kind: type[Initializer]) -> type[Initializer]:
        for name in (kind.__name__.lower(), *aliases):
            _BY_NAME.setdefault(name.lower(), kind)
        return kind

    return register


def _shape(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, int) and not isinstance(shape, bool):
        shape = (shape,)
    if not isinstance(shape, (tuple, list)):
        bad_type(f"initializer: shape must be a tuple, got {shape!r}")
    for n in shape:
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            bad_value(f"initializer: shape must hold sizes >= 0, got {shape!r}")
    return tuple(shape)


def _rule(init: Any) -> Initializer:
    if isinstance(init, Initializer):
        return init
    if isinstance(init, (int, float)) and not isinstance(init, bool):
        return Constant(init)
    if isinstance(init, str):
        kind = _BY_NAME.get(init.lower())
        if kind is None:
            like = nearest(init, _BY_NAME)
            bad_value(f"initializer: {init!r} is not one of {sorted(_BY_NAME)}{like}")
        return kind()
    bad_type(
        f"initializer: init must be a name, a number, a Tensor or an Initializer, got {type(init).__name__}"
    )


def initializer(
    init: str | float | Tensor | Initializer, shape: int | Sequence[int] | None = None,
    dtype: _core.DType | None = None,
) -> Tensor:  # fmt: skip
    """Makes the tensor with which a parameter starts.

    init: an Initializer, its name ('normal', 'xavier_uniform', 'ones', ...), a number, or a Tensor or
    array, whose elements are taken. shape: a size or a tuple of sizes; may be None for a Tensor. dtype: of
    the result; None: the default dtype, float32 unless set_default_dtype says otherwise.

    Raises TypeError for an init or a shape of another type, ValueError for an unknown name, a
    negative size, too many elements, or a Tensor of another shape, MemoryError where they do not
    fit.
    """
    if dtype is None:
        dtype = _core.default_dtype()
    init = with_tensors(init)
    if isinstance(init, Tensor):
        if shape is not None and _shape(shape) != tuple(init.shape):
            want = list(_shape(shape))
            bad_value(f"initializer: the tensor has shape {list(init.shape)}, not {want}")
        return Tensor(init, dtype)
    if shape is None:
        bad_value("initializer: shape is needed unless init is a Tensor")
    dims = _shape(shape)
    if math.prod(dims) * 8 > sys.maxsize:
        bad_value(f"initializer: the shape {list(dims)} has more elements than can be addressed")
    try:
        return Tensor(_rule(init).draw(dims), dtype)
    except MemoryError as error:
        raise MemoryError(
            f"initializer: there is no memory for a tensor of shape {list(dims)}{where()}"
        ) from error


tensor.initialised = initializer


publish(globals())


def _init_random_uniform(a: float, b: float, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform random numbers between a and b, an array of a shape; a program's own initialiser calls it."""
    return generator().uniform(a, b, shape)


def _init_random_normal(mean: float, sigma: float, shape: tuple[int, ...]) -> np.ndarray:
    """Normal random numbers, an array of a shape; a program's own initialiser calls it."""
    return generator().normal(mean, sigma, shape)
