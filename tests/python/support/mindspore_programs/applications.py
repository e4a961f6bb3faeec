"""Small programs of twelve fields, as they are written for MindSpore: the losses of some training steps.

`MAKERS` has a function for each that makes a step and its batch; bench/applications.py times them.
Weights and data come from NumPy's random numbers, so that both packages begin alike.
"""

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

STEPS = 5


def _data(seed, *shape):
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def _tensor(seed, *shape):
    return Tensor(_data(seed, *shape))


def _filled(net):
    """Weights of a variance of 1 / inputs, small biases; scales of normalisations stay 1."""
    for seed, p in enumerate(net.trainable_params()):
        if not p.name.endswith("gamma"):
            inputs = int(np.prod(p.shape[1:])) if len(p.shape) > 1 else 100
            p.set_data(Tensor(_data(seed, *p.shape) / np.sqrt(inputs).astype(np.float32)))
    return net


def _trained(net, optimiser=nn.Adam, **options):
    _filled(net)
    options = {"learning_rate": 1e-3, **options}
    step = nn.TrainOneStepCell(net, optimiser(net.trainable_params(), **options))
    step.set_train()
    return step


def _losses(maker):
    step, batch = maker()
    return [float(step(*batch)) for _ in range(STEPS)]


class _Pairs(nn.Cell):
    """The energy of atoms: a network of the distances, smooth at the cut-off."""

    def __init__(self, atoms):
        super().__init__()
        first, second = np.triu_indices(atoms, 1)
        self.first = Tensor(first.astype(np.int32))
        self.second = Tensor(second.astype(np.int32))
        self.net = nn.SequentialCell(
            nn.Dense(8, 32), nn.Tanh(), nn.Dense(32, 32), nn.Tanh(), nn.Dense(32, 1)
        )
        self.centres = Tensor(np.linspace(0.5, 4.0, 8).astype(np.float32))

    def construct(self, x):
        apart = ops.gather(x, self.first, 0) - ops.gather(x, self.second, 0)
        r = ops.sqrt(ops.reduce_sum(ops.square(apart), -1))
        inside = ops.cast(r < 4.0, ms.float32)
        cut = 0.5 * (ops.cos(r * (np.pi / 4.0)) + 1.0) * inside
        features = ops.exp(-2.0 * ops.square(ops.expand_dims(r, -1) - self.centres))
        return ops.reduce_sum(ops.squeeze(self.net(features), -1) * cut)


class _ForceMatching(nn.Cell):
    def __init__(self, energy):
        super().__init__()
        self.energy = energy
        self.both = ms.value_and_grad(energy)

    def construct(self, x, energy, forces):
        found, slope = self.both(x)
        return ops.mean(ops.square(slope + forces)) + 0.1 * ops.square(found - energy)


def _molecular_dynamics():
    place = np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 1.2
    x = Tensor((place + 0.1 * _data(1, 27, 3)).astype(np.float32))
    net = _trained(_ForceMatching(_Pairs(27)), nn.Momentum, learning_rate=1e-5, momentum=0.9)
    return net, (x, Tensor(-3.0, ms.float32), _tensor(2, 27, 3))


class _Forecast(nn.Cell):
    """A U-Net of two levels for fields on a grid, periodic in the longitude."""

    def __init__(self, fields):
        super().__init__()
        self.enter = nn.Conv2d(fields, 16, 3, pad_mode="valid", has_bias=True)
        self.down = nn.Conv2d(16, 32, 3, stride=2, pad_mode="pad", padding=1, has_bias=True)
        self.middle = nn.Conv2d(32, 32, 3, pad_mode="same", has_bias=True)
        self.up = nn.Conv2dTranspose(32, 16, 2, stride=2, pad_mode="valid", has_bias=True)
        self.out = nn.Conv2d(32, fields, 1, has_bias=True)
        self.act = nn.GELU()

    def construct(self, x):
        round_ = ops.concat((x[..., -1:], x, x[..., :1]), -1)
        padded = ops.pad(round_, (0, 0, 1, 1))
        high = self.act(self.enter(padded))
        low = self.act(self.middle(self.act(self.down(high))))
        return x + self.out(ops.concat((high, self.act(self.up(low))), 1))


class _WeightedByLatitude(nn.Cell):
    def __init__(self, net, rows):
        super().__init__()
        self.net = net
        weight = np.cos(np.linspace(-1.5, 1.5, rows))
        self.weight = Tensor((weight / weight.mean()).astype(np.float32).reshape(1, 1, rows, 1))

    def construct(self, x, y):
        once = self.net(x)
        return ops.mean(self.weight * ops.square(self.net(once) - y))


def _weather():
    net = _WeightedByLatitude(_Forecast(4), 16)
    train = _trained(net, nn.Momentum, learning_rate=0.01, momentum=0.9)
    return train, (_tensor(1, 2, 4, 16, 32), _tensor(2, 2, 4, 16, 32))


class _Fields(nn.Cell):
    """E and H of (t, x), by layers with sine."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Dense(2, 48), nn.Dense(48, 48)
        self.last = nn.Dense(48, 2)

    def construct(self, points):
        return self.last(ops.sin(self.second(ops.sin(3.0 * self.first(points)))))


class _Maxwell(nn.Cell):
    """E_t = -H_x, H_t = -E_x in a cavity, whose walls conduct."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        self.gradient = ops.GradOperation(sens_param=True)
        self.of_e = Tensor([[1.0, 0.0]], ms.float32)
        self.of_h = Tensor([[0.0, 1.0]], ms.float32)

    def construct(self, points, walls, start):
        rows = points.shape[0]
        e = self.gradient(self.net)(points, ops.tile(self.of_e, (rows, 1)))
        h = self.gradient(self.net)(points, ops.tile(self.of_h, (rows, 1)))
        inside = ops.mean(ops.square(e[:, 0] + h[:, 1]) + ops.square(h[:, 0] + e[:, 1]))
        wall = ops.mean(ops.square(self.net(walls)[:, 0]))
        begin = ops.mean(ops.square(self.net(start)[:, 0] - ops.sin(np.pi * start[:, 1])))
        return inside + 10.0 * wall + 10.0 * begin


def _electromagnetics():
    points = np.random.RandomState(1).uniform(size=(256, 2)).astype(np.float32)
    walls = points[:64].copy()
    walls[:, 1] = walls[:, 1] > 0.5
    start = points[64:128].copy()
    start[:, 0] = 0
    return _trained(_Maxwell(_Fields())), (Tensor(points), Tensor(walls), Tensor(start))


class _Block(nn.Cell):
    def __init__(self, channels, embedding):
        super().__init__()
        self.norm = nn.GroupNorm(4, channels)
        self.conv = nn.Conv2d(channels, channels, 3, pad_mode="same", has_bias=True)
        self.time = nn.Dense(embedding, channels)
        self.act = nn.SiLU()

    def construct(self, x, t):
        shift = ops.expand_dims(ops.expand_dims(self.time(t), -1), -1)
        return x + self.conv(self.act(self.norm(x)) + shift)


class _Denoiser(nn.Cell):
    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(1, 16, 3, pad_mode="same", has_bias=True)
        self.first, self.second = _Block(16, 32), _Block(16, 32)
        self.leave = nn.Conv2d(16, 1, 3, pad_mode="same", has_bias=True)
        self.frequencies = Tensor((1000.0 ** -np.linspace(0, 1, 16)).astype(np.float32))

    def construct(self, x, t):
        angle = ops.expand_dims(ops.cast(t, ms.float32), -1) * self.frequencies
        time = ops.concat((ops.sin(angle), ops.cos(angle)), -1)
        return self.leave(self.second(self.first(self.enter(x), time), time))


class _Diffusion(nn.Cell):
    """What noise was added in t steps, of a linear schedule (Ho et al. 2020, algorithm 1)."""

    def __init__(self, net):
        super().__init__()
        self.net = net
        kept = np.cumprod(1 - np.linspace(1e-4, 0.02, 200))
        self.signal = Tensor(np.sqrt(kept).astype(np.float32))
        self.noise = Tensor(np.sqrt(1 - kept).astype(np.float32))

    def construct(self, x, t, noise):
        signal = ops.gather(self.signal, t, 0).reshape(-1, 1, 1, 1)
        added = ops.gather(self.noise, t, 0).reshape(-1, 1, 1, 1)
        return ops.mean(ops.square(self.net(signal * x + added * noise, t) - noise))


def _diffusion():
    t = Tensor(np.array([3, 40, 110, 199], np.int32))
    return _trained(_Diffusion(_Denoiser())), (
        _tensor(1, 4, 1, 16, 16),
        t,
        _tensor(2, 4, 1, 16, 16),
    )


def _convolved(inputs, outputs, stride):
    return nn.SequentialCell(
        nn.Conv2d(inputs, outputs, 3, stride, pad_mode="pad", padding=1),
        nn.BatchNorm2d(outputs),
        nn.LeakyReLU(0.1),
    )


class _Detector(nn.Cell):
    """One scale of a detector with three anchors a place: boxes, objectness, classes."""

    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.SequentialCell(
            _convolved(3, 8, 2), _convolved(8, 16, 2), _convolved(16, 32, 2)
        )
        self.head = nn.Conv2d(32, 3 * (5 + classes), 1, has_bias=True)
        self.classes = classes

    def construct(self, images):
        y = self.head(self.backbone(images))
        batch, _, rows, columns = y.shape
        y = y.reshape(batch, 3, 5 + self.classes, rows, columns)
        return y.transpose(0, 3, 4, 1, 2)


def _corners(box):
    half = 0.5 * box[..., 2:4]
    return box[..., 0:2] - half, box[..., 0:2] + half


class _Detection(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.anchors = Tensor(np.float32([[0.1, 0.2], [0.3, 0.3], [0.6, 0.4]]))
        self.cross = nn.BCEWithLogitsLoss(reduction="none")

    def construct(self, images, boxes, there, classes):
        y = self.net(images)
        centre = ops.sigmoid(y[..., 0:2])
        found = ops.concat((centre, ops.exp(ops.clamp(y[..., 2:4], -4.0, 4.0)) * self.anchors), -1)
        low, high = _corners(found)
        low_of, high_of = _corners(boxes)
        both = ops.relu(ops.minimum(high, high_of) - ops.maximum(low, low_of))
        overlap = both[..., 0] * both[..., 1]
        area = found[..., 2] * found[..., 3] + boxes[..., 2] * boxes[..., 3]
        iou = overlap / (area - overlap + 1e-6)
        box = ops.reduce_sum((1.0 - iou) * there)
        objects = ops.reduce_sum(self.cross(y[..., 4], there))
        kinds = ops.reduce_sum(self.cross(y[..., 5:], classes) * ops.expand_dims(there, -1))
        return (box + objects + kinds) / images.shape[0]


def _detection():
    random = np.random.RandomState(3)
    places = (2, 4, 4, 3)
    boxes = random.uniform(0.2, 0.8, (*places, 4)).astype(np.float32)
    there = (random.uniform(size=places) < 0.2).astype(np.float32)
    classes = np.eye(5, dtype=np.float32)[random.randint(0, 5, places)]
    batch = _tensor(1, 2, 3, 32, 32), Tensor(boxes), Tensor(there), Tensor(classes)
    return _trained(_Detection(_Detector(5)), nn.Momentum, learning_rate=0.01, momentum=0.9), batch


class _GraphLayer(nn.Cell):
    """Mean of the neighbours' features beside a node's own (Hamilton et al. 2017)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.own, self.around = nn.Dense(inputs, outputs), nn.Dense(inputs, outputs)

    def construct(self, x, source, target, degree):
        messages = ops.gather(x, source, 0)
        total = ops.unsorted_segment_sum(messages, target, x.shape[0])
        return self.own(x) + self.around(total / degree)


class _Nodes(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second = _GraphLayer(16, 32), _GraphLayer(32, 6)

    def construct(self, x, source, target, degree, label):
        h = ops.elu(self.first(x, source, target, degree))
        return ops.cross_entropy(self.second(h, source, target, degree), label)


def _graphs():
    random = np.random.RandomState(4)
    source, target = random.randint(0, 100, (2, 400)).astype(np.int32)
    degree = np.maximum(np.bincount(target, minlength=100), 1).astype(np.float32).reshape(-1, 1)
    label = random.randint(0, 6, 100).astype(np.int32)
    batch = (_data(1, 100, 16), source, target, degree, label)
    return _trained(_Nodes(), learning_rate=0.01), tuple(Tensor(a) for a in batch)


class _Values(nn.Cell):
    """A dueling network (Wang et al. 2016)."""

    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(4, 64), nn.ReLU())
        self.value, self.advantage = nn.Dense(64, 1), nn.Dense(64, 3)

    def construct(self, state):
        h = self.body(state)
        advantage = self.advantage(h)
        return self.value(h) + advantage - ops.mean(advantage, -1, True)


class _Temporal(nn.Cell):
    """The difference to what a second network expects of the next state."""

    def __init__(self, net, target):
        super().__init__()
        self.net, self.target = net, target
        self.loss = nn.SmoothL1Loss(reduction="mean")

    def construct(self, state, action, reward, following, done):
        best = ops.argmax(self.net(following), 1)
        later = ops.gather_elements(self.target(following), 1, ops.expand_dims(best, -1))
        wanted = reward + 0.99 * (1.0 - done) * ops.squeeze(later, -1)
        now = ops.squeeze(ops.gather_elements(self.net(state), 1, action), -1)
        return self.loss(now, ops.stop_gradient(wanted))


def _reinforcement():
    net, target = _filled(_Values()), _filled(_Values())
    for p in target.trainable_params():
        p.requires_grad = False
    train = _trained(_Temporal(net, target), nn.RMSProp)
    pairs = list(zip(target.get_parameters(), net.get_parameters()))  # noqa: B905

    def step(*batch):
        loss = train(*batch)
        for old, new in pairs:  # the second network follows slowly
            ops.assign(old, 0.9 * old + 0.1 * new)
        return loss

    random = np.random.RandomState(5)
    action = Tensor(random.randint(0, 3, (64, 1)).astype(np.int32))
    done = Tensor((random.uniform(size=64) < 0.1).astype(np.float32))
    return step, (_tensor(1, 64, 4), action, _tensor(2, 64), _tensor(3, 64, 4), done)


class _Attention(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.query, self.key = nn.Dense(width, width), nn.Dense(width, width)
        self.value, self.out = nn.Dense(width, width), nn.Dense(width, width)
        self.heads, self.size = heads, width // heads

    def split(self, x):
        batch, length, _ = x.shape
        return x.view(batch, length, self.heads, self.size).swapaxes(1, 2)

    def construct(self, x, mask):
        query, key, value = (
            self.split(self.query(x)),
            self.split(self.key(x)),
            self.split(self.value(x)),
        )
        scores = ops.matmul(query, key.swapaxes(-1, -2)) / np.sqrt(self.size)
        weights = ops.softmax(scores + mask, -1)
        mixed = ops.matmul(weights, value).swapaxes(1, 2)
        return self.out(mixed.reshape(x.shape))


class _Layer(nn.Cell):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = _Attention(width, heads)
        self.first, self.second = nn.LayerNorm((width,)), nn.LayerNorm((width,))
        self.wide, self.narrow = nn.Dense(width, 4 * width), nn.Dense(4 * width, width)

    def construct(self, x, mask):
        x = self.first(x + self.attention(x, mask))
        return self.second(x + self.narrow(ops.gelu(self.wide(x), approximate="none")))


class _Masked(nn.Cell):
    """A masked language model, whose last matrix is that of the words."""

    def __init__(self, words, width, length):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.layers = nn.CellList([_Layer(width, 4) for _ in range(2)])
        self.bias = Parameter(np.zeros(words, np.float32), name="bias")
        self.order = Tensor(np.arange(length, dtype=np.int32))

    def construct(self, words, there, label):
        mask = (1.0 - there[:, None, None, :]) * -10000.0
        x = self.words(words) + self.places(self.order)
        for layer in self.layers:
            x = layer(x, mask)
        logits = ops.matmul(x, self.words.embedding_table.T) + self.bias
        return ops.cross_entropy(
            logits.view(-1, logits.shape[-1]), label.view(-1), ignore_index=-100
        )


def _language():
    random = np.random.RandomState(6)
    words = random.randint(0, 50, (4, 12)).astype(np.int32)
    there = (np.arange(12) < np.array([[12], [9], [5], [12]])).astype(np.float32)
    label = np.where(random.uniform(size=(4, 12)) < 0.3, words, -100).astype(np.int32)
    net = _trained(_Masked(50, 32, 12), nn.AdamWeightDecay, weight_decay=0.01)
    return net, (Tensor(words), Tensor(there), Tensor(label))


class _Flow(nn.Cell):
    """A neural differential equation by four Runge-Kutta steps (Chen et al. 2018)."""

    def __init__(self):
        super().__init__()
        self.field = nn.SequentialCell(nn.Dense(2, 32), nn.Tanh(), nn.Dense(32, 2))

    def construct(self, x, y):
        h = 0.25
        for _ in range(4):
            a = self.field(x)
            b = self.field(x + 0.5 * h * a)
            c = self.field(x + 0.5 * h * b)
            x = x + (h / 6.0) * (a + 2.0 * b + 2.0 * c + self.field(x + h * c))
        return ops.mean(ops.square(x - y))


def _differential_equation():
    return _trained(_Flow()), (_tensor(1, 64, 2), _tensor(2, 64, 2))


class _Series(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.last = nn.Dense(48, 1)
        self.loss = nn.HuberLoss()

    def construct(self, x, y):
        states, _ = self.lstm(x)
        return self.loss(self.last(states[:, -1]), y)


def _time_series():
    return _trained(_Series()), (_tensor(1, 8, 20, 3), _tensor(2, 8, 1))


class _Sharper(nn.Cell):
    """Pictures of twice the size by subpixels (Shi et al. 2016)."""

    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(
            nn.Conv2d(3, 16, 5, pad_mode="same", has_bias=True), nn.Tanh(),
            nn.Conv2d(16, 12, 3, pad_mode="same", has_bias=True), nn.PixelShuffle(2),
        )  # fmt: skip

    def construct(self, x, y):
        near = ops.interpolate(x, size=(24, 24), mode="bilinear", align_corners=True)
        return ops.l1_loss(self.body(x) + near, y) + 0.1 * ops.mse_loss(self.body(x) + near, y)


def _super_resolution():
    return _trained(_Sharper()), (_tensor(1, 2, 3, 12, 12), _tensor(2, 2, 3, 24, 24))


class _Factors(nn.Cell):
    """A factorisation machine with a deep part (Guo et al. 2017)."""

    def __init__(self, ids, fields, width):
        super().__init__()
        self.linear, self.factors = nn.Embedding(ids, 1), nn.Embedding(ids, width)
        self.deep = nn.SequentialCell(nn.Dense(fields * width, 32), nn.ReLU(), nn.Dense(32, 1))

    def construct(self, ids, clicked):
        v = self.factors(ids)
        pairs = 0.5 * (ops.square(v.sum(1)) - ops.square(v).sum(1)).sum(1, keepdims=True)
        logits = self.linear(ids).sum(1) + pairs + self.deep(v.reshape(ids.shape[0], -1))
        cross = ops.binary_cross_entropy_with_logits(
            logits, clicked, ops.ones_like(logits), ops.ones_like(logits)
        )
        return cross + 1e-4 * ops.square(v).sum()


def _recommendation():
    random = np.random.RandomState(7)
    ids = Tensor(random.randint(0, 200, (32, 6)).astype(np.int32))
    clicked = Tensor((random.uniform(size=(32, 1)) < 0.3).astype(np.float32))
    return _trained(_Factors(200, 6, 8), nn.FTRL, learning_rate=0.05), (ids, clicked)


def molecular_dynamics():
    return _losses(_molecular_dynamics)


def weather():
    return _losses(_weather)


def electromagnetics():
    return _losses(_electromagnetics)


def diffusion():
    return _losses(_diffusion)


def detection():
    return _losses(_detection)


def graphs():
    return _losses(_graphs)


def reinforcement():
    return _losses(_reinforcement)


def language():
    return _losses(_language)


def differential_equation():
    return _losses(_differential_equation)


def time_series():
    return _losses(_time_series)


def super_resolution():
    return _losses(_super_resolution)


def recommendation():
    return _losses(_recommendation)


MAKERS = {
    "molecular dynamics, force matching": _molecular_dynamics,
    "weather, U-Net on a sphere's grid": _weather,
    "electromagnetics, PINN of a cavity": _electromagnetics,
    "diffusion model": _diffusion,
    "detector, as YOLO": _detection,
    "graph neural network": _graphs,
    "reinforcement learning, double DQN": _reinforcement,
    "masked language model": _language,
    "neural differential equation": _differential_equation,
    "time series, LSTM": _time_series,
    "super-resolution": _super_resolution,
    "recommendation, DeepFM": _recommendation,
}
