"""BackupAndRestore, OnRequestExit: what is on the disk when a run ends before its time, and what the next
one begins from. OcclusionSensitivity against its definition."""

from __future__ import annotations

import json
import os
import signal
import warnings
import weakref

import numpy as np
import pytest

import gradcell as gc
from gradcell import Tensor, nn, train


class Rows:
    def __init__(self, n=6):
        rng = np.random.default_rng(0)
        self.x = rng.standard_normal((n, 4)).astype(np.float32)
        self.y = self.x[:, :1] * 2

    def __getitem__(self, i):
        return self.x[i], self.y[i]

    def __len__(self):
        return len(self.x)


def batches(n=6):
    return gc.dataset.GeneratorDataset(Rows(n), ["x", "y"], shuffle=False).batch(1)


def model():
    net = nn.Dense(4, 1, "ones", "zeros")
    opt = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    return net, train.Model(net, nn.MSELoss(), opt, metrics={"mse"})


class Stops(train.Callback):
    def __init__(self, act, at):
        self.act, self.at, self.steps = act, at, 0

    def on_train_step_end(self, run_context):
        self.steps += 1
        if self.steps == self.at:
            self.act()

    on_eval_step_end = on_train_step_end


def _fail():
    raise RuntimeError("the power is off")


def test_backup_and_restore(tmp_path):
    whole, m = model()
    m.train(3, batches())
    net, m = model()
    backup = train.BackupAndRestore(str(tmp_path / "new" / "backup"))
    with pytest.raises(RuntimeError, match="power"):
        m.train(3, batches(), callbacks=[Stops(_fail, 15), backup])
    assert os.path.exists(backup.backup_file)
    net, m = model()
    m.train(1, batches(), callbacks=[train.BackupAndRestore(str(tmp_path / "new" / "backup"))])
    np.testing.assert_array_equal(net.weight.asnumpy(), whole.weight.asnumpy())
    assert not os.path.exists(backup.backup_file)  # training ended
    kept = train.BackupAndRestore(str(tmp_path), save_freq=2, delete_checkpoint=False)
    m.train(1, batches(), callbacks=kept)
    assert not os.path.exists(kept.backup_file)
    m.train(2, batches(), callbacks=kept)
    assert os.path.exists(kept.backup_file)
    with pytest.raises(ValueError, match="save_freq"):
        train.BackupAndRestore(str(tmp_path), save_freq=0)


def exits(tmp_path, **options):
    return train.OnRequestExit(save_mindir=False, directory=str(tmp_path), **options)


def test_a_signal_ends_training(tmp_path):
    whole, m = model()
    m.train(1, batches())
    before = signal.getsignal(signal.SIGTERM)
    net, m = model()
    stop = Stops(lambda: os.kill(os.getpid(), signal.SIGTERM), 2)
    m.train(5, batches(), callbacks=[stop, exits(tmp_path)])
    assert stop.steps == 2 and signal.getsignal(signal.SIGTERM) == before
    path = tmp_path / "rank_0" / "Net_train.ckpt"
    saved = gc.load_checkpoint(str(path))
    np.testing.assert_array_equal(saved["weight"].asnumpy(), net.weight.asnumpy())

    class Rest(Rows):
        def __getitem__(self, i):
            return super().__getitem__(i + 2)

        def __len__(self):
            return 4

    net, m = model()
    rest = gc.dataset.GeneratorDataset(Rest(), ["x", "y"], shuffle=False).batch(1)
    m.train(1, rest, callbacks=exits(tmp_path))
    np.testing.assert_array_equal(net.weight.asnumpy(), whole.weight.asnumpy())


def test_a_file_ends_training_and_a_signal_an_evaluation(tmp_path):
    config = tmp_path / "exit.json"
    config.write_text("not yet")
    m = model()[1]
    stop = Stops(lambda: config.write_text(json.dumps({"GracefulExit": 1})), 3)
    m.train(2, batches(), callbacks=[stop, exits(tmp_path, config_file=str(config))])
    assert stop.steps == 3
    stop = Stops(lambda: os.kill(os.getpid(), signal.SIGUSR1), 2)
    m.eval(batches(), callbacks=[stop, exits(tmp_path, sig=signal.SIGUSR1)])
    assert stop.steps == 2 and (tmp_path / "rank_0" / "Net_eval.ckpt").exists()
    with pytest.raises(ValueError, match="SIGKILL"):
        exits(tmp_path, sig=signal.SIGKILL)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        train.OnRequestExit(directory=str(tmp_path))
        train.OnRequestExit(directory=str(tmp_path))
    assert ["MindIR" in str(w.message) for w in said].count(True) <= 1


def test_an_evaluation_within_training_leaves_the_weights_and_the_handler(tmp_path):
    """A checkpoint of an earlier run lies there; it is read once, before the training."""
    before = signal.getsignal(signal.SIGTERM)
    stop = Stops(lambda: os.kill(os.getpid(), signal.SIGTERM), 2)
    model()[1].train(1, batches(), callbacks=[stop, exits(tmp_path)])
    found = []
    for evaluated in (False, True):
        net, m = model()
        if evaluated:
            m.fit(2, batches(), batches(), callbacks=exits(tmp_path))
        else:
            m.train(2, batches(), callbacks=exits(tmp_path))
        found.append(net.weight.asnumpy())
    np.testing.assert_array_equal(*found)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_in_an_evaluation_within_training_ends_the_training(tmp_path):
    m = model()[1]

    class Kills(train.Callback):
        trained = 0

        def on_train_step_end(self, run_context):
            self.trained += 1

        def on_eval_step_end(self, run_context):
            os.kill(os.getpid(), signal.SIGTERM)

    kills = Kills()
    m.fit(3, batches(), batches(), callbacks=[kills, exits(tmp_path)])
    assert kills.trained <= 7  # the first epoch's six, and the step at which it is seen
    assert (tmp_path / "rank_0" / "Net_train.ckpt").exists()


class Scores(nn.Cell):
    def construct(self, x):
        flat = x.reshape((x.shape[0], -1))
        weight = Tensor(np.arange(flat.shape[1] * 3).reshape(-1, 3) % 7 / 5, gc.float32)
        return gc.ops.tanh(flat @ weight)


@pytest.mark.parametrize("box", [None, [1, 3, -1, 2]])
@pytest.mark.parametrize("margin", [1, 2])
def test_occlusion(box, margin):
    image = np.random.default_rng(2).standard_normal((1, 4, 3)).astype(np.float32) / 9
    metric = train.OcclusionSensitivity(0.25, margin, n_batch=5, b_box=box)
    metric.update(Scores(), Tensor(image), Tensor([2], gc.int32))

    def flat(v):
        return np.tanh(v.reshape(-1).astype(np.float64) @ (np.arange(36).reshape(-1, 3) % 7 / 5))[2]

    wanted = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            masked = image.copy()
            masked[0, max(i - margin, 0) : i + margin, max(j - margin, 0) : j + margin] = 0.25
            wanted[i, j] = flat(image) - flat(masked)
    if box:
        wanted = wanted[1:4, 0:3]
    np.testing.assert_allclose(metric.eval(), wanted, rtol=1e-4, atol=1e-6)
    metric.clear()
    with pytest.raises(RuntimeError):
        metric.eval()
    with pytest.raises(ValueError, match="b_box"):
        train.OcclusionSensitivity(b_box=[0, 9, 0, 1]).update(Scores(), image, 1)


def test_occlusion_as_mindspore_prints_it():
    w, b = [[0.1, 0.8, 0.1, 0.1], [1, 1, 1, 1]], [0.3, 0.6]
    net = nn.Dense(4, 2, weight_init=Tensor(w), bias_init=Tensor(b))
    metric = nn.OcclusionSensitivity()
    metric.update(net, np.array([[0.1, 0.2, 0.3, 0.4]], np.float32), np.array(1, np.int32))
    np.testing.assert_allclose(metric.eval(), [0.3, 0.6, 1.0, 0.9], rtol=1e-5)


@pytest.mark.parametrize("operator", ["SUM", "MAX", "MEAN"])
def test_fields_of_embeddings(operator):
    rng = np.random.default_rng(5)
    table = rng.standard_normal((10, 3))
    rows, fields = (
        rng.integers(0, 10, (4, 6)),
        rng.integers(-1, 4, (4, 6)),
    )  # -1 and 3 are no fields
    values = rng.standard_normal((4, 6)) * rng.integers(0, 2, (4, 6))
    net = nn.MultiFieldEmbeddingLookup(
        10, 3, 3, Tensor(table, gc.float64), operator=operator, dtype=gc.float64
    )
    wanted = np.zeros((4, 3, 3))
    for n in range(4):
        for field in range(3):
            at = [i for i in range(6) if fields[n, i] == field and values[n, i] != 0]
            parts = np.array([values[n, i] * table[rows[n, i]] for i in at])
            if at:
                wanted[n, field] = {
                    "SUM": lambda p: p.sum(0),
                    "MAX": lambda p: p.max(0),
                    "MEAN": lambda p, at=at, n=n: p.sum(0) / np.abs(values[n, at]).sum(),
                }[operator](parts)
    given = Tensor(rows, gc.int32), Tensor(values, gc.float64), Tensor(fields, gc.int32)
    np.testing.assert_allclose(net(*given).asnumpy(), wanted, rtol=1e-12)
    with pytest.raises(ValueError, match="2 dimensions"):
        net(given[0][0], *given[1:])


@pytest.mark.parametrize("way", ["kept", "first call"])
def test_a_signal_is_not_lost_in_a_callback(way):
    """A signal that comes while C++ runs is answered before anything else of Python: here that would be the
    callback of a weak reference to the argument, in which an exception goes nowhere."""
    product = gc.jit(lambda x: x @ x @ x @ x)
    size = 1000

    def run():
        x = Tensor(np.full((size, size), 1e-3))
        given.append(weakref.ref(x, lambda _: None))
        held = [x]
        del x
        return product(held.pop())

    def interrupt(signum, frame):
        raise KeyboardInterrupt

    given = []
    if way == "kept":
        run(), run()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            for _ in range(50):
                run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
