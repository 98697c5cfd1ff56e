"""Writing transitions to a Parquet file, which gets its name when it is complete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rblspi.core.files import replacing
from rblspi.data.sources import METADATA
from rblspi.data.transitions import Transitions


class ParquetWriter:
    """Writes chunks of transitions to a Parquet file that `read_log` reads.

    Use it as a context manager; after an error there is no file.

    Parameters
    ----------
    path : path
    metadata : mapping, optional
        How the transitions were collected, as plain data.
    """

    def __init__(
        self, path: str | PathLike[str], metadata: Mapping[str, Any] | None = None
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        self._metadata = {METADATA: json.dumps(dict(metadata or {})).encode()}
        self._stack = ExitStack()
        self._writer: Any = None

    def write(self, transitions: Transitions) -> None:
        """Append a chunk of transitions as one row group."""
        columns = {
            **_states("state", transitions.observations),
            "action": transitions.actions,
            "reward": transitions.rewards,
            **_states("next_state", transitions.next_observations),
            "terminated": transitions.terminated,
            "truncated": transitions.truncated,
        }
        allowed = transitions.next_allowed
        if allowed is not None:
            columns |= _states("next_allowed", allowed)
        elapsed = transitions.elapsed
        if elapsed is not None:
            columns["elapsed"] = elapsed
        table = pa.table(columns)
        if self._writer is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            schema = table.schema.with_metadata(self._metadata)
            temporary = self._stack.enter_context(replacing(self.path))
            options = {"compression": "snappy", "use_dictionary": ["action"]}
            self._writer = self._stack.enter_context(
                pq.ParquetWriter(temporary, schema, write_page_checksum=True, **options)
            )
        self._writer.write_table(table)
        self.rows += table.num_rows

    def __enter__(self) -> Self:
        """Return the writer; the file is opened by the first `write`."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Give the file its name, or remove it after an error."""
        self._stack.__exit__(*error)


def _states(name: str, observations: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """One column for each component of a state."""
    if observations.ndim == 1:
        return {name: observations}
    flat = observations.reshape(len(observations), -1)
    return {f"{name}_{i}": np.ascontiguousarray(flat[:, i]) for i in range(flat.shape[1])}
