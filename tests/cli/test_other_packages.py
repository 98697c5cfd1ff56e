"""Commands that other packages add."""

import pytest

from tests.support.command import run
from tests.support.third_party import installed

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

ENTRY_POINTS = """[rblspi.commands]
hello = greetings.hello:COMMAND
train = greetings.hello:COMMAND
other = greetings.broken:COMMAND
"""


@pytest.fixture
def greetings(tmp_path):
    """A package with a command, one under a name of ours, and one that cannot be imported."""
    with installed(tmp_path, "greetings", MODULES, ENTRY_POINTS):
        yield


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
