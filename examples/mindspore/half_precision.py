"""Three networks trained in float32, bfloat16 and float16: LeNet5, a small GPT, an LSTM tagger.

LeNet5 (LeCun et al., 1998) reads scikit-learn's handwritten digits, enlarged to 32 x 32; the GPT and
the tagger are those of transformer.py and lstm_tagger.py. Level O2: parameters and optimiser stay in
float32, layers compute in the smaller type. In float16 the loss is scaled; a step whose gradients
overflow is left out, and the scale is halved.

    python -m gradcell run half_precision.py --network lenet
"""

import time
from pathlib import Path

import mindspore as ms
import numpy as np
import pictures
from lstm_tagger import Likelihood, Tagger, accuracy, batch as sentences
from mindspore import Tensor, nn, ops
from transformer import Writer

DTYPES = ("float32", "bfloat16", "float16")


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.images = nn.SequentialCell(
            nn.Conv2d(1, 6, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 5, pad_mode="valid"), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        )  # fmt: skip
        self.classes = nn.SequentialCell(
            nn.Dense(400, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10)
        )

    def construct(self, x):
        return self.classes(self.images(x))


# A task: its network, loss(*batch), a batch, what is measured in the end, the rate, steps. ----------


def lenet(random):
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = random.permutation(len(digits.target))
    x = np.kron(digits.images / 16, np.ones((1, 4, 4)))[order, None].astype(np.float32)
    y = digits.target[order].astype(np.int32)
    net, entropy = LeNet5(), nn.CrossEntropyLoss()

    def batch():
        rows = random.integers(0, 1437, 64)
        return x[rows], y[rows]

    def right():
        found = net(Tensor(x[1437:])).asnumpy().argmax(1)
        return 100 * np.mean(found == y[1437:])

    def loss(x, y):
        return entropy(net(x).astype(ms.float32), y)

    return net, loss, batch, right, 2e-3, 400


def gpt(random, length=64):
    here = Path(__file__).resolve().parent
    text = "".join(file.read_text() for file in sorted(here.glob("*.py")))
    letters = sorted(set(text))
    learnt, kept = np.split(
        np.array([letters.index(c) for c in text], np.int32), [len(text) * 9 // 10]
    )
    net, entropy = Writer(len(letters), 64, 4, 2, length), nn.CrossEntropyLoss()

    def rows(codes, n, random):
        starts = random.integers(0, len(codes) - length - 1, n)
        found = np.stack([codes[s : s + length + 1] for s in starts])
        return found[:, :-1], found[:, 1:]

    def loss(seen, wanted):
        logits = net(seen).reshape(-1, len(letters))
        return entropy(logits.astype(ms.float32), wanted.reshape(-1))

    def unseen():
        return float(loss(*map(Tensor, rows(kept, 128, np.random.default_rng(0)))).asnumpy())

    return net, loss, lambda: rows(learnt, 16, random), unseen, 3e-3, 800


def tagger(random):
    net = Tagger()
    likelihood = Likelihood(net)

    def loss(words, tags, mask):
        return likelihood(words, tags, mask)

    def right():
        return 100 * accuracy(net, 500, np.random.default_rng(0))

    return net, loss, lambda: sentences(32, random), right, 5e-3, 300


#: What a task measures, and what PyTorch's twin of it comes to in float32 with the same data,
#: batches, optimiser and number of steps.
TASKS = {
    "lenet": (lenet, "digits classified correctly, %", 97.5),
    "gpt": (gpt, "nats per letter on held-out text", 1.65),
    "lstm": (tagger, "sentences tagged correctly, %", 100.0),
}


def train(name, dtype, steps=0, seed=1):
    """(losses, what is measured in the end, seconds)."""
    ms.set_seed(seed)
    net, loss, batch, measure, rate, most = TASKS[name][0](np.random.default_rng(seed))
    if dtype != "float32":
        ms.amp.auto_mixed_precision(net, "O2", getattr(ms, dtype))
    steps = steps or most
    schedule = nn.cosine_decay_lr(rate / 100, rate, steps + 1, 1, steps + 1)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=schedule)
    scaler = ms.amp.DynamicLossScaler(2**16 if dtype == "float16" else 1, 2, 100)

    def scaled(*arguments):
        value = loss(*arguments)
        return scaler.scale(value), value

    gradient = ms.value_and_grad(scaled, None, optimizer.parameters, has_aux=True)

    def step(*arguments):
        (_, value), gradients = gradient(*arguments)
        gradients = scaler.unscale(gradients)
        if dtype != "float16":
            return ops.depend(value, optimizer(gradients))
        finite = ms.amp.all_finite(gradients)
        scaler.adjust(finite)
        if finite:  # asks for a value, so that this one is not compiled
            optimizer(gradients)
        return value

    if dtype != "float16":
        step = ms.jit(step)

    losses, began = [], time.perf_counter()
    for _ in range(steps):
        losses.append(float(step(*map(Tensor, batch())).asnumpy()))
    seconds = time.perf_counter() - began
    net.set_train(False)
    return losses, measure(), seconds


def smooth(losses, n=20):
    return np.convolve(losses, np.ones(n) / n, "valid") if len(losses) > n else losses


def main():
    options = pictures.options(
        __doc__.splitlines()[0], "half_precision.png", network="", dtype="", steps=0, seed=1
    )
    networks = [options.network] if options.network else list(TASKS)
    made = pictures.figure(len(networks)) if options.picture else None
    for k, name in enumerate(networks):
        _, what, reference = TASKS[name]
        for dtype in [options.dtype] if options.dtype else DTYPES:
            losses, measured, seconds = train(name, dtype, options.steps, options.seed)
            print(f"{name} in {dtype}: {what} {measured:.2f}, {seconds:.0f} s", flush=True)
            if made:
                made[1][k].semilogy(smooth(losses), label=f"{dtype}: {measured:.2f}", lw=1)
        if made:
            made[1][k].set(xlabel="step", ylabel="loss", title=name)
            made[1][k].legend(title=f"{what}\n(PyTorch in float32: {reference:.2f})")
    if made:
        pictures.save(made[0], options.picture)


if __name__ == "__main__":
    main()
