"""Tables in memory as chunks of transitions, and what they share with Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from rblspi.data.arrow_values import TableChunk, is_duration
from rblspi.data.columns import Columns, DataError
from rblspi.data.decoding import BadRows, Decoder
from rblspi.data.periods import Period, PeriodLike, TimeKind
from rblspi.data.transitions import Transitions

#: rows of a chunk: enough to be fast, and few enough to take little memory
ROWS = 2**17


class TabularData:
    """Transitions in the rows of tables, which can be iterated over any number of times.

    Subclasses find the columns, and define where the chunks of the table come from.

    Parameters
    ----------
    columns : dict
        Maps the fields of a transition to the names of their columns.
    actions : int, optional
        The number of actions; if it is given, a larger action is an error.
    skip_bad : bool
        Whether to skip bad rows and count those of the latest pass in `bad`. By default a bad row
        is an error.
    discount_per, schema
        The time over which the discount applies once, and the types of the columns.
    """

    def __init__(
        self,
        columns: dict[str, tuple[str, ...]],
        actions: int | None,
        skip_bad: bool,
        discount_per: PeriodLike | None = None,
        schema: Any = None,
    ) -> None:
        self.columns, self.actions, self.skip_bad = columns, actions, skip_bad
        self.discount_per = discount_per
        self._period = 1.0 if discount_per is None else _period(columns, discount_per, schema)
        self.bad = BadRows()
        self._dimensions: int | None = None  # the length of states that are lists, once known

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        """All rows, reduced to these columns."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over all transitions, in chunks."""
        decoder = Decoder(self.columns, self.actions, self._dimensions, self.skip_bad, self._period)
        self.bad = decoder.bad
        wanted = list(dict.fromkeys(chain(*self.columns.values())))
        for chunk in self._chunks(wanted):
            transitions = decoder.decode(chunk)
            self._dimensions = decoder.dimensions
            if transitions is not None:
                yield transitions


def _period(columns: dict[str, tuple[str, ...]], discount_per: PeriodLike, schema: Any) -> float:
    """The time over which the discount applies once, in units of the column of elapsed time."""
    if "elapsed" not in columns:
        raise DataError(
            f"discount_per={discount_per}: rows are transitions, and nothing tells how long they "
            "take: name the column of the time until the next state with elapsed="
        )
    (name,) = columns["elapsed"]
    kind: TimeKind = "durations" if is_duration(schema.field(name).type) else "numbers"
    return Period.of(discount_per).units(kind, name)


class TableData(TabularData):
    """Transitions in the rows of a table in memory.

    Parameters
    ----------
    table : pandas.DataFrame, pyarrow.Table or anything that Arrow reads
        Such as a frame of Polars or a query of DuckDB: whatever has ``__arrow_c_stream__``.
    columns : Columns, optional
        Which columns hold which field; by default they are found by their usual names.
    actions, skip_bad
        As for `TabularData`.
    name : str
        The name of the table in error messages.
    """

    def __init__(
        self,
        table: Any,
        columns: Columns | None = None,
        actions: int | None = None,
        skip_bad: bool = False,
        name: str = "table",
    ) -> None:
        self.name = name
        self._table = as_arrow(table, name)
        chosen = columns or Columns()
        found = chosen.found_in(self._table.column_names, name)
        super().__init__(found, actions, skip_bad, chosen.discount_per, self._table.schema)

    @property
    def size(self) -> int:
        """The number of rows, including bad ones."""
        return int(self._table.num_rows)

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        first_row = 0
        for rows in self._table.select(wanted).to_batches(max_chunksize=ROWS):
            yield TableChunk(rows, self.name, first_row)
            first_row += rows.num_rows


def as_arrow(table: Any, name: str) -> Any:
    """A table of any package as an Arrow table."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "items") and hasattr(table, "__arrow_c_stream__"):
        return pa.table(table)
    if not (hasattr(table, "columns") and hasattr(table, "items")):
        raise TypeError(
            f"{name} of type {type(table).__name__} is neither a pandas nor an Arrow table"
        )
    arrays = []
    for label, series in table.items():
        try:
            arrays.append(pa.array(series, from_pandas=False))  # NaN does not become null
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise DataError(f"{name}, column {label}: {error}") from error
    return pa.table(arrays, names=[str(label) for label in table.columns])
