"""Tables in memory as chunks of transitions, and what they share with Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rblspi.data.columns import Columns, DataError
from rblspi.data.decoding import BadRows, Decoder, TableChunk
from rblspi.data.transitions import Transitions

#: rows of a chunk: enough to be fast, and few enough to take little memory
ROWS = 2**17


class TabularData:
    """Transitions in the rows of tables, which can be iterated over any number of times.

    Subclasses define where the chunks of the table come from.

    Parameters
    ----------
    columns : Columns, optional
        Which columns hold which field; by default they are found by their usual names.
    actions : int, optional
        The number of actions; if it is given, a larger action is an error.
    skip_bad : bool
        Whether to skip bad rows and count them in `bad`. By default a bad row is an error.

    Attributes
    ----------
    bad : BadRows
        The bad rows of the latest pass.
    """

    def __init__(
        self, columns: Columns | None = None, actions: int | None = None, skip_bad: bool = False
    ) -> None:
        self.columns = columns or Columns()
        self.actions = actions
        self.skip_bad = skip_bad
        self.bad = BadRows()
        self._dimensions: int | None = None  # the length of states that are lists, once known

    @property
    def size(self) -> int:
        """The number of rows, including bad ones."""
        raise NotImplementedError

    def _names(self) -> tuple[list[str], str]:
        """The names of all columns, and the name of the table in error messages."""
        raise NotImplementedError

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        """All rows, reduced to these columns."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over all transitions, in chunks."""
        names, source = self._names()
        found = self.columns.found_in(names, source)
        decoder = Decoder(found, self.actions, self._dimensions, self.skip_bad)
        self.bad = decoder.bad
        wanted = list(dict.fromkeys(name for columns in found.values() for name in columns))
        for chunk in self._chunks(wanted):
            transitions = decoder.decode(chunk)
            self._dimensions = decoder.dimensions
            if transitions is not None:
                yield transitions


class TableData(TabularData):
    """Transitions in the rows of a pandas or Arrow table.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.Table
    columns, actions, skip_bad
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
        super().__init__(columns, actions, skip_bad)
        self.name = name
        self._table = _as_arrow(table, name)

    @property
    def size(self) -> int:
        """The number of rows, including bad ones."""
        return int(self._table.num_rows)

    def _names(self) -> tuple[list[str], str]:
        return list(self._table.column_names), self.name

    def _chunks(self, wanted: list[str]) -> Iterator[TableChunk]:
        first_row = 0
        for rows in self._table.select(wanted).to_batches(max_chunksize=ROWS):
            yield TableChunk(rows, self.name, first_row)
            first_row += rows.num_rows


def _as_arrow(table: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "columns"):
        raise TypeError(
            f"{name} of type {type(table).__name__} is neither a pandas nor an Arrow table"
        )
    arrays = {str(column): _column(table[column], f"{name}, column {column}") for column in table}
    return pa.table(arrays)


def _column(series: Any, where: str) -> Any:
    """A pandas column as an Arrow array; NaN stays a value and does not become null."""
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{where}: {error}") from error
