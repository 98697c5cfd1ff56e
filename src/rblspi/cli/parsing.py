"""From what a person types to what the library takes: values, environments, saved files.

Nothing typed is ever evaluated: a value is a literal or a text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym

from rblspi.core.archive import short
from rblspi.environments.lookup import make, make_described, wrapped

if TYPE_CHECKING:
    from rblspi.online.agent import Agent
    from rblspi.policies import LinearPolicy, ValuePosterior

#: names of the files that --save writes into its folder
AGENT, POLICY = "agent.npz", "policy.npz"

_WORDS = {"true": True, "false": False, "none": None, "null": None}


def value(text: str) -> Any:
    """Read a literal of Python or JSON that a file can hold; anything else is a text."""
    try:
        found = ast.literal_eval(text)
        json.dumps(found)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _WORDS.get(text.lower(), text)
    return found


def assignments(option: str, texts: Iterable[str] | None) -> dict[str, Any]:
    """Read ``name=value`` texts."""
    found = {}
    for text in texts or ():
        name, equals, given = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {text!r} is not of the form name=value: put = between them")
        read = value(given.strip())
        if isinstance(read, int) and not -(2**63) <= read < 2**63:
            raise ValueError(f"{option} {short(text)} is too large a number: 64 bits must do")
        found[name.strip().replace("-", "_")] = read
    return found


def numbers(option: str, text: str) -> list[float]:
    """Read numbers with commas between them."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{option} {text} must be numbers with commas between them") from None


def words(text: str) -> list[str]:
    """Read names with commas between them."""
    return [part.strip() for part in text.split(",")]


def grid(text: str) -> tuple[int, int]:
    """Read the number of rows and of columns."""
    found = re.fullmatch(r"(\d+)[x×](\d+)", text.strip())
    if found is None:
        raise ValueError(f"--grid {text} must be rows and columns: 4x12")
    return int(found[1]), int(found[2])


def environment(
    name: str, arguments: Mapping[str, Any], wrap: Iterable[str] | None = None
) -> gym.Env[Any, Any]:
    """Make an environment by the name that the user typed, inside the wrappers that they typed.

    What it does not accept as an argument is a mistake of the user's; any other error is its own.
    """
    passed = {k: v for k, v in arguments.items() if v is not None}
    try:
        return wrapped_by(make(name, **passed), wrap)
    except (RuntimeError, OSError):
        raise
    except Exception as error:
        expected = (TypeError, AssertionError, ImportError, gym.error.Error)
        if not passed and not isinstance(error, expected):
            raise
        # The rest of the message is what Gymnasium adds for people who program.
        reason = (str(error).split(" was raised from")[0].splitlines() or [""])[0]
        if not isinstance(error, (ValueError, *expected)):
            reason = f"{type(error).__name__}: {reason}"
        raise ValueError(f"{name.rpartition(':')[2]} cannot be made: {reason}") from error


def wrapped_by(env: gym.Env[Any, Any], names: Iterable[str] | None) -> gym.Env[Any, Any]:
    """The environment inside wrappers that the user typed, the first one innermost."""
    for name in names or ():
        env = wrapped(env, name)
    return env


def again(env: str | None, wrap: Iterable[str] | None = None) -> str:
    """The options with which the next command finds the same environment."""
    module = f" --env {env}" if env is not None and ":" in env else ""
    return module + "".join(f" --wrap {name}" for name in wrap or ())


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

    actor: Agent | ValuePosterior
    env: gym.Env[Any, Any] | None

    def policy(self, explore: bool = False) -> LinearPolicy:
        """What acts."""
        from rblspi.policies import ValuePosterior

        if isinstance(self.actor, ValuePosterior):
            return self.actor.policy
        return self.actor.policy(explore)

    def stated(self) -> LinearPolicy | ValuePosterior:
        """The policy, with what its file states of its values."""
        from rblspi.policies import ValuePosterior

        return self.actor if isinstance(self.actor, ValuePosterior) else self.actor.policy()


def load(
    path: Path,
    env: gym.Env[Any, Any] | str | None = None,
    given: Mapping[str, Any] | None = None,
    wrap: Iterable[str] | None = None,
) -> Saved:
    """Read an agent or a policy, for the environment in its file or for another one.

    Parameters
    ----------
    path : Path
    env : gymnasium.Env or str, optional
    given : mapping, optional
        Arguments of the environment that the user typed; they override those in the file.
    wrap : iterable of str, optional
        Wrappers that the user typed, as module:Wrapper, the first one innermost.
    """
    from rblspi.core.archive import kind_of
    from rblspi.online import agent_file
    from rblspi.online.agent import Agent
    from rblspi.policies import policy_file

    file, given = saved_file(path), given or {}
    if isinstance(env, str):
        env = environment(env, given, wrap)
    another = env is None and bool(given or wrap)
    if kind_of(file) == policy_file.FORMAT:
        values = policy_file.load(file)
        described = values.policy.environment
        return Saved(values, _described(described, given, wrap) if another else env)
    if another:
        env = _described(agent_file.read(file)[0].environment, given, wrap)
    return Saved(Agent.load(file, env), None)


def _described(
    description: Mapping[str, Any] | None, given: Mapping[str, Any], wrap: Iterable[str] | None
) -> gym.Env[Any, Any]:
    """The environment of a file, inside the wrappers that the user typed."""
    if description is None:
        raise ValueError("the policy was fitted to logs and names no environment: add --env ENV_ID")
    bare = {**description, "wrappers": []} if wrap else description
    return wrapped_by(make_described(bare, given), wrap)
