"""A transformer that learns to write, letter by letter, from a text file.

Blocks of causal self-attention and a two-layer network, each after a layer norm (Vaswani et al.,
2017; Radford et al., 2019). By default it reads this folder's own programs.

    python -m gradcell run transformer.py --text some.txt
"""

import textwrap
from pathlib import Path

import mindspore as ms
import numpy as np
import pictures
from mindspore import Parameter, Tensor, nn, ops
from mindspore.common.initializer import Normal, initializer


class Attention(nn.Cell):
    def __init__(self, width, heads, length):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.inward, self.outward = nn.Dense(width, 3 * width), nn.Dense(width, width)
        self.hidden = Tensor(np.triu(np.full((length, length), -1e9, np.float32), 1))

    def construct(self, x):
        batch, length, width = x.shape
        parts = self.inward(x).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = ops.unbind(parts.transpose(2, 0, 3, 1, 4), 0)
        scores = ops.matmul(q, k.swapaxes(-1, -2)) * self.scale + self.hidden[:length, :length]
        mixed = ops.matmul(ops.softmax(scores, -1).astype(v.dtype), v)
        return self.outward(mixed.transpose(0, 2, 1, 3).reshape(batch, length, width))


class Block(nn.Cell):
    def __init__(self, width, heads, length):
        super().__init__()
        self.norms = nn.CellList([nn.LayerNorm([width]) for _ in range(2)])
        self.attention = Attention(width, heads, length)
        self.network = nn.SequentialCell(
            nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width)
        )

    def construct(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.network(self.norms[1](x))


class Writer(nn.Cell):
    def __init__(self, letters, width, heads, blocks, length):
        super().__init__()
        self.letters = nn.Embedding(letters, width, embedding_table=Normal(0.02))
        self.places = Parameter(initializer(Normal(0.02), [length, width]), name="places")
        self.blocks = nn.SequentialCell(*[Block(width, heads, length) for _ in range(blocks)])
        self.norm, self.head = nn.LayerNorm([width]), nn.Dense(width, letters)

    def construct(self, text):
        x = self.letters(text) + self.places[: text.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def write(net, text, n, length, random):
    """n letters more, drawn as the network's probabilities say."""
    for _ in range(n):
        logits = net(Tensor(np.array([text[-length:]]), ms.int32)).asnumpy()[0, -1]
        chance = np.exp((logits - logits.max()) / 0.7)
        text.append(int(random.choice(len(chance), p=chance / chance.sum())))
    return text


def main():
    here = Path(__file__).resolve().parent
    options = pictures.options(
        __doc__.splitlines()[0], "transformer.png",
        steps=3000, batch=16, length=64, width=64, blocks=2, letters=700, seed=4, text="",
    )  # fmt: skip
    ms.set_seed(options.seed)
    ms.set_context(mode=ms.GRAPH_MODE)
    random = np.random.default_rng(options.seed)
    files = [Path(options.text)] if options.text else sorted(here.glob("*.py"))
    text = "".join(file.read_text() for file in files)
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text], np.int32)
    learnt, kept = np.split(codes, [int(0.9 * len(codes))])
    print(f"{len(text)} letters, {len(letters)} different")
    net = Writer(len(letters), options.width, 4, options.blocks, options.length)
    entropy = nn.CrossEntropyLoss()

    def loss(seen, wanted):
        return entropy(net(seen).reshape(-1, len(letters)), wanted.reshape(-1))

    schedule = nn.cosine_decay_lr(1e-4, 3e-3, options.steps + 1, 1, options.steps + 1)
    optimizer = nn.AdamWeightDecay(net.trainable_params(), schedule, weight_decay=0.01)
    gradient = ms.value_and_grad(loss, None, optimizer.parameters)

    @ms.jit
    def step(seen, wanted):
        value, gradients = gradient(seen, wanted)
        optimizer(ops.clip_by_global_norm(gradients, 1.0))
        return value

    def batch(codes, n):
        starts = random.integers(0, len(codes) - options.length - 1, n)
        rows = np.stack([codes[s : s + options.length + 1] for s in starts])
        return Tensor(rows[:, :-1]), Tensor(rows[:, 1:])

    losses = []
    for i in range(options.steps):
        losses.append(float(step(*batch(learnt, options.batch)).asnumpy()))
        if (i + 1) % max(options.steps // 5, 1) == 0:
            print(f"step {i + 1:6d}  nats per letter {losses[-1]:.3f}", flush=True)
    unseen = float(loss(*batch(kept, 4 * options.batch)).asnumpy())
    print(
        f"nats per letter: {losses[0]:.2f} -> {np.mean(losses[-20:]):.2f}, on held-out text {unseen:.2f}"
    )
    written = write(net, [letters.index("\n")], options.letters, options.length, random)
    sample = "".join(letters[c] for c in written)
    print(sample)
    if options.picture and (made := pictures.figure(2)):
        figure, (left, right) = made
        left.plot(losses, lw=0.5, alpha=0.5)
        means = np.convolve(losses, np.ones(50) / 50, "valid")
        left.plot(np.arange(len(means)) + 25, means, color="C0", label="training, mean of 50 steps")
        left.axhline(unseen, color="k", ls=":", label=f"held-out text: {unseen:.2f}")
        left.set(title="cross entropy", xlabel="step", ylabel="nats per letter")
        left.legend(frameon=False)
        lines = [
            part
            for line in sample.splitlines()
            for part in textwrap.wrap(line, 56, drop_whitespace=False) or [""]
        ]
        right.text(
            0.02,
            0.97,
            "\n".join(lines[:21]).replace("$", r"\$"),
            va="top",
            family="monospace",
            fontsize=7,
        )
        right.set(title="a text that the network wrote", xticks=[], yticks=[])
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()
