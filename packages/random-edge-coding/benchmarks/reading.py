"""Reading and writing a text edge list of 10^7 edges, and `bits` on it, against pyarrow and NumPy.

    ./scripts/bench random-edge-coding reading [-- M]

peers: pyarrow
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.csv

from paperworks.random_edge_coding import Graph, information, read_edges, write_edges
from paperworks.random_edge_coding.text import parse_lines


def timed(action):
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result


def parse(path):
    data = np.frombuffer(path.read_bytes(), np.uint8)
    pairs = np.empty((int(np.count_nonzero(data == 10)), 2), np.int64)
    parse_lines(data, 0, 1, pairs, 0, 1 << 31)
    return pairs


def main(m):
    random = np.random.default_rng(0)
    graph = Graph(random.integers(0, m // 5, (m, 2)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "edges.txt"
        write_edges(path, Graph([(0, 1)]))
        parse(path)  # load the kernels
        written, _ = timed(lambda: write_edges(path, graph))
        ours, (restored, _) = timed(lambda: read_edges(path))
        assert restored == graph
        parsing, _ = timed(lambda: parse(path))
        options = pyarrow.csv.ReadOptions(autogenerate_column_names=True, skip_rows=1)
        tabs = pyarrow.csv.ParseOptions(delimiter="\t")
        one_thread = pyarrow.csv.ReadOptions(
            autogenerate_column_names=True, skip_rows=1, use_threads=False
        )
        arrow, _ = timed(lambda: pyarrow.csv.read_csv(path, options, tabs))
        arrow_one, _ = timed(lambda: pyarrow.csv.read_csv(path, one_thread, tabs))
        numpy, _ = timed(lambda: np.loadtxt(path, dtype=np.int64))
        reckoned, _ = timed(lambda: information(graph))
        size = path.stat().st_size / 1e6
    print(f"{m} edges, {size:.0f} MB of text")
    print(f"write_edges                  {written:6.2f} s")
    print(f"read_edges (graph, sorted)   {ours:6.2f} s")
    print(f"  of which parsing           {parsing:6.2f} s, {size / parsing:.0f} MB/s")
    print(f"information (verb bits)      {reckoned:6.2f} s")
    print(f"pyarrow.csv, all threads     {arrow:6.2f} s, {arrow / parsing:.2f} of our parsing")
    print(f"pyarrow.csv, one thread      {arrow_one:6.2f} s, {arrow_one / parsing:.2f}")
    print(f"numpy.loadtxt                {numpy:6.2f} s, {numpy / parsing:.2f}")


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7)
