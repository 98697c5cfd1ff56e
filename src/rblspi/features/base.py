"""A basis is a recipe; built for an observation space it becomes features."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.compiled import FEATURES, MATRIX, VECTOR, Entry, function_type, is_compiled

Vector = NDArray[np.float64]  # one axis
Matrix = NDArray[np.float64]  # two axes

#: More features than any posterior could hold: its precision matrix would fill 80 GB.
MOST_FEATURES = 100_000

#: Rows from which on a compiled loop is faster: passing a function into it costs 30 us, calling
#: the function from Python 1 us.
WORTH_COMPILED_LOOP = 32


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
    shape : tuple of int
        The shape of one observation: () for the bare numbers of a Discrete space.
    batch_function : callable, optional
        Maps observations, shape (N, d), to features, shape (N, n), where that is faster than
        calling ``function`` on every row.
    """

    function: Callable[[Vector, Vector, Vector], None]
    parameters: Vector
    size: int
    shape: tuple[int, ...]
    batch_function: Callable[[Matrix], Matrix] | None = None

    @property
    def input_size(self) -> int:
        """d, the length of an observation as a vector."""
        return math.prod(self.shape)

    @property
    def compiled(self) -> bool:
        """Whether compiled code can call the function."""
        return is_compiled(self.function)

    def __call__(self, observations: ArrayLike) -> NDArray[np.float64]:
        """Features of one observation, shape (n,), or of a batch, shape (N, n).

        Raises
        ------
        ValueError
            If the observations are of the wrong dimension, or not finite.
        """
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
        """Observations as rows, and whether there was only one, not in a batch.

        An observation comes in the shape of the space or as a vector.
        """
        # To compiled code an array that cannot be written to is of another type.
        array = np.require(observations, np.float64, ["C", "ALIGNED", "WRITEABLE"])
        size = self.input_size
        # Where observations are bare numbers, the shape (1,) is a batch of one, not a vector.
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


def _evaluate_rows(
    function: Callable[[Vector, Vector, Vector], None],
    parameters: Vector,
    observations: Matrix,
    out: Matrix,
) -> None:
    for i in range(len(observations)):
        function(parameters, observations[i], out[i])


_evaluate = Entry(
    _evaluate_rows,
    function_type(FEATURES),
    VECTOR,
    MATRIX,
    MATRIX,
    what="the evaluation of features",
)


@dataclass(frozen=True)
class Basis(ABC):
    """A recipe for features: what the user writes down before any observation space is known.

    Subclasses are frozen dataclasses: their fields are the recipe, saved and loaded as such.
    """

    def __post_init__(self) -> None:
        # Lists and arrays become tuples, so that a basis is equal to what was stored of it.
        for field in fields(self):
            object.__setattr__(self, field.name, _plain(getattr(self, field.name)))

    @abstractmethod
    def build(self, space: gym.Space[Any]) -> Features:
        """Features for the observations of a space."""

    def settings(self) -> dict[str, Any]:
        """Return the recipe as plain data, with the name of the class under ``"basis"``."""
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
