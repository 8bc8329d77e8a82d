"""Progress bars on stderr, and none where stderr is not a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""What long library calls take as ``progress``: called with (done, total)."""


def track(iterable: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Iterate with a progress bar.

    Parameters
    ----------
    iterable : iterable
        What is worked through.
    description : str
        Shown beside the bar.
    total : int, optional
        The number of steps; taken from ``len`` where there is one.

    Yields
    ------
    object
        The items, unchanged.
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    with progress_bar(description) as report:
        for done, item in enumerate(iterable):
            report(done, total or 0)
            yield item
            report(done + 1, total or 0)


@contextmanager
def progress_bar(description: str) -> Generator[Progress]:
    """Show a bar while the block runs; the block's callback moves it.

    Parameters
    ----------
    description : str
        Shown beside the bar.

    Yields
    ------
    callable
        ``report(done, total)``; a total of 0 means unknown.
    """
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(description, total=None)

        def report(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total or None)

        yield report


def _silent(done: int, total: int) -> None:
    """Take the place of a bar where nobody looks."""
