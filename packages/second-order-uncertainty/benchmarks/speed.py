"""Time and memory beside probly and beside sorting the array.

Run by `./scripts/bench second-order-uncertainty speed`, which on Python 3.11 brings probly 0.3; for
probly 0.9 by

    uv run --python 3.13 --isolated --package paperworks-second-order-uncertainty \
        --extra reproduce --with 'probly>=0.9' \
        python packages/second-order-uncertainty/benchmarks/speed.py

peers: probly
"""

import contextlib
import gc
import importlib.metadata
import io
import os
import timeit
import tracemalloc

import numpy as np

from paperworks.second_order_uncertainty import SecondOrder, decompose, wasserstein


def best(function, repeat=5):
    gc.collect()
    return min(timeit.repeat(function, number=1, repeat=repeat))


def peer_epistemic(theta):
    """Epistemic uncertainty by the installed probly, whichever generation it is."""
    try:
        from probly.quantification.classification import epistemic_uncertainty_distance
    except ImportError:
        from probly.quantification import min_expected_total_variation
        from probly.representation.distribution.array_categorical import (
            ArrayCategoricalDistributionSample,
            ArrayProbabilityCategoricalDistribution,
        )

        sample = ArrayCategoricalDistributionSample(
            ArrayProbabilityCategoricalDistribution(theta), sample_axis=1
        )
        return min_expected_total_variation(sample)
    with contextlib.redirect_stderr(io.StringIO()):  # its progress bar
        return epistemic_uncertainty_distance(theta)


def peak(function):
    """Largest memory that numpy allocated during the call."""
    gc.collect()
    tracemalloc.start()
    function()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def samples(n, members, classes, dtype, peer_rows):
    random = np.random.default_rng(0)
    theta = random.standard_exponential((n, members, classes), dtype=dtype)
    theta /= theta.sum(axis=-1, keepdims=True)
    q = SecondOrder.from_samples(theta)
    sort = best(lambda: np.sort(theta, axis=1))
    epistemic = best(lambda: decompose(q, _epistemic_only))
    whole = best(lambda: decompose(SecondOrder.from_samples(theta)))
    default = peak(lambda: decompose(SecondOrder.from_samples(theta))) / theta.nbytes
    single = peak(lambda: decompose(SecondOrder.from_samples(theta), chunk=n)) / theta.nbytes
    few = theta[:peer_rows].astype(np.float64)
    peer = gap = np.nan
    if peer_rows:
        peer_epistemic(few[:1])  # its imports
        peer = best(lambda: peer_epistemic(few), repeat=3 if peer_rows == n else 1) * n / peer_rows
        exact = wasserstein.epistemic(SecondOrder.from_samples(few))
        gap = np.abs(peer_epistemic(few) - exact).max()
    print(
        f"| {n:,} x {members} x {classes} {np.dtype(dtype).name} | {sort:.3f} | {epistemic:.3f}"
        f" | {epistemic / sort:.2f} | {whole:.3f} | {peer:.3g} | {peer / epistemic:.3g}"
        f" | {gap:.1g} | {default:.2f} | {single:.2f} |",
        flush=True,
    )


def _epistemic_only(q):
    from paperworks.second_order_uncertainty import Decomposition

    value = wasserstein.epistemic(q)
    return Decomposition(value, value, value)


def dirichlets(version):
    alpha = 10 ** np.random.default_rng(1).uniform(-1, 1, size=(1000, 10))
    q = SecondOrder.from_dirichlet(alpha)
    exact = decompose(q)
    ours = best(lambda: decompose(q), repeat=3)
    print("\n| 1,000 Dirichlets, K = 10: aleatoric and epistemic | s | largest error |")
    print("|---|---|---|")
    print(f"| ours, closed form | {ours:.2f} | 1e-9 (tests) |")
    for draws in (100, 1000):
        sampled = q.sample(draws, seed=0)
        error = np.abs(decompose(sampled).epistemic - exact.epistemic).max()
        spent = best(lambda draws=draws: decompose(q.sample(draws, seed=0)), repeat=1)
        print(f"| {draws} draws of ours | {spent:.2f} | {error:.1g} |")
    if version >= "0.9":
        from probly.quantification import SecondOrderWassersteinDecomposition
        from probly.representation.distribution.array_dirichlet import ArrayDirichletDistribution

        def sample():
            made = SecondOrderWassersteinDecomposition(ArrayDirichletDistribution(alpha))
            return np.asarray(made.aleatoric), np.asarray(made.epistemic)

        spent = best(sample, repeat=1)
        error = np.abs(sample()[1] - exact.epistemic).max()
        print(f"| probly {version}, default draws | {spent:.2f} | {error:.1g} |")


def main():
    version = importlib.metadata.version("probly")
    slow = version < "0.9"
    print(f"probly {version}, {os.cpu_count()} cores; best of 5; seconds; gap: probly - exact")
    print(
        "memory: peak beside the input, as a multiple of it, in default chunks and in one chunk\n"
    )
    columns = ["case", "sort", "EU", "EU / sort", "all, validated", "probly EU", "probly / ours"]
    columns += ["gap", "memory", "in one"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    samples(100_000, 20, 10, np.float64, 300 if slow else 100_000)
    samples(100_000, 20, 10, np.float32, 300 if slow else 100_000)
    # One row of 1,000 classes takes probly 0.3 many minutes.
    samples(10_000, 10, 1000, np.float64, 0 if slow else 10_000)
    dirichlets(version)


if __name__ == "__main__":
    main()
