"""Calling the command line from tests, in this process and with the real error handling."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .cli import run
from .files import read_json


@dataclass(frozen=True)
class Result:
    """Exit code and output of a command."""

    exit_code: int
    stdout_bytes: bytes
    stderr: str

    @property
    def stdout(self) -> str:
        """The standard output as text."""
        return self.stdout_bytes.decode("utf-8")


def run_command(*arguments: object, input: bytes = b"") -> Result:
    """Run ``paperworks ARGUMENTS...`` with the given standard input.

    Parameters
    ----------
    *arguments : object
        The command line after ``paperworks``; paths and numbers are turned into text.
    input : bytes
        What the command reads from stdin.

    Returns
    -------
    Result
        Exit code, stdout and stderr.
    """
    streams = sys.stdin, sys.stdout, sys.stderr
    out, err = io.BytesIO(), io.BytesIO()
    sys.stdin = io.TextIOWrapper(io.BytesIO(input), encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        code = run([str(argument) for argument in arguments])
        sys.stdout.flush()
        sys.stderr.flush()
        return Result(code, out.getvalue(), err.getvalue().decode("utf-8"))
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams


def reproduce_quick(slug: str, folder: Path, *claims: str) -> dict[str, Any]:
    """Run a paper's claims at quick scale and return its report.

    Raises
    ------
    AssertionError
        When the command failed for another reason than a claim that does not hold, or a claim
        could not be measured.
    """
    result = run_command(slug, "reproduce", *claims, "--scale", "quick", "--out", folder)
    if result.exit_code not in (0, 1):
        raise AssertionError(result.stderr)
    report = read_json(folder / slug / "report.json")
    for claim in report["claims"]:
        if claim["verdict"] == "error":
            raise AssertionError(f"{claim['id']}: {claim['traceback']}")
    return report
