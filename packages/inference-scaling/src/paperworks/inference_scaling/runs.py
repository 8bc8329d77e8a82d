"""Training runs: tables of params, tokens and loss, and what is checked before a fit."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import InputError, expected, require
from paperworks.shared.files import PathLike
from paperworks.shared.validation import check_array

COEFFICIENTS = 5
ALIASES: Mapping[str, tuple[str, ...]] = {
    "params": ("params", "n", "parameters", "num_params", "n_params", "model_size"),
    "tokens": ("tokens", "d", "num_tokens", "n_tokens", "train_tokens", "training_tokens"),
    "loss": ("loss", "l", "final_loss", "val_loss", "eval_loss", "validation_loss"),
}
_UNITS = {1e3: "thousands", 1e6: "millions", 1e9: "billions", 1e12: "trillions"}
_USUAL_RATIO = 20.0


class RunsWarning(UserWarning):
    """Runs that can be fitted but look like a mistake."""


@dataclass(frozen=True)
class Runs:
    """A table of training runs.

    Attributes
    ----------
    params, tokens, loss : array, shape (n,), float64
        Parameters, training tokens, final loss in nats a token.
    extra : dict of str to list
        The other columns as they were read.
    path : str
        Where they come from.
    """

    params: np.ndarray
    tokens: np.ndarray
    loss: np.ndarray
    extra: dict[str, list[Any]] = field(default_factory=dict)
    path: str = ""


def read_runs(path: PathLike) -> Runs:
    """Read runs from a CSV, Parquet or JSONL file.

    Parameters
    ----------
    path : path_like
        The suffix decides: ``.parquet`` (needs the extra ``tables``), ``.jsonl`` or ``.ndjson``,
        and CSV for all others. ``"-"`` is CSV on the standard input. Columns are ``params``,
        ``tokens`` and ``loss``, or the aliases N, D, L and the like; others are kept.

    Raises
    ------
    InputError
        In one line with the row's number in the file, for a missing column or a cell that is no
        finite number > 0.
    """
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        rows, first = _parquet(path), 1
    else:
        raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise expected(str(path), "a table in UTF-8", "other bytes") from None
        if suffix in (".jsonl", ".ndjson"):
            rows, first = _jsonl(text, path), 1
        else:
            rows, first = _csv(text, path), 2
    if not rows:
        raise expected(str(path), "a table of runs", "no rows")
    names = {name: _column(rows[0], name, path) for name in ALIASES}
    columns = {
        name: np.array(
            [_number(row, key, f"{path}:{i}", name) for i, row in enumerate(rows, first)]
        )
        for name, key in names.items()
    }
    used = set(names.values())
    extra = {key: [row.get(key) for row in rows] for key in rows[0] if key not in used}
    return Runs(**columns, extra=extra, path=str(path))


def check_runs(
    params: ArrayLike, tokens: ArrayLike, loss: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check that a law can be fitted to runs and return them as float64 arrays.

    Warns
    -----
    RunsWarning
        For exact duplicates and for token counts that look like another unit.

    Raises
    ------
    InputError
        For entries that are not finite numbers > 0, fewer runs than coefficients, a constant
        column, and params and tokens so related that alpha and beta cannot be told apart.
    """
    n = check_array("params", params, ndim=1, dtype=np.float64, above=0)
    d = check_array("tokens", tokens, shape=n.shape, dtype=np.float64, above=0)
    y = check_array("loss", loss, shape=n.shape, dtype=np.float64, above=0)
    check_identified(n, d, y)
    _warn_duplicates(np.stack([n, d, y], axis=1))
    _warn_units(n, d)
    return n, d, y


def check_identified(params: np.ndarray, tokens: np.ndarray, loss: np.ndarray) -> None:
    """Refuse runs that cannot tell the coefficients apart.

    Raises
    ------
    InputError
        For fewer runs than coefficients, a constant column, and tokens that follow from params.
    """
    check_count(len(params))
    for name, column in (("params", params), ("tokens", tokens), ("loss", loss)):
        if np.all(column == column[0]):
            raise expected(name, "different values", f"{column[0]:.6g} in every run")
        if len(np.unique(column)) < 3:  # two values cannot tell A from alpha, or B from beta
            raise expected(name, "at least three different values", "two")
    x, z = np.log(params), np.log(tokens)
    slope = float(np.cov(x, z, ddof=0)[0, 1] / np.var(x))
    if np.std(z - slope * x) < 1e-9 * max(1.0, float(np.std(z))):
        ratios = tokens / params
        if np.ptp(np.log(ratios)) < 1e-6:
            found = f"{ratios[0]:.6g} in every run: alpha and beta are not identified"
        else:
            found = f"tokens ~ params^{slope:.3g} in every run: alpha and beta are not identified"
        raise expected("tokens / params", "different ratios at the same size", found)


def check_count(count: int, where: str = "runs") -> None:
    """Refuse fewer runs than the law has coefficients."""
    if count < COEFFICIENTS:
        raise expected(where, f"at least {COEFFICIENTS} runs, one a coefficient", count)


def data_hash(params: np.ndarray, tokens: np.ndarray, loss: np.ndarray) -> str:
    """Digest of the runs in their order."""
    data = np.ascontiguousarray(np.stack([params, tokens, loss]), dtype="<f8")
    return hashlib.sha256(data.tobytes()).hexdigest()


def format_rows(rows: Sequence[Mapping[str, Any]], style: str) -> str:
    """Render flat rows as ``"csv"`` or ``"markdown"``."""
    names = list(rows[0])
    if style == "csv":
        out = io.StringIO()
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return out.getvalue()
    lines = [names, ["---"] * len(names)]
    lines += [
        [f"{v:.6g}" if isinstance(v, float) else str(v) for v in row.values()] for row in rows
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _warn_duplicates(table: np.ndarray) -> None:
    _, first, counts = np.unique(table, axis=0, return_index=True, return_counts=True)
    if len(first) < len(table):
        repeated = int(first[counts > 1].min())
        warnings.warn(
            f"{len(table) - len(first)} runs are exact duplicates (the first of run {repeated}, "
            "counted from 0): they count twice in the fit",
            RunsWarning,
            stacklevel=4,
        )


def _warn_units(params: np.ndarray, tokens: np.ndarray) -> None:
    if np.median(params) < 1e3:
        warnings.warn(
            "half of the runs have fewer than 1,000 parameters: are they in millions or billions?",
            RunsWarning,
            stacklevel=4,
        )
    few = tokens < params * 1e-3
    if not few.any():
        return
    ratio = float(np.median(tokens[few] / params[few]))
    unit = min(_UNITS, key=lambda factor: abs(np.log(ratio * factor / _USUAL_RATIO)))
    warnings.warn(
        f"{few.sum()} runs have fewer than 0.001 tokens per parameter (run "
        f"{int(np.argmax(few))}, counted from 0): are tokens in {_UNITS[unit]}?",
        RunsWarning,
        stacklevel=4,
    )


def _csv(text: str, path: PathLike) -> list[dict[str, Any]]:
    # Universal newlines: old spreadsheets end lines with a carriage return alone.
    reader = csv.DictReader(io.StringIO(text, newline=None), skipinitialspace=True)
    rows = []
    try:
        for row in reader:
            if None in row or None in row.values():
                count, where = len(reader.fieldnames or ()), f"{path}:{reader.line_num}"
                raise expected(where, f"{count} cells", "another number of them")
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: expected CSV, found: {error}") from None
    return rows


def _jsonl(text: str, path: PathLike) -> list[dict[str, Any]]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{number}: expected JSON, found: {error.msg}") from None
        except (ValueError, RecursionError):  # Python's limits of digits and of depth
            found = "a number too long or lists too deep"
            raise expected(f"{path}:{number}", "JSON", found) from None
        if not isinstance(row, dict):
            raise expected(f"{path}:{number}", "a JSON object", row)
        rows.append(row)
    return rows


def _parquet(path: PathLike) -> list[dict[str, Any]]:
    pandas = require("pandas", package="paperworks-inference-scaling", extra="tables")
    require("pyarrow", package="paperworks-inference-scaling", extra="tables")
    Path(path).open("rb").close()
    try:
        return pandas.read_parquet(path).to_dict("records")
    except (ValueError, OSError) as error:  # what pyarrow raises for other and damaged files
        raise InputError(f"{path}: expected a Parquet file: {error}") from None


def _column(row: Mapping[str, Any], name: str, path: PathLike) -> str:
    found = [key for key in row if key.strip().lower() in ALIASES[name]]
    if not found:
        wanted = f"a column {name} (or {', '.join(ALIASES[name][1:4])}, ...)"
        raise expected(str(path), wanted, f"columns {', '.join(row)}")
    if len(found) > 1:
        raise expected(str(path), f"one column of {name}", f"columns {', '.join(found)}")
    return found[0]


def _number(row: Mapping[str, Any], key: str, where: str, name: str) -> float:
    value: Any = row.get(key)
    try:
        number = np.nan if isinstance(value, bool | np.bool_) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if not np.isfinite(number) or number <= 0:
        raise expected(f"{where}: {name}", "a finite number > 0", value)
    return number
