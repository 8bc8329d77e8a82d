"""The James-Stein estimator of a multivariate normal mean, and its exact risk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_array, check_number


def james_stein(
    observations: ArrayLike, *, noise_std: float = 1.0, center: ArrayLike = 0.0
) -> np.ndarray:
    """Shrink observations of many means towards a common centre.

    Parameters
    ----------
    observations : array_like, shape (..., p)
        One observation of p >= 3 means in each row, with independent normal noise.
    noise_std : float
        The known standard deviation of the noise, in the observations' unit.
    center : array_like, broadcastable to (..., p)
        What is shrunk to. It must not depend on the observations.

    Returns
    -------
    numpy.ndarray, shape (..., p), float64
        ``center + max(0, 1 - (p - 2) noise_std^2 / |y - center|^2) (y - center)``, the
        positive-part estimator (James & Stein 1961; Baranchik 1964).

    Raises
    ------
    InputError
        For fewer than three means, a noise that is not positive, or values that are not finite.

    Examples
    --------
    >>> james_stein([3.0, 0.0, 4.0], noise_std=1.0)
    array([2.88, 0.  , 3.84])
    """
    y = check_array("observations", observations, dtype=np.float64)
    if y.ndim == 0 or y.shape[-1] < 3:
        raise expected("observations", "rows of at least 3 means", f"shape {y.shape}")
    noise_std = check_number("noise_std", noise_std, above=0)
    origin = check_array("center", center, dtype=np.float64)
    offset = y - origin
    squared_norm = np.sum(offset**2, axis=-1, keepdims=True)
    needed = (y.shape[-1] - 2) * noise_std**2
    # Near the centre the factor would be negative, and at the centre 0 / 0: both become 0.
    shrunk = 1 - needed / np.maximum(squared_norm, needed)
    return origin + shrunk * offset


def james_stein_risk(dimensions: int, squared_norm: float) -> float:
    """Exact risk of the plain (not positive-part) estimator with unit noise.

    Parameters
    ----------
    dimensions : int
        The number of means p >= 3.
    squared_norm : float
        Squared distance of the true means from the centre, in units of the noise.

    Returns
    -------
    float
        ``p - (p - 2)^2 E[1 / (p - 2 + 2 K)]`` with K Poisson of mean ``squared_norm / 2``. The
        observations themselves have the risk p.
    """
    p = check_number("dimensions", dimensions, integer=True, minimum=3)
    rate = check_number("squared_norm", squared_norm, minimum=0) / 2
    # The Poisson weights beyond 12 standard deviations are below double precision.
    k = np.arange(math.ceil(rate + 12 * math.sqrt(rate) + 40))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.maximum(k[1:], 1)))])
    log_weight = k * math.log(rate) - rate - log_factorial if rate else np.where(k == 0, 0, -np.inf)
    return float(p - (p - 2) ** 2 * np.sum(np.exp(log_weight) / (p - 2 + 2 * k)))
