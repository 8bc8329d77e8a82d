"""Entropy, label-wise entropy and variance against scipy, sampling and hand-worked cases."""

import numpy as np
import pytest
from scipy import stats

from paperworks.second_order_uncertainty import SecondOrder, decompose, entropy, labelwise_entropy
from paperworks.shared.errors import InputError

NAMES = ("total", "aleatoric", "epistemic")


def test_entropy_against_scipy():
    theta = np.random.default_rng(0).dirichlet(np.ones(4), size=(30, 6))
    found = decompose(theta, "entropy")
    np.testing.assert_allclose(found.total, stats.entropy(theta.mean(axis=1), axis=-1, base=2))
    expected = stats.entropy(theta, axis=-1, base=2).mean(axis=1)
    np.testing.assert_allclose(found.aleatoric, expected)
    # Mutual information of member and label, from their joint table.
    joint = theta / 6
    independent = joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True)
    information = (joint * np.log2(joint / independent)).sum(axis=(1, 2))
    np.testing.assert_allclose(found.epistemic, information, atol=1e-12)


@pytest.mark.parametrize(
    ("measure", "wanted"),
    [("entropy", (1, 0, 1)), ("labelwise-entropy", (2, 0, 2)), ("variance", (0.5, 0, 0.5))],
)
def test_two_certain_members_that_disagree(measure, wanted):
    found = decompose(np.eye(2)[None], measure)
    for name, value in zip(NAMES, wanted, strict=True):
        np.testing.assert_allclose(getattr(found, name), value, atol=1e-12)


def test_variance_against_numpy():
    theta = np.random.default_rng(1).dirichlet(np.ones(4), size=(30, 6))
    found = decompose(theta, "variance")
    np.testing.assert_allclose(found.epistemic, theta.var(axis=1).sum(axis=-1))
    np.testing.assert_allclose(found.aleatoric, (theta * (1 - theta)).sum(axis=-1).mean(axis=-1))


@pytest.mark.parametrize("measure", ["entropy", "labelwise-entropy", "variance"])
def test_dirichlet_against_sampling(measure):
    alpha = np.array([[1.0, 2.0, 0.3], [20.0, 5.0, 9.0], [0.1, 0.1, 0.1]])
    exact = decompose(SecondOrder.from_dirichlet(alpha), measure)
    sampled = decompose(SecondOrder.from_dirichlet(alpha).sample(200_000, seed=3), measure)
    for name in NAMES:
        np.testing.assert_allclose(getattr(sampled, name), getattr(exact, name), atol=6e-3)


@pytest.mark.parametrize("measure", ["wasserstein", "entropy", "labelwise-entropy", "variance"])
def test_weights_are_repetitions(measure):
    theta = np.random.default_rng(2).dirichlet(np.ones(4), size=(10, 3))
    weighted = decompose(SecondOrder.from_samples(theta, [1, 2, 3]), measure)
    repeated = decompose(theta[:, [0, 1, 1, 2, 2, 2]], measure)
    for name in NAMES:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), atol=1e-12)


@pytest.mark.parametrize("function", [entropy, labelwise_entropy])
def test_base_of_the_logarithm(function):
    theta = np.random.default_rng(5).dirichlet(np.ones(3), size=(8, 4))
    bits, nats = function(theta), function(theta, base=np.e)
    for name in NAMES:
        np.testing.assert_allclose(getattr(nats, name), getattr(bits, name) * np.log(2))
    with pytest.raises(InputError, match="base: expected a finite number > 1, found 1"):
        function(theta, base=1)
