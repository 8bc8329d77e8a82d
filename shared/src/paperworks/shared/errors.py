"""What a user is told when the input is wrong: one line that says what was found and expected."""

from __future__ import annotations

import importlib
from types import ModuleType


class InputError(ValueError):
    """A mistake in the user's input, described in one line.

    The command line prints the message and exits with code 2; a library caller can catch it as a
    ``ValueError``.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(str(message).split()))


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the command that installs it."""


def expected(name: str, expectation: str, found: object) -> InputError:
    """Make the error for a parameter that is not what it should be.

    Parameters
    ----------
    name : str
        The parameter, option, column or file, as the user wrote it.
    expectation : str
        What would have been right, for example ``"an integer >= 1"``.
    found : object
        The offending value; long representations are cut.

    Returns
    -------
    InputError
        With the message ``"NAME: expected EXPECTATION, found FOUND"``. The caller raises it.
    """
    return InputError(f"{name}: expected {expectation}, found {shorten(found)}")


def shorten(value: object, limit: int = 60) -> str:
    """Represent a value in at most ``limit`` characters on one line."""
    text = value if isinstance(value, str) and " " in value else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 3] + "..."


def require(module: str, *, package: str, extra: str) -> ModuleType:
    """Import a module that an extra brings in.

    Parameters
    ----------
    module : str
        Dotted name of the module to import.
    package, extra : str
        The distribution and its extra, named in the error.

    Returns
    -------
    module
        The imported module.

    Raises
    ------
    MissingExtraError
        When the module's top-level package is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise  # the module is there, but something that it needs is broken: not a missing extra
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed: pip install '{package}[{extra}]'"
        ) from None
