"""From the columns of a state to the numbers of an observation, in a log and in a decision."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rblspi.core.archive import short
from rblspi.core.types import Array, Matrix

#: text that is a number, and words that are no value in a column of numbers
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
MISSING = ("na", "n/a", "#n/a", "<na>", "nan", "-nan", "null")
NONE = "none"


@dataclass(frozen=True)
class Input:
    """One column of a state."""

    name: str
    words: tuple[str, ...] = ()  # the values; () if they are numbers
    whole: bool = False  # whether the numbers are whole
    fill: float | None = None  # in place of missing values, of which another number then tells

    @property
    def names(self) -> list[str]:
        """The names of the numbers that it becomes."""
        numbers = [f"{self.name}={word}" for word in self.words] or [self.name]
        return numbers if self.fill is None else [*numbers, f"{self.name} is missing"]

    def encoded(self, values: Array) -> Matrix:
        """The numbers of some values, shape (N, numbers): numbers, or places of words; or NaN."""
        absent = np.isnan(values)
        if self.words:
            numbers = (values[:, None] == np.arange(len(self.words))).astype(np.float64)
        else:
            numbers = np.where(absent, self.fill or 0.0, values)[:, None]
        return numbers if self.fill is None else np.column_stack([numbers, absent])

    def value(self, given: Any) -> float:
        """A number, or the place of a word; NaN if the value is missing and may be."""
        text = str(given).strip()
        absent = given is None or (isinstance(given, float) and math.isnan(given)) or not text
        if absent or (text not in self.words and text.lower() in (*MISSING, NONE)):
            if self.fill is None:
                raise ValueError(f"{self.name} is missing: give a value")
            return math.nan
        if self.words:
            if isinstance(given, float) and given.is_integer():
                text = str(int(given))
            if text not in self.words:
                known = listed([*self.words])
                raise ValueError(f"{self.name}={short(given)} is not in the log, which has {known}")
            return float(self.words.index(text))
        try:
            number = float(given)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{self.name}={short(given)} must be a number") from None
        if not math.isfinite(number):
            raise ValueError(f"{self.name}={given!r} must be a finite number")
        return number


@dataclass(frozen=True)
class Encoding:
    """How states with names, words and missing values become observations.

    A word becomes one number for each word of the column, which is 1 for that word and 0 for the
    others. A state of a single column stays a number, or is the place of the word.
    """

    inputs: tuple[Input, ...]

    @property
    def names(self) -> list[str]:
        """The name of every number of an observation."""
        return [name for each in self.inputs for name in each.names]

    @property
    def alone(self) -> bool:
        """Whether an observation is a single number, and not a vector."""
        return len(self.inputs) == 1 and self.inputs[0].fill is None

    def encoded(self, columns: Sequence[Array]) -> NDArray[Any]:
        """The observations, shape (N, d) or (N,), of columns of numbers and of places of words."""
        if self.alone:
            whole = self.inputs[0].whole or bool(self.inputs[0].words)
            return columns[0].astype(np.int64) if whole else columns[0]
        parts = [each.encoded(column) for each, column in zip(self.inputs, columns, strict=True)]
        return np.concatenate(parts, axis=1)

    def __call__(self, states: Any) -> NDArray[Any]:
        """The observation of a state as a person has it, or the observations of several.

        A state is a mapping from names of columns to values, or a sequence of values in the order
        of the columns. Several states are a sequence of them, or a table. Observations, which are
        arrays of numbers already, stay as they are.
        """
        if isinstance(states, np.ndarray) and self._are_observations(states):
            return states
        rows, single = self._rows(states)
        width = len(self.inputs)
        for i, row in enumerate(rows):
            if len(row) != width:
                raise ValueError(
                    f"state in row {i} has {len(row)} values, but needs {width}: "
                    f"{', '.join(each.name for each in self.inputs)}"
                )
        columns = []
        for place, each in enumerate(self.inputs):
            columns.append(np.array([each.value(row[place]) for row in rows], np.float64))
        encoded = self.encoded(columns)
        observations: NDArray[Any] = encoded[0] if single else encoded
        return observations

    def _are_observations(self, states: NDArray[Any]) -> bool:
        if states.dtype.kind not in "biuf":
            return False
        return self.alone or states.shape[-1:] == (len(self.names),)

    def _rows(self, states: Any) -> tuple[list[Sequence[Any]], bool]:
        if isinstance(states, Mapping):
            return [self._named(states)], True
        if hasattr(states, "__arrow_c_stream__") or hasattr(states, "to_dict"):
            from rblspi.data.sources import frame_of

            return [self._named(row) for row in frame_of(states).iter_rows(named=True)], False
        values = states.tolist() if isinstance(states, np.ndarray) else states
        if isinstance(values, str) or not isinstance(values, Iterable):
            return [[values]], True
        rows = list(values)
        if rows and isinstance(rows[0], Mapping):
            return [self._named(row) for row in rows], False
        if rows and isinstance(rows[0], Sequence) and not isinstance(rows[0], str):
            return rows, False
        return ([[row] for row in rows], False) if len(self.inputs) == 1 else ([rows], True)

    def _named(self, state: Mapping[str, Any]) -> list[Any]:
        absent = [each.name for each in self.inputs if each.name not in state]
        if absent:
            raise ValueError(f"state has no {absent[0]!r}, only {', '.join(map(str, state))}")
        return [state[each.name] for each in self.inputs]

    def plain(self) -> list[dict[str, Any]]:
        """The encoding as plain data."""
        return [asdict(each) for each in self.inputs]

    @classmethod
    def from_plain(cls, data: Any) -> Self:
        """Read what `plain` wrote; a ValueError says that it is something else."""
        kinds = {"name": str, "words": list | tuple, "whole": bool, "fill": int | float | None}
        if not isinstance(data, list) or not data:
            raise ValueError("the columns of states must be a list")
        inputs = []
        for entry in data:
            if not isinstance(entry, dict) or set(entry) != set(kinds):
                raise ValueError("a column of states must have name, words, whole and fill")
            if not all(isinstance(entry[name], kind) for name, kind in kinds.items()):
                raise ValueError("a column of states has fields of other types")
            if not all(isinstance(word, str) for word in entry["words"]):
                raise ValueError("the words of a column must be text")
            inputs.append(Input(**entry | {"words": tuple(entry["words"])}))
        return cls(tuple(inputs))


#: of the actions 0, 1, ...: words, or numbers, to the nearest of which those of a log are rounded
ActionNames: TypeAlias = tuple[str, ...] | tuple[float, ...]
#: how states become observations, and the names of actions
Naming: TypeAlias = tuple[Encoding | None, ActionNames]


def points_of(names: ActionNames) -> tuple[float, ...]:
    """The names of actions if these are numbers, else ()."""
    return tuple(name for name in names if isinstance(name, float))


def in_order(words: Iterable[str]) -> tuple[str, ...]:
    """Words in alphabetical order; words that are numbers by their size."""

    def key(word: str) -> tuple[float, str]:
        return (float(word) if re.fullmatch(NUMBER, word) else math.inf, word)

    return tuple(sorted(words, key=key))


def listed(words: list[str], most: int = 6) -> str:
    """Some of the words, and how many there are if these are not all."""
    if len(words) <= most:
        return ", ".join(words)
    return f"{', '.join(words[: most - 1])}, ... ({len(words):,})"
