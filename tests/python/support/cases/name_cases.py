"""What names of ops, numpy, mint, Tensor and primitives are asked in both packages: agreement.py says how
a case is written. Rows that share their inputs share a line: (inputs, expressions)."""

from __future__ import annotations

from typing import Any

from form_cases import FORMS

Case = tuple[str, list[Any]]


def cases(inputs: list[Any], expressions: str, form: str = "{}") -> list[Case]:
    """A case for each line of expressions, put into `form`."""
    return [(form.format(e.strip()), inputs) for e in expressions.strip().splitlines()]


def named(inputs: list[Any], names: str, form: str) -> list[Case]:
    """A case for each word of names, put into `form`."""
    return [(form.format(name), inputs) for name in names.split()]


NUMPY: list[Case] = [
    *named(
        ["unit: 2 3"],
        "sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arctanh exp expm1 exp2 log log2 log10 "
        "log1p sqrt reciprocal ceil floor abs square negative sign trunc isnan isinf isfinite cbrt "
        "deg2rad rad2deg radians rint fix fabs positive isneginf isposinf",
        "ms.numpy.{}",
    ),
    *named(
        ["normal: 2 3", "unit: 3"],
        "add subtract multiply divide true_divide mod remainder fmod floor_divide maximum minimum arctan2 "
        "hypot logaddexp logaddexp2 copysign heaviside greater greater_equal less less_equal equal "
        "not_equal divmod",
        "ms.numpy.{}",
    ),
    *named(
        ["int 9: 2 3", "int 5: 3"],
        "add subtract multiply maximum minimum greater less equal bitwise_and bitwise_or bitwise_xor gcd lcm",
        "ms.numpy.{}",
    ),
    *named(
        ["normal: 3 4"],
        "sum mean max min amax amin std var ptp cumsum nansum nanmean nanmax nanmin nanstd nanvar argmax "
        "argmin trace diag diagonal tril triu flip flipud fliplr rot90 ravel transpose squeeze copy "
        "zeros_like ones_like average trapz diff ediff1d norm gradient sometrue count_nonzero corrcoef "
        "cov atleast_1d atleast_2d atleast_3d diagflat",
        "ms.numpy.{}",
    ),
    *cases(
        ["normal: 3 4"],
        """
        ms.numpy.sum(x, 0)
        ms.numpy.sum(x, axis=1, keepdims=True, initial=2.0)
        ms.numpy.mean(x, 1, True)
        ms.numpy.max(x, 1)
        ms.numpy.min(x, 0, True)
        ms.numpy.argmax(x, 1)
        ms.numpy.std(x, 0, 1)
        ms.numpy.var(x, 1, keepdims=True)
        ms.numpy.cumsum(x, 1)
        ms.numpy.cumprod(x, 0)
        ms.numpy.clip(x, -0.5, 0.5)
        ms.numpy.reshape(x, (2, -1))
        ms.numpy.expand_dims(x, 1)
        ms.numpy.swapaxes(x, 0, 1)
        ms.numpy.moveaxis(x, 0, -1)
        ms.numpy.rollaxis(x, 1)
        ms.numpy.roll(x, 2)
        ms.numpy.roll(x, 1, 0)
        ms.numpy.flip(x, 1)
        ms.numpy.rot90(x, 3)
        ms.numpy.tile(x, (2, 1))
        ms.numpy.repeat(x, 2)
        ms.numpy.repeat(x, 2, 1)
        ms.numpy.broadcast_to(x, (2, 3, 4))
        ms.numpy.split(x, 2, 1)
        ms.numpy.split(x, [1, 3], 1)
        ms.numpy.array_split(x, 3, 1)
        ms.numpy.hsplit(x, 2)
        ms.numpy.vsplit(x, 3)
        ms.numpy.stack([x, x], 1)
        ms.numpy.concatenate((x, x), 1)
        ms.numpy.vstack((x, x))
        ms.numpy.hstack((x, x))
        ms.numpy.dstack((x, x))
        ms.numpy.column_stack((x, x))
        ms.numpy.append(x, x, 0)
        ms.numpy.diag(x, 1)
        ms.numpy.tril(x, -1)
        ms.numpy.triu(x, 1)
        ms.numpy.pad(x, ((1, 0), (0, 2)))
        ms.numpy.pad(x, 1, constant_values=3)
        ms.numpy.pad(x, 2, mode='edge')
        ms.numpy.pad(x, 2, mode='reflect')
        ms.numpy.pad(x, 2, mode='symmetric')
        ms.numpy.pad(x, 2, mode='wrap')
        ms.numpy.norm(x, axis=1)
        ms.numpy.norm(x, 1, 0)
        ms.numpy.take(x, Tensor([0, 2], ms.int32), 1)
        ms.numpy.take(x, Tensor([0, 9, 20], ms.int32))
        ms.numpy.full_like(x, 3)
        ms.numpy.where(x > 0, x, 0.0)
        ms.numpy.interp(x, ms.numpy.array([-1.0, 0.0, 1.0]), ms.numpy.array([0.0, 2.0, 3.0]))
        ms.numpy.polyval(ms.numpy.array([1.0, 2.0, 3.0]), x)
        ms.numpy.vander(x[0], 3)
        ms.numpy.unwrap(4.0 * x)
        ms.numpy.apply_along_axis(lambda v: v.sum(), 0, x)
        ms.numpy.select([x > 0, x > -1], [x, 2.0 * x])
        ms.numpy.piecewise(x, [x < 0, x >= 0], [-1.0, 1.0])
        ms.numpy.isclose(x, x + 1e-9)
        ms.numpy.trapz(x, dx=0.5, axis=0)
        ms.numpy.diff(x, 2)
        ms.numpy.average(x, 0, ms.numpy.array([1.0, 2.0, 3.0]))
        ms.numpy.matrix_power(ms.numpy.dot(x, x.T), 2)
        """,
        "lambda x: {}",
    ),
    *cases(
        ["normal: 3 4", "normal: 4 2"],
        """
        ms.numpy.dot(x, y)
        ms.numpy.matmul(x, y)
        ms.numpy.tensordot(x, y, 1)
        ms.numpy.outer(x, y)
        ms.numpy.kron(x, y)
        ms.numpy.inner(x, y.T)
        ms.numpy.multi_dot((x, y, y.T))
        """,
        "lambda x, y: {}",
    ),
    *cases(["normal: 2 3", "normal: 2 3"], "ms.numpy.cross", "{}"),
    *cases(["normal: 6", "normal: 3"], "ms.numpy.convolve\nms.numpy.correlate", "{}"),
    *cases(
        [],
        """
        ms.numpy.zeros((2, 3))
        ms.numpy.ones((2,), ms.int32)
        ms.numpy.full((2,), 3)
        ms.numpy.full((2,), 2.5)
        ms.numpy.eye(3, 4, 1)
        ms.numpy.identity(2)
        ms.numpy.tri(3, 4, 1)
        ms.numpy.arange(5)
        ms.numpy.arange(0, 1, 0.25)
        ms.numpy.arange(7, 1, -2)
        ms.numpy.linspace(0, 1, 5)
        ms.numpy.linspace(0, 10, 4, endpoint=False)
        ms.numpy.linspace(0, 1, 3, retstep=True)
        ms.numpy.logspace(0, 2, 3)
        ms.numpy.geomspace(1, 8, 4)
        ms.numpy.array([1, 2])
        ms.numpy.array([[1.0, 2], [3, 4]])
        ms.numpy.asarray([True, False])
        ms.numpy.asfarray([1, 2])
        ms.numpy.meshgrid(ms.numpy.arange(2), ms.numpy.arange(3))
        ms.numpy.meshgrid(ms.numpy.arange(2), ms.numpy.arange(3), indexing='ij')
        ms.numpy.indices((2, 3))
        ms.numpy.mgrid[0:3, 1:3]
        ms.numpy.mgrid[0:1:5j]
        ms.numpy.ogrid[0:3, 1:3]
        ms.numpy.diag_indices(3)
        ms.numpy.tril_indices(3)
        ms.numpy.triu_indices(3, 1)
        ms.numpy.unravel_index(5, (2, 3))
        ms.numpy.bincount(ms.numpy.array([1, 3, 1]))
        ms.numpy.digitize(ms.numpy.array([0.5, 2.5]), ms.numpy.array([1.0, 2.0]))
        ms.numpy.searchsorted(ms.numpy.array([1.0, 2.0, 3.0]), 2.0)
        ms.numpy.isin(ms.numpy.array([1, 2, 3]), [2])
        ms.numpy.in1d(ms.numpy.array([1, 2, 3]), [2], True)
        ms.numpy.unique(ms.numpy.array([1, 2, 2, 3]))
        ms.numpy.setdiff1d(ms.numpy.array([1, 2, 3]), ms.numpy.array([2]))
        ms.numpy.intersect1d(ms.numpy.array([1, 2, 3]), ms.numpy.array([3, 2]))
        ms.numpy.argwhere(ms.numpy.array([0, 1, 2]))
        ms.numpy.histogram(ms.numpy.array([0.0, 1.0, 1.5, 3.0]), 3)
        ms.numpy.polyadd(ms.numpy.array([1.0, 2.0]), ms.numpy.array([3.0]))
        ms.numpy.polysub(ms.numpy.array([1.0, 2.0]), Tensor(3.0))
        ms.numpy.polymul(ms.numpy.array([1.0, 2.0]), ms.numpy.array([3.0, 1.0]))
        ms.numpy.polyder(ms.numpy.array([1.0, 2.0, 3.0]))
        ms.numpy.polyint(ms.numpy.array([1.0, 2.0, 3.0]))
        ms.numpy.choose(ms.numpy.array([0, 1, 0]), [ms.numpy.array([1, 2, 3]), ms.numpy.array([4, 5, 6])])
        ms.numpy.take_along_axis(ms.numpy.array([[1, 2], [3, 4]]), ms.numpy.array([[1], [0]]), 1)
        ms.numpy.array_equal(ms.numpy.array([1]), ms.numpy.array([1]))
        ms.numpy.array_equiv(ms.numpy.array([1, 1]), ms.numpy.array([1]))
        ms.numpy.bartlett(5)
        ms.numpy.blackman(5)
        ms.numpy.hamming(5)
        ms.numpy.hanning(5)
        ms.numpy.broadcast_arrays(ms.numpy.ones((2, 1)), ms.numpy.ones(3))
        """,
        "lambda: {}",
    ),
]

OPS: list[Case] = [
    *named(
        ["unit: 2 3"],
        "abs acos asin asinh atan atanh ceil cos cosh erf erfc exp expm1 floor log log10 log1p log2 neg "
        "reciprocal rsqrt sigmoid sign sin sinh sqrt square tan tanh trunc round relu isnan isinf "
        "isfinite logical_not zeros_like ones_like softsign mish silu gelu elu selu celu relu6 hardswish "
        "hardsigmoid logsigmoid tanhshrink softplus hardshrink softshrink hardtanh leaky_relu softmin "
        "reduce_sum all any amax amin std var",
        "ops.{}",
    ),
    *named(
        ["normal: 2 3", "unit: 3"],
        "add sub mul div floor_div fmod maximum minimum atan2 hypot xlogy equal not_equal less "
        "less_equal greater greater_equal remainder floor_mod "
        "true_divide subtract multiply arctan2",
        "ops.{}",
    ),
    *cases(
        ["normal: 3 4"],
        """
        ops.sum(x, 1)
        ops.mean(x, 1, True)
        ops.prod(x, 1)
        ops.max(x, 1)
        ops.min(x, 0)
        ops.argmax(x, 1)
        ops.argmin(x, 1)
        ops.std(x, 1, 1, True)
        ops.var(x, 0)
        ops.norm(x)
        ops.norm(x, dim=1)
        ops.logsumexp(x, 1)
        ops.cumsum(x, 1)
        ops.softmax(x, 0)
        ops.log_softmax(x, 1)
        ops.reshape(x, (2, 6))
        ops.transpose(x, (1, 0))
        ops.permute(x, (1, 0))
        ops.expand_dims(x, 1)
        ops.unsqueeze(x, 0)
        ops.squeeze(ops.expand_dims(x, 0), 0)
        ops.swapaxes(x, 0, 1)
        ops.flatten(ops.expand_dims(x, 0))
        ops.broadcast_to(x, (2, 3, 4))
        ops.tile(x, (2, 1))
        ops.repeat_interleave(x, 2, 1)
        ops.flip(x, (0,))
        ops.concat((x, x), 1)
        ops.stack((x, x), 1)
        ops.split(x, 2, 1)
        ops.chunk(x, 2, 1)
        ops.unstack(x, 1)
        ops.narrow(x, 1, 1, 2)
        ops.tril(x)
        ops.triu(x, 1)
        ops.diag(x[0])
        ops.diagonal(x)
        ops.trace(x)
        ops.pad(x, (1, 2))
        ops.gather(x, Tensor([0, 2], ms.int32), 1)
        ops.index_select(x, 1, Tensor([0, 2], ms.int32))
        ops.where(x > 0, x, -x)
        ops.masked_fill(x, x > 0, 2.0)
        ops.masked_select(x, x > 0)
        ops.clamp(x, -0.5, 0.5)
        ops.one_hot(Tensor([0, 2], ms.int32), 3, Tensor(1.0), Tensor(0.0))
        ops.sort(x, 1)
        ops.topk(x, 2)
        ops.nonzero(x)
        ops.matmul(x, x.T)
        ops.outer(x[0], x[1])
        ops.addmm(ops.ones((3, 3)), x, x.T)
        ops.cast(x * 3.0, ms.int32)
        ops.full_like(x, 2.0)
        ops.eye(3, 4, ms.float32)
        ops.arange(0, 6, 2)
        ops.linspace(0.0, 1.0, 5)
        ops.meshgrid(x[0], x[1])
        ops.strided_slice(x, (0, 1), (2, 4), (1, 2))
        ops.tensor_scatter_add(x, Tensor([[0, 0], [1, 1]], ms.int32), x[0, :2])
        ops.gather_nd(x, Tensor([[0, 0], [1, 1]], ms.int32))
        ops.cross_entropy(x, Tensor([0, 2, 1], ms.int32))
        ops.nll_loss(ops.log_softmax(x, 1), Tensor([0, 2, 1], ms.int32))
        ops.mse_loss(x, 2.0 * x)
        ops.l1_loss(x, 2.0 * x)
        ops.smooth_l1_loss(x, 3.0 * x)
        ops.binary_cross_entropy_with_logits(x, ops.sigmoid(x), ops.ones((3, 4)), ops.ones((3, 4)))
        ops.ReduceSum(True)(x, 1)
        ops.ReduceMean()(x, 0)
        ops.Argmax(1)(x)
        ops.Softmax(0)(x)
        ops.MatMul(transpose_b=True)(x, x)
        ops.L2Normalize(1)(x)
        ops.StridedSlice()(x, (0, 1), (2, 4), (1, 2))
        """,
        "lambda x: {}",
    ),
    *named(
        ["unit: 2 3"],
        "lgamma digamma erfinv sinc logit deg2rad rad2deg frac nan_to_num signbit positive sgn "
        "inv ravel reduce_mean reduce_max reduce_min",
        "ops.{}",
    ),
    *cases(
        ["normal: 3 4"],
        """
        ops.cumprod(x, 1)
        ops.cummax(x, 1)
        ops.cummin(x, 0)
        ops.logcumsumexp(x, 1)
        ops.diff(x)
        ops.trapz(x, dx=0.5)
        ops.nansum(x, 1)
        ops.nanmean(x, 0)
        ops.median(x, 1)
        ops.aminmax(x, axis=1)
        ops.var_mean(x, 1, 1)
        ops.std_mean(x, 0, 1)
        ops.cov(x)
        ops.rot90(x, 1, (0, 1))
        ops.diagflat(x[0])
        ops.tensor_split(x, 3, 1)
        ops.column_stack((x, x))
        ops.row_stack((x, x))
        ops.dstack((x, x))
        ops.vander(x[0], 3)
        ops.block_diag(x, x[0])
        ops.matrix_diag(x, Tensor(0, ms.int32), Tensor(-1, ms.int32), Tensor(-1, ms.int32), Tensor(0.0))
        ops.addr(x, x[:, 0], x[0])
        ops.mv(x, x[0])
        ops.vecdot(x, 2.0 * x)
        ops.vector_norm(x, 3, 1)
        ops.select_scatter(x, x[:, 0], 1, 2)
        ops.slice_scatter(x, x[:, :2], 1, 1, 3)
        ops.diagonal_scatter(x, x[:, 0])
        ops.index_fill(x, 1, Tensor([0, 2], ms.int32), 5.0)
        ops.unsorted_segment_sum(x, Tensor([0, 1, 0], ms.int32), 2)
        ops.unsorted_segment_max(x, Tensor([0, 1, 0], ms.int32), 2)
        ops.unsorted_segment_min(x, Tensor([0, 1, 0], ms.int32), 2)
        ops.scatter(x, 1, Tensor([[0], [1], [2]]), x[:, :1])
        ops.tensor_scatter_sub(x, Tensor([[0, 0], [1, 1]], ms.int32), x[0, :2])
        ops.reverse_sequence(x, Tensor([2, 3, 1], ms.int32), 1)
        ops.moveaxis(x, 0, 1)
        ops.bucketize(x, [-0.5, 0.5])
        ops.histc(x, 5, -1.0, 1.0)
        ops.searchsorted(Tensor([-1.0, 0.0, 1.0]), x)
        ops.matrix_power(ops.matmul(x, x.T), 2)
        ops.gather_elements(x, 1, Tensor([[0, 1], [1, 2], [3, 0]]))
        """,
        "lambda x: {}",
    ),
    *cases(
        ["normal: 2 3", "unit: 2 3", "unit: 2 3"],
        "ops.addcmul(x, y, z, 0.5)\nops.addcdiv(x, y, z, 0.5)\nops.lerp(x, y, z)",
        "lambda x, y, z: {}",
    ),
    *named(
        ["normal: 2 3", "unit: 2 3"],
        "logaddexp logaddexp2 copysign heaviside xdivy truncate_div truncate_mod float_power "
        "batch_dot tensor_floordiv tensor_mod pows",
        "ops.{}",
    ),
    *named(["int 9: 2 3", "int 5: 2 3"], "bitwise_and bitwise_or bitwise_xor gcd lcm", "ops.{}"),
    *named(["normal: 2 3", "normal: 2 3"], "kron cross", "ops.{}"),
    *cases(["normal: 4", "normal: 3"], "ops.ger", "{}"),
    *cases(
        ["normal: 2 3 4", "normal: 2 4 5"],
        "ops.batch_dot(x, y)\nops.addbmm(ops.ones((3, 5)), x, y)\nops.baddbmm(ops.ones((2, 3, 5)), x, y)",
        "lambda x, y: {}",
    ),
    *cases(
        ["normal: 3 3", "normal: 3 2"],
        """
        ops.inverse(x)
        ops.det(x)
        ops.slogdet(x)
        ops.logdet(ops.matmul(x, x.T))
        ops.cholesky(ops.matmul(x, x.T) + ops.eye(3, 3, ms.float32))
        ops.matrix_solve(x, y)
        ops.svd(x, compute_uv=False)
        ops.pinv(y)
        ops.cholesky_inverse(ops.cholesky(ops.matmul(x, x.T) + ops.eye(3, 3, ms.float32)))
        """,
        "lambda x, y: {}",
    ),
    *cases(
        ["normal: 1 2 5 6"],
        """
        ops.max_pool2d(x, 2)
        ops.max_pool2d(x, 3, 2, 1)
        ops.avg_pool2d(x, 2, 2)
        ops.avg_pool2d(x, 3, 2, 1)
        ops.adaptive_avg_pool2d(x, (2, 3))
        ops.adaptive_max_pool2d(x, (2, 3))
        ops.pixel_unshuffle(ops.tile(x, (1, 1, 2, 1)), 2)
        ops.interpolate(x, size=(3, 4), mode='bilinear')
        ops.MaxPool(2, 2)(x)
        ops.MaxPool(2, 2, 'same')(x)
        ops.AvgPool(2, 2)(x)
        ops.AvgPool(3, 2, 'same')(x)
        ops.MaxPoolWithArgmax(2, 2)(x)
        ops.AdaptiveAvgPool2D((2, 3))(x)
        ops.ResizeNearestNeighbor((3, 4))(x)
        ops.ResizeBilinearV2()(x, (3, 4))
        ops.ResizeBilinearV2(True)(x, (3, 4))
        ops.LRN()(x)
        ops.DepthToSpace(2)(ops.tile(x, (1, 2, 1, 1)))
        ops.SpaceToDepth(2)(ops.tile(x, (1, 1, 2, 1)))
        ops.Conv2D(3, 3)(x, ops.tile(x[:, :, :3, :3], (3, 1, 1, 1)))
        ops.Conv2D(2, 3, pad_mode='pad', pad=1, stride=2)(x, ops.tile(x[:, :, :3, :3], (2, 1, 1, 1)))
        """,
        "lambda x: {}",
    ),
    *cases(
        ["normal: 1 2 3 3", "unit: 1 2 2 2"],
        """
        ops.grid_sample(x, y * 2.4 - 1.2)
        ops.grid_sample(x, y * 2.4 - 1.2, 'nearest', 'border', True)
        ops.grid_sample(x, y * 4.0 - 2.0, 'bilinear', 'reflection', False)
        ops.grid_sample(x, y * 4.0 - 2.0, 'bilinear', 'zeros', True)
        """,
        "lambda x, y: {}",
    ),
    *cases(
        ["unit: 1 1 8 8"],
        """
        ops.ROIAlign(2, 2, 0.5, 2)(x, Tensor([[0, 1, 1, 9, 9]], ms.float32))
        ops.ROIAlign(2, 3, 0.5, 2, 0)(x, Tensor([[0, 1, 2, 12, 9]], ms.float32))
        """,
        "lambda x: {}",
    ),
    *cases(
        ["unit: 1 6 5 2", "unit: 1 4"],
        """
        ops.CropAndResize()(x, y * 0.9, Tensor([0], ms.int32), (3, 4))
        ops.CropAndResize('nearest', 0.5)(x, y * 1.2, Tensor([0], ms.int32), (3, 3))
        """,
        "lambda x, y: {}",
    ),
    *cases(
        ["unit: 3 4", "unit: 2 4"],
        """
        ops.IOU()(x * 9.0, y * 9.0)
        ops.IOU('iof')(x * 9.0, y * 9.0)
        ops.BoundingBoxEncode()(y + Tensor([0.0, 0.0, 5.0, 5.0]), y * 2.0 + Tensor([0.0, 0.0, 5.0, 5.0]))
        ops.BoundingBoxDecode(max_shape=(12, 14))(y + Tensor([0.0, 0.0, 5.0, 5.0]), y)
        ops.CheckValid()(y * 9.0, Tensor([8.0, 7.0, 1.0]))
        """,
        "lambda x, y: {}",
    ),
    *cases(
        ["normal: 2 3"],
        """
        ops.LpNorm(1)(x)
        ops.LpNorm((0, 1), p=3, keep_dims=True)(x)
        ops.CumProd(True, True)(x, 1)
        ops.MirrorPad('SYMMETRIC')(x, Tensor([[1, 1], [1, 2]]))
        ops.MirrorPad('REFLECT')(x, Tensor([[1, 1], [1, 2]]))
        ops.InplaceAdd((0, 1))(x, x)
        ops.Pack(1)((x, x))
        ops.Gelu()(x)
        ops.Eps()(x)
        ops.TensorShape()(x)
        ops.NLLLoss()(x, Tensor([0, 2], ms.int32), Tensor([1.0, 2.0, 3.0]))
        ops.MatrixInverse()(x[:, :2])
        ops.DiagPart()(x[:, :2])
        """,
        "lambda x: {}",
    ),
    *cases(
        [],
        """
        ops.tuple_to_array((1, 2, 3))
        ops.tuple_to_array((1.5, 2.0))
        ops.ScalarToTensor()(1.5, ms.int32)
        ops.unique(Tensor([3, 1, 3, 2], ms.int32))
        ops.unique_consecutive(Tensor([1, 1, 2, 1], ms.int32), True, True)
        ops.bincount(Tensor([1, 3, 1], ms.int32))
        ops.sequence_mask(Tensor([1, 3]), 4)
        ops.tril_indices(3, 3, dtype=ms.int32)
        ops.triu_indices(3, 4, 1, dtype=ms.int32)
        ops.NMSWithMask(0.5)(Tensor([[0, 0, 9, 9, 0.5], [1, 1, 10, 10, 0.9], [5, 5, 9, 9, 0.3]], ms.float32))
        """,
        "lambda: {}",
    ),
]

OPS += cases(
    ["normal: 6 2 5"],
    "ops.CTCLoss()(x, Tensor([[0, 0], [0, 1], [1, 0]], ms.int64), Tensor([1, 2, 3], ms.int32), "
    "Tensor([6, 6], ms.int32))",
    "lambda x: {}",
)

TENSOR: list[Case] = cases(
    ["normal: 3 4"],
    """
    x.abs()
    x.exp()
    x.sin()
    x.tanh()
    x.square()
    x.sum(1)
    x.mean(0)
    x.max(axis=1)
    x.min(axis=0)
    x.argmax(1)
    x.std(1)
    x.var(0)
    x.prod(1)
    x.cumsum(1)
    x.reshape(2, 6)
    x.view(2, 6)
    x.transpose(1, 0)
    x.permute(1, 0)
    x.swapaxes(0, 1)
    x.expand_dims(0)
    x.unsqueeze(1)
    x.flatten()
    x.ravel()
    x.tile((2, 1))
    x.split(2, 1)
    x.chunk(2, 1)
    x.unbind(0)
    x.narrow(1, 0, 2)
    x.flip((0,))
    x.tril()
    x.triu()
    x.diagonal()
    x.trace()
    x.astype(ms.float16)
    x.clip(-0.5, 0.5)
    x.masked_fill(x > 0, 0.0)
    x.masked_select(x > 0)
    x.where(x > 0, 0.0)
    x.matmul(x.T)
    x.mm(x.T)
    x.norm()
    x.softmax(1)
    x.logsumexp(1)
    x.sort(1)
    x.topk(2)
    x.nonzero()
    x.broadcast_to((2, 3, 4))
    x.isclose(x)
    x.sigmoid()
    x.argwhere()
    x.cumprod(1)
    x.ptp()
    x.select(1, 0)
    x.adjoint()
    x.flipud()
    x.fliplr()
    x.diff()
    x.logcumsumexp(1)
    x.median(1)
    x.rot90(1, (0, 1))
    x.addcmul(x, x, 0.5)
    x.index_fill(0, Tensor([1], ms.int32), 0.0)
    x.isneginf()
    x.tensor_split(2, 1)
    x.sum_to_size((1, 4))
    x.argmax_with_value(1)
    x.moveaxis(0, 1)
    x.signbit()
    x.short()
    x.byte()
    """,
    "lambda x: {}",
)

MINT: list[Case] = [
    *cases(
        ["normal: 2 3"],
        """
        ms.mint.add(x, x, alpha=2)
        ms.mint.sum(x, 1)
        ms.mint.flip(x, (0,))
        ms.mint.matmul(x, x.T)
        ms.mint.narrow(x, 1, 0, 2)
        ms.mint.select(x, 1, 0)
        ms.mint.cat([x, x], 1)
        ms.mint.zeros(2)
        ms.mint.ones((2, 3))
        ms.mint.max(x)
        ms.mint.max(x, 1)
        ms.mint.mean(x, 0)
        ms.mint.split(x, 1, 0)
        ms.mint.where(x > 0, x, -x)
        ms.mint.transpose(x, 0, 1)
        ms.mint.permute(x, (1, 0))
        ms.mint.chunk(x, 2)
        ms.mint.square(x)
        ms.mint.unbind(x)
        ms.mint.nonzero(x)
        ms.mint.masked_select(x, x > 0)
        ms.mint.nn.functional.relu(x)
        ms.mint.nn.functional.softmax(x, 1)
        ms.mint.nn.functional.linear(x, x)
        """,
        "lambda x: {}",
    ),
    ("ms.mint.nn.Linear(3, 2)", ["normal: 4 3"]),
]

COMPLEX: list[Case] = [
    *named(
        ["complex: 2 3"],
        "exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sqrt rsqrt square reciprocal "
        "abs neg conj real imag angle sign sigmoid log1p expm1 view_as_real isreal zeros_like ones_like "
        "fft ifft irfft hfft fft2 ifft2 irfft2 hfft2 fftn ifftn irfftn hfftn fftshift ifftshift "
        "ComplexAbs() Real() Imag() Conj() Angle() Abs() Exp()",
        "ops.{}",
    ),
    *named(["complex: 2 3", "complex: 3"], "add sub mul div pow equal not_equal", "ops.{}"),
    *named(["complex: 2 3", "normal: 3"], "add sub", "ops.{}"),
    *cases(
        ["complex: 2 3"],
        """
        x.sum()
        x.mean()
        x.sum(1)
        x.T
        x[0, 1]
        x[:, ::2]
        x.reshape(6)
        ops.concat((x, x), 1)
        ops.stack([x, x])
        ops.matmul(x, x.T)
        ops.gather(x, Tensor([1, 0]), 0)
        ops.flip(x, (0,))
        ops.cumsum(x, 0)
        ops.adjoint(x)
        ops.expand_dims(x, 0)
        ops.cast(x, ms.float32)
        ops.cast(x, ms.complex128)
        x.real()
        x.imag()
        x.conj()
        ops.fft(x, 5)
        ops.fft(x, 2, 0)
        ops.ifft(x, 4, norm='forward')
        ops.fft2(x, (3, 2), norm='ortho')
        ops.irfft(x, 3)
        ops.irfft(x, 4, norm='ortho')
        ops.irfftn(x, (2, 5))
        ops.hfft(x, 5, norm='forward')
        ops.hfftn(x, (3, 4), norm='ortho')
        ops.fftn(x, (4,))
        ops.ifftn(x, dim=(0,))
        ops.fftshift(x, 1)
        ops.FFTWithSize(1, False, False)(x)
        ops.FFTWithSize(2, True, False, 'ortho')(x)
        ops.FFTWithSize(2, False, False, 'forward')(x)
        ops.FFTWithSize(1, True, True)(x)
        ops.FFTWithSize(1, True, True, signal_sizes=(5,))(x)
        ops.FFTWithSize(1, True, True, onesided=False)(x)
        """,
        "lambda x: {}",
    ),
    *cases(
        ["normal: 3 5"],
        """
        ops.fft(x)
        ops.ifft(x, 4)
        ops.rfft(x)
        ops.rfft(x, 4, 0, 'ortho')
        ops.ihfft(x)
        ops.ihfft(x, 6, norm='forward')
        ops.fft2(x)
        ops.rfft2(x)
        ops.ihfft2(x)
        ops.fftn(x)
        ops.rfftn(x, (4, 4))
        ops.rfftn(x, dim=(1, 0))
        ops.ihfftn(x, dim=(0,))
        ops.irfft(x)
        ops.fftshift(x)
        ops.ifftshift(x, (0,))
        ops.cast(x, ms.complex64)
        ops.real(x)
        ops.conj(x)
        ops.polar(x, x)
        ops.Complex()(x, x * 2.0)
        ops.FFTWithSize(1, False, True)(x)
        ops.FFTWithSize(2, False, True)(x)
        ops.FFTWithSize(2, False, True, onesided=False)(x)
        ms.numpy.fft.rfft(x, axis=0)
        ms.numpy.fft.fft2(x)
        ops.fftfreq(5, 0.5)
        ops.rfftfreq(6)
        """,
        "lambda x: {}",
    ),
    *cases(
        ["normal: 2 16"],
        """
        ops.stft(x, 4)
        ops.stft(x, 4, 2, return_complex=True)
        ops.stft(x, 8, win_length=6, normalized=True, onesided=False)
        """,
        "lambda x: {}",
    ),
]

NAMES: list[Case] = list(
    {str(case): case for case in [*NUMPY, *OPS, *TENSOR, *MINT, *COMPLEX, *FORMS]}.values()
)

#: Cases whose first gradients MindSpore 2.10 gets wrong on its CPU (NaN, zeros, a flip's of the wrong
#: elements, a crash, those by labels and weights left out, by complex numbers conjugate): their values
#: alone are compared.
ONLY_VALUES = frozenset(
    """
ms.numpy.fliplr
ms.numpy.convolve
lambda x: ms.numpy.flip(x, 1)
lambda x: ms.numpy.rot90(x, 3)
lambda x: ms.numpy.interp(x, ms.numpy.array([-1.0, 0.0, 1.0]), ms.numpy.array([0.0, 2.0, 3.0]))
lambda x: ms.numpy.select([x > 0, x > -1], [x, 2.0 * x])
lambda x: ops.InplaceAdd((0, 1))(x, x)
lambda x, y: ops.IOU()(x * 9.0, y * 9.0)
lambda x, y: ops.IOU('iof')(x * 9.0, y * 9.0)
lambda x: ops.ROIAlign(2, 3, 0.5, 2, 0)(x, Tensor([[0, 1, 2, 12, 9]], ms.float32))
lambda x, y: ops.CropAndResize('nearest', 0.5)(x, y * 1.2, Tensor([0], ms.int32), (3, 3))
ops.abs
ops.Abs()
ops.sign
ops.div
lambda x: ops.irfftn(x, (2, 5))
lambda x: ops.ihfft(x)
lambda x: ops.ihfft(x, 6, norm='forward')
lambda x: ops.ihfft2(x)
lambda x: ops.ihfftn(x, dim=(0,))
lambda x: ops.real(x)
ms.mint.real
lambda x: x.real()
ops.Real()
ops.real
lambda x: ops.polar(x, x)
ops.Mod()
lambda x: ops.InplaceUpdate((0, 1))(x, x[:2] * 2.0)
lambda x: ops.InplaceSub((0, 1))(x, x[:2] * 2.0)
lambda x, y: x.cholesky_inverse()
lambda x, y: ops.KLDivLoss()(x, y)
lambda x, y: ops.kl_div(x, y)
lambda x, y: ops.SigmoidCrossEntropyWithLogits()(x, y)
lambda x, y: ops.SoftmaxCrossEntropyWithLogits()(x, y)
lambda x, y: ops.BCEWithLogitsLoss()(x, y, x, y)
lambda x, y: ops.BinaryCrossEntropy()(x, y, x)
lambda x, y: ops.LayerNorm()(x, y[0], y[1])
lambda x: ops.hfftn(x, (3, 4), norm='ortho')
""".strip().splitlines()
) | {OPS[-1][0]}  # CTCLoss's second output is a gradient, whose own derivative MindSpore leaves out
