"""What an uncertainty is good for: rejecting, detecting strangers, choosing what to label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from paperworks.shared.errors import expected
from paperworks.shared.seeding import Seed, generator
from paperworks.shared.validation import check_array, check_number

from .distributions import SecondOrder, to_numpy

Learner = Callable[[np.ndarray], tuple[SecondOrder, float]]
"""Trains on the pool's rows of these indices; returns its second-order predictions for the whole
pool and its accuracy on test data."""

Score = Callable[[SecondOrder], ArrayLike]
"""Uncertainty of each row, for example ``wasserstein.epistemic``."""


@dataclass(frozen=True, eq=False)
class RejectionCurve:
    """Accuracy on what is left after the most uncertain rows are rejected.

    Attributes
    ----------
    rejected : numpy.ndarray, shape (n,)
        Rejected share, from 0 to 1 - 1/n.
    accuracy : numpy.ndarray, shape (n,)
        Accuracy on the rest.
    area : float
        Mean accuracy over all shares; 1 - area is the area under the risk-coverage curve.
    """

    rejected: np.ndarray
    accuracy: np.ndarray
    area: float


@dataclass(frozen=True, eq=False)
class LabelBudgetCurve:
    """Accuracy against the number of labels.

    Attributes
    ----------
    labels : numpy.ndarray, shape (rounds + 1,)
        How many rows were labelled.
    accuracy : numpy.ndarray, shape (rounds + 1,)
        The learner's accuracy with them.
    chosen : numpy.ndarray
        Indices in the order in which they were labelled, the initial ones first.
    """

    labels: np.ndarray
    accuracy: np.ndarray
    chosen: np.ndarray

    @property
    def area(self) -> float:
        """Mean accuracy over the budgets."""
        return float(np.mean(self.accuracy))


def rejection_curve(uncertainty: ArrayLike, correct: ArrayLike) -> RejectionCurve:
    """Accuracy after rejecting any share of the most uncertain rows.

    Parameters
    ----------
    uncertainty : array_like, shape (n,)
        Of each row; rows of equal uncertainty are rejected in random order, on average.
    correct : array_like of bool, shape (n,)
        Whether the prediction of each row was right.

    Returns
    -------
    RejectionCurve
        O(n log n).

    Raises
    ------
    InputError
        For no rows, or lengths that differ.
    """
    u = check_array("uncertainty", uncertainty, ndim=1, dtype=np.float64, empty=False)
    right = check_array("correct", correct, shape=u.shape, dtype=np.float64, minimum=0, maximum=1)
    order = np.argsort(u, kind="stable")
    u, right = u[order], right[order]
    # Kept rows of a group of ties have the group's mean, whichever of them are kept.
    ends = np.flatnonzero(np.concatenate([u[1:] != u[:-1], [True]])) + 1
    starts = np.concatenate([[0], ends[:-1]])
    means = np.add.reduceat(right, starts) / (ends - starts)
    kept = np.arange(1, u.size + 1)
    accuracy = np.cumsum(np.repeat(means, ends - starts)) / kept
    return RejectionCurve(1 - kept[::-1] / u.size, accuracy[::-1], float(accuracy.mean()))


def ood_auroc(inside: ArrayLike, outside: ArrayLike) -> float:
    """Area under the ROC curve of telling strange rows from familiar ones by their uncertainty.

    Parameters
    ----------
    inside, outside : array_like, shapes (n,) and (m,)
        Uncertainty of familiar and of strange rows.

    Returns
    -------
    float
        Probability that a strange row is the more uncertain one of a pair, ties counting half.

    Raises
    ------
    InputError
        Where either is empty or not finite.
    """
    a = check_array("inside", inside, ndim=1, dtype=np.float64, empty=False)
    b = check_array("outside", outside, ndim=1, dtype=np.float64, empty=False)
    ranks = stats.rankdata(np.concatenate([a, b]))[a.size :]
    return float((ranks.sum() - b.size * (b.size + 1) / 2) / (a.size * b.size))


def label_budget_curve(
    learner: Learner,
    initial: ArrayLike,
    *,
    score: Score | Literal["random"],
    batch: int,
    rounds: int,
    seed: Seed = None,
) -> LabelBudgetCurve:
    """Active learning: label the most uncertain rows of a pool, retrain, and repeat.

    Parameters
    ----------
    learner : callable
        ``learner(indices)`` trains on the labelled rows of the pool and returns a `SecondOrder`
        with one row for each row of the pool, and the accuracy on test data.
    initial : array_like of int
        Rows that are labelled from the start.
    score : callable or "random"
        Uncertainty by which rows are chosen, for example ``wasserstein.epistemic``; "random" is the
        comparison. Ties are broken at random.
    batch : int
        Rows that are labelled in each round.
    rounds : int
        How often; fewer where the pool is used up.
    seed : int, SeedSequence, Generator or None
        Of ties and random choices.

    Returns
    -------
    LabelBudgetCurve
        One point before the first round and one after each.

    Raises
    ------
    InputError
        For no initial rows, repeated ones, or indices outside the pool.
    """
    chosen = check_array("initial", initial, ndim=1, dtype=np.int64, minimum=0, empty=False)
    if np.unique(chosen).size != chosen.size:
        raise expected("initial", "distinct rows", "a row twice")
    batch = check_number("batch", batch, integer=True, minimum=1)
    rounds = check_number("rounds", rounds, integer=True, minimum=0)
    if not callable(score) and score != "random":
        raise expected("score", 'a function or "random"', score)
    random = generator(seed)
    labels, accuracies = [], []
    for round_ in range(rounds + 1):
        q, accuracy = _learned(learner(chosen))
        if chosen.max() >= len(q):
            raise expected("initial", f"rows below {len(q)}", int(chosen.max()))
        labels.append(chosen.size)
        accuracies.append(accuracy)
        left = np.setdiff1d(np.arange(len(q)), chosen)
        if round_ == rounds or left.size == 0:
            break
        random.shuffle(left)
        if callable(score):
            values = check_array("score", to_numpy(score(q)), shape=(len(q),))
            left = left[np.argsort(-values[left], kind="stable")]
        chosen = np.concatenate([chosen, left[:batch]])
    return LabelBudgetCurve(np.array(labels), np.array(accuracies), chosen)


def _learned(returned: object) -> tuple[SecondOrder, float]:
    """Refuse what a user's learner returned, if it is not predictions and an accuracy."""
    match returned:
        case (SecondOrder() as q, accuracy):
            return q, float(check_number("learner: accuracy", accuracy))
    raise expected("learner", "a SecondOrder and an accuracy to be returned", returned)


@dataclass(frozen=True)
class Problem:
    """A data set split at random into halves, standardised by the training half.

    Attributes
    ----------
    train, test : numpy.ndarray, shape (rows, features)
        The halves.
    train_labels, test_labels : numpy.ndarray, shape (rows,)
        Their classes.
    mean, scale : numpy.ndarray, shape (features,)
        What was subtracted and divided by.
    """

    train: np.ndarray
    train_labels: np.ndarray
    test: np.ndarray
    test_labels: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Standardise other rows as those of the problem."""
        return (x - self.mean) / self.scale


def load_data(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of "digits", "breast cancer" or "wine" from scikit-learn."""
    from sklearn import datasets

    load = {
        "digits": datasets.load_digits,
        "breast cancer": datasets.load_breast_cancer,
        "wine": datasets.load_wine,
    }[name]
    x, y = load(return_X_y=True)
    return x, y


def split(x: np.ndarray, y: np.ndarray, random: np.random.Generator) -> Problem:
    """Split at random into halves."""
    order = random.permutation(len(y))
    cut = len(y) // 2
    mean, scale = x[order[:cut]].mean(axis=0), x[order[:cut]].std(axis=0)
    scale = np.where(scale > 1e-6, scale, 1.0)  # pixels that are never set in training
    x = (x - mean) / scale
    return Problem(x[order[:cut]], y[order[:cut]], x[order[cut:]], y[order[cut:]], mean, scale)


def fit_members(
    kind: str, x: np.ndarray, y: np.ndarray, classes: int, members: int, random: np.random.Generator
) -> list:
    """Fit members on bootstrap samples: "trees" with smoothed leaves, or small "networks"."""
    from sklearn.neural_network import MLPClassifier
    from sklearn.tree import DecisionTreeClassifier

    fitted = []
    for _ in range(members):
        rows = random.integers(len(y), size=len(y))
        seed = int(random.integers(2**31))
        if kind == "trees":
            model = DecisionTreeClassifier(
                min_samples_leaf=3, max_features="sqrt", random_state=seed
            ).fit(x[rows], y[rows])
        else:
            model = MLPClassifier((32,), random_state=seed, learning_rate_init=0.01, batch_size=32)
            for _ in range(30):
                model.partial_fit(x[rows], y[rows], classes=np.arange(classes))
        fitted.append(model)
    return fitted


def predict(fitted: list, x: np.ndarray, classes: int) -> SecondOrder:
    """Take the members' probabilities of each row as a second-order distribution."""
    theta = np.zeros((len(x), len(fitted), classes))
    for m, model in enumerate(fitted):
        theta[:, m, model.classes_] = model.predict_proba(x)  # a bootstrap may lack a class
    return SecondOrder.from_samples(theta, normalize=True)
