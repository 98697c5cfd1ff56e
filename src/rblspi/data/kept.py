"""Transitions that are kept for many passes: in memory, or in a temporary Parquet file."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from rblspi.data.columns import Columns
from rblspi.data.parquet import ParquetData
from rblspi.data.transitions import Transitions
from rblspi.data.writer import ParquetWriter


@dataclass(frozen=True)
class Part:
    """A partition of the data, for a worker of a cluster."""

    chunks: Iterable[Transitions]
    size: int

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the chunks."""
        return iter(self.chunks)


class Kept:
    """Chunks of transitions, each of which is a partition."""

    def __init__(self, chunks: Iterable[Transitions], in_memory: bool) -> None:
        self.size, self.actions, self.timed = 0, 0, False
        self.shape: tuple[int, ...] = ()  # of an observation
        self.chunks: Iterable[Transitions]
        if in_memory:
            self.chunks = list(self._counted(chunks))
            return
        folder = Path(mkdtemp(prefix="rblspi-"))
        remove = weakref.finalize(self, shutil.rmtree, folder, True)
        with ParquetWriter(folder / "log.parquet") as writer:
            for chunk in self._counted(chunks):
                writer.write(chunk)
        columns = Columns(elapsed="elapsed", discount_per=1.0) if self.timed else None
        self.chunks = []
        if self.size:
            data = ParquetData(folder, columns)
            remove.detach()
            weakref.finalize(data, shutil.rmtree, folder, True)  # also used by who iterates
            self.chunks = Reshaped(data, self.shape)

    def _counted(self, chunks: Iterable[Transitions]) -> Iterator[Transitions]:
        for chunk in chunks:
            self.size += chunk.size
            self.actions = max(self.actions, 1 + int(chunk.actions.max()))
            self.shape = chunk.observations.shape[1:]
            self.timed = chunk.elapsed is not None
            yield chunk

    def partitions(self) -> list[Part]:
        """One partition for every chunk."""
        if isinstance(self.chunks, Reshaped):
            parts = self.chunks.data.partitions()
            return [Part(Reshaped(part, self.shape), part.size) for part in parts]
        return [Part([chunk], chunk.size) for chunk in self.chunks]


@dataclass(frozen=True)
class Reshaped:
    """Transitions whose observations get their shape back, which a file does not keep."""

    data: Any
    shape: tuple[int, ...]

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the chunks."""
        for chunk in self.data:
            yield replace(
                chunk,
                observations=chunk.observations.reshape(-1, *self.shape),
                next_observations=chunk.next_observations.reshape(-1, *self.shape),
            )
