import gzip
import io
import lzma

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from paperworks.random_edge_coding import Graph, read_edges, sample, write_edges
from paperworks.shared.errors import InputError


def read(text, **options):
    data = text.encode() if isinstance(text, str) else text
    return read_edges(io.BytesIO(data), **options)


def edges(text, **options):
    return read(text, **options)[0].edges.tolist()


def test_plain_text():
    assert edges("0 1\n1 2\n") == [[0, 1], [1, 2]]
    assert edges("0 1\n1 2") == [[0, 1], [1, 2]]
    assert edges("# comment\n% another\n\n  0\t1  \n") == [[0, 1]]
    assert edges("0,1\n1, 2\n2 ,3\n3\t4\n") == [[0, 1], [1, 2], [2, 3], [3, 4]]
    assert edges("0 1\r\n\r\n1 2\r\n") == [[0, 1], [1, 2]]
    assert edges("\ufeff0 1\n") == [[0, 1]]
    assert edges("3.0 0\n1. 2.00\n+1 007\n") == [[0, 3], [1, 2], [1, 7]]


def test_repeated_and_reversed_lines_are_kept():
    assert edges("0 1\n1 0\n0 1\n") == [[0, 1]] * 3


def test_notices():
    said = []
    assert edges("0 1 17\n1 2 0.5 x\n", notice=said.append) == [[0, 1], [1, 2]]
    assert said == ["input: columns after the second one are ignored"]
    said.clear()
    assert read("", notice=said.append)[0] == Graph([], 0)
    assert read("# only comments\n", notice=said.append)[0] == Graph([], 0)
    assert said == ["input: no edges, an empty graph"] * 2


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("0 1\n1 x\n", {}, "input:2: expected two integer ids, found 'x'"),
        ("0 1\n\n#\nbob alice\n", {}, "input:4: expected two integer ids, found 'bob'"),
        ("0 -1\n", {}, "input:1: expected ids >= 0, found -1"),
        ("0 1\n2\n", {}, "input:2: expected two ids, found one column: '2'"),
        ("nan 1\n", {}, "input:1: expected two integer ids, found 'nan'"),
        ("0 1\n0 3.5\n", {}, "input:2: expected two integer ids, found '3.5'"),
        ("0 1e3\n", {}, "input:1: expected two integer ids, found '1e3'"),
        ("0 1_0\n", {}, "input:1: expected two integer ids, found '1_0'"),
        ("0,,1\n", {}, "input:1: expected two integer ids, found ''"),
        ("0;1\n", {}, "input:1: expected two ids, found one column: '0;1'"),
        ("0 1\n0 5\n", {"num_nodes": 5}, "input:2: expected ids below 5, found 5"),
        ("0 2147483647\n", {}, "input:1: expected ids below 2147483647 (relabel takes larger"),
        ("0 99999999999999999999\n", {}, "found 99999999999999999999"),
        ("0 9223372036854775808\n", {"relabel": True}, "below 9223372036854775808, found"),
        ("0 1\r1 2\r", {}, "input:1: expected line ends LF or CR LF, found CR alone"),
        (b"0 \xff\xfe\n", {}, "input:1: expected two integer ids"),
        (b"a \xff\n", {"relabel": True}, "input:1: expected UTF-8 text"),
        ("a\n", {"relabel": True}, "input:1: expected two ids"),
        ("a b\nc\n", {"relabel": True}, "input:2: expected two ids, found 'c'"),
        ("1 0\n0 1\n", {"format": "tu"}, "expected integer ids from 1 on"),
        ("1, 2\n", {"format": "tu"}, "expected both directions of every edge"),
        ("PWREC", {}, "found a compressed graph"),
        ("0 1\n", {"format": "excel"}, "format: expected one of auto, text"),
        ("0 1\n", {"relabel": True, "num_nodes": 3}, "num_nodes: expected nothing"),
        (b"\x1f\x8bxxxx", {}, "input: cannot be unpacked"),
        (b"\xfd7zXZ\x00xx", {}, "input: cannot be unpacked"),
        (b"\x28\xb5\x2f\xfdxxxx", {}, "input: cannot be unpacked"),
        (b"PK\x03\x04xxx", {}, "input: not a NumPy archive"),
        (b"PAR1xxx", {}, "input: not a parquet file"),
        ("%%MatrixMarket nonsense\n", {}, "input: not a Matrix Market file"),
    ],
)
def test_bad_input_in_one_line(text, options, message):
    with pytest.raises(InputError) as caught:
        read(text, **options)
    assert message in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"nothing.txt: cannot be read: No such file"):
        read_edges(tmp_path / "nothing.txt")


def test_ids_up_to_the_largest_integer():
    graph, labels = read(f"{2**63 - 1} 5\n5 {10**18}\n", relabel=True)
    assert labels.tolist() == [5, 10**18, 2**63 - 1]
    assert graph == Graph([(2, 0), (0, 1)])


def test_strings():
    said = []
    text = "# x\nbob alice 3\nalice zoë\n7 bob\n"
    graph, labels = read(text, relabel=True, notice=said.append)
    assert labels.tolist() == ["7", "alice", "bob", "zoë"]
    assert graph == Graph([(2, 1), (1, 3), (0, 2)])
    assert said == ["input: columns after the second one are ignored"]
    assert read("-5 a\n", relabel=True)[1].tolist() == ["-5", "a"]


@pytest.mark.parametrize(
    ("header", "directed"),
    [
        ("# Directed graph (each unordered pair of nodes is saved once): x.txt\n# Nodes: 5", True),
        ("# Undirected graph: x.txt\n# FromNodeId\tToNodeId", False),
        ("% asym unweighted\n% 2 3 3", True),
        ("% bip weighted", True),
        ("% sym unweighted", False),
        ("# nothing known", False),
    ],
)
def test_direction_from_the_header(header, directed):
    assert read(f"{header}\n1 0\n")[0].directed == directed
    assert read(f"{header}\n1 0\n", directed=not directed)[0].directed != directed


def test_tudataset(tmp_path):
    path = tmp_path / "X_A.txt"
    path.write_text("2, 1\n1, 2\n2, 3\n3, 2\n")
    assert read_edges(path)[0] == Graph([(0, 1), (1, 2)])


def test_csv_and_parquet_columns(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("weight,target,source\n1,5,0\n2,6,0\n")
    assert read_edges(path)[0] == Graph([(0, 5), (0, 6)])
    assert read_edges(path, columns=("weight", "target"))[0] == Graph([(1, 5), (2, 6)])
    with pytest.raises(InputError, match="expected columns a, b, found weight, target, source"):
        read_edges(path, columns=("a", "b"))
    path.write_text("src,dst\na,b\nb,c c\n")
    with pytest.raises(InputError, match="row 1: expected integer ids in column src, found 'a'"):
        read_edges(path)
    assert read_edges(path, relabel=True)[1].tolist() == ["a", "b", "c c"]
    path.write_text("src,dst\n1,2\n3,\n")
    with pytest.raises(InputError, match="row 2: expected an id in column dst, found nothing"):
        read_edges(path)
    path.write_text("src,dst\n1,2\n3,-4\n")
    with pytest.raises(InputError, match="row 2: expected integer ids from 0"):
        read_edges(path)
    path.write_text("0,1\n1,2\n")
    assert read_edges(path)[0] == Graph([(0, 1), (1, 2)])


def test_matrix_market(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n%\n4 4 3\n2 1\n3 3\n4 1\n")
    assert read_edges(path)[0] == Graph([(0, 1), (2, 2), (0, 3)])
    path.write_text("%%MatrixMarket matrix coordinate real general\n3 3 2\n2 1 0.5\n1 2 3\n")
    assert read_edges(path)[0] == Graph([(1, 0), (0, 1)], 3, directed=True)
    path.write_text("%%MatrixMarket matrix coordinate pattern general\n3 2 1\n2 1\n")
    with pytest.raises(InputError, match="expected a square matrix, found 3 x 2"):
        read_edges(path)
    path.write_text("%%MatrixMarket matrix array real general\n1 1\n3\n")
    with pytest.raises(InputError, match="expected a coordinate matrix"):
        read_edges(path)


def test_numpy_archives(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, edge_index=np.array([[0, 1], [1, 2]]))
    assert read_edges(path)[0] == Graph([(0, 1), (1, 2)])
    np.savez(path, nodes=np.arange(3))
    with pytest.raises(InputError, match=r"an array named edges or edge_index, found .nodes."):
        read_edges(path)
    np.savez(path, edges=np.arange(3))
    with pytest.raises(InputError, match=r"expected integers of shape \(m, 2\)"):
        read_edges(path)
    np.savez(path, edges=np.array([[0, 1.5]]))
    with pytest.raises(InputError, match=r"row 1: expected integer ids .* found 1.5"):
        read_edges(path)


GRAPHS = [
    sample(40, 90, seed=1),
    sample(40, 90, seed=1, directed=True),
    Graph([(0, 1)], 10),
    Graph([], 3),
    Graph([], 0),
]
NAMES = ["x.txt", "x", "x.tsv.gz", "x.txt.xz", "x.txt.zst", "x.mtx", "x.npz", "x.mtx.gz"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("graph", GRAPHS)
def test_what_is_written_is_read_back(tmp_path, name, graph):
    path = tmp_path / name
    write_edges(path, graph)
    assert read_edges(path) == (graph, None)
    assert [p.name for p in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.csv.zst"])
@pytest.mark.parametrize("graph", GRAPHS[:4])
def test_tables_are_read_back_given_size_and_direction(tmp_path, name, graph):
    path = tmp_path / name
    write_edges(path, graph)
    assert read_edges(path, num_nodes=graph.num_nodes, directed=graph.directed)[0] == graph


@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.parquet"])
def test_labels_are_read_back(tmp_path, name):
    path = tmp_path / name
    for labels in (np.array([3, 5, 2**40]), np.array(["a", "b", "c"], object)):
        graph = Graph([(0, 1), (2, 1)])
        write_edges(path, graph, labels=labels)
        found, read_back = read_edges(path, relabel=True)
        assert (found, read_back.tolist()) == (graph, labels.tolist())


def test_labels_that_a_format_cannot_hold(tmp_path):
    graph = Graph([(0, 1)])
    for labels in (["a b", "c"], ["#a", "b"], ["", "a"], ["a,b", "c"]):
        with pytest.raises(InputError, match="expected no blanks, commas or leading #"):
            write_edges(tmp_path / "x.txt", graph, labels=np.array(labels, object))
    with pytest.raises(InputError, match="format: expected text, csv or parquet"):
        write_edges(tmp_path / "x.npz", graph, labels=np.array([3, 4]))
    with pytest.raises(InputError, match="labels: expected one for each of the 2 vertices"):
        write_edges(tmp_path / "x.txt", graph, labels=np.array([3]))
    assert not list(tmp_path.iterdir())


def test_packed_input():
    text = b"0 1\n1 2\n"
    for data in (gzip.compress(text), lzma.compress(text), zstandard.compress(text)):
        assert edges(data) == [[0, 1], [1, 2]]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 2), st.integers(0, 2**31 - 2)), min_size=1))
def test_the_fast_parser_agrees_with_python(pairs):
    text = "".join(f"{u} {v}\n" for u, v in pairs)
    expected = sorted(sorted(p) for p in pairs)
    assert edges(text) == expected
    # every line takes the slow path
    assert edges("".join(f"{u}.0 {v}\n" for u, v in pairs)) == expected


@given(st.text(alphabet="0123456789 \t,.\r\n#%ax-+", max_size=60))
def test_any_text_is_a_graph_or_one_line(text):
    for options in ({}, {"relabel": True}):
        try:
            graph, _ = read(text, **options)
        except InputError as error:
            found = str(error)
        else:
            lines = [x.strip() for x in text.replace("\r", "").split("\n")]
            assert graph.num_edges == sum(bool(x) and x[0] not in "#%" for x in lines)
            found = "input:"
        assert found.startswith("input:")


def test_cut_zstandard_is_refused():
    zstandard = pytest.importorskip("zstandard")
    text = b"".join(b"%d %d\n" % (i, i + 1) for i in range(20_000))
    packed = zstandard.compress(text)
    for length in (len(packed) // 2, len(packed) - 20, len(packed) - 1):
        with pytest.raises(InputError, match="cannot be unpacked"):
            read_edges(io.BytesIO(packed[:length]))
    two = read_edges(io.BytesIO(packed + zstandard.compress(b"7 9\n")))[0]
    assert two.num_edges == 20_001


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"alice,bob\nbob,carol\n", "expected a header with source,target"),
        (b"id,source_id,target_id\n1,10,20\n", "expected a header with source,target"),
        (b"source,source\n1,2\n", "expected a header|different names"),
        (b"source,target\n9223372036854775807,18446744073709551615\n", "expected ids below"),
        (b"source,target\n1.0,9007199254740993.0\n", "expected ids below 9007199254740992"),
    ],
)
def test_tables_that_would_lose_something(tmp_path, content, message):
    pytest.importorskip("pyarrow")
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_edges(tmp_path / "t.csv", relabel=True)


def test_edge_index_of_both_directions_is_halved(tmp_path):
    np.savez(tmp_path / "g.npz", edge_index=np.array([[1, 2, 5], [2, 1, 5]]))
    notices = []
    graph, _ = read_edges(tmp_path / "g.npz", notice=notices.append)
    assert graph.edges.tolist() == [[1, 2], [5, 5]]
    assert "both directions" in notices[0]


@pytest.mark.parametrize(
    "content", [b"1 " + b"9" * 5000, b"# paperworks: directed, " + b"9" * 5000]
)
def test_very_long_numbers(content):
    try:
        read_edges(io.BytesIO(content + b"\n"))
    except InputError as error:
        assert len(str(error)) < 200  # noqa: PT017


def test_labels_that_no_integer_holds():
    with pytest.raises(InputError, match="pairs: expected integers below"):
        Graph.from_labels([[2**63 + 1, 1], [2**63, -1]])
