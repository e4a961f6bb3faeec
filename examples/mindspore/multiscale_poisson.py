"""-u'' = f on (0, 1) with u(0) = u(1) = 0 and u = sin(2 pi x) + 0.1 sin(30 pi x), by a multi-scale network.

One small network for each scale s sees s x; their outputs are added up (Liu, Cai and Xu, 2020,
"Multi-scale deep neural network (MscaleDNN) for solving Poisson-Boltzmann equation in complex
domains"). A plain network of the same size misses the fine wave.

    python -m gradcell run multiscale_poisson.py
"""

import mindspore as ms
import numpy as np
import pictures
from mindspore import Tensor, nn, ops


def exact(x):
    return np.sin(2 * np.pi * x) + 0.1 * np.sin(30 * np.pi * x)


def source(x):
    return (2 * np.pi) ** 2 * np.sin(2 * np.pi * x) + 0.1 * (30 * np.pi) ** 2 * np.sin(
        30 * np.pi * x
    )


class Sine(nn.Cell):
    def construct(self, x):
        return ops.sin(x)


class MultiScale(nn.Cell):
    """The sum over scales s of a network of s x."""

    def __init__(self, scales, width=24):
        super().__init__()
        self.scales = scales
        self.nets = nn.CellList(
            [
                nn.SequentialCell(
                    nn.Dense(1, width, weight_init="xavier_uniform"), Sine(),
                    nn.Dense(width, width, weight_init="xavier_uniform"), Sine(),
                    nn.Dense(width, 1, weight_init="xavier_uniform"),
                )
                for _ in scales
            ]
        )  # fmt: skip

    def construct(self, x):
        out = 0
        for scale, net in zip(self.scales, self.nets):
            out = out + net(x * scale)
        return out * x * (1 - x)  # zero at both ends


class Poisson(nn.Cell):
    """The mean square of u'' + f over the points, f scaled to order one."""

    def __init__(self, net, scale):
        super().__init__()
        self.net, self.scale = net, scale
        self.slope = ops.grad(self.first)

    def first(self, x):
        return ops.grad(self.net)(x)

    def construct(self, x, f):
        return ops.square((self.slope(x) + f) / self.scale).mean()


def train(net, steps, points, rate):
    x = np.linspace(0, 1, points, dtype=np.float32)[:, None]
    f = source(x.astype(np.float64)).astype(np.float32)
    loss_net = Poisson(net, float(np.abs(f).max()))
    schedule = nn.cosine_decay_lr(1e-5, rate, steps + 1, 1, steps + 1)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=schedule)
    step = nn.TrainOneStepCell(loss_net, optimizer)
    step.set_train()
    losses = []
    for i in range(steps):
        losses.append(float(step(Tensor(x), Tensor(f)).asnumpy()))
        if (i + 1) % max(steps // 5, 1) == 0:
            print(f"step {i + 1:6d}  loss {losses[-1]:.2e}", flush=True)
    return losses


def main():
    options = pictures.options(
        __doc__.splitlines()[0], "multiscale_poisson.png", steps=3000, points=400, seed=3
    )
    ms.set_context(mode=ms.GRAPH_MODE)
    grid = np.linspace(0, 1, 1001, dtype=np.float32)[:, None]
    curves, errors = {}, {}
    for name, scales in (("one scale", [1.0] * 4), ("multi-scale", [1.0, 8.0, 32.0, 96.0])):
        ms.set_seed(options.seed)
        net = MultiScale(scales)
        losses = train(net, options.steps, options.points, 4e-3)
        u = net(Tensor(grid)).asnumpy()
        curves[name] = (u, losses)
        errors[name] = float(np.linalg.norm(u - exact(grid)) / np.linalg.norm(exact(grid)))
        print(f"{name}: relative L2 error {errors[name]:.3%}")
    if options.picture and (made := pictures.figure(2)):
        figure, (left, right) = made
        left.plot(grid, exact(grid), color="0.7", lw=4, label="exact")
        for name, (u, losses) in curves.items():
            left.plot(grid, u, label=f"{name}, error {errors[name]:.1e}")
            right.semilogy(losses, label=name)
        left.set(title="solution", xlabel="x", ylabel="u", ylim=(-1.3, 2.1))
        right.set(title="loss", xlabel="step", ylabel="mean square residual")
        left.legend(frameon=False, fontsize=9)
        right.legend(frameon=False, loc=(0.55, 0.6), fontsize=9)
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()
