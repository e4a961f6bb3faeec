"""Transforms of images for a dataset's map, on arrays or on images of Pillow's.

Decoding files and turning images need the package Pillow: pip install gradcell[vision].
"""

from gradcell.base import publish as _publish
from gradcell.dataset.vision.color import *  # noqa: F403
from gradcell.dataset.vision.convert import *  # noqa: F403
from gradcell.dataset.vision.geometry import *  # noqa: F403
from gradcell.dataset.vision.image import *  # noqa: F403
from gradcell.dataset.vision.mixing import *  # noqa: F403

_publish(globals())
