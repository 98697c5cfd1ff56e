"""A log, and the decisions of a policy that was learnt from it: one data set."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from rblspi.data.columns import Columns, DataError
from rblspi.data.decoding import BadRows
from rblspi.data.kept import Part, Reshaped
from rblspi.data.log import read_log
from rblspi.data.transitions import Transitions, cut_between


class LogAndDecisions:
    """Transitions of a log, and after them those of decisions, with the names of the log.

    Parameters
    ----------
    log : LogData or ParquetData
        What `rblspi.data.read_log` returned.
    decisions : path, or sequence of paths
        What `rblspi.serving.Decisions` or ``rblspi serve`` wrote.
    """

    def __init__(
        self, log: Any, decisions: str | PathLike[str] | list[str | PathLike[str]]
    ) -> None:
        self.log = log
        self.encoding = getattr(log, "encoding", None)
        self.action_names: tuple[str, ...] = getattr(log, "action_names", ())
        names = None if self.encoding is None else (self.encoding, self.action_names)
        self.discount_per = getattr(log, "discount_per", None)
        columns = Columns(discount_per=self.discount_per)
        self.decisions: Any = read_log(decisions, columns, names=names)
        self.name = f"{getattr(log, 'name', 'log')} and {decisions}"
        known = log.actions is not None
        self.actions: int | None = max(log.actions, self.decisions.actions) if known else None
        self.metadata: dict[str, Any] = log.metadata
        first, own = (next(iter(part)).observations[0] for part in (log, self.decisions))
        self._shape = first.shape
        if own.size != first.size:
            raise DataError(
                f"{decisions}: a state has {own.size} numbers, but {first.size} in the "
                "log: name the log that the policy was learnt from"
            )

    @property
    def size(self) -> int:
        """The number of transitions."""
        return int(self.log.size + self.decisions.size)

    @property
    def bad(self) -> BadRows:
        """The rows that were left out because something is wrong with them."""
        both = BadRows()
        for part in (self.log, self.decisions):
            both.add(part.bad)
        return both

    @property
    def left_out(self) -> int:
        """The last rows of episodes of the log, whose next state is not known."""
        return int(getattr(self.log, "left_out", 0))

    def _parts(self) -> tuple[Any, Reshaped]:
        return self.log, Reshaped(self.decisions, self._shape)

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the transitions, in chunks."""
        log, decisions = self._parts()
        named = ((name, chunk) for name, part in (("", log), (" ", decisions)) for chunk in part)
        return cut_between(named, inferred=False)

    def partitions(self) -> list[Any]:
        """Those of the log, and those of the decisions."""
        own = [Part(Reshaped(part, self._shape), part.size) for part in self.decisions.partitions()]
        return [*self.log.partitions(), *own]

    def __str__(self) -> str:
        """The roles of the columns of both."""
        return f"{self.log}\n{self.decisions}"
