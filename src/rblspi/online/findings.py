"""Find out what keeps an agent from learning, by its memory, features and posterior."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rblspi.core.types import Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import OneHot, RandomFourier
from rblspi.features.bounds import bounds, circles, components
from rblspi.model.posterior import FEW_DIGITS
from rblspi.offline import LSPI, ConvergenceWarning
from rblspi.online.agent import Agent
from rblspi.online.fitted_rmax import FittedRmax
from rblspi.online.optimistic_lsvi import returns_of
from rblspi.registry import name_of
from rblspi.rollout.memory import SEEN

#: transitions that are looked at: their features and a policy iteration on them take seconds
MOST_ROWS = 4000
#: share of observations, or of steps, below which a case counts as an exception
RARE = 0.01
#: a feature that never gets larger than this share of the largest is dead
DEAD = 1e-6
#: share of the range covered by observations, below which most features are unused
NARROW = 0.1
#: part of the prior's standard deviation above which hardly anything was learnt
UNCERTAIN = 0.5
#: number of latest episodes whose returns are compared with the planned returns
LATEST = 20
#: relative error of a plan that counts as wrong; a good plan is wrong by a few percent
WRONG = 0.25
#: transitions for every weight below which least squares fit noise
FEW = 5


class Finding(NamedTuple):
    """Something that may keep an agent from learning."""

    what: str
    evidence: str
    advice: str

    def __str__(self) -> str:
        """Three lines."""
        return f"{self.what}\n  seen: {self.evidence}\n  try:  {self.advice}"


@dataclass(frozen=True)
class Case:
    """An agent, and the transitions in its memory."""

    agent: Agent

    @cached_property
    def log(self) -> Transitions:
        """Some of the transitions in its memory, evenly spaced."""
        return self.agent.session.memory.transitions(self.agent.features.shape, MOST_ROWS)

    @cached_property
    def observations(self) -> Matrix:
        """Observations as vectors, shape (N, d)."""
        rows: Matrix = self.log.observations.reshape(self.log.size, -1).astype(np.float64)
        return rows

    @cached_property
    def x(self) -> Matrix:
        """Their features, shape (N, n)."""
        rows: Matrix = self.agent.features(self.log.observations)
        return rows

    @property
    def is_table(self) -> bool:
        """Whether the features are indicators."""
        return isinstance(self.agent.basis, OneHot)

    @property
    def is_fitted(self) -> bool:
        """Whether its weights are fitted by least squares, and not values planned on a grid."""
        return not isinstance(self.agent, FittedRmax)

    @property
    def seen(self) -> int:
        """The number of transitions so far."""
        return int(self.agent.session.memory.counters[SEEN])


def diagnose(agent: Agent) -> list[Finding]:
    """Find possible reasons why an agent does not learn, the most fundamental first.

    An empty list means that none of the usual causes was found. The agent stays as it is.
    """
    if not agent.session.memory.size:
        advice = "let it learn for some thousand steps first"
        return [Finding("It has not learnt yet.", "its memory is empty", advice)]
    case = Case(agent)
    return [finding for check in CHECKS for finding in check(case)]


def no_reward(case: Case) -> Iterator[Finding]:
    """All rewards are the same, and nothing else makes a difference."""
    rewards, ends = case.log.rewards, case.log.terminated
    if np.ptp(rewards) > 0.0 or (ends.any() and rewards[0] != 0.0):
        return
    value = rewards[0]
    ended = "no episode terminated" if not ends.any() else "terminating brings none either"
    yield Finding(
        "It has never seen a reward that tells good from bad.",
        f"all {case.seen:,} rewards were {value:g}, and {ended}",
        "longer episodes or more steps; an agent that explores far (--algo opsrl for discrete "
        "observations, fitted-rmax for one to four numbers, optimistic-lsvi for your own basis); a "
        "reward on the way to the goal",
    )


def short_sight(case: Case) -> Iterator[Finding]:
    """Rewards come so late that the discount makes them negligible."""
    episodes, horizon = case.agent.episodes, 1.0 / max(1.0 - case.agent.discount, 1e-12)
    if not len(episodes):
        return
    length = float(np.median(episodes[:, 0]))
    nonzero = float(np.mean(case.log.rewards != case.log.rewards[0]))
    if length > 5.0 * horizon and nonzero < 1.0 / horizon:
        yield Finding(
            "The discount is too short for the distance of the rewards.",
            f"with discount={case.agent.discount:g} a reward counts a third after {horizon:.0f} "
            f"steps; episodes take {length:.0f}, and {nonzero:.2%} of the rewards differ",
            f"--set discount={1.0 - 1.0 / length:.4g}",
        )


def few_updates(case: Case) -> Iterator[Finding]:
    """There are not enough transitions for so many weights."""
    if not case.is_fitted:
        return
    weights = case.agent.features.size * case.agent.actions
    active = int((np.abs(case.x) > 0.0).any(axis=0).sum()) * case.agent.actions
    if case.seen < FEW * active:
        name = name_of(type(case.agent))
        yield Finding(
            "It has seen too little for so many weights.",
            f"{case.seen:,} transitions for {active:,} weights with a feature that was ever seen "
            f"(of {weights:,})",
            f"{FEW * active:,} steps or more, or a coarser basis (--algo {name} --basis rbf:4)",
        )


def rare_actions(case: Case) -> Iterator[Finding]:
    """Some actions were hardly ever tried."""
    shares = np.bincount(case.log.actions, minlength=case.agent.actions) / case.log.size
    rare = np.flatnonzero(shares < RARE)
    if len(rare) and case.agent.actions < 1.0 / RARE:
        named = ", ".join(f"{a} ({shares[a]:.2%})" for a in rare)
        yield Finding(
            "Some actions were hardly ever tried.",
            f"share of the steps with action {named}",
            "more exploration (--set epsilon=0.2 for online-lspi, another --seed, --algo rlsvi); "
            "ignore it if these actions are plainly bad",
        )


def outside_bounds(case: Case) -> Iterator[Finding]:
    """Observations lie outside the box of the basis, or in a small corner of it."""
    basis, space = case.agent.basis, case.agent.env.observation_space
    if case.is_table or not hasattr(basis, "low") or isinstance(basis, RandomFourier):
        return  # random Fourier features have no box: their bounds are a scale
    angles = components(getattr(basis, "angles", None))
    low, high = bounds(space, basis.low, getattr(basis, "high", None), angles)
    least, most = case.observations.min(axis=0), case.observations.max(axis=0)
    outside = ((case.observations < low) | (case.observations > high)).mean(axis=0)
    line = ~circles(low, high, angles)
    for d in np.flatnonzero(line & (outside > RARE)):
        yield Finding(
            f"Observations exceed the bounds of the basis in dimension {d}.",
            f"{outside[d]:.1%} of them are not from {low[d]:g} to {high[d]:g}; they go from "
            f"{least[d]:g} to {most[d]:g}",
            f"low and high of the basis such as {least[d]:.3g} and {most[d]:.3g}",
        )
    for d in np.flatnonzero(line & (most - least < NARROW * (high - low)) & (most > least)):
        yield Finding(
            f"Observations fill a small part of the bounds in dimension {d}.",
            f"they go from {least[d]:g} to {most[d]:g}, the basis from {low[d]:g} to {high[d]:g}",
            f"low and high of the basis such as {least[d]:.3g} and {most[d]:.3g}, if good "
            "policies stay there, too",
        )


def dead_features(case: Case) -> Iterator[Finding]:
    """Features are zero, or constant, in all observations."""
    if not case.is_fitted:
        return
    size = np.abs(case.x).max(axis=0)
    dead = size <= DEAD * size.max()
    if case.is_table:
        if dead.mean() > 0.5:
            yield Finding(
                "Most states were never visited.",
                f"{int(dead.sum()):,} of {len(dead):,}; their values are those of the prior",
                "more steps; if they cannot be reached, ignore it",
            )
        return
    if dead.mean() > 0.25:
        yield Finding(
            "Many features are dead.",
            f"{int(dead.sum()):,} of {len(dead):,} are zero wherever the agent has been",
            "bounds of the basis that follow the observations, wider Gaussians, fewer cells",
        )
    still = (np.ptp(case.x, axis=0) <= DEAD * size) & ~dead
    if still.sum() > 1:
        yield Finding(
            "Some features are saturated.",
            f"{int(still.sum()):,} of {len(still):,} have one value wherever the agent has been; "
            "a constant needs one",
            "bounds of the basis that follow the observations; leave out dimensions that never "
            "change",
        )


def uncertain_values(case: Case) -> Iterator[Finding]:
    """The posterior is still near the prior in the states that were visited."""
    posterior = case.agent.posterior
    if posterior is None:
        return
    _, std = posterior.predict(case.x)
    prior = np.linalg.norm(case.x, axis=1) / np.sqrt(posterior.prior_precision)
    share = (std > UNCERTAIN * np.maximum(prior, 1e-300)[:, None]).mean(axis=0)
    if share.max() > 0.5:
        action = int(share.argmax())
        yield Finding(
            "The posterior is still at the prior.",
            f"in {share[action]:.0%} of the visited states the standard deviation of Q of action "
            f"{action} is more than half of the prior's",
            "more steps; a coarser basis, in which states have more to do with one another",
        )


def impossible_values(case: Case) -> Iterator[Finding]:
    """Values are beyond what rewards allow."""
    rewards, discount = case.log.rewards, case.agent.discount
    if discount >= 1.0:
        return
    reach = float(np.abs(rewards).max()) / (1.0 - discount)
    weights: Vector = case.agent._weights(False)
    largest = float(np.abs(case.x @ weights.reshape(case.agent.actions, -1).T).max())
    if largest > 2.0 * reach and reach > 0.0:
        yield Finding(
            "Values are beyond what the rewards allow.",
            f"|Q| is up to {largest:.3g}, but rewards of at most {np.abs(rewards).max():.3g} add "
            f"up to {reach:.3g}",
            "fewer features, a larger ridge, or rlsvi, which clips its values",
        )


def wrong_plan(case: Case) -> Iterator[Finding]:
    """A plan on a grid promises other returns than the latest episodes had."""
    agent, memory = case.agent, case.agent.session.memory
    if case.is_fitted or case.seen > memory.size:  # episodes have gaps
        return
    log = memory.transitions(agent.features.shape)
    weights = agent._weights(False).reshape(agent.actions, -1)
    ends = log.terminated | log.truncated
    ahead = np.zeros(log.size)
    cut = np.flatnonzero(log.truncated)[-LATEST - 1 :]
    ahead[cut] = (agent.features(log.next_observations[cut]) @ weights.T).max(axis=1)
    brought = returns_of(log.rewards, ends, ahead, agent.discount)
    first = np.flatnonzero(log.starts())[:-1][-LATEST:]  # the last one may not be over
    if len(first) < LATEST:
        return
    promised = (agent.features(log.observations[first]) @ weights.T).max(axis=1).mean()
    found = brought[first].mean()
    if abs(promised - found) > WRONG * max(abs(promised), abs(found)):
        yield Finding(
            "Its plan promises other returns than it gets.",
            f"discounted returns of {promised:.3g} were planned at the starts of the latest "
            f"{LATEST} episodes, which brought {found:.3g}",
            "more steps, as it may still explore; or a finer grid, because values are blurred over "
            "its cells (--algo fitted-rmax --basis multilinear:VERTICES)",
        )


def circles_of_policies(case: Case) -> Iterator[Finding]:
    """Policy iteration on the memory goes round in circles."""
    agent = case.agent
    if not case.is_fitted:
        return
    lspi = LSPI(
        agent.basis,
        agent.actions,
        discount=min(agent.discount, 0.9999),
        observation_space=agent.env.observation_space,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lspi.fit(case.log)
    if lspi.cycle_ > 1 or not lspi.converged_:
        how = f"a circle of {lspi.cycle_} policies" if lspi.cycle_ > 1 else "no end"
        yield Finding(
            "Policy iteration does not settle in this basis.",
            f"LSPI on {case.log.size:,} remembered transitions comes to {how} after "
            f"{len(lspi.history_)} iterations",
            "a finer or another basis (--basis fourier:3, tiles:8); rlsvi or rblspi fit with fqi, "
            "whose value iteration is steadier",
        )


def lost_digits(case: Case) -> Iterator[Finding]:
    """Rounding takes most digits of the weights."""
    posterior = case.agent.posterior
    if posterior is not None and posterior.digits < FEW_DIGITS:
        yield Finding(
            "Rounding has taken most digits of the weights.",
            f"condition numbers of {posterior.condition:.2g} for the precision and "
            f"{posterior.gram_condition:.2g} for C leave {posterior.digits:.0f} digits",
            "a coarser basis or narrower Gaussians (width=0.7), so that features overlap less",
        )


#: in the order in which to look at them
CHECKS: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    no_reward,
    short_sight,
    few_updates,
    rare_actions,
    outside_bounds,
    dead_features,
    uncertain_values,
    impossible_values,
    wrong_plan,
    circles_of_policies,
    lost_digits,
)
