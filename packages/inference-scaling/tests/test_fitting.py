"""The fit against scipy, known coefficients, coverage by simulation, and scikit-learn's rules."""

import json
import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize
from scipy.special import huber, logsumexp

from paperworks.inference_scaling import (
    InferenceDemand,
    LossLawRegressor,
    RunsWarning,
    ScalingLaw,
    fit,
    plan,
)
from paperworks.inference_scaling.fitting import descent
from paperworks.inference_scaling.fitting.estimate import start_grid

LAW = ScalingLaw.chinchilla()
TRUTH = np.array([LAW.E, LAW.A, LAW.B, LAW.alpha, LAW.beta])


def make_runs(seed, count=38, noise=0.002):
    random = np.random.default_rng(seed)
    params = 10 ** random.uniform(7.5, 10, count)
    tokens = params * 10 ** random.uniform(0.5, 3, count)
    loss = LAW.loss(params, tokens) * np.exp(noise * random.normal(size=count))
    return params, tokens, loss


def stated_objective(theta, params, tokens, loss, delta=1e-3):
    """The objective of appendix D.3 as it is written, with scipy's logsumexp and huber."""
    a, b, e, alpha, beta = theta
    terms = np.stack(
        [a - alpha * np.log(params), b - beta * np.log(tokens), np.full(len(params), e)]
    )
    return huber(delta, logsumexp(terms, axis=0) - np.log(loss)).sum()


@pytest.fixture(scope="module")
def runs():
    return make_runs(0)


@pytest.fixture(scope="module")
def fitted(runs):
    return fit(*runs, bootstrap=300, seed=1)


def theta_of(law):
    return np.array([np.log(law.A), np.log(law.B), np.log(law.E), law.alpha, law.beta])


# The optimum ----------------------------------------------------------------------------------


def test_start_grid_is_hoffmanns():
    grid = start_grid()
    assert grid.shape == (4500, 5)
    assert [sorted(set(column)) for column in grid.T] == [
        [0, 5, 10, 15, 20, 25],
        [0, 5, 10, 15, 20, 25],
        [-1, -0.5, 0, 0.5, 1],
        [0, 0.5, 1, 1.5, 2],
        [0, 0.5, 1, 1.5, 2],
    ]


@settings(deadline=None, max_examples=30)
@given(
    st.tuples(*[st.floats(*b) for b in ((0, 12), (0, 12), (-1, 1), (0.05, 1), (0.05, 1))]),
    st.floats(0.2, 5),
)
def test_derivatives_by_differences(theta, factor):
    params, tokens, loss = make_runs(3, 12)
    weights = np.linspace(0, 2, 12)
    problem = descent.Problem(np.log(params), np.log(tokens), np.log(loss), weights, 1e-3, factor)
    theta = np.array(theta)
    _, gradient, hessian = descent._derivatives(problem, theta[None])
    steps = 1e-6 * np.eye(5)
    values = descent.objective(problem, np.concatenate([theta + steps, theta - steps]))
    np.testing.assert_allclose(gradient[0], (values[:5] - values[5:]) / 2e-6, rtol=1e-4, atol=1e-7)
    around = descent._derivatives(problem, np.concatenate([theta + steps, theta - steps]))[1]
    predicted = descent._terms(problem, theta[None])[0][0]
    if np.abs(np.abs(predicted - problem.log_loss) - 1e-3).min() > 1e-4:  # away from the kinks
        expected = (around[:5] - around[5:]) / 2e-6
        np.testing.assert_allclose(hessian[0], expected, rtol=1e-4, atol=1e-4)


def test_objective_is_the_stated_one(runs, fitted):
    value = stated_objective(theta_of(fitted.law), *runs)
    assert fitted.convergence.objective == pytest.approx(value, rel=1e-9)


def test_scipy_finds_nothing_better(runs, fitted):
    """L-BFGS with tight tolerances from the truth and from our optimum."""
    for start in (theta_of(LAW), theta_of(fitted.law)):
        found = scipy_minimize(
            stated_objective,
            start,
            args=runs,
            method="L-BFGS-B",
            options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20_000, "maxfun": 200_000},
        )
        assert fitted.convergence.objective <= found.fun * (1 + 1e-9)
    assert fitted.convergence.converged
    assert fitted.convergence.gradient < 1e-9


def test_screening_finds_the_optimum_of_all_starts():
    runs = make_runs(10, 12, noise=0.005)
    screened, full = fit(*runs), fit(*runs, starts="all")
    assert full.convergence.polished == 4500
    assert screened.convergence.polished == 50
    assert screened.convergence.objective == pytest.approx(full.convergence.objective, rel=1e-9)


def test_noise_free_runs_give_the_law_back():
    params, tokens, loss = make_runs(5, noise=0)
    found = fit(params, tokens, loss)
    np.testing.assert_allclose(list(found.law.to_dict().values()), TRUTH, rtol=1e-5)


def test_order_and_units_do_not_matter(runs, fitted):
    params, tokens, loss = runs
    turned = fit(params[::-1], tokens[::-1], loss[::-1])
    assert turned.law.alpha == pytest.approx(fitted.law.alpha, rel=1e-6)
    # Counting tokens in thousands rescales B alone.
    thousands = fit(params, tokens / 1000, loss)
    factor = 1000 ** (-fitted.law.beta)
    assert pytest.approx(fitted.law.B * factor, rel=1e-5) == thousands.law.B
    assert thousands.law.beta == pytest.approx(fitted.law.beta, rel=1e-6)


def test_overestimates_can_cost_more(runs, fitted):
    asymmetric = fit(*runs, overestimate_weight=10)
    assert np.mean(asymmetric.residuals > 0) < 0.25
    assert 0.35 < np.mean(fitted.residuals > 0) < 0.65


# Intervals --------------------------------------------------------------------------------------


def test_coverage_of_the_bootstrap_intervals():
    """Over 300 data sets each coefficient's 95 % interval holds the truth in 92 to 98 %.

    The resamples of all data sets start from each set's own optimum, as in `fit`.
    """
    sets, resamples, count = 300, 250, 38
    random = np.random.default_rng(7)
    params, tokens, _ = make_runs(7, count)
    logs = np.log(params), np.log(tokens)
    clean = np.log(LAW.loss(params, tokens))
    losses = clean + 0.002 * random.normal(size=(sets, count))
    start = np.repeat(theta_of(LAW)[None], sets, 0)
    best = descent.minimize(descent.Problem(*logs, losses, np.ones(count), 1e-3), start).theta
    held = np.zeros(5)
    for loss, theta in zip(losses, best, strict=True):
        draws = random.multinomial(count, np.full(count, 1 / count), size=resamples)
        problem = descent.Problem(*logs, loss, draws.astype(float), 1e-3)
        thetas = descent.minimize(problem, np.repeat(theta[None], resamples, 0)).theta
        low, high = np.quantile(thetas, [0.025, 0.975], axis=0)
        held += (low <= theta_of(LAW)) & (theta_of(LAW) <= high)
    assert ((held / sets >= 0.92) & (held / sets <= 0.98)).all(), held / sets


def test_fit_agrees_with_the_simulation_of_coverage():
    """`fit` on a few of such data sets: its intervals hold the truth at the same rate."""
    held = []
    for seed in range(8):
        found = fit(*make_runs(seed + 100), bootstrap=200, seed=seed)
        values = [found.intervals[name] for name in ScalingLaw.COEFFICIENTS]
        held += [i.low <= t <= i.high for i, t in zip(values, TRUTH, strict=True)]
    assert np.mean(held) > 0.85  # 40 dependent trials of 95 %


def test_same_seed_same_bootstrap_whatever_the_workers(runs, fitted):
    again = fit(*runs, bootstrap=300, seed=1, workers=2)
    np.testing.assert_array_equal(again.samples, fitted.samples)
    other = fit(*runs, bootstrap=300, seed=2)
    assert not np.array_equal(other.samples, fitted.samples)


def test_resamples_are_at_their_own_optimum(runs, fitted):
    """A resample's fit is no worse than descents from the whole grid of starts."""
    random = np.random.default_rng(1)
    draws = random.multinomial(38, np.full(38, 1 / 38), size=300)
    problem = descent.Problem(*(np.log(column) for column in runs), draws[4].astype(float), 1e-3)
    mine = fitted.samples[4]
    theta = np.array([np.log(mine[1]), np.log(mine[2]), np.log(mine[0]), mine[3], mine[4]])
    grid = start_grid()
    screened = grid[np.argsort(descent.objective(problem, grid))[:200]]
    best = descent.minimize(problem, screened).objective.min()
    assert descent.objective(problem, theta[None])[0] <= best * (1 + 1e-9)


def test_intervals_of_plans_and_predictions(fitted):
    demand = InferenceDemand(1e9)
    size = fitted.interval(lambda law: plan(law, 2.1, demand).params)
    assert size.low < size.estimate < size.high
    assert size.low < plan(LAW, 2.1, demand).params < size.high
    loss = fitted.interval(lambda law: law.loss(1e9, 2e10))
    # What the runs determine is known far better than A and B are.
    a = fitted.intervals["A"]
    assert (loss.high - loss.low) / loss.estimate < 0.1 * (a.high - a.low) / a.estimate
    assert fitted.correlation[1, 3] > 0.99


def test_intervals_without_bootstrap(runs):
    found = fit(*runs)
    assert found.samples.shape == (0, 5)
    for interval in found.intervals.values():
        assert interval.low < interval.estimate < interval.high
    with pytest.raises(ValueError, match="bootstrap: expected a fit with bootstrap samples"):
        found.sampled_law()


# Subsets ----------------------------------------------------------------------------------------


def test_max_ratio_holds_out(runs):
    params, tokens, loss = runs
    found = fit(params, tokens, loss, max_ratio=100)
    low = tokens / params <= 100
    np.testing.assert_array_equal(found.used, low)
    alone = fit(params[low], tokens[low], loss[low])
    assert found.law == alone.law
    errors = np.log(found.law.loss(params[~low], tokens[~low]) / loss[~low])
    assert found.held_out.runs == (~low).sum()
    assert found.held_out.root_mean_square == pytest.approx(np.sqrt(np.mean(errors**2)))
    assert found.held_out.mean.estimate == pytest.approx(errors.mean())
    assert fit(params, tokens, loss).held_out is None


# Bad runs ---------------------------------------------------------------------------------------


def changed(column, index, value):
    columns = [np.array(c) for c in make_runs(0)]
    columns[column][index] = value
    return columns


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed(2, 3, np.nan), r"loss\[3\]: expected finite numbers, found nan"),
        (lambda: changed(0, 1, np.inf), r"params\[1\]: expected finite numbers, found inf"),
        (lambda: changed(2, 0, 0.0), r"loss\[0\]: expected numbers > 0, found 0.0"),
        (lambda: changed(2, 0, -2.0), r"loss\[0\]: expected numbers > 0, found -2.0"),
        (lambda: changed(1, 5, 0.0), r"tokens\[5\]: expected numbers > 0, found 0.0"),
        (lambda: [c[:4] for c in make_runs(0)], "runs: expected at least 5 runs, .*, found 4"),
        (lambda: changed(0, slice(None), 1e9), "params: expected different values, found 1e.09"),
        (lambda: changed(1, slice(None), 1e9), "tokens: expected different values, found 1e.09"),
        (lambda: changed(2, slice(None), 2.5), "loss: expected different values, found 2.5 in"),
        (
            lambda: (np.geomspace(1e7, 1e9, 9), 20 * np.geomspace(1e7, 1e9, 9), np.arange(9) + 2),
            "tokens / params: expected different ratios .*, found 20 in every run.*not identified",
        ),
        (
            lambda: (np.geomspace(1e7, 1e9, 9), np.geomspace(1e7, 1e9, 9) ** 2, np.arange(9) + 2),
            r"tokens / params: .* tokens ~ params\^2 in every run",
        ),
        (lambda: (*make_runs(0)[:2], [1.0, 2.0]), r"loss: expected shape \(38\)"),
    ],
)
@pytest.mark.filterwarnings("ignore::paperworks.inference_scaling.runs.RunsWarning")
def test_bad_runs(make, message):
    with pytest.raises(ValueError, match=message) as caught:
        fit(*make())
    assert "\n" not in str(caught.value)


def test_a_loss_that_rises():
    params, tokens, loss = make_runs(0)
    with pytest.raises(ValueError, match="runs: expected a loss that falls with params and with"):
        fit(params, tokens, 20 - loss, starts=[[1, 1, 2, -0.3, -0.3]])


def test_bad_settings(runs):
    for settings_, message in [
        ({"delta": 0}, "delta: expected a finite number >= 1e-12"),
        ({"overestimate_weight": -1}, "overestimate_weight: expected"),
        ({"max_ratio": 4}, "runs up to 4 tokens per parameter: expected at least 5"),
        ({"starts": "some"}, "starts: expected 'grid', 'all' or an array"),
        ({"starts": np.ones((2, 4))}, "starts: expected shape"),
        ({"bootstrap": -1}, "bootstrap: expected an integer >= 0"),
        ({"level": 1}, "level: expected"),
        ({"workers": 0}, "workers: expected"),
    ]:
        with pytest.raises(ValueError, match=message):
            fit(*runs, **settings_)
    with pytest.raises(ValueError, match="bootstrap: expected at least 10 runs to resample"):
        fit(*(column[:9] for column in runs), bootstrap=10)


def test_duplicates_are_warned_of(runs):
    doubled = [np.append(column, column[7]) for column in runs]
    with pytest.warns(RunsWarning, match="1 runs are exact duplicates .*of run 7"):
        fit(*doubled)


@pytest.mark.parametrize(("factor", "unit"), [(1e6, "millions"), (1e9, "billions")])
def test_unit_slips_are_warned_of(runs, factor, unit):
    params, tokens, loss = runs
    with pytest.warns(RunsWarning, match=f"fewer than 0.001 tokens per .*tokens in {unit}"):
        fit(params, tokens / factor, loss)


def test_good_runs_are_not_warned_of(runs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(*runs)


# Files ----------------------------------------------------------------------------------------


def test_law_file_round_trip(fitted, tmp_path):
    path = tmp_path / "law.json"
    fitted.save(path)
    assert ScalingLaw.from_json(path) == fitted.law
    content = json.loads(path.read_text())
    assert content["data"]["sha256"] == fitted.digest
    assert content["data"]["runs"] == 38
    assert content["version"]
    assert content["intervals"]["beta"]["low"] == fitted.intervals["beta"].low


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"E": 1, "A": 1, "B": 1, "alpha": 1}', "beta: expected a coefficient, found none"),
        ('{"E": 1, "A": NaN, "B": 1, "alpha": 1, "beta": 1}', "A: expected a finite number > 0"),
        ('{"coefficients": {"E": 1, "A": null, "B": 1, "alpha": 1, "beta": 1}}', "A: expected"),
        ('{"coefficients": [1]}', "coefficients: expected an object of numbers"),
        ("[1]", "expected a JSON object with E, A, B, alpha, beta"),
        ("{", "law.json:1: expected JSON"),
    ],
)
def test_bad_law_files(content, message, tmp_path):
    path = tmp_path / "law.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        ScalingLaw.from_json(path)
    assert "law.json" in str(caught.value)


# scikit-learn -----------------------------------------------------------------------------------


def test_regressor_in_sklearn(runs, fitted):
    from sklearn.base import clone, is_regressor
    from sklearn.model_selection import GridSearchCV, cross_val_score

    X, y = np.stack(runs[:2], axis=1), runs[2]
    regressor = LossLawRegressor().fit(X, y)
    assert regressor.law_.alpha == pytest.approx(fitted.law.alpha, rel=1e-9)
    assert regressor.score(X, y) > 0.999
    assert is_regressor(regressor)
    assert clone(regressor.set_params(delta=0.01)).delta == 0.01
    assert cross_val_score(LossLawRegressor(), X, y, cv=3).min() > 0.99
    search = GridSearchCV(LossLawRegressor(), {"delta": [1e-3, 1e-2]}, cv=3).fit(X, y)
    assert search.best_params_["delta"] in (1e-3, 1e-2)


# These checks fit three or more columns, or columns with zeros and negative numbers.
OTHER_SHAPES = {
    "check_dict_unchanged",
    "check_dont_overwrite_parameters",
    "check_dtype_object",
    "check_estimator_sparse_tag",
    "check_estimators_dtypes",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_pickle",
    "check_f_contiguous_array_estimator",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_idempotent",
    "check_fit_score_takes_y",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_n_features_in",
    "check_n_features_in_after_fitting",
    "check_pipeline_consistency",
    "check_positive_only_tag_during_fit",
    "check_readonly_memmap_input",
    "check_regressor_data_not_an_array",
    "check_regressors_int",
    "check_regressors_no_decision_function",
    "check_regressors_train",
    "check_supervised_y_2d",
}
# These look for scikit-learn's own words in an error that we do raise.
OTHER_WORDS = {
    "check_complex_data",
    "check_estimator_sparse_array",
    "check_estimator_sparse_matrix",
    "check_estimators_empty_data_messages",
    "check_estimators_nan_inf",
    "check_fit2d_1feature",
    "check_fit2d_1sample",
    "check_requires_y_none",
}


def test_check_estimator_where_its_shapes_allow():
    from sklearn.utils.estimator_checks import check_estimator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(LossLawRegressor(), on_fail=None, on_skip=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed <= OTHER_SHAPES | OTHER_WORDS
    assert sum(r["status"] == "passed" for r in results) >= 15


def test_regressor_rules_on_its_own_shape(runs):
    """What the checks above ask, on two columns of positive numbers."""
    X, y = np.stack(runs[:2], axis=1), runs[2]
    X.setflags(write=False)
    first = LossLawRegressor(random_state=0, bootstrap=20).fit(X, y)
    state = dict(vars(first))
    predicted = first.predict(X)
    assert vars(first) == state
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(first)).predict(X), predicted)
    again = LossLawRegressor(random_state=0, bootstrap=20).fit(np.asfortranarray(X), y.tolist())
    np.testing.assert_array_equal(again.predict(X), predicted)
    np.testing.assert_array_equal(again.fit_.samples, first.fit_.samples)
    np.testing.assert_array_equal(first.predict(X[::-1])[::-1], predicted)
    np.testing.assert_array_equal(first.predict(X[3:5]), predicted[3:5])
    assert first.n_features_in_ == 2


def test_regressor_errors(runs):
    X, y = np.stack(runs[:2], axis=1), runs[2]
    with pytest.raises(ValueError, match="call fit first"):
        LossLawRegressor().predict(X)
    with pytest.raises(ValueError, match=r"X: expected shape \(any, 2\)"):
        LossLawRegressor().fit(X[:, :1], y)
    with pytest.raises(ValueError, match="parameter: expected one of delta"):
        LossLawRegressor().set_params(gamma=1)
