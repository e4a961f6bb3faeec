"""Model: real data, resumed runs, callbacks, interruptions, bad input."""

import io
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from training_fixtures import Linear, X, Y, assert_same, batch, snapshot

import gradcell as ms
from gradcell import Tensor, _core, nn, ops, train
from gradcell.dataset import GeneratorDataset, NumpySlicesDataset

# Real data ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def digits():
    """The handwritten digits of scikit-learn, a fifth of them held out."""
    data = pytest.importorskip("sklearn.datasets").load_digits()
    images = (data.images[:, None] / 16).astype(np.float32)
    labels = data.target.astype(np.int32)
    order = np.random.RandomState(0).permutation(len(labels))
    held, used = order[: len(labels) // 5], order[len(labels) // 5 :]
    return (images[used], labels[used]), (images[held], labels[held])


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.flatten = nn.Flatten()
        self.hidden = nn.Dense(64, 128, activation="relu")
        self.drop = nn.Dropout(p=0.1)
        self.out = nn.Dense(128, 10)

    def construct(self, x):
        return self.out(self.drop(self.hidden(self.flatten(x))))


class ConvNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.layers = nn.SequentialCell(
            nn.Conv2d(1, 12, 3, has_bias=True),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(12, 24, 3, has_bias=True),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Dense(96, 10),
        )

    def construct(self, x):
        return self.layers(x)


def digits_model(network, level="O0", lr=3e-3):
    net = network()
    options = {}
    if level == "O2":
        options["loss_scale_manager"] = ms.DynamicLossScaleManager(2**20, 2, 100)
    return ms.Model(
        net,
        nn.CrossEntropyLoss(),
        nn.Adam(net.trainable_params(), lr),
        metrics={"accuracy", "loss"},
        amp_level=level,
        **options,
    )


def batches(data, size=32):
    return NumpySlicesDataset(data, ["image", "label"]).batch(size)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("level", ["O0", "O2"])
@pytest.mark.parametrize(("network", "epochs"), [(Mlp, 40), (ConvNet, 12)])
def test_digits(digits, network, epochs, level):
    used, held = digits
    ms.set_seed(1)
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        model = digits_model(network, level)
        start = time.process_time()  # of all threads, and not of other processes
        model.train(epochs, batches(used))
        seconds = time.process_time() - start
        results = model.eval(batches(held, 128))
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)
    print(f"{network.__name__} {level}: {results['accuracy']:.4f} in {seconds:.1f} s")
    assert results["accuracy"] >= 0.97
    assert seconds < 15


# Resuming -----------------------------------------------------------------------------------------


def resumable(directory, level):
    ms.set_seed(11)
    net = Mlp()
    options = {}
    if level == "O2":
        options["loss_scale_manager"] = ms.DynamicLossScaleManager(2**18, 2, 5)
    rate = nn.ExponentialDecayLR(3e-3, 0.9, 10)
    optimizer = nn.Adam(net.trainable_params(), rate, weight_decay=1e-4)
    model = ms.Model(net, nn.CrossEntropyLoss(), optimizer, amp_level=level, **options)
    config = ms.CheckpointConfig(save_checkpoint_steps=7, keep_checkpoint_max=0)
    return model, ms.ModelCheckpoint("run", str(directory), config)


@pytest.mark.parametrize("level", ["O0", "O2"])
def test_a_resumed_run_matches_bit_for_bit(mode, digits, tmp_path, level):
    (images, labels), _ = digits
    data = (images[:300], labels[:300])  # 10 batches an epoch, the last of 12 rows
    whole, saver = resumable(tmp_path, level)
    whole.train(3, batches(data), callbacks=[saver])
    files = sorted(os.listdir(tmp_path))
    assert files == [f"run-{k}.ckpt" for k in ("1_7", "2_4", "3_1", "3_10", "3_8")]
    for name in ("run-1_7.ckpt", "run-2_4.ckpt", "run-3_1.ckpt"):
        resumed, _ = resumable(tmp_path / "unused", level)
        ms.set_seed(99)  # what the file holds counts
        steps = resumed.resume(str(tmp_path / name))
        assert steps == 10 * (int(name[4]) - 1) + int(name[6])
        resumed.train(3, batches(data))
        assert_same(snapshot(whole.train_network), snapshot(resumed.train_network))


def test_a_resumed_run_without_a_seed(digits, tmp_path, monkeypatch):
    """The order of the data is in the file too."""
    from gradcell.base import seed

    (images, labels), _ = digits
    whole, saver = resumable(tmp_path, "O0")
    monkeypatch.setattr(seed, "_seed", None)
    whole.train(2, batches((images[:300], labels[:300])), callbacks=[saver])
    resumed, _ = resumable(tmp_path / "unused", "O0")
    resumed.resume(str(tmp_path / "run-1_7.ckpt"))
    resumed.train(2, batches((images[:300], labels[:300])))
    assert_same(snapshot(whole.train_network), snapshot(resumed.train_network))


def test_resume_refuses_another_models_file(tmp_path):
    model = linear_model()
    path = str(tmp_path / "other.ckpt")
    train.save_checkpoint(Mlp(), path)
    before = snapshot(model.train_network)
    with pytest.raises(ValueError, match="is not a checkpoint of this model's training"):
        model.resume(path)
    assert_same(before, snapshot(model.train_network))


# Callbacks ----------------------------------------------------------------------------------------


def linear_model(lr=0.05, **options):
    net = Linear()
    return ms.Model(net, optimizer=nn.SGD(net.trainable_params(), lr), **options)


DATA = [(X, Y)] * 5


class Recorder(ms.Callback):
    def __init__(self):
        self.events = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            self.events.append(name)
        return super().__getattribute__(name)


def test_the_order_of_events(mode):
    recorder = Recorder()
    linear_model().train(2, DATA[:2], callbacks=recorder)
    step = ["on_train_step_begin", "on_train_step_end"]
    epoch = ["on_train_epoch_begin", *step, *step, "on_train_epoch_end"]
    assert recorder.events == ["on_train_begin", *epoch, *epoch, "on_train_end"]


class OldNames(ms.Callback):
    def __init__(self):
        self.seen = []

    def begin(self, run_context):
        self.seen.append("begin")

    def step_end(self, run_context):
        p = run_context.original_args()
        self.seen.append((p.cur_epoch_num, p.cur_step_num, p.batch_num, p.epoch_num))

    def end(self, run_context):
        self.seen.append("end")


def test_the_older_names_and_the_parameters():
    old = OldNames()
    linear_model().train(2, DATA[:2], callbacks=[old])
    assert old.seen == ["begin", (1, 1, 2, 2), (1, 2, 2, 2), (2, 3, 2, 2), (2, 4, 2, 2), "end"]


def test_loss_and_time_monitor(capsys):
    linear_model().train(1, DATA[:3], callbacks=[ms.LossMonitor(2), ms.TimeMonitor()])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch: 1 step: 2, loss is ")
    assert lines[1].startswith("Train epoch time: ")
    assert len(lines) == 2


def test_a_loss_that_is_not_finite_ends_training():
    with pytest.raises(ValueError, match=r"loss is (nan|inf)"):
        linear_model(1e20).train(3, DATA, callbacks=ms.LossMonitor(0))


class Raises(ms.Callback):
    def __init__(self, event, error, step=3):
        self.error, self.step, self.closed = error, step, False
        setattr(self, event, self.act)

    def act(self, run_context):
        if run_context.original_args().cur_step_num >= self.step:
            raise self.error

    def close(self):
        self.closed = True


@pytest.mark.parametrize("event", ["on_train_step_begin", "on_train_step_end"])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("mine")])
def test_an_interrupted_run_holds_the_last_finished_step(mode, event, error):
    """A callback that raises, and Ctrl-C: the step that was finished is there, whole."""
    steps = 2 if event == "on_train_step_begin" else 3
    reference = linear_model()
    reference.train(1, DATA[:steps])
    model, raises = linear_model(), Raises(event, error)
    with pytest.raises(type(error)) as caught:
        model.train(1, DATA, callbacks=[raises])
    assert_same(snapshot(reference.train_network), snapshot(model.train_network))
    assert raises.closed
    if isinstance(error, ZeroDivisionError) and hasattr(caught.value, "__notes__"):
        assert f"raised by the callback Raises.{event}" in caught.value.__notes__
    model.train(1, DATA[: 5 - steps])  # and training can go on
    reference.train(1, DATA[: 5 - steps])
    assert_same(snapshot(reference.train_network), snapshot(model.train_network))


def test_ctrl_c_in_the_middle_of_a_step():
    """The signal comes while the network runs: nothing of that step is kept."""

    class Interrupted(Linear):
        calls = 0

        def construct(self, x, y):
            Interrupted.calls += 1
            if Interrupted.calls == 3:
                raise KeyboardInterrupt
            return super().construct(x, y)

    net = Interrupted()
    model = ms.Model(net, optimizer=nn.Adam(net.trainable_params(), 0.05))
    with pytest.raises(KeyboardInterrupt):
        model.train(1, DATA)
    twin = Linear()
    reference = ms.Model(twin, optimizer=nn.Adam(twin.trainable_params(), 0.05))
    reference.train(1, DATA[:2])
    assert_same(snapshot(reference.train_network), snapshot(model.train_network))


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, even where the tests run in the background; who sends it gets
    its turn within a training of a few milliseconds."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(interval)
    signal.signal(signal.SIGINT, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # in a collection
def test_signals_at_any_moment(mode, interruptible):
    """SIGINT at random times: what is left is always the state behind some finished step."""
    states = []

    class Keep(ms.Callback):
        def on_train_begin(self, run_context):
            states.append(snapshot(run_context.original_args().train_network))

        def on_train_step_end(self, run_context):
            states.append(snapshot(run_context.original_args().train_network))

    def make():
        net = Linear()
        return ms.Model(net, optimizer=nn.Adam(net.trainable_params(), 0.05))

    make().train(1, DATA * 40, callbacks=Keep())
    known = {tuple(v.tobytes() for v in state.values()) for state in states}
    assert len(known) == len(states)
    model = make()
    start = time.perf_counter()
    model.train(1, DATA * 40)
    length = time.perf_counter() - start
    rng = np.random.RandomState(5)
    interrupted = 0
    for _ in range(40):
        model = make()
        # Sent by another thread, as a terminal would.
        killer = threading.Timer(rng.uniform(0, length), os.kill, (os.getpid(), signal.SIGINT))
        try:
            killer.start()
            model.train(1, DATA * 40)
            killer.cancel()
            killer.join()
        except KeyboardInterrupt:
            interrupted += 1
        assert not _core.in_trace()
        assert tuple(v.tobytes() for v in snapshot(model.train_network).values()) in known
    assert interrupted, length


class Stop(ms.Callback):
    def on_train_step_end(self, run_context):
        if run_context.original_args().cur_step_num == 2:
            run_context.request_stop()


def test_a_requested_stop():
    old = OldNames()
    linear_model().train(4, DATA, callbacks=[Stop(), old])
    assert old.seen[1:] == [(1, 1, 5, 4), (1, 2, 5, 4), "end"]


def validated(callbacks, epochs=6, lr=0.05):
    net = nn.Dense(3, 1)
    net.weight.set_data(Tensor([[0.5, -1.0, 2.0]]))
    net.bias.set_data(Tensor([0.0]))
    optimizer = nn.SGD(net.trainable_params(), lr)
    model = ms.Model(net, nn.MSELoss(), optimizer, metrics={"loss", "mae"})
    data = [(X, Y[:, None])]
    model.fit(epochs, data, data, callbacks=callbacks)
    return model


def test_early_stopping_and_history(mode):
    history = ms.History()
    stop = ms.EarlyStopping("eval_loss", min_delta=1e9, patience=2)
    validated([stop, history])
    assert history.epoch["epoch"] == [1, 2, 3]  # the first is an improvement on nothing
    assert stop.stopped_epoch == 3
    assert set(history.history) == {"net_output", "eval_loss", "eval_mae"}
    falling = ms.History()
    validated([falling])
    assert falling.history["eval_loss"] == sorted(falling.history["eval_loss"], reverse=True)


def test_early_stopping_puts_the_best_weights_back():
    history = ms.History()
    stop = ms.EarlyStopping("eval_mae", patience=1, mode="max", restore_best_weights=True)
    model = validated([history, stop])
    best = history.history["eval_mae"].index(max(history.history["eval_mae"]))
    data = [(X, Y[:, None])]
    assert model.eval(data)["mae"] == pytest.approx(history.history["eval_mae"][best], rel=1e-6)
    with pytest.raises(ValueError, match="no 'eval_best'"):
        validated([ms.EarlyStopping("eval_best")])


def test_reduce_lr_on_plateau_and_scheduler(mode):
    plateau = ms.ReduceLROnPlateau("eval_loss", factor=0.5, patience=2, min_delta=1e9, min_lr=0.01)
    model = validated([plateau], epochs=9)
    # Epoch 1 improves on nothing; then a reduction every two epochs, not below min_lr.
    rate = model.train_network.optimizer.learning_rate
    assert float(rate) == pytest.approx(0.01)
    steps = []
    scheduled = ms.LearningRateScheduler(
        lambda lr, step: steps.append(step) or (lr * 0.5 if step % 2 else lr)
    )
    model = validated([scheduled], epochs=4, lr=0.08)
    assert float(model.train_network.optimizer.learning_rate) == pytest.approx(0.02)
    assert steps == [1, 2, 3, 4]
    net = Linear()
    listed = ms.Model(net, optimizer=nn.SGD(net.trainable_params(), [0.1, 0.2]))
    with pytest.raises(ValueError, match="not a schedule"):
        listed.train(1, DATA, callbacks=ms.LearningRateScheduler(lambda lr, step: lr * 0.5))


def test_checkpoints_are_kept_and_removed(tmp_path):
    config = ms.CheckpointConfig(save_checkpoint_steps=2, keep_checkpoint_max=2)
    saver = ms.ModelCheckpoint("net", str(tmp_path / "a"), config)
    linear_model().train(1, DATA, callbacks=saver)
    assert sorted(os.listdir(tmp_path / "a")) == ["net-1_4.ckpt", "net-1_5.ckpt"]
    assert saver.latest_ckpt_file_name.endswith("net-1_5.ckpt")
    found = ms.load_checkpoint(saver.latest_ckpt_file_name)
    assert int(found["step_num"]) == 5


# Progress -----------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_in_a_log_file_is_a_line_an_epoch():
    log = io.StringIO()
    linear_model().train(2, DATA, callbacks=train.ProgressBar(file=log))
    lines = log.getvalue().splitlines()
    assert [line.split(":")[0] for line in lines] == ["epoch 1/2", "epoch 2/2"]
    assert "5 steps" in lines[0]
    assert "loss" in lines[0]
    assert "\r" not in log.getvalue()


def test_progress_in_a_terminal_is_a_bar():
    pytest.importorskip("tqdm")
    terminal = Terminal()
    linear_model().train(2, DATA, callbacks=train.ProgressBar(every=1, file=terminal))
    assert "\r" in terminal.getvalue()
    assert "epoch 2/2: 100%" in terminal.getvalue()
    assert "loss" in terminal.getvalue()


def test_progress_without_tqdm(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    terminal = Terminal()
    linear_model().train(1, DATA, callbacks=train.ProgressBar(file=terminal))
    assert terminal.getvalue().startswith("epoch 1/1: 5 steps")


def test_a_failed_run_ends_the_bar():
    pytest.importorskip("tqdm")
    terminal = Terminal()
    bar = train.ProgressBar(file=terminal)
    with pytest.raises(ZeroDivisionError):
        linear_model().train(
            1, DATA, callbacks=[bar, Raises("on_train_step_end", ZeroDivisionError())]
        )
    assert bar._bar is None
    assert terminal.getvalue().endswith("\n")


# Data ---------------------------------------------------------------------------------------------


def generator():
    yield from DATA


@pytest.mark.parametrize(
    "data",
    [
        DATA,
        tuple(DATA),
        [(Tensor(X), Tensor(Y))] * 5,
        [{"x": X, "y": Y}] * 5,
        generator,
        generator(),
        GeneratorDataset(generator, ["x", "y"]),
    ],
    ids=lambda d: type(d).__name__,
)
def test_any_iterable_is_data(data):
    reference, model = linear_model(), linear_model()
    reference.train(1, DATA)
    model.train(1, data)
    assert_same(snapshot(reference.train_network), snapshot(model.train_network))


def test_a_short_last_batch(mode):
    model = linear_model()
    model.train(2, NumpySlicesDataset((X, Y), shuffle=False).batch(3))
    w = np.array([0.5, -1.0, 2.0])
    for _ in range(2):
        for part in (slice(0, 3), slice(3, 4)):
            x, y = X[part].astype(np.float64), Y[part]
            w -= 0.05 * 2 * ((x @ w - y)[:, None] * x).mean(axis=0)
    np.testing.assert_allclose(model.predict_network.w.asnumpy(), w, rtol=1e-5)


@pytest.mark.parametrize("where", [0, 3])
def test_a_label_out_of_range(mode, digits, where):
    """The step is not made; the steps before it are."""
    (images, labels), _ = digits
    labels = labels[:128].copy()
    labels[32 * where + 5] = 10
    data = NumpySlicesDataset((images[:128], labels), shuffle=False).batch(32)
    ms.set_seed(2)
    model = digits_model(Mlp)
    with pytest.raises((IndexError, ValueError), match="10"):
        model.train(1, data)
    ms.set_seed(2)
    reference = digits_model(Mlp)
    if where:
        reference.train(1, data.take(where))
    assert_same(snapshot(reference.train_network), snapshot(model.train_network))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.train(1, []), ValueError, "no batch"),
        (lambda m: m.train(2, iter(DATA)), ValueError, "only once"),
        (lambda m: m.train(1, 3), TypeError, "iterable of batches"),
        (lambda m: m.train(1, X), TypeError, "iterable of batches"),
        (lambda m: m.train(1, [(X, None)]), TypeError, "NoneType"),
        (lambda m: m.train(0, DATA), ValueError, "epoch"),
        (lambda m: m.train(1.5, DATA), TypeError, "epoch"),
        (lambda m: m.train(1, DATA, callbacks=[3]), TypeError, "not a Callback"),
        (lambda m: m.fit(1, DATA, DATA), ValueError, "metrics"),
        (lambda m: m.eval(DATA), ValueError, "no metrics"),
        (lambda m: ms.Model(3), TypeError, "must be a Cell"),
        (lambda m: ms.Model(Linear(), 3), TypeError, "loss_fn"),
        (lambda m: ms.Model(Linear(), metrics={"acc"}), ValueError, "metrics need"),
        (lambda m: ms.Model(Linear(), metrics={"best"}), KeyError, "best"),
        (lambda m: ms.Model(Linear(), nn.MSELoss()).train(1, DATA), ValueError, "no optimizer"),
        (lambda m: ms.Model(Linear(), colour=1), TypeError, "colour"),
        (lambda m: with_loss().train(1, [(X,)]), ValueError, r"data and label.*gave 1.*test_train"),
        (
            lambda m: with_loss().eval([(X, Y, Y)]),
            ValueError,
            r"data and label.*gave 3.*test_train",
        ),
        (lambda m: ms.LossMonitor(-1), ValueError, "at least 0"),
        (lambda m: ms.CheckpointConfig(0, 0), ValueError, "never save"),
        (lambda m: ms.ModelCheckpoint("a/b"), ValueError, "prefix"),
        (lambda m: ms.EarlyStopping(mode="best"), ValueError, "mode"),
        (lambda m: ms.ReduceLROnPlateau(factor=2.0), ValueError, "factor"),
    ],
)
def test_training_refuses_settings_it_cannot_follow(call, error, text):
    with pytest.raises(error, match=text):
        call(linear_model())


def with_loss():
    net = nn.Dense(3, 1)
    return ms.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params()), metrics={"loss"})


def test_predict_and_eval_leave_the_mode_as_it_was():
    model = digits_model(Mlp)
    x = np.zeros((2, 1, 8, 8), np.float32)
    model.predict_network.set_train()
    model.predict_network.hidden.set_train(False)  # a frozen part stays frozen
    assert model.predict(x).shape == (2, 10)
    np.testing.assert_array_equal(model.predict(x).asnumpy(), model.predict(Tensor(x)).asnumpy())
    model.eval([(x, np.array([0, 1]))])
    assert model.predict_network.training
    assert model.predict_network.drop.training
    assert not model.predict_network.hidden.training


class Triple(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def construct(self, x, y):
        out = (x * self.net.w).sum(axis=1)
        return y, out, ops.square(out - y).mean()


def test_eval_network_and_indexes():
    net = Linear()
    model = ms.Model(net, eval_network=Triple(net), eval_indexes=[2, 1, 0], metrics={"loss", "mse"})
    results = model.eval([(X, Y)])
    assert results["loss"] == pytest.approx(results["mse"])
    assert results["loss"] == pytest.approx(float(net(*batch())))


def test_overflows_at_the_smallest_scale_are_skipped_with_a_warning():
    class Broken(Linear):
        def construct(self, x, y):
            return super().construct(x, y) * float("inf")

    net = Broken()
    model = ms.Model(
        net,
        optimizer=nn.SGD(net.trainable_params(), 0.1),
        loss_scale_manager=ms.DynamicLossScaleManager(4, 2, 10),
    )
    before = net.trainable_params()[0].asnumpy().copy()
    with pytest.warns(RuntimeWarning, match="smallest loss scale"):
        model.train(1, DATA)
    np.testing.assert_array_equal(net.trainable_params()[0].asnumpy(), before)


def test_callbacks_in_a_loop_of_ones_own(tmp_path, capsys):
    """MindSpore's own loops call begin, step_end and end with parameters that they made."""
    from gradcell.train.callback import _InternalCallbackParam

    net = Linear()
    p = _InternalCallbackParam()
    p.train_network, p.batch_num, p.epoch_num, p.cur_epoch_num, p.cur_step_num = net, 2, 1, 1, 0
    context = ms.RunContext(p)
    config = ms.CheckpointConfig(save_checkpoint_steps=2)
    saver = ms.ModelCheckpoint("own", str(tmp_path), config)
    watched = [saver, ms.LossMonitor(), ms.TimeMonitor()]
    for callback in watched:
        callback.begin(context)
        callback.epoch_begin(context)
    for step in (1, 2, 3):
        p.cur_step_num, p.net_outputs = step, Tensor(float(step))
        for callback in watched:
            callback.step_end(context)
    for callback in watched:
        callback.epoch_end(context)
        callback.end(context)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["own-1_1.ckpt", "own-1_2.ckpt"]
    printed = capsys.readouterr().out
    assert printed.count("loss is") == 3
    assert "per step time" in printed


def test_super_of_redefined_events():
    calls = []

    class Mine(ms.Callback):
        def on_train_begin(self, run_context):
            super().on_train_begin(run_context)
            calls.append("on_train_begin")

        def step_end(self, run_context):
            super().step_end(run_context)
            calls.append("step_end")

    mine = Mine()
    mine.begin(None)
    mine.on_train_step_end(None)
    mine.on_eval_begin(None)
    assert calls == ["on_train_begin", "step_end"]


def test_several_callbacks_as_one():
    from gradcell.train.callback import _CallbackManager

    seen = []

    class Named(ms.Callback):
        def __init__(self, name):
            self.name = name

        def step_end(self, run_context):
            seen.append(self.name)

    with _CallbackManager([Named("a"), Named("b")]) as manager:
        manager.on_train_step_end(None)
        manager.step_end(None)
        manager.on_train_begin(None)
    assert seen == ["a", "b"] * 2
    with pytest.raises(TypeError, match="int is not a Callback"):
        _CallbackManager([3])


def test_dataset_helper():
    data = ms.dataset.NumpySlicesDataset((np.arange(6.0), np.arange(6)), shuffle=False).batch(2)
    helper = ms.DatasetHelper(data, dataset_sink_mode=True)
    assert helper.sink_size() == 3
    assert helper.types_shapes() == ([ms.float64, ms.int64], [(2,), (2,)])
    net = ms.connect_network_with_dataset(Linear(), helper)
    assert isinstance(net, Linear)
    for _ in range(2):
        assert [y.asnumpy().tolist() for _, y in helper] == [[0, 1], [2, 3], [4, 5]]
    with pytest.raises(TypeError, match="DatasetHelper"):
        ms.connect_network_with_dataset(net, data)
    with pytest.raises(TypeError, match="DatasetHelper"):
        ms.DatasetHelper(3)


def test_one_parameter_at_a_time():
    from gradcell.train.serialization import _update_param

    net = Linear()
    _update_param(net.w, Tensor(np.full(net.w.shape, 3, np.float32)))
    assert (net.w.asnumpy() == 3).all()
    with pytest.raises(ValueError, match="'w' has shape"):
        _update_param(net.w, Tensor(np.zeros((9, 9), np.float32)))
