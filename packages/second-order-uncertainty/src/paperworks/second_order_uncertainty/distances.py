"""The framework for any ground distance and any reference sets.

The Wasserstein measures of the paper use the total variation distance, for which
`paperworks.second_order_uncertainty.wasserstein` has closed forms. `DistanceMeasure` is the general
case, slower: one small optimisation a row. `solve_programmes` states the definitions of the
Wasserstein measures themselves as linear programmes: slow and independent of the closed forms, it
is what the tests, the reproduction and the re-check of counter-examples hold them against.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from array_api_compat import array_namespace, device
from scipy import optimize, sparse

from paperworks.shared.errors import expected, require
from paperworks.shared.validation import check_choice

from .distributions import Array, SecondOrder, second_order, to_numpy
from .measures import Decomposition
from .wasserstein import epistemic_and_minimizer

GroundMetric = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Distance of class distributions ``[..., K]`` to others ``[..., K]``, broadcast: ``[...]``."""

METRICS: dict[str, GroundMetric] = {
    "total-variation": lambda p, q: np.abs(p - q).sum(axis=-1) / 2,
    "euclidean": lambda p, q: np.sqrt(((p - q) ** 2).sum(axis=-1)),
    "chebyshev": lambda p, q: np.abs(p - q).max(axis=-1),
}
PARTS = ("total", "aleatoric", "epistemic")


class DistanceMeasure:
    """Uncertainties as Wasserstein distances to reference sets, for finite support.

    Call it with a `SecondOrder`, or give it to `decompose` or `axioms.check` as the measure.

    Parameters
    ----------
    ground_metric : {"total-variation", "euclidean", "chebyshev"} or callable
        Distance d of class distributions. A callable gets two arrays ``[..., K]`` and returns their
        distances.
    references : mapping of str to SecondOrder, optional
        For "total", "aleatoric" or "epistemic": a finite set of distributions without that
        uncertainty (one a row, finite support). The part is then the smallest Wasserstein distance
        to one of them, by POT (extra ``transport``). Without an entry the part has the paper's
        reference set: Dirac measures on vertices, mixtures of them, all Dirac measures.

    Notes
    -----
    TU is a minimum over K vertices; AU moves each atom to its nearest vertex; EU minimises the
    expected distance over the simplex: exactly for "total-variation", a linear programme (HiGHS)
    for "chebyshev", Weiszfeld's algorithm for "euclidean", and for a callable a local search
    (SLSQP) from the mean and from the best atom, which is exact to about 1e-6 for convex distances
    and an upper bound otherwise.
    """

    def __init__(
        self,
        ground_metric: str | GroundMetric = "total-variation",
        references: Mapping[str, SecondOrder] | None = None,
    ) -> None:
        if not callable(ground_metric):
            check_choice("ground_metric", ground_metric, METRICS)
        self.ground_metric = ground_metric
        if not isinstance(references, Mapping | None):
            raise expected("references", "a mapping from parts to SecondOrder", references)
        self.references = dict(references or {})
        for name, reference in self.references.items():
            check_choice("references", name, PARTS)
            if not isinstance(reference, SecondOrder) or reference.kind != "samples":
                raise expected(
                    f"references[{name}]", "a SecondOrder with finite support", reference
                )
            if not len(reference):
                raise expected(f"references[{name}]", "at least one row", "an empty set")

    def __call__(self, q: SecondOrder | Array) -> Decomposition:
        """Return the decomposition of each row of ``q``."""
        q = second_order(q)
        atoms, weights = finite_support(q)
        metric = _metric(self.ground_metric)
        parts: dict[str, np.ndarray] = {}
        minimizer = None
        vertices = np.eye(q.classes)
        to_vertices = metric(atoms[:, :, None, :], vertices)
        if np.shape(to_vertices) != (*atoms.shape[:2], q.classes):
            raise expected(
                "ground_metric",
                "a distance along the last axis, broadcast over the others",
                f"shape {np.shape(to_vertices)} for {(*atoms.shape[:2], q.classes)}",
            )
        defaults = {
            "total": lambda: np.einsum("nm,nmk->nk", weights, to_vertices).min(axis=-1),
            "aleatoric": lambda: np.einsum("nm,nm->n", weights, to_vertices.min(axis=-1)),
        }
        for name in PARTS:
            if name in self.references:
                parts[name] = self._nearest(q, self.references[name])
            elif name == "epistemic":
                parts[name], minimizer = self._epistemic(atoms, weights, metric)
            else:
                parts[name] = defaults[name]()
        xp = array_namespace(q.values)
        kept = {"dtype": q.values.dtype, "device": device(q.values)}
        moved = {name: xp.asarray(value, **kept) for name, value in parts.items()}
        return Decomposition(
            **moved, minimizer=None if minimizer is None else xp.asarray(minimizer, **kept)
        )

    def _nearest(self, q: SecondOrder, reference: SecondOrder) -> np.ndarray:
        if reference.classes != q.classes:
            raise expected("references", f"{q.classes} classes", reference.classes)
        return np.array(
            [
                min(
                    transport_distance(q[i : i + 1], reference[j : j + 1], self.ground_metric)[0]
                    for j in range(len(reference))
                )
                for i in range(len(q))
            ]
        )

    def _epistemic(
        self, atoms: np.ndarray, weights: np.ndarray, metric: GroundMetric
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.ground_metric == "total-variation":
            return epistemic_and_minimizer(SecondOrder("samples", atoms, weights))
        centres = np.empty((len(atoms), atoms.shape[-1]))
        for i, (points, w) in enumerate(zip(atoms, weights, strict=True)):
            points, w = points[w > 0], w[w > 0]
            if self.ground_metric == "euclidean":
                centres[i] = _geometric_median(points, w)
            elif self.ground_metric == "chebyshev":
                centres[i] = _chebyshev_median(points, w)
            else:
                centres[i] = _searched_median(points, w, metric)
        value = np.einsum("nm,nm->n", weights, metric(atoms, centres[:, None, :]))
        return value, centres


def transport_distance(
    p: SecondOrder | Array,
    q: SecondOrder | Array,
    ground_metric: str | GroundMetric = "total-variation",
) -> np.ndarray:
    """Wasserstein-1 distance of second-order distributions with finite support, row by row.

    Parameters
    ----------
    p, q : SecondOrder or array, shape (n, members, K)
        The same number of rows and of classes.
    ground_metric : str or callable
        As for `DistanceMeasure`.

    Returns
    -------
    numpy.ndarray, shape (n,)
        The exact distances, by POT's network simplex.

    Raises
    ------
    InputError
        For different numbers of rows or classes, or a Dirichlet distribution.
    MissingExtraError
        Without POT.
    """
    ot = require("ot", package="paperworks-second-order-uncertainty", extra="transport")
    metric = _metric(ground_metric)
    p, q = second_order(p), second_order(q)
    (a, v), (b, w) = finite_support(p), finite_support(q)
    if len(a) != len(b) or p.classes != q.classes:
        raise expected("q", f"{len(a)} rows of {p.classes} classes", f"{len(b)} of {q.classes}")
    costs = metric(a[:, :, None, :], b[:, None, :, :])
    return np.array([float(ot.emd2(*row)) for row in zip(v, w, costs, strict=True)])


def _metric(ground_metric: str | GroundMetric) -> GroundMetric:
    if isinstance(ground_metric, str) or not callable(ground_metric):
        return METRICS[check_choice("ground_metric", ground_metric, METRICS)]
    return ground_metric


def finite_support(q: SecondOrder) -> tuple[np.ndarray, np.ndarray]:
    """Return atoms ``[n, M, K]`` and weights ``[n, M]`` in float64; a Dirichlet is refused."""
    if q.kind != "samples":
        raise expected("q", "a distribution with finite support", "a Dirichlet: draw with .sample")
    atoms = to_numpy(q.values).astype(np.float64)
    if q.weights is None:
        return atoms, np.full(atoms.shape[:2], 1 / atoms.shape[1])
    weights = to_numpy(q.weights).astype(np.float64)
    return atoms, weights / weights.sum(axis=1, keepdims=True)


def _geometric_median(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weiszfeld's algorithm with Vardi and Zhang's step away from an atom."""
    centre = weights @ points
    for _ in range(10_000):
        distances = np.sqrt(((points - centre) ** 2).sum(axis=-1))
        away = distances > 1e-14
        if not away.any():
            break
        pull = weights[away] / distances[away]
        target = pull @ points[away] / pull.sum()
        here = weights[~away].sum()
        force = np.sqrt(((pull @ (points[away] - centre)) ** 2).sum())
        stay = 1.0 if force <= here else here / force
        step = (1 - stay) * (target - centre)
        centre = centre + step
        if np.abs(step).max() < 1e-15:
            break
    # The minimum may be at an atom, which the iteration approaches slowly.
    candidates = np.vstack([centre, points])
    costs = METRICS["euclidean"](candidates[:, None, :], points) @ weights
    return candidates[np.argmin(costs)]


def _chebyshev_median(points: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Linear programme in q and one bound a member on its largest deviation."""
    members, classes = points.shape
    bound = -sparse.kron(sparse.eye(members), np.ones((classes, 1)))
    copies = sparse.kron(np.ones((members, 1)), sparse.eye(classes))
    rows = sparse.vstack([sparse.hstack([copies, bound]), sparse.hstack([-copies, bound])])
    sides = np.concatenate([points.ravel(), -points.ravel()])
    total = np.concatenate([np.ones(classes), np.zeros(members)])[None]
    cost = np.concatenate([np.zeros(classes), weights])
    solution = optimize.linprog(cost, A_ub=rows.tocsr(), b_ub=sides, A_eq=total, b_eq=[1])
    centre = np.clip(solution.x[:classes], 0, None)
    return centre / centre.sum()


def _searched_median(points: np.ndarray, weights: np.ndarray, metric: GroundMetric) -> np.ndarray:
    def cost(q: np.ndarray) -> float:
        return float(weights @ metric(points, q))

    candidates = [weights @ points, points[np.argmin([cost(point) for point in points])]]
    for start in list(candidates):
        found = optimize.minimize(
            cost,
            start,
            method="SLSQP",
            bounds=[(0, 1)] * len(start),
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
            options={"ftol": 1e-12, "maxiter": 500},
        )
        clipped = np.clip(found.x, 0, None)
        if np.isfinite(clipped).all() and clipped.sum() > 0:
            candidates.append(clipped / clipped.sum())
    return min(candidates, key=cost)


_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def solve_programmes(q: SecondOrder | Array) -> Decomposition:
    """Solve the three minimisations of the paper's definitions with HiGHS.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, K)
        Finite support.

    Returns
    -------
    Decomposition
        In float64, with the minimiser that the solver found (it need not be unique).
    """
    atoms, weights = finite_support(second_order(q))
    rows = [
        (_programme_total(a, w), _programme_aleatoric(a, w), *_programme_epistemic(a, w))
        for a, w in zip(atoms, weights, strict=True)
    ]
    total, aleatoric, epistemic, minimizer = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Decomposition(
        np.array(total), np.array(aleatoric), np.array(epistemic), np.array(minimizer)
    )


def _programme_total(atoms: np.ndarray, weights: np.ndarray) -> float:
    """Transport of all mass to one vertex, the best of them: no choice is left to a coupling."""
    costs = METRICS["total-variation"](atoms[:, None, :], np.eye(atoms.shape[1]))
    return float((weights @ costs).min())


def _programme_aleatoric(atoms: np.ndarray, weights: np.ndarray) -> float:
    """Transport plan to a free mixture of vertices: its rows sum to the weights."""
    members, classes = atoms.shape
    costs = METRICS["total-variation"](atoms[:, None, :], np.eye(classes))
    sums = sparse.kron(sparse.eye(members), np.ones((1, classes)))
    found = optimize.linprog(costs.ravel(), A_eq=sums.tocsr(), b_eq=weights, options=_OPTIONS)
    return float(found.fun)


def _programme_epistemic(atoms: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Centre q on the simplex and deviations e with ``-e <= theta - q <= e``."""
    members, classes = atoms.shape
    copies = sparse.kron(np.ones((members, 1)), sparse.eye(classes))
    deviations = sparse.eye(members * classes)
    bounds = sparse.vstack(
        [sparse.hstack([-copies, -deviations]), sparse.hstack([copies, -deviations])]
    )
    sides = np.concatenate([-atoms.ravel(), atoms.ravel()])
    one = sparse.csr_matrix(np.concatenate([np.ones(classes), np.zeros(members * classes)])[None])
    cost = np.concatenate([np.zeros(classes), np.repeat(weights, classes) / 2])
    found = optimize.linprog(
        cost, A_ub=bounds.tocsr(), b_ub=sides, A_eq=one, b_eq=[1], options=_OPTIONS
    )
    return float(found.fun), found.x[:classes]
