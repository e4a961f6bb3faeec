"""What the tests of layers share: inputs, gradients against central differences."""

from __future__ import annotations

import numpy as np

import gradcell as ms
from gradcell import Tensor

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def total(cell, weights):
    """A scalar function of a cell's inputs: its output times fixed weights."""

    def f(*inputs):
        return (cell(*inputs) * weights).sum()

    return f


def check_gradients(cell, inputs, by=None, second=False, tolerance=2e-6):
    """Gradients by inputs and parameters, along random directions, against central differences."""
    tensors = [Tensor(x) for x in inputs]
    out = cell(*tensors)
    weights = Tensor(RNG.standard_normal(out.shape))
    f = total(cell, weights)
    by = tuple(range(len(inputs))) if by is None else by
    parameters = cell.trainable_params()
    by_input, by_parameter = ms.grad(f, by, parameters)(*tensors)
    by_input = by_input if isinstance(by_input, tuple) else (by_input,)

    def moved(direction, step):
        moved_inputs = list(inputs)
        for p, d in zip(by, direction, strict=True):
            moved_inputs[p] = inputs[p] + step * d
        return [Tensor(x) for x in moved_inputs]

    direction = [RNG.standard_normal(inputs[p].shape) for p in by]
    h = 1e-5
    difference = float(f(*moved(direction, h))) - float(f(*moved(direction, -h)))
    expected = sum((g.asnumpy() * d).sum() for g, d in zip(by_input, direction, strict=True))
    np.testing.assert_allclose(expected, difference / (2 * h), rtol=tolerance, atol=tolerance)
    for p, g in zip(parameters, by_parameter, strict=True):
        assert g.shape == p.shape and g.dtype == p.dtype
        value, d = p.asnumpy().copy(), RNG.standard_normal(p.shape)
        sides = []
        for sign in (1, -1):
            p.set_data(Tensor(value + sign * h * d))
            sides.append(float(f(*tensors)))
        p.set_data(Tensor(value))
        slope = (sides[0] - sides[1]) / (2 * h)
        np.testing.assert_allclose((g.asnumpy() * d).sum(), slope, rtol=tolerance, atol=tolerance)
    if second:
        check_second(f, inputs, by, direction, moved, tolerance)


def check_second(f, inputs, by, direction, moved, tolerance):
    fixed = [Tensor(d) for d in direction]

    def slope(*tensors):
        gradients = ms.grad(f, by)(*tensors)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        return sum((g * d).sum() for g, d in zip(gradients, fixed, strict=True))

    second = ms.grad(slope, by)(*[Tensor(x) for x in inputs])
    second = second if isinstance(second, tuple) else (second,)
    other = [RNG.standard_normal(d.shape) for d in direction]
    h = 1e-5
    difference = float(slope(*moved(other, h))) - float(slope(*moved(other, -h)))
    expected = sum((g.asnumpy() * d).sum() for g, d in zip(second, other, strict=True))
    np.testing.assert_allclose(expected, difference / (2 * h), rtol=10 * tolerance, atol=1e-5)
