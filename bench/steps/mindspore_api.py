"""The cases in MindSpore's API. The same code runs on MindSpore and on gradcell; only the import
differs. (MindSpore parses the source, so there are no lambdas here, and `self` is called self.)"""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import numpy as np

import inputs
from steps import Step

ms: Any = None
nn: Any = None
ops: Any = None


def use(package: str) -> Any:
    """Makes the steps below run on this package, in GRAPH_MODE."""
    global ms, nn, ops
    ms = importlib.import_module(package)
    nn = importlib.import_module(package + ".nn")
    ops = importlib.import_module(package + ".ops")
    ms.set_context(mode=ms.GRAPH_MODE, device_target="CPU")
    return ms


def nested_gradient(f: Any, order: int) -> Any:
    for _ in range(order):
        f = ms.grad(f)
    return f


def sine_and_tanh(x: Any) -> Any:
    return ops.sin(x) * ops.exp(-x * x) + x * ops.tanh(x)


def tanh_sine(x: Any) -> Any:
    return ops.tanh(x) * ops.sin(x)


def square_plus(x: Any, y: Any) -> Any:
    return x**2 + y


def dense(weight: Any, bias: Any, dtype: Any) -> Any:
    return nn.Dense(
        weight.shape[1],
        weight.shape[0],
        weight_init=ms.Tensor(weight),
        bias_init=ms.Tensor(bias),
        dtype=dtype,
    )


def network(layers: list[Any], activation: Any, dtype: Any) -> Any:
    cells = []
    for i, (weight, bias) in enumerate(layers):
        cells.append(dense(weight, bias, dtype))
        if i + 1 < len(layers):
            cells.append(activation())
    return nn.SequentialCell(*cells)


def burgers_loss(net: Any, viscosity: float) -> Any:
    """A Cell: the mean squared residual of Burgers' equation at (x, t)."""

    class Solution(nn.Cell):  # type: ignore[misc]
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net

        def construct(self, x: Any, t: Any) -> Any:
            return self.net(ops.concat((x, t), 1))

    class Slope(nn.Cell):  # type: ignore[misc]
        def __init__(self, u: Any) -> None:
            super().__init__()
            self.u = u
            self.gradient = ops.GradOperation(get_all=True)

        def construct(self, x: Any, t: Any) -> Any:
            return self.gradient(self.u)(x, t)[0]

    class Loss(nn.Cell):  # type: ignore[misc]
        def __init__(self, u: Any) -> None:
            super().__init__()
            self.u = u
            self.slope = Slope(u)
            self.gradient = ops.GradOperation(get_all=True)

        def construct(self, x: Any, t: Any) -> Any:
            u = self.u(x, t)
            u_x, u_t = self.gradient(self.u)(x, t)
            u_xx = self.gradient(self.slope)(x, t)[0]
            residual = u_t + u * u_x - viscosity * u_xx
            return (residual * residual).mean()

    return Loss(Solution(net))


def burgers_example(net: Any, viscosity: float) -> Any:
    """A Cell: that, with the mean squares of what is wrong at the start and at the edges."""

    class Loss(nn.Cell):  # type: ignore[misc]
        def __init__(self, net: Any) -> None:
            super().__init__()
            self.net = net
            self.inside = burgers_loss(net, viscosity)

        def construct(self, x: Any, t: Any, start: Any, wanted: Any, edge: Any) -> Any:
            u_start, u_edge = self.net(start) - wanted, self.net(edge)
            conditions = (u_start * u_start).mean() + (u_edge * u_edge).mean()
            return self.inside(x, t) + conditions

    return Loss(net)


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, **more: Any) -> Any:
    more = {"pad_mode": "pad", "padding": kernel // 2, **more}
    return nn.Conv2d(inputs, outputs, kernel, stride, **more)


def lenet() -> Any:
    plain = {"pad_mode": "valid", "padding": 0, "has_bias": True}
    return nn.SequentialCell(
        convolution(1, 6, 5, **plain),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        convolution(6, 16, 5, **plain),
        nn.ReLU(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Dense(400, 120),
        nn.ReLU(),
        nn.Dense(120, 84),
        nn.ReLU(),
        nn.Dense(84, 10),
    )


def residual_block(inputs: int, outputs: int, stride: int) -> Any:
    class Block(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.SequentialCell(
                convolution(inputs, outputs, 3, stride),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
                convolution(outputs, outputs, 3),
                nn.BatchNorm2d(outputs),
            )
            self.short = None
            if stride > 1 or inputs != outputs:
                self.short = nn.SequentialCell(
                    convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
                )
            self.relu = nn.ReLU()

        def construct(self, x: Any) -> Any:
            y = self.body(x)
            if self.short is None:
                return self.relu(y + x)
            return self.relu(y + self.short(x))

    return Block()


def resnet() -> Any:
    class Mean(nn.Cell):  # type: ignore[misc]
        def construct(self, x: Any) -> Any:
            return x.mean((2, 3))

    return nn.SequentialCell(
        convolution(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        residual_block(16, 16, 1),
        residual_block(16, 32, 2),
        residual_block(32, 64, 2),
        Mean(),
        nn.Dense(64, 10),
    )


def convolutions() -> Any:
    return nn.SequentialCell(
        convolution(1, 32, 3, has_bias=True),
        nn.GELU(),
        convolution(32, 32, 3, has_bias=True),
        nn.GELU(),
        convolution(32, 1, 3, has_bias=True),
    )


def gpt() -> Any:
    width, heads = inputs.WIDTH, inputs.HEADS

    class Block(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm((width,), epsilon=1e-5)
            self.qkv = nn.Dense(width, 3 * width)
            self.out = nn.Dense(width, width)
            self.norm2 = nn.LayerNorm((width,), epsilon=1e-5)
            self.forward = nn.SequentialCell(
                nn.Dense(width, 4 * width), nn.GELU(), nn.Dense(4 * width, width)
            )

        def construct(self, x: Any) -> Any:
            q, k, v = ms.ops.split(self.qkv(self.norm1(x)), width, 2)
            y = ms.ops.flash_attention_score(
                q, k, v, heads, scalar_value=(width // heads) ** -0.5, sparse_mode=2
            )
            x = x + self.out(y)
            return x + self.forward(self.norm2(x))

    class Model(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(inputs.VOCABULARY, width)
            self.places = nn.Embedding(inputs.TOKENS, width)
            self.blocks = nn.SequentialCell(*(Block() for _ in range(inputs.LAYERS)))
            self.norm = nn.LayerNorm((width,), epsilon=1e-5)
            self.head = nn.Dense(width, inputs.VOCABULARY)
            self.numbers = ms.ops.arange(inputs.TOKENS)

        def construct(self, words: Any) -> Any:
            x = self.words(words) + self.places(self.numbers)
            return self.head(self.norm(self.blocks(x))).reshape(-1, inputs.VOCABULARY)

    return Model()


def recurrent(kind: str) -> Any:
    class Last(nn.Cell):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            layer = nn.GRU if kind == "gru" else nn.LSTM
            self.layer = layer(inputs.STATE, inputs.STATE)
            self.head = nn.Dense(inputs.STATE, inputs.CLASSES)

        def construct(self, x: Any) -> Any:
            return self.head(self.layer(x)[0][-1])

    return Last()


def perceptron() -> Any:
    cells: list[Any] = []
    for k, m in pairwise(inputs.MLP_SIZES):
        cells += [nn.Dense(k, m), nn.ReLU()]
    return nn.SequentialCell(*cells[:-1])


NETWORKS = {
    "lenet": lenet,
    "resnet": resnet,
    "convolutions": convolutions,
    "gpt": gpt,
    "gru": lambda: recurrent("gru"),
    "lstm": lambda: recurrent("lstm"),
    "dense": perceptron,
}


def network_step(kind: str, batch: int, dtype: str = "float32") -> tuple[Any, Any, Any]:
    """A training step and its arguments. dtype: what O2 computes in, float16 with dynamic loss
    scale."""
    data = inputs.images(kind, batch)
    net = NETWORKS[kind]()
    weights = net.trainable_params()
    for p, values in zip(weights, inputs.initial_weights([p.shape for p in weights]), strict=True):
        p.set_data(ms.Tensor(values))
    criterion = nn.CrossEntropyLoss() if data.targets.ndim == 1 else nn.MSELoss()
    optimizer = nn.Adam(weights, learning_rate=inputs.LEARNING_RATE, eps=inputs.EPSILON)
    if dtype == "float32":
        train = nn.TrainOneStepCell(nn.WithLossCell(net, criterion), optimizer)
    else:
        # (A scale that does not overflow: steps are compared from the first on.)
        scale = ms.amp.DynamicLossScaleManager(2**10) if dtype == "float16" else None
        train = ms.amp.build_train_network(
            net,
            optimizer,
            criterion,
            "O2",
            cast_model_type=getattr(ms, dtype),
            loss_scale_manager=scale,
        )
    train.set_train()
    return train, ms.Tensor(data.images), ms.Tensor(data.targets)


def build(kind: str, params: dict[str, Any], compiled: bool, wait: Any) -> Step | None:
    """compiled: through jit; wait: called after each step, until the results are there."""
    compile_ = ms.jit if compiled else _same

    def step(f: Any, *arguments: Any) -> Any:
        def call() -> Any:
            result = f(*arguments)
            wait()
            return result

        return call if wait is not None else _bind(f, arguments)

    if kind in ("elementwise", "tanh_sin"):
        x = ms.Tensor(inputs.points_on_line(params["elements"]))
        f = sine_and_tanh if kind == "elementwise" else tanh_sine
        gradient = compile_(nested_gradient(f, params["order"]))
        return Step(step(gradient, x), arrays)
    if kind == "scalar":
        gradient = compile_(ms.grad(square_plus))
        return Step(step(gradient, ms.Tensor(3.0, ms.float32), ms.Tensor(4.0, ms.float32)), arrays)
    if kind == "pinn":
        given = inputs.pinn(**params)
        net = network(given.layers, nn.Tanh, getattr(ms, params["dtype"]))
        loss = burgers_loss(net, inputs.VISCOSITY)
        weights = net.trainable_params()
        value_and_grad = compile_(ms.value_and_grad(loss, None, weights))
        return Step(step(value_and_grad, ms.Tensor(given.x), ms.Tensor(given.t)), arrays)
    if kind == "deepxde":
        given = inputs.deepxde()
        net = network(given.layers, nn.Tanh, ms.float32)
        optimizer = nn.Adam(net.trainable_params(), learning_rate=inputs.LEARNING_RATE)
        train = nn.TrainOneStepCell(burgers_example(net, inputs.VISCOSITY), optimizer)
        train.set_train()
        columns = np.split(given.inside, 2, 1)
        wanted = -np.sin(np.pi * given.start[:, :1])
        points = [ms.Tensor(a) for a in (*columns, given.start, wanted, given.edge)]
        return Step(step(train, *points), arrays, trains=True)
    if kind == "mlp":
        data = inputs.mlp(**params)
        net = network(data.layers, nn.ReLU, ms.float32)
        rate, eps = inputs.LEARNING_RATE, inputs.EPSILON
        optimizer = nn.Adam(net.trainable_params(), learning_rate=rate, eps=eps)
        train = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
        train.set_train()
        return Step(
            step(train, ms.Tensor(data.images), ms.Tensor(data.labels)), arrays, trains=True
        )
    if kind == "network":
        return Step(step(*network_step(**params)), loss_of_step, trains=True)
    return None


def loss_of_step(result: Any) -> list[Any]:
    """The loss alone, where a step also tells of overflow and the loss scale."""
    return arrays(result[0] if isinstance(result, tuple) else result)


def _same(f: Any) -> Any:
    return f


def _bind(f: Any, arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 1:
        return lambda a=arguments[0]: f(a)
    if len(arguments) == 2:
        return lambda a=arguments[0], b=arguments[1]: f(a, b)
    return lambda: f(*arguments)


def arrays(result: Any) -> list[Any]:
    if isinstance(result, (tuple, list)):
        return [a for r in result for a in arrays(r)]
    return [np.asarray(result.asnumpy())]
