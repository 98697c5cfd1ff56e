"""Writing transitions to a Parquet file, which appears under its name once it is whole."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from os import PathLike, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rblspi.datasets.parquet import METADATA
from rblspi.transitions import Transitions


class ParquetWriter:
    """Writes transitions, chunk by chunk, as the columns that `ParquetData` expects.

    Use as a context: an error leaves no file behind.

    Parameters
    ----------
    path : path
    metadata : mapping, optional
        Plain data on how the transitions were collected.
    """

    def __init__(
        self, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        self._metadata = {METADATA: json.dumps(dict(metadata or {})).encode()}
        self._temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        self._writer: Any = None

    def write(self, transitions: Transitions, truncated: NDArray[np.bool_] | None = None) -> None:
        """Append transitions as one row group, with whether a limit of time cut the episode."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {
            **_states("state", transitions.observations),
            "action": transitions.actions,
            "reward": transitions.rewards,
            **_states("next_state", transitions.next_observations),
            "terminated": transitions.terminated,
        }
        if truncated is not None:
            columns["truncated"] = truncated
        table = pa.table(columns)
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            schema = table.schema.with_metadata(self._metadata)
            self._writer = pq.ParquetWriter(
                self._temporary, schema, compression="snappy", use_dictionary=["action"]
            )
        self._writer.write_table(table)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Give the file its name, or remove it if something went wrong."""
        if self._writer is None:
            return
        self._writer.close()
        if kind is None:
            replace(self._temporary, self.path)
        else:
            self._temporary.unlink(missing_ok=True)


def _states(name: str, observations: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """One column for each number of a state; a bare number is one column."""
    if observations.ndim == 1:
        return {name: observations}
    flat = observations.reshape(len(observations), -1)
    return {f"{name}_{i}": np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1])}
