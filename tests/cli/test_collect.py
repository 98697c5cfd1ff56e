import pytest

from rblspi.data import read_log
from tests.support.command import run


def test_random_transitions_are_written_with_their_origin(tmp_path, capsys):
    out = tmp_path / "logs" / "car.parquet"
    assert (
        run("collect", "rblspi/MountainCar-v0", "--transitions", 1000, "--seed", 3, "-o", out) == 0
    )
    assert "car.parquet: 1,000 transitions" in capsys.readouterr().out
    data = read_log(out, actions=3)
    assert data.size == sum(chunk.size for chunk in data) == 1000
    assert data.facts.metadata["environment"] == "rblspi/MountainCar-v0"
    assert data.facts.metadata["seed"] == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rblspi/MountainCar-v0", "-o", "car.csv"], "--out car.csv must end in .parquet"),
        (["rblspi/MountanCar-v0", "-o", "a.parquet"], "did you mean rblspi/MountainCar-v0"),
        (
            ["CartPole-v1", "-o", "a.parquet", "--policy", "no.npz"],
            "there is no agent or policy no.npz",
        ),
        (["CartPole-v1", "-o", "a\0.parquet"], "embedded null byte"),
        (
            ["FrozenLake-v1", "-o", "a.parquet", "--env-set", "map_name=2024-01-01"],
            "FrozenLake-v1 cannot be made: KeyError: '2024-01-01'",
        ),
        (
            ["rblspi/ChainWalk-v0", "-o", "a.parquet", "--env-set", f"states={10**400}"],
            "is too large a number",
        ),
    ],
)
def test_faults_end_in_one_sentence(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert run("collect", *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
