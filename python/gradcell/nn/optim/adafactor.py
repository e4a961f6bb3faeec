"""AdaFactor: second moments of matrices kept as rows and columns."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any, ClassVar, NoReturn

from gradcell._core import Tensor, float32, ops as _ops
from gradcell.base import arguments, bad_type, bad_value, fields
from gradcell.nn.cell import Cell
from gradcell.nn.optim.optimizer import Optimizer, averaged
from gradcell.tensors.parameter import Parameter, ParameterTuple


def _rms(x: Tensor) -> Tensor:
    return _ops.sqrt(_ops.mean(_ops.square(x)))


def _two_numbers(value: Any, owner: str, name: str) -> tuple[float, ...]:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        bad_type(f"For '{owner}', the '{name}' must be two numbers, got {value!r}")
    return tuple(arguments.number(e, owner, name, least=0) for e in value)


@fields.declared
class AdaFactor(Optimizer):
    """AdaFactor (Shazeer and Stern 2018, algorithms 4 and 5).

        b = 1 - t ** -decay_rate;   q = g * g + eps[0]
        matrices: r = b r + (1 - b) mean of q along rows, c alike along columns;  v = r c / mean(r)
        others: v = b v + (1 - b) q;   u = g / sqrt(v), divided by max(1, rms(u) / clip_threshold)
        p = p - lr * (weight_decay * p + u), u averaged by beta1 unless that is 0

    learning_rate None, with relative_step: min(0.01, 1 / sqrt(t)), with warmup_init min(1e-6 t, 1 /
    sqrt(t)). scale_parameter: times max(eps[1], rms(p)), unless the learning rate is a schedule.
    params, loss_scale: see Optimizer. compression has no effect. clip_threshold: the largest root
    mean square of an update before the learning rate. decay_rate: how fast the share of a new
    square falls with the step. relative_step: whether the learning rate comes from the step.
    warmup_init: whether it starts small. Raises TypeError, ValueError for values out of range and a
    learning rate beside relative_step.
    """

    by_elements = False
    _fixed = ("relative_step",)
    _checks: ClassVar[dict[str, Any]] = {**Optimizer._checks, "beta1": fields.number(least=0)}

    params: InitVar[Any] = fields.of_base("parameters")
    learning_rate: InitVar[Any] = fields.of_base(default=None)
    eps: tuple[float, float] = fields.checked(_two_numbers, default=(1e-30, 1e-3))
    clip_threshold: float = fields.number(least=0, default=1.0)
    decay_rate: float = fields.number(above=0, below=1, default=0.8)
    beta1: InitVar[float | None] = fields.anything(default=0.9)
    weight_decay: InitVar[float] = fields.of_base(default=0.0)
    scale_parameter: bool = fields.boolean(default=True)
    relative_step: bool = fields.boolean(default=True)
    warmup_init: bool = fields.boolean(default=False)
    compression: InitVar[bool] = fields.boolean(default=False)
    loss_scale: InitVar[float] = fields.of_base(default=1.0)

    def _build(self, learning_rate: Any, beta1: float | None) -> None:
        relative = self.relative_step
        if (learning_rate is None) != relative:
            self._disagree()
        self._agree()
        for p in self.parameters:
            if p.dtype.is_complex:
                bad_type(
                    f"AdaFactor: {p.name!r} has dtype {p.dtype}; complex numbers have no factors"
                )
        if not isinstance(learning_rate, (int, float, type(None))):
            self.scale_parameter = False
        self.beta1 = arguments.number(beta1 or 0.0, self.cls_name, "beta1", least=0)
        if self.beta1:
            self.exp_avg: ParameterTuple = self.state("exp_avg")
        self.exp_avg_sq_row: ParameterTuple = self._statistics("row", lambda s: s[:-1])
        self.exp_avg_sq_col: ParameterTuple = self._statistics("col", lambda s: (*s[:-2], s[-1]))
        self.exp_avg_sq: ParameterTuple = self._statistics("", None)
        self.step: Parameter = Parameter(Tensor([0.0], float32), name="afactor_step")

    def _agree(self) -> None:
        if self.warmup_init and not self.relative_step:
            self._disagree()
        if "step" in self._params and "exp_avg" not in self._tuples and self.beta1:
            bad_value("AdaFactor: without means of updates, beta1 must stay 0")

    def _disagree(self) -> NoReturn:
        bad_value(
            "AdaFactor: a learning_rate or relative_step is needed, not both, and warmup_init only with "
            "relative_step"
        )

    def _set_learning_rate(self, value: Any) -> None:
        if self.relative_step:
            self._disagree()
        super()._set_learning_rate(value)

    def _build_rate(self, rate: Any, name: str) -> Any:
        return super()._build_rate(0.0 if rate is None else rate, name)

    def _statistics(self, kind: str, of_matrix: Any) -> ParameterTuple:
        """Second moments: of matrices where of_matrix gives the shape, else of all others."""
        made = []
        for p in self.parameters:
            shape = tuple(p.shape)
            if (len(shape) > 1) != (of_matrix is not None):
                shape = (1,)
            elif of_matrix is not None:
                shape = of_matrix(shape)
            name = f"exp_avg_sq_{kind}{'_' if kind else ''}{p.name}"
            dtype = float32 if p.dtype.itemsize < 4 else p.dtype
            made.append(Parameter(_ops.full(list(shape), 0.0, dtype), name))
        return ParameterTuple(made)

    def decay_weight(self, gradients: Any) -> tuple[Tensor, ...]:
        """The gradients: the decay acts on the parameters."""
        return tuple(gradients)

    def step_scalars(self, step: Tensor) -> Any:
        self.step._set_array(_ops.reshape(step, [1]))
        rate: Any = None
        if self.relative_step:
            most = 1e-6 * step if self.warmup_init else 1e-2
            rate = _ops.minimum(_ops.rsqrt(step), most)
        return rate, 1.0 - _ops.pow(step, -self.decay_rate)

    def update_parameter(self, k: int, p: Tensor, g: Tensor, lr: Tensor, scalars: Any) -> Tensor:
        rate, b = scalars
        rate = lr if rate is None else rate
        if self.scale_parameter:
            rate = rate * _ops.maximum(_rms(p), self.eps[1])
        square = g * g + self.eps[0]
        if g.ndim > 1:
            rows = averaged(self.exp_avg_sq_row[k], _ops.mean(square, -1), b)
            columns = averaged(self.exp_avg_sq_col[k], _ops.mean(square, -2), b)
            scaled = rows / _ops.mean(rows, -1, True)
            factors = _ops.reshape(_ops.rsqrt(scaled), [*rows.shape, 1])
            outer = [*columns.shape[:-1], 1, columns.shape[-1]]
            update = factors * _ops.reshape(_ops.rsqrt(columns), outer) * g
        else:
            update = g * _ops.rsqrt(averaged(self.exp_avg_sq[k], square, b))
        update = update / _ops.maximum(_rms(update) / self.clip_threshold, 1.0) * rate
        if self.beta1:
            update = averaged(self.exp_avg[k], update, self.beta1)
        decay = self._decays[k]
        if isinstance(decay, Cell) or decay:
            p = p - p * (self._decay_now(decay) * rate)
        return p - update
