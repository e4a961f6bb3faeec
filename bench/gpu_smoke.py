"""The first minute on a GPU: an op, a product, a step that is captured, NaN in a row, an index out of
range. A line for each; the exit status says whether all are as they should be."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable

import numpy as np

import gradcell as gc
from gradcell import Parameter, Tensor, nn, ops

rng = np.random.default_rng(5)


def values(*shape: int) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def op() -> None:
    x = values(1000, 37)
    np.testing.assert_allclose(ops.exp(Tensor(x) * 2.0).asnumpy(), np.exp(2 * x), rtol=1e-6)


def product() -> None:
    a, b, c = values(300, 200), values(200, 70), values(70)
    got = (ops.matmul(Tensor(a), Tensor(b)) + Tensor(c)).asnumpy()
    want = a.astype(np.float64) @ b.astype(np.float64) + c
    np.testing.assert_allclose(got, want, rtol=0, atol=200 * 2**-24 * 200)


def captured_step() -> None:
    """From the third run on a step is one graph launch; ten of them are ten of NumPy's."""
    start, x = values(20), values(20)
    p = Parameter(Tensor(start), name="p")
    step = gc.jit(lambda x: ops.assign(p, p * 0.9 + ops.sin(x) * 0.1))
    want = start.astype(np.float64)
    for _ in range(10):
        step(Tensor(x))
        want = want * 0.9 + np.sin(x.astype(np.float64)) * 0.1
    np.testing.assert_allclose(p.asnumpy(), want, rtol=1e-5, atol=1e-6)


def a_row_of_nan() -> None:
    """Tensor cores' sums of a warp: the NaN stays in its row."""
    w1, w2, x = values(64, 64), values(64, 64), values(96, 64)
    x[17] = np.nan
    net = gc.jit(lambda x, a, b: ops.matmul(ops.tanh(ops.matmul(x, a)), b))
    got = net(Tensor(x), Tensor(w1), Tensor(w2)).asnumpy()
    want = np.tanh(x.astype(np.float64) @ w1) @ w2
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4)


def index_out_of_range() -> None:
    try:
        ops.gather(Tensor(values(3, 2)), Tensor(np.array([0, 7])), 0).asnumpy()
    except IndexError:
        return
    raise AssertionError("no IndexError")


def a_network_learns() -> None:
    net = nn.SequentialCell(
        nn.Dense(2, 20), nn.Tanh(), nn.Dense(20, 20), nn.Tanh(), nn.Dense(20, 1)
    )
    optimizer = nn.Adam(net.trainable_params(), learning_rate=0.01)
    x = Tensor(values(512, 2))
    slopes = gc.value_and_grad(
        lambda: ops.square(net(x) - x[:, :1]).mean(), None, optimizer.parameters
    )

    @gc.jit
    def step() -> Tensor:
        value, grads = slopes()
        optimizer(grads)
        return value

    losses = [float(step()) for _ in range(60)]
    assert losses[-1] < 0.3 * losses[0], losses


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    gc.set_context(device_target="GPU")
    steps: list[Callable[[], None]] = [
        op, product, captured_step, a_row_of_nan, index_out_of_range, a_network_learns,
    ]  # fmt: skip
    failed = 0
    for step in steps:
        began = time.perf_counter()
        try:
            step()
            found = "ok"
        except Exception:
            failed += 1
            found = traceback.format_exc()
        print(f"{step.__name__}: {found}, {time.perf_counter() - began:.2f} s", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
