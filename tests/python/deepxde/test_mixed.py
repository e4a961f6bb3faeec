"""Mixed precision on gradcell: training in float16 products, as PyTorch's autocast has it."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

if importlib.util.find_spec("deepxde") is None:
    pytest.skip("needs DeepXDE", allow_module_level=True)

import gradcell as gc
from gradcell.deepxde import dde, names, torch

if not hasattr(dde.config, "mixed"):
    pytest.skip("DeepXDE 1.13 has no mixed precision", allow_module_level=True)

LINE = dde.geometry.Interval(-1, 1)
#: DeepXDE 1.15's losses on PyTorch 2.13, with these weights, after 20 and 40 steps in mixed precision.
WANTED = [9.25426, 4.503536], [4.455899, 2.3840008]


@pytest.fixture
def mixed() -> Any:
    dde.config.set_default_float("mixed")
    yield
    dde.config.mixed = False


def model(seen: list[Any]) -> Any:
    def residual(x: Any, u: Any) -> Any:
        second = dde.grad.hessian(u, x)
        seen.append((u.dtype, second.dtype))
        return -second - np.pi**2 * torch.sin(np.pi * x)

    dde.config.set_random_seed(3)
    edges = dde.icbc.DirichletBC(LINE, lambda x: 0, lambda x, on: on)
    data = dde.data.PDE(LINE, residual, edges, 16, 2)
    made = dde.Model(data, dde.nn.FNN([1, 16, 16, 1], "tanh", "Glorot uniform"))
    random = np.random.default_rng(0)
    for p in made.net.parameters():
        scale = np.sqrt(2 / sum(p.shape)) if p.ndim > 1 else 0.1
        p.set_data(gc.Tensor((random.normal(size=p.shape) * scale).astype("f4")))
    return made


def test_losses_are_those_of_pytorch(mixed: None) -> None:
    seen: list[Any] = []
    trained = model(seen)
    trained.compile("adam", lr=1e-2, verbose=0)
    trained.train(iterations=40, display_every=20, verbose=0)
    assert (gc.float16, gc.float32) in seen  # the training step's
    assert (gc.float32, gc.float32) in seen  # the losses that are shown
    found = trained.losshistory.loss_train[1:]
    np.testing.assert_allclose(found, WANTED, rtol=2e-3)
    assert all(p.dtype == gc.float32 for p in trained.net.parameters())


def test_lbfgs_and_what_follows(mixed: None) -> None:
    seen: list[Any] = []
    trained = model(seen)
    dde.optimizers.set_LBFGS_options(maxiter=20)
    try:
        trained.compile("L-BFGS", verbose=0)
        trained.train(display_every=20, verbose=0)
    finally:
        dde.optimizers.set_LBFGS_options()
    assert (gc.float16, gc.float32) in seen
    losses = trained.losshistory.loss_train
    assert np.sum(losses[-1]) < np.sum(losses[0])


def test_products_outside_training_stay_as_they_are(mixed: None) -> None:
    a = gc.Tensor(np.ones((2, 2), "f4"))
    assert torch.matmul(a, a).dtype == gc.float32
    with names.in_halves():
        found = [torch.matmul(a, a), torch.mm(a, a), torch.einsum("ij,jk->ik", a, a)]
        assert [t.dtype for t in found] == [gc.float16] * 3
        wide = a.astype(gc.float64)
        assert torch.matmul(wide, wide).dtype == gc.float64
    assert torch.mm(a, a).dtype == gc.float32
