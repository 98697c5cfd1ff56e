import re
from pathlib import Path

import pytest

from rblspi import RBLSPI
from rblspi.experiments import config
from rblspi.experiments.config import ConfigError, load
from rblspi.experiments.tasks import make_agent
from rblspi.features import RBFGrid, basis_from_settings
from rblspi_paper.figures import FIGURES
from tests.support.experiments import TOML
from tests.support.third_party import installed


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_curve_takes_what_panel_and_file_say_and_overrides_it(tmp_path):
    figure = load(written(tmp_path, TOML))
    a, b = figure.curves
    assert (figure.id, figure.title, figure.measure, figure.block) == ("mine", "Mine", "return", 10)
    shared = {"discount": 0.98, "prior_precision": 0.01, "noise_precision": 0.1}
    assert a.settings == {**shared, "update_every": 20}
    assert (a.label, a.algorithm, a.episodes) == ("a", "rblspi", 30)
    assert (b.label, b.algorithm, b.episodes) == ("b", "online-lspi", 40)
    assert b.settings == shared
    assert a.basis == {"basis": "RBFGrid", "cells": 3}


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "chain"])
def test_a_figure_that_is_written_down_has_the_same_curves(name, tmp_path):
    figure = FIGURES[name]
    again = load(written(tmp_path, config.dump(figure)))
    for what in ("id", "title", "measure", "block", "limits", "ticks"):
        assert getattr(again, what) == getattr(figure, what)
    assert [c.digest for p in again.panels for c in p.curves] == [
        c.digest for p in figure.panels for c in p.curves
    ]
    assert [c.label for c in again.curves] == [c.label for c in figure.curves]


def test_what_is_not_a_learning_curve_cannot_be_written_down():
    with pytest.raises(ConfigError, match="chain is not made of learning curves"):
        config.dump(FIGURES["chain"])


def test_the_example_in_the_documentation_is_an_experiment(tmp_path):
    page = (Path(__file__).parents[2] / "docs/paper/README.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    assert len(load(written(tmp_path, text)).curves) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('measure = "return"', 'measure = "speed"', "measure = 'speed' is none of"),
        ('id = "mine"', 'id = "a/b"', "id = 'a/b'"),
        ("block = 10", "block = 0", "block = 0 must be a whole number"),
        ("block = 10", "evaluation = 2.5", "evaluation = 2.5 must be a whole number"),
        ("block = 10", "ticks = [0, 1]", "ticks = [0, 1] must be positive"),
        ("block = 10", "blocks = 10", "blocks is not a field"),
        ('label = "a"', "label = 3", "panel[1].curve[1].label = 3"),
        ('label = "a"', 'colour = "red"', "panel[1].curve[1].colour is not a field"),
        ('"online-lspi"', '"dqn"', "algorithm = 'dqn' will not do: no algorithm is called"),
        ("episodes = 40", "episodes = -1", "panel[1].curve[2].episodes = -1"),
        ("episodes = 30\n", "", "panel[1].curve[1] has no episodes"),
        ('environment = "rblspi/MountainCar-v0"', "", "panel[1].curve[1] has no environment"),
        ("{ update_every = 20 }", "{ seed = 1 }", "settings = {'seed': 1} must be without seed"),
        ("{ update_every = 20 }", "[1]", "panel[1].curve[1].settings = [1] must be a table"),
        ('{ basis = "RBFGrid", cells = 3 }', "{ cells = 3 }", "basis None is none of"),
        ('"RBFGrid"', '"RBFGrd"', "will not do: basis 'RBFGrd' is none of"),
        ('label = "a"', 'label = "b"', "two curves with the label 'b'"),
        ('label = "a"', 'label = "_a"', "panel[1].curve[1].label = '_a' would not be shown"),
        ('label = "a"', 'label = "a\\nb"', "panel[1].curve[1].label = 'a\\nb' must be one line"),
        ('label = "a"', "label = '$\\frac$'", "will not do"),
        ('title = "first"', "title = '$x^$'", "panel[1].title = '$x^$' will not do"),
        ('id = "mine"', 'id = ".."', "id = '..'"),
        ('id = "mine"', f'id = "{"a" * 101}"', "up to 100 letters"),
        ("block = 10", "limits = [3, 1]", "limits = [3, 1]"),
        ("block = 10", "limits = [nan, 1]", "limits = [nan, 1] must hold finite numbers"),
        ("noise_precision = 0.1", "noise_precision = inf", "must hold finite numbers"),
        ("cells = 3 }", "low = [nan, 0] }", "must hold finite numbers"),
        ("cells = 3 }", "cells = 1979-05-27 }", "must hold finite numbers and words"),
        ("cells = 3 }", "sells = 3 }", "sells"),
        ('{ basis = "RBFGrid", cells = 3 }', '"rbf(8"', "basis = 'rbf(8' will not do"),
        ('{ basis = "RBFGrid", cells = 3 }', "3", "basis = 3 must be a table"),
        ('"online-lspi"', '"lspi"', "panel[1].curve[2].algorithm = 'lspi' does not learn"),
        ('title = "Mine"', "title =", "is not TOML"),
    ],
)
def test_an_error_names_the_file_and_the_field(tmp_path, old, new, message):
    assert old in TOML
    path = written(tmp_path, TOML.replace(old, new))
    with pytest.raises(ConfigError, match=re.escape(str(path))) as caught:
        load(path)
    assert message in str(caught.value)


def test_an_experiment_has_panels_and_curves(tmp_path):
    with pytest.raises(ConfigError, match=r"\[\[panel\]\] is needed"):
        load(written(tmp_path, 'id = "x"'))
    with pytest.raises(ConfigError, match=r"\[\[panel\.curve\]\] is needed"):
        load(written(tmp_path, '[[panel]]\ntitle = "x"'))


def test_a_basis_may_be_written_as_on_the_command_line(tmp_path):
    path = written(tmp_path, TOML.replace('{ basis = "RBFGrid", cells = 3 }', '"rbf:3"'))
    assert basis_from_settings(load(path).curves[0].basis) == RBFGrid(3)


def test_without_a_basis_the_algorithm_chooses_one(tmp_path):
    path = written(tmp_path, TOML.replace('basis = { basis = "RBFGrid", cells = 3 }', ""))
    curve = load(path).curves[0]
    assert curve.basis == {}
    assert make_agent(curve, 0).basis == RBLSPI(curve.environment).basis


@pytest.mark.parametrize("label", ["α = 0.1", "$\\alpha = 1$", "costs 5$", "a_b"])
def test_labels_that_can_be_drawn_are_accepted(tmp_path, label):
    path = written(tmp_path, TOML.replace('label = "a"', f"label = '{label}'"))
    assert load(path).curves[0].label == label


def test_a_curve_without_a_label_is_called_as_its_algorithm(tmp_path):
    path = written(tmp_path, TOML.replace('label = "b"', ""))
    assert load(path).curves[1].label == "online LSPI"


def test_an_algorithm_of_another_package_can_be_named(tmp_path):
    with installed(tmp_path):
        path = written(tmp_path, TOML.replace("online-lspi", "other").replace('label = "b"', ""))
        assert (load(path).curves[1].algorithm, load(path).curves[1].label) == ("other", "Other")
