"""Files are whole or absent, whatever happens; checkpoints are found by what they depend on."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from paperworks.shared.errors import InputError
from paperworks.shared.files import (
    Checkpoints,
    atomic_path,
    read_json,
    to_json,
    write_bytes,
    write_json,
    write_text,
)


def test_success_replaces_and_keeps_the_mode(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o640)
    with atomic_path(path) as temporary:
        assert temporary.suffix == ".csv"
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["a.csv"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_failure_leaves_the_old_file_alone(tmp_path, error):
    path = tmp_path / "a"
    path.write_text("old")
    with pytest.raises(error), atomic_path(path) as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise error
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]


def test_links_are_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_devices_are_written_to_and_stay():
    write_bytes("/dev/null", b"x")
    assert not os.path.isfile("/dev/null")


def test_missing_folder_and_folder_as_file(tmp_path):
    with pytest.raises(InputError, match="expected an existing folder, found no"):
        write_text(tmp_path / "none" / "a", "x")
    with pytest.raises(InputError, match="expected a file to write, found a folder"):
        write_text(tmp_path, "x")


def test_terminated_process_leaves_no_temporary_file(tmp_path):
    code = (
        "import sys, time, signal\n"
        "from paperworks.shared.files import atomic_path\n"
        "signal.signal(signal.SIGTERM, lambda n, f: sys.exit(1))\n"
        f"with atomic_path({str(tmp_path / 'a')!r}) as p:\n"
        "    p.write_text('half'); print('ready', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.wait()
    assert os.listdir(tmp_path) == []


def test_json_is_strict_and_takes_arrays(tmp_path):
    value = {"a": np.array([1.0, np.nan]), 2: (np.int8(1), np.float32(0.5), tmp_path), "ü": None}
    text = to_json(value)
    assert json.loads(text) == {"a": [1.0, None], "2": [1, 0.5, str(tmp_path)], "ü": None}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json")["a"] == [1.0, None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json:1: expected JSON, found: Expecting property name"),
        (b'{"a": 1,\n "b" 2}', "x.json:2: expected JSON"),
        (b"\xff\xfe", "x.json: expected JSON in UTF-8, found other bytes"),
    ],
)
def test_bad_json(tmp_path, content, message):
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_json(tmp_path / "x.json")


def test_no_json(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read: No such file"):
        read_json(tmp_path / "none.json")


def test_checkpoints(tmp_path):
    kept = Checkpoints(tmp_path / "deep" / "er", {"n": 3, "seed": 0})
    assert kept.load("model 1") is None
    kept.save("model 1", {"weights": np.arange(6).reshape(2, 3), "loss": 0.5, "json": "word"})
    again = Checkpoints(tmp_path / "deep" / "er", {"seed": 0, "n": 3}).load("model 1")
    np.testing.assert_array_equal(again["weights"], [[0, 1, 2], [3, 4, 5]])
    assert (again["loss"], again["json"]) == (0.5, "word")
    assert Checkpoints(tmp_path / "deep" / "er", {"n": 4, "seed": 0}).load("model 1") is None
    assert kept.load("model_1") is None


def test_damaged_checkpoint_counts_as_absent(tmp_path):
    kept = Checkpoints(tmp_path, {})
    kept.save("a", {"x": np.arange(100)})
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for length in (0, 1, 50, len(whole) - 1):
        file.write_bytes(whole[:length])
        assert kept.load("a") is None
    file.write_bytes(whole)
    assert kept.load("a") is not None
    kept.clear()
    assert kept.load("a") is None


def test_killed_writer_leaves_the_last_checkpoint(tmp_path):
    code = (
        "import numpy as np\n"
        "from paperworks.shared.files import Checkpoints\n"
        f"c = Checkpoints({str(tmp_path)!r}, {{}})\n"
        "i = 0\n"
        "while True:\n"
        "    c.save('state', {'x': np.full(200_000, i), 'i': i}); i += 1\n"
        "    print(i, flush=True)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        time.sleep(0.2)
        process.kill()
        process.wait()
    state = Checkpoints(tmp_path, {}).load("state")
    assert np.all(state["x"] == state["i"])
