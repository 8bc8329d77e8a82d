"""Second-order distributions over three classes, drawn in the triangle (needs matplotlib)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from paperworks.shared.errors import expected, require

from .distributions import Array, SecondOrder, second_order, to_numpy
from .measures import decompose

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])


def ternary(
    q: SecondOrder | Array,
    names: tuple[str, str, str] = ("1", "2", "3"),
    *,
    titles: list[str] | None = None,
    columns: int = 4,
) -> Any:
    """Draw each row in a triangle, with its three Wasserstein uncertainties.

    Parameters
    ----------
    q : SecondOrder or array, shape (n, members, 3)
        Over three classes. Atoms are drawn as discs with an area in proportion to their weight, a
        Dirichlet as filled contours of its density.
    names : tuple of str
        Of the classes.
    titles : list of str, optional
        One a row; by default "row 0" and so on.
    columns : int
        Triangles beside each other.

    Returns
    -------
    matplotlib.figure.Figure
        The cross marks the mean, the star the class distribution nearest to Q.

    Raises
    ------
    InputError
        For another number of classes, no rows, or a number of titles that is not that of rows.
    MissingExtraError
        Without matplotlib.
    """
    require("matplotlib", package="paperworks-second-order-uncertainty", extra="reproduce")
    from paperworks.shared.plotting import COLOURS, figure

    q = second_order(q)
    if q.classes != 3:
        raise expected("q", "three classes", f"{q.classes} classes")
    count = len(q)
    if count == 0:
        raise expected("q", "at least one row", "no rows")
    titles = titles or [f"row {i}" for i in range(count)]
    if len(titles) != count:
        raise expected("titles", f"{count} titles", f"{len(titles)} titles")
    across = min(columns, count)
    down = -(-count // across)
    drawing, grid = figure(down, across, size=(2.6 * across, 2.9 * down), squeeze=False)
    parts = decompose(q)
    values, means = to_numpy(q.values), to_numpy(q.mean())
    for i, axes in enumerate(grid.flat):
        axes.set_axis_off()
        axes.grid(visible=False)
        if i >= count:
            continue
        axes.set_aspect("equal")
        axes.fill(*_CORNERS.T, facecolor="none", edgecolor="grey", linewidth=1, zorder=2)
        for corner, name, place in zip(_CORNERS, names, ("top", "top", "bottom"), strict=True):
            offset = 0.03 if place == "bottom" else -0.03
            axes.text(corner[0], corner[1] + offset, name, ha="center", va=place)
        if q.kind == "samples":
            weights = None if q.weights is None else to_numpy(q.weights)[i]
            share = np.full(len(values[i]), 1 / len(values[i])) if weights is None else weights
            axes.scatter(
                *(values[i] @ _CORNERS).T, s=400 * share, color=COLOURS[0], alpha=0.55, linewidths=0
            )
        else:
            _density(axes, values[i])
        axes.plot(*(means[i] @ _CORNERS), "x", color="black", markersize=8, zorder=5)
        nearest = to_numpy(parts.minimizer)[i] @ _CORNERS
        axes.plot(*nearest, "*", color=COLOURS[1], markersize=9, zorder=4)
        told = [to_numpy(p)[i] for p in (parts.total, parts.aleatoric, parts.epistemic)]
        axes.set_title(
            f"{titles[i]}\nTU {told[0]:.3f}  AU {told[1]:.3f}  EU {told[2]:.3f}", fontsize=8
        )
        axes.set(xlim=(-0.08, 1.08), ylim=(-0.13, 0.98))
    return drawing


def _density(axes: Any, alpha: np.ndarray) -> None:
    steps = 60
    grid = [
        ((i + 1 / 3) / steps, (j + 1 / 3) / steps) for i in range(steps) for j in range(steps - i)
    ]
    points = np.array([(a, b, 1 - a - b) for a, b in grid])
    logarithm = special.xlogy(alpha - 1, points).sum(axis=-1)
    # By rank: a density may be unbounded at the border or flat.
    relative = np.exp(np.clip(logarithm - logarithm.max(), -30, 0))
    if np.ptp(logarithm) < 1e-9:
        relative = np.full(len(points), 0.5)
    if alpha.min() < 1:
        relative = relative**0.3
    x, y = (points @ _CORNERS).T
    axes.tripcolor(
        x, y, relative, cmap="Blues", vmin=0, vmax=1.2, shading="gouraud", rasterized=True
    )
