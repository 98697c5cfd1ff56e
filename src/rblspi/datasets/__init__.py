"""Where logged transitions come from, and how they are written down.

Estimators take any of these: `Transitions` themselves for arrays, `TableData` for pandas and
Arrow, `ParquetData` for files larger than memory, `MinariData`.
"""

from rblspi.datasets.collect import Collected, collect
from rblspi.datasets.columns import Columns, DataError
from rblspi.datasets.decoding import BadRows
from rblspi.datasets.minari_ import MinariData
from rblspi.datasets.parquet import ParquetData
from rblspi.datasets.tables import TableData
from rblspi.datasets.writer import ParquetWriter

__all__ = [
    "BadRows",
    "Collected",
    "Columns",
    "DataError",
    "MinariData",
    "ParquetData",
    "ParquetWriter",
    "TableData",
    "collect",
]
