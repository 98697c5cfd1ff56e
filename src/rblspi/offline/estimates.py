"""What a policy is worth, by several methods side by side: where they disagree, one is wrong."""

from __future__ import annotations

from itertools import combinations, groupby
from operator import itemgetter
from typing import Any, NamedTuple

import gymnasium as gym
from numpy.typing import ArrayLike

from rblspi.core import check
from rblspi.features import BasisLike
from rblspi.model.statistics import Statistics
from rblspi.offline.accumulation import Data
from rblspi.offline.doubly_robust import cross_fitted, doubly_robust, marginalised_doubly_robust
from rblspi.offline.episodes import Episodes, episodes_of
from rblspi.offline.importance_sampling import marginalised, per_decision, ratios_of
from rblspi.offline.influence import Estimate, estimate, unknown
from rblspi.offline.linear_values import (
    DIVERGES,
    regressions_converge,
    solve,
    sums,
    unsupported,
)
from rblspi.offline.off_policy import policy_value
from rblspi.policies.given import PolicyFunction


class Estimates(NamedTuple):
    """The value of a policy by every method that the data allow."""

    rows: tuple[Estimate, ...]
    confidence: float
    left_out: str  # which methods are missing and why, in words; may be empty

    def disagreements(self) -> list[tuple[Estimate, Estimate]]:
        """Pairs of methods whose intervals do not overlap.

        All methods use the same data, so their errors have much in common: if the assumptions of
        both are right, their intervals are apart in fewer than one of a hundred logs.
        """
        pairs = combinations([row for row in self.rows if row.known], 2)
        return [(a, b) for a, b in pairs if a.high < b.low or b.high < a.low]

    @property
    def disagreement(self) -> str:
        """A sentence on which methods contradict one another."""
        found = self.disagreements()
        if not found:
            return "The intervals of all methods overlap."
        groups = (
            f"{first.method} with {', '.join(other.method for _, other in pairs)}"
            for first, pairs in groupby(found, key=itemgetter(0))
        )
        return f"Intervals that do not overlap, so that one is wrong: {'; '.join(groups)}."

    def __str__(self) -> str:
        """A table, and what to make of it."""
        cells = [("method", "value", f"{self.confidence:.0%} interval", "effective sample", "")]
        cells += [_cells(row) for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells
        ]
        return "\n".join([*lines, self.disagreement, *filter(None, [self.left_out])])


def _cells(row: Estimate) -> tuple[str, str, str, str, str]:
    if not row.known:
        return row.method, "unknown", "", "", row.note
    interval = f"{row.low:.4g} to {row.high:.4g}"
    effective = f"{row.effective:,.0f} of {row.size:,} {row.unit}" if row.size else ""
    return row.method, f"{row.mean:.4g}", interval, effective, row.note


def estimates(
    transitions: Data,
    policy: PolicyFunction,
    basis: BasisLike,
    actions: int,
    *,
    discount: float = 0.99,
    propensities: ArrayLike | None = None,
    first_observations: ArrayLike | None = None,
    confidence: float = 0.95,
    ridge: float = 0.01,
    observation_space: gym.Space[Any] | None = None,
) -> Estimates:
    """Estimate the discounted return of a policy from a log of another one, by several methods.

    Every interval is about the value of this policy from these data. Those of fitted Q evaluation
    and the marginalised methods take the basis for granted; `policy_value` tries finer ones.
    Importance sampling takes the propensities for granted instead, and doubly robust estimation
    either.

    Parameters
    ----------
    transitions, policy, basis, actions, discount, confidence, observation_space
        As for `policy_value`. The transitions are held in memory.
    propensities : array-like, shape (N,), optional
        The probability with which each logged action was chosen, above 0 and at most 1. Without
        them there is no importance sampling.
    first_observations : array-like, optional
        First states of episodes, by default those of the data. Methods that weight whole episodes
        only know the latter, and are left out if others are given.
    ridge : float
        Of fitted Q evaluation and what is built on it: A + ridge I, in units of the mean |phi|^2 of
        the transitions. It draws values towards the mean of the log, not towards 0.
    """
    confidence, ridge = check.fraction("confidence", confidence), check.positive("ridge", ridge)
    settings: dict[str, Any] = {
        "discount": discount,
        "first_observations": first_observations,
        "observation_space": observation_space,
    }
    episodes = episodes_of(transitions, policy, basis, actions, **settings)
    ours = policy_value(episodes.log, policy, basis, actions, confidence=confidence, **settings)
    statistics, halves = sums(episodes), cross_fitted(episodes, ridge)
    modelled = [
        _fitted_q_evaluation(episodes, statistics, ridge, confidence),
        marginalised_doubly_robust(episodes, halves, confidence),
    ]
    whole_episodes, left_out = [], ""
    if propensities is not None:
        ratios = ratios_of(episodes, propensities)
        modelled.append(marginalised(episodes, ratios, ridge, confidence))
        if episodes.sampled:
            modelled.append(doubly_robust(episodes, halves, ratios, confidence))
            whole_episodes = [
                per_decision(episodes, ratios, confidence),
                per_decision(episodes, ratios, confidence, normalised=True),
            ]
        else:
            left_out = (
                "Methods that weight whole episodes are left out: they know the value of the log's "
                "own first states only, not that of first_observations."
            )
    missing = unsupported(episodes, statistics)
    rows = [
        Estimate("policy_value", ours.mean, ours.low, ours.high),
        *(_widened(row, episodes, missing) for row in modelled),
        *whole_episodes,
    ]
    checked = tuple(_with_check(row, *episodes.value_range) for row in rows)
    return Estimates(checked, confidence, left_out)


def _fitted_q_evaluation(
    episodes: Episodes, statistics: Statistics, ridge: float, confidence: float
) -> Estimate:
    """The mean value of the first states, if the regressions converge."""
    method = "fitted Q evaluation"
    if not regressions_converge(statistics, ridge):
        return unknown(method, DIVERGES)
    model = solve(episodes, statistics, ridge)
    return estimate(method, model.value, model.influences(), confidence, model.densities())


def _widened(row: Estimate, episodes: Episodes, missing: float) -> Estimate:
    """An estimate that also allows for what has no data, a share of the value that is missing."""
    if missing == 0.0 or not row.known:
        return row
    low, high = episodes.widened(row.low, row.high, missing)
    note = f"{missing:.1%} of the value is of states and actions without data"
    return row._replace(low=low, high=high).noted(note)


def _with_check(row: Estimate, least: float, greatest: float) -> Estimate:
    """A note where the rewards of the log allow no value in the interval."""
    slack = 1e-9 * max(abs(least), abs(greatest))
    if not row.known or (row.low <= greatest + slack and row.high >= least - slack):
        return row
    limit = f"at most {greatest:.4g}" if row.low > greatest else f"at least {least:.4g}"
    return row.noted(f"impossible: with rewards like the logged ones a value is {limit}")
