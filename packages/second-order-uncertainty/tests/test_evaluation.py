"""Curves by hand, by scikit-learn, and an active-learning loop whose answer is known."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from paperworks.second_order_uncertainty import (
    SecondOrder,
    label_budget_curve,
    ood_auroc,
    plots,
    rejection_curve,
    wasserstein,
)
from paperworks.shared.errors import InputError


def test_rejection_by_hand():
    curve = rejection_curve([0.1, 0.9, 0.5, 0.2], [True, False, False, True])
    np.testing.assert_allclose(curve.rejected, [0, 0.25, 0.5, 0.75])
    np.testing.assert_allclose(curve.accuracy, [0.5, 2 / 3, 1, 1])
    assert curve.area == pytest.approx((0.5 + 2 / 3 + 2) / 4)


def test_rejection_of_ties_is_the_mean_over_their_orders():
    random = np.random.default_rng(0)
    uncertainty = random.integers(0, 4, size=30)
    correct = random.random(30) < 0.6
    found = rejection_curve(uncertainty, correct)
    broken = [rejection_curve(uncertainty + 1e-3 * random.random(30), correct) for _ in range(4000)]
    mean = np.mean([curve.accuracy for curve in broken], axis=0)
    np.testing.assert_allclose(found.accuracy, mean, atol=0.02)


def test_auroc_against_scikit_learn():
    random = np.random.default_rng(1)
    inside, outside = random.integers(0, 9, 50), random.integers(3, 12, 70)
    wanted = roc_auc_score(np.repeat([0, 1], [50, 70]), np.concatenate([inside, outside]))
    assert ood_auroc(inside, outside) == pytest.approx(wanted)


def test_label_budget_takes_the_most_uncertain_first():
    spread = np.linspace(0, 0.4, 12)
    theta = np.stack([0.5 + spread, 0.5 - spread], axis=1)
    q = SecondOrder.from_samples(np.stack([theta, 1 - theta], axis=-1))
    seen = []

    def learner(rows):
        seen.append(rows.copy())
        return q, rows.size / 12

    curve = label_budget_curve(
        learner, [0, 1], score=wasserstein.epistemic, batch=3, rounds=2, seed=0
    )
    assert curve.chosen.tolist() == [0, 1, 11, 10, 9, 8, 7, 6]
    np.testing.assert_array_equal(curve.labels, [2, 5, 8])
    np.testing.assert_allclose(curve.accuracy, curve.labels / 12)
    assert curve.area == pytest.approx(5 / 12)
    whole = label_budget_curve(learner, [0], score="random", batch=5, rounds=9, seed=0)
    assert sorted(whole.chosen) == list(range(12))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rejection_curve([], []), "uncertainty: expected at least one entry"),
        (lambda: rejection_curve([1.0], [True, False]), "correct: expected shape (1)"),
        (lambda: ood_auroc([1.0], [np.nan]), "outside[0]: expected finite numbers"),
        (
            lambda: label_budget_curve(print, [1, 1], score="random", batch=1, rounds=1),
            "initial: expected distinct rows, found a row twice",
        ),
        (
            lambda: label_budget_curve(print, [1], score="best", batch=1, rounds=1),
            "score: expected a function",
        ),
        (
            lambda: label_budget_curve(len, [1], score="random", batch=1, rounds=1),
            "learner: expected a SecondOrder and an accuracy to be returned, found 1",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", ["samples", "weighted", "dirichlet"])
def test_ternary_draws_every_row(kind, tmp_path):
    random = np.random.default_rng(0)
    if kind == "dirichlet":
        q = SecondOrder.from_dirichlet(random.uniform(0.2, 9, size=(5, 3)))
    else:
        theta = random.dirichlet(np.ones(3), size=(5, 8))
        q = SecondOrder.from_samples(theta, None if kind == "samples" else random.random((5, 8)))
    figure = plots.ternary(q)
    titles = [axes.get_title() for axes in figure.axes]
    shown = f"EU {wasserstein.epistemic(q)[2]:.3f}"
    assert shown in titles[2]
    figure.savefig(tmp_path / "triangles.png")
    assert (tmp_path / "triangles.png").stat().st_size > 5000


def test_ternary_refuses_other_numbers_of_classes():
    with pytest.raises(InputError, match="q: expected three classes, found 4 classes"):
        plots.ternary(SecondOrder.from_dirichlet(np.ones((1, 4))))
