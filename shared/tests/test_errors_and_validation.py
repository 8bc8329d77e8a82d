"""One wording, one line, and no value that slips through."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from paperworks.shared.errors import InputError, MissingExtraError, expected, require
from paperworks.shared.validation import (
    check_array,
    check_choice,
    check_number,
    check_probabilities,
)


def test_messages_are_one_line():
    assert str(InputError("a\n  b")) == "a b"
    assert str(expected("x", "a word", "two\nlines of text")) == (
        "x: expected a word, found two lines of text"
    )
    assert len(str(expected("x", "less", list(range(1000))))) < 100


def test_require_names_the_command():
    assert require("json.decoder", package="p", extra="e").__name__ == "json.decoder"
    with pytest.raises(
        MissingExtraError, match=r"^no_such is not installed: pip install 'p\[e\]'$"
    ):
        require("no_such.part", package="p", extra="e")


def test_require_does_not_hide_a_broken_module(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import what_it_lacks\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="what_it_lacks"):
        require("half_there", package="p", extra="e")


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        (True, {}, "n: expected a finite number, found True"),
        ("3", {}, "n: expected a finite number, found '3'"),
        (float("nan"), {}, "n: expected a finite number, found nan"),
        (float("inf"), {}, "n: expected a finite number, found inf"),
        (None, {}, "n: expected a finite number, found None"),
        (2.5, {"integer": True}, "n: expected an integer, found 2.5"),
        (0, {"minimum": 1, "integer": True}, "n: expected an integer >= 1, found 0"),
        (1, {"above": 0, "below": 1}, "n: expected a finite number > 0 and < 1, found 1"),
        (5, {"maximum": 4}, "n: expected a finite number <= 4, found 5"),
    ],
)
def test_bad_numbers(value, options, message):
    with pytest.raises(InputError) as caught:
        check_number("n", value, **options)
    assert str(caught.value) == message


def test_good_numbers_keep_their_kind():
    assert check_number("n", 3.0, integer=True) == 3
    assert isinstance(check_number("n", np.int8(3)), int)
    assert isinstance(check_number("n", np.float32(3)), float)
    assert check_number("n", np.array(2.0)) == 2.0
    assert check_number("n", 2**70, integer=True) == 2**70


def test_choice():
    assert check_choice("kind", "b", ["a", "b"]) == "b"
    for wrong in ("c", ["a"], None):
        with pytest.raises(InputError, match="kind: expected one of a, b, found"):
            check_choice("kind", wrong, ["a", "b"])


@pytest.mark.parametrize(
    ("value", "options", "message"),
    [
        ([[1], [1, 2]], {}, "x: expected an array of numbers, found list of uneven rows"),
        (["a"], {}, "x: expected an array of numbers, found dtype <U1"),
        ([1.0, np.nan], {}, "x[1]: expected finite numbers, found nan"),
        ([[1.0], [np.inf]], {}, "x[1, 0]: expected finite numbers, found inf"),
        ([1.5], {"dtype": np.int64}, "x[0]: expected whole numbers, found 1.5"),
        ([300], {"dtype": np.int8}, "x[0]: expected numbers that fit int8, found 300"),
        ([1, -1], {"minimum": 0}, "x[1]: expected numbers >= 0, found -1"),
        ([1, 2], {"ndim": 2}, "x: expected 2 dimensions, found shape (2,)"),
        ([1, 2], {"ndim": (2, 3)}, "x: expected 2 or 3 dimensions, found shape (2,)"),
        ([[1, 2]], {"shape": (None, 3)}, "x: expected shape (any, 3), found shape (1, 2)"),
        ([], {"empty": False}, "x: expected at least one entry, found shape (0,)"),
    ],
)
def test_bad_arrays(value, options, message):
    with pytest.raises(InputError) as caught:
        check_array("x", value, **options)
    assert str(caught.value) == message


def test_integers_that_no_float_holds():
    with pytest.raises(InputError, match="x: expected a finite number, found an integer too large"):
        check_number("x", 10**400)
    assert check_number("x", 10**400, integer=True) == 10**400


def test_masked_entries_are_refused():
    values = np.ma.masked_greater([1.0, 2.0, 99.0], 50)
    with pytest.raises(InputError, match="x: expected an array without masked entries, found"):
        check_array("x", values)
    assert check_array("x", values[:2]).tolist() == [1.0, 2.0]


@given(arrays(np.float64, array_shapes(max_dims=3), elements=st.floats(-10, 10)))
def test_good_arrays_are_not_copied(x):
    assert check_array("x", x, minimum=-10, maximum=10) is x
    assert check_array("x", x, dtype=np.float64) is x


def test_float_to_integer_when_whole():
    result = check_array("x", [1.0, 2.0], dtype=np.int64)
    assert result.dtype == np.int64


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[0.5, 0.5], [0.5, 0.4]], r"p\[1, :\]: expected probabilities that sum to 1, found a sum"),
        ([0.5, -0.5, 1.0], r"p\[1\]: expected numbers >= 0, found -0.5"),
        (0.5, "p: expected an array of probabilities"),
    ],
)
def test_bad_probabilities(value, message):
    with pytest.raises(InputError, match=message):
        check_probabilities("p", value)


@given(arrays(np.float64, (3, 4), elements=st.floats(0.01, 10)))
def test_normalized_probabilities(x):
    np.testing.assert_allclose(check_probabilities("p", x, normalize=True).sum(axis=-1), 1)
    np.testing.assert_allclose(check_probabilities("p", x, axis=0, normalize=True).sum(axis=0), 1)
