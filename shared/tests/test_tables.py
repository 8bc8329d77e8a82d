"""Tables against pandas' own readers, the census files' known counts, and damaged input."""

import io
import sys
import urllib.error
import urllib.request
import zipfile

import numpy as np
import pandas as pd
import pytest

from paperworks.shared import tables
from paperworks.shared.errors import InputError
from paperworks.shared.tables import adult, column, compas, read_table, write_table

TRAIN = b"39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, "
TRAIN += b"Male, 2174, 0, 40, United-States, <=50K\n"
TEST = b"|1x3 Cross validator\n25, ?, 226802, 11th, 7, Never-married, ?, Own-child, Black, Male, "
TEST += b"0, 0, 40, United-States, >50K.\n"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "pq", "csv.gz"])
def test_round_trip(tmp_path, suffix):
    frame = pd.DataFrame({"a": [1, 2], "b": [0.1, np.nan], "c": ["x", "y,z"]})
    file = tmp_path / f"t.{suffix}"
    if suffix == "csv.gz":
        frame.to_csv(file, index=False)
    else:
        write_table(file, frame)
    pd.testing.assert_frame_equal(read_table(file), frame)


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n1,2\n")))
    assert read_table("-").to_dict("list") == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "expected a table"),
        ("t.csv", b"a,b\n", "expected a table with rows, found 0 rows and 2 columns"),
        ("t.csv", b"a,b\n1,2,3\n4,5,6,7,8\n", "expected a table"),
        ("t.csv", b"\xff\xfe\x00a", "expected a table"),
        ("t.csv.gz", b"not gzip", "t.csv.gz"),
        ("t.parquet", b"PAR1 nonsense", "t.parquet: expected a"),
    ],
)
def test_damaged(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_table(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_missing_file_and_column(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: cannot be read: No such file"):
        read_table(tmp_path / "nowhere.csv")
    frame = pd.DataFrame({"a": [1]})
    assert column(frame, "a", "--target").tolist() == [1]
    with pytest.raises(InputError, match="--target: expected one of the columns a, found 'b'"):
        column(frame, "b", "--target")


def test_adult_has_the_counts_that_its_documentation_states():
    # adult.names: 48,842 instances, train 32,561, test 16,281; 23.93 % above 50,000;
    # 45,222 (30,162 and 15,060) without unknown cells.
    frame = adult()
    assert frame["split"].value_counts().to_dict() == {"train": 32561, "test": 16281}
    assert round(100 * frame["income"].mean(), 2) == 23.93
    known = frame.dropna()
    assert known["split"].value_counts().to_dict() == {"train": 30162, "test": 15060}


def test_compas_has_the_counts_of_propublica():
    # Larson et al. 2016, "How we analyzed": 7,214 people, 6,172 after their filter.
    frame = compas()
    days = frame["days_b_screening_arrest"]
    kept = days.between(-30, 30) & (frame.is_recid != -1) & (frame.c_charge_degree != "O")
    assert (len(frame), int((kept & (frame.score_text != "N/A")).sum())) == (7214, 6172)


def test_given_places(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "adult.data").write_bytes(TRAIN)
    with pytest.raises(InputError, match=r"--data adult: .* with adult.test"):
        adult(tmp_path)
    (tmp_path / "inner" / "adult.test").write_bytes(TEST)
    frame = adult(tmp_path)
    assert frame["income"].tolist() == [0, 1]
    assert frame["workclass"].isna().tolist() == [False, True]
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as archive:
        archive.writestr("x/adult.data", TRAIN)
        archive.writestr("x/adult.test", TEST)
    pd.testing.assert_frame_equal(adult(tmp_path / "a.whl"), frame)
    (tmp_path / "inner" / "adult.data").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match=r"adult: adult.data: expected UCI's rows"):
        adult(tmp_path)
    (tmp_path / "c.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InputError, match="expected ProPublica's columns, found a, b"):
        compas(tmp_path / "c.csv")


def test_server(monkeypatch, tmp_path):
    monkeypatch.setattr(tables.importlib.metadata, "files", lambda name: None)
    pages = {"adult.data": TRAIN, "adult.test": TEST}

    def answer(address, timeout):
        name = address.rpartition("/")[2]
        if name not in pages:
            raise urllib.error.URLError("no network")
        return io.BytesIO(pages[name])

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert adult()["age"].tolist() == [39, 25]
    with pytest.raises(InputError, match=r"compas: expected --data compas=PATH .* found none"):
        compas()
