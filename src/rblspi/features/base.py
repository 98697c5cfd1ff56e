"""A `Basis` is a recipe for features; building it for an observation space gives `Features`."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple, Self

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike

from rblspi.core.compiled import FEATURES, MATRIX, VECTOR, Entry, function_type, is_compiled
from rblspi.core.types import Array, Matrix, Vector
from rblspi.features.primitives import Stage

#: The posterior over more features than this would not fit in memory: its precision matrix
#: takes 80 GB.
MOST_FEATURES = 100_000

#: The number of rows above which a compiled loop is faster. Passing a function to compiled code
#: costs 30 us, calling the function from Python costs 1 us for each row.
WORTH_COMPILED_LOOP = 32


class Features(NamedTuple):
    """phi: observation -> R^n, in a form that compiled code can call.

    ``function(parameters, observation, out)`` writes phi(observation) into ``out``. It is compiled
    if the basis can be, and a plain Python function otherwise. An optional ``batch_function``,
    faster than a call for every row, maps observations, shape (N, d), to features, (N, n).

    ``constant`` has weights u of the constant function: phi(s)'u = 1 for every s. None means that
    the features have no such weights, or that they are not known. ``stages`` are the primitives
    that the features are composed of; a user's own function has none.
    """

    function: Callable[[Vector, Vector, Vector], None]
    parameters: Vector
    size: int  # n, the number of features
    shape: tuple[int, ...]  # of one observation; () in a Discrete space
    batch_function: Callable[[Matrix], Matrix] | None = None
    constant: Vector | None = None
    stages: tuple[Stage, ...] = ()

    @classmethod
    def of_batches(
        cls,
        batch_function: Callable[[Matrix], Matrix],
        size: int,
        shape: tuple[int, ...],
        constant: Vector | None = None,
    ) -> Self:
        """Features of a plain function of batches; a single observation is a batch of one."""

        def evaluate(_parameters: Vector, observation: Vector, out: Vector) -> None:
            out[:] = batch_function(observation[None])[0]

        return cls(evaluate, np.empty(0), size, shape, batch_function, constant)

    @property
    def input_size(self) -> int:
        """d, the number of components of an observation."""
        return math.prod(self.shape)

    @property
    def compiled(self) -> bool:
        """Whether compiled code can call the function."""
        return is_compiled(self.function)

    def __call__(self, observations: ArrayLike) -> Array:
        """Features of one observation, shape (n,), or of a batch, shape (N, n)."""
        batch, single = self._as_batch(observations)
        if self.batch_function is not None and len(batch) > 0:
            out = self.batch_function(batch)
        else:
            out = np.empty((len(batch), self.size))
            compiled = self.compiled and len(batch) >= WORTH_COMPILED_LOOP
            evaluate = _evaluate if compiled else _evaluate.py_func
            evaluate(self.function, self.parameters, batch, out)
        return out[0] if single else out

    def _as_batch(self, observations: ArrayLike) -> tuple[Matrix, bool]:
        """Observations as rows, and whether a single observation was given instead of a batch.

        An observation may have the shape of the space, or be flattened to a vector.
        """
        # Compiled code treats a read-only array as another type.
        array = np.require(observations, np.float64, ["C", "ALIGNED", "WRITEABLE"])
        size = self.input_size
        # If observations are numbers, an array of shape (1,) is a batch of one.
        alone = ((), self.shape) if self.shape == () else ((), self.shape, (size,))
        single = array.size == size and array.shape in alone
        batched = array.shape == (0,) or (array.ndim and array.shape[1:] in (self.shape, (size,)))
        if not (single or batched):
            given = math.prod(array.shape[1:] if array.ndim > 1 else array.shape)
            raise ValueError(
                f"observations of shape {array.shape} have {given} dimensions, but these features "
                f"take {size}: one observation has shape {self.shape}, a batch has one axis more"
            )
        batch = array.reshape(1 if single else len(array), size)
        finite = np.isfinite(batch)
        if not finite.all():
            row = int(np.flatnonzero(~finite.all(axis=1))[0])
            raise ValueError(f"observation in row {row} is not finite: {batch[row].tolist()}")
        return batch, single


def constant_at(place: int, size: int) -> Vector:
    """Weights of the constant function, if the feature at a place is always 1."""
    weights = np.zeros(size)
    weights[place] = 1.0
    return weights


def _evaluate_rows(
    function: Callable[[Vector, Vector, Vector], None],
    parameters: Vector,
    observations: Matrix,
    out: Matrix,
) -> None:
    for i in range(len(observations)):
        function(parameters, observations[i], out[i])


_SIGNATURE = (function_type(FEATURES), VECTOR, MATRIX, MATRIX)
_evaluate = Entry(_evaluate_rows, *_SIGNATURE, what="the evaluation of features")


@dataclass(frozen=True)
class Basis(ABC):
    """A recipe for features, independent of any observation space.

    Subclasses are frozen dataclasses whose fields hold the recipe; files store these fields.
    """

    def __post_init__(self) -> None:
        # Lists and arrays become tuples, so that a basis read from a file equals the original.
        for field in fields(self):
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))

    @abstractmethod
    def build(self, space: gym.Space[Any]) -> Features:
        """Build the features for the observations of a space."""

    def settings(self) -> dict[str, Any]:
        """Return the recipe as plain data; ``"basis"`` holds the name of the class."""
        return {"basis": type(self).__name__, **asdict(self)}

    def _require_feasible(self, size: int) -> int:
        if size > MOST_FEATURES:
            raise ValueError(
                f"{self} would have {size} features in this space, more than {MOST_FEATURES}: "
                "make it coarser, or choose a basis that grows less with the dimension"
            )
        return size


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    return tuple(_plain(item) for item in value) if isinstance(value, list | tuple) else value
