"""Numba's compiler with its cache on disk, where the machine has a place for one."""

from collections.abc import Callable
from typing import Any

from numba import njit


def cached(function: Callable) -> Any:
    """Compile a kernel that releases the interpreter's lock, and keep the code between processes.

    Where neither the package's folder nor the user's can be written to, numba refuses to cache;
    then the kernel is compiled anew in each process.
    """
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)
