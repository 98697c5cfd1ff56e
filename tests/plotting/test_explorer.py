"""The page to explore: its own arithmetic, its sliders and its pointer, in a browser."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest

from rblspi import (
    RBLSPI,
    Agent,
    FittedRmax,
    Fourier,
    Multilinear,
    OneHot,
    OnlineLSPI,
    Polynomial,
    RBFGrid,
    TileCoding,
)
from rblspi.plotting import explorer
from rblspi.policies import ValuePosterior
from tests.support import browser

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine"),
]

POLE_BOX = {"low": (-2.4, -2.5, -0.21, -2.5), "high": (2.4, 2.5, 0.21, 2.5)}
BASES = [
    RBFGrid(3, **POLE_BOX, width=0.8),
    Fourier(2, **POLE_BOX),
    Polynomial(3, **POLE_BOX),
    TileCoding(2, tilings=3, **POLE_BOX),
]


class Warehouse(gym.Env):
    """Stock of two goods, which are whole numbers."""

    observation_space = gym.spaces.MultiDiscrete([5, 7])
    action_space = gym.spaces.Discrete(2)
    metadata: ClassVar = {
        "observation_names": ["</script><b>bolts</b>", "nuts"],
        "action_names": ["wait", "buy"],
    }

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.stock = np.array([2, 3])
        return self.stock.copy(), {}

    def step(self, action):
        sold = self.np_random.integers(0, 2, size=2)
        self.stock = np.clip(self.stock - sold + action, 0, [4, 6])
        return self.stock.copy(), float(sold.sum() - action), False, False, {}


@pytest.fixture(scope="module")
def page():
    with browser.page() as opened:
        yield opened


@pytest.fixture(scope="module")
def pole() -> RBLSPI:
    return RBLSPI("CartPole-v1", BASES[0], seed=0).learn(400)


def show(page, actor, folder: Path, **options) -> None:
    """Open the page of an actor, and wait until it is drawn."""
    file = explorer.write(actor, folder / "page.html", **options)
    page.events.clear()
    page.open(file.as_uri())
    until(page, "Boolean(window.explorer && explorer.shown)")
    asked = [request["request"]["url"] for request in page.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    for complaint in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
        assert page.told(complaint) == []


def until(page, condition: str) -> None:
    for _ in range(200):
        if page.evaluate(condition):
            return
        time.sleep(0.05)
    raise AssertionError(f"never became true: {condition}")


def in_basis(agent: Agent) -> ValuePosterior:
    """The agent's policy as a file has it: without the second estimate, which needs its memory."""
    return agent.value_posterior().in_basis()


def same(found: dict, said) -> None:
    np.testing.assert_allclose(found["mean"], said.mean, rtol=1e-9, atol=1e-9)
    if said.std is None:
        assert found["std"] is None
    else:  # the page has standard deviations in single precision
        np.testing.assert_allclose(found["std"], said.std, rtol=1e-5)


@pytest.mark.parametrize("basis", BASES, ids=lambda basis: type(basis).__name__)
def test_the_page_computes_action_values_at_any_point(basis, page, tmp_path) -> None:
    agent = RBLSPI("CartPole-v1", basis, seed=0).learn(400)
    show(page, agent, tmp_path)
    points = np.random.default_rng(1).uniform(POLE_BOX["low"], POLE_BOX["high"], (20, 4))
    answers = page.evaluate(f"{json.dumps(points.tolist())}.map((u) => explorer.values.at(u))")
    policy = agent.policy()
    for point, answer in zip(points, answers, strict=True):
        same(answer, in_basis(agent).action_values(point))
        assert answer["action"] == policy.predict(point, deterministic=True)[0]


def test_a_slider_changes_the_map_and_the_pointer_asks_for_values(pole, page, tmp_path) -> None:
    show(page, pole, tmp_path, at=[0.1, 0.2, 0.01, 0.3])
    before = page.evaluate("Array.from(explorer.images.value)")
    page.evaluate("explorer.parts.sliders[2].value = 0.1; explorer.images = null")
    until(page, "Boolean(explorer.images)")
    after = page.evaluate("Array.from(explorer.images.value)")
    assert len(after) == len(before)
    assert np.abs(np.subtract(after, before)).max() > 1e-3
    corner = page.evaluate("[explorer.parts.cells.data.x[0], explorer.parts.cells.data.y[0]]")
    count = page.evaluate("PAGE.resolution")
    half = np.subtract(POLE_BOX["high"], POLE_BOX["low"])[:2] / count / 2
    lowest = [*(corner + half), 0.1, 0.3]
    action, _ = pole.predict(lowest, deterministic=True)
    assert after[0] == pytest.approx(in_basis(pole).action_values(lowest).mean[action])

    frame = "explorer.parts.figures[0].id"
    left, top = page.evaluate(
        f"(() => {{ const view = Bokeh.index.get_by_id({frame}) ?? Bokeh.index[{frame}];"
        "const box = view.canvas_view.el.getBoundingClientRect(), inner = view.frame.bbox;"
        "return [box.left + inner.left + 0.3 * inner.width,"
        "box.top + inner.top + 0.4 * inner.height]; })()"
    )
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=top)
    until(page, "explorer.shown.coordinates[0] !== explorer.point[0]")
    shown = page.evaluate("explorer.shown")
    assert shown["coordinates"][2:] == pytest.approx([0.1, 0.3])
    assert shown["coordinates"][:2] == pytest.approx([-2.4 + 0.3 * 4.8, 2.5 - 0.4 * 5.0], abs=0.1)
    said = in_basis(pole).action_values(shown["coordinates"])
    same(shown, said)
    words = page.evaluate("explorer.parts.says.text")
    for number in (*said.mean, *said.std):
        assert f">{float(f'{number:.4g}'):g}<" in words


def test_the_policy_is_the_plan_and_no_value_is_beyond_what_rewards_allow(page, tmp_path) -> None:
    agent = FittedRmax("CartPole-v1", Multilinear(6), seed=0).learn(600)
    show(page, agent, tmp_path)
    low, high = agent.basis.low, agent.basis.high
    points = np.random.default_rng(1).uniform(low, high, (200, 4))
    answers = page.evaluate(f"{json.dumps(points.tolist())}.map((u) => explorer.values.at(u))")
    np.testing.assert_array_equal(
        [answer["action"] for answer in answers], agent.predict(points, deterministic=True)[0]
    )
    assert any(  # otherwise nothing was tested
        answer["action"] != np.argmax(answer["mean"]) for answer in answers
    )
    said = in_basis(agent).action_values(points).mean
    found = np.array([answer["mean"] for answer in answers])
    np.testing.assert_allclose(found, said, rtol=1e-9)
    assert found.min() >= 1.0  # every step brings 1, and the discount is 0.99
    assert found.max() <= 100.0 + 1e-9
    bars = page.evaluate("[explorer.parts.actions.data.low, explorer.parts.actions.data.high]")
    assert np.min(bars) >= 1.0
    assert np.max(bars) <= 100.0 + 1e-9


def test_other_dimensions_can_be_drawn(pole, page, tmp_path) -> None:
    show(page, pole, tmp_path, at=[0.1, 0.2, 0.01, 0.3], names=["a", "b", "c", "d"])
    page.evaluate("explorer.parts.x.value = '3'")
    until(page, "explorer.parts.figures[0].below[0].axis_label === 'd'")
    assert page.evaluate("explorer.parts.sliders.map((slider) => slider.visible)") == [
        *(True, False, True, False)
    ]
    page.evaluate("explorer.parts.y.value = '3'")  # then the other axis gets what this one had
    assert page.evaluate("explorer.axes") == [1, 3]


@pytest.mark.parametrize(
    ("environment", "dimensions"), [("FrozenLake-v1", 2), ("rblspi/ChainWalk-v0", 1)]
)
def test_discrete_states_are_listed(environment, dimensions, page, tmp_path) -> None:
    agent = RBLSPI(environment, seed=0).learn(500)
    show(page, agent, tmp_path)
    assert page.evaluate("PAGE.names.length") == dimensions
    states = np.arange(agent.features.size)
    points = [[s % 4, s // 4] if dimensions == 2 else [s] for s in states.tolist()]
    answers = page.evaluate(f"{json.dumps(points)}.map((u) => explorer.values.at(u))")
    for state, answer in zip(states, answers, strict=True):
        same(answer, in_basis(agent).action_values(state))


def test_whole_numbers_and_names_that_look_like_html(page, tmp_path) -> None:
    agent = OnlineLSPI(gym.wrappers.TimeLimit(Warehouse(), 20), OneHot(), seed=0).learn(200)
    show(page, agent, tmp_path, env=gym.wrappers.TimeLimit(Warehouse(), 20))
    page.evaluate("explorer.ask(1.2, 3.9)")
    shown = page.evaluate("explorer.shown")
    assert shown["coordinates"] == [1, 4]
    same(shown, in_basis(agent).action_values([1, 4]))
    assert "&lt;/script&gt;&lt;b&gt;bolts&lt;/b&gt; = 1" in page.evaluate(
        "explorer.parts.says.text"
    )
    assert "buy" in page.evaluate("document.title + explorer.parts.says.text")


def test_a_page_that_is_read_again_keeps_what_was_chosen(pole, page, tmp_path) -> None:
    show(page, pole, tmp_path, reload=3600.0)
    assert "location.reload(), 3600000" in (tmp_path / "page.html").read_text(encoding="utf-8")
    page.evaluate("explorer.parts.sliders[3].value = 1; explorer.parts.x.value = '2'")
    until(page, "explorer.pending === null && explorer.axes[0] === 2")
    show(page, pole, tmp_path)
    assert page.evaluate("[explorer.point[3], explorer.axes]") == [1, [2, 1]]
