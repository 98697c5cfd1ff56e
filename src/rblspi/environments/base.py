"""Compiled dynamics, and the adapter that makes a Gymnasium environment of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.core.compiled import is_compiled
from rblspi.core.types import Array, Vector
from rblspi.environments.rendering import Canvas


class Dynamics(NamedTuple):
    """An environment as compiled functions over a vector of floats.

    ``reset(parameters, state, rng)`` writes a first state into ``state``, and
    ``step(parameters, state, action, rng)`` advances it in place and returns ``(reward,
    terminated, truncated)``. The observation is the first entries of the state: all of them,
    unless the observation space is smaller. Functions see the parameters as one array, so that
    another constant needs no new compilation.
    """

    reset: Callable[..., None]
    step: Callable[..., tuple[float, bool, bool]]
    parameters: Vector  # (p,)
    state_size: int


def constants(domain: Any) -> Vector:
    """The numbers of a domain that is a dataclass, in the order of its fields."""
    names = [field.name for field in dataclasses.fields(domain) if field.name != "render_mode"]
    return np.concatenate([np.ravel(getattr(domain, name)) for name in names], dtype=np.float64)


class CompiledEnvironment(gym.Env[Any, Any]):
    """A Gymnasium environment whose dynamics are compiled functions.

    Agents of this library run such an environment inside compiled code; everybody else uses
    it as any other environment. Make your own by passing `Dynamics` whose functions are
    decorated with `rblspi.jit`.

    Parameters
    ----------
    dynamics : Dynamics
    observation_space : gymnasium.spaces.Box or Discrete
    action_space : gymnasium.spaces.Discrete
    render_mode : {"rgb_array"}, optional
        Needs a subclass that implements `draw`. ``gymnasium.make(..., render_mode="human")`` shows
        the pictures in a window.

    Notes
    -----
    A domain with many constants is a dataclass: its fields are the arguments of the constructor,
    and `constants` makes the parameters of the compiled functions of them.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        dynamics: Dynamics,
        observation_space: gym.spaces.Box | gym.spaces.Discrete,
        action_space: gym.spaces.Discrete,
        render_mode: str | None = None,
    ) -> None:
        for name in ("reset", "step"):
            if not is_compiled(getattr(dynamics, name)):
                raise TypeError(f"dynamics.{name} is not compiled: decorate it with rblspi.jit")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"render_mode={render_mode!r} is not one of {self.metadata['render_modes']}"
            )
        self.dynamics = dynamics
        self.observation_space = observation_space
        self.action_space = action_space
        self.render_mode = render_mode
        self.state = np.full(dynamics.state_size, np.nan)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; ``options={"state": ...}`` starts it in a given state."""
        super().reset(seed=seed)
        self.dynamics.reset(self.dynamics.parameters, self.state, self.np_random)
        if options and "state" in options:
            self.state[:] = options["state"]
        return self.observation(self.state), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Advance by one action."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is not in {self.action_space}")
        if np.isnan(self.state).any():
            raise gym.error.ResetNeeded("call reset() before the first step()")
        reward, terminated, truncated = self.dynamics.step(
            self.dynamics.parameters, self.state, int(action), self.np_random
        )
        return self.observation(self.state), reward, terminated, truncated, {}

    def observation(self, state: Array) -> Any:
        """The observation in a state."""
        if isinstance(self.observation_space, gym.spaces.Discrete):
            return int(state[0])
        (size,) = self.observation_space.shape or ()
        return state[:size].astype(self.observation_space.dtype)

    def draw(self, canvas: Canvas) -> None:
        """Draw the present state; a subclass that can be rendered implements it."""
        raise NotImplementedError(f"{type(self).__name__} cannot be rendered")

    def render(self) -> NDArray[np.uint8] | None:
        """The present state as a picture, shape (height, width, 3), in mode ``rgb_array``."""
        if self.render_mode is None:
            gym.logger.warn("render() without a render_mode: make the environment with one")
            return None
        if np.isnan(self.state).any():
            raise gym.error.ResetNeeded("call reset() before the first render()")
        canvas = Canvas()
        self.draw(canvas)
        return canvas.picture()


#: methods that compiled code replaces: a subclass with its own has to run as Python
_REPLACED = ("reset", "step", "observation")
#: the wrappers of `gymnasium.make`, which the compiled loop makes needless
_HARMLESS_WRAPPERS = (
    gym.wrappers.TimeLimit,
    gym.wrappers.OrderEnforcing,
    gym.wrappers.PassiveEnvChecker,
)


def runs_compiled(env: gym.Env[Any, Any]) -> bool:
    """Whether the compiled loop may run the dynamics in place of the environment.

    It may if every wrapper is one of those that `gymnasium.make` adds, if nobody has overridden
    a method that the loop replaces, and if nobody is watching.
    """
    while isinstance(env, gym.Wrapper):
        if type(env) not in _HARMLESS_WRAPPERS or _overrides(env):
            return False
        env = env.env
    return (
        isinstance(env, CompiledEnvironment)
        and env.render_mode is None
        and not _overrides(env)
        and all(getattr(type(env), n) is getattr(CompiledEnvironment, n) for n in _REPLACED)
    )


def _overrides(env: gym.Env[Any, Any]) -> bool:
    """Whether a method was replaced on this very object."""
    return not vars(env).keys().isdisjoint(_REPLACED)


def step_limit(env: gym.Env[Any, Any]) -> int:
    """The smallest time limit of the wrappers; -1 for none."""
    limit = -1
    while isinstance(env, gym.Wrapper):
        if isinstance(env, gym.wrappers.TimeLimit):
            own = int(env._max_episode_steps)
            limit = own if limit < 0 else min(limit, own)
        env = env.env
    return limit
