"""Verbs of ``paperworks random-edge-coding``."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperworks.shared.cli import JsonOption, OutOption, Paper, command_group, emit
from paperworks.shared.errors import InputError
from paperworks.shared.progress import progress_bar

if TYPE_CHECKING:
    from .graph import Graph

app = command_group("Compress large labelled graphs to their information content.")
paper = Paper(
    slug="random-edge-coding",
    title="Random Edge Coding: One-Shot Bits-Back Coding of Large Labeled Graphs",
    venue="ICML 2023",
    arxiv="2305.09705",
    app=app,
)

Edges = Annotated[
    str,
    typer.Argument(
        help="Edge list (text, CSV, Parquet, mtx, npz, TUDataset; .gz .xz .zst); - is stdin."
    ),
]
Packed = Annotated[str, typer.Argument(help="Compressed graph; - is stdin.")]
Format = Annotated[str, typer.Option(help="auto, text, csv, parquet, mtx, npz or tu.")]
Directed = Annotated[
    bool | None,
    typer.Option("--directed/--undirected", help="By default what the file says, else undirected."),
]
Relabel = Annotated[
    bool,
    typer.Option("--relabel", help="Number the ids that occur; keep the original ones in a table."),
]
Simple = Annotated[bool, typer.Option("--simple", help="Drop loops and repeated edges.")]
Nodes = Annotated[
    int | None, typer.Option(help="Number of vertices; by default the largest id + 1.", min=0)
]
Columns = Annotated[
    str | None, typer.Option(metavar="A,B", help="The two columns of a CSV or Parquet file.")
]
Bias = Annotated[
    str, typer.Option(help="The urn's bias, an integer >= 1, or auto: the best power of two.")
]
Memory = Annotated[
    float, typer.Option(help="Refuse a graph that needs more memory than this, in GiB.", min=0.001)
]


@app.command()
def compress(
    edges: Edges,
    out: OutOption = "-",
    format: Format = "auto",
    directed: Directed = None,
    relabel: Relabel = False,
    simple: Simple = False,
    nodes: Nodes = None,
    columns: Columns = None,
    bias: Bias = "1",
    shards: Annotated[
        int, typer.Option(help="Parts to code in parallel; costs log2(shards) bits an edge.")
    ] = 1,
) -> None:
    """Compress an edge list."""
    from paperworks.shared.files import write_bytes

    from .container import compress as pack

    graph, labels = _read(edges, format, directed, relabel, simple, nodes, columns)
    with progress_bar("compressing") as progress:
        data = pack(graph, bias=_bias(bias), shards=shards, labels=labels, progress=progress)
    if shards > 1:
        extra = graph.num_edges * math.log2(shards) / 8
        _say(f"{shards} shards take at least {extra:.0f} bytes more than one")
    write_bytes(out, data)


@app.command()
def decompress(
    packed: Packed, out: OutOption = "-", format: Format = "auto", max_memory: Memory = 8.0
) -> None:
    """Restore the edge list."""
    from .container import decompress as unpack
    from .container import read_labels
    from .io import write_edges

    data = _bytes(packed)
    limit = _memory(max_memory)
    with _naming(packed), progress_bar("decompressing") as progress:
        graph = unpack(data, max_memory=limit, progress=progress)
        labels = read_labels(data, max_memory=limit)
    write_edges(out, graph, labels=labels, format=format)
    plain = str(out).removesuffix(".gz").removesuffix(".xz").removesuffix(".zst")
    if format in ("csv", "parquet") or plain.endswith((".csv", ".parquet", ".pq")):
        kind = "directed" if graph.directed else "undirected"
        _say(f"{out} keeps edges only, not that they are {kind} over {graph.num_nodes} vertices")


@app.command()
def info(packed: Packed, json: JsonOption = False) -> None:
    """Show what a compressed graph holds, without decoding it."""
    from dataclasses import asdict

    from .container import peek

    data = _bytes(packed)
    with _naming(packed):
        header = peek(data)
    result = asdict(header) | {"file_bytes": len(data)}
    if header.num_edges:
        result["bits_per_edge"] = 8 * header.payload_bytes / header.num_edges
    emit(result, json, _lines(result))


@app.command()
def bits(
    edges: Edges,
    format: Format = "auto",
    directed: Directed = None,
    relabel: Relabel = False,
    simple: Simple = False,
    nodes: Nodes = None,
    columns: Columns = None,
    bias: Bias = "1",
    json: JsonOption = False,
) -> None:
    """Show how many bits an edge list needs under each model, without coding it."""
    from dataclasses import asdict

    from .urn import best_bias, information

    graph, _ = _read(edges, format, directed, relabel, simple, nodes, columns)
    value = _bias(bias)
    found = information(graph, best_bias(graph) if value == "auto" else value)
    result: dict[str, Any] = {
        "num_nodes": graph.num_nodes,
        "directed": graph.directed,
        "loops": graph.num_loops,
    }
    result |= (
        {"repeated": graph.num_repeated} | asdict(found) | {"bits_per_edge": found.bits_per_edge}
    )
    emit(result, json, lambda: _print_bits(result))


@app.command()
def verify(
    edges: Edges,
    packed: Packed,
    format: Format = "auto",
    directed: Directed = None,
    relabel: Relabel = False,
    simple: Simple = False,
    nodes: Nodes = None,
    columns: Columns = None,
    max_memory: Memory = 8.0,
    json: JsonOption = False,
) -> None:
    """Check that a compressed graph holds exactly this edge list; exit 1 if not."""
    from .container import decompress as unpack
    from .container import peek, read_labels

    if edges == packed == "-":
        raise InputError("edges, packed: expected at most one to be -, found both")
    data = _bytes(packed)
    limit = _memory(max_memory)
    with _naming(packed), progress_bar("decompressing") as progress:
        restored = unpack(data, max_memory=limit, progress=progress)
        table = read_labels(data, max_memory=limit)
        header = peek(data)
    relabel = relabel or table is not None
    graph, labels = _read(edges, format, directed, relabel, simple, nodes, columns)
    if directed is None and header.directed and not graph.directed and edges != "-":
        # The edge list does not say so: it was told when it was compressed.
        graph, labels = _read(edges, format, True, relabel, simple, nodes, columns)
    if nodes is None and not relabel and graph.num_nodes < restored.num_nodes:
        graph = type(graph).from_keys(graph.keys, restored.num_nodes, directed=graph.directed)
    same_labels = table is None or (labels is not None and table.tolist() == labels.tolist())
    result = {"same": graph == restored and same_labels}
    if not result["same"]:
        result |= {"expected": repr(graph), "found": repr(restored)}
    emit(
        result,
        json,
        "same graph" if result["same"] else f"different: expected {graph}, found {restored}",
    )
    if not result["same"]:
        raise typer.Exit(1)


def _read(
    edges: str,
    format: str,
    directed: bool | None,
    relabel: bool,
    simple: bool,
    nodes: int | None,
    columns: str | None,
) -> tuple[Graph, Any]:
    from .io import read_edges

    pair = tuple(columns.split(",")) if columns is not None else None
    if pair is not None and len(pair) != 2:
        raise InputError(
            f"columns: expected two names with a comma between them, found {columns!r}"
        )
    graph, labels = read_edges(
        edges,
        format=format,
        directed=directed,
        relabel=relabel,
        num_nodes=nodes,
        columns=pair,
        notice=_say,
    )
    if graph.num_nodes > 10**6 + 64 * graph.num_edges:
        _say(f"{graph.num_nodes} vertices for {graph.num_edges} edges: --relabel would save memory")
    if simple:
        kept = graph.simple()
        loops, repeated = graph.num_loops, graph.num_edges - graph.num_loops - kept.num_edges
        _say(f"{edges}: dropped {loops} loops and {repeated} repeated edges")
        graph = kept
    return graph, labels


def _memory(gib: float) -> int:
    if not math.isfinite(gib):
        raise InputError(f"max-memory: expected a finite number of GiB, found {gib}")
    return int(gib * 2**30)


def _bias(text: str) -> Any:
    if text == "auto":
        return text
    try:
        return int(text)
    except ValueError:
        raise InputError(f"bias: expected an integer >= 1 or auto, found {text!r}") from None


@contextmanager
def _naming(path: str) -> Generator[None]:
    """Put the file's name in front of what is wrong with it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _bytes(path: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    with open(path, "rb") as file:
        return file.read()


def _say(line: str) -> None:
    typer.echo(f"notice: {line}", err=True)


def _lines(result: dict[str, Any]) -> str:
    return "\n".join(f"{key.replace('_', ' '):15} {value}" for key, value in result.items())


def _print_bits(result: dict[str, Any]) -> None:
    edges = result["num_edges"]
    kind = "directed" if result["directed"] else "undirected"
    typer.echo(
        f"{kind}, {result['num_nodes']} nodes, {edges} edges "
        f"({result['loops']} loops, {result['repeated']} repeated), bias {result['bias']}"
    )
    rows = {
        "graph, Polya's urn": "graph_bits",
        "sequence, Polya's urn": "sequence_bits",
        "order, saved": "order_bits",
        "Erdos-Renyi": "erdos_renyi_bits",
        "sequence, known degrees": "degree_entropy_bits",
        "plain ids": "plain_bits",
    }
    for title, key in rows.items():
        each = f"{result[key] / edges:10.4f} bits an edge" if edges else ""
        typer.echo(f"{title:24} {result[key]:18.1f} bits {each}".rstrip())
