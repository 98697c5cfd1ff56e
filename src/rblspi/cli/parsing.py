"""From what a person types to what the library takes: values, environments, saved files.

Nothing typed is ever evaluated: a value is a literal or a text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from rblspi.environments.lookup import make, make_described

if TYPE_CHECKING:
    from rblspi.online import Agent
    from rblspi.policies import LinearPolicy

#: names of the files that --save writes into its folder
AGENT, POLICY = "agent.npz", "policy.npz"

_WORDS = {"true": True, "false": False, "none": None, "null": None}


def value(text: str) -> Any:
    """Read a literal of Python or JSON; anything else is a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _WORDS.get(text.lower(), text)


def assignments(option: str, texts: Iterable[str] | None) -> dict[str, Any]:
    """Read ``name=value`` texts."""
    found = {}
    for text in texts or ():
        name, equals, given = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {text!r} is not of the form name=value: put = between them")
        found[name.strip().replace("-", "_")] = value(given.strip())
    return found


def environment(name: str, arguments: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """Make an environment by the name that the user typed."""
    try:
        return make(name, **{k: v for k, v in arguments.items() if v is not None})
    except (TypeError, AssertionError, ImportError, gym.error.Error) as error:
        # The rest of the message is what Gymnasium adds for people who program.
        reason = str(error).split(" was raised from")[0].splitlines()[0]
        raise ValueError(f"{name.rpartition(':')[2]} cannot be made: {reason}") from error


def saved_file(path: Path) -> Path:
    """The file of an agent or a policy, named itself or by the folder that --save wrote."""
    candidates = [path / AGENT, path / POLICY] if path.is_dir() else [path]
    for file in candidates:
        if file.exists():
            return file
    raise ValueError(
        f"there is no agent or policy {path}: make one with rblspi train ENV_ID --save DIR, or "
        "rblspi fit DATA --save DIR"
    )


class Saved(NamedTuple):
    """What a file held, and the environment that the user wants it to act in, if any."""

    actor: Agent | LinearPolicy
    env: gym.Env[Any, Any] | None

    def policy(self, explore: bool = False) -> LinearPolicy:
        """What acts."""
        from rblspi.policies import LinearPolicy

        return self.actor if isinstance(self.actor, LinearPolicy) else self.actor.policy(explore)


def load(
    path: Path,
    env: gym.Env[Any, Any] | str | None = None,
    given: Mapping[str, Any] | None = None,
) -> Saved:
    """Read an agent or a policy, for the environment in its file or for another one.

    Parameters
    ----------
    path : Path
    env : gymnasium.Env or str, optional
    given : mapping, optional
        Arguments of the environment that the user typed; they override those in the file.
    """
    from rblspi.core.archive import kind_of
    from rblspi.online import agent_file
    from rblspi.policies import LinearPolicy, policy_file

    file, given = saved_file(path), given or {}
    if isinstance(env, str):
        env = environment(env, given)
    if kind_of(file) == policy_file.FORMAT:
        policy = LinearPolicy.load(file)
        return Saved(policy, policy.make_environment(**given) if env is None and given else env)
    if env is None and given:
        env = make_described(agent_file.read(file)[0].environment, given)
    return Saved(load_agent(file, env), None)


def load_agent(file: Path, env: gym.Env[Any, Any] | None) -> Agent:
    """Read an agent of any registered algorithm."""
    from rblspi.online import Agent

    return Agent.load(file, env)
