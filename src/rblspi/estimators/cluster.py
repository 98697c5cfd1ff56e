"""The same fit over a Dask cluster: the data stay where they are, the sums come here.

Every pass sends the policy to the workers; each of them reads a part of the data and sends back
its sums, which are merged in the order of the parts. Sums of a worker that was lost are made
again by another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from rblspi.datasets.decoding import BadRows
from rblspi.transitions import Transitions

Result = TypeVar("Result")
Work = Callable[[Iterable[Transitions]], Result]


class PartedData(Protocol):
    """Data that can be had in parts, for example `rblspi.datasets.ParquetData`."""

    def parts(self) -> Sequence[Iterable[Transitions]]:
        """The parts, each of them small enough to be sent: a name rather than the data."""


class OnCluster:
    """Data whose parts are gone through by the workers of a Dask cluster.

    Estimators take it as they take the data themselves, and give the same numbers.

    Parameters
    ----------
    data : PartedData or sequence of iterables of Transitions
        For files, the workers have to see them under the same names.
    client : dask.distributed.Client

    Attributes
    ----------
    bad : BadRows
        Bad rows that were left out during the latest pass.
    """

    def __init__(self, data: PartedData | Sequence[Iterable[Transitions]], client: Any) -> None:
        self.data = list(data.parts() if hasattr(data, "parts") else data)
        self.client = client
        self.bad = BadRows()

    def __iter__(self) -> Iterator[Transitions]:
        """Go through the transitions here: for a first look."""
        for part in self.data:
            yield from part

    def map_parts(self, work: Work[Result]) -> Iterator[Result]:
        """What the work makes of every part, in order."""
        self.bad = BadRows()
        # The result of a task: unlike data that are sent, it is made again if it is lost.
        shared = self.client.submit(_same, work, pure=False)
        futures = self.client.map(_run, self.data, work=shared, pure=False)
        while futures:
            result, bad = futures[0].result()
            del futures[0]  # lets the cluster forget it
            self.bad.add(bad)
            yield result


def _same(work: Work[Result]) -> Work[Result]:
    return work


def _run(part: Iterable[Transitions], work: Work[Result]) -> tuple[Result, BadRows]:
    return work(part), getattr(part, "bad", BadRows())
