"""States from programs: checks, and conversion to observations and plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rblspi.core.archive import short
from rblspi.core.types import Allowed, Vector
from rblspi.data.encoding import Encoding, Input
from rblspi.environments.spaces import action_mask, as_vector, checked_masks, finite_values
from rblspi.policies.linear import LinearPolicy

Item = TypeVar("Item")
Result = TypeVar("Result")


class Seen(NamedTuple):
    """A state in the form of the policy."""

    observation: Vector  # shape (d,)
    mask: Allowed  # which actions are allowed, shape (1, actions)


class States:
    """The states of a policy.

    Attributes
    ----------
    encoding : Encoding or None
        The columns of a state; None if it is a list of numbers.
    """

    def __init__(self, policy: LinearPolicy) -> None:
        self._policy = policy
        self.encoding = policy.inputs
        if policy.inputs is None and policy.features.input_size == 1:
            whole = finite_values(policy.observation_space) is not None
            self.encoding = Encoding((Input("state", whole=whole),))

    def seen(self, state: Any) -> Seen:
        """A state: a mapping from names of columns to values, a sequence, or a single number."""
        policy = self._policy
        try:
            observation = np.ravel(self._observation(state)) + 0.0  # -0.0 is 0.0
            mask = action_mask(policy.observation_space, state)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{self._refused(state)}: {error}") from error
        if len(observation) != policy.features.input_size or not np.isfinite(observation).all():
            raise ValueError(self._refused(state))
        with np.errstate(all="ignore"):
            x = policy.features(observation.reshape(policy.features.shape))
            values = policy.weights_by_action @ x
        if not np.isfinite(values).all():
            raise ValueError(f"{short(state)} is too far away: values overflow")
        allowed = np.ones(policy.actions) if mask is None else mask
        return Seen(observation, checked_masks(allowed, policy.actions, 1))

    def _observation(self, state: Any) -> Any:
        policy = self._policy
        if policy.inputs is not None:
            return policy.inputs(state)
        if isinstance(state, Mapping | tuple):
            return as_vector(policy.observation_space, state)
        return np.asarray(state, np.float64)

    def _refused(self, state: Any) -> str:
        return f"{short(state)} is not a state of {self._policy.features.input_size} finite numbers"

    def plain(self, seen: Seen) -> Any:
        """A state in the form of the log: values by column, or a list of numbers."""
        numbers = seen.observation.tolist()
        if self.encoding is None:
            return numbers
        inputs = self.encoding.inputs
        if self.encoding.alone:
            return {inputs[0].name: _decoded(inputs[0], numbers, alone=True)}
        ends = np.cumsum([len(column.names) for column in inputs]).tolist()
        parts = zip(inputs, [0, *ends], ends, strict=False)
        return {c.name: _decoded(c, numbers[start:end], alone=False) for c, start, end in parts}

    def batch(self, seen: Sequence[Seen]) -> tuple[Any, Any]:
        """Observations, shape (N, ...), and which actions are allowed, shape (N, actions)."""
        shape = self._policy.features.shape
        observations = np.stack([each.observation for each in seen]).reshape(-1, *shape)
        return observations, np.concatenate([each.mask for each in seen])


def _decoded(column: Input, numbers: Sequence[float], alone: bool) -> float | str | None:
    """The value of a column that `Input.encoded` turned into these numbers."""
    if column.fill is not None and numbers[-1]:
        return None
    if not column.words:
        return numbers[0]
    return column.words[int(numbers[0]) if alone else numbers.index(1.0)]


def each(name: str, items: Sequence[Item], work: Callable[[Item], Result]) -> list[Result]:
    """The results of a function for every item; an error names its item."""
    results = []
    for i, item in enumerate(items):
        try:
            results.append(work(item))
        except ValueError as error:
            where = f"{name}[{i}]: " if len(items) > 1 else ""
            raise ValueError(f"{where}{error}") from error
    return results
