"""Primitives that are made when they are first asked for, each a function of its inputs by position and of
its attributes by keyword."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.base import arguments
from gradcell.derivatives.transform import vjp
from gradcell.ops.arrays import arrangement, creation, indexing, scatters, shaping
from gradcell.ops.control import composition
from gradcell.ops.elements import activations, complex_numbers, composed, gammas
from gradcell.ops.matrices import factorisations, fourier, linear_algebra
from gradcell.ops.matrices.norms import renorm, vector_norm
from gradcell.ops.networks import boxes, interpolation, losses, normalization, pooling
from gradcell.ops.primitive import Primitive
from gradcell.ops.primitives import custom, scalars, sequences, sparse_places, steps, windowed
from gradcell.ops.primitives.rows import REQUIRED, Row, primitive, row
from gradcell.ops.random import draws
from gradcell.ops.reductions import reductions, scans


def pulled(function: Callable[[Tensor], Tensor], shape: Sequence[int], gradient: Tensor) -> Tensor:
    """The gradient by the argument, of this shape, of a function that is linear in it."""
    return vjp(function, ops.zeros(tuple(shape), gradient.dtype))[1](gradient)[0]


def slope(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The derivative of an elementwise function."""
    out, back = vjp(function, x)
    return back(ops.ones_like(out))[0]


def _stft(
    x: Any, window: Any, *, n_fft: Any, hop_length: Any, win_length: Any, normalized: Any,
    onesided: Any, return_complex: Any,
) -> Tensor:  # fmt: skip
    """The Fourier transforms of windows of a signal, without padding; see ops.stft."""
    return fourier.stft(
        x, n_fft, hop_length, win_length, window, False, "REFLECT", normalized, onesided,
        return_complex,
    )  # fmt: skip


def _diagonal(x: Any) -> Tensor:
    """The elements on the diagonal of the first two dimensions, a copy."""
    return ops.diagonal(x).copy()


def _einsum(x: Any, *, equation: str) -> Tensor:
    """The sums of products that an equation says, of a tuple of tensors; see ops.einsum."""
    return linear_algebra.einsum(equation, *x)


def _cross(input: Any, other: Any, *, dim: int) -> Tensor:
    """The cross product of vectors along dim; -65530: along the first dimension of size 3."""
    return linear_algebra.cross(input, other, None if dim == -65530 else dim)


def _choice_with_mask(input_x: Any, *, count: int, seed: int, seed2: int) -> Any:
    """The places of count true elements drawn at random; see ops.choice_with_mask. seed2: the seed
    where seed is 0."""
    return draws.choice_with_mask(input_x, count, seed or seed2)


def _multinomial(x: Any, num_samples: Any, *, seed: int, seed2: int, dtype: Any) -> Tensor:
    """Indices drawn by the weights in a vector x, or in each row of a matrix.

    The result, [..., num_samples] in dtype, may have an index more than once. seed2: the seed where
    seed is 0. Raises ValueError for weights that are negative, not finite or all zero.
    """
    return ops.cast(draws.multinomial(x, num_samples, True, seed or seed2), dtype)


def _shuffle(x: Any, *, seed: int, seed2: int) -> Tensor:
    """x with its rows in random order. seed2: the seed where seed is 0."""
    return draws.shuffle(x, seed or seed2)


def _equal_count(x: Any, y: Any) -> Tensor:
    """The number of elements that are equal in x and y, as a tensor [1] in the dtype of x."""
    dtype = arguments.tensor(x, "EqualCount", "x").dtype
    return ops.reduce_sum(ops.cast(ops.equal(x, y), dtype)).reshape(1)


def _trace(
    input: Any, offset: int = 0, axis1: int = 1, axis2: int = 0, dtype: Any = None
) -> Tensor:
    """The sum of a diagonal; see ops.trace. dtype: what is added up in, None: that of input."""
    return ops.trace(input if dtype is None else ops.cast(input, dtype), offset, axis1, axis2)


def _softplus_gradient(gradients: Any, features: Any) -> Tensor:
    """The gradient of softplus by features: gradients times their logistic function."""
    return gradients * ops.sigmoid(features)  # type: ignore[no-any-return]


def _strided_slice_gradient(
    dy: Any, shapex: Any, begin: Any, end: Any, strides: Any, **masks: int
) -> Tensor:
    """The gradient of StridedSlice by its input: dy among zeros of shape shapex."""
    return pulled(lambda x: ops.StridedSlice(**masks)(x, begin, end, strides), shapex, dy)


def _log_softmax_gradient(logits: Any, grad: Any, *, axis: int) -> Tensor:
    """The gradient of log_softmax by its input; logits: its result."""
    return grad - ops.exp(logits) * ops.ReduceSum(True)(grad, axis)  # type: ignore[no-any-return]


def _softmax_gradient(dout: Any, out: Any, dim: int = -1) -> Tensor:
    """The gradient of softmax by its input; out: its result."""
    return out * (dout - ops.ReduceSum(True)(dout * out, dim))  # type: ignore[no-any-return]


def _resized_gradient(grads: Any, image: Any, **options: Any) -> Tensor:
    """The gradient of a resized image by the image, or by one of a size (height, width)."""
    dims = image.shape if isinstance(image, Tensor) else (*grads.shape[:2], *image)
    return pulled(lambda x: windowed.resized(x, grads.shape[2:], **options), dims, grads)


def _upsampled_gradient(
    dy: Any, input_size: Any, output_size: Any = None, scales: Any = None,
    align_corners: bool = False, *, mode: str,
) -> Tensor:  # fmt: skip
    """The gradient of interpolate by its input, of shape input_size."""
    corners = None if mode == "nearest" else align_corners
    how = output_size, scales, mode, corners
    return pulled(lambda x: interpolation.interpolate(x, *how), input_size, dy)


def _triangular_solution(matrix: Any, rhs: Any, *, lower: bool, adjoint: bool) -> Tensor:
    """The solution of triangular systems; see scipy.linalg.solve_triangular. lower: whether the matrix is a
    lower triangle. adjoint: whether the system is of its adjoint."""
    part = ops.tril(matrix) if lower else ops.triu(matrix)
    turned = adjoint == lower
    return factorisations.triangular_solution(part if lower else ops.adjoint(part), rhs, turned)


def _uniform_int(shape: Any, minval: Any, maxval: Any, *, seed: int, seed2: int) -> Tensor:
    """Integers drawn between minval and maxval, int32. seed2: the seed where seed is 0."""
    return draws.uniform(shape, minval, maxval, seed or seed2 or None, _core.int32)


def _same(input: Any) -> Tensor:
    """The argument: shapes of any size are taken anyway."""
    return arguments.tensor(input, "ConvertToDynamic")


def _roi_align_gradient(dy: Any, rois: Any, xdiff_shape: Any, **attributes: Any) -> Tensor:
    """The gradient of roi_align by its features, of shape xdiff_shape."""
    return pulled(lambda x: boxes.roi_align(x, rois, **attributes), xdiff_shape, dy)


def _igamma_gradient(a: Any, x: Any) -> Tensor:
    """The derivative of the regularised lower incomplete gamma function by a, elementwise."""
    return slope(lambda t: gammas.igamma(t, x), a)


def _tensor_of(input_tuple: Any, dtype: Any = None) -> Tensor:
    """A tensor of a tuple of numbers, in dtype if that is given."""
    return Tensor(input_tuple, dtype)


def _amsgrad(
    var: Any, m: Any, v: Any, vhat: Any, beta1_power: Any, beta2_power: Any, lr: Any, grad: Any, *,
    beta1: float, beta2: float, epsilon: float,
) -> Any:  # fmt: skip
    """A step of Adam with AMSGrad; see steps.amsgrad_step."""
    return steps.amsgrad_step(
        var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad
    )


_POOL: dict[str, Any] = {"kernel_size": 1, "strides": 1, "pad_mode": "valid", "data_format": "NCHW"}
_CONV: dict[str, Any] = {
    "mode": 1, "pad_mode": "valid", "pad": 0, "stride": 1, "dilation": 1, "group": 1,
}  # fmt: skip
_BACK: dict[str, Any] = {
    "out_channel": REQUIRED, "kernel_size": REQUIRED, "pad_mode": "valid", "pad": 0,
    "pad_list": None, "mode": 1, "stride": 1, "dilation": 1, "group": 1, "data_format": "NCHW",
}  # fmt: skip

ROWS: dict[str, Row] = {
    "MaxPool": row(windowed.pooled, fixed={"owner": "MaxPool", "rank": 2, "mean": False}, **_POOL),
    "AvgPool": row(windowed.pooled, fixed={"owner": "AvgPool", "rank": 2, "mean": True}, **_POOL),
    "MaxPool3D": row(windowed.pooled, fixed={"owner": "MaxPool3D", "rank": 3, "mean": False},
        named={"pad_list": "padding"}, ignored="data_format", kernel_size=1, strides=1,
        pad_mode="valid", pad_list=0, ceil_mode=None, data_format="NCDHW"),
    "AvgPool3D": row(windowed.pooled, fixed={"owner": "AvgPool3D", "rank": 3, "mean": True},
        named={"pad": "padding", "count_include_pad": "count_padding", "divisor_override": "divisor"},
        ignored="data_format", kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False,
        count_include_pad=True, divisor_override=0, data_format="NCDHW"),
    "MaxPoolWithArgmax": row(windowed.max_pool_with_argmax, **_POOL),
    "AdaptiveAvgPool2D": row(pooling.adaptive_avg_pool2d, "x", output_size=REQUIRED),
    "AdaptiveMaxPool2D": row(pooling.adaptive_max_pool2d, fixed={"return_indices": True},
        output_size=REQUIRED),
    "Conv2D": row(windowed.convolved, fixed={"rank": 2}, out_channel=REQUIRED, kernel_size=REQUIRED,
        **_CONV, data_format="NCHW"),
    "Conv3D": row(windowed.convolved, fixed={"rank": 3}, out_channel=REQUIRED, kernel_size=REQUIRED,
        **_CONV, data_format="NCDHW"),
    "Conv2DTranspose": row(windowed.convolved_back, **_BACK),
    "Conv2DBackpropInput": row(windowed.convolved_back, **_BACK),
    "ResizeNearestNeighbor": row(windowed.resized, "input_x", fixed={"kind": "nearest"}, size=REQUIRED,
        align_corners=False, half_pixel_centers=False),
    "ResizeBilinear": row(windowed.resized, "input_x", fixed={"kind": "linear"}, size=REQUIRED,
        align_corners=False, half_pixel_centers=False),
    "ResizeBilinearV2": row(windowed.resized, "image size", fixed={"kind": "linear"},
        align_corners=False, half_pixel_centers=False),
    "ResizeNearestNeighborV2": row(windowed.resized, "image size", fixed={"kind": "nearest"},
        align_corners=False, half_pixel_centers=False),
    "IOU": row(boxes.iou, mode="iou"),
    "BoundingBoxEncode": row(boxes.bounding_box_encode, means=(0.0,) * 4, stds=(1.0,) * 4),
    "BoundingBoxDecode": row(boxes.bounding_box_decode, max_shape=REQUIRED, means=(0.0,) * 4,
        stds=(1.0,) * 4, wh_ratio_clip=0.016),
    "CheckValid": row(boxes.check_valid),
    "NMSWithMask": row(boxes.nms_with_mask, iou_threshold=0.5),
    "ROIAlign": row(boxes.roi_align, pooled_height=REQUIRED, pooled_width=REQUIRED,
        spatial_scale=REQUIRED, sample_num=2, roi_end_mode=1),
    "CropAndResize": row(boxes.crop_and_resize, "x boxes_ box_indices crop_size", method="bilinear",
        extrapolation_value=0.0),
    "DepthToSpace": row(boxes.depth_to_space, block_size=REQUIRED),
    "SpaceToDepth": row(boxes.space_to_depth, block_size=REQUIRED),
    "LRN": row(normalization.lrn, depth_radius=5, bias=1.0, alpha=1.0, beta=0.5,
        norm_region="ACROSS_CHANNELS"),
    "MirrorPad": row(arrangement.mirror_pad, mode="REFLECT"),
    "ScalarToTensor": row(creation.scalar_to_tensor, "x dtype"),
    "TupleToArray": row(scalars.tuple_to_array),
    "ScalarToArray": row(scalars.scalar_to_array),
    "TensorShape": row(scalars._tensor_shape, "input_x"),
    "Eps": row(composed.eps),
    "FloatStatus": row(reductions.float_status),
    "Real": row(complex_numbers.real),
    "Imag": row(complex_numbers.imag),
    "Conj": row(complex_numbers.conj),
    "Angle": row(complex_numbers.angle),
    "ComplexAbs": row(complex_numbers.complex_abs, "input"),
    "Complex": row(complex_numbers.complex_of),
    "Polar": row(complex_numbers.polar),
    "FFTWithSize": row(fourier.with_size, signal_ndim=REQUIRED, inverse=REQUIRED, real=REQUIRED,
        norm="backward", onesided=True, signal_sizes=()),
    "STFT": row(_stft, n_fft=REQUIRED, hop_length=REQUIRED, win_length=REQUIRED, normalized=REQUIRED,
        onesided=REQUIRED, return_complex=REQUIRED),
    "ScalarCast": row(scalars.scalar_cast),
    "UniformInt": row(_uniform_int, seed=0, seed2=0),
    "MatrixTriangularSolve": row(_triangular_solution, lower=True, adjoint=False),
    "ConvertToDynamic": row(_same, ignored="is_dynamic_rank", is_dynamic_rank=False),
    "LogSoftmaxGrad": row(_log_softmax_gradient, axis=-1),
    "SoftmaxBackward": row(_softmax_gradient),
    **{
        f"Resize{name}Grad": row(_resized_gradient, fixed={"kind": kind}, align_corners=False,
            half_pixel_centers=False)
        for name, kind in (("Bilinear", "linear"), ("NearestNeighbor", "nearest"))
    },
    **{
        f"Upsample{mode.title()}{rank}DGrad": row(_upsampled_gradient, fixed={"mode": mode})
        for mode, rank in (("nearest", 1), ("nearest", 2), ("nearest", 3), ("linear", 1),
            ("bilinear", 2), ("bicubic", 2))
    },
    "UpsampleTrilinear3DGrad": row(_upsampled_gradient, fixed={"mode": "trilinear"},
        align_corners=False),
    "ControlDepend": row(composition.depend, ignored="depend_mode", depend_mode=0),
    "Inverse": row(factorisations.inverse, "x"),
    "MatrixInverse": row(factorisations.inverse, "x", ignored="adjoint", adjoint=False),
    "MatrixDeterminant": row(factorisations.det),
    "MatrixSolve": row(factorisations.matrix_solve, adjoint=False),
    "Cholesky": row(factorisations.cholesky, upper=False),
    "Svd": row(factorisations.svd, full_matrices=False, compute_uv=True),
    "DiagPart": row(_diagonal),
    "Einsum": row(_einsum, equation=REQUIRED),
    "Cross": row(_cross, dim=-65530),
    "LpNorm": row(vector_norm, named={"p": "ord", "keep_dims": "keepdims"}, ignored="epsilon",
        axis=REQUIRED, p=2, keep_dims=False, epsilon=1e-12),
    "GatherV2": row(indexing.gather, "x indices axis"),
    "Gelu": row(activations.gelu, "x", fixed={"approximate": "tanh"}),
    "Pack": row(shaping.stack, "xs", axis=0),
    "Unpack": row(shaping.unstack, "x", ignored="num", axis=0, num=None),
    "Unique": row(ops.unique, "x"),
    "Lgamma": row(ops.lgamma, "x"),
    "Digamma": row(ops.digamma, "x"),
    "Cbrt": row(ops.cbrt),
    "BitwiseAnd": row(ops.bitwise_and, "x y"),
    "BitwiseOr": row(ops.bitwise_or, "x y"),
    "BitwiseXor": row(ops.bitwise_xor, "x y"),
    "Xdivy": row(ops.xdivy),
    "TruncateDiv": row(ops.truncate_div),
    "TruncateMod": row(ops.truncate_mod),
    "Gcd": row(ops.gcd),
    "Lcm": row(ops.lcm, "x y"),
    "ReverseSequence": row(arrangement.reverse_sequence, seq_dim=REQUIRED, batch_dim=0),
    "ScatterNdUpdate": row(scatters.scatter_nd_update, ignored="use_locking", use_locking=True),
    "ScatterNdAdd": row(scatters.scatter_nd_add, ignored="use_locking", use_locking=False),
    "ScatterNdSub": row(scatters.scatter_nd_sub, ignored="use_locking", use_locking=False),
    "ScatterMax": row(ops.scatter_max, ignored="use_locking", use_locking=False),
    "ScatterMin": row(ops.scatter_min, ignored="use_locking", use_locking=False),
    "TensorScatterSub": row(scatters.tensor_scatter_sub),
    "IndexAdd": row(scatters.inplace_index_add, "x indices y",
        ignored="use_lock check_index_bound", axis=REQUIRED, use_lock=True, check_index_bound=True),
    "InplaceAdd": row(scatters.inplace_add, indices=REQUIRED),
    "InplaceSub": row(scatters.inplace_sub, indices=REQUIRED),
    "InplaceUpdate": row(scatters.inplace_update, indices=REQUIRED),
    "UnsortedSegmentSum": row(scatters.unsorted_segment_sum),
    "UnsortedSegmentMax": row(scatters.unsorted_segment_max, "input_x segment_ids num_segments"),
    "UnsortedSegmentMin": row(scatters.unsorted_segment_min, "input_x segment_ids num_segments"),
    "CumProd": row(scans.running_product, exclusive=False, reverse=False),
    "RandomChoiceWithMask": row(_choice_with_mask, count=256, seed=0, seed2=0),
    "RandomCategorical": row(draws.random_categorical, dtype=_core.int64),
    "Multinomial": row(_multinomial, seed=0, seed2=0, dtype=_core.int32),
    "RandomShuffle": row(_shuffle, seed=0, seed2=0),
    "Randperm": row(draws.randperm_padded, max_length=1, pad=-1, dtype=_core.int32),
    "Dropout2D": row(draws.dropout_channels, fixed={"rank": 4}, keep_prob=0.5),
    "Dropout3D": row(draws.dropout_channels, fixed={"rank": 5}, keep_prob=0.5),
    "EqualCount": row(_equal_count),
    "BesselI0": row(ops.bessel_i0),
    "BesselI0e": row(ops.bessel_i0e),
    "BesselI1": row(ops.bessel_i1),
    "BesselI1e": row(ops.bessel_i1e),
    "BesselJ0": row(ops.bessel_j0),
    "BesselJ1": row(ops.bessel_j1),
    "BesselK0": row(ops.bessel_k0),
    "BesselK0e": row(ops.bessel_k0e),
    "BesselK1": row(ops.bessel_k1),
    "BesselK1e": row(ops.bessel_k1e),
    "BesselY0": row(ops.bessel_y0),
    "BesselY1": row(ops.bessel_y1),
    "Igamma": row(gammas.igamma, "a x"),
    "Igammac": row(gammas.igammac, "a x"),
    "Zeta": row(gammas.zeta, "a x"),
    "Polygamma": row(gammas.polygamma, "a x"),
    "Mvlgamma": row(gammas.mvlgamma, "x", p=REQUIRED),
    "Cdist": row(linear_algebra.cdist, p=2.0),
    "Renorm": row(renorm, "input_x", named={"dim": "axis"}, p=REQUIRED, dim=REQUIRED, maxnorm=REQUIRED),
    "ScatterSub": row(scatters.scatter_sub, ignored="use_locking", use_locking=False),
    "ScatterMul": row(ops.scatter_mul, ignored="use_locking", use_locking=False),
    "ScatterDiv": row(ops.scatter_div, ignored="use_locking", use_locking=False),
    "ScatterNdMul": row(ops.scatter_nd_mul, ignored="use_locking", use_locking=False),
    "ScatterNdDiv": row(ops.scatter_nd_div, ignored="use_locking", use_locking=False),
    "ScatterNdMax": row(ops.scatter_nd_max, ignored="use_locking", use_locking=False),
    "ScatterNdMin": row(ops.scatter_nd_min, ignored="use_locking", use_locking=False),
    "TensorScatterMul": row(ops.tensor_scatter_mul),
    "TensorScatterDiv": row(ops.tensor_scatter_div),
    "TensorScatterMax": row(ops.tensor_scatter_max),
    "TensorScatterMin": row(ops.tensor_scatter_min),
    "Conv3DTranspose": row(windowed.convolved_up, "dout weight", in_channel=REQUIRED,
        out_channel=REQUIRED, kernel_size=REQUIRED, **_CONV, output_padding=0, data_format="NCDHW"),
    "MaxUnpool2D": row(pooling.max_unpool2d, "x argmax", named={"ksize": "kernel_size", "strides":
        "stride", "pads": "padding", "output_shape": "output_size"}, ignored="data_format",
        ksize=REQUIRED, strides=0, pads=0, output_shape=(), data_format="NCHW"),
    "MaxUnpool3D": row(pooling.max_unpool3d, "x argmax", named={"ksize": "kernel_size", "strides":
        "stride", "pads": "padding", "output_shape": "output_size"}, ignored="data_format",
        ksize=REQUIRED, strides=0, pads=0, output_shape=(), data_format="NCDHW"),
    "TraceV2": row(_trace),
    "SparseReshape": row(sparse_places.sparse_reshape),
    "SparseCountSparseOutput": row(sparse_places.sparse_count, binary_output=False, minlength=-1,
        maxlength=-1),
    "SoftplusGrad": row(_softplus_gradient),
    "StridedSliceGrad": row(_strided_slice_gradient, begin_mask=0, end_mask=0, ellipsis_mask=0,
        new_axis_mask=0, shrink_axis_mask=0),
    "ROIAlignGrad": row(_roi_align_gradient, pooled_height=REQUIRED, pooled_width=REQUIRED,
        spatial_scale=REQUIRED, sample_num=2),
    "IgammaGradA": row(_igamma_gradient),
    "TupleToTensor": row(_tensor_of),
    "CTCLoss": row(sequences.sparse_ctc_loss, preprocess_collapse_repeated=False,
        ctc_merge_repeated=True, ignore_longer_outputs_than_inputs=False),
    "NLLLoss": row(losses.nll_loss_and_weight, reduction="mean", ignore_index=-100),
    "BatchNorm": row(normalization.batch_norm_and_moments, is_training=False, epsilon=1e-05, momentum=0.1,
        data_format="NCHW"),
    "ApplyMomentum": row(steps.momentum_step, use_nesterov=False, use_locking=False,
        gradient_scale=1.0),
    "FusedWeightScaleApplyMomentum": row(steps.decayed_momentum_step),
    "Adam": row(steps.adam_step, use_locking=False, use_nesterov=False),
    "AdamNoUpdateParam": row(steps.adam_change, use_locking=False, use_nesterov=False),
    "ApplyFtrl": row(steps.ftrl_step, ignored="use_locking", use_locking=False),
    "SparseApplyFtrl": row(steps.sparse_ftrl_step, lr=REQUIRED, l1=REQUIRED, l2=REQUIRED,
        lr_power=REQUIRED, use_locking=False),
    "FusedSparseFtrl": row(steps.fused_sparse_ftrl_step, lr=REQUIRED, l1=REQUIRED, l2=REQUIRED,
        lr_power=REQUIRED, use_locking=False),
    "FusedSparseLazyAdam": row(steps.sparse_adam_step, fixed={"lazy": True}, use_locking=False,
        use_nesterov=False),
    "FusedSparseAdam": row(steps.sparse_adam_step, fixed={"lazy": False}, use_locking=False,
        use_nesterov=False),
    "ApplyAdamWithAmsgrad": row(_amsgrad, beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False,
        ignored="use_locking"),
    "ApplyAdamWithAmsgradV2": row(steps.amsgrad_step, ignored="use_locking", use_locking=False),
    "ApplyAdadelta": row(steps.adadelta_step),
    "AdamWeightDecay": row(steps.adam_weight_decay_step, use_locking=False),
}  # fmt: skip

#: What MindSpore too has for Ascend alone: made, but not called.
ASCEND = """
    DropoutDoMask DropoutGenMask DynamicGRUV2 DynamicRNN FlashAttentionScore FusedCastAdamWeightDecay
    GenerateEodMaskV2 NPUAllocFloatStatus NPUClearFloatStatus NPUGetFloatStatus PsROIPooling Pull Push
"""


def make(name: str) -> type[Primitive]:
    """The class of a row. Raises KeyError for a name that has none."""
    if name in ASCEND.split():
        return custom.unregistered(name)
    cls = primitive(name, ROWS[name])
    cls.__doc__ = f"{name}: {cls.__doc__}"
    return cls


#: What MindSpore has in private modules, not among its ops.
_PRIVATE = """
    ControlDepend ConvertToDynamic FusedSparseAdam FusedSparseLazyAdam IgammaGradA LogSoftmaxGrad
    ROIAlignGrad ResizeBilinearGrad ResizeNearestNeighborGrad SoftmaxBackward SoftplusGrad
    SparseCountSparseOutput SparseReshape StridedSliceGrad TraceV2 TupleToTensor UpsampleBicubic2DGrad
    UpsampleBilinear2DGrad UpsampleLinear1DGrad UpsampleNearest1DGrad UpsampleNearest2DGrad
    UpsampleNearest3DGrad UpsampleTrilinear3DGrad
""".split()
NAMES = [*ROWS, *ASCEND.split()]
__all__ = [name for name in NAMES if name not in _PRIVATE]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'gradcell.ops.primitives.table' has no attribute {name!r}")
    value = make(name)
    globals()[name] = value
    return value
