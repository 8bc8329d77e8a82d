"""Accuracy of plans against brute force, and plans a second beside a loop over scipy's Brent.

./scripts/bench inference-scaling plans

peers:
"""

import timeit

import numpy as np
from scipy.optimize import brentq

from paperworks.inference_scaling import (
    InferenceDemand,
    ScalingLaw,
    first_order_residual,
    optimal_allocation,
    plan,
)

LAW = ScalingLaw.chinchilla()
PLANS = 1_000_000
LOOP = 2_000


def main():
    random = np.random.default_rng(0)
    losses = LAW.loss_of_chinchilla(10 ** random.uniform(7, 13, PLANS))
    demands = 10 ** random.uniform(8, 16, PLANS)
    print("| what | figure |\n|---|---|")
    print(f"| largest error of D to brute force, 200 plans | {errors(losses, demands):.1e} |")
    residual = first_order_residual(LAW, *optimal_allocation(LAW, losses, demands), demands)
    print(f"| largest first-order residual, 10^6 plans | {np.abs(residual).max():.1e} |")
    print()
    solve = best(lambda: optimal_allocation(LAW, losses, demands)) / PLANS
    demand = InferenceDemand.from_tokens(demands)
    whole = best(lambda: plan(LAW, losses, demand, hardware="a100")) / PLANS
    loop = best(lambda: by_brent(losses[:LOOP], demands[:LOOP]), repeat=3) / LOOP
    print("| what | scipy loop, plans/s | ours, plans/s | ratio |\n|---|---|---|---|")
    print(f"| optimum | {1 / loop:,.0f} | {1 / solve:,.0f} | {loop / solve:,.0f} |")
    print(f"| whole Plan with costs | {1 / loop:,.0f} | {1 / whole:,.0f} | {loop / whole:,.0f} |")


def best(call, repeat=5):
    return min(timeit.repeat(call, number=1, repeat=repeat))


def errors(losses, demands):
    """Compare D with grids over log D, refined in extended precision, and a last parabola."""
    worst = 0.0
    _, tokens = optimal_allocation(LAW, losses[:200], demands[:200])
    for loss, demand, found in zip(losses, demands, tokens, strict=False):
        lowest = np.log(np.longdouble(LAW.B) / (loss - LAW.E)) / LAW.beta
        grid = lowest + np.geomspace(1e-9, 60, 20_001, dtype=np.longdouble)
        while grid[1] - grid[0] > 2e-5 or len(grid) > 401:
            at = int(np.clip(np.nanargmin(log_cost(loss, demand, grid)), 1, len(grid) - 2))
            grid = np.linspace(grid[at - 1], grid[at + 1], 401)
        at = int(np.clip(np.nanargmin(log_cost(loss, demand, grid)), 1, len(grid) - 2))
        # Wide enough for the rounding of the costs, narrow enough for a parabola.
        points = grid[at] + np.array([-1e-5, 0, 1e-5], dtype=np.longdouble)
        low, middle, high = log_cost(loss, demand, points)
        centre = points[1] + 5e-6 * (low - high) / (low - 2 * middle + high)
        worst = max(worst, abs(float(np.exp(centre) / found - 1)))
    return worst


def log_cost(loss, demand, log_tokens):
    left = loss - LAW.E - LAW.B * np.exp(-LAW.beta * log_tokens)
    left = np.where(left > 0, left, np.nan)
    return -np.log(left) / LAW.alpha + np.log(np.exp(log_tokens) + demand / 3)


def by_brent(losses, demands):
    """Find the root of the first-order condition in log D, one plan at a time."""
    for loss, demand in zip(losses.tolist(), demands.tolist(), strict=True):

        def condition(z, gap=loss - LAW.E, demand=demand):
            data = LAW.B * np.exp(-LAW.beta * z)
            ratio = LAW.alpha * (gap - data) / (LAW.beta * data)
            return ratio - 1 - demand / (3 * np.exp(z))

        lowest = np.log(LAW.B / (loss - LAW.E)) / LAW.beta
        brentq(condition, lowest + 1e-12, lowest + 60, xtol=1e-12, rtol=1e-12)


if __name__ == "__main__":
    main()
