from dataclasses import replace

from rblspi.experiments.code_version import code_version, fingerprint
from rblspi.experiments.paper import BLSPI, FIGURES, LSPI
from tests.experiments.small import CURVES

SOURCE = '''"""Module."""


def twice(x, y):
    """Double."""
    return 2 * x + y  # why
'''


def test_comments_docstrings_and_layout_do_not_count():
    other = "def twice(\n    x,\n    y,\n):\n    'Twofold.'\n    return (2 * x\n        + y)\n"
    assert fingerprint(other) == fingerprint(SOURCE)


def test_what_the_code_does_counts():
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
    assert len(versions) == 1 + 5 * 2  # chain walk; five environments with two algorithms each
    assert code_version(LSPI) == code_version(BLSPI)
