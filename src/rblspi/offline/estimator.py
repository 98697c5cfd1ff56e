"""What all estimators share: the interface of scikit-learn, predictions, and the policy."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass, field, fields
from os import PathLike
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.columns import Columns
from rblspi.data.dataset import Dataset
from rblspi.data.encoding import ActionNames, Encoding, points_of
from rblspi.data.periods import PeriodLike
from rblspi.data.transitions import Transitions
from rblspi.environments.actions import action_set
from rblspi.environments.lookup import describe, make
from rblspi.environments.spaces import observation_shape
from rblspi.features import BasisLike, Features, as_basis
from rblspi.model.posterior import Posterior
from rblspi.model.statistics import Statistics
from rblspi.offline.accumulation import Data, batch_rows, chunks_of
from rblspi.offline.problem import PolicySums, Problem, sums_of_policy
from rblspi.policies.given import BatchPolicy
from rblspi.policies.linear import LinearPolicy, action_names_of
from rblspi.registry import name_of

#: parameters that a policy holds in another form, or does not need
_NOT_IN_PROVENANCE = ("basis", "actions", "observation_space", "initial_policy", "columns")


def checked(default: Any, rule: Callable[[str, Any], Any]) -> Any:
    """A parameter that ``fit`` checks by ``rule(name, value)``, unless it is None by default."""
    return field(default=default, metadata={"check": rule})


class NotFittedError(ValueError, AttributeError):
    """A result is requested from an estimator before it is fitted."""


class Solution(NamedTuple):
    """The weights that follow from the sums of a policy."""

    weights: Vector
    condition: float  # of the system that was solved
    posterior: Posterior | None = None


def numerical_rank(statistics: Statistics) -> int:
    """The rank of A without any ridge: how many weights the data determine."""
    return int(np.linalg.matrix_rank(statistics.drift))


@dataclass(eq=False, repr=False)
class Estimator(ABC):
    """Estimates values that are linear in features of the state, from logged transitions.

    Subclasses are dataclasses whose fields are the parameters. They define what is fitted
    (``fit``), and how weights follow from the sums of a policy (`_solve`). A constructor only
    stores its arguments; ``fit`` checks them.
    """

    basis: BasisLike | None = None
    actions: int | None = None
    _: KW_ONLY
    discount: float = checked(0.99, check.fraction)
    observation_space: gym.Space[Any] | None = None
    columns: Columns | None = None

    weights_: Vector = field(init=False)
    condition_: float = field(init=False)
    posterior_: Posterior = field(init=False)  # of those that have one
    basis_: BasisLike = field(init=False)
    problem_: Problem = field(init=False)
    _sums: PolicySums = field(init=False)  # over all transitions so far
    encoding_: Encoding | None = field(init=False)  # of states in a log with named columns
    action_names_: ActionNames = field(init=False)  # words or numbers of actions in the log
    discount_per_: PeriodLike | None = field(init=False)  # the time for which the discount is

    @abstractmethod
    def _solve(self, problem: Problem, sums: PolicySums) -> Solution:
        """Compute the weights from the sums of a policy."""

    def _pass(
        self,
        problem: Problem,
        chunks: Iterable[Transitions],
        policy: BatchPolicy,
        previous: BatchPolicy | None = None,
    ) -> PolicySums:
        """The sums of a policy over the data, and how it differs from the previous one."""
        return sums_of_policy(problem, policy, chunks, previous)

    def _check(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name, None)
            if "check" in f.metadata and not (value is None and f.default is None):
                f.metadata["check"](f.name, value)

    def _conclude(self, problem: Problem, sums: PolicySums) -> None:
        """Set the fitted attributes that follow from the final sums."""
        found = self._solve(problem, sums)
        if found.posterior is not None:
            found.posterior.warn_if_uncertain()
            self.posterior_ = found.posterior
        self.weights_, self.condition_ = found.weights, found.condition
        self.problem_, self._sums = problem, sums

    @property
    def statistics_(self) -> Statistics:
        """The sums A, b and C of the policy whose values were estimated."""
        return self._sums.statistics

    @property
    def rank_(self) -> int:
        """The rank of A: how many weights the data determine."""
        return numerical_rank(self.statistics_)

    @property
    def features_(self) -> Features:
        """The basis, built for the observation space."""
        return self.problem_.features

    @property
    def actions_(self) -> int | None:
        """The number of actions; None if states are valued."""
        return self.problem_.actions

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name. ``deep`` has no effect; scikit-learn passes it."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        known = list(self.get_params())
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}, only {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {f.name: repr(f.default) for f in fields(self)}
        values = {name: repr(value) for name, value in self.get_params().items()}
        changed = [f"{name}={v}" for name, v in values.items() if v != defaults[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def predict(
        self, observations: ArrayLike, actions: ArrayLike | None = None, return_std: bool = False
    ) -> Any:
        """Predict values and, if asked for, their standard deviations.

        Parameters
        ----------
        observations : array-like, shape (N, ...)
            A batch, or a single observation; the results then lack the first axis.
        actions : array-like of int, shape (N,), optional
            One action for each observation: only the values of these actions are returned.
        return_std : bool
            Whether to return the posterior standard deviations of the values too. Only BLSTD and
            BLSPI have them.

        Returns
        -------
        values : ndarray
            The values of states, shape (N,), of all actions, shape (N, actions), or of the given
            actions, shape (N,).
        std : ndarray of the same shape
            Only if ``return_std``.
        """
        batches, single = self._batches(observations)
        wanted = self._wanted(actions, sum(map(len, batches)))
        row = 0 if single else slice(None)
        if not return_std:
            weights = self.weights_.reshape(self.problem_.blocks, -1)
            values = [self.features_(batch) @ weights.T for batch in batches]
            return np.concatenate(values)[wanted][row]
        if not hasattr(self, "posterior_"):
            raise ValueError(
                f"return_std=True: {type(self).__name__} knows no standard deviation; use BLSTD "
                "or BLSPI"
            )
        moments = [self.posterior_.predict(self.features_(batch)) for batch in batches]
        mean, std = (np.concatenate(columns)[wanted] for columns in zip(*moments, strict=True))
        return mean[row], std[row]

    def _batches(self, observations: ArrayLike) -> tuple[list[NDArray[Any]], bool]:
        """Observations in batches, and whether it is a single observation."""
        self._require_fitted()
        array = np.asarray(observations if self.encoding_ is None else self.encoding_(observations))
        batch = self.problem_.batch(array)
        rows = batch_rows(self.features_)
        starts = range(0, max(1, len(batch)), rows)
        return [batch[start : start + rows] for start in starts], batch.ndim > array.ndim

    def _wanted(self, actions: ArrayLike | None, count: int) -> tuple[Any, Any]:
        """The index of the requested values in an array of shape (N, blocks)."""
        if self.actions_ is None and actions is not None:
            raise ValueError("actions is given, but values of states were estimated (actions=None)")
        if actions is None:
            return slice(None), 0 if self.actions_ is None else slice(None)
        chosen = np.atleast_1d(np.asarray(actions))
        if chosen.shape != (count,) or chosen.dtype.kind not in "biu":
            raise ValueError(
                f"actions of shape {chosen.shape} and type {chosen.dtype} must be a whole number "
                f"for each of {count} observations"
            )
        self.problem_.require_actions(chosen)
        return np.arange(count), chosen.astype(np.int64)

    def _read(self, data: Data, again: bool = False) -> Dataset:
        """The chunks of the data, whose names of actions and columns are remembered.

        ``again`` says that the data have to have the names of those before them.
        """
        if again:
            return chunks_of(data, self.columns, (self.encoding_, self.action_names_))
        chunks = chunks_of(data, self.columns)
        self.encoding_, self.action_names_ = chunks.encoding, chunks.action_names
        self.discount_per_ = chunks.facts.discount_per
        return chunks

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator: there is no target, and X is a log."""
        from sklearn.utils import InputTags, Tags, TargetTags

        inputs = InputTags(two_d_array=False, string=True, categorical=True, allow_nan=True)
        return Tags(estimator_type=None, target_tags=TargetTags(required=False), input_tags=inputs)

    def _problem(self, chunks: Iterable[Transitions], look: bool = True) -> Problem:
        """Check the parameters, and define with them what is estimated from the data."""
        self._check()
        self.basis_, actions = self._basis_and_actions(chunks)
        space = self.observation_space
        return Problem.of(self.basis_, actions, self.discount, space, chunks, look)

    def _basis_and_actions(self, chunks: Iterable[Transitions]) -> tuple[BasisLike, int | None]:
        """Those that are used, which some estimators choose by the data."""
        if self.basis is None:
            raise ValueError("basis=None: name the basis in which values are estimated")
        return self.basis, self.actions

    def policy(self, env: gym.Env[Any, Any] | str | None = None) -> LinearPolicy:
        """The policy that takes the best action by the estimated action values.

        Parameters
        ----------
        env : gymnasium.Env or str, optional
            The environment in which the policy will act. The policy and its file then know how to
            make it.
        """
        self._require_fitted()
        actions, names = self.actions_, self.action_names_
        if actions is None:
            raise ValueError(
                "actions=None: a policy needs values of actions, but values of states were "
                "estimated; set actions and fit again"
            )
        points = points_of(names)
        words = () if points else tuple(map(str, names))
        space: gym.Space[Any] = gym.spaces.Discrete(actions)
        if points:
            space = gym.spaces.Box(points[0], points[-1], (1,), np.float64)
        environment = None
        if env is not None:
            made = self._matching(make(env), actions)
            space, environment = made.action_space, describe(made)
            words = action_names_of(made, actions, words)
        settings = {n: v for n, v in self.get_params().items() if n not in _NOT_IN_PROVENANCE}
        if self.discount_per_ is not None:
            settings["discount_per"] = str(self.discount_per_)
        name, transitions = name_of(type(self)), int(self.statistics_.count.sum())
        return LinearPolicy(
            basis=as_basis(self.basis_),
            features=self.features_,
            weights=self.weights_.copy(),
            observation_space=self.problem_.space,
            action_space=space,
            posterior=getattr(self, "posterior_", None),
            pessimism=float(getattr(self, "pessimism", 0.0)),
            discount=self.problem_.discount,
            environment=environment,
            action_names=words,
            action_axes=(points,) if points else (),
            inputs=self.encoding_,
            provenance={"algorithm": name, "settings": settings, "transitions": transitions},
            seed=(0, transitions),
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file, which `LinearPolicy.load` reads."""
        self.policy().save(path)

    def _matching(self, env: gym.Env[Any, Any], fitted: int) -> gym.Env[Any, Any]:
        """The environment, if its observations and actions are those of the data."""
        shape = observation_shape(env.observation_space)
        actions = action_set(env.action_space).count
        if (shape, actions) != (self.features_.shape, fitted):
            raise ValueError(
                f"env has observations of shape {shape} and {actions} actions, but the fit has "
                f"shape {self.features_.shape} and {fitted} actions: pass the environment of the "
                "data, and its observation_space to the estimator"
            )
        return env

    def _require_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
