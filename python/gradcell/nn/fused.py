"""A layer, a batch normalisation and an activation, one after another."""

from __future__ import annotations

from typing import Any

from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.nn.activations import LeakyReLU, activation_of
from gradcell.nn.basic import Dense
from gradcell.nn.cell import Cell
from gradcell.nn.convolution import Conv2d
from gradcell.nn.normalization import BatchNorm1d, BatchNorm2d

__all__ = ["Conv2dBnAct", "DenseBnAct"]


class _Chain(Cell):
    def _add_rest(
        self, norm: Any, out: int, has_bn: bool, momentum: float, eps: float, activation: Any, alpha: float
    ) -> None:  # fmt: skip
        owner = type(self).__name__
        self.has_bn = arguments.boolean(has_bn, owner, "has_bn")
        self.has_act = activation is not None
        if has_bn:
            self.batchnorm = norm(out, eps, momentum)
        leaky = activation == "leakyrelu"
        self.activation = LeakyReLU(alpha) if leaky else activation_of(activation, owner)

    def _rest(self, x: Tensor) -> Tensor:
        if self.has_bn:
            x = self.batchnorm(x)
        return self.activation(x) if self.has_act else x  # type: ignore[no-any-return]


class Conv2dBnAct(_Chain):
    """Conv2d, then with has_bn BatchNorm2d, then the activation: a name, a Cell or None.

    momentum, eps: of the normalisation. alpha: LeakyReLU's slope. after_fake has no effect. Other
    arguments, shapes and errors are those of Conv2d. Parameters: conv, batchnorm. has_bn: whether a
    BatchNorm2d follows. activation: its name, such as 'relu', a Cell, or None.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bn: bool = False,
        momentum: float = 0.997,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.conv = Conv2d(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            pad_mode,
            padding,
            dilation,
            group,
            has_bias,
            weight_init,
            bias_init,
        )
        self._add_rest(BatchNorm2d, out_channels, has_bn, momentum, eps, activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        return self._rest(self.conv(x))


class DenseBnAct(_Chain):
    """Dense, then with has_bn BatchNorm1d, then the activation: a name, a Cell or None.

    momentum, eps: of the normalisation. alpha: LeakyReLU's slope. after_fake has no effect. Other
    arguments, shapes and errors are those of Dense. Parameters: dense, batchnorm. has_bn: whether a
    BatchNorm1d follows. activation: its name, such as 'relu', a Cell, or None.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = "normal",
        bias_init: Any = "zeros",
        has_bias: bool = True,
        has_bn: bool = False,
        momentum: float = 0.9,
        eps: float = 1e-5,
        activation: Any = None,
        alpha: float = 0.2,
        after_fake: bool = True,
    ) -> None:
        super().__init__()
        self.dense = Dense(in_channels, out_channels, weight_init, bias_init, has_bias)
        self._add_rest(BatchNorm1d, out_channels, has_bn, momentum, eps, activation, alpha)

    def construct(self, x: Tensor) -> Tensor:
        return self._rest(self.dense(x))
