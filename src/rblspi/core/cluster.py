"""A connection to a Dask cluster, for fits to distributed data and for parallel runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ClusterError(RuntimeError):
    """A cluster that cannot be reached, or was lost."""


@contextmanager
def dask_client(address: str) -> Iterator[Any]:
    """A client of the Dask scheduler at this address."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError('--cluster needs Dask: pip install "rblspi[cluster]"') from error
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {address}: {error}") from error
    with client:
        yield client
