"""Logged transitions: reading, checking and writing them.

Estimators accept `Transitions` (arrays), `TableData` (pandas and Arrow), `ParquetData` (files that
may exceed the memory), `MinariData`, and `DaskData` (files that a cluster reads).

Data live in partitions, such as the row groups of a file; they are read in chunks and computed
with in batches.
"""

from rblspi.data.columns import Columns, DataError
from rblspi.data.dask_data import DaskData
from rblspi.data.decoding import BadRows
from rblspi.data.minari_ import MinariData
from rblspi.data.parquet import ParquetData
from rblspi.data.tables import TableData
from rblspi.data.transitions import Transitions
from rblspi.data.writer import ParquetWriter

__all__ = [
    "BadRows",
    "Columns",
    "DaskData",
    "DataError",
    "MinariData",
    "ParquetData",
    "ParquetWriter",
    "TableData",
    "Transitions",
]
