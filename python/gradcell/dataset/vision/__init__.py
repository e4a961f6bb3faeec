"""Transforms of images for a dataset's map, on arrays or on images of Pillow's.

Decoding files and turning images need the package Pillow: pip install gradcell[vision].
"""

from __future__ import annotations

from gradcell.dataset.vision import color, convert, geometry, image, mixing
from gradcell.dataset.vision.color import *  # noqa: F403
from gradcell.dataset.vision.convert import *  # noqa: F403
from gradcell.dataset.vision.geometry import *  # noqa: F403
from gradcell.dataset.vision.image import *  # noqa: F403
from gradcell.dataset.vision.mixing import *  # noqa: F403

__all__ = [*color.__all__, *convert.__all__, *geometry.__all__, *image.__all__, *mixing.__all__]
__dir__ = sorted(__all__).copy
