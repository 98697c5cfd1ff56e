"""Compiled dynamics, and the adapter that turns them into a Gymnasium environment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core.compiled import is_compiled
from rblspi.core.types import Array, Vector
from rblspi.environments.rendering import Canvas


class Dynamics(NamedTuple):
    """An environment as compiled functions over a vector of floats.

    ``reset(parameters, state, rng)`` writes a first state into ``state``, and ``step(parameters,
    state, action, rng)`` advances it in place and returns ``(reward, terminated, truncated)``. The
    observation is the first entries of the state: all of them, unless the observation space is
    smaller. Functions see the parameters as one array, so that changing a constant needs no new
    compilation.
    """

    reset: Callable[..., None]
    step: Callable[..., tuple[float, bool, bool]]
    parameters: Vector  # (p,)
    state_size: int


class CompiledEnvironment(gym.Env[Any, Any]):
    """A Gymnasium environment whose dynamics are compiled functions.

    Agents of this library run such an environment inside compiled code; other code uses it like any
    other environment. Make your own by passing `Dynamics` whose functions are decorated with
    `rblspi.jit`.

    Parameters
    ----------
    dynamics : Dynamics
    observation_space : gymnasium.spaces.Box or Discrete
    action_space : gymnasium.spaces.Discrete
    render_mode : {"rgb_array"}, optional
        Needs a subclass that implements `draw`. ``gymnasium.make(..., render_mode="human")`` shows
        the pictures in a window.

    See Also
    --------
    Domain : for dynamics with many constants.
    FiniteEnvironment : for finitely many states.
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


@dataclass(eq=False, repr=False)
class Domain(CompiledEnvironment):
    """An environment over a Box whose constants are the fields of a dataclass.

    A subclass names its compiled ``functions``, reset and step, and the number of its ``actions``.
    The functions get the fields as their parameters, in the order of the fields.
    """

    functions: ClassVar[tuple[Callable[..., Any], Callable[..., Any]]]
    actions: ClassVar[int]

    render_mode: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        names = [one.name for one in fields(self) if one.name != "render_mode"]
        constants = np.concatenate([np.ravel(getattr(self, n)) for n in names], dtype=np.float64)
        low, high = (np.array(bound, np.float64) for bound in self.bounds())
        super().__init__(
            Dynamics(*self.functions, constants, state_size=len(low)),
            gym.spaces.Box(low, high, dtype=np.float64),
            gym.spaces.Discrete(self.actions),
            self.render_mode,
        )

    def bounds(self) -> tuple[ArrayLike, ArrayLike]:
        """The lowest and the highest value of every number in the state."""
        raise NotImplementedError


#: methods that compiled code replaces: a subclass with its own has to run as Python
_REPLACED = ("reset", "step", "observation")
#: the wrappers of `gymnasium.make`, which the compiled loop does not need
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
    """Whether a method was replaced on this instance."""
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
