"""Functions that another process finds by their names, and what transforms make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gradcell as gc
from gradcell import nn, ops, physics
from gradcell.base import tree

x = gc.Tensor(np.linspace(0.1, 1, 6).reshape(3, 2))
ones = ops.ones_like(x)


def wave(x: gc.Tensor) -> gc.Tensor:
    return ops.sin(x) * x


def total(x: gc.Tensor) -> gc.Tensor:
    return ops.sum(wave(x))


def totals(x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    return total(x), ops.sum(x)


def rows(x: gc.Tensor) -> gc.Tensor:
    return ops.sum(wave(x), -1)


def product(x: gc.Tensor, k: gc.Tensor) -> gc.Tensor:
    return ops.sum(wave(x) * k)


def key() -> int:
    return 1


@gc.vmap
def doubled(x: gc.Tensor) -> gc.Tensor:
    return 2 * wave(x)


@gc.custom_vjp
def with_rule(x: gc.Tensor) -> gc.Tensor:
    return ops.sin(x)


def _forward(x: gc.Tensor) -> tuple[gc.Tensor, gc.Tensor]:
    return ops.sin(x), x


def _backward(x: gc.Tensor, dout: gc.Tensor) -> tuple[gc.Tensor]:
    return (7 * dout * ops.cos(x),)


with_rule.defvjp(_forward, _backward)


@gc.custom_jvp
def with_tangent(x: gc.Tensor) -> gc.Tensor:
    return ops.sin(x)


with_tangent.defjvps(lambda dx, out, x: 7 * dx * ops.cos(x))


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Dense(2, 1, dtype=gc.float64)

    def construct(self, x: gc.Tensor) -> gc.Tensor:
        return ops.tanh(self.layer(x))

    def loss(self, x: gc.Tensor) -> gc.Tensor:
        return ops.mean((self(x) - rows(x)[:, None]) ** 2)

    def residual(self, x: gc.Tensor) -> gc.Tensor:
        return self(x)[:, 0] - rows(x)


net = Net()
weights = net.trainable_params()
momentum = nn.SGD.functional(learning_rate=0.1, momentum=0.9)

#: What makes an object, and what it is called with, by the public name.
MADE: dict[str, list[tuple[Callable[[], Any], tuple[Any, ...]]]] = {
    "biharmonic": [(lambda: gc.biharmonic(wave), (x,))],
    "divergence": [(lambda: gc.divergence(wave, batched=True), (x,))],
    "fisher_product": [(lambda: gc.fisher_product(rows, 0), (x, x))],
    "gauss_newton_product": [(lambda: gc.gauss_newton_product(rows, 0, loss=total), (x, x))],
    "grad": [
        (lambda: gc.grad(total), (x,)),
        (lambda: gc.grad(product, (0, 1), return_ids=True), (x, x)),
        (lambda: gc.grad(totals, has_aux=True), (x,)),
        (lambda: gc.grad(net.loss, None, weights), (x,)),
        (lambda: gc.grad(wave, sens_param=True), (x, x)),
        (lambda: gc.grad(with_rule), (x,)),
        (lambda: gc.grad(with_tangent), (x,)),
    ],
    "hessian": [(lambda: gc.hessian(total), (x,))],
    "jacfwd": [(lambda: gc.jacfwd(rows), (x,))],
    "jacrev": [(lambda: gc.jacrev(net, None, weights=weights), (x,))],
    "jit": [
        (lambda: gc.jit(wave), (x,)),
        (lambda: gc.jit(net.loss), (x,)),
        (lambda: gc.jit(wave, key=key), (x,)),
        (lambda: gc.jit(gc.vmap(gc.grad(total))), (x,)),
    ],
    "laplacian": [(lambda: gc.laplacian(net), (x,)), (lambda: gc.grad(gc.laplacian(net)), (x,))],
    "linearize": [(lambda: gc.linearize(wave, x)[1], (ones,))],
    "partials": [(lambda: gc.partials(wave, [(0, 0), (1,)]), (x,))],
    "per_sample_gradients": [(lambda: gc.per_sample_gradients(net.loss, weights[0], 0), (x[None],))],
    "train_step": [
        (lambda: gc.train_step(net.loss, nn.SGD(weights, 0.0)), (x,)),
        (lambda: gc.train_step(total, momentum), (x, momentum.init(x))),
    ],
    "value_and_grad": [(lambda: gc.value_and_grad(product, 1), (x, x))],
    "vjp": [(lambda: gc.vjp(wave, x)[1], (ones,)), (lambda: gc.vjp(totals, x, has_aux=True)[1], (1.0,))],
    "vmap": [
        (lambda: gc.vmap(rows, in_axes=1, out_axes=-1), (x[None],)),
        (lambda: gc.vmap([Net(), Net()], None), (x,)),
        (lambda: doubled, (x,)),
    ],
    "ops.GradOperation": [
        (lambda: ops.GradOperation(get_all=True, sens_param=True)(wave), (x, x)),
        (lambda: ops.GradOperation(get_by_list=True)(net.loss, weights), (x,)),
    ],
    "ops.partial": [(lambda: ops.partial(product, x), (x,))],
    "physics.dirichlet": [(lambda: physics.dirichlet(wave, 1.0), (x,))],
    "physics.interface": [(lambda: physics.interface(wave, net, (2.0, 1.0)), (x, ones))],
    "physics.neumann": [(lambda: physics.neumann(net, total), (x, ones))],
    "physics.periodicity": [(lambda: physics.periodicity(wave, (1.0, 0.0)), (x,))],
    "physics.robin": [(lambda: physics.robin(wave, 2.0, 1.0), (x, ones, x))],
    "physics.constrained": [(lambda: physics.constrained(net, total, wave), (x,))],
    "physics.enriched": [(lambda: physics.enriched(wave, net), (x,))],
}  # fmt: skip

#: The solvers, which go on from where they are.
SOLVERS: list[Callable[[], Any]] = [
    *(lambda kind=kind: kind(net.loss, weights, x) for kind in (gc.LBFGS, gc.BFGS, gc.SSBFGS, gc.SSBroyden)),
    lambda: gc.Descent(net.loss, nn.Adam(weights), x),
    lambda: gc.GaussNewton(net.residual, weights, momentum=0.5),
    lambda: gc.GaussNewton(net.residual, weights, method="cg"),
]  # fmt: skip


def numbers(result: Any) -> list[Any]:
    return [t.asnumpy() for t in tree.leaves(result)]


def called(made: Any, args: tuple[Any, ...]) -> list[Any]:
    """What an object gives, as arrays."""
    return numbers(made(*args))


def stepped(solver: Any) -> list[Any]:
    """The parameters after three more steps."""
    return [solver.run(3, x).x]


def all_of(objects: list[tuple[Any, ...]], solvers: list[Any]) -> list[list[Any]]:
    """What each gives, in this process."""
    return [called(*each) for each in objects] + [stepped(solver) for solver in solvers]
