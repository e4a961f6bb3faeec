"""Ways to train that programs written for MindSpore use: several networks, own gradients, groups of rates,
accumulated gradients, datasets, callbacks, checkpoints, loss scales."""

import itertools
import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops

from applications import _data, _filled, _tensor


def _net(*sizes):
    layers = []
    for i, (a, b) in enumerate(itertools.pairwise(sizes)):
        layers += [nn.Dense(a, b)] + [nn.Tanh()] * (i < len(sizes) - 2)
    return _filled(nn.SequentialCell(*layers))


def gan():
    """Two networks, two optimisers, each with the gradients of its own loss."""
    generator, critic = _net(4, 16, 2), _net(2, 16, 1)
    generator.update_parameters_name("generator.")
    critic.update_parameters_name("critic.")
    loss = nn.BCEWithLogitsLoss()
    first = nn.Adam(generator.trainable_params(), 2e-3, beta1=0.5)
    second = nn.Adam(critic.trainable_params(), 2e-3, beta1=0.5)

    def of_critic(real, noise):
        fake = ops.stop_gradient(generator(noise))
        there, made = critic(real), critic(fake)
        return loss(there, ops.ones_like(there)) + loss(made, ops.zeros_like(made))

    def of_generator(noise):
        made = critic(generator(noise))
        return loss(made, ops.ones_like(made)), made

    critics = ms.value_and_grad(of_critic, None, critic.trainable_params())
    generators = ms.value_and_grad(of_generator, None, generator.trainable_params(), has_aux=True)
    found = []
    for i in range(4):
        noise = _tensor(20 + i, 8, 4)
        value, grads = critics(_tensor(10 + i, 8, 2) + 1.5, noise)
        second(grads)
        (other, _), grads = generators(noise)
        first(grads)
        found += [float(value), float(other)]
    return found


class _Vae(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = _net(6, 16, 4), _net(2, 16, 6)
        self.split = ops.Split(1, 2)

    def construct(self, x, noise):
        mean, spread = self.split(self.encoder(x))
        z = mean + ops.exp(0.5 * spread) * noise
        return self.decoder(z), mean, spread


class _Bound(nn.Cell):
    def __init__(self, net):
        super().__init__(auto_prefix=False)
        self.net = net

    def construct(self, x, noise):
        out, mean, spread = self.net(x, noise)
        apart = ops.reduce_mean(ops.reduce_sum(ops.square(out - x), 1))
        kl = -0.5 * ops.reduce_sum(1 + spread - ops.square(mean) - ops.exp(spread), 1)
        return apart + ops.reduce_mean(kl)


def variational_autoencoder():
    net = _Vae()
    step = nn.TrainOneStepCell(_Bound(net), nn.AdamWeightDecay(net.trainable_params(), 1e-2))
    step.set_train()
    losses = [float(step(_tensor(1, 8, 6), _tensor(i, 8, 2))) for i in range(4)]
    return losses, [p.name for p in net.trainable_params()]


class _Attention(nn.Cell):
    """A GRU that reads, one that writes and looks at what was read (Luong et al. 2015)."""

    def __init__(self, words, size):
        super().__init__()
        self.table = nn.Embedding(words, size)
        self.reader, self.writer = nn.GRU(size, size, batch_first=True), nn.GRUCell(size, size)
        self.join, self.out = nn.Dense(2 * size, size), nn.Dense(size, words)

    def construct(self, source, target):
        memory, state = self.reader(self.table(source))
        state = state[0]
        scores = []
        words = self.table(target)
        for i in range(3):
            state = self.writer(words[:, i], state)
            share = ops.softmax(ops.matmul(memory, state.expand_dims(-1)).squeeze(-1), -1)
            seen = ops.matmul(share.expand_dims(1), memory).squeeze(1)
            scores.append(self.out(ops.tanh(self.join(ops.concat((state, seen), -1)))))
        return ops.stack(scores, 1)


def sequence_to_sequence():
    net = _filled(_Attention(11, 8))
    loss = nn.CrossEntropyLoss(ignore_index=0)
    optimizer = nn.Adam(net.trainable_params(), nn.ExponentialDecayLR(1e-2, 0.9, 2, is_stair=True))
    source = Tensor(np.arange(20).reshape(4, 5) % 11, ms.int32)
    target = Tensor(np.arange(16).reshape(4, 4) * 3 % 11, ms.int32)

    def forward(source, target):
        scores = net(source, target[:, :-1])
        return loss(scores.reshape(-1, 11), target[:, 1:].reshape(-1))

    both = ms.value_and_grad(forward, None, optimizer.parameters)
    found = []
    for _ in range(4):
        value, grads = both(source, target)
        grads = ops.clip_by_global_norm(grads, 1.0)
        optimizer(grads)
        found.append(float(value))
    return found


class _Straight(nn.Cell):
    """Rounds; its gradient goes through as it is, but for large numbers."""

    def construct(self, x):
        return ops.round(x)

    def bprop(self, x, out, dout):
        return (ops.where(ops.abs(x) < 1.5, dout, ops.zeros_like(dout)),)


class _Scaled(nn.Cell):
    """A cell with a parameter and a bprop of its own: the parameter's gradient is given too."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([2.0, -1.0, 0.5], ms.float32), name="w")

    def construct(self, x):
        return x * self.w


def own_gradients():
    straight, net = _Straight(), _Scaled()

    def f(x):
        return (straight(net(x)) * _tensor(3, 2, 3)).sum()

    x = _tensor(1, 2, 3)
    value, (by_x, by_w) = ms.value_and_grad(f, 0, net.trainable_params())(x)
    by_both = ops.GradOperation(get_all=True, sens_param=True)(straight)(x, _tensor(2, 2, 3))
    return value, by_x, by_w, by_both


def groups_of_rates():
    net = _net(3, 8, 8, 1)
    first = [p for p in net.trainable_params() if "weight" in p.name]
    others = [p for p in net.trainable_params() if "weight" not in p.name]
    groups = [
        {"params": first, "weight_decay": 0.01, "lr": nn.CosineDecayLR(1e-3, 1e-1, 4)},
        {"params": others, "lr": 0.05, "grad_centralization": False},
        {"order_params": net.trainable_params()},
    ]
    optimizer = nn.Momentum(groups, 0.1, 0.9, weight_decay=0.0)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()), optimizer)
    step.set_train()
    losses = [float(step(_tensor(1, 8, 3), _tensor(2, 8, 1))) for _ in range(4)]
    rates = [float(r) for r in (optimizer.get_lr_parameter(others[0]).value(),)]
    return losses, rates, int(optimizer.global_step.value()), optimizer.is_group


class _Accumulating(nn.Cell):
    """Sums gradients of `every` batches, then steps."""

    def __init__(self, net, optimizer, every):
        super().__init__(auto_prefix=False)
        self.net, self.optimizer, self.every = net, optimizer, every
        self.weights = optimizer.parameters
        self.sums = self.weights.clone(prefix="sums", init="zeros")
        self.count = Parameter(Tensor(0, ms.int32), name="count")
        self.grad = ops.GradOperation(get_by_list=True)
        self.map = ops.HyperMap()

    def construct(self, x, y):
        loss = self.net(x, y)
        grads = self.grad(self.net, self.weights)(x, y)
        loss = ops.depend(loss, self.map(ops.assign_add, self.sums, grads))
        ops.assign_add(self.count, Tensor(1, ms.int32))
        if self.count % self.every == 0:
            means = self.map(ops.partial(_divided, self.every), self.sums)
            loss = ops.depend(loss, self.optimizer(means))
            loss = ops.depend(loss, self.map(_cleared, self.sums))
        return loss


def _divided(every, x):
    return x / every


def _cleared(x):
    return ops.assign(x, ops.zeros_like(x))


def accumulated_gradients():
    net = _net(3, 8, 1)
    optimizer = nn.SGD(net.trainable_params(), 0.1, momentum=0.9)
    step = _Accumulating(nn.WithLossCell(net, nn.MSELoss()), optimizer, 2)
    step.set_train()
    losses = [float(step(_tensor(i, 4, 3), _tensor(9 - i, 4, 1))) for i in range(6)]
    return losses, int(step.count.value()), [p.name for p in step.sums]


def inputs_of_any_length():
    net = _net(3, 8, 1)
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))

    def mean(x):
        return net(x).mean()

    both = ms.value_and_grad(mean, None, net.trainable_params())
    optimizer = nn.Adagrad(net.trainable_params(), learning_rate=0.1)
    found = []
    for n in (2, 5, 3, 5):
        value, grads = both(_tensor(n, n, 3))
        optimizer(grads)
        found.append((float(value), net(_tensor(7, n, 3)).shape))
    return found


def pipeline_of_a_dataset():
    """Maps, filters, batches with a function and padding, repeats, splits, zips and dicts."""

    def rows():
        for i in range(10):
            yield _data(i, 1 + i % 3), np.int32(i)

    def lengthened(x, y, batch):
        return [a + batch.get_batch_num() for a in x], y

    data = ds.GeneratorDataset(rows, ["x", "y"], shuffle=False)
    data = data.filter(lambda y: y % 4 != 3, ["y"]).map(lambda x: np.sort(x), ["x"])
    data = data.map(lambda y: (y, y * y), ["y"], ["y", "z"]).project(["x", "y", "z"])
    padded = data.padded_batch(3, pad_info={"x": ([3], -1.0)}, drop_remainder=False)
    first = [
        [b["x"].asnumpy().tolist(), b["y"].asnumpy().tolist(), b["z"].asnumpy().tolist()]
        for b in padded.create_dict_iterator()
    ]

    def plain():
        return ds.NumpySlicesDataset({"x": _data(1, 6, 2), "y": np.arange(6)}, shuffle=False)

    batches = plain().batch(2, per_batch_map=lengthened, input_columns=["x", "y"]).repeat(2).skip(1)
    second = [
        [r[0].asnumpy().tolist(), r[1].tolist()]
        for r in batches.create_tuple_iterator(num_epochs=1)
    ]
    left, right = plain().split([4, 2], randomize=False)
    both = ds.zip((left.take(2).rename("x", "a"), right.rename(["x", "y"], ["b", "c"])))
    return (
        first, second, batches.get_dataset_size(), batches.get_batch_size(), batches.get_repeat_count(),
        [r["b"].tolist() for r in both.create_dict_iterator(output_numpy=True)], both.get_col_names(),
    )  # fmt: skip


class _Recorder(ms.Callback):
    def __init__(self):
        self.seen = []

    def begin(self, run_context):
        self.seen.append("begin")

    def epoch_end(self, run_context):
        given = run_context.original_args()
        self.seen.append(
            f"epoch {given.cur_epoch_num} step {given.cur_step_num} of {given.batch_num}"
        )

    def step_end(self, run_context):
        given = run_context.original_args()
        self.seen.append(round(float(given.net_outputs), 5))
        if given.cur_step_num == 5:
            run_context.request_stop()

    def end(self, run_context):
        self.seen.append("end")


def model_with_callbacks():
    net = _net(3, 8, 1)
    data = ds.NumpySlicesDataset(
        (_data(1, 12, 3), _data(2, 12, 1)), ["x", "y"], shuffle=False
    ).batch(4)
    model = ms.Model(net, nn.MSELoss(), nn.RMSProp(net.trainable_params(), 1e-2), {"mae": nn.MAE()})
    recorder = _Recorder()
    with tempfile.TemporaryDirectory() as folder:
        config = ms.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
        saver = ms.ModelCheckpoint("net", folder, config)
        model.train(3, data, callbacks=[recorder, saver, ms.TimeMonitor()], dataset_sink_mode=False)
        files = sorted(f for f in os.listdir(folder) if f.endswith(".ckpt"))
        saved = ms.load_checkpoint(os.path.join(folder, files[-1]))
        other = nn.SequentialCell(nn.Dense(3, 8), nn.Tanh(), nn.Dense(8, 1))
        for name in (
            "epoch_num",
            "step_num",
            "step_in_epoch",
        ):  # gradcell saves them too, for Model.resume
            saved.pop(name, None)
        lacking = ms.load_param_into_net(other, saved)
    metrics = model.eval(data, dataset_sink_mode=False)
    out = ms.Model(other).predict(Tensor(_data(1, 12, 3)[:2]))
    return recorder.seen, files, sorted(saved), lacking, metrics, out


class _Overflows(nn.Cell):
    """A network in float16 whose loss is scaled by hand."""

    def __init__(self):
        super().__init__()
        self.net = _net(3, 8, 1)

    def construct(self, x, y):
        return ops.reduce_mean(ops.square(self.net(x) - y))


def own_loss_scale():
    net = _Overflows()
    optimizer = nn.Adam(net.trainable_params(), 1e-2)
    scaler = ms.amp.DynamicLossScaler(scale_value=2.0**126, scale_factor=4, scale_window=2)

    def forward(x, y):
        value = net(x, y)
        return scaler.scale(value), value

    both = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
    found = []
    for i in range(6):
        (_, value), grads = both(_tensor(i, 4, 3), _tensor(9 - i, 4, 1))
        finite = ms.amp.all_finite(grads)
        grads = scaler.unscale(grads)
        if finite:
            optimizer(grads)
        scaler.adjust(finite)
        found.append((float(value), bool(finite), float(scaler.scale_value.value())))
    return found


def frozen_layers_and_state():
    """Layers that are frozen by name, moving averages, early stopping of a learning rate, parameter maps."""
    net = nn.SequentialCell(
        nn.Dense(3, 6), nn.BatchNorm1d(6, momentum=0.5), nn.ReLU(), nn.Dense(6, 1)
    )
    _filled(net)
    for name, p in net.parameters_and_names():
        if name.startswith("0."):
            p.requires_grad = False
    learned = list(filter(lambda p: p.requires_grad, net.get_parameters()))
    averages = [Parameter(p.value().copy(), name=f"ema.{p.name}") for p in learned]
    loss = nn.HuberLoss()

    def forward(x, y):
        return loss(net(x), y)

    both = ms.value_and_grad(forward, None, learned)
    optimizer = nn.AdamWeightDecay(learned, nn.WarmUpLR(1e-1, 3), weight_decay=0.1)
    net.set_train()
    losses = []
    for i in range(4):
        value, grads = both(_tensor(i, 8, 3), _tensor(9 - i, 8, 1))
        optimizer(grads)
        for kept, p in zip(averages, learned, strict=True):
            ops.assign(kept, kept * 0.9 + p * 0.1)
        losses.append(float(value))
    net.set_train(False)
    return (
        losses, [p.name for p in learned], averages[-1].value(), net[1].moving_mean.value(),
        net(_tensor(5, 2, 3)), len(net.untrainable_params()),
    )  # fmt: skip
