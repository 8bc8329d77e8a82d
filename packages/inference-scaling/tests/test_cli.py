"""Each verb on small real files, its errors, and the claims at quick scale."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from paperworks.inference_scaling import ScalingLaw, fitting, read_runs
from paperworks.shared.testing import reproduce_quick, run_command

SLUG = "inference-scaling"
LAW = ScalingLaw.chinchilla()


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    random = np.random.default_rng(0)
    params = 10 ** random.uniform(7.5, 10, 30)
    tokens = params * 10 ** random.uniform(0.5, 3, 30)
    loss = LAW.loss(params, tokens) * np.exp(0.002 * random.normal(size=30))
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    lines = [
        f"run{i},{n},{d},{y}" for i, (n, d, y) in enumerate(zip(params, tokens, loss, strict=True))
    ]
    path.write_text("\n".join(["name,N,D,L", *lines]) + "\n")
    return path


def one_line_error(result, message):
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


# plan -------------------------------------------------------------------------------------------


def test_plan_in_flops():
    result = run_command(
        SLUG, "plan", "--chinchilla-params", "30e9", "--inference-tokens", "1e13", "--json"
    )
    row = json.loads(result.stdout)
    assert row["params"] == pytest.approx(13.613e9, rel=1e-4)
    assert row["flop_saving"] == pytest.approx(0.2798, abs=1e-4)


def test_plan_in_dollars_as_text():
    result = run_command(
        SLUG,
        *["plan", "--loss", "1.95", "--requests", "1e9", "--tokens-per-request", "70:215"],
        *["--hardware", "a100", "--quantize", "int8", "--price", "1.5", "--memory-gb", "15"],
    )
    assert result.exit_code == 0
    assert "cost ($)" in result.stdout
    assert "constraint max_memory_bytes: +" in result.stdout


def test_plan_grid_as_csv_and_markdown(tmp_path):
    options = ["plan", "--chinchilla-params", "7e9,30e9", "--requests", "1e8,1e9,1e10"]
    out = tmp_path / "plans.csv"
    assert run_command(SLUG, *options, "--format", "csv", "--out", out).exit_code == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 6
    assert float(rows[5]["baseline_params"]) == pytest.approx(30e9)
    markdown = run_command(SLUG, *options, "--format", "markdown").stdout
    assert markdown.count("\n") == 8
    assert len(json.loads(run_command(SLUG, *options, "--json").stdout)) == 6


def test_plan_over_a_horizon():
    options = ["plan", "--loss", "2", "--days", "730", "--requests-per-day", "1e6", "--json"]
    flat = json.loads(run_command(SLUG, *options).stdout)
    grown = json.loads(run_command(SLUG, *options, "--growth", "1").stdout)
    assert grown["inference_tokens"] > flat["inference_tokens"] == pytest.approx(730e6 * 285)


def test_plan_is_piped():
    command = [sys.executable, "-m", "paperworks.shared.cli", SLUG, "plan", "--loss", "2"]
    done = subprocess.run(
        [*command, "--requests", "1e9", "--json"], capture_output=True, check=True
    )
    assert json.loads(done.stdout)["cost_unit"] == "FLOPs"
    assert done.stderr == b""


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--loss", "1.69", "--requests", "1"], "loss: expected a number above the law's"),
        (["--loss", "2", "--requests", "0"], "requests: expected numbers > 0, found 0"),
        (["--loss", "2", "--requests", "-5"], "requests: expected numbers > 0, found -5"),
        (["--loss", "2", "--requests", "many"], "--requests: expected a number or several"),
        (
            ["--requests", "1"],
            "--chinchilla-params, --loss: expected one of the two, found neit",
        ),
        (
            ["--loss", "2", "--chinchilla-params", "1e9", "--requests", "1"],
            "--chinchilla-params, --loss: expected one of the two, found both",
        ),
        (["--loss", "2"], "expected one of them, found none"),
        (
            ["--loss", "2", "--requests", "1", "--inference-tokens", "1"],
            "found --inference-tokens and --requests",
        ),
        (["--loss", "2", "--requests-per-day", "1"], "--requests-per-day, --days: expected both"),
        (["--loss", "2", "--requests", "1", "--growth", "1"], "found no horizon"),
        (
            ["--loss", "2", "--requests", "1", "--tokens-per-request", "70"],
            "--tokens-per-request: expected INPUT:OUTPUT",
        ),
        (
            ["--loss", "2", "--requests", "1", "--tokens-per-request", "0:0"],
            "--tokens-per-request: expected INPUT:OUTPUT, both >= 0",
        ),
        (
            ["--loss", "2", "--requests", "1", "--hardware", "abacus"],
            "hardware: expected one of a100, a100-80gb, h100",
        ),
        (
            ["--loss", "2", "--requests", "1", "--hardware", "a100", "--mfu-decode", "1.5"],
            "decode utilization: expected a finite number <= 1 and > 0, found 1.5",
        ),
        (["--loss", "2", "--requests", "1", "--mfu-train", "0"], "train utilization: expected"),
        (
            ["--loss", "2", "--requests", "1", "--price", "2"],
            "hardware: expected hardware to a",
        ),
        (["--loss", "2", "--requests", "1", "--law", "none.json"], "none.json: cannot be read"),
        (["--loss", "2", "--requests", "1", "--format", "xml"], "--format: expected one of text"),
        (["--loss", "2", "--requests", "1", "--unique-tokens", "1e9"], "expected more than"),
    ],
)
def test_bad_plans(options, message):
    one_line_error(run_command(SLUG, "plan", *options), message)


# fit --------------------------------------------------------------------------------------------


def test_fit_writes_a_law_that_plan_reads(table, tmp_path):
    law, residuals = tmp_path / "law.json", tmp_path / "residuals.csv"
    result = run_command(
        SLUG,
        *["fit", table, "--out", law, "--bootstrap", "100", "--max-ratio", "100"],
        *["--residuals", residuals],
    )
    assert result.exit_code == 0, result.stderr
    assert "runs held out" in result.stdout
    assert "converged" in result.stdout
    rows = list(csv.DictReader(io.StringIO(residuals.read_text())))
    assert rows[3]["name"] == "run3"  # extra columns are kept
    assert {row["fitted"] for row in rows} == {"True", "False"}
    planned = run_command(
        SLUG, "plan", "--law", law, "--loss", "2.1", "--requests", "1e9", "--json"
    )
    assert json.loads(planned.stdout)["params"] > 1e9
    again = run_command(
        SLUG, "fit", table, "--out", "-", "--bootstrap", "100", "--max-ratio", "100"
    )
    assert again.stdout == law.read_text()  # same seed, same bootstrap, and the pipe


def test_tables_in_other_formats(table, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(table)
    parquet, jsonl = tmp_path / "runs.parquet", tmp_path / "runs.jsonl"
    frame.to_parquet(parquet)
    renamed = frame.rename(columns={"N": "params", "D": "Tokens", "L": "val_loss"})
    renamed.to_json(jsonl, orient="records", lines=True, double_precision=15)
    wanted = read_runs(table)
    for path in (parquet, jsonl):
        found = read_runs(path)
        np.testing.assert_allclose(found.loss, wanted.loss, rtol=1e-13)
        np.testing.assert_allclose(found.tokens, wanted.tokens, rtol=1e-13)
        assert found.extra["name"] == wanted.extra["name"]
    parquet.write_text("no parquet")
    one_line_error(run_command(SLUG, "fit", parquet), "runs.parquet: expected a Parquet file")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "N,D,L\n1e9,2e10,2.5\n1e9,nan,2.4\n",
            "a.csv:3: tokens: expected a finite",
        ),
        ("a.csv", "N,D,L\n1e9,2e10,\n", "a.csv:2: loss: expected a finite number > 0, found ''"),
        (
            "a.csv",
            "N,D,L\n1e9,2e10,-1\n",
            "a.csv:2: loss: expected a finite number > 0, found '-",
        ),
        ("a.csv", "N,D,L\n1e9,2e10\n", "a.csv:2: expected 3 cells"),
        ("a.csv", "N,D\n1e9,2e10\n", "a.csv: expected a column loss (or l, final_loss, val_loss"),
        (
            "a.csv",
            "N,params,D,L\n1,1,1,1\n",
            "expected one column of params, found columns N, ",
        ),
        ("a.csv", "N,D,L\n", "a.csv: expected a table of runs, found no rows"),
        ("a.csv", "N,D,L\n1e9,2e10,2.5\n", "runs: expected at least 5 runs, one a coefficient"),
        ("a.jsonl", '{"N": 1, "D": 1, "L": 1}\n{"N": 1\n', "a.jsonl:2: expected JSON"),
        ("a.jsonl", '{"N": 1, "D": 1, "L": 1}\n{"N": 1}\n', "a.jsonl:2: tokens: expected"),
        ("a.jsonl", "[1]\n", "a.jsonl:1: expected a JSON object"),
    ],
)
def test_bad_tables(name, content, message, tmp_path):
    path = tmp_path / name
    path.write_text(content)
    one_line_error(run_command(SLUG, "fit", path), message)


def test_missing_table():
    one_line_error(run_command(SLUG, "fit", "nowhere.csv"), "nowhere.csv: No such file")


def test_warnings_are_lines(table, tmp_path):
    lines = table.read_text().splitlines()
    path = tmp_path / "doubled.csv"
    path.write_text("\n".join([*lines, lines[-1]]) + "\n")
    result = run_command(SLUG, "fit", path, "--bootstrap", "0", "--json")
    assert result.exit_code == 0
    assert result.stderr.startswith("warning: 1 runs are exact duplicates")
    assert json.loads(result.stdout)["data"]["runs"] == 31


def test_interrupted_fit_leaves_nothing(table, tmp_path, monkeypatch):
    def interrupted(*columns, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", interrupted)
    result = run_command(SLUG, "fit", table, "--out", tmp_path / "law.json")
    assert result.exit_code == 130
    assert list(tmp_path.iterdir()) == []


# plot and reproduce -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("ratios", ["--hardware", "a100", "--quantize", "int8"]),
        ("isoloss", ["--chinchilla-params", "30e9", "--inference-tokens", "1e13"]),
        ("residuals", ["--runs", "TABLE", "--max-ratio", "100"]),
        ("extrapolation", ["--runs", "TABLE"]),
    ],
)
def test_plots(kind, options, table, tmp_path):
    out = tmp_path / f"{kind}.png"
    options = [table if word == "TABLE" else word for word in options]
    result = run_command(SLUG, "plot", kind, *options, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert out.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["pie"], "KIND: expected one of ratios, isoloss, residuals, extrapolation, found 'pie'"),
        (["residuals"], "--runs: expected a table of runs to draw residuals of, found no file"),
        (
            ["isoloss", "--loss", "2,3", "--requests", "1e9"],
            "plan: expected one plan, found an a",
        ),
        (["ratios", "--out", "map.docx"], "map.docx: Format 'docx' is not supported"),
    ],
)
def test_bad_plots(options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one_line_error(run_command(SLUG, "plot", *options), message)
    assert list(tmp_path.iterdir()) == []


def test_claims(tmp_path):
    report = reproduce_quick(SLUG, tmp_path)
    assert {claim["id"]: claim["verdict"] for claim in report["claims"]} == {
        "flops-30b": "holds",
        "cost-30b": "holds",
        "limits": "holds",
        "billion-requests": "holds",
        "utilization-and-quantization": "holds",
        "low-ratio-fit-synthetic": "holds",
        "longer-is-better": "needs laptop scale",
        "low-ratio-fit-real": "needs laptop scale",
    }


def test_claims_on_the_users_runs(table, tmp_path):
    """At paper scale the real claims take a table of runs, and say so without one."""
    options = [SLUG, "reproduce", "longer-is-better", "low-ratio-fit-real", "--scale", "paper"]
    run_command(*options, "--data", f"runs={table}", "--out", tmp_path)
    report = json.loads((tmp_path / SLUG / "report.json").read_text())
    assert {claim["verdict"] for claim in report["claims"]} <= {"holds", "does not hold"}
    assert report["claims"][1]["measured"]["held-out runs"] > 2
    run_command(*options, "--out", tmp_path / "none")
    report = json.loads((tmp_path / "none" / SLUG / "report.json").read_text())
    assert {claim["verdict"] for claim in report["claims"]} == {"not tested"}


# what was broken by strangers ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("long.csv", "N,D,L\n1e8,1e10," + "3" * 200_000 + "\n", "expected CSV, found"),
        ("big.jsonl", '{"N": 1e8, "D": 1e10, "L": ' + "9" * 400 + "}\n", "loss: expected a finite"),
        ("digits.jsonl", '{"N": ' + "9" * 5000 + "}\n", "digits.jsonl:1: expected JSON"),
        ("deep.jsonl", "[" * 100_000 + "\n", "deep.jsonl:1: expected JSON"),
        ("bool.jsonl", '{"N": true, "D": 1e10, "L": 2}\n', "params: expected a finite number > 0"),
    ],
)
def test_damaged_runs(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    result = run_command(SLUG, "fit", tmp_path / name)
    one_line_error(result, message)


def test_runs_with_the_line_ends_of_old_spreadsheets(table):
    old = table.with_name("old.csv")
    old.write_bytes(table.read_bytes().replace(b"\n", b"\r"))
    np.testing.assert_array_equal(read_runs(old).loss, read_runs(table).loss)


def test_two_sizes_do_not_identify_the_law():
    params = np.repeat([1e8, 1e9], 5)
    tokens = params * np.tile([10, 20, 50, 100, 300], 2)
    with pytest.raises(ValueError, match="params: expected at least three different values"):
        fitting.fit(params, tokens, LAW.loss(params, tokens), bootstrap=0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("aliases = 3", "x.aliases: expected a list of names, found 3"),
        ('aliases = [["a"]]', "x.aliases: expected a list of names"),
        ('aliases = ["x"]', "x: expected a name of its own"),
    ],
)
def test_bad_hardware_aliases(tmp_path, content, message):
    entry = "[x]\npeak = { bf16 = 1e12 }\nmemory_bytes = 1e9\nbandwidth_bytes_per_s = 1e9\n"
    (tmp_path / "h.toml").write_text(entry + content)
    arguments = ("--loss", 2.5, "--requests", 1e9, "--hardware", "x")
    result = run_command(SLUG, "plan", *arguments, "--hardware-table", tmp_path / "h.toml")
    one_line_error(result, message)


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "[" * 100_000])
def test_damaged_law(tmp_path, number):
    text = f'{{"E": {number}, "A": 400, "B": 400, "alpha": 0.3, "beta": 0.3}}'
    (tmp_path / "law.json").write_text(text)
    result = run_command(SLUG, "plan", "--law", tmp_path / "law.json", "--loss", 2, "--requests", 1)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("verb", "options", "message"),
    [
        ("plan", ("--quantize", "int8"), "--quantize: expected --hardware where it is given"),
        ("plan", ("--dtype", "fp8"), "--dtype: expected --hardware"),
        ("plan", ("--hardware-table", "none.toml"), "--hardware-table: expected --hardware"),
        ("plan", ("--format", "csv", "--json"), "--format: expected text or json beside --json"),
        ("plot", ("--out", "x.png"), "--loss: expected an iso-loss curve or a fit"),
    ],
)
def test_options_that_would_change_nothing(verb, options, message):
    kind = ("ratios",) if verb == "plot" else ()
    goal = ("--loss", 2.5) if verb == "plot" else ("--loss", 2.5, "--requests", 1e9)
    one_line_error(run_command(SLUG, verb, *kind, *goal, *options), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--bootstrap", 1), "bootstrap: expected 0 (none) or at least 10 resamples, found 1"),
        (("--delta", 1e300), "delta: expected a finite number >= 1e-12 and <= 1000000"),
        (("--overestimate-weight", 1e300), "overestimate_weight: expected a finite number"),
    ],
)
def test_settings_out_of_range(table, options, message):
    one_line_error(run_command(SLUG, "fit", table, *options), message)
