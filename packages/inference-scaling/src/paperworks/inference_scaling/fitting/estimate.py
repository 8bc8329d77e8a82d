"""`fit`: the law of a table of runs, with intervals and a report of how the fit converged."""

from __future__ import annotations

import importlib.metadata
import itertools
import math
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from paperworks.inference_scaling.law import FloatOrArray, ScalingLaw
from paperworks.inference_scaling.runs import (
    COEFFICIENTS,
    RunsWarning,
    check_count,
    check_identified,
    check_runs,
    data_hash,
)
from paperworks.shared.errors import expected
from paperworks.shared.files import PathLike, write_json
from paperworks.shared.seeding import Seed, generator
from paperworks.shared.statistics import Interval, mean_interval
from paperworks.shared.validation import check_array, check_number

from .descent import Problem, Solution, jacobian, minimize, objective

POLISHED = 50
_FEWEST_RESAMPLES = 10
_AGREEING = 3
_SAME = 1e-6
_CHUNK = 250  # resamples a task: fixed, so that the result does not depend on the workers
_MIN_RUNS_TO_RESAMPLE = 2 * COEFFICIENTS


@dataclass(frozen=True)
class Convergence:
    """How the descents ended.

    Attributes
    ----------
    objective : float
        Sum of Huber penalties at the optimum.
    gradient : float
        Largest absolute entry of its gradient (centred and scaled coordinates).
    converged : bool
        Whether the gradient fell below 1e-8 of the largest that the runs can give.
    steps : int
        Newton steps of the best descent.
    starts, polished, agreeing : int
        Starts screened, starts descended from, and how many of these reached the optimum (to 1e-6
        of the objective).
    condition : float
        Condition number of the curvature at the optimum; large means coefficients that trade off
        against each other.
    """

    objective: float
    gradient: float
    converged: bool
    steps: int
    starts: int
    polished: int
    agreeing: int
    condition: float


@dataclass(frozen=True)
class HeldOut:
    """Errors on the runs above ``max_ratio``, in log loss (0.01 is about 1 %).

    Attributes
    ----------
    runs : int
        How many were held out.
    root_mean_square : float
        Of log predicted loss - log loss.
    mean : Interval or None
        Of the same difference, over runs (Student's t), for this law: the runs share its error of
        estimation, which the interval leaves out (`Fit.interval` has it). Negative: the law
        promises more than the runs gave. None for a single run.
    """

    runs: int
    root_mean_square: float
    mean: Interval | None


@dataclass(frozen=True)
class Fit:
    """A fitted law with its uncertainty.

    Attributes
    ----------
    law : ScalingLaw
        The coefficients.
    intervals : dict of str to Interval
        Of each coefficient: percentiles of the bootstrap, or without one Student's t intervals of
        log E, log A, log B, alpha, beta from ``covariance``.
    covariance, correlation : array, shape (5, 5)
        Of log E, log A, log B, alpha, beta: from the bootstrap, or else the sandwich estimator.
    samples : array, shape (bootstrap, 5)
        E, A, B, alpha, beta of each resample.
    convergence : Convergence
        How the fit was found.
    held_out : HeldOut or None
        Errors above ``max_ratio``, where there are runs.
    residuals : array, shape (n,)
        Log predicted loss - log loss of all runs in their order.
    used : array of bool, shape (n,)
        Which runs were fitted.
    settings : dict
        delta, max_ratio, overestimate_weight, bootstrap, seed, level.
    digest : str
        SHA-256 of the runs.
    """

    law: ScalingLaw
    intervals: Mapping[str, Interval]
    covariance: np.ndarray
    correlation: np.ndarray
    samples: np.ndarray
    convergence: Convergence
    held_out: HeldOut | None
    residuals: np.ndarray
    used: np.ndarray
    settings: Mapping[str, Any]
    digest: str

    def sampled_law(self) -> ScalingLaw:
        """Return the bootstrap samples as one law of arrays, for `plan` and predictions.

        Resamples whose exponents are not positive are left out: such a law has no optimum.
        """
        if not len(self.samples):
            raise expected("bootstrap", "a fit with bootstrap samples", "no samples")
        good = np.all(np.isfinite(self.samples), axis=1) & np.all(self.samples[:, 1:] > 0, axis=1)
        return ScalingLaw(*self.samples[good].T)

    def interval(self, statistic: Callable[[ScalingLaw], FloatOrArray]) -> Interval:
        """Percentile interval of anything that follows from the law.

        Parameters
        ----------
        statistic : callable
            Such as ``lambda law: law.loss(1e9, 1e12)`` or
            ``lambda law: plan(law, 2.0, demand).params``. It is called with `sampled_law`.
        """
        level = self.settings["level"]
        values = np.asarray(statistic(self.sampled_law()))
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return Interval(float(np.asarray(statistic(self.law))), float(low), float(high), level)

    def to_dict(self) -> dict[str, Any]:
        """Return what `save` writes."""
        held = self.held_out
        return {
            "format": "paperworks.inference-scaling/law",
            "version": importlib.metadata.version("paperworks-inference-scaling"),
            "coefficients": self.law.to_dict(),
            "intervals": {k: {"low": v.low, "high": v.high} for k, v in self.intervals.items()},
            "correlation": {
                "order": ["log E", "log A", "log B", "alpha", "beta"],
                "matrix": self.correlation,
            },
            "convergence": asdict(self.convergence),
            "held_out": None if held is None else asdict(held),
            "data": {"runs": len(self.used), "fitted": int(self.used.sum()), "sha256": self.digest},
            "settings": dict(self.settings),
        }

    def save(self, path: PathLike) -> None:
        """Write the law as JSON, whole or not at all; `ScalingLaw.from_json` reads it."""
        write_json(path, self.to_dict())


def fit(
    params: ArrayLike,
    tokens: ArrayLike,
    loss: ArrayLike,
    *,
    delta: float = 1e-3,
    max_ratio: float | None = None,
    overestimate_weight: float = 1.0,
    starts: Literal["grid", "all"] | ArrayLike = "grid",
    bootstrap: int = 0,
    level: float = 0.95,
    seed: Seed = None,
    workers: int = 1,
) -> Fit:
    """Fit E, A, B, alpha, beta to training runs (Hoffmann et al. 2022, appendix D.3).

    Parameters
    ----------
    params, tokens, loss : array_like, shape (n,)
        Parameters, training tokens and final loss of each run, n >= 5.
    delta : float
        Where the Huber penalty of the log loss turns linear.
    max_ratio : float, optional
        Fit only the runs with at most so many tokens per parameter; the others are held out.
    overestimate_weight : float
        Factor > 0 of the penalty where the law lies above the run. Above 1 it suits runs that were
        not tuned to the end, whose losses are upper bounds.
    starts : {"grid", "all"} or array_like, shape (s, 5)
        ``"grid"`` screens the 4,500 starts of Hoffmann et al. and descends from the 50 best; when
        fewer than 3 of them agree on the optimum it descends from all, as ``"all"`` does. Or your
        own starts (log A, log B, log E, alpha, beta).
    bootstrap : int
        Resamples of the runs, with replacement; 0 for none.
    level : float
        Confidence level of the intervals.
    seed : int, SeedSequence or Generator, optional
        Of the resamples: the same seed gives the same intervals, whatever ``workers`` is.
    workers : int
        Processes for the bootstrap.

    Returns
    -------
    Fit
        The law, its intervals, and the report of the convergence.

    Warns
    -----
    RunsWarning
        For duplicates, a suspected unit slip, and a fit that did not converge.

    Raises
    ------
    InputError
        For runs that cannot be fitted (see `runs.check_runs`), or whose loss does not fall with
        params and tokens.
    """
    n, d, y = check_runs(params, tokens, loss)
    delta = check_number("delta", delta, minimum=1e-12, maximum=1e6)
    weight = check_number("overestimate_weight", overestimate_weight, minimum=1e-6, maximum=1e6)
    bootstrap = check_number("bootstrap", bootstrap, integer=True, minimum=0)
    if 0 < bootstrap < _FEWEST_RESAMPLES:
        wanted = f"0 (none) or at least {_FEWEST_RESAMPLES} resamples"
        raise expected("bootstrap", wanted, bootstrap)
    level = check_number("level", level, above=0, below=1)
    workers = check_number("workers", workers, integer=True, minimum=1)
    used = np.ones(len(n), dtype=bool)
    if max_ratio is not None:
        used = d / n <= check_number("max_ratio", max_ratio, above=0) * (1 + 1e-9)
        check_count(int(used.sum()), f"runs up to {max_ratio:g} tokens per parameter")
        if not used.all():
            check_identified(n[used], d[used], y[used])
    x, z, log_y = np.log(n), np.log(d), np.log(y)
    count = int(used.sum())
    problem = Problem(x[used], z[used], log_y[used], np.ones(count), delta, weight)
    theta, convergence = _optimum(problem, starts)
    if min(theta[3], theta[4]) <= 0:
        found = f"alpha = {theta[3]:.3g} and beta = {theta[4]:.3g}"
        raise expected("runs", "a loss that falls with params and with tokens", found)
    if not convergence.converged:
        warnings.warn(
            f"the fit did not converge (gradient {convergence.gradient:.1e}): these runs do not "
            "identify all five coefficients",
            RunsWarning,
            stacklevel=2,
        )
    thetas = _resample(problem, theta, bootstrap, seed, workers)
    covariance = np.cov(thetas.T) if bootstrap > 1 else _sandwich(problem, theta)
    covariance = covariance[np.ix_(_ORDER, _ORDER)]
    with np.errstate(invalid="ignore", divide="ignore"):
        deviations = np.sqrt(np.diag(covariance))
        correlation = covariance / np.outer(deviations, deviations)
    samples = _natural(thetas)
    law = ScalingLaw(*_natural(theta[None])[0].tolist())
    residuals = np.log(law.loss(n, d)) - log_y
    return Fit(
        law=law,
        intervals=_intervals(law, samples, deviations, count, level),
        covariance=covariance,
        correlation=correlation,
        samples=samples,
        convergence=convergence,
        held_out=_held_out(residuals[~used], level),
        residuals=residuals,
        used=used,
        settings={
            "delta": delta,
            "max_ratio": max_ratio,
            "overestimate_weight": weight,
            "bootstrap": bootstrap,
            "seed": seed if isinstance(seed, int) else None,
            "level": level,
        },
        digest=data_hash(n, d, y),
    )


def start_grid() -> np.ndarray:
    """Return the 4,500 starts (log A, log B, log E, alpha, beta) of Hoffmann et al. 2022."""
    scales, floors, exponents = range(0, 26, 5), (-1, -0.5, 0, 0.5, 1), (0, 0.5, 1, 1.5, 2)
    return np.array(
        list(itertools.product(scales, scales, floors, exponents, exponents)), dtype=np.float64
    )


_ORDER = [2, 0, 1, 3, 4]  # from log A, log B, log E, ... to log E, log A, log B, ...


def _natural(theta: np.ndarray) -> np.ndarray:
    """Turn (log A, log B, log E, alpha, beta) into (E, A, B, alpha, beta)."""
    ordered = theta[:, _ORDER]
    with np.errstate(over="ignore"):
        return np.concatenate([np.exp(ordered[:, :3]), ordered[:, 3:]], axis=1)


def _optimum(problem: Problem, starts: Any) -> tuple[np.ndarray, Convergence]:
    if isinstance(starts, str):
        if starts not in ("grid", "all"):
            raise expected("starts", "'grid', 'all' or an array of shape (s, 5)", starts)
        grid = start_grid()
        screened = grid[np.argsort(objective(problem, grid), kind="stable")]
        polished = screened[:POLISHED] if starts == "grid" else screened
    else:
        grid = polished = check_array("starts", starts, shape=(None, 5), dtype=np.float64)
        if not len(grid):
            raise expected("starts", "at least one start", "no start")
    found = minimize(problem, polished)
    if isinstance(starts, str) and starts == "grid" and _agreeing(problem, found) < _AGREEING:
        polished = screened
        found = minimize(problem, polished)
    best = int(np.argmin(found.objective))
    scaled = jacobian(problem, found.theta[best])
    scaled = scaled / np.maximum(np.linalg.norm(scaled, axis=0), 1e-300)
    gradient = float(found.gradient[best])
    return found.theta[best], Convergence(
        objective=float(found.objective[best]),
        gradient=gradient,
        converged=bool(found.converged[best]),
        steps=int(found.steps[best]),
        starts=len(grid),
        polished=len(polished),
        agreeing=_agreeing(problem, found),
        condition=float(np.linalg.cond(scaled) ** 2),
    )


def _agreeing(problem: Problem, found: Solution) -> int:
    """Count the converged descents that reached the best objective."""
    # An exact fit has an objective of rounding errors, which never agree to six digits.
    slack = 1e-9 * problem.delta**2 * problem.weights.sum()
    best = found.objective.min() * (1 + _SAME) + slack
    return int(np.sum((found.objective <= best) & found.converged))


def _resample(
    problem: Problem, theta: np.ndarray, bootstrap: int, seed: Seed, workers: int
) -> np.ndarray:
    """Fit resamples of the runs, each from the optimum of all runs."""
    if not bootstrap:
        return np.empty((0, COEFFICIENTS))
    count = len(problem.log_params)
    if count < _MIN_RUNS_TO_RESAMPLE:
        raise expected("bootstrap", f"at least {_MIN_RUNS_TO_RESAMPLE} runs to resample", count)
    draws = generator(seed).multinomial(count, np.full(count, 1 / count), size=bootstrap)
    parts = [draws[i : i + _CHUNK].astype(np.float64) for i in range(0, bootstrap, _CHUNK)]
    if workers == 1 or len(parts) == 1:
        return np.concatenate([_fit_weights(problem, theta, part) for part in parts])
    with ProcessPoolExecutor(min(workers, len(parts))) as pool:
        return np.concatenate(
            list(pool.map(_fit_weights, itertools.repeat(problem), itertools.repeat(theta), parts))
        )


def _fit_weights(problem: Problem, theta: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return minimize(problem.weighted(weights), np.repeat(theta[None], len(weights), 0)).theta


def _sandwich(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Robust covariance of theta, with residuals corrected for leverage (HC3).

    The slope of the Huber score is the share of residuals within delta. That is taken over a wider
    window where delta is far below the noise, as for a density at zero.
    """
    slopes = jacobian(problem, theta)
    residual = problem.residual(theta)
    count = len(residual)
    if count <= COEFFICIENTS:
        return np.full((COEFFICIENTS, COEFFICIENTS), np.nan)
    inverse = np.linalg.pinv(slopes.T @ slopes)
    leverage = np.einsum("ij,jk,ik->i", slopes, inverse, slopes)
    spread = 1.4826 * float(np.median(np.abs(residual))) * math.sqrt(count / (count - COEFFICIENTS))
    window = max(problem.delta, spread * count**-0.2)
    share = np.mean(np.abs(residual) <= window) * problem.delta / window
    score = np.clip(residual, -problem.delta, problem.delta) / np.maximum(1 - leverage, 1e-3)
    scored = slopes * score[:, None]
    return inverse @ (scored.T @ scored) @ inverse / max(share, 1 / count) ** 2


def _intervals(
    law: ScalingLaw, samples: np.ndarray, deviations: np.ndarray, count: int, level: float
) -> dict[str, Interval]:
    estimates = np.array(list(law.to_dict().values()))
    tails = [(1 - level) / 2, (1 + level) / 2]
    if len(samples):
        low, high = np.quantile(samples, tails, axis=0)
    elif count > COEFFICIENTS:
        width = deviations * student.ppf(tails[1], count - COEFFICIENTS)
        logs = np.arange(COEFFICIENTS) < 3
        with np.errstate(over="ignore"):
            low = np.where(logs, estimates * np.exp(-width), estimates - width)
            high = np.where(logs, estimates * np.exp(width), estimates + width)
    else:
        low = high = np.full(COEFFICIENTS, np.nan)
    return {
        name: Interval(float(estimates[i]), float(low[i]), float(high[i]), level)
        for i, name in enumerate(ScalingLaw.COEFFICIENTS)
    }


def _held_out(residuals: np.ndarray, level: float) -> HeldOut | None:
    if not len(residuals):
        return None
    mean = mean_interval(residuals, level) if len(residuals) > 1 else None
    return HeldOut(len(residuals), float(np.sqrt(np.mean(residuals**2))), mean)
