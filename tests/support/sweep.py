"""A small sweep as a program of its own, to be killed: python -m tests.support.sweep FILE RUNS."""

import sys

from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import local_processes, missing, run_all
from tests.support.experiments import SWEEP


def main(path, runs):
    with Store(path) as store:
        todo = missing(store, SWEEP.curves, runs)
        print("ready", flush=True)
        run_all(todo, store, lambda: local_processes(2), 4, lambda _: print("run", flush=True))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
