"""Tables as chunks of transitions: what Parquet files and tables in memory share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from rblspi.datasets.columns import Columns, DataError
from rblspi.datasets.decoding import BadRows, Decoder
from rblspi.transitions import Transitions

#: rows of a chunk: large enough to be fast, small enough to be forgotten quickly
ROWS = 2**17


class Batch(NamedTuple):
    """Some rows of a table."""

    rows: Any  # pyarrow.RecordBatch
    source: str
    first_row: int


class TabularData:
    """Transitions in the rows of tables, to be gone through again and again.

    A subclass says where batches come from.

    Parameters
    ----------
    columns : Columns, optional
        Which columns hold what; the usual names unless given.
    actions : int, optional
        How many there are, so that unknown ones are found.
    skip_bad : bool
        Leave bad rows out and count them in `bad`; otherwise the first is an error.

    Attributes
    ----------
    bad : BadRows
        Those of the latest pass.
    """

    def __init__(
        self, columns: Columns | None = None, actions: int | None = None, skip_bad: bool = False
    ) -> None:
        self.columns = columns or Columns()
        self.actions = actions
        self.skip_bad = skip_bad
        self.bad = BadRows()
        self._dimensions: int | None = None  # of states in lists, known from the first pass on

    @property
    def size(self) -> int:
        """Rows, bad ones included."""
        raise NotImplementedError

    def _names(self) -> tuple[list[str], str]:
        """All columns, and what to call the table that has them."""
        raise NotImplementedError

    def _batches(self, wanted: list[str]) -> Iterator[Batch]:
        """The rows, with these columns."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Transitions]:
        """Go through all transitions, in chunks."""
        names, source = self._names()
        found = self.columns.found_in(names, source)
        decoder = Decoder(found, self.actions, self._dimensions, self.skip_bad)
        self.bad = decoder.bad
        wanted = list(dict.fromkeys(name for part in found.values() for name in part))
        for rows, place, first_row in self._batches(wanted):
            chunk = decoder.decode(rows, place, first_row)
            self._dimensions = decoder.dimensions
            if chunk is not None:
                yield chunk


class TableData(TabularData):
    """Transitions in the rows of a pandas or Arrow table.

    Parameters
    ----------
    table : pandas.DataFrame or pyarrow.Table
    columns, actions, skip_bad
        As for `TabularData`.
    name : str
        What error messages call it.
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
        """Rows, bad ones included."""
        return int(self._table.num_rows)

    def _names(self) -> tuple[list[str], str]:
        return list(self._table.column_names), self.name

    def _batches(self, wanted: list[str]) -> Iterator[Batch]:
        first_row = 0
        for batch in self._table.select(wanted).to_batches(max_chunksize=ROWS):
            yield Batch(batch, self.name, first_row)
            first_row += batch.num_rows


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
    """A column of pandas for Arrow; NaN is a value there, and stays one."""
    import pyarrow as pa

    try:
        return pa.array(series, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(f"{where}: {error}") from error
