"""Boxes in images: how much they overlap, their offsets to others, picking the best, cutting them out.

A box is (x1, y1, x2, y2), a row of a tensor [n, 4].
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gradcell._core import Tensor, float32, int32, int64, ops as _ops, promote
from gradcell.base import arguments, bad_value
from gradcell.ops.arrays import shaping
from gradcell.ops.decorators import one_plan, wide_plan

__all__ = [
    "bounding_box_decode", "bounding_box_encode", "check_valid", "crop_and_resize",
    "deformable_conv2d", "depth_to_space", "grid_sample", "iou", "pixel_shuffle", "pixel_unshuffle",
    "space_to_depth",
]  # fmt: skip


def _boxes(value: Any, owner: str, name: str, columns: int = 4) -> Tensor:
    x = arguments.tensor(value, owner, name)
    if x.ndim != 2 or x.shape[1] != columns:
        bad_value(
            f"For '{owner}', the '{name}' must have shape [n, {columns}], but got {list(x.shape)}"
        )
    return x


def _columns(x: Tensor) -> tuple[Tensor, ...]:
    return shaping.split(x, 1, 1)


@wide_plan
def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Tensor:
    """The overlap of each gt box (rows) with each anchor box (columns): the intersection's area over
    that of the union ('iou') or of the gt box ('iof'); pixels at both ends belong to a box.

    gt_boxes: boxes (x1, y1, x2, y2), [m, 4]. mode: 'iou' or 'iof'. anchor_boxes: boxes (x1, y1, x2,
    y2).
    """
    a, g = _boxes(anchor_boxes, "IOU", "anchor_boxes"), _boxes(gt_boxes, "IOU", "gt_boxes")
    arguments.one_of(mode, ("iou", "iof"), "IOU", "mode")
    one = 1.0
    left = [_ops.reshape(c, [1, a.shape[0]]) for c in _columns(a)]
    right = _columns(g)

    def span(low: Tensor, high: Tensor) -> Tensor:
        return _ops.maximum(high - low + one, 0)

    width = span(_ops.maximum(left[0], right[0]), _ops.minimum(left[2], right[2]))
    height = span(_ops.maximum(left[1], right[1]), _ops.minimum(left[3], right[3]))
    common = width * height
    area_a, area_g = (span(x1, x2) * span(y1, y2) for x1, y1, x2, y2 in (left, right))
    whole = area_g if mode == "iof" else area_a + area_g - common
    apart = _ops.equal(common, 0)
    return _ops.where(apart, 0, common / _ops.where(apart, 1, whole))


def _centre(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(centre x, centre y, width, height), the pixels at both ends included."""
    x1, y1, x2, y2 = _columns(x)
    width, height = x2 - x1 + 1.0, y2 - y1 + 1.0
    middle = (x1 + x2) * 0.5, (y1 + y2) * 0.5
    return (*middle, width, height)


def _four(values: Any, owner: str, name: str) -> list[float]:
    found = [float(v) for v in (values if isinstance(values, (tuple, list)) else [values] * 4)]
    if len(found) != 4:
        bad_value(f"For '{owner}', the '{name}' must have 4 numbers, but got {values}")
    return found


@one_plan
def bounding_box_encode(
    anchor_box: Any, groundtruth_box: Any, means: Any = (0.0,) * 4, stds: Any = (1.0,) * 4
) -> Tensor:
    """The offsets from anchors to boxes (Ren et al. 2015, equation 2): of the centre over the anchor's
    size, and log of the sizes' quotient; then less means, over stds.

    groundtruth_box: boxes (x1, y1, x2, y2), [n, 4]. anchor_box: boxes (x1, y1, x2, y2).
    """
    a = _centre(_boxes(anchor_box, "BoundingBoxEncode", "anchor_box"))
    g = _centre(_boxes(groundtruth_box, "BoundingBoxEncode", "groundtruth_box"))
    parts = [
        (g[0] - a[0]) / a[2], (g[1] - a[1]) / a[3],
        _ops.log(g[2] / a[2]), _ops.log(g[3] / a[3]),
    ]  # fmt: skip
    scale = zip(
        parts, _four(means, "BoundingBoxEncode", "means"), _four(stds, "BoundingBoxEncode", "stds"),
        strict=True,
    )  # fmt: skip
    return _ops.concat([(p - m) / s for p, m, s in scale], 1)


@one_plan
def bounding_box_decode(
    anchor_box: Any, deltas: Any, max_shape: Any, means: Any = (0.0,) * 4, stds: Any = (1.0,) * 4,
    wh_ratio_clip: float = 0.016,
) -> Tensor:  # fmt: skip
    """The boxes at offsets from anchors: the inverse of bounding_box_encode, within max_shape
    (height, width); sizes change by no more than the factor 1 / wh_ratio_clip.

    deltas: offsets [n, 4]. max_shape: (height, width) of the image. wh_ratio_clip: a number between
    0 and 1. anchor_box: boxes (x1, y1, x2, y2). means: the mean of each of the four numbers. stds:
    the standard deviation of each of the four numbers.
    """
    owner = "BoundingBoxDecode"
    ax, ay, aw, ah = _centre(_boxes(anchor_box, owner, "anchor_box"))
    scale = zip(
        _columns(_boxes(deltas, owner, "deltas")), _four(means, owner, "means"),
        _four(stds, owner, "stds"), strict=True,
    )  # fmt: skip
    dx, dy, dw, dh = (d * s + m for d, m, s in scale)
    limit = abs(math.log(wh_ratio_clip))
    width, height = (
        size * _ops.exp(_ops.minimum(_ops.maximum(d, -limit), limit))
        for size, d in ((aw, dw), (ah, dh))
    )
    cx, cy = ax + aw * dx, ay + ah * dy
    high = [float(max_shape[1]), float(max_shape[0])] * 2
    half_w, half_h = ((size - 1.0) * 0.5 for size in (width, height))
    corners = [
        cx - half_w,
        cy - half_h,
        cx + half_w,
        cy + half_h,
    ]
    inside = [_ops.minimum(_ops.maximum(c, 0.0), h) for c, h in zip(corners, high, strict=True)]
    return _ops.concat(inside, 1)


@one_plan
def check_valid(bboxes: Any, img_metas: Any) -> Tensor:
    """Return whether each box lies within the image; img_metas: (height, width, ratio).

    bboxes: boxes (x1, y1, x2, y2), [n, 4].
    """
    x = _boxes(bboxes, "CheckValid", "bboxes")
    meta = arguments.tensor(img_metas, "CheckValid", "img_metas")
    height, width, ratio = (_ops.gather(meta, Tensor(i), 0) for i in range(3))
    x1, y1, x2, y2 = _columns(x)
    right, bottom = (n * ratio - 1.0 for n in (width, height))
    fits = _ops.logical_and(
        _ops.logical_and(_ops.greater_equal(x1, 0), _ops.greater_equal(y1, 0)),
        _ops.logical_and(_ops.less_equal(x2, right), _ops.less_equal(y2, bottom)),
    )
    return _ops.reshape(fits, [x.shape[0]])


def nms_with_mask(bboxes: Any, iou_threshold: float = 0.5) -> tuple[Tensor, Tensor, Tensor]:
    """(boxes with their scores [n, 5], best first; their places 0 to n - 1; whether each is kept): from
    the best on, boxes that overlap a kept one by more than the threshold go. Reads values, so a
    compiled function that calls it is retraced."""
    x = _boxes(bboxes, "NMSWithMask", "bboxes", 5)
    values = x.asnumpy().astype(np.float64)
    order = np.argsort(-values[:, 4], kind="stable")
    rows = values[order]
    area = (rows[:, 2] - rows[:, 0]) * (rows[:, 3] - rows[:, 1])
    kept = np.ones(len(rows), bool)
    for i in range(len(rows)):
        if kept[i]:
            low, high = np.maximum(rows[i, :2], rows[:, :2]), np.minimum(rows[i, 2:4], rows[:, 2:4])
            common = np.clip(high - low, 0, None).prod(1)
            overlap = common / np.maximum(area[i] + area - common, 1e-300)
            kept[i + 1 :] &= overlap[i + 1 :] <= iou_threshold
    best = _ops.gather(x, Tensor(order), 0)
    return best, Tensor(np.arange(len(rows), dtype=np.int32)), Tensor(kept)


# Elements between pixels ----------------------------------------------------------------------------


def _image(x: Tensor, i: int) -> Tensor:
    """One image of a batch."""
    part = _ops.slice(x, [i, 0, 0, 0], [1, *x.shape[1:]], [1] * 4)
    return _ops.reshape(part, list(x.shape[1:]))


def _taken(image: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """image [c, h, w] at integer positions [...]: [c, ...]."""
    c, h, w = image.shape
    place = _ops.cast(rows, int64) * w + _ops.cast(columns, int64)
    flat = _ops.gather(_ops.reshape(image, [c, h * w]), _ops.reshape(place, [-1]), 1)
    return _ops.reshape(flat, [c, *place.shape])


def _corners(*at: Tensor, alone: bool = False) -> Iterator[tuple[list[Tensor], Tensor]]:
    """The pixels around positions, given by one tensor for each dimension, as numbers without a fraction,
    or the one at them: ([row, column], weight)."""
    first = [_ops.stop_gradient(_ops.floor(v)) for v in at]
    for steps in itertools.product((0, 1)[: 1 if alone else 2], repeat=len(at)):
        each = list(zip(steps, first, at, strict=True))
        weights = [v - f if d else f + 1.0 - v for d, f, v in each]
        yield [f + float(d) for d, f, _ in each], functools.reduce(_ops.mul, weights)


def bilinear(image: Tensor, y: Tensor, x: Tensor) -> Tensor:
    """image [c, h, w] at positions (y, x) within it, linear between the four pixels around: [c, ...]."""
    out: Any = None
    h, w = image.shape[1:]
    for (rows, columns), weight in _corners(y, x):
        inside = _ops.minimum(rows, float(h - 1)), _ops.minimum(columns, float(w - 1))
        part = _taken(image, *inside) * weight
        out = part if out is None else out + part
    return out  # type: ignore[no-any-return]


@one_plan
def roi_align(
    features: Any, rois: Any, pooled_height: int, pooled_width: int, spatial_scale: float,
    sample_num: int = 2, roi_end_mode: int = 1,
) -> Tensor:  # fmt: skip
    """Means of samples between pixels in each cell of a grid over each region (He et al. 2017, Mask
    R-CNN, section 3).

    features [n, c, h, w]; rois [r, 5]: (image, x1, y1, x2, y2), whose numbers are asked for; result [r, c,
    pooled_height, pooled_width]. sample_num squared samples a cell, ceil of the cell's size for 0.
    roi_end_mode 1: the last pixel belongs to a region.
    """
    x, regions = (
        arguments.floating(arguments.of_rank(features, (4,), "ROIAlign")),
        _boxes(rois, "ROIAlign", "rois", 5),
    )
    h, w = x.shape[2:]
    outs = []
    rows: Any = regions.asnumpy().astype(np.float64).tolist()
    for image, *corners in rows:
        x1, y1, x2, y2 = (c * spatial_scale for c in corners)
        x2, y2 = x2 + spatial_scale * roi_end_mode, y2 + spatial_scale * roi_end_mode
        width, height = x2 - x1, y2 - y1
        if roi_end_mode == 1:
            width, height = max(width, 1.0), max(height, 1.0)
        counts = [
            sample_num if sample_num > 0 else math.ceil(size / cells)
            for size, cells in ((height, pooled_height), (width, pooled_width))
        ]
        lines = [
            start + (np.arange(cells * n) + 0.5) * size / (cells * n)
            for start, size, cells, n in zip(
                (y1, x1), (height, width), (pooled_height, pooled_width), counts, strict=True
            )
        ]
        grid_y, grid_x = np.meshgrid(*lines, indexing="ij")
        inside = (grid_y >= -1) & (grid_y <= h) & (grid_x >= -1) & (grid_x <= w)
        at = [Tensor(np.clip(g, 0, n - 1), x.dtype) for g, n in ((grid_y, h), (grid_x, w))]
        one = _image(x, int(image))
        values = bilinear(one, *at) * Tensor(inside.astype(np.float32), x.dtype)
        cells = _ops.reshape(
            values, [x.shape[1], pooled_height, counts[0], pooled_width, counts[1]]
        )
        outs.append(_ops.mean(cells, [2, 4]))
    return shaping.stack(outs, 0)


def _row(x: Tensor, i: int) -> Tensor:
    return _ops.slice(x, [i, 0], [1, x.shape[1]], [1, 1])


def _between(low: Tensor, high: Tensor, n: int, count: int) -> Tensor:
    """For each box `count` positions from low to high, shares of n - 1: [boxes, count]; the middle
    for one."""
    if count == 1:
        return (low + high) * ((n - 1) / 2)
    share = Tensor(np.linspace(0.0, 1.0, count), low.dtype)
    return (low + (high - low) * share) * float(n - 1)


@one_plan
def crop_and_resize(
    image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:  # fmt: skip
    """Boxes cut out of images [n, h, w, c] and resized to crop_size (height, width): [boxes, height,
    width, c].

    boxes: (y1, x1, y2, x2) as fractions of h - 1 and w - 1, [b, 4]. box_indices: the image of each,
    ints [b]. method: 'bilinear' or 'nearest'.

    image: a tensor [n, h, w, c]. crop_size: (height, width) of the results. extrapolation_value:
    the value of places outside of the image.
    """
    owner = "CropAndResize"
    x = arguments.of_rank(image, (4,), owner)
    arguments.one_of(method, ("bilinear", "nearest", "bilinear_v2"), owner, "method")
    h, w = x.shape[1:3]
    rows, columns = arguments.integers(crop_size, owner, "crop_size")
    which = arguments.integers(box_indices, owner, "box_indices")
    cut = _boxes(boxes, owner, "boxes")
    if len(which) != cut.shape[0]:
        bad_value(f"{owner}: {cut.shape[0]} boxes need as many box_indices, got {len(which)}")
    corners = _columns(cut)
    y, at = (
        _between(corners[k], corners[k + 2], n, count)
        for k, n, count in ((0, h, rows), (1, w, columns))
    )
    outs = []
    for k, i in enumerate(which):
        grid = [
            _ops.broadcast_to(_ops.reshape(_row(line, k), shape), [rows, columns])
            for line, shape in ((y, [rows, 1]), (at, [1, columns]))
        ]
        one = _ops.transpose(_ops.cast(_image(x, i), float32), [2, 0, 1])
        places = [
            _ops.minimum(_ops.maximum(v, 0.0), float(n - 1))
            for v, n in zip(grid, (h, w), strict=True)
        ]
        if method == "nearest":
            values = _taken(one, *(_ops.floor(v + 0.5) for v in places))
        else:
            values = bilinear(one, *places)
        inside = [
            _ops.logical_and(_ops.greater_equal(v, 0.0), _ops.less_equal(v, float(n - 1)))
            for v, n in zip(grid, (h, w), strict=True)
        ]
        values = _ops.where(_ops.logical_and(*inside), values, extrapolation_value)
        outs.append(_ops.transpose(values, [1, 2, 0]))
    return shaping.stack(outs, 0)


@one_plan
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:  # fmt: skip
    """input [n, c, h, w] at positions grid [n, h', w', 2], (x, y) from -1 to 1: [n, c, h', w'].
    Volumes [n, c, d, h, w] at positions [n, d', h', w', 3], (x, y, z): [n, c, d', h', w'].

    mode: 'bilinear', linear in each dimension, or 'nearest'. grid: positions, as above. padding_mode: for
    positions outside, 'zeros', 'border' (the nearest inside) or 'reflection'. align_corners: whether -1 and
    1 are the centres of the outermost pixels, or else their outer edges.
    """
    owner = "grid_sample"
    x = arguments.of_rank(input, (4, 5), owner)
    places = arguments.of_rank(grid, (x.ndim,), owner)
    arguments.one_of(mode, ("bilinear", "nearest"), owner, "mode")
    arguments.one_of(padding_mode, ("zeros", "border", "reflection"), owner, "padding_mode")
    sizes, points = x.shape[2:], list(places.shape[:-1])
    if points[0] != x.shape[0] or places.shape[-1] != len(sizes):
        bad_value(
            f"For '{owner}', a grid of shape {list(places.shape)} does not fit an input of shape "
            f"{list(x.shape)}"
        )
    n, c = x.shape[:2]
    at = []
    for k, size in enumerate(sizes):
        start = [0] * len(points) + [len(sizes) - 1 - k]
        g = _ops.reshape(_ops.slice(places, start, [*points, 1], [1] * x.ndim), points)
        half = (size - 1) / 2 if align_corners else size / 2
        v = (g + 1.0) * half + (0.0 if align_corners else -0.5)
        v = _reflected(v, size, bool(align_corners)) if padding_mode == "reflection" else v
        if padding_mode != "zeros":
            v = _ops.minimum(_ops.maximum(v, 0.0), float(size - 1))
        v = _ops.stop_gradient(_ops.round(v)) if mode == "nearest" else v
        if padding_mode == "zeros":
            v = _ops.minimum(_ops.maximum(v, -2.0), size + 1.0)  # further out is nothing either
        at.append(v)
    one = [n, 1, math.prod(points[1:])]
    pixels, weights = [], []
    for corner, weight in _corners(*at, alone=mode == "nearest"):
        if padding_mode != "zeros":  # a second pixel of weight 0
            corner = [_ops.minimum(v, float(m - 1)) for v, m in zip(corner, sizes, strict=True)]
        pixels.append(_ops.reshape(_place(corner, sizes), one))
        weights.append(_ops.reshape(weight, one))
    dtype = promote(x.dtype, places.dtype)
    out = _ops.sample(
        _ops.cast(_ops.reshape(x, [n, c, math.prod(sizes)]), dtype),
        _ops.concat(pixels, 1),
        _ops.cast(_ops.concat(weights, 1), dtype),
    )
    return _ops.reshape(out, [n, c, *points[1:]])


@one_plan
def deformable_conv2d(
    x: Any, weight: Any, offsets: Any, kernel_size: Any, strides: Any, padding: Any, bias: Any = None,
    dilations: Any = (1, 1, 1, 1), groups: int = 1, deformable_groups: int = 1, modulated: bool = True,
) -> Tensor:  # fmt: skip
    """A convolution whose window takes each pixel from a place of its own (Zhu et al. 2019).

    x: (N, C, H, W). weight: (O, C / groups, h, w). bias: None or (O,). offsets: (N, 3 G h w, H', W'), with
    G = deformable_groups: for each group of channels and each place of the window how far right of it and
    how far below it the pixel is, and what it is multiplied by. kernel_size: (h, w). strides, dilations:
    (1, 1, down, right). padding: above, below, left, right. groups: into how many the channels are divided,
    as for conv2d. deformable_groups: into how many groups with offsets of their own. modulated: True.
    Raises ValueError for other shapes.
    """
    owner = "deformable_conv2d"
    image, move = arguments.of_rank(x, (4,), owner), arguments.of_rank(offsets, (4,), owner)
    (n, c, h, w), parts = image.shape, deformable_groups
    (kh, kw), (out_h, out_w) = kernel_size, move.shape[2:]
    taken = [-(-(h + padding[0] + padding[1] - dilations[2] * (kh - 1)) // strides[2])]
    taken.append(-(-(w + padding[2] + padding[3] - dilations[3] * (kw - 1)) // strides[3]))
    shape = [n, 3 * parts * kh * kw, *taken]
    if list(move.shape) != shape or c % parts or not modulated:
        bad_value(
            f"For '{owner}', the 'offsets' must have shape {shape} and be modulated, and {parts} groups "
            f"divide {c} channels, but got {list(move.shape)}"
        )
    right, below, factor = shaping.unbind(
        _ops.reshape(move, [n, 3, parts, kh, kw, out_h, out_w]), 1
    )
    rows = np.add.outer(np.arange(kh) * dilations[2], np.arange(out_h) * strides[2] - padding[0])
    columns = np.add.outer(np.arange(kw) * dilations[3], np.arange(out_w) * strides[3] - padding[2])
    at = [right + Tensor(columns.astype(np.float32)[:, None]),
          below + Tensor(rows.astype(np.float32)[:, None, :, None])]  # fmt: skip
    at = [(v * 2.0 + (1.0 - s)) / s for v, s in zip(at, (w, h), strict=True)]
    grid = _ops.reshape(shaping.stack(at, -1), [n * parts, kh * kw, out_h * out_w, 2])
    pixels = grid_sample(_ops.reshape(image, [n * parts, c // parts, h, w]), grid)
    pixels = pixels * _ops.reshape(factor, [n * parts, 1, kh * kw, out_h * out_w])
    apart = _ops.reshape(pixels, [n, groups, c // groups * kh * kw, out_h * out_w])
    kernel = _ops.reshape(weight, [groups, weight.shape[0] // groups, -1])
    out = _ops.reshape(_ops.matmul(kernel, apart), [n, weight.shape[0], out_h, out_w])
    return out if bias is None else out + _ops.reshape(bias, [-1, 1, 1])


def _place(corner: Sequence[Tensor], sizes: Sequence[int]) -> Tensor:
    """Return the index of a pixel in an image whose lines follow one another; -1 outside."""
    far = -(2**31 // len(sizes))
    lines = []
    for k, (v, size) in enumerate(zip(corner, sizes, strict=True)):
        inside = _ops.logical_and(_ops.greater_equal(v, 0.0), _ops.less_equal(v, float(size - 1)))
        step = math.prod(sizes[k + 1 :])
        lines.append(_ops.where(inside, _ops.cast(v, int32) * step, far))
    return _ops.maximum(functools.reduce(_ops.add, lines), -1)


def _reflected(v: Tensor, n: int, corners: bool) -> Tensor:
    """Places folded back at the outermost centres, or edges."""
    low, span = (0.0, float(n - 1)) if corners else (-0.5, float(n))
    if span == 0:
        return v * 0.0
    off = _ops.abs(v - low)
    turns = _ops.stop_gradient(_ops.floor(off / span))
    rest = off - turns * span
    odd = _ops.equal(_ops.mod(turns, 2.0), 1.0)
    return _ops.where(odd, span - rest, rest) + low


# Blocks ---------------------------------------------------------------------------------------------


@one_plan
def depth_to_space(x: Any, block_size: int) -> Tensor:
    """[n, c b b, h, w] to [n, c, h b, w b]: channels become blocks of pixels, the block's rows first.

    block_size: the factor of the size.
    """
    t, b = arguments.of_rank(x, (4,), "DepthToSpace"), block_size
    n, c, h, w = t.shape
    if b < 2 or c % (b * b):
        bad_value(f"For 'DepthToSpace', {c} channels do not make blocks of {b} x {b}")
    apart = _ops.reshape(t, [n, b, b, c // (b * b), h, w])
    return _ops.reshape(_ops.transpose(apart, [0, 3, 4, 1, 5, 2]), [n, c // (b * b), h * b, w * b])


@one_plan
def space_to_depth(x: Any, block_size: int) -> Tensor:
    """[n, c, h b, w b] to [n, c b b, h, w]: the inverse of depth_to_space.

    block_size: the factor of the size.
    """
    t, b = arguments.of_rank(x, (4,), "SpaceToDepth"), block_size
    n, c, h, w = t.shape
    if b < 2 or h % b or w % b:
        bad_value(f"For 'SpaceToDepth', {h} x {w} pixels do not make blocks of {b} x {b}")
    apart = _ops.reshape(t, [n, c, h // b, b, w // b, b])
    return _ops.reshape(_ops.transpose(apart, [0, 3, 5, 1, 2, 4]), [n, c * b * b, h // b, w // b])


@one_plan
def pixel_shuffle(input: Any, upscale_factor: int) -> Tensor:
    """[..., c r r, h, w] to [..., c, h r, w r] (Shi et al. 2016, section 3.2).

    upscale_factor: the factor of the size.
    """
    t = arguments.tensor(input, "pixel_shuffle")
    r = arguments.integer(upscale_factor, "pixel_shuffle", "upscale_factor", 1)
    *outer, c, h, w = t.shape
    if t.ndim < 3 or c % (r * r):
        bad_value(f"For 'pixel_shuffle', shape {list(t.shape)} does not fit factor {r}")
    k = len(outer)
    apart = _ops.reshape(t, [*outer, c // (r * r), r, r, h, w])
    order = [*range(k), k, k + 3, k + 1, k + 4, k + 2]
    return _ops.reshape(_ops.transpose(apart, order), [*outer, c // (r * r), h * r, w * r])


@one_plan
def pixel_unshuffle(input: Any, downscale_factor: int) -> Tensor:
    """[..., c, h r, w r] to [..., c r r, h, w]: the inverse of pixel_shuffle.

    downscale_factor: the factor of the size.
    """
    t = arguments.tensor(input, "pixel_unshuffle")
    r = arguments.integer(downscale_factor, "pixel_unshuffle", "downscale_factor", 1)
    *outer, c, h, w = t.shape
    if t.ndim < 3 or h % r or w % r:
        bad_value(f"For 'pixel_unshuffle', shape {list(t.shape)} does not fit factor {r}")
    k = len(outer)
    apart = _ops.reshape(t, [*outer, c, h // r, r, w // r, r])
    order = [*range(k), k, k + 2, k + 4, k + 1, k + 3]
    return _ops.reshape(_ops.transpose(apart, order), [*outer, c * r * r, h // r, w // r])
