"""Cells around a network: loss, gradients, one step, accumulation; bad input."""

import warnings

import numpy as np
import pytest
from training_fixtures import START, Linear, X, Y, batch, linear_gradient, snapshot

import gradcell as ms
from gradcell import Parameter, Tensor, amp, nn, ops
from gradcell.parallel._utils import _get_device_num, _get_parallel_mode


class Backbone(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(START.astype(np.float32)), name="w")

    def construct(self, x):
        return (x * self.w).sum(axis=1)


class Mse(nn.Cell):
    def construct(self, out, label):
        return ((out - label) ** 2).mean()


def test_with_loss_and_grad(mode):
    net = nn.WithLossCell(Backbone(), Mse())
    loss, gradient = linear_gradient(START)
    np.testing.assert_allclose(float(net(*batch())), loss, rtol=1e-5)
    assert [p.name for p in net.trainable_params()] == ["w"]
    (got,) = nn.WithGradCell(net.backbone_network, Mse())(*batch())
    np.testing.assert_allclose(got.asnumpy(), gradient, rtol=1e-5)
    (got,) = nn.WithGradCell(net, sens=Tensor(3.0))(*batch())
    np.testing.assert_allclose(got.asnumpy(), 3 * gradient, rtol=1e-5)


def test_with_eval(mode):
    loss, out, label = nn.WithEvalCell(Backbone(), Mse())(*batch())
    np.testing.assert_allclose(float(loss), linear_gradient(START)[0], rtol=1e-5)
    np.testing.assert_allclose(out.asnumpy(), X @ START, rtol=1e-5)
    np.testing.assert_array_equal(label.asnumpy(), Y)


def test_forward_value_and_grad(mode):
    net = Linear()
    loss, gradient = linear_gradient(START)
    cell = nn.ForwardValueAndGrad(net, net.trainable_params(), get_by_list=True)
    value, (got,) = cell(*batch())
    np.testing.assert_allclose(float(value), loss, rtol=1e-5)
    np.testing.assert_allclose(got.asnumpy(), gradient, rtol=1e-5)
    every = nn.ForwardValueAndGrad(
        net, net.trainable_params(), get_all=True, get_by_list=True, sens_param=True
    )
    _, ((dx, dy), (dw,)) = every(*batch(), Tensor(2.0))
    assert (dx.shape, dy.shape) == (X.shape, Y.shape)
    np.testing.assert_allclose(dw.asnumpy(), 2 * gradient, rtol=1e-5)


class Noisy(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.ones(64, np.float32)), name="w")
        self.drop = nn.Dropout(p=0.5)

    def construct(self, x):
        return self.drop(x * self.w).sum()


def test_the_value_and_the_gradient_are_of_the_same_random_numbers(mode):
    net = Noisy().set_train()
    cell = nn.ForwardValueAndGrad(net, net.trainable_params(), get_by_list=True)
    x = Tensor(np.arange(64, dtype=np.float32))
    values = []
    for _ in range(3):
        value, (gradient,) = cell(x)
        np.testing.assert_allclose(float(value), gradient.asnumpy().sum(), rtol=1e-6)
        values.append(float(value))
    assert len(set(values)) == 3  # and new ones each time


def test_sens_and_return_grad(mode):
    net = Linear()
    loss, gradient = linear_gradient(START)
    train = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.01), 3.0, return_grad=True)
    value, grads = train(*batch())
    np.testing.assert_allclose(float(value), loss, rtol=1e-5)
    np.testing.assert_allclose(grads["w"].asnumpy(), 3 * gradient, rtol=1e-5)
    np.testing.assert_allclose(net.w.asnumpy(), START - 0.03 * gradient, rtol=1e-5)


def test_order_of_parameters():
    net = Linear()
    train = nn.TrainOneStepWithLossScaleCell(
        net, nn.Adam(net.trainable_params()), nn.DynamicLossScaleUpdateCell(4.0, 2, 2)
    )
    assert [p.name for p in train.get_parameters()] == [
        "w", "scale_sense", "global_step", "learning_rate", "beta1_power", "beta2_power",
        "moment1.w", "moment2.w", "current_iterator_step", "last_overflow_iterator_step",
    ]  # fmt: skip


def test_one_device():
    assert (_get_device_num(), _get_parallel_mode()) == (1, ms.ParallelMode.STAND_ALONE)
    grads = (Tensor([1.0]),)
    assert nn.DistributedGradReducer([], mean=True, degree=1)(grads)[0].asnumpy() == [1.0]
    with pytest.raises(ValueError, match="degree"):
        nn.DistributedGradReducer([], degree=0)


class Accumulating(nn.TrainOneStepCell):
    """The optimiser steps once in `steps` calls, with the sum of the gradients."""

    def __init__(self, network, optimizer, steps):
        super().__init__(network, optimizer)
        self.steps = steps
        self.sums = self.weights.clone(prefix="sum", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), name="counter")

    def construct(self, *inputs):
        loss, grads = ms.value_and_grad(self.network, None, self.weights)(*inputs)
        self.hyper_map(ops.partial(ops.assign_add), self.sums, grads)
        if self.counter % self.steps == 0:
            self.optimizer(tuple(s / self.steps for s in self.sums))
            for s in self.sums:
                ops.assign(s, ops.zeros_like(s))
        ops.assign_add(self.counter, Tensor(1, ms.int32))
        return loss


def test_accumulation(mode):
    net = Linear()
    train = Accumulating(net, nn.SGD(net.trainable_params(), 0.05), 2)
    w = START.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(6):
            part = slice(0, 2) if step % 2 == 0 else slice(2, 4)
            train(Tensor(X[part]), Tensor(Y[part]))
            if step % 2:
                w -= 0.05 * linear_gradient(w)[1]
            np.testing.assert_allclose(net.w.asnumpy(), w, rtol=1e-5)
    assert [p.name for p in train.sums] == ["sum.w"]


# Levels of mixed precision ------------------------------------------------------------------------


class Small(nn.Cell):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Dense(3, 8), nn.Dense(8, 1)

    def construct(self, x):
        return self.b(ops.tanh(self.a(x)))


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_build_train_network(level):
    net = Small()
    optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
    train = amp.build_train_network(net, optimizer, nn.MSELoss(), level)
    assert isinstance(train, nn.TrainOneStepWithLossScaleCell) is (level == "O2")
    losses = []
    for _ in range(60):
        out = train(Tensor(X), Tensor(Y[:, None]))
        loss = out[0] if isinstance(out, tuple) else out
        assert loss.dtype == ms.float32
        losses.append(float(loss))
    assert losses[-1] < 0.1 * losses[0]
    assert {p.dtype for p in net.get_parameters()} == {ms.float32}


def test_build_train_network_with_a_manager():
    net = Small()
    optimizer = nn.SGD(net.trainable_params(), 0.05, loss_scale=64.0)
    fixed = ms.FixedLossScaleManager(64.0, drop_overflow_update=False)
    train = amp.build_train_network(net, optimizer, nn.MSELoss(), "O0", loss_scale_manager=fixed)
    assert type(train) is nn.TrainOneStepCell
    twin = Small()
    for p, q in zip(twin.get_parameters(), net.get_parameters(), strict=True):
        p.set_data(q.value())
    plain = nn.TrainOneStepCell(
        nn.WithLossCell(twin, nn.MSELoss()), nn.SGD(twin.trainable_params(), 0.05)
    )
    train(Tensor(X), Tensor(Y[:, None]))
    plain(Tensor(X), Tensor(Y[:, None]))
    for p, q in zip(twin.get_parameters(), net.get_parameters(), strict=True):
        np.testing.assert_allclose(p.asnumpy(), q.asnumpy(), rtol=1e-6)
    with pytest.raises(ValueError, match="O4"):
        amp.build_train_network(net, optimizer, nn.MSELoss(), "O4")
    with pytest.raises(TypeError, match="colour"):
        amp.build_train_network(net, optimizer, nn.MSELoss(), colour=1)


# Bad input ----------------------------------------------------------------------------------------


class Vector(Linear):
    def construct(self, x, y):
        return ((x * self.w).sum(axis=1) - y) ** 2


def test_a_loss_that_is_not_a_scalar_is_summed_and_says_so(mode):
    net = Vector()
    train = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.05))
    with pytest.warns(RuntimeWarning, match=r"shape \[4\]; its sum"):
        train(*batch())
    np.testing.assert_allclose(
        net.w.asnumpy(), START - 0.05 * 4 * linear_gradient(START)[1], rtol=1e-5
    )


class Counting(Linear):
    def construct(self, x, y):
        return Tensor(3) if x.shape[0] == 4 else None


@pytest.mark.parametrize("rows", [4, 3])
def test_a_loss_that_is_no_floating_tensor(rows):
    net = Counting()
    train = nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.05))
    with pytest.raises(TypeError, match="must return its loss, a floating Tensor"):
        train(Tensor(X[:rows]), Tensor(Y[:rows]))


def test_an_optimizer_of_another_network():
    with pytest.raises(ValueError, match="none of the optimizer's parameters"):
        nn.TrainOneStepCell(Linear(), nn.SGD(Linear().trainable_params(), 0.05))
    net, extra = Linear(), Parameter(Tensor([1.0]), name="extra")
    with pytest.warns(RuntimeWarning, match="'extra' is not one of the network's"):
        nn.TrainOneStepCell(net, nn.SGD([net.w, extra], 0.05))


class Halved(nn.TrainOneStepCell):
    """Gives the optimiser gradients of another structure."""

    def construct(self, *inputs):
        _, grads = self.value_and_gradients(None, inputs)
        self.optimizer(tuple(grads) * 2)


def test_gradients_of_another_structure(mode):
    net = Linear()
    train = Halved(net, nn.Adam(net.trainable_params()))
    before = snapshot(train)
    with pytest.raises(ValueError, match="got 2 gradients for 1 parameters"):
        train(*batch())
    for name, value in snapshot(train).items():
        np.testing.assert_array_equal(value, before[name])


@pytest.mark.parametrize(
    "make",
    [
        lambda net: nn.TrainOneStepCell(len, nn.SGD(net.trainable_params(), 0.1)),
        lambda net: nn.TrainOneStepCell(net, 3),
        lambda net: nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1), return_grad=1),
        lambda net: nn.TrainOneStepCell(net, nn.SGD(net.trainable_params(), 0.1), sens="a"),
        lambda net: nn.WithLossCell(net, 3),
        lambda net: nn.ForwardValueAndGrad(3),
        lambda net: nn.ForwardValueAndGrad(net, get_by_list=True),
    ],
)
def test_wrong_types(make):
    with pytest.raises(TypeError):
        make(Linear())
