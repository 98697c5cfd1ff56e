"""A file is either the old one or the new one, and nothing else is left behind."""

import errno
import subprocess
import sys

import pytest

from rblspi.core import files
from rblspi.core.files import locked, replacing


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "result.txt"
    path.write_text("old")
    return path


def test_the_new_file_takes_the_place_of_the_old_one_in_the_end(old):
    with replacing(old) as temporary:
        assert temporary.parent == old.parent
        temporary.write_text("new")
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    assert list(old.parent.iterdir()) == [old]


def test_a_file_that_was_not_there_is_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with replacing("first.txt") as temporary:
        temporary.write_bytes(b"")
    assert [path.name for path in tmp_path.iterdir()] == ["first.txt"]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file(old, error):
    with pytest.raises(error), replacing(old) as temporary:  # noqa: PT012
        temporary.write_text("half of the n")
        raise error("something happened")
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("function", ["os.fsync", "os.replace"])
def test_a_disk_that_fails_leaves_the_old_file(old, function, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(function, fail)
    with pytest.raises(OSError, match="disk full"), replacing(old) as temporary:
        temporary.write_text("new")
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


def test_nothing_written_replaces_nothing(old):
    with pytest.raises(FileNotFoundError), replacing(old):
        pass
    assert old.read_text() == "old"


def test_two_writers_do_not_meet(old):
    with replacing(old) as one, replacing(old) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert old.read_text() == "one"  # the outer one ends last
    assert list(old.parent.iterdir()) == [old]


# Folders ----------------------------------------------------------------------------------------


def test_a_folder_belongs_to_one_process_at_a_time(tmp_path):
    folder = tmp_path / "new" / "run"
    with locked(folder):
        with (
            pytest.raises(ValueError, match=r"another process is writing to .*run: wait"),
            locked(folder),
        ):
            pass
        with locked(tmp_path):
            pass
    with pytest.raises(KeyboardInterrupt), locked(folder):
        raise KeyboardInterrupt
    with locked(folder):
        assert not list(folder.iterdir())


def test_a_lock_ends_with_its_process(tmp_path):
    code = (
        "import os, sys; from pathlib import Path; from rblspi.core.files import locked\n"
        "with locked(Path(sys.argv[1])): os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    with locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked_is_said_to_be_one(tmp_path, monkeypatch, capsys):
    def flock(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", flock)
    with locked(tmp_path):
        pass
    assert "cannot be locked (No locks available): let no other process" in capsys.readouterr().err
