"""Decompositions of a whole data set under any measure, in chunks of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace, is_torch_array

from paperworks.shared.errors import expected
from paperworks.shared.validation import check_choice, check_number

from . import baselines, wasserstein
from .distributions import Array, SecondOrder

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
    "entropy": lambda q: Decomposition(*baselines.entropy(q)),
    "labelwise-entropy": lambda q: Decomposition(*baselines.labelwise_entropy(q)),
    "variance": lambda q: Decomposition(*baselines.variance(q)),
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
    if not isinstance(q, SecondOrder):
        q = SecondOrder.from_samples(q)
    compute = find_measure(measure)
    rows = len(q)
    if chunk is not None:
        size = check_number("chunk", chunk, integer=True, minimum=1)
    elif is_torch_array(q.values):
        size = max(1, rows)
    else:
        size = max(1, CHUNK_ENTRIES // int(np.prod(q.values.shape[1:])))
    if rows <= size:
        return _checked(compute(q), rows)
    parts = [_checked(compute(q[i : i + size]), min(size, rows - i)) for i in range(0, rows, size)]
    join = array_namespace(q.values).concat
    minimizers = [part.minimizer for part in parts if part.minimizer is not None]
    return Decomposition(
        join([part.total for part in parts]),
        join([part.aleatoric for part in parts]),
        join([part.epistemic for part in parts]),
        join(minimizers) if minimizers else None,
    )


def _checked(parts: Decomposition, rows: int) -> Decomposition:
    """Refuse what a user's measure returned, if it is no decomposition of the rows."""
    if not isinstance(parts, Decomposition):
        raise expected("measure", "a Decomposition to be returned", f"a {type(parts).__name__}")
    if tuple(parts.epistemic.shape) != (rows,):
        raise expected("measure", f"{rows} values a part", f"shape {tuple(parts.epistemic.shape)}")
    return parts
