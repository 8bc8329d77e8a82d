"""The estimator against its definition, invariances and numerical integration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from paperworks.paper_name import james_stein, james_stein_risk
from scipy import integrate, stats

from paperworks.shared.errors import InputError

vectors = arrays(np.float64, st.integers(3, 8), elements=st.floats(-50, 50))


def test_by_hand():
    # |y|^2 = 25 and p - 2 = 1: the factor is 24/25.
    np.testing.assert_allclose(james_stein([3.0, 0.0, 4.0]), [2.88, 0.0, 3.84], rtol=1e-15)


@given(vectors, st.floats(0.1, 10))
def test_never_beyond_the_centre_nor_the_observation(observed, noise_std):
    estimated = james_stein(observed, noise_std=noise_std)
    assert np.all(np.abs(estimated) <= np.abs(observed))
    assert np.all(estimated * observed >= 0)


@given(vectors, st.floats(0.1, 10))
def test_unit_of_measurement_does_not_matter(observed, scale):
    expected = scale * james_stein(observed)
    np.testing.assert_allclose(james_stein(scale * observed, noise_std=scale), expected, atol=1e-9)


def test_rows_are_independent():
    rows = np.random.default_rng(0).normal(size=(2, 5, 4))
    np.testing.assert_array_equal(james_stein(rows)[1, 3], james_stein(rows[1, 3]))


def test_centre():
    rows = np.random.default_rng(1).normal(size=(5, 4))
    np.testing.assert_allclose(james_stein(rows + 7, center=7), james_stein(rows) + 7, atol=1e-12)


@pytest.mark.parametrize(("p", "squared_norm"), [(3, 0.5), (5, 4.0), (10, 30.0)])
def test_risk_against_integration(p, squared_norm):
    # E[1/|y|^2] by integrating the noncentral chi-square density: no Poisson sum involved.
    density = stats.ncx2(p, squared_norm).pdf
    inverse = integrate.quad(lambda x: density(x) / x, 0, np.inf, limit=200)[0]
    assert james_stein_risk(p, squared_norm) == pytest.approx(p - (p - 2) ** 2 * inverse, rel=1e-6)


@pytest.mark.parametrize(
    ("observed", "options", "message"),
    [
        ([1.0, 2.0], {}, "observations: expected rows of at least 3 means, found shape (2,)"),
        ([1.0, np.nan, 2.0], {}, "observations[1]: expected finite numbers, found nan"),
        ([1.0, 2.0, 3.0], {"noise_std": 0}, "noise_std: expected a finite number > 0, found 0"),
    ],
)
def test_bad_input(observed, options, message):
    with pytest.raises(InputError) as caught:
        james_stein(observed, **options)
    assert str(caught.value) == message
