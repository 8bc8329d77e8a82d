"""Digits to integers and back at the speed of the memory: the kernels under the text formats."""

import numpy as np

from .structures import cached

_TAB, _NEWLINE, _RETURN, _BLANK, _HASH, _PERCENT, _COMMA, _POINT, _ZERO = (
    9,
    10,
    13,
    32,
    35,
    37,
    44,
    46,
    48,
)
_MAX_DIGITS = 18  # the largest number of digits that always fits int64


@cached
def _number(data, place):
    """Value and end of the digits at ``place``, a point and zeros after them included.

    The value is -1 if there are no digits or too many.
    """
    begin = place
    value = np.int64(0)
    while True:
        digit = np.int64(data[place]) - _ZERO
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        place += 1
    if place == begin or place - begin > _MAX_DIGITS:
        value = np.int64(-1)
    if data[place] == _POINT:
        place += 1
        while data[place] == _ZERO:
            place += 1
    return value, place


@cached
def parse_lines(data, place, line, pairs, count, limit):
    """Parse lines of two ids until the end or until a line that is not plain.

    Parameters
    ----------
    data : ndarray of uint8
        The text; its last byte is a newline.
    place, line, count : int
        Where to start, the number of that line, and the rows of ``pairs`` that are filled.
    pairs : ndarray of int64, shape (lines, 2)
        Receives the ids.
    limit : int
        A line with an id from here on is not plain.

    Returns
    -------
    place, line, count : int
        State at the end of the data or at the start of the first line that is not plain.
    extra : bool
        Whether some line had more than two columns.
    """
    extra = False
    end = len(data)
    while place < end:
        i = place
        while data[i] == _BLANK or data[i] == _TAB:
            i += 1
        byte = data[i]
        if byte == _NEWLINE or (byte == _RETURN and data[i + 1] == _NEWLINE):
            place = i + 1 + (byte == _RETURN)
            line += 1
            continue
        if byte in (_HASH, _PERCENT):
            while data[i] != _NEWLINE:
                i += 1
            place = i + 1
            line += 1
            continue
        u, i = _number(data, i)
        gap = i
        commas = 0
        while data[i] == _BLANK or data[i] == _TAB or data[i] == _COMMA:
            commas += data[i] == _COMMA
            i += 1
        v, after = _number(data, i)
        if u < 0 or v < 0 or i == gap or commas > 1 or u >= limit or v >= limit:
            return place, line, count, extra
        i = after
        byte = data[i]
        if byte != _NEWLINE:
            if byte != _BLANK and byte != _TAB and byte != _COMMA and byte != _RETURN:
                return place, line, count, extra
            while data[i] != _NEWLINE:
                if data[i] == _RETURN:
                    if data[i + 1] != _NEWLINE:
                        return place, line, count, extra
                elif data[i] != _BLANK and data[i] != _TAB:
                    extra = True
                i += 1
        pairs[count, 0] = u
        pairs[count, 1] = v
        count += 1
        place = i + 1
        line += 1
    return place, line, count, extra


@cached
def _write_number(value, out, place):
    digits = 1
    rest = value // 10
    while rest > 0:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[place + k] = np.uint8(_ZERO + value % 10)
        value //= 10
    return place + digits


@cached
def format_lines(pairs, separator, out):
    """Write rows of two non-negative integers into ``out`` and return the number of bytes."""
    place = 0
    for row in range(len(pairs)):
        place = _write_number(pairs[row, 0], out, place)
        out[place] = separator
        place = _write_number(pairs[row, 1], out, place + 1)
        out[place] = _NEWLINE
        place += 1
    return place
