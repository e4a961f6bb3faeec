"""Dense layers for equations in more dimensions than waves can fill."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator
from typing import Any

import numpy as np

from gradcell import nn
from gradcell._core import Tensor
from gradcell.compilation.compiled import jit
from gradcell.physics.asked import Asked, compared
from gradcell.physics.networks import network
from gradcell.physics.pieces import EDGES, Fitter, Piece
from gradcell.physics.points import Array
from gradcell.physics.waves import Coordinates
from gradcell.solvers.gauss_newton import GaussNewton

#: The width of each of the two layers, and the steps between two passes.
_WIDTH, _STEPS = 32, 25


class Deep:
    """A trained network as the part of a solution. values: what it gives as it is now."""

    def __init__(self, of: Coordinates, net: nn.Cell, misfit: float) -> None:
        self.coordinates: Coordinates = of
        self.misfit: float = misfit
        self.size: int = sum(p.size for p in net.trainable_params())
        self._cell = net
        self._compiled = jit(net)

    def values(self, x: Array) -> Array:
        """[n, d] to [n, m]."""
        return np.asarray(self._compiled(Tensor(x)).asnumpy())

    def cell(self) -> nn.Cell:
        """The network."""
        return self._cell


class Layers(nn.Cell):
    """Dense layers of coordinates from -1 to 1."""

    def __init__(self, asked: Asked, seed: int) -> None:
        super().__init__()
        low, high = asked.shape.low, asked.shape.high
        self.middle: Tensor = Tensor((low + high) / 2)
        self.scale: Tensor = Tensor(2 / (high - low))
        self.net: nn.Cell = network([asked.size, _WIDTH, _WIDTH, asked.outputs], seed)

    def construct(self, x: Tensor) -> Tensor:
        return self.net((x - self.middle) * self.scale)  # type: ignore[no-any-return]


def train(asked: Asked, fitter: Fitter, piece: Piece, seed: int, end: float) -> Iterator[Deep]:
    """Trains layers by Gauss-Newton steps, each at new points, until the clock is at the end, and gives what
    they are after some steps each time. A residual counts as the error of u that causes it in the piece."""
    net = Layers(asked, seed)
    size = sum(p.size for p in net.trainable_params())
    weights = [float(1 / c**2) for c in fitter.causes(piece)]
    solver = GaussNewton(
        compared(asked, net, fitter.normals), net.trainable_params(), weights=weights
    )
    random = np.random.default_rng(seed)

    def points(_: int = 0) -> list[Any]:
        draw = int(random.integers(2**31))
        return fitter.drawn(piece.coordinates, size, int(EDGES * size), None, draw, "uniform")

    while (left := end - clock.perf_counter()) > 0:
        solver.run(_STEPS, resample=points, max_seconds=left)
        fresh = solver.blocks.given(points())
        u = asked.solution(net)(fresh[0][0]).asnumpy()
        level = np.sqrt(np.mean(np.square(u))) or 1.0
        misfit = np.sqrt(solver._objective(fresh).asnumpy() / len(fresh)) / level
        copy = Layers(asked, seed)
        for old, new in zip(net.trainable_params(), copy.trainable_params(), strict=True):
            new.set_data(old)
        yield Deep(piece.coordinates, copy, float(misfit))
