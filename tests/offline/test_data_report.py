"""What may be wrong with a log is found before anything is learnt from it."""

import numpy as np
import pandas as pd
import pytest

from rblspi.data import Columns, read_log
from rblspi.offline import data_report
from rblspi.plotting import data_page
from tests.support.command import run
from tests.support.logs import some_log

CUT = Columns(ends="truncated")


def clean(rows=600, seed=0):
    """A log in which nothing is wrong: 30 episodes of a random walk."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(rows).cumsum()
    return pd.DataFrame(
        {
            "episode": np.arange(rows) // 20,
            "time": np.arange(rows) % 20,
            "x": x,
            "y": rng.standard_normal(rows),
            "action": rng.choice(["left", "right"], rows),
            "reward": rng.standard_normal(rows),
        }
    )


def words(log):
    return {finding.name: finding.word for finding in data_report(log).findings}


def test_a_clean_log_is_good():
    report = data_report(read_log(clean(), CUT))
    assert report.word == "good", str(report)
    said = str(report)
    assert "transitions  570" in said
    assert "30, of 19 to 19 transitions" in said
    assert report.lengths.tolist() == [19] * 30


FAULTS = {
    "rare actions": ("doubtful", lambda f: f.assign(action=["odd", *f.action[1:]])),
    "duplicates": (
        "doubtful",
        lambda f: pd.concat([f, f.assign(episode=f.episode + 30)], ignore_index=True),
    ),
    "the state knows the reward": ("bad", lambda f: f.assign(score=3 - 2 * f.reward)),
    "the state knows the next one": ("doubtful", lambda f: f.assign(z=f.x.shift(-1).fillna(0))),
    "constant columns": ("doubtful", lambda f: f.assign(site="north")),
    "rewards that differ": ("doubtful", lambda f: f.assign(reward=1.0)),
    "order of rows": ("doubtful", lambda f: f.sample(frac=1.0, random_state=0)),
    "rows without a next state": ("doubtful", lambda f: f.assign(episode=np.arange(600) // 4)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_found_and_no_other(name):
    word, spoil = FAULTS[name]
    found = words(read_log(spoil(clean()), CUT))
    assert found.pop(name) == word
    assert set(found.values()) == {"good"}


def test_a_time_limit_that_is_called_terminal_is_suspected():
    found = words(read_log(clean(), Columns(ends="terminated")))
    assert found.pop("terminated at the same length") == "doubtful"
    assert set(found.values()) == {"good"}
    episodes = np.repeat(np.arange(34), np.arange(34))  # of 1, 2, 3, ... rows
    frame = clean(len(episodes)).assign(episode=episodes, time=np.arange(len(episodes)))
    found = words(read_log(frame, Columns(ends="terminated")))
    assert set(found.values()) == {"good"}


def test_units_change_no_word():
    frame = clean().assign(score=lambda f: f.reward)
    scaled = frame.assign(x=1e6 * frame.x - 5, reward=1e-9 * frame.reward)
    assert words(read_log(frame, CUT)) == words(read_log(scaled, CUT))


def test_arrays_have_a_report_too():
    report = data_report(some_log(500))
    assert report.names == ("state_0", "state_1")
    assert report.facts[0] == ("transitions", "500")


def test_the_page_has_everything_and_runs_nothing(tmp_path):
    frame = clean().assign(site="<script>alert(1)</script>")
    log = read_log(frame, CUT)
    page = data_page.write(data_report(log), tmp_path, str(log), "<script>").read_text()
    assert "<script" not in page
    assert "data:image/svg+xml;base64," in page
    assert "constant columns" in page
    assert {path.name for path in tmp_path.iterdir()} == {"data.html", "data.png", "data.svg"}


def test_the_command_shows_columns_and_report(tmp_path, capsys):
    clean().to_csv(tmp_path / "log.csv", index=False)
    arguments = ("--columns", "ends=truncated", "--out", tmp_path / "page")
    assert run("check", tmp_path / "log.csv", *arguments) == 0
    said = capsys.readouterr().out
    assert "action (guessed)" in said
    assert "data report: good" in said
    assert (tmp_path / "page" / "data.html").exists()
