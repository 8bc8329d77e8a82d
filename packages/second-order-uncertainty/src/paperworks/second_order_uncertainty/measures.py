"""Decompositions of a whole data set under any measure, in chunks of rows.

Beside the Wasserstein measures those that the paper compares with: entropy, label-wise entropy and
variance, whose total is the sum of the other two. Dirichlet distributions are exact (digamma
functions, moments).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_choice, check_number

from . import wasserstein
from .distributions import Array, SecondOrder, second_order

CHUNK_ENTRIES = 1 << 17
"""Entries of an automatic chunk: what is sorted at once then stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Uncertainty of each row and its parts.

    Attributes
    ----------
    total, aleatoric, epistemic : array, shape (n,)
        The three uncertainties.
    minimizer : array, shape (n, K), or None
        The class distribution nearest to each row's second-order distribution, where the epistemic
        uncertainty of a distance measure is taken; None for measures without one.
    """

    total: Array
    aleatoric: Array
    epistemic: Array
    minimizer: Array | None = None


Measure = Callable[[SecondOrder], Decomposition]
"""What a measure is: it takes distributions, one a row, and returns their decomposition."""


def _wasserstein(q: SecondOrder) -> Decomposition:
    epistemic, minimizer = wasserstein.epistemic_and_minimizer(q)
    return Decomposition(wasserstein.total(q), wasserstein.aleatoric(q), epistemic, minimizer)


MEASURES: dict[str, Measure] = {
    "wasserstein": _wasserstein,
    "entropy": lambda q: entropy(q),
    "labelwise-entropy": lambda q: labelwise_entropy(q),
    "variance": lambda q: variance(q),
}
"""The measures by name; entropies in bits."""


def find_measure(measure: str | Measure) -> Measure:
    """Return the measure of this name, or the callable itself.

    Parameters
    ----------
    measure : str or callable
        A key of `MEASURES`, or what maps a `SecondOrder` to a `Decomposition`, for example a
        `DistanceMeasure`.

    Raises
    ------
    InputError
        For an unknown name.
    """
    if isinstance(measure, str) or not callable(measure):
        return MEASURES[check_choice("measure", measure, MEASURES)]
    return measure


def decompose(
    q: SecondOrder | Array,
    measure: str | Measure = "wasserstein",
    *,
    chunk: int | None = None,
) -> Decomposition:
    """Split each row's uncertainty into aleatoric and epistemic.

    Parameters
    ----------
    q : SecondOrder or array, shape (rows, members, classes)
        Second-order distributions; an array is taken as members' probabilities
        (`SecondOrder.from_samples`).
    measure : {"wasserstein", "entropy", "labelwise-entropy", "variance"} or callable
        The measure; entropies in bits.
    chunk : int, optional
        How many rows are worked on at once. By default numpy arrays go in chunks that fit the
        processor's cache, so that little memory is needed beside the input, and tensors in one
        piece. The result does not depend on it.

    Returns
    -------
    Decomposition
        Of the kind, dtype and device of the input, and with its gradient.

    Raises
    ------
    InputError
        For an unknown measure, a chunk below 1, or what `SecondOrder.from_samples` refuses.

    Examples
    --------
    >>> parts = decompose([[[1.0, 0.0], [0.0, 1.0]]])
    >>> parts.total, parts.aleatoric, parts.epistemic
    (array([0.5]), array([0.]), array([0.5]))
    """
    q = second_order(q)
    compute = find_measure(measure)
    rows = len(q)
    if chunk is not None:
        size = check_number("chunk", chunk, integer=True, minimum=1)
    elif is_torch_array(q.values):
        size = max(1, rows)
    else:
        size = max(1, CHUNK_ENTRIES // int(np.prod(q.values.shape[1:])))
    if rows <= size:
        return checked(compute(q), rows)
    parts = [checked(compute(q[i : i + size]), min(size, rows - i)) for i in range(0, rows, size)]
    join = array_namespace(q.values).concat
    minimizers = [part.minimizer for part in parts if part.minimizer is not None]
    return Decomposition(
        join([part.total for part in parts]),
        join([part.aleatoric for part in parts]),
        join([part.epistemic for part in parts]),
        join(minimizers) if minimizers else None,
    )


def checked(parts: Decomposition, rows: int) -> Decomposition:
    """Refuse what a user's measure returned, if it is no decomposition of the rows."""
    if not isinstance(parts, Decomposition):
        raise expected("measure", "a Decomposition to be returned", f"a {type(parts).__name__}")
    for name in ("total", "aleatoric", "epistemic"):
        part = getattr(parts, name)
        shape = getattr(part, "shape", None)
        if shape is None or tuple(shape) != (rows,):
            found = f"{type(part).__name__}" if shape is None else f"shape {tuple(shape)}"
            raise expected(f"measure: {name}", f"an array of shape ({rows},)", found)
    return parts


def entropy(q: SecondOrder | Array, *, base: float = 2.0) -> Decomposition:
    """Entropy of the mean, expected entropy, and their difference, the mutual information.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.
    base : float
        Of the logarithm: 2 gives bits.

    Returns
    -------
    Decomposition
        Total and aleatoric in [0, log K], epistemic in [0, total].
    """
    q, unit = second_order(q), _unit(base)
    xp = array_namespace(q.values)
    total = -xp.sum(_xlogx(q.mean()), axis=-1) / unit
    if q.kind == "dirichlet":
        expected = -xp.sum(_expected_xlogx(q.values, _strength(q)), axis=-1) / unit
    else:
        expected = -q.expectation(xp.sum(_xlogx(q.values), axis=-1)) / unit
    return _additive(total, expected)


def labelwise_entropy(q: SecondOrder | Array, *, base: float = 2.0) -> Decomposition:
    """Sum over the classes of the entropy decomposition of "this class or another".

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.
    base : float
        Of the logarithm.

    Returns
    -------
    Decomposition
        Sale, Hofman, Löhr, Wimmer, Nagler and Hüllermeier, "Label-wise aleatoric and epistemic
        uncertainty quantification" (UAI 2024).
    """
    q, unit = second_order(q), _unit(base)
    xp = array_namespace(q.values)
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


def variance(q: SecondOrder | Array) -> Decomposition:
    """Sum over the classes of the variance of the label and its two parts.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.

    Returns
    -------
    Decomposition
        ``sum mu_k (1 - mu_k)``, ``sum E[theta_k (1 - theta_k)]``, ``sum Var[theta_k]``; in
        [0, 1 - 1/K].
    """
    q = second_order(q)
    xp = array_namespace(q.values)
    mean = q.mean()
    total = xp.sum(mean * (1 - mean), axis=-1)
    if q.kind == "dirichlet":
        spread = total / (xp.sum(q.values, axis=-1) + 1)
    else:
        # Deviations before squares: E[theta^2] - mu^2 would cancel.
        spread = q.expectation(xp.sum((q.values - mean[:, None, :]) ** 2, axis=-1))
    return Decomposition(total, total - spread, spread)


def _unit(base: float) -> float:
    return math.log(check_number("base", base, above=1))


def _additive(total: Array, aleatoric: Array) -> Decomposition:
    # Jensen's inequality, which rounding can break by its last digit.
    return Decomposition(total, aleatoric, array_namespace(total).clip(total - aleatoric, 0, None))


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
