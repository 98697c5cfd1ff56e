"""River swim: swim against the current to a large reward, or rest downstream with a small one.

States are places in a river from left to right. Going left, with the current, always succeeds.
Going right moves ahead with probability 0.35, stays with 0.6 and drifts back with 0.05. In the
leftmost state it moves ahead with probability 0.6, and in the rightmost it stays with 0.6;
otherwise it stays and drifts back, respectively. The reward is 0.005 for going left in the leftmost
state and 1 for going right in the rightmost, and 0 otherwise. Episodes start in the leftmost state
and never end by themselves.

With six states, always going right has the largest mean reward, 0.429 a step. A policy that does
not plan to explore finds the rightmost state after thousands of steps, if at all.

References
----------
Strehl and Littman (2008), An analysis of model-based interval estimation for Markov decision
processes.
Osband, Russo and Van Roy (2013), (More) efficient reinforcement learning via posterior sampling:
these numbers.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.compiled import jit
from rblspi.core.types import Array, Matrix
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.finite import FiniteEnvironment
from rblspi.environments.rendering import Canvas, draw_row

LEFT, RIGHT = 0, 1
#: probabilities of moving ahead and back between the ends, and of success at either end
AHEAD, BACK, AT_END = 0.35, 0.05, 0.6


@jit
def reset(parameters: Array, state: Array, rng: Any) -> None:
    """Start in the leftmost state."""
    state[0] = 0.0


@jit
def step(parameters: Array, state: Array, action: int, rng: Any) -> tuple[float, bool, bool]:
    """Drift or swim; the reward is that of the state left."""
    last, here = int(parameters[0]) - 1, int(state[0])
    if action == LEFT:
        state[0] = max(here - 1, 0)
        return (parameters[1] if here == 0 else 0.0), False, False
    ahead = AT_END if here == 0 else (0.0 if here == last else AHEAD)
    back = 0.0 if here == 0 else (1.0 - AT_END if here == last else BACK)
    chance = rng.random()
    if chance < ahead:
        state[0] = here + 1
    elif chance >= 1.0 - back:
        state[0] = here - 1
    return (parameters[2] if here == last else 0.0), False, False


class RiverSwim(FiniteEnvironment):
    """River swim; action 0 goes left, with the current, and 1 right, against it.

    `optimal_average_reward` is the most that a step can bring on average.

    Parameters
    ----------
    states : int
    left_reward, right_reward : float
        For going left in the leftmost state, and for going right in the rightmost.
    """

    metadata = CompiledEnvironment.metadata | {"render_fps": 5}

    def __init__(
        self,
        states: int = 6,
        left_reward: float = 0.005,
        right_reward: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        self.states = check.count("states", states, least=3)
        super().__init__(
            Dynamics(reset, step, np.array([states, left_reward, right_reward]), state_size=1),
            gym.spaces.Discrete(self.states),
            gym.spaces.Discrete(2),
            render_mode,
        )

    def transition_probabilities(self) -> Array:
        """P(s' | s, a), shape (actions, states, states), the last axis being s'."""
        here = np.arange(self.states)
        ahead, back = np.full(self.states, AHEAD), np.full(self.states, BACK)
        ahead[[0, -1]], back[[0, -1]] = (AT_END, 0.0), (0.0, 1.0 - AT_END)
        transitions = np.zeros((2, self.states, self.states))
        transitions[LEFT, here, np.maximum(here - 1, 0)] = 1.0
        transitions[RIGHT, here, here] = 1.0 - ahead - back
        transitions[RIGHT, here[:-1], here[1:]] = ahead[:-1]
        transitions[RIGHT, here[1:], here[:-1]] = back[1:]
        return transitions

    def expected_rewards(self) -> Matrix:
        """R(s, a), shape (states, actions)."""
        rewards = np.zeros((self.states, 2))
        rewards[0, LEFT], rewards[-1, RIGHT] = self.dynamics.parameters[1:]
        return rewards

    def draw(self, canvas: Canvas) -> None:
        """Draw a row of cells with the rewards of the ends; the current runs from right to left."""
        draw_row(canvas, self.expected_rewards().max(axis=1), int(self.state[0]))
        canvas.line([(self.states - 0.6, -1.35), (-0.4, -1.35)], "#9cc3e6", 3)
        canvas.polygon([(-0.5, -1.35), (-0.3, -1.25), (-0.3, -1.45)], fill="#9cc3e6")
        canvas.text(((self.states - 1) / 2, -1.55), "current", 13, "#5b8fc0")
