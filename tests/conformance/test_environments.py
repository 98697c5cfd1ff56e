"""What holds for every environment that the package registers."""

import warnings
from dataclasses import fields
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rblspi  # noqa: F401  (registers the domains)
from rblspi.core.compiled import GENERATOR, INT, MATRIX, RESET, STEP, VECTOR, Entry, function_type
from rblspi.environments.base import Domain


class Case(NamedTuple):
    limit: int | None  # steps of an episode
    terminates: bool
    state: list[float]
    other: list[float]  # a picture must tell it from the first
    farthest: list[float]  # as far as a state may go
    chance: bool = True


CAR = Case(500, True, [-0.5, 0.0], [0.1, 0.0], [0.5, 0.07])
SEA = Case(None, True, [0.0, 0.0], [11.0, 0.0], [99.0, 1.0], chance=False)
SWING = [3.0, 5.0, 1.0, 0.0, 9.0]
DOMAINS = {
    "CartPole": Case(500, True, [0.0] * 4, [0.1, 0.0, 0.0, 0.0], [-9.0, 9.0, -3.0, 9.0]),
    "CartPoleSwingUp": Case(1000, True, [0.0, 0.0, -1, 0, 0], [0.0, 0.0, 0, 1, 0], SWING),
    "ChainWalk": Case(None, False, [3.0], [4.0], [19.0]),
    "CombinationLock": Case(None, True, [3.0], [13.0], [19.0]),
    "DeepSea": SEA,
    "DeepSeaStochastic": SEA._replace(chance=True),
    "InvertedPendulum": Case(3000, True, [0.0, 0.0], [-0.1, 0.0], [7.0, 300.0]),
    "MountainCar": CAR,
    "NChain": Case(None, False, [1.0, 0.0], [2.0, 1.0], [99.0, 108.0], chance=False),
    "PuddleWorld": Case(500, True, [0.2, 0.2], [0.25, 0.2], [1.0, 1.0]),
    "RiverSwim": Case(None, False, [0.0], [1.0], [5.0]),
    "SparseMountainCar": CAR,
}
every_domain = pytest.mark.parametrize("name", DOMAINS)


def make(name, **arguments):
    return gym.make(f"rblspi/{name}-v0", **arguments).unwrapped


def walk(environment, seed, steps=60):
    """Observation, reward, terminated and truncated of random actions."""
    observation, _ = environment.reset(seed=seed)
    seen = [(observation, 0.0, False, False)]
    for action in np.random.default_rng(seed).integers(environment.action_space.n, size=steps):
        seen.append(environment.step(action)[:4])
        if seen[-1][2] or seen[-1][3]:
            environment.reset()
    return seen


def test_registered_ids_and_step_limits():
    ours = {name for name in gym.registry if name.startswith("rblspi/")}
    limits = {f"rblspi/{name}-v0": domain.limit for name, domain in DOMAINS.items()}
    assert {name: gym.spec(name).max_episode_steps for name in ours} == limits


@every_domain
def test_gymnasium_accepts(name):
    with warnings.catch_warnings():
        # Two domains have velocities without bounds and say so; Gymnasium advises against it.
        if name in ("CartPole", "InvertedPendulum"):
            warnings.filterwarnings("ignore", message=".*Box observation space m.*imum value is")
        check_env(make(name))


@every_domain
def test_one_seed_gives_one_trajectory_and_another_gives_another(name):
    first, same, other = (walk(make(name), seed) for seed in (3, 3, 4))
    np.testing.assert_equal(first, same)
    if DOMAINS[name].chance:
        assert any(np.any(one[0] != another[0]) for one, another in zip(first, other, strict=True))


@every_domain
def test_observations_stay_in_the_space_and_episodes_end_as_they_should(name):
    environment = make(name)
    observations, rewards, terminated, truncated = zip(*walk(environment, 5, 400), strict=True)
    assert all(environment.observation_space.contains(one) for one in observations)
    assert np.isfinite(rewards).all()
    # Random actions reach an end within 400 steps, but for the car and the swinging pole.
    slow = name in ("MountainCar", "SparseMountainCar", "CartPoleSwingUp", "PuddleWorld")
    assert any(terminated) == DOMAINS[name].terminates or slow
    assert [i for i, cut in enumerate(truncated) if cut] == (
        [108, 216, 324] if name == "NChain" else []
    )


def play(reset, step, parameters, state, rng, actions, seen):
    reset(parameters, state, rng)
    for i in range(len(seen)):
        reward, terminated, truncated = step(parameters, state, i % actions, rng)
        seen[i, 0], seen[i, 1], seen[i, 2] = reward, terminated, truncated
        seen[i, 3] = state[0]
        if terminated or truncated:
            reset(parameters, state, rng)


play_compiled = Entry(
    play,
    *(function_type(RESET), function_type(STEP)),
    *(VECTOR, VECTOR, GENERATOR, INT, MATRIX),
    what="a rollout",
)


@every_domain
def test_compiled_code_gymnasium_s_interface_and_plain_functions_agree(name):
    environment = make(name)
    reset, step, parameters, size = environment.dynamics
    actions, (inside, outside, plain) = int(environment.action_space.n), np.empty((3, 120, 4))
    for run, functions, seen in (
        (play_compiled, (reset, step), inside),
        (play, (reset.py_func, step.py_func), plain),
    ):
        run(*functions, parameters, np.zeros(size), np.random.default_rng(2), actions, seen)
    environment.np_random = np.random.default_rng(2)
    environment.reset()
    for i, seen in enumerate(outside):
        _, *seen[:3], _ = environment.step(i % actions)
        seen[3] = environment.state[0]
        if seen[1] or seen[2]:
            environment.reset()
    np.testing.assert_array_equal(inside, outside)
    np.testing.assert_allclose(plain, inside, rtol=1e-9, atol=1e-12)


@every_domain
def test_an_episode_can_start_in_a_given_state(name):
    environment, state = make(name), DOMAINS[name].other
    observation, _ = environment.reset(options={"state": state})
    seen = np.atleast_1d(observation)
    np.testing.assert_array_equal(seen, state[: len(seen)])
    np.testing.assert_array_equal(environment.state, state)


@every_domain
@pytest.mark.parametrize("action", [-1, 17, 0.5, None, "left"])
def test_a_wrong_action_and_a_missing_reset_are_explained(name, action):
    environment = make(name)
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        environment.step(0)
    environment.reset(seed=0)
    with pytest.raises(ValueError, match=f"action {action!r} is not in Discrete"):
        environment.step(action)


@every_domain
def test_pictures_differ_where_states_do(name):
    environment = make(name, render_mode="rgb_array")
    domain, pictures = DOMAINS[name], []
    for state in (domain.state, domain.state, domain.other, domain.farthest):
        environment.reset(seed=0, options={"state": state})
        pictures.append(environment.render())
        assert pictures[-1].shape == (400, 600, 3)
        assert pictures[-1].dtype == np.uint8
    first, same, other, _ = pictures
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("CartPole", [-0.05] * 4, [0.05] * 4),
        ("InvertedPendulum", [-0.2] * 2, [0.2] * 2),
        ("MountainCar", [-0.6, 0.0], [-0.4, 0.0]),
    ],
)
def test_starts_are_uniform_between_the_limits(name, low, high):
    environment, size = make(name), np.subtract(high, low)
    starts = [environment.reset(seed=0)[0], *(environment.reset()[0] for _ in range(1999))]
    shares = (np.array(starts) - low) / np.where(size > 0.0, size, 1.0)
    assert (shares.min(axis=0) >= 0.0).all()
    assert (shares.max(axis=0) <= np.sign(size)).all()
    # The range of 2000 uniform draws misses 1% of the interval with probability 4e-8.
    assert (np.ptp(shares, axis=0) > 0.99 * np.sign(size)).sum() == (size > 0.0).sum()
    error = 5 / np.sqrt(12 * 2000)
    np.testing.assert_allclose(shares.mean(axis=0), 0.5 * np.sign(size), atol=error)
    independent = np.corrcoef(shares.T[size > 0.0]) - np.eye((size > 0.0).sum())
    assert np.abs(independent).max() < 5 / np.sqrt(2000)


PHYSICS = [name for name in DOMAINS if isinstance(make(name), Domain)]
CONSTANTS = [
    (name, field.name)
    for name in PHYSICS
    for field in fields(make(name))
    if field.name != "render_mode"
]


def experience(environment, count=3000):
    """First observations of episodes, and single steps from random states by random actions."""
    rng, space = np.random.default_rng(0), environment.observation_space
    bounded = np.isfinite(space.high).all()
    low, high = (space.low, space.high) if bounded else (-2.5, 2.5)
    seen = [(environment.reset(seed=seed)[0], 0.0, False) for seed in range(20)]
    for _ in range(count):
        environment.state[:] = rng.uniform(low, high, space.shape)
        seen.append(environment.step(int(rng.integers(environment.action_space.n)))[:3])
    return [np.array(column) for column in zip(*seen, strict=True)]


@pytest.mark.parametrize(("name", "constant"), CONSTANTS)
def test_every_constant_is_an_argument(name, constant):
    value = np.asarray(getattr(make(name), constant))
    other = {"hold": 2, "order": 1}.get(constant, (0.7 * value + 0.1 * (value == 0.0)).tolist())
    usual, changed = experience(make(name)), experience(make(name, **{constant: other}))
    assert any((one != another).any() for one, another in zip(usual, changed, strict=True))


@pytest.mark.parametrize(
    ("name", "arguments"), [("InvertedPendulum", {"order": 2}), ("CartPoleSwingUp", {"hold": 0})]
)
def test_constants_without_meaning_are_refused(name, arguments):
    ((constant, value),) = arguments.items()
    with pytest.raises(ValueError, match=f"{constant}={value}"):
        make(name, **arguments)
