"""mint.nn's layers whose parameters have names of their own: those names, as MindSpore 2.10 prints them,
and values against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import gradcell as ms
from gradcell import Tensor

nn = ms.mint.nn
X = np.random.default_rng(3).standard_normal((2, 4, 5, 6)).astype(np.float32)
RUNNING = ["running_mean (3,) float32 False", "running_var (3,) float32 False",
           "num_batches_tracked () int64 False"]  # fmt: skip


def weights(*shapes: tuple[int, ...], learned: bool = True) -> list[str]:
    names = ("weight", "bias")
    return [f"{n} {s} float32 {learned}" for n, s in zip(names, shapes, strict=False)]


#: Names, shapes, dtypes and requires_grad, in order.
PARAMETERS = {
    "BatchNorm1d(3)": [*weights((3,), (3,)), *RUNNING],
    "BatchNorm2d(3, affine=False)": RUNNING,
    "BatchNorm2d(3, track_running_stats=False)": weights((3,), (3,)),
    "BatchNorm3d(3)": [*weights((3,), (3,)), *RUNNING],
    "GroupNorm(2, 4)": weights((4,), (4,)),
    "GroupNorm(2, 4, affine=False)": weights((4,), (4,), learned=False),
    "LayerNorm((4,))": weights((4,), (4,)),
    "LayerNorm((4,), bias=False)": weights((4,)),
    "LayerNorm((4,), elementwise_affine=False)": [],
    "Conv1d(2, 3, 3)": weights((3, 2, 3), (3,)),
    "Conv2d(2, 4, 3, groups=2, bias=False)": weights((4, 1, 3, 3)),
    "Conv3d(2, 3, 3)": weights((3, 2, 3, 3, 3), (3,)),
    "Linear(3, 2)": weights((2, 3), (2,)),
    "Embedding(5, 4)": weights((5, 4)),
}


@pytest.mark.parametrize("text", PARAMETERS)
def test_parameters(text: str) -> None:
    cell = eval(f"nn.{text}", {"nn": nn})
    found = [
        f"{p.name} {tuple(p.shape)} {str(p.dtype).lower()} {p.requires_grad}"
        for p in cell.get_parameters()
    ]
    assert found == PARAMETERS[text]


def normal(x: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    wide = x.astype(np.float64)
    return (wide - wide.mean(axes, keepdims=True)) / np.sqrt(wide.var(axes, keepdims=True) + 1e-5)


def test_values() -> None:
    batch = nn.BatchNorm2d(4).set_train()
    np.testing.assert_allclose(batch(Tensor(X)).asnumpy(), normal(X, (0, 2, 3)), atol=1e-5)
    grouped = normal(X.reshape(2, 2, 2 * 30), (2,)).reshape(X.shape)
    np.testing.assert_allclose(nn.GroupNorm(2, 4)(Tensor(X)).asnumpy(), grouped, atol=1e-5)
    layer = nn.LayerNorm((5, 6), elementwise_affine=False)
    np.testing.assert_allclose(layer(Tensor(X)).asnumpy(), normal(X, (2, 3)), atol=1e-5)
    conv = nn.Conv1d(4, 6, 3, padding=1, groups=2)
    w, row = conv.weight.asnumpy(), np.pad(X[:, :, 0], ((0, 0), (0, 0), (1, 1)))
    exact = np.stack(
        [sum(row[:, o // 3 * 2 + c, i : i + 6] * w[o, c, i] for c in range(2) for i in range(3))
         for o in range(6)], 1,
    )  # fmt: skip
    exact = exact + conv.bias.asnumpy()[:, None]
    np.testing.assert_allclose(conv(Tensor(X[:, :, 0])).asnumpy(), exact, atol=1e-5)
    table = nn.Embedding(5, 3, 1)
    assert not table(Tensor([1])).asnumpy().any() and table(Tensor([[2, 4]])).shape == (1, 2, 3)


def test_running_moments(mode: None) -> None:
    """They follow with momentum, or are means over all batches so far, and count in evaluation."""
    mean, var = X.mean((0, 2, 3)), X.var((0, 2, 3), ddof=1)
    moving, whole = nn.BatchNorm2d(4).set_train(), nn.BatchNorm2d(4, momentum=None).set_train()
    for _ in range(2):
        moving(Tensor(X))
    for factor in (1, 3):
        whole(Tensor(X * factor))
    assert int(moving.num_batches_tracked) == int(whole.num_batches_tracked) == 2
    np.testing.assert_allclose(moving.running_mean.asnumpy(), 0.19 * mean, rtol=1e-4)
    np.testing.assert_allclose(moving.running_var.asnumpy(), 0.81 + 0.19 * var, rtol=1e-4)
    np.testing.assert_allclose(whole.running_mean.asnumpy(), 2 * mean, rtol=1e-4)
    out = whole.set_train(False)(Tensor(X)).asnumpy()
    row = (1, 4, 1, 1)
    exact = (X - (2 * mean).reshape(row)) / np.sqrt(5 * var.reshape(row) + 1e-5)
    np.testing.assert_allclose(out, exact, atol=1e-4)


def test_bad_input() -> None:
    for call in (
        lambda: nn.GroupNorm(3, 4),
        lambda: nn.BatchNorm2d(3)(Tensor(X)),
        lambda: nn.BatchNorm1d(4)(Tensor(X)),
        lambda: nn.Embedding(5, 3, 7),
        lambda: nn.Conv1d(3, 4, 3, groups=2),
        lambda: nn.functional.group_norm(Tensor(X), 3),
    ):
        with pytest.raises(ValueError):
            call()
