"""The command finds papers, loads one, and tells every mistake in one line."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import pytest

from paperworks.shared.testing import run_command

COMMAND = [sys.executable, "-m", "paperworks.shared.cli"]


def test_list(demo):
    result = run_command("list")
    assert result.exit_code == 0
    assert "demo-paper 1.2.3  A Demo (ICML 2000)" in result.stdout
    assert "Doubles numbers" in result.stdout
    row = next(r for r in json.loads(run_command("list", "--json").stdout) if "demo" in r["slug"])
    assert row == {
        "slug": "demo-paper",
        "version": "1.2.3",
        "title": "A Demo",
        "venue": "ICML 2000",
        "arxiv": "0001.00001",
        "summary": "Doubles numbers",
    }


def test_a_broken_paper_does_not_hide_the_others(demo):
    info = demo / "paperworks_broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: paperworks-broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[paperworks.papers]\nbroken = paperworks.gone:paper\n")
    result = run_command("list")
    assert "broken" in result.stdout
    assert "cannot be loaded: No module named 'paperworks.gone'" in result.stdout
    assert "demo-paper 1.2.3" in result.stdout


def test_only_the_called_paper_is_loaded(demo):
    (demo / "paperworks" / "demo_paper" / "cli.py").write_text("raise SystemExit('loaded')")
    assert run_command("--help").exit_code == 0


def test_help(demo):
    assert "demo-paper" in run_command("--help").stdout
    text = run_command("demo-paper", "--help").stdout
    for verb in ("double", "misbehave", "reproduce"):
        assert verb in text
    assert run_command("demo-paper").stdout == text
    assert "--scale" in run_command("demo-paper", "reproduce", "--help").stdout
    assert run_command("--version").stdout.startswith("paperworks-shared ")


def test_help_imports_nothing_heavy(demo):
    code = (
        "import sys\nfrom paperworks.shared.cli import run\nrun(['demo-paper', '--help'])\n"
        "heavy = {'numpy', 'scipy', 'matplotlib', 'jinja2', 'rich'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_verb(demo):
    assert run_command("demo-paper", "double", 4).stdout == "8.0\n"
    assert json.loads(run_command("demo-paper", "double", 4, "--json").stdout) == {"value": 8.0}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["no-such"], 2, "no paper or command 'no-such'; installed papers: "),
        (["demo-paper", "triple", 3], 2, "triple"),
        (["demo-paper", "double", "x"], 2, "number"),
        (["demo-paper", "double"], 2, "number"),
        (["demo-paper", "double", 1, "--loud"], 2, "--loud"),
        (["demo-paper", "double", "--", -1], 2, "error: number: expected >= 0, found less\n"),
        (
            ["demo-paper", "misbehave", "open"],
            2,
            "error: /no/such/file: No such file",
        ),
        (["demo-paper", "misbehave", "interrupt"], 130, "error: interrupted"),
        (["demo-paper", "misbehave", "end"], 2, "error: unexpected end of a file: No data left"),
        (["demo-paper", "misbehave", "extra"], 2, "pip install 'paperworks-demo-paper[more]'"),
        (["demo-paper", "misbehave", "memory"], 1, "error: out of memory\n"),
        (["demo-paper", "misbehave", "fail"], 1, ""),
        (
            ["demo-paper", "reproduce", "--scale", "huge"],
            2,
            "--scale: expected one of quick",
        ),
        (["demo-paper", "reproduce", "other"], 2, "claim: expected one of good, bad, later"),
        (["demo-paper", "reproduce", "--seed", -1], 2, "seed"),
        (["demo-paper", "reproduce", "--data", "x"], 2, "--data: expected NAME=PATH, found 'x'"),
        (
            ["demo-paper", "reproduce", "--data", "numbers=/no"],
            2,
            "--data: expected an existing path",
        ),
        (
            ["demo-paper", "reproduce", "--data", "x=/no"],
            2,
            "--data: expected numbers (a file with one number), found the name x",
        ),
        (["reproduce"], 2, "SLUG: expected names of papers or --all"),
        (["reproduce", "no-such"], 2, "no paper or command 'no-such'"),
        (["report", "/no/such"], 2, "/no/such: expected a report.json"),
    ],
)
def test_mistakes(demo, arguments, code, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_command(*arguments)
    assert result.exit_code == code
    assert message.lower() in result.stderr.lower()
    assert result.stderr.count("\n") == (1 if message else 0)


def test_a_bug_is_shown_as_one(demo):
    with pytest.raises(RuntimeError, match="a bug"):
        run_command("demo-paper", "misbehave", "bug")


def test_closed_pipe(demo):
    first, second = os.pipe()
    os.close(first)
    done = subprocess.run(
        [*COMMAND, "demo-paper", "double", "3"], stdout=second, stderr=subprocess.PIPE, check=False
    )
    os.close(second)
    assert b"Traceback" not in done.stderr


def test_console_that_cannot_show_a_check_mark(demo, tmp_path):
    command = [*COMMAND, "demo-paper", "reproduce", "good", "--scale", "quick", "--out", tmp_path]
    env = os.environ | {"PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(command, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert b"? demo-paper good: holds" in done.stdout


def test_terminating_several_leaves_no_process(demo, tmp_path):
    code = demo / "paperworks" / "demo_paper" / "reproduction.py"
    marker = tmp_path / "pid"
    code.write_text(
        code.read_text().replace(
            "drawing, axes = figure()\n",
            f'open({str(marker)!r}, "w").write(str(os.getpid()))\n    '
            "import time; time.sleep(60)\n    drawing, axes = figure()\n",
            1,
        )
    )
    command = [*COMMAND, "reproduce", "demo-paper", "--scale", "quick", "--out", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(200):
            if marker.exists() and marker.read_text():
                break
            time.sleep(0.05)
        process.terminate()
        assert process.wait(30) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


def test_full_disk_and_closed_streams(demo):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "demo-paper", "double", "3"],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == b"error: No space left on device\n"
    command = shlex.join([*COMMAND, "demo-paper", "double", "3"])
    for closed in ("<&-", ">&-", "2>&-"):
        done = subprocess.run(
            ["bash", "-c", f"{command} {closed}"], capture_output=True, check=False
        )
        assert done.returncode == 0
        assert b"Traceback" not in done.stderr


def test_terminated(demo, tmp_path):
    code = (demo / "paperworks" / "demo_paper" / "cli.py").read_text()
    code += (
        "\n@app.command()\ndef wait(path: str) -> None:\n    'Wait.'\n    import time\n"
        "    from paperworks.shared.files import atomic_path\n"
        "    with atomic_path(path) as p:\n"
        "        p.write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    )
    (demo / "paperworks" / "demo_paper" / "cli.py").write_text(code)
    for number, expected in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        command = [*COMMAND, "demo-paper", "wait", str(folder / "a")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            process.stdout.readline()
            process.send_signal(number)
            _, stderr = process.communicate()
        assert process.returncode == expected
        assert b"Traceback" not in stderr
        assert list(folder.iterdir()) == []
