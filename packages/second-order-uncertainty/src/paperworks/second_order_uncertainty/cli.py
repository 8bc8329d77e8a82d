"""The verbs of ``paperworks second-order-uncertainty``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paperworks.shared.cli import JsonOption, OutOption, Paper, SeedOption, command_group, emit

if TYPE_CHECKING:
    import numpy as np

    from .axioms import Finding
    from .distributions import SecondOrder
    from .measures import Measure
    from .streams import RowFile

app = command_group()
paper = Paper(
    slug="second-order-uncertainty",
    title="Second-Order Uncertainty Quantification: A Distance-Based Approach",
    venue="ICML 2024",
    arxiv="2312.00995",
    app=app,
)

FileArgument = Annotated[
    str, typer.Argument(help=".npy, .npz or .parquet: one distribution a row.")
]
KindOption = Annotated[
    str, typer.Option(help="samples, logits: rows x members x classes; dirichlet: rows x classes.")
]
MeasureOption = Annotated[
    str,
    typer.Option(help="wasserstein, entropy, labelwise-entropy, variance; several with commas."),
]
BaseOption = Annotated[
    float, typer.Option(help="Base of the logarithm in entropies; 2 gives bits.")
]
NameOption = Annotated[str | None, typer.Option(help="Array or column, where FILE has several.")]
ChunkOption = Annotated[
    int | None, typer.Option(min=1, help="Rows at once; by default about a million numbers.")
]
PARTS = ("total", "aleatoric", "epistemic")


@app.command()
def score(
    file: FileArgument,
    kind: KindOption = "samples",
    measure: MeasureOption = "wasserstein",
    out: OutOption = "-",
    name: NameOption = None,
    chunk: ChunkOption = None,
    base: BaseOption = 2.0,
    json: JsonOption = False,
) -> None:
    """Split each row's uncertainty into aleatoric and epistemic.

    Writes a .csv, .parquet or .npz with the predicted class and the three parts of each measure.
    "weights" beside the members of an .npz or .parquet file weigh them.
    """
    from paperworks.shared.errors import expected

    from .streams import RowFile, write_columns

    measures = _measures(measure, base)
    if json and out == "-":
        raise expected("--out", "a file where --json prints a summary", out)
    rows = RowFile(file, kind, name)
    sums: dict[str, float] = {}
    columns = ["prediction", *(f"{m}_{part}" for m in measures for part in PARTS)]
    count = write_columns(out, columns, _scored(rows, measures, chunk, sums))
    if out != "-":
        means = {key: value / max(1, count) for key, value in sums.items()}
        text = "\n".join([f"{count} rows: {out}", *(f"mean {k} {v:.6g}" for k, v in means.items())])
        emit({"rows": count, "out": out, "means": means}, json, text)


@app.command()
def reject(
    file: FileArgument,
    labels: Annotated[
        str | None,
        typer.Option(help=".npy or text, a label a line; by default the labels in FILE."),
    ] = None,
    kind: KindOption = "samples",
    measure: MeasureOption = "wasserstein,entropy",
    name: NameOption = None,
    chunk: ChunkOption = None,
    base: BaseOption = 2.0,
    json: JsonOption = False,
) -> None:
    """Show the accuracy that is left when the most uncertain rows are rejected."""
    import numpy as np

    from paperworks.shared.errors import InputError

    from .evaluation import rejection_curve
    from .streams import RowFile

    measures = _measures(measure, base)
    rows = RowFile(file, kind, name)
    truth = rows.labels(labels)
    scores, classes = _collected(rows, measures, chunk)
    if truth.size != scores["prediction"].size:
        found = f"{truth.size} labels, {scores['prediction'].size} rows"
        raise InputError(f"--labels: expected one label a row, found {found}")
    if truth.size and truth.max() >= classes:
        raise InputError(f"--labels: expected labels below {classes}, found {truth.max()}")
    correct = truth == scores.pop("prediction")
    curves = {key: rejection_curve(values, correct) for key, values in scores.items()}
    shares = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)
    result: dict[str, dict[str, Any]] = {
        key: {
            "area": curve.area,
            "accuracy": {str(s): float(curve.accuracy[_position(s, correct.size)]) for s in shares},
        }
        for key, curve in curves.items()
    }
    lines = [
        f"{'accuracy at rejected share':<28}" + "".join(f"{s:>8.0%}" for s in shares) + "    area"
    ]
    for key, one in result.items():
        cells = "".join(f"{value:8.4f}" for value in one["accuracy"].values())
        lines.append(f"{key:<28}{cells}{one['area']:8.4f}")
    emit({"rows": int(np.size(correct)), "curves": result}, json, "\n".join(lines))


@app.command()
def ood(
    inside: Annotated[str, typer.Argument(metavar="IN", help="File of familiar rows.")],
    outside: Annotated[str, typer.Argument(metavar="OUT", help="File of strange rows.")],
    kind: KindOption = "samples",
    measure: MeasureOption = "wasserstein,entropy",
    name: NameOption = None,
    chunk: ChunkOption = None,
    base: BaseOption = 2.0,
    json: JsonOption = False,
) -> None:
    """Show how well each uncertainty tells strange rows from familiar ones (AUROC)."""
    from .evaluation import ood_auroc
    from .streams import RowFile

    measures = _measures(measure, base)
    familiar, _ = _collected(RowFile(inside, kind, name), measures, chunk)
    strange, _ = _collected(RowFile(outside, kind, name), measures, chunk)
    result = {
        key: ood_auroc(familiar[key], strange[key]) for key in familiar if key != "prediction"
    }
    emit(result, json, "\n".join(f"{key:<28}{value:8.4f}" for key, value in result.items()))


@app.command()
def axioms(
    measure: MeasureOption = "wasserstein,entropy,variance",
    cases: Annotated[int, typer.Option(min=1, help="Random distributions a criterion.")] = 1000,
    steps: Annotated[int, typer.Option(min=0, help="Steps of hill climbing.")] = 40,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Search for violations of the criteria A0 to A7 and print the counter-examples."""
    from .axioms import check

    findings = {
        name: check(function, cases=cases, steps=steps, seed=seed)
        for name, function in _measures(measure).items()
    }
    result = [_described(m, finding) for m, found in findings.items() for finding in found]
    emit(result, json, lambda: _print_findings(findings, result))


def _described(measure: str, finding: Finding) -> dict[str, Any]:
    from .axioms import PROOFS

    def plain(q: SecondOrder) -> dict[str, Any]:
        if q.kind == "dirichlet":
            return {"dirichlet": q.values[0]}
        return {"atoms": q.values[0], "weights": None if q.weights is None else q.weights[0]}

    told: dict[str, Any] = {
        "measure": measure,
        "criterion": finding.criterion,
        "part": finding.part,
        "statement": finding.statement,
        "cases": finding.cases,
        "violated": finding.violated,
        "proof": None,
    }
    if measure == "wasserstein":
        told["proof"] = PROOFS.get((finding.criterion, finding.part))
    example = finding.example
    if example is not None:
        told |= {
            "excess": example.excess,
            "size": example.size,
            "values": example.values,
            "before": plain(example.before),
            "after": [plain(q) for q in example.after],
        }
        if measure == "wasserstein":
            told["excess_by_linear_programme"] = example.recheck()
    return told


def _print_findings(findings: dict[str, list[Finding]], result: list[dict[str, Any]]) -> None:
    """Print the table of all measures, then each counter-example."""
    cells = {
        (one["measure"], one["criterion"], one["part"]): "violated"
        if one["violated"]
        else ("proved" if one["proof"] else f"none in {one['cases']}")
        for one in result
    }
    typer.echo(f"{'criterion':<11}{'part':<11}" + "".join(f"{m:>22}" for m in findings))
    for finding in next(iter(findings.values())):
        key = finding.criterion, finding.part
        row = "".join(f"{cells[m, *key]:>22}" for m in findings)
        typer.echo(f"{key[0]:<11}{key[1]:<11}{row}")
    for one in result:
        if one["violated"]:
            typer.echo(f"\n{one['measure']}, {one['criterion']}: {one['part']} {one['statement']}")
            told = f"missed by {one['excess']:.6g}"
            if "strict" in one["criterion"] and abs(one["values"][1] - one["values"][0]) < 1e-6:
                told = f"stays while the atoms move by {one['size']:.3g} on average"
            again = one.get("excess_by_linear_programme")
            if again is not None:
                verdict = "confirmed" if again > 0 else "not confirmed"
                told += f"; {verdict} by linear programmes ({again:.6g})"
            typer.echo(f"  {told}")
            pairs = [("Q", one["before"]), *(("Q'", after) for after in one["after"])]
            for (label, q), value in zip(pairs, one["values"], strict=True):
                typer.echo(f"  {label} of value {value:.6g}: {_compact(q)}")


def _compact(q: dict[str, Any]) -> str:
    def numbers(value: Any) -> str:
        if value.ndim == 2:
            return " ".join(numbers(row) for row in value)
        return "(" + ", ".join(f"{x:.4g}" for x in value) + ")"

    return "; ".join(f"{key} {numbers(value)}" for key, value in q.items() if value is not None)


def _measures(text: str, base: float = 2.0) -> dict[str, Measure]:
    from functools import partial

    from paperworks.shared.validation import check_number

    from .measures import entropy, find_measure, labelwise_entropy

    with_base = {"entropy": entropy, "labelwise-entropy": labelwise_entropy}
    check_number("--base", base, above=1)
    found = {name: find_measure(name) for name in (part.strip() for part in text.split(","))}
    return found | {
        name: partial(with_base[name], base=base) for name in found if name in with_base
    }


def _position(share: float, rows: int) -> int:
    return min(rows - 1, round(share * rows))


def _scored(
    rows: RowFile, measures: dict[str, Measure], chunk: int | None, sums: dict[str, float]
) -> Iterator[list[np.ndarray]]:
    """Score chunk by chunk; the sums of the columns are added up on the way."""
    from .measures import decompose

    for q in rows.chunks(chunk):
        columns = [q.mean().argmax(axis=-1)]
        for name, measure in measures.items():
            parts = decompose(q, measure)
            for part in PARTS:
                values = getattr(parts, part)
                columns.append(values)
                key = f"{name}_{part}"
                sums[key] = sums.get(key, 0.0) + float(values.sum(dtype=float))
        yield columns


def _collected(
    rows: RowFile, measures: dict[str, Measure], chunk: int | None
) -> tuple[dict[str, np.ndarray], int]:
    """All columns in memory, and the number of classes."""
    import numpy as np

    from paperworks.shared.errors import expected

    names = ["prediction", *(f"{m}_{part}" for m in measures for part in PARTS)]
    pieces = list(_scored(rows, measures, chunk, {}))
    if not pieces:
        raise expected(rows.path, "at least one row", "none")
    classes = next(iter(rows.chunks(1))).classes
    columns = [np.concatenate([piece[i] for piece in pieces]) for i in range(len(names))]
    return dict(zip(names, columns, strict=True)), classes
