"""The objects of commands: an environment as it was typed, and a saved agent or policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from rblspi.cli import options
from rblspi.environments.lookup import make, make_described, wrapped

if TYPE_CHECKING:
    from rblspi.online.agent import Agent
    from rblspi.policies import LinearPolicy

#: names of the files that --save writes into its folder
AGENT, POLICY = "agent.npz", "policy.npz"


def environment(
    name: str, settings: Iterable[options.Assignment] | None, wrap: Iterable[str] | None = None
) -> gym.Env[Any, Any]:
    """Make an environment by the name that the user typed, inside the wrappers that they typed.

    An argument that it does not accept is a mistake of the user's; any other error is its own.
    """
    passed = {name: value for name, value in settings or () if value is not None}
    try:
        return wrapped_by(make(name, **passed), wrap)
    except (RuntimeError, OSError):
        raise
    except Exception as error:
        expected = (TypeError, AssertionError, ImportError, gym.error.Error)
        if not passed and not isinstance(error, expected):
            raise
        # Gymnasium's text goes on with details for programmers.
        reason = (str(error).split(" was raised from")[0].splitlines() or [""])[0]
        if not isinstance(error, (ValueError, *expected)):
            reason = f"{type(error).__name__}: {reason}"
        raise ValueError(f"{name.rpartition(':')[2]} cannot be made: {reason}") from error


def wrapped_by(env: gym.Env[Any, Any], names: Iterable[str] | None) -> gym.Env[Any, Any]:
    """The environment inside wrappers that the user typed, the first one innermost."""
    for name in names or ():
        env = wrapped(env, name)
    return env


class Saved(NamedTuple):
    """The contents of a file, and the environment that the user named, if any."""

    actor: Agent | LinearPolicy
    env: gym.Env[Any, Any] | None

    def policy(self, explore: bool = False) -> LinearPolicy:
        """What acts."""
        from rblspi.policies import LinearPolicy

        return self.actor if isinstance(self.actor, LinearPolicy) else self.actor.policy(explore)


class Selection(NamedTuple):
    """The options by which a command finds a saved agent or policy and its environment.

    Options of the environment override the description in the file.
    """

    path: options.SavedArgument
    env: options.EnvironmentOption = None
    env_set: options.EnvironmentSettings = None
    wrap: options.Wrap = None

    @property
    def file(self) -> Path:
        """The file, named itself or by the folder that --save wrote."""
        folder = self.path.is_dir()
        for file in [self.path / AGENT, self.path / POLICY] if folder else [self.path]:
            if file.exists():
                return file
        raise ValueError(
            f"there is no agent or policy {self.path}: make one with rblspi train ENV_ID "
            "--save DIR, or rblspi fit DATA --save DIR"
        )

    def load(self, env: gym.Env[Any, Any] | None = None) -> Saved:
        """Read the file, for the environment that was typed, this one, or the file's own."""
        from rblspi.core.archive import kind_of
        from rblspi.online import agent_file
        from rblspi.online.agent import Agent
        from rblspi.policies import policy_file

        file = self.file
        if self.env is not None:
            env = environment(self.env, self.env_set, self.wrap)
        changed = env is None and bool(self.env_set or self.wrap)
        if kind_of(file) == policy_file.FORMAT:
            policy = policy_file.load(file)
            return Saved(policy, self._changed(policy.environment) if changed else env)
        if changed:
            env = self._changed(agent_file.read(file)[0].environment)
        return Saved(Agent.load(file, env), None)

    def _changed(self, description: Mapping[str, Any] | None) -> gym.Env[Any, Any]:
        """The environment of the file with the arguments and wrappers that were typed."""
        if description is None:
            raise ValueError(
                "the policy was fitted to logs and names no environment: add --env ENV_ID"
            )
        bare = {**description, "wrappers": []} if self.wrap else description
        return wrapped_by(make_described(bare, dict(self.env_set or ())), self.wrap)
