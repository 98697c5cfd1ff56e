"""Combination lock: one right action at every position, and a small reward for every wrong one.

The lock has H positions in a row and A actions. At each position one action, drawn once, leads on
to the next; at the last position it opens the lock for a reward of 1. Any other action pays a small
bribe and leads into a dead end of the same length, from which no position of the lock can be
reached any more and where there is nothing to be had. With probability ``slip`` the action that is
carried out is drawn at random. An episode terminates after H steps.

The observation is the position h, or H + h in the dead end. An agent that acts at random opens the
lock once in about A^H episodes, and is paid for not trying.

References
----------
Kakade (2003), On the sample complexity of reinforcement learning, chapter 2.
Misra, Henaff, Krishnamurthy and Langford (2020), Kinematic state abstraction and provably
efficient rich-observation reinforcement learning.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit
from rblspi.core.types import Array, Integers, Matrix
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import BLUE, GREEN, GREY, INK, PALE, RED, Canvas, box, placed

_FIRST_POSITION = 4


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start at the first position."""
    state[0] = 0.0


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Turn the lock; after the last step the position stays that of the last."""
    length, actions, here = int(parameters[0]), int(parameters[1]), int(state[0])
    slip, bribe = parameters[2], parameters[3]
    position, locked_out = here % length, here >= length
    last = position == length - 1
    if rng.random() < slip:
        action = int(rng.random() * actions)
    right = not locked_out and action == int(parameters[_FIRST_POSITION + position])
    state[0] = min(position + 1, length - 1) + (0 if right else length)
    if right:
        return (1.0 if last else 0.0), last, False
    return (0.0 if locked_out else bribe), last, False


class CombinationLock(FiniteEnvironment):
    """Combination lock with a dead end, misleading rewards and slips.

    Parameters
    ----------
    length : int
        H, the number of positions.
    actions : int
        A, the number of actions.
    slip : float
        Probability with which the action that is carried out is drawn at random.
    bribe : float
        Reward for a wrong action, once an episode. The larger it is, the more it misleads. Below 1
        the combination is the best policy without a discount, as a bribe can be had later as well.
    combination_seed : int
        Of the draw of the right actions.
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}
    terminates = True

    def __init__(
        self,
        length: int = 10,
        actions: int = 4,
        slip: float = 0.05,
        bribe: float = 0.05,
        combination_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        self.length = check.count("length", length)
        self.actions = check.count("actions", actions, least=2)
        check.fraction("slip", slip)
        check.not_negative("bribe", bribe)
        rng = np.random.default_rng(check.seed("combination_seed", combination_seed))
        self.combination: Integers = rng.integers(self.actions, size=self.length)
        parameters = np.array([self.length, self.actions, slip, bribe, *self.combination])
        super().__init__(
            Dynamics(reset, step, parameters, state_size=1),
            gym.spaces.Discrete(2 * self.length),
            gym.spaces.Discrete(self.actions),
            render_mode,
        )

    def success_probabilities(self) -> Matrix:
        """The probability that an action turns out to be the right one, (length, actions)."""
        slip = self.dynamics.parameters[2]
        success = np.full((self.length, self.actions), slip / self.actions)
        success[np.arange(self.length), self.combination] += 1.0 - slip
        return success

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'.

        Rows of the last positions are zero: every step from there terminates.
        """
        going_on, success = np.arange(self.length - 1), self.success_probabilities()[:-1]
        transitions = np.zeros((self.actions, 2 * self.length, 2 * self.length))
        transitions[:, going_on, going_on + 1] = success.T
        transitions[:, going_on, self.length + going_on + 1] = 1.0 - success.T
        transitions[:, self.length + going_on, self.length + going_on + 1] = 1.0
        return transitions

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        success = self.success_probabilities()
        rewards = np.zeros((2 * self.length, self.actions))
        rewards[: self.length] = self.dynamics.parameters[3] * (1.0 - success)
        rewards[self.length - 1] += success[-1]
        return rewards

    def draw(self, canvas: Canvas) -> None:
        """Draw the positions with their right actions above, the dead end below."""
        length, here = self.length, int(self.state[0])
        canvas.view(-1.0, length + 0.5, -2.0, 2.0)
        cell = box(0.8, 0.8) - (0.0, 0.4)
        for position in range(length):
            for place, height in ((position, 0.6), (length + position, -0.6)):
                corners = placed(cell, (position, height))
                fill = "white" if place < length else PALE
                canvas.polygon(
                    corners, fill=fill, outline=INK if place < length else GREY, width=1.2
                )
                if place == here:
                    canvas.circle((position, height), 0.3, fill=BLUE if place < length else RED)
            action = str(self.combination[position])
            canvas.text((position, 1.25), action, min(15.0, 300 / length), GREEN)
        canvas.text((length - 0.3, 0.6), "+1", 16, GREEN)
        canvas.text(
            (canvas.left, canvas.top), "  right actions above", 14, GREY, ha="left", va="top"
        )
