"""Evaluate a policy: its episodes, their means, and confidence intervals."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
import numpy as np
from gymnasium.vector import VectorEnv

from rblspi.core import check
from rblspi.core.intervals import Interval, mean_interval
from rblspi.core.types import Array
from rblspi.environments.copies import Copies
from rblspi.environments.lookup import make
from rblspi.environments.spaces import action_mask
from rblspi.policies.linear import LinearPolicy
from rblspi.rollout.steps import Act, takes_masks
from rblspi.rollout.steps import episodes as whole_episodes

#: Objects that can be evaluated: an agent, a `LinearPolicy` with or without values, and any object
#: with Stable-Baselines3's ``predict``.
Actor: TypeAlias = Any


class Evaluation(NamedTuple):
    """Episodes of a policy that did not learn meanwhile.

    Attributes
    ----------
    lengths, returns : ndarray, shape (episodes,)
        Steps and undiscounted returns.
    """

    lengths: Array
    returns: Array

    @property
    def mean_return(self) -> Interval:
        """Mean return, with its confidence interval."""
        return mean_interval(self.returns)

    @property
    def mean_length(self) -> Interval:
        """Mean length of an episode, with its confidence interval."""
        return mean_interval(self.lengths)


def evaluate(
    actor: Actor,
    env: gym.Env[Any, Any] | VectorEnv[Any, Any, Any] | str | None = None,
    episodes: int = 100,
    *,
    deterministic: bool = True,
    seed: int = 0,
    longest: int = 100_000,
) -> Evaluation:
    """Let a policy act, and record its episodes.

    Parameters
    ----------
    actor : Agent, LinearPolicy, or anything with Stable-Baselines3's ``predict``
        Stays as it is.
    env : gymnasium.Env, gymnasium.vector.VectorEnv or str, optional
        By default a new copy of the environment that the policy is for. An agent's environment
        without an id, or with a custom wrapper, cannot be copied, and is borrowed instead. The
        agent's episode is then abandoned and its random numbers are restored, but any other state
        of the environment stays changed: pass another environment to avoid that. All parts of a
        vector environment contribute the same number of episodes, so that short ones do not come
        first; parts that can only be reset together are refused if one of them needs a new episode.
    episodes : int
    deterministic : bool
        True: act by the best estimate. False: act as in training.
    seed : int
        Seed of the environment.
    longest : int
        Steps after which an episode counts as ended, for environments without an end.
    """
    check.count("episodes", episodes)
    check.count("longest", longest)
    act = act_of(policy_of(actor, explore=not deterministic), explore=not deterministic)
    if isinstance(env, VectorEnv):
        return _evaluate_vector(act, env, episodes, seed, longest)
    with environment_for(actor, env) as single:
        record = [
            (len(episode), sum(step.reward for step in episode))
            for episode in whole_episodes(single, act, episodes, seed=seed, longest=longest)
        ]
    lengths, returns = np.array(record, dtype=np.float64).T
    return Evaluation(lengths, returns)


def policy_of(actor: Actor, explore: bool = False) -> Any:
    """The policy of an agent, or the actor itself."""
    return actor.policy(explore) if hasattr(actor, "leave_episode") else actor


def act_of(policy: Any, explore: bool = False) -> Act:
    """The policy as a function of one observation, and of masks if it takes them."""
    predict = partial(policy.predict, deterministic=not explore)
    if not takes_masks(predict):
        return lambda observation, **masks: predict(observation)[0]
    return lambda observation, **masks: predict(observation, **masks)[0]


def environment_for(
    actor: Actor, env: gym.Env[Any, Any] | str | None = None
) -> AbstractContextManager[gym.Env[Any, Any]]:
    """The environment for an actor; if it is made here, it is closed afterwards."""
    own = getattr(actor, "env", None)
    if isinstance(env, str):
        return closing(make(env))
    if env is not None:
        return _borrowed(actor) if env is own else nullcontext(make(env))
    if own is not None:
        spare = _copy_of(own)
        return _borrowed(actor) if spare is None else closing(spare)
    if isinstance(actor, LinearPolicy):
        return closing(actor.make_environment())
    raise ValueError(f"{actor!r} names no environment: pass env=")


def _copy_of(env: gym.Env[Any, Any]) -> gym.Env[Any, Any] | None:
    """A copy of an environment; None where it has no id, or a wrapper that cannot be repeated."""
    if env.spec is None or any(w.kwargs is None for w in env.spec.additional_wrappers):
        return None
    spec = copy.deepcopy(env.spec)
    spec.kwargs.pop("render_mode", None)
    return gym.make(spec)


@contextmanager
def _borrowed(agent: Any) -> Iterator[gym.Env[Any, Any]]:
    """Borrow the environment in which an agent learns.

    Afterwards its random numbers are as they were, and the agent begins a new episode.
    """
    env: Any = agent.env.unwrapped
    generator, seed = getattr(env, "_np_random", None), getattr(env, "_np_random_seed", None)
    bits = generator.bit_generator if isinstance(generator, np.random.Generator) else None
    state: Any = None if bits is None else bits.state
    try:
        yield agent.env
    finally:
        if bits is not None:
            bits.state = state  # some environments seed it in place
        env._np_random, env._np_random_seed = generator, seed
        agent.leave_episode()


def _evaluate_vector(
    act: Act, env: VectorEnv[Any, Any, Any], episodes: int, seed: int, longest: int
) -> Evaluation:
    copies, space = Copies(env), env.single_observation_space
    wanted = (episodes + np.arange(env.num_envs)) // env.num_envs
    lengths, returns = np.zeros(env.num_envs), np.zeros(env.num_envs)
    record = []
    copies.reset(seed=seed)
    while wanted.any():
        over = np.zeros(env.num_envs, np.bool_)
        actions = [
            act(seen, **({} if mask is None or waiting else {"action_masks": mask}))
            for (seen, info), waiting in zip(copies.now, copies.waiting, strict=True)
            for mask in [action_mask(space, seen, info)]
        ]
        for i, _, reward, terminated, truncated, _ in copies.advance(np.stack(actions)):
            lengths[i] += 1
            returns[i] += reward
            ended = terminated or truncated
            if ended or lengths[i] >= longest:
                if wanted[i]:
                    record.append((lengths[i], returns[i]))
                    wanted[i] -= 1
                over[i] = not ended and wanted[i] > 0
                lengths[i] = returns[i] = 0.0
        if over.any() and not copies.begin_apart:
            raise ValueError(
                f"an episode was not over after longest={longest} steps, and {env} cannot begin "
                "a new one in one part alone: pass a larger longest, or a SyncVectorEnv"
            )
        if over.any():
            copies.begin_in(over)
    table = np.array(record, dtype=np.float64)
    return Evaluation(table[:, 0], table[:, 1])
