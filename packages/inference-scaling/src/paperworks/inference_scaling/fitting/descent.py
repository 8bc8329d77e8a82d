"""Many law fits at once: a damped Newton method, vectorised over starts and resamples.

The objective of Hoffmann et al. 2022 (appendix D.3) is a sum over runs of Huber terms of

    logsumexp(a - alpha log N, b - beta log D, e) - log L,   (A, B, E) = (exp a, exp b, exp e).

Its gradient and Hessian are exact here. They are sums over runs of products with 1, log N and
log D, so that a step of all problems is a handful of matrix products and one batch of 5 x 5
eigenvalue problems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

GRADIENT_TOLERANCE = 1e-8


@dataclass(frozen=True)
class Problem:
    """Runs that are fitted, with one or many vectors of losses and weights.

    Attributes
    ----------
    log_params, log_tokens : array, shape (n,)
        The runs, shared by all problems.
    log_loss : array, shape (n,) or (s, n)
        What is fitted.
    weights : array, shape (n,) or (s, n)
        Weights >= 0, such as the counts of a bootstrap sample.
    delta : float
        Where the Huber penalty turns from quadratic to linear.
    overestimate_weight : float
        Factor of the penalty where the law is above the run.
    """

    log_params: np.ndarray
    log_tokens: np.ndarray
    log_loss: np.ndarray
    weights: np.ndarray
    delta: float
    overestimate_weight: float = 1.0

    def weighted(self, weights: np.ndarray) -> Problem:
        """Return the same runs under other weights."""
        return replace(self, weights=weights)

    def residual(self, theta: np.ndarray) -> np.ndarray:
        """Log predicted loss - log loss at one theta, shape (n,)."""
        return _terms(self, theta[None])[0][0] - self.log_loss

    def part(self, chosen: np.ndarray) -> Problem:
        """Return the problems of these indices; what is shared stays shared."""
        return replace(
            self,
            log_loss=self.log_loss[chosen] if self.log_loss.ndim == 2 else self.log_loss,
            weights=self.weights[chosen] if self.weights.ndim == 2 else self.weights,
        )


@dataclass(frozen=True)
class Solution:
    """Where the descents ended.

    Attributes
    ----------
    theta : array, shape (s, 5)
        a, b, e, alpha, beta.
    objective : array, shape (s,)
        Sums of penalties.
    gradient : array, shape (s,)
        Largest absolute entry of the gradient in a, b, e and in alpha, beta with log N and log D
        centred and scaled to unit deviation.
    steps : array, shape (s,)
        Newton steps taken.
    converged : array of bool, shape (s,)
        Where the gradient is below ``GRADIENT_TOLERANCE`` of delta times the sum of weights, the
        largest that it can be.
    """

    theta: np.ndarray
    objective: np.ndarray
    gradient: np.ndarray
    steps: np.ndarray
    converged: np.ndarray


def objective(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Return the sum of penalties, shape (s,), at theta, shape (s, 5)."""
    residual = _terms(problem, theta)[0] - problem.log_loss
    size = np.abs(residual)
    delta = problem.delta
    penalty = np.where(size <= delta, 0.5 * size**2, delta * (size - 0.5 * delta))
    weight = np.where(residual > 0, problem.overestimate_weight, 1.0) * problem.weights
    return np.sum(weight * penalty, axis=-1)


def minimize(problem: Problem, starts: np.ndarray, max_steps: int = 500) -> Solution:
    """Descend from each start until the gradient vanishes or no step lowers the objective.

    Parameters
    ----------
    problem : Problem
        One problem for all starts, or as many as there are starts.
    starts : array, shape (s, 5)
        a, b, e, alpha, beta.
    max_steps : int
        Newton steps at most.

    Returns
    -------
    Solution
        One descent a start. The cost of a step is O(s n).
    """
    centre_n, scale_n = _standard(problem.log_params)
    centre_d, scale_d = _standard(problem.log_tokens)
    scaled = replace(
        problem,
        log_params=(problem.log_params - centre_n) / scale_n,
        log_tokens=(problem.log_tokens - centre_d) / scale_d,
    )
    theta = np.array(starts, dtype=np.float64)
    theta[:, 0] -= theta[:, 3] * centre_n
    theta[:, 1] -= theta[:, 4] * centre_d
    theta[:, 3] *= scale_n
    theta[:, 4] *= scale_d
    found = _descend(scaled, theta, max_steps)
    theta = found.theta
    theta[:, 3] /= scale_n
    theta[:, 4] /= scale_d
    theta[:, 0] += theta[:, 3] * centre_n
    theta[:, 1] += theta[:, 4] * centre_d
    return found


def jacobian(problem: Problem, theta: np.ndarray) -> np.ndarray:
    """Slopes of the log predicted losses in theta, shape (n, 5)."""
    _, first, second, third = (term[0] for term in _terms(problem, theta[None]))
    by_alpha, by_beta = -first * problem.log_params, -second * problem.log_tokens
    return np.stack([first, second, third, by_alpha, by_beta], axis=1)


def _standard(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std()) or 1.0


def _descend(problem: Problem, theta: np.ndarray, max_steps: int) -> Solution:
    count = len(theta)
    value, gradient, hessian = _derivatives(problem, theta)
    damping = np.full(count, 1e-3)
    steps = np.zeros(count, dtype=np.int64)
    small = GRADIENT_TOLERANCE * problem.delta * np.sum(problem.weights, axis=-1)
    small = np.broadcast_to(small, (count,))
    active = np.flatnonzero(np.abs(gradient).max(axis=1) > small)
    for _ in range(max_steps):
        if not len(active):
            break
        trial = theta[active] + _step(gradient[active], hessian[active], damping[active])
        part = problem.part(active)
        new_value, new_gradient, new_hessian = _derivatives(part, trial)
        norm = np.abs(new_gradient).max(axis=1)
        # At the bottom values differ by rounding alone: then the gradient decides.
        slack = 1e-14 * value[active]
        better = (new_value < value[active] - slack) | (
            (new_value <= value[active] + slack) & (norm < np.abs(gradient[active]).max(axis=1))
        )
        moved = active[better]
        theta[moved], value[moved] = trial[better], new_value[better]
        gradient[moved], hessian[moved] = new_gradient[better], new_hessian[better]
        steps[moved] += 1
        damping[moved] = np.maximum(damping[moved] / 5, 1e-14)
        damping[active[~better]] *= 7
        norms = np.abs(gradient[active]).max(axis=1)
        active = active[(norms > small[active]) & (damping[active] < 1e8)]
    norms = np.abs(gradient).max(axis=1)
    return Solution(theta, value, norms, steps, norms <= small)


def _step(gradient: np.ndarray, hessian: np.ndarray, damping: np.ndarray) -> np.ndarray:
    """Newton step with eigenvalues made positive and damped relative to the largest."""
    eigenvalues, vectors = np.linalg.eigh(hessian)
    size = np.abs(eigenvalues)
    largest = np.maximum(size.max(axis=1), 1e-300)
    curved = size + (damping * largest)[:, None] + 1e-300
    projected = np.einsum("sji,sj->si", vectors, gradient)
    step = -np.einsum("sij,sj->si", vectors, projected / curved)
    # No coefficient moves further than the starts lie apart.
    return step * np.minimum(1.0, 5.0 / np.maximum(np.abs(step).max(axis=1), 1e-300))[:, None]


def _terms(problem: Problem, theta: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the logsumexp and the shares of its three terms, each of shape (s, n)."""
    a, b, e, alpha, beta = (theta[:, i, None] for i in range(5))
    first = a - alpha * problem.log_params
    second = b - beta * problem.log_tokens
    top = np.maximum(np.maximum(first, second), e)
    first, second, third = np.exp(first - top), np.exp(second - top), np.exp(e - top)
    total = first + second + third
    return top + np.log(total), first / total, second / total, third / total


def _derivatives(problem: Problem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Objective (s,), gradient (s, 5) and Hessian (s, 5, 5)."""
    predicted, p1, p2, p3 = _terms(problem, theta)
    residual = predicted - problem.log_loss
    size = np.abs(residual)
    delta = problem.delta
    weight = np.where(residual > 0, problem.overestimate_weight, 1.0) * problem.weights
    inside = size <= delta
    value = np.sum(weight * np.where(inside, 0.5 * size**2, delta * (size - 0.5 * delta)), axis=-1)
    psi = weight * np.clip(residual, -delta, delta)
    x, z = problem.log_params, problem.log_tokens
    one = np.ones_like(x)
    g1, g2 = psi * p1, psi * p2
    gradient = np.stack([g1.sum(-1), g2.sum(-1), (psi * p3).sum(-1), -(g1 @ x), -(g2 @ z)], axis=-1)
    curvature = weight * inside - psi
    c1, c2 = curvature * p1, curvature * p2
    by_x, by_z = np.stack([one, x, x * x], 1), np.stack([one, z, z * z], 1)
    s11, s22 = (c1 * p1 + g1) @ by_x, (c2 * p2 + g2) @ by_z
    s12 = (c1 * p2) @ np.stack([one, x, z, x * z], 1)
    s13, s23 = (c1 * p3) @ by_x[:, :2], (c2 * p3) @ by_z[:, :2]
    s33 = (curvature * p3 * p3 + psi * p3).sum(-1)
    hessian = np.empty((*value.shape, 5, 5))
    upper = {
        (0, 0): s11[:, 0], (0, 1): s12[:, 0], (0, 2): s13[:, 0], (0, 3): -s11[:, 1],
        (0, 4): -s12[:, 2], (1, 1): s22[:, 0], (1, 2): s23[:, 0], (1, 3): -s12[:, 1],
        (1, 4): -s22[:, 1], (2, 2): s33, (2, 3): -s13[:, 1], (2, 4): -s23[:, 1],
        (3, 3): s11[:, 2], (3, 4): s12[:, 3], (4, 4): s22[:, 2],
    }  # fmt: skip
    for (i, j), entries in upper.items():
        hessian[:, i, j] = hessian[:, j, i] = entries
    return value, gradient, hessian
