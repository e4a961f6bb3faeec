"""Networks for the tests of CUDA: layers, losses, optimisers and whole training steps. CASES: by name, a
function and its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from cuda_op_cases import Case, core, tensor, total, weighted
from window_rows import POOLS, SAMPLES, convolved, sampled, shapes, windows

import gradcell as ms
from gradcell import Tensor, _core, nn, ops

CASES: dict[str, Case] = {}


def network(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    h = core.tanh(core.matmul(x, w1) + b1)
    return core.matmul(h, w2) + b2


WEIGHTS = (tensor(2, 8), tensor(8), tensor(8, 1), tensor(1))


def pinn_loss(x: Tensor, *weights: Tensor) -> Tensor:
    """u_xx + u_tt + sin(u) at every point, squared and averaged."""
    first = ms.grad(lambda p: total(network(p, *weights)))
    gradient = first(x)
    residual = core.sin(network(x, *weights))
    for k in range(2):
        seed = [0, k], [x.shape[0], 1], [1, 1]
        second = ms.grad(lambda p, s=seed: total(core.slice(first(p), *s)))(x)
        residual = residual + core.slice(second, *seed)
    return core.mean(residual * residual, None, False) + core.mean(gradient, None, False) * 0.0


def pinn_step(x: Tensor, *weights: Tensor) -> Any:
    loss, gradients = ms.value_and_grad(pinn_loss, tuple(range(1, 5)))(x, *weights)
    return loss, [w - 0.01 * g for w, g in zip(weights, gradients, strict=True)]


def loss_scale_step(x: Tensor, target: Tensor, scale: Tensor, *weights: Tensor) -> Any:
    """A mixed-precision step: scaled loss, overflow check, update by select, new scale."""

    def loss(*w: Tensor) -> Tensor:
        half = [core.cast(v, _core.float16) for v in w]
        y = core.cast(network(core.cast(x, _core.float16), *half), _core.float32)
        return core.mean((y - target) * (y - target), None, False) * scale

    value, gradients = ms.value_and_grad(loss, tuple(range(4)))(*weights)
    finite = None
    for g in gradients:
        good = core.reduce_min(core.cast(core.isfinite(g), _core.int32), None, False)
        finite = good if finite is None else core.minimum(finite, good)
    ok = finite > 0
    updated = [
        core.where(core.broadcast_to(ok, list(w.shape)), w - 0.01 * (g / scale), w)
        for w, g in zip(weights, gradients, strict=True)
    ]
    return value / scale, core.where(ok, scale * 2.0, scale * 0.5), updated


CASES["PINN step"] = (pinn_step, (tensor(50, 2), *WEIGHTS))
CASES["loss-scale step"] = (
    loss_scale_step,
    (tensor(40, 2), tensor(40, 1), Tensor(np.float32(1024)), *WEIGHTS),
)
CASES["loss-scale step that overflows"] = (
    loss_scale_step,
    (tensor(40, 2), tensor(40, 1), Tensor(np.float32(3e38)), *WEIGHTS),
)


# Layers, losses and ops of the public API ----------------------------------------------------------


def filled(cell: nn.Cell) -> nn.Cell:
    """The cell with parameters that are the same at every call."""
    own = np.random.default_rng(11)
    for p in cell.get_parameters():
        p.set_data(Tensor(own.uniform(0.2, 0.8, p.shape).astype(np.float32)))
    return cell


def layer_case(make: Callable[[], nn.Cell]) -> Callable[..., Any]:
    """A layer in training: its value, its gradients, and its parameters afterwards."""

    def run(x: Tensor) -> Any:
        cell = filled(make()).set_train()
        parameters = cell.trainable_params()
        slope = ms.value_and_grad(lambda y: weighted(core.sin(cell(y))), 0, parameters or None)
        value, gradients = slope(x)
        return cell(x), value, gradients, [p.value() for p in cell.get_parameters()]

    return run


IMAGE = (2, 3, 6, 6)
LAYERS: dict[str, tuple[Callable[[], nn.Cell], tuple[int, ...]]] = {
    "Dense": (lambda: nn.Dense(4, 3, activation="relu"), (5, 4)),
    "Conv2d": (lambda: nn.Conv2d(3, 4, 3, has_bias=True), IMAGE),
    "Conv2d, strides": (lambda: nn.Conv2d(3, 4, 3, 2, "pad", 1), IMAGE),
    "Conv1d": (lambda: nn.Conv1d(3, 2, 3), (2, 3, 8)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(3), IMAGE),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), (6, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(3, 3), IMAGE),
    "LayerNorm": (lambda: nn.LayerNorm((7,)), (5, 7)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, 2), IMAGE),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2), IMAGE),
    "PReLU": (lambda: nn.PReLU(3), IMAGE),
    "GELU": (lambda: nn.GELU(), (5, 4)),
    "SiLU": (lambda: nn.SiLU(), (5, 4)),
    "Mish": (lambda: nn.Mish(), (5, 4)),
    "GLU": (lambda: nn.GLU(), (5, 4)),
    "LogSoftmax": (lambda: nn.LogSoftmax(), (5, 4)),
}


class Outputs(nn.Cell):
    """Of a recurrent layer: what it gives for each step."""

    def __init__(self, layer: nn.Cell) -> None:
        super().__init__()
        self.layer = layer

    def construct(self, x: Tensor) -> Tensor:
        return self.layer(x)[0]


for _kind in (nn.RNN, nn.LSTM, nn.GRU):
    LAYERS[_kind.__name__] = (lambda k=_kind: Outputs(k(3, 4, bidirectional=True)), (4, 5, 3))
for _name, (_make, _shape) in LAYERS.items():
    CASES[f"layer {_name}"] = (layer_case(_make), (tensor(*_shape),))

WINDOWS = {
    "line": windows((9,), (3,), 2, 2, 2, 1, inputs=3),
    "plane": windows((5, 6), (3, 2), 2, 1, 1, 1, groups=2, inputs=2, outputs=3),
    "space": windows((3, 4, 3), (2, 2, 2), 1, 1, 1, 0, images=1),
}
for _name, _windows in WINDOWS.items():
    for _part in ("output", "input", "weight"):
        for _dtype in ("float32", "float64", "bfloat16", "int32"):
            CASES[f"convolution {_part} {_name} {_dtype}"] = (
                lambda a, b, s=_windows, part=_part: convolved(s, part, a, b),
                tuple(tensor(*shape, dtype=_dtype) for shape in shapes(_windows, _part)),
            )
for _name, (_shape, *_how) in POOLS.items():
    if 0 not in _shape:
        for _dtype in ("float32", "float16", "int32"):
            _lists = [list(v) for v in _how]
            CASES[f"largest of windows {_name} {_dtype}"] = (
                lambda x, h=_lists: (core.window_max(x, *h), core.window_argmax(x, *h)),
                (tensor(*_shape, dtype=_dtype),),
            )
for _dtype in ("float32", "float16", "int64"):
    CASES[f"along rows {_dtype}"] = (
        lambda x, y: (
            core.take_along(x, Tensor(np.array([[0, 2, -1], [3, 1, 1]], np.int32))),
            core.put_along(Tensor(np.array([[0, 2, -1], [3, 1, 1]], np.int32)), y, 5),
        ),
        (tensor(2, 4, dtype=_dtype), tensor(2, 3, dtype=_dtype)),
    )
for _dtype in ("float32", "float64", "bfloat16"):
    for _part, (_shapes, _) in SAMPLES.items():
        CASES[f"sample {_part} {_dtype}"] = (
            lambda a, b, part=_part: sampled(part, a, b),
            tuple(tensor(*shape, dtype=_dtype) for shape in _shapes),
        )
for _part, (_shapes, _) in SAMPLES.items():  # whose cotangents are a constant
    CASES[f"slopes of sample {_part}"] = (
        ms.grad(lambda a, b, part=_part: sampled(part, a, b), (0, 1)),
        tuple(tensor(*shape) for shape in _shapes),
    )

CLASSES = Tensor(np.array([1, 0, 3, 2, 1], np.int32))
LOSSES: dict[str, tuple[Callable[..., Tensor], Tensor]] = {
    "cross entropy": (ops.cross_entropy, CLASSES),
    "mse": (ops.mse_loss, tensor(5, 4)),
    "smooth l1": (ops.smooth_l1_loss, tensor(5, 4)),
    "binary cross entropy with logits": (
        lambda x, y: nn.BCEWithLogitsLoss()(x, core.sigmoid(y)),
        tensor(5, 4),
    ),
    "kl": (lambda x, y: ops.kl_div(ops.log_softmax(x, 1), ops.softmax(y, 1)), tensor(5, 4)),
}
for _name, (_loss, _target) in LOSSES.items():
    CASES[f"loss {_name}"] = (
        lambda x, y, loss=_loss: ms.value_and_grad(lambda z: loss(z, y))(x),
        (tensor(5, 4), _target),
    )

PUBLIC: dict[str, Callable[[Tensor], Any]] = {
    "logsumexp": lambda x: ops.logsumexp(x, 1),
    "norm": lambda x: ops.norm(x, dim=1),
    "std": lambda x: ops.std(x, 0),
    "var": lambda x: ops.var(x, 1),
    "prod": lambda x: ops.prod(x, 1),
    "pad": lambda x: ops.pad(x, (1, 2, 0, 1)),
    "roll": lambda x: ops.roll(x, 2, 1),
    "flip": lambda x: ops.flip(x, (1,)),
    "tile": lambda x: ops.tile(x, (2, 3)),
    "tril": lambda x: ops.tril(x, -1),
    "one_hot": lambda x: x * ops.one_hot(CLASSES[:4], 6),
    "gather_elements": lambda x: ops.gather_elements(x, 1, Tensor(np.array([[0], [3], [1], [2]]))),
    "gather_nd": lambda x: ops.gather_nd(x, Tensor(np.array([[0, 1], [3, 2]], np.int32))),
    "scatter_nd": lambda x: ops.scatter_nd(Tensor(np.array([[4], [0], [2], [0]])), x, (5, 6)),
    "stack": lambda x: ops.stack([x, x * 2.0], 1),
    "clip by norm": lambda x: ops.clip_by_norm(x, 1.0),
    "clip by global norm": lambda x: ops.clip_by_global_norm([x, x * 2.0], 1.0)[0],
    "boolean mask": lambda x: ops.masked_fill(x, x > 0.5, 3.0),
    "index": lambda x: x[:, Tensor(np.array([2, 0]))][1:],
}
for _name, _op in PUBLIC.items():
    CASES[f"op {_name}"] = (_op, (tensor(4, 6),))
    CASES[f"op {_name}, adjoint"] = (
        ms.grad(lambda x, op=_op: weighted(core.sin(op(x)))),
        (tensor(4, 6),),
    )

# Training ------------------------------------------------------------------------------------------

OPTIMISERS: dict[str, Callable[[Any], nn.Optimizer]] = {
    "SGD": lambda p: nn.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Momentum": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=0.01),
    "Adam": lambda p: nn.Adam(p, 0.01, weight_decay=0.01),
    "AdamWeightDecay": lambda p: nn.AdamWeightDecay(p, 0.01, weight_decay=0.01),
    "Adagrad": lambda p: nn.Adagrad(p),
    "RMSProp": lambda p: nn.RMSProp(p, 0.01, centered=True),
    "Lamb": lambda p: nn.Lamb(p, 0.01),
    "LARS": lambda p: nn.LARS(nn.Momentum(p, 0.1, 0.9)),
}


def mlp() -> nn.SequentialCell:
    cell = nn.SequentialCell(
        nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 16), nn.Tanh(), nn.Dense(16, 4)
    )
    return filled(cell)  # type: ignore[return-value]


def optimiser_step(make: Callable[[Any], Any], steps: int = 2) -> Callable[..., Any]:
    """Some steps of a classifier: the losses, the parameters, the optimiser's state."""

    net = mlp()
    optimiser = make(net.trainable_params())
    state = getattr(optimiser, "opt", optimiser).get_parameters()
    kept = [(p, Tensor(p.asnumpy().copy())) for p in [*net.get_parameters(), *state]]

    def run(x: Tensor, labels: Tensor) -> Any:
        for p, value in kept:  # each run starts alike
            p.set_data(value)
        slope = ms.value_and_grad(
            lambda: ops.cross_entropy(net(x), labels), None, list(net.get_parameters())
        )
        losses = []
        for _ in range(steps):
            loss, gradients = slope()
            optimiser(gradients)
            losses.append(loss)
        return losses, [p.value() for p, _ in kept]

    return run


for _name, _make in OPTIMISERS.items():
    CASES[f"optimiser {_name}"] = (optimiser_step(_make), (tensor(5, 6), CLASSES))


#: One vector each; and what a launch has to be cut at: 1, 3 and 4 elements, packs and what is left.
ODD_SHAPES = [(1,), (3,), (4,), (1023,), (5, 7), (16,), (4, 4), (2, 3, 3)]


def adam(shapes: list[tuple[int, ...]], dtype: str = "float32") -> Case:
    """An Adam step on parameters of some shapes with their gradients: the parameters and the state."""
    parameters = [ms.Parameter(tensor(*s, dtype=dtype), name=f"p{i}") for i, s in enumerate(shapes)]
    optimiser = nn.Adam(parameters, 0.01)
    state = [*parameters, *optimiser.get_parameters()]
    kept = [(p, Tensor(p.asnumpy().copy())) for p in state]

    def run(*gradients: Tensor) -> Any:
        for p, value in kept:
            p.set_data(value)
        optimiser(gradients)
        return [p.value() for p, _ in kept]

    return run, tuple(tensor(*s, dtype=dtype) for s in shapes)


CASES["arrays: Adam of odd sizes"] = adam(ODD_SHAPES)
CASES["arrays: Adam of odd sizes in float16"] = adam(ODD_SHAPES, "float16")
CASES["arrays: more than a launch has room for"] = adam([(1 + i % 9,) for i in range(79)])


def read_again(a: Tensor, b: Tensor, c: Tensor) -> Any:
    first = core.sin(a)  # the product needs it, the others can be computed together afterwards
    return first, core.sin(c), core.sin(core.matmul(first, b))


def gathered(a: Tensor, b: Tensor, i: Tensor) -> Any:
    return core.gather(a, i, 0) * 2.0, core.gather(b, core.slice(i, [0], [3], [1]), 0) * 3.0


CASES["arrays: one is read again"] = (read_again, (tensor(3, 6), tensor(6, 5), tensor(4)))
CASES["arrays: gathered"] = (
    gathered,
    (tensor(5), tensor(9), Tensor(np.array([4, 0, -1, 2], np.int32))),
)
CASES["MLP step"] = (
    optimiser_step(OPTIMISERS["Adam"], 1),
    (tensor(32, 6), Tensor(np.arange(32, dtype=np.int32) % 4)),
)


def loss_scaled_cell(x: Tensor, target: Tensor) -> Any:
    """MindSpore's training cell with a dynamic loss scale, in float16."""
    net = ms.amp.auto_mixed_precision(mlp(), "O3")
    with_loss = nn.WithLossCell(net, nn.MSELoss())
    scale = nn.DynamicLossScaleUpdateCell(1024.0, 2, 1000)
    step = nn.TrainOneStepWithLossScaleCell(
        with_loss, nn.Momentum(net.trainable_params(), 0.1, 0.9), scale
    )
    loss, overflow, used = step(x, target)
    return loss, overflow, used, [p.value() for p in net.get_parameters()]


CASES["loss-scaled training cell"] = (loss_scaled_cell, (tensor(5, 6), tensor(5, 4)))
