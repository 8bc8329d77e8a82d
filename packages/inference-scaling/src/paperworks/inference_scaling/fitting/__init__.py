"""Estimating the law from runs: `descent` minimises, `estimate` fits, `regressor` wraps."""

from .estimate import Convergence, Fit, HeldOut, fit
from .regressor import LossLawRegressor

__all__ = ["Convergence", "Fit", "HeldOut", "LossLawRegressor", "fit"]
