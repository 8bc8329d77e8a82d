"""The closed forms against linear programmes, optimal transport and invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperworks.second_order_uncertainty import (
    DistanceMeasure,
    SecondOrder,
    decompose,
    solve_programmes,
    transport_distance,
    wasserstein,
)

EXACT = {"rtol": 0, "atol": 1e-9}


def cases():
    """Random, degenerate and weighted distributions: name, atoms, weights."""
    random = np.random.default_rng(20240727)
    for concentration in (0.05, 0.3, 1.0, 5.0):
        for classes, members in ((2, 1), (2, 4), (3, 3), (4, 30), (5, 7), (6, 12)):
            atoms = random.dirichlet(np.full(classes, concentration), size=(1, members))
            name = f"a={concentration} K={classes} M={members}"
            yield name, atoms, None
            weights = random.dirichlet(np.ones(members), size=1)
            yield f"{name} weights", atoms, weights
            if members > 2:
                zero = weights.copy()
                zero[0, ::3] = 0
                yield f"{name} zero weights", atoms, zero
                repeated = np.concatenate([atoms, atoms[:, :2]], axis=1)
                yield f"{name} repeated", repeated, None
                yield f"{name} tied levels", repeated, np.full(members + 2, 1 / 3)
                face = atoms.copy()
                face[..., 0] = 0
                face /= face.sum(axis=-1, keepdims=True)
                yield f"{name} face", face, weights
    vertices = np.eye(3)[None]
    yield "vertices", vertices, None
    yield "weighted vertices", vertices, np.array([0.5, 0.3, 0.2])
    yield "one atom thrice", np.full((1, 3, 4), 0.25), np.array([0.2, 0.0, 0.8])
    grid = np.array([[[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5], [0.5, 0.5, 0]]])
    yield "coarse grid", grid, None
    yield "coarse grid weights", grid, np.array([0.25, 0.25, 0.125, 0.375])


CASES = list(cases())


@pytest.mark.parametrize(("atoms", "weights"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_linear_programme_and_transport(atoms, weights):
    q = SecondOrder.from_samples(atoms, weights)
    found, wanted = decompose(q), solve_programmes(q)
    np.testing.assert_allclose(found.total, wanted.total, **EXACT)
    np.testing.assert_allclose(found.aleatoric, wanted.aleatoric, **EXACT)
    np.testing.assert_allclose(found.epistemic, wanted.epistemic, **EXACT)
    # The minimiser is a class distribution, and transport to it costs the epistemic uncertainty.
    np.testing.assert_allclose(found.minimizer.sum(axis=-1), 1, **EXACT)
    assert found.minimizer.min() >= 0
    reference = SecondOrder.from_samples(found.minimizer[:, None])
    np.testing.assert_allclose(transport_distance(q, reference), found.epistemic, **EXACT)
    # Transport to vertices, and to the mixture that the nearest vertices make.
    classes = q.classes
    vertices = SecondOrder.from_samples(np.eye(classes)[:, None])
    together = DistanceMeasure(references={"total": vertices})(q)
    np.testing.assert_allclose(together.total, found.total, **EXACT)
    nearest = np.eye(classes)[atoms.argmax(axis=-1)]
    mixture = SecondOrder.from_samples(nearest, weights)
    np.testing.assert_allclose(transport_distance(q, mixture), found.aleatoric, **EXACT)


def test_a_thousand_classes_against_the_linear_programme():
    random = np.random.default_rng(5)
    atoms = random.dirichlet(np.full(1000, 0.02), size=(5, 4))
    weights = random.dirichlet(np.ones(4), size=5)
    for chosen in (None, weights):
        q = SecondOrder.from_samples(atoms, chosen)
        np.testing.assert_allclose(wasserstein.epistemic(q), solve_programmes(q).epistemic, **EXACT)


def test_two_classes_have_the_median():
    values = np.random.default_rng(1).random((50, 7))
    q = SecondOrder.from_samples(np.stack([values, 1 - values], axis=-1))
    median = np.median(values, axis=1)
    np.testing.assert_allclose(wasserstein.minimizer(q)[:, 0], median, atol=1e-12)
    expected = np.abs(values - median[:, None]).mean(axis=1)
    np.testing.assert_allclose(wasserstein.epistemic(q), expected, atol=1e-12)


@st.composite
def second_orders(draw, weighted=True):
    """Coarse grids give ties and faces, fine ones general position."""
    classes = draw(st.integers(2, 5))
    members = draw(st.integers(1, 6))
    grain = draw(st.sampled_from([3, 10, 10**6]))
    counts = np.array(
        draw(
            st.lists(
                st.lists(st.integers(0, grain), min_size=classes, max_size=classes).filter(any),
                min_size=members,
                max_size=members,
            )
        ),
        dtype=float,
    )
    weights = None
    if weighted and draw(st.booleans()):
        weights = draw(st.lists(st.integers(0, 4), min_size=members, max_size=members).filter(any))
    return counts / counts.sum(axis=-1, keepdims=True), weights


def parts(atoms, weights):
    found = decompose(SecondOrder.from_samples(atoms[None], weights))
    return np.array([found.total[0], found.aleatoric[0], found.epistemic[0]])


@given(second_orders())
@settings(max_examples=150, deadline=None)
def test_inequalities(case):
    total, aleatoric, epistemic = parts(*case)
    largest = 1 - 1 / case[0].shape[1]
    for value in (total, aleatoric, epistemic):
        assert -1e-12 <= value <= largest + 1e-12
    assert aleatoric <= total + 1e-12
    assert epistemic <= total + 1e-12
    assert total <= aleatoric + 2 * epistemic + 1e-12


@given(second_orders(), st.randoms(use_true_random=False), st.floats(1e-3, 1e3))
@settings(max_examples=150, deadline=None)
def test_invariances(case, random, unit):
    atoms, weights = case
    wanted = parts(atoms, weights)
    members, classes = list(range(len(atoms))), list(range(atoms.shape[1]))
    random.shuffle(members)
    random.shuffle(classes)
    moved = None if weights is None else np.array(weights)[members]
    np.testing.assert_allclose(parts(atoms[members][:, classes], moved), wanted, atol=1e-12)
    twice = None if weights is None else np.tile(weights, 2)
    np.testing.assert_allclose(parts(np.tile(atoms, (2, 1)), twice), wanted, atol=1e-12)
    scaled = np.full(len(atoms), unit) if weights is None else unit * np.array(weights)
    np.testing.assert_allclose(parts(atoms, scaled), wanted, atol=1e-12)


@given(second_orders())
@settings(max_examples=100, deadline=None)
def test_minimizer_follows_a_permutation_of_the_classes(case):
    atoms, weights = case
    order = np.roll(np.arange(atoms.shape[1]), 1)
    plain = wasserstein.minimizer(SecondOrder.from_samples(atoms[None], weights))
    moved = wasserstein.minimizer(SecondOrder.from_samples(atoms[None][..., order], weights))
    np.testing.assert_allclose(moved, plain[:, order], atol=1e-9)
    cost = np.average(np.abs(atoms - plain[0]).sum(axis=-1) / 2, weights=weights)
    assert cost == pytest.approx(parts(atoms, weights)[2], abs=1e-10)


def test_equal_weights_given_and_not_given_agree():
    atoms = np.random.default_rng(3).dirichlet(np.ones(4), size=(200, 9))
    plain = decompose(SecondOrder.from_samples(atoms))
    given_ = decompose(SecondOrder.from_samples(atoms, np.ones(9)))
    for name in ("total", "aleatoric", "epistemic", "minimizer"):
        np.testing.assert_allclose(getattr(plain, name), getattr(given_, name), atol=1e-12)


@pytest.mark.parametrize("measure", ["wasserstein", "entropy", "labelwise-entropy", "variance"])
@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_change_nothing(measure, weighted):
    random = np.random.default_rng(4)
    atoms = random.dirichlet(np.ones(5), size=(103, 6))
    q = SecondOrder.from_samples(atoms, random.random((103, 6)) if weighted else None)
    whole = decompose(q, measure, chunk=1000)
    for chunk in (1, 7, 103):
        found = decompose(q, measure, chunk=chunk)
        for name in ("total", "aleatoric", "epistemic"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    assert (whole.minimizer is None) == (measure != "wasserstein")


def test_no_rows():
    found = decompose(SecondOrder.from_samples(np.empty((0, 3, 4))))
    assert found.total.shape == found.epistemic.shape == (0,)


def test_float32_keeps_its_precision():
    atoms = np.random.default_rng(6).dirichlet(np.ones(1000), size=(20, 12))
    exact = decompose(SecondOrder.from_samples(atoms))
    weights = np.arange(1.0, 13)
    exact_weighted = decompose(SecondOrder.from_samples(atoms, weights))
    single = atoms.astype(np.float32)
    for wanted, w in ((exact, None), (exact_weighted, weights)):
        found = decompose(SecondOrder.from_samples(single, w))
        assert found.epistemic.dtype == np.float32
        for name in ("total", "aleatoric", "epistemic"):
            np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=1e-6)
    half = decompose(SecondOrder.from_samples(atoms.astype(np.float16)))
    assert half.epistemic.dtype == np.float32
    np.testing.assert_allclose(half.epistemic, exact.epistemic, atol=2e-3)
