"""Other ground distances against closed forms, other solvers and transport."""

import numpy as np
import pytest

from paperworks.second_order_uncertainty import (
    DistanceMeasure,
    SecondOrder,
    decompose,
    transport_distance,
)
from paperworks.shared.errors import InputError


def atoms(seed=0, n=4, members=5, classes=3):
    return np.random.default_rng(seed).dirichlet(np.ones(classes), size=(n, members))


def test_total_variation_is_the_wasserstein_measure():
    q = SecondOrder.from_samples(atoms(), [1, 2, 3, 0, 1])
    found, wanted = DistanceMeasure()(q), decompose(q)
    for name in ("total", "aleatoric", "epistemic", "minimizer"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "chebyshev"])
def test_minimum_against_a_general_search(metric):
    from paperworks.second_order_uncertainty.distances import METRICS

    q = SecondOrder.from_samples(atoms(1), [1, 2, 3, 0, 1])
    named = DistanceMeasure(metric)(q)
    searched = DistanceMeasure(lambda p, r: METRICS[metric](p, r))(q)
    np.testing.assert_allclose(named.total, searched.total, atol=1e-12)
    np.testing.assert_allclose(named.aleatoric, searched.aleatoric, atol=1e-12)
    assert np.all(named.epistemic <= searched.epistemic + 1e-12)
    np.testing.assert_allclose(named.epistemic, searched.epistemic, atol=2e-3)
    np.testing.assert_allclose(named.minimizer.sum(axis=-1), 1, atol=1e-9)
    # No class distribution of a fine grid is nearer.
    grid = np.array([(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]) / 60
    distances = METRICS[metric](q.values[:, :, None], grid)
    best = np.einsum("nm,nmg->ng", q.weights, distances).min(axis=1)
    assert np.all(named.epistemic <= best + 1e-12)


def test_geometric_median_by_hand():
    # The Fermat point of an equilateral triangle is its centre, an atom of weight 1/2 is optimal.
    q = SecondOrder.from_samples(np.eye(3)[None])
    found = DistanceMeasure("euclidean")(q)
    np.testing.assert_allclose(found.minimizer[0], 1 / 3, atol=1e-9)
    np.testing.assert_allclose(found.epistemic, np.sqrt(2 / 3), atol=1e-12)
    heavy = SecondOrder.from_samples(np.eye(3)[None], [2, 1, 1])
    found = DistanceMeasure("euclidean")(heavy)
    np.testing.assert_allclose(found.minimizer[0], (1, 0, 0), atol=1e-9)
    np.testing.assert_allclose(found.epistemic, np.sqrt(2) / 2, atol=1e-12)


def test_reference_sets():
    q = SecondOrder.from_samples(atoms(2))
    dirac = SecondOrder.from_samples(np.array([[[0.2, 0.3, 0.5]], [[1 / 3, 1 / 3, 1 / 3]]]))
    found = DistanceMeasure(references={"epistemic": dirac})(q)
    to_each = np.abs(q.values[:, :, None] - dirac.values[:, 0]).sum(axis=-1).mean(axis=1) / 2
    np.testing.assert_allclose(found.epistemic, to_each.min(axis=1), atol=1e-9)
    assert found.minimizer is None
    assert np.all(found.epistemic >= decompose(q).epistemic)


def test_transport_distance_is_a_metric():
    p, q, r = (SecondOrder.from_samples(atoms(seed)) for seed in (3, 4, 5))
    np.testing.assert_allclose(transport_distance(p, p), 0, atol=1e-12)
    np.testing.assert_allclose(transport_distance(p, q), transport_distance(q, p), atol=1e-12)
    direct = transport_distance(p, r)
    assert np.all(direct <= transport_distance(p, q) + transport_distance(q, r) + 1e-12)


def test_bad_input():
    with pytest.raises(InputError, match="ground_metric: expected one of total-variation"):
        DistanceMeasure("hamming")
    with pytest.raises(InputError, match="references: expected one of total, aleatoric"):
        DistanceMeasure(references={"both": SecondOrder.from_samples(atoms())})
    with pytest.raises(InputError, match="expected a distribution with finite support"):
        DistanceMeasure()(SecondOrder.from_dirichlet(np.ones((1, 3))))
    measure = DistanceMeasure(references={"total": SecondOrder.from_samples(atoms(classes=4))})
    with pytest.raises(InputError, match="references: expected 3 classes, found 4"):
        measure(SecondOrder.from_samples(atoms()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"references": [1]}, "references: expected a mapping"),
        ({"ground_metric": lambda p, q: 0.0}, "ground_metric: expected a distance along"),
    ],
)
def test_bad_references_and_metrics(options, message):
    q = SecondOrder.from_samples(np.full((1, 2, 3), 1 / 3))
    with pytest.raises(InputError, match=message):
        DistanceMeasure(**options)(q)
