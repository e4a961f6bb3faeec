"""A layer, a batch normalisation and an activation, one after another."""

from __future__ import annotations

from dataclasses import InitVar
from typing import Any

from gradcell._core import Tensor
from gradcell.base import fields, publish
from gradcell.nn.activations import LeakyReLU, _activation_of
from gradcell.nn.basic import Dense
from gradcell.nn.cell import Cell
from gradcell.nn.convolution import Conv2d
from gradcell.nn.normalization import BatchNorm1d, BatchNorm2d


class _Chain(Cell):
    def _add_rest(
        self, norm: Any, out: int, momentum: float, eps: float, activation: Any, alpha: float
    ) -> None:
        self.has_act: bool = activation is not None
        if self.has_bn:
            self.batchnorm: Any = norm(out, eps, momentum)
        leaky = activation == "leakyrelu"
        self.activation = LeakyReLU(alpha) if leaky else _activation_of(activation, self.cls_name)

    def _rest(self, x: Tensor) -> Tensor:
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x


@fields.declared
class Conv2dBnAct(_Chain):
    """Conv2d, then with has_bn BatchNorm2d, then the activation: a name, a Cell or None.

    momentum, eps: of the normalisation. alpha: LeakyReLU's slope. after_fake has no effect. Other
    arguments, shapes and errors are those of Conv2d. Parameters: conv, batchnorm. has_bn: whether a
    BatchNorm2d follows. activation: its name, such as 'relu', a Cell, or None. in_channels:
    channels, or features, of the input. out_channels: channels, or features, of the output.
    """

    in_channels: InitVar[int] = fields.anything()
    out_channels: InitVar[int] = fields.anything()
    kernel_size: InitVar[Any] = fields.anything()
    stride: InitVar[Any] = fields.anything(default=1)
    pad_mode: InitVar[str] = fields.anything(default="same")
    padding: InitVar[Any] = fields.anything(default=0)
    dilation: InitVar[Any] = fields.anything(default=1)
    group: InitVar[int] = fields.anything(default=1)
    has_bias: InitVar[bool] = fields.anything(default=False)
    weight_init: InitVar[Any] = fields.anything(default="normal")
    bias_init: InitVar[Any] = fields.anything(default="zeros")
    has_bn: bool = fields.boolean(default=False)
    momentum: InitVar[float] = fields.anything(default=0.997)
    eps: InitVar[float] = fields.anything(default=1e-5)
    activation: InitVar[Any] = fields.anything(default=None)
    alpha: InitVar[float] = fields.anything(default=0.2)
    after_fake: InitVar[bool] = fields.anything(default=True)

    def _build(self, after_fake: bool, **given: Any) -> None:
        rest = [given.pop(name) for name in ("momentum", "eps", "activation", "alpha")]
        self.conv: Conv2d = Conv2d(**given)
        self._add_rest(BatchNorm2d, self.conv.out_channels, *rest)

    def construct(self, x: Tensor) -> Tensor:
        return self._rest(self.conv(x))


@fields.declared
class DenseBnAct(_Chain):
    """Dense, then with has_bn BatchNorm1d, then the activation: a name, a Cell or None.

    momentum, eps: of the normalisation. alpha: LeakyReLU's slope. after_fake has no effect. Other
    arguments, shapes and errors are those of Dense. Parameters: dense, batchnorm. has_bn: whether a
    BatchNorm1d follows. activation: its name, such as 'relu', a Cell, or None.
    """

    in_channels: InitVar[int] = fields.anything()
    out_channels: InitVar[int] = fields.anything()
    weight_init: InitVar[Any] = fields.anything(default="normal")
    bias_init: InitVar[Any] = fields.anything(default="zeros")
    has_bias: InitVar[bool] = fields.anything(default=True)
    has_bn: bool = fields.boolean(default=False)
    momentum: InitVar[float] = fields.anything(default=0.9)
    eps: InitVar[float] = fields.anything(default=1e-5)
    activation: InitVar[Any] = fields.anything(default=None)
    alpha: InitVar[float] = fields.anything(default=0.2)
    after_fake: InitVar[bool] = fields.anything(default=True)

    def _build(self, after_fake: bool, **given: Any) -> None:
        rest = [given.pop(name) for name in ("momentum", "eps", "activation", "alpha")]
        self.dense: Dense = Dense(**given)
        self._add_rest(BatchNorm1d, self.dense.out_channels, *rest)

    def construct(self, x: Tensor) -> Tensor:
        return self._rest(self.dense(x))


publish(globals())
