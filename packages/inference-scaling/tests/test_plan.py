"""Law, demand, optimum and cost against published examples, brute force and invariances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from paperworks.inference_scaling import (
    Hardware,
    InferenceDemand,
    Prices,
    ScalingLaw,
    Utilization,
    constrained_allocation,
    first_order_residual,
    optimal_allocation,
    plan,
)

LAW = ScalingLaw.chinchilla()
laws = st.builds(
    ScalingLaw,
    E=st.floats(0, 3),
    A=st.floats(10, 5000),
    B=st.floats(10, 5000),
    alpha=st.floats(0.15, 0.8),
    beta=st.floats(0.15, 0.8),
)


def log_cost(law, loss, inference_tokens, log_tokens):
    """Log of the lifetime FLOPs along the iso-loss curve, from the problem's statement alone."""
    tokens = np.exp(log_tokens)
    left = loss - law.E - law.B * tokens ** (-law.beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_params = np.where(left > 0, (np.log(law.A) - np.log(left)) / law.alpha, np.inf)
    return log_params + np.log(6 * tokens + 2 * inference_tokens)


def brute_force(law, loss, inference_tokens):
    """Dense grids over log D, each finer; knows nothing of derivatives or of u.

    In extended precision, because the minimum is flat: D is known to the root of the precision.
    """
    lowest = np.log(np.longdouble(law.B) / (loss - law.E)) / law.beta
    grid = lowest + np.geomspace(1e-9, 80, 4_001, dtype=np.longdouble)
    for _ in range(7):
        costs = log_cost(law, loss, inference_tokens, grid)
        best = int(np.clip(np.argmin(costs), 1, len(grid) - 2))
        found = float(grid[best]), float(costs[best])
        grid = np.linspace(grid[best - 1], grid[best + 1], 201, dtype=np.longdouble)
    return found


# The published examples ---------------------------------------------------------------------


def test_chinchilla_points():
    assert LAW.chinchilla_tokens(30e9) == pytest.approx(1.556e12, rel=5e-4)
    assert LAW.chinchilla_tokens(13e9) == pytest.approx(0.576e12, rel=1e-3)
    assert LAW.loss_of_chinchilla(30e9) == pytest.approx(1.95825, abs=5e-6)
    assert LAW.loss_of_chinchilla(13e9) == pytest.approx(2.04528, abs=5e-6)


def test_flops_example_of_section_2():
    found = plan(LAW, LAW.loss_of_chinchilla(30e9), InferenceDemand.from_tokens(1e13))
    assert found.params == pytest.approx(13.613e9, abs=5e5)
    assert found.tokens / found.baseline.tokens == pytest.approx(2.8448, abs=5e-5)
    assert found.flop_saving == pytest.approx(0.2798, abs=5e-5)
    assert found.savings["flops"] == pytest.approx(2.46e23, abs=5e20)
    assert found.baseline.params == pytest.approx(30e9)


@pytest.mark.parametrize(
    ("size", "dtype", "params", "ratio", "tokens", "saving"),
    [
        (30e9, "int8", 16.07e9, None, 3.371e12, 0.175),
        (30e9, "bf16", 13.33e9, None, 4.596e12, 0.294),
        (70e9, "int8", 48.2e9, 1.53, None, 0.058),
    ],
)
def test_cost_examples_of_section_3(size, dtype, params, ratio, tokens, saving):
    found = plan(
        LAW,
        LAW.loss_of_chinchilla(size),
        InferenceDemand(1e9, 70, 215),
        hardware="a100",
        inference_dtype=dtype,
    )
    assert found.params == pytest.approx(params, rel=1e-3)
    assert found.cost_saving == pytest.approx(saving, abs=5e-4)
    if tokens:
        assert found.tokens == pytest.approx(tokens, rel=2e-4)
    if ratio:
        assert found.tokens / found.baseline.tokens == pytest.approx(ratio, abs=5e-3)


# The optimum ----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=80)
@given(laws, st.floats(-6, 1), st.floats(4, 16))
def test_optimum_is_brute_force(law, log_gap, log_demand):
    loss, demand = law.E + 10**log_gap, 10**log_demand
    params, tokens = optimal_allocation(law, loss, demand)
    log_tokens, cost = brute_force(law, loss, demand)
    assert np.log(6 * params * tokens + 2 * params * demand) == pytest.approx(cost, abs=1e-8)
    assert np.log(tokens) == pytest.approx(log_tokens, abs=1e-6)
    assert abs(first_order_residual(law, params, tokens, demand)) < 1e-8
    assert law.loss(params, tokens) == pytest.approx(loss, rel=1e-12)


@given(laws, st.floats(-6, 1))
def test_no_demand_is_the_closed_form(law, log_gap):
    loss = law.E + 10**log_gap
    params, tokens = optimal_allocation(law, loss, 0.0)
    assert (params, tokens) == pytest.approx(law.compute_optimal_for_loss(loss), rel=1e-10)
    # Hoffmann et al. 2022, equation 4, for the same budget.
    assert law.compute_optimal(6 * params * tokens) == pytest.approx((params, tokens), rel=1e-10)


def test_edge_of_feasibility_and_extremes():
    gaps = np.array([1e-13, 1e-6, 1.0, 100.0])
    law = LAW.with_coefficients(E=0.0)
    params, tokens = optimal_allocation(law, gaps[:, None], np.array([1.0, 1e17, 1e25]))
    assert np.isfinite(params).all()
    residual = first_order_residual(law, params, tokens, np.array([1.0, 1e17, 1e25]))
    assert np.abs(residual).max() < 1e-8
    np.testing.assert_allclose(law.loss(params, tokens), gaps[:, None] * np.ones(3), rtol=1e-11)


def test_beyond_float64_is_an_error():
    law = ScalingLaw(E=0, A=400, B=400, alpha=0.01, beta=0.3)
    with pytest.raises(ValueError, match="loss: expected one that 1e304 parameters"):
        optimal_allocation(law, 0.1, 1e12)


def test_monotone_in_demand():
    demand = np.geomspace(1e6, 1e18, 200)
    found = plan(LAW, 2.0, InferenceDemand.from_tokens(demand))
    assert (np.diff(found.params) < 0).all()
    assert (np.diff(found.tokens) > 0).all()
    assert (np.diff(found.total_flops) > 0).all()
    assert (np.diff(found.flop_saving) > 0).all()
    assert found.params[0] == pytest.approx(found.baseline.params, rel=1e-5)


def test_monotone_in_price_of_inference():
    found = [
        plan(LAW, 2.0, InferenceDemand(1e9), hardware="a100", train_hour=2, inference_hour=price)
        for price in (0.5, 1, 2, 4)
    ]
    assert (np.diff([p.params for p in found]) < 0).all()
    assert (np.diff([p.tokens for p in found]) > 0).all()
    assert (np.diff([p.cost for p in found]) > 0).all()


def test_unit_of_cost_does_not_move_the_optimum():
    cheap = plan(LAW, 2.0, InferenceDemand(1e9), hardware="h100", train_hour=1e-3)
    dear = plan(LAW, 2.0, InferenceDemand(1e9), hardware="h100", train_hour=1e3)
    assert cheap.params == dear.params
    assert dear.cost == pytest.approx(1e6 * cheap.cost)
    assert dear.cost_unit == "dollars"


def test_equal_prices_and_full_use_is_the_flop_problem():
    demand = InferenceDemand([1e8, 1e10], [70, 900], [215, 1])
    prices = Prices(1e15, 1e15, utilization=Utilization(1, 1, 1))
    np.testing.assert_allclose(prices.equivalent_tokens(demand), demand.tokens)
    by_cost, by_flops = plan(LAW, 2.0, demand, prices=prices), plan(LAW, 2.0, demand)
    np.testing.assert_allclose(by_cost.params, by_flops.params, rtol=1e-12)
    np.testing.assert_allclose(by_cost.cost_saving, by_flops.flop_saving, rtol=1e-10)
    np.testing.assert_allclose(by_cost.cost * 3600 * 1e15, by_flops.total_flops)


def test_cost_optimum_by_brute_force():
    """The cost of section 3 written out, minimised over D without the equivalent demand."""
    demand = InferenceDemand(3e9, 500, 100)
    use = Utilization(0.4, 0.6, 0.05)
    found = plan(
        LAW,
        2.1,
        demand,
        hardware="h100",
        inference_hardware="a100",
        inference_dtype="int8",
        train_hour=3,
        inference_hour=1.5,
        utilization=use,
    )

    def dollars(z):
        tokens = np.exp(z)
        params = LAW.isoloss_params(2.1, tokens)
        train = 6 * params * tokens / (989.4e12 * 0.4) / 3600 * 3
        prefill = 2 * params * 3e9 * 500 / (624e12 * 0.6)
        decode = 2 * params * 3e9 * 100 / (624e12 * 0.05)
        return float(np.log(train + (prefill + decode) / 3600 * 1.5))

    z = np.log(found.tokens)
    best = minimize_scalar(
        dollars, bounds=(z - 1, z + 1), method="bounded", options={"xatol": 1e-11}
    )
    assert best.x == pytest.approx(z, abs=1e-6)
    assert np.exp(best.fun) == pytest.approx(found.cost, rel=1e-12)


def test_dimensions():
    """FLOPs have the unit of params x tokens; counting tokens in thousands rescales B only."""
    thousands = LAW.with_coefficients(B=LAW.B * 1000 ** (-LAW.beta))
    params, tokens = optimal_allocation(LAW, 2.0, 1e12)
    other = optimal_allocation(thousands, 2.0, 1e9)
    assert other == pytest.approx((params, tokens / 1000), rel=1e-12)


def test_broadcasting():
    losses, requests = np.array([1.9, 2.0, 2.2])[:, None], np.array([1e8, 1e10])
    found = plan(LAW, losses, InferenceDemand(requests), hardware="a100")
    assert found.params.shape == found.cost.shape == found.cost_saving.shape == (3, 2)
    one = plan(LAW, 2.0, InferenceDemand(1e10), hardware="a100")
    assert isinstance(one.params, float)
    assert found.params[1, 1] == one.params
    rows = found.rows()
    assert len(rows) == 6
    assert rows[3]["params"] == one.params
    family = ScalingLaw(*(np.array([v, v * 1.01]) for v in LAW.to_dict().values()))
    assert plan(family, 2.2, InferenceDemand(1e10)).params[0] == pytest.approx(
        plan(LAW, 2.2, InferenceDemand(1e10)).params, rel=1e-13
    )


def test_isoloss_inverts_loss():
    sizes = np.geomspace(2e10, 1e13, 7)
    np.testing.assert_allclose(LAW.loss(sizes, LAW.isoloss(2.0, sizes)), 2.0, rtol=1e-12)
    assert LAW.isoloss(2.0, 1e6) == np.inf
    assert LAW.isoloss_params(2.0, 1e6) == np.inf


# Constraints ------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(st.floats(0.2, 2.5), st.floats(0.3, 3.0), st.floats(9, 15))
def test_bounds_are_optimal_on_a_dense_grid(n_factor, d_factor, log_demand):
    loss, demand = 2.0, 10**log_demand
    free = optimal_allocation(LAW, loss, demand)
    bounds = {"max_params": free[0] * n_factor, "max_tokens": free[1] * d_factor}
    sizes = np.geomspace(free[0] / 20, free[0] * 20, 20_001)
    tokens = LAW.isoloss(loss, sizes)
    allowed = (sizes <= bounds["max_params"]) & (tokens <= bounds["max_tokens"])
    try:
        params, needed = constrained_allocation(LAW, loss, demand, **bounds)
    except ValueError:
        assert not allowed.any()
        return
    assert params <= bounds["max_params"] * (1 + 1e-12)
    assert needed <= bounds["max_tokens"] * (1 + 1e-12)
    assert LAW.loss(params, needed) == pytest.approx(loss, rel=1e-9)
    if allowed.any():
        best = np.min((sizes * (tokens + demand / 3))[allowed])
        assert params * (needed + demand / 3) <= best * (1 + 1e-12)


def test_grid_of_sizes_is_the_best_of_all():
    demand = np.geomspace(1e9, 1e15, 50)
    sizes = np.array([70e9, 1e9, 7e9, 13e9, 30e9])
    params, _ = constrained_allocation(LAW, 2.0, demand, sizes=sizes)
    tokens = LAW.isoloss(2.0, sizes)
    costs = sizes * (tokens + demand[:, None] / 3)
    np.testing.assert_array_equal(params, sizes[np.argmin(costs, axis=1)])


def test_price_of_each_constraint():
    goal, demand = LAW.loss_of_chinchilla(30e9), InferenceDemand(1e9)
    limits = {"max_memory_bytes": 15e9, "unique_tokens": 4e12, "sizes": [7e9, 14.5e9, 30e9]}
    options = {"hardware": "a100", "inference_dtype": "int8"}
    free = plan(LAW, goal, demand, **options)
    bound = plan(LAW, goal, demand, **options, **limits)
    assert bound.params == 14.5e9
    assert set(bound.constraint_prices) == {*limits, "all"}
    assert bound.constraint_prices["unique_tokens"] == 0
    assert bound.constraint_prices["all"] == pytest.approx(bound.cost / free.cost - 1)
    alone = plan(LAW, goal, demand, **options, max_memory_bytes=15e9)
    assert alone.params == pytest.approx(15e9)  # one byte a parameter
    assert alone.cost / free.cost - 1 == pytest.approx(bound.constraint_prices["max_memory_bytes"])


def test_latency_bounds_the_size():
    found = plan(LAW, 2.2, InferenceDemand(1e6), hardware="a100", max_seconds_per_token=2e-3)
    assert found.params == pytest.approx(2e-3 * 2.039e12 / 2)  # two bytes a parameter in bf16


# Demand and hardware ------------------------------------------------------------------------


def test_demand_over_a_horizon():
    flat = InferenceDemand.over_horizon(1e6, 365.25, input_tokens=10, output_tokens=20)
    assert flat.requests == pytest.approx(365.25e6)
    assert flat.tokens == pytest.approx(30 * 365.25e6)
    assert flat.discount_factor == 1
    days = np.linspace(0, 730.5, 200_001)
    grown = InferenceDemand.over_horizon(1e6, 730.5, annual_growth=1.0, annual_discount=0.1)
    volume = np.trapezoid(1e6 * 2 ** (days / 365.25), days)
    worth = np.trapezoid(1e6 * (2 / 1.1) ** (days / 365.25), days)
    assert grown.requests == pytest.approx(volume, rel=1e-8)
    assert grown.discount_factor == pytest.approx(worth / volume, rel=1e-8)
    costs = [
        plan(LAW, 2.0, d, hardware="a100").params for d in (grown, InferenceDemand(grown.requests))
    ]
    assert costs[0] > costs[1]


def test_hardware_table(tmp_path):
    assert Hardware.named("a100").peak("bf16") == 312e12
    assert Hardware.named("a100-80gb") == Hardware.named("a100")
    for name in ("h100", "h200", "mi300x", "tpu-v5e"):
        hardware = Hardware.named(name)
        assert hardware.source
        assert hardware.date
    own = tmp_path / "own.toml"
    own.write_text("[x1]\npeak = { bf16 = 1e15 }\nmemory_bytes = 1\nbandwidth_bytes_per_s = 2\n")
    assert Hardware.named("x1", table=own).peak("bf16") == 1e15
    own.write_text("[x1]\npeak = { bf16 = -1 }\nmemory_bytes = 1\nbandwidth_bytes_per_s = 2\n")
    with pytest.raises(ValueError, match=r"x1: peak.bf16: expected a finite number > 0, found -1"):
        Hardware.table(own)
    own.write_text("[x1\n")
    with pytest.raises(ValueError, match="expected TOML"):
        Hardware.table(own)


# Errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: plan(LAW, 1.69, InferenceDemand(1)),
            ("loss: expected a number above the law's irreducible loss E = 1.69, found 1.69"),
        ),
        (lambda: plan(LAW, [2.0, 1.5], InferenceDemand(1)), "irreducible loss E = 1.69, found 1.5"),
        (lambda: plan(LAW, np.nan, InferenceDemand(1)), "loss: expected finite numbers, found nan"),
        (lambda: InferenceDemand(-1), "requests: expected numbers > 0, found -1"),
        (lambda: InferenceDemand([1.0, 0.0]), r"requests[1]: expected numbers > 0, found 0.0"),
        (
            lambda: InferenceDemand(1, 0, 0),
            ("input_tokens, output_tokens: expected at least one above 0"),
        ),
        (lambda: InferenceDemand(1, -1, 5), "input_tokens: expected numbers >= 0, found -1"),
        (lambda: InferenceDemand.from_tokens(0), "tokens: expected numbers > 0, found 0"),
        (lambda: optimal_allocation(LAW, 2.0, -1.0), "inference_tokens: expected numbers >= 0"),
        (lambda: Utilization(train=0), "train utilization: expected a finite number <= 1 and > 0"),
        (lambda: Utilization(decode=1.01), "decode utilization: expected a finite number"),
        (lambda: Utilization(prefill=float("nan")), "prefill utilization: expected a finite"),
        (
            lambda: Hardware.named("b9000"),
            (
                "hardware: expected one of a100, a100-80gb, h100, "
                "h100-sxm, h200, h200-sxm, mi300x, tpu-v5e, v5e, found 'b9000'"
            ),
        ),
        (
            lambda: Hardware.named("a100").peak("fp8"),
            ("dtype on a100-80gb: expected one of bf16, fp16, tf32, int8, found 'fp8'"),
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), train_hour=2),
            ("hardware: expected hardware to apply prices and utilization to, found no hardware"),
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), prices=Prices(1, 1), train_hour=2),
            "prices: expected no train_hour, inference_hour or utilization beside it",
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), max_seconds_per_token=1),
            ("hardware: expected hardware to apply max_seconds_per_token to"),
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), hardware="a100", inference_hour=2),
            "train_hour: expected a price",
        ),
        (
            lambda: plan(
                LAW,
                2.0,
                InferenceDemand(1),
                hardware="a100",
                inference_hardware="h100",
                train_hour=2,
            ),
            "inference_hour: expected a price of h100-sxm, found",
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), hardware="a100", train_hour=0),
            "train_hour: expected a finite number > 0, found 0",
        ),
        (lambda: plan(LAW, 2.0, InferenceDemand(1), max_params=1e6), "max_params: expected more"),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), unique_tokens=1e9),
            ("max_tokens: expected more"),
        ),
        (
            lambda: plan(LAW, 2.0, InferenceDemand(1), sizes=[1e6, 2e6]),
            ("sizes: expected a size above"),
        ),
        (
            lambda: plan(
                LAW, 2.0, InferenceDemand(1), max_memory_bytes=1e9, inference_dtype="int3"
            ),
            "inference_dtype: expected one of fp32",
        ),
        (lambda: ScalingLaw(1, 1, 1, 0, 1), "alpha: expected a finite number > 0, found 0"),
        (lambda: ScalingLaw(1, float("nan"), 1, 1, 1), "A: expected a finite number > 0"),
        (lambda: ScalingLaw(-0.1, 1, 1, 1, 1), "E: expected a finite number >= 0, found -0.1"),
        (lambda: LAW.loss(0, 1), "params: expected numbers > 0, found 0"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
