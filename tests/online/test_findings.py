"""Every cause that the doctor knows is found where it is, and not where it is not."""

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete

from rblspi import OPSRL, RBLSPI, FittedRmax, Multilinear, RandomFourier, RBFGrid
from rblspi.online.findings import (
    Case,
    circles_of_policies,
    dead_features,
    diagnose,
    few_updates,
    impossible_values,
    lost_digits,
    no_better_than_random,
    no_reward,
    outside_bounds,
    rare_actions,
    short_sight,
    uncertain_values,
    useless_numbers,
    wrong_values,
)
from tests.support.command import run

CAR = "rblspi/MountainCar-v0"
CHAIN = "rblspi/ChainWalk-v0"


def found(check, agent):
    return [str(finding) for finding in check(Case(agent))]


def test_an_agent_without_experience_is_told_to_learn():
    (finding,) = diagnose(RBLSPI(CHAIN, seed=0))
    assert finding.evidence == "its memory is empty"


def test_a_healthy_agent_has_no_findings():
    assert diagnose(OPSRL(CHAIN, seed=0).learn(2000)) == []


def test_values_planned_on_a_grid_are_not_judged_as_if_they_were_fitted():
    """There are far more vertices than transitions, and most are far from all of them."""
    agent = FittedRmax(CAR, Multilinear(30), seed=0).learn(1000)
    for check in (few_updates, dead_features, circles_of_policies):
        assert found(check, agent) == []


def test_rewards_that_are_all_alike():
    sparse = RBLSPI("rblspi/SparseMountainCar-v0", RBFGrid(3), seed=0).learn(300)
    assert not sparse.session.memory.rewards.any()
    (text,) = found(no_reward, sparse)
    assert "all 300 rewards were 0, and no episode terminated" in text
    sparse.session.memory.rewards[7] = 1.0
    assert found(no_reward, sparse) == []


def test_a_discount_that_does_not_see_far_enough():
    agent = RBLSPI("rblspi/SparseMountainCar-v0", RBFGrid(3), discount=0.9, seed=0).learn(3000)
    assert len(agent.episodes)
    agent.session.memory.rewards[: agent.session.memory.size] = 0.0
    (text,) = found(short_sight, agent)
    assert "a third after 10 steps" in text
    assert found(short_sight, RBLSPI(CHAIN, seed=0).learn(100)) == []


def test_too_few_steps_and_a_posterior_at_the_prior():
    early, late = (RBLSPI(CAR, RBFGrid(4), seed=0).learn(steps) for steps in (20, 3000))
    assert "20 transitions for 51 weights" in found(few_updates, early)[0]
    assert found(few_updates, late) == []
    assert "of the visited states" in found(uncertain_values, early)[0]
    assert found(uncertain_values, late) == []


def test_actions_that_were_hardly_tried():
    agent = RBLSPI(CAR, RBFGrid(4), seed=0).learn(1000)
    assert found(rare_actions, agent) == []
    agent.session.memory.actions[:] = 0
    assert "action 1 (0), 2 (0)" in found(rare_actions, agent)[0]


def test_random_fourier_features_have_a_scale_and_no_bounds():
    narrow = RandomFourier(20, low=[-0.55, -0.01], high=[-0.45, 0.01])
    assert found(outside_bounds, RBLSPI(CAR, narrow, seed=0).learn(500)) == []


def test_bounds_and_features():
    small = RBFGrid(4, low=[-0.55, -0.01], high=[-0.45, 0.01])
    texts = found(outside_bounds, RBLSPI(CAR, small, seed=0).learn(500))
    assert len(texts) == 2
    assert "are not from -0.55 to -0.45" in texts[0]
    huge = RBLSPI(CAR, RBFGrid(20, low=-50.0, high=50.0, width=0.1), seed=0).learn(500)
    assert "small part of the bounds in dimension 0" in found(outside_bounds, huge)[0]
    assert "Many features are dead" in found(dead_features, huge)[0]
    fine = RBLSPI(CAR, RBFGrid(4), seed=0).learn(3000)
    assert found(dead_features, fine) == []
    twice = RBLSPI(CAR, lambda s: [1.0, 3.0, s[0], s[1]], seed=0).learn(100)
    assert "2 of 4 have one value" in found(dead_features, twice)[0]


def test_states_that_were_never_visited():
    agent = OPSRL("rblspi/DeepSea-v0", seed=0).learn(30)
    assert "Most states were never visited" in found(dead_features, agent)[0]


def test_values_that_cannot_be():
    agent = RBLSPI(CAR, RBFGrid(4), seed=0).learn(1000)
    agent.state.mean[:] = 1e5
    assert "beyond what the rewards allow" in found(impossible_values, agent)[0]
    agent.state.mean[:] = 0.0
    assert found(impossible_values, agent) == []


def test_features_that_overlap_too_much():
    wide = RBLSPI(CAR, lambda s: [1.0, s[0], s[0]], ridge=1e-14, seed=0)
    with pytest.warns(UserWarning, match="condition numbers"):
        wide.learn(300)
    assert "digits" in found(lost_digits, wide)[0]
    assert found(lost_digits, RBLSPI(CHAIN, seed=0).learn(500)) == []


class Triangle(gym.Env):
    """Three states, in which an agent only stands still."""

    observation_space, action_space = Discrete(3), Discrete(2)

    def reset(self, *, seed=None, options=None):
        return 0, {}

    def step(self, action):
        return 0, 0.0, False, False, {}


def test_policies_that_follow_one_another_in_a_circle():
    """The transitions of tests/offline/test_policy_iteration.py, in the memory of an agent."""
    agent = RBLSPI(Triangle(), lambda s: [[1.0, 2.0, -1.0][s]], discount=0.9, seed=0).learn(6)
    memory = agent.session.memory
    memory.observations[:6, 0] = [0, 2, 2, 1, 0, 2]
    memory.actions[:6] = [1, 0, 0, 0, 1, 0]
    memory.rewards[:6] = [1.0, -1.0, 0.0, 0.0, 1.0, -1.0]
    memory.next_observations[:6, 0] = [2, 0, 1, 2, 1, 2]
    assert "a circle of 2 policies" in found(circles_of_policies, agent)[0]
    assert found(circles_of_policies, RBLSPI(CHAIN, seed=0).learn(500)) == []


def test_the_command_prints_findings_or_that_there_are_none(tmp_path, capsys):
    RBLSPI(CAR, RBFGrid(4), seed=0).learn(20).save(tmp_path / "early.npz")
    assert run("doctor", tmp_path / "early.npz") == 0
    assert "too little for so many weights" in capsys.readouterr().out
    assert run("doctor", tmp_path / "early.npz", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert set(listed[0]) == {"what", "evidence", "advice"}
    OPSRL(CHAIN, seed=0).learn(2000).save(tmp_path / "fine.npz")
    assert run("doctor", tmp_path / "fine.npz") == 0
    assert "None of the usual causes" in capsys.readouterr().out


def test_a_policy_that_gets_other_returns_than_it_states():
    case = Case(FittedRmax(CAR, Multilinear(50), seed=0).learn(6000))
    assert list(wrong_values(case)) == list(no_better_than_random(case)) == []
    less = case.greedy._replace(discounted=case.greedy.discounted - 1000.0)
    vars(case)["greedy"] = less
    (finding,) = wrong_values(case)
    assert f"which brought {less.discounted.mean():.3g}" in finding.evidence


def test_a_policy_that_is_no_better_than_chance():
    agent = OPSRL(CHAIN, seed=0).learn(2000)
    assert found(no_better_than_random, agent) == []
    case = Case(agent)
    assert list(no_better_than_random(case)) == []
    vars(case)["greedy"] = case.random
    (finding,) = no_better_than_random(case)
    assert f"{case.random.returns.mean():.4g}" in finding.evidence


def test_numbers_of_the_observation_that_say_nothing_new():
    """The position twice, and a constant."""
    env = gym.wrappers.TransformObservation(
        gym.make("MountainCar-v0"),
        lambda seen: np.array([seen[0], seen[1], 3.0, -2.0 * seen[0]]),
        gym.spaces.Box(-10.0, 10.0, (4,), np.float64),
    )
    texts = found(useless_numbers, RBLSPI(env, RBFGrid(2), seed=0).learn(300))
    assert [text.splitlines()[0] for text in texts] == [
        "Number 2 of the observation never changes.",
        "Numbers 0 and 3 of the observation say the same.",
    ]
    assert found(useless_numbers, RBLSPI(CAR, RBFGrid(4), seed=0).learn(300)) == []


def test_rewards_of_all_episodes_count_and_not_only_those_remembered():
    """Seven of 50,000 steps ended an episode: a pole that hardly ever falls."""
    agent = FittedRmax("CartPole-v1", seed=0).learn(300)
    memory = agent.session.memory
    memory.ends[: memory.size] = 0
    memory.ends[5] = 1
    assert found(no_reward, agent) == found(short_sight, agent) == []
    memory.rewards[: memory.size] = 0.0
    assert found(no_reward, agent) == []  # its episodes had returns
