"""Which code a result comes from: a digest of the sources that its numbers depend on.

Comments, docstrings and layout do not count, nor does code that only shows or stores: results
stay valid when the command line or a picture changes, and not when an algorithm does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from rblspi.experiments.definitions import ONLINE, Curve

_ROOT = Path(__file__).parents[1]

#: what every online run goes through
_LOOP = (
    "agents/base.py",
    "agents/schedule.py",
    "compiled.py",
    "interaction.py",
    "linear_algebra.py",
    "policies.py",
    "recent.py",
    "features/base.py",
    "features/bounds.py",
)
#: and every fit to logged samples, which takes a moment: no need to be choosy
_FIT = (
    "estimators/*.py",
    "experiments/tasks.py",
    "belief.py",
    "linear_algebra.py",
    "posterior.py",
    "recent.py",
    "statistics.py",
    "features/base.py",
    "features/bounds.py",
)
_ALGORITHM = {
    "rblspi": ("agents/rblspi.py", "agents/surprise.py", "belief.py", "statistics.py"),
    "online-lspi": ("agents/online_lspi.py",),
    "lspi": (),
    "blspi": (),
}


def code_version(curve: Curve) -> str:
    """Digest of the sources behind the numbers of a curve: algorithm, environment, basis."""
    return _version(curve.algorithm, curve.environment, str(curve.basis.get("basis")))


@cache
def _version(algorithm: str, environment: str, basis: str) -> str:
    from rblspi.environments.find import make
    from rblspi.features.conversion import BASES

    common = _LOOP if algorithm in ONLINE else _FIT
    sources = [source for name in (*common, *_ALGORITHM[algorithm]) for source in _found(name)]
    env = make(environment)
    sources += [_file(env.unwrapped), _file(BASES[basis])]
    spec = env.spec
    arguments = [spec.max_episode_steps, sorted(spec.kwargs.items())] if spec else []
    digest = hashlib.sha256(repr(arguments).encode())
    for source in sources:
        digest.update(fingerprint(source.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:16]


def _found(name: str) -> list[Path]:
    sources = sorted(_ROOT.glob(name))
    if not sources:
        raise FileNotFoundError(
            f"there is no {name} in {_ROOT}: the list in {__file__} is out of date"
        )
    return sources


def _file(thing: Any) -> Path:
    return Path(inspect.getfile(thing if isinstance(thing, type) else type(thing)))


def fingerprint(source: str) -> str:
    """Digest of what a module does: of its syntax tree, without docstrings."""
    digest = hashlib.sha256()
    for part in _parts(ast.parse(source)):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _parts(node: Any) -> Iterator[str]:
    """Names and values of a syntax tree; empty fields, which differ by Python version, are out."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if value is None or value == [] or name in ("kind", "type_comment", "ctx"):
                continue
            yield name
            yield from _parts(_without_docstring(value) if name == "body" else value)
    elif isinstance(node, list):
        yield str(len(node))
        for item in node:
            yield from _parts(item)
    else:
        yield repr(node)


def _without_docstring(body: Any) -> Any:
    if (
        isinstance(body, list)
        and body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        return body[1:]
    return body
