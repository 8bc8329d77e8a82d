"""Files of members, logits or concentrations, read and written a few rows at a time."""

from __future__ import annotations

import contextlib
import math
import struct
import sys
import zipfile
import zlib
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
        ``.npy``, ``.npz`` (one array besides ``weights`` and ``labels``, plain or compressed) or
        ``.parquet`` (a column of nested lists besides ``weights`` and ``labels``). An array in
        Fortran order is read whole.
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
            A ``.npy`` file, text with one label a line, or an ``.npz`` or ``.parquet`` file with
            ``labels``; by default those of the file itself.

        Raises
        ------
        InputError
            For a file without labels or with what are none.
        """
        if path is None:
            if _LABELS not in self.names:
                raise expected("--labels", "a file of labels", "none, nor labels in FILE")
            path = self.path
        with Path(path).open("rb") as file:
            if not file.read(1):
                raise expected(path, "labels, one a row", "an empty file")
        try:
            values = _read_labels(path)
        except KeyError:
            raise expected(path, f"an array {_LABELS}", "no such array") from None
        except (ValueError, *_DAMAGED) as error:
            raise expected(path, "labels, one a row", str(error)) from None
        return check_array(f"{path}: labels", values, ndim=1, dtype=np.int64, minimum=0)

    def _names(self) -> list[str]:
        if self.suffix == ".npz":
            try:
                with zipfile.ZipFile(self.path) as archive:
                    names = archive.namelist()
                return [n.removesuffix(".npy") for n in names if n.endswith(".npy")]
            except zipfile.BadZipFile:
                raise expected(self.path, "an npz file", "no zip archive") from None
        if self.suffix == ".parquet":
            with _parquet(self.path) as file:
                return [field.name for field in file.schema_arrow]
        return []

    def _choose(self, name: str | None) -> str:
        if self.suffix == ".npy":
            return ""
        if name is not None:
            if name not in self.names:
                raise expected(f"{self.path}: name", f"one of {', '.join(self.names)}", name)
            return name
        data = self.names
        if self.suffix == ".parquet":
            with _parquet(self.path) as file:
                data = [field.name for field in file.schema_arrow if _is_list(field.type)]
        data = [n for n in data if n not in (_WEIGHTS, _LABELS)]
        if len(data) != 1:
            found = f"{len(data)}: {', '.join(data)}" if data else "none"
            raise InputError(f"{self.path}: expected one array (or --name), found {found}")
        return data[0]

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

    def _parquet_arrays(self, rows: int | None) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        weighted = _WEIGHTS in self.names and self.kind != "dirichlet" and self.name != _WEIGHTS
        columns = [self.name, *[_WEIGHTS] * weighted]
        axes = (KINDS[self.kind], 2)
        with _parquet(self.path) as file:
            start = 0
            size = rows or _rows_that_fit(file.metadata, self.name)
            for batch in file.iter_batches(batch_size=size, columns=columns):
                if not batch.num_rows:
                    continue
                values, *weights = (
                    self._nested(batch.column(name), name, axis, start)
                    for name, axis in zip(columns, axes, strict=False)
                )
                yield values, weights[0] if weights else None
                start += batch.num_rows

    def _nested(self, column: Any, name: str, axes: int, start: int) -> np.ndarray:
        """Make an array with this many axes of nested lists."""
        where, wanted = f"{self.path}: {name}", f"{axes - 1} nested lists"
        shape = [len(column)]
        for level in range(axes - 1):
            if not _is_list(column.type):
                raise expected(where, wanted, f"{level}")
            lengths = np.asarray(column.value_lengths().fill_null(-1))
            wrong = (lengths != lengths[:1]) | (lengths < 1)
            if wrong.any():
                row = start + int(np.argmax(wrong)) // math.prod(shape[1:])
                found = "an empty list, another length or null"
                raise expected(f"{where}, row {row}", "lists of one length", found)
            shape.append(int(lengths[0]))
            column = column.flatten()
        if _is_list(column.type):
            raise expected(where, wanted, "more")
        return column.to_numpy(zero_copy_only=False).reshape(shape)


_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, struct.error)
"""What readers raise for archives and arrays that were cut or changed."""


def _read_labels(path: str) -> np.ndarray:
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[_LABELS]
    if suffix == ".parquet":
        with _parquet(path) as file:
            return file.read(columns=[_LABELS]).column(_LABELS).to_numpy()
    if suffix == ".npy":
        return np.load(path, allow_pickle=False)
    return np.loadtxt(path, ndmin=1)


@contextlib.contextmanager
def _parquet(path: str) -> Generator[Any]:
    parquet, arrow = _arrow("pyarrow.parquet"), _arrow("pyarrow")
    try:
        file = parquet.ParquetFile(path)
    except arrow.ArrowInvalid:
        raise expected(path, "a parquet file", "something else") from None
    try:
        yield file
    except (arrow.ArrowInvalid, OSError) as error:
        if isinstance(error, OSError) and error.filename is not None:
            raise
        raise expected(path, "a parquet file", f"a damaged one: {error}") from None
    finally:
        file.close()


def _arrow(module: str) -> Any:
    return require(module, package="paperworks-second-order-uncertainty", extra="parquet")


def _is_list(kind: Any) -> bool:
    return "list" in str(kind).split("<")[0]


def _rows_that_fit(metadata: Any, name: str) -> int:
    """Rows of about a million numbers, by the counts that the file states."""
    numbers = sum(
        chunk.num_values
        for group in map(metadata.row_group, range(metadata.num_row_groups))
        for chunk in map(group.column, range(group.num_columns))
        if chunk.path_in_schema.partition(".")[0] == name
    )
    return max(1, CHUNK_ENTRIES * metadata.num_rows // max(1, numbers))


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
        if self.dtype.kind not in "fiub":
            raise expected(path, "an array of numbers", f"dtype {self.dtype}")
        self.start = 0
        self.whole: np.ndarray | None = None
        if fortran and len(self.shape) > 1:  # its rows are scattered over the file
            self.whole = self._next(self.shape[::-1]).T

    def read(self, rows: int) -> np.ndarray:
        if self.whole is not None:
            self.start += rows
            return np.ascontiguousarray(self.whole[self.start - rows : self.start])
        return self._next((rows, *self.shape[1:]))

    def _next(self, shape: tuple[int, ...]) -> np.ndarray:
        data = bytearray(math.prod(shape) * self.dtype.itemsize)
        view, done = memoryview(data), 0
        while done < len(data):
            # Pieces: the archive's reader would make a second copy of what it returns at once.
            try:
                piece = self.handle.read(min(1 << 22, len(data) - done))
            except _DAMAGED as error:
                raise expected(self.path, "a whole file", f"a damaged one: {error}") from None
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
    rows, header = 0, ",".join(names) + "\n"
    for columns in chunks:
        if not rows:  # not before the first rows are known to be good
            file.write(header)
        cells = [column.tolist() for column in columns]
        file.writelines(",".join(map(repr, row)) + "\n" for row in zip(*cells, strict=True))
        rows += len(columns[0])
    if not rows:
        file.write(header)
    return rows


def _write_parquet(path: Path, names: Sequence[str], chunks: Iterator[Sequence[np.ndarray]]) -> int:
    arrow, parquet = _arrow("pyarrow"), _arrow("pyarrow.parquet")
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
