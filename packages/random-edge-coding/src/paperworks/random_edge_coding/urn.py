"""Polya's urn: how many bits a graph needs under it, and under the models it is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from paperworks.shared.errors import InputError
from paperworks.shared.seeding import Seed, generator
from paperworks.shared.validation import check_number

from .graph import MAX_TOTAL, Graph

#: What ``bias="auto"`` tries.
BIASES = tuple(1 << k for k in range(11))
_LN2 = math.log(2.0)


@dataclass(frozen=True)
class Information:
    """Bits that a graph needs under several models.

    Attributes
    ----------
    bias : int
        The urn's bias.
    num_edges : int
        Number of edges.
    sequence_bits : float
        Polya's urn, vertices coded as a sequence: pays for the order of the edges and of the
        vertices inside them.
    order_bits : float
        What that order is worth: the saving of Random Edge Coding. ``log2(m!) + m`` for a simple
        undirected graph.
    graph_bits : float
        ``sequence_bits - order_bits``: the information of the graph under the urn.
    erdos_renyi_bits : float
        All graphs of this size alike: simple or multigraphs, with or without loops, as the graph
        is.
    plain_bits : float
        ``2 m ceil(log2 n)``: a binary edge list.
    degree_entropy_bits : float
        ``2 m`` times the entropy of the degree distribution: a sequence coded with known degrees,
        which are not paid for.
    """

    bias: int
    num_edges: int
    sequence_bits: float
    order_bits: float
    graph_bits: float
    erdos_renyi_bits: float
    plain_bits: float
    degree_entropy_bits: float

    @property
    def bits_per_edge(self) -> float:
        """``graph_bits / num_edges``; NaN without edges."""
        return self.graph_bits / self.num_edges if self.num_edges else math.nan


def information(graph: Graph, bias: int = 1) -> Information:
    """Information content of a graph under Polya's urn and other models.

    With ``x^(k) = x (x + 1) ... (x + k - 1)`` the sequence needs ``log2 (n b)^(2m) - sum_v log2
    b^(deg v)`` bits, and the graph ``log2(m! / prod_e mult(e)!) + m - loops`` fewer (directed:
    without ``m - loops``), because that many equally likely sequences describe it. O(m + n).

    Parameters
    ----------
    graph : Graph
        Any graph.
    bias : int
        The urn's count of each vertex before the first edge, at least 1.

    Returns
    -------
    Information
        Accurate up to the rounding of doubles; the codec itself uses integers only.
    """
    bias = check_number("bias", bias, integer=True, minimum=1, maximum=MAX_TOTAL)
    degree_values, degree_counts = _degree_histogram(graph)
    sequence = _sequence_bits(graph.num_nodes, graph.num_edges, bias, degree_values, degree_counts)
    order = _order_bits(graph)
    ends = 2 * graph.num_edges
    share = degree_values / max(ends, 1)
    return Information(
        bias=bias,
        num_edges=graph.num_edges,
        sequence_bits=sequence,
        order_bits=order,
        graph_bits=sequence - order,
        erdos_renyi_bits=_erdos_renyi_bits(graph),
        plain_bits=float(ends * max(graph.num_nodes - 1, 0).bit_length()),
        degree_entropy_bits=float(-ends * np.sum(degree_counts * share * np.log2(share))) + 0.0,
    )


def best_bias(graph: Graph) -> int:
    """Pick the power of two up to 1024 under which the urn needs the fewest bits for the graph.

    Parameters
    ----------
    graph : Graph
        Any graph.

    Returns
    -------
    int
        The smallest of the best, within what the coder can take.
    """
    values, counts = _degree_histogram(graph)
    size, ends = graph.num_nodes, 2 * graph.num_edges
    allowed = [b for b in BIASES if b == 1 or ends + size * b <= MAX_TOTAL]
    return min(allowed, key=lambda b: _sequence_bits(size, graph.num_edges, b, values, counts))


def sample(
    num_nodes: int, num_edges: int, *, bias: int = 1, directed: bool = False, seed: Seed = 0
) -> Graph:
    """Draw a graph from the urn.

    Each of the ``2 m`` ends is a vertex in proportion to its occurrences so far plus the bias.

    O(m) by the usual device: an end copies a uniformly chosen earlier end, or is a uniform vertex.

    Parameters
    ----------
    num_nodes, num_edges : int
        Size of the graph.
    bias : int
        The urn's bias, at least 1.
    directed : bool
        Whether edges are ordered pairs.
    seed : int or numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Graph
    """
    num_nodes = check_number("num_nodes", num_nodes, integer=True, minimum=0)
    num_edges = check_number("num_edges", num_edges, integer=True, minimum=0)
    bias = check_number("bias", bias, integer=True, minimum=1)
    if num_edges and not num_nodes:
        raise InputError("num_nodes: expected an integer >= 1 for a graph with edges, found 0")
    random = generator(seed)
    ends = 2 * num_edges
    drawn = random.integers(0, np.arange(ends) + num_nodes * bias)
    # A draw below n*b is a fresh vertex; any other points at the earlier end whose vertex it
    # repeats.
    source = np.where(drawn < num_nodes * bias, np.arange(ends), drawn - num_nodes * bias)
    while not np.array_equal(hop := source[source], source):
        source = hop
    return Graph((drawn[source] // bias).reshape(-1, 2), num_nodes, directed=directed)


def _degree_histogram(graph: Graph) -> tuple[np.ndarray, np.ndarray]:
    """Degrees that occur, zero left out, and how often each does."""
    ends = graph.edges32.reshape(-1)
    if graph.num_nodes > 4 * len(ends):  # sparse ids: no array over all vertices
        return _histogram(np.unique(ends, return_counts=True)[1])
    return _histogram(np.bincount(ends))


def _histogram(degrees: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    counts = np.bincount(degrees)
    counts[:1] = 0
    values = np.flatnonzero(counts)
    return values, counts[values]


def _sequence_bits(
    size: int, edges: int, bias: int, values: np.ndarray, counts: np.ndarray
) -> float:
    if not edges:
        return 0.0
    whole = gammaln(size * bias + 2 * edges) - gammaln(size * bias)
    parts = np.sum(counts * (gammaln(values + bias) - gammaln(bias)))
    return float(whole - parts) / _LN2


def _order_bits(graph: Graph) -> float:
    natural = gammaln(graph.num_edges + 1)
    if graph.num_repeated:
        values, counts = _histogram(graph.multiplicities())
        natural -= np.sum(counts * gammaln(values + 1))
    return float(natural) / _LN2 + (0 if graph.directed else graph.num_edges - graph.num_loops)


def _erdos_renyi_bits(graph: Graph) -> float:
    n, m = graph.num_nodes, graph.num_edges
    pairs = n * (n - 1) if graph.directed else n * (n - 1) // 2
    if graph.num_loops:
        pairs += n
    if graph.num_repeated:
        pairs += m - 1
    return _log2_binomial(pairs, m)


def _log2_binomial(total: int, chosen: int) -> float:
    """``log2 C(total, chosen)``, also where the logarithms of the factorials would cancel."""
    if chosen == 0:
        return 0.0
    rest = total - chosen
    if total < 1 << 20:
        return float(gammaln(total + 1) - gammaln(rest + 1) - gammaln(chosen + 1)) / _LN2
    if chosen > rest:
        return _log2_binomial(total, rest)
    # Stirling's series for total! and rest!, with the large terms subtracted by hand
    falling = chosen * math.log(total) - (rest + 0.5) * math.log1p(-chosen / total) - chosen
    falling += 1 / (12 * total) - 1 / (12 * rest)
    return (falling - float(gammaln(chosen + 1))) / _LN2
