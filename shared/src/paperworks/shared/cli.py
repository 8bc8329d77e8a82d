"""The ``paperworks`` command: it finds installed papers and loads only the one that is called.

Nothing heavy is imported at the top, so that ``--help`` answers at once.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .errors import InputError, MissingExtraError, expected

GROUP = "paperworks.papers"
_INTERRUPTED = 130

OutOption = Annotated[str, typer.Option("--out", "-o", help="Where to write; - is stdout.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SeedOption = Annotated[int, typer.Option(help="Seed of every random stream.", min=0)]
ScaleOption = Annotated[
    str,
    typer.Option(help="quick (seconds a claim), laptop (minutes), paper (the full sizes)."),
]
DeviceOption = Annotated[str, typer.Option(help="cpu, cuda or another device of the framework.")]
DataOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=PATH", help="Use your own data; repeatable.")
]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Forget earlier results in --out.")]
FolderOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder of reports and checkpoints.")
]


class _Verbs(TyperGroup):
    """Typer would take the end of a file, met by whichever reader, for Ctrl-D at a prompt."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as error:
            raise InputError(f"unexpected end of a file: {error}") from error


def command_group(help: str | None = None) -> typer.Typer:
    """Make the group that holds a paper's verbs, with the settings that all papers share."""
    return typer.Typer(
        cls=_Verbs,
        help=help,
        no_args_is_help=True,
        add_completion=False,
        # Plain help is four times as fast as boxed help and can be piped.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


@dataclass(frozen=True)
class Paper:
    """A paper's place on the command line; its package's ``cli.py`` makes one.

    Attributes
    ----------
    slug : str
        Name of the package and of the command.
    title, venue, arxiv : str
        The paper's title, venue with year, and arXiv number.
    app : typer.Typer
        The verbs, from `command_group`; the verb ``reproduce`` is added to them here.
    """

    slug: str
    title: str
    venue: str
    arxiv: str
    app: typer.Typer

    def __post_init__(self) -> None:
        def reproduce(
            claim: Annotated[
                list[str] | None, typer.Argument(help="Claims; all by default.")
            ] = None,
            scale: ScaleOption = "laptop",
            seed: SeedOption = 0,
            device: DeviceOption = "cpu",
            data: DataOption = None,
            out: FolderOption = Path("reproduction"),
            fresh: FreshOption = False,
            json: JsonOption = False,
        ) -> None:
            """Measure the paper's claims and write report.json and report.html."""
            _reproduce_paper(self, claim or [], scale, seed, device, data or [], out, fresh, json)

        self.app.command("reproduce")(reproduce)

    @property
    def distribution(self) -> str:
        """Name of the distribution, ``paperworks-<slug>``."""
        return f"paperworks-{self.slug}"

    @property
    def module(self) -> str:
        """Name of the import, ``paperworks.<slug with underscores>``."""
        return f"paperworks.{self.slug.replace('-', '_')}"

    def describe(self) -> dict[str, str]:
        """Return slug, title, venue, arxiv, version and the one-line summary."""
        meta = importlib.metadata.metadata(self.distribution)
        return {
            "slug": self.slug,
            "version": meta["Version"],
            "title": self.title,
            "venue": self.venue,
            "arxiv": self.arxiv,
            "summary": meta["Summary"],
        }


def installed() -> dict[str, importlib.metadata.EntryPoint]:
    """Return the entry points of the installed papers by slug, without loading any."""
    return {e.name: e for e in sorted(importlib.metadata.entry_points(group=GROUP))}


def load(slug: str) -> Paper:
    """Load one installed paper.

    Raises
    ------
    InputError
        When there is no such paper; the message lists the installed ones.
    """
    papers = installed()
    if slug not in papers:
        names = ", ".join(papers) or "none: pip install paperworks-<slug>"
        raise InputError(f"no paper or command {slug!r}; installed papers: {names}")
    return papers[slug].load()


def emit(result: Any, json: bool, text: str | Callable[[], None]) -> None:
    """Print a verb's result on stdout.

    Parameters
    ----------
    result : object
        What ``--json`` prints; see `paperworks.shared.files.to_json`.
    json : bool
        Whether the user asked for JSON.
    text : str or callable
        What a person reads: printed, or called to print.
    """
    if json:
        from .files import to_json

        typer.echo(to_json(result))
    elif callable(text):
        text()
    else:
        typer.echo(text)


def main() -> None:
    """Run the ``paperworks`` command and exit with its code."""
    if threading.current_thread() is threading.main_thread():
        # A polite kill unwinds the stack, so that temporary files go.
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    # A parent may have closed the standard streams; Python then sets them to None.
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # consoles that cannot show a check mark
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError as error:
        # What is left in the buffer must not be tried again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            code = _complain(error.strerror or str(error), 1)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run the command with these arguments and return its exit code.

    0 done, 1 a claim does not hold or the job failed, 2 bad usage or input (one line on stderr),
    130 interrupted.
    """
    arguments = list(arguments)
    try:
        if arguments in (["list"], ["list", "--json"]):
            _list(json=len(arguments) == 2)  # without the parser, whose import takes longer
            return 0
        if arguments and not arguments[0].startswith("-") and arguments[0] not in _OWN:
            paper = load(arguments[0])
            app, name = paper.app, f"paperworks {paper.slug}"
            arguments = arguments[1:] or ["--help"]
        else:
            app, name = _root(), "paperworks"
        # Outside its standalone mode the parser returns the code of an exit or of Ctrl-C.
        result = app(args=arguments, prog_name=name, standalone_mode=False)
        if result == _INTERRUPTED:
            raise KeyboardInterrupt
        return result if isinstance(result, int) and not isinstance(result, bool) else 0
    except (InputError, MissingExtraError) as error:
        return _complain(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        return _complain("interrupted", _INTERRUPTED)
    except BrokenPipeError:
        return 1
    except OSError as error:
        if error.filename is None:  # no file of the user's: a full disk, a broken device
            return _complain(error.strerror or str(error), 1)
        return _complain(f"{error.filename}: {error.strerror}", 2)
    except MemoryError as error:
        return _complain(f"out of memory: {error}" if str(error) else "out of memory", 1)
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        # The argument parser's errors know their exit code and one-line message.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        text = " ".join(message().split())
        return _complain(text, getattr(error, "exit_code", 2)) if text else 2


def _complain(message: str, code: int) -> int:
    typer.echo(f"error: {' '.join(message.split())}", err=True)
    return code


def _list(json: JsonOption = False) -> None:
    """Show the installed papers."""
    rows = []
    for slug, entry in installed().items():
        try:
            rows.append(entry.load().describe())
        except Exception as error:  # one broken package must not hide the others
            rows.append({"slug": slug, "version": "?", "title": f"cannot be loaded: {error}"})
    width = max((len(f"{r['slug']} {r['version']}") for r in rows), default=0)
    lines = []
    for row in rows:
        venue = f" ({row['venue']})" if "venue" in row else ""
        lines.append(f"{row['slug'] + ' ' + row['version']:<{width}}  {row['title']}{venue}")
        lines.append(f"{'':<{width}}  {row.get('summary', '')}")
    emit(rows, json, "\n".join(lines) or "no papers are installed: pip install paperworks-<slug>")


def _reproduce(
    slug: Annotated[list[str] | None, typer.Argument(help="Papers to reproduce.")] = None,
    all: Annotated[bool, typer.Option("--all", help="Every installed paper.")] = False,
    scale: ScaleOption = "laptop",
    seed: SeedOption = 0,
    device: DeviceOption = "cpu",
    out: FolderOption = Path("reproduction"),
    jobs: Annotated[int, typer.Option(help="Papers at a time.", min=1)] = 1,
    fresh: FreshOption = False,
) -> None:
    """Measure the claims of several papers, each in its own process, and write one report."""
    slugs = list(slug or [])
    if bool(slugs) == all:
        raise expected(
            "SLUG", "names of papers or --all", "both of them" if all else "none of them"
        )
    for name in slugs:
        load(name)
    options = ["--scale", scale, "--seed", str(seed), "--device", device, "--out", str(out)]
    _scale(scale)
    environ = dict(os.environ)
    if jobs > 1:
        share = str(max(1, (os.cpu_count() or 1) // jobs))
        environ = {"OMP_NUM_THREADS": share, "NUMBA_NUM_THREADS": share} | environ

    own = [sys.executable, "-m", "paperworks.shared.cli"]
    codes = _run_each(
        [
            [*own, name, "reproduce", *options, *["--fresh"] * fresh]
            for name in slugs or installed()
        ],
        jobs,
        environ,
    )
    written = sorted(out.glob("*/report.json"))
    if written:
        _report([out], out / "index.html", None)
        typer.echo(f"report: {out / 'index.html'}")
    if any(codes):
        raise typer.Exit(2 if 2 in codes else 1)


def _report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders with reports.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("index.html"),
    markdown: Annotated[
        str | None, typer.Option(help="Also a Markdown table; - is stdout.")
    ] = None,
) -> None:
    """Join reports into one page that sorts and filters."""
    from .files import write_text
    from .report import find_reports, to_html, to_markdown

    reports = find_reports(folders)
    write_text(out, to_html(reports))
    if markdown is not None:
        write_text(markdown, to_markdown(reports))


_OWN: Mapping[str, Callable[..., None]] = {
    "list": _list,
    "reproduce": _reproduce,
    "report": _report,
}


def _root() -> typer.Typer:
    names = ", ".join(installed()) or "none"
    app = command_group(help=f"Reproduce papers and use their methods. Installed: {names}.")

    @app.callback(invoke_without_command=True)
    def options(
        context: typer.Context,
        version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    ) -> None:
        if version:
            typer.echo(f"paperworks-shared {importlib.metadata.version('paperworks-shared')}")
            raise typer.Exit
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())

    for name, verb in _OWN.items():
        app.command(name)(verb)
    return app


def _scale(name: str) -> Any:
    from .claims import Scale
    from .validation import check_choice

    return Scale(check_choice("--scale", name, [str(scale) for scale in Scale]))


def _reproduce_paper(
    paper: Paper,
    ids: Sequence[str],
    scale: str,
    seed: int,
    device: str,
    data: Sequence[str],
    out: Path,
    fresh: bool,
    json: bool,
) -> None:
    from .errors import require
    from .files import write_text
    from .report import line, to_html
    from .reproduction import exit_code, reproduce

    chosen = _scale(scale)
    inputs = {}
    for item in data:
        name, equals, path = item.partition("=")
        if not (name and equals and path):
            raise expected("--data", "NAME=PATH", item)
        inputs[name] = Path(path)
    # The figures are drawn after minutes of work: say at once that they cannot be.
    require("matplotlib", package=paper.distribution, extra="reproduce")
    claims = importlib.import_module(f"{paper.module}.reproduction").claims
    folder = out / paper.slug
    report = reproduce(
        claims,
        paper.describe(),
        folder,
        ids=ids,
        scale=chosen,
        seed=seed,
        device=device,
        data=inputs,
        fresh=fresh,
        on_claim=lambda result: typer.echo(line(paper.slug, result), err=json),
    )
    write_text(folder / "report.html", to_html([report]))
    emit(report, json, f"report: {folder / 'report.html'}")
    raise typer.Exit(exit_code(report, ids))


def _run_each(commands: Sequence[list[str]], jobs: int, environ: Mapping[str, str]) -> list[int]:
    """Run commands, ``jobs`` at a time, and return their exit codes; never leave one behind."""
    waiting = list(commands)
    running: list[subprocess.Popen[bytes]] = []
    codes = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(subprocess.Popen(waiting.pop(0), env=environ))
            time.sleep(0.05)
            for process in [p for p in running if p.poll() is not None]:
                running.remove(process)
                codes.append(process.returncode)
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait()
    return codes


if __name__ == "__main__":
    main()
