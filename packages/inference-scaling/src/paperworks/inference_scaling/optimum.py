"""The least-cost model size and token count for a loss and an inference demand.

Minimise 6 N D + 2 N D_inf subject to L(N, D) = l (section 2 of the paper). With the share of the
reducible loss l - E that the size leaves written as a logistic of one number u,

    A N^-alpha = (l - E) sigmoid(u),   B D^-beta = (l - E) sigmoid(-u),

every real u is feasible and the first-order condition becomes

    u - log(beta / alpha) - log(1 + K / D(u)) = 0,   K = D_inf / 3,

which is strictly increasing in u. So the root is unique, has a bracket in closed form, stays in log
space however near the loss is to E, and is the Chinchilla optimum for K = 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_array

from .law import FloatOrArray, ScalingLaw, scalar

_CHUNK = 8192  # elements: the dozen temporaries of a step stay in the cache
_MAX_STEPS = 60
_TOLERANCE = 1e-14


def optimal_allocation(
    law: ScalingLaw, loss: ArrayLike, inference_tokens: ArrayLike
) -> tuple[FloatOrArray, FloatOrArray]:
    """Parameters and training tokens that reach a loss with the least FLOPs over the life.

    Parameters
    ----------
    law : ScalingLaw
        Of floats or of arrays.
    loss : array_like
        Loss > E in nats a token.
    inference_tokens : array_like
        Tokens >= 0 over the model's life. For another price of a served token than the 2 FLOPs of
        the paper's section 2, use the equivalent tokens of `Prices.equivalent_tokens`.

    Returns
    -------
    params, tokens : float or array
        Of the broadcast shape, to about 1e-13 relative. Each element costs some four vectorised
        Newton steps.

    Raises
    ------
    InputError
        For a loss at or below E, a negative demand, and optima beyond the range of float64.
    """
    gap = law.reducible(loss)
    demand = check_array("inference_tokens", inference_tokens, dtype=np.float64, minimum=0)
    with np.errstate(divide="ignore"):
        log_k = np.log(demand) - np.log(3.0)
    coefficients = (np.log(law.A), np.log(law.B), law.alpha, law.beta)
    log_n, log_d = _chunked(_solve, np.log(gap), log_k, *coefficients)
    if np.any(np.maximum(log_n, log_d) > 700):
        raise expected("loss", "one that 1e304 parameters and tokens reach", "a closer one")
    return scalar(np.exp(log_n)), scalar(np.exp(log_d))


def first_order_residual(
    law: ScalingLaw, params: ArrayLike, tokens: ArrayLike, inference_tokens: ArrayLike
) -> FloatOrArray:
    """How far an allocation is from optimal: (q / s) / (1 + D_inf / (3 D)) - 1.

    ``q = alpha A N^-alpha`` and ``s = beta B D^-beta`` are the elasticities of the loss. It is zero
    at the unconstrained optimum, positive for a model that is too small, negative for one that is
    too large.
    """
    n = check_array("params", params, dtype=np.float64, above=0)
    d = check_array("tokens", tokens, dtype=np.float64, above=0)
    demand = check_array("inference_tokens", inference_tokens, dtype=np.float64, minimum=0)
    log_q = np.log(law.alpha * law.A) - law.alpha * np.log(n)
    log_s = np.log(law.beta * law.B) - law.beta * np.log(d)
    return scalar(np.expm1(log_q - log_s - np.log1p(demand / (3 * d))))


def constrained_allocation(
    law: ScalingLaw,
    loss: ArrayLike,
    inference_tokens: ArrayLike,
    *,
    max_params: ArrayLike = np.inf,
    max_tokens: ArrayLike = np.inf,
    sizes: ArrayLike | None = None,
) -> tuple[FloatOrArray, FloatOrArray]:
    """Least-cost allocation under bounds and on a grid of sizes (an extension: not in the paper).

    Along the curve of equal loss the cost falls and then rises in N, so the answer is the free
    optimum moved to the nearest bound, or the better one of the two sizes beside it.

    Parameters
    ----------
    law, loss, inference_tokens
        As in `optimal_allocation`.
    max_params : array_like
        Most parameters, for example from memory or latency.
    max_tokens : array_like
        Most training tokens, for example the unique tokens there are.
    sizes : array_like, shape (k,), optional
        The parameter counts that can be built.

    Returns
    -------
    params, tokens : float or array
        Of the broadcast shape.

    Raises
    ------
    InputError
        Names the bound that makes the loss infeasible and the value that would do.
    """
    most_n = _bound("max_params", max_params)
    most_d = _bound("max_tokens", max_tokens)
    n, d = map(np.asarray, optimal_allocation(law, loss, inference_tokens))
    fewest_n = np.asarray(law.isoloss_params(loss, np.minimum(most_d, 1e300)))
    fewest_n = np.where(np.isinf(most_d), 0.0, fewest_n)
    floor = _floors(law, loss)
    _require_room("max_tokens", most_d, floor[1])
    _require_room("max_params", most_n, np.maximum(fewest_n, floor[0]))
    if sizes is None:
        chosen = np.clip(n, fewest_n, most_n)
        tokens = np.where(chosen == n, d, law.isoloss(loss, chosen))
        # At the bound itself rounding must not exceed it.
        return scalar(chosen), scalar(np.minimum(tokens, most_d))
    grid = np.unique(check_array("sizes", sizes, ndim=1, dtype=np.float64, above=0, empty=False))
    return _on_grid(law, loss, inference_tokens, grid, n, fewest_n, most_n)


def _on_grid(
    law: ScalingLaw,
    loss: ArrayLike,
    inference_tokens: ArrayLike,
    grid: np.ndarray,
    free: np.ndarray,
    fewest: np.ndarray,
    most: np.ndarray,
) -> tuple[FloatOrArray, FloatOrArray]:
    smallest = np.maximum(fewest, _floors(law, loss)[0])
    shape = np.broadcast_shapes(free.shape, most.shape, smallest.shape)
    free = np.broadcast_to(np.clip(free, smallest, most), shape)
    above = np.searchsorted(grid, free)
    params, tokens, cost = (np.full(shape, np.inf) for _ in range(3))
    for index in (above, above - 1):
        size = grid[np.clip(index, 0, len(grid) - 1)]
        allowed = (size <= most) & (size >= fewest)
        needed = np.asarray(law.isoloss(loss, size))
        # Lifetime compute over 6, up to the scale that the price gives it.
        total = np.where(allowed, size * (needed + np.asarray(inference_tokens) / 3), np.inf)
        better = total < cost
        params = np.where(better, size, params)
        tokens = np.where(better, needed, tokens)
        cost = np.where(better, total, cost)
    if np.any(np.isinf(cost)):
        where = tuple(np.argwhere(np.isinf(cost))[0])
        low = float(np.broadcast_to(smallest, shape)[where])
        high = float(np.broadcast_to(most, shape)[where])
        raise expected(
            "sizes", f"a size above {low:.4g} and up to {high:.4g} parameters", _span(grid)
        )
    return scalar(params), scalar(tokens)


def _solve(
    log_gap: np.ndarray,
    log_k: np.ndarray,
    log_a: np.ndarray,
    log_b: np.ndarray,
    alpha: np.ndarray,
    beta: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return log N and log D: Newton steps inside a shrinking bracket, all elements at once."""
    low = np.log(beta / alpha)
    offset = (log_b - log_gap) / beta
    # K / D falls in u, so its value at the lower end bounds the root from above.
    excess = log_k - offset
    high = low + _softplus(excess - _softplus(low) / beta)
    start = low
    # Where K >> D and the size leaves nearly all of the loss, both softplus are linear.
    u = np.clip(np.maximum(low, (low + excess) / (1 + 1 / beta)), low, high)
    for _ in range(_MAX_STEPS):
        ratio = excess - _softplus(u) / beta
        value = u - start - _softplus(ratio)
        slope = 1 + _sigmoid(ratio) * _sigmoid(u) / beta
        low = np.where(value < 0, u, low)
        high = np.where(value > 0, u, high)
        following = u - value / slope
        following = np.where((following < low) | (following > high), 0.5 * (low + high), following)
        moved = np.max(np.abs(following - u) / (1 + np.abs(u)))
        u = following
        if moved <= _TOLERANCE:
            break
    log_n = (log_a - log_gap + _softplus(-u)) / alpha
    return log_n, offset + _softplus(u) / beta


def _softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)) without overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(x, -700, 700)))


def _chunked(solve: Callable[..., tuple[Any, Any]], *arrays: Any) -> tuple[np.ndarray, np.ndarray]:
    """Apply a function of equally long vectors piece by piece to arrays that broadcast."""
    shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
    size = int(np.prod(shape))
    flat = [np.broadcast_to(a, shape).reshape(-1) if np.ndim(a) else a for a in arrays]
    first, second = np.empty(size), np.empty(size)
    for begin in range(0, size, _CHUNK):
        part = slice(begin, begin + _CHUNK)
        first[part], second[part] = solve(*(a[part] if np.ndim(a) else a for a in flat))
    return first.reshape(shape), second.reshape(shape)


def _floors(law: ScalingLaw, loss: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Sizes and token counts that reach the loss only with infinitely much of the other."""
    log_gap = np.log(law.reducible(loss))
    with np.errstate(over="ignore"):
        return (
            np.exp((np.log(law.A) - log_gap) / law.alpha),
            np.exp((np.log(law.B) - log_gap) / law.beta),
        )


def _bound(name: str, value: ArrayLike) -> np.ndarray:
    bound = check_array(name, value, dtype=np.float64, finite=False)
    if not np.all(bound > 0):
        raise expected(name, "numbers > 0", float(bound[~(bound > 0)][0]))
    return bound


def _require_room(name: str, bound: np.ndarray, needed: np.ndarray) -> None:
    bound, needed = np.broadcast_arrays(bound, needed)
    wrong = bound <= needed
    if np.any(wrong):
        where = tuple(np.argwhere(wrong)[0])
        wanted = f"more than {needed[where]:.4g} for this loss and the other constraints"
        raise expected(name, wanted, float(bound[where]))


def _span(grid: np.ndarray) -> str:
    return f"{len(grid)} from {grid[0]:.4g} to {grid[-1]:.4g}"
