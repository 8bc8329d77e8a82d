"""What is accepted, and one line for each thing that is not."""

import numpy as np
import pytest

from paperworks.second_order_uncertainty import (
    Decomposition,
    DistanceMeasure,
    SecondOrder,
    axioms,
    decompose,
    plots,
    solve_programmes,
    transport_distance,
    variance,
    wasserstein,
)
from paperworks.shared.errors import InputError

GOOD = np.full((2, 3, 4), 0.25)
AXES = "theta: expected axes (rows, members, classes), found "


def changed(index, value):
    array = GOOD.copy()
    array[index] = value
    return array


@pytest.mark.parametrize(
    ("theta", "message"),
    [
        (
            changed((1, 2, 0), 0.5),
            "theta[1, 2, :]: expected probabilities that sum to 1, found a sum of 1.25",
        ),
        (changed((0, 1, 3), -0.1), "theta[0, 1, 3]: expected numbers >= 0, found -0.1"),
        (changed((0, 0, 0), np.nan), "theta[0, 0, 0]: expected finite numbers, found nan"),
        (changed((0, 0, 0), np.inf), "theta[0, 0, 0]: expected finite numbers, found inf"),
        (np.empty((2, 0, 4)), "theta: expected at least one member, found shape (2, 0, 4)"),
        (np.ones((2, 3, 1)), "theta: expected at least two classes, found shape (2, 3, 1)"),
        (np.ones(3), "theta: expected axes (rows, members, classes), found shape (3,)"),
        (
            np.full((5, 4), 0.25),
            AXES + "shape (5, 4): members are missing; give theta[None] for one row of 5 members,"
            " theta[:, None] for 5 rows of one member",
        ),
        (
            np.full((5, 4), 0.3),
            AXES + "shape (5, 4) whose rows do not sum to 1: classes are missing; for two classes"
            " stack [1 - p, p] on a last axis",
        ),
        ([[["a"]]], "theta: expected an array of numbers, found dtype <U1"),
    ],
)
def test_bad_samples(theta, message):
    with pytest.raises(InputError) as caught:
        SecondOrder.from_samples(theta)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, -1, 1], "weights[1]: expected numbers >= 0, found -1.0"),
        ([0, 0, 0], "weights: expected a positive weight in each row, found zeros only"),
        ([1, 1], "weights: expected shape (3,) or (2, 3), found shape (2,)"),
        ([1, np.nan, 1], "weights[1]: expected finite numbers, found nan"),
    ],
)
def test_bad_weights(weights, message):
    with pytest.raises(InputError) as caught:
        SecondOrder.from_samples(GOOD, weights)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ([[1.0, 0.0]], "alpha[0, 1]: expected numbers > 0, found 0.0"),
        ([[1.0, -2.0]], "alpha[0, 1]: expected numbers > 0, found -2.0"),
        ([[1.0, np.nan]], "alpha[0, 1]: expected finite numbers, found nan"),
        ([[1.0]], "alpha: expected at least two classes, found shape (1, 1)"),
        (
            [1.0, 2.0],
            "alpha: expected axes (rows, classes), found shape (2,); for one row give alpha[None]",
        ),
    ],
)
def test_bad_dirichlet(alpha, message):
    with pytest.raises(InputError) as caught:
        SecondOrder.from_dirichlet(np.array(alpha))
    assert str(caught.value) == message


def test_bad_logits():
    with pytest.raises(InputError, match=r"logits\[0, 0, 1\]: expected finite numbers, found inf"):
        SecondOrder.from_logits(np.array([[[0.0, np.inf]]]))
    with pytest.raises(InputError, match="members are missing"):
        SecondOrder.from_logits(np.zeros((5, 4)))


def test_bad_measure_and_chunk():
    with pytest.raises(InputError, match="measure: expected one of wasserstein, entropy"):
        decompose(GOOD, "kl")
    with pytest.raises(InputError, match="chunk: expected an integer >= 1, found 0"):
        decompose(GOOD, chunk=0)
    with pytest.raises(InputError, match="measure: expected a Decomposition to be returned"):
        decompose(GOOD, lambda q: 1.0)


def test_logits_are_a_softmax():
    logits = np.random.default_rng(0).normal(size=(4, 3, 5)) * 300
    values = SecondOrder.from_logits(logits).values
    np.testing.assert_allclose(values.sum(axis=-1), 1, atol=1e-12)
    shifted = np.exp(logits - logits.max(axis=-1, keepdims=True))
    # One class dominates at this scale: the softmax is almost a vertex, without overflow.
    assert values.max(axis=-1).min() > 0.5
    np.testing.assert_allclose(values, shifted / shifted.sum(axis=-1, keepdims=True))


def test_normalize_and_tolerance():
    counts = np.random.default_rng(0).integers(1, 9, size=(3, 4, 5))
    q = SecondOrder.from_samples(counts, normalize=True)
    np.testing.assert_allclose(q.values, counts / counts.sum(axis=-1, keepdims=True))
    slightly = GOOD * (1 + 5e-7)
    np.testing.assert_allclose(
        SecondOrder.from_samples(slightly).values.sum(axis=-1), 1, atol=1e-15
    )
    half = np.random.default_rng(1).dirichlet(np.ones(10), size=(50, 5)).astype(np.float16)
    assert SecondOrder.from_samples(half).values.dtype == np.float32


def test_mean_and_sample_of_weighted_members():
    theta = np.random.default_rng(2).dirichlet(np.ones(3), size=(2, 4))
    q = SecondOrder.from_samples(theta, [1, 2, 0, 5])
    np.testing.assert_allclose(q.mean(), np.average(theta, axis=1, weights=[1, 2, 0, 5]))
    drawn = q.sample(50_000, seed=0)
    np.testing.assert_allclose(drawn.mean(), q.mean(), atol=0.01)
    assert not np.any(np.all(drawn.values == theta[:, 2:3], axis=-1))
    assert len(q) == 2
    assert q[1:].values.shape == (1, 4, 3)


def test_huge_weights_and_single_rows():
    atoms = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 4))
    huge = SecondOrder.from_samples(atoms, [1.5e308, 1.5e308, 1.5e308, 0.0])
    np.testing.assert_allclose(np.asarray(huge.weights)[0], [1 / 3, 1 / 3, 1 / 3, 0])
    one = huge[1]
    assert len(one) == 1
    np.testing.assert_array_equal(one.values, huge[1:2].values)
    np.testing.assert_array_equal(huge[-1].values, one.values)
    with pytest.raises(IndexError):
        huge[2]


def test_arrays_are_taken_as_members_everywhere():
    theta = np.random.default_rng(8).dirichlet(np.ones(3), size=(4, 5))
    q = SecondOrder.from_samples(theta)
    for function in (
        wasserstein.total,
        wasserstein.aleatoric,
        wasserstein.epistemic,
        wasserstein.minimizer,
    ):
        np.testing.assert_array_equal(function(theta), function(q))
    np.testing.assert_array_equal(transport_distance(theta, theta[::-1]).shape, (4,))
    np.testing.assert_array_equal(solve_programmes(theta).total, solve_programmes(q).total)
    np.testing.assert_allclose(DistanceMeasure()(theta).total, wasserstein.total(q))
    for function in (
        wasserstein.total,
        wasserstein.minimizer,
        solve_programmes,
        DistanceMeasure(),
        lambda bad: transport_distance(bad, bad),
        lambda bad: variance(bad),
        lambda bad: plots.ternary(bad),
    ):
        with pytest.raises(InputError, match="expected probabilities that sum to 1"):
            function(2 * theta)


def test_masked_entries_are_refused():
    theta = np.ma.masked_invalid([[[0.5, 0.5], [0.5, np.nan]]])
    with pytest.raises(InputError, match="theta: expected an array without masked entries"):
        decompose(theta)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (np.zeros(3), "measure: expected a Decomposition to be returned"),
        (Decomposition(np.zeros(2), np.zeros(3), np.zeros(3)), "measure: total: expected an array"),
        (Decomposition(np.zeros(3), 0.0, np.zeros(3)), "measure: aleatoric: expected an array"),
    ],
)
def test_a_users_measure_that_returns_something_else(parts, message):
    with pytest.raises(InputError, match=message):
        decompose(np.full((3, 2, 2), 0.5), lambda q: parts)
    with pytest.raises(InputError, match="measure"):
        axioms.check(lambda q: parts, cases=5, steps=0)
