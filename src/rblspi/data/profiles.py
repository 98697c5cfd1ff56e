"""What the values of a column are: numbers, words, dates or lists, judged by all of them.

Numbers and dates in text count as such. Words such as NA stand for missing values; so does None
in a column of numbers, while it may be a name in a column of words.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from rblspi.data.columns import DataError
from rblspi.data.encoding import MISSING, NONE, listed
from rblspi.data.sources import Chunk
from rblspi.data.values import is_list, is_text, numbers_of, plain, words_of

#: text that is a whole number, and text that is a date
WHOLE = r"^[+-]?\d+$"
DATE = r"^\d{4}-\d\d-\d\d([T ].*)?$"
#: different words of a column that are counted; a column of more is not one of names
MOST_WORDS = 1000


class Place(NamedTuple):
    """A value in a table."""

    table: str
    row: int
    value: Any

    def __str__(self) -> str:
        return f"{self.table}, row {self.row}"


@dataclass
class Profile:
    """A summary of all values of a column."""

    name: str
    as_words: bool = False  # whether all values are names, whatever they look like
    kinds: Counter[str] = field(default_factory=Counter)  # values of each kind
    first: dict[str, Place] = field(default_factory=dict)  # the first value of each kind
    words: Counter[str] = field(default_factory=Counter)  # about `MOST_WORDS` different ones
    fractions: int = 0  # numbers that are not whole
    low: float = math.inf
    high: float = -math.inf

    def add(self, chunk: Chunk) -> None:
        """Add the values of a chunk."""
        column = plain(chunk.rows[self.name])
        column = words_of(column) if self.as_words or is_text(column) else column
        values = _kinds(column, self.as_words)
        total = values.group_by("kind").agg(pl.col("count").sum(), pl.col("row").min())
        for kind, count, row in total.rows():
            self.kinds[kind] += count
            place = Place(chunk.table, chunk.first_row + row, chunk.rows[self.name][row])
            self.first.setdefault(kind, place)
        if is_text(column):
            self._count(values.filter(pl.col("kind").is_in(["word", "missing"])))
        if any(self.kinds[kind] for kind in ("whole", "number", "flag")):
            numbers = numbers_of(column)
            numbers = numbers[np.isfinite(numbers)]
            self.fractions += int((numbers != np.floor(numbers)).sum())
            self.low = min(self.low, float(numbers.min(initial=math.inf)))
            self.high = max(self.high, float(numbers.max(initial=-math.inf)))

    def _count(self, values: pl.DataFrame) -> None:
        for word, count in values.drop_nulls("value").select("value", "count").iter_rows():
            is_name = self.as_words or word.lower() not in MISSING
            if is_name and (word in self.words or len(self.words) <= MOST_WORDS):
                self.words[word] += count

    @property
    def kind(self) -> str:
        """What the column holds; "mixed" if the values are of several kinds."""
        found = {kind for kind in self.kinds if kind != "missing"}
        if found == {"whole", "number"}:
            return "number"
        if len(found) == 1:
            return found.pop()
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
        if self.kind != "mixed":
            return
        usual = max((k for k in self.kinds if k != "missing"), key=self.kinds.__getitem__)
        numbers = {"whole", "number"}
        odd = next(
            k
            for k in sorted(self.first, key=lambda k: self.kinds[k])
            if k not in ("missing", usual) and not {k, usual} <= numbers
        )
        article = {"whole": "a number", "other": "of another type"}.get(odd, f"a {odd}")
        advice = "correct it" + f", or say categorical={self.name} if all of them are names" * names
        self.refuse(odd, f"is {article}, but other values are {_PLURALS[usual]}: {advice}")

    def refuse(self, kind: str, what: str) -> None:
        """Raise an error that names the first value of this kind."""
        place = self.first[kind]
        raise DataError(f"{place}, column {self.name}: {place.value!r} {what}")

    def __str__(self) -> str:
        """The values in a few words."""
        kind = self.kind
        text = _PLURALS[kind]
        if kind in ("whole", "number"):
            text += f", {self.low:.6g} to {self.high:.6g}"
        elif kind == "word":
            text += f": {listed(sorted(self.words))}"
        return text + (f"; {self.missing:,} missing" if self.missing else "")


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


def _kinds(column: pl.Series, as_words: bool) -> pl.DataFrame:
    """The values of a column, each with their kind, number and first row; text only once."""
    values = pl.DataFrame({"value": column}).with_row_index("row").with_columns(count=1)
    kind, missing = column.dtype, pl.col("value").is_null()
    if is_text(column):
        numbers = column.cast(pl.Float64, strict=False)
        if as_words or numbers.null_count() > column.null_count():
            values = values.group_by("value").agg(pl.col("count").sum(), pl.col("row").min())
        found = pl.lit("word") if as_words else _kind_of_text()
    elif kind.is_float():
        found, missing = pl.lit("number"), missing | pl.col("value").is_nan()
    elif kind.is_integer() or kind == pl.Boolean or kind == pl.Datetime or is_list(kind):
        names = {pl.Boolean: "flag", pl.Datetime: "date"}
        found = pl.lit("list" if is_list(kind) else names.get(kind.base_type(), "whole"))
    else:
        found = pl.lit("other")
    return values.with_columns(kind=pl.when(missing).then(pl.lit("missing")).otherwise(found))


def _kind_of_text() -> pl.Expr:
    text = pl.col("value")
    lower = text.str.to_lowercase()
    kinds = {
        "missing": lower.is_in([*MISSING, NONE]),
        "whole": text.str.contains(WHOLE),
        "number": text.cast(pl.Float64, strict=False).is_not_null(),
        "date": text.str.contains(DATE),
        "flag": lower.is_in(["true", "false"]),
    }
    found = [pl.when(holds).then(pl.lit(kind)) for kind, holds in kinds.items()]
    return pl.coalesce(*found, pl.lit("word"))
