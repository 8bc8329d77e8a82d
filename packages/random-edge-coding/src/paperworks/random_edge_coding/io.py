"""Edge lists in and out: SNAP and KONECT text, TUDataset, CSV, Parquet, Matrix Market, NumPy."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np

from paperworks.shared.errors import InputError, expected, require
from paperworks.shared.files import write_bytes
from paperworks.shared.validation import check_choice, check_number

from .graph import MAX_NODES, Graph

FORMATS = ("auto", "text", "csv", "parquet", "mtx", "npz", "tu")
_ANY_ID = 1 << 63  # what int64 labels stay below
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".mtx": "mtx", ".npz": "npz"}
_PACKED = (".gz", ".xz", ".zst")
_COLUMN_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_SEPARATOR = re.compile(r"[ \t]*,[ \t]*|[ \t]+")
_OWN_HEADER = re.compile(rb"# paperworks: (un)?directed, (\d{1,10}) nodes", re.ASCII)

Notice = Callable[[str], None]


def read_edges(
    source: str | os.PathLike[str] | IO[bytes],
    *,
    format: str = "auto",
    directed: bool | None = None,
    relabel: bool = False,
    num_nodes: int | None = None,
    columns: tuple[str, str] | None = None,
    notice: Notice | None = None,
) -> tuple[Graph, np.ndarray | None]:
    """Read an edge list.

    Parameters
    ----------
    source : path_like or binary file
        ``"-"`` is the standard input. gzip, xz and Zstandard are recognised by their first bytes.
    format : {"auto", "text", "csv", "parquet", "mtx", "npz", "tu"}
        ``"auto"`` goes by the name, then by the contents. Text: two ids a line, separated by blanks
        or a comma, ``#`` and ``%`` comments, further columns ignored. TUDataset (``tu``): text, ids
        from 1, both directions of each edge.
    directed : bool, optional
        By default what the file says (SNAP, KONECT and Matrix Market headers, NumPy archives), else
        undirected.
    relabel : bool
        Number the ids that occur 0, 1, ... in increasing order, and return them. Needed for strings
        and for ids from ``2**31 - 1`` on. Without it ids are kept, and those that do not occur are
        isolated vertices.
    num_nodes : int, optional
        Number of vertices; by default one more than the largest id, or what the file says.
    columns : tuple of str, optional
        Names of the two columns of a CSV or Parquet file; by default source and target (or alike),
        or the first two.
    notice : callable, optional
        Called with one line about each thing that a careful user wants to know.

    Returns
    -------
    graph : Graph
    labels : ndarray of int64 or str, shape (num_nodes,), or None
        None unless ``relabel``.

    Raises
    ------
    InputError
        ``FILE:LINE: what was expected, what was found``.
    """
    check_choice("format", format, FORMATS)
    if num_nodes is not None:
        num_nodes = check_number("num_nodes", num_nodes, integer=True, minimum=0, maximum=MAX_NODES)
        if relabel:
            raise InputError(
                "num_nodes: expected nothing together with relabel, which counts the ids itself"
            )
    name, data = _load(source)
    format = _guess_format(name, data) if format == "auto" else format
    say = notice or (lambda line: None)
    if columns is not None and format not in ("csv", "parquet"):
        raise expected("columns", "a CSV or Parquet file", f"a file of format {format}")
    if relabel and format == "tu":
        raise InputError(f"{name}: relabel: TUDataset files number their vertices themselves")
    limit = _ANY_ID if relabel else (MAX_NODES if num_nodes is None else num_nodes)
    if format in ("text", "tu"):
        header = _text_header(data)
        if directed is None:
            directed = header.get("directed", False)
        if num_nodes is None and not relabel:
            num_nodes = header.get("num_nodes")
            limit = min(limit, limit if num_nodes is None else num_nodes)
        pairs = _parse_text(name, data, limit + (format == "tu"), relabel, say)
        if format == "tu":
            return _finish_tu(name, pairs, directed, num_nodes)
    elif format == "mtx":
        return _read_matrix_market(name, data, directed, relabel, num_nodes)
    elif format == "npz":
        pairs, stored_nodes, stored_directed, both = _read_npz(name, data)
        directed = stored_directed if directed is None else directed
        num_nodes = stored_nodes if num_nodes is None and not relabel else num_nodes
        if both and not directed and not relabel:
            _check_pairs(name, pairs, limit if num_nodes is None else num_nodes, relabel)
            try:
                halved = Graph.from_edge_index(pairs.T, num_nodes)
            except InputError:
                pass  # one direction only: plain edges
            else:
                say(f"{name}: edge_index has both directions of each edge, taken as one")
                return halved, None
    else:
        pairs = _read_table(name, data, format, columns, relabel)
    if not len(pairs):
        say(f"{name}: no edges, an empty graph")
    if pairs.dtype.kind != "i" or format not in ("text", "tu"):
        _check_pairs(name, pairs, limit if num_nodes is None else num_nodes, relabel)
    if relabel:
        return _number(pairs, bool(directed))
    graph = Graph(pairs, num_nodes, directed=bool(directed))
    return graph, None


def write_edges(
    path: str | os.PathLike[str],
    graph: Graph,
    *,
    labels: np.ndarray | None = None,
    format: str = "auto",
) -> None:
    """Write an edge list; text, Matrix Market and NumPy archives read back as the same graph.

    Parameters
    ----------
    path : path_like
        ``"-"`` is the standard output. CSV and Parquet hold edges only: whoever reads them gives
        direction and number of vertices. A last suffix ``.gz``, ``.xz`` or ``.zst`` packs the file.
    graph : Graph
        What to write, in canonical order.
    labels : ndarray, shape (num_nodes,), optional
        Written in place of the ids (text, CSV and Parquet). Isolated vertices are then lost.
    format : {"auto", "text", "csv", "parquet", "mtx", "npz"}
        ``"auto"`` goes by the name; text if that says nothing.

    Raises
    ------
    InputError
        For a format that cannot hold what it should.
    """
    check_choice("format", format, [f for f in FORMATS if f != "tu"])
    stem, packing = _split_packing(str(path))
    if format == "auto":
        format = _SUFFIXES.get(Path(stem).suffix.lower(), "text")
        if stem.endswith("_A.txt"):
            raise InputError(f"{path}: expected another name: *_A.txt is read as TUDataset")
    if labels is not None and len(labels) != graph.num_nodes:
        raise expected("labels", f"one for each of the {graph.num_nodes} vertices", len(labels))
    if labels is not None and format in ("mtx", "npz"):
        raise expected("format", "text, csv or parquet for a graph with labels", format)
    data = _serialize(graph, labels, format)
    if packing == ".gz":
        data = gzip.compress(data, mtime=0)
    elif packing == ".xz":
        data = lzma.compress(data)
    elif packing == ".zst":
        data = _require("zstandard").compress(data)
    write_bytes(path, data)


# --- reading --------------------------------------------------------------------------------------


def _require(module: str) -> Any:
    return require(module, package="paperworks-random-edge-coding", extra="formats")


def _split_packing(name: str) -> tuple[str, str]:
    stem, suffix = os.path.splitext(name)
    return (stem, suffix.lower()) if suffix.lower() in _PACKED else (name, "")


def _load(source: str | os.PathLike[str] | IO[bytes]) -> tuple[str, bytes]:
    """Name and unpacked contents."""
    if isinstance(source, str | os.PathLike):
        name = str(source)
        if name == "-":
            name, data = "stdin", sys.stdin.buffer.read()
        else:
            try:
                data = Path(source).read_bytes()
            except OSError as error:
                raise InputError(f"{name}: cannot be read: {error.strerror}") from None
    else:
        name, data = str(getattr(source, "name", "input")), source.read()
    try:
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        elif data.startswith(b"\xfd7zXZ\x00"):
            data = lzma.decompress(data)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            data = _unpack_zstandard(name, data)
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{name}: cannot be unpacked: {error}") from None
    return name, data


def _unpack_zstandard(name: str, data: bytes) -> bytes:
    """Unpack all frames; unlike its reader, zstandard's decompression objects tell a cut file."""
    zstandard = _require("zstandard")
    parts = []
    try:
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise InputError(f"{name}: cannot be unpacked: the file is cut")
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise InputError(f"{name}: cannot be unpacked: {error}") from None
    return b"".join(parts)


def _guess_format(name: str, data: bytes) -> str:
    stem, _ = _split_packing(name)
    if data.startswith(b"PWREC"):
        raise InputError(f"{name}: expected an edge list, found a compressed graph: decompress it")
    if data.startswith(b"%%MatrixMarket"):
        return "mtx"
    if data.startswith(b"PAR1"):
        return "parquet"
    if data.startswith(b"PK\x03\x04"):
        return "npz"
    if stem.endswith("_A.txt"):
        return "tu"
    if Path(stem).suffix.lower() == ".csv":
        first = next(
            (line for line in data[:65536].splitlines() if line.strip() and line[:1] not in b"#%"),
            b"",
        )
        return "text" if re.match(rb"\s*\d", first) else "csv"
    return "text"


def _text_header(data: bytes) -> dict[str, Any]:
    """Read the comments at the top: ours, SNAP's ``# Directed graph``, KONECT's ``% sym``."""
    found: dict[str, Any] = {}
    for line in data[:65536].splitlines():
        if line[:1] not in (b"#", b"%"):
            break
        if own := _OWN_HEADER.match(line):
            return {"directed": own[1] is None, "num_nodes": int(own[2])}
        words = line.lstrip(b"#% ").lower().split()
        if line[:1] == b"#" and len(words) > 1 and words[1].startswith(b"graph"):
            if words[0] in (b"directed", b"undirected"):
                found["directed"] = words[0] == b"directed"
        elif line[:1] == b"%" and words[:1] in ([b"sym"], [b"asym"], [b"bip"]):
            found["directed"] = words[0] != b"sym"
    return found


def _parse_text(name: str, data: bytes, limit: int, relabel: bool, say: Notice) -> np.ndarray:
    """Parse two columns of ids, shape (m, 2); int64, or str when relabelling asks for it."""
    from .text import parse_lines

    if not data.endswith(b"\n"):
        data += b"\n"
    array = np.frombuffer(data, np.uint8)
    pairs = np.empty((int(np.count_nonzero(array == 10)), 2), np.int64)
    place, line, count, extra = (3 if data.startswith(b"\xef\xbb\xbf") else 0), 1, 0, False
    fast = min(limit, _ANY_ID - 1)  # fits int64
    while True:
        place, line, count, more = parse_lines(array, place, line, pairs, count, fast)
        extra |= more
        if place >= len(data):
            break
        end = data.index(b"\n", place)
        text = data[place:end].decode("utf-8", "replace").strip(" \t\r")
        row = _parse_odd_line(f"{name}:{line}", text, limit, relabel)
        if row is None:
            return _parse_strings(name, data, say)
        pairs[count] = row
        place, line, count = end + 1, line + 1, count + 1
    if extra:
        say(f"{name}: columns after the second one are ignored")
    return pairs[:count]


def _parse_odd_line(where: str, text: str, limit: int, relabel: bool) -> tuple[int, int] | None:
    """Parse a line that is not plain, or say what is wrong; None for strings to relabel."""
    if "\r" in text:
        raise InputError(f"{where}: expected line ends LF or CR LF, found CR alone")
    tokens = _SEPARATOR.split(text)
    if len(tokens) < 2:
        raise InputError(f"{where}: expected two ids, found one column: {text[:40]!r}")
    ids = []
    for token in tokens[:2]:
        if len(token) > 40:  # no 64-bit id; also longer than Python converts
            if relabel:
                return None
            raise InputError(f"{where}: expected two integer ids, found {token[:40]}...")
        if re.fullmatch(r"[+-]?\d+(\.0*)?", token, re.ASCII):
            value = int(token.partition(".")[0])
        elif relabel and token:
            return None
        else:
            raise InputError(f"{where}: expected two integer ids, found {token[:40]!r}")
        if value < 0:
            if relabel:
                return None
            raise InputError(f"{where}: expected ids >= 0, found {value}")
        if value >= limit:
            hint = " (relabel takes larger ones)" if limit == MAX_NODES else ""
            raise InputError(f"{where}: expected ids below {limit}{hint}, found {value}")
        ids.append(value)
    return ids[0], ids[1]


def _parse_strings(name: str, data: bytes, say: Notice) -> np.ndarray:
    """Parse two columns of arbitrary tokens."""
    rows = []
    extra = False
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{name}:{line}: expected UTF-8 text, found other bytes") from None
    for number, line in enumerate(text.split("\n"), 1):
        line = line.strip(" \t\r")
        if not line or line[0] in "#%":
            continue
        tokens = _SEPARATOR.split(line, 2)
        if len(tokens) < 2 or not tokens[0] or not tokens[1]:
            raise InputError(f"{name}:{number}: expected two ids, found {line[:40]!r}")
        extra |= len(tokens) > 2
        rows.append(tokens[:2])
    if extra:
        say(f"{name}: columns after the second one are ignored")
    return np.array(rows, dtype=object).reshape(-1, 2)


def _finish_tu(
    name: str, pairs: np.ndarray, directed: bool | None, num_nodes: int | None
) -> tuple[Graph, np.ndarray | None]:
    if pairs.dtype.kind != "i" or (pairs.size and pairs.min() < 1):
        raise InputError(f"{name}: expected integer ids from 1 on, as TUDataset has them")
    try:
        return Graph.from_edge_index(pairs.T - 1, num_nodes, directed=bool(directed)), None
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _read_matrix_market(
    name: str, data: bytes, directed: bool | None, relabel: bool, num_nodes: int | None
) -> tuple[Graph, np.ndarray | None]:
    from scipy.io import mminfo, mmread

    try:
        *_, symmetry = mminfo(io.BytesIO(data))
        matrix = mmread(io.BytesIO(data))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{name}: not a Matrix Market file: {error}") from None
    rows, columns = (
        np.asarray(c, np.int64) for c in (matrix.coords if hasattr(matrix, "coords") else ((), ()))
    )
    if not hasattr(matrix, "coords"):
        raise InputError(f"{name}: expected a coordinate matrix, found a dense array")
    if matrix.shape[0] != matrix.shape[1]:
        raise InputError(
            f"{name}: expected a square matrix, found {matrix.shape[0]} x {matrix.shape[1]}"
        )
    symmetric = symmetry != "general"
    if directed is None:
        directed = not symmetric
    if symmetric and not directed:
        rows, columns = rows[rows <= columns], columns[rows <= columns]
    pairs = np.stack([rows, columns], axis=1)
    if relabel:
        return _number(pairs + 1, directed)  # the file counts from 1
    size = matrix.shape[0] if num_nodes is None else num_nodes
    if size < matrix.shape[0]:
        raise expected("num_nodes", f"at least the matrix's {matrix.shape[0]}", size)
    return Graph(pairs, size, directed=directed), None


def _read_npz(name: str, data: bytes) -> tuple[np.ndarray, int | None, bool | None, bool]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            entries = {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{name}: not a NumPy archive: {error}") from None
    if "edges" in entries:
        pairs = entries["edges"]
    elif "edge_index" in entries:
        pairs = entries["edge_index"].T
    else:
        raise expected(
            name, "an array named edges or edge_index", ", ".join(sorted(entries)) or "nothing"
        )
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuf":
        raise expected(name, "integers of shape (m, 2)", f"{pairs.dtype} of shape {pairs.shape}")
    nodes = entries.get("num_nodes")
    if nodes is not None:
        nodes = check_number(
            f"{name}: num_nodes", nodes, integer=True, minimum=0, maximum=MAX_NODES
        )
    flag = entries.get("directed")
    if flag is not None and (flag.shape != () or flag.dtype.kind not in "biu"):
        raise expected(f"{name}: directed", "one true or false", f"shape {flag.shape}")
    return pairs, nodes, None if flag is None else bool(flag), "edges" not in entries


def _read_table(
    name: str, data: bytes, format: str, columns: tuple[str, str] | None, relabel: bool
) -> np.ndarray:
    pyarrow = _require("pyarrow")
    try:
        if format == "parquet":
            table = _require("pyarrow.parquet").read_table(io.BytesIO(data))
        else:
            table = _require("pyarrow.csv").read_csv(io.BytesIO(data))
    except pyarrow.ArrowException as error:
        raise InputError(f"{name}: not a {format} file: {error}") from None
    names = table.column_names
    if columns is None:
        lower = {n.lower(): n for n in reversed(names)}
        known = (
            tuple(lower[n] for n in pair) for pair in _COLUMN_NAMES if all(n in lower for n in pair)
        )
        columns = next(known, None)
        if columns is None:
            raise InputError(
                f"{name}: expected a header with source,target (or name two columns), "
                f"found {','.join(names)[:60] or 'none'}"
            )
    if any(names.count(c) > 1 for c in columns):
        raise expected(name, "columns of different names", ",".join(names)[:60])
    if len(columns) != 2 or not set(columns) <= set(names):
        raise expected(
            name, f"columns {', '.join(columns) or 'source and target'}", ", ".join(names) or "none"
        )
    first, second = (_column(name, table[c], c, relabel) for c in columns)
    if first.dtype.kind in "iuf" and second.dtype.kind in "iuf":
        kind = np.float64 if "f" in first.dtype.kind + second.dtype.kind else np.int64
        first, second = first.astype(kind), second.astype(kind)
    elif first.dtype != second.dtype:
        first, second = (
            np.array([str(x) for x in side.tolist()], object) for side in (first, second)
        )
    return np.stack([first, second], axis=1)


def _column(name: str, column: Any, title: str, relabel: bool) -> np.ndarray:
    if column.null_count:
        row = column.is_null().to_pylist().index(True)
        raise InputError(f"{name}: row {row + 1}: expected an id in column {title}, found nothing")
    if not len(column):
        return np.empty(0, np.int64)
    values = column.to_numpy()
    if values.dtype.kind in "uf" and len(values):
        # Beyond these a float or int64 no longer tells ids apart.
        exact = 2**63 if values.dtype.kind == "u" else 2**53
        if np.any(values >= exact):
            row = int(np.argmax(values >= exact))
            raise InputError(
                f"{name}: row {row + 1}: expected ids below {exact} in column {title}, "
                f"found {values[row]}"
            )
    if values.dtype.kind in "iuf":
        return values
    if not all(isinstance(x, str) for x in values[:1].tolist()):
        raise InputError(
            f"{name}: expected integers or UTF-8 strings in column {title}, found {column.type}"
        )
    if not relabel:
        raise InputError(
            f"{name}: row 1: expected integer ids in column {title}, found {str(values[0])[:40]!r}"
        )
    return np.array([str(x) for x in values.tolist()], object)


def _check_pairs(name: str, pairs: np.ndarray, limit: int, relabel: bool) -> None:
    """Check ids that did not come through the text parser; rows count from 1."""
    if pairs.dtype.kind == "O" or not len(pairs):
        return
    with np.errstate(invalid="ignore"):
        wrong = (
            ~(pairs == np.floor(pairs)) if pairs.dtype.kind == "f" else np.zeros(pairs.shape, bool)
        )
        wrong |= (pairs >= limit) | ((pairs < 0) & (not relabel))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        hint = " (relabel takes larger ones)" if limit == MAX_NODES else ""
        found = pairs[row, column].item()
        raise InputError(
            f"{name}: row {row + 1}: expected integer ids from 0 below {limit}{hint}, found {found}"
        )


def _number(pairs: np.ndarray, directed: bool) -> tuple[Graph, np.ndarray]:
    if pairs.dtype.kind != "O":
        return Graph.from_labels(pairs.astype(np.int64), directed=directed)
    labels = sorted(set(pairs.reshape(-1).tolist()))
    place = {label: i for i, label in enumerate(labels)}
    ids = np.array([place[label] for label in pairs.reshape(-1).tolist()], np.int64).reshape(-1, 2)
    return Graph(ids, len(labels), directed=directed), np.array(labels, dtype=object)


# --- writing --------------------------------------------------------------------------------------


def _serialize(graph: Graph, labels: np.ndarray | None, format: str) -> bytes:
    if format == "npz":
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer, edges=graph.edges, num_nodes=graph.num_nodes, directed=graph.directed
        )
        return buffer.getvalue()
    kind = "directed" if graph.directed else "undirected"
    if format == "mtx":
        size, edges = graph.num_nodes, graph.num_edges
        symmetry = "general" if graph.directed else "symmetric"
        head = f"%%MatrixMarket matrix coordinate pattern {symmetry}\n{size} {size} {edges}\n"
        ids = graph.edges if graph.directed else graph.edges[:, ::-1]
        return head.encode() + _format_ids(ids + 1, b" ")
    if format == "text":
        head = f"# paperworks: {kind}, {graph.num_nodes} nodes, {graph.num_edges} edges\n"
        if labels is None:
            return head.encode() + _format_ids(graph.edges, b"\t")
        lines = [f"{a}\t{b}\n" for a, b in _labelled(graph, labels, check=True)]
        return f"# {kind.capitalize()} graph\n".encode() + "".join(lines).encode()
    if format == "csv" and labels is None:
        return b"source,target\n" + _format_ids(graph.edges, b",")
    pyarrow = _require("pyarrow")
    ends = graph.edges if labels is None else np.asarray(labels)[graph.edges]
    table = pyarrow.table({"source": ends[:, 0], "target": ends[:, 1]})
    buffer = io.BytesIO()
    if format == "csv":
        _require("pyarrow.csv").write_csv(table, buffer)
    else:
        _require("pyarrow.parquet").write_table(table, buffer, compression="zstd")
    return buffer.getvalue()


def _format_ids(ids: np.ndarray, separator: bytes) -> bytes:
    from .text import format_lines

    ids = np.ascontiguousarray(ids)
    if not ids.size:
        return b""
    buffer = np.empty(len(ids) * 2 * (len(str(ids.max())) + 1), np.uint8)
    return buffer[: format_lines(ids, separator[0], buffer)].tobytes()


def _labelled(graph: Graph, labels: np.ndarray, *, check: bool) -> list[list[Any]]:
    texts = [str(label) for label in np.asarray(labels).tolist()]
    if check:
        bad = next((t for t in texts if not t or t[0] in "#%" or re.search(r"[\s,]", t)), None)
        if bad is not None:
            raise InputError(
                f"labels: expected no blanks, commas or leading # in text, found {bad[:40]!r}"
            )
    return [[texts[u], texts[v]] for u, v in graph.edges.tolist()]
