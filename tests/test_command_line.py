"""The command with every paper installed."""

import importlib.metadata
import json
import os
import subprocess
import sys
from pathlib import Path

import house

COMMAND = [sys.executable, "-m", "paperworks.shared.cli"]


def output(*arguments):
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_list_shows_every_paper():
    rows = json.loads(output("list", "--json"))
    assert [row["slug"] for row in rows] == house.slugs()
    for row in rows:
        assert row["version"] == house.project(row["slug"])["project"]["version"]
        assert row["summary"] == house.project(row["slug"])["project"]["description"]


def test_help_is_light(slug):
    """Help imports no numerical library: this is what keeps it fast, whatever the machine."""
    code = (
        "import sys\nfrom paperworks.shared.cli import run\n"
        f"run([{slug!r}, '--help'])\n"
        "heavy = {'numpy', 'scipy', 'numba', 'torch', 'jax', 'matplotlib', 'sklearn', 'pandas'}\n"
        "sys.exit(f'imported {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "reproduce" in done.stdout


def test_import_changes_no_global_state(slug):
    """Importing all public names leaves random states and environment alone."""
    name = f"paperworks.{slug.replace('-', '_')}"
    code = f"""
import os, random
import numpy as np
def state():
    return random.getstate(), np.random.get_state()[1].tolist(), dict(os.environ)
before = state()
import {name} as package
for public in package.__all__:
    getattr(package, public)
for what, old, new in zip(("random", "numpy.random", "environment"), before, state()):
    assert old == new, what
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_versions_agree():
    for name in ("shared", *house.slugs()):
        meta = house.project(name)["project"]
        assert importlib.metadata.version(meta["name"]) == meta["version"]


def test_scripts_need_only_python(tmp_path):
    """A machine with Python and git alone gets uv by itself."""
    program = Path(sys.base_prefix) / "bin" / "python3"
    env = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    env |= {k: v for k, v in os.environ.items() if k.startswith("PIP_") or "CERT" in k}
    code = "import house; print(house.uv())"
    done = subprocess.run(
        [program, "-c", code],
        cwd=house.ROOT / "scripts",
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    found = Path(done.stdout.strip())
    assert subprocess.run([found, "--version"], capture_output=True, check=True).stdout
