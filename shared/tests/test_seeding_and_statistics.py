"""Streams are reproducible and apart; intervals agree with scipy and cover at their rate."""

import numpy as np
import pytest
from scipy import stats

from paperworks.shared.errors import InputError
from paperworks.shared.seeding import generator, spawn
from paperworks.shared.statistics import (
    binomial_interval,
    mean_interval,
    paired_difference,
    power_law_exponent,
)


def test_streams():
    def draws(*keys, seed=7):
        return generator(seed, *keys).random(4).tolist()

    assert draws() == np.random.default_rng(7).random(4).tolist()
    assert draws("a") == draws("a")
    different = [draws(), draws("a"), draws("b"), draws("a", 1), draws("a", 2), draws("a", seed=8)]
    assert len({tuple(d) for d in different}) == len(different)
    first, second = spawn(3, 2)
    assert first.random() == spawn(3, 5)[0].random()
    assert first.random() != second.random()


def test_generators_pass_through():
    own = np.random.default_rng(0)
    assert generator(own) is own
    assert len(spawn(own, 3)) == 3


@pytest.mark.parametrize("seed", [-1, 1.5, "1", True])
def test_bad_seed(seed):
    with pytest.raises(InputError, match="seed: expected an integer >= 0"):
        generator(seed)


def test_mean_interval_against_scipy():
    x = np.random.default_rng(0).normal(1, 2, size=12)
    ours = mean_interval(x, 0.9)
    theirs = stats.ttest_1samp(x, 0)
    low, high = theirs.confidence_interval(0.9)
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)


@pytest.mark.parametrize("alternative", ["greater", "less"])
def test_one_sided_paired_against_scipy(alternative):
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.3, 1, 20), rng.normal(size=20)
    ours = paired_difference(a, b, 0.95, alternative)
    theirs = stats.ttest_rel(a, b, alternative=alternative)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-12)
    low, high = theirs.confidence_interval(0.95)
    assert (ours.low, ours.high) == pytest.approx((low, high), rel=1e-12)


def test_equal_values():
    assert mean_interval([2.0, 2.0]).low == 2.0
    assert mean_interval([2.0, 2.0]).p_value == 0.0
    assert mean_interval([0.0, 0.0], alternative="greater").p_value == 0.5


def test_coverage():
    rng = np.random.default_rng(2)
    inside = sum(
        interval.low <= 1 <= interval.high
        for interval in (mean_interval(rng.normal(1, 3, 5), 0.9) for _ in range(2000))
    )
    assert 0.88 < inside / 2000 < 0.92  # three standard deviations


def test_binomial_against_published_values():
    # The rule of three's exact form: 0 of n has the upper bound 1 - (alpha/2)^(1/n).
    assert binomial_interval(0, 10).high == pytest.approx(1 - 0.025 ** (1 / 10), rel=1e-9)
    assert binomial_interval(10, 10).low == pytest.approx(0.025 ** (1 / 10), rel=1e-9)


def test_power_law():
    x = np.array([1e4, 1e5, 1e6, 1e7])
    fit = power_law_exponent(x, 3 * x**1.5)
    assert fit.estimate == pytest.approx(1.5)
    noisy = power_law_exponent(x, x * np.array([1, 1.1, 0.9, 1.05]))
    assert noisy.low < 1 < noisy.high


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mean_interval([1.0]), "values: expected at least two repetitions"),
        (lambda: mean_interval([1.0, 2.0], 1.0), "level: expected a finite number > 0 and < 1"),
        (lambda: binomial_interval(5, 3), "successes: expected an integer >= 0 and <= 3, found 5"),
        (lambda: paired_difference([1, 2], [1]), "b: expected shape"),
        (lambda: power_law_exponent([1, 1, 1], [1, 2, 3]), "at different sizes"),
        (lambda: power_law_exponent([1, 2, 0], [1, 2, 3]), r"x\[2\]: expected numbers > 0"),
    ],
)
def test_bad_statistics(call, message):
    with pytest.raises(InputError, match=message):
        call()
