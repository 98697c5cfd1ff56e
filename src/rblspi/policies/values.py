"""What the actions of a policy are worth: a posterior over its value functions, and its statistics.

`rblspi.offline.values` makes it from a policy and transitions. Everything that is stated of action
values is computed here: means, deviations, draws, the probability that an action is the best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rblspi.core import check
from rblspi.core.intervals import CONFIDENCE
from rblspi.core.types import Array, Integers, Mask, Matrix
from rblspi.features import Basis, BasisLike, Features
from rblspi.model.posterior import Posterior
from rblspi.policies.choice import best_actions
from rblspi.policies.linear import LinearPolicy

#: where a standard deviation exceeds this share of the prior's, the data say little
LITTLE_KNOWN = 0.5


class ActionValues(NamedTuple):
    """Values of every action in one state, shape (actions,), or in a batch, (N, actions).

    Attributes
    ----------
    mean : ndarray
    std : ndarray or None
        Standard deviation of the error of the mean, as the value of the policy. None where there
        is no posterior.
    samples : ndarray or None
        Draws from the posterior, shape (samples, actions) or (samples, N, actions). A draw is
        one value function, the same for all states and actions. None unless asked for.
    """

    mean: Array
    std: Array | None
    samples: Array | None = None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[Array, Array]:
        """The lower and the upper end of the interval of every value."""
        if self.std is None:
            raise ValueError("there is no posterior, and so there are no intervals of values")
        half = float(ndtri(0.5 + confidence / 2.0)) * self.std
        return self.mean - half, self.mean + half


class AnotherEstimate(Protocol):
    """Another estimate of action values, which does not depend on the basis."""

    @property
    def error(self) -> float:
        """The standard error of its mean."""

    def interval(self, observations: NDArray[Any], /) -> tuple[Matrix, Matrix]:
        """The range of action values that this estimate allows, (N, actions) each."""


@dataclass(frozen=True, eq=False)
class ValuePosterior:
    """The posterior over the value functions of one policy.

    Without the optional fields it states the values by which the policy chooses actions, and no
    standard deviations.

    Parameters
    ----------
    policy : LinearPolicy
        The policy whose actions are valued.
    posterior : Posterior, optional
        Of the weights of the action values.
    basis : Basis, optional
        In which the values are estimated; by default the basis of the policy.
    basis_std : float
        Standard deviation of the error of the basis, which is not part of a posterior of weights.
    second : AnotherEstimate, optional
        The 95% interval then contains both estimates, the range that the second one leaves open,
        and its error on either side; the mean is in the middle. It holds transitions, and is
        neither saved nor pickled: ``basis_std`` then stands for it.
    limits : (float, float)
        The least and the greatest value that the rewards allow. No mean is beyond them.
    """

    policy: LinearPolicy
    posterior: Posterior | None = None
    basis: Basis | None = None
    basis_std: float = 0.0
    second: AnotherEstimate | None = None
    limits: tuple[float, float] = (-math.inf, math.inf)

    def __post_init__(self) -> None:
        check.not_negative("basis_std", self.basis_std)
        if not self.limits[0] <= self.limits[1]:
            raise ValueError(f"limits={self.limits} must have the lower number first")
        if self.posterior is not None:
            self.policy.require_fit(self.posterior.mean, self.features)

    @cached_property
    def features(self) -> Features:
        """The features in which the values are linear."""
        if self.basis is None:
            return self.policy.features
        return self.basis.build(self.policy.observation_space)

    def action_values(
        self, observation: ArrayLike, samples: int = 0, rng: np.random.Generator | None = None
    ) -> ActionValues:
        """What every action is worth, and how sure that is.

        Parameters
        ----------
        observation : array_like
            One observation, or a batch of them.
        samples : int
            How many value functions to draw from the posterior.
        rng : numpy.random.Generator, optional
            What draws them; unless given, the draws are the same at every call.
        """
        seen = self.policy.observed(observation)
        x = self.features(seen)
        rows, row = np.atleast_2d(x), 0 if x.ndim == 1 else slice(None)
        if self.posterior is None:
            if samples:
                raise ValueError(
                    f"{self.policy.origin} keeps no posterior to draw samples={samples} from: "
                    "RBLSPI and BLSPI do"
                )
            mean = np.clip(rows @ self.policy.weights_by_action.T, *self.limits)
            return ActionValues(mean[row], None)
        own, noise = self.posterior.predict(rows)
        mean, std = np.clip(own, *self.limits), np.hypot(noise, self.basis_std)
        if self.second is not None:
            seen = np.asarray(seen).reshape(len(rows), *self.features.shape)
            low, high = self.second.interval(seen)
            low, high = np.fmin(low, mean), np.fmax(high, mean)
            mean = 0.5 * (low + high)
            std = (high - low) / 2.0 / float(ndtri(0.975)) + self.second.error
        if not samples:
            return ActionValues(mean[row], std[row])
        rng = np.random.default_rng(self.policy.seed) if rng is None else rng
        weights = self.posterior.sample(rng, check.count("samples", samples))
        drawn: Array = np.einsum("san,in->sia", weights.reshape(samples, *own.shape[1:], -1), rows)
        if not np.array_equal(std, noise):
            drawn = mean + (drawn - own) * (std / noise)
        return ActionValues(mean[row], std[row], drawn[:, row])

    def probability_best(
        self, observation: ArrayLike, samples: int = 1000, rng: np.random.Generator | None = None
    ) -> Array:
        """How likely each action is the best one: its share of the drawn value functions.

        The arguments are those of `action_values`, the shape is that of its mean. A probability
        p has the standard error (p (1 - p) / samples)^1/2.
        """
        values = self.action_values(observation, check.count("samples", samples), rng).samples
        assert values is not None
        best = best_actions(values)
        return np.stack([np.mean(best == a, axis=0) for a in range(self.policy.actions)], axis=-1)

    def little_known(self, observations: ArrayLike, actions: Integers) -> Mask | None:
        """Whether the data say little about an action in each state; None without a posterior."""
        if self.posterior is None:
            return None
        x = np.atleast_2d(self.features(self.policy.observed(observations)))
        return narrowing(self.posterior, x, actions, self.limits) > LITTLE_KNOWN

    def in_basis(self) -> Self:
        """As a file has it: without the second estimate, which takes milliseconds for a state."""
        return replace(self, second=None)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy and its values to one file, which `LinearPolicy.load` reads too."""
        from rblspi.policies import policy_file

        policy_file.save(self, path)

    @staticmethod
    def load(path: str | PathLike[str], basis: BasisLike | None = None) -> ValuePosterior:
        """Read a policy and its values from a file; the arguments are those of `LinearPolicy.load`.

        If the policy was saved alone, its values are those by which it acts.
        """
        from rblspi.policies import policy_file

        return policy_file.load(path, basis)

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("features", "second")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, second=None)


def values_of(policy: LinearPolicy | ValuePosterior) -> ValuePosterior:
    """What is stated of a policy; if it is nothing else, by the posterior that it acts by."""
    return (
        policy if isinstance(policy, ValuePosterior) else ValuePosterior(policy, policy.posterior)
    )


def narrowing(
    posterior: Posterior,
    x: Matrix,
    actions: Integers,
    limits: tuple[float, float] = (-math.inf, math.inf),
) -> Array:
    """Posterior over prior standard deviation of Q(s, a): 1 where the data say nothing.

    Parameters
    ----------
    posterior : Posterior
    x : ndarray, shape (N, n)
        Features of the states.
    actions : ndarray of int, shape (N,)
    limits : (float, float)
        Between which values are known to be beforehand. The prior of the weights may be far wider.
    """
    _, std = posterior.predict(x)
    after = np.take_along_axis(std, np.asarray(actions)[:, None], axis=1)[:, 0]
    before = np.linalg.norm(x, axis=1) / np.sqrt(posterior.prior_precision)
    if limits[1] > limits[0]:  # the deviation of a uniform distribution between the limits
        before = np.minimum(before, (limits[1] - limits[0]) / math.sqrt(12.0))
    # The level of all values, of which the prior says nothing, makes the ratio exceed 1.
    ratios: Array = np.minimum(after / np.maximum(before, np.finfo(np.float64).tiny), 1.0)
    return ratios
