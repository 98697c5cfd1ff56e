"""Data sets of transitions: what all of them can do, and what is known before they are read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from rblspi.data.encoding import ActionNames, Encoding
from rblspi.data.periods import PeriodLike
from rblspi.data.transitions import Transitions

Result = TypeVar("Result")


@dataclass
class BadRows:
    """Bad rows that were skipped during the latest pass."""

    count: int = 0
    by_column: Counter[str] = field(default_factory=Counter)  # by the first column that is bad
    first: str = ""  # where the first bad row is, and what is wrong with it

    def add(self, others: BadRows) -> None:
        """Add the bad rows of the next partition."""
        self.count += others.count
        self.by_column.update(others.by_column)
        self.first = self.first or others.first

    def clear(self) -> None:
        """Forget them, before another pass."""
        self.count, self.first = 0, ""
        self.by_column.clear()

    def __str__(self) -> str:
        """All of them in one sentence."""
        if not self.count:
            return "no bad rows"
        columns = ", ".join(f"{name} {n:,}" for name, n in self.by_column.most_common())
        return f"{self.count:,} bad rows left out ({columns}); the first: {self.first}"


@dataclass
class Facts:
    """What is known of transitions before they are read."""

    name: str = "transitions"
    size: int = 0  # the number of rows; 0: not known
    actions: int | None = None  # the number of actions, which may be more than the data have
    encoding: Encoding | None = None  # of states with names; None: they are numbers without any
    action_names: ActionNames = ()  # (): actions count from 0
    discount_per: PeriodLike | None = None
    metadata: dict[str, Any] = field(default_factory=dict)  # how they were collected
    in_order: bool = True  # whether rows had to be sorted
    left_out: int = 0  # last rows of episodes, whose next state is not known


class Dataset(ABC):
    """Transitions in chunks, which can be passed over any number of times."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.bad = BadRows()

    @abstractmethod
    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the chunks."""

    def partitions(self) -> Sequence[Iterable[Transitions]]:
        """The parts, which workers of a cluster can read."""
        return [self]

    def map_partitions(self, work: Callable[[Iterable[Transitions]], Result]) -> Iterator[Result]:
        """Apply a function to every partition, here or on a cluster; the results are in order."""
        return map(work, self.partitions())

    def limit_actions(self, actions: int) -> None:
        """Set the number of actions. Rows of files that are read from now on must not have more."""
        self.facts.actions = actions

    @property
    def size(self) -> int:
        """The number of transitions, including bad rows if these are found only in a pass."""
        return self.facts.size

    @property
    def actions(self) -> int | None:
        """The number of actions, if it is known."""
        return self.facts.actions

    @property
    def encoding(self) -> Encoding | None:
        """How a state becomes an observation; None if states are numbers without names."""
        return self.facts.encoding

    @property
    def action_names(self) -> ActionNames:
        """The names of the actions 0, 1, ...; () if the log has these numbers."""
        return self.facts.action_names

    def __str__(self) -> str:
        """The name and the size."""
        return f"{self.facts.name}: {self.size:,} rows"


class Chunks(Dataset):
    """Chunks from anywhere, of which nothing is known."""

    def __init__(self, chunks: Iterable[Transitions]) -> None:
        super().__init__(Facts())
        self.chunks = chunks

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the chunks."""
        return iter(self.chunks)
