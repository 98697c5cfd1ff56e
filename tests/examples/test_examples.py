"""Every example runs, says what it should, and warns of nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SAYS = {
    "own_environment": ["Table-v0", "CompiledTable-v0"],
    "own_basis": ["15 features", "61 features"],
    "resume": ["equal to an uninterrupted run: True"],
    "textbook": ["its weights after 2000 steps are those of RBLSPI to"],
    "uncertainty_map": ["the best with probability", "puddle_world.png"],
    "compare": ["RBLSPI", "online LSPI"],
    "from_logs": ["the policy balances for", "its true value: 5.421"],
    "demo": ["RBLSPI", "online LSPI", "500 steps", "demo/maps.png"],
}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_it_runs(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for words in SAYS[name]:
        assert words in done.stdout
    if name == "demo":
        written = {path.name for path in (tmp_path / "demo").iterdir()}
        assert {"learning_curves.png", "maps.png"} <= written
