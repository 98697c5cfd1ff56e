"""Which code a result comes from: a digest of the sources that its numbers depend on.

The sources are found by following import statements from the algorithm, the environment, the basis
and `tasks`. Comments, docstrings and layout do not count, nor do modules that only show or store:
results stay valid when the command line or a figure changes, but not when an algorithm does.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any, NamedTuple

from rblspi.experiments.definitions import Curve
from rblspi.registry import algorithm

#: Modules whose changes leave every number as it is: they describe, show or store something, state
#: intervals, or find a class by its name (the class itself counts). When in doubt, leave a module
#: off this list: counting one too many only costs a repeated run.
LEFT_OUT = {
    *("rblspi.core.archive", "rblspi.core.files", "rblspi.core.progress"),
    *("rblspi.environments.rendering", "rblspi.experiments.code_version"),
    *("rblspi.experiments.definitions", "rblspi.features.conversion", "rblspi.features.default"),
    *("rblspi.offline.values", "rblspi.online.agent_file", "rblspi.online.callbacks"),
    *(
        "rblspi.policies.onnx_graph",
        "rblspi.policies.policy_file",
        "rblspi.policies.values",
        "rblspi.registry",
        "rblspi.rollout.calibration",
    ),
}


def code_version(curve: Curve) -> str:
    """Digest of the sources behind the numbers of a curve."""
    return _version(curve.algorithm, curve.environment, str(curve.basis.get("basis", "")))


def sources(curve: Curve) -> dict[str, Path]:
    """The modules behind the numbers of a curve, and their files."""
    return _sources(curve.algorithm, curve.environment, str(curve.basis.get("basis", "")))


@cache
def _version(name: str, environment: str, basis: str) -> str:
    from rblspi.environments.lookup import make

    spec = make(environment).spec
    arguments = [spec.max_episode_steps, sorted(spec.kwargs.items())] if spec else []
    digest = hashlib.sha256(repr(arguments).encode())
    for module, path in sorted(_sources(name, environment, basis).items()):
        digest.update(f"{module} {_read(module, path).fingerprint}\n".encode())
    return digest.hexdigest()[:16]


@cache
def _sources(name: str, environment: str, basis: str) -> dict[str, Path]:
    """Follow imports within this package and those of the algorithm and the environment."""
    from rblspi.environments.lookup import make
    from rblspi.features import BASES, default

    bases = [BASES[basis]] if basis else [*BASES.values()]
    classes = (algorithm(name).load(), type(make(environment).unwrapped), *bases)
    waiting = {kind.__module__: Path(inspect.getfile(kind)) for kind in classes}
    if not basis:
        waiting[default.__name__] = Path(inspect.getfile(default))
    waiting["rblspi.experiments.tasks"] = Path(__file__).with_name("tasks.py")
    packages = {module.partition(".")[0] for module in waiting}
    found: dict[str, Path] = {}
    while waiting:
        module, path = waiting.popitem()
        found[module] = path
        for imported in _read(module, path).imports:
            if imported.module.partition(".")[0] in packages:
                origin = _origin(imported)
                source = None if origin in LEFT_OUT or origin in found else _path(origin)
                if source is not None:
                    waiting[origin] = source
    return found


# Reading import statements --------------------------------------------------------------------


class Import(NamedTuple):
    """One name of an import statement: ``from module import name as known_as``."""

    module: str
    name: str = ""  # empty for ``import module``
    known_as: str = ""


class Module(NamedTuple):
    """What the source of a module says."""

    fingerprint: str
    imports: tuple[Import, ...]


@cache
def _read(module: str, path: Path) -> Module:
    source = path.read_text(encoding="utf-8")
    package = module if _is_package(path) else module.rpartition(".")[0]
    # Behind TYPE_CHECKING, a package names what it imports on demand.
    imports = _imports(ast.parse(source), package, type_checking=_is_package(path))
    return Module(fingerprint(source), tuple(imports))


def _is_package(path: Path) -> bool:
    return path.name == "__init__.py"


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
    if name and path is not None and _is_package(path):
        for inner in _read(module, path).imports:
            if inner.known_as == name and inner.module != module:
                return _origin(inner)
    return module


@cache
def _path(module: str) -> Path | None:
    """The source file of a module, which is not imported; None if there is none."""
    top, *inner = module.split(".")
    try:
        spec = find_spec(top)
    except ValueError:  # __main__ and other modules that no file was imported for
        spec = None
    if spec is None:
        return None
    stems = [Path(folder, *inner) for folder in spec.submodule_search_locations or ()]
    files = [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")]
    if not inner:
        files = [Path(spec.origin or "")]
    return next((file for file in files if file.suffix == ".py" and file.is_file()), None)


# What a module does -------------------------------------------------------------------------


def fingerprint(source: str) -> str:
    """Digest of what a module does: of its syntax tree, without docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, _DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return hashlib.sha256("\0".join(_parts(tree)).encode()).hexdigest()


_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _parts(node: Any) -> Iterator[str]:
    """Names and values of a syntax tree; empty fields, which differ by Python version, are out."""
    if isinstance(node, ast.AST):
        yield type(node).__name__
        for name, value in ast.iter_fields(node):
            if value not in (None, []) and name not in ("kind", "type_comment", "ctx"):
                yield name
                yield from _parts(value)
    elif isinstance(node, list):
        yield str(len(node))
        for item in node:
            yield from _parts(item)
    else:
        yield repr(node)
