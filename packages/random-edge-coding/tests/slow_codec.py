"""Random Edge Coding once more, with integers and lists only: the oracle of the fast codec."""

import zlib
from fractions import Fraction
from math import comb, factorial, log2, prod

LOWER = 1 << 31


class State:
    """An ANS state; every method follows the formulas word by word."""

    def __init__(self, head, words=()):
        self.head = head
        self.words = list(words)

    def _out(self):
        self.words.append(self.head % 2**32)
        self.head //= 2**32

    def _in(self):
        if self.head < LOWER and self.words:
            self.head = self.head * 2**32 + self.words.pop()

    def push(self, start, freq, total):
        if self.head >= (LOWER // total) * 2**32 * freq:
            self._out()
        self.head = (self.head // freq) * total + self.head % freq + start
        self._in()

    def pop(self, total, lookup):
        """``lookup(position) -> (symbol, start, freq)``."""
        if self.head >= (LOWER // total) * 2**32 * total:
            self._out()
        position = self.head % total
        symbol, start, freq = lookup(position)
        self.head = (self.head // total) * freq + position - start
        self._in()
        return symbol


def canonical(edges, directed):
    return sorted(tuple(e) if directed else tuple(sorted(e)) for e in edges)


def encode(edges, n, b, directed, check):
    left = canonical(edges, directed)
    counts = [b] * n
    for edge in left:
        for x in edge:
            counts[x] += 1
    state = State(LOWER + check)

    def push_vertex(x):
        counts[x] -= 1
        state.push(sum(counts[:x]), counts[x], sum(counts))

    while left:
        edge = state.pop(len(left), lambda i: (left[i], left.index(left[i]), left.count(left[i])))
        left.remove(edge)
        u, v = edge
        if not directed and u != v and state.pop(2, lambda i: (i, i, 1)):
            u, v = v, u
        push_vertex(u)
        push_vertex(v)
    return state


def decode(state, n, m, b, directed):
    counts = [b] * n
    done = []

    def pop_vertex():
        def lookup(position):
            x = start = 0
            while start + counts[x] <= position:
                start += counts[x]
                x += 1
            return x, start, counts[x]

        x = state.pop(sum(counts), lookup)
        counts[x] += 1
        return x

    for _ in range(m):
        v = pop_vertex()
        u = pop_vertex()
        if not directed and u != v:
            state.push(int(u > v), 1, 2)
        edge = (u, v) if directed else (min(u, v), max(u, v))
        done.append(edge)
        done.sort()
        state.push(done.index(edge), done.count(edge), len(done))
    return done


def compress(edges, n, b=1, directed=False):
    """The whole file, for one shard and no labels."""
    edges = canonical(edges, directed)
    m = len(edges)
    flags = directed + 2 * (len(set(edges)) < m)
    check = zlib.crc32(b"".join(v.to_bytes(8, "little") for v in (n, m, b, flags, 1, 0))) % 2**31
    state = encode(edges, n, b, directed, check)
    head = state.head.to_bytes((state.head.bit_length() + 7) // 8, "little")
    body = b"PWREC" + bytes([1, flags])
    for value in (n, m, b, 1, m, len(state.words)):
        while value >= 128:
            body += bytes([value % 128 + 128])
            value //= 128
        body += bytes([value])
    body += bytes([len(head)]) + b"".join(w.to_bytes(4, "little") for w in state.words) + head
    return body + zlib.crc32(body).to_bytes(4, "little")


def rising(x, k):
    return prod(range(x, x + k))


def probability(edges, n, b=1, directed=False):
    """Exact probability of the graph (an edge multiset) under Polya's urn."""
    edges = canonical(edges, directed)
    degrees = [0] * n
    for edge in edges:
        for x in edge:
            degrees[x] += 1
    sequence = Fraction(prod(rising(b, d) for d in degrees), rising(n * b, 2 * len(edges)))
    orders = factorial(len(edges))
    for edge in set(edges):
        orders //= factorial(edges.count(edge))
    flips = 0 if directed else sum(u != v for u, v in edges)
    return sequence * orders * 2**flips


def bits(p):
    """``-log2`` of a positive fraction, also of one far outside the range of doubles."""
    return log2_int(p.denominator) - log2_int(p.numerator)


def log2_int(x):
    shift = max(x.bit_length() - 64, 0)
    return log2(x >> shift) + shift


def binomial_bits(total, chosen):
    return log2_int(comb(total, chosen))
