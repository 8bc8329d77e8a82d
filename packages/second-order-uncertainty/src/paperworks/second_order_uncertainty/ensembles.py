"""Ensembles on small data sets, as second-order predictors (needs scikit-learn)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .distributions import SecondOrder


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
