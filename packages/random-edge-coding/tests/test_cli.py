import json

import numpy as np
import pytest

from paperworks.random_edge_coding import Graph, compress, decompress, peek, sample, write_edges
from paperworks.shared.testing import run_command

EDGES = b"0 1\n1 2\n2 0\n4 4\n0 1\n"
GRAPH = Graph([(0, 1), (1, 2), (2, 0), (4, 4), (0, 1)])


def run(*arguments, input=b""):
    return run_command("random-edge-coding", *arguments, input=input)


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.txt"
    path.write_bytes(EDGES)
    return path


def test_files(tmp_path, edges):
    packed, restored = tmp_path / "graph.rec", tmp_path / "restored.txt.gz"
    assert run("compress", edges, "--out", packed).exit_code == 0
    assert decompress(packed.read_bytes()) == GRAPH
    assert run("decompress", packed, "--out", restored).exit_code == 0
    assert run("verify", restored, packed).stdout == "same graph\n"
    assert run("verify", edges, packed, "--json").stdout_bytes == b'{\n "same": true\n}\n'


def test_streams():
    packed = run("compress", "-", input=EDGES)
    assert packed.stdout_bytes == compress(GRAPH)
    assert packed.stderr == ""
    restored = run("decompress", "-", input=packed.stdout_bytes).stdout
    assert restored.splitlines()[1:] == ["0\t1", "0\t1", "0\t2", "1\t2", "4\t4"]


def test_verify_tells_different_graphs(tmp_path, edges):
    packed = tmp_path / "graph.rec"
    packed.write_bytes(compress(Graph([(0, 1)])))
    result = run("verify", edges, packed)
    assert result.exit_code == 1
    assert result.stdout.startswith("different: expected Graph(undirected, num_nodes=5")
    assert run("verify", "-", "-").exit_code == 2


def test_info(tmp_path, edges):
    packed = tmp_path / "graph.rec"
    run("compress", edges, "--bias", "3", "--shards", "2", "--out", packed)
    found = json.loads(run("info", packed, "--json").stdout)
    assert (found["num_nodes"], found["num_edges"], found["bias"], found["shards"]) == (5, 5, 3, 2)
    assert found["file_bytes"] == packed.stat().st_size
    assert "bits per edge" in run("info", packed).stdout


def test_bits(edges):
    found = json.loads(run("bits", edges, "--json").stdout)
    assert (found["loops"], found["repeated"], found["num_edges"]) == (1, 1, 5)
    assert found["graph_bits"] == pytest.approx(found["sequence_bits"] - found["order_bits"])
    assert "undirected, 5 nodes, 5 edges (1 loops, 1 repeated), bias 1" in run("bits", edges).stdout
    empty = json.loads(run("bits", "-", "--json").stdout)
    assert empty["bits_per_edge"] is None


def test_simple_drops_and_says_how_many(edges):
    result = run("compress", edges, "--simple")
    assert decompress(result.stdout_bytes) == GRAPH.simple()
    assert result.stderr == f"notice: {edges}: dropped 1 loops and 1 repeated edges\n"


def test_empty_input_is_a_valid_graph():
    result = run("compress", "-")
    assert result.exit_code == 0
    assert decompress(result.stdout_bytes) == Graph([], 0)
    assert result.stderr == "notice: stdin: no edges, an empty graph\n"


def test_relabel_keeps_the_original_ids(tmp_path):
    for text in (b"7 10000000000\n10000000000 8\n", b"bob alice\nalice carol\n"):
        names = tmp_path / "names.txt"
        names.write_bytes(text)
        packed = tmp_path / "graph.rec"
        assert run("compress", names, "--relabel", "--out", packed).exit_code == 0
        assert run("verify", names, packed).stdout == "same graph\n"
        restored = run("decompress", packed).stdout.split("\n")[1:-1]
        lines = text.decode().split("\n")[:-1]
        assert {frozenset(x.split()) for x in restored} == {frozenset(x.split()) for x in lines}
        other = tmp_path / "other.txt"
        other.write_bytes(text.replace(b"8", b"9").replace(b"bob", b"eve"))
        assert run("verify", other, packed).exit_code == 1


def test_options_of_the_reader(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,c\n0,1,2\n3,1,4\n")
    packed = run("compress", path, "--columns", "c,a", "--directed", "--nodes", "9").stdout_bytes
    assert decompress(packed) == Graph([(2, 0), (4, 3)], 9, directed=True)
    assert run("compress", path, "--columns", "c").exit_code == 2


def test_auto_bias():
    graph = sample(200, 300, bias=100, seed=0)
    text = "".join(f"{u} {v}\n" for u, v in graph.edges.tolist()).encode()
    packed = run("compress", "-", "--bias", "auto", input=text).stdout_bytes
    assert peek(packed).bias > 1
    assert json.loads(run("bits", "-", "--bias", "auto", "--json", input=text).stdout)["bias"] > 1


@pytest.mark.parametrize(
    ("arguments", "input", "message"),
    [
        (["compress", "-"], b"0 x\n", "stdin:1: expected two integer ids, found 'x'"),
        (["compress", "missing.txt"], b"", "missing.txt: cannot be read: No such file"),
        (["compress", "-", "--bias", "many"], b"", "bias: expected an integer >= 1 or auto"),
        (["compress", "-", "--bias", "0"], b"", "bias: expected an integer >= 1, found 0"),
        (["compress", "-", "--shards", "0"], b"", "shards: expected an integer >= 1"),
        (["compress", "-", "--out", "no/such/folder"], b"", "expected an existing folder"),
        (["decompress", "-"], b"PWREC\x01", "-: compressed graph: the file ends at byte 6"),
        (["decompress", "-"], b"something", "expected a file that starts with PWREC"),
        (["decompress", "missing.rec"], b"", "missing.rec"),
        (["info", "-"], b"", "-: compressed graph: the file ends at byte 0"),
        (["bits", "-", "--format", "tu"], b"0 1\n", "expected integer ids from 1 on"),
    ],
)
def test_bad_input_exits_with_two_and_one_line(arguments, input, message):
    result = run(*arguments, input=input)
    assert result.exit_code == 2
    assert message in result.stderr.splitlines()[-1]
    assert len([x for x in result.stderr.splitlines() if not x.startswith("notice")]) == 1
    assert result.stdout_bytes == b""


def test_memory_limit_and_nothing_half_written(tmp_path):
    packed, out = tmp_path / "graph.rec", tmp_path / "out.txt"
    packed.write_bytes(compress(Graph(np.zeros((300_000, 2), int))))
    result = run("decompress", packed, "--max-memory", "0.001", "--out", out)
    assert result.exit_code == 2
    assert "max_memory" in result.stderr
    assert not out.exists()


def test_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    path, out = tmp_path / "x.npz", tmp_path / "graph.rec"
    write_edges(path, sample(100, 300_000, seed=0))

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("paperworks.random_edge_coding.codec._encode_steps", interrupted)
    assert run("compress", path, "--out", out).exit_code == 130
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.npz"]


def test_help_imports_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys, paperworks.random_edge_coding.cli\n"
        "print([m for m in ('numpy', 'numba', 'scipy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
