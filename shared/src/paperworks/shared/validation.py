"""Checks at the public boundary, with one wording: ``name: expected ..., found ...``."""

from __future__ import annotations

import math
import numbers
import sys
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .errors import expected


def check_number(
    name: str,
    value: Any,
    *,
    integer: bool = False,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """Check a finite real scalar.

    Parameters
    ----------
    name : str
        How the user knows the parameter.
    value : object
        What was given. Booleans, NaN and infinities are refused.
    integer : bool
        Whether only whole numbers are allowed (``3.0`` counts as 3).
    minimum, maximum : float, optional
        Inclusive bounds.
    above, below : float, optional
        Exclusive bounds.

    Returns
    -------
    int or float
        The value as a Python number.

    Raises
    ------
    InputError
        When the value is anything else.
    """
    bounds = _bounds(minimum, maximum, above, below)
    expectation = ("an integer" if integer else "a finite number") + bounds
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise expected(name, expectation, value)
    if isinstance(value, numbers.Integral):
        if not integer and abs(int(value)) > sys.float_info.max:
            raise expected(name, expectation, "an integer too large for one")
    else:
        value = float(value)
        if not math.isfinite(value) or (integer and not value.is_integer()):
            raise expected(name, expectation, value)
    result = int(value) if integer or isinstance(value, numbers.Integral) else float(value)
    if (
        (minimum is not None and result < minimum)
        or (maximum is not None and result > maximum)
        or (above is not None and result <= above)
        or (below is not None and result >= below)
    ):
        raise expected(name, expectation, value)
    return result


def check_choice(name: str, value: Any, choices: Collection[Any]) -> Any:
    """Check that ``value`` is one of ``choices`` and return it; the error lists them all."""
    if isinstance(value, str) or not isinstance(value, Collection):
        for choice in choices:
            if value == choice:
                return choice
    raise expected(name, "one of " + ", ".join(map(str, choices)), value)


def check_array(
    name: str,
    value: Any,
    *,
    ndim: int | tuple[int, ...] | None = None,
    shape: tuple[int | None, ...] | None = None,
    dtype: DTypeLike | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    finite: bool = True,
    empty: bool = True,
) -> np.ndarray:
    """Check an array of real numbers and return it as ``numpy.ndarray``, without a copy if it can.

    Parameters
    ----------
    name : str
        How the user knows the array.
    value : array_like
        What was given.
    ndim : int or tuple of int, optional
        The allowed numbers of dimensions.
    shape : tuple, optional
        The expected shape; ``None`` stands for any length.
    dtype : dtype_like, optional
        What to convert to. Floats become integers only when every one is whole.
    minimum, maximum, above, below : float, optional
        Inclusive and exclusive bounds on every entry.
    finite : bool
        Whether NaN and infinities are refused.
    empty : bool
        Whether an array without entries is allowed.

    Returns
    -------
    numpy.ndarray
        The checked array.

    Raises
    ------
    InputError
        Names the array, and for a bad entry its index and value.
    """
    if np.ma.is_masked(value):
        # Numpy would use what is under the mask.
        raise expected(
            name, "an array without masked entries", f"{np.ma.count_masked(value)} masked"
        )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        raise expected(
            name, "an array of numbers", f"{type(value).__name__} of uneven rows"
        ) from None
    if array.dtype.kind not in "fiub" and array.size:
        raise expected(name, "an array of numbers", f"dtype {array.dtype}")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if allowed is not None and array.ndim not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise expected(name, f"{wanted} dimensions", f"shape {array.shape}")
    if shape is not None and not _matches(array.shape, shape):
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise expected(name, f"shape ({wanted})", f"shape {array.shape}")
    if not array.size and not empty:
        raise expected(name, "at least one entry", f"shape {array.shape}")
    if finite and array.dtype.kind == "f":
        _refuse(name, array, ~np.isfinite(array), "finite numbers")
    if dtype is not None:
        target = np.dtype(dtype)
        if target.kind in "iu" and array.dtype.kind == "f":
            _refuse(name, array, array != np.floor(array), "whole numbers")
        if target.kind in "iu" and array.size:
            limits = np.iinfo(target.name)
            _refuse(
                name,
                array,
                (array > limits.max) | (array < limits.min),
                f"numbers that fit {target}",
            )
        array = array.astype(target, copy=False)
    text = _bounds(minimum, maximum, above, below)
    for limit, wrong in (
        (minimum, np.less),
        (maximum, np.greater),
        (above, np.less_equal),
        (below, np.greater_equal),
    ):
        if limit is not None:
            _refuse(name, array, wrong(array, limit), f"numbers{text}")
    return array


def check_probabilities(
    name: str, value: Any, *, axis: int = -1, tolerance: float = 1e-6, normalize: bool = False
) -> np.ndarray:
    """Check that the entries are non-negative and sum to 1 along ``axis``.

    Parameters
    ----------
    name : str
        How the user knows the array.
    value : array_like
        Probabilities; integers become float64, a float dtype is kept.
    axis : int
        The axis of the classes.
    tolerance : float
        How far a sum may be from 1 before it is an error; within it the rows are rescaled.
    normalize : bool
        Rescale whatever the sums are, as long as they are positive.

    Returns
    -------
    numpy.ndarray
        Rows that sum to 1 up to rounding.

    Raises
    ------
    InputError
        For negative entries, NaN, or sums that are not 1.
    """
    array = check_array(name, value, minimum=0)
    if array.ndim == 0:
        raise expected(name, "an array of probabilities", value)
    if array.dtype.kind != "f":
        array = array.astype(np.float64)
    sums = array.sum(axis=axis, keepdims=True)
    wrong = (sums <= 0) if normalize else (np.abs(sums - 1) > tolerance)
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        index = ", ".join(":" if i == axis % array.ndim else str(w) for i, w in enumerate(where))
        wanted = "a positive sum" if normalize else "probabilities that sum to 1"
        raise expected(f"{name}[{index}]", wanted, f"a sum of {float(sums[where]):.6g}")
    return array / sums


def _bounds(
    minimum: float | None, maximum: float | None, above: float | None, below: float | None
) -> str:
    signs = ((">=", minimum), ("<=", maximum), (">", above), ("<", below))
    parts = [f"{sign} {limit:.15g}" for sign, limit in signs if limit is not None]
    return " " + " and ".join(parts) if parts else ""


def _matches(found: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(found) == len(wanted) and all(
        w is None or f == w for f, w in zip(found, wanted, strict=True)
    )


def _refuse(name: str, array: np.ndarray, wrong: np.ndarray, expectation: str) -> None:
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0]) if array.ndim else ()
        index = f"[{', '.join(map(str, where))}]" if where else ""
        raise expected(f"{name}{index}", expectation, array[where].item())
