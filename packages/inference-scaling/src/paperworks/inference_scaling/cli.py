"""The verbs of ``paperworks inference-scaling``."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperworks.shared.cli import JsonOption, OutOption, Paper, SeedOption, command_group, emit
from paperworks.shared.errors import InputError, expected

if TYPE_CHECKING:
    from .cost import Plan
    from .demand import InferenceDemand
    from .fitting import Fit
    from .law import ScalingLaw

app = command_group()
paper = Paper(
    slug="inference-scaling",
    title="Beyond Chinchilla-Optimal: Accounting for Inference in Language Model Scaling Laws",
    venue="ICML 2024",
    arxiv="2401.00448",
    app=app,
)

LawOption = Annotated[str, typer.Option(help="chinchilla, besiroglu, or the JSON file of a fit.")]
GoalOption = Annotated[
    str | None,
    typer.Option(help="Quality: a Chinchilla-optimal model's of this size; A,B,... for more."),
]
LossOption = Annotated[
    str | None, typer.Option(help="Quality: the loss in nats a token; A,B,... for more.")
]
TotalOption = Annotated[
    str | None, typer.Option(help="Tokens served over the model's life; A,B,... for more.")
]
RequestsOption = Annotated[
    str | None, typer.Option(help="Requests over the model's life; A,B,... for more.")
]
PerRequestOption = Annotated[str, typer.Option(help="INPUT:OUTPUT tokens of a request.")]
PerDayOption = Annotated[
    float | None, typer.Option(help="Requests a day, with --days, in place of --requests.")
]
DaysOption = Annotated[float | None, typer.Option(help="Length of the horizon.")]
GrowthOption = Annotated[float, typer.Option(help="Relative growth of the requests a year.")]
DiscountOption = Annotated[float, typer.Option(help="Discount rate a year for serving.")]
HardwareOption = Annotated[
    str | None, typer.Option(help="Minimise cost on this hardware; without it, FLOPs.")
]
ServingOption = Annotated[str | None, typer.Option(help="Hardware that serves, if another.")]
TableOption = Annotated[str | None, typer.Option(help="Your own hardware table (TOML).")]
DtypeOption = Annotated[str, typer.Option(help="Number format of training.")]
QuantizeOption = Annotated[str, typer.Option(help="Number format of serving, such as int8.")]
PriceOption = Annotated[
    float | None,
    typer.Option(help="Dollars an accelerator-hour; without it, cost is in accelerator-hours."),
]
ServingPriceOption = Annotated[
    float | None, typer.Option(help="Dollars an accelerator-hour of serving, if another.")
]
MfuTrainOption = Annotated[float, typer.Option(help="Utilisation of the peak in training.")]
MfuPrefillOption = Annotated[float, typer.Option(help="Utilisation when reading input.")]
MfuDecodeOption = Annotated[float, typer.Option(help="Utilisation when writing output.")]
RunsArgument = Annotated[
    str, typer.Argument(help="CSV, Parquet or JSONL with params, tokens, loss; - is CSV on stdin.")
]


@app.command()
def plan(
    law: LawOption = "chinchilla",
    chinchilla_params: GoalOption = None,
    loss: LossOption = None,
    inference_tokens: TotalOption = None,
    requests: RequestsOption = None,
    tokens_per_request: PerRequestOption = "70:215",
    requests_per_day: PerDayOption = None,
    days: DaysOption = None,
    growth: GrowthOption = 0.0,
    discount: DiscountOption = 0.0,
    hardware: HardwareOption = None,
    inference_hardware: ServingOption = None,
    hardware_table: TableOption = None,
    dtype: DtypeOption = "bf16",
    quantize: QuantizeOption = "bf16",
    price: PriceOption = None,
    inference_price: ServingPriceOption = None,
    mfu_train: MfuTrainOption = 0.5,
    mfu_prefill: MfuPrefillOption = 0.5,
    mfu_decode: MfuDecodeOption = 0.01,
    max_params: Annotated[float | None, typer.Option(help="Most parameters.")] = None,
    memory_gb: Annotated[
        float | None, typer.Option(help="Memory for the served weights, in 10^9 bytes.")
    ] = None,
    max_ms_per_token: Annotated[
        float | None, typer.Option(help="Latency of a token, bounded by reading the weights.")
    ] = None,
    unique_tokens: Annotated[float | None, typer.Option(help="Most training tokens.")] = None,
    sizes: Annotated[str | None, typer.Option(help="Sizes that can be built: A,B,...")] = None,
    format: Annotated[str, typer.Option(help="text, csv, markdown or json.")] = "text",
    out: OutOption = "-",
    json: JsonOption = False,
) -> None:
    """Find the parameters and training tokens of least cost for a quality and a demand."""
    from paperworks.shared.files import to_json, write_text
    from paperworks.shared.validation import check_choice

    from .runs import format_rows

    styles = ("text", "csv", "markdown", "json")
    style = check_choice("--format", format, styles)
    if json and style not in ("text", "json"):
        raise expected("--format", "text or json beside --json", style)
    style = "json" if json else style
    if hardware is None:
        _refuse_without(
            "--hardware",
            {
                "--inference-hardware": inference_hardware,
                "--hardware-table": hardware_table,
                "--dtype": None if dtype == "bf16" else dtype,
                "--quantize": None if quantize == "bf16" or memory_gb else quantize,
            },
        )
    scaling = _law(law)
    goal = _goal(scaling, chinchilla_params, loss)
    demand = _demand(
        inference_tokens, requests, tokens_per_request, requests_per_day, days, growth, discount
    )
    found = _plan(
        scaling,
        goal,
        demand,
        hardware=hardware,
        inference_hardware=inference_hardware,
        table=hardware_table,
        train_dtype=dtype,
        inference_dtype=quantize,
        train_hour=price,
        inference_hour=inference_price,
        mfu=(mfu_train, mfu_prefill, mfu_decode),
        max_params=max_params,
        max_memory_bytes=None if memory_gb is None else memory_gb * 1e9,
        max_seconds_per_token=None if max_ms_per_token is None else max_ms_per_token / 1e3,
        unique_tokens=unique_tokens,
        sizes=None if sizes is None else _numbers("--sizes", sizes),
    )
    rows = found.rows()
    texts = {
        "text": lambda: "\n".join(map(_told, rows)) + "\n",
        "json": lambda: to_json(rows[0] if len(rows) == 1 else rows) + "\n",
    }
    text = texts[style]() if style in texts else format_rows(rows, style)
    write_text(out, text)


@app.command()
def fit(
    runs: RunsArgument,
    out: Annotated[str | None, typer.Option("--out", "-o", help="Write the law as JSON.")] = None,
    max_ratio: Annotated[
        float | None, typer.Option(help="Fit only runs up to so many tokens per parameter.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Huber threshold of the log loss.")] = 1e-3,
    overestimate_weight: Annotated[
        float, typer.Option(help="Factor of the penalty where the law is above a run.")
    ] = 1.0,
    bootstrap: Annotated[int, typer.Option(help="Resamples for the intervals.", min=0)] = 1000,
    level: Annotated[float, typer.Option(help="Confidence level.")] = 0.95,
    all_starts: Annotated[
        bool, typer.Option("--all-starts", help="Descend from all 4,500 starts.")
    ] = False,
    residuals: Annotated[
        str | None, typer.Option(help="Write the runs with predictions as CSV.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes for the bootstrap.", min=1)] = 1,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Fit E, A, B, alpha and beta to a table of training runs."""
    from paperworks.shared.files import to_json, write_text

    from . import fitting
    from .runs import format_rows, read_runs

    table = read_runs(runs)
    with _warnings_as_lines():
        found = fitting.fit(
            table.params,
            table.tokens,
            table.loss,
            delta=delta,
            max_ratio=max_ratio,
            overestimate_weight=overestimate_weight,
            starts="all" if all_starts else "grid",
            bootstrap=bootstrap,
            level=level,
            seed=seed,
            workers=workers,
        )
    if residuals is not None:
        predicted = found.law.loss(table.params, table.tokens)
        columns = {
            **table.extra,
            "params": table.params.tolist(),
            "tokens": table.tokens.tolist(),
            "loss": table.loss.tolist(),
            "predicted_loss": predicted.tolist(),
            "log_residual": found.residuals.tolist(),
            "fitted": found.used.tolist(),
        }
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        write_text(residuals, format_rows(rows, "csv"))
    if out is not None:
        write_text(out, to_json(found.to_dict()) + "\n")
        if out == "-":
            return
    emit(found.to_dict(), json, _told_fit(found, out))


@app.command()
def plot(
    kind: Annotated[str, typer.Argument(help="ratios, isoloss, residuals or extrapolation.")],
    runs: Annotated[str | None, typer.Option(help="Runs, for residuals and extrapolation.")] = None,
    max_ratio: Annotated[
        float | None, typer.Option(help="Fit only runs up to so many tokens per parameter.")
    ] = None,
    law: LawOption = "chinchilla",
    chinchilla_params: GoalOption = None,
    loss: LossOption = None,
    inference_tokens: TotalOption = None,
    requests: RequestsOption = None,
    tokens_per_request: PerRequestOption = "70:215",
    hardware: HardwareOption = None,
    hardware_table: TableOption = None,
    quantize: QuantizeOption = "bf16",
    price: PriceOption = None,
    out: Annotated[str, typer.Option("--out", "-o", help="PNG, SVG or PDF file.")] = "plot.png",
) -> None:
    """Draw the four ratio maps, an iso-loss curve, residuals or an extrapolation."""
    from paperworks.shared.errors import require
    from paperworks.shared.files import atomic_path
    from paperworks.shared.validation import check_choice

    require("matplotlib", package="paperworks-inference-scaling", extra="plots")
    from . import plots

    check_choice("KIND", kind, ("ratios", "isoloss", "residuals", "extrapolation"))
    goal_options = {
        "--chinchilla-params": chinchilla_params,
        "--loss": loss,
        "--inference-tokens": inference_tokens,
        "--requests": requests,
    }
    fit_options = {"--runs": runs, "--max-ratio": max_ratio}
    if kind == "ratios":
        _refuse_without("an iso-loss curve or a fit", goal_options | fit_options)
    elif kind == "isoloss":
        _refuse_without("a fit", fit_options)
    else:
        _refuse_without("ratios or an iso-loss curve", goal_options | {"--hardware": hardware})
    if hardware is None:
        unused = {"--hardware-table": hardware_table}
        unused["--quantize"] = None if quantize == "bf16" else quantize
        _refuse_without("--hardware", unused)
    if kind in ("ratios", "isoloss"):
        scaling = _law(law)
        per_request = _pair(tokens_per_request)
        costs = {
            "hardware": _hardware("--hardware", hardware, hardware_table),
            "inference_dtype": quantize,
            "train_hour": price,
        }
        if kind == "ratios":
            drawing = plots.ratio_maps(
                scaling, input_tokens=per_request[0], output_tokens=per_request[1], **costs
            )
        else:
            demand = _demand(inference_tokens, requests, tokens_per_request)
            goal = _goal(scaling, chinchilla_params, loss)
            drawing = plots.isoloss_curve(scaling, _single(scaling, goal, demand, costs))
    else:
        drawing = _fit_figure(kind, runs, max_ratio)
    with atomic_path(out) as temporary:
        try:
            drawing.savefig(temporary, dpi=150)
        except ValueError as error:
            raise InputError(f"{out}: {error}") from None
    typer.echo(f"{kind}: {out}")


def _refuse_without(needed: str, options: dict[str, Any]) -> None:
    """Refuse options that would change nothing."""
    for name, value in options.items():
        if value is not None:
            raise expected(name, f"{needed} where it is given", value)


def _fit_figure(kind: str, runs: str | None, max_ratio: float | None) -> Any:
    from . import fitting, plots
    from .runs import read_runs

    if runs is None:
        raise expected("--runs", f"a table of runs to draw {kind} of", "no file")
    table = read_runs(runs)
    columns = table.params, table.tokens, table.loss
    with _warnings_as_lines():
        if kind == "residuals":
            return plots.residuals(fitting.fit(*columns, max_ratio=max_ratio), table)
        low = fitting.fit(*columns, max_ratio=100.0 if max_ratio is None else max_ratio)
        return plots.extrapolation(low, fitting.fit(*columns), table)


def _single(scaling: ScalingLaw, goal: Any, demand: InferenceDemand, costs: dict[str, Any]) -> Plan:
    from .cost import plan as make_plan

    return make_plan(scaling, goal, demand, **costs)


def _law(name: str) -> ScalingLaw:
    from .law import ScalingLaw

    return ScalingLaw.named(name)


def _goal(law: ScalingLaw, chinchilla_params: str | None, loss: str | None) -> Any:
    """Return the losses as a column, so that they broadcast against the demands."""
    if (chinchilla_params is None) == (loss is None):
        found = "neither of them" if loss is None else "both of them"
        raise expected("--chinchilla-params, --loss", "one of the two", found)
    if loss is not None:
        return _column(_numbers("--loss", loss))
    return law.loss_of_chinchilla(_column(_numbers("--chinchilla-params", chinchilla_params or "")))


def _demand(
    inference_tokens: str | None,
    requests: str | None,
    tokens_per_request: str,
    requests_per_day: float | None = None,
    days: float | None = None,
    growth: float = 0.0,
    discount: float = 0.0,
) -> InferenceDemand:
    from .demand import InferenceDemand

    ways = {
        "--inference-tokens": inference_tokens,
        "--requests": requests,
        "--requests-per-day": requests_per_day,
    }
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        found = " and ".join(given) if given else "none of them"
        raise expected(", ".join(ways), "one of them", found)
    if (requests_per_day is None) != (days is None):
        raise expected("--requests-per-day, --days", "both of them", "only one of them")
    if requests_per_day is None and (growth or discount):
        raise expected("--growth, --discount", "--requests-per-day and --days", "no horizon")
    read, written = _pair(tokens_per_request)
    if inference_tokens is not None:
        total = _numbers("--inference-tokens", inference_tokens)
        return InferenceDemand.from_tokens(
            _scalar(total), output_fraction=written / (read + written)
        )
    if requests is not None:
        return InferenceDemand(_scalar(_numbers("--requests", requests)), read, written)
    return InferenceDemand.over_horizon(
        requests_per_day or 0.0,
        days or 0.0,
        input_tokens=read,
        output_tokens=written,
        annual_growth=growth,
        annual_discount=discount,
    )


def _plan(
    law: ScalingLaw,
    goal: Any,
    demand: InferenceDemand,
    *,
    hardware: str | None,
    inference_hardware: str | None,
    table: str | None,
    mfu: tuple[float, float, float],
    **settings: Any,
) -> Plan:
    from .cost import Utilization
    from .cost import plan as make_plan

    serving = inference_hardware
    use = Utilization(*mfu)
    return make_plan(
        law,
        goal,
        demand,
        hardware=_hardware("--hardware", hardware, table),
        inference_hardware=_hardware("--inference-hardware", serving, table),
        utilization=use if hardware is not None or use != Utilization() else None,
        **settings,
    )


def _hardware(option: str, name: str | None, table: str | None) -> Any:
    from .cost import Hardware

    return None if name is None else Hardware.named(name, table=table)


def _numbers(option: str, text: str) -> Any:
    import numpy as np

    try:
        return np.array([float(word) for word in text.split(",")])
    except ValueError:
        raise expected(option, "a number or several with commas between them", text) from None


def _scalar(numbers: Any) -> Any:
    return float(numbers[0]) if len(numbers) == 1 else numbers


def _column(numbers: Any) -> Any:
    return float(numbers[0]) if len(numbers) == 1 else numbers[:, None]


def _pair(text: str) -> tuple[float, float]:
    read, _, written = text.partition(":")
    try:
        pair = float(read), float(written)
    except ValueError:
        raise expected("--tokens-per-request", "INPUT:OUTPUT, such as 70:215", text) from None
    if not (min(pair) >= 0 and 0 < sum(pair) < float("inf")):
        raise expected("--tokens-per-request", "INPUT:OUTPUT, both >= 0 and one above 0", text)
    return pair


@contextmanager
def _warnings_as_lines() -> Generator[None]:
    """Print what the library warns of as lines on stderr."""
    from .runs import RunsWarning

    with warnings.catch_warnings(record=True, action="always", category=RunsWarning) as caught:
        yield
    for warning in caught:
        typer.echo(f"warning: {warning.message}", err=True)


def _told(row: dict[str, Any]) -> str:
    unit = row["cost_unit"]
    lines = [
        f"loss {row['loss']:.5g}, {row['inference_tokens']:.4g} inference tokens",
        f"  {'':<22}{'optimal':>14}{'Chinchilla':>14}{'ratio':>9}",
    ]
    names = [
        "params",
        "tokens",
        "tokens_per_param",
        "train_flops",
        "inference_flops",
        "total_flops",
    ]
    if unit != "FLOPs":
        names += ["train_cost", "inference_cost", "cost"]
    for name in names:
        ours, base = row[name], row[f"baseline_{name}"]
        label = name.replace("_", " ")
        if name.endswith("cost"):
            label += f" ({'$' if unit == 'dollars' else 'hours'})"
        lines.append(f"  {label:<22}{ours:>14.5g}{base:>14.5g}{ours / base:>9.4f}")
    lines.append(f"  {_change(row['flop_saving'])} FLOPs than Chinchilla")
    if unit != "FLOPs":
        lines[-1] += f", {_change(row['cost_saving'])} cost"
    prices = {k.removeprefix("price_of_"): v for k, v in row.items() if k.startswith("price_of_")}
    lines += [f"  constraint {name}: {value:+.2%} cost" for name, value in prices.items()]
    return "\n".join(lines)


def _change(saving: float) -> str:
    return f"{abs(saving):.2%} {'less' if saving >= 0 else 'more'}"


def _told_fit(found: Fit, out: str | None) -> str:
    state = found.convergence
    lines = [f"  {name:<6} {interval}" for name, interval in found.intervals.items()]
    lines.append(
        f"  objective {state.objective:.6g}, gradient {state.gradient:.1e}, "
        f"{'converged' if state.converged else 'NOT CONVERGED'}; {state.agreeing} of "
        f"{state.polished} descents agree ({state.starts} starts)"
    )
    lines.append(f"  correlation of log A with alpha {found.correlation[1, 3]:.4f}")
    held = found.held_out
    if held is not None:
        lines.append(
            f"  {held.runs} runs held out: root mean square error {held.root_mean_square:.3%}"
            + (f", mean {held.mean}" if held.mean else "")
        )
    runs = f"{int(found.used.sum())} of {len(found.used)} runs fitted"
    return "\n".join([runs, *lines] + ([f"law: {out}"] if out else []))
