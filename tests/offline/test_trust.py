from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest

from rblspi import Polynomial
from rblspi.environments.chain_walk import ChainWalk
from rblspi.offline import policy_value, support, trust
from rblspi.offline.paths import first_states
from rblspi.rollout import collect
from tests.support.chain import DISCOUNT, OPTIMAL, random_episodes
from tests.support.logs import joined

pytestmark = pytest.mark.slow

CARS = ("rblspi/MountainCar-v0", "rblspi/SparseMountainCar-v0")
SMALL = Polynomial(2, low=(-1.2, -0.07), high=(0.5, 0.07))
CHAIN = joined(random_episodes(10, 200, seed=0))


def swing(observations):
    """Push in the direction of the velocity, which reaches the goal."""
    return np.where(np.asarray(observations)[..., 1] < 0, 0, 2)


def optimal(states):
    return OPTIMAL[states]


def car_log(identifier, seed, limit=500, policy=None, episodes=40):
    env = gym.make(identifier, max_episode_steps=limit)
    (log,) = collect(env, policy=policy, episodes=episodes, seed=seed)
    return log


def act(observation):
    return int(swing(observation))


def words(findings):
    return {finding.name: finding.word for finding in findings}


@pytest.mark.parametrize("identifier", CARS)
@pytest.mark.parametrize("seed", range(5))
def test_a_log_that_never_reaches_the_goal_does_not_support_a_policy_that_would(identifier, seed):
    log = car_log(identifier, seed, limit=50)
    assert not log.terminated.any()
    assert "bad" in words(support(swing, log, discount=0.99)).values()


@pytest.mark.parametrize(
    ("identifier", "limits"), [*zip(CARS, [(-100, -1), (-np.inf, np.inf)], strict=True)]
)
def test_an_interval_is_never_narrow_where_the_log_cannot_tell(identifier, limits):
    """The goal, an end or a reward that was never logged, may lie anywhere beyond the log."""
    log = car_log(identifier, 0, limit=50)
    found = policy_value(log, swing, SMALL, 3, discount=0.99)
    assert (found.low, found.high) == pytest.approx(limits)
    assert "cannot tell" in str(found)


@pytest.mark.parametrize("seed", range(5))
def test_a_log_of_the_policy_itself_supports_it(seed):
    log = car_log(CARS[0], seed, policy=act, episodes=10)
    found = support(swing, log, discount=0.99)
    assert words(found) == {"beyond the log": "good"}


def test_the_verdict_is_the_worst_word():
    near = trust(swing, car_log(CARS[0], 0, policy=act, episodes=10), SMALL, discount=0.99)
    assert near.verdict == "with care"  # it is no better than the log's own, being the same
    assert words(near.findings)["gain over the log"] == "doubtful"
    far = trust(swing, car_log(CARS[0], 0, limit=50), SMALL, discount=0.99)
    assert far.verdict == "do not trust"
    assert str(far).startswith("trust report: do not trust\n  beyond the log ")


def test_discrete_states_have_to_be_the_same():
    report = trust(optimal, CHAIN, discount=DISCOUNT, converged=True)
    assert report.verdict == "trust it"
    assert trust(optimal, CHAIN, discount=DISCOUNT, converged=False).verdict == "do not trust"
    worst = trust(lambda states: 1 - OPTIMAL[states], CHAIN, discount=DISCOUNT)
    assert words(worst.findings)["gain over the log"] == "bad"

    stays = CHAIN.actions == 0
    left = CHAIN.select(stays)
    right = support(lambda states: np.ones(len(states), int), left, discount=DISCOUNT)
    assert right[0].value == 0.0  # not a row of this action
    assert right[1].value == 1.0
    assert words(right)["beyond the log"] == "bad"


def test_every_row_of_one_state_counts_the_same():
    rows = 400
    states, ends = np.zeros(rows, int), np.ones(rows, bool)
    log = type(CHAIN).from_arrays(states, states, np.ones(rows), states, ends)
    sample = support(lambda at: np.zeros(len(at), int), log, discount=0.9)[0].value
    # 300 draws from 400 rows: the sum of squared counts has the mean 300 + 300 * 299 / 400
    assert sample == pytest.approx(300**2 / (300 + 300 * 299 / 400), rel=0.1)


@pytest.mark.parametrize("factor", [2.0**-20, 2.0**20])
def test_the_units_of_rewards_and_observations_change_no_word(factor):
    plain = trust(optimal, CHAIN, discount=DISCOUNT)
    scaled = trust(optimal, replace(CHAIN, rewards=CHAIN.rewards * factor), discount=DISCOUNT)
    assert words(scaled.findings) == words(plain.findings)
    for one, other in zip(plain.findings, scaled.findings, strict=True):
        unit = factor if one.name == "gain over the log" else 1.0
        assert other.value == pytest.approx(one.value * unit)

    log = car_log(CARS[0], 0, limit=50)
    other = replace(
        log,
        observations=log.observations * [factor, 1.0],
        next_observations=log.next_observations * [factor, 1.0],
    )
    assert support(swing, other, discount=0.99) == support(swing, log, discount=0.99)


def test_a_promise_is_kept_if_the_paths_show_the_gain():
    exact = ChainWalk().exact_action_values(OPTIMAL, DISCOUNT)

    def share(values):
        report = trust(optimal, CHAIN, discount=DISCOUNT, values=values)
        return {f.name: f for f in report.findings}["promise not kept"]

    assert share(lambda states, actions: exact[states, actions]).value < 0.05
    most = share(lambda states, actions: np.full(len(states), 1e9))  # clipped to 1 / (1 - 0.9)
    starts = CHAIN.observations[CHAIN.starts()]
    assert most.word == "bad"
    assert most.value >= 1.0 - exact[starts, OPTIMAL[starts]].mean() / 10.0


def test_decisions_that_cost_nothing_are_not_undecided():
    """Two actions that do the same: either is right. Few rows of the chain: some may be wrong."""
    rng = np.random.default_rng(0)
    states, actions = rng.integers(2, size=(2, 2000))
    ended = np.ones(2000, bool)
    log = type(CHAIN).from_arrays(states, actions, actions * 1.0, states, ended)
    same = replace(log, rewards=states + 0.01 * rng.standard_normal(2000))

    def undecided(policy, log):
        report = trust(policy, log, discount=DISCOUNT)
        return {f.name: f for f in report.findings}["undecided"]

    assert undecided(lambda at: np.ones(len(at), int), log).value == pytest.approx(0.0, abs=1e-9)
    assert undecided(lambda at: np.zeros(len(at), int), same).value == 0.0  # nor is there a gain
    assert undecided(optimal, CHAIN).word == "good"
    assert undecided(optimal, CHAIN.rows(0, 200)).value > undecided(optimal, CHAIN).value


def test_a_single_episode_starts_wherever_its_segments_do():
    chain = np.arange(401) % 20
    one = type(CHAIN).from_arrays(
        chain[:-1], np.ones(400, int), np.zeros(400), chain[1:], np.zeros(400, bool)
    )
    assert one.starts().sum() == 1
    assert first_states(one).tolist() == [0, 0, 0, 0]  # rows 0, 100, 200 and 300
    assert len(first_states(CHAIN)) == 10


def test_a_state_that_hides_the_velocity_has_a_memory():
    (log,) = collect("rblspi/InvertedPendulum-v0", 4000, seed=0)
    balance = np.array([[2.0], [0.5]])

    def upright(observations):
        return np.where(observations @ balance[: observations.shape[1], 0] > 0, 2, 0)

    hidden = replace(
        log, observations=log.observations[:, :1], next_observations=log.next_observations[:, :1]
    )
    for seen, word in ((log, "good"), (hidden, "doubtful")):
        report = trust(upright, seen, discount=0.95)
        assert words(report.findings)["memory (R^2)"] == word
