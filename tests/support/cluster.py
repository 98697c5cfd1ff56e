"""Dask clusters on this machine, for tests that run beside each other."""

import pytest


def local_cluster(n_workers=1, processes=False, **options):
    """A cluster of single-threaded workers whose scheduler takes any free port.

    A scheduler without a dashboard still listens on port 8787, where a second one finds it taken
    and leaves a socket open.
    """
    distributed = pytest.importorskip("distributed")
    ports = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        scheduler_kwargs=ports,
        **options,
    )
