"""Sequence labelling: a bidirectional LSTM with a conditional random field marks names in sentences.

The sentences come from a small grammar; a name is one to three words, tagged B (its first word) and
I (the rest); all other words are O. A word's form does not tell whether it belongs to a name, its
neighbours do. The loss is the negative logarithm of the right tags' probability under the random
field (Lafferty, McCallum and Pereira, 2001), by the forward algorithm; Viterbi's finds the best tags.

    python -m gradcell run lstm_tagger.py
"""

import mindspore as ms
import numpy as np
import pictures
from mindspore import Parameter, Tensor, nn, ops

TAGS = "OBI"
BEFORE, AFTER = ["met", "called", "saw", "thanked"], ["yesterday", "again", "there", "twice"]
WORDS = ["green", "river", "may", "stone", "rose", "hill", "carter", "west", "brook", "lake"]
VOCABULARY = ["", "we", "the", "near", "and", *BEFORE, *AFTER, *WORDS]
LENGTH = 14


def sentence(random):
    """Words and tags: "we met NAME (and NAME) near the WORD WORD yesterday"."""
    words, tags = ["we", random.choice(BEFORE)], "OO"
    for k in range(random.integers(1, 3)):
        if k:
            words, tags = [*words, "and"], tags + "O"
        n = random.integers(1, 4)
        words, tags = [*words, *random.choice(WORDS, n)], tags + "B" + "I" * (n - 1)
    if random.random() < 0.6:
        n = random.integers(1, 3)
        words, tags = [*words, "near", "the", *random.choice(WORDS, n)], tags + "OO" + "O" * n
    return [*words, random.choice(AFTER)], tags + "O"


def batch(n, random):
    """Codes of words and tags [n, LENGTH], zero where the sentence has ended, and the mask."""
    words, tags = np.zeros((n, LENGTH), np.int32), np.zeros((n, LENGTH), np.int32)
    mask = np.zeros((n, LENGTH), np.float32)
    for i in range(n):
        text, marks = sentence(random)
        words[i, : len(text)] = [VOCABULARY.index(w) for w in text]
        tags[i, : len(text)] = [TAGS.index(t) for t in marks]
        mask[i, : len(text)] = 1
    return words, tags, mask


class Tagger(nn.Cell):
    def __init__(self, width=24):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.scores = nn.Dense(2 * width, len(TAGS))
        self.change = Parameter(Tensor(np.zeros((len(TAGS), len(TAGS)), np.float32)), name="change")

    def construct(self, words):
        hidden, _ = self.lstm(self.embedding(words))
        return self.scores(hidden)


class Likelihood(nn.Cell):
    def __init__(self, tagger):
        super().__init__()
        self.tagger = tagger

    def construct(self, words, tags, mask):
        scores, change = self.tagger(words), self.tagger.change
        chosen = ops.one_hot(tags, len(TAGS), Tensor(1.0), Tensor(0.0))
        right = (scores * chosen).sum(-1) * mask
        steps = (ops.matmul(chosen[:, :-1], change) * chosen[:, 1:]).sum(-1) * mask[:, 1:]
        total = scores[:, 0]
        for t in range(1, LENGTH):
            longer = ops.logsumexp(total.expand_dims(2) + change, 1) + scores[:, t]
            here = mask[:, t].expand_dims(1)
            total = here * longer + (1 - here) * total
        return (ops.logsumexp(total, 1) - right.sum(1) - steps.sum(1)).mean()


def best_tags(scores, change, length):
    """Viterbi's algorithm."""
    total, back = scores[0], []
    for t in range(1, length):
        ways = total[:, None] + change
        back.append(ways.argmax(0))
        total = ways.max(0) + scores[t]
    path = [int(total.argmax())]
    for pointers in reversed(back):
        path.append(int(pointers[path[-1]]))
    return path[::-1]


def accuracy(tagger, n, random):
    """The share of sentences that are tagged without a fault."""
    words, tags, mask = batch(n, random)
    scores, change = tagger(Tensor(words)).asnumpy(), tagger.change.asnumpy()
    lengths = mask.sum(1).astype(int)
    return np.mean(
        [best_tags(s, change, k) == list(t[:k]) for s, t, k in zip(scores, tags, lengths)]
    )


def main():
    options = pictures.options(
        __doc__.splitlines()[0], "lstm_tagger.png", steps=400, batch=32, tests=300, seed=6
    )
    ms.set_seed(options.seed)
    random = np.random.default_rng(options.seed)
    tagger = Tagger()
    optimizer = nn.Adam(tagger.trainable_params(), learning_rate=5e-3)
    step = nn.TrainOneStepCell(Likelihood(tagger), optimizer)
    step.set_train()
    ms.set_context(mode=ms.GRAPH_MODE)
    losses, shares = [], []
    for i in range(options.steps):
        losses.append(float(step(*map(Tensor, batch(options.batch, random))).asnumpy()))
        if (i + 1) % max(options.steps // 10, 1) == 0:
            share = accuracy(tagger, options.tests, random)
            shares.append((i + 1, share))
            print(
                f"step {i + 1:5d}  loss {losses[-1]:.4f}  sentences right {share:.1%}", flush=True
            )
    words, _ = sentence(random)
    codes = np.zeros((1, LENGTH), np.int32)
    codes[0, : len(words)] = [VOCABULARY.index(w) for w in words]
    found = best_tags(tagger(Tensor(codes)).asnumpy()[0], tagger.change.asnumpy(), len(words))
    print(" ".join(f"{w}/{TAGS[t]}" for w, t in zip(words, found)))
    if options.picture and (made := pictures.figure(2)):
        figure, (left, right) = made
        left.semilogy(losses)
        left.set(xlabel="step", ylabel="loss")
        right.plot(*zip(*shares), "o-")
        right.set(xlabel="step", ylabel="sentences tagged correctly", ylim=(0, 1.02))
        pictures.save(figure, options.picture)


if __name__ == "__main__":
    main()
