"""Loss scaling: scalers, update cells and managers, step by step; bad values; the floor."""

import os
import warnings

import numpy as np
import pytest
from training_fixtures import START, Linear, batch, counted, linear_gradient, snapshot

import gradcell as ms
from gradcell import Parameter, Tensor, _core, amp, nn, ops

# Scalers ------------------------------------------------------------------------------------------


def test_static_scaler_keeps_trees_and_dtypes():
    scaler = amp.StaticLossScaler(1024.0)
    assert float(scaler.scale(Tensor(2.0))) == 2048
    one, (two,) = scaler.unscale((Tensor(2.0), [Tensor([4.0], ms.float16)]))
    assert float(one) == 2 / 1024
    assert two.dtype == ms.float16
    assert two.asnumpy() == [4 / 1024]
    assert scaler.adjust(True) is False


def test_unscaling_half_types_multiplies_exactly():
    """1 / 2**24 is subnormal in float16; the product is not lost with it."""
    scaled = Tensor([60000.0], ms.float16)
    np.testing.assert_allclose(
        amp.StaticLossScaler(2.0**24).unscale(scaled).asnumpy(), [60000 / 2**24], rtol=1e-3
    )
    with pytest.raises(TypeError, match="Int32"):
        amp.StaticLossScaler(2.0).scale(Tensor(1, ms.int32))


def test_dynamic_scaler_by_the_rules(mode):
    scaler = amp.DynamicLossScaler(1024.0, 2, 3)
    expected, good = 1024.0, 0
    for finite in [1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1]:
        assert scaler.adjust(Tensor(bool(finite))) is True
        if not finite:
            expected, good = expected / 2, 0
        else:
            good += 1
            if good == 3:
                expected, good = expected * 2, 0
        assert float(scaler.scale_value) == expected
    assert float(scaler.scale(Tensor(1.0))) == expected


def test_dynamic_scale_stays_finite():
    scaler = amp.DynamicLossScaler(2.0**127, 2, 1)
    scaler.adjust(True)
    assert float(scaler.scale_value) == 2.0**127


#: Within so many a step that overflows at the smallest scale is told: nothing waits for a GPU.
CALLS = 65 if os.environ.get("GRADCELL_TEST_DEVICE") == "GPU" else 1


def test_dynamic_scaler_at_the_floor():
    scaler = amp.DynamicLossScaler(2.0, 2, 10)
    scaler.adjust(False)
    assert float(scaler.scale_value) == 1
    scaler.adjust(True)
    scaler.adjust(False)  # at 1 already
    with pytest.warns(RuntimeWarning, match="smallest loss scale, 1"):
        for _ in range(CALLS):
            scaler.adjust(False)
    assert float(scaler.scale_value) == 1


def test_dynamic_scaler_inside_a_compiled_step():
    net = Linear(ms.float16)
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    scaler = amp.DynamicLossScaler(2.0**16, 2, 100)
    value_and_grad = ms.value_and_grad(
        lambda x, y: scaler.scale(net(x, y)), None, optimizer.parameters
    )

    @ms.jit
    def step(x, y):
        loss, grads = value_and_grad(x, y)
        grads = scaler.unscale(tuple(g.astype(ms.float32) for g in grads))
        finite = amp.all_finite(grads)
        if finite:
            optimizer(grads)
        scaler.adjust(finite)
        return scaler.unscale(loss)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = []
        for _ in range(12):
            before, scale = net.w.asnumpy().copy(), float(scaler.scale_value)
            step(*batch())
            made.append(not np.array_equal(before, net.w.asnumpy()))
            assert float(scaler.scale_value) == (scale if made[-1] else scale / 2)
    assert made[0] is False  # 65536 is inf in float16
    assert made[-1] is True


def test_all_finite():
    finite = (Tensor([1.0, 2.0]), [Tensor([1, 2]), {"a": Tensor(3.0, ms.float16)}])
    assert bool(amp.all_finite(finite))
    for bad in (np.inf, -np.inf, np.nan):
        assert not bool(amp.all_finite((finite, Tensor([1.0, bad]))))
        assert not bool(amp.all_finite(Tensor([bad], ms.bfloat16)))
    assert bool(amp.all_finite(Tensor([1.0]), amp.init_status()))
    with pytest.raises(ValueError, match="expected tensors"):
        amp.all_finite(())
    with pytest.raises(TypeError, match="expected tensors"):
        amp.all_finite(3)


# The step by step rules of the cell ---------------------------------------------------------------


def test_overflow_recovery_step_by_step(mode):
    """float16: the first scales overflow and the step is skipped; then window and factor."""
    net = Linear(ms.float16)
    optimizer = nn.Adam(net.trainable_params(), 0.05)
    train = nn.TrainOneStepWithLossScaleCell(
        net, optimizer, nn.DynamicLossScaleUpdateCell(2.0**17, 4, 3)
    )
    expected, good, overflows = 2.0**17, 0, []
    for _ in range(16):
        before = snapshot(optimizer)
        _, overflow, scale = train(*batch())
        overflows.append(bool(overflow))
        after = snapshot(optimizer)
        same = all(np.array_equal(before[k], after[k]) for k in before)
        assert same is overflows[-1]  # weights, moments and the step count
        if overflows[-1]:
            expected, good = expected / 4, 0
        else:
            good += 1
            if good == 3:
                expected, good = expected * 4, 0
        assert float(scale) == float(train.scale_sense) == expected
    assert overflows[:2] == [True, True]  # 2**17 and 2**15 are too much
    assert 0 < sum(overflows) < 12


def test_the_step_does_not_depend_on_the_scale(mode):
    w = START.copy()
    for _ in range(4):
        w -= 0.05 * linear_gradient(w)[1]
    for sense in (
        nn.FixedLossScaleUpdateCell(3.0),
        nn.FixedLossScaleUpdateCell(2.0**-20),
        nn.DynamicLossScaleUpdateCell(2**20, 2, 2),
        Tensor([512.0]),
        Tensor(0.5),
    ):
        net = Linear()
        train = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.05), sense)
        for _ in range(4):
            _, overflow, _ = train(*batch())
        assert not bool(overflow)
        np.testing.assert_allclose(net.w.asnumpy(), w, rtol=1e-5)


def test_a_compiled_step_is_one_plan_with_no_host_read():
    ms.set_context(mode=ms.GRAPH_MODE)
    try:
        net = Linear(ms.float16)
        optimizer = nn.Adam(net.trainable_params(), nn.ExponentialDecayLR(0.05, 0.9, 3))
        train = nn.TrainOneStepWithLossScaleCell(
            net, optimizer, nn.DynamicLossScaleUpdateCell(2.0**16, 2, 2)
        )
        inputs = batch()
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # asking for a value would warn
            train(*inputs)
            for _ in range(5):  # some of them overflow, some do not
                with counted() as counts:
                    train(*inputs)
                assert counts == {"runs": 1, "made": 0}
    finally:
        ms.set_context(mode=ms.PYNATIVE_MODE)


def test_a_pynative_step_asks_for_nothing():
    net = Linear()
    train = nn.TrainOneStepWithLossScaleCell(
        net, nn.Adam(net.trainable_params()), nn.DynamicLossScaleUpdateCell(4.0, 2, 2)
    )
    inputs = batch()
    trace = _core.begin_trace()
    try:
        train(*inputs)
        assert not trace.asked
    finally:
        trace.abandon()
        _core.end_trace()


def test_underflow_without_scaling_and_none_with_it():
    """Gradients of about 1e-8 are zero in float16: without a scale nothing is learned."""
    factor = 2.0**-26
    plain, scaled = Linear(ms.float16, 2.0**-13), Linear(ms.float16, 2.0**-13)

    class Shrunk(nn.Cell):
        """Multiplies the residual's gradient by a second small factor."""

        def __init__(self, net):
            super().__init__()
            self.net = net

        def construct(self, x, y):
            return self.net(x, y) * 2.0**-13

    unscaled = nn.TrainOneStepCell(Shrunk(plain), nn.SGD(plain.trainable_params(), 0.05 / factor))
    with_scale = nn.TrainOneStepWithLossScaleCell(
        Shrunk(scaled),
        nn.SGD(scaled.trainable_params(), 0.05 / factor),
        nn.DynamicLossScaleUpdateCell(2.0**15, 2, 1000),
    )
    w = START.copy()
    for _ in range(60):
        unscaled(*batch())
        with_scale(*batch())
        w -= 0.05 * linear_gradient(w)[1]
    np.testing.assert_array_equal(plain.w.asnumpy(), START)
    np.testing.assert_allclose(scaled.w.asnumpy(), w, atol=0.02)
    assert linear_gradient(scaled.w.asnumpy())[0] < 0.5 * linear_gradient(START)[0]


# Nested gradients ---------------------------------------------------------------------------------


class Field(nn.Cell):
    """u(x) = sum tanh(x a + b) c, and a residual u'' + u."""

    def __init__(self):
        super().__init__()
        rng = np.random.RandomState(3)
        for name in "abc":
            setattr(self, name, Parameter(Tensor(rng.randn(1, 8).astype(np.float32)), name=name))

    def u(self, x):
        return (ops.tanh(x * self.a + self.b) * self.c).sum(axis=1)

    def construct(self, x):
        first = ms.grad(self.u)
        second = ms.grad(lambda t: first(t))(x)
        residual = second[:, 0] + self.u(x)
        return (residual * residual).mean()


class Penalised(Field):
    """A gradient penalty: (|du/dx| - 1)²."""

    def construct(self, x):
        return ops.square(ops.abs(ms.grad(self.u)(x)) - 1.0).mean()


@pytest.mark.parametrize("network", [Field, Penalised])
def test_scaling_through_nested_gradients(mode, network):
    x = Tensor(np.linspace(-2, 2, 33, dtype=np.float32)[:, None])
    net = network()
    reference = ms.grad(net, None, net.trainable_params())(x)
    scaler = amp.DynamicLossScaler(2.0**20, 2, 100)
    scaled = ms.grad(lambda t: scaler.scale(net(t)), None, net.trainable_params())(x)
    for g, r in zip(scaler.unscale(scaled), reference, strict=True):
        np.testing.assert_array_equal(g.asnumpy(), r.asnumpy())  # a power of two changes no digit

    before = snapshot(net)
    optimizer = nn.SGD(net.trainable_params(), 0.01)
    train = nn.TrainOneStepWithLossScaleCell(net, optimizer, nn.FixedLossScaleUpdateCell(2.0**20))
    train(x)
    for p, r in zip(net.trainable_params(), reference, strict=True):
        want = before[p.name] - np.float32(0.01) * r.asnumpy()
        np.testing.assert_allclose(p.asnumpy(), want, rtol=1e-6, atol=1e-7)


# The floor and bad values -------------------------------------------------------------------------


class Broken(Linear):
    def construct(self, x, y):
        return super().construct(x, y) * float("inf")


def test_at_the_floor_training_goes_on_with_one_warning(mode):
    net = Broken()
    train = nn.TrainOneStepWithLossScaleCell(
        net, nn.SGD(net.trainable_params(), 0.05), nn.DynamicLossScaleUpdateCell(4, 2, 10)
    )
    scales = [float(train(*batch())[2]) for _ in range(3)]
    assert scales == [2.0, 1.0, 1.0]
    with pytest.warns(RuntimeWarning, match=r"smallest loss scale, 1.*locate_overflow"):
        for _ in range(CALLS):
            train(*batch())
    for _ in range(2):  # as DynamicLossScaleManager, and MindSpore's cell, go on
        _, overflow, scale = train(*batch())
        assert bool(overflow) and float(scale) == 1
    np.testing.assert_array_equal(net.w.asnumpy(), START)


def test_the_floor_inside_a_compiled_function():
    net = Broken()
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    scaler = amp.DynamicLossScaler(2.0, 2, 10)
    gradient = ms.grad(lambda x, y: scaler.scale(net(x, y)), None, optimizer.parameters)

    def step(x, y):
        finite = amp.all_finite(gradient(x, y))
        scaler.adjust(finite)
        return finite

    compiled = ms.jit(step)
    for _ in range(3):
        assert not bool(compiled(*batch()))
    with pytest.warns(RuntimeWarning, match="smallest loss scale"):
        scaler.check()
    scaler.check()  # has warned


SMALLEST, LARGEST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)


@pytest.mark.parametrize("scale", [SMALLEST, LARGEST, 1.0])
def test_scales_at_the_bounds_of_float32_train(scale, mode):
    net = Linear()
    train = nn.TrainOneStepWithLossScaleCell(
        net, nn.SGD(net.trainable_params(), 1e-3), Tensor(scale, ms.float32)
    )
    _, overflow, after = train(batch()[0] * 0, batch()[1] * 0)
    assert not bool(overflow) and float(after) == scale


@pytest.mark.parametrize("scale", [1e-45, SMALLEST / 2, 1e39])
def test_scales_with_which_nothing_would_train(scale):
    net = Linear()
    optimizer = nn.SGD(net.trainable_params(), 0.05)
    for sense in (nn.FixedLossScaleUpdateCell, lambda s: Tensor(s, ms.float32)):
        with pytest.raises(ValueError, match=r">= 1.17549e-38|<= 3.40282e\+38"):
            nn.TrainOneStepWithLossScaleCell(net, optimizer, sense(scale))


@pytest.mark.parametrize("scale", [0, -1.0, float("inf"), float("nan"), 1e39])
@pytest.mark.parametrize(
    "make",
    [
        amp.StaticLossScaler,
        lambda s: amp.DynamicLossScaler(s, 2, 10),
        nn.FixedLossScaleUpdateCell,
        lambda s: nn.DynamicLossScaleUpdateCell(s, 2, 10),
        ms.FixedLossScaleManager,
        lambda s: ms.DynamicLossScaleManager(s, 2, 10),
    ],
)
def test_bad_scales(make, scale):
    with pytest.raises(ValueError, match="must be finite"):
        make(scale)
    with pytest.raises(TypeError, match="must be a number"):
        make("4")


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: amp.DynamicLossScaler(4.0, 1, 10), ValueError),
        (lambda: amp.DynamicLossScaler(4.0, 0.5, 10), ValueError),
        (lambda: amp.DynamicLossScaler(4.0, 2, 0), ValueError),
        (lambda: amp.DynamicLossScaler(4.0, 2, 1.5), TypeError),
        (lambda: nn.DynamicLossScaleUpdateCell(4.0, 1, 10), ValueError),
        (lambda: ms.FixedLossScaleManager(4.0, 1), TypeError),
        (lambda: amp.StaticLossScaler(0.5), ValueError),
    ],
)
def test_bad_rules(make, error):
    with pytest.raises(error):
        make()


def test_set_sense_scale():
    net = Linear()
    train = nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.1), Tensor(4.0))
    train.set_sense_scale(Tensor([8.0]))
    assert float(train.scale_sense) == 8
    with pytest.raises(TypeError):
        train.set_sense_scale(8)
    with pytest.raises(ValueError, match="finite"):
        train.set_sense_scale(Tensor(0.0))
    with pytest.raises(TypeError, match="must be Cell or Tensor"):
        nn.TrainOneStepWithLossScaleCell(net, nn.SGD(net.trainable_params(), 0.1), 3)
    with pytest.raises(ValueError, match="shape"):
        nn.TrainOneStepWithLossScaleCell(
            net, nn.SGD(net.trainable_params(), 0.1), Tensor([1.0, 2.0])
        )


def test_managers():
    fixed = ms.FixedLossScaleManager()
    assert fixed.get_loss_scale() == 128.0
    assert fixed.get_update_cell().get_loss_scale() == 128.0
    assert ms.FixedLossScaleManager(2.0, drop_overflow_update=False).get_update_cell() is None
    dynamic = ms.DynamicLossScaleManager(16, 2, 2)
    scales = []
    for overflow in (False, False, True, False, False):
        dynamic.update_loss_scale(overflow)
        scales.append(dynamic.get_loss_scale())
    assert scales == [16, 32, 16, 16, 32]
    assert dynamic.get_update_cell().get_loss_scale() == 32
