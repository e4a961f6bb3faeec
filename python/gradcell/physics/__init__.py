"""Functions that most programs for differential equations need: points in boxes and balls, inputs
of networks, conditions that hold by construction, weights of residuals, a picture of the course of
a run. They can be combined with anything."""

from gradcell.physics.course import Course
from gradcell.physics.inputs import constrained, fourier, periodic, vanishing
from gradcell.physics.points import ball, box, by_size, faces, sphere
from gradcell.physics.weights import weights_by_ntk, weights_by_variance

__all__ = [
    "Course", "ball", "box", "by_size", "constrained", "faces", "fourier", "periodic", "sphere",
    "vanishing", "weights_by_ntk", "weights_by_variance",
]  # fmt: skip
__dir__ = sorted(__all__).copy
