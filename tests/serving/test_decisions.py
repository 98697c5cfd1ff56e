"""Decisions and their outcomes become a log of transitions, each of them once."""

import json
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest

from rblspi import FQI, LSPI, LinearPolicy, OneHot, Polynomial
from rblspi.data import DataError, Transitions, read_log
from rblspi.data.decision_log import transitions_in
from rblspi.serving import Decisions
from tests.support.command import run
from tests.support.logs import ACTIONS, assert_same, episode_rows, joined, transitions_of_rows
from tests.support.shop_policy import shop_policy
from tests.support.values import any_policy


def states_of(rng, count):
    return [
        {"stock": float(rng.uniform(-1, 1)), "weekday": str(rng.choice(["Mon", "Tue", "Wed"]))}
        for _ in range(count)
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "decisions.db"


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
        first, second = decisions.start_acting([state, state]).result()
        assert decisions.record(first.id, 1.5, state)
        assert not decisions.record(first.id, 1.5, state)
        outcome = {"id": second.id, "next_state": state}
        twice = [outcome | {"reward": 2}, outcome | {"reward": 2.0}]
        assert decisions.start_recording(twice).result() == 1
    with Decisions(shop_policy(), path) as decisions:  # and also after the end of the process
        assert not decisions.record(second.id, 2.0, {"weekday": "Mon", "stock": "0.5"})
        with pytest.raises(ValueError, match="has another outcome already, which stays"):
            decisions.record(first.id, 1.6, state)
        assert decisions.counts == {"decisions": 2, "outcomes": 2}
        third = decisions.act(state)
        assert third.id.partition("-")[2] == "3"
    assert transitions_in(path)["reward"].to_list() == [1.5, 2.0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"id": "x-1"}, "'x-1' is no id of a decision in decisions.db"),
        ({"id": "LOG-77"}, "there is no decision .*-77 in decisions.db"),
        ({"id": "LOG-1e9"}, "is no id of a decision"),
        ({"reward": "much"}, "reward='much' must be a number"),
        ({"reward": True}, "reward=True must be a number"),
        ({"reward": float("nan")}, "reward=nan must be finite"),
        ({"next_state": None}, "next_state is missing: give the state after the action"),
        ({"next_state": {"stock": 1.0}}, "state has no 'weekday'"),
        ({"next_state": {"stock": 1.0, "weekday": "Sun"}}, "weekday='Sun' is not in the log"),
        ({"terminated": 1}, "terminated=1 must be true or false"),
        ({"rewrd": 1.0}, "is no outcome: it has id and reward, and may have next_state"),
    ],
)
def test_outcomes_are_checked_and_recorded_together(path, wrong, message):
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        first, second = decisions.start_acting([state, state]).result()
        good = {"id": first.id, "reward": 1.0, "next_state": state}
        bad = good | {"id": second.id} | wrong
        bad["id"] = bad["id"].replace("LOG", first.id.partition("-")[0])
        with pytest.raises(ValueError, match=r"outcomes\[1\]: .*" + message):
            decisions.start_recording([good, bad]).result()
        assert decisions.counts == {"decisions": 2, "outcomes": 0}
        with pytest.raises(ValueError, match=message):
            decisions.start_recording([bad]).result()


def test_states_are_kept_as_plain_data(path):
    policy = shop_policy(fill=0.25)
    given = [
        {"weekday": "Mon", "stock": None},
        {"weekday": " Tue ", "stock": "0.5", "unused": object()},
        [np.float64("nan"), "Wed"],
        {"weekday": "Wed", "stock": np.int64(1)},
    ]
    with Decisions(policy, path) as decisions:
        for decision, state in zip(decisions.start_acting(given).result(), given, strict=True):
            decisions.record(decision.id, 0.0, state)
        with pytest.raises(ValueError, match=r"states\[1\]: weekday='Sun' is not in the log"):
            decisions.start_acting([given[0], {"weekday": "Sun", "stock": 1.0}]).result()
        with pytest.raises(ValueError, match=r"episode='xxx.*' must be text of at most 200"):
            decisions.act(given[0], episode="x" * 201)
    kept = [(s["stock"], s["weekday"]) for s in transitions_in(path)["state"]]
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
    policy = any_policy(basis, space, action_names=names)
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
    both = log.with_decisions(path)
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


def whole_log(path):
    """A log of three decisions, of which two have outcomes."""
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        made = decisions.start_acting([state] * 3, ["Größe", None, "\0"]).result()
        for decision, reward in zip(made[1:], (1.0, -0.0), strict=True):
            decisions.record(decision.id, reward, state)
    return path


def test_the_log_of_another_policy_is_refused(path):
    whole_log(path)
    with pytest.raises(ValueError, match="is the log of a policy with other states or actions"):
        Decisions(shop_policy(fill=0.0), path)


def change(path, statement):
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(statement)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("UPDATE decisions SET action = 'x' WHERE id = 2", "row 2 of decisions: the row is"),
        ("UPDATE outcomes SET reward = 7.0 WHERE decision = 3", "row 3 of outcomes: the row is"),
        ("UPDATE log SET actions = '[1]'", "of log: the row is damaged"),
        ("DELETE FROM log", "does not say which actions"),
        ("PRAGMA user_version = 9", "is a log of decisions of format 9"),
        ("PRAGMA application_id = 7", "the database of another program"),
        ("DROP TABLE outcomes", "cannot be read .no such table"),
    ],
)
def test_damage_is_told_in_a_sentence(path, damage, message):
    change(whole_log(path), damage)
    for use in (read_log, lambda p: Decisions(shop_policy(), p)):
        with pytest.raises(DataError, match=message):
            use(path)


def test_a_damaged_row_can_be_deleted(path):
    change(whole_log(path), "UPDATE outcomes SET reward = 7.0 WHERE decision = 3")
    change(path, "DELETE FROM outcomes WHERE decision = 3")
    assert read_log(path).size == 1


def test_no_bit_changes_unnoticed(path):
    before, rng = transitions_in(whole_log(path)), np.random.default_rng(0)
    whole = path.read_bytes()
    for place in rng.choice(np.flatnonzero(np.frombuffer(whole, np.uint8)), 200, replace=False):
        changed = bytearray(whole)
        changed[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(changed)
        try:
            after = transitions_in(path)
        except DataError:
            continue
        assert after.equals(before), place


def test_other_files_are_left_alone(path, tmp_path):
    path.write_text("stock,order\n1,2\n" * 100)
    with pytest.raises(ValueError, match=r"decisions\.db is damaged, or no log of decisions"):
        Decisions(shop_policy(), path)
    assert path.read_text() == "stock,order\n1,2\n" * 100
    with pytest.raises(ValueError, match=r"choose a name that ends in \.db"):
        Decisions(shop_policy(), tmp_path / "decisions.jsonl")
    assert list(tmp_path.iterdir()) == [path]


def test_one_process_at_a_time_writes_and_any_number_reads(path):
    program = (
        "import sys; from rblspi.serving import Decisions; from rblspi.data import read_log;"
        "from tests.support.shop_policy import shop_policy; print(read_log(sys.argv[1]).size);"
        "Decisions(shop_policy(), sys.argv[1])"
    )
    whole_log(path)
    with Decisions(shop_policy(), path) as decisions:
        command = [sys.executable, "-c", program, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert "another process is writing to" in done.stderr
        assert done.stdout == "2\n"
        decisions.act({"stock": 0.5, "weekday": "Mon"})
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_full_disk_leaves_the_log_as_it_was(path):
    state = {"stock": 0.5, "weekday": "Mon"}
    with Decisions(shop_policy(), path) as decisions:
        database = decisions._commits._connection
        database.execute("PRAGMA max_page_count = 10")
        with pytest.raises(OSError, match=r"decisions\.db cannot be written: .* disk is full"):
            decisions.start_acting([state] * 1000).result()
        database.execute("PRAGMA max_page_count = 1000000")
        assert decisions.act(state).id.partition("-")[2] == "1"
        assert decisions.counts == {"decisions": 1, "outcomes": 0}
