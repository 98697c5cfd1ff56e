"""Other packages, with entry points, as if they were installed in a folder."""

import importlib
import sys
from contextlib import contextmanager

from rblspi import cli, registry

#: a package that registers an algorithm
MODULES = {
    "__init__": """
from rblspi.registry import Algorithm

ALGORITHM = Algorithm("other", "other_package.agent:Other", "online", "Other", baseline=True)
""",
    "agent": """
from rblspi import RBLSPI

from .numbers import PRECISION


class Other(RBLSPI):
    def __init__(self, env, basis=None, *, seed=None, **settings):
        super().__init__(env, basis, noise_precision=PRECISION, seed=seed, **settings)
""",
    "numbers": "PRECISION = 0.5\n",
    "pictures": "COLOUR = 'blue'\n",
}
ENTRY_POINTS = "[rblspi.algorithms]\nother = other_package:ALGORITHM\n"


def write_package(folder, name, modules, entry_points):
    """Write the files that installing a package makes; returns the folder of its modules."""
    package, metadata = folder / name, folder / f"{name}-1.0.dist-info"
    for made in (package, metadata):
        made.mkdir(parents=True)
    for module, source in modules.items():
        (package / f"{module}.py").write_text(source, encoding="utf-8")
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(entry_points)
    return package


@contextmanager
def installed(folder, name="other_package", modules=MODULES, entry_points=ENTRY_POINTS):
    """Let this process import a package; yields the folder of its modules."""
    package = write_package(folder, name, modules, entry_points)
    sys.path.insert(0, str(folder))
    _forget(name)
    try:
        yield package
    finally:
        sys.path.remove(str(folder))
        _forget(name)


def _forget(package):
    """Let modules and entry points be looked up again."""
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        del sys.modules[name]
    importlib.invalidate_caches()
    registry.algorithms.cache_clear()
    cli.commands.cache_clear()
