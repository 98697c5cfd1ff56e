"""The greedy policy is evaluated on the way, and the run is what it would be without that."""

from dataclasses import replace

import numpy as np
import pytest

from rblspi import evaluate
from rblspi.experiments.definitions import Run
from rblspi.experiments.results import read
from rblspi.experiments.results_store import Store
from rblspi.experiments.runner import missing, run_all
from rblspi.experiments.tasks import checkpoints, execute, make_agent
from rblspi.plotting import page
from tests.support.experiments import CURVES, figure_of, one_thread

pytestmark = pytest.mark.slow

PLAIN = CURVES[0]
EVALUATED = replace(PLAIN, evaluation=2)


def test_checkpoints_end_with_the_run_and_do_not_repeat():
    assert checkpoints(1) == [1]
    assert checkpoints(3) == [1, 2, 3]
    assert checkpoints(12) == [2, 3, 4, 5, 6, 8, 9, 10, 11, 12]
    assert checkpoints(1000) == list(range(100, 1001, 100))


def test_an_evaluation_changes_no_bit_of_the_run():
    plain, evaluated = execute(Run(PLAIN, 1)).arrays, execute(Run(EVALUATED, 1)).arrays
    for name in plain:
        assert plain[name].tobytes() == evaluated[name].tobytes()
    agent = make_agent(PLAIN, 1).learn(episodes=PLAIN.episodes)
    last = evaluate(agent, episodes=2, seed=1)
    assert evaluated["greedy_length"][-1] == last.lengths.mean()
    assert evaluated["greedy_return"][-1] == last.returns.mean()


def test_the_report_shows_the_greedy_policy_beside_the_training(tmp_path):
    assert EVALUATED.digest != PLAIN.digest
    figure = figure_of([EVALUATED, CURVES[2]])
    with Store(tmp_path / "results.sqlite") as store:
        run_all(missing(store, figure.curves, 2), store, one_thread, 1)
        result = read(store, figure)
    (greedy,) = result.greedy.values()
    np.testing.assert_array_equal(greedy.episodes, checkpoints(12))
    means = result[EVALUATED].arrays["greedy_length"].mean(axis=0)
    np.testing.assert_allclose(greedy.mean, means)
    written = page.write([result], tmp_path / "report").read_text(encoding="utf-8")
    assert "2 episodes of the greedy policy" in written
    assert "greedy at the end" in written
