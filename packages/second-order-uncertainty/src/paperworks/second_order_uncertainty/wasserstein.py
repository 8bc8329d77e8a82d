"""The paper's measures: Wasserstein distances to what has no uncertainty, in closed form.

With the total variation distance d(p, q) = |p - q|_1 / 2 between class distributions and the
Wasserstein-1 distance W on second-order distributions built on d, an uncertainty of Q is the
distance to the nearest distribution that has none of it (section 4 of the paper):

- total: to a Dirac measure on a vertex, ``TU = 1 - max_y E[theta_y]``;
- aleatoric: to a mixture of Dirac measures on vertices, ``AU = 1 - E[max_y theta_y]``;
- epistemic: to a Dirac measure, ``EU = min_q E[d(theta, q)]``.

The minimum in EU needs no solver. Let ``F_k`` be the distribution function of theta_k and
``S(p) = sum_k F_k^-1(p)``, a non-decreasing function. The multiplier of the constraint
``sum_k q_k = 1`` moves the level of the quantile by the same amount in every class, so that
``q_k = F_k^-1(p*)`` with ``S(p*) = 1``, and q >= 0 holds by itself. Putting q in gives

    EU = integral_0^p* (1 - S(p)) dp = 1/2 integral_0^1 |S(p) - 1| dp,

for M members of equal weight simply ``sum_i |S_i - 1| / 2M`` where S_i is the sum over classes of
the i-th smallest value of each class.

Each function takes a `SecondOrder` of either kind, in numpy or torch, and keeps device, dtype and
gradient; a plain array is taken as members' probabilities. All values lie in [0, 1 - 1/K].
"""

from __future__ import annotations

from array_api_compat import array_namespace, device

from . import dirichlet
from .distributions import Array, SecondOrder, second_order

_TIE = 1e-12


def total(q: SecondOrder | Array) -> Array:
    """Total uncertainty, ``1 - max_y E[theta_y]``.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.

    Returns
    -------
    array, shape (n,)
        In [0, 1 - 1/K]; at least as large as the other two.
    """
    mean = second_order(q).mean()
    return 1 - array_namespace(mean).max(mean, axis=-1)


def aleatoric(q: SecondOrder | Array) -> Array:
    """Aleatoric uncertainty, ``1 - E[max_y theta_y]``.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes. Finite support costs O(M K) a row; a Dirichlet costs a quadrature, see
        `dirichlet.expected_maximum` for its error.

    Returns
    -------
    array, shape (n,)
        In [0, 1 - 1/K].
    """
    q = second_order(q)
    if q.kind == "dirichlet":
        return 1 - dirichlet.expected_maximum(q.values)
    return 1 - q.expectation(array_namespace(q.values).max(q.values, axis=-1))


def epistemic(q: SecondOrder | Array) -> Array:
    """Epistemic uncertainty, ``min_q E|theta - q|_1 / 2`` over class distributions q.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes. Finite support is exact: O(M K log M) a row for equal weights,
        O(M K log M K) for others. A Dirichlet costs a root search, see `dirichlet.epistemic` for
        its error.

    Returns
    -------
    array, shape (n,)
        In [0, 1 - 1/K]; 0 exactly where Q is a Dirac measure, up to rounding.
    """
    return _epistemic(second_order(q), minimizer=False)[0]


def minimizer(q: SecondOrder | Array) -> Array:
    """Class distribution nearest to Q, where the minimum of `epistemic` is taken.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.

    Returns
    -------
    array, shape (n, K)
        The common-level quantile of the classes, which sums to 1. For two classes it is the
        median. It carries no gradient that `epistemic` would need (envelope theorem).
    """
    return _epistemic(second_order(q), minimizer=True)[1]


def epistemic_and_minimizer(q: SecondOrder | Array) -> tuple[Array, Array]:
    """Return what `epistemic` and `minimizer` return, for the price of one.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        n rows, K classes.

    Returns
    -------
    array, shape (n,)
        The uncertainty.
    array, shape (n, K)
        The minimiser.
    """
    return _epistemic(second_order(q), minimizer=True)


def _epistemic(q: SecondOrder, *, minimizer: bool) -> tuple[Array, Array]:
    if q.kind == "dirichlet":
        return dirichlet.epistemic(q.values)
    if q.values.shape[1] == 1:
        only = q.values[:, 0, :]
        return array_namespace(only).sum(only * 0, axis=-1), only
    return _equal(q, minimizer) if q.weights is None else _weighted(q, q.weights, minimizer)


def _equal(q: SecondOrder, minimizer: bool) -> tuple[Array, Array]:
    xp = array_namespace(q.values)
    ordered = xp.sort(q.values, axis=1, stable=False)  # numpy's fast sort
    sums = xp.sum(ordered, axis=-1)
    value = xp.mean(xp.abs(sums - 1), axis=1) / 2
    if not minimizer:
        return value, None
    # The last rank whose sum is at most 1, and the next; rounding may leave none on one side.
    members = sums.shape[1]
    rank = xp.clip(xp.sum(xp.astype(sums <= 1, xp.int64), axis=1) - 1, 0, members - 2)
    below, above = (
        xp.take_along_axis(ordered, r[:, None, None], axis=1)[:, 0] for r in (rank, rank + 1)
    )
    return value, _between(below, above)


def _weighted(q: SecondOrder, given: Array, minimizer: bool) -> tuple[Array, Array]:
    xp = array_namespace(q.values)
    order = xp.argsort(q.values, axis=1, stable=False)
    ordered = xp.take_along_axis(q.values, order, axis=1)
    spread = xp.broadcast_to(given[:, :, None], q.values.shape)
    weights = xp.take_along_axis(spread, order, axis=1)
    upto = xp.cumulative_sum(weights, axis=1)  # F_k at each value: its levels end here
    level = _crossing(ordered, upto)[:, None, None]
    # The integral of 1 - S up to the level: each value counts as far as its levels lie below.
    covered = xp.clip(level - (upto - weights), 0, None)
    covered = xp.where(covered < weights, covered, weights)
    value = xp.sum(xp.sum(covered, axis=1) / q.classes - xp.sum(ordered * covered, axis=1), axis=-1)
    value = xp.clip(value, 0, None)
    if not minimizer:
        return value, None
    # Levels that differ by rounding are one level: else q would stop within its common jump.
    tie = max(_TIE, 8 * float(xp.finfo(q.values.dtype).eps))
    last = ordered.shape[1] - 1
    picked = []
    for passed in (upto < level - tie, upto <= level + tie):
        rank = xp.clip(xp.sum(xp.astype(passed, xp.int64), axis=1, keepdims=True), 0, last)
        picked.append(xp.take_along_axis(ordered, rank, axis=1)[:, 0])
    return value, _between(*picked)


def _crossing(ordered: Array, upto: Array) -> Array:
    """Level above which the sum of the quantiles exceeds 1, for each row."""
    xp = array_namespace(ordered)
    rows = ordered.shape[0]
    end = xp.zeros((rows, 1, ordered.shape[2]), dtype=ordered.dtype, device=device(ordered))
    jumps = xp.reshape(xp.concat([ordered[:, 1:] - ordered[:, :-1], end], axis=1), (rows, -1))
    levels = xp.reshape(upto, (rows, -1))
    order = xp.argsort(levels, axis=1, stable=False)
    rises = xp.cumulative_sum(xp.take_along_axis(jumps, order, axis=1), axis=1)
    above = xp.sum(ordered[:, 0], axis=-1)[:, None] + rises > 1
    first = xp.argmax(xp.astype(above, xp.int64), axis=1)
    return xp.take_along_axis(xp.take_along_axis(levels, order, axis=1), first[:, None], axis=1)[
        :, 0
    ]


def _between(below: Array, above: Array) -> Array:
    """Point of the segment whose entries sum to 1."""
    xp = array_namespace(below)
    low, high = xp.sum(below, axis=-1), xp.sum(above, axis=-1)
    gap = high - low
    share = xp.where(gap > 0, (1 - low) / xp.where(gap > 0, gap, xp.ones_like(gap)), gap * 0)
    return below + xp.clip(share, 0, 1)[:, None] * (above - below)
