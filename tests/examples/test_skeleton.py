"""The skeleton of docs/adding-an-algorithm.md works as a package, and the page quotes it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.third_party import write_package

DOCS = Path(__file__).parents[2] / "docs"
SOURCES = sorted((DOCS / "skeleton").glob("*.py"))

IN_PYTHON = """
import numpy as np
from my_package.my_agent import MyAgent
from rblspi import Agent, LinearPolicy, RBFGrid, evaluate

agent = MyAgent("rblspi/MountainCar-v0", RBFGrid(8), seed=0).learn(20_000)
assert evaluate(agent, episodes=10).lengths.mean() < 300
agent.save("sarsa.npz")
loaded = Agent.load("sarsa.npz")
assert type(loaded) is MyAgent
agent.learn(1000), loaded.learn(1000)
assert np.array_equal(agent.state.weights, loaded.state.weights)
agent.policy().save("policy.npz")
assert LinearPolicy.load("policy.npz").provenance["algorithm"] == "my-sarsa"
"""

COMMANDS = """
from rblspi.cli import main

for line in (
    "list algorithms",
    "train rblspi/ChainWalk-v0 --algo my-sarsa --set rate=0.2 --timesteps 500 --save chain --quiet",
    "show chain",
    "reproduce --config mine.toml --runs 2 --jobs 1 --out out",
):
    try:
        main(line.split())
    except SystemExit as end:
        assert not end.code
"""

EXPERIMENT = """
environment = "rblspi/MountainCar-v0"
episodes = 4
block = 2
basis = "rbf:4"
[[panel]]
[[panel.curve]]
algorithm = "my-sarsa"
label = "SARSA"
[[panel.curve]]
algorithm = "online-lspi"
label = "online LSPI"
"""


@pytest.mark.slow
def test_it_works_in_python_commands_experiments_and_figures(tmp_path):
    """In one process, where the skeleton is installed as ``my_package``."""
    modules = {source.stem: source.read_text() for source in SOURCES} | {"__init__": ""}
    entry = "[rblspi.algorithms]\nmy-sarsa = my_package.registration:ALGORITHM\n"
    write_package(tmp_path / "site", "my_package", modules, entry)
    (tmp_path / "mine.toml").write_text(EXPERIMENT)
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IN_PYTHON + COMMANDS],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "--algo my-sarsa" in done.stdout
    assert "rate" in done.stdout.partition("my-sarsa on rblspi/ChainWalk-v0")[2]
    assert (tmp_path / "out" / "figures" / "mine.png").stat().st_size > 10_000
    assert "my-sarsa" in (tmp_path / "out" / "summaries.csv").read_text()


def test_the_page_quotes_the_skeleton():
    code = _lines("".join(source.read_text() for source in SOURCES))
    quotes = re.findall(r"```python\n(.*?)```", (DOCS / "adding-an-algorithm.md").read_text(), re.S)
    assert len(quotes) > 5
    for quote in quotes:
        assert _lines(quote) in code


def _lines(code):
    """The lines of some code without indentation, which depends on where it stands."""
    return "\n".join(line.strip() for line in code.splitlines() if line.strip())
