"""Can a policy be trusted, as far as the log can tell? A word for every reason to doubt it.

A log can only speak for what it contains. Whether it contains what the policy would do is found by
following the policy in the log itself, see `paths`.
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np

from rblspi.core import check
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.model.posterior import ConditionWarning
from rblspi.offline.accumulation import Data, chunks_of
from rblspi.offline.blstd import BLSTD
from rblspi.offline.comparison import Comparison, compare
from rblspi.offline.model_selection import candidates, first_rows, halves
from rblspi.offline.paths import PATHS, follow, follow_log
from rblspi.offline.support import (
    BAD,
    DOUBTFUL,
    GOOD,
    SOME,
    WORDS,
    Finding,
    support_of,
    word,
    worst,
)
from rblspi.policies.given import PolicyFunction

VERDICTS = dict(zip(WORDS, ("trust it", "with care", "do not trust"), strict=True))

#: a basis may be wrong by as much as noise, or by this share of the spread of values
SMALL = 0.1
#: the share of logged actions above which a policy counts as the log's own
SAME = 0.9
#: R^2 that a true Markov state exceeds by chance or by the error of the basis only
MEMORY = 0.02
#: the ridge of regressions on the past, relative to the mean diagonal element
RIDGE = 1e-3


class TrustReport(NamedTuple):
    """What a log says for a policy and against it."""

    findings: tuple[Finding, ...]

    @property
    def word(self) -> str:
        """The worst word of all findings."""
        return worst(self.findings)

    @property
    def verdict(self) -> str:
        """The worst word as advice: "trust it", "with care" or "do not trust"."""
        return VERDICTS[self.word]

    def plain(self) -> dict[str, Any]:
        """The report as plain data; a number that is not finite is None."""
        rows = [
            f._asdict() | {"value": f.value if math.isfinite(f.value) else None}
            for f in self.findings
        ]
        return {"verdict": self.verdict, "findings": rows}

    def __str__(self) -> str:
        """A table, and the verdict."""
        lines = [
            f"  {f.name:<{max(len(g.name) for g in self.findings)}}  {f.value:>9.3g}  "
            f"{f.word:<8}  {f.advice}".rstrip()
            for f in self.findings
        ]
        return "\n".join([f"trust report: {self.verdict}", *lines])


def trust(
    policy: PolicyFunction,
    log: Data,
    basis: BasisLike | None = None,
    *,
    discount: float,
    converged: bool | None = None,
    observation_space: gym.Space[Any] | None = None,
    seed: int = 0,
) -> TrustReport:
    """Say how far a log supports a policy.

    Parameters
    ----------
    policy : callable
        Maps a batch of observations to actions.
    log : Transitions, tuple of their columns, or iterable of Transitions
        The first 50,000 are used.
    basis : Basis, optional
        In which values are estimated; by default that of `FQI`.
    discount : float
    converged : bool, optional
        Whether policy iteration converged.
    observation_space : gymnasium.Space, optional
        As for `policy_value`.
    seed : int
        Of the paths.
    """
    discount = check.fraction("discount", discount)
    rows = first_rows(chunks_of(log))
    chosen = candidates([rows], observation_space)[0].basis if basis is None else basis
    taken = (rows.actions, policy(rows.observations), policy(rows.next_observations))
    actions = 1 + max(int(np.max(column)) for column in taken)
    paths = follow(policy, rows, discount, seed)
    found = support_of(paths)
    settings: dict[str, Any] = {"discount": discount, "observation_space": observation_space}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # which the findings say in other words
        blstd = BLSTD(chosen, actions, **settings).fit(rows, policy)
        gain = compare(policy, None, rows, chosen, actions, **settings)
    values = blstd.predict(rows.observations, np.asarray(taken[1]))
    found += [_basis(gain, float(np.std(values))), _markov(blstd, policy, rows)]
    same = float(np.mean(rows.actions == taken[1])) >= SAME
    found.append(_better(gain, paths.returns - follow_log(rows, discount, seed).returns, same))
    if converged is not None:
        how, advice = (GOOD, "") if converged else (BAD, "more transitions, or another basis")
        found.append(Finding("converged", float(converged), how, advice))
    return TrustReport(tuple(found))


def _basis(gain: Comparison, spread: float) -> Finding:
    """How much finer bases change the gain, as a share of the spread of values.

    It widens the interval of the gain, and is no reason of its own to call a policy bad.
    """
    share = gain.basis_std / spread if spread else 0.0
    found = GOOD if gain.basis_std <= gain.sampling_std else word(share, SMALL, math.inf)
    return Finding("disagreement of bases", share, found, "" if found == GOOD else "a finer basis")


def _better(gain: Comparison, differences: Vector, same: bool) -> Finding:
    """Is the policy better than the log's own? By the interval of `compare`, and along paths.

    A policy that does other things than the log's own, without a gain along paths, is bad.
    """
    found, advice = DOUBTFUL, "it may be no better than the log's own policy: log more"
    error = float(differences.std()) / math.sqrt(PATHS)
    if gain.high < 0.0 or not (same or differences.mean() > 2.0 * error):
        found, advice = BAD, "nothing shows that it is better: keep the log's own policy"
    elif gain.low > 0.0:
        found, advice = GOOD, ""
    return Finding("gain over the log", float(differences.mean()), found, advice)


def _markov(blstd: BLSTD, policy: PolicyFunction, log: Transitions) -> Finding:
    """The held-out share of TD errors that the step before explains, and the present does not."""
    rows = np.flatnonzero(~log.starts())
    half, errors = halves(log)[rows], blstd.td_errors(log)[rows]
    name, advice = "memory (R^2)", "put earlier observations into the state"
    if min(half.sum(), (~half).sum()) < SOME or not errors.any():
        return Finding(name, 0.0, GOOD, "")
    present = _by_action(blstd, log, rows)
    rest = errors - _held_out(present, errors, half)
    known = _held_out(_by_action(blstd, log, rows - 1), rest, half)
    share = max(0.0, 1.0 - float(np.square(rest - known).sum() / np.square(rest).sum()))
    found = word(share, MEMORY, math.inf)
    return Finding(name, share, found, "" if found == GOOD else advice)


def _by_action(blstd: BLSTD, log: Transitions, rows: Integers) -> Matrix:
    """A block of features for every action, shape (N, k)."""
    x = blstd.features_(log.observations[rows])
    chosen = np.eye(blstd.statistics_.actions)[log.actions[rows]]
    blocks: Matrix = np.einsum("na,nf->naf", chosen, x).reshape(len(x), -1)
    return blocks


def _held_out(x: Matrix, y: Vector, half: Mask) -> Vector:
    """Predictions of each half by the ridge regression of the other."""
    predicted = np.empty(len(y))
    for part in (half, ~half):
        gram = x[~part].T @ x[~part]
        gram[np.diag_indices_from(gram)] += RIDGE * gram.trace() / len(gram)
        predicted[part] = x[part] @ np.linalg.solve(gram, x[~part].T @ y[~part])
    return predicted
