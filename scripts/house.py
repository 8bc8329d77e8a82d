"""What the scripts and tests/ share: where the packages are, uv, wheels, empty environments.

Standard library only: the scripts run on a machine that has Python and git and nothing else.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class FailedCheckError(Exception):
    """A check that did not pass, told in one line (and the output of the command before it)."""


def slugs() -> list[str]:
    """Return the papers in the workspace, sorted."""
    return sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))


def folder(slug: str, root: Path = ROOT) -> Path:
    """Return the folder of a paper's package, or of the shared one for ``"shared"``."""
    return root / "shared" if slug == "shared" else root / "packages" / slug


def affected(base: str) -> list[str]:
    """Return the packages to test after the changes since a git revision, "shared" among them.

    A change in a paper's folder concerns that paper; in shared/ or anywhere else at the root, all.
    """
    changed = call(["git", "diff", "--name-only", f"{base}...HEAD"]).stdout.split("\n")
    everything = ["shared", *slugs()]
    found = set()
    for path in filter(None, changed):
        parts = path.split("/")
        if parts[0] == "packages" and len(parts) > 2:
            found.add(parts[1])
        elif not path.endswith(".md"):
            return everything
    return [slug for slug in everything if slug in found]


def project(slug: str, root: Path = ROOT) -> dict:
    """Read a package's pyproject.toml."""
    with (folder(slug, root) / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def uv() -> str:
    """Return the path of uv; install it into the user's cache when the machine has none."""
    found = shutil.which("uv")
    if found:
        return found
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "paperworks" / "uv"
    program = cache / ("Scripts/uv.exe" if os.name == "nt" else "bin/uv")
    if not program.exists():
        print("uv is missing: installing it for this user", file=sys.stderr)
        python = program.with_name("python.exe" if os.name == "nt" else "python")
        try:
            subprocess.run([sys.executable, "-m", "venv", "--clear", cache], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "uv>=0.9"], check=True)
        except (OSError, subprocess.CalledProcessError):
            sys.exit("error: uv cannot be installed with venv and pip; see docs.astral.sh/uv")
    return str(program)


def call(
    command: Sequence[object],
    *,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run a command and capture its output, which is the error when the command fails."""
    text = [str(part) for part in command]
    # The caller's own virtual environment must not leak into the command's.
    environ = {k: v for k, v in os.environ.items() if k not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    try:
        done = subprocess.run(
            text,
            cwd=cwd,
            env=environ | dict(env or {}),
            timeout=timeout,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        output = error.output.decode(errors="replace") if error.output else ""
        raise FailedCheckError(
            f"{output}\n$ {' '.join(text)}\nran longer than {timeout:.0f} s"
        ) from None
    if check and done.returncode:
        raise FailedCheckError(f"{done.stdout}\n$ {' '.join(text)}\nexited with {done.returncode}")
    return done


def build(slug: str, out: Path, *, root: Path = ROOT, kind: str = "--wheel") -> Path:
    """Build a package's wheel (or sdist) into ``out`` and return the file."""
    target = out / f"{slug}{kind.lstrip('-')}"
    shutil.rmtree(target, ignore_errors=True)
    call([uv(), "build", "--quiet", kind, "--out-dir", target, folder(slug, root)], cwd=root)
    return next(path for path in target.iterdir() if path.suffix in {".whl", ".gz"})


def empty_environment(place: Path, python: str = "3.11") -> Path:
    """Make an empty virtual environment and return its interpreter."""
    call([uv(), "venv", "--quiet", "--clear", "--python", python, place], cwd=place.parent)
    return place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def install(python: Path, *requirements: object) -> None:
    """Install requirements into an interpreter's environment, outside the workspace."""
    call(
        [uv(), "pip", "install", "--quiet", "--python", python, *requirements],
        cwd=python.parent,
    )


def program(python: Path, name: str) -> Path:
    """Return a console script that lies beside an interpreter."""
    return python.with_name(name + (sysconfig.get_config_var("EXE") or ""))


def lower_bound(slug: str, root: Path = ROOT) -> str:
    """Return the lowest version of paperworks-shared that a package declares."""
    for line in project(slug, root)["project"]["dependencies"]:
        match = re.fullmatch(r"paperworks-shared(?:\[[^]]*\])?\s*>=\s*([0-9.]+)", line)
        if match:
            return ".".join([*match[1].split("."), "0", "0"][:3])
    raise FailedCheckError(f"{slug}: expected a dependency 'paperworks-shared>=VERSION'")


def check_wheel(slug: str, wheel: Path, shared_wheel: Path, place: Path) -> Path:
    """Install a wheel alone in an empty environment and use it; return the interpreter.

    The package's own dependencies come first (without any extra): it must import and show help.
    Then its ``[reproduce]`` extra: its claims run at quick scale and the report is written.
    """
    module = project(slug)["tool"]["uv"]["build-backend"]["module-name"]
    python = empty_environment(place / "environment")
    install(python, wheel, shared_wheel)
    call([python, "-c", f"import {module} as m; [getattr(m, n) for n in dir(m)]"], cwd=place)
    command = program(python, "paperworks")
    call([command, slug, "--help"], cwd=place)
    install(python, f"paperworks-{slug}[reproduce] @ {wheel.as_uri()}", shared_wheel)
    done = call(
        [command, slug, "reproduce", "--scale", "quick", "--out", place / "reproduction"],
        cwd=place,
        check=False,
    )
    if done.returncode not in (0, 1) or "error" in _verdicts(place / "reproduction" / slug):
        raise FailedCheckError(f"{done.stdout}\n{slug}: the quick reproduction failed")
    return python


def _verdicts(report: Path) -> list[str]:
    claims = json.loads((report / "report.json").read_text(encoding="utf-8"))["claims"]
    return [claim["verdict"] for claim in claims]


if __name__ == "__main__":
    # For CI: the packages to test, as JSON; all of them without a base revision.
    print(json.dumps(affected(sys.argv[1]) if sys.argv[1:] else ["shared", *slugs()]))
