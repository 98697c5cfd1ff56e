"""``rblspi fit`` with logs as people have them."""

import csv

import numpy as np
import pytest

from rblspi import LinearPolicy
from tests.support.command import run

SETTINGS = ("--set", "discount=0.5", "--basis", "polynomial:1")


@pytest.fixture
def shop(tmp_path):
    """A CSV file of a shop: large orders pay off on Monday, small ones on other days."""
    rng = np.random.default_rng(0)
    path = tmp_path / "shop.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "day", "stock", "weekday", "order", "profit", "done"])
        for episode in range(40):
            for day in range(10):
                weekday = ("Mon", "Tue")[day % 2]
                order = str(rng.choice(["large", "small"]))
                profit = float((weekday == "Mon") == (order == "large"))
                writer.writerow([episode, day, rng.random(), weekday, order, profit, day == 9])
    return path


def columns(ends):
    return ("--columns", f"action=order,reward=profit,time=day{ends}")


def test_a_csv_file_leads_to_a_policy_with_names(shop, tmp_path, capsys):
    saved = tmp_path / "policy"
    assert run("fit", shop, *columns(",ends=truncated"), *SETTINGS, "--save", saved) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "state (guessed) weekday words: Mon, Tue" in said
    assert "action order 2 words: large, small" in said
    assert "40 last rows of episodes that did not terminate left out" in said
    assert "FQI: 360 transitions" in said
    policy = LinearPolicy.load(saved / "policy.npz")
    assert policy.act({"stock": 0.5, "weekday": "Mon"}) == "large"
    assert policy.act({"stock": 0.5, "weekday": "Tue"}) == "small"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "has no column 'action' for the action, only episode, day, stock"),
        (columns(""), "column done: it may mark terminal states or the cuts of a time limit"),
        (columns(",ends=never"), "ends='never' must be terminated, truncated, or the number of"),
        (
            (*columns(",ends=truncated"), "--env", "CartPole-v1"),
            "the log has the actions large, small, but the environment numbers without names",
        ),
    ],
)
def test_questions_are_asked_in_one_sentence(shop, capsys, arguments, message):
    assert run("fit", shop, *arguments, *SETTINGS, "--quiet") == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
