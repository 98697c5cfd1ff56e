"""A journal keeps whole records, and notices whatever is not one."""

import errno
import os
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rblspi.core.journal import DamageError, Journal, line_of, whole_lines

RECORDS = [{"number": i, "text": "Größe\n" * (i % 3), "list": [0.1 * i, None]} for i in range(6)]


def written(path, records=RECORDS):
    with Journal(path) as journal:
        journal.append(records)
    return path


def contents(path):
    return [line.content for line in whole_lines(path)]


def test_records_are_lines_of_json_that_grow(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        for record in RECORDS:
            journal.append([record])
        assert journal.size == path.stat().st_size
    assert path.read_bytes() == b"".join(map(line_of, RECORDS))
    before = path.read_bytes()
    written(path, RECORDS[:2])
    assert path.read_bytes() == before + b"".join(map(line_of, RECORDS[:2]))
    starts = [line.start for line in whole_lines(path)]
    assert [path.read_bytes()[s : s + 11] for s in starts] == [b'{"number": '] * 8


@pytest.mark.parametrize("missing", [1, 5, 20, 30])
def test_a_torn_end_is_removed_and_said(tmp_path, capsys, missing):
    path = written(tmp_path / "journal.jsonl")
    whole = path.read_bytes()
    last = len(line_of(RECORDS[-1]))
    path.write_bytes(whole[:-missing])
    assert len(contents(path)) == 5  # a reader leaves it out, too
    with Journal(path) as journal:
        assert journal.size == len(whole) - last
        journal.append(RECORDS[-1:])
    assert path.read_bytes() == whole
    assert f"the last {last - missing} bytes are no whole record" in capsys.readouterr().err


def test_zeros_at_the_end_are_no_record(tmp_path):
    path = written(tmp_path / "journal.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(500))
    written(path, [])
    assert path.read_bytes() == whole


WHOLE = b"".join(map(line_of, RECORDS))


@given(place=st.integers(0, len(WHOLE) - 1), bit=st.integers(0, 7))
@example(place=WHOLE[:-1].rindex(b"\n"), bit=0)
@example(place=len(WHOLE) - 1, bit=0)
def test_no_bit_changes_unnoticed(tmp_path_factory, place, bit):
    changed = bytearray(WHOLE)
    changed[place] ^= 1 << bit
    path = tmp_path_factory.mktemp("journal") / "journal.jsonl"
    path.write_bytes(changed)
    row = WHOLE[:place].count(b"\n")
    if row == len(RECORDS) - 1 and place < len(WHOLE) - 1:  # which may be torn, and is left out
        assert len(contents(path)) == row
    else:
        with pytest.raises(DamageError, match=f"line {row + 1}: the record is damaged"):
            contents(path)


def test_other_files_are_left_alone(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text("stock,order\n1,2\n")
    with pytest.raises(ValueError, match="has no whole record, and may be something else"):
        Journal(path)
    assert path.read_text() == "stock,order\n1,2\n"


def test_one_process_at_a_time_writes(tmp_path):
    path = tmp_path / "journal.jsonl"
    program = "import sys; from rblspi.core.journal import Journal; Journal(sys.argv[1])"
    with Journal(path):
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
        )
        assert "another process is writing to" in done.stderr
    written(path)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    with Journal(path) as journal:
        journal.append(RECORDS[:2])
        before = path.read_bytes()
        write = os.write

        def half(handle, data):
            if len(data) < 10:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(handle, bytes(data)[: len(data) // 2])

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(OSError, match=r"No space left on device: '.*journal"):
            journal.append(RECORDS[2:])
        assert path.read_bytes() == before
        monkeypatch.undo()
        journal.append(RECORDS[2:])
    assert path.read_bytes() == WHOLE
