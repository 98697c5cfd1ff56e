"""Fitting on a Dask cluster: the data stay where they are, and the sums come back.

In every pass the workers receive the policy, read their partitions and return the sums over them.
The sums are merged in the order of the partitions, so the numbers do not depend on the workers.
If a worker is lost, another one repeats its partitions. If the scheduler is lost, so is the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from rblspi.core.cluster import ClusterError
from rblspi.data.dataset import BadRows, Dataset, Facts
from rblspi.data.transitions import Transitions

Result = TypeVar("Result")
Work = Callable[[Iterable[Transitions]], Result]


class DaskData(Dataset):
    """Data whose partitions are read by the workers of a Dask cluster.

    Estimators accept it in place of the data themselves and compute the same numbers. The bad
    rows that were skipped during the latest pass are counted in `bad`.

    Parameters
    ----------
    data : Log, or sequence of iterables of Transitions
        The workers must be able to open the files under the same names.
    client : dask.distributed.Client
    """

    def __init__(self, data: Dataset | Sequence[Iterable[Transitions]], client: Any) -> None:
        super().__init__(data.facts if isinstance(data, Dataset) else Facts())
        partitions = data.partitions() if isinstance(data, Dataset) else data
        self.data: list[Any] = list(partitions)  # iterables of transitions
        self.client = client

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions in this process, to look at the first few."""
        for partition in self.data:
            yield from partition

    def partitions(self) -> Sequence[Iterable[Transitions]]:
        """The partitions, as the workers read them."""
        return self.data

    def map_partitions(self, work: Work[Result]) -> Iterator[Result]:
        """Apply a function to every partition on the cluster; yields the results in order.

        A `ClusterError` says that the scheduler is lost, or that a partition keeps killing workers.
        """
        self.bad = BadRows()
        with _lost_cluster(len(self.data), len(self.data)):
            # The work is the result of a task because, unlike data that are sent, a lost result
            # is computed again.
            shared = self.client.submit(partial, work, pure=False)
            futures = self.client.map(_run, self.data, work=shared, pure=False)
        while futures:
            with _lost_cluster(len(futures), len(self.data)):
                result, bad = futures[0].result()
            del futures[0]  # lets the cluster free its memory
            self.bad.add(bad)
            yield result


@contextmanager
def _lost_cluster(missing: int, partitions: int) -> Iterator[None]:
    """Turn the errors by which Dask reports a lost cluster into a `ClusterError`."""
    from distributed import CancelledError, KilledWorker, client
    from distributed.comm import CommClosedError

    closed = getattr(client, "ClosedClientError", CancelledError)  # not in all versions of Dask
    try:
        yield
    except (CancelledError, CommClosedError, KilledWorker, closed) as error:
        sentence = str(error).partition("\n")[0].partition(". ")[0]
        reason = f"{type(error).__name__}: {sentence}".strip(".: ")
        raise ClusterError(
            f"the sums of {missing} of {partitions} partitions were lost on the Dask cluster "
            f"({reason}); fitting again starts over"
        ) from error


def _run(partition: Iterable[Transitions], work: Work[Result]) -> tuple[Result, BadRows]:
    return work(partition), getattr(partition, "bad", BadRows())
