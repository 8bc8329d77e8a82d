"""Dirichlet closed forms against published fractions, 40-digit arithmetic, sampling and limits."""

import mpmath
import numpy as np
import pytest

from paperworks.second_order_uncertainty import (
    SecondOrder,
    decompose,
    solve_programmes,
    wasserstein,
)
from paperworks.shared.statistics import mean_interval


def parts(alpha):
    found = decompose(SecondOrder.from_dirichlet(np.atleast_2d(np.asarray(alpha, float))))
    return found.total[0], found.aleatoric[0], found.epistemic[0]


@pytest.mark.parametrize(
    ("alpha", "wanted"),
    [
        ((1, 1), (1 / 2, 1 / 4, 1 / 4)),
        ((1, 1, 1), (2 / 3, 7 / 18, 8 / 27)),
        # The largest of K uniform spacings has mean (1 + 1/2 + ... + 1/K) / K.
        ((1,) * 10, (0.9, 1 - sum(1 / k for k in range(1, 11)) / 10, 0.9**10)),
        ((2, 1, 1), (0.5, 0.3888889, 0.2506573)),
    ],
)
def test_reference_values(alpha, wanted):
    np.testing.assert_allclose(parts(alpha), wanted, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("classes", "level"), [(3, 5 / 9), (10, 0.6125795)])
def test_level_of_the_uniform_distribution(classes, level):
    # theta_k is Beta(1, K - 1) with distribution function 1 - (1 - x)^(K - 1).
    q = wasserstein.minimizer(SecondOrder.from_dirichlet(np.ones((1, classes))))
    np.testing.assert_allclose(1 - (1 - q) ** (classes - 1), level, atol=1e-7)


HARD = [
    (0.3, 2.0, 5.0),
    (1e-6, 1e-6, 1e-6),
    (2e-6, 1e-6, 3e-6),
    (1e-6, 1.0, 1e3),
    (1e6, 1e6, 1e6),
    (1e6, 3e5, 1e-6),
    (1e-3, 0.1, 0.01, 0.5, 20.0),
    (1e-2, 2e-2, 1e-2, 3e-2),
    (50.0, 60.0, 70.0, 80.0),
    (1e4, 1.0),
]


def exact_maximum(alpha):
    """E[max] by 40-digit quadrature in log t (another variable, another rule, other functions)."""
    with mpmath.workdps(40):
        alpha = [mpmath.mpf(a) for a in alpha]
        top = max(alpha)

        def integrand(s):
            t = mpmath.e**s
            lower = [mpmath.gammainc(a, 0, t, regularized=True) for a in alpha]
            return (1 - mpmath.fprod(lower)) * t

        width = 12 / mpmath.sqrt(top)
        middle = mpmath.log(top)
        ends = [middle - max(width, 60), middle - width, middle, middle + width]
        ends = [*sorted(ends), middle + width + max(4, 60 if top < 1e-2 else 4)]
        if top < 10:
            ends = [mpmath.log(mpmath.mpf("1e-30")), *map(mpmath.log, (1e-20, 1e-10, 1e-6, 1e-3))]
            ends += [mpmath.log(x) for x in (0.1, 1, 10, 60)] + [mpmath.log(200)]
        below = mpmath.e ** ends[0]  # the integrand is at most 1 there
        return float((below + mpmath.quad(integrand, ends)) / mpmath.fsum(alpha))


@pytest.mark.parametrize("alpha", [a for a in HARD if max(a) < 1e3])
def test_aleatoric_against_40_digits(alpha):
    _, aleatoric, _ = parts(alpha)
    assert aleatoric == pytest.approx(1 - exact_maximum(alpha), abs=1e-9)


def cost(alpha, q):
    """Return E|theta - q|_1 / 2 and each class's level of q, in 40 digits."""
    with mpmath.workdps(40):
        strength = mpmath.fsum(map(mpmath.mpf, alpha))
        value, levels = mpmath.mpf(0), []
        for a, x in zip(map(mpmath.mpf, alpha), map(mpmath.mpf, q), strict=True):
            level = mpmath.betainc(a, strength - a, 0, x, regularized=True)
            part = mpmath.betainc(a + 1, strength - a, 0, x, regularized=True) * a / strength
            value += (2 * x * level - 2 * part + a / strength - x) / 2
            levels.append(float(level))
        return float(value), levels


@pytest.mark.parametrize("alpha", [a for a in HARD if max(a) < 1e5])
def test_epistemic_against_40_digits(alpha):
    q = SecondOrder.from_dirichlet(np.array([alpha]))
    value, minimizer = wasserstein.epistemic_and_minimizer(q)
    reached, levels = cost(alpha, minimizer[0])
    assert value[0] == pytest.approx(reached, abs=1e-9)
    # Optimal: all classes are at one level (where the quantile can be represented at all).
    resolved = [p for p, x in zip(levels, minimizer[0], strict=True) if 1e-200 < x < 1 - 1e-12]
    assert np.ptp(resolved) < 1e-6 if resolved else min(alpha) < 1e-5


@pytest.mark.parametrize("alpha", [(1e6, 1e6, 1e6), (1e6, 3e5, 2e5, 7e5)])
def test_large_concentrations_are_normal(alpha):
    # E|theta_k - mu_k| = sigma_k sqrt(2 / pi) up to 1 / alpha_0, and q is mu: relative error 1e-5.
    alpha = np.array(alpha)
    mean = alpha / alpha.sum()
    deviation = np.sqrt(mean * (1 - mean) / (alpha.sum() + 1))
    assert parts(alpha)[2] == pytest.approx(np.sqrt(2 / np.pi) * deviation.sum() / 2, rel=1e-5)


@pytest.mark.parametrize("power", range(-6, 7))
def test_two_symmetric_classes(power):
    # max(theta, 1 - theta) = 1/2 + |theta - 1/2|: a quadrature against a closed form of the Beta.
    total, aleatoric, epistemic = parts((10.0**power,) * 2)
    assert total == 0.5
    assert aleatoric + epistemic == pytest.approx(0.5, abs=1e-11)


def test_symmetric_aleatoric_at_large_concentrations():
    # The largest of three equal normals with correlation -1/2, up to 1 / alpha_0.
    deviation = np.sqrt((1 / 3) * (2 / 3) / (3e6 + 1)) * np.sqrt(1.5)
    _, aleatoric, _ = parts((1e6,) * 3)
    assert aleatoric == pytest.approx(2 / 3 - 1.5 / np.sqrt(np.pi) * deviation, abs=1e-7)


def test_limits():
    for alpha in ((1.0, 2.0, 3.0), (0.2, 0.2), (5.0, 1.0, 1.0, 1.0)):
        mean = np.array(alpha) / np.sum(alpha)
        scaled = np.array([parts(np.array(alpha) * 10.0**power) for power in range(-6, 6)])
        assert np.all(np.diff(scaled[:, 1]) > -1e-12)
        assert np.all(np.diff(scaled[:, 2]) < 1e-12)
        # To a mixture of vertices with weights mu on one side, to the Dirac measure at mu.
        np.testing.assert_allclose(scaled[0, 1:], [0, 1 - mean.max()], atol=1e-5)
        np.testing.assert_allclose(scaled[-1, 1:], [1 - mean.max(), 0], atol=2e-3)


def test_large_rows():
    random = np.random.default_rng(0)
    alpha = 10 ** random.uniform(-6, 6, size=(6, 1000))
    found = decompose(SecondOrder.from_dirichlet(alpha))
    assert np.all(np.isfinite(found.epistemic) & np.isfinite(found.aleatoric))
    assert np.all(found.aleatoric <= found.total + 1e-12)
    assert np.all(found.epistemic <= found.total + 1e-12)
    assert np.all(found.total <= found.aleatoric + 2 * found.epistemic + 1e-12)
    np.testing.assert_allclose(found.minimizer.sum(axis=-1), 1, atol=1e-9)


def test_two_draws_agree_with_sampling():
    # Four standard errors for 150 values: one false alarm in 100 seeds.
    random = np.random.default_rng(7)
    for _ in range(50):
        classes = random.integers(2, 7)
        alpha = 10 ** random.uniform(-1.5, 1.5, size=classes)
        theta = random.dirichlet(alpha, size=40_000)
        q = SecondOrder.from_dirichlet(alpha[None])
        found = decompose(q)
        draws = {
            "aleatoric": 1 - theta.max(axis=1),
            "epistemic": np.abs(theta - found.minimizer).sum(axis=1) / 2,
        }
        for name, values in draws.items():
            interval = mean_interval(values)
            error = (interval.high - interval.low) / 2 / 1.96
            assert abs(getattr(found, name)[0] - interval.estimate) < 4 * error + 1e-9


def test_sampled_distribution_converges():
    q = SecondOrder.from_dirichlet(np.array([[1e-6, 2e-6], [0.5, 3.0], [400.0, 100.0]]))
    sampled = q.sample(60_000, seed=0)
    found, wanted = decompose(sampled), decompose(q)
    for name in ("total", "aleatoric", "epistemic"):
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), atol=0.01)


def test_quantised_distribution_against_the_linear_programme():
    # A Beta distribution as 400 equally likely atoms at the middle of its quantiles.
    from scipy import stats

    levels = (np.arange(400) + 0.5) / 400
    values = stats.beta(2.0, 3.0).ppf(levels)
    atoms = SecondOrder.from_samples(np.stack([values, 1 - values], axis=-1)[None])
    assert parts((2.0, 3.0))[2] == pytest.approx(solve_programmes(atoms).epistemic[0], abs=1e-4)
    assert parts((2.0, 3.0))[1] == pytest.approx(solve_programmes(atoms).aleatoric[0], abs=1e-4)


def test_float32_concentrations():
    alpha = np.random.default_rng(0).uniform(0.1, 9, size=(20, 4))
    single = decompose(SecondOrder.from_dirichlet(alpha.astype(np.float32)))
    assert single.epistemic.dtype == np.float32
    wanted = decompose(SecondOrder.from_dirichlet(alpha)).epistemic
    np.testing.assert_allclose(single.epistemic, wanted, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-300, 1e-30, 1e-12])
def test_vanishing_strength_is_a_mixture_of_vertices(factor):
    alpha = np.array([[1.0, 2.0, 3.0], [0.3, 0.2, 0.9]])
    found = decompose(SecondOrder.from_dirichlet(alpha * factor))
    mixture = SecondOrder.from_samples(np.broadcast_to(np.eye(3), (2, 3, 3)), alpha)
    np.testing.assert_allclose(found.epistemic, decompose(mixture).epistemic, atol=1e-9)
    np.testing.assert_allclose(found.aleatoric, 0, atol=1e-9)
    assert (found.aleatoric >= 0).all()


@pytest.mark.parametrize("factor", [1e12, 1e30, 1e300])
def test_growing_strength_shrinks_with_its_root(factor):
    # Two classes: a normal variable of deviation s has a mean distance of s sqrt(2 / pi).
    alpha = np.array([[2.0, 3.0]])
    deviation = np.sqrt(0.4 * 0.6 / (5 * factor))
    found = decompose(SecondOrder.from_dirichlet(alpha * factor))
    np.testing.assert_allclose(found.epistemic, deviation * np.sqrt(2 / np.pi), rtol=1e-4)
    np.testing.assert_allclose(found.aleatoric, 0.4, rtol=1e-9)


def test_any_mixture_of_magnitudes_gives_values_in_range():
    alpha = 10 ** np.random.default_rng(6).uniform(-300, 300, size=(300, 4))
    alpha[:100] = 10 ** np.random.default_rng(7).uniform(-30, 30, size=(100, 4))
    found = decompose(SecondOrder.from_dirichlet(alpha))
    for part in (found.aleatoric, found.epistemic):
        assert ((part >= 0) & (part <= found.total + 1e-9)).all()
    np.testing.assert_allclose(found.minimizer.sum(axis=1), 1)
