"""Values of a policy, and their posterior, as a Gaussian process over the states of a log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from rblspi.core import check
from rblspi.core.types import Integers, Matrix
from rblspi.data.transitions import Transitions
from rblspi.features import BasisLike, Nystroem, OneHot, with_bounds
from rblspi.features.nystroem import kernel
from rblspi.model.buffer import TERMINAL
from rblspi.model.innovations import Innovation, accumulate_innovations, whiten
from rblspi.model.statistics import TDErrorSums, empty
from rblspi.offline.accumulation import (
    Data,
    batch_rows,
    conformed,
    not_empty,
    one_thread,
    require_finite,
)
from rblspi.offline.estimator import checked
from rblspi.offline.lstd import Bayesian, PolicyLike, batch_policy
from rblspi.offline.problem import (
    PolicySums,
    Problem,
    are_states,
    next_actions_of,
    observed_space,
    require_order,
    sample_observations,
    wrong_values_named,
)
from rblspi.policies.given import BatchPolicy, ListedActions, PolicyFunction


@dataclass(eq=False, repr=False)
class GPTD(Bayesian):
    """Values of a policy by temporal differences of a Gaussian process, without a basis.

    Values are a Gaussian process with a Gaussian kernel around a constant, for every action one; of
    actions, this is GP-SARSA.
    With the noise E of what is gained after a state, rewards are

        r_t = V(s_t) - gamma V(s_t') + E_t - lambda gamma E_{t+1},    E ~ N(0, I / beta)

    The posterior of V given the rewards is spanned by a dictionary of states. Far away from all of
    them, values are the constant, and so is their uncertainty.

    Parameters
    ----------
    basis : Basis, callable or transformer, optional
        phi, for the kernel phi(s)'phi(t). By default `Nystroem` around the dictionary; a table, if
        observations are whole numbers.
    actions, discount, observation_space, columns
        As for `LSTD`.
    trace_decay : float
        lambda, from 0 to 1. With 1, the noise is that of returns, as in Engel et al. (2005). With
        0, it is that of single rewards, as in their paper of 2003: for deterministic transitions,
        as values are biased where next states are random. They also are, with 1, where the log
        takes other actions than the policy.
    novelty : float
        The share of a value's prior variance that the dictionary may leave unexplained, above 0.
    width : float or sequence of float, optional
        Of the kernel, as for `Nystroem`.
    prior_precision, noise_precision, ridge
        As for `BLSTD`; 1 / alpha is the variance of the process.

    Attributes
    ----------
    posterior_, weights_, condition_
        As for `BLSTD`.
    basis_
        With the dictionary, ``basis_.points``, unless the basis was given.

    References
    ----------
    Y. Engel, S. Mannor and R. Meir (2003). Bayes meets Bellman: the Gaussian process approach to
    temporal difference learning. ICML.

    Y. Engel, S. Mannor and R. Meir (2005). Reinforcement learning with Gaussian processes. ICML.
    """

    _: KW_ONLY
    trace_decay: float = checked(1.0, check.fraction)
    novelty: float = checked(0.01, check.positive)
    width: float | Sequence[float] | None = None

    policy_: PolicyFunction | None = field(init=False)

    def fit(self, transitions: Data, policy: PolicyLike = None) -> Self:
        """Estimate the values of a policy; the arguments are those of `BLSTD.fit`.

        Rows are in the order in which they happened.
        """
        chunks = self._read(transitions)
        problem = self._problem(chunks)
        evaluated = batch_policy(policy, problem)
        sums = self._pass(problem, chunks, evaluated)
        if isinstance(evaluated, ListedActions):
            evaluated.require_exhausted()
        self._conclude(problem, sums)
        self.policy_ = policy if callable(policy) else None
        return self

    def _basis_and_actions(self, chunks: Iterable[Transitions]) -> tuple[BasisLike, int | None]:
        if self.basis is not None:
            return self.basis, self.actions
        observations = sample_observations(chunks)
        space = self.observation_space or observed_space(chunks)
        if are_states(next(iter(chunks)).observations):
            return OneHot(), self.actions
        basis = with_bounds(Nystroem(width=self.width), space, lambda: observations)
        assert isinstance(basis, Nystroem)
        chosen = dictionary(basis.scaled(space, observations), self.novelty)
        return replace(basis, points=observations[chosen].tolist()), self.actions

    def _pass(
        self,
        problem: Problem,
        chunks: Iterable[Transitions],
        policy: BatchPolicy,
        previous: BatchPolicy | None = None,
    ) -> PolicySums:
        """The sums of the whitened equations; rows are passed over one after the other."""
        k = problem.blocks * problem.features.size
        statistics, td_errors = empty(1, k), TDErrorSums.empty(1, k)
        last: _Last | None = None
        for chunk in map(conformed, chunks):
            with wrong_values_named(problem, chunk), one_thread():
                require_order(chunk)
                for batch in chunk.batches(batch_rows(problem.features)):
                    rows, last = _innovations(problem, policy, batch, self.trace_decay, last)
                    require_finite(rows)
                    accumulate_innovations(statistics, td_errors, rows)
        not_empty(last, chunks)
        return PolicySums(statistics, td_errors, b"", 0, np.zeros(k))


class _Last(NamedTuple):
    """The rows so far, as far as the next row depends on them."""

    batch: Transitions
    next_action: int  # of the policy, after the last row
    innovation: Innovation


def _innovations(
    problem: Problem, policy: BatchPolicy, batch: Transitions, decay: float, last: _Last | None
) -> tuple[Matrix, _Last]:
    """The whitened equations of a batch that comes after ``last``."""
    x, y = problem.features(batch.observations), problem.features(batch.next_observations)
    actions = np.zeros(batch.size, np.int64) if problem.actions is None else batch.actions
    problem.require_actions(actions)
    after = next_actions_of(problem, policy, batch, y)
    discounts = np.where(batch.terminated, 0.0, batch.discounts(problem.discount))
    rows, d = np.arange(batch.size), np.zeros((batch.size, problem.blocks, x.shape[1]))
    d[rows, actions] += x
    d[rows, after] -= discounts[:, None] * y
    equations = np.column_stack([d.reshape(batch.size, -1), batch.rewards])
    expected = np.append(TERMINAL if last is None else last.next_action, after[:-1])
    follows = ~batch.starts(None if last is None else last.batch) & (expected == actions)
    before = None if last is None else last.innovation
    innovation = whiten(equations, decay * discounts, follows.astype(np.float64), before)
    return equations, _Last(batch, int(after[-1]), innovation)


def dictionary(states: Matrix, novelty: float) -> Integers:
    """Choose states whose kernel explains all others, by Cholesky factors with pivots.

    The state of the largest variance given those chosen is added, until no variance is above
    ``novelty``, in units of that without any. States are in coordinates of the width 1.
    """
    variances, chosen = np.ones(len(states)), []
    factors = np.zeros((len(states), 0))
    while variances.max() > novelty:
        pivot = int(variances.argmax())
        column = kernel(states, states[pivot : pivot + 1])[:, 0] - factors @ factors[pivot]
        column /= np.sqrt(variances[pivot])
        factors = np.column_stack([factors, column])
        variances = variances - column**2
        variances[pivot] = 0.0
        chosen.append(pivot)
    return np.array(chosen)
