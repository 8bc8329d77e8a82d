"""Reports for people: one self-contained HTML page, a Markdown table, a line a claim."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .claims import Figure, Table, Verdict
from .errors import expected
from .files import read_json
from .reproduction import FORMAT

Report = Mapping[str, Any]

SYMBOLS = {Verdict.HOLDS: "✓", Verdict.FAILS: "✗", Verdict.ERROR: "!"}


def find_reports(places: Iterable[Path]) -> list[dict[str, Any]]:
    """Read the reports in folders.

    Parameters
    ----------
    places : iterable of path
        ``report.json`` files, folders that hold one, or folders of such folders.

    Raises
    ------
    InputError
        When a place holds no report or one of another format.
    """
    reports = []
    for place in places:
        direct = place if place.is_file() else place / "report.json"
        found = [direct] if direct.is_file() else sorted(place.glob("*/report.json"))
        if not found:
            raise expected(str(place), "a report.json or a folder with some", "none")
        for path in found:
            report = read_json(path)
            if not isinstance(report, dict) or report.get("format") != FORMAT:
                raise expected(str(path), f"a report of format {FORMAT}", "another file")
            reports.append(report)
    return reports


def to_html(reports: Sequence[Report]) -> str:
    """Render reports as one page without external resources."""
    counts = Counter(claim["verdict"] for report in reports for claim in report["claims"])
    order = [verdict for verdict in Verdict if counts[verdict]]
    return _template("report.html").render(
        reports=reports, counts=counts, verdicts=order, symbols=SYMBOLS
    )


def to_page(
    title: str,
    *,
    notes: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
    figures: Sequence[Figure] = (),
    tables: Sequence[Table] = (),
    footer: str = "",
) -> str:
    """Render what a verb found as one page in the style of the reports, without external resources.

    Parameters
    ----------
    title, footer : str
        The heading, and versions and settings at the foot.
    notes : sequence of str
        Paragraphs under the heading.
    facts : mapping
        Names and values.
    figures, tables : sequences of Figure and Table
        Shown in this order.
    """
    return _template("page.html").render(
        title=title,
        notes=notes,
        facts=facts or {},
        figures=[figure.rendered() for figure in figures],
        tables=tables,
        footer=footer,
    )


def to_markdown(reports: Sequence[Report]) -> str:
    """Render the claims as a Markdown table; several papers get a column of slugs."""
    paper_column = len(reports) > 1
    names = ["Claim", "Source", "Paper", "Measured", "Verdict"]
    rows = [["Slug", *names] if paper_column else names]
    rows.append(["---"] * len(rows[0]))
    for report in reports:
        for claim in report["claims"]:
            measured = show(claim["measured"]) + show_interval(claim["interval"])
            cells = [claim["statement"], claim["source"], show(claim["paper"]), measured]
            cells.append(f"{claim['verdict']} ({report['scale']})")
            rows.append([report["paper"]["slug"], *cells] if paper_column else cells)
    escaped = ([" ".join(c.replace("|", "\\|").split()) for c in row] for row in rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped) + "\n"


def line(slug: str, claim: Mapping[str, Any]) -> str:
    """Describe a measured claim in one line for the terminal."""
    head = f"{SYMBOLS.get(claim['verdict'], '-')} {slug} {claim['id']}: {claim['verdict']}"
    if claim["verdict"] in (Verdict.HOLDS, Verdict.FAILS):
        head += f", measured {show(claim['measured'])}{show_interval(claim['interval'])}"
    elif claim["verdict"] == Verdict.ERROR:
        head += f", {claim['note']}"
    return f"{' '.join(head.split())} ({seconds(claim['duration_seconds'])})"


def show(value: Any) -> str:
    """Write a measured or published value for people."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {show(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(show, value))
    return str(value)


def show_interval(interval: Sequence[float | None] | None) -> str:
    """Write an interval in brackets, or nothing; a missing end is unbounded."""
    if interval is None:
        return ""
    low, high = interval
    return f" [{'-∞' if low is None else _number(low)}, {'∞' if high is None else _number(high)}]"


def seconds(value: float) -> str:
    """Write a duration."""
    if value < 120:
        return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"
    return f"{value / 60:.0f} min"


def _template(name: str) -> Any:
    from jinja2 import Environment, PackageLoader

    loader = PackageLoader("paperworks.shared", "templates")
    made = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"show": show, "interval": show_interval, "seconds": seconds}
    return made.get_template(name)


def _number(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size and (size >= 1e6 or size < 1e-4):
        return f"{value:.4g}"
    return f"{value:.0f}" if size >= 1e4 else f"{value:.4g}"
