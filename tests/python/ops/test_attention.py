"""Attention in tiles: what the rows of attention_rows.py do not say. Queries that see no key,
dropout, half types, instruction sets, memory, and MindSpore's function over it."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attention_rows import LARGE, Heads, run, shapes, sums
from check_grads import check_grads

import gradcell as ms
from gradcell import Tensor, nn, ops
from gradcell.ops.networks.attention import attend, weights
from gradcell.ops.random.draws import _draw

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def softmax(s: np.ndarray) -> np.ndarray:
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def test_a_query_that_sees_no_key_gives_zero_and_gets_no_gradient() -> None:
    q, k, v = normal(2, 3, 4), normal(2, 5, 4), normal(2, 5, 4)
    mask = np.zeros((2, 3, 5), bool)
    mask[0, 1] = mask[1, :, 2] = True
    added = np.where(mask, -np.inf, 0.0)
    seen = np.delete(q[0], 1, axis=0)
    expected = softmax(seen @ k[0].T) @ v[0]
    for how in (mask, added):
        tensor = Tensor(how)

        def squared(*xs: Any, mask: Tensor = tensor) -> Any:
            y = attend(*xs, mask)
            return (y * y).sum()

        y = attend(*map(Tensor, (q, k, v)), tensor).asnumpy()
        np.testing.assert_array_equal(y[0, 1], 0)
        np.testing.assert_allclose(np.delete(y[0], 1, axis=0), expected, rtol=1e-12)
        gradients = ms.grad(squared, (0, 1, 2))(*map(Tensor, (q, k, v)))
        np.testing.assert_array_equal(gradients[0].asnumpy()[0, 1], 0)
        assert all(np.isfinite(g.asnumpy()).all() for g in gradients)
        without = ms.grad(squared, (1, 2))  # the same without the query
        others = without(*map(Tensor, (seen[None], k[:1], v[:1])), mask=Tensor(how[:1, [0, 2]]))
        for got, wanted in zip(gradients[1:], others, strict=True):
            np.testing.assert_allclose(got.asnumpy()[0], wanted.asnumpy()[0], rtol=1e-10)
        # in the composition that shows its weights, too
        w = weights(*map(Tensor, (q, k)), tensor)
        np.testing.assert_array_equal(w.asnumpy()[0, 1], 0)
        slope = ms.grad(lambda q, m=tensor: (weights(q, Tensor(k), m) ** 2).sum())(Tensor(q))
        assert np.isfinite(slope.asnumpy()).all()


def test_no_keys_at_all() -> None:
    y = attend(Tensor(normal(2, 3, 4)), Tensor(np.zeros((2, 0, 4))), Tensor(np.zeros((2, 0, 5))))
    np.testing.assert_array_equal(y.asnumpy(), np.zeros((2, 3, 5)))
    assert attend(*(Tensor(np.zeros((2, n, 4))) for n in (0, 3, 3))).shape == (2, 0, 4)


def test_large_scores_do_not_overflow() -> None:
    q, k, v = 100 * normal(1, 3, 8), 100 * normal(1, 80, 8), normal(1, 80, 2)
    y = attend(*(Tensor(x.astype(np.float32)) for x in (q, k, v)))
    f32 = [x.astype(np.float32).astype(np.float64) for x in (q, k, v)]
    expected = softmax(f32[0] @ f32[1].transpose(0, 2, 1)) @ f32[2]
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_dropout_against_the_numbers_that_it_draws(keep: float) -> None:
    q, k, v = normal(2, 3, 70, 3), normal(2, 3, 67, 3), normal(2, 3, 67, 2)
    g = normal(2, 3, 70, 2)
    ms.set_seed(5)
    z = np.where(_draw([2, 3, 70, 67]).asnumpy() < np.float32(keep), 1 / keep, 0.0)
    ms.set_seed(5)
    y = attend(*map(Tensor, (q, k, v)), keep=keep)
    p = softmax(q @ k.swapaxes(-1, -2))
    np.testing.assert_allclose(y.asnumpy(), (p * z) @ v, rtol=1e-10)
    following = _draw([4]).asnumpy()
    ms.set_seed(5)
    _draw([2, 3, 70, 67])
    np.testing.assert_array_equal(following, _draw([4]).asnumpy())  # no number comes twice

    ms.set_seed(5)
    got = ms.grad(lambda *xs: (attend(*xs, keep=keep) * Tensor(g)).sum(), (0, 1, 2))(
        *map(Tensor, (q, k, v))
    )
    dp = (g @ v.swapaxes(-1, -2)) * z
    ds = p * (dp - (p * dp).sum(-1, keepdims=True))
    wanted = [ds @ k, ds.swapaxes(-1, -2) @ q, (p * z).swapaxes(-1, -2) @ g]
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b, rtol=1e-9, atol=1e-12)


def test_higher_derivatives_with_dropout_and_mask() -> None:
    mask = Tensor(np.array([[False, True, False], [False, False, False]]))
    seeded = Tensor(np.array([3, 0]))

    def fn(*xs: Any) -> Any:
        keep, scale, fill = (int(np.array(x).view(np.int64)) for x in (0.7, 1.0, -np.inf))
        y = ms._core.ops.attention(
            [*xs, mask, seeded], True, True, False, keep, 1, 1 << 62, 1, scale=scale, fill=fill
        )
        return ops.sin(y) + y * y

    check_grads(fn, [normal(2, 2), normal(3, 2), normal(3, 2)], order=3)


def test_taylor_and_laplacian() -> None:
    k, v = normal(4, 3), normal(4, 1)

    def composed(q: Any) -> Any:
        return ops.matmul(ops.softmax(ops.matmul(q, Tensor(k.T)), -1), Tensor(v)).sum()

    def tiled(q: Any) -> Any:
        return attend(q, Tensor(k), Tensor(v)).sum()

    q = Tensor(normal(2, 3))
    np.testing.assert_allclose(
        ms.laplacian(tiled)(q).asnumpy(), ms.laplacian(composed)(q).asnumpy(), rtol=1e-9
    )
    direction, t = Tensor(k[:2]), Tensor(np.float64(0.3))
    got = ops.derivative(lambda t: tiled(t * direction), t, 5)
    wanted = ops.derivative(lambda t: composed(t * direction), t, 5)
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_types(dtype: str) -> None:
    """The results are float32's, rounded; with the gradients."""
    t = getattr(ms, dtype)
    arrays = [normal(2, 70, 16).astype(np.float32) for _ in range(4)]
    q, k, v, g = (Tensor(x).astype(t) for x in arrays)

    def f(q: Any, k: Any, v: Any, g: Any) -> Any:
        return (attend(q, k, v) * g).astype(ms.float32).sum()

    got = [attend(q, k, v), *ms.grad(f, (0, 1, 2))(q, k, v, g)]
    whole = [x.astype(ms.float32) for x in (q, k, v, g)]
    wanted = [attend(*whole[:3]), *ms.grad(f, (0, 1, 2))(*whole)]
    rounding = 2.0**-10 if dtype == "float16" else 2.0**-7
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == t
        exact = b.asnumpy()
        np.testing.assert_allclose(
            a.astype(ms.float32).asnumpy(), exact, rtol=0, atol=4 * rounding * np.abs(exact).max()
        )


def test_overflow_in_half_is_infinite_and_not_wrong() -> None:
    v = Tensor(np.full((1, 4, 2), 6e4, np.float32)).astype(ms.float16)
    x = Tensor(np.full((1, 4, 2), 3e4, np.float32)).astype(ms.float16)
    y = attend(x, x, v).astype(ms.float32).asnumpy()  # scores beyond float16 stay in float32
    np.testing.assert_allclose(y, 6e4, rtol=1e-3)


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from attention_rows import LARGE, run, shapes, sums
from gradcell import Tensor
for label, s in LARGE.items():
    for op in ("Attention", "AttentionLogSum", "AttentionRows", "AttentionColumns"):
        s = s._replace(factors=(3, 2), shifted=True) if op[9:] in ("Rows", "Columns") else s
        rng = np.random.default_rng(1)
        for dtype, tolerance in (("float32", 2e-5), ("float64", 1e-12)):
            xs = [rng.standard_normal(n).astype(dtype) / 2 for n in shapes(op, s)]
            got = run(op, s, *map(Tensor, xs)).asnumpy()
            want = sums(op, s, *(x.astype(np.float64) for x in xs))
            np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * np.abs(want).max())
"""


@pytest.mark.parametrize("level", ms._core.runnable_isa_levels()[:-1])
def test_other_instruction_sets(level: str) -> None:
    program = PROGRAM.format(folder=str(Path(__file__).parents[1] / "support" / "cases"))
    environment = {**os.environ, "GRADCELL_ISA": level}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_the_same_with_any_number_of_threads() -> None:
    s = LARGE["blocks, mask"]
    xs = [Tensor(normal(*n).astype(np.float32)) for n in shapes("Attention", s)]
    gradient = ms.grad(lambda *xs: (run("Attention", s, *xs) ** 2).sum(), (0, 1, 2))
    before = ms._core.max_threads()
    found = []
    try:
        for threads in (1, 3):
            ms._core.set_max_threads(threads)
            found.append([g.asnumpy() for g in gradient(*xs)])
    finally:
        ms._core.set_max_threads(before)
    first, second = found
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


MEMORY = """
import numpy as np, resource
import gradcell as ms
from gradcell import Tensor
from gradcell.ops.networks.attention import attend
rng = np.random.default_rng(0)
def tensors(n):
    return [Tensor(rng.standard_normal((1, n, 64), dtype=np.float32)) for _ in range(3)]
gradient = ms.grad(lambda *xs: (attend(*xs) ** 2).sum(), (0, 1, 2))
[g.asnumpy() for g in gradient(*tensors(256))]
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
[g.asnumpy() for g in gradient(*tensors(4096))]
print(peak() - before)
"""


@pytest.mark.one_in(2)
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss in kB")
def test_scores_are_never_whole_in_memory() -> None:
    """4,096 tokens: the scores would take 64 MB, and several times that with their gradients."""
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 40


# flash_attention_score --------------------------------------------------------------------------

B, N, L, S, D = 2, 4, 5, 6, 8


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float = 1.0, shift: Any = 0.0,
    hidden: Any = False,
) -> np.ndarray:  # fmt: skip
    """[B, N, S, D]; keys and values of fewer heads are repeated."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    s = scale * (q @ k.swapaxes(-1, -2)) + shift
    return softmax(np.where(np.broadcast_to(hidden, s.shape), -np.inf, s)) @ v


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BNSD", "BSND"])
@pytest.mark.parametrize("fewer", [4, 2, 1])
def test_layouts(layout: str, fewer: int) -> None:
    q, k, v = normal(B, N, L, D), normal(B, fewer, S, D), normal(B, fewer, S, D)

    def given(x: np.ndarray) -> np.ndarray:
        if layout == "BNSD":
            return x
        _, n, _, d = x.shape
        x = x.transpose(2, 0, 1, 3) if layout == "SBH" else x.transpose(0, 2, 1, 3)
        return x if layout == "BSND" else x.reshape(*x.shape[:2], n * d)

    y = ops.flash_attention_score(
        *(Tensor(given(x)) for x in (q, k, v)), N, scalar_value=0.3, input_layout=layout
    )
    np.testing.assert_allclose(y.asnumpy(), given(reference(q, k, v, 0.3)), rtol=1e-10)


MODES: dict[str, tuple[dict[str, Any], Any]] = {
    "0": ({}, lambda m, n: False),
    "0, band": (
        {"attn_mask": np.zeros((L, S), bool), "pre_tokens": 1, "next_tokens": 2},
        lambda m, n: (n < m - 1) | (n > m + 2),
    ),
    "1": ({"attn_mask": np.tri(L, S, -2, bool), "sparse_mode": 1}, lambda m, n: n < m - 1),
    "1, bytes": (
        {"attn_mask": np.tri(L, S, -2, np.uint8)[None, None].repeat(B, 0), "sparse_mode": 1},
        lambda m, n: n < m - 1,
    ),
    "2": ({"sparse_mode": 2}, lambda m, n: n > m),
    "3": ({"sparse_mode": 3}, lambda m, n: n > m + S - L),
    "4": (
        {"sparse_mode": 4, "pre_tokens": 2, "next_tokens": 0},
        lambda m, n: (n > m + S - L) | (n < m + S - L - 2),
    ),
    "5": ({"sparse_mode": 5, "prefix": [4, 4]}, lambda m, n: (n > m + S - L) & (n >= 4)),
}


@pytest.mark.parametrize("name", MODES)
def test_sparse_modes(name: str) -> None:
    q, k, v = (normal(B, N, n, D) for n in (L, S, S))
    options, hides = MODES[name]
    options = {a: Tensor(x) if isinstance(x, np.ndarray) else x for a, x in options.items()}
    hidden = hides(np.arange(L)[:, None], np.arange(S))
    shift = normal(1, N, L, S)
    y = ops.flash_attention_score(
        *map(Tensor, (q, k, v)), N, real_shift=Tensor(shift), input_layout="BNSD", **options
    )
    np.testing.assert_allclose(y.asnumpy(), reference(q, k, v, 1, shift, hidden), rtol=1e-10)


def test_gradient_of_the_shift() -> None:
    q, k, v = (normal(1, 2, n, 3) for n in (2, 3, 3))

    def fn(shift: Any, q: Any) -> Any:
        y = ops.flash_attention_score(
            q, Tensor(k), Tensor(v), 2, real_shift=shift, input_layout="BNSD", sparse_mode=2
        )
        return ops.sin(y)

    check_grads(fn, [normal(1, 2, 2, 3), q], order=2)


def test_drop_mask_says_which_weights_are_kept() -> None:
    q, k, v = (normal(1, 2, n, D) for n in (3, 16, 16))
    kept = RNG.integers(0, 2, (1, 2, 3, 16)).astype(np.uint8)
    packed = np.packbits(kept, axis=-1, bitorder="little")
    y = ops.flash_attention_score(
        *map(Tensor, (q, k, v)), 2, drop_mask=Tensor(packed), keep_prob=0.8, input_layout="BNSD"
    )
    expected = (softmax(q @ k.swapaxes(-1, -2)) * kept / 0.8) @ v
    np.testing.assert_allclose(y.asnumpy(), expected, rtol=1e-6, atol=1e-9)


def test_sequences_one_behind_the_other() -> None:
    q, k, v = normal(6, 2, D), normal(9, 2, D), normal(9, 2, D)
    y = ops.flash_attention_score(
        *map(Tensor, (q, k, v)), 2, actual_seq_qlen=[2, 6], actual_seq_kvlen=Tensor([3, 9]),
        input_layout="TND",
    )  # fmt: skip
    parts = [(slice(0, 2), slice(0, 3)), (slice(2, 6), slice(3, 9))]
    expected = [
        reference(*(x.transpose(1, 0, 2)[None] for x in (q[a], k[b], v[b])))[0] for a, b in parts
    ]
    both = np.concatenate([x.transpose(1, 0, 2) for x in expected])
    np.testing.assert_allclose(y.asnumpy(), both, rtol=1e-10)


X = Tensor(np.zeros((2, 3, 8), np.float32))
BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"head_num": 3}, ValueError, "do not divide"),
    ({"head_num": 0}, ValueError, "head_num"),
    ({"input_layout": "BHS"}, ValueError, "input_layout"),
    ({"input_layout": "BNSD"}, ValueError, "4 dimensions"),
    ({"input_layout": "TND"}, ValueError, "actual_seq_qlen"),
    ({"keep_prob": 0.0}, ValueError, "keep_prob"),
    ({"keep_prob": 1.5}, ValueError, "keep_prob"),
    ({"sparse_mode": 6}, ValueError, "sparse_mode"),
    ({"padding_mask": X}, ValueError, "padding_mask"),
    ({"attn_mask": X}, TypeError, "attn_mask"),
    ({"attn_mask": Tensor(np.zeros((2, 3), bool))}, ValueError, "attn_mask"),
    ({"real_shift": Tensor(np.zeros((3, 3), np.float32))}, ValueError, "real_shift"),
    ({"key": Tensor(np.zeros((2, 3, 8)))}, TypeError, "one dtype"),
    ({"key": Tensor(np.zeros((1, 3, 8), np.float32))}, ValueError, "do not fit"),
    ({"query": Tensor(np.zeros((2, 3, 8), np.int32))}, TypeError, "floating"),
]


@pytest.mark.parametrize("k", range(len(BAD)))
def test_bad_arguments(k: int) -> None:
    options, error, text = BAD[k]
    given = {"query": X, "key": X, "value": X, "head_num": 2, **options}
    with pytest.raises(error, match=text):
        ops.flash_attention_score(**given)


@pytest.mark.parametrize(
    "shape, mask, text",
    [
        ((2, 4, 3), None, "do not fit"),
        ((2, 4, 2), np.zeros((2, 3, 5), bool), "mask of shape"),
        ((2, 4, 2), np.zeros((4,), bool), "mask of shape"),
    ],
)
def test_errors_of_the_op_name_the_shapes(shape: Any, mask: Any, text: str) -> None:
    q, k = Tensor(np.zeros((2, 3, 2))), Tensor(np.zeros(shape))
    with pytest.raises(ValueError, match=text):
        attend(q, k, k, None if mask is None else Tensor(mask))


def test_a_layer_without_weights_is_the_layer_with_them() -> None:
    net = nn.MultiheadAttention(8, 2, dtype=ms.float64)
    q, k = normal(3, 2, 8), normal(70, 2, 8)
    hidden = np.zeros((2, 70), bool)
    hidden[0, 50:] = hidden[1, :] = True
    for mask in (None, Tensor(hidden)):
        out, _ = net(Tensor(q), Tensor(k), Tensor(k), mask)
        (alone,) = net(Tensor(q), Tensor(k), Tensor(k), mask, need_weights=False)
        np.testing.assert_allclose(alone.asnumpy(), out.asnumpy(), rtol=1e-10, atol=1e-12)
    assert math.isfinite(float(out.asnumpy().sum()))
    check_grads(
        lambda q, k: net(q, k, k, need_weights=False)[0], [q[:, :1], k[:3, :1]], order=3,
        tolerance=1e-7,
    )  # fmt: skip


def test_heads_are_what_the_rows_say() -> None:
    s = Heads(lead=(2, 3), queries=5, keys=7)
    xs = [normal(*n) for n in shapes("Attention", s)]
    y = run("Attention", s, *map(Tensor, xs)).asnumpy()
    np.testing.assert_allclose(y, sums("Attention", s, *xs), rtol=1e-12)
