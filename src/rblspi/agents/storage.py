"""An agent as one file: arrays and plain data, never code.

The file is a NumPy archive without pickled objects. Reading makes a new agent from the
settings in it and copies arrays into the agent's own, which have to be of the same shape and
type: a file decides nothing but numbers.
"""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from rblspi.features import BasisLike, basis_from_settings

if TYPE_CHECKING:
    from rblspi.agents.base import Agent

    AgentType = TypeVar("AgentType", bound=Agent)

FORMAT = "rblspi-agent"
VERSION = 1


class FileError(ValueError):
    """A file that is not an agent, not a whole one, or one of another version."""


def save(agent: Agent, path: str | PathLike[str]) -> None:
    """Write the agent; the file appears under its name only once it is whole."""
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": type(agent).__name__,
        "environment": _environment_settings(agent.env),
        "compiled": agent.session.compiled,
        "basis": agent.basis.settings(),
        "settings": agent.get_parameters(),
        "num_timesteps": agent.num_timesteps,
        "agent_rng": agent.rng.bit_generator.state,
        "environment_rng": agent.session.environment_rng.bit_generator.state,
    }
    arrays = dict(_arrays(agent))
    arrays["episodes"] = agent.episodes
    arrays["metadata"] = np.frombuffer(json.dumps(metadata).encode(), np.uint8)
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def load(
    kind: type[AgentType],
    path: str | PathLike[str],
    env: gym.Env[Any, Any] | str | None,
    basis: BasisLike | None,
) -> AgentType:
    """Read an agent of this kind."""
    metadata, arrays = read(path)
    if metadata["algorithm"] != kind.__name__:
        raise FileError(f"{path} holds a {metadata['algorithm']}: use {metadata['algorithm']}.load")
    try:
        agent = kind(
            _environment(metadata["environment"], path) if env is None else env,
            basis_from_settings(metadata["basis"]) if basis is None else basis,
            **metadata["settings"],
        )
        _fill(agent, arrays)
        agent._finished = [np.array(arrays["episodes"], np.float64).reshape(-1, 2)]
        agent.num_timesteps = int(metadata["num_timesteps"])
        agent.rng.bit_generator.state = metadata["agent_rng"]
        agent.session.environment_rng.bit_generator.state = metadata["environment_rng"]
    except FileError:
        raise
    except (KeyError, TypeError, AttributeError, OverflowError, ValueError) as error:
        raise FileError(f"{path} is damaged: {error}") from error
    if not (agent.session.compiled and metadata["compiled"]):
        agent.session.begin_episode()  # a Python environment's state is not in the file
    return agent


def read(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Metadata and arrays of an agent's file, of whatever algorithm."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        metadata = json.loads(bytes(arrays.pop("metadata")).decode())
    except FileNotFoundError:
        raise FileError(f"there is no file {path}") from None
    except (OSError, ValueError, KeyError, EOFError, MemoryError, zipfile.BadZipFile, zlib.error) as e:
        raise FileError(f"{path} is not an agent saved by rblspi, or not a whole one: {e}") from e
    if not isinstance(metadata, dict) or metadata.get("format") != FORMAT:
        raise FileError(f"{path} is not an agent saved by rblspi")
    if metadata.get("version") != VERSION:
        raise FileError(
            f"{path} has format version {metadata.get('version')}, this rblspi reads version "
            f"{VERSION}: install the version of rblspi that wrote it, or train again"
        )
    return metadata, arrays


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


def _fill(agent: Agent, arrays: dict[str, NDArray[Any]]) -> None:
    for name, own in _arrays(agent):
        stored = arrays.get(name)
        if stored is None or stored.shape != own.shape or stored.dtype != own.dtype:
            found = "is missing" if stored is None else f"is {stored.dtype}{stored.shape}"
            raise FileError(f"{name} {found}; {own.dtype}{own.shape} was expected")
        if not np.isfinite(stored).all():
            raise FileError(f"{name} holds values that are not finite")
        own[...] = stored


def _environment_settings(env: gym.Env[Any, Any]) -> dict[str, Any]:
    spec = env.spec
    return {"id": None if spec is None else spec.id, "arguments": {} if spec is None else spec.kwargs}


def _environment(settings: dict[str, Any], path: str | PathLike[str]) -> gym.Env[Any, Any]:
    """The environment of a file, if it is one that is registered already.

    An id of the form ``module:id`` would import the module, so a file cannot ask for it.
    """
    name = settings["id"]
    if name not in gym.registry:
        raise FileError(f"{path} was trained on {name!r}, which is not registered: pass env=")
    return gym.make(name, **settings["arguments"])
