"""Every example runs, says what it should, and warns of nothing."""

from pathlib import Path

import pytest

from tests.support.pages import run_script

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


def test_every_example_is_tested():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(SAYS)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAYS)
def test_it_runs(name, tmp_path, monkeypatch, capsys):
    run_script(EXAMPLES / f"{name}.py", tmp_path, monkeypatch)
    printed = capsys.readouterr().out
    for words in SAYS[name]:
        assert words in printed
    if name == "demo":
        written = {path.name for path in (tmp_path / "demo").iterdir()}
        assert {"learning_curves.png", "maps.png"} <= written
