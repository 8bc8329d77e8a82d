"""Sampling and ranking in O(log n): a wide count tree, a bitmap with select, a counted B+-tree.

Nodes are rows of small fixed width, scanned without branches, so that the compiler turns each scan
into a few vector instructions. Levels and nodes live in flat arrays that are allocated once.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


def cached(function: Callable) -> Any:
    """Compile a kernel that releases the interpreter's lock, and keep the code between processes.

    Where neither the package's folder nor the user's can be written to, numba refuses to cache;
    then the kernel is compiled anew in each process.
    """
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


# --------------------------------------------------------------------------------------------------
# Count tree: a multiset over 0..n-1. Level 0 holds, for each item, the inclusive prefix sum of the
# counts within its node of 64 items; level k does the same for the nodes of level k-1. One node is
# at the top.

_SHIFT = 6
WIDTH = 1 << _SHIFT
_SLOT = WIDTH - 1


def count_tree(counts):
    """Build a count tree.

    Parameters
    ----------
    counts : ndarray of int, shape (n,)
        Non-negative, with a sum below ``2**31``.

    Returns
    -------
    nodes : ndarray of int32, shape (number of nodes, 64)
    offsets : ndarray of int64, shape (number of levels,)
        First node of each level, leaves first.
    """
    levels = []
    while True:
        rows = max(1, -(-len(counts) // WIDTH))
        level = np.zeros((rows, WIDTH), np.int32)
        level.reshape(-1)[: len(counts)] = counts
        np.cumsum(level, axis=1, out=level)
        levels.append(level)
        if rows == 1:
            break
        counts = level[:, -1]
    offsets = np.cumsum([0] + [len(level) for level in levels[:-1]])
    return np.concatenate(levels), offsets.astype(np.int64)


def count_tree_bytes(size):
    """Bytes that `count_tree` allocates for ``size`` items, its temporary copy included."""
    return 2 * 4 * (size + size // (WIDTH - 1) + 8 * WIDTH)


@njit
def tree_add(nodes, offsets, item, delta):
    """Add ``delta`` to the count of ``item``.

    Returns
    -------
    start : int64
        Sum of the counts of smaller items.
    count : int64
        Count of ``item`` before the change.
    """
    start = np.int64(0)
    count = np.int64(0)
    step = np.int32(delta)
    for level in range(len(offsets)):
        slot = np.int32(item & _SLOT)
        row = offsets[level] + (item >> _SHIFT)
        before = np.int64(nodes[row, slot - 1]) if slot > 0 else np.int64(0)
        if level == 0:
            count = np.int64(nodes[row, slot]) - before
        start += before
        _add_from(nodes, row, slot, step)
        item >>= _SHIFT
    return start, count


@njit
def _add_from(nodes, row, slot, step):
    """Add ``step`` to the entries of a row from ``slot`` on, by whole vectors under a mask."""
    for j in range(WIDTH):
        nodes[row, j] = np.int32(nodes[row, j] + (step if np.int32(j) >= slot else np.int32(0)))


@njit
def tree_prefix(nodes, offsets, item):
    """Sum of the counts of the items smaller than ``item``."""
    start = np.int64(0)
    for level in range(len(offsets)):
        slot = item & _SLOT
        if slot > 0:
            start += nodes[offsets[level] + (item >> _SHIFT), slot - 1]
        item >>= _SHIFT
    return start


@njit
def tree_find_add(nodes, offsets, position, delta):
    """Find the item whose interval holds ``position`` and add ``delta`` to its count.

    Returns
    -------
    item : int64
    start : int64
        Sum of the counts of smaller items.
    count : int64
        Count of ``item`` before the change.
    """
    item = np.int64(0)
    rest = np.int32(position)
    before = np.int32(0)
    after = np.int32(0)
    step = np.int32(delta)
    for level in range(len(offsets) - 1, -1, -1):
        row = offsets[level] + item
        slot = np.int32(0)
        for j in range(WIDTH):
            slot = np.int32(slot + np.int32(nodes[row, j] <= rest))
        before = nodes[row, slot - 1] if slot > 0 else np.int32(0)
        after = nodes[row, slot]
        _add_from(nodes, row, slot, step)
        rest = np.int32(rest - before)
        item = (item << _SHIFT) + np.int64(slot)
    return item, np.int64(position) - np.int64(rest), np.int64(after) - np.int64(before)


# --------------------------------------------------------------------------------------------------
# Bitmap with select: which positions of a sorted array are still there. A count tree over 64-bit
# words.


def _popcount(typing_context, word):
    signature = types.int64(types.uint64)

    def generate(context, builder, signature, arguments):
        return builder.ctpop(arguments[0])

    return signature, generate


#: Number of bits that are set in a 64-bit word: the processor's instruction.
popcount: Any = intrinsic(_popcount)


def full_bitmap(size):
    """Bitmap with all ``size`` positions set.

    Returns
    -------
    words : ndarray of uint64
    nodes, offsets : ndarray
        The count tree over the words.
    """
    words = np.full(-(-size // 64), 0xFFFFFFFFFFFFFFFF, np.uint64)
    counts = np.full(len(words), 64, np.int32)
    if size % 64:
        words[-1] = np.uint64((1 << (size % 64)) - 1)
        counts[-1] = size % 64
    nodes, offsets = count_tree(counts)
    return words, nodes, offsets


@njit
def select_bit(word, rank):
    """Index of the set bit of ``word`` that has ``rank`` set bits below it."""
    index = np.uint64(0)
    for width in (32, 16, 8, 4, 2, 1):
        shift = np.uint64(width)
        below = popcount(word & ((np.uint64(1) << shift) - np.uint64(1)))
        if rank >= below:
            rank -= below
            word >>= shift
            index += shift
    return np.int64(index)


@njit
def bitmap_take(words, nodes, offsets, rank):
    """Clear the set position that has ``rank`` set positions below it, and return it."""
    word, start, _ = tree_find_add(nodes, offsets, rank, -1)
    bit = select_bit(words[word], rank - start)
    words[word] &= ~(np.uint64(1) << np.uint64(bit))
    return (word << 6) + bit


@njit
def bitmap_rank(words, nodes, offsets, position):
    """Count the set positions below ``position``."""
    word = position >> 6
    below = tree_prefix(nodes, offsets, word)
    if position & 63:
        below += popcount(words[word] & ((np.uint64(1) << np.uint64(position & 63)) - np.uint64(1)))
    return below


# --------------------------------------------------------------------------------------------------
# Counted B+-tree: a growing multiset of int64 keys that answers "how many keys are smaller" on
# insertion. Leaves: rows of LEAF distinct keys in increasing order, filled up with _FREE, and (for
# multigraphs) their counts. Inner nodes: rows of FAN children with the first key and the inclusive
# prefix count of each. Full nodes are split on the way down, so that an insertion never has to go
# back up.

LEAF = 64
FAN = 32
_FREE = np.iinfo(np.int64).max
# columns of the tree's register array
_ROOT, _HEIGHT, _LEAVES, _INNER = 0, 1, 2, 3


def _key_tree_rows(distinct):
    leaves = distinct // (LEAF // 2) + 2  # all but the root are at least half full, on every level
    return leaves, leaves // (FAN // 2 - 1) + 16


def key_tree(distinct, *, repeated):
    """Allocate a counted B+-tree.

    Parameters
    ----------
    distinct : int
        Upper bound of the number of distinct keys.
    repeated : bool
        Whether a key may be inserted more than once.

    Returns
    -------
    tuple of ndarray
        What the kernels below take as ``tree``.
    """
    leaves, inner = _key_tree_rows(distinct)
    keys = np.empty((leaves, LEAF), np.int64)
    counts = np.empty((leaves if repeated else 0, LEAF), np.int32)
    leaf_size = np.zeros(leaves, np.int32)
    leaf_next = np.full(leaves, -1, np.int32)
    inner_keys = np.empty((inner, FAN), np.int64)
    inner_prefix = np.empty((inner, FAN), np.int32)
    inner_child = np.empty((inner, FAN), np.int32)
    inner_size = np.zeros(inner, np.int32)
    register = np.array([0, 0, 1, 0], np.int64)
    keys[0] = _FREE
    return (
        keys,
        counts,
        leaf_size,
        leaf_next,
        inner_keys,
        inner_prefix,
        inner_child,
        inner_size,
        register,
    )


def key_tree_bytes(distinct, *, repeated):
    """Bytes that `key_tree` allocates."""
    leaves, inner = _key_tree_rows(distinct)
    return leaves * (LEAF * (12 if repeated else 8) + 8) + inner * (FAN * 16 + 4)


@njit
def _split_leaf(keys, counts, leaf_size, leaf_next, register, child):
    """Move the upper half of a full leaf to a new one.

    Returns the new row, its first key, and how many keys stay below it.
    """
    half = LEAF // 2
    new = register[_LEAVES]
    register[_LEAVES] += 1
    for j in range(half):
        keys[new, j] = keys[child, half + j]
        keys[new, half + j] = _FREE
        keys[child, half + j] = _FREE
    left = np.int64(half)
    if counts.shape[0]:
        left = np.int64(0)
        for j in range(half):
            left += np.int64(counts[child, j])
            counts[new, j] = counts[child, half + j]
    leaf_size[child] = half
    leaf_size[new] = half
    leaf_next[new] = leaf_next[child]
    leaf_next[child] = new
    return new, keys[new, 0], left


@njit
def _split_inner(inner_keys, inner_prefix, inner_child, inner_size, register, child):
    """Move the upper half of a full inner node to a new one; return as `_split_leaf`."""
    half = FAN // 2
    new = register[_INNER]
    register[_INNER] += 1
    left = np.int64(inner_prefix[child, half - 1])
    for j in range(half):
        inner_keys[new, j] = inner_keys[child, half + j]
        inner_prefix[new, j] = inner_prefix[child, half + j] - left
        inner_child[new, j] = inner_child[child, half + j]
        inner_keys[new, half + j] = _FREE
        inner_keys[child, half + j] = _FREE
    inner_size[child] = half
    inner_size[new] = half
    return new, inner_keys[new, 0], left


@njit
def _split(
    keys,
    counts,
    leaf_size,
    leaf_next,
    inner_keys,
    inner_prefix,
    inner_child,
    inner_size,
    register,
    parent,
    slot,
    child,
    is_leaf,
):
    """Split the full ``child`` at ``slot`` of ``parent``, which has room."""
    if is_leaf:
        new, separator, left = _split_leaf(keys, counts, leaf_size, leaf_next, register, child)
    else:
        new, separator, left = _split_inner(
            inner_keys, inner_prefix, inner_child, inner_size, register, child
        )
    for j in range(inner_size[parent], slot + 1, -1):
        inner_keys[parent, j] = inner_keys[parent, j - 1]
        inner_prefix[parent, j] = inner_prefix[parent, j - 1]
        inner_child[parent, j] = inner_child[parent, j - 1]
    before = np.int64(inner_prefix[parent, slot - 1]) if slot > 0 else np.int64(0)
    inner_prefix[parent, slot + 1] = inner_prefix[parent, slot]
    inner_prefix[parent, slot] = before + left
    inner_keys[parent, slot + 1] = separator
    inner_child[parent, slot + 1] = new
    inner_size[parent] += 1


@njit
def _grow(
    keys,
    counts,
    leaf_size,
    leaf_next,
    inner_keys,
    inner_prefix,
    inner_child,
    inner_size,
    register,
    total,
):
    """Put a new root above the old one, which holds ``total`` keys."""
    new = register[_INNER]
    register[_INNER] += 1
    for j in range(1, FAN):
        inner_keys[new, j] = _FREE
    inner_keys[new, 0] = np.iinfo(np.int64).min
    inner_prefix[new, 0] = total
    inner_child[new, 0] = register[_ROOT]
    inner_size[new] = 1
    _split(
        keys,
        counts,
        leaf_size,
        leaf_next,
        inner_keys,
        inner_prefix,
        inner_child,
        inner_size,
        register,
        new,
        0,
        register[_ROOT],
        register[_HEIGHT] == 0,
    )
    register[_ROOT] = new
    register[_HEIGHT] += 1


@njit
def key_tree_insert(
    keys,
    counts,
    leaf_size,
    leaf_next,
    inner_keys,
    inner_prefix,
    inner_child,
    inner_size,
    register,
    key,
    total,
):
    """Insert ``key`` into a tree that holds ``total`` keys.

    Returns
    -------
    rank : int64
        Number of smaller keys.
    count : int64
        Copies of ``key`` after the insertion; 0 if the key is there and the tree allows no
        repetition.
    """
    root = register[_ROOT]
    if (inner_size[root] == FAN) if register[_HEIGHT] else (leaf_size[root] == LEAF):
        _grow(
            keys,
            counts,
            leaf_size,
            leaf_next,
            inner_keys,
            inner_prefix,
            inner_child,
            inner_size,
            register,
            total,
        )
    node = register[_ROOT]
    rank = np.int64(0)
    for height in range(register[_HEIGHT], 0, -1):
        slot = np.int64(-1)
        for j in range(FAN):
            slot += np.int64(inner_keys[node, j] <= key)
        child = np.int64(inner_child[node, slot])
        if (leaf_size[child] == LEAF) if height == 1 else (inner_size[child] == FAN):
            _split(
                keys,
                counts,
                leaf_size,
                leaf_next,
                inner_keys,
                inner_prefix,
                inner_child,
                inner_size,
                register,
                node,
                slot,
                child,
                height == 1,
            )
            if inner_keys[node, slot + 1] <= key:
                slot += 1
                child = np.int64(inner_child[node, slot])
        if slot > 0:
            rank += np.int64(inner_prefix[node, slot - 1])
        first = np.int32(slot)
        for j in range(FAN):
            inner_prefix[node, j] = np.int32(inner_prefix[node, j] + np.int32(np.int32(j) >= first))
        node = child
    slot = np.int64(0)
    for j in range(LEAF):
        slot += np.int64(keys[node, j] < key)
    multigraph = counts.shape[0] > 0
    if multigraph:
        for j in range(slot):
            rank += np.int64(counts[node, j])
    else:
        rank += slot
    size = np.int64(leaf_size[node])
    if slot < size and keys[node, slot] == key:
        if not multigraph:
            return rank, np.int64(0)
        counts[node, slot] += 1
        return rank, np.int64(counts[node, slot])
    for j in range(size, slot, -1):
        keys[node, j] = keys[node, j - 1]
    keys[node, slot] = key
    if multigraph:
        for j in range(size, slot, -1):
            counts[node, j] = counts[node, j - 1]
        counts[node, slot] = 1
    leaf_size[node] = size + 1
    return rank, np.int64(1)


@cached
def key_tree_list(tree, out):
    """Write all keys in increasing order into ``out``, repeated ones repeatedly."""
    keys, counts, leaf_size, leaf_next, _, _, _, _, _ = tree
    place = 0
    leaf = np.int64(0)
    while leaf >= 0:
        for j in range(leaf_size[leaf]):
            copies = counts[leaf, j] if counts.shape[0] else np.int32(1)
            for _ in range(copies):
                out[place] = keys[leaf, j]
                place += 1
        leaf = np.int64(leaf_next[leaf])
    return place
