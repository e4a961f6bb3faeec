"""Second-order training: least squares by Gauss-Newton steps, and how certain what they find is."""

from gradcell.solvers.covariance import Covariance
from gradcell.solvers.gauss_newton import GaussNewton, GaussNewtonState

__all__ = ["Covariance", "GaussNewton", "GaussNewtonState"]
