"""Deep Q-learning with little beside it: features are learnt, and all that acts is a `Network`.

Beside its pseudocode:

    1   for every block of 32 steps:
    2       for every step: a = argmax_a phi(s)'theta_a, or with probability epsilon any    `act`
    3       64 times: sample 128 rows of the memory; make transitions over up to three
            steps of them; a step of double Q-learning              `_sample`, `double_q.train`
    4       phi and theta are those of the slowly averaged weights  `_renew`

Whenever the memory has doubled, the units of observations and values are set again (`_rescale`).
The weights are adapted, so that the values stay the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.check import LARGEST_COUNT
from rblspi.core.compiled import jit_inlined
from rblspi.core.types import Allowed, Integers, Vector
from rblspi.features import BasisLike, Network, as_basis
from rblspi.features.default import table_basis
from rblspi.features.network import as_text, count, split
from rblspi.model.double_q import Batches, Learner, train, unit_of_values
from rblspi.online.agent import Agent, Cost
from rblspi.policies.choice import epsilon_greedy
from rblspi.rollout.loop import AgentFunctions
from rblspi.rollout.memory import TERMINATED, Transition, capacity_for
from rblspi.rollout.multi_step import multi_step

#: steps between two times of learning: a call of compiled code then costs little for each of them
BLOCK = 32
#: updates for every step, and transitions in each
UPDATES, BATCH = 2, 128
#: steps of a transition that it learns from
STEPS = 3
#: the probability of a random action falls from 1 to its lowest value within so many steps
LEAST_EPSILON, EXPLORING_STEPS = 0.05, 10_000
#: the share of the memory that is kept, the newest, when the memory is full
KEPT_SHARE = 0.75
#: multiply-adds of one core in a second, in matrices of this size
MULTIPLY_ADDS_A_SECOND = 2e10

#: places in `State.counters`; LEARNT_AT: transitions at the last time of learning
TRANSITIONS, LEARNT_AT = range(2)


class State(NamedTuple):
    """What the agent carries from step to step, beside its memory."""

    weights: Vector  # of the last layer, in units of the rewards  (k,)
    epsilon: Vector  # of the present block     (1,)
    unit: Vector  # of values in the network; 0: all rewards so far were 0  (1,)
    counters: Integers  # see above             (2,)
    learner: Learner

    def integer_ranges(self, actions: int) -> dict[str, tuple[ArrayLike, ArrayLike]]:
        """Lowest and highest values that a file may hold, by field."""
        return {"counters": (0, LARGEST_COUNT)}


@jit_inlined
def act(agent: State, x: Vector, allowed: Allowed, rng: Any) -> int:
    """Line 2."""
    return epsilon_greedy(agent.weights, x, agent.epsilon[0], allowed, rng)


@jit_inlined
def observe(agent: State, transition: Transition, rng: Any) -> None:
    """Count the transition; the loop puts it into the memory."""
    agent.counters[TRANSITIONS] += 1


class DeepQ(Agent):
    """Learns features and values together, by double Q-learning of a small network.

    Parameters
    ----------
    env, discount, seed
        As for `RBLSPI`.
    basis : Network, optional
        Its layers, and where they start: two of 128 numbers with random weights unless given. A
        network that was learnt elsewhere is learnt on.

    Notes
    -----
    It acts by the slow average of its weights, as does the policy that it returns: the latest
    weights forget a good policy now and then. The policy is linear in the `Network` that was
    learnt, so that intervals of its values come from least squares in these features.

    Observations are in units of their standard deviation, and values in those of the deviation
    that the sum of independent rewards of this size would have. Other units of the rewards change
    units alone.

    It needs JAX: ``pip install 'rblspi[deep]'``.

    References
    ----------
    H. van Hasselt, A. Guez and D. Silver (2016). Deep reinforcement learning with double
    Q-learning. AAAI.

    M. Hessel et al. (2018). Rainbow: combining improvements in deep reinforcement learning. AAAI.
    """

    functions = AgentFunctions(act, observe)
    basis: Network
    state: State
    most_remembered = 100_000

    def _recipe(self, given: BasisLike | None) -> BasisLike:
        basis = Network(seed=int(self.seed) % 2**32) if given is None else as_basis(given)
        if not isinstance(basis, Network):
            raise TypeError(
                f"{type(self).__name__} learns its features, basis=Network(...): with {basis}, use "
                "OptimisticLSVI"
            )
        return basis

    @property
    def _sizes(self) -> tuple[int, ...]:
        return *self.basis.sizes(self.env.observation_space), self.actions

    def _initial_state(self) -> State:
        hidden = self.basis.numbers(self.env.observation_space)
        return State(
            np.zeros(self.actions * self.features.size),
            np.ones(1),
            np.zeros(1),
            np.zeros(2, np.int64),
            Learner.of(hidden, self._sizes),
        )

    def _require_memory(self) -> None:
        super()._require_memory()
        numbers = self.features.input_size
        if capacity_for(numbers, self.most_remembered) < 10 * BATCH:
            raise ValueError(
                f"observations of {numbers} numbers are too large to remember enough of them: wrap "
                "the environment so that it gives fewer"
            )

    def _exploring_epsilon(self) -> float:
        return float(self.state.epsilon[0])

    def diagnostics(self) -> dict[str, float]:
        """The probability of a random action."""
        return {"epsilon": self._exploring_epsilon()}

    # Learning -----------------------------------------------------------------------------

    def _steps_to_plan(self) -> int:
        counters = self.state.counters
        return int(counters[LEARNT_AT] + BLOCK - counters[TRANSITIONS])

    def _plan(self) -> None:
        """Lines 3 and 4 for all blocks that are over: copies of an environment may fill several."""
        counters, memory = self.state.counters, self.session.memory
        blocks = int(counters[TRANSITIONS] - counters[LEARNT_AT]) // BLOCK
        if memory.size >= BATCH:
            rescaled = self._rescale()
            if self.state.unit[0]:
                for _ in range(blocks):
                    self._learn_block()
                self._renew(rescaled)
        counters[LEARNT_AT] += blocks * BLOCK
        if memory.room < BLOCK + self.session.copies:
            newest = np.arange(memory.size) >= (1.0 - KEPT_SHARE) * memory.size
            memory.retain(newest)

    def _renew(self, rescaled: bool) -> None:
        """Line 4, and how likely a random action is; at once, if the units have changed."""
        self._act_by_average()
        done = min(float(self.state.counters[TRANSITIONS]) / EXPLORING_STEPS, 1.0)
        self.state.epsilon[0] = 1.0 + done * (LEAST_EPSILON - 1.0)

    def _learn_block(self) -> None:
        learner = train(self.state.learner, self._sizes, self._sample())
        for own, learnt in zip(self.state.learner, learner, strict=True):
            own[...] = learnt

    def _sample(self) -> Batches:
        """Batches of transitions over several steps, in the units of the network."""
        memory, shape = self.session.memory, (UPDATES * BLOCK, BATCH)
        rows = self.rng.integers(memory.size, size=math.prod(shape))
        found = multi_step(memory, rows, STEPS, self.discount, self.session.copies)
        inputs = self.basis.inputs(self.env.observation_space)
        columns: tuple[Any, ...] = (
            inputs(memory.observations[rows]),
            memory.actions[rows],
            found.rewards / self.state.unit[0],
            inputs(memory.next_observations[found.last]),
            found.discounts,
            memory.next_allowed[found.last] > 0,
        )
        return Batches(*(column.reshape(*shape, *column.shape[1:]) for column in columns))

    def _act_by_average(self) -> None:
        """Line 4."""
        average, size = self.state.learner.average, self.features.size - 1
        hidden = len(average) - self.actions * (size + 1)
        self.basis = replace(self.basis, weights=as_text(average[:hidden]))
        self.features = self.basis.build(self.env.observation_space)
        self.session.see_through(self.features)
        ((bias, matrix),) = split(average[hidden:], (size, self.actions))
        last = np.column_stack([matrix.T, bias])
        self.state.weights[:] = self.state.unit[0] * last.ravel()

    # Units --------------------------------------------------------------------------------

    def _rescale(self) -> bool:
        """When the memory has doubled, or at last a reward was not 0, set the units again."""
        seen, before = (int(self.state.counters[i]) for i in (TRANSITIONS, LEARNT_AT))
        doubled = seen.bit_length() > max(before, BATCH - 1).bit_length()
        due = doubled or not self.state.unit[0]
        if due:
            self._rescale_values()
            if self.state.unit[0] and table_basis(self.env.observation_space) is None:
                self._rescale_observations()
        return due

    def _rescale_values(self) -> None:
        """Values are `unit_of_values` times those of the network."""
        memory, state = self.session.memory.kept(), self.state
        size = unit_of_values(memory.rewards, memory.ends == TERMINATED, self.discount)
        size = size or float(state.unit[0])
        if state.unit[0]:
            last = self.actions * self.features.size
            for weights in (state.learner.latest, state.learner.average):
                weights[-last:] *= state.unit[0] / size
        state.unit[0] = size

    def _rescale_observations(self) -> None:
        """With x = (s - mean) / std, x M + b stays the same in new units; random M may change."""
        before = self.basis
        self.basis = before.scaled_to(self.session.memory.kept().observations)
        if before.weights is None:
            return
        mean, std = np.asarray(self.basis.mean), np.asarray(self.basis.std)
        for weights in (self.state.learner.latest, self.state.learner.average):
            bias, matrix = next(split(weights, self._sizes))
            bias += ((mean - before.mean) / before.std) @ matrix
            matrix *= np.broadcast_to(std / before.std, len(matrix))[:, None]

    def cost(self) -> Cost:
        """Approximate cost of learning: five passes through the network for a transition."""
        usual = super().cost()
        work = UPDATES * BATCH * 5 * count(self._sizes)
        return usual._replace(seconds_a_step=work / MULTIPLY_ADDS_A_SECOND, advice="")
