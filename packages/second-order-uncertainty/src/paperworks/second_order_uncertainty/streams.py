"""Files of members, logits or concentrations, read and written a few rows at a time."""

from __future__ import annotations

import contextlib
import math
import sys
import zipfile
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from paperworks.shared.errors import InputError, expected, require
from paperworks.shared.files import atomic_path
from paperworks.shared.validation import check_array, check_choice

from .distributions import SecondOrder

KINDS = {"samples": 3, "logits": 3, "dirichlet": 2}
CHUNK_ENTRIES = 1 << 20
_WEIGHTS, _LABELS = "weights", "labels"


class RowFile:
    """Second-order distributions in a file, one a row.

    Parameters
    ----------
    path : str
        ``.npy``, ``.npz`` (one array besides ``weights`` and ``labels``, plain or
        compressed) or ``.parquet`` (a column of nested lists).
    kind : {"samples", "logits", "dirichlet"}
        What the numbers are: ``[rows, members, classes]`` probabilities or logits, or
        ``[rows, classes]`` concentrations.
    name : str, optional
        The array in an npz or the column of a parquet file, where it has several.
    """

    def __init__(self, path: str, kind: str = "samples", name: str | None = None) -> None:
        self.path = path
        self.kind = check_choice("kind", kind, KINDS)
        suffix = Path(path).suffix.lower()
        if suffix not in (".npy", ".npz", ".parquet"):
            raise expected(path, "a .npy, .npz or .parquet file", f"a {suffix or 'nameless'} file")
        self.suffix = suffix
        with Path(path).open("rb"):
            pass  # a missing file is named before anything else
        self.names = self._names()
        self.name = self._choose(name)

    def chunks(self, rows: int | None = None) -> Iterator[SecondOrder]:
        """Read the file.

        Parameters
        ----------
        rows : int, optional
            How many rows at once; by default about a million numbers.

        Yields
        ------
        SecondOrder
            The next rows, validated.

        Raises
        ------
        InputError
            With the file's name and its first row of the chunk.
        """
        start = 0
        for values, weights in self._arrays(rows):
            try:
                if self.kind == "dirichlet":
                    q = SecondOrder.from_dirichlet(values)
                else:
                    make = (
                        SecondOrder.from_samples
                        if self.kind == "samples"
                        else SecondOrder.from_logits
                    )
                    q = make(values, weights)
            except InputError as error:
                where = f" (rows from {start})" if start else ""
                raise InputError(f"{self.path}{where}: {error}") from None
            yield q
            start += len(values)

    def labels(self, path: str | None = None) -> np.ndarray:
        """Read integer labels.

        Parameters
        ----------
        path : str, optional
            A ``.npy`` file, or text with one label a line; by default the array ``labels`` of the
            npz file.
        """
        if path is None:
            if self.suffix != ".npz" or _LABELS not in self.names:
                raise expected("--labels", "a file of labels", "none, nor an array labels in FILE")
            path = self.path
        try:
            if path.endswith(".npz"):
                with np.load(path, allow_pickle=False) as arrays:
                    values = arrays[_LABELS]
            elif path.endswith(".npy"):
                values = np.load(path, allow_pickle=False)
            else:
                values = np.loadtxt(path, ndmin=1)
        except (ValueError, KeyError, zipfile.BadZipFile):
            raise expected(path, "labels, one a row", "something else") from None
        return check_array(f"{path}: labels", values, ndim=1, dtype=np.int64, minimum=0)

    def _names(self) -> list[str]:
        if self.suffix == ".npz":
            try:
                with zipfile.ZipFile(self.path) as archive:
                    return [
                        n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")
                    ]
            except zipfile.BadZipFile:
                raise expected(self.path, "an npz file", "no zip archive") from None
        if self.suffix == ".parquet":
            with self._parquet() as file:
                return [field.name for field in file.schema_arrow]
        return []

    def _choose(self, name: str | None) -> str | None:
        if self.suffix == ".npy":
            return None
        if name is not None:
            if name not in self.names:
                raise expected(f"{self.path}: name", f"one of {', '.join(self.names)}", name)
            return name
        data = [n for n in self.names if n not in (_WEIGHTS, _LABELS)]
        if self.suffix == ".parquet":
            with self._parquet() as file:
                data = [f.name for f in file.schema_arrow if "list" in str(f.type).split("<")[0]]
        if len(data) != 1:
            found = f"{len(data)}: {', '.join(data)}" if data else "none"
            raise InputError(f"{self.path}: expected one array (or --name), found {found}")
        return data[0]

    @contextlib.contextmanager
    def _parquet(self) -> Generator[Any]:
        parquet = require(
            "pyarrow.parquet", package="paperworks-second-order-uncertainty", extra="parquet"
        )
        arrow = require("pyarrow", package="paperworks-second-order-uncertainty", extra="parquet")
        try:
            file = parquet.ParquetFile(self.path)
        except arrow.ArrowInvalid:
            raise expected(self.path, "a parquet file", "something else") from None
        try:
            yield file
        finally:
            file.close()

    def _arrays(self, rows: int | None) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        if self.suffix == ".parquet":
            yield from self._parquet_arrays(rows)
        elif self.suffix == ".npy":
            # Read rather than mapped: mapped pages would count as memory of the process.
            with Path(self.path).open("rb") as file:
                yield from self._pieces(_Member(file, self.path), None, None, rows)
        else:
            yield from self._npz_arrays(rows)

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(shape) != KINDS[self.kind]:
            axes = "(rows, classes)" if self.kind == "dirichlet" else "(rows, members, classes)"
            hint = ""
            if len(shape) == 2 and self.kind != "dirichlet":
                hint = ": members or classes are missing (concentrations need --kind dirichlet)"
            raise InputError(f"{self.path}: expected axes {axes}, found shape {shape}{hint}")
        return shape

    def _npz_arrays(self, rows: int | None) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        with zipfile.ZipFile(self.path) as archive, contextlib.ExitStack() as stack:
            main = _Member(stack.enter_context(archive.open(f"{self.name}.npy")), self.path)
            weights: np.ndarray | None = None
            beside: _Member | None = None
            if _WEIGHTS in self.names and self.kind != "dirichlet":
                beside = _Member(stack.enter_context(archive.open(f"{_WEIGHTS}.npy")), self.path)
                if len(beside.shape) != 2:
                    weights, beside = beside.read(math.prod(beside.shape[:1])), None
                elif beside.shape[:1] != main.shape[:1]:
                    found = f"shape {beside.shape}"
                    raise expected(f"{self.path}: weights", f"{main.shape[0]} rows", found)
            yield from self._pieces(main, weights, beside, rows)

    def _pieces(
        self,
        main: _Member,
        weights: np.ndarray | None,
        beside: _Member | None,
        rows: int | None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        shape = self._shape(main.shape)
        size = rows or max(1, CHUNK_ENTRIES // max(1, math.prod(shape[1:])))
        for start in range(0, shape[0], size):
            count = min(size, shape[0] - start)
            yield main.read(count), beside.read(count) if beside else weights

    def _parquet_arrays(self, rows: int | None) -> Iterator[tuple[np.ndarray, None]]:
        with self._parquet() as file:
            start = 0
            for batch in file.iter_batches(batch_size=rows or 4096, columns=[self.name]):
                if not batch.num_rows:
                    continue
                column = batch.column(0)
                shape = [len(column)]
                for level in range(KINDS[self.kind] - 1):
                    if (
                        not hasattr(column, "flatten")
                        or "list" not in str(column.type).split("<")[0]
                    ):
                        raise expected(
                            f"{self.path}: {self.name}",
                            f"{KINDS[self.kind] - 1} nested lists",
                            f"{level}",
                        )
                    lengths = np.asarray(column.value_lengths().fill_null(-1))
                    if np.any(lengths != lengths[0]) or lengths[0] < 0:
                        first = int(np.argmax((lengths != lengths[0]) | (lengths < 0)))
                        row = start + first // int(np.prod(shape[1:], initial=1))
                        raise expected(
                            f"{self.path}: {self.name}, row {row}",
                            "lists of one length",
                            "another or null",
                        )
                    shape.append(int(lengths[0]))
                    column = column.flatten()
                if "list" in str(column.type).split("<")[0]:
                    raise expected(
                        f"{self.path}: {self.name}", f"{KINDS[self.kind] - 1} nested lists", "more"
                    )
                yield column.to_numpy(zero_copy_only=False).reshape(shape), None
                start += shape[0]


class _Member:
    """An array inside an npz file, read from its beginning to its end."""

    def __init__(self, handle: IO[bytes], path: str) -> None:
        self.handle, self.path = handle, path
        try:
            version = np.lib.format.read_magic(handle)
            read = {
                (1, 0): np.lib.format.read_array_header_1_0,
                (2, 0): np.lib.format.read_array_header_2_0,
            }[version]
            self.shape, fortran, self.dtype = read(handle)
        except (ValueError, KeyError):
            raise expected(path, "arrays in npy format", "something else") from None
        if self.dtype.kind not in "fiu":
            raise expected(path, "an array of numbers", f"dtype {self.dtype}")
        if fortran and len(self.shape) > 1:
            raise expected(path, "arrays in C order (np.ascontiguousarray)", "Fortran order")

    def read(self, rows: int) -> np.ndarray:
        shape = (rows, *self.shape[1:])
        data = bytearray(math.prod(shape) * self.dtype.itemsize)
        view, done = memoryview(data), 0
        while done < len(data):
            # Pieces: the archive's reader would make a second copy of what it returns at once.
            piece = self.handle.read(min(1 << 22, len(data) - done))
            if not piece:
                raise expected(self.path, f"{shape} numbers", "the end of the file")
            view[done : done + len(piece)] = piece
            done += len(piece)
        return np.frombuffer(data, self.dtype).reshape(shape)


def write_columns(path: str, names: Sequence[str], chunks: Iterator[Sequence[np.ndarray]]) -> int:
    """Write columns as their rows come in; the file is whole or absent.

    Parameters
    ----------
    path : str
        ``.csv``, ``.parquet`` or ``.npz``; ``"-"`` is CSV on the standard output.
    names : sequence of str
        Of the columns.
    chunks : iterator of sequences of numpy.ndarray
        For each chunk of rows, one array a column.

    Returns
    -------
    int
        Number of rows.

    Raises
    ------
    InputError
        For another suffix.
    """
    if path == "-":
        return _write_csv(sys.stdout, names, chunks)
    suffix = Path(path).suffix.lower()
    if suffix not in (".csv", ".parquet", ".npz"):
        raise expected("--out", "a .csv, .parquet or .npz file", path)
    with atomic_path(path) as temporary:
        if suffix == ".csv":
            with temporary.open("w", encoding="utf-8", newline="\n") as file:
                return _write_csv(file, names, chunks)
        if suffix == ".parquet":
            return _write_parquet(temporary, names, chunks)
        kept = list(chunks)
        columns = [np.concatenate([c[i] for c in kept]) if kept else [] for i in range(len(names))]
        with temporary.open("wb") as binary:
            arrays: dict[str, Any] = dict(zip(names, columns, strict=True))
            np.savez(binary, **arrays)
        return sum(len(c[0]) for c in kept)


def _write_csv(file: Any, names: Sequence[str], chunks: Iterator[Sequence[np.ndarray]]) -> int:
    rows = 0
    file.write(",".join(names) + "\n")
    for columns in chunks:
        cells = [column.tolist() for column in columns]
        file.writelines(",".join(map(repr, row)) + "\n" for row in zip(*cells, strict=True))
        rows += len(columns[0])
    return rows


def _write_parquet(path: Path, names: Sequence[str], chunks: Iterator[Sequence[np.ndarray]]) -> int:
    arrow = require("pyarrow", package="paperworks-second-order-uncertainty", extra="parquet")
    parquet = require(
        "pyarrow.parquet", package="paperworks-second-order-uncertainty", extra="parquet"
    )
    rows, writer = 0, None
    try:
        for columns in chunks:
            table = arrow.table(dict(zip(names, columns, strict=True)))
            if writer is None:
                writer = parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
            rows += table.num_rows
        if writer is None:
            parquet.write_table(arrow.table({name: np.empty(0) for name in names}), path)
    finally:
        if writer is not None:
            writer.close()
    return rows
