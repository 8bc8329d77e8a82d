"""Running claims: each is measured once, kept, and found again when a run is resumed."""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .claims import Claim, Claims, Outcome, Run, Scale, Verdict
from .errors import InputError, MissingExtraError
from .files import read_json, to_json, write_json, write_text
from .statistics import Interval

FORMAT = 1


def reproduce(
    claims: Claims,
    paper: Mapping[str, str],
    folder: Path,
    *,
    ids: Sequence[str] = (),
    scale: Scale = Scale.LAPTOP,
    seed: int = 0,
    device: str = "cpu",
    data: Mapping[str, Path] | None = None,
    fresh: bool = False,
    on_claim: Callable[[dict[str, Any]], None] = lambda result: None,
) -> dict[str, Any]:
    """Measure claims and keep ``report.json`` up to date after each.

    Parameters
    ----------
    claims : Claims
        The paper's claims.
    paper : mapping
        Slug, title, venue, arxiv, summary and version, as they stand in the report.
    folder : pathlib.Path
        Gets ``report.json`` and, under ``claims/``, each claim's result and checkpoints. A claim
        that was measured there by the same code with the same settings is not run again.
    ids : sequence of str
        The claims to run; all of them if empty. The report also keeps what the folder holds of
        the others, as long as it was measured with the same settings.
    scale, seed, device, data
        Handed to the measuring functions, see `Run`.
    fresh : bool
        Forget what the folder holds of the claims to run.
    on_claim : callable
        Called with each result as it stands in the report.

    Returns
    -------
    dict
        The report, as in ``report.json``.
    """
    selected = claims.select(ids)
    claims.check_data(data or ())
    if fresh:
        for claim in selected:
            shutil.rmtree(folder / "claims" / claim.id, ignore_errors=True)
    version = f"{paper['version']} {code_digest('paperworks.' + claims.slug.replace('-', '_'))}"
    inputs = dict(data or {})
    settings = {"scale": scale, "seed": seed, "device": device, "version": version}
    settings["data"] = {name: _fingerprint(path) for name, path in sorted(inputs.items())}
    report = {
        "format": FORMAT,
        "paper": dict(paper),
        "scale": scale,
        "seed": seed,
        "device": device,
        "data": {name: str(path) for name, path in inputs.items()},
        "started": _now(),
        "environment": environment(f"paperworks-{claims.slug}"),
        "claims": [],
    }
    results = {c.id: _stored(folder / "claims" / c.id / "outcome.json", settings) for c in claims}
    for claim in selected:
        place = folder / "claims" / claim.id
        result = results[claim.id]
        if result is None:
            run = Run(claim.id, scale, seed, device, place, version, inputs)
            result = measure(claim, run)
            if result["verdict"] != Verdict.ERROR:
                place.mkdir(parents=True, exist_ok=True)
                write_json(place / "outcome.json", {"settings": settings, "result": result})
        results[claim.id] = result
        report["claims"] = [known for known in results.values() if known is not None]
        report["finished"] = _now()
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "report.json", report)
        on_claim(result)
    return read_json(folder / "report.json")


def measure(claim: Claim, run: Run) -> dict[str, Any]:
    """Measure one claim; a crash is a result of its own, the user's mistakes are raised."""
    start = time.perf_counter()
    trace = ""
    if run.scale not in claim.scales:
        at = ", ".join(f"{scale}: {text}" for scale, text in claim.scales.items())
        outcome = Outcome(None, None, note=f"Not testable at {run.scale} scale ({at}).")
    else:
        run.folder.mkdir(parents=True, exist_ok=True)
        try:
            outcome = claim.measure(run)
        except (InputError, MissingExtraError):
            raise
        except Exception as error:
            trace = traceback.format_exc()
            write_text(run.folder / "error.txt", trace)
            outcome = Outcome(None, None, note=f"{type(error).__name__}: {error}")
    if trace:
        verdict = Verdict.ERROR
    elif outcome.holds is None:
        verdict = claim.untested_verdict(run.scale)
    else:
        verdict = Verdict.HOLDS if outcome.holds else Verdict.FAILS
    result = {
        "id": claim.id,
        "statement": claim.statement,
        "source": claim.source,
        "paper": claim.paper,
        "criterion": claim.criterion,
        "scope": claim.scales.get(run.scale, ""),
        "verdict": verdict,
        "measured": outcome.measured,
        "interval": _bounds(outcome.interval),
        "note": outcome.note,
        "traceback": trace,
        "duration_seconds": round(time.perf_counter() - start, 3),
        "measured_at": _now(),
        "tables": [vars(table) for table in outcome.tables],
        "figures": [figure.rendered() for figure in outcome.figures],
    }
    return json.loads(to_json(result))  # the same whether it was just measured or found again


def exit_code(report: Mapping[str, Any], ids: Sequence[str] = ()) -> int:
    """Return 1 if any of the claims does not hold or could not be measured, else 0."""
    bad = {Verdict.FAILS, Verdict.ERROR}
    return int(any(c["verdict"] in bad for c in report["claims"] if not ids or c["id"] in ids))


def environment(distribution: str) -> dict[str, Any]:
    """Describe what a result was measured with: versions, processor, memory."""
    versions = {}
    for name in [distribution, "paperworks-shared", *_requirements(distribution)]:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gib": _memory(),
        "versions": versions,
    }


@cache
def code_digest(module: str) -> str:
    """Hash every file of a package, so that results of other code are not taken for its own."""
    spec = importlib.util.find_spec(module)
    digest = hashlib.blake2b(digest_size=8)
    for location in (spec.submodule_search_locations or []) if spec else []:
        for path in sorted(Path(location).rglob("*")):
            if path.is_file() and path.suffix not in {".pyc", ".nbi", ".nbc"}:
                digest.update(path.relative_to(location).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()


def _stored(path: Path, settings: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        kept = read_json(path)
        return kept["result"] if kept["settings"] == settings else None
    except (InputError, KeyError, TypeError):
        return None


def _fingerprint(path: Path) -> list[Any]:
    if not path.exists():
        raise InputError(f"--data: expected an existing path, found no {path}")
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    return [[str(p), p.stat().st_size, p.stat().st_mtime_ns] for p in files]


def _bounds(interval: tuple[float, float] | Interval | None) -> list[float] | None:
    if interval is None:
        return None
    low, high = (
        (interval.low, interval.high) if isinstance(interval, Interval) else map(float, interval)
    )
    return [low, high]


def _requirements(distribution: str) -> list[str]:
    try:
        lines = importlib.metadata.requires(distribution) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted({re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0] for line in lines})


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
