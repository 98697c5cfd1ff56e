"""Find out what keeps an agent from learning, by its memory, its values and a few episodes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from rblspi.core.types import Matrix, Vector
from rblspi.data.transitions import Transitions
from rblspi.features import OneHot, RandomFourier
from rblspi.features.bounds import bounds, circles, components
from rblspi.model.posterior import FEW_DIGITS
from rblspi.offline import LSPI, ConvergenceWarning
from rblspi.online.agent import Agent
from rblspi.online.fitted_rmax import FittedRmax
from rblspi.registry import name_of
from rblspi.rollout.evaluate import act_of, environment_for
from rblspi.rollout.memory import SEEN
from rblspi.rollout.steps import episodes, random_act

#: transitions whose features are looked at: a policy iteration on them takes seconds
MOST_ROWS = 4000
#: episodes of the greedy policy and of random actions, and steps after which one is cut
EPISODES = 10
LONGEST = 2000
#: share of observations, or of steps, below which a case counts as an exception
RARE = 0.01
#: a feature that never gets larger than this share of the largest is dead
DEAD = 1e-6
#: share of the range covered by observations, below which most features are unused
NARROW = 0.1
#: part of the prior's standard deviation above which hardly anything was learnt
UNCERTAIN = 0.5
#: relative error of stated values that counts as wrong; good ones are wrong by a few percent
WRONG = 0.25
#: standard errors by which two means differ for sure
FOR_SURE = 3.0
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


class Trial(NamedTuple):
    """Episodes, after learning."""

    returns: Vector  # undiscounted
    discounted: Vector  # returns, and where an episode was cut, the stated value of what follows
    starts: list[Any]  # first observations

    @classmethod
    def of(cls, agent: Agent, random: bool, count: int = EPISODES) -> Trial:
        """Let the greedy policy act, or random actions, in a copy of its environment."""
        policy = agent.policy()
        with environment_for(agent) as env:
            act = random_act(env) if random else act_of(policy)
            tried = list(episodes(env, act, count, seed=0, longest=LONGEST))
        rewards = [np.array([step.reward for step in episode]) for episode in tried]
        discounted = np.array([r @ agent.discount ** np.arange(len(r)) for r in rewards])
        for i, episode in enumerate(tried):
            if episode[-1].truncated:
                ahead = policy.values(episode[-1].next_observation).max()
                discounted[i] += agent.discount ** len(episode) * ahead
        starts = [episode[0].observation for episode in tried]
        return cls(np.array([r.sum() for r in rewards]), discounted, starts)


@dataclass(frozen=True)
class Case:
    """An agent, and the transitions in its memory."""

    agent: Agent

    @cached_property
    def memory(self) -> Transitions:
        """All transitions in its memory."""
        return self.agent.session.memory.transitions(self.agent.features.shape)

    @cached_property
    def log(self) -> Transitions:
        """Some of them, evenly spaced, for what takes long."""
        return self.agent.session.memory.transitions(self.agent.features.shape, MOST_ROWS)

    @cached_property
    def observations(self) -> Matrix:
        """All observations as vectors, shape (N, d)."""
        memory = self.memory
        rows: Matrix = memory.observations.reshape(memory.size, -1).astype(np.float64)
        return rows

    @cached_property
    def greedy(self) -> Trial:
        """Episodes of its greedy policy."""
        return Trial.of(self.agent, random=False)

    @cached_property
    def random(self) -> Trial:
        """Episodes of random actions."""
        return Trial.of(self.agent, random=True)

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

    An empty list means that none of the usual causes was found. The agent stays as it is. A copy of
    its environment runs ten greedy and ten random episodes.
    """
    if not agent.session.memory.size:
        advice = "let it learn for some thousand steps first"
        return [Finding("It has not learnt yet.", "its memory is empty", advice)]
    case = Case(agent)
    return [finding for check in CHECKS for finding in check(case)]


def no_reward(case: Case) -> Iterator[Finding]:
    """All rewards were the same, and nothing else makes a difference."""
    episodes, memory = case.agent.episodes, case.memory
    value = memory.rewards[0]
    # returns are of all episodes, and rewards of what is remembered
    same = not np.ptp(memory.rewards) and np.allclose(episodes[:, 1], value * episodes[:, 0])
    if not same or (memory.terminated.any() and value != 0.0):
        return
    ended = "terminating brings none either" if memory.terminated.any() else "no episode terminated"
    yield Finding(
        "It has never seen a reward that tells good from bad.",
        f"all {case.seen:,} rewards were {value:g}, and {ended}",
        "longer episodes or more steps; an agent that explores far (--algo opsrl for discrete "
        "observations, fitted-rmax for one to four numbers); a reward on the way to the goal",
    )


def useless_numbers(case: Case) -> Iterator[Finding]:
    """Numbers of the observation say nothing, or what others say."""
    rows = case.observations
    if case.is_table or rows.shape[1] < 2 or len(rows) < FEW * rows.shape[1]:
        return
    still = np.ptp(rows, axis=0) == 0.0
    for d in np.flatnonzero(still):
        yield Finding(
            f"Number {d} of the observation never changes.",
            f"it was {rows[0, d]:g} in all {len(rows):,} remembered observations",
            "leave it out of the observation (gymnasium.wrappers.TransformObservation)",
        )
    moving = np.flatnonzero(~still)
    scaled = (rows[:, moving] - rows[:, moving].mean(axis=0)) / rows[:, moving].std(axis=0)
    alike = np.abs(scaled.T @ scaled / len(rows)) > 1.0 - 1e-9
    for i, j in zip(*np.nonzero(np.triu(alike, 1)), strict=True):
        yield Finding(
            f"Numbers {moving[i]} and {moving[j]} of the observation say the same.",
            f"their correlation is 1 or -1 in all {len(rows):,} remembered observations",
            "leave one of them out (gymnasium.wrappers.TransformObservation)",
        )


def short_sight(case: Case) -> Iterator[Finding]:
    """Rewards come so late that the discount makes them negligible."""
    episodes, horizon = case.agent.episodes, 1.0 / max(1.0 - case.agent.discount, 1e-12)
    rewards = case.memory.rewards
    if not len(episodes) or (not np.ptp(rewards) and rewards[0] != 0.0):
        return  # a constant reward counts time, and is never late
    length = float(np.median(episodes[:, 0]))
    nonzero = float(np.mean(rewards != np.median(rewards)))
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
    """Some actions were tried less often than they have weights that are fitted to them."""
    if not case.is_fitted or case.is_table:
        return
    counts = np.bincount(case.memory.actions, minlength=case.agent.actions)
    active = int((np.abs(case.x) > 0.0).any(axis=0).sum())
    shares = counts / case.memory.size
    rare = np.flatnonzero((shares < RARE) & (counts < FEW * active))
    if len(rare) and case.agent.actions < 1.0 / RARE:
        named = ", ".join(f"{a} ({counts[a]:,})" for a in rare)
        yield Finding(
            "Some actions were hardly ever tried.",
            f"of {case.memory.size:,} remembered steps, these took action {named}, which has "
            f"{active:,} weights",
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
    rewards, discount = case.memory.rewards, case.agent.discount
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


def wrong_values(case: Case) -> Iterator[Finding]:
    """The values that it states are not what its policy gets."""
    trial = case.greedy
    stated = [case.agent.action_values(start) for start in trial.starts]
    best = [int(values.mean.argmax()) for values in stated]
    mean = float(np.mean([values.mean[a] for values, a in zip(stated, best, strict=True)]))
    stds = [0.0 if v.std is None else v.std[a] for v, a in zip(stated, best, strict=True)]
    std, found, error = np.mean(stds), trial.discounted.mean(), _standard_error(trial.discounted)
    apart = abs(mean - found)
    if apart > WRONG * max(abs(mean), abs(found)) and apart > FOR_SURE * np.hypot(std, error):
        yield Finding(
            "Its policy gets other returns than it states.",
            f"it states discounted returns of {mean:.3g} ± {std:.2g} from the starts of "
            f"{EPISODES} greedy episodes, which brought {found:.3g} ± {error:.2g}",
            "more steps; a finer grid or basis (--basis multilinear:VERTICES for fitted-rmax); "
            "earlier observations as part of the state, if one alone does not tell what follows "
            "(gymnasium.wrappers.FrameStackObservation)",
        )


def no_better_than_random(case: Case) -> Iterator[Finding]:
    """Its policy gets no more than random actions."""
    greedy, random = case.greedy.returns, case.random.returns
    error = np.hypot(_standard_error(greedy), _standard_error(random))
    if greedy.mean() <= random.mean() + FOR_SURE * error:
        yield Finding(
            "It is no better than random actions.",
            f"the mean return of {EPISODES} greedy episodes is {greedy.mean():.4g}, and that of "
            f"{EPISODES} episodes of random actions {random.mean():.4g}; they differ by chance by "
            f"{error:.2g}",
            "more steps; the page docs/it_does_not_learn.md goes through what else to look at",
        )


def _standard_error(numbers: Vector) -> float:
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


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
    useless_numbers,
    short_sight,
    few_updates,
    rare_actions,
    outside_bounds,
    dead_features,
    uncertain_values,
    impossible_values,
    circles_of_policies,
    lost_digits,
    wrong_values,
    no_better_than_random,
)
