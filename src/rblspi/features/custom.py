"""User-defined bases: any function, or a fitted scikit-learn transformer."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
from numba import types
from numba.core.errors import NumbaError

from rblspi.core.compiled import FEATURES, is_compiled
from rblspi.core.types import Matrix, Vector
from rblspi.environments.spaces import observation_shape
from rblspi.features.base import Basis, Features, constant_at
from rblspi.features.bounds import counts_per_dimension

#: observations in which a user's feature must be equal to count as constant
SAMPLES = 8


@dataclass(frozen=True)
class FunctionBasis(Basis):
    """A user-defined function, used as it is: no constant is added.

    Parameters
    ----------
    function : callable
        Either ``function(observation)``, which returns a vector. The observation is an int in a
        Discrete space, and an array of the space's shape in any other space.

        Or ``function(parameters, observation, out)``, which writes the features into ``out``;
        all three are vectors of float64. If it is jitted with Numba, it runs inside the compiled
        loop at full speed.
    size : int, optional
        The number of features. A function of one argument is called once to determine it.
    parameters : sequence of float
        Passed to a function of three arguments.
    """

    function: Callable[..., Any]
    size: int | None = None
    parameters: Sequence[float] = ()

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for a Box, Discrete or MultiDiscrete space."""
        shape = observation_shape(space)
        if self.size is not None:
            counts_per_dimension("size", self.size, 1)
        if _required_arguments(self.function) == 3:
            if self.size is None:
                raise ValueError(
                    f"size of {_name(self.function)} is not known: a function that writes into "
                    "out needs FunctionBasis(function, size=...)"
                )
            if is_compiled(self.function):
                _require_signature(self.function)
            parameters = np.array(self.parameters, dtype=np.float64)
            features = Features(self.function, parameters, self.size, shape)
            return features._replace(constant=_constant(features, space))

        def evaluate(parameters: Vector, observation: Vector, out: Vector) -> None:
            features = self._vector(observation, space)
            if len(features) != len(out):
                raise ValueError(
                    f"{_name(self.function)} returned {len(features)} features, not {len(out)}"
                )
            out[:] = features

        size = self.size or len(self._vector(_sample(space), space))
        features = Features(evaluate, np.empty(0), size, shape)
        return features._replace(constant=_constant(features, space))

    def _vector(self, observation: Vector, space: gym.Space[Any]) -> Vector:
        return np.asarray(self.function(_as_given(observation, space)), dtype=np.float64).ravel()

    def settings(self) -> dict[str, Any]:
        """Return the name of the function; the function itself is not stored."""
        return {"basis": "FunctionBasis", "custom": _name(self.function)}


@dataclass(frozen=True)
class TransformerBasis(Basis):
    """A fitted scikit-learn transformer, or a pipeline of them.

    Parameters
    ----------
    transformer : object
        Its ``transform`` maps observations, shape (N, d), to features, shape (N, n).
    constant : bool
        Whether to append a constant 1. Some transformers add one themselves.
    """

    transformer: Any
    constant: bool = False

    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for the space whose observations the transformer was fitted to."""
        shape = observation_shape(space)
        name = type(self.transformer).__name__
        try:
            size = self._transform(_sample(space)[None]).shape[1]
        except Exception as error:
            if type(error).__name__ == "NotFittedError":
                raise ValueError(
                    f"{name} is not fitted: call its fit method first, for example on the "
                    "observations of a random walk"
                ) from error
            raise ValueError(f"{name} cannot transform observations of {space}: {error}") from error

        features = Features.of_batches(self._transform, size, shape)
        return features._replace(constant=_constant(features, space))

    def _transform(self, observations: Matrix) -> Matrix:
        features = self.transformer.transform(observations)
        if hasattr(features, "toarray"):  # some transformers return sparse matrices
            features = features.toarray()
        dense: Matrix = np.asarray(features, dtype=np.float64).reshape(len(observations), -1)
        return np.column_stack([dense, np.ones(len(dense))]) if self.constant else dense

    def settings(self) -> dict[str, Any]:
        """Return the name of the transformer; the transformer itself is not stored."""
        return {"basis": "TransformerBasis", "custom": type(self.transformer).__name__}


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        arguments = inspect.signature(function).parameters.values()
    except ValueError:  # some builtins have no signature
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(a.default is a.empty and a.kind in positional for a in arguments)


def _require_signature(function: Any) -> None:
    """Compile a jitted function for the types that compiled code calls it with."""
    problem: Exception | None = None
    try:
        function.compile(FEATURES.args)
        if function.overloads[FEATURES.args].signature.return_type == types.none:
            return
    except (NumbaError, RuntimeError) as error:
        problem = error
    raise ValueError(
        f"{_name(function)} does not compile for three vectors (parameters, observation, out) of "
        f"float64 with nothing returned: {problem or 'it returns something'}"
    ) from problem


def _as_given(observation: Vector, space: gym.Space[Any]) -> Any:
    """The observation in the form of the space: a copy, because the function may change it."""
    if isinstance(space, gym.spaces.Discrete):
        return int(observation[0])
    given = observation.reshape(observation_shape(space))
    return given.astype(np.float64 if isinstance(space, gym.spaces.Box) else np.int64)


def _sample(space: gym.Space[Any], seed: int = 0) -> Vector:
    """Draw one fixed observation, leaving the random generator of the space unchanged."""
    space = copy.deepcopy(space)
    space.seed(seed)
    return np.asarray(space.sample(), dtype=np.float64).ravel()


def _constant(features: Features, space: gym.Space[Any]) -> Vector | None:
    """Weights of the constant function, if a feature is equal in several random observations."""
    rows = np.array([features(_sample(space, seed)) for seed in range(SAMPLES)])
    same = np.flatnonzero((rows[0] != 0.0) & (rows == rows[0]).all(axis=0))
    if not len(same):
        return None
    weights: Vector = constant_at(int(same[0]), features.size) / rows[0, same[0]]
    return weights


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
