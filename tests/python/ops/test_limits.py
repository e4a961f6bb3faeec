"""Tensors that no memory can hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gradcell.numpy as gnp
from gradcell import Tensor, mint, ops

N = 2**62
MADE: dict[str, Callable[[], Any]] = {
    "eye": lambda: ops.eye(N),
    "eye of mint": lambda: mint.eye(N),
    "eye, wide": lambda: ops.eye(3, N),
    "identity": lambda: gnp.identity(N),
    "eye of numpy": lambda: gnp.eye(N),
    "full": lambda: ops.full((N,), 1.0),
    "zeros": lambda: mint.zeros((N, N)),
    "ones": lambda: mint.ones(2**40, 2**40),
    "empty": lambda: mint.empty((N,)),
    "zeros of ops": lambda: ops.zeros((N,)),
    "zeros of numpy": lambda: gnp.zeros((2**31, 2**31)),
    "tri": lambda: gnp.tri(N),
    "arange": lambda: ops.arange(0, N, 1),
    "arange of numpy": lambda: gnp.arange(N),
    "linspace": lambda: mint.linspace(0, 1, N),
    "linspace of numpy": lambda: gnp.linspace(0, 1, N),
    "logspace": lambda: gnp.logspace(0, 1, N),
    "rand": lambda: mint.rand(N),
    "randn": lambda: ops.randn(N),
    "randint": lambda: ops.randint(0, 5, (N,)),
    "uniform": lambda: ops.uniform((N,), Tensor(0.0), Tensor(1.0)),
    "StandardNormal": lambda: ops.standard_normal((N,)),
    "tril_indices": lambda: ops.tril_indices(2**40, 2**40),
    "triu_indices of numpy": lambda: gnp.triu_indices(2**40),
    "hanning": lambda: gnp.hanning(N),
}


@pytest.mark.parametrize("name", MADE)
def test_what_no_memory_can_hold_is_refused_with_its_shape(name: str) -> None:
    with pytest.raises(
        MemoryError, match=r"a tensor of shape \[.*\d{10,}.*\] has more elements"
    ) as e:
        MADE[name]()
    assert __file__.rsplit("/", 1)[-1] in str(e.value)


@pytest.mark.parametrize(
    "name", ["eye", "eye of mint", "full", "arange", "linspace", "randn", "zeros", "tril_indices"]
)
def test_and_names_the_function(name: str) -> None:
    with pytest.raises(MemoryError, match=rf"^{name.split(' of ')[0]}: "):
        MADE[name]()
