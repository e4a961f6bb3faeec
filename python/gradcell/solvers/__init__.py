"""Second-order training: least squares by Gauss-Newton steps."""

from gradcell.solvers.gauss_newton import GaussNewton, GaussNewtonState

__all__ = ["GaussNewton", "GaussNewtonState"]
