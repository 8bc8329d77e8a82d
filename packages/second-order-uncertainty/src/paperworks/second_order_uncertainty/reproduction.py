"""The paper's claims, each a function that measures one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from paperworks.shared.claims import Claims, Figure, Outcome, Run, Scale, Table
from paperworks.shared.statistics import Interval, mean_interval, paired_difference

from . import axioms, measures, wasserstein
from .distances import PARTS, solve_programmes, transport_distance
from .distributions import SecondOrder
from .evaluation import (
    Problem,
    fit_members,
    label_budget_curve,
    load_data,
    ood_auroc,
    predict,
    rejection_curve,
    split,
)
from .measures import decompose

claims = Claims("second-order-uncertainty")

FAMILIES = ("wasserstein", "entropy", "variance", "labelwise-entropy")
SCORES = {
    "Wasserstein EU": lambda q: wasserstein.epistemic(q),
    "mutual information": lambda q: measures.entropy(q).epistemic,
    "Wasserstein TU": lambda q: wasserstein.total(q),
    "entropy of the mean": lambda q: measures.entropy(q).total,
}


@claims.claim(
    "closed-forms",
    statement=(
        "The uncertainties are the stated Wasserstein distances, so that none is negative (A0)"
    ),
    source="Section 4, the Wasserstein instantiation; criterion A0",
    paper="closed forms for total and aleatoric, a convex programme for epistemic",
    criterion=(
        "exact: within 1e-9 of linear programmes (HiGHS), of which none is below -1e-9, and of"
        " optimal transport (POT) to the nearest reference; no other reference is nearer"
    ),
    scales={
        Scale.QUICK: "40 distributions, K <= 5, M <= 30",
        Scale.LAPTOP: "1,000 distributions, K <= 5, M <= 30",
        Scale.PAPER: "1,000 distributions, K <= 5, M <= 30",
    },
)
def closed_forms(run: Run) -> Outcome:
    """Compare with solvers on random atoms and weights, ties and faces among them."""
    random = run.generator()
    worst = dict.fromkeys((*PARTS, "transport", "nearer"), 0.0)
    smallest = np.inf
    for i in run.track(range(run.pick(quick=40, laptop=1000, paper=1000)), "distributions"):
        classes, members = int(random.integers(2, 6)), int(random.integers(1, 31))
        concentration = 10 ** random.uniform(-1.3, 0.7)
        atoms = random.dirichlet(np.full(classes, concentration), size=members)
        if i % 3 == 0:  # coarse atoms: repeated, on faces, at vertices
            atoms = np.round(atoms * 4 + 1e-9)
            atoms[atoms.sum(axis=1) == 0, 0] = 1
        weights = random.integers(0, 4, size=members) + (i % 2) if i % 4 else None
        if weights is not None and weights.sum() == 0:
            weights = None
        q = SecondOrder.from_samples(atoms[None], weights, normalize=True)
        found, exact = decompose(q), solve_programmes(q)
        for part in PARTS:
            value = float(getattr(exact, part)[0])
            smallest = min(smallest, value)
            worst[part] = max(worst[part], abs(float(getattr(found, part)[0]) - value))
        for part, (nearest, others) in _references(q, random).items():
            value = float(getattr(found, part)[0])
            distances = [float(transport_distance(q, r)[0]) for r in (nearest, *others)]
            worst["transport"] = max(worst["transport"], abs(distances[0] - value))
            worst["nearer"] = max(worst["nearer"], value - min(distances))
    return Outcome(
        measured={f"largest gap, {name}": value for name, value in worst.items()}
        | {"smallest value by programmes": smallest},
        holds=max(worst.values()) < 1e-9 and smallest > -1e-9,
        note=(
            "'transport': to the Wasserstein distance between Q and the reference that the closed"
            " form means. 'nearer': by how much another reference (each vertex, random mixtures of"
            " vertices, random Dirac measures) is nearer."
        ),
    )


def _references(
    q: SecondOrder, random: np.random.Generator
) -> dict[str, tuple[SecondOrder, list[SecondOrder]]]:
    """For each part the nearest distribution without that uncertainty, and others without it."""
    vertices = np.eye(q.classes)[None]
    best = int(q.mean()[0].argmax())
    moved = np.eye(q.classes)[q.values[0].argmax(axis=-1)][None]
    return {
        "total": (
            SecondOrder.from_samples(vertices[:, [best]]),
            [SecondOrder.from_samples(vertices[:, [k]]) for k in range(q.classes)],
        ),
        "aleatoric": (
            SecondOrder.from_samples(moved, q.weights),
            [
                SecondOrder.from_samples(vertices, w)
                for w in random.dirichlet(vertices[0][0] + 1, 3)
            ],
        ),
        "epistemic": (
            SecondOrder.from_samples(wasserstein.minimizer(q)[:, None]),
            [
                SecondOrder.from_samples(p[None, None])
                for p in random.dirichlet(vertices[0][0] + 1, 3)
            ],
        ),
    }


@claims.claim(
    "dirichlet",
    statement="The three values of Dirichlet distributions have closed forms, as the pictures show",
    source="Figures with Dirichlet distributions in the triangle",
    paper="pictures with values; the values here are derived, without sampling",
    criterion=(
        "known values to 1e-7; 50 random Dirichlets within 4 standard errors of simulation, in"
        " which no centre beside the minimiser is better by more than 4 standard errors"
    ),
    scales={
        Scale.QUICK: "3 x 10^4 draws each",
        Scale.LAPTOP: "10^6 draws each",
        Scale.PAPER: "10^6 draws each",
    },
)
def dirichlet_values(run: Run) -> Outcome:
    """Check the values and draw the pictures."""
    from .plots import ternary

    known = {
        (1, 1): (1 / 2, 1 / 4, 1 / 4),
        (1, 1, 1): (2 / 3, 7 / 18, 8 / 27),
        (1,) * 10: (0.9, 1 - sum(1 / k for k in range(1, 11)) / 10, 0.9**10),
        (2, 1, 1): (1 / 2, 7 / 18, 0.2506573),  # EU: the integral minimised numerically
    }
    gap = 0.0
    for alpha, values in known.items():
        found = decompose(SecondOrder.from_dirichlet(np.array([alpha], dtype=float)))
        parts = found.total[0], found.aleatoric[0], found.epistemic[0]
        gap = max(gap, *(abs(a - b) for a, b in zip(parts, values, strict=True)))
    draws = run.pick(quick=30_000, laptop=1_000_000, paper=1_000_000)
    random = run.generator()
    scores, better = [], []
    for _ in run.track(range(50), "Dirichlets"):
        classes = int(random.integers(2, 7))
        alpha = 10 ** random.uniform(-1.5, 1.5, size=(1, classes))
        q = SecondOrder.from_dirichlet(alpha)
        epistemic, nearest = wasserstein.epistemic_and_minimizer(q)
        theta = random.dirichlet(alpha[0], size=draws)
        for exact, values in (
            (wasserstein.aleatoric(q)[0], 1 - theta.max(axis=1)),
            (epistemic[0], np.abs(theta - nearest).sum(axis=1) / 2),
        ):
            scores.append(abs(values.mean() - exact) / (values.std() / np.sqrt(draws) + 1e-12))
        # The minimum is judged on draws of its own, at centres a step away along an edge.
        values = np.abs(theta - nearest).sum(axis=1) / 2
        for step in (0.02, 0.1):
            start, end = random.permutation(classes)[:2]
            beside = nearest[0].copy()
            step = min(step, beside[start])
            beside[start] -= step
            beside[end] += step
            gain = values - np.abs(theta - beside).sum(axis=1) / 2
            better.append(gain.mean() / (gain.std() / np.sqrt(draws) + 1e-12))
    shown = np.array(
        [[1, 1, 1], [5, 5, 5], [50, 50, 50], [0.3, 0.3, 0.3], [2, 1, 1], [20, 5, 2], [8, 8, 1]]
    )
    names = [f"Dirichlet({', '.join(f'{a:g}' for a in alpha)})" for alpha in shown]
    parts = decompose(SecondOrder.from_dirichlet(shown))
    rows = [
        list(row) for row in zip(names, parts.total, parts.aleatoric, parts.epistemic, strict=True)
    ]
    drawing = ternary(SecondOrder.from_dirichlet(shown), titles=names)
    return Outcome(
        measured={
            "largest gap to known values": gap,
            "largest standard score of 100": max(scores),
            "best of 100 other centres, standard score": max(better),
        },
        holds=gap < 1e-7 and max(scores) < 4 and max(better) < 4,
        figures=[
            Figure("Dirichlet distributions", drawing, "Cross: mean. Star: nearest distribution.")
        ],
        tables=[Table("Values", ["distribution", "TU", "AU", "EU"], rows)],
    )


def _held(criterion: str, part: str, families: tuple[str, ...], run: Run) -> Outcome:
    """Search one criterion for all families; it holds where the first has no counter-example."""
    rows, tables, first = [], [], None
    for family in run.track(families, "families"):
        finding = axioms.search(
            criterion,
            part,
            family,
            cases=run.pick(quick=300, laptop=20_000, paper=20_000),
            steps=run.pick(quick=12, laptop=150, paper=150),
            seed=run.generator(),
        )
        example = finding.example
        cell = "none" if example is None else _missed(example)
        rows.append([family, "violated" if example else "no violation", finding.cases, cell])
        if example is not None:
            tables.append(_shown(family, example))
            again = example.recheck() if family == "wasserstein" else example.excess
            if again <= 0:
                raise AssertionError(f"{criterion}: the linear programmes do not confirm it")
        first = first or finding
    assert first is not None
    proof = axioms.PROOFS.get((criterion, part), "") if families[0] == "wasserstein" else ""
    columns = ["measure", "search", "cases", "missed by"]
    return Outcome(
        measured={row[0]: row[3] for row in rows},
        holds=not first.violated,
        tables=[Table(f"{criterion}: {part} {first.statement}", columns, rows), *tables],
        note=f"Proof: {proof}." if proof else "",
    )


def _missed(example: axioms.Example) -> str:
    """Say by how much; a strict criterion is missed by a value that stays."""
    if "strict" not in example.criterion:
        return f"{example.excess:.4g}"
    change = example.values[1] - example.values[0]
    return f"changes by {change:.1g} while the atoms move by {example.size:.2g}"


def _shown(family: str, example: axioms.Example) -> Table:
    rows = []
    for i, q in enumerate((example.before, *example.after)):
        label, value = "Q" if i == 0 else "Q'", f"{example.values[i]:.6g}"
        if q.kind == "dirichlet":
            rows.append([label, value, "Dirichlet", str(q.values[0].tolist())])
            continue
        weights = np.full(q.values.shape[1], 1.0) if q.weights is None else q.weights[0]
        for weight, atom in zip(weights, q.values[0], strict=True):
            rows.append([label, value, f"{weight:.4g}", ", ".join(f"{x:.4g}" for x in atom)])
    caption = f"Missed by: {_missed(example)}."
    if family == "wasserstein":
        confirmed = "confirmed" if example.recheck() > 0 else "not confirmed"
        caption += f" The linear programmes: {confirmed}."
    title = f"Counter-example for {family}: {example.criterion}, {example.part}"
    return Table(title, ["", "value", "weight", "atom"], rows, caption)


def _criterion_claim(
    id: str, criterion: str, part: str, statement: str, paper: str, families: tuple[str, ...]
) -> None:
    """Register the claim that a part of the Wasserstein measures meets a criterion."""

    @claims.claim(
        id,
        statement=statement,
        source=f"Criterion {criterion.split()[0]} (numbering of the restatement)",
        paper=paper,
        criterion="exact: no counter-example by random search and hill climbing; any found decides",
        scales={
            Scale.QUICK: "300 cases and 12 steps of climbing a measure",
            Scale.LAPTOP: "20,000 cases and 150 steps of climbing a measure",
            Scale.PAPER: "20,000 cases and 150 steps of climbing a measure",
        },
    )
    def measure(run: Run) -> Outcome:
        return _held(criterion, part, families, run)


for _id, _criterion, _part, _statement, _paper in (
    ("a1-epistemic", "A1", "epistemic", "EU is 0 for Dirac measures and only there", "holds"),
    ("a2-total", "A2", "total", "TU is largest for the uniform distribution", "holds"),
    ("a3-total", "A3 weak", "total", "TU does not fall under mean-preserving spreads", "holds"),
    ("a3-epistemic", "A3 weak", "epistemic", "EU does not fall under such spreads", "holds"),
    ("a4-total", "A4 strict", "total", "TU rises under a shift to the centre", "holds"),
    (
        "a4-aleatoric",
        "A4 weak",
        "aleatoric",
        "AU does not fall under a shift to the centre",
        "the abstract: all criteria are satisfied",
    ),
    ("a5-epistemic", "A5", "epistemic", "EU does not change under translations", "holds"),
    ("a6-aleatoric", "A6", "aleatoric", "AU is 0 for mixtures of certain predictions", "holds"),
    ("a7-total", "A7", "total", "TU is at most the sum over two parts of the labels", "holds"),
    ("a7-aleatoric", "A7", "aleatoric", "AU is at most such a sum", "holds"),
    ("a7-epistemic", "A7", "epistemic", "EU is at most such a sum", "holds"),
):
    _criterion_claim(_id, _criterion, _part, _statement, _paper, FAMILIES)


@claims.claim(
    "a4-counter-example",
    statement="A shift to the centre can lower the aleatoric uncertainty",
    source="Criterion A4; a counter-example by hand, against the claim a4-aleatoric",
    paper="not in the paper",
    criterion="exact: closed form and linear programme agree that AU falls",
    scales=dict.fromkeys(Scale, "one distribution"),
)
def centre_shift(run: Run) -> Outcome:
    """Evaluate and draw the three-atom example."""
    from .plots import ternary

    example = axioms.centre_shift_example()
    before, after = example.before, example.after[0]
    both = SecondOrder.from_samples(
        np.concatenate([before.values, after.values]),
        np.concatenate([before.weights, after.weights]),
    )
    again = example.recheck()
    drawing = ternary(both, titles=["before", "after the shift"])
    return Outcome(
        measured={"before": example.values[0], "after": example.values[1], "by programme": again},
        holds=example.excess > 0 and again > 0 and abs(again - example.excess) < 1e-9,
        figures=[Figure("The shift", drawing, "The mean (cross) goes half of the way to 1/3.")],
        tables=[_shown("wasserstein", example)],
        note=(
            "AU is a mean over atoms of 1 - max: the atoms near the lower corner gain in their"
            " largest entry, and together they outweigh the one that loses."
        ),
    )


@claims.claim(
    "a3-strict-counter-example",
    statement="A mean-preserving spread can leave the epistemic uncertainty as it was",
    source="Criterion A3, its strict form; a counter-example by hand",
    paper="not in the paper, which is not known to claim the strict form for EU",
    criterion="exact: the spread keeps the mean and moves mass, and EU stays to 1e-9, by programme",
    scales=dict.fromkeys(Scale, "one distribution"),
)
def spread_without_rise(run: Run) -> Outcome:
    """Split each of two atoms in two that stay on their own side of the minimiser."""
    before = SecondOrder.from_samples(np.array([[[0.2, 0.8], [0.2, 0.8], [0.8, 0.2], [0.8, 0.2]]]))
    after = SecondOrder.from_samples(np.array([[[0.1, 0.9], [0.3, 0.7], [0.7, 0.3], [0.9, 0.1]]]))
    values = [float(solve_programmes(q).epistemic[0]) for q in (before, after)]
    ours = [float(wasserstein.epistemic(q)[0]) for q in (before, after)]
    moved = float(transport_distance(before, after)[0])
    same_mean = float(np.abs(before.mean() - after.mean()).max())
    return Outcome(
        measured={"before": ours[0], "after": ours[1], "mass moved (W)": moved},
        holds=moved > 0.01
        and same_mean < 1e-12
        and abs(values[0] - values[1]) < 1e-9
        and np.allclose(ours, values, rtol=0, atol=1e-9),
        note=(
            "EU is a mean distance to the minimiser: halves that part without crossing it in any"
            " class lose on one side what they gain on the other."
        ),
    )


@claims.claim(
    "a2-contested",
    statement="EU is not largest for the uniform distribution but for the mixture of vertices",
    source="Discussion of criterion A2",
    paper="the authors contest that EU should be largest for the uniform distribution",
    criterion="exact: (K - 1)/K for the mixture of vertices, less for the uniform distribution",
    scales=dict.fromkeys(Scale, "K = 2 to 20"),
)
def uniform_is_not_extreme(run: Run) -> Outcome:
    """Compare the two for each number of classes."""
    rows = []
    for classes in range(2, 21):
        vertices = wasserstein.epistemic(SecondOrder.from_samples(np.eye(classes)[None]))[0]
        uniform = wasserstein.epistemic(SecondOrder.from_dirichlet(np.ones((1, classes))))[0]
        rows.append([classes, vertices, uniform])
    good = all(abs(v - 1 + 1 / k) < 1e-12 and u < v for k, v, u in rows)
    return Outcome(
        measured={"K = 3, vertices": rows[1][1], "K = 3, uniform": rows[1][2]},
        holds=good,
        tables=[Table("EU", ["classes", "mixture of vertices", "uniform"], rows)],
    )


@claims.claim(
    "mutual-information-moves",
    statement="Translations change mutual information, but not the distance measure",
    source="Criterion A5, the motivation against entropy",
    paper="mutual information violates A5",
    criterion="exact: a translation changes mutual information by > 0.01 bit, EU by < 1e-9",
    scales=dict.fromkeys(Scale, "two atoms moved along an edge"),
)
def mutual_information_moves(run: Run) -> Outcome:
    """Move two atoms from the middle of an edge to its end."""
    pair = np.array([[[0.3, 0.7], [0.7, 0.3]], [[0.0, 1.0], [0.4, 0.6]]])
    q = SecondOrder.from_samples(pair)
    information, distance = measures.entropy(q).epistemic, wasserstein.epistemic(q)
    return Outcome(
        measured={
            "mutual information": f"{information[0]:.4f} to {information[1]:.4f} bit",
            "Wasserstein EU": f"{distance[0]:.4f} to {distance[1]:.4f}",
        },
        holds=bool(abs(np.diff(information)[0]) > 0.01 and abs(np.diff(distance)[0]) < 1e-9),
    )


def _repetitions(run: Run) -> Iterator[tuple[int, np.random.Generator]]:
    for seed in run.track(range(10), "seeds"):
        yield seed, run.generator("seed", seed)


def _against(
    title: str, values: dict[str, dict[str, list[float]]], base: str
) -> tuple[Table, list[Interval]]:
    """Table of means with intervals and of paired differences to a base, a setting a group."""
    rows, gains = [], []
    for setting, scores in values.items():
        for score, repeated in scores.items():
            own = mean_interval(repeated)
            row: list = [setting, score, own.estimate, f"{own.low:.4f} to {own.high:.4f}", ""]
            if score != base:
                gain = paired_difference(repeated, scores[base], alternative="greater")
                both = paired_difference(repeated, scores[base])
                row[4] = f"{both.estimate:+.4f} [{both.low:+.4f}, {both.high:+.4f}]"
                if score.startswith("Wasserstein"):
                    gains.append(gain)
            rows.append(row)
    columns = ["setting", "score", "mean", "95 % interval", f"minus {base}"]
    return Table(title, columns, rows), gains


def _beside_entropy(values: dict[str, dict[str, list[float]]]) -> str:
    """Say where entropy's measures are better, and where the distance's."""
    words = {"better": [], "worse": []}
    pairs = (("Wasserstein EU", "mutual information"), ("Wasserstein TU", "entropy of the mean"))
    level = 1 - 0.05 / (len(pairs) * len(values))  # Bonferroni
    for setting, scores in values.items():
        for ours, theirs in pairs:
            both = paired_difference(scores[ours], scores[theirs], level)
            if both.low > 0 or both.high < 0:
                words["better" if both.low > 0 else "worse"].append(
                    f"{ours} against {theirs} on {setting} ({both.estimate:+.4f})"
                )
    told = [f"{word}: {'; '.join(cases) or 'nowhere'}" for word, cases in words.items()]
    return (
        "Intervals are over random splits of these rows and say nothing of other data. Beside"
        " entropy, where intervals with 95 % coverage of all comparisons exclude 0. "
        + ". ".join(told)
        + "."
    )


_USE = {
    Scale.QUICK: "10 splits, 10 trees",
    Scale.LAPTOP: "10 splits, 20 trees and 10 networks",
    Scale.PAPER: "10 splits, 20 trees and 10 networks",
}


def _ensembles(run: Run) -> dict[str, int]:
    return run.pick(
        quick={"trees": 10},
        laptop={"trees": 20, "networks": 10},
        paper={"trees": 20, "networks": 10},
    )


@claims.claim(
    "rejection",
    statement="Rejecting the most uncertain predictions raises the accuracy on the rest",
    source="Usefulness; the paper has no large experiment",
    paper="not measured",
    criterion=(
        "area under the accuracy-rejection curve above the plain accuracy for TU and EU on every"
        " data set, one-sided 95 % bound over random splits; entropy beside"
    ),
    scales=_USE,
)
def rejection(run: Run) -> Outcome:
    """Measure rejection curves on three data sets."""
    from paperworks.shared.plotting import figure

    values: dict[str, dict[str, list[float]]] = {}
    curves: dict[str, list[np.ndarray]] = {}
    for _, random in _repetitions(run):
        for name in ("digits", "breast cancer", "wine"):
            problem = split(*load_data(name), random)
            classes = int(problem.train_labels.max()) + 1
            for kind, members in _ensembles(run).items():
                fitted = fit_members(
                    kind, problem.train, problem.train_labels, classes, members, random
                )
                q = predict(fitted, problem.test, classes)
                correct = q.mean().argmax(axis=1) == problem.test_labels
                kept = values.setdefault(f"{name}, {kind}", {})
                kept.setdefault("no rejection", []).append(float(correct.mean()))
                for score, function in SCORES.items():
                    curve = rejection_curve(function(q), correct)
                    kept.setdefault(score, []).append(curve.area)
                    if (name, kind) == ("digits", "trees"):
                        curves.setdefault(score, []).append(curve.accuracy)
    table, gains = _against("Area under the accuracy-rejection curve", values, "no rejection")
    drawing, axes = figure()
    for score, repeated in curves.items():
        mean = np.mean(repeated, axis=0)
        error = np.std(repeated, axis=0, ddof=1) / np.sqrt(len(repeated))
        share = 1 - np.arange(len(mean), 0, -1) / len(mean)
        axes.plot(share, mean, label=score)
        axes.fill_between(share, mean - 2 * error, mean + 2 * error, alpha=0.15, linewidth=0)
    axes.set(xlabel="rejected share", ylabel="accuracy on the rest", xlim=(0, 0.95))
    axes.legend()
    worst = min(gains, key=lambda gain: gain.low)
    return Outcome(
        measured={"smallest gain of a Wasserstein score": worst.estimate},
        holds=worst.low > 0,
        interval=worst,
        figures=[Figure("Digits, trees", drawing, "Mean over splits, with two standard errors.")],
        tables=[table],
        note=_beside_entropy(values),
    )


@claims.claim(
    "out-of-distribution",
    statement="Epistemic uncertainty tells unknown classes and turned digits from known digits",
    source="Usefulness; the paper has no large experiment",
    paper="not measured",
    criterion="AUROC of EU above 1/2, one-sided 95 % bound over random splits; entropy beside",
    scales=_USE,
)
def out_of_distribution(run: Run) -> Outcome:
    """Train on the digits 0 to 6, and show 7 to 9 and turned digits."""
    x, y = load_data("digits")
    known = y < 7
    values: dict[str, dict[str, list[float]]] = {}
    for _, random in _repetitions(run):
        problem = split(x[known], y[known], random)
        turned = np.rot90(x[known].reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)
        strange = {"unknown classes": x[~known], "turned by 90 degrees": turned[: len(x) // 4]}
        for kind, members in _ensembles(run).items():
            fitted = fit_members(kind, problem.train, problem.train_labels, 7, members, random)
            inside = predict(fitted, problem.test, 7)
            for name, images in strange.items():
                outside = predict(fitted, problem.scaled(images), 7)
                kept = values.setdefault(f"{name}, {kind}", {})
                for score, function in SCORES.items():
                    auroc = ood_auroc(function(inside), function(outside))
                    kept.setdefault(score, []).append(auroc)
                kept.setdefault("chance", []).append(0.5)
    table, gains = _against("AUROC", values, "chance")
    worst = min(gains, key=lambda gain: gain.low)
    return Outcome(
        measured={"smallest AUROC of a Wasserstein score": 0.5 + worst.estimate},
        holds=worst.low > 0,
        interval=(0.5 + worst.low, 1.0),
        tables=[table],
        note=_beside_entropy(values),
    )


@claims.claim(
    "active-learning",
    statement="Labelling the rows of largest epistemic uncertainty beats labelling at random",
    source="Usefulness; the paper has no large experiment",
    paper="not measured",
    criterion=(
        "mean accuracy over the label budgets on digits above that of random choice, one-sided 95 %"
        " bound over random splits; entropy beside"
    ),
    scales={
        Scale.LAPTOP: "10 splits, 20 trees, 20 + 14 x 20 labels",
        Scale.PAPER: "10 splits, 20 trees, 20 + 14 x 20 labels",
    },
)
def active_learning(run: Run) -> Outcome:
    """Compare acquisition by uncertainty with acquisition at random."""
    from paperworks.shared.plotting import figure

    members = run.pick(quick=5, laptop=20, paper=20)
    rounds = run.pick(quick=4, laptop=14, paper=14)
    batch = run.pick(quick=60, laptop=20, paper=20)
    values: dict[str, list[float]] = {}
    curves: dict[str, list[np.ndarray]] = {}
    budgets = np.arange(rounds + 1) * batch + 20
    for seed, random in _repetitions(run):
        problem = split(*load_data("digits"), random)
        initial = random.permutation(len(problem.train))[:20]
        for score, function in {"random": "random", **SCORES}.items():

            def learner(
                rows: np.ndarray, problem: Problem = problem, seed: int = seed
            ) -> tuple[SecondOrder, float]:
                stream = run.generator("trees", seed, rows.size)
                x, y = problem.train[rows], problem.train_labels[rows]
                fitted = fit_members("trees", x, y, 10, members, stream)
                predicted = predict(fitted, problem.test, 10).mean().argmax(axis=1)
                accuracy = float((predicted == problem.test_labels).mean())
                return predict(fitted, problem.train, 10), accuracy

            curve = label_budget_curve(
                learner,
                initial,
                score=function,
                batch=batch,
                rounds=rounds,
                seed=run.generator("choice", seed, score),
            )
            values.setdefault(score, []).append(curve.area)
            curves.setdefault(score, []).append(curve.accuracy)
    table, _ = _against("Mean accuracy over the budgets", {"digits, trees": values}, "random")
    gain = paired_difference(values["Wasserstein EU"], values["random"], alternative="greater")
    drawing, axes = figure()
    for score, repeated in curves.items():
        axes.plot(budgets, np.mean(repeated, axis=0), marker=".", label=score)
    axes.set(xlabel="labels", ylabel="test accuracy")
    axes.legend()
    return Outcome(
        measured={"gain of EU over random": gain.estimate},
        holds=gain.low > 0,
        interval=gain,
        figures=[Figure("Digits, trees", drawing, "Mean over splits.")],
        tables=[table],
        note=_beside_entropy({"digits, trees": values}),
    )
