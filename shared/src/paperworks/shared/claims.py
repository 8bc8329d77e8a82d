"""A paper's claims: what is stated, at which scales it can be tested, and what a test measured.

A package's ``reproduction.py`` makes one `Claims` and registers one function a claim::

    claims = Claims("my-paper")

    @claims.claim(
        "one-reference",
        statement="With one reference model the attack has the highest AUC",
        source="Table 1",
        paper={"ours": 68.6, "best other": 63.7},
        criterion="paired difference to the best other > 0, one-sided 95 % bound",
        scales={Scale.QUICK: "2 targets on digits", Scale.PAPER: "CIFAR-10"},
    )
    def one_reference(run: Run) -> Outcome: ...

Criteria come from the paper or from statistics, never from what the code happened to give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from .errors import InputError, expected
from .files import Checkpoints
from .progress import track
from .seeding import generator
from .statistics import Interval

T = TypeVar("T")


class Scale(StrEnum):
    """How much is run: seconds a claim, minutes on two cores, or the paper's own sizes."""

    QUICK = "quick"
    LAPTOP = "laptop"
    PAPER = "paper"


class Verdict(StrEnum):
    """What a run says of a claim."""

    HOLDS = "holds"
    FAILS = "does not hold"
    NEEDS_LAPTOP = "needs laptop scale"
    NEEDS_PAPER = "needs paper scale"
    UNTESTED = "not tested"
    ERROR = "error"


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure (see `paperworks.shared.plotting.figure`) with its title and caption."""

    title: str
    drawing: Any
    caption: str = ""

    def rendered(self) -> dict[str, str]:
        """Return title, caption and the drawing as an ``<svg>`` element."""
        from .plotting import to_svg

        svg = to_svg(self.drawing, self.title)
        return {"title": self.title, "caption": self.caption, "svg": svg}


@dataclass(frozen=True)
class Table:
    """Rows of numbers and words under column names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    caption: str = ""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"{self.title}: {len(row)} cells under {len(self.columns)} columns"
                )


@dataclass(frozen=True)
class Outcome:
    """What a claim's function measured.

    Attributes
    ----------
    measured : number, str or mapping
        Our value, beside the paper's.
    holds : bool or None
        Whether the criterion was met; None where this run cannot test it, and ``note`` says why.
    interval : tuple of float or Interval, optional
        Of the measured value, or of the difference that decides.
    figures, tables : sequences
        Shown in the claim's section of the report.
    note : str
        What a reader should know: the explanation when the claim does not hold.
    """

    measured: Any
    holds: bool | None
    interval: tuple[float, float] | Interval | None = None
    figures: Sequence[Figure] = ()
    tables: Sequence[Table] = ()
    note: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.holds, np.bool_):
            object.__setattr__(self, "holds", bool(self.holds))
        if self.holds is not None and not isinstance(self.holds, bool):
            raise TypeError(f"holds: expected True, False or None, found {self.holds!r}")
        if self.holds is None and not self.note:
            raise ValueError("note: a claim that was not tested says why")


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and the function that measures it."""

    id: str
    statement: str
    source: str
    paper: Any
    criterion: str
    scales: Mapping[Scale, str]
    measure: Callable[[Run], Outcome]

    def untested_verdict(self, scale: Scale) -> Verdict:
        """Name the next larger scale at which the claim can be tested."""
        order = list(Scale)
        for larger in order[order.index(scale) + 1 :]:
            if larger in self.scales:
                return Verdict.NEEDS_LAPTOP if larger is Scale.LAPTOP else Verdict.NEEDS_PAPER
        return Verdict.NEEDS_PAPER if scale not in self.scales else Verdict.UNTESTED


class Claims:
    """The claims of one paper, in the order in which the report shows them.

    Parameters
    ----------
    slug : str
        The paper's slug, as on the command line.
    data : mapping of str to str, optional
        What the user may give as ``--data name=path``: names, and what is expected there.
    """

    def __init__(self, slug: str, data: Mapping[str, str] | None = None) -> None:
        self.slug = slug
        self.data = dict(data or {})
        self._claims: dict[str, Claim] = {}

    def claim(
        self,
        id: str,
        *,
        statement: str,
        source: str,
        paper: Any,
        criterion: str,
        scales: Mapping[Scale, str],
    ) -> Callable[[Callable[[Run], Outcome]], Callable[[Run], Outcome]]:
        """Register the decorated function as the measurement of a claim.

        Parameters
        ----------
        id : str
            Short name, lower case with hyphens.
        statement : str
            What is claimed, in our words.
        source : str
            Where: "Table 2", "Theorem 3.1".
        paper : object
            The paper's value.
        criterion : str
            When the claim holds, in words.
        scales : mapping of Scale to str
            What is run at each scale; a missing scale cannot test the claim.
        """
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", id) or id in self._claims:
            raise ValueError(f"claim id: expected a new name like 'one-reference', found {id!r}")
        if not scales:
            raise ValueError(f"{id}: a claim is tested at one scale at least")

        def register(measure: Callable[[Run], Outcome]) -> Callable[[Run], Outcome]:
            self._claims[id] = Claim(id, statement, source, paper, criterion, dict(scales), measure)
            return measure

        return register

    def __iter__(self) -> Iterator[Claim]:
        return iter(self._claims.values())

    def __len__(self) -> int:
        return len(self._claims)

    def __getitem__(self, id: str) -> Claim:
        return self._claims[id]

    def check_data(self, names: Iterable[str]) -> None:
        """Refuse names of ``--data`` that no claim reads."""
        for name in names:
            if name not in self.data:
                known = [f"{known} ({what})" for known, what in self.data.items()]
                found = f"the name {name}"
                raise expected("--data", " or ".join(known) or "no data for this paper", found)

    def select(self, ids: Sequence[str]) -> list[Claim]:
        """Return the claims of these ids, or all of them for an empty sequence."""
        for id in ids:
            if id not in self._claims:
                raise expected("claim", f"one of {', '.join(self._claims)}", id)
        return [claim for claim in self if not ids or claim.id in ids]


@dataclass(frozen=True)
class Run:
    """What a claim's function gets: the scale, randomness, a folder, the user's data.

    Attributes
    ----------
    claim : str
        The claim's id.
    scale : Scale
        How much to run.
    seed : int
        The user's seed; `generator` derives streams from it.
    device : str
        ``"cpu"``, ``"cuda"``, ... for packages that use accelerators.
    folder : pathlib.Path
        For this claim's checkpoints.
    version : str
        Version and digest of the package's code, part of every checkpoint's key.
    inputs : mapping of str to pathlib.Path
        The user's ``--data name=path``.
    """

    claim: str
    scale: Scale
    seed: int
    device: str
    folder: Path
    version: str = ""
    inputs: Mapping[str, Path] = field(default_factory=dict)

    def generator(self, *keys: str | int) -> np.random.Generator:
        """Return the random stream of this claim, or one of its independent named streams."""
        return generator(self.seed, self.claim, *keys)

    def pick(self, *, quick: T, laptop: T, paper: T) -> T:
        """Return the value for the run's scale."""
        return {Scale.QUICK: quick, Scale.LAPTOP: laptop, Scale.PAPER: paper}[self.scale]

    def track(
        self, iterable: Iterable[T], description: str = "", total: int | None = None
    ) -> Iterator[T]:
        """Iterate with a progress bar on a terminal."""
        return track(iterable, f"{self.claim}: {description}" if description else self.claim, total)

    def checkpoints(self, **key: Any) -> Checkpoints:
        """Open this claim's checkpoints; scale, seed, device and code version are in the key."""
        whole = {"scale": self.scale, "seed": self.seed, "device": self.device}
        return Checkpoints(self.folder, whole | {"version": self.version} | key)

    def data(self, name: str) -> Path | None:
        """Return the path that the user gave as ``--data name=path``, or None."""
        path = self.inputs.get(name)
        if path is not None and not path.exists():
            raise InputError(f"--data {name}: expected an existing path, found no {path}")
        return path
