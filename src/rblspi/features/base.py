"""A basis is a recipe; built for an observation space it becomes features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.compiled import FEATURES, MATRIX, VECTOR, Entry, function_type, is_compiled

Vector = NDArray[np.float64]


class Features(NamedTuple):
    """phi: observation -> R^n, ready to be called by compiled code.

    Attributes
    ----------
    function : callable
        ``function(parameters, observation, out)`` writes phi(observation) into ``out``.
        Compiled where the basis can be; a plain Python function otherwise.
    parameters : ndarray, shape (p,)
    size : int
        n, the number of features.
    input_size : int
        The length of an observation vector.
    """

    function: Callable[[Vector, Vector, Vector], None]
    parameters: Vector
    size: int
    input_size: int

    @property
    def compiled(self) -> bool:
        """Whether compiled code can call the function."""
        return is_compiled(self.function)

    def __call__(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Features of one observation, shape (n,), or of a batch, shape (N, n)."""
        batch = np.ascontiguousarray(observations, dtype=np.float64)
        single = batch.ndim <= 1 and batch.size == self.input_size
        batch = batch.reshape(-1, self.input_size)
        out = np.empty((len(batch), self.size))
        evaluate = _evaluate if self.compiled else _evaluate.py_func
        evaluate(self.function, self.parameters, batch, out)
        return out[0] if single else out


def _evaluate_rows(
    function: Callable[[Vector, Vector, Vector], None],
    parameters: Vector,
    observations: NDArray[np.float64],
    out: NDArray[np.float64],
) -> None:
    for i in range(len(observations)):
        function(parameters, observations[i], out[i])


_evaluate = Entry(
    _evaluate_rows, function_type(FEATURES), VECTOR, MATRIX, MATRIX, what="the evaluation of features"
)


@dataclass(frozen=True)
class Basis(ABC):
    """A recipe for features: what the user writes down before any observation space is known.

    Subclasses are frozen dataclasses: their fields are the recipe, saved and loaded as such.
    """

    @abstractmethod
    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a space."""

    def settings(self) -> dict[str, Any]:
        """The recipe as plain data, with the name of the class under ``"basis"``."""
        return {"basis": type(self).__name__, **asdict(self)}
