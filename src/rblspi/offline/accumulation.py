"""Passes over data of any size, here or on a cluster.

Data live in partitions, are read in chunks and computed with in batches: features exist for one
batch at a time, so the memory needed does not depend on the size of a chunk. The sums of chunks
and of partitions are merged in order, wherever they were computed; the results are therefore the
same to the last bit on a cluster and in one process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import cache, reduce
from os import PathLike
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import ThreadpoolController

from rblspi.core.types import Mask
from rblspi.data.columns import Columns
from rblspi.data.dataset import Chunks, Dataset
from rblspi.data.encoding import Naming
from rblspi.data.transitions import Transitions, concatenated
from rblspi.features import Features

Result = TypeVar("Result")

#: What estimators learn from: transitions, their columns, an iterable of chunks that can be
#: iterated over any number of times, or a log that `rblspi.data.read_log` reads.
Data: TypeAlias = Transitions | tuple[Any, ...] | Iterable[Transitions] | str | PathLike[str]

#: numbers in the features of a batch: 4 MB
BATCH = 2**19
#: transitions that choices and judgements look at
MOST_ROWS = 50_000


def chunks_of(data: Data, columns: Columns | None = None, names: Naming | None = None) -> Dataset:
    """The data in any of the accepted forms, for any number of passes.

    The columns and the names of a log are those of `rblspi.data.read_log`.
    """
    if isinstance(data, Transitions | tuple) and columns is not None:
        _require_elapsed(data, columns)
    if isinstance(data, Dataset):
        return data
    if isinstance(data, Transitions):
        return Chunks([data])
    if isinstance(data, tuple) and not any(isinstance(item, Transitions) for item in data):
        if len(data) not in (5, 6):
            needed = [field.name for field in fields(Transitions)][:6]
            raise ValueError(
                f"transitions has {len(data)} columns, but needs {', '.join(needed)} (the last may "
                "be omitted)"
            )
        return Chunks([Transitions.from_arrays(*data)])
    if _is_log(data):
        from rblspi.data import read_log

        return read_log(data, columns, names=names)
    if isinstance(data, Iterator):
        raise TypeError(
            "transitions is an iterator, which can be passed over only once: pass a list of "
            "chunks, or an object whose __iter__ starts from the beginning"
        )
    if isinstance(data, Iterable) and not isinstance(data, np.ndarray | dict):
        return Chunks(cast(Iterable[Transitions], data))
    raise TypeError(
        f"transitions of type {type(data).__name__} must be Transitions, their columns, or "
        "an iterable of Transitions"
    )


def _is_log(data: Data) -> bool:
    """Whether this is a file, or a table of any package."""
    if isinstance(data, str | PathLike) or hasattr(data, "__arrow_c_stream__"):
        return True
    return hasattr(data, "columns") and hasattr(data, "items")


def _require_elapsed(data: Transitions | tuple[Any, ...], columns: Columns) -> None:
    """Raise an error if nothing tells how long transitions in arrays took, and it matters."""
    timed = isinstance(data, Transitions) and data.elapsed is not None
    if columns.discount_per is not None and not timed:
        raise ValueError(
            f"discount_per={columns.discount_per}: arrays of transitions say how long these took, "
            "in units of that time, as Transitions(..., elapsed=)"
        )


def over_chunks(
    chunks: Iterable[Transitions],
    work: Callable[[Transitions], Result],
    merge: Callable[[Result, Result], Result],
) -> Result:
    """Apply a function to every chunk, here or on a cluster, and merge the results in order.

    Sums along episodes that go on in the next chunk merge, too, if a result says how what was
    carried into its chunk would have entered it, and what is carried on.
    """

    def over_partition(partition: Iterable[Transitions]) -> Result | None:
        return _merged((work(conformed(chunk)) for chunk in partition), merge)

    if isinstance(chunks, Dataset):
        result = _merged(chunks.map_partitions(over_partition), merge)
    else:
        result = over_partition(chunks)
    return not_empty(result, chunks)


def _merged(
    results: Iterable[Result | None], merge: Callable[[Result, Result], Result]
) -> Result | None:
    """Merge the results of chunks or partitions in order; None stands for an empty one."""
    present = (result for result in results if result is not None)
    first = next(present, None)
    return None if first is None else reduce(merge, present, first)


def first_chunks(chunks: Iterable[Transitions], rows: float = math.inf) -> list[Transitions]:
    """The first chunks, until they have so many transitions together."""
    taken: list[Transitions] = []
    for chunk in chunks:
        taken.append(conformed(chunk))
        if sum(part.size for part in taken) >= rows:
            break
    return not_empty(taken or None, chunks)


def first_rows(chunks: Iterable[Transitions]) -> Transitions:
    """The first transitions, as many as a choice or a judgement needs."""
    return concatenated(first_chunks(chunks, MOST_ROWS)).rows(0, MOST_ROWS)


def halves(log: Transitions) -> Mask:
    """Every other episode; every other segment of a long one."""
    half: Mask = log.segments() % 2 == 1
    return half


def not_empty(result: Result | None, chunks: Iterable[Transitions]) -> Result:
    """The result, unless there were no chunks; then the data may know of bad rows."""
    if result is None:
        reason = f"; {chunks.bad}" if isinstance(chunks, Dataset) and chunks.bad.count else ""
        raise ValueError(f"transitions has no chunks: at least one transition is needed{reason}")
    return result


def conformed(chunk: Transitions) -> Transitions:
    """A chunk whose columns have the right types and shapes."""
    if not isinstance(chunk, Transitions):
        raise TypeError(
            f"transitions has a chunk of type {type(chunk).__name__}, which must be Transitions"
        )
    return chunk.conformed()


def batch_rows(features: Features) -> int:
    """The number of rows in a batch."""
    return max(1, BATCH // features.size)


@cache
def _threads() -> ThreadpoolController:
    """The threads of BLAS; finding its libraries takes longer than a small pass."""
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """Compute with a single thread, which is enough for products of small matrices."""
    limits: AbstractContextManager[Any] = _threads().limit(limits=1, user_api="blas")
    return limits


def require_finite(*results: ArrayLike) -> None:
    """Raise an error if sums over transitions, or what follows from them, have overflowed."""
    if not all(np.isfinite(result).all() for result in results):
        raise ValueError(
            "the sums over the transitions overflow: rescale the rewards, for example by dividing "
            "them by the largest, or make the features smaller"
        )
