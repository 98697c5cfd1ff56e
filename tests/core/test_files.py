"""A file is either the old one or the new one, and nothing else is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rblspi.core.files import replacing


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "result.txt"
    path.write_text("old")
    return path


def test_the_new_file_takes_the_place_of_the_old_one_in_the_end(old: Path) -> None:
    with replacing(old) as temporary:
        assert temporary.parent == old.parent
        temporary.write_text("new")
        assert old.read_text() == "old"
    assert old.read_text() == "new"
    assert list(old.parent.iterdir()) == [old]


def test_a_file_that_was_not_there_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with replacing("first.txt") as temporary:
        temporary.write_bytes(b"")
    assert [path.name for path in tmp_path.iterdir()] == ["first.txt"]


@pytest.mark.parametrize("error", [OSError, ValueError, KeyboardInterrupt, SystemExit])
def test_an_error_leaves_the_old_file(old: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), replacing(old) as temporary:  # noqa: PT012
        temporary.write_text("half of the n")
        raise error("something happened")
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("function", ["os.fsync", "os.replace"])
def test_a_disk_that_fails_leaves_the_old_file(
    old: Path, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(function, fail)
    with pytest.raises(OSError, match="disk full"), replacing(old) as temporary:
        temporary.write_text("new")
    assert old.read_text() == "old"
    assert list(old.parent.iterdir()) == [old]


def test_nothing_written_replaces_nothing(old: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(old):
        pass
    assert old.read_text() == "old"


def test_two_writers_do_not_meet(old: Path) -> None:
    with replacing(old) as one, replacing(old) as other:
        assert one != other
        one.write_text("one")
        other.write_text("other")
    assert old.read_text() == "one"  # the outer one ends last
    assert list(old.parent.iterdir()) == [old]
