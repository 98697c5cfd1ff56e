"""An agent as one file: arrays and plain data, never code.

Loading makes a new agent from the settings in the file and copies the arrays of the file into the
agent's own. They must have the same shape and type, be finite, and lie within the ranges that
compiled code relies on. A file cannot import a module, make an environment that is not registered,
or pass text to one that is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import archive
from rblspi.core.archive import FileError, short
from rblspi.core.check import LARGEST_COUNT
from rblspi.core.types import Vector
from rblspi.environments.lookup import EnvironmentLike, describe, make, make_described
from rblspi.environments.spaces import limits
from rblspi.features import BasisLike, as_basis, basis_from_settings
from rblspi.registry import class_of, name_of
from rblspi.rollout.memory import KEPT

if TYPE_CHECKING:
    from rblspi.online.agent import Agent

    AgentType = TypeVar("AgentType", bound=Agent)

FORMAT = "rblspi-agent"
VERSION = 10


class Description(NamedTuple):
    """The contents of a file beside its arrays."""

    algorithm: str
    environment: dict[str, Any]
    basis: dict[str, Any]
    settings: dict[str, Any]
    compiled: bool  # whether the environment's state is among the arrays
    num_timesteps: int
    capacity: int  # of the memory, in transitions
    agent_rng: dict[str, Any]
    environment_rng: dict[str, Any]
    python_rng: dict[str, Any] | None  # of an environment in Python


_TYPES: dict[str, Any] = {
    **dict.fromkeys(("environment", "basis", "settings", "agent_rng", "environment_rng"), dict),
    "algorithm": str,
    "compiled": bool,
    "num_timesteps": int,
    "capacity": int,
    "python_rng": dict | None,
}


def save(agent: Agent, path: str | PathLike[str]) -> None:
    """Write the agent; the file gets its name when it is complete."""
    description = Description(
        algorithm=name_of(type(agent)),
        environment=describe(agent.env),
        basis=agent.basis.settings(),
        settings=agent.get_parameters(),
        compiled=agent.session.compiled,
        num_timesteps=agent.num_timesteps,
        capacity=len(agent.session.memory.actions),
        agent_rng=dict(agent.rng.bit_generator.state),
        environment_rng=dict(agent.session.environment_rng.bit_generator.state),
        python_rng=_python_rng(agent.env),
    )
    arrays = {field.name: field.array for field in fields(agent)} | {"episodes": agent.episodes}
    archive.write(path, FORMAT, VERSION, description._asdict(), arrays)


def load(
    kind: type[AgentType],
    path: str | PathLike[str],
    env: EnvironmentLike | None,
    basis: BasisLike | None,
) -> AgentType:
    """Read an agent of this class, or of a class derived from it."""
    description, arrays = read(path)
    try:
        algorithm = class_of(description.algorithm, kind)
        with np.errstate(all="ignore"):
            environment = make_described(description.environment) if env is None else make(env)
            recipe = basis_from_settings(description.basis) if basis is None else as_basis(basis)
            features = recipe.build(environment.observation_space).size
            if arrays["episode.x"].shape != (features,):
                raise FileError(
                    f"the basis has {features} features in this environment, the file "
                    f"{arrays['episode.x'].shape}: pass the basis and the environment it was "
                    "trained with"
                )
            agent = algorithm(environment, recipe, **_settings(algorithm, description.settings))
        _fill(agent, arrays, description.capacity)
        agent.num_timesteps = description.num_timesteps
        agent.rng.bit_generator.state = _generator_state(description.agent_rng)
        _resume_episode(agent, description)
    except KeyError as error:
        raise FileError(f"{path} cannot be loaded: it has no {error}") from error
    except Exception as error:  # invalid values can make a constructor raise any error
        raise FileError(f"{path} cannot be loaded: {error}") from error
    return agent


def read(path: str | PathLike[str]) -> tuple[Description, dict[str, NDArray[Any]]]:
    """Description and arrays of an agent's file, for any algorithm."""
    found, arrays = archive.read(path, FORMAT, VERSION)
    if set(found) != set(Description._fields):
        raise FileError(f"{path} does not describe an agent: fields are missing, or too many")
    for name, value in found.items():
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) != (name == "compiled")):
            raise FileError(f"{path} does not describe an agent: {name}={short(value)}")
    description = Description(**found)
    for name, least in (("num_timesteps", 0), ("capacity", 1)):
        if not least <= getattr(description, name) <= LARGEST_COUNT:
            raise FileError(f"{path} does not describe an agent: {name} is out of range")
    return description, arrays


class Field(NamedTuple):
    """An array of an agent, under its name in the file, with the range that its integers have."""

    name: str
    array: NDArray[Any]
    low: ArrayLike
    high: ArrayLike


def fields(agent: Agent) -> Iterator[Field]:
    """All arrays that an agent consists of; those of a workspace are left out."""
    yield from _fields("state", agent.state, agent.actions)
    yield from _fields("episode", agent.session.episode, agent.actions)
    yield from _fields("memory", agent.session.memory.kept(), agent.actions)


def _fields(prefix: str, value: Any, actions: int) -> Iterator[Field]:
    ranges = value.integer_ranges(actions) if hasattr(value, "integer_ranges") else {}
    for name, part in zip(value._fields, value, strict=True):
        if name.startswith("workspace"):
            continue
        if isinstance(part, np.ndarray):
            yield Field(f"{prefix}.{name}", part, *ranges.get(name, (0, LARGEST_COUNT)))
        elif hasattr(part, "_fields"):
            yield from _fields(f"{prefix}.{name}", part, actions)


def _settings(algorithm: type[Agent], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """The settings of a file; settings that the file lacks have their defaults."""
    known = dict(inspect.signature(algorithm).parameters)
    del known["env"], known["basis"]
    required = {name for name, setting in known.items() if setting.default is setting.empty}
    if not required <= set(settings) <= set(known):
        raise FileError(f"its settings are not those of {algorithm.__name__}")
    for name, value in settings.items():
        small = not isinstance(value, int) or name == "seed" or abs(value) <= LARGEST_COUNT
        if not isinstance(value, int | float | str | None) or not small:
            raise FileError(f"{name}={short(value)} is not a setting")
    return settings


def _fill(agent: Agent, arrays: dict[str, NDArray[Any]], capacity: int) -> None:
    """Copy the arrays of a file into those of the agent, if all of them fit."""
    episodes = arrays.pop("episodes")
    if episodes.dtype != np.float64 or episodes.ndim != 2 or episodes.shape[1] != 2:
        raise FileError("episodes is not a table of lengths and returns")
    agent.session.keep(min(capacity, len(agent.session.memory.actions)))
    agent.session.memory.counters[KEPT] = len(arrays["memory.actions"])
    own = list(fields(agent))
    if set(arrays) != {field.name for field in own}:
        raise FileError(f"it has other arrays than a {type(agent).__name__}")
    for name, array, low, high in [*own, Field("episodes", episodes, 0, 0)]:
        stored = arrays.get(name, array)
        if stored.shape != array.shape or stored.dtype != array.dtype:
            raise FileError(
                f"{name} is {stored.dtype}{list(stored.shape)}, not "
                f"{array.dtype}{list(array.shape)}"
            )
        if stored.dtype.kind == "f" and not np.isfinite(stored).all():
            raise FileError(f"{name} holds values that are not finite")
        if stored.dtype.kind == "i" and not ((stored >= low) & (stored <= high)).all():
            raise FileError(f"{name} holds values out of range")
    for field in own:
        field.array[...] = arrays[field.name]
    agent._record(episodes)


def _resume_episode(agent: Agent, description: Description) -> None:
    """Continue in the middle of an episode if possible, else begin a new one."""
    session = agent.session
    session.environment_rng.bit_generator.state = _generator_state(description.environment_rng)
    python_rng = description.python_rng and _generator_state(description.python_rng)
    if session.compiled and description.compiled:
        over = 0 <= session.limit <= session.episode.steps[0]
        if over or not _is_inside(agent.env.observation_space, session.episode.state):
            agent.leave_episode()
        return
    # The state of an environment in Python is not in the file; its random numbers are, if known.
    agent.leave_episode()
    if python_rng is None or description.compiled:
        if description.num_timesteps:  # otherwise the first reset will use the agent's seed
            stream = np.random.SeedSequence([agent.seed, description.num_timesteps])
            session.seed = int(stream.generate_state(1)[0] >> 1)
        return
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = python_rng
    agent.env.unwrapped.np_random = generator
    session.seeded = True


def _is_inside(space: gym.Space[Any], state: Vector) -> bool:
    """Whether a state's observation is in the space: dynamics may use it as an index."""
    low, high = limits(space)
    seen = state[: len(low)]
    return bool(((seen >= low) & (seen <= high)).all())


def _python_rng(env: gym.Env[Any, Any]) -> dict[str, Any] | None:
    """The state of an environment's own random numbers, as Gymnasium stores them."""
    generator = getattr(env.unwrapped, "_np_random", None)
    bits = getattr(generator, "bit_generator", None)
    return dict(bits.state) if isinstance(bits, np.random.PCG64) else None


def _generator_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a PCG64 generator, every number of it in range."""
    match state:
        case {
            "bit_generator": "PCG64",
            "state": {"state": int(number), "inc": int(increment), **others},
            "has_uint32": int(has_half),
            "uinteger": int(half),
            **more,
        } if not others and not more:
            numbers = (number, increment, has_half, half)
            limits = (2**128, 2**128, 2, 2**32)
            if all(0 <= n < limit for n, limit in zip(numbers, limits, strict=True)):
                return dict(state)
    raise FileError("the state of its random numbers is out of range")
