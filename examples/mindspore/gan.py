"""A generative adversarial network that learns a ring of eight Gaussians.

Generator and discriminator take turns (Goodfellow et al., 2014), with the non-saturating loss.

    python -m gradcell run gan.py
"""

import mindspore as ms
import numpy as np
import pictures
from mindspore import Tensor, nn, ops

WIDTH = 0.05


def ring(n, random):
    """n points of the mixture: centres on the unit circle."""
    angle = 2 * np.pi * random.integers(0, 8, n) / 8
    centres = np.stack([np.cos(angle), np.sin(angle)], 1)
    return (centres + random.normal(0, WIDTH, (n, 2))).astype(np.float32)


def near(points):
    """For each point the nearest centre, and the distance from it."""
    angle = 2 * np.pi * np.arange(8) / 8
    apart = points[:, None] - np.stack([np.cos(angle), np.sin(angle)], 1)
    distance = np.sqrt((apart**2).sum(-1))
    return distance.argmin(1), distance.min(1)


def layers(*sizes):
    made = []
    for n, m in zip(sizes[:-2], sizes[1:-1]):
        made += [nn.Dense(n, m, weight_init="HeUniform"), nn.LeakyReLU(0.2)]
    return nn.SequentialCell(*made, nn.Dense(sizes[-2], sizes[-1], weight_init="XavierUniform"))


class Players(nn.Cell):
    """Both networks in one cell: their weights have names of their own."""

    def __init__(self, noise, width=96):
        super().__init__()
        self.generator = layers(noise, width, width, 2)
        self.discriminator = layers(2, width, width, 1)


def main():
    options = pictures.options(
        __doc__.splitlines()[0], "gan.png", steps=4000, batch=256, noise=8, seed=5
    )
    ms.set_seed(options.seed)
    random = np.random.default_rng(options.seed)
    players = Players(options.noise)
    generator, discriminator = players.generator, players.discriminator
    likelihood = nn.BCEWithLogitsLoss()
    made_by = nn.Adam(generator.trainable_params(), learning_rate=5e-4, beta1=0.5)
    judged_by = nn.Adam(discriminator.trainable_params(), learning_rate=1e-3, beta1=0.5)

    def judge(real, noise):
        fake = ops.stop_gradient(generator(noise))
        yes, no = discriminator(real), discriminator(fake)
        return likelihood(yes, ops.ones_like(yes)) + likelihood(no, ops.zeros_like(no))

    def deceive(noise):
        answer = discriminator(generator(noise))
        return likelihood(answer, ops.ones_like(answer))

    judge_gradient = ms.value_and_grad(judge, None, judged_by.parameters)
    deceive_gradient = ms.value_and_grad(deceive, None, made_by.parameters)

    @ms.jit
    def discriminator_step(real, noise):
        loss, gradients = judge_gradient(real, noise)
        judged_by(gradients)
        return loss

    @ms.jit
    def generator_step(noise):
        loss, gradients = deceive_gradient(noise)
        made_by(gradients)
        return loss

    def noise(n):
        return Tensor(random.normal(size=(n, options.noise)).astype(np.float32))

    losses = []
    for i in range(options.steps):
        n = options.batch
        pair = discriminator_step(Tensor(ring(n, random)), noise(n)), generator_step(noise(n))
        losses.append([float(loss.asnumpy()) for loss in pair])
        if (i + 1) % max(options.steps // 5, 1) == 0:
            print(
                "step {:6d}  discriminator {:.3f}  generator {:.3f}".format(i + 1, *losses[-1]),
                flush=True,
            )
    made = generator(noise(2000)).asnumpy()
    centre, distance = near(made)
    good = distance < 4 * WIDTH
    found = np.bincount(centre[good], minlength=8) > 20
    print(f"{found.sum()} of 8 Gaussians found, {good.mean():.0%} of the points within four widths")
    if options.picture and (plot := pictures.figure(2)):
        figure, (left, right) = plot
        left.plot(*ring(2000, random).T, ".", ms=2, label="data")
        left.plot(*made.T, ".", ms=2, label="generated")
        left.set_aspect("equal")
        left.legend()
        right.plot(losses, label=["discriminator", "generator"], lw=0.5)
        right.set(xlabel="step", ylabel="loss")
        right.legend()
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()
