import re

import pytest

from rblspi.experiments import toml
from rblspi.experiments.toml import ConfigError, load

GOOD = """
id = "mine"
title = "Mine"
measure = "return"
block = 10
environment = "rblspi/MountainCar-v0"
episodes = 30
algorithm = "rblspi"
basis = { basis = "RBFGrid", cells = 3 }
settings = { discount = 0.98, prior_precision = 0.01, noise_precision = 2.0 }

[[panel]]
title = "first"
settings = { noise_precision = 0.1 }

[[panel.curve]]
label = "a"
settings = { update_every = 20 }

[[panel.curve]]
label = "b"
algorithm = "online-lspi"
episodes = 40
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_curve_takes_what_panel_and_file_say_and_overrides_it(tmp_path):
    figure = load(written(tmp_path, GOOD))
    a, b = figure.curves
    assert (figure.id, figure.title, figure.measure, figure.block) == ("mine", "Mine", "return", 10)
    shared = {"discount": 0.98, "prior_precision": 0.01, "noise_precision": 0.1}
    assert a.settings == {**shared, "update_every": 20}
    assert (a.label, a.algorithm, a.episodes) == ("a", "rblspi", 30)
    assert (b.label, b.algorithm, b.episodes) == ("b", "online-lspi", 40)
    assert b.settings == shared
    assert a.basis == {"basis": "RBFGrid", "cells": 3}


def test_the_example_in_the_documentation_is_an_experiment(tmp_path):
    text = toml.__doc__.split("::\n")[1].replace("\n    ", "\n")
    assert len(load(written(tmp_path, text)).curves) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('measure = "return"', 'measure = "speed"', "measure = 'speed' is none of"),
        ('id = "mine"', 'id = "a/b"', "id = 'a/b'"),
        ("block = 10", "block = 0", "block = 0 must be a whole number"),
        ("block = 10", "blocks = 10", "blocks is not a field"),
        ('label = "a"', "label = 3", "panel[1].curve[1].label = 3"),
        ('label = "a"', 'colour = "red"', "panel[1].curve[1].colour is not a field"),
        ('"online-lspi"', '"dqn"', "panel[1].curve[2].algorithm = 'dqn' is none of"),
        ("episodes = 40", "episodes = -1", "panel[1].curve[2].episodes = -1"),
        ("episodes = 30\n", "", "panel[1].curve[1] has no episodes"),
        ('environment = "rblspi/MountainCar-v0"', "", "panel[1].curve[1] has no environment"),
        ("{ update_every = 20 }", "{ seed = 1 }", "panel[1].curve[1].settings.seed"),
        ("{ update_every = 20 }", "[1]", "panel[1].curve[1].settings = [1] must be a table"),
        ('{ basis = "RBFGrid", cells = 3 }', "{ cells = 3 }", "has no field basis"),
        ('"RBFGrid"', '"RBFGrd"', "panel[1].curve[1].basis.basis = 'RBFGrd' is none of"),
        ('label = "a"', 'label = "b"', "two curves with the label 'b'"),
        ("block = 10", "limits = [3, 1]", "limits = [3, 1]"),
        ('title = "Mine"', "title =", "is not TOML"),
    ],
)
def test_an_error_names_the_file_and_the_field(tmp_path, old, new, message):
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(ConfigError, match=re.escape(str(path))) as caught:
        load(path)
    assert message in str(caught.value)


def test_an_experiment_has_panels_and_curves(tmp_path):
    with pytest.raises(ConfigError, match=r"\[\[panel\]\] is needed"):
        load(written(tmp_path, 'id = "x"'))
    with pytest.raises(ConfigError, match=r"\[\[panel\.curve\]\] is needed"):
        load(written(tmp_path, '[[panel]]\ntitle = "x"'))


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.toml")
