"""Bits per edge of six real graphs, beside xz, gzip and zstd and the published reference values.

The graphs are those of https://github.com/juliuskunze/szip-graphs (one TUDataset zip each).

    ./scripts/bench random-edge-coding reference_graphs -- FOLDER

peers: zstandard
"""

import gzip
import lzma
import sys
import zipfile
from pathlib import Path

import zstandard

from paperworks.random_edge_coding import compress, decompress, information, peek, read_edges

# sequence, graph information, Erdos-Renyi; loops, copies and isolated vertices dropped
REFERENCE = {
    "USAir97": (14.9004, 4.2860, 6.1030),
    "YeastS": (21.2255, 8.9688, 10.0555),
    "geom": (21.5424, 7.5903, 11.2276),
    "Erdos": (22.9183, 9.8269, 12.4269),
    "homo": (24.6855, 10.4580, 11.8752),
    "as": (25.4670, 10.2321, 14.0841),
}


def main(folder):
    print(
        "graph         n      m  sequence   graph  Erdos-R.   coded   gap   xz; text: xz gzip zstd"
    )
    for name, reference in REFERENCE.items():
        with zipfile.ZipFile(Path(folder) / f"{name}.zip") as archive:
            (member,) = (n for n in archive.namelist() if n.endswith("_A.txt"))
            with archive.open(member) as file:
                graph = read_edges(file, format="tu")[0].simple().compact()[0]
        found = information(graph)
        m = graph.num_edges
        values = [
            found.sequence_bits / m,
            found.graph_bits / m,
            found.erdos_renyi_bits / m,
        ]
        data = compress(graph)
        assert decompress(data) == graph
        payload = 8 * peek(data).payload_bytes
        text = "".join(f"{u} {v}\n" for u, v in graph.edges.tolist()).encode()
        strong = 9 | lzma.PRESET_EXTREME
        peers = [
            lzma.compress(graph.edges32.tobytes(), preset=strong),
            lzma.compress(text, preset=strong),
            gzip.compress(text, 9),
            zstandard.ZstdCompressor(level=19).compress(text),
        ]
        same = all(f"{v:.4f}" == f"{r:.4f}" for v, r in zip(values, reference, strict=True))
        print(
            f"{name:9} {graph.num_nodes:6} {m:6}  "
            f"{values[0]:8.4f} {values[1]:7.4f} {values[2]:8.4f} "
            f"{payload / m:8.4f} {payload - found.graph_bits:5.1f}   "
            + " ".join(f"{8 * len(p) / m:6.2f}" for p in peers)
            + ("  as published" if same else f"  PUBLISHED {reference}")
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        print("skipped: needs the folder of the six graphs, see the docstring")
