"""The basis that estimators choose for themselves, and the judge they choose by."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi.data import Transitions
from rblspi.environments.chain_walk import ChainWalk
from rblspi.features import OneHot, RBFGrid
from rblspi.offline import FQI
from rblspi.offline.accumulation import halves
from rblspi.offline.model_selection import RIDGE, Judge, candidates, select
from rblspi.rollout import collect
from tests.support.chain import DISCOUNT, OPTIMAL, STATES, in_proportion
from tests.support.logs import some_log


def as_numbers(log):
    """States as vectors of one number."""
    return replace(
        log,
        observations=log.observations[:, None] + 0.0,
        next_observations=log.next_observations[:, None] + 0.0,
    )


@pytest.mark.parametrize("policy", [OPTIMAL, 1 - OPTIMAL, np.zeros(20, int)])
def test_with_a_bin_for_every_state_the_judge_is_exact(policy):
    log = as_numbers(in_proportion())
    judge = Judge(log, [STATES[:-1] + 0.5], 2, DISCOUNT)
    exact = ChainWalk().exact_action_values(policy, DISCOUNT)
    started = log.observations[log.starts(), 0].astype(int)
    value = judge.value(lambda states: policy[states[:, 0].astype(int)])
    assert value == pytest.approx(exact[started, policy[started]].mean(), rel=0.01)


def test_the_judge_gives_no_credit_for_what_was_never_tried():
    log = some_log(400)
    judge = Judge.of(log, 4, 0.9)
    values = [judge.value(lambda s, a=a: np.full(len(s), a)) for a in range(4)]
    assert values[3] == min(values)


def test_bins_hold_as_many_observations_each():
    judge = Judge.of(some_log(4000), 3, 0.9)
    (count,) = {len(edges) + 1 for edges in judge.edges}
    assert count == int((4000 / 30) ** 0.5)
    inside = np.histogram(judge.log.observations[:, 0], [-np.inf, *judge.edges[0], np.inf])[0]
    assert inside.max() - inside.min() <= 1
    assert not Judge.of(some_log(100), 3, 0.9).can_tell


def test_halves_do_not_share_an_episode():
    log = some_log(500)
    half = halves(log)
    episode = np.cumsum(log.starts())
    assert not set(episode[half]) & set(episode[~half])
    assert 0.3 < half.mean() < 0.7


def test_the_default_covers_three_standard_deviations_within_the_range():
    rng = np.random.default_rng(0)
    states = rng.standard_normal((5000, 2)) * (1.0, 10.0)
    states[:, 1] = states[:, 1].clip(-5, 5)
    never = np.zeros(5000, bool)
    log = Transitions.from_arrays(states, np.zeros(5000, int), states[:, 0], states, never)
    basis, ridge, _ = candidates([log.rows(0, 2000), log.rows(2000, 5000)], None)[0]
    assert ridge == RIDGE
    assert isinstance(basis, RBFGrid)
    np.testing.assert_allclose(basis.high, (states[:, 0].mean() + 3 * states[:, 0].std(), 5.0))


def test_whole_numbers_need_no_choice():
    selection = select([in_proportion()], 2, DISCOUNT)
    assert selection.basis == OneHot()
    assert len(selection.candidates) == 1


def test_a_single_short_episode_has_no_other_half_to_choose_by():
    log = in_proportion().rows(0, 50)
    for one in (log, as_numbers(log)):
        one = replace(one, truncated=np.arange(50) == 49)
        assert not halves(one).any()
        selection = select([one], 2, DISCOUNT)
        assert selection.candidates == candidates([one], None)[:1]


@pytest.mark.slow
def test_the_pendulum_balances_with_nothing_chosen():
    (log,) = collect("rblspi/InvertedPendulum-v0", 9000, seed=0)
    fitted = FQI(discount=0.95).fit(log)
    assert fitted.selection_ is not None
    assert len(fitted.selection_.candidates) == 4
    policy = fitted.policy("rblspi/InvertedPendulum-v0")
    walk = next(collect("rblspi/InvertedPendulum-v0", 3000, lambda s: policy.predict(s)[0], seed=1))
    assert not walk.terminated.any()
