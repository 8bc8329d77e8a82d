"""Second-order distributions: what an ensemble or an evidential classifier says of each input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from array_api_compat import array_namespace, device, is_torch_array

from paperworks.shared.errors import InputError, expected
from paperworks.shared.seeding import Seed, generator
from paperworks.shared.validation import check_array, check_number, check_probabilities

Array = Any
"""A `numpy.ndarray` or a `torch.Tensor`."""

TOLERANCE = 1e-6
"""How far the probabilities of a member may sum from 1 before that is an error."""


@dataclass(frozen=True, eq=False)
class SecondOrder:
    """Distributions on the simplex of class distributions, one a row.

    Made by `from_samples`, `from_logits` or `from_dirichlet`, which validate once; everything else
    in the package takes what they made as it is.

    Attributes
    ----------
    kind : {"samples", "dirichlet"}
        Finite support (ensemble members, posterior draws) or Dirichlet.
    values : array
        Atoms ``[rows, members, classes]`` that sum to 1, or Dirichlet parameters
        ``[rows, classes]``; numpy or torch, float32 or float64.
    weights : array or None
        ``[rows, members]``, non-negative with sum 1; None where all members weigh the same.
    """

    kind: Literal["samples", "dirichlet"]
    values: Array
    weights: Array | None = None

    @classmethod
    def from_samples(
        cls, theta: Array, weights: Array | None = None, *, normalize: bool = False
    ) -> SecondOrder:
        """Take class distributions of members.

        Parameters
        ----------
        theta : array, shape (rows, members, classes)
            Probabilities. They are rescaled to sum to 1; half precision becomes float32, other
            dtypes and the device are kept, and so are gradients.
        weights : array, shape (members,) or (rows, members), optional
            Non-negative weights of the members, in any unit; equal by default.
        normalize : bool
            Rescale whatever the sums are, as long as they are positive. Otherwise a sum that is
            further than 1e-6 (in half precision: its rounding unit) from 1 is an error.

        Raises
        ------
        InputError
            For a wrong shape, negative or missing numbers, sums that are not 1, no members, fewer
            than two classes, weights that are negative or all zero.
        """
        theta = _floats("theta", theta)
        _check_members("theta", theta, probabilities=True)
        unit = max(TOLERANCE, float(array_namespace(theta).finfo(theta.dtype).eps))
        theta = _widen(theta)
        return cls(
            "samples", _normalized("theta", theta, unit, normalize), _weights(theta, weights)
        )

    @classmethod
    def from_logits(cls, logits: Array, weights: Array | None = None) -> SecondOrder:
        """Take logits of members, whose softmax over the last axis is their class distribution.

        Parameters
        ----------
        logits : array, shape (rows, members, classes)
            Finite numbers.
        weights : array, shape (members,) or (rows, members), optional
            As in `from_samples`.

        Raises
        ------
        InputError
            For a wrong shape or logits that are not finite; for weights as in `from_samples`.
        """
        logits = _floats("logits", logits)
        _check_members("logits", logits, probabilities=False)
        logits = _widen(logits)
        xp = array_namespace(logits)
        if _size(logits) and not bool(xp.all(xp.isfinite(logits))):
            check_array("logits", to_numpy(logits))  # words the error
        logits = logits - xp.max(logits, axis=-1, keepdims=True)
        theta = xp.exp(logits)
        del logits
        theta = theta / xp.sum(theta, axis=-1, keepdims=True)
        return cls("samples", theta, _weights(theta, weights))

    @classmethod
    def from_dirichlet(cls, alpha: Array) -> SecondOrder:
        """Take the parameters of Dirichlet distributions, as evidential networks give them.

        Parameters
        ----------
        alpha : array, shape (rows, classes)
            Positive concentrations. `paperworks.second_order_uncertainty.dirichlet` states the
            errors of the values.

        Raises
        ------
        InputError
            For a wrong shape, fewer than two classes, or numbers that are not positive and finite.
        """
        alpha = _floats("alpha", alpha)
        if alpha.ndim != 2:
            found = f"shape {tuple(alpha.shape)}"
            hint = "; for one row give alpha[None]" if alpha.ndim == 1 else ""
            raise expected("alpha", "axes (rows, classes)", found + hint)
        _check_classes("alpha", alpha)
        alpha = _widen(alpha)
        xp = array_namespace(alpha)
        if _size(alpha) and not (
            bool(xp.min(alpha) > 0) and bool(xp.all(xp.isfinite(xp.sum(alpha, axis=-1))))
        ):
            check_array("alpha", to_numpy(alpha), above=0)  # words the error
            raise expected("alpha", "concentrations with a finite sum", "an infinite sum")
        return cls("dirichlet", alpha)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice | int) -> SecondOrder:
        if not isinstance(rows, slice):
            place = range(len(self))[rows]  # also says when there is no such row
            rows = slice(place, place + 1)
        weights = None if self.weights is None else self.weights[rows]
        return SecondOrder(self.kind, self.values[rows], weights)

    @property
    def classes(self) -> int:
        """Number K of classes."""
        return int(self.values.shape[-1])

    def mean(self) -> Array:
        """Return the expected class distributions, ``[rows, classes]``: the usual prediction."""
        xp = array_namespace(self.values)
        if self.kind == "dirichlet":
            return self.values / xp.sum(self.values, axis=-1, keepdims=True)
        return self.expectation(self.values)

    def expectation(self, values: Array) -> Array:
        """Average what was computed for each member.

        Parameters
        ----------
        values : array, shape (rows, members) or (rows, members, anything)
            One value, or several, of each atom of a distribution with finite support.

        Returns
        -------
        array, shape (rows,) or (rows, anything)
            The weighted mean over the members.
        """
        xp = array_namespace(values)
        if self.weights is None:
            return xp.mean(values, axis=1)
        if values.ndim == 2:
            return xp.sum(self.weights * values, axis=1)
        return xp.matmul(self.weights[:, None, :], values)[:, 0, :]

    def sample(self, members: int, seed: Seed = None) -> SecondOrder:
        """Draw members from each row (numpy), for comparison with sampling-based measures.

        Parameters
        ----------
        members : int
            How many draws a row.
        seed : int, SeedSequence, Generator or None
            Of the draws.

        Returns
        -------
        SecondOrder
            With finite support and equal weights.
        """
        members = check_number("members", members, integer=True, minimum=1)
        random = generator(seed)
        values = to_numpy(self.values)
        if self.kind == "dirichlet":
            rows, classes = values.shape
            # In logarithms, so that tiny concentrations do not give 0 / 0: G(a) = G(a + 1) U^(1/a).
            shape = (rows, members, classes)
            alpha = values[:, None, :].astype(np.float64)
            log_gamma = np.log(random.standard_gamma(alpha + 1, size=shape))
            return self.from_logits(log_gamma - random.standard_exponential(shape) / alpha)
        weights = None if self.weights is None else to_numpy(self.weights)
        levels = random.random((len(values), members))
        if weights is None:
            chosen = (levels * values.shape[1]).astype(np.int64)
        else:
            cumulated = np.cumsum(weights, axis=1)[:, None, :]
            chosen = (levels[:, :, None] * cumulated[:, :, -1:] >= cumulated).sum(axis=-1)
        return SecondOrder("samples", np.take_along_axis(values, chosen[:, :, None], axis=1))


def second_order(q: SecondOrder | Array) -> SecondOrder:
    """Return ``q``, or make it of the members' probabilities ``[rows, members, classes]``.

    Raises
    ------
    InputError
        For what `SecondOrder.from_samples` refuses.
    """
    return q if isinstance(q, SecondOrder) else SecondOrder.from_samples(q)


def _floats(name: str, values: Array) -> Array:
    if is_torch_array(values):
        return values if values.dtype.is_floating_point else values.double()
    array = check_array(name, values, finite=False)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def _widen(values: Array) -> Array:
    """Make float32 of half precision, in which sums and sorts are too coarse."""
    if is_torch_array(values):
        return values.float() if values.dtype.itemsize < 4 else values
    wanted = np.float32 if values.dtype.itemsize < 4 else np.float64
    return values.astype(wanted) if values.dtype.itemsize not in (4, 8) else values


def to_numpy(values: Array) -> np.ndarray:
    """Return a tensor or array as numpy, on the CPU and without its gradient."""
    return values.detach().cpu().numpy() if is_torch_array(values) else np.asarray(values)


def _size(values: Array) -> int:
    return int(np.prod(values.shape))


def _check_members(name: str, values: Array, *, probabilities: bool) -> None:
    shape = tuple(values.shape)
    if values.ndim == 2:
        # Written out, since `expected` would cut what was found short.
        found = _missing_axis(name, values, probabilities)
        raise InputError(f"{name}: expected axes (rows, members, classes), found {found}")
    if values.ndim != 3:
        raise expected(name, "axes (rows, members, classes)", f"shape {shape}")
    if shape[1] == 0:
        raise expected(name, "at least one member", f"shape {shape}")
    _check_classes(name, values)


def _check_classes(name: str, values: Array) -> None:
    if values.shape[-1] < 2:
        raise expected(name, "at least two classes", f"shape {tuple(values.shape)}")


def _missing_axis(name: str, values: Array, probabilities: bool) -> str:
    """Say which axis a two-dimensional array lacks, judged by whether its rows sum to 1."""
    rows, columns = values.shape
    sums = to_numpy(values).astype(np.float64).sum(axis=-1)
    if probabilities and not np.allclose(sums, 1, atol=1e-3):
        return (
            f"shape ({rows}, {columns}) whose rows do not sum to 1: classes are missing;"
            f" for two classes stack [1 - p, p] on a last axis"
        )
    return (
        f"shape ({rows}, {columns}): members are missing; give {name}[None] for one row of {rows}"
        f" members, {name}[:, None] for {rows} rows of one member"
    )


def _normalized(name: str, theta: Array, tolerance: float, normalize: bool) -> Array:
    xp = array_namespace(theta)
    if not _size(theta):
        return theta
    sums = xp.sum(theta, axis=-1, keepdims=True)
    # NaN fails every comparison, so that one pass finds all that can be wrong.
    good = bool(xp.min(theta) >= 0) and bool(
        xp.all((sums > 0) & xp.isfinite(sums))
        if normalize
        else xp.all(xp.abs(sums - 1) <= tolerance)
    )
    if not good:
        check_probabilities(name, to_numpy(theta), tolerance=tolerance, normalize=normalize)
        raise expected(name, "probabilities with a finite sum", "an infinite sum")
    return theta / sums


def _weights(theta: Array, weights: Array | None) -> Array | None:
    if weights is None:
        return None
    xp = array_namespace(theta)
    rows, members = theta.shape[:2]
    given = to_numpy(weights) if is_torch_array(weights) else weights
    checked = check_array("weights", given, ndim=(1, 2), dtype=np.float64, minimum=0)
    wanted = (members,) if checked.ndim == 1 else (rows, members)
    if checked.shape != wanted:
        raise expected(
            "weights", f"shape ({members},) or ({rows}, {members})", f"shape {checked.shape}"
        )
    largest = checked.max(axis=-1, keepdims=True)
    if (largest == 0).any():
        raise expected("weights", "a positive weight in each row", "zeros only")
    place = {"dtype": theta.dtype, "device": device(theta)}
    if is_torch_array(theta) and is_torch_array(weights):
        scaled = weights.to(**place) / xp.asarray(largest, **place)  # which keeps the gradient
    else:
        scaled = xp.asarray(checked / largest, **place)
    # Divided by the largest first: the sum of huge weights would overflow.
    moved = scaled / xp.sum(scaled, axis=-1, keepdims=True)
    return xp.broadcast_to(moved, (rows, members))
