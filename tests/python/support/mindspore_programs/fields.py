"""Twenty more small programs, as `applications` has them: reinforcement learning, graphs, diffusion, speech,
detection, molecular dynamics, methods of papers on optimisation.

`MAKERS` has a function for each that makes a step and its batch; bench/applications.py times them.
"""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from applications import _data, _filled, _losses, _tensor, _trained


def _mlp(*sizes, between=nn.Tanh):
    layers = []
    for a, b in zip(sizes[:-1], sizes[1:]):  # noqa: B905, RUF007
        layers += [nn.Dense(a, b), between()]
    return nn.SequentialCell(*layers[:-1])


def _ints(seed, most, *shape):
    return Tensor(np.random.RandomState(seed).randint(0, most, shape).astype(np.int32))


# Reinforcement learning -----------------------------------------------------------------------------


class _Clipped(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body, self.policy, self.value = _mlp(6, 32, 32), nn.Dense(32, 4), nn.Dense(32, 1)

    def construct(self, x, action, before, advantage, returns):
        h = ops.tanh(self.body(x))
        logs = ops.log_softmax(self.policy(h), -1)
        ratio = ops.exp(ops.reduce_sum(logs * action, -1) - before)
        gain = ops.minimum(ratio * advantage, ops.clip_by_value(ratio, 0.8, 1.2) * advantage)
        entropy = -ops.reduce_sum(ops.exp(logs) * logs, -1)
        error = ops.square(ops.squeeze(self.value(h), -1) - returns)
        return -gain.mean() + 0.5 * error.mean() - 0.01 * entropy.mean()


def _proximal_policy():
    action = Tensor(np.eye(4, dtype=np.float32)[np.arange(64) % 4])
    batch = _tensor(1, 64, 6), action, _tensor(2, 64) * 0.1 - 1.4, _tensor(3, 64), _tensor(4, 64)
    return _trained(_Clipped()), batch


class _TwinCritics(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = _mlp(8, 32, 1), _mlp(8, 32, 1)
        self.actor = _mlp(6, 32, 4)
        self.temperature = Parameter(Tensor([-1.0], ms.float32), name="temperature")

    def construct(self, x, action, reward, noise):
        mean, spread = ops.split(self.actor(x), 2, 1)
        spread = ops.clip_by_value(spread, -3.0, 1.0)
        drawn = mean + ops.exp(spread) * noise
        acted = ops.tanh(drawn)
        density = -0.5 * ops.square(noise) - spread - ops.log(1.0 - ops.square(acted) + 1e-4)
        density = ops.reduce_sum(density, 1)
        of_drawn = ops.concat((x, acted), 1)
        least = ops.minimum(self.first(of_drawn), self.second(of_drawn)).squeeze(1)
        target = ops.stop_gradient(reward + 0.9 * least)
        given = ops.concat((x, action), 1)
        errors = [
            ops.square(q(given).squeeze(1) - target).mean() for q in (self.first, self.second)
        ]
        alpha = ops.exp(self.temperature)
        policy = (ops.stop_gradient(alpha) * density - least).mean()
        return errors[0] + errors[1] + policy - (alpha * ops.stop_gradient(density + 2.0)).mean()


def _soft_actor_critic():
    batch = _tensor(1, 64, 6), ops.tanh(_tensor(2, 64, 2)), _tensor(3, 64), _tensor(4, 64, 2)
    return _trained(_TwinCritics()), batch


class _Episodes(nn.Cell):
    """A policy that an LSTM reads off episodes; returns are discounted sums, less a baseline."""

    def __init__(self):
        super().__init__()
        self.memory, self.policy = nn.LSTM(5, 16, batch_first=True), nn.Dense(16, 3)
        steps = np.arange(12)
        fall = np.where(
            steps[None] >= steps[:, None], 0.95 ** (steps[None] - steps[:, None] + 0.0), 0
        )
        self.discount = Tensor(fall.astype(np.float32))

    def construct(self, x, action, reward):
        out, _ = self.memory(x)
        logs = ops.reduce_sum(ops.log_softmax(self.policy(out), -1) * action, -1)
        returns = ops.matmul(reward, self.discount.T)
        return 1.0 - (logs * (returns + 2.0)).mean()


def _policy_gradient():
    action = np.eye(3, dtype=np.float32)[np.arange(8 * 12).reshape(8, 12) % 3]
    return _trained(_Episodes()), (_tensor(1, 8, 12, 5), Tensor(action), _tensor(2, 8, 12))


# Graphs ---------------------------------------------------------------------------------------------


def _edges(seed, nodes, edges):
    return _ints(seed, nodes, edges), _ints(seed + 1, nodes, edges)


class _Attentive(nn.Cell):
    def __init__(self):
        super().__init__()
        self.maps = nn.CellList([nn.Dense(8, 16), nn.Dense(16, 4)])
        self.ends = nn.CellList([nn.Dense(16, 2), nn.Dense(4, 2)])
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, mask, label):
        for i in range(2):
            h = self.maps[i](x)
            both = self.ends[i](h)
            scores = ops.leaky_relu(both[:, 0:1] + both[:, 1:2].T, 0.2) + mask
            x = ops.elu(ops.matmul(ops.softmax(scores, -1), h))
        return self.loss(x, label)


def _graph_attention():
    near = np.random.RandomState(1).rand(30, 30) + np.eye(30) > 0.8
    mask = Tensor(np.where(near, 0, -1e9).astype(np.float32))
    return _trained(_Attentive()), (_tensor(2, 30, 8), mask, _ints(3, 4, 30))


class _Sampled(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(16, 16), nn.Dense(32, 3)
        self.loss = nn.CrossEntropyLoss()

    def mean(self, x, source, target):
        total = ops.unsorted_segment_sum(ops.gather(x, source, 0), target, 40)
        count = ops.unsorted_segment_sum(ops.ones((160, 1), ms.float32), target, 40)
        return total / ops.maximum(count, Tensor(1.0, ms.float32))

    def construct(self, x, source, target, label):
        h = ops.relu(self.first(ops.concat((x, self.mean(x, source, target)), 1)))
        h = h / (ops.sqrt(ops.reduce_sum(h * h, 1).expand_dims(1)) + 1e-6)
        return self.loss(self.second(ops.concat((h, self.mean(h, source, target)), 1)), label)


def _graph_samples():
    return _trained(_Sampled()), (_tensor(1, 40, 8), *_edges(2, 40, 160), _ints(4, 3, 40))


class _Isomorphism(nn.Cell):
    def __init__(self):
        super().__init__()
        self.nets = nn.CellList(
            [_mlp(6, 16, 16, between=nn.ReLU), _mlp(16, 16, 16, between=nn.ReLU)]
        )
        self.own = Parameter(Tensor([0.1, 0.2], ms.float32), name="own")
        self.out = nn.Dense(16, 1)

    def construct(self, x, source, target, graph, wanted):
        for i in range(2):
            near = ops.unsorted_segment_sum(ops.gather(x, source, 0), target, 48)
            x = ops.relu(self.nets[i]((1.0 + self.own[i]) * x + near))
        whole = ops.unsorted_segment_sum(x, graph, 6)
        return ops.square(self.out(whole).squeeze(1) - wanted).mean()


def _graph_isomorphism():
    graph = Tensor(np.repeat(np.arange(6), 8).astype(np.int32))
    return _trained(_Isomorphism()), (_tensor(1, 48, 6), *_edges(2, 48, 150), graph, _tensor(5, 6))


# Diffusion and other generators -----------------------------------------------------------------------


class _Velocity(nn.Cell):
    """Predicts the velocity of a diffusion; the time is embedded in sines."""

    def __init__(self):
        super().__init__()
        self.net = _mlp(2 + 16, 64, 64, 2, between=nn.SiLU)
        self.rates = Tensor(np.exp(np.linspace(0, 4, 8)).astype(np.float32))

    def at(self, x, t):
        phase = t * self.rates
        return self.net(ops.concat((x, ops.sin(phase), ops.cos(phase)), 1))

    def construct(self, x, noise, t):
        a, b = ops.cos(t * (np.pi / 2)), ops.sin(t * (np.pi / 2))
        return ops.square(self.at(a * x + b * noise, t) - (a * noise - b * x)).mean()


def _velocity_prediction():
    return _trained(_Velocity()), (
        _tensor(1, 128, 2),
        _tensor(2, 128, 2),
        ops.sigmoid(_tensor(3, 128, 1)),
    )


class _FlowMatching(_Velocity):
    def construct(self, x, noise, t):
        return ops.square(self.at((1.0 - t) * noise + t * x, t) - (x - noise)).mean()


def _flow_matching():
    return _trained(_FlowMatching()), (
        _tensor(4, 128, 2),
        _tensor(5, 128, 2),
        ops.sigmoid(_tensor(6, 128, 1)),
    )


class _SlicedScores(nn.Cell):
    """Sliced score matching: a derivative along a direction within the loss."""

    def __init__(self):
        super().__init__()
        self.net = _mlp(3, 32, 32, 3)

        def along(x, v):
            return ops.reduce_sum(self.net(x) * v)

        self.slope = ms.grad(along)

    def construct(self, x, v):
        score = ops.reduce_sum(self.net(x) * v, 1)
        return (ops.reduce_sum(self.slope(x, v) * v, 1) + 0.5 * score * score).mean()


def _score_matching():
    return _trained(_SlicedScores()), (_tensor(1, 64, 3), _tensor(2, 64, 3))


class _Couplings(nn.Cell):
    """A normalising flow of affine couplings (RealNVP)."""

    def __init__(self):
        super().__init__()
        self.nets = nn.CellList([_mlp(2, 32, 4) for _ in range(4)])

    def construct(self, x):
        a, b = x[:, :2], x[:, 2:]
        volume = 0.0
        for net in self.nets:
            found = net(a)
            scale = ops.tanh(found[:, :2])
            volume = volume + ops.reduce_sum(scale, 1)
            a, b = b * ops.exp(scale) + found[:, 2:], a
        return (0.5 * ops.reduce_sum(a * a + b * b, 1) - volume).mean()


def _normalising_flow():
    return _trained(_Couplings()), (_tensor(1, 96, 4) * 0.7 + 0.3,)


# Speech -----------------------------------------------------------------------------------------------


class _Keywords(nn.Cell):
    """Words in spectrograms, by convolutions of each channel and then of all."""

    def __init__(self):
        super().__init__()
        self.net = nn.SequentialCell(
            nn.Conv2d(1, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 8, 3, group=8), nn.Conv2d(8, 16, 1), nn.BatchNorm2d(16), nn.ReLU(),
        )  # fmt: skip
        self.out = nn.Dense(16, 5)
        self.loss = nn.CrossEntropyLoss()

    def construct(self, x, label):
        return self.loss(self.out(self.net(x).mean((2, 3))), label)


def _keywords():
    return _trained(_Keywords()), (_tensor(1, 8, 1, 20, 24), _ints(2, 5, 8))


class _Frames(nn.Cell):
    """Sounds of frames: gated recurrent layers behind a convolution over time."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(10, 16, 5, has_bias=True)
        self.memory = nn.GRU(16, 12, bidirectional=True, batch_first=True)
        self.out, self.loss = nn.Dense(24, 7), nn.CrossEntropyLoss()

    def construct(self, x, label):
        h, _ = self.memory(ops.relu(self.conv(x)).swapaxes(1, 2))
        return self.loss(self.out(h).reshape(-1, 7), label)


def _sounds():
    return _trained(_Frames()), (_tensor(1, 4, 10, 15), _ints(2, 7, 60))


# Detection --------------------------------------------------------------------------------------------


class _Focal(nn.Cell):
    """Boxes as in RetinaNet: focal loss of classes, smooth distances of boxes."""

    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU()
        )
        self.classes, self.boxes = nn.Conv2d(16, 3, 3), nn.Conv2d(16, 4, 3)
        self.smooth = nn.SmoothL1Loss(reduction="none")

    def construct(self, image, label, box):
        h = self.body(image)
        p = ops.clip_by_value(ops.sigmoid(self.classes(h)), 1e-4, 1.0 - 1e-4)
        hit, miss = (
            -ops.log(p) * ops.square(1.0 - p) * 0.25,
            -ops.log(1.0 - p) * ops.square(p) * 0.75,
        )
        there = ops.cast(ops.reduce_sum(label, 1) > 0, ms.float32).expand_dims(1)
        focal = ops.reduce_sum(label * hit + (1.0 - label) * miss)
        return (focal + ops.reduce_sum(self.smooth(self.boxes(h), box) * there)) / (
            there.sum() + 1.0
        )


def _focal_detector():
    label = (_data(2, 2, 3, 8, 8) > 1.5).astype(np.float32)
    return _trained(_Focal()), (_tensor(1, 2, 3, 32, 32), Tensor(label), _tensor(3, 2, 4, 8, 8))


class _Overlap(nn.Cell):
    """Distances to the four sides of a box (FCOS), by the generalised overlap."""

    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(3, 8, 3), nn.GroupNorm(4, 8), nn.ReLU(), nn.Conv2d(8, 4, 3)
        )

    def construct(self, image, sides):
        found = ops.exp(ops.clip_by_value(self.body(image), -3.0, 3.0))
        least, most = ops.minimum(found, sides), ops.maximum(found, sides)

        def area(s):
            return (s[:, 0] + s[:, 2]) * (s[:, 1] + s[:, 3])

        both = area(least)
        union = area(found) + area(sides) - both
        whole = area(most)
        return (1.0 - both / union + (whole - union) / whole).mean()


def _overlap_detector():
    return _trained(_Overlap()), (_tensor(1, 2, 3, 12, 12), ops.exp(_tensor(2, 2, 4, 12, 12) * 0.5))


# Molecular dynamics -----------------------------------------------------------------------------------


class _Equivariant(nn.Cell):
    """The energy by features that turn with the molecule, as NequIP's: scalars s and vectors v of each atom,
    messages that are products with the directions to the neighbours, times functions of the distance."""

    def __init__(self, atoms):
        super().__init__()
        first, second = np.nonzero(1 - np.eye(atoms))
        self.first, self.second = Tensor(first.astype(np.int32)), Tensor(second.astype(np.int32))
        self.atoms = atoms
        self.start = Parameter(Tensor(np.ones((1, 8), np.float32)), name="start")
        self.radial = nn.CellList([_mlp(6, 16, 32, between=nn.SiLU) for _ in range(2)])
        self.mix = nn.CellList([nn.Dense(16, 8) for _ in range(2)])
        self.turn = nn.CellList([nn.Dense(16, 8, has_bias=False) for _ in range(2)])
        self.gate = nn.CellList([nn.Dense(8, 8) for _ in range(2)])
        self.out = _mlp(8, 16, 1)
        self.centres = Tensor(np.linspace(0.5, 3.0, 6).astype(np.float32))

    def construct(self, x):
        apart = ops.gather(x, self.second, 0) - ops.gather(x, self.first, 0)
        r = ops.sqrt(ops.reduce_sum(apart * apart, 1)).expand_dims(1)
        unit = (apart / r).expand_dims(2)
        features = ops.exp(-4.0 * ops.square(r - self.centres))
        s = ops.tile(self.start, (self.atoms, 1))
        v = ops.zeros((self.atoms, 3, 8), ms.float32)
        for i in range(2):
            w = self.radial[i](features)
            near, turned = ops.gather(s, self.second, 0), ops.gather(v, self.second, 0)
            dots = ops.reduce_sum(turned * unit, 1)
            scalars = ops.concat((near * w[:, :8], dots * w[:, 8:16]), 1)
            vectors = ops.concat(
                ((near * w[:, 16:24]).expand_dims(1) * unit, turned * w[:, 24:].expand_dims(1)), 2
            )
            s = s + ops.silu(self.mix[i](ops.unsorted_segment_sum(scalars, self.first, self.atoms)))
            moved = self.turn[i](ops.unsorted_segment_sum(vectors, self.first, self.atoms))
            v = v + moved * ops.sigmoid(self.gate[i](s)).expand_dims(1)
        return ops.reduce_sum(self.out(s))


class _Forces(nn.Cell):
    """Energies, and the work of forces along a displacement. (By the gradient of the energy MindSpore's two
    modes differ, as in applications: molecular_dynamics, which has a reference.)"""

    def __init__(self, energy):
        super().__init__()
        self.energy = energy

    def construct(self, x, energy, aside, work):
        found = self.energy(x + aside) - self.energy(x - aside)
        return ops.square(self.energy(x) - energy) + ops.square(found + work)


def _places(atoms):
    cube = np.stack(np.meshgrid(*[np.arange(2.0)] * 3), -1).reshape(-1, 3)[:atoms]
    return Tensor((1.3 * cube + 0.1 * _data(9, atoms, 3)).astype(np.float32))


def _equivariant_potential():
    return _trained(_Forces(_Equivariant(8))), (
        _places(8),
        Tensor(-3.0),
        _tensor(2, 8, 3) * 0.1,
        Tensor(0.5),
    )


class _Filters(nn.Cell):
    """The energy by filters that are functions of the distance (SchNet)."""

    def __init__(self, atoms):
        super().__init__()
        self.kinds = nn.Embedding(4, 16)
        self.filters = nn.CellList([_mlp(8, 16, 16) for _ in range(2)])
        self.inside, self.after = nn.Dense(16, 16), _mlp(16, 16, 16)
        self.out = _mlp(16, 8, 1)
        self.centres = Tensor(np.linspace(0.5, 3.0, 8).astype(np.float32))
        self.others = Tensor((1 - np.eye(atoms)).astype(np.float32)[:, :, None])
        self.kind = Tensor((np.arange(atoms) % 4).astype(np.int32))

    def construct(self, x):
        apart = x.expand_dims(0) - x.expand_dims(1)
        r = ops.sqrt(ops.reduce_sum(apart * apart, 2) + 1e-6).expand_dims(2)
        features = ops.exp(-4.0 * ops.square(r - self.centres))
        h = self.kinds(self.kind)
        for i in range(2):
            weights = self.filters[i](features) * self.others
            h = h + self.after(ops.reduce_sum(weights * self.inside(h).expand_dims(0), 1))
        return ops.reduce_sum(self.out(h))


def _filter_potential():
    return _trained(_Forces(_Filters(8))), (
        _places(8),
        Tensor(-2.0),
        _tensor(3, 8, 3) * 0.1,
        Tensor(-0.5),
    )


class _Moving(nn.Cell):
    """Coordinates that move along the lines between them (EGNN)."""

    def __init__(self):
        super().__init__()
        self.edge, self.push = _mlp(9, 16, 8, between=nn.SiLU), nn.Dense(8, 1)
        self.node = _mlp(12, 16, 4, between=nn.SiLU)

    def construct(self, x, h, wanted):
        for _ in range(2):
            apart = x.expand_dims(1) - x.expand_dims(0)
            r2 = ops.reduce_sum(apart * apart, 2).expand_dims(2)
            rows = ops.tile(h.expand_dims(1), (1, 8, 1))
            m = self.edge(ops.concat((rows, rows.swapaxes(0, 1), r2), 2))
            x = x + (apart * ops.tanh(self.push(m))).mean(1)
            h = h + self.node(ops.concat((h, ops.reduce_sum(m, 1)), 1))
        return ops.square(x - wanted).mean()


def _moving_coordinates():
    return _trained(_Moving()), (_places(8), _tensor(1, 8, 4), _tensor(2, 8, 3))


# Optimisation -----------------------------------------------------------------------------------------


class _Fit(nn.Cell):
    def __init__(self):
        super().__init__()
        self.net = _mlp(4, 32, 32, 1)

    def construct(self, x, y):
        return ops.square(self.net(x) - y).mean()


class _Sharpness(nn.Cell):
    """Steps by the gradient at the worst point near by (SAM)."""

    def __init__(self, net):
        super().__init__()
        self.net, self.weights = net, ms.ParameterTuple(net.trainable_params())
        self.optimizer = nn.SGD(self.weights, 0.05)
        self.of = ms.value_and_grad(net, None, self.weights)

    def construct(self, x, y):
        loss, first = self.of(x, y)
        total = 0.0
        for g in first:
            total = total + ops.reduce_sum(g * g)
        far = 0.05 / (ops.sqrt(total) + 1e-12)
        for p, g in zip(self.weights, first):  # noqa: B905
            loss = ops.depend(loss, ops.assign_add(p, far * g))
        _, second = self.of(x, y)
        for p, g in zip(self.weights, first):  # noqa: B905
            loss = ops.depend(loss, ops.assign_sub(p, far * g))
        return ops.depend(loss, self.optimizer(second))


def _sharpness_aware():
    net = _filled(_Fit())
    return _Sharpness(net), (_tensor(1, 64, 4), _tensor(2, 64, 1))


class _Lion(nn.Optimizer):
    """Steps by the signs of a mean (Chen et al. 2023)."""

    def __init__(self, params, learning_rate):
        super().__init__(learning_rate, params)
        self.means = self.parameters.clone(prefix="mean", init="zeros")

    def construct(self, gradients):
        lr = self.get_lr()
        done = True
        for p, m, g in zip(self.parameters, self.means, gradients):  # noqa: B905
            step = lr * (ops.sign(0.9 * m + 0.1 * g) + 0.01 * p)
            done = ops.depend(done, ops.assign_sub(p, step))
            done = ops.depend(done, ops.assign(m, 0.99 * m + 0.01 * g))
        return done


def _signs_of_means():
    net = _filled(_Fit())
    step = nn.TrainOneStepCell(net, _Lion(net.trainable_params(), 0.003))
    return step, (_tensor(1, 64, 4), _tensor(2, 64, 1))


class _Contrast(nn.Cell):
    """Two views of each example beside all others (SimCLR)."""

    def __init__(self):
        super().__init__()
        self.net = _mlp(10, 32, 16, between=nn.ReLU)
        self.loss = nn.CrossEntropyLoss()
        self.own = Tensor((-1e9 * np.eye(32)).astype(np.float32))
        self.other = Tensor(((np.arange(32) + 16) % 32).astype(np.int32))

    def construct(self, a, b):
        z = self.net(ops.concat((a, b), 0))
        z = z / ops.sqrt(ops.reduce_sum(z * z, 1).expand_dims(1))
        return self.loss(ops.matmul(z, z.T) / 0.5 + self.own, self.other)


def _contrastive():
    a = _data(1, 16, 10)
    return _trained(_Contrast()), (Tensor(a), Tensor(a + 0.1 * _data(2, 16, 10)))


MAKERS = {
    "policy by clipped ratios, PPO": _proximal_policy,
    "soft actor and critics, SAC": _soft_actor_critic,
    "policy gradient of an LSTM": _policy_gradient,
    "graph attention": _graph_attention,
    "graph means, GraphSAGE": _graph_samples,
    "graph isomorphism network": _graph_isomorphism,
    "diffusion, velocity prediction": _velocity_prediction,
    "flow matching": _flow_matching,
    "sliced score matching": _score_matching,
    "normalising flow, RealNVP": _normalising_flow,
    "keywords in spectrograms": _keywords,
    "sounds of frames, GRU": _sounds,
    "detector, focal loss": _focal_detector,
    "detector, generalised overlap": _overlap_detector,
    "equivariant potential, as NequIP": _equivariant_potential,
    "filters of distances, SchNet": _filter_potential,
    "moving coordinates, EGNN": _moving_coordinates,
    "sharpness-aware minimisation": _sharpness_aware,
    "steps by signs, Lion": _signs_of_means,
    "contrastive learning, SimCLR": _contrastive,
}

for _maker in MAKERS.values():

    def _program(maker=_maker):
        return _losses(maker)

    _program.__name__ = _maker.__name__[1:]
    globals()[_maker.__name__[1:]] = _program
