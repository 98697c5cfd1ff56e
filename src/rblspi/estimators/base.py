"""What all estimators share: scikit-learn's manners, and predictions from weights."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal, Self, overload

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi import check
from rblspi.estimators.passes import Data, Problem, build_features, chunks_of, rows_at_a_time
from rblspi.features import BasisLike, Features
from rblspi.statistics import Statistics

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]
Values = NDArray[np.float64]


class NotFittedError(ValueError, AttributeError):
    """An estimator is asked for results before `fit`."""


class Estimator(ABC):
    """Estimates values that are linear in features of the state, from logged transitions.

    Subclasses say how sums become weights (`_solve`, `_conclude`) and which sums are made
    (``fit``). Constructors store their arguments and nothing else; they are checked by ``fit``.
    """

    basis: BasisLike
    actions: int | None
    discount: float
    observation_space: gym.Space[Any] | None

    features_: Features
    statistics_: Statistics
    weights_: Vector
    rank_: int
    condition_: float

    #: the estimator to turn to for standard deviations
    _bayesian: ClassVar[str] = ""

    @abstractmethod
    def _solve(self, statistics: Statistics) -> Vector:
        """The weights, shape (k,), that the sums of a policy lead to."""

    @abstractmethod
    def _conclude(self, statistics: Statistics) -> None:
        """Set the fitted attributes that follow from the final sums."""

    @abstractmethod
    def _check(self) -> None:
        """Check the arguments of the constructor that `_solve` takes."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments of the constructor, by name; ``deep`` is scikit-learn's and changes nothing."""
        return {name: getattr(self, name) for name in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Change arguments of the constructor, by name."""
        known = list(self._parameters())
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}, only {', '.join(known)}"
                )
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = [
            f"{name}={getattr(self, name)!r}"
            for name, parameter in self._parameters().items()
            if repr(getattr(self, name)) != repr(parameter.default)
        ]
        return f"{type(self).__name__}({', '.join(arguments)})"

    @overload
    def predict(
        self,
        observations: ArrayLike,
        actions: ArrayLike | None = None,
        return_std: Literal[False] = False,
    ) -> Values: ...

    @overload
    def predict(
        self,
        observations: ArrayLike,
        actions: ArrayLike | None = None,
        *,
        return_std: Literal[True],
    ) -> tuple[Values, Values]: ...

    def predict(
        self,
        observations: ArrayLike,
        actions: ArrayLike | None = None,
        return_std: bool = False,
    ) -> Values | tuple[Values, Values]:
        """Estimated values, and how sure they are.

        Parameters
        ----------
        observations : array-like, shape (N, ...)
            A batch, or a single observation: results then lack the first axis.
        actions : array-like of int, shape (N,), optional
            Value these actions only.
        return_std : bool
            Whether to return the posterior standard deviation of the values as well; BLSTD and
            BLSPI have one.

        Returns
        -------
        values : ndarray
            Of states, shape (N,); of all actions, shape (N, actions); or of the given ones, (N,).
        std : ndarray of the same shape
            If asked for.
        """
        self._require_fitted()
        if return_std and self._bayesian:
            raise ValueError(
                f"return_std=True: {type(self).__name__} knows no standard deviation; "
                f"use {self._bayesian}"
            )
        batch = np.asarray(observations)
        single = batch.shape == self.features_.shape
        if single:
            batch = batch[None]
        mean, std = self._moments(batch, return_std)
        choose = self._chooser(actions, len(batch))
        row = 0 if single else slice(None)
        if return_std:
            return choose(mean)[row], choose(std)[row]
        return choose(mean)[row]

    def _moments(self, batch: NDArray[Any], with_std: bool) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation by blocks of weights, shape (N, blocks), in pieces."""
        rows = rows_at_a_time(self.features_)
        starts = range(0, max(1, len(batch)), rows)
        pieces = [
            self._predict(self.features_(batch[start : start + rows]), with_std) for start in starts
        ]
        mean, std = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        return mean, std

    def _predict(self, x: Matrix, with_std: bool) -> tuple[Matrix, Matrix]:
        """Mean and standard deviation for rows of features; zeros for the latter unless wanted."""
        mean = x @ self.weights_.reshape(-1, self.features_.size).T
        return mean, np.zeros_like(mean)

    def _chooser(self, actions: ArrayLike | None, count: int) -> Callable[[Matrix], Values]:
        """A function that takes the wanted columns of values by blocks, shape (N, blocks)."""
        if self.actions is None:
            if actions is not None:
                raise ValueError(
                    "actions is given, but values of states were estimated (actions=None)"
                )
            return lambda values: values[:, 0]
        if actions is None:
            return lambda values: values
        chosen = np.atleast_1d(np.asarray(actions))
        if chosen.shape != (count,) or chosen.dtype.kind not in "biu":
            raise ValueError(
                f"actions of shape {chosen.shape} and type {chosen.dtype} must be a whole number "
                f"for each of {count} observations"
            )
        unknown = (chosen < 0) | (chosen >= self.actions)
        if unknown.any():
            row = int(unknown.argmax())
            raise ValueError(
                f"actions in row {row} is {chosen[row]}: actions go from 0 to {self.actions - 1}"
            )
        return lambda values: values[np.arange(count), chosen.astype(np.int64)]

    def _problem(self, data: Data, look: bool = True) -> Problem:
        """What is estimated, from the checked arguments of the constructor."""
        self._check()
        actions = None if self.actions is None else check.count("actions", self.actions)
        discount = check.fraction("discount", self.discount)
        features = build_features(self.basis, self.observation_space, chunks_of(data), look)
        return Problem(features, actions, discount)

    def _require_fitted(self) -> None:
        if not hasattr(self, "weights_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        parameters = dict(inspect.signature(cls.__init__).parameters)
        del parameters["self"]
        return parameters
