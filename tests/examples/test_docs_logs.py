"""The commands and the Python of docs/logs.md work as they are written there."""

import csv
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.command import run

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """The log of the page: a shop that orders in the morning and sells more on Mondays."""
    rng = np.random.default_rng(0)
    monkeypatch.chdir(tmp_path)
    with open("shop.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["episode", "day", "stock", "weekday", "order", "profit"])
        for episode in range(40):
            stock = 5
            for day in range(30):
                weekday, order = ("Mon", "Tue", "Wed")[day % 3], int(rng.integers(3))
                there = min(stock + 2 * order, 10)
                sold = min(there, int(rng.poisson(6.0 if weekday == "Mon" else 1.0)))
                profit = 2 * sold - 0.3 * there - order
                name = ("none", "small", "large")[order]
                writer.writerow([episode, day, stock, weekday, name, round(profit, 3)])
                stock = there - sold
    return tmp_path


@pytest.mark.slow
def test_the_python_runs(shop):
    names = {}
    for block in blocks("python"):
        exec(compile(block, "logs.md", "exec"), names)
    assert names["search"].best_params_
    assert names["model"].act({"stock": 1, "weekday": "Mon"}) == "large"


@pytest.mark.slow
def test_the_commands_run(shop, capsys):
    text = "\n".join(blocks("sh")).replace("\\\n", "")
    said = []
    for line in text.splitlines():
        if line.startswith("rblspi "):
            assert run(*shlex.split(line, comments=True)[1:]) == 0
            said.append(capsys.readouterr().out)
    (asked,) = (line for line in text.splitlines() if line.startswith("echo"))
    states = shlex.split(asked)[1]
    done = subprocess.run(
        [sys.executable, "policy.py"], input=states, capture_output=True, text=True, check=True
    )
    assert done.stdout == '"large"\n'
    (shown,) = re.findall(r"```\n(role.*?)```", PAGE, re.DOTALL)
    for line in shown.splitlines():
        assert line == "..." or line in said[0], line
    assert os.path.exists("report/data.html")
