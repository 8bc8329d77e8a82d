"""Tables of numbers in text files."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np

from paperworks.shared.errors import InputError, expected


def read_rows(path: str | os.PathLike[str]) -> np.ndarray:
    """Read a CSV file of numbers.

    Parameters
    ----------
    path : path_like
        The file; ``"-"`` is the standard input. Empty lines are passed over.

    Returns
    -------
    numpy.ndarray, shape (rows, columns), float64
        The numbers.

    Raises
    ------
    InputError
        With file and line, for a cell that is no number or a line of another length; for a file
        without numbers.
    """
    text = sys.stdin.read() if str(path) == "-" else Path(path).read_text(encoding="utf-8")
    rows: list[list[float]] = []
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split(",")
        if not line.strip():
            continue
        if rows and len(cells) != len(rows[0]):
            raise InputError(f"{path}:{number}: expected {len(rows[0])} cells, found {len(cells)}")
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            raise InputError(f"{path}:{number}: expected numbers, found {line[:40]!r}") from None
    if not rows:
        raise expected(str(path), "lines of numbers", "an empty file")
    return np.array(rows)


def format_rows(rows: np.ndarray) -> str:
    """Write rows as CSV text that reads back to the same numbers."""
    return "".join(",".join(map(repr, row)) + "\n" for row in rows.tolist())
