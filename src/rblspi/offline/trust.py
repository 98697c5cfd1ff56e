"""Can a policy be trusted, as far as the log can tell? A word for every reason to doubt it.

A log can only speak for what it contains. Whether it contains what the policy would do, and what
the policy is worth then, is found by following it in the log itself, see `support`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from scipy.stats import norm

from rblspi.core import check
from rblspi.core.types import Integers, Mask, Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike
from rblspi.model.posterior import ConditionWarning
from rblspi.offline.accumulation import Data, chunks_of, first_rows, halves
from rblspi.offline.comparison import Comparison, compare
from rblspi.offline.fitted_q import attainable
from rblspi.offline.lstd import BLSTD
from rblspi.offline.model_selection import candidates
from rblspi.offline.paths import Paths, first_states, follow_log
from rblspi.offline.problem import are_states
from rblspi.offline.support import (
    BAD,
    DOUBTFUL,
    GOOD,
    LITTLE,
    MUCH,
    SOME,
    WORDS,
    Finding,
    followed,
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
    values: Callable[[Any, Any], Vector] | None = None,
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
    values : callable, optional
        What the learner of the policy takes observations and actions to be worth: its ``predict``.
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
    firsts = first_states(rows)
    paths = followed(policy, rows, discount, firsts, seed)
    settings: dict[str, Any] = {"discount": discount, "observation_space": observation_space}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConditionWarning)  # which the findings say in other words
        blstd = BLSTD(chosen, actions, **settings).fit(rows, policy)
        gain = compare(policy, None, rows, chosen, actions, **settings)
    spread = float(np.std(blstd.predict(rows.observations, np.asarray(taken[1]))))
    own = follow_log(rows, discount, seed).returns
    same = float(np.mean(rows.actions == taken[1])) >= SAME
    found = support_of(paths, rows)
    found += [_basis(gain, spread), _markov(blstd, rows)]
    found.append(_better(gain, paths.returns, own, same))
    more = float(paths.returns.mean() - own.mean())
    if are_states(rows.observations):
        found.append(_decisions(blstd, np.asarray(taken[1]), rows, paths, more))
    if values is not None:
        promised = np.clip(values(firsts, policy(firsts)), *attainable([rows], discount))
        found.append(_promise(more, float(promised.mean() - own.mean())))
    if converged is not None:
        advice = "more transitions, or another basis"
        found.append(Finding.of("converged", float(converged), GOOD if converged else BAD, advice))
    return TrustReport(tuple(found))


def _basis(gain: Comparison, spread: float) -> Finding:
    """How much finer bases change the gain, as a share of the spread of values.

    It widens the interval of the gain, and is no reason of its own to call a policy bad.
    """
    share = gain.basis_std / spread if spread else 0.0
    found = GOOD if gain.basis_std <= gain.sampling_std else word(share, SMALL, math.inf)
    return Finding.of("disagreement of bases", share, found, "a finer basis")


def _better(gain: Comparison, returns: Vector, own: Vector, same: bool) -> Finding:
    """Is the policy better than the log's own? By the interval of `compare`, and along paths.

    A policy that does other things than the log's own, without a gain along paths, is bad.
    """
    found, advice = DOUBTFUL, "it may be no better than the log's own policy: log more"
    more = float(returns.mean() - own.mean())
    error = math.sqrt(returns.var() / len(returns) + own.var() / len(own))
    if gain.high < 0.0 or not (same or more > 2.0 * error):
        found, advice = BAD, "nothing shows that it is better: keep the log's own policy"
    elif gain.low > 0.0:
        found = GOOD
    return Finding.of("gain over the log", more, found, advice)


def _decisions(
    blstd: BLSTD, chosen: Integers, log: Transitions, paths: Paths, gain: float
) -> Finding:
    """What wrong decisions may cost, as a share of the gain over the log.

    The gap between the value of the action of the policy and that of another one is normal, with
    mean m and deviation s, of which E max(0, -gap) = s phi(m/s) - m Phi(-m/s) is lost. The best of
    the other actions counts, and every decision with its discounted number along the paths: to
    first order the loss of a policy is the sum of those of its decisions.
    """
    mean, std = blstd.predict(log.observations, return_std=True)
    rows = np.arange(log.size)
    gap = mean[rows, chosen][:, None] - mean
    deviation = np.hypot(std, std[rows, chosen][:, None])
    deviation[rows, chosen] = 0.0  # nothing is lost by what it does
    z = np.divide(gap, deviation, out=np.full_like(gap, np.inf), where=deviation > 0.0)
    lost = deviation * norm.pdf(z) - gap * norm.cdf(-z)
    total = float(paths.weights @ lost.max(axis=1)) / len(paths.returns)
    share = total / gain if gain > 0.0 else 0.0  # without a gain, that is the finding
    return Finding.of("undecided", share, word(share, LITTLE, MUCH), "log more of all actions")


def _promise(gain: float, promised: float) -> Finding:
    """The share of the gain over the log that the learner promises and the paths do not show."""
    share = max(0.0, 1.0 - gain / promised) if promised > 0.0 else 0.0
    advice = "its values are not to be had from these data: log more"
    return Finding.of("promise not kept", share, word(share, LITTLE, MUCH), advice)


def _markov(blstd: BLSTD, log: Transitions) -> Finding:
    """The held-out share of TD errors that the step before explains, and the present does not."""
    rows, share = np.flatnonzero(~log.starts()), 0.0
    half, errors = halves(log)[rows], blstd.td_errors(log)[rows]
    if min(half.sum(), (~half).sum()) >= SOME and errors.any():
        rest = errors - _held_out(_by_action(blstd, log, rows), errors, half)
        known = _held_out(_by_action(blstd, log, rows - 1), rest, half)
        share = max(0.0, 1.0 - float(np.square(rest - known).sum() / np.square(rest).sum()))
    advice = "put earlier observations into the state"
    return Finding.of("memory (R^2)", share, word(share, MEMORY, math.inf), advice)


def _by_action(blstd: BLSTD, log: Transitions, rows: Integers) -> Matrix:
    """A block of features for every action, shape (N, k)."""
    x = blstd.features_(log.observations[rows])
    chosen = np.eye(blstd.problem_.blocks)[log.actions[rows]]
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
