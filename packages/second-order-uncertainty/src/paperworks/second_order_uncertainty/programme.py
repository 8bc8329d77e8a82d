"""The definitions of the Wasserstein measures as linear programmes, one a row.

Slow and independent of the closed forms: what the tests, the reproduction and the re-check of
counter-examples hold them against.
"""

from __future__ import annotations

import numpy as np
from scipy import optimize, sparse

from .distances import METRICS, finite_support
from .distributions import SecondOrder
from .measures import Decomposition

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def solve(q: SecondOrder) -> Decomposition:
    """Solve the three minimisations of the paper's definitions with HiGHS.

    Parameters
    ----------
    q : SecondOrder
        Finite support.

    Returns
    -------
    Decomposition
        In float64, with the minimiser that the solver found (it need not be unique).
    """
    atoms, weights = finite_support(q)
    rows = [
        (_total(a, w), _aleatoric(a, w), *_epistemic(a, w))
        for a, w in zip(atoms, weights, strict=True)
    ]
    total, aleatoric, epistemic, minimizer = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Decomposition(
        np.array(total), np.array(aleatoric), np.array(epistemic), np.array(minimizer)
    )


def _total(atoms: np.ndarray, weights: np.ndarray) -> float:
    """Transport of all mass to one vertex, the best of them: no choice is left to a coupling."""
    costs = METRICS["total-variation"](atoms[:, None, :], np.eye(atoms.shape[1]))
    return float((weights @ costs).min())


def _aleatoric(atoms: np.ndarray, weights: np.ndarray) -> float:
    """Transport plan to a free mixture of vertices: its rows sum to the weights."""
    members, classes = atoms.shape
    costs = METRICS["total-variation"](atoms[:, None, :], np.eye(classes))
    sums = sparse.kron(sparse.eye(members), np.ones((1, classes)))
    found = optimize.linprog(costs.ravel(), A_eq=sums.tocsr(), b_eq=weights, options=_OPTIONS)
    return float(found.fun)


def _epistemic(atoms: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
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
