"""Disturb the command line in many ways, and see whether it keeps its promises.

    python -m pytest tests/chaos --trials 500 --chaos-seed 1

The choice of trials depends on the seed alone; how a process and a signal meet does not. Without
``--trials``, there are a few of every kind.
"""

import pytest

from tests.chaos import damage, disks, others, signals

#: what is tried, and how many of 500 trials are of this kind
KINDS = {
    "signals-train": (signals.train_compiled, 95),
    "signals-train-python": (signals.train_python, 50),
    "signals-fit": (signals.fit_policy, 35),
    "signals-collect": (signals.collect_rows, 35),
    "signals-reproduce": (signals.reproduce_again, 25),
    "full-disk": (disks.full, 50),
    "read-only": (disks.read_only, 30),
    "damaged-files": (damage.damaged_file, 110),
    "two-processes": (others.two_processes, 30),
    "clock-jumps": (others.clock_jumps, 40),
}
WHOLE = sum(count for _, count in KINDS.values())
#: trials of `make test`: the kinds whose commands take longest come once
FEW = 12


def pytest_generate_tests(metafunc):
    trials = metafunc.config.getoption("--trials", default=None) or FEW
    names = [
        f"{kind}-{i}"
        for kind, (_, share) in KINDS.items()
        for i in range(max(round(trials * share / WHOLE), 1))
    ]
    metafunc.parametrize("trial", names, indirect=True, ids=names)


@pytest.mark.slow
def test_a_disturbed_command_loses_nothing_and_gets_nothing_wrong(trial, request):
    kind = request.node.callspec.id.rpartition("-")[0]
    KINDS[kind][0](trial)
