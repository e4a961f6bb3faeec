"""Primitives that are made when they are first asked for, each a function of its inputs by position and of
its attributes by keyword."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.derivatives.transform import vjp
from gradcell.ops.arrays import (
    arrangement,
    creation,
    indexing,
    scalars,
    scatters,
    shaping,
    sparse_places,
)
from gradcell.ops.control import custom
from gradcell.ops.elements import activations, complex_numbers, gammas, special
from gradcell.ops.matrices import factorisations, fourier, linear_algebra
from gradcell.ops.matrices.norms import renorm, vector_norm
from gradcell.ops.networks import boxes, losses, norms, sequences, steps, windowed
from gradcell.ops.primitive import Primitive
from gradcell.ops.primitives import classes
from gradcell.ops.random import draws
from gradcell.ops.reductions import reductions, scans


def pulled(function: Callable[[Tensor], Tensor], shape: Sequence[int], gradient: Tensor) -> Tensor:
    """The gradient by the argument, of this shape, of a function that is linear in it."""
    return vjp(function, ops.zeros(tuple(shape), gradient.dtype))[1](gradient)[0]  # type: ignore[no-any-return]


def slope(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The derivative of an elementwise function."""
    out, back = vjp(function, x)
    return back(ops.ones_like(out))[0]  # type: ignore[no-any-return]


#: The signatures of constructors whose attributes a row passes on as they are, by the row's function.
constructors: dict[Callable[..., Any], Callable[..., None]] = {}


def taking(constructor: Callable[..., None], function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with the attributes that a constructor of this signature takes."""
    constructors[function] = constructor
    return function


def over(
    row: Callable[[Callable[..., Any]], Callable[..., Any]], **ops: Callable[..., Any]
) -> dict[str, Callable[..., Any]]:
    """Rows that differ by the op alone."""
    return {name: row(op) for name, op in ops.items()}


def _pool(
    kernel_size: Any = 1,
    strides: Any = 1,
    pad_mode: Any = "valid",
    data_format: Any = "NCHW",
) -> None: ...  # fmt: skip


def _conv2d(
    out_channel: Any,
    kernel_size: Any,
    mode: Any = 1,
    pad_mode: Any = "valid",
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: Any = 1,
    data_format: Any = "NCHW",
) -> None: ...  # fmt: skip


def _conv3d(
    out_channel: Any,
    kernel_size: Any,
    mode: Any = 1,
    pad_mode: Any = "valid",
    pad: Any = 0,
    stride: Any = 1,
    dilation: Any = 1,
    group: Any = 1,
    data_format: Any = "NCDHW",
) -> None: ...  # fmt: skip


def _back(
    out_channel: Any,
    kernel_size: Any,
    pad_mode: Any = "valid",
    pad: Any = 0,
    pad_list: Any = None,
    mode: Any = 1,
    stride: Any = 1,
    dilation: Any = 1,
    group: Any = 1,
    data_format: Any = "NCHW",
) -> None: ...  # fmt: skip


ROWS: dict[str, Callable[..., Any]] = {
    # Windows
    "MaxPool": taking(_pool, lambda x, **attributes: windowed.pooled(x, owner="MaxPool", rank=2, mean=False,
        **attributes)),
    "AvgPool": taking(_pool, lambda x, **attributes: windowed.pooled(x, owner="AvgPool", rank=2, mean=True,
        **attributes)),
    "MaxPool3D": lambda x, *, kernel_size=1, strides=1, pad_mode="valid", pad_list=0, ceil_mode=None,
        data_format="NCDHW": windowed.pooled(x, owner="MaxPool3D", rank=3, mean=False,
        kernel_size=kernel_size, strides=strides, pad_mode=pad_mode, padding=pad_list, ceil_mode=ceil_mode),
    "AvgPool3D": lambda x, *, kernel_size=1, strides=1, pad_mode="valid", pad=0, ceil_mode=False,
        count_include_pad=True, divisor_override=0, data_format="NCDHW": windowed.pooled(x,
        owner="AvgPool3D", rank=3, mean=True, kernel_size=kernel_size, strides=strides, pad_mode=pad_mode,
        padding=pad, ceil_mode=ceil_mode, count_padding=count_include_pad, divisor=divisor_override),
    "MaxPoolWithArgmax": taking(_pool, lambda x, **attributes: windowed.max_pool_with_argmax(x,
        **attributes)),
    "AdaptiveAvgPool2D": lambda x, *, output_size: windowed.adaptive_avg_pool2d(x, output_size),
    "AdaptiveMaxPool2D": lambda x, *, output_size: windowed.adaptive_max_pool2d(x, output_size, True),
    "Conv2D": taking(_conv2d, lambda x, weight, **attributes: windowed.convolved(x, weight, rank=2,
        **attributes)),
    "Conv3D": taking(_conv3d, lambda x, weight, **attributes: windowed.convolved(x, weight, rank=3,
        **attributes)),
    "Conv2DTranspose": taking(_back, lambda out_backprop, weight, input_size, **attributes:
        windowed.convolved_back(out_backprop, weight, input_size, **attributes)),
    "Conv2DBackpropInput": taking(_back, lambda out_backprop, weight, input_size, **attributes:
        windowed.convolved_back(out_backprop, weight, input_size, **attributes)),
    "ResizeNearestNeighbor": lambda input_x, *, size, align_corners=False, half_pixel_centers=False:
        windowed.resized(input_x, size, kind="nearest", align_corners=align_corners,
        half_pixel_centers=half_pixel_centers),
    "ResizeBilinear": lambda input_x, *, size, align_corners=False, half_pixel_centers=False:
        windowed.resized(input_x, size, kind="linear", align_corners=align_corners,
        half_pixel_centers=half_pixel_centers),
    "ResizeBilinearV2": taking(lambda align_corners=False, half_pixel_centers=False: None, lambda x, size,
        **attributes: windowed.resized(x, size, kind="linear", **attributes)),
    "ResizeNearestNeighborV2": taking(lambda align_corners=False, half_pixel_centers=False: None, lambda x,
        size, **attributes: windowed.resized(x, size, kind="nearest", **attributes)),
    # Images
    "IOU": lambda anchor_boxes, gt_boxes, *, mode="iou": boxes.iou(anchor_boxes, gt_boxes, mode),
    "BoundingBoxEncode": lambda anchor_box, groundtruth_box, *, means=(0.0,) * 4, stds=(1.0,) * 4:
        boxes.bounding_box_encode(anchor_box, groundtruth_box, means, stds),
    "BoundingBoxDecode": taking(lambda max_shape, means=(0.0,) * 4, stds=(1.0,) * 4, wh_ratio_clip=0.016:
        None, lambda anchor_box, deltas, **attributes: boxes.bounding_box_decode(anchor_box, deltas,
        **attributes)),
    "CheckValid": lambda bboxes, img_metas: boxes.check_valid(bboxes, img_metas),
    "NMSWithMask": lambda bboxes, *, iou_threshold=0.5: boxes.nms_with_mask(bboxes, iou_threshold),
    "ROIAlign": taking(lambda pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1:
        None, lambda features, rois, **attributes: boxes.roi_align(features, rois, **attributes)),
    "CropAndResize": taking(lambda method="bilinear", extrapolation_value=0.0: None, lambda x, boxes_,
        box_indices, crop_size, **attributes: boxes.crop_and_resize(x, boxes_, box_indices, crop_size,
        **attributes)),
    **over(lambda op: lambda x, *, block_size: op(x, block_size), DepthToSpace=boxes.depth_to_space,
        SpaceToDepth=boxes.space_to_depth),
    "LRN": taking(lambda depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS": None,
        lambda x, **attributes: norms.lrn(x, **attributes)),
    "MirrorPad": lambda input_x, paddings, *, mode="REFLECT": arrangement.mirror_pad(input_x, paddings,
        mode),
    # Numbers and tuples
    "ScalarToTensor": lambda input_x, dtype=None: creation.scalar_to_tensor(input_x, dtype),
    **over(lambda op: lambda input_x: op(input_x), TupleToArray=scalars.tuple_to_array,
        ScalarToArray=scalars.scalar_to_array, TensorShape=scalars.tensor_shape),
    **over(lambda op: lambda x: op(x), Eps=special.eps, FloatStatus=reductions.float_status),
    # Complex numbers
    **over(lambda op: lambda input: op(input), Real=complex_numbers.real, Imag=complex_numbers.imag,
        Conj=complex_numbers.conj, Angle=complex_numbers.angle, ComplexAbs=complex_numbers.complex_abs),
    "Complex": lambda real, imag: complex_numbers.complex_of(real, imag),
    "Polar": lambda abs, angle: complex_numbers.polar(abs, angle),
    "FFTWithSize": taking(lambda signal_ndim, inverse, real, norm="backward", onesided=True,
        signal_sizes=(): None, lambda x, **attributes: fourier.with_size(x, **attributes)),
    "STFT": lambda x, window, *, n_fft, hop_length, win_length, normalized, onesided, return_complex:
        fourier.stft(x, n_fft, hop_length, win_length, window, False, "REFLECT", normalized, onesided,
        return_complex),
    # Numbers and words
    "ScalarCast": lambda input_x, input_y: scalars.scalar_cast(input_x, input_y),
    "Inverse": lambda x: factorisations.inverse(x),
    "MatrixInverse": lambda x, *, adjoint=False: factorisations.inverse(x),
    "MatrixDeterminant": lambda x: factorisations.det(x),
    "MatrixSolve": lambda matrix, rhs, *, adjoint=False: factorisations.matrix_solve(matrix, rhs, adjoint),
    "Cholesky": lambda x, *, upper=False: factorisations.cholesky(x, upper),
    "Svd": taking(lambda full_matrices=False, compute_uv=True: None, lambda x, **attributes:
        factorisations.svd(x, **attributes)),
    "DiagPart": lambda x: ops.diagonal(x).copy(),
    "Einsum": lambda x, *, equation: linear_algebra.einsum(equation, *x),
    "Cross": lambda x, other, *, dim=-65530: linear_algebra.cross(x, other, None if dim == -65530 else dim),
    "LpNorm": lambda x, *, axis, p=2, keep_dims=False, epsilon=1e-12: vector_norm(x, p, axis,
        keep_dims),
    # Elements
    "GatherV2": lambda x, indices, axis: indexing.gather(x, indices, axis),
    "Gelu": lambda x: activations.gelu(x, "tanh"),
    "Pack": lambda xs, *, axis=0: shaping.stack(xs, axis),
    "Unpack": lambda x, *, axis=0, num=None: shaping.unstack(x, axis),
    **over(lambda op: lambda x: op(x), Unique=ops.unique, Lgamma=ops.lgamma, Digamma=ops.digamma,
        Cbrt=ops.cbrt),
    **over(lambda op: lambda x, y: op(x, y), BitwiseAnd=ops.bitwise_and, BitwiseOr=ops.bitwise_or,
        BitwiseXor=ops.bitwise_xor, Xdivy=ops.xdivy, TruncateDiv=ops.truncate_div,
        TruncateMod=ops.truncate_mod, Gcd=ops.gcd, Lcm=ops.lcm, LogicalXor=ops.logical_xor),
    "ReverseSequence": lambda x, seq_lengths, *, seq_dim, batch_dim=0: arrangement.reverse_sequence(x,
        seq_lengths, seq_dim, batch_dim),
    "ScatterNdUpdate": lambda input_x, indices, updates, *, use_locking=True:
        scatters.scatter_nd_update(input_x, indices, updates),
    **over(lambda op: lambda input_x, indices, updates, *, use_locking=False: op(input_x, indices, updates),
        ScatterNdAdd=scatters.scatter_nd_add, ScatterNdSub=scatters.scatter_nd_sub,
        ScatterMax=ops.scatter_max, ScatterMin=ops.scatter_min),
    "TensorScatterSub": lambda input_x, indices, updates: scatters.tensor_scatter_sub(input_x, indices,
        updates),
    "IndexAdd": lambda x, indices, y, *, axis, use_lock=True, check_index_bound=True:
        scatters.index_add_to(x, indices, y, axis=axis),
    **over(lambda op: lambda x, v, *, indices: op(x, v, indices), InplaceAdd=scatters.inplace_add,
        InplaceSub=scatters.inplace_sub, InplaceUpdate=scatters.inplace_update),
    **over(lambda op: lambda input_x, segment_ids, num_segments: op(input_x, segment_ids, num_segments),
        UnsortedSegmentSum=scatters.unsorted_segment_sum, UnsortedSegmentMax=scatters.unsorted_segment_max,
        UnsortedSegmentMin=scatters.unsorted_segment_min),
    "CumProd": taking(lambda exclusive=False, reverse=False: None, lambda x, axis, **attributes:
        scans.running_product(x, axis, **attributes)),
    # Random
    "RandomChoiceWithMask": lambda input_x, *, count=256, seed=0, seed2=0: draws.choice_with_mask(input_x,
        count, seed or seed2),
    "RandomCategorical": lambda logits, num_sample, seed, *, dtype=_core.int64:
        draws.random_categorical(logits, num_sample, seed, dtype),
    "Multinomial": taking(lambda seed=0, seed2=0, dtype=_core.int32: None, lambda x, num_samples, *, seed=0,
        seed2=0, dtype=_core.int32: ops.cast(draws.multinomial(x, num_samples, True, seed or seed2), dtype)),
    "RandomShuffle": lambda x, *, seed=0, seed2=0: draws.shuffle(x, seed or seed2),
    "Randperm": taking(lambda max_length=1, pad=-1, dtype=_core.int32: None, lambda n, **attributes:
        draws.randperm_padded(n, **attributes)),
    "Dropout2D": lambda x, *, keep_prob=0.5: draws.dropout_channels(x, keep_prob, 4),
    "Dropout3D": lambda x, *, keep_prob=0.5: draws.dropout_channels(x, keep_prob, 5),
    "EqualCount": lambda x, y: ops.reduce_sum(ops.cast(ops.equal(x, y), x.dtype)).reshape(1),
    **over(lambda op: lambda x: op(x), BesselI0=ops.bessel_i0, BesselI0e=ops.bessel_i0e,
        BesselI1=ops.bessel_i1, BesselI1e=ops.bessel_i1e, BesselJ0=ops.bessel_j0, BesselJ1=ops.bessel_j1,
        BesselK0=ops.bessel_k0, BesselK0e=ops.bessel_k0e, BesselK1=ops.bessel_k1, BesselK1e=ops.bessel_k1e,
        BesselY0=ops.bessel_y0, BesselY1=ops.bessel_y1),
    **over(lambda op: lambda a, x: op(a, x), Igamma=gammas.igamma, Igammac=gammas.igammac, Zeta=gammas.zeta,
        Polygamma=gammas.polygamma),
    "Mvlgamma": lambda x, *, p: gammas.mvlgamma(x, p),
    "Cdist": lambda input_x, input_y, *, p=2.0: linear_algebra.cdist(input_x, input_y, p),
    "Renorm": lambda input_x, *, p, dim, maxnorm: renorm(input_x, p, dim, maxnorm),
    **over(lambda op: lambda input_x, indices, updates, *, use_locking=False: op(input_x, indices, updates),
        ScatterSub=scatters.scatter_sub, ScatterMul=ops.scatter_mul, ScatterDiv=ops.scatter_div,
        ScatterNdMul=ops.scatter_nd_mul, ScatterNdDiv=ops.scatter_nd_div, ScatterNdMax=ops.scatter_nd_max,
        ScatterNdMin=ops.scatter_nd_min),
    **over(lambda op: lambda input_x, indices, updates: op(input_x, indices, updates),
        TensorScatterMul=ops.tensor_scatter_mul, TensorScatterDiv=ops.tensor_scatter_div,
        TensorScatterMax=ops.tensor_scatter_max, TensorScatterMin=ops.tensor_scatter_min),
    "Conv3DTranspose": taking(lambda in_channel, out_channel, kernel_size, mode=1, pad_mode="valid", pad=0,
        stride=1, dilation=1, group=1, output_padding=0, data_format="NCDHW": None, lambda dout, weight,
        **attributes: windowed.convolved_up(dout, weight, **attributes)),
    "MaxUnpool2D": lambda x, argmax, *, ksize, strides=0, pads=0, output_shape=(), data_format="NCHW":
        windowed.max_unpool2d(x, argmax, ksize, strides, pads, output_shape),
    "MaxUnpool3D": lambda x, argmax, *, ksize, strides=0, pads=0, output_shape=(), data_format="NCDHW":
        windowed.max_unpool3d(x, argmax, ksize, strides, pads, output_shape),
    "TraceV2": lambda input, offset=0, axis1=1, axis2=0, dtype=None: ops.trace(input if dtype is None else
        ops.cast(input, dtype), offset, axis1, axis2),
    "SparseReshape": lambda indices, shape, new_shape: sparse_places.sparse_reshape(indices, shape,
        new_shape),
    "SparseCountSparseOutput": taking(lambda binary_output=False, minlength=-1, maxlength=-1: None, lambda
        indices, values, dense_shape, weights, **attributes: sparse_places.sparse_count(indices, values,
        dense_shape, weights, **attributes)),
    # Gradients as ops of their own, in MindSpore's private modules
    "SoftplusGrad": lambda gradients, features: gradients * ops.sigmoid(features),
    "StridedSliceGrad": taking(lambda begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
        shrink_axis_mask=0: None, lambda dy, shapex, begin, end, strides, **attributes: pulled(lambda x:
        ops.StridedSlice(**attributes)(x, begin, end, strides), shapex, dy)),
    "ROIAlignGrad": taking(lambda pooled_height, pooled_width, spatial_scale, sample_num=2: None, lambda dy,
        rois, xdiff_shape, **attributes: pulled(lambda x: boxes.roi_align(x, rois, **attributes),
        xdiff_shape, dy)),
    "IgammaGradA": lambda a, x: slope(lambda t: gammas.igamma(t, x), a),
    "TupleToTensor": lambda input_tuple, dtype=None: Tensor(input_tuple, dtype),
    # Networks
    "CTCLoss": taking(lambda preprocess_collapse_repeated=False, ctc_merge_repeated=True,
        ignore_longer_outputs_than_inputs=False: None, lambda x, labels_indices, labels_values,
        sequence_length, **attributes: sequences.sparse_ctc_loss(x, labels_indices, labels_values,
        sequence_length, **attributes)),
    "NLLLoss": taking(lambda reduction="mean", ignore_index=-100: None, lambda logits, labels, weight,
        **attributes: losses.nll_loss_and_weight(logits, labels, weight, **attributes)),
    "BatchNorm": taking(lambda is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW": None,
        lambda input_x, scale, bias, mean, variance, **attributes:
        norms.batch_norm_and_moments(input_x, scale, bias, mean, variance, **attributes)),
    "ApplyMomentum": taking(lambda use_nesterov=False, use_locking=False, gradient_scale=1.0: None, lambda
        variable, accumulation, learning_rate, gradient, momentum, **attributes:
        steps.momentum_step(variable, accumulation, learning_rate, gradient, momentum, **attributes)),
    "FusedWeightScaleApplyMomentum": lambda weight_decay, loss_scale, variable, accumulation, learning_rate,
        gradient, momentum: steps.decayed_momentum_step(weight_decay, loss_scale, variable, accumulation,
        learning_rate, gradient, momentum),
    "Adam": taking(lambda use_locking=False, use_nesterov=False: None, lambda var, m, v, beta1_power,
        beta2_power, lr, beta1, beta2, epsilon, gradient, **attributes: steps.adam_step(var, m, v,
        beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, **attributes)),
    "AdamNoUpdateParam": taking(lambda use_locking=False, use_nesterov=False: None, lambda m, v,
        beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, **attributes: steps.adam_change(m, v,
        beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, **attributes)),
    "ApplyFtrl": lambda var, accum, linear, grad, lr, l1, l2, lr_power, *, use_locking=False:
        steps.ftrl_step(var, accum, linear, grad, lr, l1, l2, lr_power),
    **over(lambda op: taking(lambda lr, l1, l2, lr_power, use_locking=False: None, lambda var, accum,
        linear, grad, indices, **attributes: op(var, accum, linear, grad, indices, **attributes)),
        SparseApplyFtrl=steps.sparse_ftrl_step, FusedSparseFtrl=steps.fused_sparse_ftrl_step),
    "FusedSparseLazyAdam": taking(lambda use_locking=False, use_nesterov=False: None, lambda var, m, v,
        beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, indices, **attributes:
        steps.sparse_adam_step(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
        indices, lazy=True, **attributes)),
    "FusedSparseAdam": taking(lambda use_locking=False, use_nesterov=False: None, lambda var, m, v,
        beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, indices, **attributes:
        steps.sparse_adam_step(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient,
        indices, lazy=False, **attributes)),
    "ApplyAdamWithAmsgrad": lambda var, m, v, vhat, beta1_power, beta2_power, lr, grad, *, beta1=0.9,
        beta2=0.999, epsilon=1e-8, use_locking=False: steps.amsgrad_step(var, m, v, vhat, beta1_power,
        beta2_power, lr, beta1, beta2, epsilon, grad),
    "ApplyAdamWithAmsgradV2": lambda var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon,
        grad, *, use_locking=False: steps.amsgrad_step(var, m, v, vhat, beta1_power, beta2_power, lr, beta1,
        beta2, epsilon, grad),
    "ApplyAdadelta": lambda var, accum, accum_update, lr, rho, epsilon, grad: steps.adadelta_step(var,
        accum, accum_update, lr, rho, epsilon, grad),
    "AdamWeightDecay": taking(lambda use_locking=False: None, lambda var, m, v, lr, beta1, beta2, epsilon,
        decay, gradient, **attributes: steps.adam_weight_decay_step(var, m, v, lr, beta1, beta2, epsilon,
        decay, gradient, **attributes)),
}  # fmt: skip

#: What primitives do whose rows combine several functions.
TEXTS = {
    "Multinomial": """Indices drawn by the weights in a vector x, or in each row of a matrix.

        The result, [..., num_samples] in dtype, may have an index more than once. seed2: the seed where
        seed is 0. Raises ValueError for weights that are negative, not finite or all zero.""",
    "EqualCount": """The number of elements that are equal in x and y, as a tensor [1] in the dtype of x.""",
    "SoftplusGrad": """The gradient of softplus by features: gradients times their logistic function.""",
    "StridedSliceGrad": """The gradient of StridedSlice by its input: dy among zeros of shape shapex.""",
    "ROIAlignGrad": """The gradient of roi_align by its features, of shape xdiff_shape.""",
    "IgammaGradA": """The derivative of the regularised lower incomplete gamma function by a, elementwise.""",
}

#: What MindSpore too has for Ascend alone: made, but not called.
ASCEND = """
    DropoutDoMask DropoutGenMask DynamicGRUV2 DynamicRNN FlashAttentionScore FusedCastAdamWeightDecay
    GenerateEodMaskV2 NPUAllocFloatStatus NPUClearFloatStatus NPUGetFloatStatus PsROIPooling Pull Push
"""


def make(name: str) -> type[Primitive]:
    """The class of a row. Raises KeyError for a name that has none."""
    if name in ASCEND.split():
        return custom.unregistered(name)
    function = ROWS[name]
    attributes = [
        p.replace(kind=p.POSITIONAL_OR_KEYWORD, annotation=p.empty)
        for p in inspect.signature(constructors.get(function, function)).parameters.values()
        if function in constructors or p.kind is p.KEYWORD_ONLY
    ]
    cls = classes.primitive_class(name, function, inspect.Signature(attributes))
    cls.__doc__ = _text(name, function)
    return cls


def _text(name: str, function: Callable[..., Any]) -> str:
    """What the primitive does: a text of its own, or that of the one function that its row calls."""
    if name in TEXTS:
        return f"{name}: {inspect.cleandoc(TEXTS[name])}"
    places = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found: Any = places["op"].cell_contents if "op" in places else None
    for part in function.__code__.co_names:
        if isinstance(found, ModuleType):
            found = getattr(found, part)
        found = globals().get(part) if found is None else found
    text = inspect.getdoc(found) if callable(found) else None
    return f"{name}: {text}" if text else f"{name}{inspect.signature(function)}"


#: What MindSpore has in private modules, not among its ops.
_PRIVATE = """
    FusedSparseAdam FusedSparseLazyAdam IgammaGradA ROIAlignGrad SoftplusGrad SparseCountSparseOutput
    SparseReshape StridedSliceGrad TraceV2 TupleToTensor
""".split()
NAMES = [*ROWS, *ASCEND.split()]
__all__ = [name for name in NAMES if name not in _PRIVATE]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'gradcell.ops.primitives.table' has no attribute {name!r}")
    value = make(name)
    globals()[name] = value
    return value
