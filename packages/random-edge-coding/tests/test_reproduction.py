import pytest

from paperworks.random_edge_coding.reproduction import claims
from paperworks.shared.testing import reproduce_quick, run_command

EXACT = [c.id for c in claims if c.id != "quasi-linear"]


def test_quick_claims_hold(tmp_path):
    report = reproduce_quick("random-edge-coding", tmp_path, *EXACT)
    verdicts = {claim["id"]: claim["verdict"] for claim in report["claims"]}
    assert verdicts == dict.fromkeys(EXACT, "holds")
    assert (tmp_path / "random-edge-coding" / "report.html").stat().st_size > 10_000


def test_growth_is_measured(tmp_path):
    """Whether it holds depends on what else the machine does."""
    report = reproduce_quick("random-edge-coding", tmp_path, "quasi-linear")
    assert report["claims"][0]["verdict"] in ("holds", "does not hold")


def test_own_graphs(tmp_path):
    folder = tmp_path / "graphs"
    folder.mkdir()
    (folder / "mine.txt").write_text("0 1\n1 2\n2 2\n5 1\n1 0\n")
    options = [
        "--scale",
        "quick",
        "--out",
        tmp_path / "out",
        "--data",
        f"graphs={folder}",
        "--json",
    ]
    result = run_command("random-edge-coding", "reproduce", "message-length", *options)
    assert result.exit_code == 0
    assert "mine" in result.stdout


@pytest.mark.parametrize("claim", ["message-length", "hubs"])
def test_the_papers_networks_are_needed_at_paper_scale(tmp_path, claim):
    run_command("random-edge-coding", "reproduce", claim, "--scale", "paper", "--out", tmp_path)
    page = (tmp_path / "random-edge-coding" / "report.json").read_text()
    assert "needs --data graphs=FOLDER" in page
