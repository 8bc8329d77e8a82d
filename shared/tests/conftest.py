"""A small paper, installed as any package is, that holds, fails, crashes and is interrupted."""

import importlib
import sys
from textwrap import dedent

import pytest

CLI = """
    import signal, sys
    from typing import Annotated
    import typer
    from paperworks.shared.cli import JsonOption, OutOption, Paper, command_group, emit
    from paperworks.shared.errors import InputError

    app = command_group()
    paper = Paper(slug="demo-paper", title="A Demo", venue="ICML 2000", arxiv="0001.00001", app=app)

    @app.command()
    def double(number: float, out: OutOption = "-", json: JsonOption = False) -> None:
        "Double a number."
        if number < 0:
            raise InputError("number: expected >= 0,\\n found less")
        emit({"value": 2 * number}, json, str(2 * number))

    @app.command()
    def misbehave(how: str) -> None:
        "End in another way."
        if how == "open":
            open("/no/such/file")
        if how == "interrupt":
            raise KeyboardInterrupt
        if how == "end":
            raise EOFError("No data left in file")
        if how == "extra":
            from paperworks.shared.errors import require
            require("no_such_module", package="paperworks-demo-paper", extra="more")
        if how == "memory":
            raise MemoryError
        if how == "fail":
            raise typer.Exit(1)
        raise RuntimeError("a bug")
"""

REPRODUCTION = """
    import os
    from paperworks.shared.claims import Claims, Figure, Outcome, Run, Scale, Table
    from paperworks.shared.plotting import figure

    claims = Claims("demo-paper", data={"numbers": "a file with one number"})

    def declare(id, scales=(Scale.QUICK,)):
        return claims.claim(id, statement=f"The {id} <b>statement</b>", source="Table 1", paper=1.5,
                            criterion="difference > 0", scales={s: "few | things" for s in scales})

    def count(run):
        with open(run.folder / "runs.txt", "a") as file:
            file.write("x")

    @declare("good")
    def good(run):
        count(run)
        drawing, axes = figure()
        axes.plot([0, 1], run.generator().random(2), label="a < b")
        axes.legend()
        return Outcome(measured={"ours": 0.25, "theirs": 2}, holds=True, interval=(0.1, 0.4),
                       figures=[Figure("Lines & dots", drawing, "A caption.")],
                       tables=[Table("Numbers", ["n", "x"], [[1, 0.5], [10, 1e-9]])])

    @declare("bad")
    def bad(run):
        count(run)
        data = run.data("numbers")
        return Outcome(measured=float(data.read_text()) if data else -1.0, holds=False,
                       interval=(-2.0, float("inf")), note="Because.")

    @declare("later", [Scale.LAPTOP])
    def later(run):
        if os.environ.get("DEMO_STOP"):
            raise KeyboardInterrupt
        count(run)
        return Outcome(measured=1, holds=True)

    @declare("largest", [Scale.PAPER])
    def largest(run):
        raise AssertionError("not run at smaller scales")

    @declare("unsure")
    def unsure(run):
        return Outcome(measured=None, holds=None, note="no data here")

    @declare("broken")
    def broken(run):
        if os.environ.get("DEMO_MENDED"):
            return Outcome(measured="mended", holds=True)
        return 1 / 0
"""


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """Install the package ``paperworks-demo-paper`` for one test and return its site folder."""
    site = tmp_path / "site"
    package = site / "paperworks" / "demo_paper"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "cli.py").write_text(dedent(CLI))
    (package / "reproduction.py").write_text(dedent(REPRODUCTION))
    info = site / "paperworks_demo_paper-1.2.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: paperworks-demo-paper\nVersion: 1.2.3\n"
        "Summary: Doubles numbers\nRequires-Dist: numpy>=1\nRequires-Dist: absent; extra == 'x'\n"
    )
    (info / "entry_points.txt").write_text(
        "[paperworks.papers]\ndemo-paper = paperworks.demo_paper.cli:paper\n"
    )
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", str(site))
    importlib.invalidate_caches()
    yield site
    for name in [n for n in sys.modules if n.startswith("paperworks.demo_paper")]:
        del sys.modules[name]
