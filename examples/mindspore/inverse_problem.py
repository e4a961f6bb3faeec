"""The viscosity of Burgers' equation from noisy observations of its solution.

u_t + u u_x = nu u_xx with an unknown nu: the network's weights and log(nu) are trained together,
on the observations and on the equation (Raissi, Perdikaris and Karniadakis, 2019). The data is the
travelling front u = c - a tanh(a (x - c t) / (2 nu)), an exact solution.

    python -m gradcell run inverse_problem.py
"""

import mindspore as ms
import numpy as np
import pictures
from mindspore import Parameter, Tensor, nn, ops

NU, A, C = 0.08, 0.6, 0.4


def exact(t, x):
    return C - A * np.tanh(A * (x - C * t) / (2 * NU))


class Network(nn.Cell):
    def __init__(self, width=32):
        super().__init__()
        layers = []
        for n, m in ((2, width), (width, width), (width, width)):
            layers += [nn.Dense(n, m, weight_init="xavier_uniform"), nn.Tanh()]
        self.layers = nn.SequentialCell(*layers, nn.Dense(width, 1, weight_init="xavier_uniform"))

    def construct(self, t, x):
        return self.layers(ops.concat((t, x), 1))


class Inverse(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.log_nu = Parameter(Tensor([np.log(0.5)], ms.float32), name="log_nu")
        self.first = ops.grad(self.value, (0, 1))
        self.second = ops.grad(self.slope, 1)

    def value(self, t, x):
        return self.net(t, x)

    def slope(self, t, x):
        return ops.grad(self.value, 1)(t, x)

    def construct(self, t, x, data_t, data_x, data_u):
        u_t, u_x = self.first(t, x)
        residual = u_t + self.net(t, x) * u_x - ops.exp(self.log_nu) * self.second(t, x)
        misfit = self.net(data_t, data_x) - data_u
        return ops.square(residual).mean() + 10 * ops.square(misfit).mean()


def main():
    options = pictures.options(
        __doc__.splitlines()[0], "inverse_problem.png", steps=4000, points=1000, seed=1
    )
    ms.set_seed(options.seed)
    random = np.random.default_rng(options.seed)

    def uniform(n):
        t, x = random.uniform(0, 1, (n, 1)), random.uniform(-1, 1, (n, 1))
        return t.astype(np.float32), x.astype(np.float32)

    points, (t, x) = uniform(options.points), uniform(300)
    u = (exact(t, x) + random.normal(0, 0.02, t.shape)).astype(np.float32)
    batch = [Tensor(a) for a in (*points, t, x, u)]
    model = Inverse(Network())
    schedule = nn.cosine_decay_lr(1e-5, 5e-3, options.steps + 1, 1, options.steps + 1)
    optimizer = nn.Adam(model.trainable_params(), learning_rate=schedule)
    step = nn.TrainOneStepCell(model, optimizer)
    step.set_train()
    ms.set_context(mode=ms.GRAPH_MODE)
    guesses = []
    for i in range(options.steps):
        loss = step(*batch)
        guesses.append(float(np.exp(model.log_nu.asnumpy()[0])))
        if (i + 1) % max(options.steps // 5, 1) == 0:
            print(
                f"step {i + 1:6d}  loss {float(loss.asnumpy()):.2e}  nu {guesses[-1]:.4f}",
                flush=True,
            )
    print(f"nu = {guesses[-1]:.4f}, {abs(guesses[-1] / NU - 1):.1%} from {NU}")
    if options.picture and (made := pictures.figure(2)):
        figure, (left, right) = made
        left.plot(guesses, label="found")
        left.axhline(NU, color="0.6", linestyle="--", label=f"true: {NU}")
        left.set(title=f"viscosity: {guesses[-1]:.4f} after {len(guesses)} steps")
        left.set(xlabel="step", ylabel="viscosity", ylim=(0, None))
        left.legend(frameon=False)
        line = np.linspace(-1, 1, 201, dtype=np.float32)[:, None]
        for time in (0.0, 0.5, 1.0):
            at = np.full_like(line, time)
            label = "exact" if time == 0 else None
            right.plot(line, exact(at, line), color="0.7", lw=4, label=label)
            network = model.net(Tensor(at), Tensor(line)).asnumpy()
            right.plot(line, network, label=f"network, t = {time}")
        right.plot(x, u, ".", color="0.4", ms=2, label="observations, all times")
        right.set(title="the front at three times", xlabel="x", ylabel="u", ylim=(-0.95, 1.1))
        right.legend(frameon=False, loc="lower left")
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()
