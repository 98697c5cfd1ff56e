"""Files that are damaged, or that somebody made to do harm."""

import copy
import functools
import hashlib
import io
import json
import operator
import zipfile

import numpy as np


def pack(members, compression=zipfile.ZIP_STORED, sign=True):
    """An archive of any members, with the right digest."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        archive.comment = b"0" * 64
        for name, data in members:
            archive.writestr(name, data)
    return resign(buffer.getvalue()) if sign else buffer.getvalue()


def resign(data):
    return data[:-64] + hashlib.sha256(data[:-64]).hexdigest().encode()


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=True)
    return buffer.getvalue()


def members_of(data):
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def arrays_of(data):
    with np.load(io.BytesIO(data)) as archive:
        return {name: archive[name] for name in archive.files}


def from_arrays(arrays, metadata=None):
    """A file of these arrays with the right digest; the description as text, or as data."""
    arrays = dict(arrays)
    if metadata is not None:
        text = metadata if isinstance(metadata, str) else json.dumps(metadata)
        arrays["metadata"] = np.frombuffer(text.encode(), np.uint8)
    return pack([(f"{name}.npy", npy(array)) for name, array in arrays.items()])


class Mark:
    """An object whose unpickling would leave a trace."""

    def __reduce__(self):
        return exec, ("import builtins; builtins.rblspi_was_here = True",)


HOSTILE_VALUES = [
    *(None, True, -1, 0, 1, 2**31, 2**62, 2**63, 2**64, 10**300, -(10**300), 1e308, -1e308),
    *(5e-324, float("nan"), float("inf"), "", "x", "os:system", "../../etc/passwd", "\x1b[31m"),
    *("[red]", "a" * 5000, [], {}, [[]], [1, 2, 3], {"a": 1}, [None], [10**18] * 3),
    *("RBFGrid", "episode", {"basis": "RBFGrid", "cells": 10**9}, [0.5] * 2000),
]
HOSTILE_IDS = [
    *("os:system", "antigravity:CartPole-v1", "CartPole", "CartPole-v1\n", "Pendulum-v1", "", 7),
    *(None, ["CartPole-v1"], {"id": "CartPole-v1"}, "rblspi/NoSuch-v0", "rblspi/PuddleWorld-v0"),
    *("GymV21Environment-v0", "phys2d/CartPole-v0", "Ant-v5", "Blackjack-v1", "../x"),
]
HOSTILE_BASES = [
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


def hostile_arrays(rng, data, count):
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
                others = ["<f4", ">f8", "<i4", "?", "<c16", "S8"]
                changed[name] = array.astype(rng.choice(others[array.dtype == np.float32 :]))
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


def other_versions(version):
    """What a file may give as its version that is not the right one."""
    return [0, version - 1, version + 1, version + 0.5, str(version), None, [version], 10**300]


def wrong_in_agents(metadata):
    """Wrong values for the fields of the description of an agent, by their paths."""
    not_numbers = [v for v in HOSTILE_VALUES if not isinstance(v, int | float | None)]
    some = [v for v in not_numbers if v != {}]
    fields = [f for f in metadata if f not in ("num_timesteps", "compiled", "python_rng")]
    generators = [(g, n) for g in ("agent_rng", "environment_rng") for n in metadata[g]]
    generators += [
        (g, "state", n) for g in ("agent_rng", "environment_rng") for n in ("state", "inc")
    ]
    return {
        **{(field,): [*some, None, -1, 1.5] for field in fields},
        **{("settings", name): HOSTILE_VALUES for name in ("basis", "env", "self", "x")},
        **{path: [*not_numbers, None, -1, 2**128, 1.5] for path in generators},
        ("compiled",): [*not_numbers, None, 0, 1],
        ("python_rng",): [*some, -1, True],
        ("num_timesteps",): [-1, 2**63, 10**300, 1.5, "9", None, True, [], {}],
        ("version",): other_versions(metadata["version"]),
        ("basis",): HOSTILE_BASES,
        ("settings", "discount"): [-1, 2.5, "x", [1], 2**64, None, {}, float("nan")],
        ("environment", "id"): HOSTILE_IDS,
        ("environment", "arguments", "states"): [v for v in HOSTILE_VALUES if v is not None],
        ("environment", "arguments", "failure"): [*not_numbers, 2.0, -1, float("nan"), 10**300],
        ("environment", "arguments", "xml_file"): HOSTILE_VALUES,
        ("environment", "arguments", "id"): HOSTILE_VALUES,
    }


HOSTILE_SPACES = [
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


def wrong_in_policies(metadata):
    """Wrong values for the fields of the description of a policy, by their paths."""
    not_numbers = ["x", [1], None, {}, float("nan"), float("inf"), -float("inf"), 10**400]
    not_shares = [*not_numbers, -1, -5e-324, 1.5, 2**62, 1e308]
    not_positive = [*not_numbers, 0, -1, -5e-324]
    return {
        **{(extra,): [1] for extra in ("extra", "rng", "features", "weights")},
        ("pessimism",): not_numbers,
        ("epsilon",): not_shares,
        ("discount",): not_shares,
        ("action_names",): [None, 1, "left", {}],
        ("seed",): [None, 1, "x", {}, [-1], ["x"], [[1]], [None]],
        ("environment",): [[], {}, "x", 1, {"id": "CartPole-v1"}, {"x": 1}],
        ("provenance",): [None, 1, "x", [], [{}]],
        ("basis",): HOSTILE_BASES,
        ("observation_space",): HOSTILE_SPACES,
        ("action_space",): [*HOSTILE_SPACES, {"space": "Discrete", "n": 4, "start": 0}],
        ("posterior",): [None, 1, "x", [], {}, {"residual": 1.0}],
        ("posterior", "prior_precision"): not_positive,
        ("posterior", "noise_precision"): not_positive,
        ("posterior", "residual"): not_numbers,
        ("posterior", "jitter"): not_numbers,
        ("version",): other_versions(metadata["version"]),
        ("unknown",): [*not_numbers, -1, -5e-324, True],
    }


def hostile_descriptions(rng, data, count):
    """A field of the description is missing or wrong, and the digest says that all is well."""
    arrays = arrays_of(data)
    metadata = json.loads(arrays["metadata"].tobytes())
    agent = metadata["format"] == "rblspi-agent"
    wrong = wrong_in_agents(metadata) if agent else wrong_in_policies(metadata)
    paths = list(wrong)
    for _ in range(count):
        changed = copy.deepcopy(metadata)
        if rng.random() < 0.1:
            del changed[str(rng.choice(list(changed)))]
        else:
            *parents, field = path = paths[rng.integers(len(paths))]
            table = functools.reduce(operator.getitem, parents, changed)
            table[field] = wrong[path][rng.integers(len(wrong[path]))]
        yield from_arrays(arrays, changed)


def hostile_archives(rng, data, count):
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


def damaged(rng, data, count):
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
