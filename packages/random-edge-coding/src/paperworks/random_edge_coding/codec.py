"""Random Edge Coding: bits-back coding of an edge multiset under Polya's urn."""

import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numba import njit

from . import ans, structures
from .ans import LOWER, close_pop, open_pop, pop_bit, push, push_bit
from .structures import (
    bitmap_rank,
    bitmap_take,
    cached,
    count_tree,
    count_tree_bytes,
    full_bitmap,
    key_tree,
    key_tree_bytes,
    key_tree_insert,
    key_tree_list,
    tree_add,
    tree_find_add,
)

_CHUNK = 1 << 17  # edges between two looks at the progress callback and at Ctrl-C

# State register: head, number of words on the stack, edges left (encoder) or done (decoder),
# failure flag, and the fingerprint of the sources that the kernels were compiled from.
_HEAD, _SIZE, _EDGES, _FAILED, _SOURCES = range(5)


@njit
def _run_bounds(edges, place):
    """First place and end of the copies of the edge at ``place`` in the sorted ``edges``."""
    u, v = edges[place, 0], edges[place, 1]
    first = place
    step = 1
    while first - step >= 0 and edges[first - step, 0] == u and edges[first - step, 1] == v:
        first -= step
        step *= 2
    low = max(first - step, -1)
    while first - low > 1:
        middle = (first + low) // 2
        if edges[middle, 0] == u and edges[middle, 1] == v:
            first = middle
        else:
            low = middle
    last = place
    step = 1
    while last + step < len(edges) and edges[last + step, 0] == u and edges[last + step, 1] == v:
        last += step
        step *= 2
    high = min(last + step, len(edges))
    while high - last > 1:
        middle = (high + last) // 2
        if edges[middle, 0] == u and edges[middle, 1] == v:
            last = middle
        else:
            high = middle
    return first, last + 1


def _make_kernels(sources):
    """Compile the two loops.

    Numba finds a cached kernel again as long as the file of its function is unchanged, although
    kernels of other files are compiled into it. The variables of a closure are part of the key too:
    ``sources`` stands for those files.
    """

    @cached
    def encode_steps(
        register,
        stack,
        edges,
        directed,
        words,
        word_nodes,
        word_offsets,
        nodes,
        offsets,
        total,
        steps,
    ):
        """Move ``steps`` edges into the state; ``total`` is the sum of the vertex counts."""
        register[_SOURCES] = sources
        head = np.uint64(register[_HEAD])
        size = np.int64(register[_SIZE])
        left = np.int64(register[_EDGES])
        last = len(edges) - 1
        for _ in range(steps):
            position, quotient, size = open_pop(head, size, stack, left)
            place = bitmap_take(words, word_nodes, word_offsets, position)
            u = np.int64(edges[place, 0])
            v = np.int64(edges[place, 1])
            start, copies = position, np.int64(1)
            if (place > 0 and edges[place - 1, 0] == u and edges[place - 1, 1] == v) or (
                place < last and edges[place + 1, 0] == u and edges[place + 1, 1] == v
            ):
                first, end = _run_bounds(edges, place)
                start = bitmap_rank(words, word_nodes, word_offsets, first)
                copies = bitmap_rank(words, word_nodes, word_offsets, end) - start + 1
            head, size = close_pop(position, quotient, size, stack, start, copies)
            left -= 1
            if not directed and u != v:
                bit, head, size = pop_bit(head, size, stack)
                if bit:
                    u, v = v, u
            start, count = tree_add(nodes, offsets, u, -1)
            total -= 1
            head, size = push(head, size, stack, start, count - 1, total)
            start, count = tree_add(nodes, offsets, v, -1)
            total -= 1
            head, size = push(head, size, stack, start, count - 1, total)
        register[_HEAD] = np.int64(head)
        register[_SIZE] = size
        register[_EDGES] = left

    @cached
    def decode_steps(register, stack, directed, tree, nodes, offsets, total, steps):
        """Move ``steps`` edges out of the state; ``total`` is the sum of the vertex counts."""
        register[_SOURCES] = sources
        # unpacked once: every unpacking counts references
        (
            keys,
            counts,
            leaf_size,
            leaf_next,
            inner_keys,
            inner_prefix,
            inner_child,
            inner_size,
            rows,
        ) = tree
        head = np.uint64(register[_HEAD])
        size = np.int64(register[_SIZE])
        done = np.int64(register[_EDGES])
        for _ in range(steps):
            position, quotient, size = open_pop(head, size, stack, total)
            v, start, count = tree_find_add(nodes, offsets, position, 1)
            head, size = close_pop(position, quotient, size, stack, start, count)
            total += 1
            position, quotient, size = open_pop(head, size, stack, total)
            u, start, count = tree_find_add(nodes, offsets, position, 1)
            head, size = close_pop(position, quotient, size, stack, start, count)
            total += 1
            if not directed and u != v:
                head, size = push_bit(head, size, stack, np.int64(u > v))
                if u > v:
                    u, v = v, u
            rank, copies = key_tree_insert(
                keys,
                counts,
                leaf_size,
                leaf_next,
                inner_keys,
                inner_prefix,
                inner_child,
                inner_size,
                rows,
                (u << 32) | v,
                done,
            )
            if copies == 0:
                register[_FAILED] = 1
                return
            done += 1
            head, size = push(head, size, stack, rank, copies, done)
        register[_HEAD] = np.int64(head)
        register[_SIZE] = size
        register[_EDGES] = done

    return encode_steps, decode_steps


_encode_steps, _decode_steps = _make_kernels(
    zlib.crc32(b"".join(Path(str(module.__file__)).read_bytes() for module in (ans, structures)))
)


def _with_room(stack, used, steps):
    """Give back ``stack`` with room for ``steps`` edges above its ``used`` words."""
    needed = used + 4 * steps  # an operation moves at most one word out, an edge takes four
    if len(stack) >= needed:
        return stack
    larger = np.empty(max(needed, 2 * len(stack)), np.uint32)
    larger[:used] = stack[:used]
    return larger


def encode(
    edges: np.ndarray,
    num_nodes: int,
    *,
    bias: int,
    directed: bool,
    check: int,
    progress: Callable[[int], None] | None = None,
) -> tuple[int, np.ndarray]:
    """Encode sorted edges into an ANS state.

    O(m log m) time and O(m + n) memory.

    Parameters
    ----------
    edges : ndarray of int32, shape (m, 2)
        Sorted lexicographically; each row sorted too unless ``directed``.
    num_nodes : int
        Number of vertices; ``2 * m + num_nodes * bias`` is below ``2**31``.
    bias : int
        The urn's initial count of each vertex, at least 1.
    directed : bool
        Whether the order inside an edge is part of the graph.
    check : int
        The state starts at ``2**31 + check``; `decode` expects to find this value again.
    progress : callable, optional
        Called with the number of edges of each finished chunk.

    Returns
    -------
    head : int
    words : ndarray of uint32
        The stack, bottom first.
    """
    size = len(edges)
    words, word_nodes, word_offsets = full_bitmap(size)
    degrees = np.bincount(edges.reshape(-1), minlength=num_nodes)
    nodes, offsets = count_tree(degrees + bias)
    register = np.array([LOWER + check, 0, size, 0, 0], np.int64)
    stack = np.empty(0, np.uint32)
    for begin in range(0, size, _CHUNK):
        steps = min(_CHUNK, size - begin)
        stack = _with_room(stack, int(register[_SIZE]), steps)
        total = 2 * (size - begin) + num_nodes * bias
        _encode_steps(
            register,
            stack,
            edges,
            directed,
            words,
            word_nodes,
            word_offsets,
            nodes,
            offsets,
            total,
            steps,
        )
        if progress is not None:
            progress(steps)
    return int(register[_HEAD]), stack[: register[_SIZE]].copy()


def decode(
    head: int,
    words: np.ndarray,
    num_nodes: int,
    num_edges: int,
    *,
    bias: int,
    directed: bool,
    repeated: bool,
    check: int,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray | None:
    """Inverse of `encode`.

    O(m log m) time and O(m + n) memory, whatever the order in which the edges come out.

    Parameters
    ----------
    head, words
        The state that `encode` returned.
    num_nodes, num_edges, bias, directed, check
        As for `encode`.
    repeated : bool
        Whether an edge may occur more than once. If not, a repetition counts as corruption.
    progress : callable, optional
        Called with the number of edges of each finished chunk.

    Returns
    -------
    ndarray of int64, shape (m,), or None
        Sorted edges as ``u << 32 | v``; None if the state is not one that `encode` could have made.
    """
    pairs = num_nodes * num_nodes if directed else num_nodes * (num_nodes + 1) // 2
    tree = key_tree(min(num_edges, pairs), repeated=repeated)
    nodes, offsets = count_tree(np.full(num_nodes, bias, np.int32))
    register = np.array([head, len(words), 0, 0, 0], np.int64)
    stack = words
    for begin in range(0, num_edges, _CHUNK):
        steps = min(_CHUNK, num_edges - begin)
        stack = _with_room(stack, int(register[_SIZE]), steps)
        total = 2 * begin + num_nodes * bias
        _decode_steps(register, stack, directed, tree, nodes, offsets, total, steps)
        if register[_FAILED]:
            return None
        if progress is not None:
            progress(steps)
    if register[_HEAD] != LOWER + check or register[_SIZE] != 0:
        return None
    keys = np.empty(num_edges, np.int64)
    key_tree_list(tree, keys)
    return keys


def working_bytes(num_nodes: int, num_edges: int, *, directed: bool, repeated: bool) -> int:
    """Upper bound of the memory that `decode` allocates besides its input, in bytes."""
    pairs = num_nodes * num_nodes if directed else num_nodes * (num_nodes + 1) // 2
    tree = key_tree_bytes(min(num_edges, pairs), repeated=repeated)
    counts = count_tree_bytes(num_nodes) + 4 * num_nodes
    return tree + counts + 8 * num_edges + 16 * min(num_edges, _CHUNK)
