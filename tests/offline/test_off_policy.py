from dataclasses import replace

import numpy as np
import pytest

from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot
from rblspi.offline import policy_value
from tests.support.chain import DISCOUNT, OPTIMAL, STATES, in_proportion, random_episodes
from tests.support.logs import arrays, joined, unmarked

EXACT = ChainWalk().exact_action_values(OPTIMAL, DISCOUNT)
SPACE = ChainWalk().observation_space


def optimal(observations):
    return OPTIMAL[observations]


def value_of(transitions, **changed):
    settings = {"discount": DISCOUNT, "first_observations": STATES, "observation_space": SPACE}
    return policy_value(transitions, optimal, OneHot(), 2, **(settings | changed))


def test_with_every_transition_in_proportion_the_value_is_exact():
    found = value_of(in_proportion(), prior_precision=1e-9, ridge=1e-12)
    assert found.mean == pytest.approx(EXACT.max(axis=1).mean(), rel=1e-6)
    assert found.low < found.mean < found.high
    assert found.std == max(found.posterior_std, found.sampling_std)
    assert str(found).startswith("5.421 (between ")


def test_intervals_hold_the_true_value_about_as_often_as_they_say():
    true = EXACT.max(axis=1).mean()
    found = [value_of(log) for log in random_episodes(60, 3000, seed=0)]
    held = sum(one.low <= true <= one.high for one in found)
    assert 52 <= held <= 60  # at 95%, fewer than 52 of 60 happen once in a thousand times
    spread = np.std([one.mean for one in found])
    stated = np.mean([one.std for one in found])
    assert 0.7 < stated / spread < 1.6


def test_more_data_and_less_confidence_make_intervals_narrower():
    (log,) = random_episodes(1, 8000, seed=0)
    whole, few = value_of(log), value_of(log.rows(0, 1000))
    half = value_of(log, confidence=0.5)
    assert whole.std < few.std
    assert half.high - half.low < whole.high - whole.low
    assert half.mean == whole.mean


def test_chunks_give_what_the_whole_gives():
    (log,) = random_episodes(1, 2000, seed=0)
    chunks = [log.rows(0, 700), log.rows(700, 2000)]
    whole, chunked = value_of(log), value_of(chunks)
    assert chunked.mean == pytest.approx(whole.mean, rel=1e-9)
    assert chunked.segments == whole.segments == 20


def test_first_states_are_those_of_the_data_unless_given():
    episodes = random_episodes(40, 50, seed=0)
    log = joined(episodes)
    together = value_of(log, first_observations=None)
    apart = value_of(episodes, first_observations=None)
    assert apart.starts == together.starts == 40
    assert apart.segments == together.segments == 40
    assert together.mean == pytest.approx(apart.mean, rel=1e-9)
    # Unless the log says where episodes were cut, one that happens to start in the state in which
    # the preceding one was cut goes unnoticed.
    guessed = value_of(arrays(log, 5), first_observations=None)
    assert 34 <= guessed.starts < 40
    assert guessed.segments == guessed.starts
    unbounded = [unmarked(chunk) for chunk in episodes]
    assert value_of(unbounded, first_observations=None).starts == guessed.starts


def test_a_single_transition_or_first_state_will_do():
    (log,) = random_episodes(1, 2000, seed=0)
    one = value_of(log, first_observations=3)
    assert one == value_of(log, first_observations=[3])
    assert one.starts == 1
    few = value_of(replace(log.rows(0, 1), rewards=np.ones(1)), first_observations=None)
    assert few.segments == few.starts == 1
    assert np.isfinite([few.mean, few.std, few.low, few.high]).all()
    assert few.support == "bad"


def test_faulty_arguments_are_refused():
    with pytest.raises(ValueError, match=r"confidence=1\.5 must lie between 0 and 1"):
        value_of(in_proportion(), confidence=1.5)
    with pytest.raises(ValueError, match="actions=0 must be at least 1"):
        policy_value(in_proportion(), optimal, OneHot(), 0)
