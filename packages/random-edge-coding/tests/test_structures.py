import bisect

import numpy as np
import pytest

from paperworks.random_edge_coding import structures


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 4096, 4097, 300_000])
def test_count_tree_agrees_with_prefix_sums(size):
    random = np.random.default_rng(size)
    counts = random.integers(0, 5, size)
    counts[random.integers(size)] += 1
    nodes, offsets = structures.count_tree(counts)
    for _ in range(200):
        ends = np.cumsum(counts)
        item = int(random.integers(size))
        assert structures.tree_prefix(nodes, offsets, item) == ends[item] - counts[item]
        start, count = structures.tree_add(nodes, offsets, item, 3)
        assert (start, count) == (ends[item] - counts[item], counts[item])
        counts[item] += 3
        ends = np.cumsum(counts)
        position = int(random.integers(ends[-1]))
        expected = int(np.searchsorted(ends, position, side="right"))
        found, start, count = structures.tree_find_add(nodes, offsets, position, -1)
        assert found == expected
        assert (start, count) == (ends[expected] - counts[expected], counts[expected])
        counts[expected] -= 1


@pytest.mark.parametrize("size", [1, 63, 64, 65, 1000, 9001])
def test_bitmap_agrees_with_a_list(size):
    random = np.random.default_rng(size)
    bitmap = structures.full_bitmap(size)
    left = list(range(size))
    while left:
        rank = int(random.integers(len(left)))
        probe = int(random.integers(size))
        assert structures.bitmap_rank(*bitmap, probe) == bisect.bisect_left(left, probe)
        assert structures.bitmap_take(*bitmap, rank) == left.pop(rank)


ORDERS = {
    "random": lambda n, random: random.permutation(n),
    "increasing": lambda n, random: np.arange(n),
    "decreasing": lambda n, random: np.arange(n)[::-1],
    "from both ends": lambda n, random: np.stack([np.arange(n), -np.arange(n)], 1).reshape(-1)[:n],
    "repeated": lambda n, random: random.integers(0, n // 40, n),
    "one key": lambda n, random: np.full(n, 7),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("offset", [0, (1 << 62) - 1])
def test_key_tree_agrees_with_bisection(order, offset):
    size = 6000
    keys = ORDERS[order](size, np.random.default_rng(0)).astype(np.int64) + offset
    tree = structures.key_tree(len(set(keys.tolist())), repeated=len(set(keys.tolist())) < size)
    inserted = []
    for total, key in enumerate(keys.tolist()):
        rank, count = structures.key_tree_insert(*tree, key, total)
        expected = bisect.bisect_left(inserted, key)
        assert rank == expected
        inserted.insert(expected, key)
        assert count == bisect.bisect_right(inserted, key) - expected
    out = np.empty(size, np.int64)
    assert structures.key_tree_list(tree, out) == size
    assert out.tolist() == inserted


def test_key_tree_refuses_a_repetition_where_there_should_be_none():
    tree = structures.key_tree(10, repeated=False)
    assert structures.key_tree_insert(*tree, 5, 0) == (0, 1)
    assert structures.key_tree_insert(*tree, 5, 1) == (0, 0)


def test_the_rows_of_a_key_tree_suffice_on_every_size():
    for size in [1, 64, 65, 2048, 2049, 70_000]:
        for order in ("increasing", "decreasing", "random"):
            keys = ORDERS[order](size, np.random.default_rng(1)).astype(np.int64)
            tree = structures.key_tree(size, repeated=False)
            for total, key in enumerate(keys):
                structures.key_tree_insert(*tree, key, total)
            leaves, inner = tree[-1][2:]
            assert leaves <= len(tree[0])
            assert inner <= len(tree[4])
