from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from rblspi.data import DataError, MinariData
from rblspi.features import Polynomial
from rblspi.offline import LSPI

minari = pytest.importorskip("minari")


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    """Three episodes of random actions in Minari's own format, the last cut short by a limit."""
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = gym.make("CartPole-v1")
    env.action_space.seed(0)
    buffers = []
    for episode in range(3):
        observations, actions, rewards, ends = [env.reset(seed=episode)[0]], [], [], []
        while not any(ends) and not (episode == 2 and len(ends) == 5):
            actions.append(env.action_space.sample())
            after, reward, terminated, _, _ = env.step(actions[-1])
            observations.append(after)
            rewards.append(reward)
            ends.append(terminated)
        buffers.append(
            EpisodeBuffer(
                episode,
                observations=np.array(observations),
                actions=np.array(actions),
                rewards=rewards,
                terminations=ends,
                truncations=[False] * (len(ends) - 1) + [episode == 2],
            )
        )
    return minari.create_dataset_from_buffers(
        "cartpole/random-v0", buffers, env=env, data_format="arrow"
    )


@pytest.mark.filterwarnings("ignore")
def test_episodes_become_chunks(dataset):
    data = MinariData(dataset)
    chunks = list(data)
    assert len(chunks) == 3
    assert data.actions == 2
    assert data.size == sum(chunk.size for chunk in chunks)
    for i, chunk in enumerate(chunks):
        np.testing.assert_array_equal(chunk.next_observations[:-1], chunk.observations[1:])
        ended, other = (chunk.terminated, chunk.truncated)[:: -1 if i == 2 else 1]
        np.testing.assert_array_equal(np.flatnonzero(ended), [chunk.size - 1])
        assert not other.any()
        assert np.flatnonzero(chunk.starts(chunks[i - 1] if i else None)).tolist() == [0]
    assert data.facts.metadata["environment"] == "CartPole-v1"
    LSPI(Polynomial(1, low=-1, high=1), 2, discount=0.5).fit(data)


@pytest.mark.filterwarnings("ignore")
def test_data_sets_are_found_by_name(dataset):
    assert MinariData("cartpole/random-v0").size == dataset.total_steps
    with pytest.raises(DataError, match="there is no Minari data set 'cartpole/none-v0'"):
        MinariData("cartpole/none-v0")


def test_other_spaces_are_refused():
    def fake(observations, actions):
        spec = SimpleNamespace(
            dataset_id="d", observation_space=observations, action_space=actions, env_spec=None
        )
        return SimpleNamespace(spec=spec)

    with pytest.raises(DataError, match="which are not discrete"):
        MinariData(fake(Box(-1, 1), Box(-1, 1)))
    with pytest.raises(DataError, match="which are not arrays of numbers"):
        MinariData(fake(gym.spaces.Dict({"a": Box(-1, 1)}), Discrete(2)))
