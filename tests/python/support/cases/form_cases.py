"""The forms that names of one idea have, asked in both packages: primitives, methods of Tensor, mint's
functions, and other names of the same. agreement.py says how a case is written."""

from __future__ import annotations

from typing import Any

Case = tuple[str, list[Any]]


def forms(inputs: list[Any], names: str, form: str) -> list[Case]:
    """A case for each word of names, put into `form`."""
    return [(form.format(name), inputs) for name in names.split()]


def lines(inputs: list[Any], expressions: str) -> list[Case]:
    """A case for each line: an expression of x, or of x and y."""
    head = f"lambda {', '.join('xyz'[: len(inputs)])}: "
    return [(head + line.strip(), inputs) for line in expressions.strip().splitlines()]


UNIT, REAL = ["unit: 2 3"], ["normal: 2 3"]
TWO, WHOLE = ["normal: 2 3", "unit: 3"], ["int 9: 2 3", "int 5: 3"]

FORMS: list[Case] = [
    # Elementwise
    *forms(
        UNIT,
        "abs arctanh atanh ceil cos cosh erf erfc erfinv exp expm1 floor isfinite isinf log log1p "
        "nan_to_num neg negative reciprocal round rsqrt sigmoid sign sin sinc sinh sqrt tan tanh trunc real "
        "square ravel",
        "ms.mint.{}",
    ),
    *forms(
        UNIT,
        "abs acos arccos arcsin arctan arctanh asin asinh atan atanh ceil cos cosh erf erfc erfinv exp "
        "expm1 floor frac isfinite isinf log log10 log1p log2 nan_to_num neg negative reciprocal round "
        "rsqrt sigmoid sign sin sinc sinh sqrt tan tanh trunc absolute arcsinh conj deg2rad digamma "
        "hardshrink inv isposinf isneginf isreal lgamma logit positive rad2deg real sgn square",
        "lambda x: x.{}()",
    ),
    *forms(
        UNIT,
        "ACos Abs Asin Asinh Atan Atanh Ceil Cos Cosh Digamma Elu Erf Erfc Erfinv Exp Expm1 FastGeLU "
        "Flatten Floor GeLU HSigmoid HSwish Inv IsFinite IsInf IsNan L2Loss Lgamma Log Log1p LogSoftmax "
        "Logit Mish Neg NonZero OnesLike ReLU ReLU6 Real Reciprocal Rint Round Rsqrt SeLU Sigmoid Sign Sin "
        "Sinh Softplus Softsign Sqrt Square Tan Tanh Trunc ZerosLike",
        "ops.{}()",
    ),
    *forms(
        UNIT,
        "absolute arccos arcsin arcsinh arctan arctanh exp2 negative isneginf isreal real conj t tensor_exp",
        "ops.{}",
    ),
    *forms(["unit: 2 3"], "acosh arccosh", "lambda x: ops.{}(x + 1.0)"),
    *forms(["unit: 2 3"], "acosh arccosh", "lambda x: (x + 1.0).{}()"),
    ("lambda x: ops.Acosh()(x + 1.0)", UNIT),
    *forms(
        TWO,
        "add sub mul div pow eq ne ge gt le lt greater greater_equal less less_equal not_equal maximum "
        "minimum floor_divide remainder fmod xlogy divide",
        "ms.mint.{}",
    ),
    *forms(
        TWO,
        "add sub mul div pow atan2 eq ne ge gt le lt greater greater_equal less less_equal not_equal "
        "maximum minimum floor_divide remainder fmod logaddexp logaddexp2 xlogy arctan2 divide subtract "
        "multiply true_divide copysign heaviside hypot fmax xdivy float_power equal",
        "lambda x, y: x.{}(y)",
    ),
    *forms(
        TWO,
        "Add Atan2 Div DivNoNan Equal FloorDiv FloorMod Greater GreaterEqual Hypot Less LessEqual Maximum "
        "Minimum Mod Mul NotEqual Pow RealDiv SquaredDifference Sub TensorAdd TruncateDiv TruncateMod Xdivy "
        "Xlogy",
        "ops.{}()",
    ),
    *forms(
        TWO,
        "divide eq floor_divide ge gt le lt ne tensor_add tensor_div tensor_ge tensor_gt tensor_le "
        "tensor_lt tensor_mul tensor_sub isclose",
        "ops.{}",
    ),
    *forms(WHOLE, "bitwise_and gcd", "ms.mint.{}"),
    *forms(WHOLE, "bitwise_and bitwise_or bitwise_xor gcd lcm", "lambda x, y: x.{}(y)"),
    *forms(WHOLE, "BitwiseAnd BitwiseOr BitwiseXor Gcd Lcm", "ops.{}()"),
    *forms(WHOLE, "bitwise_left_shift bitwise_right_shift", "ops.{}"),
    *forms(WHOLE, "bitwise_left_shift bitwise_right_shift", "lambda x, y: x.{}(y)"),
    *lines(
        ["int 9: 2 3"],
        """
        ops.Invert()(x)
        ops.invert(x)
        x.invert()
        x.reshape(-1).bincount()
        ms.mint.logical_not(x > 3)
        x.bool()
        x.int()
        x.long()
        x.float()
        x.half()
        x.double()
        x.to(ms.float32)
        x.type(ms.float32)
        ops.Unique()(ops.reshape(x, (-1,)))
        ms.mint.unique_consecutive(x)
        x.unique_consecutive()
        """,
    ),
    *forms(
        ["normal: 2 3", "normal: 3"],
        "logical_and logical_or logical_xor",
        "lambda x, y: ms.mint.{}(x > 0, y > 0)",
    ),
    *forms(
        ["normal: 2 3", "normal: 3"],
        "logical_and logical_or logical_xor",
        "lambda x, y: ops.{}(x > 0, y > 0)",
    ),
    *forms(
        ["normal: 2 3", "normal: 3"],
        "LogicalAnd LogicalOr LogicalXor",
        "lambda x, y: ops.{}()(x > 0, y > 0)",
    ),
    *forms(
        ["normal: 2 3", "normal: 3"],
        "logical_and logical_or logical_xor",
        "lambda x, y: (x > 0).{}(y > 0)",
    ),
    ("lambda x: ops.LogicalNot()(x > 0)", REAL),
    # What is no tensor
    *lines(
        ["normal: 3 4"],
        """
        Tensor(x.dim())
        Tensor(x.numel())
        Tensor(x.nelement())
        Tensor(x.ndimension())
        Tensor(x.is_contiguous())
        Tensor(x.is_complex())
        Tensor(x.is_floating_point())
        Tensor(x.is_signed())
        Tensor(x.allclose(x))
        Tensor(ops.rank(x))
        Tensor(ops.shape(x))
        Tensor(ops.size(x))
        Tensor(ops.numel(x))
        Tensor(ops.Rank()(x))
        Tensor(ops.Shape()(x))
        Tensor(ops.Size()(x))
        Tensor(ops.is_complex(x))
        Tensor(ops.is_floating_point(x))
        """,
    ),
    # Reductions, scans, order
    *lines(
        ["normal: 3 4"],
        """
        ms.mint.all(x > 0, 1)
        ms.mint.any(x > 0, 1)
        ms.mint.amax(x, 1)
        ms.mint.amin(x, 0, True)
        ms.mint.cummax(x, 1)
        ms.mint.cumprod(x, 1)
        ms.mint.nansum(x, 1)
        ms.mint.prod(x, 1)
        ms.mint.softmax(x, 1)
        x.all()
        x.any(1)
        x.amax(1)
        x.amin(0, True)
        x.aminmax()
        x.argmin(1)
        x.argsort(1)
        x.argmin_with_value(1)
        x.count_nonzero()
        x.cummax(1)
        x.cummin(1)
        x.histc(4)
        x.nanmean()
        x.nansum(1)
        x.sum(1)
        x.cov()
        x.top_k(2)
        ops.ArgMaxWithValue(1)(x)
        ops.ArgMinWithValue(0, True)(x)
        ops.Argmin(1)(x)
        ops.CumSum()(x, 1)
        ops.ReduceAll()(x > 0, 1)
        ops.ReduceAny(True)(x > 0, 0)
        ops.ReduceMax(True)(x, 1)
        ops.ReduceMin()(x, 0)
        ops.ReduceProd()(x, 1)
        ops.Sort(1)(x)
        ops.TopK()(x, 2)
        ops.argsort(x, 1, True)
        ops.count_nonzero(x, 1)
        ops.nanmedian(x)
        """,
    ),
    # Movement
    *lines(
        ["normal: 3 4"],
        """
        ms.mint.broadcast_to(x, (2, 3, 4))
        ms.mint.chunk(x, 2, 1)
        ms.mint.concat((x, x), 1)
        ms.mint.diff(x)
        ms.mint.dstack((x, x))
        ms.mint.hstack((x, x))
        ms.mint.flatten(x)
        ms.mint.narrow(x, 1, 1, 2)
        ms.mint.reshape(x, (2, 6))
        ms.mint.swapaxes(x, 0, 1)
        ms.mint.t(x)
        ms.mint.tile(x, (2, 1))
        ms.mint.triu(x, 1)
        ms.mint.unsqueeze(x, 0)
        ms.mint.meshgrid(x[0], x[1])
        ms.mint.gather(x, 1, Tensor([[0, 2], [1, 1], [3, 0]]))
        ms.mint.scatter(x, 1, Tensor([[0], [1], [2]]), x[:, :1])
        ms.mint.clamp(x, -0.5, 0.5)
        ms.mint.isclose(x, x)
        ms.mint.searchsorted(Tensor([-1.0, 0.0, 1.0]), x)
        x.contiguous()
        x.copy()
        x.clamp(-0.5, 0.5)
        x.diagflat()
        x.expand_as(ops.stack((x, x)))
        x.gather(1, Tensor([[0, 2], [1, 1], [3, 0]]))
        x.gather_elements(1, Tensor([[0, 2], [1, 1], [3, 0]]))
        x.gather_nd(Tensor([[0, 1], [2, 3]]))
        x.hsplit(2)
        x.index_select(1, Tensor([2, 0]))
        x.movedim(0, 1)
        x.new_ones((2,))
        x.new_zeros((2,))
        x.repeat_interleave(2, 1)
        x.reshape_as(x)
        x.scatter(1, Tensor([[0], [1], [2]]), x[:, :1])
        x.select_scatter(x[0] * 2.0, 0, 1)
        x.slice_scatter(x[:2] * 2.0, 0, 1, 3)
        x.diagonal_scatter(x[0, :3] * 2.0)
        x.split(2)
        x.squeeze()
        x.swapdims(0, 1)
        x.t()
        x.take(Tensor([0, 5]))
        x.tril()
        x.type_as(Tensor([1], ms.int32))
        x.view_as(x)
        x.vsplit(3)
        x.fill(2.0)
        x.tolist()[0][0] * x
        x.reverse([0])
        x.soft_shrink()
        x.clip(-0.5, 0.5)
        ops.BroadcastTo((2, 3, 4))(x)
        ops.Cast()(x, ms.int32)
        ops.Concat(1)((x, x))
        ops.Diag()(x[0])
        ops.ExpandDims()(x, 0)
        ops.Gather()(x, Tensor([1, 0]), 0)
        ops.GatherD()(x, 1, Tensor([[0, 2], [1, 1], [3, 0]]))
        ops.GatherNd()(x, Tensor([[0, 1], [2, 3]]))
        ops.MaskedFill()(x, x > 0, Tensor(2.0))
        ops.MaskedSelect()(x, x > 0)
        ops.Meshgrid()((x[0], x[1]))
        ops.OneHot()(Tensor([0, 2], ms.int32), 3, Tensor(1.0), Tensor(0.0))
        ops.Pad(((1, 0), (0, 2)))(x)
        ops.Reshape()(x, (2, 6))
        ops.ReverseV2([1])(x)
        ops.Select()(x > 0, x, -x)
        ops.Slice()(x, (0, 1), (2, 2))
        ops.Split(1, 2)(x)
        ops.Squeeze()(x)
        ops.Stack(1)((x, x))
        ops.Tile()(x, (2, 1))
        ops.Transpose()(x, (1, 0))
        ops.Tril()(x)
        ops.Triu(1)(x)
        ops.Unstack()(x)
        ops.Unpack(1)(x)
        ops.Fill()(ms.float32, (2,), 3.0)
        ops.Ones()((2, 3), ms.float32)
        ops.Zeros()((2, 3), ms.float32)
        ops.Eye()(3, 2, ms.float32)
        ops.LinSpace()(Tensor(0.0), Tensor(1.0), 5)
        ops.Range()(Tensor(0), Tensor(5), Tensor(2))
        ops.ScatterNd()(Tensor([[0], [2]]), x[:2], (4, 4))
        ops.TensorScatterAdd()(x, Tensor([[0, 1]]), x[0, :1])
        ops.TensorScatterSub()(x, Tensor([[0, 1]]), x[0, :1])
        ops.TensorScatterUpdate()(x, Tensor([[0, 1]]), x[0, :1])
        ops.TensorScatterElements(1)(x, Tensor([[0], [1], [2]]), x[:, :1])
        ops.UnsortedSegmentSum()(x, Tensor([0, 1, 0]), 2)
        ops.UnsortedSegmentMax()(x, Tensor([0, 1, 0]), 2)
        ops.UnsortedSegmentMin()(x, Tensor([0, 1, 0]), 2)
        ops.InplaceUpdate((0, 1))(x, x[:2] * 2.0)
        ops.InplaceSub((0, 1))(x, x[:2] * 2.0)
        ops.ReverseSequence(1)(x, Tensor([1, 2, 3]))
        ops.Depend()(x, x)
        ops.AddN()([x, x])
        ops.addn([x, x])
        ops.atleast_1d(x)
        ops.atleast_2d(x)
        ops.atleast_3d(x)
        ops.cat((x, x), 1)
        ops.hstack((x, x))
        ops.vstack((x, x))
        ops.hsplit(x, 2)
        ops.vsplit(x, 3)
        ops.movedim(x, 0, 1)
        ops.swapdims(x, 0, 1)
        ops.unbind(x)
        ops.repeat_elements(x, 2, 1)
        ops.slice(x, (0, 1), (2, 2))
        ops.select(x > 0, x, -x)
        ops.scatter_nd(Tensor([[0], [2]]), x[:2], (4, 4))
        ops.tensor_scatter_elements(x, Tensor([[0], [1], [2]]), x[:, :1], 1)
        ops.view_as(x, x)
        ops.fill(ms.float32, (2,), 3.0)
        ops.range(Tensor(0), Tensor(5), Tensor(2))
        ops.clip(x, -0.5, 0.5)
        ops.clip_by_value(x, -0.5, 0.5)
        ops.clip_by_norm(x, 0.7)
        ops.clip_by_global_norm((x, x), 0.7)
        ops.glu(x)
        ops.threshold(x, 0.1, 2.0)
        ops.stop_gradient(x)
        ops.identity(x)
        ops.gather_d(x, 1, Tensor([[0, 2], [1, 1], [3, 0]]))
        ops.prelu(x, Tensor([0.3]))
        ops.scalar_to_tensor(2.0)
        ops.unique_with_pad(Tensor([1, 2, 1], ms.int32), 0)
        """,
    ),
    # Products
    *lines(
        ["normal: 3 3", "normal: 3 3"],
        """
        ms.mint.cross(x, y)
        ms.mint.bmm(x[None], y[None])
        ms.mint.lerp(x, y, 0.3)
        x.mm(y)
        x.dot(y)
        x[0].ger(y[0])
        x.inner(y)
        x.addmm(y, y)
        x.addmv(y, y[0])
        x.addr(y[0], y[1])
        x.baddbmm(y[None], y[None])
        x.addbmm(y[None], y[None])
        x.addcmul(y, y)
        x.cross(y)
        x.lerp(y, 0.3)
        x.inverse()
        x.det()
        x.matrix_determinant()
        x.slogdet()
        x.matrix_power(2)
        x.qr()
        x.cholesky_inverse()
        x.approximate_equal(y)
        x.isclose(y)
        ops.BatchMatMul()(x[None], y[None])
        ops.Ger()(x[0], y[0])
        ops.MatrixDeterminant()(x)
        ops.MatrixSolve()(x, y)
        ops.Lerp()(x, y, 0.3)
        ops.Cross()(x, y)
                ops.BiasAdd()(x, y[0])
        ops.IsClose()(x, y)
        ops.addmv(x[0], y, y[0])
        ops.bmm(x[None], y[None])
        ops.mm(x, y)
        ops.dot(x, y)
        ops.inner(x, y)
        ops.tensor_dot(x, y, 1)
        ops.approximate_equal(x, y)
        ops.ldexp(x, Tensor([1, 2, 3]))
        """,
    ),
    # Networks
    *lines(
        ["normal: 2 4 6 6"],
        """
        ms.mint.nn.functional.adaptive_max_pool2d(x, 2)
        ms.mint.nn.functional.interpolate(x, (3, 3), mode='nearest')
        ms.mint.nn.functional.pixel_shuffle(x, 2)
        ms.mint.nn.PixelShuffle(2)(x)
        ops.pixel_shuffle(x, 2)
        ops.lrn(x)
        ops.AvgPool3D(2, 2)(x[None])
        ops.MaxPool3D(2, 2)(x[None])
        ops.AdaptiveMaxPool2D((2, 2))(x)
        ops.ResizeNearestNeighborV2()(x, Tensor([3, 3], ms.int32))
        ops.mirror_pad(x[0, 0], Tensor([[1, 1], [1, 1]]), 'REFLECT')
        ops.adaptive_avg_pool1d(x[0], 2)
        ops.adaptive_max_pool1d(x[0], 2)
        ops.adaptive_avg_pool3d(x, (2, 2, 2))
        ops.adaptive_max_pool3d(x, (2, 2, 2))
        ops.avg_pool1d(x[0], 2, 2)
        ops.avg_pool3d(x[None], 2, 2)
        ops.max_pool3d(x[None], 2, 2)
        """,
    ),
    *forms(
        REAL,
        "Flatten Hardshrink Hardsigmoid Hardswish Identity ReLU SiLU Sigmoid Tanh",
        "lambda x: ms.mint.nn.{}()(x)",
    ),
    *forms(
        REAL,
        "sigmoid silu tanh",
        "ms.mint.nn.functional.{}",
    ),
    *forms(
        UNIT[:1] * 2, "SmoothL1Loss BCELoss BCEWithLogitsLoss", "lambda x, y: ms.mint.nn.{}()(x, y)"
    ),
    *forms(
        UNIT[:1] * 2,
        "binary_cross_entropy binary_cross_entropy_with_logits",
        "lambda x, y: ms.mint.nn.functional.{}(x, y)",
    ),
    *lines(
        ["unit: 2 3", "unit: 2 3"],
        """
        ops.KLDivLoss()(x, y)
        ops.SmoothL1Loss()(x, y)
        ops.SigmoidCrossEntropyWithLogits()(x, y)
        ops.SoftmaxCrossEntropyWithLogits()(x, y)
        ops.BCEWithLogitsLoss()(x, y, x, y)
        ops.BinaryCrossEntropy()(x, y, x)
        ops.binary_cross_entropy(x, y)
        ops.kl_div(x, y)
        ops.huber_loss(x, y)
        ops.gaussian_nll_loss(x, y, x)
        ops.multilabel_soft_margin_loss(x, y)
        ops.cosine_embedding_loss(x, y, Tensor([1, -1]))
        ops.margin_ranking_loss(x, y, x)
        ops.PReLU()(x, y[0, :1])
        ops.LayerNorm()(x, y[0], y[1])
        """,
    ),
    *lines(
        ["normal: 4 3", "int 3: 4"],
        """
        ms.mint.nn.functional.nll_loss(x, y)
        ops.SparseSoftmaxCrossEntropyWithLogits()(x, y)
        """,
    ),
]
