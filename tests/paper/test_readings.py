import gymnasium as gym
import numpy as np
import pytest

from rblspi.experiments.definitions import unique
from rblspi.experiments.tasks import rehearse
from rblspi.features import basis_from_settings
from rblspi_paper import figures as paper
from rblspi_paper.claims import Scope
from rblspi_paper.figures import FIGURES
from rblspi_paper.readings import (
    DEFAULT,
    FACTORS,
    SOURCES,
    in_full,
    name_of,
    one_at_a_time,
    parse,
    read_as,
    rescoped,
)

CURVES = unique(curve for figure in FIGURES.values() for curve in figure.curves)


def changed(reading):
    return [c for c in CURVES if read_as(reading, c).digest != c.digest]


@pytest.mark.parametrize("factor", FACTORS.values(), ids=lambda factor: factor.name)
def test_the_default_is_what_the_figures_have_and_every_other_level_is_not(factor):
    assert not changed({factor.name: factor.default})
    for level in factor.levels[1:]:
        reading = {factor.name: level}
        assert changed(reading) or rescoped(reading, Scope()) != Scope()
    names = [level.name for level in factor.levels]
    assert len(set(names)) == len(names) >= 2
    assert all(level.says and level.source for level in factor.levels)


def test_a_reading_leaves_different_curves_different():
    for reading in (*one_at_a_time(), *SOURCES.values()):
        assert len(unique(read_as(reading, curve) for curve in CURVES)) == len(CURVES)


def test_a_reading_is_parsed_and_named_in_any_order():
    assert parse(["centres=cell"]) == DEFAULT
    assert name_of(DEFAULT) == "default"
    texts = ["limit=ends", "centres=edge"]
    assert name_of(parse(texts)) == name_of(parse(texts[::-1])) == "centres=edge + limit=ends"


def test_a_source_is_followed_throughout():
    followed = parse(["busoniu"])
    assert followed == parse(["centres=edge", "width=0.71", "epsilon=slow", "diagonal=1e-3"])
    assert name_of(followed) == "busoniu"
    assert parse(["beliefbox"]) == parse(
        ["pendulum-range=90-10", "pole-range=6", "pendulum-start=0.01"]
    )
    assert in_full(parse(["lagoudakis-parr", "limit=ends"])) == (
        "centres=edge + width=unit + limit=ends"
    )


def test_the_letter_of_the_paper_keeps_what_the_paper_says_elsewhere():
    """K = 500 is the end of an episode there, and the chain has the code of Lagoudakis and Parr."""
    assert in_full(SOURCES["to-the-letter"]) == (
        "pendulum-range=90 + count=from-zero + pole-force=1"
    )


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["centres"], "must be FACTOR=LEVEL"),
        (["centers=edge"], "did you mean centres"),
        (["centres=egde"], "did you mean edge"),
        (["centres=edge", "centres=cell"], "centres is given twice"),
        (["centres=edge", "busoniu"], "centres is given twice"),
    ],
)
def test_a_mistake_in_a_reading_is_told(texts, message):
    with pytest.raises(ValueError, match=message):
        parse(texts)


@pytest.mark.parametrize(
    "texts", [["width=unit"], ["width=unit", "centres=edge"], ["width=unit", "pendulum-range=90"]]
)
@pytest.mark.parametrize("cells", [3, 5])
def test_a_unit_width_is_one_standard_deviation_whatever_the_grid(texts, cells):
    """Along one dimension, two states 1 apart: ln phi is quadratic with the factor -1/2."""
    curve = read_as(parse(texts), paper.rblspi(paper.pendulum(cells), 20, 0.1, 10.0))
    space = gym.spaces.Box(-np.inf, np.inf, (2,))
    phi = basis_from_settings(curve.basis).build(space)
    for direction in np.eye(2):
        logs = np.log([phi(h * direction)[:-1] for h in (-1.0, 0.0, 1.0)])
        np.testing.assert_allclose(logs[0] - 2 * logs[1] + logs[2], -1.0, rtol=1e-9)


def test_slow_epsilon_is_a_twentieth_after_24000_steps():
    curve = read_as(parse(["epsilon=slow"]), paper.online_lspi(paper.CAR, 20))
    assert curve.settings["epsilon_decay"] ** 24_000 == pytest.approx(0.05)


@pytest.mark.parametrize("order", [1, -1])
def test_500_transitions_are_counted_from_zero_as_well(order):
    reading = parse(["count=from-zero", "k500=steps"][::order])
    curve = read_as(reading, paper.rblspi(paper.CAR, "episode", 0.1, 1.0))
    assert (curve.settings["update_every"], curve.settings["first_update"]) == (500, 1)


def test_other_alphas_share_the_curves_that_both_have():
    domain = paper.CART_POLE
    lower = read_as(parse(["alphas=lower"]), paper.rblspi(domain, 20, 0.01, 1.0))
    assert lower == paper.rblspi(domain, 20, 0.001, 1.0)
    pendulum = paper.rblspi(paper.pendulum(3), 20, 0.1, 1.0)
    assert read_as(parse(["alphas=lower"]), pendulum) == pendulum


@pytest.mark.slow
@pytest.mark.parametrize("reading", [*one_at_a_time()[1:], *SOURCES.values()], ids=name_of)
def test_algorithms_and_environments_accept_what_a_reading_asks_for(reading):
    kinds = {(c.algorithm, c.environment, c.settings.get("update_every")): c for c in CURVES}
    for curve in changed(reading):
        if curve in kinds.values():
            rehearse(read_as(reading, curve))
