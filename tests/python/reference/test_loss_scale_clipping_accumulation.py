"""MindSpore's "Gradient Derivation": loss scale, "Gradient Cropping" and "Gradient Accumulation".

Accumulation has no code in the document; it is checked here as its linked tutorial describes it:
parameters cloned with a prefix, `assign_add`, an update every few steps.
"""

import numpy as np
import pytest
from document_networks import Net

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops
from gradcell.amp import StaticLossScaler, all_finite


@pytest.fixture
def net():
    net = Net(3, 1)
    net.fc.weight.set_data(ms.Tensor([[2, 3, 4]], ms.float32))
    return net


@pytest.fixture
def x():
    return ms.Tensor([[1, 2, 3]], ms.float32)


@pytest.fixture
def y():
    return ms.Tensor(19, ms.float32)


def test_loss_scale(net, x, y, documented):
    loss_scale = StaticLossScaler(1024.0)

    def forward_fn(x, y):
        loss, logits = net(x, y)
        print("loss", loss)
        loss = loss_scale.scale(loss)
        return loss, logits

    value_and_grad_func = ms.value_and_grad(
        forward_fn, grad_position=None, weights=net.trainable_params(), has_aux=True
    )
    (loss, _logits), grad = value_and_grad_func(x, y)
    print("=== loss scale ===")
    print("loss", loss)
    print("grad", grad)
    print("=== unscale ===")
    loss = loss_scale.unscale(loss)
    grad = loss_scale.unscale(grad)
    print("loss", loss)
    print("grad", grad)

    state = all_finite(grad)
    print(state)
    documented(
        """
loss 1.0
=== loss scale ===
loss 1024.0
grad (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.04800000e+003, 4.09600000e+003, 6.14400000e+003]]),)
=== unscale ===
loss 1.0
grad (Tensor(shape=[1, 3], dtype=Float32, value=
[[2.00000000e+000, 4.00000000e+000, 6.00000000e+000]]),)
True
""",
        three_digits=True,
    )


def test_all_finite_finds_inf_and_nan():
    finite = Tensor([1.0, 2.0])
    assert bool(all_finite((finite, finite)))
    assert not bool(all_finite((finite, Tensor([1.0, float("inf")]))))
    assert not bool(all_finite((Tensor([float("nan")]), finite)))


def test_clip_by_global_norm(net, x, y):
    weights = net.trainable_params()
    grad, _ = ms.grad(net, grad_position=None, weights=weights, has_aux=True)(x, y)
    norm = np.sqrt(4 + 16 + 36)

    grad = ops.clip_by_global_norm(grad)

    assert isinstance(grad, tuple)
    np.testing.assert_allclose(grad[0].asnumpy(), np.array([[2, 4, 6]]) / norm, rtol=1e-6)
    small = (Tensor([0.3, 0.4]), Tensor([[0.5]]))
    for clipped, original in zip(ops.clip_by_global_norm(small), small, strict=True):
        np.testing.assert_allclose(clipped.asnumpy(), original.asnumpy(), rtol=1e-6)
    halved = ops.clip_by_global_norm((Tensor([3.0]), Tensor([4.0])), 2.5)
    np.testing.assert_allclose([float(part) for part in halved], [1.5, 2.0], rtol=1e-6)


class Accumulator(nn.Cell):
    """Adds gradients up and lets the optimizer step once in every `steps` calls."""

    def __init__(self, optimizer, steps):
        super().__init__(auto_prefix=False)
        self.optimizer = optimizer
        self.steps = steps
        self.sums = optimizer.parameters.clone(prefix="accumulated", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), name="counter")
        self.hyper_map = ops.HyperMap()

    def construct(self, grads):
        self.hyper_map(ops.partial(ops.assign_add), self.sums, grads)
        if self.counter % self.steps == 0:
            self.optimizer(self.sums)
            self.hyper_map(ops.partial(ops.assign), self.sums, self.zeros)
        ops.assign_add(self.counter, Tensor(1, ms.int32))
        return True


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_accumulated_small_batches_make_the_step_of_the_whole_batch():
    rng = np.random.RandomState(0)
    features = rng.randn(8, 3).astype(np.float32)
    targets = rng.randn(8).astype(np.float32)
    net = Net(3, 1)
    start = np.array([[0.5, -1.0, 2.0]], np.float32)
    net.fc.weight.set_data(Tensor(start))
    optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
    accumulator = Accumulator(optimizer, 4)
    assert [p.name for p in accumulator.sums] == ["accumulated.fc.weight"]
    grad_func = ms.grad(net, None, optimizer.parameters, has_aux=True)

    weight = start.astype(np.float64)
    for _ in range(2):
        for i in range(4):
            before = net.fc.weight.asnumpy().copy()
            part = slice(2 * i, 2 * i + 2)
            grads, _ = grad_func(Tensor(features[part]), Tensor(targets[part]))
            accumulator(grads)
            if i < 3:
                np.testing.assert_array_equal(net.fc.weight.asnumpy(), before)
        # Each part's loss is the mean over its two rows, and the four gradients are added.
        residual = features.astype(np.float64) @ weight[0] - targets
        weight -= 0.1 * (residual[:, None] * features).sum(axis=0)
        np.testing.assert_allclose(net.fc.weight.asnumpy(), weight, rtol=1e-5)
    assert int(accumulator.counter) == 9
    np.testing.assert_array_equal(accumulator.sums[0].asnumpy(), np.zeros((1, 3)))
