"""The fit as a scikit-learn regressor; scikit-learn itself is not needed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_array

from .estimate import Fit, fit


class LossLawRegressor:
    """Predict the loss from the columns N (parameters) and D (training tokens).

    Parameters
    ----------
    delta, max_ratio, overestimate_weight, bootstrap
        As in `fit`.
    random_state : int, optional
        Seed of the bootstrap.

    Attributes
    ----------
    fit_ : Fit
        Everything that `fit` returns.
    law_ : ScalingLaw
        The law.
    n_features_in_ : int
        2.
    """

    def __init__(
        self,
        *,
        delta: float = 1e-3,
        max_ratio: float | None = None,
        overestimate_weight: float = 1.0,
        bootstrap: int = 0,
        random_state: int | None = None,
    ) -> None:
        self.delta = delta
        self.max_ratio = max_ratio
        self.overestimate_weight = overestimate_weight
        self.bootstrap = bootstrap
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> LossLawRegressor:
        """Fit the law.

        Parameters
        ----------
        X : array_like, shape (n, 2)
            Parameters and training tokens of each run.
        y : array_like, shape (n,)
            Losses.
        """
        columns = _columns(X)
        settings = self.get_params()
        seed = settings.pop("random_state")
        self.fit_: Fit = fit(columns[:, 0], columns[:, 1], y, seed=seed, **settings)
        self.law_ = self.fit_.law
        self.n_features_in_ = 2
        return self

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict losses, shape (n,)."""
        if not hasattr(self, "law_"):
            raise _not_fitted()
        columns = _columns(X)
        return np.asarray(self.law_.loss(columns[:, 0], columns[:, 1]))

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Coefficient of determination R^2 of the predictions."""
        measured = check_array("y", y, ndim=1, dtype=np.float64)
        total = np.sum((measured - measured.mean()) ** 2)
        return float(1 - np.sum((measured - self.predict(X)) ** 2) / total)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters."""
        return {name: getattr(self, name) for name in _names()}

    def set_params(self, **params: Any) -> LossLawRegressor:
        """Set parameters of the constructor."""
        for name, value in params.items():
            if name not in _names():
                raise expected("parameter", f"one of {', '.join(_names())}", name)
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"LossLawRegressor({told})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "law_")

    def __sklearn_tags__(self) -> Any:
        # Only scikit-learn calls this, so it is there.
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        return Tags(
            estimator_type="regressor",
            target_tags=TargetTags(required=True, positive_only=True),
            regressor_tags=RegressorTags(),
            input_tags=InputTags(positive_only=True),
        )


def _not_fitted() -> Exception:
    """Return scikit-learn's own error where it is installed: pipelines look for it."""
    error = expected("LossLawRegressor", "a fitted regressor: call fit first", "no fit")
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return error
    return NotFittedError(str(error))


def _names() -> list[str]:
    return [name for name in inspect.signature(LossLawRegressor).parameters if name != "self"]


def _columns(X: ArrayLike) -> np.ndarray:
    return check_array("X", X, shape=(None, 2), dtype=np.float64, above=0)
