"""Claims are measured once, resumed, judged and reported; nothing is told that was not run."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import numpy as np
import pytest

from paperworks.shared.claims import Claims, Figure, Outcome, Run, Scale, Table
from paperworks.shared.plotting import figure, to_svg
from paperworks.shared.report import show, to_html, to_markdown, to_page
from paperworks.shared.testing import run_command

COMMAND = [sys.executable, "-m", "paperworks.shared.cli"]


def reproduce(folder, *arguments, scale="quick"):
    result = run_command("demo-paper", "reproduce", *arguments, "--scale", scale, "--out", folder)
    path = folder / "demo-paper" / "report.json"
    return result, json.loads(path.read_text()) if path.exists() else None


def runs(folder, claim):
    return len((folder / "demo-paper" / "claims" / claim / "runs.txt").read_text())


def test_verdicts(demo, tmp_path):
    result, report = reproduce(tmp_path)
    assert result.exit_code == 1  # one claim does not hold and one is broken
    verdicts = {claim["id"]: claim["verdict"] for claim in report["claims"]}
    assert verdicts == {
        "good": "holds",
        "bad": "does not hold",
        "later": "needs laptop scale",
        "largest": "needs paper scale",
        "unsure": "not tested",
        "broken": "error",
    }
    assert "✗ demo-paper bad: does not hold, measured -1 [-2, ∞]" in result.stdout
    assert "! demo-paper broken: error, ZeroDivisionError" in result.stdout
    by_id = {claim["id"]: claim for claim in report["claims"]}
    assert by_id["good"]["interval"] == [0.1, 0.4]
    assert by_id["bad"]["interval"] == [-2.0, None]
    assert "ZeroDivisionError" in by_id["broken"]["traceback"]
    assert report["environment"]["versions"]["paperworks-demo-paper"] == "1.2.3"
    assert report["environment"]["versions"]["numpy"] == np.__version__
    assert (report["seed"], report["scale"], report["device"]) == (0, "quick", "cpu")


def test_only_what_holds_gives_0(demo, tmp_path):
    assert reproduce(tmp_path, "good")[0].exit_code == 0
    assert reproduce(tmp_path, "later", "unsure")[0].exit_code == 0


def test_resume_and_what_invalidates(demo, tmp_path):
    reproduce(tmp_path, "good", "bad")
    reproduce(tmp_path, "good", "bad")
    assert runs(tmp_path, "good") == 1
    reproduce(tmp_path, "good", "--seed", "1")
    assert runs(tmp_path, "good") == 2
    reproduce(tmp_path, "good", "--seed", "1", "--fresh")
    assert runs(tmp_path, "good") == 1  # the folder was emptied
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("5")
    _, report = reproduce(tmp_path, "bad", "--data", f"numbers={numbers}")
    assert report["claims"][0]["measured"] == 5.0
    numbers.write_text("60")
    _, report = reproduce(tmp_path, "bad", "--data", f"numbers={numbers}")
    assert report["claims"][0]["measured"] == 60.0


def test_the_report_keeps_the_other_claims(demo, tmp_path):
    reproduce(tmp_path, "bad")
    result, report = reproduce(tmp_path, "good")
    assert result.exit_code == 0  # only what was asked for counts
    assert [claim["id"] for claim in report["claims"]] == ["good", "bad"]
    reproduce(tmp_path, "good", "--fresh")
    assert runs(tmp_path, "bad") == 1
    _, report = reproduce(tmp_path, "good", "--seed", "1")
    assert [claim["id"] for claim in report["claims"]] == ["good"]


def test_other_code_is_other_work(demo, tmp_path):
    command = [*COMMAND, "demo-paper", "reproduce", "good", "--scale", "quick", "--out", tmp_path]
    subprocess.run(command, check=True, capture_output=True)
    code = demo / "paperworks" / "demo_paper" / "reproduction.py"
    code.write_text(code.read_text() + "\n# changed\n")
    subprocess.run(command, check=True, capture_output=True)
    assert runs(tmp_path, "good") == 2


def test_an_error_is_tried_again(demo, tmp_path, monkeypatch):
    assert reproduce(tmp_path, "broken")[1]["claims"][0]["verdict"] == "error"
    monkeypatch.setenv("DEMO_MENDED", "1")
    assert reproduce(tmp_path, "broken")[1]["claims"][0]["verdict"] == "holds"


def test_interrupted_run_resumes(demo, tmp_path, monkeypatch):
    monkeypatch.setenv("DEMO_STOP", "1")
    result, report = reproduce(tmp_path, scale="laptop")
    assert result.exit_code == 130
    assert [claim["id"] for claim in report["claims"]] == ["good", "bad"]
    monkeypatch.delenv("DEMO_STOP")
    _, report = reproduce(tmp_path, scale="laptop")
    assert len(report["claims"]) == 6
    assert report["claims"][2]["verdict"] == "holds"


def test_json_goes_to_stdout_alone(demo, tmp_path):
    result, report = reproduce(tmp_path, "good", "--json")
    assert json.loads(result.stdout) == report
    assert "good: holds" in result.stderr


def test_several_papers_and_one_report(demo, tmp_path):
    command = [*COMMAND, "reproduce", "demo-paper", "--scale", "quick", "--out", tmp_path / "out"]
    done = subprocess.run([*command, "--jobs", "2"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    page = (tmp_path / "out" / "index.html").read_text()
    assert "The good &lt;b&gt;statement&lt;/b&gt;" in page
    table = tmp_path / "table.md"
    assert run_command("report", tmp_path / "out", "--out", table, "--markdown", "-").exit_code == 0


class Page(HTMLParser):
    """Collects ids, links and tags, and whether every tag is closed."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.hrefs, self.tags, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open += [] if tag in {"meta", "link", "input", "br"} else [tag]
        self.ids += [value for name, value in attrs if name == "id"]
        self.hrefs += [value for name, value in attrs if name.endswith(("href", "src"))]

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_page_is_whole_and_self_contained(demo, tmp_path):
    reproduce(tmp_path)
    text = (tmp_path / "demo-paper" / "report.html").read_text()
    page = Page(text)
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    outside = [h for h in page.hrefs if not h.startswith(("#", "data:", "https://arxiv.org/abs/"))]
    assert outside == []
    inside = {h[1:] for h in page.hrefs if h.startswith("#")}
    assert inside <= set(page.ids)
    assert page.tags.count("svg") == 1
    assert not re.search(r"@import|url\((?!#)", text)


def test_a_page_of_a_verb():
    drawing, axes = figure()
    axes.plot([0, 1])
    text = to_page(
        "An <audit>",
        notes=["Be warned & read."],
        facts={"auc": 0.5},
        figures=[Figure("Curve", drawing, "Caption")],
        tables=[Table("Rows", ["a"], [[1e-9]])],
        footer="version 1",
    )
    page = Page(text)
    assert page.open == []
    assert page.tags.count("svg") == 1
    for part in ("An &lt;audit&gt;", "Be warned &amp; read.", "<dd>0.5</dd>", "1e-09", "version 1"):
        assert part in text


def test_two_figures_share_a_page():
    drawings = []
    for label in ("first", "second"):
        drawing, axes = figure()
        axes.plot([0, 1], [0, 1], "o", label=label)
        axes.legend()
        drawings.append(to_svg(drawing, label))
    pages = [Page(svg) for svg in drawings]
    assert not set(pages[0].ids) & set(pages[1].ids)
    for svg, page in zip(drawings, pages, strict=True):
        ET.fromstring(svg)
        used = set(re.findall(r"url\(#([^)]+)\)", svg)) | {h[1:] for h in page.hrefs}
        assert used <= set(page.ids)
        assert "currentColor" in svg
        assert "#000000" not in svg
    drawing, axes = figure()
    axes.plot([0, 1], [0, 1], "o", label="first")
    axes.legend()
    assert to_svg(drawing, "first") == drawings[0]


def test_markdown(demo, tmp_path):
    _, report = reproduce(tmp_path, "good", "bad")
    lines = to_markdown([report]).splitlines()
    assert lines[0] == "| Claim | Source | Paper | Measured | Verdict |"
    assert lines[2].endswith("| 1.5 | ours: 0.25; theirs: 2 [0.1, 0.4] | holds (quick) |")
    assert to_markdown([report, report]).startswith("| Slug | Claim |")
    assert "<title>paperworks – reproduction of 2 papers</title>" in to_html([report, report])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (True, "yes"),
        (0.123456, "0.1235"),
        (12345.6, "12346"),
        (3.2e9, "3.2e+09"),
        (1e-7, "1e-07"),
        ({"a": 1, "b": [0.5, None]}, "a: 1; b: 0.5, –"),
    ],
)
def test_show(value, text):
    assert show(value) == text


def test_types_refuse_nonsense(tmp_path):
    with pytest.raises(ValueError, match="says why"):
        Outcome(measured=1, holds=None)
    with pytest.raises(TypeError, match="expected True, False or None"):
        Outcome(measured=1, holds=1)
    assert Outcome(measured=1, holds=np.bool_(True)).holds is True
    with pytest.raises(ValueError, match="1 cells under 2 columns"):
        Table("t", ["a", "b"], [[1]])
    claims = Claims("x")
    declare = {"statement": "", "source": "", "paper": 0, "criterion": ""}
    with pytest.raises(ValueError, match="claim id"):
        claims.claim("Not Good", scales={Scale.QUICK: ""}, **declare)
    with pytest.raises(ValueError, match="one scale at least"):
        claims.claim("good", scales={}, **declare)


def test_run(tmp_path):
    run = Run("c", Scale.QUICK, 3, "cpu", tmp_path)
    assert run.pick(quick=1, laptop=2, paper=3) == 1
    assert list(run.track([1, 2])) == [1, 2]
    run.checkpoints(n=1).save("a", {"x": 1})
    assert run.checkpoints(n=1).load("a") == {"x": 1}
    other = Run("c", Scale.QUICK, 4, "cpu", tmp_path)
    assert other.checkpoints(n=1).load("a") is None
    assert run.generator("a").random() != run.generator("b").random()
    assert run.data("none") is None
