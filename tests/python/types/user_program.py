"""A program of a user's, for type checkers: what each expression is stands behind it. Run by nothing."""

import numpy as np

import gradcell as gc
import gradcell.numpy as gnp
from gradcell import Parameter, Tensor, mint, nn, ops


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Dense(2, 8)
        self.outer = nn.Dense(8, 1)

    def construct(self, x: Tensor) -> Tensor:
        return self.outer(ops.tanh(self.inner(x)))


def energy(x: Tensor, scale: float = 1.0) -> Tensor:
    return scale * ops.reduce_sum(ops.sin(x) ** 2)


x = Tensor(np.ones((4, 2)), gc.float32)
net = Net()
parameters = net.trainable_params()
optimiser = nn.Adam(parameters, learning_rate=1e-3)


@gc.jit
def step(batch: Tensor) -> Tensor:
    return ops.mean(ops.square(net(batch)))


loss_and_gradients = gc.value_and_grad(step, None, parameters)

reveal_type(x)  # Tensor
reveal_type(x + 1)  # Tensor
reveal_type(2.0 * x)  # Tensor
reveal_type(-x)  # Tensor
reveal_type(x @ x.T)  # Tensor
reveal_type(x**2)  # Tensor
reveal_type(x > 0)  # Tensor
reveal_type(x == x)  # Tensor
reveal_type(x[0])  # Tensor
reveal_type(x.shape)  # tuple[int, ...]
reveal_type(x.dtype)  # DType
reveal_type(x.ndim)  # int
reveal_type(x.sum())  # Tensor
reveal_type(x.mean(axis=0))  # Tensor
reveal_type(x.reshape(2, 4))  # Tensor
reveal_type(x.astype(gc.float64))  # Tensor
reveal_type(x.sin().cos())  # Tensor
reveal_type(x.addmv(x, x))  # Tensor
reveal_type(float(x[0, 0]))  # float
reveal_type(len(x))  # int
reveal_type(ops.sin(x))  # Tensor
reveal_type(ops.sin(np.ones(3)))  # Tensor
reveal_type(x + np.ones(2))  # Tensor
reveal_type(gc.tree.map(ops.sin, {"x": x}))  # Any
reveal_type(gc.tree.flatten(x)[1].size)  # int
reveal_type(ops.add(x, 1))  # Tensor
reveal_type(ops.matmul(x, x))  # Tensor
reveal_type(ops.softmax(x))  # Tensor
reveal_type(ops.where(x > 0, x, 0))  # Tensor
reveal_type(ops.concat((x, x)))  # Tensor
reveal_type(ops.zeros((2, 3)))  # Tensor
reveal_type(ops.cholesky(x))  # Tensor
reveal_type(mint.sin(x))  # Tensor
reveal_type(mint.nn.functional.relu(x))  # Tensor
reveal_type(gnp.sin(x))  # Tensor
reveal_type(gnp.arange(3))  # Tensor
reveal_type(gc.float32)  # DType
reveal_type(net)  # Net
reveal_type(net(x))  # Tensor
reveal_type(nn.Dense(2, 3))  # Dense
reveal_type(nn.Dense(2, 3)(x))  # Tensor
reveal_type(nn.ReLU()(x))  # Tensor
reveal_type(nn.MSELoss()(x, x))  # Tensor
reveal_type(parameters)  # list[Parameter]
reveal_type(optimiser)  # Adam
reveal_type(optimiser(parameters))  # tuple[bool, ...]
reveal_type(gc.jit(energy)(x, scale=2.0))  # Tensor
reveal_type(gc.jit(net)(x))  # Tensor
reveal_type(step(x))  # Tensor
reveal_type(gc.grad(energy)(x))  # Tensor
reveal_type(gc.grad(energy)(x, scale=2.0))  # Tensor
reveal_type(gc.grad(lambda t: ops.sum(ops.sin(t)))(x))  # Tensor
reveal_type(gc.grad(energy, (0, 1))(x, 1.0))  # tuple[Tensor, ...]
reveal_type(gc.grad(step, None, parameters)(x))  # tuple[Tensor, ...]
reveal_type(gc.value_and_grad(energy)(x))  # tuple[Tensor, Tensor]
reveal_type(loss_and_gradients(x))  # tuple[Tensor, tuple[Tensor, ...]]
reveal_type(gc.vmap(energy)(x, 2.0))  # Tensor
reveal_type(gc.jacrev(energy)(x))  # Tensor
reveal_type(gc.jacfwd(energy, (0, 1))(x, 1.0))  # tuple[Tensor, ...]
reveal_type(gc.hessian(energy)(x))  # Tensor
reveal_type(gc.hessian(energy, (0, 1))(x, 1.0))  # tuple[tuple[Tensor, ...], ...]
reveal_type(gc.laplacian(energy)(x, scale=2.0))  # Tensor
reveal_type(gc.biharmonic(net)(x))  # Tensor
reveal_type(gc.partials(energy, [(0,), (0, 1)])(x))  # tuple[Tensor, ...]
reveal_type(gc.jvp(energy, x, x))  # tuple[Tensor, Tensor]
reveal_type(gc.vjp(energy, x)[0])  # Tensor
reveal_type(gc.vjp(energy, x)[1](x))  # tuple[Tensor, ...]
reveal_type(gc.hvp(energy, x, x))  # tuple[Tensor, Tensor]
reveal_type(gc.hvp(energy, (x, x), (x, x)))  # tuple[Tensor, tuple[Tensor, ...]]
reveal_type(gc.linearize(net, x)[1](x))  # Tensor
reveal_type(ops.jet(ops.sin, x, x))  # tuple[Tensor, Tensor]
reveal_type(gc.recompute(net, x))  # Tensor
reveal_type(ops.Sin()(x))  # Tensor
reveal_type(ops.Add()(x, 1))  # Tensor
reveal_type(ops.ReduceSum(keep_dims=True)(x, 0))  # Tensor
reveal_type(ops.Shape()(x))  # tuple[int, ...]
reveal_type(ops.stop_gradient(x))  # Tensor
reveal_type(ops.clip_by_value(x, 0, 1))  # Tensor
reveal_type(ops.adaptive_avg_pool2d(x, 2))  # Tensor
reveal_type(ops.nonzero(x))  # Tensor
reveal_type(ops.atleast_1d(x))  # Tensor
reveal_type(nn.CellList([net])[0])  # Cell
reveal_type(nn.SequentialCell(net)[1:])  # SequentialCell
reveal_type(Parameter(x, name="w").value())  # Tensor
