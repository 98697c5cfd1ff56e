import gymnasium as gym
import pytest

from rblspi.environments.n_chain import LEFT, RIGHT, NChain


def play(chain, action):
    """The rewards of an episode of one action, and how it ended."""
    chain.reset()
    rewards, ended = [], False
    while not ended:
        _, reward, terminated, truncated, _ = chain.step(action)
        rewards.append(reward)
        ended = terminated or truncated
    return rewards, terminated


@pytest.mark.parametrize("length", [3, 10, 100])
def test_an_optimal_episode_has_the_return_ten(length):
    chain = NChain(length)
    rewards, terminated = play(chain, RIGHT)
    assert sum(rewards) == 10.0 == chain.optimal_return()
    assert len(rewards) == length + 8
    assert not terminated


def test_giving_up_pays_a_thousandth_a_step():
    rewards, _ = play(NChain(10), LEFT)
    assert sum(rewards) == pytest.approx(0.001 * 17)


def test_episodes_start_in_the_second_state_and_steps_never_fail():
    chain = gym.make("rblspi/NChain-v0", length=5)
    assert chain.reset(seed=0)[0] == 1
    assert [chain.step(a)[0] for a in (LEFT, LEFT, RIGHT, RIGHT)] == [0, 0, 1, 2]


def test_a_chain_has_three_states():
    with pytest.raises(ValueError, match="length=2"):
        NChain(2)
