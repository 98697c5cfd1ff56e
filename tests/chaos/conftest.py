"""What the trials share: results of undisturbed commands, made once for all workers."""

import fcntl

import pytest

from tests.chaos.prepared import prepare
from tests.chaos.trial import Trial


def pytest_addoption(parser):
    group = parser.getgroup("chaos")
    group.addoption("--trials", type=int, help="make about so many trials, of all kinds")
    group.addoption("--chaos-seed", type=int, help="decides what the trials are")


@pytest.fixture(scope="session")
def prepared(tmp_path_factory, worker_id):
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "chaos"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return prepare(folder)


@pytest.fixture
def trial(request, prepared, tmp_path):
    seed = request.config.getoption("--chaos-seed", default=None) or 0
    made = Trial(f"{seed}/{request.param}", prepared, tmp_path)
    yield made
    made.end()
