import math
import zlib
from pathlib import Path

import numpy as np
import pytest
import slow_codec
from hypothesis import given, settings
from hypothesis import strategies as st

from paperworks.random_edge_coding import (
    Graph,
    ans,
    codec,
    compress,
    decompress,
    information,
    peek,
    sample,
    structures,
)
from paperworks.random_edge_coding.structures import cached
from paperworks.shared.errors import InputError


def check(graph, bias=1):
    """Round trip, and the length against the information content."""
    data = compress(graph, bias=bias)
    restored = decompress(data)
    assert restored == graph
    assert restored.num_edges == graph.num_edges
    excess = 8 * peek(data).payload_bytes - information(graph, bias).graph_bits
    assert 0 <= excess <= 64
    return data


@st.composite
def graphs(draw, max_nodes=12, max_edges=24):
    n = draw(st.integers(1, max_nodes))
    vertex = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(vertex, vertex), max_size=max_edges))
    if draw(st.booleans()):
        edges = [(u, v) for u, v in edges if u != v]
    if draw(st.booleans()):
        edges = list({tuple(sorted(e)) for e in edges})
    extra = draw(st.integers(0, 5))  # isolated vertices at the end
    return edges, n + extra, draw(st.booleans()), draw(st.sampled_from([1, 2, 5, 1000]))


@settings(max_examples=300, deadline=None)
@given(graphs())
def test_round_trip_and_the_bytes_of_the_slow_codec(case):
    edges, n, directed, bias = case
    data = check(Graph(edges, n, directed=directed), bias)
    assert data == slow_codec.compress(edges, n, bias, directed)


@settings(max_examples=50, deadline=None)
@given(graphs(max_nodes=300, max_edges=400))
def test_round_trip_of_larger_graphs(case):
    edges, n, directed, bias = case
    check(Graph(edges, n, directed=directed), bias)


def test_the_slow_codec_decodes_what_it_encodes():
    edges = [(0, 1), (1, 1), (3, 2), (0, 1), (0, 3)]
    for directed in (False, True):
        state = slow_codec.encode(edges, 5, 2, directed, 99)
        assert slow_codec.decode(state, 5, 5, 2, directed) == slow_codec.canonical(edges, directed)
        assert (state.head, state.words) == ((1 << 31) + 99, [])


def test_slow_and_fast_codec_agree_when_the_stack_is_long():
    graph = sample(150, 600, seed=5)
    assert check(graph) == slow_codec.compress(graph.edges.tolist(), 150)


@settings(max_examples=100, deadline=None)
@given(graphs(), st.randoms(use_true_random=False))
def test_order_and_orientation_of_the_input_do_not_matter(case, random):
    edges, n, directed, bias = case
    shuffled = [e if directed or random.random() < 0.5 else e[::-1] for e in edges]
    random.shuffle(shuffled)
    data = compress(Graph(edges, n, directed=directed), bias=bias)
    assert compress(Graph(shuffled, n, directed=directed), bias=bias) == data


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("n", [0, 1, 7])
def test_graphs_without_edges(n, directed):
    check(Graph([], n, directed=directed))


@pytest.mark.parametrize("m", [1, 2, 1000, 100_000])
def test_one_edge_repeated(m):
    assert len(check(Graph(np.zeros((m, 2), int)))) < 32
    check(Graph(np.tile([[4, 2]], (m, 1)), 9))
    check(Graph(np.tile([[4, 2]], (m, 1)), 9, directed=True))


def test_few_edges():
    random = np.random.default_rng(0)
    for m in range(1, 20):
        for n in (1, 2, 20, 10_000):
            check(Graph(random.integers(0, n, (m, 2)), n))
            check(Graph(random.integers(0, n, (m, 2)), n, directed=True))


@pytest.mark.parametrize("loops", [0, 1])
@pytest.mark.parametrize("n", [2, 3, 30, 400])
def test_complete_graphs(n, loops):
    check(Graph(np.stack(np.triu_indices(n, 1 - loops), axis=1)))
    pairs = np.stack(np.indices((n, n)), axis=-1).reshape(-1, 2)
    check(Graph(pairs[pairs[:, 0] != pairs[:, 1]] if loops == 0 else pairs, directed=True))


def test_complete_bipartite_paths_and_matchings():
    check(Graph(np.stack(np.indices((90, 110)), axis=-1).reshape(-1, 2) + np.array([0, 90])))
    path = np.arange(5000)
    check(Graph(np.stack([path[:-1], path[1:]], axis=1)))
    check(Graph(path.reshape(-1, 2)))
    check(Graph(np.stack([path, path], axis=1)))


@pytest.mark.parametrize("center", ["first", "middle", "last"])
def test_stars(center):
    leaves = 1_000_000 if center == "middle" else 100_000
    hub = {"first": 0, "middle": leaves // 2, "last": leaves}[center]
    others = np.delete(np.arange(leaves + 1), hub)
    check(Graph(np.stack([np.full(leaves, hub), others], axis=1)))


def test_runs_of_copies_across_words_and_nodes():
    random = np.random.default_rng(1)
    distinct = random.integers(0, 50, (40, 2))
    for copies in ([1, 63, 64, 65, 200], [5000, 1, 1, 20_000]):
        edges = np.repeat(distinct, np.resize(copies, 40), axis=0)
        check(Graph(edges))
        check(Graph(edges, directed=True))


def test_a_rare_edge_between_loops():
    """Removing the rare edge frees more bits than it takes: the state runs low in between."""
    m = 20_000
    edges = np.repeat([(0, 0), (1, 1), (0, 1)], [m, m, 3], axis=0)
    check(Graph(edges))


@pytest.mark.parametrize("directed", [False, True])
def test_large_random_graph(directed):
    check(sample(30_000, 300_000, seed=2, directed=directed))
    check(sample(300_000, 300_000, bias=50, seed=2, directed=directed), bias=50)


def test_the_limit_of_the_arithmetic():
    n = 5
    bias = ((1 << 31) - 1 - 2 * 3) // n
    check(Graph([(0, 1), (1, 2), (4, 4)], n), bias)
    slow = slow_codec.compress([(0, 1), (1, 2), (4, 4)], n, bias)
    assert compress(Graph([(0, 1), (1, 2), (4, 4)], n), bias=bias) == slow
    with pytest.raises(InputError, match=r"2 \* edges \+ nodes \* bias < 2\*\*31"):
        compress(Graph([(0, 1), (1, 2), (4, 4)], n), bias=bias + 1)
    with pytest.raises(InputError, match=r"limit of the coder's arithmetic, found 2147483649"):
        compress(Graph([(0, 1)], (1 << 31) - 1))


@pytest.mark.parametrize("bias", [0, 1.5, "many", None])
def test_bad_bias(bias):
    with pytest.raises(InputError, match="bias: expected an integer >= 1"):
        compress(Graph([(0, 1)]), bias=bias)


def test_auto_bias_is_never_longer():
    for graph in (
        sample(100, 400, seed=1),
        Graph(np.arange(1000).reshape(-1, 2)),
    ):
        data = compress(graph, bias="auto")
        assert decompress(data) == graph
        assert len(data) <= len(compress(graph)) + 1


@pytest.mark.parametrize("shards", [2, 3, 16])
@pytest.mark.parametrize("directed", [False, True])
def test_shards(shards, directed):
    graph = sample(500, 4000, seed=1, directed=directed)
    data = compress(graph, shards=shards)
    assert data == compress(graph, shards=shards)
    assert decompress(data) == graph
    assert peek(data).shards == shards
    assert len(data) > len(compress(graph))
    assert decompress(compress(Graph([(0, 1)]), shards=shards)) == Graph([(0, 1)])


def test_shards_cost_the_assignment_and_separate_urns():
    graph = sample(5000, 20_000, seed=1).simple()
    one, four = (8 * peek(compress(graph, shards=k)).payload_bytes for k in (1, 4))
    quarter = graph.num_edges // 4
    assignment = sum(math.log2(math.comb(k * quarter, quarter)) for k in (2, 3, 4))
    # an urn for a quarter of the edges knows the degrees less well, but not by much
    assert assignment < four - one < 1.25 * assignment


def test_progress_counts_edges():
    graph = sample(1000, 300_000, seed=1)
    for shards in (1, 3):
        packing, unpacking = [], []
        data = compress(graph, shards=shards, progress=lambda *seen, log=packing: log.append(seen))
        decompress(data, progress=lambda *seen, log=unpacking: log.append(seen))
        for log in (packing, unpacking):
            assert log[-1] == (300_000, 300_000)
            assert log == sorted(log)


@pytest.mark.parametrize("shards", [1, 4])
def test_an_interruption_stops_the_work(shards):
    def interrupt(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compress(sample(100, 400_000, seed=1), shards=shards, progress=interrupt)


def test_cached_kernels_depend_on_all_their_sources():
    """An edit of ans.py or structures.py must not find the old kernels again."""
    files = [Path(module.__file__).read_bytes() for module in (ans, structures)]
    for kernel in (codec._encode_steps, codec._decode_steps):
        values = [cell.cell_contents for cell in kernel.py_func.__closure__]
        assert values == [zlib.crc32(b"".join(files))]


def test_kernels_work_where_nothing_can_be_cached(monkeypatch):
    monkeypatch.setattr("numba.core.caching.CacheImpl._locator_classes", [])
    kernel = cached(lambda x: x + 1)
    assert kernel(2) == 3
    assert not kernel.stats.cache_path
