"""One transition, as the loop passes it to an agent, and the replay memory of many.

The memory is a uniform sample of bounded size from all transitions of an agent. Reservoir sampling:
the t-th transition takes a place at random among t, and is kept if that place exists. The place is
a hash of t, so that the memory uses none of the agent's random numbers. An agent may instead choose
which transitions to keep, by `Memory.retain`: see `FittedRmax`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.compiled import jit_borrowing, jit_inlined
from rblspi.core.types import Allowed, Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions

#: how a transition leaves its episode: termination cuts the future off, truncation does not
CONTINUES, TERMINATED, TRUNCATED = range(3)


class Transition(NamedTuple):
    """A step from the features of one observation to the features of the next."""

    x: Vector  # phi(s)                           (n,)
    action: int
    reward: float
    y: Vector  # phi(s')                          (n,)
    next_allowed: Allowed  # which actions in s'  (actions,)
    end: int  # CONTINUES, TERMINATED or TRUNCATED


@jit_inlined
def ends_episode(transition: Transition) -> bool:
    """Whether the next action belongs to another episode."""
    return transition.end != CONTINUES


@jit_inlined
def is_terminal(transition: Transition, limit_ends: bool = False) -> bool:
    """Whether the next state has no value; with ``limit_ends``, also after truncation."""
    return transition.end == TERMINATED or (limit_ends and transition.end == TRUNCATED)


@jit_inlined
def is_due(transition: Transition, every: int, transitions: int) -> bool:
    """Whether a periodic event is due: every so many transitions; if 0, after an episode."""
    return ends_episode(transition) if every == 0 else transitions % every == 0


# Many transitions -------------------------------------------------------------------------------

#: transitions that most agents keep, unless their observations are large
CAPACITY = 20_000
#: the most numbers in all observations that are kept: 16 MB
NUMBERS = 2**21

#: places in `Memory.counters`
SEEN, EPISODE, KEPT = range(3)


class Memory(NamedTuple):
    """Transitions, in no particular order."""

    observations: Matrix  #                              (capacity, d)
    next_observations: Matrix  #                         (capacity, d)
    actions: Integers  #                                 (capacity,)
    rewards: Vector  #                                   (capacity,)
    ends: Integers  # CONTINUES, TERMINATED, TRUNCATED   (capacity,)
    episodes: Integers  # number of the episode          (capacity,)
    steps: Integers  # of the episode before this one    (capacity,)
    next_allowed: NDArray[np.uint8]  # actions after it  (capacity, actions)
    counters: Integers  # transitions and episodes so far, and how many are kept  (3,)
    workspace: Vector  # the observation before a step   (d,)

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        return {
            "counters": (0, [LARGEST_COUNT, LARGEST_COUNT, len(self.actions)]),
            "actions": (0, actions - 1),
            "ends": (CONTINUES, TRUNCATED),
            "episodes": (0, LARGEST_COUNT),
            "steps": (0, LARGEST_COUNT),
        }

    @property
    def size(self) -> int:
        """The number of transitions that are kept."""
        return int(self.counters[KEPT])

    @property
    def room(self) -> int:
        """The number of transitions that can still be added without dropping another."""
        return len(self.actions) - self.size

    def retain(self, rows: Mask) -> None:
        """Keep only some of the transitions that are kept."""
        kept = self.kept()
        count = int(rows.sum())
        for name, array in kept._asdict().items():
            if name not in ("counters", "workspace"):
                array[:count] = array[rows]
        self.counters[KEPT] = count

    def kept(self) -> Memory:
        """The same memory without its empty places."""
        rows = {name: array[: self.size] for name, array in self._asdict().items()}
        return self._replace(**rows | {"counters": self.counters, "workspace": self.workspace})

    def order(self) -> Integers:
        """The places of the kept transitions, in the order in which they were observed."""
        kept = slice(self.size)
        places: Integers = np.lexsort((self.steps[kept], self.episodes[kept]))
        return places

    def transitions(self, shape: tuple[int, ...], most: int | None = None) -> Transitions:
        """The kept transitions, in their `order`; every episode is marked as cut short.

        ``shape`` is that of one observation; () gives whole numbers. If there are more than
        ``most``, this many of them are returned, evenly spaced.
        """
        order = self.order()
        if most is not None and len(order) > most:
            order = order[np.linspace(0, len(order) - 1, most).astype(np.int64)]
        episodes, ends = self.episodes[order], self.ends[order]
        last = np.append(episodes[1:] != episodes[:-1], True)
        terminated = ends == TERMINATED
        before, after = (
            column[order].reshape(-1, *shape).astype(np.float64 if shape else np.int64)
            for column in (self.observations, self.next_observations)
        )
        allowed = self.next_allowed[order].astype(np.bool_)
        return Transitions(
            *(before, self.actions[order], self.rewards[order], after, terminated),
            truncated=last & ~terminated,
            next_allowed=None if allowed.all() else allowed,
        )


def capacity_for(inputs: int, most: int = CAPACITY) -> int:
    """The number of transitions to keep if an observation has this many components."""
    return min(most, max(1, NUMBERS // (2 * inputs)))


def new_memory(capacity: int, inputs: int, actions: int) -> Memory:
    """A memory without any transition."""
    whole = [np.zeros(capacity, np.int64) for _ in range(4)]
    return Memory(
        np.zeros((capacity, inputs)),
        np.zeros((capacity, inputs)),
        whole[0],
        np.zeros(capacity),
        whole[1],
        whole[2],
        whole[3],
        np.ones((capacity, actions), np.uint8),
        np.zeros(3, np.int64),
        np.zeros(inputs),
    )


@jit_inlined
def remember(
    memory: Memory, episode: int, step: int, observation: Vector, transition: Transition
) -> None:
    """Keep or drop the transition from the observation in the workspace to this one."""
    seen = memory.counters[SEEN]
    memory.counters[SEEN] = seen + 1
    if memory.counters[KEPT] < len(memory.actions):
        place = memory.counters[KEPT]
        memory.counters[KEPT] += 1
    else:
        place = _hash(seen) % (seen + 1)
        if place >= len(memory.actions):
            return
    for j in range(len(observation)):
        memory.observations[place, j] = memory.workspace[j]
        memory.next_observations[place, j] = observation[j]
    memory.actions[place] = transition.action
    memory.rewards[place] = transition.reward
    memory.ends[place] = transition.end
    memory.episodes[place] = episode
    memory.steps[place] = step
    for a in range(len(transition.next_allowed)):
        memory.next_allowed[place, a] = transition.next_allowed[a]


@jit_borrowing
def _hash(number: int) -> int:
    """A number that looks random, at least 0 (the finaliser of SplitMix64)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64((z ^ (z >> np.uint64(31))) >> np.uint64(1))  # type: ignore[return-value]
