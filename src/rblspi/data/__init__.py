"""Logged transitions: reading, checking and writing them.

Estimators accept `Transitions` (arrays), whatever `read_log` reads (files and tables of any form),
`TableData` and `ParquetData` (rows of transitions in numbers), `MinariData`, and `DaskData` (what a
cluster reads).

Data live in partitions, such as the row groups of a file; they are read in chunks and computed
with in batches.
"""

from rblspi.data.columns import Columns, DataError
from rblspi.data.dask_data import DaskData
from rblspi.data.decoding import BadRows
from rblspi.data.encoding import Encoding
from rblspi.data.log import LogData, read_log
from rblspi.data.log_and_decisions import LogAndDecisions
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
    "Encoding",
    "LogAndDecisions",
    "LogData",
    "MinariData",
    "ParquetData",
    "ParquetWriter",
    "TableData",
    "Transitions",
    "read_log",
]
