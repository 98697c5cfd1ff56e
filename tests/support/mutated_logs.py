"""Logs with something odd about them, and a plain reader that says what they mean.

The reader knows CSV and JSON Lines, one row after the other, and accepts a file only if every value
is what it should be. `read_log` has to agree: the same transitions, or an error.
"""

import csv
import io
import json
import math
import re
from itertools import pairwise
from typing import Any

import numpy as np

from tests.support.logs import episode_rows, transitions_of_rows

Rows = list[dict[str, Any]]
NAMES = [*episode_rows(1)[0]]
#: columns without which a file is a log with smaller states, or with rows in their order
OPTIONAL = {"episode", "time", "stock", "weekday", "truncated"}
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


#: what is not taken for a word: numbers, dates, flags
NO_WORD = re.compile(
    NUMBER.pattern + r"|[+-]?inf|\d{4}-\d\d-\d\d.*|true|false|nan?|null", re.IGNORECASE
)


class Refused(Exception):
    """The plain reader does not accept a file."""


class AnotherKind(Exception):
    """A file may be right, but has numbers where words are expected."""


# Mutations of rows, of text and of bytes -------------------------------------------------------

ODD = [
    *("", " ", "abc", "NA", "NaN", "null", "None", "inf", "-inf", "1e999", "1,5", "0x10", "1_000"),
    *("2026-01-31", "2026-01-31 10:00:00", "12:30", "TRUE", "no", "-1", "7", "0.5", "1e3", " 2 "),
    *(str(2**63), str(10**30), "-" + str(10**25), "Ünïcode", "日本", "a\tb", '"', "[1, 2]", "{}"),
]


def a_cell(rng, rows):
    row, name = int(rng.integers(len(rows))), str(rng.choice(NAMES))
    rows[row][name] = str(rng.choice(ODD))
    return rows


def a_column(rng, rows):
    name, value = str(rng.choice(NAMES)), str(rng.choice(ODD))
    return [row | {name: value} for row in rows]


def no_column(rng, rows):
    name = str(rng.choice(NAMES))
    return [{key: value for key, value in row.items() if key != name} for row in rows]


def another_order(rng, rows):
    return [rows[i] for i in rng.permutation(len(rows))]


def twice(rng, rows):
    row = int(rng.integers(len(rows)))
    return rows[: row + 1] + rows[row:]


def one_row_less(rng, rows):
    del rows[int(rng.integers(len(rows)))]
    return rows


def swapped(rng, rows):
    one, other = rng.choice(len(rows), 2, replace=False)
    name = str(rng.choice(NAMES))
    rows[one][name], rows[other][name] = rows[other][name], rows[one][name]
    return rows


OF_ROWS = [a_cell, a_cell, a_cell, a_column, no_column, another_order, twice, one_row_less, swapped]


def ragged(rng, text):
    lines = text.split("\n")
    line = int(rng.integers(len(lines)))
    lines[line] = lines[line] + ",1" if rng.random() < 0.5 else lines[line].rpartition(",")[0]
    return "\n".join(lines)


def other_schema(rng, text):
    lines = text.split("\n")
    middle = int(rng.integers(1, len(lines)))
    odd = [lines[0], "x,y,z\n1,2,3", '{"x": 1}', "# a comment", '{"state": [1, 2], "action": 0}']
    return "\n".join([*lines[:middle], str(rng.choice(odd)), *lines[middle:]])


def cut_off(rng, text):
    return text[: int(rng.integers(len(text)))]


def a_letter(rng, text):
    place = int(rng.integers(len(text)))
    return text[:place] + str(rng.choice(list('",;:{}[]\0 \n\téx7-.'))) + text[place + 1 :]


OF_TEXT = [ragged, ragged, other_schema, cut_off, a_letter]


def a_bit(rng, text):
    data = bytearray(text.encode())
    data[int(rng.integers(len(data)))] ^= 1 << int(rng.integers(8))
    return bytes(data)


def no_bytes(rng, text):
    return b"" if rng.random() < 0.5 else bytes(rng.integers(0, 256, 200, dtype=np.uint8))


OF_BYTES = [a_bit, a_bit, no_bytes]


def mutated(seed):
    """The name of a mutation, the ending of a file, and what the file holds."""
    rng = np.random.default_rng(seed)
    rows = [dict(row) for row in episode_rows(6, seed % 7)]
    ending = str(rng.choice([".csv", ".jsonl"]))
    kinds = [*OF_ROWS, *OF_TEXT, *OF_BYTES]
    mutation = kinds[seed % len(kinds)]
    if mutation in OF_ROWS:
        rows = mutation(rng, rows)
    text = as_csv(rows) if ending == ".csv" else as_lines(rows)
    if mutation in OF_TEXT:
        text = mutation(rng, text)
    data = mutation(rng, text) if mutation in OF_BYTES else text.encode()
    return mutation.__name__, ending, data


def as_csv(rows):
    file = io.StringIO()
    writer = csv.DictWriter(file, [*rows[0]], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


def as_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


# The plain reader ------------------------------------------------------------------------------


def plainly_read(ending, data):
    """The transitions of a file in which nothing is wrong."""
    try:
        text = data.decode()
    except UnicodeError as error:
        raise Refused from error
    rows = _csv_rows(text) if ending == ".csv" else _line_rows(text)
    if rows and isinstance(rows[0], dict):
        absent = {*NAMES} - {*rows[0]}
        if absent and absent <= OPTIONAL and all({*row} == {*rows[0]} for row in rows):
            raise AnotherKind
        odd = {"stock": _is_word, "terminated": "no".__eq__, "truncated": "no".__eq__}
        if any(all(test(row.get(name)) is True for row in rows) for name, test in odd.items()):
            raise AnotherKind
    found = [_checked(row) for row in rows]
    if not found:
        raise Refused
    names = [row["episode"] for row in found]
    order = sorted(range(len(found)), key=lambda i: (names.index(names[i]), found[i]["time"]))
    found = [found[i] for i in order]
    for now, after in pairwise(found):
        ended = now["time"] == after["time"] or now["terminated"] or now["truncated"]
        if now["episode"] == after["episode"] and ended:
            raise Refused
    words, actions = (sorted({row[name] for row in found}) for name in ("weekday", "action"))
    for names in (words, actions):
        if [word.lower() for word in names] == ["none"]:
            raise AnotherKind
        if any(NO_WORD.fullmatch(word) for word in names):
            raise (AnotherKind if all(NO_WORD.fullmatch(word) for word in names) else Refused)
    return transitions_of_rows(found, words, actions)


def _csv_rows(text):
    lines = [line for line in csv.reader(io.StringIO(text, newline=""), strict=True) if line]
    if not lines or any(len(line) != len(lines[0]) for line in lines):
        raise Refused
    names = [name.lower() for name in lines[0]]
    return [dict(zip(names, line, strict=True)) for line in lines[1:]]


def _line_rows(text):
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise Refused from error


def _checked(row):
    if not isinstance(row, dict) or not {*NAMES} <= {*row}:
        raise Refused
    if {*NAMES} < {*row}:
        raise AnotherKind
    checked = {}
    for name in ("time", "stock", "reward"):
        checked[name] = _number(row[name])
    for name in ("terminated", "truncated"):
        word = str(row[name]).strip().lower()
        if word not in ("true", "false"):
            raise Refused
        checked[name] = word == "true"
    for name in ("weekday", "action", "episode"):
        checked[name] = str(row[name]).strip()
        if not checked[name] or row[name] is None:
            raise Refused
    return checked


def _is_word(value):
    return isinstance(value, str) and bool(value.strip()) and not NO_WORD.fullmatch(value.strip())


def _number(value):
    text = str(value).strip()
    if isinstance(value, bool) or not NUMBER.fullmatch(text) or not math.isfinite(float(text)):
        raise Refused
    return float(text)
