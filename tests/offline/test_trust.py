import gymnasium as gym
import numpy as np
import pytest

from rblspi import Polynomial
from rblspi.offline import policy_value, support, trust
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
    assert set(words(found).values()) == {"good"}
    assert found[0].value > log.size / 4


def test_the_verdict_is_the_worst_word():
    near = trust(swing, car_log(CARS[0], 0, policy=act, episodes=10), SMALL, discount=0.99)
    assert near.verdict == "with care"  # it is no better than the log's own, being the same
    assert words(near.findings)["gain over the log"] == "doubtful"
    far = trust(swing, car_log(CARS[0], 0, limit=50), SMALL, discount=0.99)
    assert far.verdict == "do not trust"
    assert str(far).startswith("trust report: do not trust\n  effective sample ")


def test_discrete_states_have_to_be_the_same():
    report = trust(optimal, CHAIN, discount=DISCOUNT, converged=True)
    assert report.verdict == "trust it"
    assert trust(optimal, CHAIN, discount=DISCOUNT, converged=False).verdict == "do not trust"
    worst = trust(lambda states: 1 - OPTIMAL[states], CHAIN, discount=DISCOUNT)
    assert words(worst.findings)["gain over the log"] == "bad"

    stays = CHAIN.actions == 0
    left = type(CHAIN)._make(column[stays] for column in CHAIN)
    right = support(lambda states: np.ones(len(states), int), left, discount=DISCOUNT)
    assert right[0].value == 0.0  # not a row of this action
    assert right[1].value == 1.0
    assert words(right)["extrapolated share"] == "bad"


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
    scaled = trust(optimal, CHAIN._replace(rewards=CHAIN.rewards * factor), discount=DISCOUNT)
    assert words(scaled.findings) == words(plain.findings)
    assert scaled.findings[-1].value == pytest.approx(plain.findings[-1].value * factor)

    log = car_log(CARS[0], 0, limit=50)
    other = log._replace(
        observations=log.observations * [factor, 1.0],
        next_observations=log.next_observations * [factor, 1.0],
    )
    assert support(swing, other, discount=0.99) == support(swing, log, discount=0.99)


def test_a_state_that_hides_the_velocity_has_a_memory():
    (log,) = collect("rblspi/InvertedPendulum-v0", 4000, seed=0)
    balance = np.array([[2.0], [0.5]])

    def upright(observations):
        return np.where(observations @ balance[: observations.shape[1], 0] > 0, 2, 0)

    hidden = log._replace(
        observations=log.observations[:, :1], next_observations=log.next_observations[:, :1]
    )
    for seen, word in ((log, "good"), (hidden, "doubtful")):
        report = trust(upright, seen, discount=0.95)
        assert words(report.findings)["memory (R^2)"] == word


def test_the_report_is_plain_data():
    plain = trust(optimal, CHAIN, discount=DISCOUNT).plain()
    assert plain["verdict"] == "trust it"
    assert {"name", "value", "word", "advice"} == set(plain["findings"][0])
