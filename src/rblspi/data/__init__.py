"""Logged transitions: reading, checking and writing them.

Estimators accept `Transitions` (arrays), whatever `read_log` reads (files and tables of any form),
`MinariData`, and `DaskData` (what a cluster reads).

Data live in partitions, such as the row groups of a file; they are read in chunks and computed
with in batches.
"""

from rblspi.data.columns import Columns, DataError
from rblspi.data.dask_data import DaskData
from rblspi.data.dataset import BadRows, Dataset
from rblspi.data.encoding import Encoding
from rblspi.data.log import Log, read_log
from rblspi.data.minari_ import MinariData
from rblspi.data.transitions import Transitions
from rblspi.data.writer import ParquetWriter

__all__ = [
    "BadRows",
    "Columns",
    "DaskData",
    "DataError",
    "Dataset",
    "Encoding",
    "Log",
    "MinariData",
    "ParquetWriter",
    "Transitions",
    "read_log",
]
