"""Time and objective of a fit beside a scipy loop over the starts and the package chinchilla.

./scripts/bench inference-scaling fits -- --loop-starts 60

The loop is timed on some of the 4,500 starts, drawn at random, and extrapolated. chinchilla fits
all 4,500 on as many processes as there are cores; ours is one process. Objectives are all evaluated
by the same function. All in one run.

peers: chinchilla==0.2.0
"""

import argparse
import functools
import logging
import tempfile
import time

import numpy as np
from scipy.optimize import minimize
from scipy.special import huber, logsumexp

from paperworks.inference_scaling import ScalingLaw, fit
from paperworks.inference_scaling.fitting.estimate import start_grid

LAW = ScalingLaw.chinchilla()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loop-starts", type=int, default=60)
    parser.add_argument("--no-peer", action="store_true")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    params = 10 ** random.uniform(7.5, 10, 38)
    tokens = params * 10 ** random.uniform(0.5, 3, 38)
    runs = params, tokens, LAW.loss(params, tokens) * np.exp(0.002 * random.normal(size=38))
    objective = functools.partial(stated_objective, runs)

    rows = []
    seconds, found = timed(lambda: fit(*runs))
    rows.append(("ours: screen 4,500, descend from 50", seconds, objective(theta(found.law))))
    ours = seconds
    seconds, found = timed(lambda: fit(*runs, starts="all"))
    rows.append(("ours: descend from all 4,500", seconds, objective(theta(found.law))))
    without = timed(lambda: fit(*runs))[0]
    resampled = timed(lambda: fit(*runs, bootstrap=1000, seed=0))[0]
    starts = start_grid()[random.choice(4500, options.loop_starts, replace=False)]
    tight = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10**4}
    slopes = functools.partial(gradient, runs)
    for name, slope, tolerances in (
        ("tight tolerances", None, tight),
        ("tight tolerances, exact gradient", slopes, tight),
        ("default tolerances", None, {}),
    ):
        begun = time.perf_counter()
        values = [loop_fit(objective, slope, start, tolerances) for start in starts]
        whole = (time.perf_counter() - begun) * 4500 / len(starts)
        rows.append((f"scipy L-BFGS-B, {name}, from {len(starts)} starts", whole, min(values)))
    if not options.no_peer:
        seconds, law = timed(lambda: chinchilla_fit(*runs), repeat=1)
        rows.append(("chinchilla 0.2.0, BFGS, all 4,500", seconds, objective(theta(law))))
    print("| fit of 38 runs, 0.2 % noise | seconds | peer / ours | objective |\n|---|---|---|---|")
    for name, seconds, value in rows:
        print(f"| {name} | {seconds:.2f} | {seconds / ours:,.0f} | {value:.6e} |")
    print(f"\n1,000 bootstrap samples: {resampled - without:.2f} s more")


def timed(call, repeat=3):
    best = np.inf
    for _ in range(repeat):
        begun = time.perf_counter()
        result = call()
        best = min(best, time.perf_counter() - begun)
    return best, result


def stated_objective(runs, theta):
    params, tokens, loss = runs
    a, b, e, alpha, beta = theta
    terms = [a - alpha * np.log(params), b - beta * np.log(tokens), np.full(len(params), e)]
    return huber(1e-3, logsumexp(terms, axis=0) - np.log(loss)).sum()


def gradient(runs, theta):
    params, tokens, loss = runs
    a, b, e, alpha, beta = theta
    x, z = np.log(params), np.log(tokens)
    terms = np.stack([a - alpha * x, b - beta * z, np.full(len(params), e)])
    predicted = logsumexp(terms, axis=0)
    shares = np.exp(terms - predicted) * np.clip(predicted - np.log(loss), -1e-3, 1e-3)
    first, second, third = shares
    return np.array([first.sum(), second.sum(), third.sum(), -first @ x, -second @ z])


def loop_fit(objective, slope, start, settings):
    return minimize(objective, start, jac=slope, method="L-BFGS-B", options=settings).fun


def theta(law):
    return np.array([np.log(law.A), np.log(law.B), np.log(law.E), law.alpha, law.beta])


def chinchilla_fit(params, tokens, loss):
    from chinchilla import Chinchilla
    from chinchilla._metrics import log_huber

    grid = {
        "e": [-1, -0.5, 0, 0.5, 1],
        "a": list(range(0, 26, 5)),
        "b": list(range(0, 26, 5)),
        "alpha": [0, 0.5, 1, 1.5, 2],
        "beta": [0, 0.5, 1, 1.5, 2],
    }
    with tempfile.TemporaryDirectory() as folder:
        peer = Chinchilla(
            folder,
            param_grid=grid,
            seed_ranges={"C": (1e15, 1e16), "N_to_D": (10, 100)},
            loss_fn=functools.partial(log_huber, delta=1e-3),
            log_level=logging.ERROR,
        )
        for n, d, y in zip(params, tokens, loss, strict=True):
            peer.database.append(C=6 * n * d, N=n, D=d, loss=y)
        peer.fit()
    return ScalingLaw(E=peer.E, A=peer.A, B=peer.B, alpha=peer.alpha, beta=peer.beta)


if __name__ == "__main__":
    main()
