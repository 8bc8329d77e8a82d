import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import slow_codec
from scipy.stats import chisquare

from paperworks.random_edge_coding import Graph, best_bias, information, sample
from paperworks.shared.errors import InputError


def all_multigraphs(n, m, *, directed):
    pairs = [(u, v) for u in range(n) for v in range(n) if directed or u <= v]
    return itertools.combinations_with_replacement(pairs, m)


@pytest.mark.parametrize("bias", [1, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_probabilities_of_all_small_multigraphs_sum_to_one(directed, bias):
    for n in range(1, 5):
        for m in range(5):
            total = Fraction(0)
            for edges in all_multigraphs(n, m, directed=directed):
                p = slow_codec.probability(edges, n, bias, directed)
                total += p
                bits = information(Graph(edges, n, directed=directed), bias).graph_bits
                assert bits == pytest.approx(slow_codec.bits(p), abs=1e-9)
            assert total == 1


def test_information_agrees_with_exact_integers_on_random_graphs():
    random = np.random.default_rng(0)
    for _ in range(1000):
        n, m = int(random.integers(1, 60)), int(random.integers(0, 120))
        b, directed = int(random.integers(1, 9)), bool(random.integers(2))
        edges = np.floor(n * random.random((m, 2)) ** random.choice([1, 3])).astype(int).tolist()
        exact = slow_codec.bits(slow_codec.probability(edges, n, b, directed))
        found = information(Graph(edges, n, directed=directed), b)
        assert found.graph_bits == pytest.approx(exact, rel=1e-12, abs=1e-9)
        assert found.sequence_bits - found.order_bits == found.graph_bits


def test_a_simple_graph_saves_the_order_of_edges_and_ends():
    graph = sample(200, 500, seed=1).simple()
    m = graph.num_edges
    assert information(graph).order_bits == pytest.approx(
        slow_codec.log2_int(math.factorial(m)) + m
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("repeated", [False, True])
def test_erdos_renyi_counts_graphs_of_the_same_kind(directed, loops, repeated):
    n = 9
    edges = [(0, 1), (2, 3), (4, 8)] + loops * [(5, 5)] + repeated * [(0, 1)]
    pairs = n * n if directed else n * (n + 1) // 2
    pairs -= n * (not loops)
    m = len(edges)
    count = math.comb(pairs + m - 1, m) if repeated else math.comb(pairs, m)
    found = information(Graph(edges, n, directed=directed)).erdos_renyi_bits
    assert found == pytest.approx(math.log2(count))


@pytest.mark.parametrize("n", [2000, 10**5, 10**9])
@pytest.mark.parametrize("m", [1, 77, 3000])
def test_erdos_renyi_keeps_its_digits_on_large_sets(n, m):
    random = np.random.default_rng(n + m)
    graph = Graph(random.integers(0, n, (m, 2)), n).simple()
    exact = slow_codec.binomial_bits(n * (n - 1) // 2, graph.num_edges)
    assert information(graph).erdos_renyi_bits == pytest.approx(exact, rel=1e-12)


def test_erdos_renyi_of_an_almost_complete_graph():
    n = 1500
    graph = Graph(np.stack(np.triu_indices(n, 1), axis=1)[5:], n)
    exact = slow_codec.binomial_bits(n * (n - 1) // 2, 5)
    assert information(graph).erdos_renyi_bits == pytest.approx(exact, rel=1e-9)


def test_sizes_without_bits():
    for graph in (Graph([], 0), Graph([], 7), Graph([(0, 0)] * 5)):
        assert information(graph).graph_bits == pytest.approx(0, abs=1e-9)
    assert math.isnan(information(Graph([], 3)).bits_per_edge)
    assert information(Graph([(0, 4)])).plain_bits == 6


def test_degree_entropy_is_the_entropy_of_the_ends():
    found = information(Graph([(0, 1), (2, 3)]))
    assert found.degree_entropy_bits == pytest.approx(4 * 2)


def test_best_bias_is_the_minimum():
    for graph in (sample(300, 900, seed=0), sample(300, 900, bias=64, seed=0)):
        costs = {1 << k: information(graph, 1 << k).graph_bits for k in range(11)}
        assert best_bias(graph) == min(costs, key=costs.get)
    assert best_bias(sample(300, 900, seed=0)) < best_bias(sample(300, 900, bias=64, seed=0))


@pytest.mark.parametrize("bias", [1, 2])
def test_samples_have_the_probabilities_of_the_urn(bias):
    graphs = list(all_multigraphs(2, 2, directed=False))
    keys = [tuple(map(tuple, g)) for g in graphs]
    counts = dict.fromkeys(keys, 0)
    random = np.random.default_rng(0)
    draws = 4000
    for _ in range(draws):
        edges = sample(2, 2, bias=bias, seed=random).edges
        counts[tuple(map(tuple, edges.tolist()))] += 1
    expected = [draws * float(slow_codec.probability(g, 2, bias)) for g in graphs]
    assert chisquare(list(counts.values()), expected).pvalue > 1e-3


def test_sample_is_reproducible_and_checked():
    assert sample(50, 80, seed=3) == sample(50, 80, seed=3)
    assert sample(50, 80, seed=3) != sample(50, 80, seed=4)
    with pytest.raises(InputError, match="num_nodes: expected an integer >= 1"):
        sample(0, 5)


@pytest.mark.parametrize("bias", [0, -1, 1.5, "x", True])
def test_bias_is_a_positive_integer(bias):
    with pytest.raises(InputError, match="bias: expected an integer >= 1"):
        information(Graph([(0, 1)]), bias)
