"""The decompositions that the paper compares with: entropy, label-wise entropy, variance.

Each takes a `SecondOrder` of either kind and returns total, aleatoric and epistemic uncertainty,
of which the first is the sum of the others. Dirichlet distributions are exact (digamma functions,
moments).
"""

from __future__ import annotations

import math

from array_api_compat import array_namespace, is_torch_array

from .distributions import Array, SecondOrder

Parts = tuple[Array, Array, Array]


def entropy(q: SecondOrder, *, base: float = 2.0) -> Parts:
    """Entropy of the mean, expected entropy, and their difference, the mutual information.

    Parameters
    ----------
    q : SecondOrder
        n rows, K classes.
    base : float
        Of the logarithm: 2 gives bits.

    Returns
    -------
    tuple of three arrays, shape (n,)
        Total and aleatoric in [0, log K], epistemic in [0, total].
    """
    xp = array_namespace(q.values)
    unit = math.log(base)
    total = -xp.sum(_xlogx(q.mean()), axis=-1) / unit
    if q.kind == "dirichlet":
        expected = -xp.sum(_expected_xlogx(q.values, _strength(q)), axis=-1) / unit
    else:
        expected = -q.expectation(xp.sum(_xlogx(q.values), axis=-1)) / unit
    return _additive(total, expected)


def labelwise_entropy(q: SecondOrder, *, base: float = 2.0) -> Parts:
    """Sum over the classes of the entropy decomposition of "this class or another".

    Parameters
    ----------
    q : SecondOrder
        n rows, K classes.
    base : float
        Of the logarithm.

    Returns
    -------
    tuple of three arrays, shape (n,)
        Sale, Hofman, Löhr, Wimmer, Nagler and Hüllermeier, "Label-wise aleatoric and epistemic
        uncertainty quantification" (UAI 2024).
    """
    xp = array_namespace(q.values)
    unit = math.log(base)
    mean = q.mean()
    total = -xp.sum(_xlogx(mean) + _xlogx(1 - mean), axis=-1) / unit
    if q.kind == "dirichlet":
        strength = _strength(q)
        both = _expected_xlogx(q.values, strength) + _expected_xlogx(strength - q.values, strength)
        expected = -xp.sum(both, axis=-1) / unit
    else:
        each = xp.sum(_xlogx(q.values) + _xlogx(1 - q.values), axis=-1)
        expected = -q.expectation(each) / unit
    return _additive(total, expected)


def variance(q: SecondOrder) -> Parts:
    """Sum over the classes of the variance of the label and its two parts.

    Parameters
    ----------
    q : SecondOrder
        n rows, K classes.

    Returns
    -------
    tuple of three arrays, shape (n,)
        ``sum mu_k (1 - mu_k)``, ``sum E[theta_k (1 - theta_k)]``, ``sum Var[theta_k]``; in
        [0, 1 - 1/K].
    """
    xp = array_namespace(q.values)
    mean = q.mean()
    total = xp.sum(mean * (1 - mean), axis=-1)
    if q.kind == "dirichlet":
        spread = total / (xp.sum(q.values, axis=-1) + 1)
    else:
        # Deviations before squares: E[theta^2] - mu^2 would cancel.
        spread = q.expectation(xp.sum((q.values - mean[:, None, :]) ** 2, axis=-1))
    return total, total - spread, spread


def _additive(total: Array, aleatoric: Array) -> Parts:
    # Jensen's inequality, which rounding can break by its last digit.
    return total, aleatoric, array_namespace(total).clip(total - aleatoric, 0, None)


def _strength(q: SecondOrder) -> Array:
    return array_namespace(q.values).sum(q.values, axis=-1, keepdims=True)


def _xlogx(x: Array) -> Array:
    if is_torch_array(x):
        import torch

        # As torch.special.xlogy, but with a gradient that stays finite at 0.
        safe = torch.where(x > 0, x, torch.ones_like(x))
        return safe * torch.log(safe)
    from scipy import special

    return special.xlogy(x, x)


def _expected_xlogx(part: Array, strength: Array) -> Array:
    """Compute E[x log x] for a Beta(part, strength - part) variable."""
    if is_torch_array(part):
        from torch import digamma

        # In single precision torch's digamma is off by 1e-6.
        gap = (digamma(part.double() + 1) - digamma(strength.double() + 1)).to(part.dtype)
    else:
        from scipy.special import digamma

        gap = digamma(part + 1) - digamma(strength + 1)
    return part / strength * gap
