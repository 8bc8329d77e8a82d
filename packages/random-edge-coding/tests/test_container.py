import random
import tracemalloc
import zlib

import numpy as np
import pytest

from paperworks.random_edge_coding import (
    CorruptFile,
    Graph,
    compress,
    decompress,
    peek,
    read_labels,
    sample,
)
from paperworks.random_edge_coding.container import _varint
from paperworks.shared.errors import InputError

SMALL = Graph([(0, 1), (1, 2), (2, 0), (2, 2), (0, 1)], 5)


def seal(body):
    return bytes(body) + zlib.crc32(bytes(body)).to_bytes(4, "little")


def forge(n, m, bias=1, shards=1, flags=0, table=None, payload=b""):
    """A file with a valid checksum and whatever header."""
    body = b"PWREC" + bytes([1, flags])
    for value in (n, m, bias, shards):
        body += _varint(value)
    for edges, words, head in table if table is not None else [(m, 0, len(payload))]:
        body += _varint(edges) + _varint(words) + bytes([head])
    return seal(body + payload)


PINNED = {
    "undirected": (
        Graph([(0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (4, 5), (3, 5)], 6),
        "5057524543010006070101070007af70e4bf368d23610bed07",
    ),
    "multigraph with loops": (SMALL, "50575245430102050501010500069c58d273e00c7f15ccc4"),
    "directed": (
        Graph([(0, 1), (1, 0), (3, 1)], 4, directed=True),
        "505752454301010403010103000621bdf6c81403ff6d48b9",
    ),
}


@pytest.mark.parametrize("name", PINNED)
def test_the_format_does_not_change(name):
    graph, pinned = PINNED[name]
    assert compress(graph).hex() == pinned
    assert decompress(bytes.fromhex(pinned)) == graph


def test_peek():
    header = peek(compress(SMALL, bias=3))
    assert (header.num_nodes, header.num_edges, header.bias, header.shards) == (5, 5, 3, 1)
    assert header.repeated
    assert not header.directed
    assert header.label_bytes == 0


def test_any_flipped_bit_is_found():
    for graph in (SMALL, sample(300, 700, seed=0)):
        for shards in (1, 3):
            data = compress(graph, shards=shards)
            for bit in range(8 * len(data)):
                damaged = bytearray(data)
                damaged[bit // 8] ^= 1 << bit % 8
                with pytest.raises(CorruptFile):
                    decompress(bytes(damaged))


def test_any_cut_or_extension_is_found():
    data = compress(sample(100, 200, seed=0), labels=list(range(100)))
    for length in range(len(data)):
        with pytest.raises(CorruptFile):
            decompress(data[:length])
    with pytest.raises(CorruptFile):
        read_labels(data + b"\0")
    with pytest.raises(CorruptFile, match="cut or extended"):
        decompress(compress(SMALL) + b"\0")


def test_swapped_words_are_found():
    data = bytearray(compress(sample(100, 400, seed=0)))
    start = peek(bytes(data)).header_bytes - 4
    for i in range(3):
        swapped = bytearray(data)
        a, b = slice(start + 4 * i, start + 4 * i + 4), slice(start + 4 * i + 8, start + 4 * i + 12)
        swapped[a], swapped[b] = data[b], data[a]
        with pytest.raises(CorruptFile, match="checksum"):
            decompress(bytes(swapped))
        # a forger who repairs the checksum meets the coder's own check
        with pytest.raises(CorruptFile, match="does not end where encoding began"):
            decompress(seal(swapped[:-4]))


def test_magic_and_version():
    data = compress(SMALL)
    for wrong in (b"", b"PW", b"\x1f\x8b" + data[2:], b"not a graph at all"):
        with pytest.raises(CorruptFile):
            decompress(wrong)
    with pytest.raises(CorruptFile, match="expected format version 1, found 2"):
        decompress(data[:5] + b"\x02" + data[6:])
    with pytest.raises(CorruptFile, match="unknown flags"):
        decompress(data[:6] + b"\x10" + data[7:])


@pytest.mark.parametrize("repair", [False, True])
def test_fuzz(repair):
    """Whatever happens to the bytes: an InputError in one line, never another graph."""
    source = random.Random(repair)
    graphs = [SMALL, Graph([], 3), sample(40, 90, seed=1), sample(9, 30, seed=2, directed=True)]
    originals = [compress(g, shards=s) for g in graphs for s in (1, 2)]
    for _ in range(6000):
        data = bytearray(source.choice(originals))
        original = bytes(data)
        for _ in range(source.choice([1, 1, 2, 5])):
            action = source.randrange(4)
            place = source.randrange(len(data) + 1)
            if action == 0 and place < len(data):
                data[place] = source.randrange(256)
            elif action == 1:
                data[place:place] = source.randbytes(source.choice([1, 4]))
            elif action == 2:
                del data[place : place + source.choice([1, 4])]
            elif place < len(data):
                data[place] ^= 1 << source.randrange(8)
        damaged = seal(data[:-4]) if repair and len(data) > 4 else bytes(data)
        if damaged == original:
            continue
        with pytest.raises(InputError) as caught:
            decompress(damaged, max_memory=1 << 26)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        forge(5, 1 << 40),
        forge(1 << 40, 1),
        forge((1 << 31) - 1, 1),
        forge(5, 5, bias=1 << 30),
        forge(5, 5, bias=0),
        forge(0, 1),
        forge(3, 100),  # does not fit a simple graph
        forge(5, 5, shards=0, table=[]),
        forge(5, 5, shards=1 << 13),
        forge(5, 5, shards=2, table=[(5, 0, 0), (1, 0, 0)]),
        forge(5, 5, table=[(5, 0, 9)], payload=bytes(9)),
        forge(5, 5, table=[(5, 1 << 40, 0)]),
        forge(5, 5, payload=bytes(8)),
        forge(5, 5, payload=b"\xff" * 8),
        forge(5, 5, table=[(5, 1, 1)], payload=bytes(5)),
        b"PWREC\x01\x00" + b"\xff" * 40,
        b"PWREC\x01\x00\x80\x00",
    ],
)
def test_forged_headers(data):
    with pytest.raises(CorruptFile):
        decompress(data)


@pytest.mark.parametrize(
    ("n", "m", "flags"), [(10, 1 << 29, 2), (1 << 30, 10, 0), (1 << 20, 1 << 29, 0)]
)
def test_memory_is_bounded_before_it_is_taken(n, m, flags):
    data = forge(n, m, flags=flags, payload=b"\x01" * 4)
    tracemalloc.start()
    with pytest.raises(InputError, match=r"needs \d+ bytes, but max_memory is 1048576"):
        decompress(data, max_memory=1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()


def test_a_legal_file_may_expand_hugely():
    data = compress(Graph(np.zeros((400_000, 2), int)))
    assert len(data) < 30
    with pytest.raises(InputError, match="max_memory"):
        decompress(data, max_memory=1 << 20)
    assert decompress(data, max_memory=1 << 26).num_edges == 400_000


@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("repeated", [False, True])
def test_decoding_stays_below_the_memory_that_it_asks_for(shards, repeated):
    graph = sample(20_000, 200_000, seed=1)
    graph = graph if repeated else graph.simple()
    data = compress(graph, shards=shards)
    decompress(data)
    tracemalloc.start()
    decompress(data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    low, high = 1, 1 << 32
    while high - low > 1024:  # the smallest bound that is accepted
        middle = (low + high) // 2
        try:
            decompress(data, max_memory=middle)
            high = middle
        except InputError:
            low = middle
    assert peak < low * (2 if shards > 1 else 1) + len(data)


@pytest.mark.parametrize(
    "labels",
    [
        [5, 7, 9, 2**62, 2**63 - 1],
        [-3, 7, -9, -(2**63), 0],
        ["a", "", "ü", "two words", "line\nbreak"],
        np.array([3, 1, 2, 5, 4], np.uint32),
    ],
)
def test_labels(labels):
    data = compress(SMALL, labels=labels)
    assert read_labels(data).tolist() == list(labels)
    assert decompress(data) == SMALL
    table = peek(data).label_bytes
    for bit in range(8 * (len(data) - table), 8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptFile):
            read_labels(bytes(damaged))


def test_no_labels():
    assert read_labels(compress(SMALL)) is None
    assert read_labels(compress(Graph([], 0), labels=[])).tolist() == []


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2], "labels: expected one for each of the 5 vertices, found 2"),
        ([1.5] * 5, "labels: expected integers or strings"),
        ([None] * 5, "labels: expected integers or strings"),
        (np.full(5, 2**63, np.uint64), r"labels: expected integers below 2\*\*63"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(InputError, match=message):
        compress(SMALL, labels=labels)


def test_a_label_table_that_expands_hugely_is_refused():
    data = compress(Graph([(0, 99_999)]), labels=["x" * 100] * 100_000)
    with pytest.raises(InputError, match="label table: expected at most max_memory"):
        read_labels(data, max_memory=1 << 20)
