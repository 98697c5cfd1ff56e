"""What is stated of action values and how sure that is, by agents, estimators and their files."""

import pickle

import numpy as np
import pytest

from rblspi import BLSPI, OPSRL, RBLSPI, FittedRmax, LinearPolicy, Multilinear, OnlineLSPI, RBFGrid
from rblspi.policies import ActionValues, Draws
from rblspi.rollout.collect import random_walk

CAR, CHAIN = "rblspi/MountainCar-v0", "rblspi/ChainWalk-v0"
ROWS = np.array([[-0.5, 0.0], [0.3, 0.05]])


def assert_equal(one, other):
    """The same bits."""
    for ours, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(ours, theirs)


# Statistics of draws ------------------------------------------------------------------------------


def gaussian(count, size):
    """Draws of two values whose errors are nearly the same, and one more draw as the truth."""
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(count + 1, size, 1)) + 0.1 * rng.normal(size=(count + 1, size, 2))
    values = ActionValues(drawn[:-1].mean(axis=0), drawn[:-1], np.zeros(size))
    return values, drawn[-1]


@pytest.mark.parametrize("count", [4, 10, 40])
def test_intervals_of_values_and_of_gaps_contain_the_truth_as_often_as_they_say(count):
    values, truth = gaussian(count, 20_000)
    best = values.mean.argmax(axis=1)
    gap = (truth[:, 0] - truth[:, 1]) * np.where(best == 0, 1.0, -1.0)
    for confidence in (0.5, 0.95):
        low, high = values.interval(confidence)
        assert ((low <= truth) & (truth <= high)).mean() == pytest.approx(confidence, abs=0.02)
        least, most = values.gap(confidence)
        assert ((least <= gap) & (gap <= most)).mean() == pytest.approx(confidence, abs=0.02)
    assert np.mean(most - least) < 0.3 * np.mean(high - low)


def test_probabilities_add_up_and_are_those_of_students_distribution():
    values, _ = gaussian(10, 200)
    likely = values.probability_best()
    np.testing.assert_allclose(likely.sum(axis=-1), 1.0)
    np.testing.assert_array_equal(values.row(7).probability_best(), likely[7])
    assert values.draws is not None
    better = np.array([100.0, 0.0])
    assert ActionValues(values.mean + better, values.draws + better).told_apart().all()
    assert not values.told_apart(0.999).any()
    with pytest.raises(ValueError, match=r"confidence=1.5 must lie"):
        values.told_apart(1.5)


def test_an_error_that_all_actions_share_changes_no_gap():
    values, _ = gaussian(10, 50)
    wider = values._replace(common=np.full(50, 3.0))
    np.testing.assert_array_equal(wider.gap(), values.gap())
    np.testing.assert_array_equal(wider.probability_best(), values.probability_best())
    np.testing.assert_allclose(wider.std, np.hypot(values.std, 3.0))


def test_draws_around_their_mean_have_no_mean():
    weights = np.random.default_rng(0).normal(size=(10, 3, 4))
    draws = Draws.around(weights, 1.0)
    np.testing.assert_allclose(draws.deviations.mean(axis=0), 0.0, atol=1e-6)
    x, mean = np.eye(4), weights.mean(axis=0).T
    np.testing.assert_allclose(draws.at(x, mean).draws, weights.transpose(0, 2, 1), rtol=1e-5)


# Of agents and estimators -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def car():
    return RBLSPI(CAR, RBFGrid(4), prior_precision=0.01, noise_precision=0.1, seed=0).learn(3000)


def learnt(kind):
    if kind == "weights":
        return RBLSPI(CAR, RBFGrid(3), seed=0).learn(500)
    if kind == "grid":
        return FittedRmax(CAR, Multilinear(8), seed=0).learn(500)
    if kind == "numbers as actions":
        return FittedRmax("Pendulum-v1", Multilinear(4), seed=0).learn(300)
    return OPSRL(CHAIN, seed=0).learn(300)


@pytest.mark.parametrize("kind", ["weights", "grid", "table", "numbers as actions"])
def test_it_acts_as_it_states_and_so_do_its_policy_and_its_file(kind, tmp_path):
    agent = learnt(kind)
    space = agent.env.observation_space
    space.seed(0)
    rows = np.array([space.sample() for _ in range(300)])
    stated = agent.action_values(rows)
    agent.policy().save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    copied = pickle.loads(pickle.dumps(agent.policy()))
    for policy in (agent.policy(), loaded, copied):
        assert_equal(policy.action_values(rows), stated)
        np.testing.assert_array_equal(policy(rows), stated.mean.argmax(axis=1))
        taken = policy.predict(rows, deterministic=True)[0]
        np.testing.assert_array_equal(taken, agent.predict(rows, deterministic=True)[0])
    if kind != "numbers as actions":
        np.testing.assert_array_equal(taken, stated.mean.argmax(axis=1))
    np.testing.assert_allclose(agent.action_values(rows[3]).mean, stated.mean[3])


def test_asking_changes_nothing(car):
    before = car.rng.bit_generator.state
    car.probability_best([-0.5, 0.0])
    assert car.rng.bit_generator.state == before


def test_an_agent_that_learns_on_states_other_values():
    """Also if it counts its steps from zero again, to the same number."""
    agent = OPSRL(CHAIN, seed=0).learn(50)
    before = agent.action_values(0)
    assert_equal(agent.action_values(0), before)
    assert (agent.learn(50).action_values(0).mean != before.mean).any()


def test_an_agent_that_has_seen_nothing_says_so():
    agent = OnlineLSPI(CAR, RBFGrid(2), seed=0)
    assert agent.action_values([0.0, 0.0]).std is None
    with pytest.raises(ValueError, match="nothing is known of the errors of these values"):
        agent.probability_best([0.0, 0.0])
    with pytest.raises(ValueError, match="learn first"):
        agent.action_values([0.0, 0.0]).interval()


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
@pytest.mark.parametrize("pessimism", [0.0, 2.0])
def test_an_estimators_file_states_what_it_does(pessimism, tmp_path):
    fitted = BLSPI(RBFGrid(3), 3, pessimism=pessimism).fit(random_walk(CAR, 1000, seed=0))
    fitted.save(tmp_path / "policy.npz")
    loaded = LinearPolicy.load(tmp_path / "policy.npz")
    assert_equal(loaded.action_values(ROWS), fitted.policy().action_values(ROWS))
    np.testing.assert_array_equal(loaded(ROWS), fitted.policy()(ROWS))
