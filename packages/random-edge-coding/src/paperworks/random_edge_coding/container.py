"""The file format: a header, one ANS state per shard, a checksum, an optional table of labels.

::

    "PWREC"  version  flags  varint n, m, bias, shards
    for each shard:  varint edges, varint words, byte length of head
    for each shard:  words (uint32, little-endian, bottom of the stack first),
                     head (little-endian, no leading zeros)
    CRC-32 of all of the above
    if flagged:      kind, varint raw size, varint packed size, Zstandard frame of the labels,
                     CRC-32 of these

Varints hold seven bits a byte, low bits first. The same graph gives the same bytes on every
machine. The label table is as reproducible as the Zstandard library.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal

import numpy as np

from paperworks.shared.errors import InputError, expected, require
from paperworks.shared.progress import Progress
from paperworks.shared.validation import check_number

from .graph import MAX_NODES, MAX_TOTAL, Graph

MAGIC = b"PWREC"
VERSION = 1
MAX_SHARDS = 1 << 12
_DIRECTED, _REPEATED, _LABELS = 1, 2, 4
_INTEGERS, _STRINGS = 0, 1


class CorruptFile(InputError):
    """The bytes are not what `compress` made: damaged, cut, forged, or of a later version."""


@dataclass(frozen=True)
class Header:
    """What a compressed graph says about itself.

    Attributes
    ----------
    num_nodes, num_edges : int
        Size of the graph.
    directed : bool
        Whether edges are ordered pairs.
    repeated : bool
        Whether some edge occurs more than once.
    bias : int
        The urn's bias.
    shards : int
        Number of independently coded parts.
    header_bytes, payload_bytes, label_bytes : int
        Sizes: header with checksum, ANS states, label table.
    """

    num_nodes: int
    num_edges: int
    directed: bool
    repeated: bool
    bias: int
    shards: int
    header_bytes: int
    payload_bytes: int
    label_bytes: int


@dataclass(frozen=True)
class _Layout:
    header: Header
    flags: int
    edges: list[int]
    words: list[int]
    heads: list[int]
    payload: int
    labels: int


def compress(
    graph: Graph,
    *,
    bias: int | Literal["auto"] = 1,
    shards: int = 1,
    labels: Sequence | np.ndarray | None = None,
    progress: Progress | None = None,
) -> bytes:
    """Compress a graph to its information content plus some 30 to 45 bits and the header.

    Each operation of the coder rounds by a share of about ``T / 2**47`` bits, ``T = 2 m + n bias``,
    which adds up when T is large: bits, in either direction, from about ``T = 3 * 10**6`` on where
    few vertices have most edges, thousands near the limit ``T < 2**31``.

    O(m log m) time, O(m + n) memory.

    Parameters
    ----------
    graph : Graph
        With ``2 * num_edges + num_nodes * bias`` below ``2**31``.
    bias : int or "auto"
        The urn's count of each vertex before the first edge; ``"auto"`` takes `best_bias`.
    shards : int
        Code this many parts in parallel. Costs ``num_edges * log2(shards)`` bits or up to a quarter
        more: the assignment of edges to parts is a function of the edges, but the parts do not
        know that, and each has its own urn.
    labels : sequence of int or str, shape (num_nodes,), optional
        Stored beside the graph, for `read_labels`.
    progress : callable, optional
        Called with (edges done, edges in all).

    Returns
    -------
    bytes
        For `decompress`. Depends on nothing but the arguments.

    Raises
    ------
    InputError
        For arguments out of range.
    """
    from .codec import encode

    if bias == "auto":
        from .urn import best_bias

        bias = best_bias(graph)
    bias = check_number("bias", bias, integer=True, minimum=1)
    shards = check_number("shards", shards, integer=True, minimum=1, maximum=MAX_SHARDS)
    total = 2 * graph.num_edges + graph.num_nodes * bias
    if total > MAX_TOTAL:
        raise expected(
            "graph", "2 * edges + nodes * bias < 2**31, the limit of the coder's arithmetic", total
        )
    if labels is not None and len(labels) != graph.num_nodes:
        raise expected("labels", f"one for each of the {graph.num_nodes} vertices", len(labels))
    table = b"" if labels is None else _pack_labels(labels)
    parts = _partition(graph, shards)
    repeated = graph.num_repeated > 0
    flags = _DIRECTED * graph.directed | _REPEATED * repeated | _LABELS * (labels is not None)
    checks = [
        _check(graph.num_nodes, graph.num_edges, bias, flags, shards, i) for i in range(shards)
    ]

    def work(index: int, report: Callable[[int], None]) -> tuple[int, np.ndarray]:
        return encode(
            parts[index].edges32,
            graph.num_nodes,
            bias=bias,
            directed=graph.directed,
            check=checks[index],
            progress=report,
        )

    states = _parallel(work, shards, _cores(), graph.num_edges, progress)
    header = bytearray(MAGIC + bytes([VERSION, flags]))
    for value in (graph.num_nodes, graph.num_edges, bias, shards):
        header += _varint(value)
    payload = bytearray()
    for part, (head, words) in zip(parts, states, strict=True):
        head_bytes = (head.bit_length() + 7) // 8
        header += _varint(part.num_edges) + _varint(len(words)) + bytes([head_bytes])
        payload += words.astype("<u4").tobytes() + head.to_bytes(head_bytes, "little")
    body = bytes(header + payload)
    return body + zlib.crc32(body).to_bytes(4, "little") + table


def peek(data: bytes) -> Header:
    """Read the header of a compressed graph, without decoding and without checking the payload.

    Raises
    ------
    CorruptFile
        If the header is not valid.
    """
    return _layout(data).header


def decompress(
    data: bytes, *, max_memory: int = 8 << 30, progress: Progress | None = None
) -> Graph:
    """Restore the graph that `compress` was given.

    Safe on untrusted bytes: everything is checked before memory is allocated, and the coder's final
    state is checked after decoding.

    Parameters
    ----------
    data : bytes
        What `compress` returned.
    max_memory : int
        Upper bound of the memory to use, in bytes.
    progress : callable, optional
        Called with (edges done, edges in all).

    Returns
    -------
    Graph

    Raises
    ------
    CorruptFile
        If the bytes are damaged in any way.
    InputError
        If the graph does not fit ``max_memory``.
    """
    max_memory = check_number("max_memory", max_memory, integer=True, minimum=1)
    layout = _layout(data)
    header = layout.header
    end = layout.payload + header.payload_bytes
    if zlib.crc32(memoryview(data)[:end]) != int.from_bytes(data[end : end + 4], "little"):
        raise CorruptFile("compressed graph: the checksum does not match, the file is damaged")
    if layout.flags & _LABELS:
        _label_table(data, layout)
    workers = _affordable_workers(layout, max_memory)
    states = list(_states(data, layout))

    from .codec import decode

    def work(index: int, report: Callable[[int], None]) -> np.ndarray:
        head, words = states[index]
        n, m, b = header.num_nodes, header.num_edges, header.bias
        keys = decode(
            head,
            words,
            n,
            layout.edges[index],
            bias=b,
            directed=header.directed,
            repeated=header.repeated,
            check=_check(n, m, b, layout.flags, header.shards, index),
            progress=report,
        )
        if keys is None or (header.shards > 1 and np.any(_shard_of(keys, header.shards) != index)):
            raise CorruptFile(
                "compressed graph: decoding does not end where encoding began, the file is damaged"
            )
        return keys

    parts = _parallel(work, header.shards, workers, header.num_edges, progress)
    keys = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
    graph = Graph.from_keys(keys, header.num_nodes, directed=header.directed)
    if header.repeated != (graph.num_repeated > 0):
        raise CorruptFile(
            "compressed graph: the header announces repeated edges, but there are none"
        )
    return graph


def read_labels(data: bytes, *, max_memory: int = 8 << 30) -> np.ndarray | None:
    """Read the label table of a compressed graph.

    Parameters
    ----------
    data : bytes
        What `compress` returned.
    max_memory : int
        Upper bound of the size of the table, in bytes.

    Returns
    -------
    ndarray of int64 or str, shape (num_nodes,), or None
        None if the graph was compressed without labels.

    Raises
    ------
    CorruptFile
        If the table is damaged.
    """
    layout = _layout(data)
    if not layout.flags & _LABELS:
        return None
    kind, raw_size, packed = _label_table(data, layout)
    if raw_size > max_memory:
        raise InputError(
            f"label table: expected at most max_memory = {max_memory} bytes, found {raw_size}"
        )
    zstandard = require("zstandard", package="paperworks-random-edge-coding", extra="formats")
    try:
        if zstandard.frame_content_size(packed) != raw_size:
            raise CorruptFile("label table: the sizes disagree, the file is damaged")
        raw = zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as error:
        raise CorruptFile(f"label table: {error}") from None
    return _unpack_labels(kind, raw, layout.header.num_nodes)


def _label_table(data: bytes, layout: _Layout) -> tuple[int, int, bytes]:
    """Kind, unpacked size and packed contents of the label table, after its checksum."""
    reader = _Reader(data, layout.labels)
    kind, raw_size, packed_size = reader.byte(), reader.varint(), reader.varint()
    packed = reader.take(packed_size)
    checksum = zlib.crc32(data[layout.labels : reader.place]).to_bytes(4, "little")
    if checksum != reader.take(4) or reader.left():
        raise CorruptFile("label table: the checksum does not match, the file is damaged")
    return kind, raw_size, packed


def _layout(data: bytes) -> _Layout:
    """Parse and check everything but the payload."""
    reader = _Reader(data)
    if reader.take(len(MAGIC)) != MAGIC:
        raise CorruptFile("compressed graph: expected a file that starts with PWREC")
    version = reader.byte()
    if version != VERSION:
        raise CorruptFile(f"compressed graph: expected format version {VERSION}, found {version}")
    flags = reader.byte()
    if flags > _DIRECTED | _REPEATED | _LABELS:
        raise CorruptFile(f"compressed graph: unknown flags {flags:#x}")
    n, m, bias, shards = (reader.varint() for _ in range(4))
    directed, repeated = bool(flags & _DIRECTED), bool(flags & _REPEATED)
    pairs = n * n if directed else n * (n + 1) // 2
    if n > MAX_NODES or bias < 1 or 2 * m + n * bias > MAX_TOTAL or not 1 <= shards <= MAX_SHARDS:
        raise CorruptFile(
            f"compressed graph: impossible sizes: {n} vertices, {m} edges, bias {bias}"
        )
    if m > 0 if pairs == 0 else m > pairs and not repeated:
        raise CorruptFile(f"compressed graph: {m} edges do not fit {n} vertices")
    table = [(reader.varint(), reader.varint(), reader.byte()) for _ in range(shards)]
    edges, words, heads = (list(column) for column in zip(*table, strict=True))
    payload = reader.place
    payload_bytes = 4 * sum(words) + sum(heads)
    if sum(edges) != m or max(heads) > 8:
        raise CorruptFile("compressed graph: the shard table contradicts the header")
    labels = payload + payload_bytes + 4
    if labels > len(data) or (labels < len(data)) != bool(flags & _LABELS):
        raise CorruptFile(
            f"compressed graph: expected {labels} bytes, found {len(data)}: cut or extended"
        )
    header = Header(
        n, m, directed, repeated, bias, shards, payload + 4, payload_bytes, len(data) - labels
    )
    return _Layout(header, flags, edges, words, heads, payload, labels)


def _states(data: bytes, layout: _Layout):
    """Yield head and words of each shard."""
    reader = _Reader(data, layout.payload)
    for count, length in zip(layout.words, layout.heads, strict=True):
        words = np.frombuffer(reader.take(4 * count), "<u4").astype(np.uint32)
        raw = reader.take(length)
        head = int.from_bytes(raw, "little")
        if head >> 63 or (raw and raw[-1] == 0) or (count and head < 1 << 31):
            raise CorruptFile(
                "compressed graph: the coder's state is out of range, the file is damaged"
            )
        yield head, words


def _affordable_workers(layout: _Layout, max_memory: int) -> int:
    """Return how many shards can be decoded at a time within ``max_memory``."""
    from .codec import working_bytes

    header = layout.header
    result = 16 * header.num_edges + 12 * sum(layout.words)  # the stack may double
    part = max(
        working_bytes(header.num_nodes, m, directed=header.directed, repeated=header.repeated)
        for m in set(layout.edges)
    )
    workers = min((max_memory - result) // part, header.shards, _cores())
    if workers < 1:
        raise InputError(
            f"compressed graph: decoding {header.num_edges} edges needs {result + part} bytes, "
            f"but max_memory is {max_memory}"
        )
    return workers


def _parallel(
    work: Callable, count: int, workers: int, total: int, progress: Progress | None
) -> list:
    """Run ``work(index, report)`` for each index, in threads: the kernels release the lock."""
    stop = threading.Event()
    lock = threading.Lock()
    done = 0

    def report(edges: int) -> None:
        nonlocal done
        if stop.is_set():
            raise InterruptedError("stopped")
        if progress is not None:
            with lock:
                done += edges
                progress(done, total)

    if count == 1:
        return [work(0, report)]
    with ThreadPoolExecutor(min(workers, count)) as pool:
        futures = [pool.submit(work, index, report) for index in range(count)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _partition(graph: Graph, shards: int) -> list[Graph]:
    if shards == 1:
        return [graph]
    place = _shard_of(graph.keys, shards)
    return [
        Graph.from_keys(graph.keys[place == i], graph.num_nodes, directed=graph.directed)
        for i in range(shards)
    ]


def _shard_of(keys: np.ndarray, shards: int) -> np.ndarray:
    """Assign edges to shards by the splitmix64 hash of their keys."""
    mixed = keys.astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return ((mixed >> np.uint64(32)) * np.uint64(shards) >> np.uint64(32)).astype(np.int64)


def _check(*values: int) -> int:
    """Derive the 31 bits at which the coder's state starts."""
    return zlib.crc32(b"".join(value.to_bytes(8, "little") for value in values)) & 0x7FFFFFFF


def _pack_labels(labels: Sequence | np.ndarray) -> bytes:
    array = np.asarray(labels)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind in "iu":
        if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
            raise expected("labels", "integers below 2**63", array.max())
        # differences, one plane a byte: sorted ids pack well
        steps = np.diff(array.astype(np.int64), prepend=np.int64(0))
        kind, raw = _INTEGERS, steps.astype("<i8").view(np.uint8).reshape(-1, 8).T.tobytes()
    elif all(isinstance(label, str) for label in array.tolist()):
        encoded = [label.encode("utf-8") for label in array.tolist()]
        kind, raw = (
            _STRINGS,
            np.array([len(e) for e in encoded], "<u4").tobytes() + b"".join(encoded),
        )
    else:
        raise expected("labels", "integers or strings", f"dtype {array.dtype}")
    zstandard = require("zstandard", package="paperworks-random-edge-coding", extra="formats")
    packed = zstandard.ZstdCompressor(level=9).compress(raw)
    table = bytes([kind]) + _varint(len(raw)) + _varint(len(packed)) + packed
    return table + zlib.crc32(table).to_bytes(4, "little")


def _unpack_labels(kind: int, raw: bytes, count: int) -> np.ndarray:
    if kind == _INTEGERS and len(raw) == 8 * count:
        planes = np.frombuffer(raw, np.uint8).reshape(8, count)
        steps = np.ascontiguousarray(planes.T).view("<i8").reshape(-1)
        return np.cumsum(steps, dtype=np.int64)
    if kind == _STRINGS and len(raw) >= 4 * count:
        ends = np.cumsum(np.frombuffer(raw, "<u4", count), dtype=np.int64) + 4 * count
        if (ends[-1] if count else 0) == len(raw):
            begins = np.concatenate([[4 * count], ends[:-1]])
            try:
                texts = [
                    raw[a:b].decode("utf-8")
                    for a, b in zip(begins.tolist(), ends.tolist(), strict=True)
                ]
            except UnicodeDecodeError:
                raise CorruptFile("label table: expected UTF-8, the file is damaged") from None
            return np.array(texts, dtype=object)
    raise CorruptFile("label table: its size does not fit the number of vertices")


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class _Reader:
    """Reads a byte string from the front; the end of the data is a `CorruptFile`."""

    def __init__(self, data: bytes, place: int = 0) -> None:
        self.data = data
        self.place = place

    def left(self) -> int:
        return len(self.data) - self.place

    def take(self, count: int) -> bytes:
        if count > self.left():
            raise CorruptFile(
                f"compressed graph: the file ends at byte {len(self.data)}, too early"
            )
        self.place += count
        return self.data[self.place - count : self.place]

    def byte(self) -> int:
        return self.take(1)[0]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0 and shift:
                    raise CorruptFile(
                        "compressed graph: a number in the header is not in its shortest form"
                    )
                return value
            shift += 7
            if shift > 56:
                raise CorruptFile("compressed graph: a number in the header is too large")
