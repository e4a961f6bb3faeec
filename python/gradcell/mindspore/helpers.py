"""Names that MindSpore's programs use of its earlier versions and of its private modules."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

from gradcell import context, numpy
from gradcell._core import Tensor
from gradcell.base import arguments, bad_value, fields, gpu
from gradcell.nn.cell import Cell
from gradcell.ops.primitives.windowed import resized


@fields.declared
class ResizeBilinear(Cell):
    """Images (N, C, H, W) of another size, linear between pixels: what nn.ResizeBilinear was before
    MindSpore 2.1.

    half_pixel_centers: whether pixels have their centers at halves. Called with x and either size, (height,
    width), or scale_factor, an integer; align_corners: whether corners stay corners. Raises ValueError
    unless one of size and scale_factor is given.
    """

    half_pixel_centers: bool = fields.boolean(default=False)

    def construct(
        self, x: Tensor, size: Any = None, scale_factor: Any = None, align_corners: bool = False
    ) -> Tensor:
        if (size is None) == (scale_factor is None):
            bad_value(f"For '{self.cls_name}', either 'size' or 'scale_factor' must be given.")
        if scale_factor is not None:
            by = arguments.integer(scale_factor, self.cls_name, "scale_factor", 1)
            size = tuple(n * by for n in x.shape[2:])
        return resized(
            x, size, kind="linear", align_corners=align_corners,
            half_pixel_centers=self.half_pixel_centers,
        )  # fmt: skip


@functools.cache
def cached_primitive(cls: type) -> Callable[..., Any]:
    """Return a function of the class's arguments that gives one object for equal ones."""
    made: dict[str, Any] = {}

    def primitive(*args: Any, **kwargs: Any) -> Any:
        key = repr((args, kwargs))
        if key not in made:
            made[key] = cls(*args, **kwargs)
        return made[key]

    return primitive


def tensors_of(*args: Any) -> Any:
    """The argument as a tensor, or a tuple of several."""
    made = tuple(numpy.asarray(a) for a in args)
    return made[0] if len(made) == 1 else made


def is_available(device_target: str = "CPU") -> bool:
    """Return whether programs can use a device: 'CPU', 'GPU' or 'Ascend'. Raises ValueError for another."""
    arguments.one_of(device_target, ("CPU", "GPU", "Ascend"), "is_available", "device_target")
    return device_target == "CPU" or (device_target == "GPU" and gpu.missing(0) is None)


def device_count(device_target: str | None = None) -> int:
    """The number of devices of a kind, by default of that in use. Raises ValueError if there are none."""
    target = device_target or context.get_context("device_target")
    if not is_available(target):
        bad_value(f"device_count: {target} cannot be used here; hal.is_available says so first")
    if target == "CPU":
        return 1
    return next(n for n in itertools.count() if gpu.missing(n) is not None)


#: is_available and device_count of a module of one kind of device.
ascend_is_available: Callable[[], bool] = functools.partial(is_available, "Ascend")
ascend_count: Callable[[], int] = functools.partial(device_count, "Ascend")
gpu_is_available: Callable[[], bool] = functools.partial(is_available, "GPU")
gpu_count: Callable[[], int] = functools.partial(device_count, "GPU")
