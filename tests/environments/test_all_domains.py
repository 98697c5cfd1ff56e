"""What holds for every domain that the package registers."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import rblspi  # noqa: F401  (registers the domains)
from rblspi.core.compiled import GENERATOR, INT, MATRIX, RESET, STEP, VECTOR, Entry, function_type
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.cart_pole import CartPole
from rblspi.environments.cart_pole_swing_up import CartPoleSwingUp
from rblspi.environments.chain_walk import ChainWalk
from rblspi.environments.combination_lock import CombinationLock
from rblspi.environments.deep_sea import DeepSea
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.inverted_pendulum import InvertedPendulum
from rblspi.environments.mountain_car import MountainCar
from rblspi.environments.n_chain import NChain
from rblspi.environments.puddle_world import PuddleWorld
from rblspi.environments.river_swim import RiverSwim

IDS = sorted(name for name in gym.registry if name.startswith("rblspi/"))
CLASSES = (
    *(CartPole, CartPoleSwingUp, ChainWalk, CombinationLock, DeepSea, InvertedPendulum),
    *(MountainCar, NChain, PuddleWorld, RiverSwim),
)
#: nothing is left to chance
DETERMINISTIC = ("rblspi/DeepSea-v0", "rblspi/NChain-v0")
STEP_LIMITS = {
    "rblspi/CartPole-v0": 500,
    "rblspi/CartPoleSwingUp-v0": 1000,
    "rblspi/ChainWalk-v0": None,
    "rblspi/CombinationLock-v0": None,
    "rblspi/DeepSea-v0": None,
    "rblspi/DeepSeaStochastic-v0": None,
    "rblspi/InvertedPendulum-v0": 3000,
    "rblspi/MountainCar-v0": 500,
    "rblspi/NChain-v0": None,
    "rblspi/PuddleWorld-v0": 500,
    "rblspi/RiverSwim-v0": None,
    "rblspi/SparseMountainCar-v0": 500,
}


def trajectory(environment, seed, steps=60):
    observation, _ = environment.reset(seed=seed)
    actions = np.random.default_rng(seed).integers(environment.action_space.n, size=steps)
    seen = [(np.copy(observation), 0.0, False)]
    for action in actions:
        observation, reward, terminated, _, _ = environment.step(action)
        seen.append((np.copy(observation), reward, terminated))
        if terminated:
            environment.reset()
    return seen


def assert_same(first, second):
    for (observation, *rest), (other, *other_rest) in zip(first, second, strict=True):
        np.testing.assert_array_equal(observation, other)
        assert rest == other_rest


def test_registered_ids_and_step_limits():
    assert {name: gym.spec(name).max_episode_steps for name in IDS} == STEP_LIMITS


@pytest.mark.parametrize("name", IDS)
def test_gymnasium_accepts(name, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    with warnings.catch_warnings():
        # Two domains have velocities without bounds and say so; Gymnasium advises against it.
        if name in ("rblspi/CartPole-v0", "rblspi/InvertedPendulum-v0"):
            warnings.filterwarnings("ignore", message=".*Box observation space m.*imum value is")
        check_env(gym.make(name).unwrapped)


@pytest.mark.parametrize("name", IDS)
def test_one_seed_gives_one_trajectory_and_another_gives_another(name):
    first = trajectory(gym.make(name).unwrapped, seed=3)
    assert_same(first, trajectory(gym.make(name).unwrapped, seed=3))
    other = trajectory(gym.make(name).unwrapped, seed=4)
    if name not in DETERMINISTIC:
        assert any((a[0] != b[0]).any() for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("name", IDS)
def test_observations_stay_in_the_space_until_the_end(name):
    environment = gym.make(name).unwrapped
    for observation, _, _ in trajectory(environment, seed=5, steps=400):
        if observation.ndim == 0:
            observation = int(observation)
        assert environment.observation_space.contains(observation)


@pytest.mark.parametrize("domain", CLASSES)
def test_compiled_and_plain_functions_agree(domain):
    environment = domain()
    reset, step, parameters, size = environment.dynamics
    states = np.full((2, size), np.nan)
    generators = [np.random.default_rng(1), np.random.default_rng(1)]
    functions = [(reset, step), (reset.py_func, step.py_func)]
    for state, rng, (start, _) in zip(states, generators, functions, strict=True):
        start(parameters, state, rng)
    for i in range(50):
        action = i % int(environment.action_space.n)
        first, second = (
            advance(parameters, state, action, rng)
            for state, rng, (_, advance) in zip(states, generators, functions, strict=True)
        )
        np.testing.assert_allclose(states[0], states[1], rtol=1e-9, atol=1e-12)
        assert first == pytest.approx(second, rel=1e-9)


def _rollout(reset, step, parameters, state, rng, actions, seen):
    reset(parameters, state, rng)
    for i in range(len(seen)):
        reward, terminated, truncated = step(parameters, state, i % actions, rng)
        seen[i, 0], seen[i, 1], seen[i, 2] = reward, terminated, truncated
        seen[i, 3] = state[0]
        if terminated:
            reset(parameters, state, rng)


rollout = Entry(
    _rollout,
    *(function_type(RESET), function_type(STEP)),
    *(VECTOR, VECTOR, GENERATOR, INT, MATRIX),
    what="a rollout",
)


@pytest.mark.parametrize("domain", CLASSES)
def test_compiled_code_takes_the_functions_as_arguments(domain):
    environment = domain()
    reset, step, parameters, size = environment.dynamics
    inside, outside = np.full((2, 300, 4), np.nan)
    for run, seen in ((rollout, inside), (_rollout, outside)):
        rng = np.random.default_rng(2)
        run(reset, step, parameters, np.zeros(size), rng, int(environment.action_space.n), seen)
    np.testing.assert_array_equal(inside, outside)


@pytest.mark.parametrize("domain", CLASSES)
@pytest.mark.parametrize("action", [-1, 17, 0.5, None, "left"])
def test_a_wrong_action_is_named(domain, action):
    environment = domain()
    environment.reset(seed=0)
    with pytest.raises(ValueError, match=f"action {action!r} is not in Discrete"):
        environment.step(action)


@pytest.mark.parametrize("domain", CLASSES)
def test_a_step_before_the_first_reset_says_what_to_do(domain):
    with pytest.raises(gym.error.ResetNeeded, match=r"call reset\(\)"):
        domain().step(0)


@pytest.mark.parametrize("domain", CLASSES)
def test_an_episode_can_start_in_a_given_state(domain):
    environment = domain()
    state = np.linspace(0.1, 0.2, environment.dynamics.state_size)
    if isinstance(environment, FiniteEnvironment):
        state = np.array([5.0, 1.0])[: len(state)]
    observation, _ = environment.reset(options={"state": state})
    seen = np.atleast_1d(observation)
    np.testing.assert_array_equal(seen, state[: len(seen)])
    np.testing.assert_array_equal(environment.state, state)


def test_functions_that_are_not_compiled_are_refused():
    chain = ChainWalk()
    dynamics = Dynamics(chain.dynamics.reset, lambda *_: (0.0, False, False), np.zeros(1), 1)
    with pytest.raises(TypeError, match=r"dynamics\.step is not compiled"):
        CompiledEnvironment(dynamics, chain.observation_space, chain.action_space)
