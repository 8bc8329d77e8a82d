"""The paper's claims, each a function that measures one."""

from __future__ import annotations

import numpy as np

from paperworks.shared.claims import Claims, Figure, Outcome, Run, Scale, Table
from paperworks.shared.statistics import mean_interval, paired_difference

from .shrinkage import james_stein, james_stein_risk

claims = Claims("second-order-uncertainty")

DIMENSIONS = 10
SQUARED_NORMS = (0.0, 1.0, 4.0, 16.0, 64.0)


def _losses(run: Run, squared_norm: float, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Squared errors of the observations and of the estimates, over the same draws."""
    means = np.full(DIMENSIONS, np.sqrt(squared_norm / DIMENSIONS))
    noise = run.generator(str(squared_norm)).normal(size=(draws, DIMENSIONS))
    estimated = james_stein(means + noise)
    return (noise**2).sum(axis=1), ((estimated - means) ** 2).sum(axis=1)


@claims.claim(
    "dominates",
    statement="For three and more means the estimator has a smaller risk than the observations",
    source="James & Stein 1961, the inadmissibility theorem",
    paper="smaller, whatever the means are",
    criterion="paired difference of the losses below 0 at each norm, one-sided 99 % bound",
    scales={
        Scale.QUICK: "10 means, 2 x 10^4 draws at 5 norms",
        Scale.LAPTOP: "10 means, 10^6 draws at 5 norms",
    },
)
def dominates(run: Run) -> Outcome:
    """Compare the losses on the same draws."""
    from paperworks.shared.plotting import figure

    draws = run.pick(quick=20_000, laptop=1_000_000, paper=1_000_000)
    rows, worst = [], None
    for squared_norm in run.track(SQUARED_NORMS, "norms"):
        plain, shrunk = _losses(run, squared_norm, draws)
        gain = paired_difference(shrunk, plain, level=0.99, alternative="less")
        rows.append([squared_norm, plain.mean(), shrunk.mean(), gain.estimate, gain.high])
        worst = gain if worst is None or gain.high > worst.high else worst
    columns = ["squared norm", "observations", "estimates", "difference", "99 % bound"]
    drawing, axes = figure()
    norms = np.linspace(0, SQUARED_NORMS[-1], 60)
    axes.axhline(DIMENSIONS, color="grey", label="observations")
    axes.plot(norms, [james_stein_risk(DIMENSIONS, n) for n in norms], label="plain, exact")
    axes.plot([r[0] for r in rows], [r[2] for r in rows], "o", label="positive part, simulated")
    axes.set(xlabel="squared norm of the means", ylabel="risk", ylim=(0, None))
    axes.legend()
    return Outcome(
        measured={f"difference at {row[0]:g}": row[3] for row in rows},
        holds=all(row[4] < 0 for row in rows),
        interval=worst,
        figures=[Figure("Risk", drawing, "Total squared error against how far the means are.")],
        tables=[Table("Risks", columns, rows)],
    )


@claims.claim(
    "risk-at-origin",
    statement="At the centre the plain estimator's risk is 2, however many means there are",
    source="James & Stein 1961, the risk at the origin",
    paper=2.0,
    criterion="exact: the closed form gives 2, and 2 lies in the simulation's 99.9 % interval",
    scales={Scale.QUICK: "2 x 10^4 draws", Scale.LAPTOP: "10^6 draws"},
)
def risk_at_origin(run: Run) -> Outcome:
    """Hold the closed form against a simulation of the plain estimator."""
    draws = run.pick(quick=20_000, laptop=1_000_000, paper=1_000_000)
    observed = run.generator().normal(size=(draws, DIMENSIONS))
    squared_norm = (observed**2).sum(axis=1)
    simulated = mean_interval((1 - (DIMENSIONS - 2) / squared_norm) ** 2 * squared_norm, 0.999)
    exact = [james_stein_risk(p, 0.0) for p in (3, DIMENSIONS, 1000)]
    return Outcome(
        measured={"closed form": exact[1], "simulation": simulated.estimate},
        holds=bool(np.allclose(exact, 2, atol=1e-9)) and simulated.low <= 2 <= simulated.high,
        interval=simulated,
    )
