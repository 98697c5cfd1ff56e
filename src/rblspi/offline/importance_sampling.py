"""Importance sampling: logged rewards, weighted by how likely the policy is to bring them about.

With the probability p_t with which the logged action was chosen, the weight of an episode after
step t is rho_t = prod_{i <= t} 1{a_i = pi(s_i)} / p_i, and the value is the mean over episodes of

    sum_t gamma^t rho_t r_t                                         (per decision)

(where steps take different times, gamma has the time at which step t begins for its exponent), or
the same with the weights of each step divided by their mean (self-normalised). Neither needs a
basis. Products of ratios soon leave few episodes that tell anything, so steps are used while the
effective number of episodes is at least `LEAST_EPISODES`. A log does not tell the rewards after
these steps and after the end of an episode that was cut short: they lie between the least and the
greatest logged reward. The interval reaches from the lower end of the interval with the least to
the upper end of that with the greatest, as far as values with such rewards do, and the mean is
midway between the two estimates.

Marginalised importance sampling weights single transitions by the density of their state, relative
to the data, times the ratio of the last action. The density is linear in the features of the state:
w = h'phi(s), A'h = mean of phi at the first states, A = sum ratio phi(s) (phi(s) - gamma phi(s'))'.
The value, sum w ratio r, is also that of LSTD for state values with transitions weighted by their
ratio. With the features of state and action instead, it is fitted Q evaluation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.types import Mask, Matrix, Vector
from rblspi.offline.episodes import Episodes
from rblspi.offline.influence import Estimate, effective_size, estimate, half_width, unknown
from rblspi.offline.linear_values import solve, sums

#: steps are used while the weights tell as much as this many episodes of the policy itself
LEAST_EPISODES = 10.0


def ratios_of(episodes: Episodes, propensities: ArrayLike) -> Vector:
    """1{a = pi(s)} / p of every transition, shape (N,)."""
    p = np.asarray(propensities, dtype=np.float64)
    if p.shape != (episodes.log.size,):
        raise ValueError(
            f"propensities of shape {p.shape} must be one number for each of "
            f"{episodes.log.size} transitions"
        )
    wrong = ~((p > 0.0) & (p <= 1.0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"propensities in row {row} is {p[row]}: the probability with which a logged action "
            "was chosen is above 0 and at most 1"
        )
    return np.where(episodes.log.actions == episodes.here, 1.0 / p, 0.0)


class Weights(NamedTuple):
    """The weights of all episodes after each of the H steps that are used."""

    weights: Matrix  # rho, as it was when the episode ended if that was before, (H, E)
    rewards: Matrix  # (H, E), 0 after the end
    unknown: Mask  # the reward is not in the log: the episode was cut short before, (H, E)
    beyond: Mask  # neither are those after step H, because the episode does not terminate, (E,)
    discounts: Matrix  # of each step and of what follows, (H + 1, E)

    @property
    def horizon(self) -> int:
        """H, the number of steps that are used."""
        return len(self.weights)

    @property
    def last(self) -> Vector:
        """The weights after the last step that is used, shape (E,)."""
        return self.weights[-1] if self.horizon else np.ones(len(self.beyond))

    def normalised(self) -> Weights:
        """With the weights of each step divided by their mean."""
        return self._replace(weights=self.weights / self.weights.mean(axis=1, keepdims=True))

    def note(self, rest: str) -> str:
        """How many steps are used, and which share of all discounted rewards comes after them."""
        left = float((self.last * self.beyond * self.discounts[-1]).mean() / self.last.mean())
        if left < 0.005:
            return ""
        return f"weights last for {self.horizon} steps; the {left:.0%} after them {rest}"


def weights_of(episodes: Episodes, ratios: Vector, least: float = LEAST_EPISODES) -> Weights:
    """Multiply the ratios step by step, while the effective number of episodes suffices."""
    starts, lengths = episodes.starts, episodes.lengths
    weights, rewards = [np.ones(episodes.count)], []
    for step in range(int(lengths.max())):
        going = lengths > step
        rows = starts[going] + step
        after = weights[-1].copy()
        after[going] *= ratios[rows]
        if effective_size(after) < least:
            break
        weights.append(after)
        rewards.append(np.zeros(episodes.count))
        rewards[-1][going] = episodes.log.rewards[rows]
    shape = horizon, _ = len(rewards), episodes.count
    cut = ~episodes.terminated
    return Weights(
        np.reshape(weights[1:], shape),
        np.reshape(rewards, shape),
        cut & (np.arange(horizon)[:, None] >= lengths),
        cut | (lengths > horizon),
        _discounts(episodes, horizon),
    )


def _discounts(episodes: Episodes, horizon: int) -> Matrix:
    """The discounts of every step; after the end of an episode, a step is a unit of time."""
    step, ends = np.arange(horizon + 1)[:, None], episodes.lengths
    last = episodes.starts + ends - 1
    end = episodes.times[last] + episodes.elapsed[last]
    row = episodes.starts + np.minimum(step, ends - 1)
    times = np.where(step < ends, episodes.times[row], end + (step - ends))
    discounts: Matrix = episodes.problem.discount**times
    return discounts


def per_decision(
    episodes: Episodes, ratios: Vector, confidence: float, normalised: bool = False
) -> Estimate:
    """Per-decision importance sampling, with weights as they are or with a mean of 1 at every step.

    The interval is from the least to the greatest value that the log allows.
    """
    method = "self-normalised IS" if normalised else "per-decision IS"
    weights = weights_of(episodes, ratios)
    weights = weights.normalised() if normalised else weights
    discount, low_high = episodes.problem.discount, []
    if discount == 1.0 and weights.beyond.any():
        return unknown(
            method, "episodes were cut short, and without discount nothing bounds the rest"
        )
    for reward, sign in zip(episodes.reward_range, (-1.0, 1.0), strict=True):
        mean, influences = value_of(weights, discount, reward, normalised)
        low_high.append((mean, mean + sign * half_width(influences, confidence)))
    (least, low), (greatest, high) = low_high
    lowest, highest = episodes.value_range
    if low <= highest and high >= lowest:
        low, high = max(low, lowest), min(high, highest)
    mean, effective = (least + greatest) / 2.0, effective_size(weights.last)
    note = weights.note("may be anything")
    return Estimate(method, mean, low, high, effective, episodes.count, "episodes", note)


def value_of(
    weights: Weights, discount: float, reward: float, normalised: bool
) -> tuple[float, Vector]:
    """The value and the influence of every episode, given the reward where the log lacks it."""
    rewards = np.where(weights.unknown, reward, weights.rewards) * weights.discounts[:-1]
    lasting = reward / (1.0 - discount) if weights.beyond.any() else 0.0
    after = np.where(weights.beyond, lasting * weights.discounts[-1], 0.0)
    rewards = np.vstack([rewards, after])  # (H + 1, E)
    rho = np.vstack([weights.weights, weights.last])
    means = (rho * rewards).mean(axis=1)
    if normalised:  # a ratio of two means varies with the deviations from it
        rewards = rewards - means[:, None]
    terms = (rho * rewards).sum(axis=0)
    return float(means.sum()), (terms - terms.mean()) / len(terms)


def marginalised(episodes: Episodes, ratios: Vector, ridge: float, confidence: float) -> Estimate:
    """Importance sampling by the density of states, linear in their features."""
    states = episodes.of_states()
    solution = solve(states, sums(states, ratios), ridge)
    influences, weights = solution.influences(ratios), ratios * solution.densities()
    return estimate("marginalised IS", solution.value, influences, confidence, weights)
