"""The object that is coded: a labelled graph as a multiset of edges, in canonical form."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import InputError, expected, require
from paperworks.shared.validation import check_array, check_number

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: Largest number of vertices: ids fit 31 bits, so that an edge fits a signed 64-bit key.
MAX_NODES = (1 << 31) - 1
#: Limit of the coder's arithmetic: ``2 * num_edges + num_nodes * bias``.
MAX_TOTAL = (1 << 31) - 1
_LOW = 0xFFFFFFFF


class Graph:
    """A labelled graph: vertices ``0..num_nodes-1`` and a multiset of edges without order.

    Loops and repeated edges are allowed. Two graphs are equal when they have the same vertices, the
    same direction and the same multiset of edges.

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        One edge a row, in any order; in an undirected graph the order inside a row does not matter
        either.
    num_nodes : int, optional
        At most ``2**31 - 1``; one more than the largest id by default.
    directed : bool
        Whether an edge ``(u, v)`` differs from ``(v, u)``.

    Raises
    ------
    InputError
        For another shape, ids that are no whole numbers, negative ids, or ids that are not below
        ``num_nodes``.

    Examples
    --------
    >>> Graph([[2, 0], [0, 1]]).edges.tolist()
    [[0, 1], [0, 2]]
    """

    __hash__ = None

    def __init__(
        self, edges: ArrayLike, num_nodes: int | None = None, *, directed: bool = False
    ) -> None:
        if isinstance(edges, list | tuple) and len(edges) == 0:
            edges = np.empty((0, 2), np.int64)
        array = check_array("edges", edges, shape=(None, 2), dtype=np.int64, minimum=0)
        top = int(array.max()) if array.size else -1
        if num_nodes is None:
            num_nodes = top + 1
            if num_nodes > MAX_NODES:
                raise expected("edges", f"ids below {MAX_NODES} (Graph.from_labels takes any)", top)
        num_nodes = check_number("num_nodes", num_nodes, integer=True, minimum=0, maximum=MAX_NODES)
        if top >= num_nodes:
            row = int(np.argmax(array.max(axis=1) >= num_nodes))
            raise expected(
                f"edges[{row}]", f"ids below num_nodes = {num_nodes}", array[row].tolist()
            )
        first, second = array[:, 0], array[:, 1]
        if not directed:
            first, second = np.minimum(first, second), np.maximum(first, second)
        keys = (first << 32) | second
        if not _is_sorted(keys):
            keys.sort()
        self._set(keys, num_nodes, directed)

    def _set(self, keys: np.ndarray, num_nodes: int, directed: bool) -> None:
        keys.flags.writeable = False
        self._keys = keys
        self._num_nodes = num_nodes
        self._directed = bool(directed)

    @classmethod
    def from_keys(cls, keys: np.ndarray, num_nodes: int, *, directed: bool = False) -> Graph:
        """Take over sorted 64-bit keys ``u << 32 | v`` as they are, without a check or a copy.

        Parameters
        ----------
        keys : ndarray of int64, shape (m,)
            In increasing order; ``u <= v`` unless ``directed``. Becomes read-only.
        num_nodes : int
            Number of vertices, above every id.
        directed : bool
            As for `Graph`.
        """
        graph = cls.__new__(cls)
        graph._set(keys, num_nodes, directed)
        return graph

    @classmethod
    def from_labels(cls, pairs: ArrayLike, *, directed: bool = False) -> tuple[Graph, np.ndarray]:
        """Give arbitrary labels the numbers ``0..n-1`` in increasing order.

        Parameters
        ----------
        pairs : array_like, shape (m, 2)
            Integers or strings.
        directed : bool
            As for `Graph`.

        Returns
        -------
        graph : Graph
        labels : ndarray, shape (num_nodes,)
            ``labels[i]`` is the label of vertex ``i``.
        """
        pairs = np.asarray(pairs)
        if pairs.ndim != 2 or pairs.shape[1] != 2:
            raise expected("pairs", "shape (any, 2)", f"shape {pairs.shape}")
        if pairs.dtype.kind not in "iuUO":
            raise expected("pairs", "integers below 2**64 or strings", f"dtype {pairs.dtype}")
        try:
            labels, ids = np.unique(pairs, return_inverse=True)
        except TypeError:
            raise expected("pairs", "labels of one kind", "labels that have no order") from None
        return cls(ids.reshape(pairs.shape), len(labels), directed=directed), labels

    @property
    def num_nodes(self) -> int:
        """Number of vertices, isolated ones included."""
        return self._num_nodes

    @property
    def num_edges(self) -> int:
        """Number of edges; copies count separately."""
        return len(self._keys)

    @property
    def directed(self) -> bool:
        """Whether edges are ordered pairs."""
        return self._directed

    @property
    def keys(self) -> np.ndarray:
        """Sorted edges as int64 keys ``u << 32 | v``, shape (m,), read-only."""
        return self._keys

    @property
    def edges(self) -> np.ndarray:
        """Sorted edges, int64, shape (m, 2), made when asked; rows are sorted unless directed."""
        return np.stack([self._keys >> 32, self._keys & _LOW], axis=1)

    @property
    def edges32(self) -> np.ndarray:
        """`edges` as int32, half the size."""
        halves = self._keys.astype("<i8", copy=False).view("<i4").reshape(-1, 2)
        return np.ascontiguousarray(halves[:, ::-1], dtype=np.int32)

    @cached_property
    def num_loops(self) -> int:
        """Number of edges that join a vertex to itself; copies count separately."""
        return int(np.count_nonzero(self._keys >> 32 == self._keys & _LOW))

    @cached_property
    def num_repeated(self) -> int:
        """Number of edges that a simple graph would drop as copies of another one."""
        return int(np.count_nonzero(self._keys[1:] == self._keys[:-1]))

    @property
    def is_simple(self) -> bool:
        """Whether there is neither a loop nor a repeated edge."""
        return self.num_loops == 0 and self.num_repeated == 0

    def degrees(self) -> np.ndarray:
        """Count how often each vertex occurs in edges; a loop counts twice. int64, (num_nodes,)."""
        return np.bincount(self.edges32.reshape(-1), minlength=self._num_nodes)

    def multiplicities(self) -> np.ndarray:
        """Count the copies of each distinct edge, in the order of `edges`, int64."""
        if not len(self._keys):
            return np.empty(0, np.int64)
        starts = np.flatnonzero(np.concatenate([[True], self._keys[1:] != self._keys[:-1]]))
        return np.diff(starts, append=len(self._keys))

    def simple(self) -> Graph:
        """Return the graph without loops and with one copy of each edge."""
        keys = self._keys[self._keys >> 32 != self._keys & _LOW]
        if len(keys):
            keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
        return Graph.from_keys(keys, self._num_nodes, directed=self._directed)

    def compact(self) -> tuple[Graph, np.ndarray]:
        """Drop isolated vertices and renumber the others in order.

        Returns
        -------
        graph : Graph
        ids : ndarray of int64
            ``ids[i]`` is the former id of vertex ``i``.
        """
        ids = np.flatnonzero(self.degrees())
        place = np.zeros(self._num_nodes, np.int64)
        place[ids] = np.arange(len(ids))
        keys = place[self._keys >> 32] << 32 | place[self._keys & _LOW]
        return Graph.from_keys(keys, len(ids), directed=self._directed), ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        return (
            self._num_nodes == other._num_nodes
            and self._directed == other._directed
            and np.array_equal(self._keys, other._keys)
        )

    def __repr__(self) -> str:
        kind = "directed" if self._directed else "undirected"
        return f"Graph({kind}, num_nodes={self._num_nodes}, num_edges={self.num_edges})"

    def to_csr(self) -> csr_array:
        """Make the adjacency matrix: entry ``(u, v)`` counts edges; loops count once.

        Returns
        -------
        scipy.sparse.csr_array of int64, shape (num_nodes, num_nodes)
        """
        from scipy.sparse import coo_array

        first, second = self.to_edge_index()
        size = (self._num_nodes, self._num_nodes)
        return coo_array((np.ones(len(first), np.int64), (first, second)), shape=size).tocsr()

    @classmethod
    def from_csr(cls, matrix: Any, *, directed: bool = False) -> Graph:
        """Inverse of `to_csr`, for any SciPy sparse matrix of non-negative integers.

        Raises
        ------
        InputError
            For an entry that is no count of edges, or an undirected matrix that is not symmetric.
        """
        matrix = matrix.tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise expected("matrix", "as many rows as columns", f"shape {matrix.shape}")
        counts = check_array("matrix", matrix.data, dtype=np.int64, minimum=0)
        rows, columns = (np.asarray(c, dtype=np.int64) for c in matrix.coords)
        pairs = np.repeat(np.stack([rows, columns], axis=1), counts, axis=0)
        return cls.from_edge_index(pairs.T, matrix.shape[0], directed=directed)

    def to_edge_index(self) -> np.ndarray:
        """Make the index of PyTorch Geometric: both directions of an undirected edge, loops once.

        int64, shape (2, E).

        ``torch_geometric.data.Data(edge_index=torch.from_numpy(graph.to_edge_index()),
        num_nodes=graph.num_nodes)``
        """
        first, second = self._keys >> 32, self._keys & _LOW
        if self._directed:
            return np.stack([first, second])
        other = first != second
        return np.stack(
            [np.concatenate([first, second[other]]), np.concatenate([second, first[other]])]
        )

    @classmethod
    def from_edge_index(
        cls, edge_index: ArrayLike, num_nodes: int | None = None, *, directed: bool = False
    ) -> Graph:
        """Inverse of `to_edge_index`.

        Raises
        ------
        InputError
            If ``directed`` is false and some edge lacks its reverse.
        """
        index = check_array("edge_index", edge_index, shape=(2, None), dtype=np.int64, minimum=0)
        both = cls(index.T, num_nodes, directed=True)
        if directed:
            return both
        first, second = both._keys >> 32, both._keys & _LOW
        upper = both._keys[first <= second]
        mirrored = np.sort(second[first > second] << 32 | first[first > second])
        if not np.array_equal(upper[upper >> 32 != upper & _LOW], mirrored):
            raise InputError(
                "edge_index: expected both directions of every edge, found one: is it directed?"
            )
        return cls.from_keys(upper, both.num_nodes)

    def to_networkx(self) -> Any:
        """Make a ``networkx`` graph: (Multi)(Di)Graph as the edges need it."""
        networkx = require("networkx", package="paperworks-random-edge-coding", extra="formats")
        name = ("Multi" if self.num_repeated else "") + ("Di" if self._directed else "") + "Graph"
        graph = getattr(networkx, name)()
        graph.add_nodes_from(range(self._num_nodes))
        graph.add_edges_from(self.edges.tolist())
        return graph

    @classmethod
    def from_networkx(cls, graph: Any) -> tuple[Graph, list]:
        """Take the vertices of a ``networkx`` graph in its order.

        Returns
        -------
        graph : Graph
        labels : list
            ``labels[i]`` is the ``networkx`` node of vertex ``i``.
        """
        labels = list(graph)
        place = {label: i for i, label in enumerate(labels)}
        pairs = [(place[u], place[v]) for u, v in graph.edges()]
        return cls(pairs, len(labels), directed=graph.is_directed()), labels


def _is_sorted(keys: np.ndarray) -> bool:
    """Whether ``keys`` increase; looks at a sample first, since most inputs fail early."""
    return bool(np.all(keys[1:1025] >= keys[:-1][:1024])) and bool(np.all(keys[1:] >= keys[:-1]))
