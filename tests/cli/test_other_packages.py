"""Commands that other packages add."""

import sys

import pytest

from rblspi import cli
from tests.support.command import run

MODULES = {
    "__init__": "",
    "hello": """
from rblspi.cli.commands import Command

def hello(name: str) -> None:
    \"\"\"Greet somebody.\"\"\"
    if name == "nobody":
        raise ValueError("nobody is there")
    print("hello", name)

COMMAND = Command(hello, "you")
""",
    "broken": "import there_is_no_such_package",
}
pytestmark = [pytest.mark.usefixtures("greetings"), pytest.mark.filterwarnings("default")]

NAMES = ("hello = greetings.hello", "train = greetings.hello", "other = greetings.broken")


@pytest.fixture
def greetings(tmp_path, monkeypatch):
    """A package with a command, one under a name of ours, and one that cannot be imported."""
    package, metadata = tmp_path / "greetings", tmp_path / "greetings-1.0.dist-info"
    for folder in (package, metadata):
        folder.mkdir()
    for name, source in MODULES.items():
        (package / f"{name}.py").write_text(source)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
    lines = ("[rblspi.commands]", *(f"{name}:COMMAND" for name in NAMES))
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    cli.commands.cache_clear()
    yield
    cli.commands.cache_clear()
    for name in [name for name in sys.modules if name.startswith("greetings")]:
        del sys.modules[name]


def test_a_package_adds_a_command(capsys):
    assert run("hello", "you") == 0
    said = capsys.readouterr()
    assert said.out == "hello you\n"
    assert said.err.count("the package greetings is broken, and its command other is left out") == 1
    assert "there_is_no_such_package" in said.err
    assert run("train", "--help") == 0
    assert "Greet" not in capsys.readouterr().out


def test_an_error_of_its_own_is_told_in_its_sentence(capsys):
    assert run("hello", "nobody") == 2
    assert "rblspi: nobody is there" in capsys.readouterr().err
