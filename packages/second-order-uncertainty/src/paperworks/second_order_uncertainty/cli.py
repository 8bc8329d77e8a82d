"""The verbs of ``paperworks second-order-uncertainty``."""

from __future__ import annotations

from typing import Annotated

import typer

from paperworks.shared.cli import JsonOption, OutOption, Paper, command_group, emit

app = command_group()
paper = Paper(
    slug="second-order-uncertainty",
    title="Second-Order Uncertainty Quantification: A Distance-Based Approach",
    venue="Berkeley Symposium 1961",
    arxiv="0000.00000",
    app=app,
)


@app.command()
def estimate(
    observations: Annotated[str, typer.Argument(help="CSV file, a vector a line; - is stdin.")],
    noise_std: Annotated[float, typer.Option(help="Standard deviation of the noise.")] = 1.0,
    out: OutOption = "-",
    json: JsonOption = False,
) -> None:
    """Shrink each line of a CSV file towards zero."""
    from paperworks.shared.files import write_text

    from .shrinkage import james_stein
    from .tables import format_rows, read_rows

    estimates = james_stein(read_rows(observations), noise_std=noise_std)
    if out == "-":
        emit(estimates, json, format_rows(estimates).rstrip("\n"))
    else:
        write_text(out, format_rows(estimates))
        emit({"rows": len(estimates), "out": out}, json, f"{len(estimates)} rows: {out}")
