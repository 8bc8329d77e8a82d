"""Files that are either whole or absent, and checkpoints that survive a kill."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InputError, expected

PathLike = str | os.PathLike[str]


@contextmanager
def atomic_path(path: PathLike) -> Generator[Path]:
    """Give a temporary path beside ``path`` that takes its place when the block succeeds.

    Parameters
    ----------
    path : path_like
        The final file. Links are followed; devices and pipes are written to at the end.

    Yields
    ------
    pathlib.Path
        Where the block writes. It keeps the suffixes of ``path``, so that writers which go by the
        name work, and is removed when the block raises, also at Ctrl-C.

    Raises
    ------
    InputError
        When the folder is missing or ``path`` is a folder.
    """
    target = Path(path)
    if target.is_dir():
        raise expected(str(path), "a file to write", "a folder")
    target = Path(os.path.realpath(target))
    if not target.parent.is_dir():
        raise InputError(f"{path}: expected an existing folder, found no {target.parent}")
    special = target.exists() and not target.is_file()
    folder = Path(tempfile.gettempdir()) if special else target.parent
    temporary = folder / f".{os.getpid()}-{os.urandom(4).hex()}.tmp-{target.name[-60:]}"
    try:
        yield temporary
        if special:
            with temporary.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            if target.exists():
                shutil.copymode(target, temporary)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: PathLike, data: bytes) -> None:
    """Write a whole file atomically; ``"-"`` is the standard output."""
    if str(path) == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: PathLike, text: str) -> None:
    """Write a whole UTF-8 text file atomically; ``"-"`` is the standard output."""
    write_bytes(path, text.encode("utf-8"))


def write_json(path: PathLike, value: Any) -> None:
    """Write JSON atomically (see `to_json`); ``"-"`` is the standard output."""
    write_text(path, to_json(value) + "\n")


def to_json(value: Any, *, indent: int | None = 1) -> str:
    """Represent numbers, arrays, paths, mappings and sequences as strict JSON; NaN becomes null."""
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def read_json(path: PathLike) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : path_like
        ``"-"`` is the standard input.

    Raises
    ------
    InputError
        In one line, when the file is missing, not UTF-8 or not JSON (with the line number).
    """
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
        return json.loads(raw.decode("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise expected(str(path), "JSON in UTF-8", "other bytes") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: expected JSON, found: {error.msg}") from None
    except (ValueError, RecursionError):  # Python's limits of digits and of depth
        raise expected(str(path), "JSON", "a number too long or lists too deep") from None


class Checkpoints:
    """Named results in a folder, valid as long as everything that they depend on stays the same.

    Parameters
    ----------
    folder : path_like
        Made when the first checkpoint is saved.
    key : mapping
        All that the results depend on (sizes, seeds, versions). An entry saved under another key
        is not found, so that a changed setting never resumes from stale work.
    """

    def __init__(self, folder: PathLike, key: Mapping[str, Any]) -> None:
        self.folder = Path(folder)
        text = json.dumps(_plain(dict(key)), sort_keys=True)
        self.digest = hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def _path(self, name: str) -> Path:
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)[:80]
        tag = hashlib.blake2b(name.encode(), digest_size=4).hexdigest()
        return self.folder / f"{safe}-{tag}.{self.digest}.npz"

    def load(self, name: str) -> dict[str, Any] | None:
        """Return what was saved under ``name``, or None; a damaged file counts as absent."""
        try:
            # numpy leaves a file that it opened itself open when it is damaged.
            with self._path(name).open("rb") as handle, np.load(handle) as file:
                values = json.loads(file["json"].tobytes())
                return values | {key[1:]: file[key] for key in file.files if key != "json"}
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            return None

    def save(self, name: str, values: Mapping[str, Any]) -> None:
        """Save arrays and JSON values under ``name``, atomically."""
        arrays = {f"a{k}": v for k, v in values.items() if isinstance(v, np.ndarray)}
        rest = {k: _plain(v) for k, v in values.items() if not isinstance(v, np.ndarray)}
        blob = np.frombuffer(json.dumps(rest).encode(), dtype=np.uint8)
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomic_path(self._path(name)) as temporary, temporary.open("wb") as file:
            np.savez(file, json=blob, **arrays)

    def clear(self) -> None:
        """Remove every checkpoint of this key."""
        for path in self.folder.glob(f"*.{self.digest}.npz"):
            path.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(v) for v in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    return str(value)
