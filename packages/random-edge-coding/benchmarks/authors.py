"""Ours beside the authors' code, in one process, on the same graphs.

Their code has no licence file and is on no index: clone it and craystack, and give the paths.

    git clone https://github.com/dsevero/Random-Edge-Coding
    git clone https://github.com/j-towns/craystack
    ./scripts/bench random-edge-coding authors -- Random-Edge-Coding craystack [EDGE-LIST...]

peers: autograd tqdm networkx
"""

import contextlib
import io
import sys
import time
import zipfile
from pathlib import Path

import networkx as nx
import numpy as np

from paperworks.random_edge_coding import Graph, compress, decompress, information, peek, read_edges


def graphs(paths):
    for path in paths:
        if path.endswith(".zip"):
            with zipfile.ZipFile(path) as archive:
                (member,) = (n for n in archive.namelist() if n.endswith("_A.txt"))
                with archive.open(member) as file:
                    graph, _ = read_edges(file, format="tu")
        else:
            graph, _ = read_edges(path)
        yield Path(path).stem, graph.simple().compact()[0]
    made = nx.barabasi_albert_graph(2000, 5, seed=0)
    yield "Barabasi-Albert", Graph(list(made.edges()), 2000)


def best(action, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begin)
    return min(times), result


def authors_round_trip(graph):
    """Seconds to encode, seconds to decode, bits, whether the same edges come out."""
    import craystack as cs
    from rec.definitions import Graph as TheirGraph
    from rec.models import PolyasUrnModel

    theirs = TheirGraph(graph.edges, graph.num_nodes, graph.num_edges)
    model = PolyasUrnModel(num_nodes=graph.num_nodes, num_edges=graph.num_edges)
    begin = time.perf_counter()
    state = model.push(cs.rans.base_message(shape=(1,)), theirs)
    middle = time.perf_counter()
    bits = 32 + 32 * len(cs.flatten(state))
    later = time.perf_counter()
    _, decoded = model.pop(state)
    end = time.perf_counter()
    same = sorted(map(sorted, decoded.edge_array.tolist())) == graph.edges.tolist()
    return middle - begin, end - later, bits, same


def main(arguments):
    if len(arguments) < 2:
        print("skipped: needs the paths of two checkouts, see the docstring")
        return
    for checkout in arguments[:2]:
        sys.path.insert(0, str(Path(checkout).resolve()))
    sys.setrecursionlimit(100_000)
    print("graph                 m     ours enc/dec, M edges/s   theirs, edges/s   ratio enc  dec")
    for name, graph in graphs(arguments[2:]):
        m = graph.num_edges
        compress(graph)  # load the kernels
        encode, data = best(lambda graph=graph: compress(graph), 5)
        decode, restored = best(lambda data=data: decompress(data), 5)
        assert restored == graph
        content = information(graph).graph_bits
        with contextlib.redirect_stderr(io.StringIO()), np.errstate(all="ignore"):
            try:
                slow_encode, slow_decode, bits, same = authors_round_trip(graph)
            except ZeroDivisionError:
                print(f"{name:16} {m:8}   theirs: ZeroDivisionError (fewer than 20 edges)")
                continue
        print(
            f"{name:16} {m:8}     {m / encode / 1e6:8.2f} {m / decode / 1e6:8.2f}       "
            f"{m / slow_encode:8.0f} {m / slow_decode:8.0f}  {slow_encode / encode:8.0f} "
            f"{slow_decode / decode:6.0f}   bits over the information: ours "
            f"{8 * peek(data).payload_bytes - content:.0f}, theirs "
            f"{bits - content:.0f}{'' if same else ', which decodes wrongly'}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
