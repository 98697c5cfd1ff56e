"""Learning on after a load gives the same bits; a bad file gives an error, and nothing else."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from rblspi import RBLSPI, Agent, FunctionBasis, OnlineLSPI, RBFGrid
from rblspi.agents import FittedPolicy, storage
from rblspi.agents.archive import FileError
from rblspi.statistics import empty
from tests.domains import DOMAINS, Domain

ALGORITHMS: dict[str, type[Agent]] = {"RBLSPI": RBLSPI, "OnlineLSPI": OnlineLSPI}
KINDS = (*ALGORITHMS, "FittedPolicy")
CHAIN = "rblspi/ChainWalk-v0"
CAR = "rblspi/MountainCar-v0"


def make(kind: str, domain: Domain) -> Agent:
    settings: dict[str, Any] = dict(domain.settings)
    if kind == "OnlineLSPI":
        settings = {"discount": settings["discount"], "epsilon_decay": 0.999}
    return ALGORITHMS[kind](domain.id, domain.basis, seed=5, **settings)


def assert_same_bits(one: Agent, other: Agent) -> None:
    arrays = dict(storage._arrays(other))
    for name, array in storage._arrays(one):
        np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    np.testing.assert_array_equal(one.episodes, other.episodes)
    assert one.num_timesteps == other.num_timesteps
    assert one.rng.bit_generator.state == other.rng.bit_generator.state


# Learning on ----------------------------------------------------------------------------------

LEARN_ON = """
import sys
from rblspi import Agent
steps, *paths = sys.argv[1:]
for path in paths:
    agent = Agent.load(path)
    agent.learn(int(steps), reset_num_timesteps=False)
    agent.save(path)
"""


def test_half_in_another_process_gives_the_same_bits(tmp_path: Path) -> None:
    steps = 777  # no multiple of the period, and in the middle of an episode
    cases = [(kind, name) for kind in ALGORITHMS for name in DOMAINS]
    paths = {case: tmp_path / "-".join((*case, "agent.npz")) for case in cases}
    for (kind, name), path in paths.items():
        make(kind, DOMAINS[name]).learn(steps).save(path)
    command = [sys.executable, "-c", LEARN_ON, str(steps), *map(str, paths.values())]
    subprocess.run(command, check=True)
    for (kind, name), path in paths.items():
        whole = make(kind, DOMAINS[name]).learn(2 * steps)
        assert_same_bits(whole, ALGORITHMS[kind].load(path))


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_python_environment_goes_on_with_its_own_random_numbers(
    kind: str, tmp_path: Path
) -> None:
    basis = RBFGrid(2, low=-1.0, high=1.0)
    whole = ALGORITHMS[kind]("CartPole-v1", basis, seed=3).learn(episodes=40)
    half = ALGORITHMS[kind]("CartPole-v1", basis, seed=3).learn(episodes=20)
    half.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    loaded.learn(episodes=20, reset_num_timesteps=False)
    assert_same_bits(whole, loaded)


def test_the_same_agent_gives_the_same_file(tmp_path: Path) -> None:
    for name in ("one", "two"):
        RBLSPI(CAR, RBFGrid(2), seed=1).learn(500).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_settings_of_the_environment_are_kept(tmp_path: Path) -> None:
    env = gym.make(CAR, gravity=0.002, start=(-0.5, -0.45), max_episode_steps=70)
    RBLSPI(env, RBFGrid(2), seed=1).learn(500).save(tmp_path / "agent.npz")
    loaded = RBLSPI.load(tmp_path / "agent.npz")
    np.testing.assert_array_equal(
        loaded.env.unwrapped.dynamics.parameters, env.unwrapped.dynamics.parameters
    )
    assert loaded.env.spec.max_episode_steps == 70


def test_an_environment_without_an_id_is_passed_again(tmp_path: Path) -> None:
    env = gym.make(CHAIN).unwrapped
    env.spec = None
    basis = FunctionBasis(lambda state: np.array([1.0, state]))
    agent = RBLSPI(env, basis, seed=1).learn(100)
    agent.save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match="without an id: pass the same as env="):
        RBLSPI.load(tmp_path / "agent.npz")
    with pytest.raises(FileError, match="pass it again as basis="):
        RBLSPI.load(tmp_path / "agent.npz", env=env)
    loaded = RBLSPI.load(tmp_path / "agent.npz", env=env, basis=basis)
    np.testing.assert_array_equal(loaded.action_values(3).mean, agent.action_values(3).mean)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: gym.wrappers.RescaleObservation(gym.make(CAR), 0.0, 1.0), "wrapped rblspi/Mou"),
        (lambda: gym.make("FrozenLake-v1", map_name="8x8"), "'map_name' = '8x8'.*pass env="),
    ],
)
def test_what_a_file_may_not_decide_is_passed_again(
    env: Callable[[], gym.Env[Any, Any]], message: str, tmp_path: Path
) -> None:
    basis = FunctionBasis(lambda observation: np.atleast_1d(observation).astype(float))
    RBLSPI(env(), basis, seed=1).learn(100).save(tmp_path / "agent.npz")
    with pytest.raises(FileError, match=message):
        RBLSPI.load(tmp_path / "agent.npz", basis=basis)
    RBLSPI.load(tmp_path / "agent.npz", env=env(), basis=basis)


def test_another_class_or_environment_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agent.npz"
    RBLSPI(CAR, RBFGrid(2), seed=1).save(path)
    with pytest.raises(FileError, match=r"of the class 'RBLSPI': load it with Agent\.load"):
        OnlineLSPI.load(path)
    with pytest.raises(FileError, match="9 features in this environment"):
        RBLSPI.load(path, basis=RBFGrid((2, 4)))
    with pytest.raises(FileError, match=r"4\[.*\]"):
        RBLSPI.load(path, env="rblspi/PuddleWorld-v0")
    with pytest.raises(FileError, match="there is no file"):
        RBLSPI.load(tmp_path / "agnet.npz")
    with pytest.raises(FileError, match="is not a file"):
        RBLSPI.load(tmp_path)


@pytest.mark.parametrize("name", [CAR, "CartPole-v1"])
def test_an_agent_late_in_an_episode_goes_where_episodes_are_shorter(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "agent.npz"
    agent = RBLSPI(name, seed=1).learn(3)
    agent.session.place.clock[0] = 90
    agent.save(path)
    shorter = RBLSPI.load(path, gym.make(name, max_episode_steps=50)).learn(200)
    assert shorter.episodes[:, 0].max() <= 50
    assert len(shorter.episodes) >= 4


def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.npz"
    agent = RBLSPI(CAR, RBFGrid(2), seed=1)
    agent.save(path)
    before = path.read_bytes()

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        agent.learn(100).save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["agent.npz"]


# Files from strangers -------------------------------------------------------------------------


def pack(
    members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED, sign: bool = True
) -> bytes:
    """An archive of any members, with the right digest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = b"0" * 64
        for name, data in members:
            archive.writestr(name, data)
    return resign(buffer.getvalue()) if sign else buffer.getvalue()


def resign(data: bytes) -> bytes:
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def members_of(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def arrays_of(data: bytes) -> dict[str, Any]:
    with np.load(io.BytesIO(data)) as archive:
        return {name: archive[name] for name in archive.files}


def from_arrays(arrays: dict[str, Any], metadata: Any = None) -> bytes:
    """A file of these arrays with the right digest; the description as text, or as data."""
    arrays = dict(arrays)
    if metadata is not None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        arrays["metadata"] = np.frombuffer(text.encode(), np.uint8)
    return pack([(f"{name}.npy", npy(array)) for name, array in arrays.items()])


class Mark:
    """An object whose unpickling would leave a trace."""

    def __reduce__(self) -> Any:
        return exec, ("import builtins; builtins.rblspi_was_here = True",)


HOSTILE_VALUES: list[Any] = [
    *(None, True, -1, 0, 1, 2**31, 2**62, 2**63, 2**64, 10**300, -(10**300), 1e308, -1e308),
    *(5e-324, float("nan"), float("inf"), "", "x", "os:system", "../../etc/passwd", "\x1b[31m"),
    *("[red]", "a" * 5000, [], {}, [[]], [1, 2, 3], {"a": 1}, [None], [10**18] * 3),
    *("RBFGrid", "episode", {"basis": "RBFGrid", "cells": 10**9}, [0.5] * 2000),
]
HOSTILE_IDS: list[Any] = [
    *("os:system", "antigravity:CartPole-v1", "CartPole", "CartPole-v1\n", "Pendulum-v1", "", 7),
    *(None, ["CartPole-v1"], {"id": "CartPole-v1"}, "rblspi/NoSuch-v0", "rblspi/PuddleWorld-v0"),
    *("GymV21Environment-v0", "phys2d/CartPole-v0", "Ant-v5", "Blackjack-v1", "../x"),
]
HOSTILE_BASES: list[Any] = [
    {"basis": "RBFGrid", "cells": 10**9},
    {"basis": "RBFGrid", "cells": 300},
    {"basis": "RBFGrid", "cells": [2] * 1000},
    {"basis": "RBFGrid", "cells": 2, "width": 0.0},
    {"basis": "RBFGrid", "cells": 2, "low": float("nan")},
    {"basis": "RBFGrid", "cells": 2, "low": [1e300, 1], "high": [2, 2]},
    {"basis": "RBFGrid", "cells": {"a": 1}},
    {"basis": "TileCoding", "tiles": 2, "tilings": 10**12},
    {"basis": "Polynomial", "degree": 10**15},
    {"basis": "Polynomial", "degree": "x"},
    {"basis": "Fourier", "order": 10**30},
    {"basis": "FunctionBasis", "custom": "os.system"},
    {"basis": "FunctionBasis", "function": "os.system"},
    {"basis": "TransformerBasis", "transformer": "x"},
    {"basis": "Basis"},
    {"basis": "__class__"},
    {"basis": ["RBFGrid"]},
    {},
]


def hostile_arrays(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """One array is not as it should be, and the digest says that all is well."""
    arrays = arrays_of(data)
    names = [name for name in arrays if name != "metadata"]
    integers = [name for name in names if arrays[name].dtype.kind == "i"]
    floats = [name for name in names if arrays[name].dtype.kind == "f" and arrays[name].size]
    for _ in range(count):
        changed = dict(arrays)
        name = str(rng.choice(names))
        array = changed[name]
        match rng.integers(11):
            case 0:
                del changed[name]
            case 1:
                changed[name] = array.astype(rng.choice(["<f4", ">f8", "<i4", "?", "<c16", "S8"]))
            case 2:
                changed[name] = np.array([Mark()] * int(rng.integers(1, 4)), dtype=object)
            case 3:
                changed[name] = array.reshape((*array.shape, 1))
            case 4:
                changed[name] = np.concatenate([array.ravel(), array.ravel(), np.zeros(3)])
            case 5:
                changed[str(rng.choice(["extra", "__init__", "episodes.x", "state"]))] = array
            case 6 | 7:
                name = str(rng.choice(integers))
                wrong = changed[name].copy()
                outside = [-(2**63), -(2**31), -2, 2**62 + 1, 2**63 - 1]
                wrong.flat[rng.integers(wrong.size)] = rng.choice(outside)
                changed[name] = wrong
            case 8 | 9:
                name = str(rng.choice(floats))
                wrong = changed[name].copy()
                wrong.flat[rng.integers(wrong.size)] = rng.choice([np.nan, np.inf, -np.inf])
                changed[name] = wrong
            case 10:
                changed[name] = np.zeros((0,) * int(rng.integers(1, 9)))
                if name == "episodes":
                    changed[name] = np.zeros((3, 3))
        yield from_arrays(changed)


def hostile_descriptions(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """The description is not as it should be, and the digest says that all is well."""
    arrays = arrays_of(data)
    metadata = json.loads(arrays["metadata"].tobytes())
    for _ in range(count):
        changed = copy.deepcopy(metadata)
        value = HOSTILE_VALUES[rng.integers(len(HOSTILE_VALUES))]
        match rng.integers(10):
            case 0:
                del changed[str(rng.choice(list(changed)))]
            case 1:
                field = str(rng.choice([f for f in changed if f not in ("num_timesteps",)]))
                if changed[field] == value or (field == "python_rng" and value is None):
                    value = [value]
                if field == "compiled" and isinstance(value, bool):
                    value = "true"
                changed[field] = value
            case 2:
                changed["environment"]["id"] = HOSTILE_IDS[rng.integers(len(HOSTILE_IDS))]
            case 3:
                arguments = {str(rng.choice(["states", "failure", "xml_file", "id"])): value}
                if arguments in ({"states": 20}, {"failure": 0}, {"failure": 1}):
                    continue
                if next(iter(arguments)) == "failure" and isinstance(value, int | float):
                    value = 2.0
                changed["environment"]["arguments"] = {next(iter(arguments)): value}
                if arguments == {"failure": 5e-324} or value is None:
                    changed["environment"]["arguments"]["x"] = 1
            case 4:
                changed["basis"] = HOSTILE_BASES[rng.integers(len(HOSTILE_BASES))]
            case 5:
                changed["settings"][str(rng.choice(["basis", "env", "self", "x"]))] = value
            case 6:
                changed["settings"]["discount"] = rng.choice(
                    np.array([-1, 2.5, "x", [1], 2**64, None, {}, float("nan")], dtype=object)
                )
            case 7:
                name = str(rng.choice(["agent_rng", "environment_rng"]))
                inner = changed[name]["state"] if rng.random() < 0.5 else changed[name]
                key = str(rng.choice(list(inner)))
                inner[key] = -1 if type(value) is int else value
            case 8:
                changed["num_timesteps"] = rng.choice(
                    np.array([-1, 2**63, 10**300, 1.5, "9", None, True, [], {}], dtype=object)
                )
            case 9:
                changed["version"] = rng.choice(
                    np.array([0, 1, 3, 2.0, "2", None, True, [2], 10**300], dtype=object)
                )
        yield from_arrays(arrays, changed)


def hostile_archives(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """The archive itself is a trap, and the digest says that all is well."""
    members = members_of(data)
    arrays = arrays_of(data)
    deep = "[" * 100_000 + "]" * 100_000
    texts = [deep, '{"a":' * 50_000 + "1" + "}" * 50_000, "", "\x00", "NaN", "[]", "7" * 5000]
    headers = [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (999999999, 999999999, 999999999), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f8', 'fortran_order': True, 'shape': (2,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 200 + "), }",
        "__import__('os').system('true')",
        "(" * 400,
        "",
    ]
    for _ in range(count):
        name = str(rng.choice([m for m in members if m != "metadata.npy"]))
        changed = list(members.items())
        match rng.integers(8):
            case 0:
                text = texts[rng.integers(len(texts))]
                yield from_arrays(arrays, text)
            case 1:
                header = (headers[rng.integers(len(headers))] + " " * 30 + "\n").encode()
                body = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
                yield pack([(m, body if m == name else d) for m, d in changed])
            case 2:
                other = str(rng.choice(["../../x.npy", "/etc/x.npy", "c:\\x.npy", "x", "X.npy"]))
                yield pack([(other if m == name else m, d) for m, d in changed])
            case 3:
                yield pack(changed, zipfile.ZIP_DEFLATED)
            case 4:
                # every entry of the directory points to the same bytes, or to others
                raw = bytearray(pack(changed))
                start = raw.find(b"PK\x01\x02")
                spots = [i for i in range(start, len(raw)) if raw[i : i + 4] == b"PK\x01\x02"]
                at = int(rng.choice(spots))
                field = int(rng.choice([10, 16, 20, 24, 42]))
                raw[at + field : at + field + 2] = rng.bytes(2)
                if bytes(raw) == pack(changed):
                    continue
                yield resign(bytes(raw))
            case 5:
                cut = members[name][: int(rng.integers(len(members[name])))]
                yield pack([(m, cut if m == name else d) for m, d in changed])
            case 6:
                garbage = rng.bytes(int(rng.integers(0, 400)))
                yield resign(garbage + b"0" * 64)
            case 7:
                body = bytearray(members[name])
                body[int(rng.integers(0, 60))] ^= 1 << int(rng.integers(8))
                yield pack([(m, bytes(body) if m == name else d) for m, d in changed])


def damaged(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """What happens to files: flipped bits, truncation, lost and repeated pieces."""
    for _ in range(count):
        raw = bytearray(data)
        match rng.integers(5):
            case 0 | 1:
                for _ in range(int(rng.integers(1, 4))):
                    raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
                if bytes(raw) == data:
                    continue
            case 2:
                del raw[int(rng.integers(len(raw))) :]
            case 3:
                start = int(rng.integers(len(raw) - 1))
                del raw[start : start + int(rng.integers(1, 5000))]
            case 4:
                raw += rng.bytes(int(rng.integers(1, 100)))
        yield bytes(raw)


def originals(directory: Path) -> dict[str, bytes]:
    """Files of small agents in the middle of an episode."""
    chain = RBFGrid(2)
    RBLSPI(CHAIN, chain, seed=1, update_every=7).learn(12).save(directory / "RBLSPI")
    OnlineLSPI(CHAIN, chain, seed=1, epsilon=0.5).learn(12).save(directory / "OnlineLSPI")
    settings = {"prior_precision": 1.0, "noise_precision": 1.0, "pessimism": 0.5}
    statistics, weights = empty(2, 3), np.arange(6.0)
    fitted = FittedPolicy.from_fit(CHAIN, chain, statistics, weights, **settings)
    fitted.save(directory / "FittedPolicy")
    return {kind: (directory / kind).read_bytes() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "corrupt", [damaged, hostile_archives, hostile_arrays, hostile_descriptions]
)
def test_thousands_of_bad_files_are_each_an_error(
    kind: str, corrupt: Callable[..., Iterator[bytes]], tmp_path: Path
) -> None:
    import builtins

    original = originals(tmp_path)[kind]
    path = tmp_path / "agent.npz"
    path.write_bytes(from_arrays(arrays_of(original)))
    Agent.load(path).predict(3)  # what the corrupted files are made of is sound
    modules = set(sys.modules)
    tried = 0
    rng = np.random.default_rng(len(kind))
    tracemalloc.start() if corrupt is hostile_archives else None
    for data in corrupt(rng, original, 900):
        path.write_bytes(data)
        with pytest.raises(FileError, match=f"{path}.*[a-z]"):
            Agent.load(path)
        tried += 1
    if corrupt is hostile_archives:
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()
    assert tried > 850
    assert not hasattr(builtins, "rblspi_was_here")
    assert {"antigravity"}.isdisjoint(set(sys.modules) - modules)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_wrong_numbers_with_a_right_digest_only_give_wrong_numbers(
    kind: str, tmp_path: Path
) -> None:
    arrays = arrays_of(originals(tmp_path)[kind])
    rng = np.random.default_rng(0)
    path = tmp_path / "agent.npz"
    for scale in (1e-300, 1.0, 1e10, 1e100, 1e300):
        changed = {
            name: scale * rng.standard_normal(array.shape) if array.dtype == np.float64 else array
            for name, array in arrays.items()
        }
        path.write_bytes(from_arrays(changed))
        with np.errstate(all="ignore"):
            agent = Agent.load(path)
            if kind in ALGORITHMS:
                agent.learn(40)
            agent.predict(3)


def test_an_action_chosen_for_an_episode_is_not_taken_in_another(tmp_path: Path) -> None:
    """On policy, an action is chosen before it is taken; a Python environment begins anew."""
    pole = RBFGrid(2, low=-1.0, high=1.0)
    agent = OnlineLSPI("CartPole-v1", pole, policy="on", seed=0).learn(5)
    assert agent.state.clock[1] >= 0
    agent.save(tmp_path / "agent.npz")
    assert OnlineLSPI.load(tmp_path / "agent.npz").state.clock[1] == -1
