"""What holds for every environment that knows its own probabilities."""

import itertools

import numpy as np
import pytest

from rblspi.environments.chain_walk import ChainWalk
from rblspi.environments.combination_lock import CombinationLock
from rblspi.environments.deep_sea import DeepSea
from rblspi.environments.n_chain import NChain
from rblspi.environments.river_swim import RiverSwim

ENVIRONMENTS = {
    "chain": ChainWalk(states=4, failure=0.3, rewards=[0.0, 2.0, -1.0, 0.5]),
    "deep sea": DeepSea(3),
    "deep sea, stochastic": DeepSea(3, stochastic=True),
    "lock": CombinationLock(3, actions=3, slip=0.3, bribe=0.2),
    "N-chain": NChain(4),
    "river": RiverSwim(4),
}
REPEATS = 2000


@pytest.fixture(params=ENVIRONMENTS)
def environment(request):
    return ENVIRONMENTS[request.param]


def sizes(environment):
    return int(environment.observation_space.n), int(environment.action_space.n)


def outcomes(environment, state, action):
    """How often each state follows, without the ends, and the rewards on the way there."""
    counts, rewards = np.zeros(sizes(environment)[0]), np.empty(REPEATS)
    for i in range(REPEATS):
        environment.state[:] = 0.0
        environment.state[0] = state
        rewards[i], terminated, _ = environment.dynamics.step(
            environment.dynamics.parameters, environment.state, action, environment.np_random
        )
        counts[int(environment.state[0])] += not terminated
    return counts / REPEATS, rewards


def test_steps_follow_the_probabilities_and_rewards(environment):
    environment.reset(seed=0)
    transitions, expected = environment.transition_probabilities(), environment.expected_rewards()
    states, actions = sizes(environment)
    for state, action in itertools.product(range(states), range(actions)):
        shares, rewards = outcomes(environment, state, action)
        probabilities = transitions[action, state]
        error = np.sqrt(probabilities * (1 - probabilities) / REPEATS)
        assert (np.abs(shares - probabilities) <= 5 * error + 1e-12).all()
        error = rewards.std() / np.sqrt(REPEATS)
        assert rewards.mean() == pytest.approx(expected[state, action], abs=5 * error + 1e-12)


def test_probabilities_add_up_to_at_most_one(environment):
    total = environment.transition_probabilities().sum(axis=2)
    if environment.terminates:
        assert set(np.round(total.ravel(), 12)) == {0.0, 1.0}
    else:
        np.testing.assert_allclose(total, 1.0, rtol=1e-15)


def test_values_of_a_policy_are_a_fixed_point_of_its_bellman_equation(environment):
    states, actions = sizes(environment)
    policy = np.random.default_rng(1).integers(actions, size=states)
    values = environment.exact_action_values(policy, 0.8)
    followed = environment.transition_probabilities() @ values[np.arange(states), policy]
    expected = environment.expected_rewards() + 0.8 * followed.T
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("discount", [0.0, 0.7, 0.999])
def test_no_policy_is_better_than_the_optimal_values(environment, discount):
    states, actions = sizes(environment)
    optimal = environment.optimal_action_values(discount)
    policies = [np.random.default_rng(i).integers(actions, size=states) for i in range(20)]
    for policy in (*policies, optimal.argmax(axis=1)):
        values = environment.exact_action_values(policy, discount)
        assert (values <= optimal + 1e-10 * np.abs(optimal).max()).all()
    np.testing.assert_allclose(values, optimal, rtol=1e-9, atol=1e-12)  # of the greedy policy


def test_undiscounted_values_need_an_end(environment):
    if environment.terminates:
        almost = environment.optimal_action_values(1.0 - 1e-9)
        np.testing.assert_allclose(environment.optimal_action_values(1.0), almost, atol=1e-7)
        with pytest.raises(ValueError, match="no step is in the long run"):
            environment.optimal_average_reward()
    else:
        with pytest.raises(ValueError, match="discount=1"):
            environment.optimal_action_values(1.0)


@pytest.mark.parametrize("environment", [ENVIRONMENTS["chain"], ENVIRONMENTS["river"]])
def test_the_average_reward_is_what_discounted_values_tend_to(environment):
    """(1 - discount) V tends to the average reward, with an error of order 1 - discount."""
    values = environment.optimal_action_values(1.0 - 1e-7).max(axis=1)
    average = environment.optimal_average_reward()
    np.testing.assert_allclose(1e-7 * values, average, atol=1e-5)
