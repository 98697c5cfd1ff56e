"""Files that are damaged, or that somebody made to do harm."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np


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
            case 6 | 7 if integers:
                name = str(rng.choice(integers))
                wrong = changed[name].copy()
                outside = [-(2**63), -(2**31), -2, 2**62 + 1, 2**63 - 1]
                wrong.flat[rng.integers(wrong.size)] = rng.choice(outside)
                changed[name] = wrong
            case 6 | 7 | 8 | 9:
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
    metadata = json.loads(arrays_of(data)["metadata"].tobytes())
    of_kind = {"rblspi-agent": hostile_agents, "rblspi-policy": hostile_policies}
    yield from of_kind[metadata["format"]](rng, data, count)


def other_versions(version: int) -> np.ndarray:
    """What a file may give as its version that is not the right one."""
    wrong = [0, version - 1, version + 1, float(version), str(version), None, True, [version]]
    return np.array([*wrong, 10**300], dtype=object)


def hostile_agents(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """The description of an agent is not as it should be."""
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
                inner[key] = -1 if isinstance(value, int) else value
            case 8:
                changed["num_timesteps"] = rng.choice(
                    np.array([-1, 2**63, 10**300, 1.5, "9", None, True, [], {}], dtype=object)
                )
            case 9:
                changed["version"] = rng.choice(other_versions(metadata["version"]))
        yield from_arrays(arrays, changed)


HOSTILE_SPACES: list[Any] = [
    *(None, [], {}, "Discrete", {"space": "Discrete"}, {"space": "Tuple", "spaces": []}),
    {"space": "Discrete", "n": -1, "start": 0},
    {"space": "Discrete", "n": "x", "start": 0},
    {"space": "Discrete", "n": 10**30, "start": 0},
    {"space": "Discrete", "n": 3, "start": None},
    {"space": "MultiDiscrete", "nvec": [10**18] * 40, "start": [0] * 40},
    {"space": "MultiDiscrete", "nvec": "x", "start": [0]},
    {"space": "Box", "low": [0], "high": [1], "shape": [10**9], "dtype": "float64"},
    {"space": "Box", "low": [0], "high": [1], "shape": [-1, -1], "dtype": "float64"},
    {"space": "Box", "low": [0, 0], "high": [1, 1], "shape": [2], "dtype": "object"},
    {"space": "Box", "low": [0, 0], "high": [1, 1], "shape": [2], "dtype": "S8"},
    {"space": "Box", "low": [0, 0], "high": [1, 1], "shape": [2], "dtype": "f8," * 9},
    {"space": "Box", "low": [0, 0], "high": [1, 1], "shape": [2], "dtype": "os.system"},
    {"space": "Box", "low": "x", "high": [1, 1], "shape": [2], "dtype": "float64"},
    {"space": "Box", "low": [0, 0], "high": [1, 1], "shape": [2], "dtype": "float64"},
]


def hostile_policies(rng: np.random.Generator, data: bytes, count: int) -> Iterator[bytes]:
    """The description of a policy is not as it should be."""
    arrays = arrays_of(data)
    metadata = json.loads(arrays["metadata"].tobytes())
    not_numbers = ["x", [1], None, {}, float("nan"), float("inf"), -float("inf"), 10**400]

    def one_of(values: list[Any]) -> Any:
        return values[rng.integers(len(values))]

    for _ in range(count):
        changed = copy.deepcopy(metadata)
        match rng.integers(12):
            case 0:
                del changed[str(rng.choice(list(changed)))]
            case 1:
                changed[str(rng.choice(["extra", "rng", "features", "weights"]))] = 1
            case 2:
                field = str(rng.choice(["pessimism", "epsilon", "discount"]))
                below = [] if field == "pessimism" else [-1, -5e-324]
                above = [] if field == "pessimism" else [1.5, 2**62, 1e308]
                changed[field] = one_of([*below, *not_numbers, *above])
            case 3:
                changed["action_names"] = one_of([None, 1, "left", {}])
            case 4:
                changed["seed"] = one_of([None, 1, "x", {}, [-1], ["x"], [[1]], [None]])
            case 5:
                tables = [[], {}, "x", 1, {"id": "CartPole-v1"}, {"x": 1}]
                changed["environment"] = one_of(tables)
            case 6:
                changed["provenance"] = one_of([None, 1, "x", [], [{}]])
            case 7:
                changed["basis"] = one_of(HOSTILE_BASES)
            case 8:
                space = one_of(["observation_space", "action_space"])
                four = {"space": "Discrete", "n": 4, "start": 0}
                changed[space] = one_of(HOSTILE_SPACES + [four] * (space == "action_space"))
            case 9:
                number = one_of(["prior_precision", "noise_precision", "residual", "jitter"])
                if number.endswith("precision"):
                    changed["posterior"][number] = one_of([0, -1, -5e-324, *not_numbers])
                elif rng.random() < 0.5:
                    changed["posterior"][number] = one_of(not_numbers)
                else:
                    changed["posterior"] = one_of([None, 1, "x", [], {}, {"residual": 1.0}])
            case 10:
                changed["version"] = one_of(list(other_versions(metadata["version"])))
            case 11:
                sound = {"basis": None, "basis_std": 0.1, "limits": [None, 1], "posterior": None}
                wrong = {
                    "basis": HOSTILE_BASES,
                    "basis_std": [-1, -5e-324, True, *not_numbers],
                    "limits": [None, 1, [1], [1, 0], ["x", None], {"x": 1}],
                    "posterior": [1, "x", [], {}, {"residual": 1.0}],
                    "extra": [1],
                }
                name = one_of(list(wrong))
                changed["values"] = one_of([1, "x", [], {}, sound | {name: one_of(wrong[name])}])
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
                if b"'=f8'" in body or b"'=i8'" in body:
                    continue  # another name of the same type
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
