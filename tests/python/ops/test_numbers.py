"""Python numbers are exact until the dtype that they end in rounds them, once.

The references are NumPy in float64 and exact arithmetic (fractions). Every public function of ops is
either in TAKES_NUMBERS, with a call on float64 tensors and a number that float32 does not hold, or in
WITHOUT_NUMBERS.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import gradcell as ms
import gradcell.numpy as mnp
from gradcell import Parameter, Tensor, _core, mint, nn, ops

A = np.array([-1.7, -0.3, 0.1, 0.45, 2.3])
B = np.array([0.7, 0.1, 1.3, 2.9, 0.4])
N = 0.1  # no float32 is equal to it


def t(array: Any) -> Tensor:
    return Tensor(np.asarray(array))


def softplus(x: np.ndarray) -> np.ndarray:
    return np.log1p(np.exp(x))


def nll(x: np.ndarray, smoothing: float) -> float:
    logp = x - np.log(np.exp(x).sum())
    return float(-((1 - smoothing) * logp[1] + smoothing * logp.mean()))


def normalised(x: np.ndarray, eps: float) -> np.ndarray:
    return (x - x.mean()) / np.sqrt(x.var() + eps)


def clipped(x: np.ndarray, limit: float) -> np.ndarray:
    return x * min(limit / (np.linalg.norm(x) + 1e-6), 1.0)


def assigned(change: Callable[[Parameter, float], Any]) -> np.ndarray:
    p = Parameter(t(A), name="p")
    change(p, N)
    return p.asnumpy()


Row = tuple[Callable[[], Any], Any]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "pow": np.power,
    "floor_div": np.floor_divide, "mod": np.mod, "fmod": np.fmod, "maximum": np.maximum,
    "minimum": np.minimum, "atan2": np.arctan2, "hypot": np.hypot,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal,
    "greater": np.greater, "greater_equal": np.greater_equal, "squared_difference":
    lambda a, b: (a - b) ** 2, "div_no_nan": np.divide, "xlogy": lambda a, b: a * np.log(b),
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor,
}  # fmt: skip
SYNONYMS = {
    "multiply": "mul", "subtract": "sub", "divide": "div", "true_divide": "div", "remainder": "mod",
    "floor_mod": "mod", "floor_divide": "floor_div", "eq": "equal", "ne": "not_equal", "lt": "less",
    "le": "less_equal", "gt": "greater", "ge": "greater_equal", "tensor_add": "add",
    "tensor_sub": "sub", "tensor_mul": "mul", "tensor_div": "div", "tensor_pow": "pow",
    "arctan2": "atan2",
}  # fmt: skip


def binary_rows() -> dict[str, list[Row]]:
    rows = {}
    for name in [*BINARY, *SYNONYMS]:
        op, ref = getattr(ops, name), BINARY[SYNONYMS.get(name, name)]
        rows[name] = [
            (lambda op=op: op(t(B), N), ref(B, N)),
            (lambda op=op: op(N, t(B)), ref(N, B)),
        ]
    return rows


#: Calls with a number on float64 tensors, and what they give.
TAKES_NUMBERS: dict[str, list[Row]] = {
    **binary_rows(),
    "addmm": [(lambda: ops.addmm(t([[1.0]]), t([[2.0]]), t([[3.0]]), beta=N, alpha=0.3),
               [[N + 0.3 * 6.0]])],
    "add": [*binary_rows()["add"], (lambda: t(A).add(N, alpha=0.3), A + N * 0.3),
            (lambda: t(A).add_(N, alpha=0.3), A + N * 0.3)],
    "sub": [*binary_rows()["sub"], (lambda: t(A).sub(N, alpha=0.3), A - N * 0.3),
            (lambda: t(A).sub_(N, alpha=0.3), A - N * 0.3)],
    "amax": [(lambda: ops.amax(t(A[:2]), initial=N), N)],
    "amin": [(lambda: ops.amin(t(B), initial=0.05), 0.05)],
    "max": [(lambda: ops.max(t(A[:2]), initial=N)[0], N), (lambda: ops.max(t(A[:2]), 0, initial=N)[0], N)],
    "min": [(lambda: ops.min(t(B), initial=0.05)[0], 0.05)],
    "arange": [(lambda: ops.arange(0, 1, N, dtype=ms.float64), np.arange(10) * N)],
    "assign": [(lambda: assigned(lambda p, n: ops.assign(p, t(A * n))), A * N),
               (lambda: ops.assign(Parameter(t(1.0)), N), N)],
    "assign_add": [(lambda: assigned(ops.assign_add), A + N)],
    "assign_sub": [(lambda: assigned(ops.assign_sub), A - N)],
    "binary_cross_entropy": [
        (lambda: ops.binary_cross_entropy(t(B[[0, 1]]), t([1.0, 0.0]), N),
         N * -np.mean([np.log(0.7 + 1e-12), np.log(0.9 + 1e-12)]))],
    "binary_cross_entropy_with_logits": [
        (lambda: ops.binary_cross_entropy_with_logits(t(A), t(B * 0 + 1), N, 0.3),
         N * 0.3 * softplus(-A).mean())],
    "celu": [(lambda: ops.celu(t(A), N), np.where(A > 0, A, N * np.expm1(np.minimum(A, 0) / N)))],
    "clamp": [(lambda: ops.clamp(t(A), -N, 0.3), np.clip(A, -N, 0.3))],
    "clip": [(lambda: ops.clip(t(A), -N, 0.3), np.clip(A, -N, 0.3))],
    "clip_by_value": [(lambda: ops.clip_by_value(t(A), -N, 0.3), np.clip(A, -N, 0.3))],
    "clip_by_norm": [(lambda: ops.clip_by_norm(t(A), N), clipped(A, N))],
    "clip_by_global_norm": [
        (lambda: ops.clip_by_global_norm((t(A),), N)[0], A * N / np.linalg.norm(A)),
        (lambda: ops.clip_by_global_norm((t(A),), N, 0.3)[0], A * (N / 0.3))],
    "cross_entropy": [
        (lambda: ops.cross_entropy(t(A), Tensor(1, ms.int32), label_smoothing=N), nll(A, N))],
    "nll_loss": [
        (lambda: ops.nll_loss(t(np.log(B)), Tensor(1, ms.int32), label_smoothing=N),
         -((1 - N) * np.log(B)[1] + N * np.log(B).mean()))],
    "div": [*binary_rows()["div"],
            (lambda: ops.div(t(A), N, rounding_mode="floor"), np.floor_divide(A, N)),
            (lambda: ops.div(t(A), N, rounding_mode="trunc"), np.trunc(A / N))],
    "dropout": [(lambda: ops.dropout(t(B), 0.0), B)],
    "elu": [(lambda: ops.elu(t(A), N), np.where(A > 0, A, N * np.expm1(np.minimum(A, 0))))],
    "fill": [(lambda: ops.fill(ms.float64, (2,), N), [N, N])],
    "full": [(lambda: ops.full((2,), N, dtype=ms.float64), [N, N])],
    "full_like": [(lambda: ops.full_like(t(A), N), A * 0 + N)],
    "scalar_to_tensor": [(lambda: ops.scalar_to_tensor(N, ms.float64), N)],
    "hardshrink": [(lambda: ops.hardshrink(t([N, -N, 0.2]), N), [0.0, 0.0, 0.2])],
    "hardtanh": [(lambda: ops.hardtanh(t(A), -N, 0.3), np.clip(A, -N, 0.3))],
    "huber_loss": [(lambda: ops.huber_loss(t(A), t(B), delta=N, reduction="none"),
                    N * (np.abs(A - B) - 0.5 * N))],
    "smooth_l1_loss": [(lambda: ops.smooth_l1_loss(t(A), t(B), N), np.abs(A - B) - 0.5 * N)],
    "isclose": [(lambda: ops.isclose(t([1.0, 1.0]), t([1.1, 1.2]), N, 0.0), [True, False])],
    "layer_norm": [(lambda: ops.layer_norm(t(A), 5, eps=N), normalised(A, N))],
    "leaky_relu": [(lambda: ops.leaky_relu(t(A), N), np.where(A > 0, A, N * A))],
    "lerp": [(lambda: ops.lerp(t(A), t(B), N), A + N * (B - A)),
             (lambda: ops.lerp(t(A), 0.3, N), A + N * (0.3 - A))],
    "linspace": [(lambda: ops.linspace(t(1.0), N, 3), [1.0, 0.55, N])],
    "masked_fill": [(lambda: ops.masked_fill(t(A), t(A > 0), N), np.where(A > 0, N, A)),
                    (lambda: ops.masked_fill(t([2**53 + 1, 1]), t([False, True]), 0.5),
                     [2**53 + 1, 0])],
    "norm": [(lambda: ops.norm(t(B), 3.3), (B**3.3).sum() ** (1 / 3.3))],
    "one_hot": [(lambda: ops.one_hot(t([1]), 2, N, 0.3), np.array([[0.3, N]], np.float32))],
    "pad": [(lambda: ops.pad(t(A), (1, 0), value=N), np.r_[N, A])],
    "round": [(lambda: ops.round(t([0.123456789]), decimals=7), [0.1234568])],
    "select": [(lambda: ops.select(t(A > 0), t(A), N), np.where(A > 0, A, N))],
    "where": [(lambda: ops.where(t(A > 0), N, t(A)), np.where(A > 0, N, A))],
    "softplus": [(lambda: ops.softplus(t(A), N), softplus(N * A) / N),
                 (lambda: ops.softplus(t([0.1, 0.2]), 1, N), [softplus(np.float64(0.1)), 0.2])],
    "squareplus": [  # times the difference, the sum is N: below 0 the sum cancels
        (
            lambda: ops.squareplus(t(A), N),
            np.where(A < 0, N / (np.sqrt(A * A + N) - A), A + np.sqrt(A * A + N)) / 2,
        )
    ],
    "softshrink": [(lambda: ops.softshrink(t(A), N), np.sign(A) * np.maximum(np.abs(A) - N, 0))],
    "sum": [(lambda: t(A).sum(initial=N), A.sum() + N)],
    "threshold": [(lambda: ops.threshold(t(A), N, 0.3), np.where(A > N, A, 0.3))],
    "var": [(lambda: ops.var(t(A), ddof=1), A.var(ddof=1))],
    "std": [(lambda: ops.std(t(A), ddof=1), A.std(ddof=1))],
}  # fmt: skip

M = np.arange(4.0).reshape(2, 2) / 3
WHOLE = np.array([7, -7, 5])
BIG = 16777217  # no float32 either
TAKES_NUMBERS |= {
    "addcdiv": [(lambda: ops.addcdiv(t(A), t(A), t(B), N), A + N * (A / B))],
    "addcmul": [(lambda: ops.addcmul(t(A), t(A), t(B), N), A + N * (A * B))],
    "addbmm": [
        (lambda: ops.addbmm(t(M), t(M[None]), t(M[None]), beta=N, alpha=0.3), N * M + 0.3 * (M @ M))
    ],
    "baddbmm": [
        (
            lambda: ops.baddbmm(t(M[None]), t(M[None]), t(M[None]), beta=N, alpha=0.3),
            (N * M + 0.3 * (M @ M))[None],
        )
    ],
    "addmv": [
        (lambda: ops.addmv(t(M[0]), t(M), t(M[1]), beta=N, alpha=0.3), N * M[0] + 0.3 * (M @ M[1]))
    ],
    "addr": [
        (
            lambda: ops.addr(t(M), t(M[0]), t(M[1]), beta=N, alpha=0.3),
            N * M + 0.3 * np.outer(M[0], M[1]),
        )
    ],
    "copysign": [(lambda: ops.copysign(t(A), -N), np.copysign(A, -N))],
    "xdivy": [(lambda: ops.xdivy(t(A), N), A / N), (lambda: ops.xdivy(N, t(A)), N / A)],
    "float_power": [(lambda: ops.float_power(t(B), N), B**N), (lambda: ops.float_power(N, t(B)), N**B)],
    "pows": [(lambda: ops.pows(t(B), N), B**N)],
    "truncate_div": [(lambda: ops.truncate_div(t(A), N), np.trunc(A / N))],
    "truncate_mod": [(lambda: ops.truncate_mod(t(A), N), A - N * np.trunc(A / N))],
    "index_fill": [
        (lambda: ops.index_fill(t(B), 0, Tensor([1]), N), np.where(np.arange(5) == 1, N, B))
    ],
    "nan_to_num": [
        (lambda: ops.nan_to_num(t([np.nan, np.inf, -np.inf]), N, 0.3, -N), np.array([N, 0.3, -N]))
    ],
    "logit": [(lambda: ops.logit(t([0.0, 0.5]), N), np.array([math.log(N / (1 - N)), 0.0]))],
    "tensor_mod": [(lambda: ops.tensor_mod(t(A), N), np.mod(A, N))],
    "tensor_floordiv": [(lambda: ops.tensor_floordiv(t(A), N), np.floor_divide(A, N))],
    "tensor_lt": [(lambda: ops.tensor_lt(t([N]), N), np.array([False]))],
    "tensor_le": [(lambda: ops.tensor_le(t([N]), N), np.array([True]))],
    "tensor_gt": [(lambda: ops.tensor_gt(t([N]), N), np.array([False]))],
    "tensor_ge": [(lambda: ops.tensor_ge(t([N]), N), np.array([True]))],
    "bitwise_and": [(lambda: ops.bitwise_and(t(WHOLE), BIG), WHOLE & BIG)],
    "bitwise_or": [(lambda: ops.bitwise_or(t(WHOLE), BIG), WHOLE | BIG)],
    "bitwise_xor": [(lambda: ops.bitwise_xor(t(WHOLE), BIG), WHOLE ^ BIG)],
    "histc": [(lambda: ops.histc(t([N, 0.2, 0.3]), 2, N, 0.3), np.array([1, 2]))],
    "quantile": [(lambda: ops.quantile(t(A), 0.3), np.quantile(A, 0.3))],
}  # fmt: skip
#: The random ones draw float32 numbers; get_grad and the like take integers that are no elements.
WITHOUT_NUMBERS = set(
    """abs absolute acos acosh addn all any arccos arccosh arcsin arcsinh arctan arctanh argmax
    argmin argsort asin asinh atan atanh bernoulli bmm broadcast_to cast cat ceil chunk concat cos
    cosh count_nonzero cumsum depend diag diagonal dot dtype erf erfc exp expand_dims expm1 eye
    flatten flip floor gather gather_d gather_elements gather_nd gelu get_grad glu grad hardsigmoid
    hardswish hstack identity index_add index_select inner invert is_tensor isfinite isinf isnan jvp
    kl_div l1_loss log log10 log1p log2 log_softmax logical_not logsigmoid logsumexp masked_select
    matmul mean meshgrid mish mm movedim mse_loss narrow neg negative nonzero normal ones ones_like
    outer partial permute prelu print_ prod rand rand_like randint randint_like randn randn_like
    randperm range rank reciprocal reduce_sum relu relu6 repeat_elements repeat_interleave scan reshape
    roll rsqrt scatter_add scatter_nd scatter_update selu shape sigmoid sign silu sin sinh size
    slice softmax softmax_cross_entropy_with_logits softmin softsign sort
    sparse_softmax_cross_entropy_with_logits split sqrt square squeeze stack standard_normal
    stop_gradient strided_slice swapaxes swapdims swish t take tan tanh tanhshrink tensor_dot
    tensor_scatter_add tensor_scatter_elements tensor_scatter_update tile topk trace transpose tril
    triu trunc typeof unbind uniform unsqueeze unstack value_and_grad vjp vstack zeros zeros_like
    inv
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d
    adaptive_max_pool2d adaptive_max_pool3d add_flags aminmax approximate_equal atleast_1d
    atleast_2d atleast_3d avg_pool1d avg_pool2d avg_pool3d batch_dot batch_norm bincount
    bitwise_left_shift bitwise_not bitwise_right_shift block_diag bounding_box_decode
    bounding_box_encode broadcast_tensors bucketize cbrt check_valid choice_with_mask cholesky
    cholesky_inverse cholesky_solve column_stack cond conj conv1d conv2d conv3d corrcoef
    cosine_embedding_loss cov crop_and_resize cross ctc_loss cummax cummin cumprod
    custom_info_register deformable_conv2d deg2rad depth_to_space det diagflat diagonal_scatter diff digamma
    dsplit dstack eigh einsum erfinv exp2 fix flash_attention_score frac gaussian_nll_loss gcd
    ger grid_sample heaviside hinge_embedding_loss hsplit imag inplace_add inplace_sub
    inplace_update interpolate inverse iou is_complex is_floating_point isin isreal kron lcm
    lgamma list_len logaddexp logaddexp2 logcumsumexp logdet lrn make_list make_range make_tuple
    margin_ranking_loss matrix_diag matrix_power matrix_solve max_pool2d max_pool3d median
    mirror_pad mixed_precision_cast moveaxis multi_dot multi_margin_loss multilabel_margin_loss
    multilabel_soft_margin_loss multinomial mv nanmean nanmedian nanquantile nansum numel
    op_info_register pinv pixel_shuffle pixel_unshuffle poisson_nll_loss positive
    prim_attr_register qr rad2deg random_categorical ravel real reduce_max reduce_mean
    reduce_min reverse_sequence rms_norm rot90 row_stack scalar_cast scalar_to_array scatter
    scatter_max scatter_min
    scatter_nd_add scatter_nd_sub scatter_nd_update searchsorted select_scatter sequence_mask
    sgn shuffle signbit sinc slice_scatter slogdet soft_margin_loss space_to_depth std_mean svd
    tensor_exp tensor_scatter_sub tensor_solve tensor_split trapz tril_indices
    adjoint angle fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft
    ihfft2 ihfftn irfft irfft2 irfftn polar rfft rfft2 rfftfreq rfftn stft
    triplet_margin_loss triu_indices tuple_getitem tuple_len tuple_reversed tuple_setitem
    tuple_to_array derivative jacfwd jacrev jet linearize vmap
    type_as unique unique_consecutive unique_with_pad unsorted_segment_max
    unsorted_segment_min unsorted_segment_sum vander var_mean vecdot vector_norm view_as vsplit
    bessel_i0 bessel_i0e bessel_i1 bessel_i1e bessel_j0 bessel_j1 bessel_k0 bessel_k0e
    cosine_similarity dense fold fractional_max_pool2d fractional_max_pool3d inplace_index_add lp_pool1d
    lp_pool2d top_k unfold
    bessel_k1 bessel_k1e bessel_y0 bessel_y1 cdist igamma igammac isposinf matrix_exp
    max_unpool1d max_unpool2d max_unpool3d mvlgamma polygamma renorm scalar_add scalar_div
    scalar_eq scalar_floordiv scalar_ge scalar_gt scalar_le scalar_log scalar_lt scalar_max
    scalar_min scalar_mod scalar_mul scalar_ne scalar_pow scalar_sub scalar_uadd scalar_usub
    scatter_div scatter_mul scatter_nd_div scatter_nd_max scatter_nd_min scatter_nd_mul
    stop_gradient_ tensor_scatter_div tensor_scatter_max tensor_scatter_min
    tensor_scatter_mul zeta""".split()
)


def test_every_function_is_in_one_of_the_tables() -> None:
    rows = {row["function"] for row in _core.op_table()}
    functions = {n for n in ops.__all__ if inspect.isroutine(getattr(ops, n))}
    functions -= rows - set(TAKES_NUMBERS) - WITHOUT_NUMBERS  # those are tested below
    assert functions == set(TAKES_NUMBERS) | WITHOUT_NUMBERS
    assert not set(TAKES_NUMBERS) & WITHOUT_NUMBERS


@pytest.mark.parametrize(
    "name", [row["function"] for row in _core.op_table() if row["kind"] in ("binary", "compare")]
)
def test_a_number_beside_float64_is_one(name: str) -> None:
    """Each row of the op table, a new one too: the number is what a float64 tensor of it is."""
    function = getattr(ops, name)
    for got, expected in (
        (function(t(B), N), function(t(B), t(np.float64(N)))),
        (function(N, t(B)), function(t(np.float64(N)), t(B))),
    ):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got.asnumpy(), expected.asnumpy())


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("call", "expected"),
    [row for rows in TAKES_NUMBERS.values() for row in rows],
    ids=[f"{name}-{k}" for name, rows in TAKES_NUMBERS.items() for k in range(len(rows))],
)
def test_numbers_are_exact_beside_float64(call: Callable[[], Any], expected: Any) -> None:
    got = call()
    if isinstance(got, Tensor):
        assert got.dtype in (ms.float64, ms.bool_) or np.asarray(expected).dtype != np.float64
        got = got.asnumpy()
    np.testing.assert_allclose(got, expected, rtol=4e-16, atol=0)


# Tensors of numbers -------------------------------------------------------------------------------


def test_tensors_and_elements_of_float64() -> None:
    assert Tensor(0.1, ms.float64).item() == 0.1
    assert Tensor([1e300], ms.float64).item() == 1e300
    assert Tensor([16777217.0], ms.int64).item() == 16777217
    assert Tensor([0.5, 2**53 + 1], ms.int64).tolist() == [0, 2**53 + 1]
    assert Tensor([[0.1, 2], [True, 3.3]], ms.float64).tolist() == [[0.1, 2.0], [1.0, 3.3]]
    assert Tensor(2**64, ms.float64).item() == 2.0**64
    assert Tensor([Tensor(1), 0.5]).tolist() == [1.0, 0.5]
    x = Tensor(np.zeros(3))
    x[0] = 0.1
    assert x.tolist() == [0.1, 0.0, 0.0]
    x[:2] = [0.1, 0.2]
    assert x.tolist() == [0.1, 0.2, 0.0]
    x[x > 0.15] = 0.3
    assert x.tolist() == [0.1, 0.3, 0.0]
    assert (x == 0.1).tolist() == [True, False, False]
    assert (x == [0.1, 0.3, 1.0]).tolist() == [True, True, False]


def test_parameters_cotangents_and_initialisers() -> None:
    p = Parameter(Tensor(0.0, ms.float64))
    p.set_data(0.1)
    assert p.item() == 0.1
    assert p.clone(0.3).item() == 0.3
    assert ops.assign(p, 0.7).item() == 0.7
    made = ms.common.initializer.initializer(0.1, (2,), ms.float64)
    assert made.tolist() == [0.1, 0.1]
    gradient = ops.GradOperation(sens_param=True)(ops.sin)
    assert gradient(Tensor(0.0, ms.float64), 0.1).item() == 0.1
    assert Tensor(np.zeros(2)).copy_(0.1).tolist() == [0.1, 0.1]
    assert Tensor(np.zeros(2)).fill(0.1).tolist() == [0.1, 0.1]
    assert nn.LeakyReLU(0.1)(Tensor(-1.0, ms.float64)).item() == -0.1


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "pow"])
def test_lists_take_the_dtype_they_meet(name: str) -> None:
    numbers = B.tolist()
    for dtype in (np.float16, np.float32, np.float64):
        x = Tensor(np.abs(A).astype(dtype))
        got, expected = getattr(ops, name)(x, numbers), getattr(ops, name)(x, t(B.astype(dtype)))
        assert got.dtype == x.dtype
        np.testing.assert_array_equal(got.asnumpy(), expected.asnumpy())
    assert ops.add(Tensor([1, 2], ms.int32), [0.5, 0.25]).dtype == ms.float32
    assert ([1, 2] * Tensor([1, 2], ms.int32)).dtype == ms.int32


def nearest(value: Fraction, digits: int) -> Fraction:
    """The closest number of so many binary digits, ties to even."""
    exponent = 0
    while abs(value) * Fraction(2) ** exponent < 2 ** (digits - 1):
        exponent += 1
    while abs(value) * Fraction(2) ** exponent >= 2**digits:
        exponent -= 1
    return Fraction(round(value * Fraction(2) ** exponent)) / Fraction(2) ** exponent


DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
#: Just above and below the middle of two numbers of each dtype, where rounding twice goes wrong.
HARD = [
    s * (1 + 2.0**-k + d * 2.0**-45) for k in (8, 11, 24) for d in (-1, 0, 1) for s in (1, -3)
] + [s * (2**e + 2 ** (e - k) + d) for e, k in ((62, 8), (62, 24), (15, 11), (54, 8), (61, 53))
     for d in (-1, 0, 1) for s in (1, -1)]  # fmt: skip


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", DIGITS)
@pytest.mark.parametrize("value", HARD, ids=repr)
def test_numbers_are_rounded_once(name: str, value: float | int) -> None:
    dtype = getattr(ms, name)
    expected = float(nearest(Fraction(value), DIGITS[name]))
    if name == "float16" and abs(expected) > 65504:
        expected = math.copysign(math.inf, expected)
    zero = Tensor(np.zeros(1, np.float32)).astype(dtype)
    assert Tensor(value, dtype).asnumpy() == expected
    assert Tensor([value, 0.5], dtype).asnumpy()[0] == expected
    assert ops.full((1,), value, dtype=dtype).asnumpy() == expected
    assert (zero + value).asnumpy() == expected
    assert ops.add(zero, [value]).asnumpy() == expected


# Beside a 64-bit tensor, everywhere ---------------------------------------------------------------

F64, I64 = np.array([0.3, 1.25, 3.75]), np.array([2**53 + 1, 5, 7])
M64 = np.array([[0.3, 2.5, 3.75], [0.5, 4.5, 2.0], [1.0, 3.0, 9.5]])

#: What no dtype of another argument decides about: names, and what they do.
BY_ITSELF = {
    "each becomes a tensor by itself": "atleast_1d atleast_2d atleast_3d broadcast_arrays ix_ meshgrid",
    "gives its arguments back": "depend make_list make_tuple print_ tuple_setitem",
    "takes a shape alone from the other": "expand_as reshape_as view_as",
    "takes seeds, sizes or flags": (
        "array_split bernoulli choice_with_mask mvlgamma polygamma rand_like randn_like randint_like "
        "random_categorical ravel_multi_index shuffle sort split unique"
    ),
    "chooses among elements by a condition": "compress extract",
    "is an angle that others are compared with": "unwrap",
    "writes into a tensor": "init_data",
    "leaves what is no tensor to the other side": "__matmul__ __rmatmul__",
}
#: Calls in which only numbers and a condition meet: (name, places).
CONDITIONS = {("where", "xvv"), ("select", "xv"), ("select", "xvx"), ("select", "xvv"),
              ("select", "x choicelist")}  # fmt: skip


#: Calls in which the value is all the data, since the other arguments are conditions, places or fillings.
ALONE = {("full_like", "vx"), ("nan_to_num", "vx"),
         ("nanpercentile", "vx"), ("percentile", "vx"), ("quantile", "vx"), ("nanquantile", "vx"),
         ("trim_zeros", "vx")}  # fmt: skip


def public_functions() -> dict[str, Any]:
    found = {}
    for label, module in (("numpy", mnp), ("mint", mint), ("ops", ops)):
        for name in module.__all__:
            f = getattr(module, name)
            if callable(f) and not inspect.isclass(f):
                found[f"{label}.{name}"] = f
    ours = [n for n in dir(Tensor) if not n.startswith("_")]
    operators = (
        "add sub mul truediv floordiv mod pow matmul and or xor eq ne lt le gt ge divmod".split()
    )
    ours += [f"__{r}{o}__" for o in operators for r in ("", "r")]
    methods = {n: getattr(Tensor, n, None) for n in ours}
    found.update({f"Tensor.{n}": f for n, f in methods.items() if callable(f)})
    silent = {n for names in BY_ITSELF.values() for n in names.split()}
    return {n: f for n, f in found.items() if n.partition(".")[2] not in silent}


def forms(value: Any) -> list[tuple[Tensor, Any]]:
    """The tensor of a number or of a list, and other ways to write it."""
    kind = np.float64 if isinstance(value, float) else np.int64
    half = value * 0.5 if isinstance(value, float) else value // 2
    lists = [[value] * 3, [half, value]]
    pairs: list[tuple[Tensor, Any]] = [(t(kind(value)), value), (t(kind(value)), kind(value))]
    pairs += [(t(np.array(v, kind)), v) for v in lists]
    return [*pairs, (t(np.array(lists[0], kind)), np.array(lists[0], kind))]


def places(f: Any) -> list[str]:
    """Which arguments are the tensor, x, and which the value, v; behind a space v's name."""
    found = ["xv", "vx", "xxv", "xvx", "vxx", "xvv"]
    try:
        parameters = list(inspect.signature(f).parameters.values())[1:]
    except (ValueError, TypeError):
        return found
    named = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return found + [f"{'x' * k} {n}" for n in named for k in (1, 2, 3)]


def answers(f: Any, form: str, x: np.ndarray, value: Any) -> list[np.ndarray]:
    by_place, _, name = form.partition(" ")
    ms.set_seed(0)
    args = [t(x.copy()) if c == "x" else value for c in by_place]
    flat: list[Any] = [f(*args, **({name: value} if name else {}))]
    while any(isinstance(r, (list, tuple)) for r in flat):
        flat = [e for r in flat for e in (r if isinstance(r, (list, tuple)) else [r])]
    flat = [type(r) if inspect.isfunction(r) else r for r in flat]
    return [np.asarray(r.asnumpy()) if isinstance(r, Tensor) else np.asarray(r) for r in flat]


def alike(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(
        p.shape == q.shape and np.array_equal(p, q, equal_nan=p.dtype.kind in "fc")
        for p, q in zip(a, b, strict=True)
    )


REFUSED = (TypeError, ValueError, IndexError, OverflowError, RuntimeError, AttributeError, KeyError,
           AssertionError, MemoryError, NotImplementedError, ZeroDivisionError)  # fmt: skip


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of 2**53 digits, of losses that broadcast
@pytest.mark.one_in(48)
@pytest.mark.parametrize("name", public_functions())
def test_values_beside_64_bits_are_those_of_a_tensor(name: str) -> None:
    """A number, a list, a NumPy number and an array beside a tensor of float64 or int64 have the same
    result, to the last digit, as a tensor of them has; what takes no such value refuses it."""
    f, wrong, taken = public_functions()[name], [], set()
    for form in places(f):
        short = name.partition(".")[2]
        if form.endswith(" where") or (short, form) in CONDITIONS or (short, form[:2]) in ALONE:
            continue
        for x, value in ((F64, 0.3), (I64, 2**53 + 1), (M64, 0.3)):
            for tensor, other in forms(value):
                try:
                    expected = answers(f, form, x, tensor)
                    got = answers(f, form, x, other)
                except REFUSED:
                    continue
                taken.add(form)
                if not alike(expected, got):
                    wrong.append((form, x.dtype, other, expected, got))
    assert not wrong, wrong[0]


#: Functions of ops, mint and methods that a list with tensors is something to: places, ends of bins, elements
#: to find, a flag, a function's arguments.
TAKES_LISTS = {
    "hsplit", "vsplit", "tensor_split", "searchsorted", "bucketize", "isin", "unique_consecutive",
    "custom_info_register", "requires_grad_", "copy_", "type_as",
    "clamp", "clip", "clip_by_value", "clip_by_norm", "clip_by_global_norm",  # each tensor of the list
}  # fmt: skip


def test_a_pair_of_tensors_is_no_operand_of_a_function() -> None:
    """A pair of values and places would be taken for one tensor; MindSpore refuses it too. Operators take it
    as NumPy and MindSpore do."""
    x, pair, taking, asked = t(np.array([1.0, 2.0])), (t(1.0), t(2.0)), set(), 0
    for name, f in public_functions().items():
        space, _, short = name.rpartition(".")
        operator = short.startswith(("__", "scalar_"))
        if space not in ("ops", "mint", "Tensor") or operator or short in TAKES_LISTS:
            continue
        for args in ((x, pair), (pair, x)):
            asked += 1
            try:
                f(*args)
            except REFUSED:
                continue
            taking.add(name)
    assert asked > 1500
    assert taking == set()
    assert (x - pair).tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match=r"Sub: a tuple with tensors .*stack"):
        ops.sub(x, pair)


# Numbers that do not fit --------------------------------------------------------------------------

TOO_LARGE: list[tuple[Callable[[], Any], str]] = [
    (lambda: Tensor([2**31], ms.int32), "2147483648.*int32"),
    (lambda: Tensor(-(2**31) - 1, ms.int32), "-2147483649.*int32"),
    (lambda: Tensor([[1, 2], [3, 300]], ms.uint8), "300.*uint8"),
    (lambda: Tensor(-1, ms.uint8), "-1.*uint8"),
    (lambda: Tensor(3e9, ms.int32), "3000000000.0.*int32"),
    (lambda: Tensor([2.0**63], ms.int64), "int64"),
    (lambda: Tensor([math.nan], ms.int32), "nan.*int32"),
    (lambda: Tensor(math.inf, ms.int64), "inf.*int64"),
    (lambda: Tensor(2**64), "18446744073709551616.*uint64"),
    (lambda: Tensor(2**2000, ms.float64), "float64"),
    (lambda: Tensor(np.int64(300), ms.int8), "300.*int8"),
    (lambda: Tensor([1], ms.int8) + 300, "300.*int8"),
    (lambda: 300 * Tensor([1], ms.int8), "300.*int8"),
    (lambda: ops.add(Tensor([1], ms.int8), [300]), "300.*int8"),
    (lambda: Tensor([1], ms.uint8) - -1, "-1.*uint8"),
    (lambda: Tensor([1], ms.int64) + 2**63, "9223372036854775808.*int64"),
    (lambda: ops.cast(300, ms.int8), "300.*int8"),
    (lambda: ops.bitwise_and(Tensor([1], ms.int8), 300), "300.*int8"),
    (lambda: ops.arange(0, 2**40, 2**38, dtype=ms.int32), "824633720832.*int32"),
    (lambda: mint.linspace(0, 300, 3, dtype=ms.int8), "300.*int8"),
    (lambda: mnp.array([2**40]), "1099511627776.*int32"),
    (lambda: mnp.full((2,), 2**40), "1099511627776.*int32"),
    (lambda: mnp.full_like(Tensor([1], ms.int8), 300), "300.*int8"),
    (lambda: mnp.arange(0, 2**40, 2**38), "824633720832.*int32"),
    (lambda: mnp.linspace(0, 2**40, 3, dtype=ms.int32), "does not fit into int32"),
    (lambda: mnp.dot(Tensor([1], ms.int8), 300), "300.*int8"),
    (lambda: ops.full((2,), 2**31, dtype=ms.int32), "2147483648.*int32"),
    (lambda: ops.full((2,), math.nan, dtype=ms.int32), "nan.*int32"),
    (lambda: ops.full_like(Tensor([1], ms.uint8), 256), "256.*uint8"),
    (lambda: ops.masked_fill(Tensor([1], ms.int8), Tensor([True]), 128), "128.*int8"),
    (lambda: ops.where(Tensor([True]), Tensor([1], ms.int32), 2**31), "2147483648.*int32"),
    (lambda: ops.maximum(Tensor([1], ms.int32), 2**40), "1099511627776.*int32"),
    (lambda: Tensor([1], ms.uint8) // 256, "256.*uint8"),
    (lambda: Tensor([1], ms.uint8).__setitem__(0, 300), "300.*uint8"),
]


@pytest.mark.parametrize(("call", "message"), TOO_LARGE)
def test_what_does_not_fit_is_an_error(call: Callable[[], Any], message: str) -> None:
    """As in NumPy 2; MindSpore keeps the lowest bits."""
    with pytest.raises(OverflowError, match=f"{message}.*test_numbers.py"):
        call()


def test_what_just_fits() -> None:
    assert Tensor([2**31 - 1, -(2**31)], ms.int32).tolist() == [2**31 - 1, -(2**31)]
    assert Tensor([255.9, -0.9], ms.uint8).tolist() == [255, 0]
    assert Tensor([2**63 - 1, -(2**63)]).tolist() == [2**63 - 1, -(2**63)]
    assert Tensor([-(2.0**63)], ms.int64).tolist() == [-(2**63)]
    assert Tensor([2**63 + 1, 1]).tolist() == [2**63 + 1, 1]  # uint64, as in MindSpore
    assert Tensor(2**63, ms.uint64).item() == 2**63
    assert (Tensor([1], ms.uint64) + 2**63).tolist() == [2**63 + 1]
    assert (Tensor(np.float64([1])) + 2**70).item() == 1.0 + 2**70
    assert ops.full((1,), 2**70, dtype=ms.float64).item() == float(2**70)
    assert ops.full((1,), 127, dtype=ms.int8).tolist() == [127]
    assert Tensor([2, 0, 0.5, math.nan], ms.bool_).tolist() == [True, False, True, True]
    assert np.isinf(Tensor(1e300).asnumpy())


@pytest.mark.parametrize("number", [300, -1, 2**40, 44, 255, 256])
def test_comparisons_with_integers_are_exact(number: int) -> None:
    x = np.array([44, 1, 255], np.uint8)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        expected = getattr(np, name)(x.astype(np.int64), number)
        np.testing.assert_array_equal(getattr(ops, name)(Tensor(x), number).asnumpy(), expected)


# Integer division by zero -------------------------------------------------------------------------

I32 = Tensor([5, -5, 0], ms.int32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: I32 // 0,
        lambda: I32 % 0,
        lambda: 5 // Tensor([0, 2], ms.int32),
        lambda: I32 % Tensor([1, 2, 0], ms.int32),
        lambda: I32 // [1, 2, 0],
        lambda: ops.floor_div(I32, Tensor(0, ms.int64)),
        lambda: ops.fmod(I32, 0),
        lambda: ops.FloorMod()(I32, Tensor(0, ms.int32)),
        lambda: ops.div(I32, 0, rounding_mode="floor"),
        lambda: ops.inv(I32),
        lambda: ms.jit(lambda x: x // 0)(I32),
    ],
)
def test_integer_division_by_zero_is_an_error(call: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=r"division by zero.*test_numbers.py"):
        call()


def test_floats_divide_by_zero_as_numpy_does() -> None:
    x = Tensor([5.0, -5.0, 0.0])
    np.testing.assert_array_equal((x // 0).asnumpy(), [np.inf, -np.inf, np.nan])
    assert np.isnan((x % 0).asnumpy()).all()
    assert (I32 // 2).tolist() == [2, -3, 0]
    assert (I32 % Tensor([3], ms.int32)).tolist() == [2, 1, 0]


def test_the_inverse_of_integers_is_an_integer() -> None:
    """MindSpore's: 1 / x without the fraction, in the integers' dtype."""
    for dtype in (ms.int8, ms.int32, ms.int64):
        x = Tensor([1, 2, -1, -2, -128], dtype)
        for out in (ops.inv(x), ops.Inv()(x), x.inv()):
            assert out.dtype == dtype and out.tolist() == [1, 0, -1, 0, 0]
    assert ops.Inv()(Tensor([4.0])).tolist() == [0.25]
    assert ops.reciprocal(Tensor([4], ms.int32)).tolist() == [0.25]


def test_invert_is_bitwise() -> None:
    assert ops.invert(Tensor([1, -2], ms.int32)).tolist() == [-2, 1]
    assert ops.invert(Tensor([1, 2], ms.uint8)).tolist() == [254, 253]
    assert ops.invert(Tensor([True, False])).tolist() == [False, True]
    assert (~Tensor([1, 0], ms.int32)).tolist() == [False, True]  # as MindSpore's operator
    with pytest.raises(TypeError, match=r"invert.*integers.*Float32.*test_numbers.py"):
        ops.invert(Tensor([1.5]))


@pytest.mark.parametrize("dtype", [*DIGITS, "int32", "uint8", "complex64"])
def test_a_number_has_no_dimensions(dtype: str) -> None:
    kind = getattr(ms, dtype)
    for value in (1, 1.0, True, np.float32(1), np.array(1.0)):
        t = Tensor(value, kind)
        assert t.shape == () and isinstance(t.asnumpy(), np.ndarray) and t.asnumpy().shape == ()
    x = Tensor(np.zeros((2, 3)), kind)
    x[1, 2] = 1
    assert x.asnumpy().tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_the_sign_of_both_zeros_is_zero(dtype):
    x = np.array([-0.0, 0.0, -2.0, 3.0, np.nan, -np.inf] * 7, dtype)
    found = ops.sign(Tensor(x)).asnumpy()
    np.testing.assert_array_equal(found, np.sign(x))
    np.testing.assert_array_equal(np.signbit(found), np.signbit(np.sign(x)))
