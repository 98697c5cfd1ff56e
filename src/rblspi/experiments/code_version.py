"""The version of the code behind a result: a digest of the sources that its numbers depend on.

The sources are found by following import statements from the algorithm, the environment and the
basis. Comments, docstrings and layout do not count, nor do layers that check, show or store:
results stay valid when the command line or a figure changes, but not when an algorithm does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

from rblspi.experiments.definitions import Curve
from rblspi.registry import algorithm

#: Layers and modules that check, describe, show or store something, or find a class by its name
#: (the class itself counts): changing them changes no number.
LEFT_OUT = (
    *("rblspi.core", "rblspi.data", "rblspi.policies", "rblspi.registry"),
    *("rblspi.environments.copies", "rblspi.environments.lookup", "rblspi.environments.rendering"),
    *("rblspi.features.conversion", "rblspi.features.default", "rblspi.offline.linear_draws"),
    *("rblspi.online.agent_file", "rblspi.online.callbacks", "rblspi.rollout.calibration"),
)
#: the modules in these layers that compute
COUNTED = {
    *("rblspi.core.compiled", "rblspi.core.kernels", "rblspi.core.linear_algebra"),
    *("rblspi.data.transitions", "rblspi.policies.choice"),
}

#: this module makes runs of every kind; `_kind` names the imported modules that a run uses
TASKS = "rblspi.experiments.tasks"


def code_version(curve: Curve) -> str:
    """Digest of the sources behind the numbers of a curve."""
    return _version(*_kind(curve))


def sources(curve: Curve) -> dict[str, Path]:
    """The modules behind the numbers of a curve, and their files."""
    return _sources(*_kind(curve))


def _kind(curve: Curve) -> tuple[str, str, str, tuple[str, ...]]:
    """The algorithm, the environment, the basis and the modules that a run uses directly."""
    modules = [TASKS]
    if curve.samples:
        modules += ["rblspi.rollout.collect"]
    if curve.evaluation:
        modules += ["rblspi.rollout.evaluate", "rblspi.policies.linear"]
    basis = str(curve.basis.get("basis", ""))
    if not basis:
        modules += ["rblspi.features.default"]
    return curve.algorithm, curve.environment, basis, tuple(modules)


@cache
def _version(name: str, environment: str, basis: str, modules: tuple[str, ...]) -> str:
    from rblspi.environments.lookup import make

    spec = make(environment).spec
    arguments = [spec.max_episode_steps, sorted(spec.kwargs.items())] if spec else []
    digest = hashlib.sha256(repr(arguments).encode())
    for module, path in sorted(_sources(name, environment, basis, modules).items()):
        digest.update(f"{module} {_read(module, path).fingerprint}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _sources(name: str, environment: str, basis: str, modules: tuple[str, ...]) -> dict[str, Path]:
    """Follow imports within this package and within the packages of algorithm and environment."""
    from rblspi.environments.lookup import make
    from rblspi.features import BASES

    bases = [BASES[basis]] if basis else [*BASES.values()]
    classes = (algorithm(name).load(), type(make(environment).unwrapped), *bases)
    waiting = {kind.__module__: Path(inspect.getfile(kind)) for kind in classes}
    waiting |= {module: path for module in modules if (path := _path(module))}
    packages = {module.partition(".")[0] for module in waiting}
    found: dict[str, Path] = {}
    while waiting:
        module, path = waiting.popitem()
        found[module] = path
        for imported in _read(module, path).imports:
            if imported.module.partition(".")[0] in packages and module != TASKS:
                origin = _origin(imported)
                source = None if origin in found or _is_left_out(origin) else _path(origin)
                if source is not None:
                    waiting[origin] = source
    return found


def _is_left_out(module: str) -> bool:
    return module not in COUNTED and f"{module}.".startswith(tuple(f"{n}." for n in LEFT_OUT))


# Reading import statements --------------------------------------------------------------------


class Import(NamedTuple):
    """One name of an import statement: ``from module import name as known_as``."""

    module: str
    name: str = ""  # empty for ``import module``
    known_as: str = ""


class Module(NamedTuple):
    """Facts read from the source of a module."""

    fingerprint: str
    imports: tuple[Import, ...]


@cache
def _read(module: str, path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    is_package = path.name == "__init__.py"
    package = module if is_package else module.rpartition(".")[0]
    # Under TYPE_CHECKING, a package names the modules that it imports on demand.
    imports = _imports(ast.parse(source), package, type_checking=is_package)
    return Module(fingerprint(source), tuple(imports))


def _imports(tree: ast.AST, package: str, type_checking: bool) -> Iterator[Import]:
    """All imports of a module, also those inside functions."""
    skipped = () if type_checking else ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (Import(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = resolve_name("." * node.level + (node.module or ""), package)
            yield from (Import(module, a.name, a.asname or a.name) for a in node.names)
        elif isinstance(node, ast.If) and ast.unparse(node.test) in skipped:
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _origin(imported: Import) -> str:
    """The module that an import leads to, also through a package that imports the name itself."""
    module, name, _ = imported
    if name and _path(f"{module}.{name}") is not None:
        return f"{module}.{name}"
    path = _path(module)
    if name and path is not None and path.name == "__init__.py":
        for inner in _read(module, path).imports:
            if inner.known_as == name and inner.module != module:
                return _origin(inner)
    return module


@cache
def _path(module: str) -> Path | None:
    """The source file of a module, which is not imported; None if there is none."""
    found: Path | None = None
    places: list[str] | None = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, places)
        if spec is None:
            return None
        places = [*(spec.submodule_search_locations or ())]
        found = Path(spec.origin or "")
    return found if found is not None and found.suffix == ".py" else None


# What a module does -------------------------------------------------------------------------

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def fingerprint(source: str) -> str:
    """Digest of a module's statements, without comments, layout and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()
