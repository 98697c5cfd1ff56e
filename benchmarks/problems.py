"""Problems that the library was not made for, and whose values can be computed.

A `Table` knows its probabilities, so that the values of any policy follow by linear algebra.
A `Plant` moves a batch of states of numbers at a time, so that the values of any policy follow by
simulating many copies of it. `PROBLEMS` lists all of them by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
#: A function that chooses actions, counted from 0, for a batch of observations
Policy = Callable[[Array], Array]

DISCOUNT = 0.99


class Table(gym.Env[Any, int]):
    """A problem with finitely many states.

    Parameters
    ----------
    moves : ndarray, shape (actions, states, states)
        P(s' | s, a). What the last axis lacks to 1 is the probability that the episode ends.
    rewards : ndarray, shape (actions, states)
        Expected rewards.
    noise : float
        Standard deviation of rewards.
    starts : ndarray of int
        States in which an episode starts, all equally likely.
    observations : ndarray of int, shape (states, d), optional
        Whole numbers that an agent sees in place of the number of the state.
    """

    def __init__(
        self,
        moves: Array,
        rewards: Array,
        noise: float = 0.0,
        starts: Array | None = None,
        observations: Array | None = None,
    ) -> None:
        self.moves, self.rewards, self.noise = moves, rewards, noise
        actions, states = rewards.shape
        self.starts = np.arange(states) if starts is None else starts
        self.seen = observations
        self.action_space = gym.spaces.Discrete(actions)
        self.observation_space: gym.Space[Any] = gym.spaces.Discrete(states)
        if observations is not None:
            low, high = observations.min(axis=0), observations.max(axis=0)
            self.observation_space = gym.spaces.Box(
                low.astype(np.float64), high.astype(np.float64), dtype=np.float64
            )
        self._reached = moves.cumsum(axis=2)
        self.state = 0

    def observe(self, states: Any) -> Any:
        """What an agent sees of one state or of several."""
        return states if self.seen is None else self.seen[states].astype(np.float64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start in a random state."""
        super().reset(seed=seed)
        self.state = int(self.np_random.choice(self.starts))
        return self.observe(self.state), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Draw the next state and the reward."""
        reward = self.rewards[action, self.state] + self.noise * self.np_random.standard_normal()
        reached = self._reached[action, self.state]
        after = int(np.searchsorted(reached, self.np_random.random(), side="right"))
        ended = after == len(reached)
        self.state = self.state if ended else after
        return self.observe(self.state), float(reward), ended, False, {}

    def exact_values(self, policy: Policy, discount: float = DISCOUNT) -> tuple[Array, Array]:
        """All observations, and Q of the policy there, shape (states, actions)."""
        every = np.arange(self.rewards.shape[1])
        seen = self.observe(every)
        chosen = np.asarray(policy(seen))
        system = np.eye(len(every)) - discount * self.moves[chosen, every]
        values = np.linalg.solve(system, self.rewards[chosen, every])
        return seen, (self.rewards + discount * self.moves @ values).T

    def optimal_policy(self, discount: float = DISCOUNT) -> Policy:
        """By policy iteration."""
        chosen = self.rewards.argmax(axis=0)
        while True:
            _, values = self.exact_values(lambda _, fixed=chosen: fixed, discount)
            own = np.take_along_axis(values, chosen[:, None], axis=1)[:, 0]
            better = np.where(values.max(axis=1) > own + 1e-9, values.argmax(axis=1), chosen)
            if np.array_equal(better, chosen):
                return lambda _: chosen
            chosen = better


class Plant(gym.Env[Array, int]):
    """A problem whose state is a few numbers.

    Parameters
    ----------
    move : callable
        ``move(rng, states, actions)`` gives the next states and the rewards, of N copies at once.
    start : callable
        ``start(rng, n)`` gives n states in which episodes start.
    low, high : sequence of float
        Bounds of the observations, which are the states.
    actions : int
    """

    def __init__(
        self,
        move: Callable[[np.random.Generator, Array, Array], tuple[Array, Array]],
        start: Callable[[np.random.Generator, int], Array],
        low: Any,
        high: Any,
        actions: int,
    ) -> None:
        self.move, self.start = move, start
        self.observation_space = gym.spaces.Box(
            np.array(low, np.float64), np.array(high, np.float64), dtype=np.float64
        )
        self.action_space = gym.spaces.Discrete(actions)
        self.state = np.zeros(len(low))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start in a random state."""
        super().reset(seed=seed)
        self.state = self.start(self.np_random, 1)[0]
        return self.state.copy(), {}

    def step(self, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """One move; the problem never ends by itself."""
        after, rewards = self.move(self.np_random, self.state[None], np.array([action]))
        self.state = after[0]
        return self.state.copy(), float(rewards[0]), False, False, {}

    def returns(
        self,
        policy: Policy,
        states: Array,
        first: Array,
        steps: int,
        rng: np.random.Generator,
        discount: float = DISCOUNT,
    ) -> Array:
        """Discounted returns of N copies that take the first actions and then follow the policy."""
        found, weight, actions = np.zeros(len(states)), 1.0, first
        for _ in range(steps):
            states, rewards = self.move(rng, states, actions)
            found += weight * rewards
            weight *= discount
            actions = np.asarray(policy(states))
        return found

    def exact_values(
        self,
        policy: Policy,
        discount: float = DISCOUNT,
        *,
        places: int = 40,
        copies: int = 64,
        seed: int = 0,
    ) -> tuple[Array, Array]:
        """States on the way of the policy, and Q there, by the means of many simulations."""
        rng = np.random.default_rng(seed)
        states = self.start(rng, places)
        for i in range(100):  # every place is reached after another number of steps
            going = rng.integers(100, size=places) > i
            after, _ = self.move(rng, states, np.asarray(policy(states)))
            states = np.where(going[:, None], after, states)
        count = int(self.action_space.n)
        rows = np.repeat(states, count * copies, axis=0)
        first = np.tile(np.repeat(np.arange(count), copies), places)
        horizon = int(np.log(1e-3) / np.log(discount))
        found = self.returns(policy, rows, first, horizon, rng, discount)
        return states, found.reshape(places, count, copies).mean(axis=2)


# Tables -------------------------------------------------------------------------------------------


def inventory(price: float, order: float, hold: float, demand: tuple[float, ...]) -> Table:
    """A shop with at most 20 items, whose demand is Poisson and depends on the day of the week.

    Orders are of 0, 3, 6 or 9 items and arrive at once.
    """
    sizes, most, days = (0, 3, 6, 9), 20, 7
    states = (most + 1) * days
    moves, rewards = np.zeros((4, states, states)), np.zeros((4, states))
    for day in range(days):
        chances = _poisson(demand[day], most)
        for stock in range(most + 1):
            for a, size in enumerate(sizes):
                there, s = min(stock + size, most), stock * days + day
                for wanted, chance in enumerate(chances):
                    sold = min(there, wanted)
                    after = there - sold
                    gain = price * sold - (there - stock) - order * (size > 0) - hold * after
                    rewards[a, s] += chance * gain
                    moves[a, s, after * days + (day + 1) % days] += chance
    both = np.stack(np.divmod(np.arange(states), days), axis=1)
    return Table(moves, rewards, observations=both)


def _poisson(mean: float, most: int) -> Array:
    """Probabilities of 0 to ``most``; the last one is of all that is more."""
    chances = np.cumprod(np.r_[np.exp(-mean), mean / np.arange(1, most + 1)])
    chances[-1] += 1.0 - chances.sum()
    return chances


def machine(levels: int = 30) -> Table:
    """A machine that wears out: run it, repair it, or replace it."""
    moves, rewards = np.zeros((3, levels, levels)), np.zeros((3, levels))
    for worn in range(levels):
        for more, chance in ((0, 0.5), (1, 0.3), (3, 0.2)):
            moves[0, worn, min(worn + more, levels - 1)] += chance
        rewards[0, worn] = 10.0 - 0.02 * worn**2
        moves[1, worn, max(worn - 5, 0)] = 1.0
        rewards[1, worn] = -3.0
        moves[2, worn, 0] = 1.0
        rewards[2, worn] = -20.0
    return Table(moves, rewards, noise=1.0)


def windy_grid(width: int = 10, height: int = 7) -> Table:
    """A grid with an upward wind in the middle that blows half of the time; -1 a step."""
    wind = np.zeros(width, int)
    wind[3:8], wind[6:8] = 1, 2
    goal, states = (3, 7), width * height
    moves, rewards = np.zeros((4, states, states)), np.full((4, states), -1.0)
    for y in range(height):
        for x in range(width):
            for a, (dy, dx) in enumerate(((-1, 0), (0, 1), (1, 0), (0, -1))):
                for blown in (0, wind[x]):
                    to = np.clip(y + dy - blown, 0, height - 1), np.clip(x + dx, 0, width - 1)
                    if to != goal:
                        moves[a, y * width + x, to[0] * width + to[1]] += 0.5
    return Table(moves, rewards, starts=np.array([3 * width]))


def garnet(seed: int, ends: bool, states: int = 50, actions: int = 4, branches: int = 5) -> Table:
    """A random problem: few next states for every action, and noisy rewards.

    T. Archibald, K. McKinnon and L. Thomas (1995). On the generation of Markov decision processes.
    """
    rng = np.random.default_rng(seed)
    moves = np.zeros((actions, states, states))
    for a in range(actions):
        for s in range(states):
            moves[a, s, rng.choice(states, branches, replace=False)] = rng.dirichlet(
                np.ones(branches)
            )
    if ends:
        moves *= 0.95
    return Table(moves, rng.standard_normal((actions, states)), noise=1.0)


# Numbers ------------------------------------------------------------------------------------------


def integrator() -> Plant:
    """A mass that is pushed to the origin, with noise; three forces."""

    def move(rng: np.random.Generator, states: Array, actions: Array) -> tuple[Array, Array]:
        place, speed = states.T
        force = 0.2 * (np.asarray(actions) - 1.0)
        rewards = -(place**2) - 0.1 * speed**2 - force**2
        speed = np.clip(speed + force + 0.02 * rng.standard_normal(len(states)), -1.0, 1.0)
        place = np.clip(place + 0.2 * speed, -2.0, 2.0)
        return np.stack([place, speed], axis=1), rewards

    def start(rng: np.random.Generator, n: int) -> Array:
        return rng.uniform([-2.0, -1.0], [2.0, 1.0], (n, 2))

    return Plant(move, start, [-2.0, -1.0], [2.0, 1.0], 3)


def reservoir() -> Plant:
    """A dam with a level, the season and the last inflow; four sizes of release."""

    def move(rng: np.random.Generator, states: Array, actions: Array) -> tuple[Array, Array]:
        level, season, inflow = states.T
        released = np.minimum(level, 0.1 * np.asarray(actions))
        wet = 0.15 * (1.0 + np.sin(2.0 * np.pi * season))
        inflow = np.clip(0.5 * inflow + 0.5 * wet * rng.gamma(4.0, 0.25, len(states)), 0.0, 1.0)
        level = level - released + inflow
        spilled = np.maximum(level - 1.0, 0.0)
        rewards = np.sqrt(released * np.clip(level, 0.0, 1.0)) - 5.0 * spilled
        after = np.stack([np.clip(level, 0.0, 1.0), (season + 1.0 / 12.0) % 1.0, inflow], axis=1)
        return after, rewards

    def start(rng: np.random.Generator, n: int) -> Array:
        return rng.uniform([0.0, 0.0, 0.0], [1.0, 1.0, 0.3], (n, 3))

    return Plant(move, start, [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], 4)


def linear_system(seed: int = 0, numbers: int = 6) -> Plant:
    """A stable linear system with noise and a quadratic cost; five inputs to choose from."""
    rng = np.random.default_rng(seed)
    inner = rng.standard_normal((numbers, numbers))
    inner *= 0.95 / np.abs(np.linalg.eigvals(inner)).max()
    inputs = np.concatenate([np.zeros((1, numbers)), 0.3 * rng.standard_normal((4, numbers))])

    def move(rng: np.random.Generator, states: Array, actions: Array) -> tuple[Array, Array]:
        chosen = np.asarray(actions)
        rewards = -np.square(states).sum(axis=1) - 0.1 * (chosen > 0)
        noise = 0.05 * rng.standard_normal(states.shape)
        return np.clip(states @ inner.T + inputs[chosen] + noise, -3.0, 3.0), rewards

    def start(rng: np.random.Generator, n: int) -> Array:
        return rng.uniform(-1.0, 1.0, (n, numbers))

    return Plant(move, start, [-3.0] * numbers, [3.0] * numbers, 5)


class Problem(NamedTuple):
    """How to make a problem, and how many steps an agent has in it."""

    make: Callable[[], gym.Env[Any, Any]]
    steps: int
    limit: int | None = None  # steps of an episode


_EVEN, _WEEKEND = (3.0,) * 7, (2.0, 2.0, 2.0, 3.0, 5.0, 7.0, 4.0)

PROBLEMS: dict[str, Problem] = {
    "inventory, even": Problem(partial(inventory, 2.0, 0.5, 0.1, _EVEN), 10_000, 200),
    "inventory, weekend": Problem(partial(inventory, 2.5, 2.0, 0.1, _WEEKEND), 10_000, 200),
    "inventory, dear to hold": Problem(partial(inventory, 3.0, 1.0, 0.4, _WEEKEND), 10_000, 200),
    "machine replacement": Problem(machine, 10_000, 200),
    "windy grid": Problem(windy_grid, 20_000, 500),
    "garnet": Problem(partial(garnet, 11, ends=False), 20_000, 200),
    "garnet with ends": Problem(partial(garnet, 12, ends=True), 20_000),
    "noisy integrator": Problem(integrator, 10_000, 200),
    "reservoir": Problem(reservoir, 20_000, 240),
    "linear system": Problem(linear_system, 20_000, 200),
    "CartPole-v1": Problem(partial(gym.make, "CartPole-v1"), 30_000),
    "MountainCar-v0": Problem(partial(gym.make, "MountainCar-v0"), 30_000),
    "Acrobot-v1": Problem(partial(gym.make, "Acrobot-v1"), 50_000),
    "FrozenLake-v1": Problem(partial(gym.make, "FrozenLake-v1"), 50_000),
}


def make(name: str) -> gym.Env[Any, Any]:
    """An environment by the name of its problem."""
    problem = PROBLEMS[name]
    env = problem.make()
    if problem.limit is not None:
        env = gym.wrappers.TimeLimit(env, problem.limit)
    return env
