"""Primitives that are made when they are first asked for, as rows: (attributes of the constructor,
inputs of the call, expression over both, names). name=op: {} is op."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Sequence
from typing import Any

from gradcell import _core, ops
from gradcell._core import Tensor
from gradcell.derivatives.transform import vjp
from gradcell.ops.arrays import arrangement, creation, indexing, scalars, scatters, shaping
from gradcell.ops.control import custom
from gradcell.ops.elements import activations, bessels, complex_numbers, gammas, special
from gradcell.ops.matrices import factorisations, fourier, linear_algebra
from gradcell.ops.networks import boxes, normalized, sequences, steps, windowed
from gradcell.ops.primitive import Primitive
from gradcell.ops.primitives import classes
from gradcell.ops.random import draws
from gradcell.ops.reductions import scans


def pulled(function: Callable[[Tensor], Tensor], shape: Sequence[int], gradient: Tensor) -> Tensor:
    """The gradient by the argument, of this shape, of a function that is linear in it."""
    return vjp(function, ops.zeros(tuple(shape), gradient.dtype))[1](gradient)[0]  # type: ignore[no-any-return]


def slope(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The derivative of an elementwise function."""
    out, back = vjp(function, x)
    return back(ops.ones_like(out))[0]  # type: ignore[no-any-return]


#: What expressions may name.
_NAMES: dict[str, Any] = {
    "Tensor": Tensor, "_core": _core, "ops": ops, "activations": activations, "arrangement": arrangement,
    "boxes": boxes, "complex_numbers": complex_numbers, "creation": creation, "draws": draws,
    "factorisations": factorisations, "fourier": fourier, "indexing": indexing,
    "linear_algebra": linear_algebra, "normalized": normalized, "scalars": scalars, "scans": scans,
    "scatters": scatters, "sequences": sequences, "shaping": shaping, "special": special,
    "steps": steps, "windowed": windowed, "pulled": pulled,
    "slope": slope, "gammas": gammas, "bessels": bessels,
}  # fmt: skip

_POOL = "kernel_size=1, strides=1, pad_mode='valid', data_format='NCHW'"
_CONV = (
    "out_channel, kernel_size, mode=1, pad_mode='valid', pad=0, stride=1, dilation=1, group=1, "
    "data_format='{}'"
)
_BACK = (
    "out_channel, kernel_size, pad_mode='valid', pad=0, pad_list=None, mode=1, stride=1, dilation=1, "
    "group=1, data_format='NCHW'"
)

ROWS: tuple[tuple[str, str, str, str], ...] = (
    # Windows
    (_POOL, "x", "windowed.pooled(x, owner='MaxPool', rank=2, mean=False, **attributes)", "MaxPool"),
    (_POOL, "x", "windowed.pooled(x, owner='AvgPool', rank=2, mean=True, **attributes)", "AvgPool"),
    ("kernel_size=1, strides=1, pad_mode='valid', pad_list=0, ceil_mode=None, data_format='NCDHW'", "x",
     "windowed.pooled(x, owner='MaxPool3D', rank=3, mean=False, kernel_size=kernel_size, "
     "strides=strides, pad_mode=pad_mode, padding=pad_list, ceil_mode=ceil_mode)", "MaxPool3D"),
    ("kernel_size=1, strides=1, pad_mode='valid', pad=0, ceil_mode=False, count_include_pad=True, "
     "divisor_override=0, data_format='NCDHW'", "x",
     "windowed.pooled(x, owner='AvgPool3D', rank=3, mean=True, kernel_size=kernel_size, "
     "strides=strides, pad_mode=pad_mode, padding=pad, ceil_mode=ceil_mode, "
     "count_padding=count_include_pad, divisor=divisor_override)", "AvgPool3D"),
    (_POOL, "x", "windowed.max_pool_with_argmax(x, **attributes)", "MaxPoolWithArgmax"),
    ("output_size", "x", "windowed.adaptive_avg_pool2d(x, output_size)", "AdaptiveAvgPool2D"),
    ("output_size", "x", "windowed.adaptive_max_pool2d(x, output_size, True)", "AdaptiveMaxPool2D"),
    (_CONV.format("NCHW"), "x, weight", "windowed.convolved(x, weight, rank=2, **attributes)", "Conv2D"),
    (_CONV.format("NCDHW"), "x, weight", "windowed.convolved(x, weight, rank=3, **attributes)", "Conv3D"),
    (_BACK, "out_backprop, weight, input_size",
     "windowed.convolved_back(out_backprop, weight, input_size, **attributes)",
     "Conv2DTranspose Conv2DBackpropInput"),
    ("size, align_corners=False, half_pixel_centers=False", "input_x",
     "windowed.resized(input_x, size, kind='{}', align_corners=align_corners, "
     "half_pixel_centers=half_pixel_centers)", "ResizeNearestNeighbor=nearest ResizeBilinear=linear"),
    ("align_corners=False, half_pixel_centers=False", "x, size",
     "windowed.resized(x, size, kind='{}', **attributes)",
     "ResizeBilinearV2=linear ResizeNearestNeighborV2=nearest"),
    # Images
    ("mode='iou'", "anchor_boxes, gt_boxes", "boxes.iou(anchor_boxes, gt_boxes, mode)", "IOU"),
    ("means=(0.0,) * 4, stds=(1.0,) * 4", "anchor_box, groundtruth_box",
     "boxes.bounding_box_encode(anchor_box, groundtruth_box, means, stds)", "BoundingBoxEncode"),
    ("max_shape, means=(0.0,) * 4, stds=(1.0,) * 4, wh_ratio_clip=0.016", "anchor_box, deltas",
     "boxes.bounding_box_decode(anchor_box, deltas, **attributes)", "BoundingBoxDecode"),
    ("", "bboxes, img_metas", "boxes.check_valid(bboxes, img_metas)", "CheckValid"),
    ("iou_threshold=0.5", "bboxes", "boxes.nms_with_mask(bboxes, iou_threshold)", "NMSWithMask"),
    ("pooled_height, pooled_width, spatial_scale, sample_num=2, roi_end_mode=1", "features, rois",
     "boxes.roi_align(features, rois, **attributes)", "ROIAlign"),
    ("method='bilinear', extrapolation_value=0.0", "x, boxes_, box_indices, crop_size",
     "boxes.crop_and_resize(x, boxes_, box_indices, crop_size, **attributes)", "CropAndResize"),
    ("block_size", "x", "boxes.{}(x, block_size)", "DepthToSpace=depth_to_space SpaceToDepth=space_to_depth"),
    ("depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region='ACROSS_CHANNELS'", "x",
     "normalized.lrn(x, **attributes)", "LRN"),
    ("mode='REFLECT'", "input_x, paddings", "arrangement.mirror_pad(input_x, paddings, mode)", "MirrorPad"),
    # Numbers and tuples
    ("", "input_x, dtype=None", "creation.scalar_to_tensor(input_x, dtype)", "ScalarToTensor"),
    ("", "input_x", "scalars.{}(input_x)",
     "TupleToArray=tuple_to_array ScalarToArray=scalar_to_array TensorShape=tensor_shape"),
    ("", "x", "special.{}(x)", "Eps=eps FloatStatus=float_status"),
    # Complex numbers
    ("", "input", "complex_numbers.{}(input)",
     "Real=real Imag=imag Conj=conj Angle=angle ComplexAbs=complex_abs"),
    ("", "real, imag", "complex_numbers.complex_of(real, imag)", "Complex"),
    ("", "abs, angle", "complex_numbers.polar(abs, angle)", "Polar"),
    ("signal_ndim, inverse, real, norm='backward', onesided=True, signal_sizes=()", "x",
     "fourier.with_size(x, **attributes)", "FFTWithSize"),
    ("n_fft, hop_length, win_length, normalized, onesided, return_complex", "x, window",
     "fourier.stft(x, n_fft, hop_length, win_length, window, False, 'REFLECT', normalized, onesided, "
     "return_complex)", "STFT"),
    # Numbers and words
    ("", "input_x, input_y", "scalars.scalar_cast(input_x, input_y)", "ScalarCast"),
    ("", "x", "factorisations.inverse(x)", "Inverse"),
    ("adjoint=False", "x", "factorisations.inverse(x)", "MatrixInverse"),
    ("", "x", "factorisations.det(x)", "MatrixDeterminant"),
    ("adjoint=False", "matrix, rhs", "factorisations.matrix_solve(matrix, rhs, adjoint)", "MatrixSolve"),
    ("", "x", "factorisations.cholesky(x)", "Cholesky"),
    ("full_matrices=False, compute_uv=True", "x", "factorisations.svd(x, **attributes)", "Svd"),
    ("", "x", "ops.diagonal(x).copy()", "DiagPart"),
    ("equation", "x", "linear_algebra.einsum(equation, *x)", "Einsum"),
    ("dim=-65530", "x, other", "linear_algebra.cross(x, other, None if dim == -65530 else dim)", "Cross"),
    ("axis, p=2, keep_dims=False, epsilon=1e-12", "x",
     "linear_algebra.vector_norm(x, p, axis, keep_dims)", "LpNorm"),
    # Elements
    ("", "x, indices, axis", "indexing.gather(x, indices, axis)", "GatherV2"),
    ("", "x", "activations.gelu(x, 'tanh')", "Gelu"),
    ("axis=0", "xs", "shaping.stack(xs, axis)", "Pack"),
    ("axis=0, num=None", "x", "shaping.unstack(x, axis)", "Unpack"),
    ("", "x", "ops.{}(x)", "Unique=unique Lgamma=lgamma Digamma=digamma Cbrt=cbrt"),
    ("", "x, y", "ops.{}(x, y)",
     "BitwiseAnd=bitwise_and BitwiseOr=bitwise_or BitwiseXor=bitwise_xor Xdivy=xdivy "
     "TruncateDiv=truncate_div TruncateMod=truncate_mod Gcd=gcd Lcm=lcm LogicalXor=logical_xor"),
    ("seq_dim, batch_dim=0", "x, seq_lengths",
     "arrangement.reverse_sequence(x, seq_lengths, seq_dim, batch_dim)",
     "ReverseSequence"),
    ("use_locking=True", "input_x, indices, updates", "scatters.scatter_nd_update(input_x, indices, updates)",
     "ScatterNdUpdate"),
    ("use_locking=False", "input_x, indices, updates", "scatters.{}(input_x, indices, updates)",
     "ScatterNdAdd=scatter_nd_add ScatterNdSub=scatter_nd_sub ScatterMax=scatter_max "
     "ScatterMin=scatter_min"),
    ("", "input_x, indices, updates", "scatters.tensor_scatter_sub(input_x, indices, updates)",
     "TensorScatterSub"),
    ("axis, use_lock=True, check_index_bound=True", "x, indices, y",
     "scatters.index_add_to(x, indices, y, axis=axis)", "IndexAdd"),
    ("indices", "x, v", "scatters.{}(x, v, indices)",
     "InplaceAdd=inplace_add InplaceSub=inplace_sub InplaceUpdate=inplace_update"),
    ("", "input_x, segment_ids, num_segments", "scatters.{}(input_x, segment_ids, num_segments)",
     "UnsortedSegmentSum=unsorted_segment_sum UnsortedSegmentMax=unsorted_segment_max "
     "UnsortedSegmentMin=unsorted_segment_min"),
    ("exclusive=False, reverse=False", "x, axis", "scans.running_product(x, axis, **attributes)", "CumProd"),
    # Random
    ("count=256, seed=0, seed2=0", "input_x", "draws.choice_with_mask(input_x, count, seed or seed2)",
     "RandomChoiceWithMask"),
    ("dtype=_core.int64", "logits, num_sample, seed",
     "draws.random_categorical(logits, num_sample, seed, dtype)",
     "RandomCategorical"),
    ("seed=0, seed2=0", "x, num_samples", "draws.multinomial(x, num_samples, True, seed or seed2)",
     "Multinomial"),
    ("seed=0, seed2=0", "x", "draws.shuffle(x, seed or seed2)", "RandomShuffle"),
    ("max_length=1, pad=-1, dtype=_core.int32", "n", "draws.randperm_padded(n, **attributes)", "Randperm"),
    ("keep_prob=0.5", "x", "draws.dropout_channels(x, keep_prob, {})", "Dropout2D=4 Dropout3D=5"),
    ("", "x, y", "ops.reduce_sum(ops.cast(ops.equal(x, y), x.dtype)).reshape(1)", "EqualCount"),
    ("", "x", "bessels.bessel_{}(x)", "BesselI0=i0 BesselI0e=i0e BesselI1=i1 BesselI1e=i1e BesselJ0=j0 "
     "BesselJ1=j1 BesselK0=k0 BesselK0e=k0e BesselK1=k1 BesselK1e=k1e BesselY0=y0 BesselY1=y1"),
    ("", "a, x", "gammas.{}(a, x)", "Igamma=igamma Igammac=igammac Zeta=zeta Polygamma=polygamma"),
    ("p", "x", "gammas.mvlgamma(x, p)", "Mvlgamma"),
    ("p=2.0", "input_x, input_y", "linear_algebra.cdist(input_x, input_y, p)", "Cdist"),
    ("p, dim, maxnorm", "input_x", "linear_algebra.renorm(input_x, p, dim, maxnorm)", "Renorm"),
    ("use_locking=False", "input_x, indices, updates", "scatters.{}(input_x, indices, updates)",
     "ScatterSub=scatter_sub ScatterMul=scatter_mul ScatterDiv=scatter_div ScatterNdMul=scatter_nd_mul "
     "ScatterNdDiv=scatter_nd_div ScatterNdMax=scatter_nd_max ScatterNdMin=scatter_nd_min"),
    ("", "input_x, indices, updates", "scatters.tensor_scatter_{}(input_x, indices, updates)",
     "TensorScatterMul=mul TensorScatterDiv=div TensorScatterMax=max TensorScatterMin=min"),
    ("in_channel, out_channel, kernel_size, mode=1, pad_mode='valid', pad=0, stride=1, dilation=1, group=1, "
     "output_padding=0, data_format='NCDHW'", "dout, weight",
     "windowed.convolved_up(dout, weight, **attributes)", "Conv3DTranspose"),
    ("ksize, strides=0, pads=0, output_shape=(), data_format='NCHW'", "x, argmax",
     "windowed.{}(x, argmax, ksize, strides, pads, output_shape)",
     "MaxUnpool2D=max_unpool2d MaxUnpool3D=max_unpool3d"),
    ("", "input, offset=0, axis1=1, axis2=0, dtype=None",
     "ops.trace(input if dtype is None else ops.cast(input, dtype), offset, axis1, axis2)", "TraceV2"),
    # Gradients as ops of their own, in MindSpore's private modules
    ("", "gradients, features", "gradients * ops.sigmoid(features)", "SoftplusGrad"),
    ("begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0",
     "dy, shapex, begin, end, strides",
     "pulled(lambda x: ops.StridedSlice(**attributes)(x, begin, end, strides), shapex, dy)",
     "StridedSliceGrad"),
    ("pooled_height, pooled_width, spatial_scale, sample_num=2", "dy, rois, xdiff_shape",
     "pulled(lambda x: boxes.roi_align(x, rois, **attributes), xdiff_shape, dy)", "ROIAlignGrad"),
    ("", "a, x", "slope(lambda t: gammas.igamma(t, x), a)", "IgammaGradA"),
    ("", "input_tuple, dtype=None", "Tensor(input_tuple, dtype)", "TupleToTensor"),
    # Networks
    ("preprocess_collapse_repeated=False, ctc_merge_repeated=True, "
     "ignore_longer_outputs_than_inputs=False", "x, labels_indices, labels_values, sequence_length",
     "sequences.sparse_ctc_loss(x, labels_indices, labels_values, sequence_length, **attributes)", "CTCLoss"),
    ("reduction='mean', ignore_index=-100", "logits, labels, weight",
     "normalized.nll_loss_and_weight(logits, labels, weight, **attributes)", "NLLLoss"),
    ("is_training=False, epsilon=1e-5, momentum=0.1, data_format='NCHW'",
     "input_x, scale, bias, mean, variance",
     "normalized.batch_norm_and_moments(input_x, scale, bias, mean, variance, **attributes)", "BatchNorm"),
    ("use_nesterov=False, use_locking=False, gradient_scale=1.0",
     "variable, accumulation, learning_rate, gradient, momentum",
     "steps.momentum_step(variable, accumulation, learning_rate, gradient, momentum, **attributes)",
     "ApplyMomentum"),
    ("", "weight_decay, loss_scale, variable, accumulation, learning_rate, gradient, momentum",
     "steps.decayed_momentum_step(weight_decay, loss_scale, variable, accumulation, learning_rate, "
     "gradient, momentum)", "FusedWeightScaleApplyMomentum"),
    ("use_locking=False, use_nesterov=False",
     "var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient",
     "steps.adam_step(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, "
     "**attributes)", "Adam"),
    ("use_locking=False", "var, accum, linear, grad, lr, l1, l2, lr_power",
     "steps.ftrl_step(var, accum, linear, grad, lr, l1, l2, lr_power)", "ApplyFtrl"),
    ("lr, l1, l2, lr_power, use_locking=False", "var, accum, linear, grad, indices",
     "steps.{}(var, accum, linear, grad, indices, **attributes)",
     "SparseApplyFtrl=sparse_ftrl_step FusedSparseFtrl=fused_sparse_ftrl_step"),
    ("use_locking=False, use_nesterov=False",
     "var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, indices",
     "steps.sparse_adam_step(var, m, v, beta1_power, beta2_power, lr, beta1, beta2, epsilon, gradient, "
     "indices, lazy={}, **attributes)", "FusedSparseLazyAdam=True FusedSparseAdam=False"),
    ("beta1=0.9, beta2=0.999, epsilon=1e-8, use_locking=False",
     "var, m, v, vhat, beta1_power, beta2_power, lr, grad",
     "steps.amsgrad_step(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)",
     "ApplyAdamWithAmsgrad"),
    ("use_locking=False",
     "var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad",
     "steps.amsgrad_step(var, m, v, vhat, beta1_power, beta2_power, lr, beta1, beta2, epsilon, grad)",
     "ApplyAdamWithAmsgradV2"),
    ("", "var, accum, accum_update, lr, rho, epsilon, grad",
     "steps.adadelta_step(var, accum, accum_update, lr, rho, epsilon, grad)", "ApplyAdadelta"),
    ("use_locking=False", "var, m, v, lr, beta1, beta2, epsilon, decay, gradient",
     "steps.adam_weight_decay_step(var, m, v, lr, beta1, beta2, epsilon, decay, gradient, **attributes)",
     "AdamWeightDecay"),
)  # fmt: skip

#: What MindSpore too has for Ascend alone: made, but not called.
ASCEND = """
    DropoutDoMask DropoutGenMask DynamicGRUV2 DynamicRNN FlashAttentionScore FusedCastAdamWeightDecay
    GenerateEodMaskV2 NPUAllocFloatStatus NPUClearFloatStatus NPUGetFloatStatus PsROIPooling Pull Push
"""


def _constructor(attributes: str) -> inspect.Signature:
    made: dict[str, Any] = {}
    exec(f"def init({attributes}): ...", {"_core": _core}, made)
    return inspect.signature(made["init"])


def make(name: str) -> type[Primitive]:
    """The class of a row. Raises KeyError for a name that has none."""
    if name in ASCEND.split():
        return custom.unregistered(name)
    attributes, inputs, expression = _ROWS[name]
    signature = _constructor(attributes)
    keys = ", ".join(signature.parameters)
    text = (
        f"def {name}({inputs}{', *, ' + keys if keys else ''}):\n"
        f"    attributes = dict({', '.join(f'{k}={k}' for k in signature.parameters)})\n"
        f"    return {expression}\n"
    )
    place = os.path.join(os.path.dirname(__file__), f"{name}.primitive")
    made: dict[str, Any] = {}
    exec(compile(text, place, "exec"), dict(_NAMES), made)
    made[name].__doc__ = f"{name}({attributes})({inputs}): {expression}."
    return classes.primitive_class(name, made[name], signature)


_ROWS = {
    entry.partition("=")[0]: (attributes, inputs, expression.replace("{}", entry.partition("=")[2]))
    for attributes, inputs, expression, names in ROWS
    for entry in names.split()
}
NAMES = [*_ROWS, *ASCEND.split()]


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module 'gradcell.ops.primitives.table' has no attribute {name!r}")
    value = make(name)
    globals()[name] = value
    return value
