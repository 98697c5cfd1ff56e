"""What the values of a column are: numbers, words, dates or lists, judged by all of them.

Numbers and dates in text count as such. Words such as NA stand for missing values; so does None
in a column of numbers, while it may be a name in a column of words.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from rblspi.core.types import Mask
from rblspi.data.arrow_values import (
    INFINITE,
    NUMBER,
    TableChunk,
    as_text,
    is_date,
    is_list,
    is_text,
    numbers_of,
    plain,
)
from rblspi.data.columns import DataError

Kind = Literal["nothing", "whole", "number", "flag", "word", "date", "list", "other", "mixed"]

#: text that is a whole number or a date, and words that are no value in a column of numbers
WHOLE = r"^[+-]?\d+$"
DATE = r"^\d{4}-\d\d-\d\d([T ].*)?$"
MISSING = ("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null")
NONE = "none"
#: different words of a column that are counted; a column of more is not one of names
MOST_WORDS = 1000


class Place(NamedTuple):
    """A value in a table."""

    source: str
    row: int
    value: Any

    def __str__(self) -> str:
        return f"{self.source}, row {self.row}"


@dataclass
class Profile:
    """A summary of all values of a column."""

    name: str
    as_words: bool = False  # whether all values are names, whatever they look like
    rows: int = 0
    kinds: Counter[str] = field(default_factory=Counter)  # values of each kind
    first: dict[str, Place] = field(default_factory=dict)  # the first value of each kind
    words: Counter[str] = field(default_factory=Counter)  # at most `MOST_WORDS` different ones
    low: float = math.inf
    high: float = -math.inf

    def add(self, chunk: TableChunk) -> None:
        """Add the values of a chunk."""
        column = plain(chunk.rows.column(self.name))
        self.rows += len(column)
        if self.as_words:
            column = as_text(column)
        for kind, mask in _kinds(column, self.as_words).items():
            if mask.any():
                self.kinds[kind] += int(mask.sum())
                row = int(mask.argmax())
                place = Place(chunk.source, chunk.first_row + row, column[row].as_py())
                self.first.setdefault(kind, place)
                if kind in ("word", "missing") and is_text(column):
                    self._count(column, mask)
        if any(self.kinds[kind] for kind in ("whole", "number", "flag")):
            self._measure(column)

    def _count(self, column: Any, mask: Mask) -> None:
        import pyarrow as pa

        for entry in column.filter(pa.array(mask)).value_counts().to_pylist():
            word = str(entry["values"] or "").strip()
            if word.lower() in MISSING and not self.as_words:
                continue
            if word and (word in self.words or len(self.words) <= MOST_WORDS):
                self.words[word] += entry["counts"]

    def _measure(self, column: Any) -> None:
        values = numbers_of(column)
        values = values[np.isfinite(values)]
        if len(values):
            self.low = min(self.low, float(values.min()))
            self.high = max(self.high, float(values.max()))

    @property
    def kind(self) -> Kind:
        """What the column holds; "mixed" if the values are of several kinds."""
        found = {kind for kind in self.kinds if kind != "missing"}
        if found == {"whole", "number"}:
            return "number"
        if len(found) == 1:
            return found.pop()  # type: ignore[return-value]
        return "mixed" if found else "nothing"

    @property
    def missing(self) -> int:
        """Rows without a value."""
        names = sum(n for word, n in self.words.items() if word.lower() == NONE)
        return self.kinds["missing"] - names * (self.kind == "word" and not self.as_words)

    def require_one_kind(self, names: bool = True) -> None:
        """Raise an error if the values are of several kinds, which names the first odd one.

        ``names`` says whether the values may be names.
        """
        if self.kind == "mixed":
            usual = max((k for k in self.kinds if k != "missing"), key=self.kinds.__getitem__)
            numbers = ("whole", "number")
            odd = next(
                k
                for k in sorted(self.first, key=lambda k: self.kinds[k])
                if k not in ("missing", usual) and not {k, usual} <= set(numbers)
            )
            place = self.first[odd]
            raise DataError(
                f"{place}, column {self.name}: {place.value!r} is {_ARTICLES[odd]}, but other "
                f"values are {_PLURALS[usual]}: correct it"
                + f", or say categorical={self.name} if all of them are names"
                * names
            )

    def __str__(self) -> str:
        """The values in a few words."""
        kind = self.kind
        text = _PLURALS[kind]
        if kind in ("whole", "number"):
            text += f", {self.low:.6g} to {self.high:.6g}"
        elif kind == "word":
            text += f": {listed(sorted(self.words))}"
        return text + (f"; {self.missing:,} missing" if self.missing else "")


_ARTICLES = {
    "whole": "a number",
    "number": "a number",
    "flag": "a flag",
    "word": "a word",
    "date": "a date",
    "list": "a list",
    "other": "of another type",
}
_PLURALS = {
    "nothing": "empty",
    "whole": "whole numbers",
    "number": "numbers",
    "flag": "true or false",
    "word": "words",
    "date": "dates",
    "list": "lists",
    "other": "of an unknown type",
    "mixed": "of several kinds",
}


def listed(words: list[str], most: int = 6) -> str:
    """Some of the words, and how many there are if these are not all."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[: most - 1])}, ... ({len(words):,})"


def _kinds(column: Any, as_words: bool) -> dict[str, Mask]:
    """Which rows hold a value of which kind."""
    import pyarrow.compute as pc
    from pyarrow import types

    null = np.asarray(column.is_null())
    if as_words:
        return {"missing": null, "word": ~null}
    if is_text(column):
        return _kinds_of_text(as_text(column))
    if types.is_floating(column.type):
        null = np.asarray(pc.fill_null(pc.is_nan(column), True))
        return {"missing": null, "number": ~null}
    if types.is_null(column.type):
        return {"missing": null}
    tests = {"whole": types.is_integer, "flag": types.is_boolean, "list": is_list}
    found = next((kind for kind, test in tests.items() if test(column.type)), "other")
    return {"missing": null, "date" if is_date(column) else found: ~null}


def _kinds_of_text(text: Any) -> dict[str, Mask]:
    """The kinds of text; those of every different one suffice, unless nearly all are numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        missing = np.isnan(text.cast(pa.float64()).to_numpy(zero_copy_only=False))
        whole = np.asarray(pc.fill_null(pc.match_substring_regex(text, WHOLE), False))
        return {"missing": missing, "whole": whole, "number": ~(missing | whole)}
    except pa.ArrowInvalid:
        encoded = text.dictionary_encode()
    places = np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))
    of_null = np.True_, np.False_
    return {
        kind: np.append(mask, of_null[kind != "missing"])[places]
        for kind, mask in _kinds_of_different(encoded.dictionary).items()
    }


def _kinds_of_different(text: Any) -> dict[str, Mask]:
    import pyarrow as pa
    import pyarrow.compute as pc

    def matches(pattern: str) -> Mask:
        return np.asarray(pc.fill_null(pc.match_substring_regex(text, f"(?i){pattern}"), False))

    whole, date = matches(WHOLE), matches(DATE)
    number = (matches(NUMBER) | matches(INFINITE)) & ~whole
    absent = pc.is_in(pc.utf8_lower(text), value_set=pa.array([*MISSING, NONE]))
    missing = np.asarray(pc.is_null(text)) | np.asarray(pc.fill_null(absent, False))
    flag = matches("^(true|false)$")
    word = ~(whole | number | date | flag | missing)
    found = {"whole": whole, "number": number, "date": date, "flag": flag, "word": word}
    return {"missing": missing, **found}
