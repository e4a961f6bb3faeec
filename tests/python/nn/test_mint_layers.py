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
    "PReLU(3)": ["weight (3,) float32 True"],
    "SyncBatchNorm(3)": [*weights((3,), (3,)), *RUNNING],
    "ConvTranspose2d(2, 3, 2)": weights((2, 3, 2, 2), (3,)),
    "ConvTranspose2d(4, 6, (1, 2), groups=2, bias=False)": weights((4, 3, 1, 2)),
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


def test_transposed_convolution() -> None:
    """Each element of the input puts the kernel times itself at its stride; padding cuts off both ends,
    output_padding less of the far one."""
    stride, padding, added, dilation, groups = (2, 3), (1, 2), (1, 2), (2, 1), 2
    layer = nn.ConvTranspose2d(4, 6, (2, 3), stride, padding, added, groups, True, dilation)
    w, bias = layer.weight.asnumpy().astype(np.float64), layer.bias.asnumpy()
    full = np.zeros((2, 6, 5 * 2 + 8, 6 * 3 + 8))
    for c, i, j, o, u, v in np.ndindex(4, 5, 6, 3, 2, 3):
        at = i * stride[0] + u * dilation[0], j * stride[1] + v * dilation[1]
        full[:, c // 2 * 3 + o, at[0], at[1]] += X[:, c, i, j] * w[c, o, u, v]
    rows, columns = 4 * 2 - 2 + 2 + 1 + 1, 5 * 3 - 4 + 2 + 2 + 1
    exact = full[:, :, 1 : 1 + rows, 2 : 2 + columns] + bias[:, None, None]
    np.testing.assert_allclose(layer(Tensor(X)).asnumpy(), exact, atol=1e-5)
    layer.output_padding = 0
    np.testing.assert_allclose(layer(Tensor(X), (rows, columns)).asnumpy(), exact, atol=1e-5)
    assert layer(Tensor(X)).shape == (2, 6, rows - 1, columns - 2)
    x = Tensor(X)
    by_x, by_w = ms.grad(
        lambda x, w: (nn.functional.conv_transpose2d(x, w, None, 2) ** 2).sum(), (0, 1)
    )(x, layer.weight)
    out = nn.functional.conv_transpose2d(x, layer.weight, None, 2)  # linear in each, so homogeneous
    twice = 2 * float((out * out).sum())
    assert float((by_x * x).sum()) == pytest.approx(twice, rel=1e-4)
    assert float((by_w * layer.weight).sum()) == pytest.approx(twice, rel=1e-4)


def test_prelu_and_one_process_of_sync_batch_norm(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = nn.PReLU(4, 0.1)
    np.testing.assert_allclose(layer(Tensor(X)).asnumpy(), np.where(X > 0, X, 0.1 * X), rtol=1e-6)
    sync, alone = nn.SyncBatchNorm(4).set_train(), nn.BatchNorm2d(4).set_train()
    assert (sync(Tensor(X)).asnumpy() == alone(Tensor(X)).asnumpy()).all()
    assert (sync.running_var.asnumpy() == alone.running_var.asnumpy()).all()
    monkeypatch.setattr("gradcell.mint.nn.layers.get_group_size", lambda group: 2)
    with pytest.raises(NotImplementedError, match="for several"):
        sync(Tensor(X))
    assert sync.set_train(False)(Tensor(X)).shape == X.shape


def test_index_add_in_place() -> None:
    x, y = Tensor(X[0, 0]), Tensor(X[0, 1, :2])
    rows = np.array([3, 3], np.int32)
    exact = X[0, 0].copy()
    np.add.at(exact, rows, 2 * X[0, 1, :2])
    got = x.index_add_(0, Tensor(rows), y, alpha=2)
    for found in (x, got):
        np.testing.assert_allclose(found.asnumpy(), exact, rtol=1e-6)


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


def test_layers_refuse_channels_that_do_not_fit() -> None:
    for call in (
        lambda: nn.GroupNorm(3, 4),
        lambda: nn.BatchNorm2d(3)(Tensor(X)),
        lambda: nn.BatchNorm1d(4)(Tensor(X)),
        lambda: nn.Embedding(5, 3, 7),
        lambda: nn.Conv1d(3, 4, 3, groups=2),
        lambda: nn.functional.group_norm(Tensor(X), 3),
        lambda: nn.ConvTranspose2d(4, 3, 2, groups=2),
        lambda: nn.ConvTranspose2d(3, 4, 2)(Tensor(X)),
        lambda: nn.ConvTranspose2d(4, 4, 2, 2, output_padding=2)(Tensor(X)),
        lambda: nn.ConvTranspose2d(4, 4, 2, 2)(Tensor(X), (12, 12)),
        lambda: nn.ConvTranspose2d(4, 4, 1, padding=9)(Tensor(X)),
        lambda: nn.PReLU(0),
        lambda: nn.PReLU(3)(Tensor(X)),
    ):
        with pytest.raises(ValueError):
            call()
