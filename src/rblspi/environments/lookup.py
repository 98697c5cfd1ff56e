"""Environments by id, and descriptions from which the same environment can be made again."""

from __future__ import annotations

import difflib
import inspect
import math
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.vector import VectorEnv

from rblspi.core.archive import printable, short
from rblspi.environments.copies import Copies

#: what a user may pass as an environment: itself, many copies that step together, or its id
EnvironmentLike: TypeAlias = gym.Env[Any, Any] | VectorEnv[Any, Any, Any] | str

#: of a whole number in a description: a larger one might be a number of states that fill the memory
_LARGEST_ARGUMENT = 10**6
_LONGEST_ARGUMENT = 10_000
_LARGEST_LIMIT = 2**62
#: characters of a name that are shown
_LONGEST_NAME = 200
#: modules that the user named to make an environment, by its id
_modules: dict[str, str] = {}
_ARGUMENTS_OF_MAKE = frozenset(inspect.signature(gym.make).parameters) | {"render_mode"}


def make(env: EnvironmentLike, **arguments: Any) -> gym.Env[Any, Any]:
    """The environment itself, or the one with this id; of a vector environment its `Copies`.

    Of ``module:EnvId`` the module is imported first; it may be in the current folder. Only a name
    that the user typed or wrote may come here, because importing a module runs it.

    Raises
    ------
    ValueError
        Where no environment has this id; the message suggests the nearest.
    """
    if isinstance(env, gym.Env):
        return env
    if isinstance(env, VectorEnv):
        return Copies(env)
    if not isinstance(env, str):
        raise TypeError(f"env={env!r} is neither a Gymnasium environment nor the id of one")
    module, colon, name = env.rpartition(":")
    if colon:
        _import(module, env)
    if not name:
        raise ValueError(f"{env!r} names no environment: write module:EnvId")
    if colon:
        _modules[name] = module
    try:
        return gym.make(name, **arguments)
    except gym.error.UnregisteredEnv:
        raise ValueError(f"no environment is called {name!r}: {_similar(name)}") from None


def _similar(name: str) -> str:
    """A half-sentence that suggests environments whose names are alike without their versions."""
    stems = {registered: registered.rpartition("-v")[0].lower() for registered in gym.registry}
    wanted = (name.rpartition("-v")[0] or name).lower()
    alike = difflib.get_close_matches(wanted, {*stems.values()}, n=3, cutoff=0.75)
    near = [registered for stem in alike for registered, own in stems.items() if own == stem][-3:]
    return f"did you mean {', '.join(near)}?" if near else "see rblspi list environments"


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


def describe(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """How to make an environment again, as plain data."""
    spec = env.spec
    if spec is None:
        return {"id": None, "arguments": {}, "limit": None, "wrappers": [], "module": None}
    arguments = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    registered = gym.registry.get(spec.id)
    if registered is not None:
        arguments = {
            name: value
            for name, value in arguments.items()
            if not _same(value, registered.kwargs.get(name))
        }
    return {
        "id": spec.id,
        "arguments": arguments,
        "limit": spec.max_episode_steps,
        "wrappers": [wrapper.name for wrapper in spec.additional_wrappers],
        "module": _modules.get(spec.id),
    }


def wrapped(env: gym.Env[Any, Any], name: str) -> gym.Env[Any, Any]:
    """The environment inside the wrapper ``module:Wrapper``, which the user has to have typed."""
    module, colon, attribute = name.rpartition(":")
    if not colon or not module or not attribute:
        raise ValueError(f"wrapper {name!r} is not written as module:Wrapper")
    _import(module, name)
    wrapper = getattr(sys.modules[module], attribute, None)
    if not callable(wrapper):
        raise ValueError(f"{name}: {module} has no wrapper {attribute!r}")
    try:
        made = wrapper(env)
    except Exception as error:  # whatever a wrapper of the user's does
        raise ValueError(f"{name} cannot wrap {env}: {error}") from error
    if not isinstance(made, gym.Env):
        raise ValueError(f"{name} made a {type(made).__name__}, which is no environment")
    return made


def typed_name(description: Mapping[str, Any]) -> str:
    """What a user types for the environment of a description: ``EnvId`` or ``module:EnvId``."""
    module, name = description.get("module"), printable(str(description["id"]))
    return name if module is None else f"{printable(str(module))}:{name}"


def make_described(
    description: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> gym.Env[Any, Any]:
    """Make the environment of a description, which may come from a stranger's file.

    The id has to be registered already: ``module:id`` would import a module, and a file must not
    do that. Arguments that the user gives override those of the description.

    Raises
    ------
    ValueError
        If the description asks for more than a file may decide.
    """
    given = given or {}
    name, arguments = description["id"], description["arguments"]
    limit = description["limit"]
    if name is None:
        raise ValueError("it was made for an environment without an id: pass the same as env=")
    if not isinstance(name, str) or name not in gym.registry:
        typed = typed_name(description)
        raise ValueError(
            f"it was made for {short(name)}, which is not registered: import the module that "
            "registers it, or pass env=; on the command line add --env "
            f"{typed[:_LONGEST_NAME] if ':' in typed else 'module:EnvId'}"
        )
    if description["wrappers"]:
        raise ValueError(
            f"it was made for a wrapped {name}: pass the wrapped one as env=; on the command line "
            "add --wrap module:Wrapper"
        )
    if not isinstance(arguments, dict):
        raise ValueError(f"arguments={short(arguments)} of the environment are not a table")
    for argument, value in arguments.items():
        if argument not in given and (not _harmless(value) or argument in _ARGUMENTS_OF_MAKE):
            raise ValueError(
                f"it was made for {name} with {short(argument)} = {short(value)}, which a file "
                "may not decide: pass env=, or on the command line --env-set NAME=VALUE"
            )
    if limit is not None and not (type(limit) is int and 1 <= limit <= _LARGEST_LIMIT):
        raise ValueError(f"limit={short(limit)} is not a number of steps")
    passed = {"max_episode_steps": -1 if limit is None else limit, **arguments, **given}
    try:
        return gym.make(name, **passed)
    except Exception as error:  # whatever an environment makes of arguments that are not its own
        raise ValueError(
            f"{name} cannot be made with {short({**arguments, **given})}: {error}"
        ) from error


def _same(value: Any, registered: Any) -> bool:
    return value is registered or (type(value) is type(registered) and bool(value == registered))


def _harmless(value: Any) -> bool:
    """Finite numbers and short lists of them; text might be the name of a file."""
    if isinstance(value, list):
        return len(value) <= _LONGEST_ARGUMENT and all(
            not isinstance(item, list) and _harmless(item) for item in value
        )
    if isinstance(value, int):
        return abs(value) <= _LARGEST_ARGUMENT
    return value is None or (isinstance(value, float) and math.isfinite(value))
