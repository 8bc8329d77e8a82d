"""Each package stands alone: what it imports it declares, and its wheel works outside of here."""

import re
import zipfile

import pytest

import house

PACKAGES = ["shared", *house.slugs()]


@pytest.mark.parametrize("name", PACKAGES)
def test_imports_are_declared(name):
    folder = house.folder(name)
    optional = house.project(name)["project"].get("optional-dependencies", {})
    house.call(
        [
            "deptry",
            "src",
            "--config",
            "pyproject.toml",
            "--known-first-party",
            "paperworks",
            # The namespace hides that paperworks.shared comes from its own distribution, lazy stubs
            # and plugins are used without an import.
            "--per-rule-ignores",
            "DEP002=paperworks-shared|" + "|".join(sorted(_names(optional))),
        ],
        cwd=folder,
    )


def _names(optional):
    lines = [line for extra in optional.values() for line in extra]
    return {re.split(r"[^A-Za-z0-9_.-]", line)[0] for line in lines} | {"paperworks-shared"}


@pytest.mark.parametrize("name", PACKAGES)
def test_wheel_is_complete(name, wheels):
    wheel = wheels(name)
    meta = house.project(name)["project"]
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
        info = next(n for n in files if n.endswith(".dist-info/METADATA")).rpartition("/")[0]
        text = archive.read(f"{info}/METADATA").decode()
    module = house.project(name)["tool"]["uv"]["build-backend"]["module-name"].replace(".", "/")
    assert f"Version: {meta['version']}\n" in text
    assert "License-Expression: Apache-2.0\n" in text
    assert (house.folder(name) / "README.md").read_text().splitlines()[0] in text
    assert f"{info}/licenses/LICENSE" in files
    assert f"{module}/py.typed" in files
    assert "paperworks/__init__.py" not in files
    assert not [n for n in files if "/tests/" in n or n.endswith(".pyc")]


@pytest.mark.parametrize("name", PACKAGES)
def test_sdist_builds_the_same_wheel(name, wheels, tmp_path):
    sdist = house.build(name, tmp_path, kind="--sdist")
    house.call([house.uv(), "build", "--quiet", "--wheel", "--out-dir", tmp_path / "again", sdist])
    again = next((tmp_path / "again").glob("*.whl"))
    assert _contents(again) == _contents(wheels(name))


def _contents(wheel):
    """Everything but the build tool's own version, which RECORD's hash repeats."""
    with zipfile.ZipFile(wheel) as archive:
        names = [n for n in archive.namelist() if not n.endswith(".dist-info/RECORD")]
        return {
            name: re.sub(rb"^Generator: .*$", b"", archive.read(name), flags=re.M)
            if name.endswith(".dist-info/WHEEL")
            else archive.read(name)
            for name in names
        }


def test_wheel_works_alone(slug, installed):
    assert (installed(slug).reports / slug / "report.html").is_file()


def test_readme_runs(slug, installed, wheels, tmp_path):
    """Every Python and shell block of the README runs, in order, in an empty folder."""
    _run_blocks(house.folder(slug) / "README.md", installed(slug).python, wheels(slug), tmp_path)


def test_shared_readme_runs(wheels, tmp_path):
    python = house.empty_environment(tmp_path / "environment")
    house.install(python, f"paperworks-shared[report,statistics] @ {wheels('shared').as_uri()}")
    place = tmp_path / "work"
    place.mkdir()
    _run_blocks(house.ROOT / "shared" / "README.md", python, wheels("shared"), place)


def _run_blocks(readme, python, wheel, place):
    # The README says `pip install paperworks-...`: here that means the wheels just built.
    house.install(python, "pip")
    links = f"{wheel.parent} {wheel.parent.parent / 'sharedwheel'}"
    env = {
        "PATH": f"{python.parent}:/usr/local/bin:/usr/bin:/bin",
        "PIP_FIND_LINKS": links,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "MPLBACKEND": "agg",
    }
    blocks = re.findall(r"^```(python|bash|sh)\n(.*?)^```$", readme.read_text(), re.M | re.S)
    assert blocks
    for language, code in blocks:
        command = [python, "-W", "error::DeprecationWarning", "-c", code]
        if language != "python":
            command = ["bash", "-euo", "pipefail", "-c", code]
        done = house.call(command, cwd=place, env=env, check=False)
        # A reproduction in which a claim does not hold exits with 1 and is a good run.
        held = "reproduce" in code and done.returncode == 1
        assert done.returncode == 0 or held, f"{code}\n{done.stdout}"
