"""new-paper and release, in a copy of the workspace."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest

import house


@pytest.fixture
def copy(tmp_path):
    """A clone of the workspace's tracked files with what is not committed yet."""
    place = tmp_path / "workspace"
    place.mkdir()
    files = house.call(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    ).stdout.split("\0")
    for name in filter(None, files):
        if (house.ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(house.ROOT / name, place / name)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]
    house.call([*git, "init", "-q", "-b", "main"], cwd=place)
    house.call([*git, "add", "-A"], cwd=place)
    house.call([*git, "commit", "-qm", "a copy"], cwd=place)
    return place


def script(copy, name, *arguments, check=True):
    env = {
        f"GIT_{who}_{what}": "a@b.c"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    command = [sys.executable, copy / "scripts" / name, *arguments]
    return house.call(command, cwd=copy, check=check, env=env)


def test_new_paper_passes_every_check(copy):
    title = "A Probe: Titles That Are So Long That No Line of a Program Can Hold Them Whole"
    script(copy, "new-paper", "probe-of-the-house-with-a-long-name", title)
    script(copy, "test", "--lint")
    script(copy, "test", "probe-of-the-house-with-a-long-name")
    uv = [house.uv(), "run", "--frozen", "--all-packages", "--all-extras", "--all-groups"]
    chosen = ["tests/test_anatomy.py", "tests/test_independence.py", "-k", "probe-of-the-house"]
    done = house.call([*uv, "pytest", "-q", *chosen], cwd=copy)
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["Bad_Name", "t"], "slug: expected lower case with hyphens"),
        (["shared", "t"], "slug: expected"),
        (["good", 'a "quote"'], "title: expected one line"),
        (["good", ""], "title: expected one line"),
    ],
)
def test_new_paper_refuses(copy, arguments, message):
    done = script(copy, "new-paper", *arguments, check=False)
    assert done.returncode == 2
    assert message in done.stdout
    assert not (copy / "packages" / "good").exists()


def test_release(copy):
    slug = house.slugs()[0]
    version = house.project(slug)["project"]["version"]
    shared = house.project("shared")["project"]["version"]

    def release(*arguments):
        done = script(copy, "release", *arguments, "--skip-tests", check=False)
        return done.returncode, done.stdout

    assert release(slug, "9.9.9") == (
        1,
        f"error: version: pyproject.toml has {version}, found 9.9.9\n",
    )
    code, text = release(slug, version)
    assert code == 1
    assert f"paperworks-shared {house.lower_bound(slug)} is not released" in text
    assert release("shared", shared)[0] == 0
    code, text = release(slug, version)
    assert code == 0, text
    assert f"tagged {slug}-v{version}" in text
    tags = house.call(["git", "tag"], cwd=copy).stdout.split()
    assert sorted(tags) == sorted([f"shared-v{shared}", f"{slug}-v{version}"])
    assert "is tagged already" in release(slug, version)[1]
    kept = copy.parent / "dist"
    assert release(slug, version, "--tagged", "--out", str(kept))[0] == 0
    assert sorted(path.suffix for path in kept.iterdir()) == [".gz", ".whl"]
    (copy / "new.txt").write_text("x")
    assert "uncommitted changes" in release(slug, version)[1]


def test_affected(copy):
    code = "import house; print(house.affected('HEAD~1'))"
    slug = house.slugs()[0]
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b.c"]

    def after(path):
        with (copy / path).open("a") as file:
            file.write("\n")
        house.call([*git, "commit", "-qam", "change"], cwd=copy)
        return house.call([sys.executable, "-c", code], cwd=copy / "scripts").stdout.strip()

    assert after(f"packages/{slug}/pyproject.toml") == str([slug])
    assert after("README.md") == "[]"
    assert after("shared/pyproject.toml") == str(["shared", *house.slugs()])
    listed = house.call([sys.executable, copy / "scripts" / "house.py"]).stdout
    assert json.loads(listed) == ["shared", *house.slugs()]


@pytest.fixture
def index(tmp_path):
    """A package index on loopback, empty, that takes uploads."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    packages = tmp_path / "index"
    packages.mkdir()
    command = [sys.executable, "-m", "pypiserver", "run", "--interface", "127.0.0.1"]
    command += ["--port", str(port), "--disable-fallback", "-P", ".", "-a", ".", str(packages)]
    log = (tmp_path / "index.log").open("w")
    with log, subprocess.Popen(command, stdout=log, stderr=log) as server:
        try:
            for _ in range(100):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(10)


def test_publish_and_install_from_an_index(wheels, index, tmp_path):
    """What a release does: upload, then a user's pip finds the paper and what it needs."""
    slug = house.slugs()[0]
    for name in ("shared", slug):
        sdist = house.build(name, tmp_path, kind="--sdist")
        upload = [house.uv(), "publish", "--publish-url", f"{index}/", "--trusted-publishing"]
        upload += ["never", "--username", "u", "--password", "p", wheels(name), sdist]
        house.call(upload)
    python = house.empty_environment(tmp_path / "user")
    house.install(python, "pip")
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--quiet"]
    env = {k: v for k, v in os.environ.items() if k != "PIP_FIND_LINKS"}
    house.call([*pip, "--extra-index-url", f"{index}/simple/", f"paperworks-{slug}"], env=env)
    command = house.program(python, "paperworks")
    assert slug in house.call([command, "list"], cwd=tmp_path).stdout
    assert "reproduce" in house.call([command, slug, "--help"], cwd=tmp_path).stdout


def test_root_readme_runs(copy):
    """The two commands of the README; ./scripts/test is what runs this test."""
    blocks = re.findall(
        r"^```bash\n(.*?)^```$", (house.ROOT / "README.md").read_text(), re.M | re.S
    )
    commands = [block.split("#")[0].strip() for block in blocks]
    assert commands == ["./scripts/reproduce", "./scripts/test"]
    done = house.call([copy / "scripts" / "reproduce"], cwd=copy, check=False)
    assert done.returncode in (0, 1), done.stdout
    page = (copy / "reproduction" / "index.html").read_text()
    for slug in house.slugs():
        assert f'data-paper="{slug}"' in page
