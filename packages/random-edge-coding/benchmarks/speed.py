"""Time, size and peak memory against numpy.unique on the same keys, xz -9e and zstd -19.

    ./scripts/bench random-edge-coding speed [-- LARGEST-M]

Power-law ends (P(v) ~ rank^-0.6, m/5 vertices, permuted ids). Ratios are taken in one process; the
peak memory is that of a process of its own that makes the round trip. xz and zstd get the sorted
edges as pairs of uint32 and run up to 10^6 edges.

peers: zstandard
"""

import lzma
import resource
import subprocess
import sys
import time

import numpy as np
import zstandard

from paperworks.random_edge_coding import Graph, compress, decompress, information, peek


def power_law(m, seed=0):
    random = np.random.default_rng(seed)
    n = m // 5
    ends = np.cumsum(np.arange(1, n + 1) ** -0.6)
    ranks = np.searchsorted(ends, random.random((m, 2)) * ends[-1])
    return Graph(random.permutation(n)[np.minimum(ranks, n - 1)], n).simple()


def best(action, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        result = action()
        times.append(time.perf_counter() - begin)
    return min(times), result


def round_trip_peak(m):
    """Peak resident memory, MiB, of a process that loads, encodes and decodes m edges."""
    code = f"import sys; sys.path.insert(0, {sys.path[0]!r}); import speed; speed.round_trip({m})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def round_trip(m):
    random = np.random.default_rng(0)
    keys = random.integers(0, m // 5, m, dtype=np.int64)
    keys <<= 32
    keys |= random.integers(0, m // 5, m)
    keys.sort()  # the few repeated edges stay
    graph = Graph.from_keys(keys, m // 5, directed=True)
    assert decompress(compress(graph)) == graph
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def main(largest):
    decompress(compress(power_law(1000)))  # load the kernels
    print("        m   encode  decode M/s   of unique's time   bits/edge   gap, bits   peak, MiB")
    previous = None
    for m in [10**k for k in range(4, 8) if 10**k <= largest]:
        graph = power_law(m)
        shuffled = np.random.default_rng(1).permutation(graph.keys)
        runs = 7 if m < 10**6 else 3
        encode, data = best(lambda graph=graph: compress(graph), runs)
        decode, restored = best(lambda data=data: decompress(data), runs)
        unique, _ = best(lambda shuffled=shuffled: np.unique(shuffled), min(runs, 2))
        assert restored == graph
        gap = 8 * peek(data).payload_bytes - information(graph).graph_bits
        size = graph.num_edges
        print(
            f"{size:9} {size / encode / 1e6:7.2f} {size / decode / 1e6:7.2f}       "
            f"{encode / unique:6.2f} {decode / unique:6.2f}     {8 * len(data) / size:8.4f}"
            f"     {gap:6.1f}    {round_trip_peak(m):8}"
        )
        if previous:
            print(
                f"          time against a tenth of the edges: encode {encode / previous[0]:.1f}, "
                f"decode {decode / previous[1]:.1f}"
            )
        previous = encode, decode
        if m <= 10**6:
            pairs = graph.edges32.tobytes()
            peers = {
                "xz -9e": lambda pairs=pairs: lzma.compress(pairs, preset=9 | lzma.PRESET_EXTREME),
                "zstd -19": lambda pairs=pairs: zstandard.ZstdCompressor(level=19).compress(pairs),
            }
            for name, action in peers.items():
                seconds, packed = best(action, 1)
                print(
                    f"          {name:8} {8 * len(packed) / size:8.4f} bits/edge, "
                    f"{seconds / encode:6.1f} times our encoding time"
                )


if __name__ == "__main__":
    main(int(float(sys.argv[1])) if len(sys.argv) > 1 else 10**7)
