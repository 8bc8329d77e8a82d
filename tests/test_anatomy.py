"""Every package has the same parts."""

import ast
import io
import re
import tokenize

import pytest

import house


@pytest.fixture
def package(slug):
    return house.folder(slug)


@pytest.fixture
def source(slug):
    return house.folder(slug) / "src" / "paperworks" / slug.replace("-", "_")


def test_metadata(slug, package):
    project = house.project(slug)
    meta = project["project"]
    assert meta["name"] == f"paperworks-{slug}"
    assert meta["license"] == "Apache-2.0"
    assert meta["requires-python"] == ">=3.11"
    name = slug.replace("-", "_")
    assert meta["entry-points"]["paperworks.papers"] == {slug: f"paperworks.{name}.cli:paper"}
    assert project["tool"]["uv"]["build-backend"]["module-name"] == f"paperworks.{name}"
    assert {"Paper", "Source", "Changelog"} <= set(meta["urls"])
    assert "reproduce" in meta["optional-dependencies"]
    assert "test" in project["dependency-groups"]
    assert house.lower_bound(slug)
    changelog = (package / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {re.escape(meta['version'])}\b", changelog, re.M)


def test_files(slug, package, source):
    needed = {"__init__.py", "__init__.pyi", "cli.py", "reproduction.py", "py.typed"}
    assert needed <= {path.name for path in source.iterdir()}
    modules = {path.name for path in source.glob("*.py")} - {"__init__.py", "cli.py"}
    assert 2 <= len(modules) <= 10
    assert list((package / "tests").glob("test_*.py"))
    assert list((package / "benchmarks").glob("*.py"))
    assert (package / "LICENSE").read_bytes() == (house.ROOT / "LICENSE").read_bytes()
    assert not (package / "src" / "paperworks" / "__init__.py").exists()


def test_readme(slug, package):
    text = (package / "README.md").read_text().lower()
    for heading in (
        "install",
        "command line",
        "api",
        "claims",
        "measured",
        "differences",
        "scaling",
    ):
        assert re.search(rf"^#+ .*{heading}", text, re.M), heading


def test_one_way(slug, source):
    """Concept modules know nothing of the command line, and no paper of another."""
    other = "|".join(s.replace("-", "_") for s in house.slugs() if s != slug) or "no_other"
    for path in source.rglob("*.py"):
        text = path.read_text()
        imports = "\n".join(re.findall(r"^\s*(?:from|import) .*$", text, re.M))
        assert not re.search(rf"paperworks\.({other})\b", imports), path
        if path.name not in {"cli.py", "reproduction.py"}:
            assert not re.search(r"\b(cli|reproduction)\b", imports), path
            assert not re.search(r"^\s*print\(", text, re.M), path
        assert not re.search(
            r"np\.random\.seed\(|torch\.manual_seed\(|set_default_dtype|jax\.config\.update|"
            r"torch\.set_num_threads|^\s*warnings\.(filterwarnings|simplefilter)\(",
            text,
        ), path


def test_shared_is_small():
    sources = (house.ROOT / "shared" / "src").rglob("*.py")
    assert sum(lines_of_code(path.read_text()) for path in sources) < 1500


def lines_of_code(text):
    """Count lines that hold code: without blank lines, comments and docstrings."""
    ignored = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))[:-1]
    code = {
        line
        for token in tokens
        if token.type not in ignored
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        if documented and ast.get_docstring(node):
            code -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(code)
