"""An agent as one file: arrays and plain data, never code.

Reading makes a new agent from the settings in the file and copies arrays into the agent's own,
which have to be of the same shape and type, finite, and within the ranges that compiled code
relies on: a file decides nothing but numbers. It cannot import a module, make an environment
that is not registered, or pass text to one that is, and it takes no more memory than a small
multiple of its own size.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.agents import archive
from rblspi.agents.archive import FileError
from rblspi.environments.find import make
from rblspi.features import BasisLike, as_basis, basis_from_settings
from rblspi.features.bounds import discrete_values

if TYPE_CHECKING:
    from rblspi.agents.base import Agent

    AgentType = TypeVar("AgentType", bound=Agent)

__all__ = ["FileError", "load", "read", "save"]

FORMAT = "rblspi-agent"
VERSION = 2

#: the largest count that any agent reaches
MANY = 2**62

_LARGEST_METADATA = 2**20
#: of a whole number for an environment: a larger one might be the number of its states
_LARGEST_ARGUMENT = 10**6
_LONGEST_ARGUMENT = 10_000

#: what making an agent of bad settings raises
_REFUSALS = (
    *(TypeError, ValueError, LookupError, AttributeError, ArithmeticError, AssertionError),
    *(MemoryError, RecursionError, gym.error.Error),
)


class Metadata(NamedTuple):
    """What a file says beside its arrays."""

    algorithm: str
    environment: dict[str, Any]
    basis: dict[str, Any]
    settings: dict[str, Any]
    compiled: bool  # whether the environment's state is among the arrays
    num_timesteps: int
    agent_rng: dict[str, Any]
    environment_rng: dict[str, Any]
    python_rng: dict[str, Any] | None  # of an environment that is not compiled


# Writing --------------------------------------------------------------------------------------


def save(agent: Agent, path: str | PathLike[str]) -> None:
    """Write the agent; the file appears under its name only once it is whole."""
    metadata = Metadata(
        algorithm=type(agent).__name__,
        environment=describe(agent.env),
        basis=agent.basis.settings(),
        settings=agent.get_parameters(),
        compiled=agent.session.compiled,
        num_timesteps=agent.num_timesteps,
        agent_rng=dict(agent.rng.bit_generator.state),
        environment_rng=dict(agent.session.environment_rng.bit_generator.state),
        python_rng=_python_rng(agent.env),
    )
    text = json.dumps({"format": FORMAT, "version": VERSION, **metadata._asdict()}, default=_plain)
    arrays = dict(_arrays(agent))
    arrays["episodes"] = agent.episodes
    arrays["metadata"] = np.frombuffer(text.encode(), np.uint8)
    archive.write(path, arrays)


def describe(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """How to make the environment again, as far as a file may ask for it."""
    spec = env.spec
    if spec is None:
        return {"id": None, "arguments": {}, "limit": None, "wrappers": []}
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
    }


def _same(value: Any, registered: Any) -> bool:
    return value is registered or (type(value) is type(registered) and bool(value == registered))


def _plain(value: Any) -> Any:
    """For what JSON does not know: numbers of NumPy as they are, anything else as its type."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return f"a {type(value).__name__}"


def _python_rng(env: gym.Env[Any, Any]) -> dict[str, Any] | None:
    """State of an environment's own random numbers, as Gymnasium keeps them."""
    generator = getattr(env.unwrapped, "_np_random", None)
    if isinstance(generator, np.random.Generator) and isinstance(
        generator.bit_generator, np.random.PCG64
    ):
        return dict(generator.bit_generator.state)
    return None


def _arrays(agent: Agent) -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays that an agent is, by name; what holds nothing between steps is left out."""
    yield from _named("state", agent.state)
    yield from _named("place", agent.session.place)


def _named(name: str, value: Any) -> Iterator[tuple[str, NDArray[Any]]]:
    if isinstance(value, np.ndarray):
        yield name, value
    elif hasattr(value, "_fields"):
        for field, part in zip(value._fields, value, strict=True):
            if not field.startswith("scratch"):
                yield from _named(f"{name}.{field}", part)


# Reading --------------------------------------------------------------------------------------


def load(
    kind: type[AgentType],
    path: str | PathLike[str],
    env: gym.Env[Any, Any] | str | None,
    basis: BasisLike | None,
) -> AgentType:
    """Read an agent of this kind, or of any kind below it."""
    metadata, arrays = read(path)
    algorithm = _algorithm(kind, metadata.algorithm, path)
    try:
        with np.errstate(all="ignore"):
            environment = _environment(metadata.environment) if env is None else make(env)
            recipe = basis_from_settings(metadata.basis) if basis is None else as_basis(basis)
            features = recipe.build(environment.observation_space).size
            _require_room(environment, features, arrays)
            agent = algorithm(environment, recipe, **_settings(algorithm, metadata.settings))
        _fill(agent, arrays)
        agent._record(_episodes(arrays))
        agent.num_timesteps = metadata.num_timesteps
        agent.rng.bit_generator.state = _generator_state(metadata.agent_rng)
        _return_to_place(agent, metadata)
    except _REFUSALS as error:
        raise FileError(f"{path} cannot be loaded: {error}") from error
    return agent


def read(path: str | PathLike[str]) -> tuple[Metadata, dict[str, NDArray[Any]]]:
    """Metadata and arrays of an agent's file, of whatever algorithm."""
    arrays = archive.read(path)
    text = arrays.pop("metadata", np.empty(0))
    try:
        if text.dtype != np.uint8 or text.ndim != 1 or text.size > _LARGEST_METADATA:
            raise ValueError("its description is missing or too long")
        found = json.loads(text.tobytes().decode())
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not an agent saved by rblspi: {error}") from error
    if not isinstance(found, dict) or found.pop("format", None) != FORMAT:
        raise FileError(f"{path} is not an agent saved by rblspi")
    version = found.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise FileError(
            f"{path} has format version {_short(version)}, this rblspi reads version {VERSION}: "
            "install the version of rblspi that wrote it, or train again"
        )
    if set(found) != set(Metadata._fields):
        raise FileError(f"{path} does not describe an agent: fields are missing, or too many")
    metadata = Metadata(**found)
    for name, value in found.items():
        if not isinstance(value, _TYPES[name]) or (isinstance(value, bool) != (name == "compiled")):
            raise FileError(f"{path} does not describe an agent: {name}={_short(value)}")
    if not 0 <= metadata.num_timesteps <= MANY:
        raise FileError(f"{path} does not describe an agent: num_timesteps is out of range")
    return metadata, arrays


_TYPES: dict[str, Any] = {
    "algorithm": str,
    "environment": dict,
    "basis": dict,
    "settings": dict,
    "compiled": bool,
    "num_timesteps": int,
    "agent_rng": dict,
    "environment_rng": dict,
    "python_rng": dict | None,
}


def _short(value: Any) -> str:
    """A stranger's value for a message: escaped, and not long."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _algorithm(kind: type[AgentType], name: str, path: str | PathLike[str]) -> type[AgentType]:
    """The class of this name: the kind itself, or one below it."""
    if name == kind.__name__ and not inspect.isabstract(kind):
        return kind
    for below in kind.__subclasses__():
        if below.__name__ == name:
            return below
    if inspect.isabstract(kind):
        raise FileError(f"{path} holds an agent of the class {_short(name)}, which is not known")
    raise FileError(f"{path} holds an agent of the class {_short(name)}: load it with Agent.load")


def environment_of(path: str | PathLike[str], given: Mapping[str, Any]) -> gym.Env[Any, Any]:
    """The environment of an agent's file, with some arguments from the user.

    Parameters
    ----------
    path : path
    given : dict
        Go before those in the file, and may be of any type: text, for example.
    """
    try:
        return _environment(read(path)[0].environment, given)
    except _REFUSALS as error:
        raise FileError(f"{path} cannot be loaded: {error}") from error


def _environment(
    description: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> gym.Env[Any, Any]:
    """The environment of a file, if it is one that is registered already.

    An id of the form ``module:id`` would import the module, so a file cannot ask for it. The
    arguments that are given go before the file's.
    """
    given = given or {}
    name, arguments = description["id"], description["arguments"]
    limit, wrappers = description["limit"], description["wrappers"]
    if name is None:
        raise FileError("it was trained on an environment without an id: pass the same as env=")
    if not isinstance(name, str) or name not in gym.registry:
        raise FileError(
            f"it was trained on {_short(name)}, which is not registered: import the module that "
            "registers it, or pass env="
        )
    if wrappers:
        raise FileError(f"it was trained on a wrapped {name}: pass the wrapped one as env=")
    if not isinstance(arguments, dict):
        raise FileError(f"arguments={_short(arguments)} of the environment are not a table")
    for argument, value in arguments.items():
        if argument not in given and (not _harmless(value) or argument in _ARGUMENTS_OF_MAKE):
            raise FileError(
                f"it was trained on {name} with {_short(argument)} = {_short(value)}, which a file "
                "may not decide: pass env=, or on the command line --env-set NAME=VALUE"
            )
    if limit is not None and not (type(limit) is int and 1 <= limit <= MANY):
        raise FileError(f"limit={_short(limit)} is not a number of steps")
    passed = {"max_episode_steps": -1 if limit is None else limit, **arguments, **given}
    try:
        return gym.make(name, **passed)
    except Exception as error:  # whatever an environment makes of arguments that are not its own
        raise FileError(
            f"{name} cannot be made with {_short(arguments | dict(given))}: {error}"
        ) from error


_ARGUMENTS_OF_MAKE = frozenset(inspect.signature(gym.make).parameters) | {"render_mode"}


def _harmless(value: Any) -> bool:
    """Finite numbers and short lists of them; text might be the name of a file."""
    if isinstance(value, list):
        return len(value) <= _LONGEST_ARGUMENT and all(
            not isinstance(item, list) and _harmless(item) for item in value
        )
    if isinstance(value, int):
        return abs(value) <= _LARGEST_ARGUMENT
    return value is None or (isinstance(value, float) and math.isfinite(value))


def _require_room(
    env: gym.Env[Any, Any], features: int, arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Refuse before an agent is made whose matrices the file cannot hold."""
    stored = arrays["place.x"].shape
    if stored != (features,):
        raise FileError(
            f"the basis has {features} features in this environment, the file {stored}: pass the "
            "basis and the environment it was trained with"
        )
    weights = features * int(getattr(env.action_space, "n", 0))
    if 8 * weights**2 > sum(array.nbytes for array in arrays.values()):
        raise FileError(f"it does not hold {weights} weights: pass the env it was trained with")


def _settings(algorithm: type[Agent], settings: Mapping[str, Any]) -> Mapping[str, Any]:
    expected = set(inspect.signature(algorithm).parameters) - {"env", "basis"}
    if set(settings) != expected:
        raise FileError(f"its settings are not those of {algorithm.__name__}")
    for name, value in settings.items():
        small = not isinstance(value, int) or name == "seed" or abs(value) <= MANY
        if not isinstance(value, int | float | str | None) or not small:
            raise FileError(f"{name}={_short(value)} is not a setting")
    return settings


def _fill(agent: Agent, arrays: Mapping[str, NDArray[Any]]) -> None:
    ranges = agent._integer_ranges()
    names = {name for name, _ in _arrays(agent)}
    if set(arrays) != names | {"episodes"}:
        raise FileError(f"it has other arrays than a {type(agent).__name__}")
    for name, own in _arrays(agent):
        stored = arrays[name]
        if stored.shape != own.shape or stored.dtype != own.dtype:
            raise FileError(
                f"{name} is {stored.dtype}{list(stored.shape)}, not {own.dtype}{list(own.shape)}"
            )
        if own.dtype.kind == "f":
            _require_finite(name, stored)
        else:
            _require_range(name, stored, *ranges[".".join(name.split(".")[-2:])])
        own[...] = stored


def _require_finite(name: str, array: NDArray[Any]) -> None:
    if not np.isfinite(array).all():
        raise FileError(f"{name} holds values that are not finite")


def _require_range(name: str, array: NDArray[Any], low: ArrayLike, high: ArrayLike) -> None:
    if not ((array >= low) & (array <= high)).all():
        raise FileError(f"{name} holds values out of range")


def _episodes(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.float64]:
    episodes = arrays["episodes"]
    if episodes.dtype != np.float64 or episodes.ndim != 2 or episodes.shape[1] != 2:
        raise FileError("episodes is not a table of lengths and returns")
    _require_finite("episodes", episodes)
    return episodes


def _return_to_place(agent: Agent, metadata: Metadata) -> None:
    """Go on in the middle of an episode where that is possible, else begin a new one."""
    session = agent.session
    session.environment_rng.bit_generator.state = _generator_state(metadata.environment_rng)
    python_rng = None if metadata.python_rng is None else _generator_state(metadata.python_rng)
    if session.compiled and metadata.compiled:
        over = 0 <= session.limit <= session.place.clock[0]
        if over or not _is_inside(agent.env.observation_space, session.place.state):
            agent.leave_episode()
        return
    # A Python environment's state is not in the file; its random numbers are, where known.
    agent.leave_episode()
    if python_rng is None or metadata.compiled:
        stream = np.random.SeedSequence([agent.seed, metadata.num_timesteps])
        session.seed = int(stream.generate_state(1)[0] >> 1)
        return
    generator = np.random.Generator(np.random.PCG64())
    generator.bit_generator.state = python_rng
    agent.env.unwrapped.np_random = generator
    session._seeded = True


def _is_inside(space: gym.Space[Any], state: NDArray[np.float64]) -> bool:
    """Whether the part of a state that is seen can be seen: dynamics may use it as an index."""
    if isinstance(space, gym.spaces.Box):
        low, high = space.low.ravel(), space.high.ravel()
    elif isinstance(space, gym.spaces.Discrete | gym.spaces.MultiDiscrete):
        low, count = discrete_values(space)
        high = low + count - 1
    else:
        return False
    seen = state[: len(low)]
    return bool(((seen >= low) & (seen <= high)).all())


def _generator_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state of a PCG64 generator, every number of it in range."""
    inner = state.get("state")
    if set(state) == {"bit_generator", "state", "has_uint32", "uinteger"} and isinstance(
        inner, dict
    ):
        numbers = [inner.get("state"), inner.get("inc"), state["has_uint32"], state["uinteger"]]
        limits = [2**128, 2**128, 2, 2**32]
        in_range = all(
            type(number) is int and 0 <= number < limit
            for number, limit in zip(numbers, limits, strict=True)
        )
        if in_range and len(inner) == 2 and state["bit_generator"] == "PCG64":
            return dict(state)
    raise FileError("the state of its random numbers is out of range")
