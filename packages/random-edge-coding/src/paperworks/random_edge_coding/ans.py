"""Asymmetric numeral systems with arbitrary totals: how intervals go into the state and come out.

The state is a pair: the head and a stack of 32-bit words. With ``L = 2**31`` the head lies in
``[L, 2**63)``, except that it may fall below ``L`` while the stack is empty. That exception is what
lets coding start without random words under the head: popping from a small head returns small
values, and the inverse operation restores it.

All arithmetic is on unsigned 64-bit integers and exact: the same bytes on every platform.
"""

import numpy as np
from numba import njit

#: Lower end of the head's interval while the stack holds words.
LOWER = 1 << 31
#: Largest total that `push` and `pop` accept.
MAX_TOTAL = LOWER - 1

_LOWER = np.uint64(LOWER)
_WORD = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)
_ONE = np.uint64(1)


@njit(error_model="numpy")
def push(head, size, stack, start, freq, total):
    """Encode the interval ``[start, start + freq)`` of ``total``.

    Parameters
    ----------
    head : uint64
        Head of the state, in ``[0, 2**63)``; below ``2**31`` only if ``size`` is 0.
    size : int64
        Number of words on the stack.
    stack : ndarray of uint32
        Storage of the stack; one free place is needed.
    start, freq, total : int64
        ``0 <= start``, ``1 <= freq``, ``start + freq <= total <= 2**31 - 1``.

    Returns
    -------
    head : uint64
    size : int64
    """
    freq = np.uint64(freq)
    total = np.uint64(total)
    if head >> _WORD >= (_LOWER // total) * freq:
        stack[size] = np.uint32(head & _MASK)
        size += 1
        head >>= _WORD
    quotient = head // freq
    head = quotient * total + (head - quotient * freq) + np.uint64(start)
    if head < _LOWER and size > 0:
        size -= 1
        head = (head << _WORD) | np.uint64(stack[size])
    return head, size


@njit(error_model="numpy")
def open_pop(head, size, stack, total):
    """First half of a pop: the position in ``[0, total)`` that identifies the symbol.

    Parameters
    ----------
    head, size, stack
        As in `push`.
    total : int64
        Sum of all frequencies, at most ``2**31 - 1``.

    Returns
    -------
    position : int64
    quotient : uint64
        To be handed to `close_pop`.
    size : int64
    """
    total = np.uint64(total)
    if head >> _WORD >= (_LOWER // total) * total:
        stack[size] = np.uint32(head & _MASK)
        size += 1
        head >>= _WORD
    quotient = head // total
    return np.int64(head - quotient * total), quotient, size


@njit(error_model="numpy")
def close_pop(position, quotient, size, stack, start, freq):
    """Second half of a pop: remove the symbol whose interval ``[start, start + freq)`` was found.

    Returns
    -------
    head : uint64
    size : int64
    """
    head = quotient * np.uint64(freq) + np.uint64(position - start)
    if head < _LOWER and size > 0:
        size -= 1
        head = (head << _WORD) | np.uint64(stack[size])
    return head, size


@njit(error_model="numpy")
def push_bit(head, size, stack, bit):
    """`push` of one fair bit (``start = bit``, ``freq = 1``, ``total = 2``)."""
    if head >> _WORD >= _LOWER >> _ONE:
        stack[size] = np.uint32(head & _MASK)
        size += 1
        head >>= _WORD
    head = (head << _ONE) + np.uint64(bit)
    if head < _LOWER and size > 0:
        size -= 1
        head = (head << _WORD) | np.uint64(stack[size])
    return head, size


@njit(error_model="numpy")
def pop_bit(head, size, stack):
    """Inverse of `push_bit`.

    Returns
    -------
    bit : int64
    head : uint64
    size : int64
    """
    bit = np.int64(head & _ONE)
    head >>= _ONE
    if head < _LOWER and size > 0:
        size -= 1
        head = (head << _WORD) | np.uint64(stack[size])
    return bit, head, size
