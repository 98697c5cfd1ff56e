"""A bad file of an agent or of a policy gives an error, and nothing else."""

import builtins
import json
import sys
import tracemalloc

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, Agent, LinearPolicy, OnlineLSPI, Posterior, RBFGrid
from rblspi.core.archive import FileError
from rblspi.environments.lookup import describe
from rblspi.model.statistics import empty
from tests.support.hostile_files import (
    HOSTILE_IDS,
    HOSTILE_VALUES,
    arrays_of,
    damaged,
    from_arrays,
    hostile_archives,
    hostile_arrays,
    hostile_descriptions,
)

CHAIN = "rblspi/ChainWalk-v0"
LOAD = {"RBLSPI": Agent.load, "OnlineLSPI": Agent.load, "LinearPolicy": LinearPolicy.load}


def original(kind, path):
    """The file of a small agent in the middle of an episode, or of a pessimistic policy."""
    basis = RBFGrid(2)
    if kind == "RBLSPI":
        RBLSPI(CHAIN, basis, seed=1, update_every=7).learn(12).save(path)
    elif kind == "OnlineLSPI":
        OnlineLSPI(CHAIN, basis, seed=1, epsilon=0.5).learn(12).save(path)
    else:
        env = gym.make(CHAIN)
        LinearPolicy(
            basis=basis,
            features=basis.build(env.observation_space),
            weights=np.arange(6.0),
            observation_space=env.observation_space,
            action_space=env.action_space,
            posterior=Posterior.from_statistics(empty(2, 3), 1.0, 1.0),
            pessimism=0.5,
            environment=describe(env),
            action_names=("left", "right"),
        ).save(path)
    return path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("kind", LOAD)
@pytest.mark.parametrize(
    "corrupt", [damaged, hostile_archives, hostile_arrays, hostile_descriptions]
)
def test_hundreds_of_bad_files_are_each_an_error(kind, corrupt, tmp_path):
    path = tmp_path / "file.npz"
    sound = original(kind, path)
    path.write_bytes(from_arrays(arrays_of(sound)))
    LOAD[kind](path).predict(3)  # what the corrupted files are made of is sound
    modules = set(sys.modules)
    tried = 0
    rng = np.random.default_rng(len(kind))
    tracemalloc.start() if corrupt is hostile_archives else None
    for data in corrupt(rng, sound, 300):
        path.write_bytes(data)
        with pytest.raises(FileError, match=f"{path}.*[a-z]"):
            LOAD[kind](path)
        tried += 1
    if corrupt is hostile_archives:
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()
    assert tried > 280
    assert not hasattr(builtins, "rblspi_was_here")
    assert {"antigravity"}.isdisjoint(set(sys.modules) - modules)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", LOAD)
def test_wrong_numbers_with_a_right_digest_only_give_wrong_numbers(kind, tmp_path):
    path = tmp_path / "file.npz"
    arrays = arrays_of(original(kind, path))
    rng = np.random.default_rng(0)
    for scale in (1e-300, 1.0, 1e10, 1e100, 1e300):
        changed = {
            name: scale * rng.standard_normal(array.shape) if array.dtype == np.float64 else array
            for name, array in arrays.items()
        }
        path.write_bytes(from_arrays(changed))
        with np.errstate(all="ignore"):
            loaded = LOAD[kind](path)
            if isinstance(loaded, Agent):
                loaded.learn(40)
            loaded.predict(3)
            try:
                loaded.action_values(3) if isinstance(loaded, Agent) else loaded.values(3)
            except ValueError as error:
                assert "rescale the rewards" in str(error)  # noqa: PT017


def test_a_policy_makes_no_environment_that_a_file_may_not_decide(tmp_path):
    path = tmp_path / "policy.npz"
    arrays = arrays_of(original("LinearPolicy", path))
    description = json.loads(arrays["metadata"].tobytes())
    hostile = [{"id": name} for name in HOSTILE_IDS if str(name) not in gym.registry]
    hostile += [{"arguments": {"states": value}} for value in HOSTILE_VALUES]
    hostile += [{"arguments": {"max_episode_steps": 7}}, {"arguments": []}, {"wrappers": ["x"]}]
    hostile += [{"limit": value} for value in (0, -1, 1.5, "7", True, [], 2**63)]
    for change in hostile:
        changed = {**description, "environment": {**description["environment"], **change}}
        path.write_bytes(from_arrays(arrays, changed))
        policy = LinearPolicy.load(path)
        policy.predict(3)
        with pytest.raises(ValueError, match=r"[a-z]{3}"):
            policy.make_environment()
