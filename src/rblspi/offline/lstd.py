"""Values of a given policy by least-squares temporal differences, and their posterior."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from rblspi.core import check
from rblspi.core.types import Vector
from rblspi.data.transitions import Transitions
from rblspi.features import as_basis
from rblspi.features.refinement import finer
from rblspi.model.evidence import MOST_DRAWN, posterior_by_evidence, shrinkage
from rblspi.model.posterior import ConditionWarning, Posterior
from rblspi.model.statistics import Statistics
from rblspi.offline.accumulation import Data, require_finite
from rblspi.offline.estimator import Estimator, Solution, checked, numerical_rank
from rblspi.offline.problem import PolicySums, Problem, sample_observations, sums_of_policy
from rblspi.policies.given import (
    BatchPolicy,
    FunctionPolicy,
    ListedActions,
    PolicyFunction,
    first_action,
)

#: What `fit` accepts as the policy: a function, the actions it takes, or nothing.
PolicyLike: TypeAlias = PolicyFunction | NDArray[Any] | None


# From sums to weights -----------------------------------------------------------------------------


def solve(
    statistics: Statistics, ridge: float, constant: Vector | None = None
) -> tuple[Vector, float]:
    """Solve (A + ridge I) theta = b by LU factors, the paper's equation (2).

    With the weights u of the constant function, the ridge is I - uu'/u'u, which does not shrink
    a constant. Returns theta, and the condition number of the matrix in the 1-norm as LAPACK
    estimates it.
    """
    require_finite(statistics.cross)
    matrix = statistics.drift + ridge * shrinkage(statistics.weights, constant)
    factors, pivots, info = lapack.dgetrf(matrix)
    if info > 0:
        raise np.linalg.LinAlgError(
            f"A has rank {numerical_rank(statistics)} of {statistics.weights}: some features or "
            f"actions do not occur in the data; ridge={ridge} has to be larger"
        )
    weights, _ = lapack.dgetrs(factors, pivots, statistics.reward)
    reciprocal, _ = lapack.dgecon(factors, np.linalg.norm(matrix, 1))
    require_finite(weights)
    return weights, 1.0 / reciprocal if reciprocal > 0.0 else np.inf


@dataclass(eq=False, repr=False)
class TemporalDifferences(Estimator):
    """Makes the sums of a policy with eligibility traces, unless ``trace_decay`` is 0."""

    _: KW_ONLY
    trace_decay: float = checked(0.0, check.fraction)

    def _pass(
        self,
        problem: Problem,
        chunks: Iterable[Transitions],
        policy: BatchPolicy,
        previous: BatchPolicy | None = None,
    ) -> PolicySums:
        return sums_of_policy(problem, policy, chunks, previous, self.trace_decay)

    def _conclude(self, problem: Problem, sums: PolicySums) -> None:
        count, traces = int(sums.statistics.count.sum()), sums.traces
        if traces is not None and count > 1 and traces.continued == 0:
            raise ValueError(
                f"trace_decay={self.trace_decay}: traces run along episodes, but none of {count:,} "
                "rows starts where the row before it led; sort the rows by episode and time, or "
                "set trace_decay=0"
            )
        super()._conclude(problem, sums)


@dataclass(eq=False, repr=False)
class LeastSquares(TemporalDifferences):
    """Solves A theta = b for the weights; the base of LSTD and LSPI."""

    _: KW_ONLY
    ridge: float = checked(1e-6, check.not_negative)

    def _solve(self, problem: Problem, sums: PolicySums) -> Solution:
        return Solution(*solve(sums.statistics, self.ridge, problem.constant))


@dataclass(eq=False, repr=False)
class Bayesian(TemporalDifferences):
    """Computes the posterior given b = A theta + noise; the base of BLSTD and BLSPI."""

    #: deviations by which the prior may draw a known weight towards 0
    _most_drawn: ClassVar[float] = MOST_DRAWN

    _: KW_ONLY
    prior_precision: float | None = checked(None, check.positive)
    noise_precision: float | None = checked(None, check.positive)
    ridge: float = checked(1e-6, check.positive)

    def _solve(self, problem: Problem, sums: PolicySums) -> Solution:
        require_finite(sums.statistics.gram, sums.statistics.cross, *sums.td_errors)
        alpha, beta = self.prior_precision, self.noise_precision
        if alpha is not None and beta is not None:
            posterior = Posterior.from_statistics(sums.statistics, alpha, beta, self.ridge)
        else:
            given = (alpha, beta, self.ridge, sums.squared_length, self._most_drawn)
            posterior = posterior_by_evidence(
                sums.statistics, sums.td_errors, problem.constant, *given
            )
        require_finite(posterior.mean, posterior.factor, posterior.jitter)
        posterior = replace(posterior, actions=problem.blocks)
        return Solution(posterior.mean, posterior.condition, posterior)


# The estimators -----------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class PolicyEvaluation(Estimator):
    """Estimates the values of a policy with one pass over the transitions."""

    policy_: PolicyFunction | None = field(init=False)

    def fit(self, transitions: Data, policy: PolicyLike = None) -> Self:
        """Estimate the values of a policy.

        Parameters
        ----------
        transitions : Transitions, tuple of their columns, or iterable of Transitions
            For values of actions, they may come from any policy. For values of states, they must
            come from the policy that is evaluated.
        policy : callable or array of int
            For values of actions: a function that maps a batch of next observations to actions,
            or an array of the next actions, shape (N,). For values of states: None, because it is
            the policy that collected the data.
        """
        chunks = self._read(transitions)
        return self._settle(self._problem(chunks), chunks, policy)

    def partial_fit(self, transitions: Data, policy: PolicyLike = None) -> Self:
        """Add transitions. The result is that of `fit` with all transitions so far.

        The arguments are those of `fit`; the policy has to be the same in all calls. A function is
        remembered and need not be passed again.
        """
        if not hasattr(self, "problem_"):
            chunks = self._read(transitions)
            return self._settle(self._problem(chunks, look=False), chunks, policy)
        chunks = self._read(transitions, again=True)
        policy = self.policy_ if policy is None else policy
        return self._settle(self.problem_, chunks, policy, self._sums)

    def td_errors(self, transitions: Transitions) -> Vector:
        """The TD error r + gamma Q(s', pi(s')) - Q(s, a) of every transition, shape (N,)."""
        self._require_fitted()
        if self.policy_ is None:
            raise ValueError("TD errors need the policy as a function: pass one to fit")
        log, policy = transitions, self.policy_
        now = self.predict(log.observations, log.actions)
        after = self.predict(log.next_observations, policy(log.next_observations))
        ahead = log.discounts(self.discount) * np.where(log.terminated, 0.0, after)
        errors: Vector = log.rewards + ahead - now
        return errors

    def _settle(
        self,
        problem: Problem,
        chunks: Iterable[Transitions],
        policy: PolicyLike,
        before: PolicySums | None = None,
    ) -> Self:
        evaluated = batch_policy(policy, problem)
        sums = self._pass(problem, chunks, evaluated)
        if isinstance(evaluated, ListedActions):
            evaluated.require_exhausted()
        self._conclude(problem, sums if before is None else before.merge(sums))
        self.policy_ = policy if callable(policy) else None
        return self


def batch_policy(policy: PolicyLike, problem: Problem) -> BatchPolicy:
    """The policy that is evaluated; for values of states it is the one that collected the data."""
    if problem.actions is None and policy is not None:
        raise ValueError(
            "policy is given, but states are valued (actions=None) under the policy that "
            "collected the data; set actions to evaluate another one"
        )
    if problem.actions is None:
        return first_action
    if policy is None:
        raise ValueError(
            "policy=None: actions are valued under a policy; give a function of the next "
            "observations, or an array of next actions"
        )
    return FunctionPolicy(policy) if callable(policy) else ListedActions(np.asarray(policy))


@dataclass(eq=False, repr=False)
class LSTD(PolicyEvaluation, LeastSquares):
    """Values of a policy by least-squares temporal differences.

    With x = phi(s), y = phi(s') or 0 if s' is terminal, the weights of state values solve

        A theta = b,    A = sum x (x - gamma y)',    b = sum x r

    and those of action values the same with phi(s, a) = e_a (x) phi(s) and phi(s', pi(s')).

    Parameters
    ----------
    basis : Basis, callable or transformer
        phi. Every action has its own block of weights.
    actions : int, optional
        The number of actions, to estimate values of actions; by default values of states.
    discount : float
        gamma.
    trace_decay : float
        lambda, from 0 to 1. Above 0, the first x of both sums is the trace z = lambda gamma z + x,
        which starts anew with every episode, and where the logged action is not the policy's. Rows
        are in the order in which they happened. The larger lambda is, the less a poor basis
        matters, and the more the noise; 1 is regression on the returns of the episodes.
    ridge : float
        This multiple of the identity is added to A; 0 or more. A constant is not shrunk by it, if
        the basis has one: rewards that are all larger by c make values larger by c / (1 - gamma).
    observation_space : gymnasium.Space, optional
        The space that the basis is built for. By default it is the range of the observations in
        the data, unless the basis has its own bounds.
    columns : Columns, optional
        Which columns of a log hold what; by default this is guessed from their names.

    Attributes
    ----------
    weights_, condition_
        theta, and the condition number of the system that was solved.

    References
    ----------
    S. J. Bradtke and A. G. Barto (1996). Linear least-squares algorithms for temporal
    difference learning. Machine Learning 22.

    J. A. Boyan (2002). Technical update: least-squares temporal difference learning. Machine
    Learning 49.
    """


@dataclass(eq=False, repr=False)
class BLSTD(PolicyEvaluation, Bayesian):
    """Values of a policy with their uncertainty, by Bayesian least-squares temporal differences.

    The sums of `LSTD`, with C = sum x x', obey b = A theta + noise, noise ~ N(0, C / beta). With
    the prior theta ~ N(0, I / alpha), the posterior is N(m, S):

        S^-1 = alpha I + beta A'C^-1 A,    m = beta S A'C^-1 b

    As alpha / beta goes to 0, the mean m becomes the solution of LSTD. The posterior is about the
    values of this policy in this basis: what the basis cannot represent, it does not know.

    Parameters
    ----------
    basis, actions, discount, trace_decay, observation_space, columns
        As for `LSTD`. With traces, C = sum z z'.
    prior_precision, noise_precision : float, optional
        alpha and beta. What is not given is estimated: beta is the reciprocal of the mean squared
        TD error, and alpha maximises the evidence, with a prior that does not shrink a constant.
        Values, standard deviations and choices then have the units of the rewards, whatever these
        are. With both, this is the model of the paper.
    ridge : float
        This multiple of the identity is added to C, which has to be invertible; positive.

    Attributes
    ----------
    posterior_ : Posterior
        N(m, S).
    weights_, condition_
        m, and the condition number of S, scaled to a diagonal of ones.

    References
    ----------
    N. Tziortziotis and C. Dimitrakakis (2017). Bayesian inference for least squares temporal
    difference regularization. ECML PKDD.
    """


def finer_fits(blstd: BLSTD, chunks: Iterable[Transitions]) -> Iterator[BLSTD]:
    """The same evaluation of the same policy in finer versions of the basis."""
    space = blstd.problem_.space
    for basis in finer(as_basis(blstd.basis_), space, sample_observations(chunks)):
        other = replace(blstd, basis=basis, observation_space=space)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConditionWarning)  # of a basis that nobody asked for
            yield other.fit(chunks, blstd.policy_)
