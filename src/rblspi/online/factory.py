"""Which agent learns in an environment, and making it: `rblspi.agent` and ``rblspi train``."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from rblspi.core.progress import say
from rblspi.environments.lookup import EnvironmentLike, make
from rblspi.environments.spaces import input_size, limits, states_of
from rblspi.features import BasisLike, Network
from rblspi.features.bounds import find_angles, find_useless
from rblspi.features.one_hot import WHOLE
from rblspi.online.agent import Agent
from rblspi.registry import Algorithm
from rblspi.registry import algorithm as registered
from rblspi.rollout.steps import observe_random_actions

#: states for which counting what followed what takes some hundred megabytes
MOST_STATES = 20_000
#: numbers in an observation over which a grid of ten thousand vertices is fine enough to plan on
MOST_NUMBERS = 4


def agent(
    env: EnvironmentLike,
    *,
    algorithm: str | None = None,
    basis: BasisLike | None = None,
    seed: int | None = None,
    **settings: Any,
) -> Agent:
    """Make the agent that suits an environment, or the one of a named algorithm.

    Parameters
    ----------
    env : gymnasium.Env or str
        An environment whose actions are discrete or one to three numbers with bounds, a vector of
        them, or the id of one.
    algorithm : str, optional
        A name in the registry, as ``rblspi list algorithms`` shows it. Unless given, the
        observations decide, see `default_for`.
    basis : Basis, callable or fitted transformer, optional
        State features; chosen by the algorithm unless given.
    seed : int, optional
        Of everything random; one drawn from the operating system unless given.
    **settings
        Settings of the algorithm, such as ``discount``.

    Raises
    ------
    ValueError
        If there is no such algorithm or setting, or if the algorithm learns from logged
        transitions.

    Examples
    --------
    >>> rblspi.agent("CartPole-v1", seed=0).learn(5_000)  # doctest: +SKIP
    """
    environment = make(env)
    if algorithm is None:
        space = environment.observation_space
        scout = cache(partial(observe_random_actions, environment, np.random.SeedSequence(0)))
        if basis is None and is_whole(space, scout):
            record, basis = registered("opsrl"), WHOLE
            say(
                f"observations are whole numbers, {states_of(space, True):,} different ones: opsrl "
                "learns a table of them. As numbers, fitted-rmax learns from them"
            )
        else:
            record = default_for(space, scout, basis)
    else:
        record = registered(algorithm)
    if not record.online:
        raise ValueError(f"{record.name} learns from logged transitions: use rblspi fit DATA")
    record.require_settings(settings)
    made: Agent = record.load()(environment, basis, seed=seed, **settings)
    return made


def default_for(
    observation_space: Any, scout: Callable[[], Any] | None = None, basis: Any = None
) -> Algorithm:
    """Choose the default algorithm for an observation space.

    `OPSRL` where there are at most `MOST_STATES` different observations: it counts what followed
    what, and explores further than any agent with features. `FittedRmax` where they are up to
    `MOST_NUMBERS` numbers: it plans on a grid. `DeepQ`, if JAX is installed, where they are more
    numbers, and over a `Network`. Otherwise, and over another ``basis`` of the user's,
    `OptimisticLSVI`. The cosine and the sine of an angle count as one number, if ``scout``, which
    returns observations of the environment, shows that they are. Numbers that never change there,
    or are linear functions of others, do not count.
    """
    if basis is not None:
        return registered("deep-q" if isinstance(basis, Network) else "optimistic-lsvi")
    states = states_of(observation_space)
    if states is not None:
        return registered("opsrl" if states <= MOST_STATES else "optimistic-lsvi")
    numbers = input_size(observation_space)
    if scout is not None and MOST_NUMBERS < numbers <= 2 * MOST_NUMBERS:
        scout = cache(scout)
        angles = find_angles(*limits(observation_space), scout)
        useless = find_useless(scout(), angles)
        pairs = [angle for angle in angles if isinstance(angle, tuple)]
        numbers -= len(useless) + sum(pair[0] not in useless for pair in pairs)
    return registered("fitted-rmax") if numbers <= MOST_NUMBERS else _of_many_numbers()


def is_whole(observation_space: Any, scout: Callable[[], Any]) -> bool:
    """Whether the observations of a Box are whole numbers, of at most `MOST_STATES` combinations.

    The bounds of the space tell how many there may be, and ``scout`` returns what is seen.
    """
    if states_of(observation_space) is not None:
        return False  # it is a table anyway
    states = states_of(observation_space, whole=True)
    if states is None or states > MOST_STATES:
        return False
    seen = scout()
    return bool((seen == np.round(seen)).all() and np.ptp(seen, axis=0).any())


def _of_many_numbers() -> Algorithm:
    learnt = registered("deep-q")
    if learnt.available:
        return learnt
    say(
        "from five numbers on, deep-q learns better policies: pip install 'rblspi[deep]'. "
        "Without it, optimistic-lsvi learns"
    )
    return registered("optimistic-lsvi")
