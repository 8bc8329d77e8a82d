"""Figures 1 to 3 of the paper and those of a fit (extra ``plots``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paperworks.shared.errors import expected
from paperworks.shared.plotting import figure
from paperworks.shared.validation import check_array

from .cost import Plan, plan
from .demand import InferenceDemand
from .fitting import Fit
from .law import ScalingLaw
from .runs import Runs


def ratio_maps(
    law: ScalingLaw,
    *,
    chinchilla_params: ArrayLike | None = None,
    requests: ArrayLike | None = None,
    input_tokens: float | None = None,
    output_tokens: float | None = None,
    **settings: Any,
) -> Any:
    """Draw size, tokens, FLOPs and cost of the optimum over Chinchilla's, as four heat maps.

    Parameters
    ----------
    law : ScalingLaw
        Of floats.
    chinchilla_params : array_like, shape (q,), optional
        Qualities, as sizes of Chinchilla-optimal models; 1e9 to 1e12 by default.
    requests : array_like, shape (r,), optional
        Requests over the model's life; 1e6 to 1e12 by default.
    input_tokens, output_tokens : float, optional
        Tokens a request; the paper's by default.
    **settings
        Hardware and the rest, as for `plan`. Without hardware the cost is FLOPs.

    Returns
    -------
    matplotlib.figure.Figure
        With logarithmic axes and colours centred on no change.
    """
    sizes = np.geomspace(1e9, 1e12, 61) if chinchilla_params is None else chinchilla_params
    sizes = check_array("chinchilla_params", sizes, ndim=1, dtype=np.float64, above=0)
    counts = np.geomspace(1e6, 1e12, 61) if requests is None else requests
    counts = check_array("requests", counts, ndim=1, dtype=np.float64, above=0)
    per_request = {"input_tokens": input_tokens, "output_tokens": output_tokens}
    given = {name: value for name, value in per_request.items() if value is not None}
    demand = InferenceDemand(counts[:, None], **given)
    found = plan(law, law.loss_of_chinchilla(sizes), demand, **settings)
    base = found.baseline
    maps = {
        "parameters / Chinchilla": found.params / base.params,
        "training tokens / Chinchilla": found.tokens / base.tokens,
        "total FLOPs / Chinchilla": found.total_flops / base.total_flops,
        f"cost ({found.cost_unit}) / Chinchilla": found.cost / base.cost,
    }
    drawing, axes = figure(2, 2, size=(10.0, 7.6), sharex=True, sharey=True)
    for axis, (title, values) in zip(axes.flat, maps.items(), strict=True):
        _heat_map(drawing, axis, sizes, counts, values)
        axis.set_title(title)
    for axis in axes[1]:
        axis.set_xlabel("parameters of the Chinchilla model of that quality")
    for axis in axes[:, 0]:
        axis.set_ylabel("requests over its life")
    return drawing


def isoloss_curve(law: ScalingLaw, chosen: Plan) -> Any:
    """Draw sizes and token counts of equal loss, the cost along them, and the chosen point.

    Parameters
    ----------
    law : ScalingLaw
        Of floats.
    chosen : Plan
        Of floats.
    """
    if np.ndim(chosen.params):
        raise expected("plan", "one plan", f"an array of {np.size(chosen.params)} plans")
    low = min(chosen.params, chosen.baseline.params) / 3
    sizes = np.geomspace(low, max(chosen.params, chosen.baseline.params) * 4, 400)
    tokens = np.asarray(law.isoloss(chosen.loss, sizes))
    # Serving costs in proportion to the size, training to size times tokens.
    train = chosen.train_cost / (chosen.params * chosen.tokens) * sizes * tokens
    serve = chosen.inference_cost / chosen.params * sizes
    drawing, (left, right) = figure(1, 2, size=(10.5, 4.2))
    left.set(xscale="log", yscale="log", xlabel="parameters", ylabel="training tokens")
    right.set(xscale="log", yscale="log", xlabel="parameters", ylabel=f"cost ({chosen.cost_unit})")
    left.plot(sizes, tokens, label=f"loss {chosen.loss:.4g}")
    right.plot(sizes, train + serve, label="total")
    right.plot(sizes, train, "--", label="training")
    right.plot(sizes, serve, ":", label="inference")
    for point, marker, label in ((chosen, "o", "chosen"), (chosen.baseline, "s", "Chinchilla")):
        left.plot(point.params, point.tokens, marker, color="black", markersize=7)
        left.annotate(label, (point.params, point.tokens), (8, 6), textcoords="offset points")
        right.plot(point.params, point.cost, marker, color="black", markersize=7, label=label)
    reachable = np.isfinite(tokens) & (tokens < 50 * max(chosen.tokens, chosen.baseline.tokens))
    left.set_ylim(tokens[reachable].min() / 2, tokens[reachable].max())
    right.set_ylim(serve.min() / 2, 6 * max(chosen.cost, chosen.baseline.cost))
    left.legend()
    right.legend()
    return drawing


def residuals(fitted: Fit, runs: Runs) -> Any:
    """Draw the residuals of a fit against tokens per parameter.

    Parameters
    ----------
    fitted : Fit
        Of these runs.
    runs : Runs
        What was fitted and held out.
    """
    ratio = runs.tokens / runs.params
    percent = 100 * fitted.residuals
    drawing, axis = figure(size=(7.2, 4.2))
    axis.axhline(0, color="grey", linewidth=1)
    axis.plot(ratio[fitted.used], percent[fitted.used], "o", label="fitted")
    if not fitted.used.all():
        axis.plot(ratio[~fitted.used], percent[~fitted.used], "D", label="held out")
        axis.axvline(fitted.settings["max_ratio"], color="grey", linestyle=":")
    axis.set(xscale="log", xlabel="training tokens per parameter")
    axis.set_ylabel("predicted over measured loss, log difference in %")
    axis.legend()
    return drawing


def extrapolation(low: Fit, full: Fit, runs: Runs) -> Any:
    """Draw what a fit on low ratios predicts at high ones, beside the fit on all runs.

    Parameters
    ----------
    low, full : Fit
        With and without ``max_ratio``.
    runs : Runs
        All runs.
    """
    ratio = runs.tokens / runs.params
    drawing, axis = figure(size=(8.0, 4.8))
    sizes = np.unique(runs.params)
    # Some sizes are enough to see, and lines of more hide each other.
    shown = sizes[np.unique(np.linspace(0, len(sizes) - 1, 5).round().astype(int))]
    reach = np.geomspace(ratio.min(), ratio.max(), 200)
    for i, size in enumerate(shown):
        colour = f"C{i}"
        mine = runs.params == size
        axis.plot(ratio[mine], runs.loss[mine], "o", color=colour, label=f"{size:.3g} parameters")
        axis.plot(reach, full.law.loss(size, reach * size), color=colour)
        axis.plot(reach, low.law.loss(size, reach * size), "--", color=colour)
    limit = low.settings["max_ratio"]
    axis.plot([], [], color="grey", label="fit on all runs")
    axis.plot([], [], "--", color="grey", label=f"fit on ratios up to {limit:g}")
    axis.axvline(limit, color="grey", linestyle=":")
    axis.set(xscale="log", xlabel="training tokens per parameter", ylabel="loss (nats a token)")
    axis.legend(fontsize=8)
    return drawing


def _heat_map(drawing: Any, axis: Any, x: np.ndarray, y: np.ndarray, values: np.ndarray) -> None:
    from matplotlib.colors import LogNorm

    spread = float(np.exp(np.abs(np.log(values)).max())) or 1.0
    spread = max(spread, 1.001)
    norm = LogNorm(1 / spread, spread)
    axis.set(xscale="log", yscale="log")  # first: labels of contours are placed on the axes' scale
    mesh = axis.pcolormesh(x, y, values, norm=norm, cmap="RdBu_r", shading="gouraud")
    mesh.set_rasterized(True)  # thousands of triangles would make a slow SVG of megabytes
    levels = _levels(values)
    if len(levels):
        lines = axis.contour(x, y, values, levels=levels, colors="black", linewidths=0.6)
        axis.clabel(lines, fmt="%g", fontsize=8)
    axis.grid(visible=False)
    bar = drawing.colorbar(mesh, ax=axis, ticks=[1 / spread, 1, spread], format="%.3g")
    bar.ax.minorticks_off()


def _levels(values: np.ndarray) -> list[float]:
    wanted = [0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.2, 1.5, 2, 3, 5, 10, 20, 50]
    return [level for level in wanted if values.min() < level < values.max()]
