import ast
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

import rblspi
from rblspi.experiments import code_version as module
from rblspi.experiments.code_version import COUNTED, LEFT_OUT, code_version, fingerprint, sources
from rblspi_paper.figures import BLSPI, FIGURES, LSPI
from tests.support.experiments import CURVES
from tests.support.third_party import installed

pytestmark = pytest.mark.slow

SOURCE = '''"""Module."""


def twice(x, y):
    """Double."""
    return 2 * x + y  # why
'''


@pytest.fixture(autouse=True)
def read_again():
    """Let every test read the sources as they are."""

    def forget():
        for function in (module._version, module._sources, module._read, module._path):
            function.cache_clear()

    forget()
    yield forget
    forget()


def test_what_the_code_does_counts_and_not_its_layout():
    other = "def twice(\n    x,\n    y,\n):\n    'Twofold.'\n    return (2 * x\n        + y)\n"
    assert fingerprint(other) == fingerprint(SOURCE)
    assert fingerprint(SOURCE.replace("2 *", "3 *")) != fingerprint(SOURCE)
    assert fingerprint(SOURCE.replace("+ y", "- y")) != fingerprint(SOURCE)
    assert fingerprint(SOURCE.replace("x, y", "y, x")) != fingerprint(SOURCE)


def test_the_version_depends_on_algorithm_environment_and_basis_only():
    a, b, c = CURVES
    assert code_version(a) == code_version(b) != code_version(c)
    sparse = replace(a, environment="rblspi/SparseMountainCar-v0")
    assert code_version(sparse) != code_version(a)
    assert code_version(replace(a, basis={"basis": "Fourier"})) != code_version(a)
    assert code_version(replace(a, episodes=99)) == code_version(a)


def test_every_curve_of_the_paper_has_a_version():
    versions = {code_version(curve) for f in FIGURES.values() for curve in f.curves}
    assert len(versions) == 1 + 5 * 2  # LSPI and BLSPI are one module; two agents on five domains


@pytest.mark.parametrize("curve", [*CURVES[1:], LSPI, BLSPI], ids=lambda curve: curve.algorithm)
def test_a_change_of_any_source_changes_the_version(curve, monkeypatch):
    """Every module that the algorithm, the environment and the basis import is a source."""
    found, before = sources(curve), code_version(curve)
    assert {
        *("rblspi.core.compiled", "rblspi.data.transitions", "rblspi.environments.base"),
        *("rblspi.experiments.tasks", "rblspi.features.base", "rblspi.rollout.loop"),
    } <= set(found)
    read = module._read
    for changed in found:
        module._version.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(
                module,
                "_read",
                lambda name, path, changed=changed: (
                    read(name, path)._replace(fingerprint="changed")
                    if name == changed
                    else read(name, path)
                ),
            )
            assert code_version(curve) != before, changed


def test_code_that_shows_checks_or_stores_is_no_source():
    for curve in (*CURVES, LSPI, BLSPI):
        assert not [
            name
            for name in sources(curve)
            if name.startswith(("rblspi.cli", "rblspi.plotting", "rblspi_paper", *LEFT_OUT))
            and name not in COUNTED
        ]


def test_a_run_of_rblspi_on_a_domain_of_the_paper_depends_on_at_most_25_modules():
    """None of them exports a policy, reads a log or draws, so that runs survive such changes."""
    for figure in FIGURES.values():
        for curve in figure.curves:
            if curve.algorithm == "rblspi":
                assert len(sources(curve)) <= 25


def test_in_layers_that_are_left_out_compiled_code_counts():
    folder = Path(rblspi.__file__).parent
    for layer in ("core", "data", "policies"):
        for path in (folder / layer).glob("*.py"):
            if "\n@jit" in path.read_text(encoding="utf-8"):
                assert f"rblspi.{layer}.{path.stem}" in COUNTED


def test_other_algorithms_bases_and_environments_are_no_sources():
    assert not {
        *("rblspi.online.baselines.online_lspi", "rblspi.features.fourier", "rblspi.offline.lspi"),
        *("rblspi.environments.chain_walk", "rblspi.rollout.evaluate"),
    } & set(sources(CURVES[0]))
    assert "rblspi.rollout.evaluate" in sources(replace(CURVES[0], evaluation=1))
    assert "rblspi.rollout.collect" in sources(LSPI)


def test_where_the_basis_is_chosen_what_chooses_it_is_a_source():
    found = sources(replace(CURVES[0], basis={}))
    assert {"rblspi.features.default", "rblspi.features.rbf", "rblspi.features.fourier"} <= set(
        found
    )
    assert code_version(replace(CURVES[0], basis={})) != code_version(CURVES[0])


def test_what_is_left_out_exists():
    assert all(find_spec(name) is not None for name in (*LEFT_OUT, *COUNTED))


def test_the_sources_of_another_package_count(tmp_path, read_again):
    with installed(tmp_path) as package:
        curve = replace(CURVES[0], algorithm="other")
        before = code_version(curve)
        found = sources(curve)
        assert {"other_package.agent", "other_package.numbers", "rblspi.online.rblspi"} <= set(
            found
        )
        assert "other_package.pictures" not in found
        read_again()
        (package / "pictures.py").write_text("COLOUR = 'red'\n")
        assert code_version(curve) == before
        read_again()
        (package / "numbers.py").write_text("PRECISION = 0.25\n")
        assert code_version(curve) != before


def imported(source, package="mine", type_checking=False):
    return {found[:2] for found in module._imports(ast.parse(source), package, type_checking)}


def test_imports_are_found_wherever_they_are():
    source = """
import a.b as c
from d import e as f, g
if True:
    from h import *
def function():
    from .i import j
    from .. import k
"""
    assert imported(source, "mine.inner") == {
        *{("a.b", ""), ("d", "e"), ("d", "g"), ("h", "*")},
        *{("mine.inner.i", "j"), ("mine", "k")},
    }


@pytest.mark.parametrize("test", ["TYPE_CHECKING", "typing.TYPE_CHECKING"])
def test_imports_for_type_checkers_are_skipped(test):
    source = f"if {test}:\n    import a\nelse:\n    import b\n"
    assert imported(source) == {("b", "")}
    assert imported(source, type_checking=True) == {("a", ""), ("b", "")}
    assert imported(source.replace("if ", "if not ")) == {("a", ""), ("b", "")}
