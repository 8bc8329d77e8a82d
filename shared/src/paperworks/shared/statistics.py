"""Intervals and tests that judge claims over seeds, data sets and sizes (needs scipy)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .errors import expected, require
from .validation import check_array, check_choice, check_number

Alternative = Literal["two-sided", "greater", "less"]


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes
    ----------
    estimate, low, high : float
        The point estimate and the bounds; one-sided bounds leave the other end infinite.
    level : float
        The confidence level, such as 0.95.
    p_value : float or None
        Of the test that the estimate is zero, where one was made.
    """

    estimate: float
    low: float
    high: float
    level: float
    p_value: float | None = None

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


def mean_interval(
    values: ArrayLike, level: float = 0.95, alternative: Alternative = "two-sided"
) -> Interval:
    """Student's t interval of a mean.

    Parameters
    ----------
    values : array_like, shape (n,)
        At least two independent repetitions.
    level : float
        Confidence level in (0, 1).
    alternative : {"two-sided", "greater", "less"}
        ``"greater"`` gives a lower bound only (evidence that the mean is greater than zero).

    Returns
    -------
    Interval
        With the p-value of the t test against a mean of zero. For values that are all equal the
        interval is that value.
    """
    x = check_array("values", values, ndim=1, dtype=np.float64)
    level = check_number("level", level, above=0, below=1)
    check_choice("alternative", alternative, ("two-sided", "greater", "less"))
    if x.size < 2:
        raise expected("values", "at least two repetitions", f"{x.size}")
    t = _stats().t
    mean, error = float(x.mean()), float(x.std(ddof=1) / np.sqrt(x.size))
    df = x.size - 1
    tail = (1 - level) / 2 if alternative == "two-sided" else 1 - level
    width = error * float(t.isf(tail, df)) if error else 0.0
    score = mean / error if error else (float(np.sign(mean)) * np.inf if mean else 0.0)
    p = {
        "two-sided": 2 * t.sf(abs(score), df),
        "greater": t.sf(score, df),
        "less": t.cdf(score, df),
    }[alternative]
    low = -np.inf if alternative == "less" else mean - width
    high = np.inf if alternative == "greater" else mean + width
    return Interval(mean, low, high, level, float(p))


def paired_difference(
    a: ArrayLike, b: ArrayLike, level: float = 0.95, alternative: Alternative = "two-sided"
) -> Interval:
    """Interval of the mean of ``a - b`` over pairs (same seed or same data set), by Student's t."""
    x = check_array("a", a, ndim=1, dtype=np.float64)
    y = check_array("b", b, shape=x.shape, dtype=np.float64)
    return mean_interval(x - y, level, alternative)


def binomial_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Exact (Clopper-Pearson) interval of a proportion."""
    trials = check_number("trials", trials, integer=True, minimum=1)
    successes = check_number("successes", successes, integer=True, minimum=0, maximum=trials)
    level = check_number("level", level, above=0, below=1)
    result = _stats().binomtest(successes, trials).proportion_ci(level, method="exact")
    return Interval(successes / trials, float(result.low), float(result.high), level)


def power_law_exponent(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> Interval:
    """Slope of log y on log x by least squares, with its t interval.

    Parameters
    ----------
    x, y : array_like, shape (n,)
        Positive sizes and what was measured at them, n >= 3.
    level : float
        Confidence level.
    """
    sizes = check_array("x", x, ndim=1, dtype=np.float64, above=0)
    values = check_array("y", y, shape=sizes.shape, dtype=np.float64, above=0)
    if sizes.size < 3 or np.ptp(sizes) == 0:
        raise expected("x", "at least three points at different sizes", f"{sizes.size} points")
    fit = _stats().linregress(np.log(sizes), np.log(values))
    width = float(fit.stderr * _stats().t.isf((1 - level) / 2, sizes.size - 2))
    return Interval(float(fit.slope), float(fit.slope) - width, float(fit.slope) + width, level)


def _stats() -> Any:
    return require("scipy.stats", package="paperworks-shared", extra="statistics")
