"""Logged transitions: reading, checking and writing them.

Estimators accept `Transitions` (arrays), whatever `read_log` reads (files and tables of any form),
`MinariData`, and `DaskData` (what a cluster reads).

Data live in partitions, such as the row groups of a file; they are read in chunks and computed
with in batches. The modules that need Polars and Arrow are imported on demand.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rblspi.data.columns import Columns, DataError
from rblspi.data.dask_data import DaskData
from rblspi.data.dataset import BadRows, Dataset
from rblspi.data.encoding import Encoding
from rblspi.data.minari_ import MinariData
from rblspi.data.transitions import Transitions

if TYPE_CHECKING:
    from rblspi.data.log import Log, read_log
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

_ON_DEMAND = {"Log": "log", "read_log": "log", "ParquetWriter": "writer"}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module 'rblspi.data' has no attribute {name!r}")
    try:
        return getattr(import_module(f"rblspi.data.{_ON_DEMAND[name]}"), name)
    except ImportError as error:
        raise ImportError("logs need Polars and Arrow: pip install 'rblspi[data]'") from error


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
