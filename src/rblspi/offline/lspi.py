"""Policies from logged transitions by least-squares policy iteration, and their posterior.

If the basis is chosen, iteration starts from the policy of fitted Q iteration, and of all policies
on the way the one is kept that a `Judge` values most.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import ClassVar, Self

from rblspi.core import check
from rblspi.data.transitions import Transitions, joined
from rblspi.offline.accumulation import MOST_ROWS, Data, first_rows
from rblspi.offline.estimator import checked
from rblspi.offline.fitted_q import fitted_q_iteration
from rblspi.offline.lstd import Bayesian, LeastSquares
from rblspi.offline.model_selection import Judge
from rblspi.offline.policy_iteration import Evaluate, Improvement, OnIteration, Result, iterate
from rblspi.offline.policy_learner import PolicyLearner
from rblspi.offline.problem import PolicySums, Problem
from rblspi.policies.choice import Pessimistic
from rblspi.policies.given import BatchPolicy, FunctionPolicy, PolicyFunction, first_action


@dataclass(eq=False, repr=False)
class PolicyIteration(PolicyLearner):
    """Finds a policy, with one pass over the transitions for every policy that is evaluated."""

    _: KW_ONLY
    max_iterations: int = checked(20, check.count)
    tolerance: float = checked(1e-6, check.not_negative)
    initial_policy: PolicyFunction | None = None

    def _find(
        self, problem: Problem, chunks: Iterable[Transitions], callback: OnIteration | None
    ) -> None:
        initial = self._initial_policy(problem, chunks)
        found = self._iterate(problem, partial(self._pass, problem, chunks), initial, callback)
        if self.selection_ is not None:
            found = self._kept(found, initial, problem, chunks)
        self._settle(problem, found)

    def partial_fit(self, transitions: Data, callback: OnIteration | None = None) -> Self:
        """Add transitions, and iterate again from the policy that was found so far.

        Sums over the new transitions follow every policy, and are merged with those over the
        earlier ones, which are no longer needed: their next actions stay those of the policy that
        was found from them. The first call is `fit`.
        """
        if not hasattr(self, "problem_"):
            return self.fit(transitions, callback)
        chunks, problem, before = self._read(transitions, again=True), self.problem_, self._sums

        def evaluate(policy: BatchPolicy, previous: BatchPolicy | None) -> PolicySums:
            sums = self._pass(problem, chunks, policy, previous)
            return before.merge(sums)._replace(changed=sums.changed, ahead=sums.ahead)

        policy = self._improve(problem, before)[1]
        self._settle(problem, self._iterate(problem, evaluate, policy, callback))
        log = joined([self._log, first_rows(chunks)])
        self._log = log.rows(max(0, log.size - MOST_ROWS), log.size)
        self._warn_unless_converged()
        return self

    def _iterate(
        self,
        problem: Problem,
        evaluate: Evaluate,
        policy: BatchPolicy,
        callback: OnIteration | None,
    ) -> Result:
        goals = (problem.constant, int(self.max_iterations), float(self.tolerance))
        return iterate(evaluate, partial(self._improve, problem), policy, *goals, callback)

    def _improve(self, problem: Problem, sums: PolicySums) -> Improvement:
        """Compute the weights from the sums of a policy, and the policy that is greedy in them."""
        weights = self._solve(problem, sums).weights
        return weights, problem.greedy(weights)

    def _settle(self, problem: Problem, found: Result) -> None:
        sums, self.history_, self.converged_, self.cycle_ = found
        self._conclude(problem, sums)

    def _kept(
        self, found: Result, initial: BatchPolicy, problem: Problem, chunks: Iterable[Transitions]
    ) -> Result:
        """The policy of the path that is worth most in cells of the observations."""
        judge = Judge.of(first_rows(chunks), problem.blocks, problem.discount)
        if not judge.can_tell:
            return found
        path = [iteration.weights for iteration in found.history]
        values = [judge.value(problem.greedy_function(weights)) for weights in path]
        pure = [i for i, iteration in enumerate(found.history) if iteration.mixed == 1]
        best = max(pure, key=lambda i: (values[i], i))
        if best == len(path) - 1:
            return found
        evaluated = initial if best == 0 else problem.greedy(path[best - 1])
        return found._replace(sums=self._pass(problem, chunks, evaluated), converged=False)

    def _initial_policy(self, problem: Problem, chunks: Iterable[Transitions]) -> BatchPolicy:
        if self.initial_policy is None:
            if self.selection_ is None:
                return first_action
            found = fitted_q_iteration(problem, chunks, self.selection_.ridge, 500, 1e-3)
            return problem.greedy(found.weights)
        if not callable(self.initial_policy):
            raise TypeError(
                f"initial_policy={self.initial_policy!r} must be a function from a batch of "
                "observations to actions, or None for the first action everywhere"
            )
        return FunctionPolicy(self.initial_policy)


@dataclass(eq=False, repr=False)
class LSPI(PolicyIteration, LeastSquares):
    """A policy from logged transitions, by least-squares policy iteration.

    Each policy is evaluated by `LSTD` over all transitions, and the next one is greedy in the
    values: pi(s) = argmax_a phi(s, a)'theta.

    Parameters
    ----------
    basis : Basis, callable or transformer, optional
        phi. By default it is chosen by held-out episodes, see `rblspi.offline.model_selection`.
    actions : int, optional
        The number of actions. By default as many as there are in the data.
    discount, trace_decay, ridge, observation_space, columns
        As for `LSTD`.
    max_iterations : int
        The largest number of policies to evaluate.
    tolerance : float
        Stop when |theta - theta_before| is at most this multiple of |theta|, of which a constant
        part of the values is left out.
    initial_policy : callable, optional
        Maps a batch of observations to actions. By default the policy of `FQI` if the basis is
        chosen, and action 0 everywhere if it is given.

    Attributes
    ----------
    weights_ : ndarray, shape (k,)
        theta of the last policy that was evaluated. `act` is greedy in them.
    history_ : list of Iteration
        The weights of every policy that was evaluated.
    converged_ : bool
        Whether the policy is greedy in its own values, as far as the data can tell, or the
        weights changed by less than the tolerance.
    cycle_ : int
        The length of the cycle in which policy iteration ended; 0 if it did not. The policy that
        is kept has the highest mean value in the next states of the data, by its own evaluation.
    basis_, actions_ : Basis, int
        The basis and the number of actions that were used.
    selection_ : Selection or None
        How the basis was chosen; None if it was given. In a basis that was chosen, the policy that
        is kept is the one, of all that were found on the way, that is worth most by averages over
        cells of the observations, if there are enough data for narrow cells.
    condition_, statistics_, rank_
        As for `LSTD`, of the last policy that was evaluated, or of the one that is kept.

    References
    ----------
    M. G. Lagoudakis and R. Parr (2003). Least-squares policy iteration. Journal of Machine
    Learning Research 4.
    """


@dataclass(eq=False, repr=False)
class BLSPI(PolicyIteration, Bayesian):
    """A policy from logged transitions, and the posterior of its values.

    As `LSPI`, but every policy is evaluated by `BLSTD`, and the next one is greedy in the
    posterior mean, or in a lower bound that is c standard deviations below it:

        pi(s) = argmax_a phi(s, a)'m - c (phi(s, a)'S phi(s, a))^1/2

    Parameters
    ----------
    basis, actions, discount, trace_decay, observation_space, columns
        As for `LSPI`.
    max_iterations, tolerance, initial_policy
        As for `LSPI`.
    prior_precision, noise_precision, ridge
        As for `BLSTD`.
    pessimism : float
        c, 0 or more. The larger it is, the more the policy avoids actions on which there are few
        data. Predicted values do not depend on it.

    Attributes
    ----------
    posterior_, weights_, condition_
        As for `BLSTD`, of the last policy that was evaluated. All others are as for `LSPI`.

    References
    ----------
    Tziortziotis, Dimitrakakis and Vazirgiannis, Randomised Bayesian Least-Squares Policy
    Iteration, European Workshop on Reinforcement Learning, 2018.
    """

    _: KW_ONLY
    #: the prior is that of the evidence alone: it lets policy iteration settle
    _most_drawn: ClassVar[float] = math.inf
    pessimism: float = checked(0.0, check.not_negative)

    def _kept(
        self, found: Result, initial: BatchPolicy, problem: Problem, chunks: Iterable[Transitions]
    ) -> Result:
        if self.pessimism:  # the policies on the way are not greedy in their weights
            return found
        return super()._kept(found, initial, problem, chunks)

    def _improve(self, problem: Problem, sums: PolicySums) -> Improvement:
        if not self.pessimism:
            return super()._improve(problem, sums)
        found = self._solve(problem, sums)
        assert found.posterior is not None
        return found.weights, Pessimistic(found.posterior, self.pessimism)
