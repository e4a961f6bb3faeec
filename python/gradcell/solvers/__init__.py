"""Solvers: least squares by Gauss-Newton steps, runs of optimisers, and how certain what they find is."""

from gradcell.solvers.covariance import Covariance
from gradcell.solvers.descent import Descent
from gradcell.solvers.gauss_newton import GaussNewton, GaussNewtonState
from gradcell.solvers.solver import SolverState

__all__ = ["Covariance", "Descent", "GaussNewton", "GaussNewtonState", "SolverState"]
