import networkx as nx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from paperworks.random_edge_coding import Graph, sample
from paperworks.shared.errors import InputError

VARIANTS = [
    sample(30, 80, seed=1),
    sample(30, 80, seed=1).simple(),
    sample(30, 80, seed=1, directed=True),
    Graph([], 4),
    Graph([(0, 0), (0, 0), (2, 1)], 5),
]


def test_canonical_form():
    graph = Graph([(3, 1), (0, 2), (1, 3), (1, 1)])
    assert graph.edges.tolist() == [[0, 2], [1, 1], [1, 3], [1, 3]]
    assert graph.edges.dtype == np.int64
    assert (graph.num_nodes, graph.num_edges, graph.num_loops, graph.num_repeated) == (4, 4, 1, 1)
    assert not graph.is_simple
    assert graph.edges32.tolist() == graph.edges.tolist()
    assert graph.degrees().tolist() == [1, 4, 1, 2]
    assert graph.multiplicities().tolist() == [1, 1, 2]
    assert graph.simple().edges.tolist() == [[0, 2], [1, 3]]
    assert Graph([(3, 1), (0, 2)], directed=True).edges.tolist() == [[0, 2], [3, 1]]
    assert "undirected, num_nodes=4, num_edges=4" in repr(graph)


def test_equality_is_of_edge_multisets():
    assert Graph([(0, 1), (2, 3)]) == Graph([(3, 2), (1, 0)])
    # sorting the two columns separately would call these equal
    assert Graph([(0, 3), (1, 2)]) != Graph([(0, 2), (1, 3)])
    assert Graph([(0, 1), (0, 1)]) != Graph([(0, 1)])
    assert Graph([(0, 1)], 2) != Graph([(0, 1)], 3)
    assert Graph([(0, 1)]) != Graph([(0, 1)], directed=True)
    assert Graph([(0, 1)]) != "a graph"


@given(st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 2))), st.booleans())
def test_edges_are_the_sorted_input(pairs, directed):
    graph = Graph(np.array(pairs, np.int64).reshape(-1, 2), directed=directed)
    expected = sorted(p if directed else tuple(sorted(p)) for p in pairs)
    assert list(map(tuple, graph.edges.tolist())) == expected


@pytest.mark.parametrize("graph", VARIANTS)
def test_csr(graph):
    matrix = graph.to_csr()
    assert isinstance(matrix, scipy.sparse.csr_array)
    assert Graph.from_csr(matrix, directed=graph.directed) == graph
    dense = np.zeros((graph.num_nodes, graph.num_nodes), int)
    for u, v in graph.edges.tolist():
        dense[u, v] += 1
        if not graph.directed and u != v:
            dense[v, u] += 1
    assert (matrix.toarray() == dense).all()


@pytest.mark.parametrize("graph", VARIANTS)
def test_edge_index(graph):
    index = graph.to_edge_index()
    assert index.shape[0] == 2
    assert Graph.from_edge_index(index, graph.num_nodes, directed=graph.directed) == graph


@pytest.mark.parametrize("graph", VARIANTS)
def test_networkx(graph):
    other = graph.to_networkx()
    assert other.is_directed() == graph.directed
    assert other.number_of_edges() == graph.num_edges
    restored, labels = Graph.from_networkx(other)
    assert (restored, labels) == (graph, list(range(graph.num_nodes)))


def test_networkx_labels():
    graph, labels = Graph.from_networkx(nx.les_miserables_graph())
    assert (graph.num_nodes, graph.num_edges) == (77, 254)
    assert "Valjean" in labels


def test_labels_and_compact():
    graph, labels = Graph.from_labels([("c", "a"), ("a", "b")])
    assert labels.tolist() == ["a", "b", "c"]
    assert graph == Graph([(2, 0), (0, 1)])
    graph, ids = Graph([(5, 9), (9, 2**20)]).compact()
    assert ids.tolist() == [5, 9, 2**20]
    assert graph == Graph([(0, 1), (1, 2)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([(0, 1, 2)]), r"edges: expected shape \(any, 2\)"),
        (lambda: Graph([(0, -1)]), "edges.*expected numbers >= 0, found -1"),
        (lambda: Graph([(0, 1.5)]), "edges.*expected whole numbers, found 1.5"),
        (lambda: Graph([(0, np.nan)]), "edges.*expected finite numbers, found nan"),
        (lambda: Graph([(0, 1), (7, 2)], 5), r"edges\[1\]: expected ids below num_nodes = 5"),
        (lambda: Graph([(0, 2**31)]), "Graph.from_labels"),
        (lambda: Graph([], -1), "num_nodes: expected an integer >= 0"),
        (lambda: Graph([], 2**31), "num_nodes: expected an integer"),
        (lambda: Graph.from_labels([1, 2]), "pairs: expected shape"),
        (lambda: Graph.from_edge_index([[0], [1]]), "expected both directions of every edge"),
        (lambda: Graph.from_csr(scipy.sparse.csr_array([[0, 1.5]])), "as many rows as columns"),
        (lambda: Graph.from_csr(scipy.sparse.csr_array([[0, 1.5], [0, 0]])), "whole numbers"),
        (lambda: Graph.from_csr(scipy.sparse.csr_array([[0, 1], [0, 0]])), "both directions"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_float_ids_that_are_whole_are_taken():
    assert Graph([(0.0, 3.0)]) == Graph([(0, 3)])
