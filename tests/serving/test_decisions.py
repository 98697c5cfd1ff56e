"""Decisions and their outcomes become a log of transitions, each of them once."""

import json
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from rblspi import FQI, LSPI, LinearPolicy, OneHot, Polynomial
from rblspi.core.journal import line_of
from rblspi.data import DataError, LogAndDecisions, Transitions, read_log
from rblspi.data.decision_log import transitions_in
from rblspi.serving import Decisions, Outcome
from tests.support.command import run
from tests.support.logs import ACTIONS, assert_same, episode_rows, joined, transitions_of_rows
from tests.support.shop_policy import shop_policy


def states_of(rng, count):
    return [
        {"stock": float(rng.uniform(-1, 1)), "weekday": str(rng.choice(["Mon", "Tue", "Wed"]))}
        for _ in range(count)
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.jsonl"


def test_a_decision_is_what_the_policy_does(path):
    policy = shop_policy()
    states = states_of(np.random.default_rng(0), 20)
    with Decisions(policy, path) as decisions:
        made = decisions.act_many(states)
        one = decisions.act(states[0])
    assert [decision.action for decision in made] == list(policy.act(states))
    assert one.action == made[0].action
    assert len({decision.id for decision in [*made, one]}) == 21


def test_episodes_that_alternate_become_the_transitions_of_each(path):
    """The log of decisions is read as the log of episodes that led to it."""
    rng = np.random.default_rng(1)
    paths = {f"customer {i}": states_of(rng, 5) for i in range(4)}
    rewards, ids, actions = {}, {}, {}
    with Decisions(shop_policy(), path) as decisions:
        for step in range(4):
            for name in rng.permutation(list(paths)):
                decision = decisions.act(paths[name][step], episode=str(name))
                ids[name, step], actions[name, step] = decision
        for name, step in rng.permutation(np.array(list(ids), object)):  # in any order
            rewards[name, step] = float(rng.standard_normal())
            ends = step == 3 and name == "customer 2"
            after = None if ends else paths[name][step + 1]
            reward = rewards[name, step]
            assert decisions.record(ids[name, step], reward, after, terminated=ends)
    log = read_log(path)
    assert log.action_names == ACTIONS
    found = joined(log)
    order = list(dict.fromkeys(name for name, _ in ids))  # as they began
    encode = shop_policy().inputs
    expected = Transitions.from_arrays(
        np.concatenate([encode(paths[name][:4]) for name in order]),
        [ACTIONS.index(actions[name, step]) for name in order for step in range(4)],
        [rewards[name, step] for name in order for step in range(4)],
        np.concatenate(
            [encode([*paths[n][1:4], paths[n][3 if n == "customer 2" else 4]]) for n in order]
        ),
        [step == 3 and name == "customer 2" for name in order for step in range(4)],
        [step == 3 and name != "customer 2" for name in order for step in range(4)],
    )
    assert_same(found, expected)


def test_the_same_outcome_counts_once(path):
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        first, second = decisions.act_many([state, state])
        assert decisions.record(first.id, 1.5, state)
        assert not decisions.record(first.id, 1.5, state)
        twice = [Outcome(second.id, 2, state)] * 2  # 2 and 2.0 are the same reward
        assert decisions.record_many(twice) == 1
    with Decisions(shop_policy(), path) as decisions:  # and also after the end of the process
        assert not decisions.record(second.id, 2.0, {"weekday": "Mon", "stock": "0.5"})
        with pytest.raises(ValueError, match="has another outcome already, which stays"):
            decisions.record(first.id, 1.6, state)
        assert (decisions.log.decisions, decisions.log.outcomes) == (2, 2)
        third = decisions.act(state)
        assert third.id.partition("-")[2] == "3"
    assert [row["reward"] for row in transitions_in(path)] == [1.5, 2.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"id": "x-1"}, "'x-1' is no id of a decision in decisions.jsonl"),
        ({"id": "LOG-77"}, "there is no decision .*-77 in decisions.jsonl"),
        ({"id": "LOG-1e9"}, "is no id of a decision"),
        ({"reward": "much"}, "reward='much' must be a number"),
        ({"reward": True}, "reward=True must be a number"),
        ({"reward": float("nan")}, "reward=nan must be finite"),
        ({"next_state": None}, "next_state is missing: give the state after the action"),
        ({"next_state": {"stock": 1.0}}, "the state has no 'weekday'"),
        ({"next_state": {"stock": 1.0, "weekday": "Sun"}}, "weekday='Sun' is none of Mon, Tue"),
        ({"terminated": 1}, "terminated=1 must be true or false"),
        ({"rewrd": 1.0}, "an outcome has no 'rewrd', only id, reward"),
    ],
)
def test_outcomes_are_checked_and_recorded_together(path, wrong, message):
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        first, second = decisions.act_many([state, state])
        good = {"id": first.id, "reward": 1.0, "next_state": state}
        bad = good | {"id": second.id} | wrong
        bad["id"] = bad["id"].replace("LOG", first.id.partition("-")[0])
        before = path.read_bytes()
        with pytest.raises(ValueError, match=r"outcomes\[1\]: .*" + message):
            decisions.record_many([good, bad])
        assert path.read_bytes() == before
        with pytest.raises(ValueError, match=message):
            decisions.record_many([bad])


def test_states_are_kept_as_plain_data(path):
    policy = shop_policy(fill=0.25)
    given = [
        {"weekday": "Mon", "stock": None},
        {"weekday": " Tue ", "stock": "0.5", "unused": object()},
        [np.float64("nan"), "Wed"],
        {"weekday": "Wed", "stock": np.int64(1)},
    ]
    with Decisions(policy, path) as decisions:
        for decision, state in zip(decisions.act_many(given), given, strict=True):
            decisions.record(decision.id, 0.0, state)
        with pytest.raises(ValueError, match=r"states\[1\]: weekday='Sun' is none of"):
            decisions.act_many([given[0], {"weekday": "Sun", "stock": 1.0}])
        with pytest.raises(ValueError, match=r"episode='xxx.*' must be text of at most 200"):
            decisions.act(given[0], episode="x" * 201)
    kept = [(row["state.stock"], row["state.weekday"]) for row in transitions_in(path)]
    assert kept == [(None, "Mon"), (0.5, "Tue"), (None, "Wed"), (1.0, "Wed")]
    encoded = policy.inputs([{"stock": s, "weekday": w} for s, w in kept])
    np.testing.assert_array_equal(joined(read_log(path)).observations, encoded)


@pytest.mark.filterwarnings("ignore::rblspi.offline.ConvergenceWarning")
@pytest.mark.parametrize("names", [(), ("rest", "left", "right")])
@pytest.mark.parametrize(
    ("basis", "space"),
    [
        (Polynomial(1), gym.spaces.Box(-1.0, 1.0, (2,), np.float64)),
        (OneHot(), gym.spaces.Discrete(5)),
    ],
)
def test_states_and_actions_without_names(path, basis, space, names):
    features = basis.build(space)
    policy = LinearPolicy(
        basis=basis,
        features=features,
        weights=np.random.default_rng(0).standard_normal(3 * features.size),
        observation_space=space,
        action_space=gym.spaces.Discrete(3, start=4),
        action_names=names,
    )
    space.seed(0)
    states = [space.sample() for _ in range(30)]
    with Decisions(policy, path) as decisions:
        for state, after in pairwise(states):
            decision = decisions.act(state)
            assert decision.action == policy.act(state)
            decisions.record(decision.id, 1.0, after)
    log = joined(read_log(path))
    np.testing.assert_array_equal(log.observations, states[:-1])
    np.testing.assert_array_equal(log.next_observations, states[1:])
    np.testing.assert_array_equal(log.actions, policy(states)[:-1])
    assert log.truncated.sum() == 1  # one episode
    assert LSPI(basis, observation_space=space).fit(read_log(path)).actions_ == 3


def test_a_fit_goes_on_with_decisions(path, tmp_path, capsys):
    rows = episode_rows(60)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "log.jsonl").write_text(lines)
    basis = Polynomial(1, low=-1, high=1)
    policy = FQI(basis, discount=0.5).fit(tmp_path / "log.jsonl").policy()
    states = states_of(np.random.default_rng(2), 40)
    with Decisions(policy, path) as decisions:
        for state, after in pairwise(states):
            decisions.record(decisions.act(state).id, 1.0, after)
    log = read_log(tmp_path / "log.jsonl")
    both = LogAndDecisions(log, path)
    found, before = joined(both), transitions_of_rows(rows)
    assert both.size == found.size == before.size + 39
    assert_same(found.rows(0, before.size), before)
    np.testing.assert_array_equal(found.observations[before.size :], policy.inputs(states[:-1]))
    assert sum(part.size for part in both.partitions()) == both.size
    weights = FQI(basis, discount=0.5).fit(both).weights_
    save = tmp_path / "again"
    fit = ("fit", tmp_path / "log.jsonl", "--decisions", path, "--save", save)
    assert run(*fit, "--basis", "Polynomial(1, low=-1, high=1)", "--set", "discount=0.5") == 0
    assert "decisions  39 with their outcomes" in capsys.readouterr().out
    np.testing.assert_allclose(LinearPolicy.load(save / "policy.npz").weights, weights, rtol=1e-9)


def test_logs_of_other_policies_and_damaged_ones_are_refused(path):
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        made = decisions.act_many([state] * 3)
        for decision in made:
            decisions.record(decision.id, 1.0, state)
    with pytest.raises(ValueError, match="is the log of a policy with other states or actions"):
        Decisions(shop_policy(fill=0.0), path)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"decision": 2', b'"decision": 7'))
    for use in (read_log, lambda p: Decisions(shop_policy(), p)):
        with pytest.raises(ValueError, match=r"decisions\.jsonl, line 4: the record is damaged"):
            use(path)
    lines = whole.splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3] + lines[4:]))  # as the message says
    assert read_log(path).size == 2
    header = json.loads(lines[0]) | {"version": 9}
    del header["crc"]
    path.write_bytes(line_of(header))
    with pytest.raises(DataError, match="no log of decisions, or one of another version"):
        read_log(path)
