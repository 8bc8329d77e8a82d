"""Figures in one style, as SVG that sits in a page and follows its light or dark colours."""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import Any

from .errors import require

STYLE = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
}
# Told apart on white and on near-black.
COLOURS = ("#2f7fd6", "#e0762b", "#2f9e62", "#cf4a5b", "#8a63c9", "#8d6e63", "#d264a6", "#7a8793")


def figure(
    rows: int = 1, columns: int = 1, size: tuple[float, float] = (6.4, 4.0), **subplots: Any
) -> tuple[Any, Any]:
    """Make a figure with axes, apart from pyplot and its global state.

    Parameters
    ----------
    rows, columns : int
        The grid of axes.
    size : tuple of float
        Width and height in inches.
    **subplots : dict
        Passed to `matplotlib.figure.Figure.subplots`.

    Returns
    -------
    matplotlib.figure.Figure, Axes or array of Axes
        In the house style.
    """
    matplotlib = require("matplotlib", package="paperworks-shared", extra="report")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE | {"axes.prop_cycle": matplotlib.cycler(color=COLOURS)}):
        made = Figure(figsize=size)
        return made, made.subplots(rows, columns, **subplots)


def to_svg(drawing: Any, label: str = "") -> str:
    """Render a matplotlib figure as an ``<svg>`` element to be put inside an HTML page.

    Text stays text, black becomes the page's text colour, and identifiers are unique to the
    drawing's content, so that several drawings share a page. The same drawing gives the same text.

    Parameters
    ----------
    drawing : matplotlib.figure.Figure
        What is rendered.
    label : str
        The accessible name.
    """
    matplotlib = require("matplotlib", package="paperworks-shared", extra="report")
    for axes in drawing.axes:
        if (legend := axes.get_legend()) is not None:
            legend.set_frame_on(False)  # its frame is white in either colour scheme
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "paperworks"}):
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"#000000\b|(?<=[:\"' ])black\b", "currentColor", svg)
    # matplotlib leaves the initial fill of text and glyphs to the renderer, which is black.
    head = f'<svg fill="currentColor" role="img" aria-label="{html.escape(label)}" '
    svg = svg.replace("<svg ", head, 1)
    svg = re.sub(r'(<svg[^>]*?) width="[\d.]+pt" height="[\d.]+pt"', r"\1", svg, count=1)
    prefix = "f" + hashlib.blake2b((label + svg).encode(), digest_size=5).hexdigest()
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', svg)
    svg = re.sub(r'((?:xlink:)?href="#)([^"]+)"', rf'\1{prefix}-\2"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg).strip()
