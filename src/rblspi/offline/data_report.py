"""Is a log fit to be learnt from? What it holds, and a word for every reason to doubt it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.dataset import Dataset
from rblspi.data.encoding import ActionNames
from rblspi.data.transitions import Transitions, joined
from rblspi.offline.accumulation import Data, chunks_of, first_chunks
from rblspi.offline.support import BAD, DOUBTFUL, GOOD, WORDS, Finding

#: transitions that are looked at
MOST_ROWS = 200_000
#: the share of an action below which little is known of it
RARE = 0.01
#: the share of rows without a next state above which much is lost
MANY = 0.1
#: the share of transitions that may be there twice by chance
TWICE = 0.01
#: the share of terminated episodes of the same, greatest length that suggests a time limit
SAME_LENGTH = 0.1
#: the squared correlation from which on two columns hold the same
SAME = 0.9999


class DataReport(NamedTuple):
    """What a log holds, and what may be wrong with it."""

    log: Transitions  # the transitions that were looked at
    names: tuple[str, ...]  # of the numbers of an observation
    action_names: ActionNames
    lengths: Integers  # of the episodes
    facts: tuple[tuple[str, str], ...]
    findings: tuple[Finding, ...]

    @property
    def word(self) -> str:
        """The worst word of all findings: "good", "doubtful" or "bad"."""
        return max((finding.word for finding in self.findings), key=WORDS.index)

    def __str__(self) -> str:
        """The facts, and whatever is not good."""
        width = max(len(name) for name, _ in self.facts)
        lines = [f"  {name:<{width}}  {value}" for name, value in self.facts]
        doubts = [f"  {f.word}: {f.name}: {f.advice}" for f in self.findings if f.word != GOOD]
        return "\n".join([f"data report: {self.word}", *lines, *doubts])


def data_report(log: Data) -> DataReport:
    """Look at a log before anything is learnt from it.

    Parameters
    ----------
    log : Transitions, tuple of their columns, iterable of Transitions, or log
        The first 200,000 transitions are looked at.
    """
    source = chunks_of(log)
    rows = joined(first_chunks(source, MOST_ROWS))
    numbers = rows.observations.reshape(rows.size, -1).astype(np.float64)
    encoding = source.encoding
    names = tuple(encoding.names) if encoding is not None else _numbered(numbers.shape[1])
    ends = np.flatnonzero(np.append(rows.starts()[1:], True))
    lengths: Integers = np.diff(ends, prepend=-1)
    report = DataReport(rows, names, source.action_names, lengths, (), ())
    counts = np.bincount(rows.actions, minlength=max(len(report.action_names), 1))
    return report._replace(
        facts=tuple(_facts(report, counts, source)),
        findings=(
            _rare_actions(report, counts),
            _duplicates(rows, numbers),
            *_leaks(rows, numbers, names),
            _constants(numbers, names),
            _rewards(rows.rewards),
            _time_limit(rows, ends, lengths),
            *_reading(source),
        ),
    )


def _numbered(count: int) -> tuple[str, ...]:
    return ("state",) if count == 1 else tuple(f"state_{i}" for i in range(count))


def _facts(report: DataReport, counts: Integers, source: Dataset) -> Iterator[tuple[str, str]]:
    rows, lengths = report.log, report.lengths
    of = source.size
    yield "transitions", f"{rows.size:,}" + (f" of {of:,}" if of > rows.size else "")
    middle = float(np.median(lengths))
    yield "episodes", f"{len(lengths):,}, of {lengths.min():,} to {lengths.max():,} transitions"
    yield "", f"half of them of at most {middle:g}; {int(rows.terminated.sum()):,} terminated"
    low, high = float(rows.rewards.min()), float(rows.rewards.max())
    spread = f"{low:.4g} to {high:.4g}, standard deviation {float(rows.rewards.std()):.4g}"
    yield "rewards", f"mean {float(rows.rewards.mean()):.4g}, {spread}"
    elapsed = rows.elapsed
    if elapsed is not None and not rows.terminated.all():
        yield "elapsed", _elapsed(elapsed[~rows.terminated])
    shares = counts / rows.size
    names = tuple(map(str, report.action_names or range(len(counts))))
    most = np.argsort(-shares, kind="stable")[:8]
    listed = ", ".join(f"{names[a]} {shares[a]:.1%}" for a in most)
    yield "actions", listed + (f", ... ({len(counts)})" if len(counts) > len(most) else "")


def _elapsed(times: Vector) -> str:
    """How long transitions took; that to a terminal state does not matter."""
    low, middle, high = (float(q) for q in np.quantile(times, (0.0, 0.5, 1.0)))
    return f"{low:.4g} to {high:.4g} times discount_per, half of them at most {middle:.4g}"


def _finding(name: str, value: float, worse: bool, word: str, advice: str) -> Finding:
    return Finding(name, float(value), word if worse else GOOD, advice if worse else "")


def _rare_actions(report: DataReport, counts: Integers) -> Finding:
    names = tuple(map(str, report.action_names or range(len(counts))))
    rare = np.flatnonzero(counts < RARE * report.log.size)
    listed = ", ".join(f"{names[a]} ({counts[a]:,} rows)" for a in rare[:6])
    advice = f"{listed}: the log can say little about them; correct them if they are mistakes"
    return _finding("rare actions", len(rare), len(rare) > 0, DOUBTFUL, advice)


def _duplicates(rows: Transitions, numbers: Matrix) -> Finding:
    """Transitions that are there twice, which states of whole numbers may be by chance."""
    after = rows.next_observations.reshape(rows.size, -1)
    table = np.column_stack([numbers, rows.actions, rows.rewards, after])
    several = 1.0 - len(np.unique(table, axis=0)) / rows.size
    odd = several > TWICE and bool((numbers != np.floor(numbers)).any())
    advice = f"{several:.1%} of the transitions are copies of others: remove them if rows repeat"
    return _finding("duplicates", several, odd, DOUBTFUL, advice)


def _leaks(rows: Transitions, numbers: Matrix, names: tuple[str, ...]) -> Iterator[Finding]:
    """Columns of the state that already know the reward or the next state."""
    by_reward = [n for n, same in zip(names, _same(numbers, rows.rewards), strict=True) if same]
    advice = f"{', '.join(by_reward)}: the same as the reward, which is known only afterwards"
    yield _finding("the state knows the reward", len(by_reward), bool(by_reward), BAD, advice)
    pairs = _ahead(rows, numbers, names)
    advice = f"{', '.join(pairs[:6])}: leave such columns out, unless the latter is a delayed copy"
    yield _finding("the state knows the next one", len(pairs), bool(pairs), DOUBTFUL, advice)


def _ahead(rows: Transitions, numbers: Matrix, names: tuple[str, ...]) -> list[str]:
    """Columns that are the same as another column in the next state, but not in this one."""
    goes_on = ~rows.terminated
    now = numbers[goes_on]
    after = rows.next_observations.reshape(rows.size, -1)[goes_on].astype(np.float64)
    many = [i for i in range(len(names)) if len(np.unique(now[:1000, i])) > 2]  # no indicators
    found = []
    for j in many:
        same = _same(now[:, many], after[:, j]) & ~_same(now[:, many], now[:, j])
        found += [f"{names[many[i]]} is the next {names[j]}" for i in np.flatnonzero(same)]
    return found


def _same(columns: Matrix, other: Vector) -> Mask:
    """Which columns are another one up to scale and shift; constants are none."""
    centred, target = columns - columns.mean(axis=0), other - other.mean()
    spread = (centred**2).sum(axis=0) * float(target @ target)
    with np.errstate(all="ignore"):
        squared = (centred.T @ target) ** 2 / spread
    same: Mask = (spread > 0.0) & (squared > SAME)
    return same


def _constants(numbers: Matrix, names: tuple[str, ...]) -> Finding:
    constant = [names[i] for i in np.flatnonzero(np.ptp(numbers, axis=0) == 0.0)]
    advice = f"{', '.join(constant[:6])}: the same in all rows, leave such columns out"
    return _finding("constant columns", len(constant), bool(constant), DOUBTFUL, advice)


def _rewards(rewards: Vector) -> Finding:
    different = int((rewards != rewards[0]).sum())
    advice = "all rewards are equal: only the ends of episodes can make a difference"
    return _finding("rewards that differ", different, different == 0, DOUBTFUL, advice)


def _time_limit(rows: Transitions, ends: Integers, lengths: Integers) -> Finding:
    """Whether many episodes that terminated have the same, greatest length."""
    finished = lengths[rows.terminated[ends]]
    longest = int((finished == finished.max()).sum()) if len(finished) else 0
    share = longest / max(len(finished), 1)
    odd = longest > 1 and share >= SAME_LENGTH and int(finished.max()) > 1
    advice = (
        f"{longest:,} of {len(finished):,} episodes that terminated have {finished.max():,} "
        "transitions, and none has more: is that a time limit? Then say ends="
        if odd
        else ""
    )
    return _finding("terminated at the same length", share, odd, DOUBTFUL, advice)


def _reading(source: Dataset) -> Iterator[Finding]:
    """What was noticed while the log was read."""
    advice = "rows were not in the order of their time, and were sorted within their episodes"
    yield _finding("order of rows", 1.0, not source.facts.in_order, DOUBTFUL, advice)
    bad, left = source.bad, source.facts.left_out
    yield _finding("bad rows", bad.count, bad.count > 0, DOUBTFUL, str(bad))
    advice = f"{left:,} last rows have no next state: log the state after the last action, too"
    many = left > MANY * source.size
    yield _finding("rows without a next state", left, many, DOUBTFUL, advice)
