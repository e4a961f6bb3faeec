"""Functions that most programs for differential equations need: shapes with points inside and on their
boundaries, inputs of networks, conditions as residuals or by construction, weights of residuals, data from
files, pictures, the course of a run, an estimate of the error; and one call that does it all. They can be
combined with anything."""

from gradcell.physics.band import band
from gradcell.physics.conditions import dirichlet, interface, neumann, periodicity, robin
from gradcell.physics.course import Course
from gradcell.physics.data import columns
from gradcell.physics.errors import ErrorEstimate, error_estimate
from gradcell.physics.inputs import constrained, enriched, fourier, periodic, vanishing
from gradcell.physics.networks import network
from gradcell.physics.outlines import Corner, Mesh, Polygon, shape, singular
from gradcell.physics.pictures import plot
from gradcell.physics.points import ball, box, by_size, faces, sphere
from gradcell.physics.recipe import Solution, SolutionPass, solve
from gradcell.physics.shapes import Ball, Box, Shape
from gradcell.physics.weights import weights_by_ntk, weights_by_variance

__all__ = [
    "Ball", "Box", "Corner", "Course", "ErrorEstimate", "Mesh", "Polygon", "Shape", "Solution",
    "SolutionPass", "ball", "band", "box", "by_size", "columns", "constrained", "dirichlet", "enriched",
    "error_estimate", "faces", "fourier", "interface", "network", "neumann", "periodic", "periodicity",
    "plot", "robin", "shape", "singular", "solve", "sphere", "vanishing", "weights_by_ntk",
    "weights_by_variance",
]  # fmt: skip
__dir__ = sorted(__all__).copy
