"""Values in columns as what they mean: numbers, words, flags, times. Text is read like the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from rblspi.core.types import Array

#: text that is a flag; a column has words of one pair
FLAGS = (("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("1", "0"), ("1.0", "0.0"))


def plain(column: pl.Series) -> pl.Series:
    """A column of a plain type: text, numbers, flags, dates or lists."""
    kind = column.dtype
    if isinstance(kind, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if kind.is_decimal() or kind.is_float():
        return column.cast(pl.Float64)
    if kind == pl.Duration:
        ticks = {"ms": 1e3, "us": 1e6, "ns": 1e9}[kind.time_unit]  # type: ignore[attr-defined]
        seconds = column.to_physical().cast(pl.Float64).fill_null(math.nan).to_numpy() / ticks
        return pl.Series(column.name, seconds)  # Polars would multiply by the reciprocal
    if kind == pl.Date:
        return column.cast(pl.Datetime("us"))
    if isinstance(kind, pl.Array):
        return column.arr.to_list()
    return column


def is_text(column: pl.Series) -> bool:
    """Whether a column holds text."""
    return column.dtype == pl.String


def is_list(kind: pl.DataType) -> bool:
    """Whether values of this type are lists."""
    return kind.is_nested() and hasattr(kind, "inner")


def is_number(kind: pl.DataType) -> bool:
    """Whether values of this type are numbers; a column without values may be."""
    return (kind.is_numeric() and not kind.is_decimal()) or kind == pl.Null


def words_of(column: pl.Series) -> pl.Series:
    """The values of a column as words, without spaces around them; null where there is none.

    Whole numbers have no point, so that 2 and 2.0 are the same name.
    """
    if is_text(column):
        trimmed = column.str.strip_chars()
        return trimmed.set(trimmed == "", None)
    if column.dtype.is_integer():
        return column.cast(pl.String)
    return pl.Series(column.name, [_word(value) for value in column], pl.String)


def _word(value: Any) -> str | None:
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def numbers_of(column: pl.Series) -> Array:
    """The numbers in a column as float64; NaN where there is none."""
    if is_text(column):
        words = words_of(column)
        column = words.cast(pl.Float64, strict=False)
        if column.null_count() > words.null_count():  # there may be flags, which count as numbers
            lower = words.str.to_lowercase()
            column = lower.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    elif not (is_number(column.dtype) or column.dtype == pl.Boolean):
        return np.full(len(column), np.nan)
    return column.cast(pl.Float64).fill_null(math.nan).to_numpy()


def flags_of(column: pl.Series) -> Array:
    """The flags in a column as 0 and 1; NaN where there is none."""
    if is_text(column):
        words = words_of(column).str.to_lowercase()
        true, false = (
            words.is_in(list(values)).fill_null(False).to_numpy()
            for values in zip(*FLAGS, strict=True)
        )
        return np.where(true, 1.0, np.where(false, 0.0, np.nan))
    values = numbers_of(column)
    return np.where((values == 0.0) | (values == 1.0), values, np.nan)


def times_of(column: pl.Series) -> Array:
    """Times in a column: numbers as they are, dates in microseconds; NaN where there is none.

    Microseconds are whole numbers, whose differences are exact.
    """
    numbers = numbers_of(column)
    if is_text(column) and np.isnan(numbers).any():
        column = _dates(words_of(column))
    if column.dtype != pl.Datetime:
        return numbers
    ticks = column.cast(pl.Datetime("us", column.dtype.time_zone))  # type: ignore[attr-defined]
    return ticks.to_physical().cast(pl.Float64).fill_null(math.nan).to_numpy()


def _dates(words: pl.Series) -> pl.Series:
    """Words as dates, if all of them are, with a time zone in all or in none."""
    for kind in (pa.timestamp(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")):
        try:
            return pl.Series(words.name, words.to_arrow().cast(pa.string()).cast(kind))
        except pa.ArrowInvalid:
            continue
    return words


def lists_of(column: pl.Series) -> pl.Series | None:
    """A column of lists of numbers; None if it has other values."""
    inner = getattr(column.dtype, "inner", None)
    return column.cast(pl.List(pl.Float64)) if inner is not None and is_number(inner) else None


def places_of(words: pl.Series, known: Sequence[str]) -> Array:
    """The place of every word among those that are known, as a float; NaN where it is none."""
    places = words.replace_strict(
        list(known), np.arange(len(known), dtype=np.float64), default=None, return_dtype=pl.Float64
    )
    return places.fill_null(math.nan).to_numpy()
