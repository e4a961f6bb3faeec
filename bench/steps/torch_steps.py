"""PyTorch, variants "eager" and "compile" (inductor)."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value

import inputs
from inputs import Array
from steps import Step, op_steps

torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))


def build(kind: str, params: dict[str, Any], variant: str) -> Step | None:
    compiled = variant == "compile"
    if kind == "op":
        return op(params)
    if kind in ("elementwise", "tanh_sin"):
        f = sine_and_tanh if kind == "elementwise" else tanh_sine
        x = torch.from_numpy(inputs.points_on_line(params["elements"]))
        gradient = compiled_gradient if compiled else eager_gradient
        return _step(gradient(f, params["order"]), x)
    if kind == "scalar":
        x, y = torch.tensor(3.0), torch.tensor(4.0)
        if compiled:
            return _step(torch.compile(grad(square_plus), dynamic=False), x, y)
        x.requires_grad_()
        return _step(lambda x, y: torch.autograd.grad(square_plus(x, y), x)[0], x, y)
    if kind == "pinn":
        return compiled_pinn(params) if compiled else eager_pinn(params)
    if kind == "deepxde":
        return burgers_training(compiled)
    if kind == "mlp":
        return mlp_step(params, compiled)
    if kind == "network":
        return network_step(params, compiled)
    return None


def op(params: dict[str, Any]) -> Step:
    names = {"torch": torch, "F": nn.functional, "written": written}
    return op_steps.build(params, lambda c: c.torch, names, tensor, gradient, values)


def tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(array.copy())


def written(x: torch.Tensor, write: Callable[[torch.Tensor], None]) -> torch.Tensor:
    """A copy of x after the write."""
    t = x.clone()
    write(t)
    return t


def gradient(f: Callable[..., Any], arguments: list[Any], by: list[int]) -> Callable[[], Any]:
    for k in by:
        arguments[k].requires_grad_()
    y = f(*arguments)
    weights = torch.from_numpy(op_steps.weights(tuple(y.shape))).to(y.dtype)
    wanted = [arguments[k] for k in by]
    return lambda: torch.autograd.grad(f(*arguments), wanted, weights)


def values(result: torch.Tensor) -> Array:
    result = result.detach()
    array: Array = (result.float() if result.dtype == torch.bfloat16 else result).numpy()
    return array


def sine_and_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * torch.exp(-x * x) + x * torch.tanh(x)


def tanh_sine(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * torch.sin(x)


def square_plus(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x**2 + y


def eager_gradient(f: Any, order: int) -> Any:
    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        y = f(x)
        for i in range(order):
            (y,) = torch.autograd.grad(y.sum(), x, create_graph=i + 1 < order)
        return y

    return gradient


def compiled_gradient(f: Any, order: int) -> Any:
    for _ in range(order):
        f = grad(_summed(f))
    return torch.compile(f, dynamic=False)


def _summed(f: Any) -> Any:
    return lambda x: f(x).sum()


def network(layers: list[Any], activation: Any) -> nn.Sequential:
    modules: list[nn.Module] = []
    for i, (weight, bias) in enumerate(layers):
        linear = nn.Linear(weight.shape[1], weight.shape[0])
        linear.weight = nn.Parameter(torch.from_numpy(weight))
        linear.bias = nn.Parameter(torch.from_numpy(bias))
        modules.append(linear)
        if i + 1 < len(layers):
            modules.append(activation())
    return nn.Sequential(*modules)


def burgers_loss(net: nn.Module, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """The mean squared residual of Burgers' equation, by autograd."""
    x, t = x.detach().requires_grad_(), t.detach().requires_grad_()
    u = net(torch.cat((x, t), 1))
    u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x.sum(), x, create_graph=True)
    return ((u_t + u * u_x - inputs.VISCOSITY * u_xx) ** 2).mean()


def burgers_loss_of_weights(net: nn.Module) -> Any:
    """The same by torch.func, as a function of the weights, x and t: torch.compile has no double
    backward through autograd."""

    def loss(weights: Any, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        def u_sum(x: torch.Tensor, t: torch.Tensor) -> Any:
            u = functional_call(net, weights, (torch.cat((x, t), 1),))
            return u.sum(), u

        def u_x_sum(x: torch.Tensor, t: torch.Tensor) -> Any:
            (u_x, u_t), u = grad(u_sum, argnums=(0, 1), has_aux=True)(x, t)
            return u_x.sum(), (u, u_x, u_t)

        u_xx, (u, u_x, u_t) = grad(u_x_sum, has_aux=True)(x, t)
        return ((u_t + u * u_x - inputs.VISCOSITY * u_xx) ** 2).mean()

    return loss


def burgers_training(compiled: bool) -> Step:
    """DeepXDE's example, written in PyTorch."""
    given = inputs.deepxde()
    net = network(given.layers, nn.Tanh)
    optimizer = torch.optim.Adam(net.parameters(), lr=inputs.LEARNING_RATE, fused=True)
    x, t = torch.from_numpy(given.inside).split(1, 1)
    start, edge = torch.from_numpy(given.start), torch.from_numpy(given.edge)
    wanted = -torch.sin(torch.pi * start[:, :1])

    if not compiled:

        def call() -> Any:
            optimizer.zero_grad()
            conditions = (net(edge) ** 2).mean() + ((net(start) - wanted) ** 2).mean()
            loss = burgers_loss(net, x, t) + conditions
            loss.backward()
            optimizer.step()
            return loss

        return Step(call, _arrays, trains=True)

    inside = burgers_loss_of_weights(net)
    weights = dict(net.named_parameters())

    def whole(weights: Any, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        u_edge = functional_call(net, weights, (edge,))
        u_start = functional_call(net, weights, (start,))
        conditions = (u_edge**2).mean() + ((u_start - wanted) ** 2).mean()
        return inside(weights, x, t) + conditions

    gradients_and_loss = torch.compile(grad_and_value(whole), dynamic=False)

    def compiled_call() -> Any:
        detached = {name: p.detach() for name, p in weights.items()}
        gradients, loss = gradients_and_loss(detached, x, t)
        for name, p in weights.items():
            p.grad = gradients[name]
        optimizer.step()
        return loss

    return Step(compiled_call, _arrays, trains=True)


def eager_pinn(params: dict[str, Any]) -> Step:
    given = inputs.pinn(**params)
    net = network(given.layers, nn.Tanh)
    weights = list(net.parameters())

    def step(x: torch.Tensor, t: torch.Tensor) -> Any:
        loss = burgers_loss(net, x, t)
        return loss.detach(), torch.autograd.grad(loss, weights)

    return _step(step, torch.from_numpy(given.x), torch.from_numpy(given.t))


def compiled_pinn(params: dict[str, Any]) -> Step:
    given = inputs.pinn(**params)
    net = network(given.layers, nn.Tanh)
    weights = {name: p.detach() for name, p in net.named_parameters()}
    compiled = torch.compile(grad_and_value(burgers_loss_of_weights(net)), dynamic=False)

    def step(x: torch.Tensor, t: torch.Tensor) -> Any:
        gradients, value = compiled(weights, x, t)
        return value, [gradients[name] for name in weights]

    return _step(step, torch.from_numpy(given.x), torch.from_numpy(given.t))


def mlp_step(params: dict[str, Any], compiled: bool) -> Step:
    data = inputs.mlp(**params)
    net = network(data.layers, nn.ReLU)
    labels = torch.from_numpy(data.labels).long()
    return _training(net, nn.CrossEntropyLoss(), torch.from_numpy(data.images), labels, compiled)


def lenet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 6, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Module:
    return nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False)


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            convolution(inputs, outputs, 3, stride),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            convolution(outputs, outputs, 3),
            nn.BatchNorm2d(outputs),
        )
        self.short: nn.Module = nn.Identity()
        if stride > 1 or inputs != outputs:
            self.short = nn.Sequential(
                convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.short(x))


class Mean(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean((2, 3))


def resnet() -> nn.Module:
    return nn.Sequential(
        convolution(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        ResidualBlock(16, 16, 1),
        ResidualBlock(16, 32, 2),
        ResidualBlock(32, 64, 2),
        Mean(),
        nn.Linear(64, 10),
    )


def convolutions() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1),
        nn.GELU("tanh"),
        nn.Conv2d(32, 32, 3, padding=1),
        nn.GELU("tanh"),
        nn.Conv2d(32, 1, 3, padding=1),
    )


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        width = inputs.WIDTH
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.feed = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, width = x.shape
        heads = [
            part.view(b, t, inputs.HEADS, -1).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(width, 2)
        ]
        y = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, width))
        return x + self.feed(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(inputs.VOCABULARY, inputs.WIDTH)
        self.places = nn.Embedding(inputs.TOKENS, inputs.WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(inputs.LAYERS)))
        self.norm = nn.LayerNorm(inputs.WIDTH)
        self.head = nn.Linear(inputs.WIDTH, inputs.VOCABULARY)
        self.numbers = torch.arange(inputs.TOKENS)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        x = self.words(words) + self.places(self.numbers)
        return self.head(self.norm(self.blocks(x))).view(-1, inputs.VOCABULARY)


class Recurrent(nn.Module):
    def __init__(self, layer: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = layer(inputs.STATE, inputs.STATE)
        self.head = nn.Linear(inputs.STATE, inputs.CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layer(x)[0][-1])


def perceptron() -> nn.Module:
    layers: list[nn.Module] = []
    for k, m in pairwise(inputs.MLP_SIZES):
        layers += [nn.Linear(k, m), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


NETWORKS = {
    "lenet": lenet,
    "resnet": resnet,
    "convolutions": convolutions,
    "gpt": Gpt,
    "gru": lambda: Recurrent(nn.GRU),
    "lstm": lambda: Recurrent(nn.LSTM),
    "dense": perceptron,
}


def network_step(params: dict[str, Any], compiled: bool) -> Step | None:
    dtype = getattr(torch, params.get("dtype", "float32"))
    if dtype == torch.float16:  # (with loss scaling: not on a CPU)
        return None
    data = inputs.images(params["kind"], params["batch"])
    net = NETWORKS[params["kind"]]()
    weights = list(net.parameters())
    with torch.no_grad():
        for p, values in zip(
            weights, inputs.initial_weights([p.shape for p in weights]), strict=True
        ):
            p.copy_(torch.from_numpy(values))
    labelled = data.targets.ndim == 1
    targets = torch.from_numpy(data.targets)
    criterion = nn.CrossEntropyLoss() if labelled else nn.MSELoss()
    targets = targets.long() if labelled else targets
    return _training(net, criterion, torch.from_numpy(data.images), targets, compiled, dtype)


def _training(
    net: nn.Module,
    criterion: nn.Module,
    images: torch.Tensor,
    labels: torch.Tensor,
    compiled: bool,
    dtype: torch.dtype = torch.float32,
) -> Step:
    """Forward and backward compiled or not; the optimiser is PyTorch's fused Adam in both. dtype: of
    autocast."""
    rate, eps = inputs.LEARNING_RATE, inputs.EPSILON
    optimizer = torch.optim.Adam(net.parameters(), lr=rate, eps=eps, fused=True)

    def forward(images: torch.Tensor, labels: torch.Tensor) -> Any:
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
            return criterion(net(images), labels)

    if compiled:
        forward = torch.compile(forward, dynamic=False)

    def call() -> Any:
        optimizer.zero_grad()
        loss = forward(images, labels)
        loss.backward()
        optimizer.step()
        return loss

    return Step(call, _arrays, trains=True)


def _step(f: Any, *arguments: Any) -> Step:
    return Step(lambda: f(*arguments), _arrays)


def _arrays(result: Any) -> list[Any]:
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    return [a for r in result for a in _arrays(r)]
