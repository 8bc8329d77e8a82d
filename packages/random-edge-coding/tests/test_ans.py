import numpy as np
import pytest
from numba import njit
from slow_codec import State

from paperworks.random_edge_coding import ans

LOWER = 1 << 31


@njit
def _push_then_pop(heads, words, starts, freqs, totals):
    """Index of the first state that a push and a pop do not restore, or -1."""
    stack = np.zeros(8, np.uint32)
    for i in range(len(heads)):
        size = 1 if heads[i] >= 1 << 31 else 0
        stack[0] = words[i]
        head, after = ans.push(heads[i], size, stack, starts[i], freqs[i], totals[i])
        position, quotient, after = ans.open_pop(head, after, stack, totals[i])
        if not starts[i] <= position < starts[i] + freqs[i]:
            return i
        head, after = ans.close_pop(position, quotient, after, stack, starts[i], freqs[i])
        if head != heads[i] or after != size or (size and stack[0] != words[i]):
            return i
    return -1


@njit
def _pop_then_push(heads, words, freqs, totals):
    stack = np.zeros(8, np.uint32)
    for i in range(len(heads)):
        size = 1 if heads[i] >= 1 << 31 else 0
        stack[0] = words[i]
        position, quotient, after = ans.open_pop(heads[i], size, stack, totals[i])
        start = min(position, totals[i] - freqs[i])
        head, after = ans.close_pop(position, quotient, after, stack, start, freqs[i])
        head, after = ans.push(head, after, stack, start, freqs[i], totals[i])
        if head != heads[i] or after != size or (size and stack[0] != words[i]):
            return i
    return -1


def _operations(count, seed):
    random = np.random.default_rng(seed)
    # a sixth of the heads is below 2**31, which needs an empty stack
    heads = np.floor(2 ** random.uniform(25, 63, count)).astype(np.uint64)
    heads = np.minimum(heads, np.uint64((1 << 63) - 1))
    totals = np.floor(2 ** random.uniform(0, 31, count)).astype(np.int64)
    totals[: count // 10] = 1
    totals[count // 10 : count // 5] = LOWER - 1
    freqs = np.minimum(np.floor(2 ** random.uniform(0, 31, count)).astype(np.int64), totals)
    freqs[::7] = totals[::7]
    starts = random.integers(0, totals - freqs + 1)
    words = random.integers(0, 1 << 32, count).astype(np.uint32)
    return heads, words, starts, freqs, totals


def test_push_and_pop_are_mutual_inverses():
    heads, words, starts, freqs, totals = _operations(1_000_000, 0)
    assert _push_then_pop(heads, words, starts, freqs, totals) == -1
    assert _pop_then_push(heads, words, freqs, totals) == -1


@pytest.mark.parametrize("total", [1, 2, 3, 1 << 20, LOWER - 1])
@pytest.mark.parametrize("head", [0, 1, LOWER - 1, LOWER, 2 * LOWER - 1, 1 << 62, (1 << 63) - 1])
def test_the_ends_of_the_ranges(head, total):
    heads = np.full(4, head, np.uint64)
    words = np.array([0, 1, 2**32 - 1, 12345], np.uint32)
    freqs = np.array([1, total, max(total // 2, 1), 1])
    starts = np.array([0, 0, total // 3, total - 1])
    starts = np.minimum(starts, total - freqs)
    totals = np.full(4, total)
    assert _push_then_pop(heads, words, starts, freqs, totals) == -1
    assert _pop_then_push(heads, words, freqs, totals) == -1


def test_push_agrees_with_big_integers():
    for head, word, start, freq, total in zip(
        *(a.tolist() for a in _operations(3000, 1)), strict=True
    ):
        oracle = State(head, [word] if head >= LOWER else [])
        stack = np.array([word, 0, 0, 0], np.uint32)
        found, size = ans.push(np.uint64(head), len(oracle.words), stack, start, freq, total)
        oracle.push(start, freq, total)
        assert (int(found), stack[:size].tolist()) == (oracle.head, oracle.words)


def test_bits():
    stack = np.zeros(8, np.uint32)
    for value in [0, 1, LOWER - 1, LOWER, LOWER + 1, (1 << 63) - 1]:
        for bit in (0, 1):
            oracle = State(value, [7] if value >= LOWER else [])
            stack[0] = 7
            head, size = ans.push_bit(np.uint64(value), len(oracle.words), stack, bit)
            oracle.push(bit, 1, 2)
            assert (int(head), stack[:size].tolist()) == (oracle.head, oracle.words)
            found, head, size = ans.pop_bit(head, size, stack)
            assert (found, int(head), size) == (bit, value, int(value >= LOWER))
