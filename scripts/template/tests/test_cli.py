"""Each verb on a small real file, its errors, and the claims at quick scale."""

import json

import numpy as np
import pytest

from paperworks.shared.testing import reproduce_quick, run_command


def test_estimate(tmp_path):
    file = tmp_path / "observed.csv"
    file.write_text("3,0,4\n0,0,0\n")
    result = run_command("paper-slug", "estimate", file)
    assert result.exit_code == 0
    rows = [[float(cell) for cell in line.split(",")] for line in result.stdout.splitlines()]
    np.testing.assert_allclose(rows, [[2.88, 0, 3.84], [0, 0, 0]])


def test_estimate_from_stdin_to_json_and_file(tmp_path):
    result = run_command("paper-slug", "estimate", "-", "--json", input=b"3,0,4\n")
    np.testing.assert_allclose(json.loads(result.stdout), [[2.88, 0, 3.84]])
    out = tmp_path / "estimated.csv"
    result = run_command("paper-slug", "estimate", "-", "--out", out, input=b"3,0,4\n")
    assert result.exit_code == 0
    assert out.read_text().startswith("2.88,0.0,3.84")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1,2,x\n", "-:1: expected numbers, found '1,2,x'"),
        (b"1,2,3\n1,2\n", "-:2: expected 3 cells, found 2"),
        (b"\n", "expected lines of numbers, found an empty file"),
        (b"1,2\n", "observations: expected rows of at least 3 means"),
    ],
)
def test_bad_file(content, message):
    result = run_command("paper-slug", "estimate", "-", input=content)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_missing_file():
    result = run_command("paper-slug", "estimate", "nowhere.csv")
    assert result.exit_code == 2
    assert result.stderr == "error: nowhere.csv: No such file or directory\n"


def test_claims(tmp_path):
    report = reproduce_quick("paper-slug", tmp_path)
    assert {claim["id"]: claim["verdict"] for claim in report["claims"]} == {
        "dominates": "holds",
        "risk-at-origin": "holds",
    }
