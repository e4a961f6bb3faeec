"""Someone from PyTorch: modules, Adam with a falling rate and clipping, L-BFGS, a saved state, a .pt file."""

import sys

import numpy as np

import gradcell as gc
from gradcell import nn, ops


class Net(nn.Cell):
    def __init__(self, width=20):
        super().__init__()
        self.first = nn.Dense(2, width)
        self.second = nn.Dense(width, width)
        self.last = nn.Dense(width, 1)

    def construct(self, x):
        return self.last(ops.tanh(self.second(ops.tanh(self.first(x)))))


gc.set_seed(0)
net = Net()
random = np.random.default_rng(0)
inside = random.random((200, 2)).astype(np.float32)
edge = random.random((80, 2)).astype(np.float32)
edge[np.arange(80), np.arange(80) % 2] = np.arange(80) // 2 % 2
laplacian = gc.laplacian(net)


def loss_fn(inside, edge):
    equation = laplacian(inside) + 2 * np.pi**2 * ops.sin(np.pi * inside).prod(1, keepdims=True)
    return (equation**2).mean() + 100 * (net(edge) ** 2).mean()


optimizer = nn.Adam(net.trainable_params(), lr := 1e-2)
value_and_gradients = gc.value_and_grad(loss_fn, None, optimizer.parameters)


@gc.jit
def step(inside, edge):
    loss, gradients = value_and_gradients(inside, edge)
    optimizer(ops.clip_by_global_norm(gradients, 10.0))
    return loss


for epoch in range(600):
    loss = step(inside, edge)
    optimizer.learning_rate = lr * 0.998**epoch
optimizer.weight_decay = 1e-6
first = float(step(inside, edge))
result = gc.LBFGS(loss_fn, net.trainable_params(), inside, edge).run(300)
print("Adam, then L-BFGS", result.loss < first, result.loss < 1)
exact = np.sin(np.pi * inside).prod(1, keepdims=True)
print("error", np.abs(net(inside).asnumpy() - exact).max() < 0.05)

gc.save_checkpoint(net, "net.ckpt")
other = Net()
gc.load_param_into_net(other, gc.load_checkpoint("net.ckpt"))
print("the same", np.array_equal(other(inside).asnumpy(), net(inside).asnumpy()))
weights = gc.load_checkpoint(sys.argv[1])
print("PyTorch's file", len(weights) > 0)

x = gc.Tensor(inside)
with gc.watch(x) as seen:
    u = net(seen)
    (slope,) = gc.gradients(u, [seen])
print("like autograd.grad", slope.shape)
