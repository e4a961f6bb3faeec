"""Digits, classified by a network that computes in float16, with a dynamic loss scale.

The pictures are drawn here: the figures of a 5 x 7 font, moved, thickened, faded and with noise, so
that nothing has to be loaded. Weights and optimiser stay in float32 (level O2); the loss is
scaled, and a step whose gradients overflow is left out while the scale is halved.

    python -m gradcell demo digits --plot digits.png
"""

from __future__ import annotations

import time

import numpy as np

import gradcell as gc
from gradcell import amp, nn
from gradcell.demo.progress import picture, progress

#: Rows of each figure, five bits a row.
FONT = (
    (14, 17, 19, 21, 25, 17, 14), (4, 12, 4, 4, 4, 4, 14), (14, 17, 1, 2, 4, 8, 31),
    (31, 2, 4, 2, 1, 17, 14), (2, 6, 10, 18, 31, 2, 2), (31, 16, 30, 1, 1, 17, 14),
    (6, 8, 16, 30, 17, 17, 14), (31, 1, 2, 4, 8, 8, 8), (14, 17, 17, 14, 17, 17, 14),
    (14, 17, 17, 15, 1, 2, 12),
)  # fmt: skip
SIDE = 11
FIRST_SCALE = 2**28


def draw(n: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Pictures [n, SIDE * SIDE] with values about 0 and 1, and the figures they show [n]."""
    shapes = np.array(
        [[[row >> (4 - k) & 1 for k in range(5)] for row in figure] for figure in FONT]
    )
    labels = random.integers(0, 10, n)
    pictures: np.ndarray = np.zeros((n, SIDE, SIDE))
    top, left = random.integers(0, SIDE - 6, n), random.integers(0, SIDE - 4, n)
    rows, columns = top[:, None] + np.arange(7), left[:, None] + np.arange(5)
    pictures[np.arange(n)[:, None, None], rows[:, :, None], columns[:, None]] = shapes[labels]
    thick = random.random((n, 1, 1)) * np.roll(pictures, 1, 2)  # to the right, by a part
    pictures = np.maximum(pictures, thick) * random.uniform(0.5, 1, (n, 1, 1))
    pictures += random.normal(0, 0.25, pictures.shape)
    return pictures.reshape(n, -1).astype(np.float32), labels.astype(np.int32)


def train(
    steps: int, points: int, batch: int = 128, seed: int = 0, verbose: bool = True
) -> tuple[nn.Cell, list[float], list[float], float]:
    """The trained network, losses and scales by step, and the fraction of new pictures classified
    correctly."""
    gc.set_seed(seed)
    random = np.random.default_rng(seed)
    net = nn.SequentialCell(
        nn.Dense(SIDE * SIDE, 256), nn.ReLU(), nn.Dense(256, 128), nn.ReLU(), nn.Dense(128, 10)
    )
    amp.auto_mixed_precision(net, "O2")
    loss_net = nn.WithLossCell(net, nn.CrossEntropyLoss())
    rate = nn.cosine_decay_lr(1e-5, 2e-3, steps + 1, 1, steps + 1)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), rate, weight_decay=0.05)
    scale = nn.DynamicLossScaleUpdateCell(
        loss_scale_value=FIRST_SCALE, scale_factor=2, scale_window=200
    )
    step = nn.TrainOneStepWithLossScaleCell(loss_net, optimizer, scale_sense=scale)
    step.set_train()
    data, labels = draw(points, random)
    losses: list[float] = []
    scales: list[float] = []
    for _ in progress(steps, losses, every=500) if verbose else range(steps):
        chosen = random.integers(0, points, batch)
        loss, _, now = step(gc.Tensor(data[chosen]), gc.Tensor(labels[chosen]))
        losses.append(float(loss))
        scales.append(float(now))
    data, labels = draw(2000, random)
    read = net(gc.Tensor(data)).asnumpy().argmax(1)
    return net, losses, scales, float((read == labels).mean())


def plot(net: nn.Cell, losses: list[float], scales: list[float], right: float, path: str) -> None:
    """The loss, the scale, and some new pictures with the predicted figures; `right`: the fraction
    of correct predictions."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.2), layout="constrained")
    curves, examples = figure.subfigures(1, 2, width_ratios=(3, 2))
    left, middle = curves.subplots(1, 2)
    left.semilogy(losses, linewidth=0.5, alpha=0.5)
    window = max(len(losses) // 50, 1)
    means = np.convolve(losses, np.ones(window) / window, "valid")
    left.semilogy(np.arange(len(means)) + window / 2, means, label=f"mean of {window} steps")
    left.set(title="loss in float16", xlabel="step", ylabel="cross entropy")
    left.legend(frameon=False)
    middle.step(range(len(scales) + 1), [FIRST_SCALE, *scales], where="post")
    middle.set_yscale("log", base=2)
    middle.set(title="loss scale: halved at each overflow", xlabel="step")
    data, labels = draw(24, np.random.default_rng(1))
    predicted = net(gc.Tensor(data)).asnumpy().argmax(1)
    places = examples.subplots(4, 6)
    for place, image, found, label in zip(places.flat, data, predicted, labels, strict=True):
        place.imshow(image.reshape(SIDE, SIDE), cmap="gray_r")
        place.set(xticks=[], yticks=[])
        place.set_title(str(found), color="C2" if found == label else "C3", fontsize=10, pad=2)
    examples.suptitle(f"new pictures with predictions: {right:.1%} correct", fontsize=12)
    figure.savefig(path, dpi=120)


def run(steps: int, points: int, path: str) -> None:
    """Run `python -m gradcell demo digits`."""
    print("A network of 121-256-128-10 in float16; the loss scale starts at 2^28.")
    start = time.perf_counter()
    net, losses, scales, right = train(steps, points)
    seconds = time.perf_counter() - start
    print(
        f"{right:.1%} of new pictures classified correctly, after {seconds:.0f} s; scale {scales[-1]:.0f}"
    )
    picture(lambda: plot(net, losses, scales, right, path), path)
