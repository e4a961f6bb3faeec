"""Transforms of one image as functions of it and of their options: MindSpore's py_transforms_util, which
programs use in transforms of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gradcell.dataset.transforms import TensorOperation
from gradcell.dataset.vision import color, geometry
from gradcell.dataset.vision.image import is_pil

#: What transforms say to what is no image of Pillow's: a text with a place for its type.
augment_error_message = "expected an image of Pillow's (Decode(to_pil=True) or ToPIL()), got {}"

_TRANSFORMS: dict[str, type[TensorOperation]] = {
    "adjust_brightness": color.AdjustBrightness, "adjust_contrast": color.AdjustContrast,
    "adjust_gamma": color.AdjustGamma, "adjust_hue": color.AdjustHue,
    "adjust_saturation": color.AdjustSaturation, "auto_contrast": color.AutoContrast,
    "equalize": color.Equalize, "grayscale": color.Grayscale, "invert_color": color.Invert,
    "center_crop": geometry.CenterCrop, "five_crop": geometry.FiveCrop,
    "horizontal_flip": geometry.HorizontalFlip, "pad": geometry.Pad, "random_crop": geometry.RandomCrop,
    "resize": geometry.Resize, "rotate": geometry.Rotate, "vertical_flip": geometry.VerticalFlip,
}  # fmt: skip

__all__ = ["augment_error_message", "is_pil", *_TRANSFORMS]


def __getattr__(name: str) -> Callable[..., Any]:
    transform = _TRANSFORMS.get(name)
    if transform is None:
        raise AttributeError(name)
    of: type[Any] = transform

    def function(img: Any, *options: Any) -> Any:
        return of(*options)(img)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{of.__name__} of an image, with its options by place."
    return function
