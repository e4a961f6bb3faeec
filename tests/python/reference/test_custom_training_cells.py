"""MindSpore's "Network Training and Gradient Derivation": custom training cells.

`TrainOneStepCell` and `MyTrainOneStepCell` are the document's, block for block; the document prints
nothing, so the steps they make are checked against numpy. `Model.train`, `nn.TrainOneStepCell` and
`nn.TrainOneStepWithLossScaleCell` are named there without code; the two cells are checked too.
"""

import numpy as np
import pytest

import gradcell as ms
from gradcell import Parameter, Tensor, nn, ops
from gradcell.parallel._utils import _get_device_num, _get_gradients_mean, _get_parallel_mode


class TrainOneStepCell(nn.Cell):
    def __init__(self, network, optimizer):
        super(TrainOneStepCell, self).__init__(auto_prefix=False)  # noqa: UP008
        self.network = network  # Network structure with loss
        self.network.set_grad()
        self.optimizer = optimizer  # Optimizer for parameter updates
        self.weights = self.optimizer.parameters  # Get the parameters of the optimizer

        # Related logic of parallel computation
        self.reducer_flag = False
        self.grad_reducer = ops.identity
        self.parallel_mode = _get_parallel_mode()
        self.reducer_flag = self.parallel_mode in (
            ms.ParallelMode.DATA_PARALLEL,
            ms.ParallelMode.HYBRID_PARALLEL,
        )
        if self.reducer_flag:
            self.mean = _get_gradients_mean()
            self.degree = _get_device_num()
            self.grad_reducer = nn.DistributedGradReducer(self.weights, self.mean, self.degree)

    def construct(self, *inputs):
        loss, grads = ms.value_and_grad(self.network, grad_position=None, weights=self.weights)(
            *inputs
        )
        # Some computing logic for the gradient can be added here, such as gradient clipping
        grads = self.grad_reducer(grads)  # Gradient aggregation
        self.optimizer(grads)  # Optimizer updates parameters
        return loss


_grad_scale = ops.MultitypeFuncGraph("grad_scale")


@_grad_scale.register("Tensor", "Tensor")
def tensor_grad_scale(scale, grad):
    return grad * ops.cast(ops.Reciprocal()(scale), ops.dtype(grad))


class MyTrainOneStepCell(nn.TrainOneStepWithLossScaleCell):
    """The document's training cell with loss scale and optional gradient clipping."""

    def __init__(self, network, optimizer, scale_sense=1, grad_clip=False):
        if isinstance(scale_sense, (int, float)):
            scale_sense = nn.FixedLossScaleUpdateCell(scale_sense)
        super(MyTrainOneStepCell, self).__init__(network, optimizer, scale_sense)  # noqa: UP008
        self.grad_clip = grad_clip

    def construct(self, x, img_shape, gt_bboxe, gt_label, gt_num):
        # Most are attributes and methods of the base class
        weights = self.weights
        loss = self.network(x, img_shape, gt_bboxe, gt_label, gt_num)
        scaling_sens = self.scale_sense
        # Start floating point overflow detection. Create and clear overflow detection status
        status, scaling_sens = self.start_overflow_check(loss, scaling_sens)
        # Multiply the gradient by a scale to prevent the gradient from overflowing
        scaling_sens_filled = ops.ones_like(loss) * ops.cast(scaling_sens, ops.dtype(loss))
        grads = self.grad(self.network, weights)(
            x, img_shape, gt_bboxe, gt_label, gt_num, scaling_sens_filled
        )
        # Calculate the true gradient value by dividing the obtained gradient by the scale
        grads = self.hyper_map(ops.partial(_grad_scale, scaling_sens), grads)
        # Gradient clipping
        if self.grad_clip:
            grads = ops.clip_by_global_norm(grads)
        # Gradient aggregation
        grads = self.grad_reducer(grads)

        # Get floating point overflow status
        cond = self.get_overflow_status(status, grads)
        # Calculate loss scaling factor based on overflow state during dynamic loss scale
        overflow = self.process_loss_scale(cond)
        # If there is no overflow, execute the optimizer to update the parameters
        if not overflow:
            self.optimizer(grads)
        return loss, cond, scaling_sens.value()


class LinearWithLoss(nn.Cell):
    """Mean squared error of x @ w, the weight [3] starting at (0.5, -1, 2)."""

    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor([0.5, -1.0, 2.0], ms.float32), name="w")

    def construct(self, x, y):
        return ((x * self.w).sum(axis=1) - y).square().mean()


class Detector(nn.Cell):
    """Takes the document's five inputs; the loss is the mean squared error plus a box term."""

    def __init__(self, dtype=ms.float32):
        super().__init__()
        self.w = Parameter(Tensor([0.5, -1.0, 2.0], ms.float32), name="w")
        self.scale = Parameter(Tensor([0.25], ms.float32), name="scale")
        self.dtype = dtype

    def construct(self, x, img_shape, gt_bboxe, gt_label, gt_num):
        w = ops.cast(self.w, self.dtype)
        residual = (ops.cast(x, self.dtype) * w).sum(axis=1) - ops.cast(gt_label, self.dtype)
        boxes = ops.cast(gt_bboxe * self.scale, self.dtype)
        return residual.square().mean() + boxes.square().sum()


FEATURES = np.array([[1, 2, 3], [0.5, -1, 0.25], [-2, 1, 1], [0, 0.5, -1]], np.float32)
LABELS = np.array([1, -2, 0.5, 3], np.float32)
BOXES = np.array([0.5, -1.5], np.float32)
START = np.array([0.5, -1.0, 2.0])


def linear_gradient(weight):
    """The loss and its gradient by the weight, in float64."""
    residual = FEATURES.astype(np.float64) @ weight - LABELS
    return (residual**2).mean(), 2 * (residual[:, None] * FEATURES).mean(axis=0)


def detector_inputs():
    shape, count = Tensor([4, 3], ms.int32), Tensor(2, ms.int32)
    return Tensor(FEATURES), shape, Tensor(BOXES), Tensor(LABELS), count


def test_one_device():
    assert _get_device_num() == 1
    assert _get_gradients_mean() is False
    assert _get_parallel_mode() == ms.ParallelMode.STAND_ALONE


@pytest.mark.parametrize("cell", ["the document's", "gradcell's"])
def test_train_one_step_cell(cell):
    network = LinearWithLoss()
    optimizer = nn.SGD(network.trainable_params(), learning_rate=0.05)
    train = (TrainOneStepCell if cell == "the document's" else nn.TrainOneStepCell)(
        network, optimizer
    )
    assert [param.name for param in train.weights] == ["w"]
    weight = START.copy()
    for _ in range(5):
        expected, gradient = linear_gradient(weight)
        loss = train(Tensor(FEATURES), Tensor(LABELS))
        np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
        weight -= 0.05 * gradient
        np.testing.assert_allclose(network.w.asnumpy(), weight, rtol=1e-5)


def test_train_one_step_cell_with_momentum():
    network = LinearWithLoss()
    optimizer = nn.Momentum(network.trainable_params(), learning_rate=0.05, momentum=0.9)
    train = TrainOneStepCell(network, optimizer)
    weight, moment = START.copy(), np.zeros(3)
    for _ in range(5):
        _, gradient = linear_gradient(weight)
        train(Tensor(FEATURES), Tensor(LABELS))
        moment = 0.9 * moment + gradient
        weight -= 0.05 * moment
        np.testing.assert_allclose(network.w.asnumpy(), weight, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
@pytest.mark.parametrize("scale_sense", [1, 1024.0, "fixed cell", "dynamic cell"])
def test_my_train_one_step_cell(scale_sense):
    """The step does not depend on the scale; the scale in use is returned."""
    expected_scale = scale_sense
    if isinstance(scale_sense, str):
        expected_scale = 4096
        if scale_sense == "fixed cell":
            scale_sense = nn.FixedLossScaleUpdateCell(loss_scale_value=4096)
        else:
            scale_sense = nn.DynamicLossScaleUpdateCell(4096, scale_factor=2, scale_window=100)
    network = Detector()
    optimizer = nn.SGD(network.trainable_params(), learning_rate=0.05)
    train = MyTrainOneStepCell(network, optimizer, scale_sense)
    weight, scale = START.copy(), 0.25
    for _ in range(3):
        expected, gradient = linear_gradient(weight)
        loss, overflow, used_scale = train(*detector_inputs())
        squares = np.square(BOXES.astype(np.float64)).sum()
        np.testing.assert_allclose(float(loss), expected + scale**2 * squares, rtol=1e-5)
        assert not bool(overflow)
        assert float(used_scale) == expected_scale
        weight -= 0.05 * gradient
        scale -= 0.05 * 2 * scale * squares
        np.testing.assert_allclose(network.w.asnumpy(), weight, rtol=1e-5)
        np.testing.assert_allclose(network.scale.asnumpy(), [scale], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_my_train_one_step_cell_clips_the_unscaled_gradients():
    network = Detector()
    optimizer = nn.SGD(network.trainable_params(), learning_rate=1.0)
    train = MyTrainOneStepCell(network, optimizer, 256, grad_clip=True)
    _, gradient = linear_gradient(START)
    gradient = np.append(gradient, 2 * 0.25 * np.square(BOXES).sum())
    norm = np.sqrt(np.square(gradient).sum())
    assert norm > 1

    train(*detector_inputs())

    step = np.append(START - network.w.asnumpy(), 0.25 - network.scale.asnumpy())
    np.testing.assert_allclose(step, gradient / norm, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*asked for a tensor's value:RuntimeWarning")
def test_overflow_skips_the_step_and_halves_the_dynamic_scale():
    network = Detector(ms.float16)
    optimizer = nn.SGD(network.trainable_params(), learning_rate=0.05)
    scale = nn.DynamicLossScaleUpdateCell(2.0**16, scale_factor=2, scale_window=2)
    train = MyTrainOneStepCell(network, optimizer, scale)
    overflows, kept = [], 0  # kept: steps without overflow since the scale changed
    for _ in range(12):
        scale_before = float(train.scale_sense)
        weight_before = network.w.asnumpy().copy()
        _, overflow, _ = train(*detector_inputs())
        overflows.append(bool(overflow))
        assert overflows[-1] is np.array_equal(weight_before, network.w.asnumpy())
        if overflows[-1]:
            expected, kept = scale_before / 2, 0
        else:
            expected, kept = (scale_before * 2, 0) if kept == 1 else (scale_before, kept + 1)
        assert float(train.scale_sense) == expected
    # 65536 is inf in float16, and the gradients reach a few times the scale.
    assert overflows[0]
    assert not all(overflows)


def test_train_one_step_with_loss_scale_cell():
    network = LinearWithLoss()
    optimizer = nn.SGD(network.trainable_params(), learning_rate=0.05)
    scale = nn.FixedLossScaleUpdateCell(loss_scale_value=512)
    train = nn.TrainOneStepWithLossScaleCell(network, optimizer, scale_sense=scale)
    expected, gradient = linear_gradient(START)
    loss, overflow, used_scale = train(Tensor(FEATURES), Tensor(LABELS))
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
    assert not bool(overflow)
    assert float(used_scale) == 512
    np.testing.assert_allclose(network.w.asnumpy(), START - 0.05 * gradient, rtol=1e-5)
