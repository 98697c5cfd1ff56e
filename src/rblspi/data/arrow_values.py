"""Values in Arrow arrays as what they mean: numbers, words, flags, times."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rblspi.core.types import Array

#: text that is a number, and text that is a number without being finite
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INFINITE = r"^[+-]?(inf|infinity)$"
#: text that is a flag; a column has words of one pair
FLAGS = (("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("1", "0"), ("1.0", "0.0"))


class TableChunk(NamedTuple):
    """Consecutive rows of a table."""

    rows: Any  # pyarrow.RecordBatch
    source: str  # the name of the table in error messages
    first_row: int  # the number of the first row in the table


def plain(column: Any) -> Any:
    """An Arrow array of a plain type: numbers, text, flags, dates or lists."""
    import pyarrow as pa
    from pyarrow import types

    kind = column.type
    if isinstance(kind, pa.ExtensionType):
        return plain(column.storage)
    if types.is_dictionary(kind):
        values = plain(column.dictionary)  # text as Polars has it cannot be decoded by itself
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    if types.is_large_string(kind) or str(kind) == "string_view":
        return column.cast(pa.string())
    if types.is_decimal(kind) or types.is_float16(kind):
        return column.cast(pa.float64())
    if types.is_duration(kind):
        ticks = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        in_a_second = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        return pa.array(np.asarray(ticks, np.float64) / in_a_second)
    return column


def is_text(column: Any) -> bool:
    """Whether an Arrow array holds text."""
    from pyarrow import types

    return bool(types.is_string(column.type))


def is_whole(kind: Any) -> bool:
    """Whether the values of this Arrow type are whole numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind))


def is_date(column: Any) -> bool:
    """Whether an Arrow array holds dates or times of day."""
    from pyarrow import types

    return bool(types.is_timestamp(column.type) or types.is_date(column.type))


def is_duration(kind: Any) -> bool:
    """Whether the values of this Arrow type are time differences."""
    from pyarrow import types

    return bool(types.is_duration(kind))


def as_text(column: Any) -> Any:
    """The values of an Arrow array as words, without spaces around them; None where there is none.

    Whole numbers have no point, so that 2 and 2.0 are the same name.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(column):
        trimmed = pc.utf8_trim_whitespace(column)
        return pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
    if is_whole(column.type):
        return column.cast(pa.string())
    return pa.array([_word(value) for value in column.to_pylist()], pa.string())


def _word(value: Any) -> str | None:
    if value is None or value != value:  # NaN
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def numbers_of(column: Any) -> Array:
    """The numbers in an Arrow array as float64; NaN where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    if is_text(column):
        trimmed = as_text(column)
        try:  # fails where anything else is among the numbers
            return np.asarray(trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False), np.float64)
        except pa.ArrowInvalid:
            pass
        for word, number in (("true", "1"), ("false", "0")):
            trimmed = pc.if_else(pc.equal(pc.utf8_lower(trimmed), word), number, trimmed)
        pattern = f"(?i){NUMBER}|{INFINITE}"
        good = pc.fill_null(pc.match_substring_regex(trimmed, pattern), False)
        column = pc.if_else(good, trimmed, pa.scalar(None, pa.string())).cast(pa.float64())
    elif not (types.is_integer(column.type) or types.is_floating(column.type)):
        if not types.is_boolean(column.type):
            return np.full(len(column), np.nan)
        column = column.cast(pa.int8())
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def flags_of(column: Any) -> Array:
    """The flags in an Arrow array as 0 and 1; NaN where there is none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if is_text(column):
        words = pc.utf8_lower(as_text(column))
        true, false = (
            np.asarray(pc.fill_null(pc.is_in(words, value_set=pa.array(values)), False))
            for values in zip(*FLAGS, strict=True)
        )
        return np.where(true, 1.0, np.where(false, 0.0, np.nan))
    values = numbers_of(column)
    return np.where((values == 0.0) | (values == 1.0), values, np.nan)


def times_of(column: Any) -> Array:
    """Times in an Arrow array: numbers as they are, dates in microseconds; NaN where there is none.

    Microseconds are whole numbers, whose differences are exact.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    numbers = numbers_of(column)
    if is_text(column) and np.isnan(numbers).any():
        text = as_text(column)
        for kind in (pa.timestamp(u, z) for u in ("us", "ns") for z in (None, "UTC")):
            try:
                return times_of(pc.cast(text, kind))
            except pa.ArrowInvalid:
                continue
    if not is_date(column):
        return numbers
    exact = pa.timestamp("us", getattr(column.type, "tz", None))
    ticks = column.cast(exact, safe=False).cast(pa.int64())  # without nanoseconds
    return np.asarray(ticks.to_numpy(zero_copy_only=False), np.float64)


def is_list(kind: Any) -> bool:
    """Whether the values of this Arrow type are lists."""
    from pyarrow import types

    tests = (types.is_list, types.is_large_list, types.is_fixed_size_list)
    return any(test(kind) for test in tests)


def is_number(kind: Any) -> bool:
    """Whether the values of this Arrow type are numbers; a column without values may be."""
    from pyarrow import types

    return any(test(kind) for test in (types.is_integer, types.is_floating, types.is_null))
