"""Wheels of every package and, for each paper, an empty environment in which its wheel was used."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))
import house


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Build each package's wheel when it is asked for, once."""
    folder, made = tmp_path_factory.mktemp("wheels"), {}

    def build(slug):
        if slug not in made:
            made[slug] = house.build(slug, folder)
        return made[slug]

    return build


@pytest.fixture(scope="session")
def installed(wheels, tmp_path_factory):
    """Use each paper's wheel alone in an empty environment, once; see `house.check_wheel`."""
    made = {}

    def use(slug):
        if slug not in made:
            place = tmp_path_factory.mktemp(slug)
            python = house.check_wheel(slug, wheels(slug), wheels("shared"), place)
            made[slug] = SimpleNamespace(python=python, reports=place / "reproduction")
        return made[slug]

    return use


def papers():
    """One parameter a paper; tests of one paper run in one worker, which has its environment."""
    return [pytest.param(s, marks=pytest.mark.xdist_group(s), id=s) for s in house.slugs()]


def pytest_generate_tests(metafunc):
    """Run every test that takes ``slug`` for each paper."""
    if "slug" in metafunc.fixturenames:
        metafunc.parametrize("slug", papers())
