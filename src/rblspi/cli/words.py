"""From what a person types to what the library takes: values, settings, bases, environments.

Nothing typed is ever evaluated: a value is a literal or a text.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym

if TYPE_CHECKING:
    from rblspi.agents import Agent
    from rblspi.features import Basis

#: short names of bases
_SHORT = {
    "rbf": "RBFGrid",
    "polynomial": "Polynomial",
    "fourier": "Fourier",
    "tiles": "TileCoding",
    "onehot": "OneHot",
}
_WORDS = {"true": True, "false": False, "none": None, "null": None}


def value(text: str) -> Any:
    """Read a literal of Python or JSON; anything else is a text."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return _WORDS.get(text.lower(), text)


def assignments(option: str, texts: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` texts."""
    found = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"{option} {text!r} is not of the form name=value: put = between them")
        found[name.strip().replace("-", "_")] = value(given.strip())
    return found


def nearest(name: str, known: Iterable[str]) -> str:
    """A half-sentence that suggests names like this one."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(near)}?" if near else f"choose from {', '.join(names)}"


def algorithm(name: str) -> type[Agent]:
    """The class of an algorithm by its name on the command line, or its own."""
    from rblspi.agents import ALGORITHMS

    classes = ALGORITHMS | {kind.__name__: kind for kind in ALGORITHMS.values()}
    if name not in classes:
        raise ValueError(f"no algorithm is called {name!r}: {nearest(name, ALGORITHMS)}")
    return classes[name]


def defaults(kind: type[Agent]) -> dict[str, Any]:
    """The settings of an algorithm that ``--set`` changes, with their defaults."""
    parameters = inspect.signature(kind).parameters.items()
    return {name: p.default for name, p in parameters if name not in ("env", "basis", "seed")}


def checked_settings(kind: type[Agent], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, if all of them are the algorithm's."""
    known = defaults(kind)
    for name in settings:
        if name in ("env", "basis", "seed"):
            raise ValueError(
                f"{name} is not one for --set: it has its own place, --{name} or ENV_ID"
            )
        if name not in known:
            raise ValueError(f"{kind.__name__} has no setting {name!r}: {nearest(name, known)}")
    return dict(settings)


def basis(text: str | None) -> Basis | None:
    """Read a basis: ``rbf``, ``rbf:8``, ``"RBFGrid(8, width=0.5)"``; None stays None."""
    if text is None:
        return None
    from rblspi.features import BASES

    name, colon, argument = text.partition(":")
    written = f"{name}({argument})" if colon else text if "(" in text else f"{text}()"
    try:
        call = ast.parse(written.strip(), mode="eval").body
        assert isinstance(call, ast.Call)
        assert isinstance(call.func, ast.Name)
        arguments = [ast.literal_eval(argument) for argument in call.args]
        named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
    except (AssertionError, ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(
            f"basis {text!r} is not written as NAME, NAME:NUMBER or NAME(...): for example "
            'rbf:8 or "RBFGrid(8, width=0.5)"'
        ) from None
    known = {key.lower(): BASES[key] for key in BASES} | {s: BASES[b] for s, b in _SHORT.items()}
    kind = known.get(call.func.id.lower())
    if kind is None:
        raise ValueError(
            f"no basis is called {call.func.id!r}: {nearest(call.func.id, [*_SHORT, *BASES])}"
        )
    try:
        return kind(*arguments, **named)
    except TypeError as error:
        raise ValueError(
            f"basis {text!r}: {error}; its arguments are {inspect.signature(kind)}"
        ) from None


def environment(name: str, **arguments: Any) -> gym.Env[Any, Any]:
    """Make an environment; of ``module:EnvId`` the module is imported first.

    Only a name from the command line may come here: importing a module runs it.
    """
    from rblspi.environments.find import make

    module, colon, identifier = name.rpartition(":")
    if colon:
        _import(module, name)
    if not identifier:
        raise ValueError(f"{name!r} names no environment: write module:EnvId")
    try:
        return make(identifier, **{k: v for k, v in arguments.items() if v is not None})
    except (TypeError, AssertionError, ImportError, gym.error.Error) as error:
        # The rest of the message is what Gymnasium adds for people who program.
        reason = str(error).split(" was raised from")[0].splitlines()[0]
        raise ValueError(f"{identifier} cannot be made: {reason}") from error


def _import(module: str, name: str) -> None:
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the current folder, as with python -m
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or module
        raise ValueError(
            f"{name}: there is no module {missing!r}: install it, or go to the folder it is in"
        ) from error
    except Exception as error:  # whatever a module of the user's does
        raise ValueError(f"{name}: importing {module} failed: {error}") from error


def agent_file(path: Path) -> Path:
    """The file of an agent, named itself or by the folder that ``--save`` wrote."""
    if path.is_dir():
        path = path / "agent.npz"
    if not path.exists():
        raise ValueError(f"there is no agent {path}: train one with rblspi train ENV_ID --save DIR")
    return path


def load_agent(
    path: Path,
    env: gym.Env[Any, Any] | str | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Agent:
    """Read an agent, for the environment in its file, for a named one or for one that is made.

    Arguments of the environment from the command line go before those in the file.
    """
    from rblspi.agents import Agent, storage

    file, given = agent_file(path), arguments or {}
    if isinstance(env, str):
        env = environment(env, **given)
    if env is not None:
        return Agent.load(file, env)
    return Agent.load(file, storage.environment_of(file, given) if given else None)
