"""The page to explore, in a browser: it says what the library says, for every basis there is."""

from __future__ import annotations

import asyncio
import threading
import time
from functools import cache, partial
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pandas as pd
import pytest

from rblspi import FQI, RBLSPI, OneHot, OnlineLSPI, RBFGrid
from rblspi.plotting import explorer
from rblspi.plotting.domain import find
from rblspi.plotting.maps import ask
from tests.conformance.test_bases import CASES
from tests.support import browser
from tests.support.logs import episode_rows
from tests.support.values import any_policy

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(browser.find() is None, reason="no Chromium on this machine"),
]

POLE = RBFGrid(3, low=(-2.4, -2.5, -0.21, -2.5), high=(2.4, 2.5, 0.21, 2.5), width=0.8)
FIND = (
    "const find = (name) => [...Bokeh.documents[0].roots()[0].references()]"
    ".find((model) => model.name === name || model.title === name);"
)


class Drifting(gym.Env):
    """Eight numbers that drift, as many as LunarLander-v3 has, which needs a package of its own."""

    observation_space = gym.spaces.Box(-2.0, 2.0, (8,))
    action_space = gym.spaces.Discrete(4)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = self.np_random.uniform(-1, 1, 8).astype(np.float32)
        return self.at, {}

    def step(self, action):
        drift = 0.1 * self.np_random.normal(size=8) + 0.05 * np.eye(8)[action]
        self.at = np.clip(self.at + drift, -2, 2).astype(np.float32)
        return self.at, -float(np.abs(self.at).sum()), False, False, {}


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


def of_basis(basis, space):
    """A policy with any weights."""
    return explorer.known(any_policy(basis, space))


def of_agent(env):
    policy = RBLSPI(env, seed=0).learn(300).policy()
    return explorer.known(policy, find(policy, env))


def of_words():
    """The values of a policy from a log in which a state has a word."""
    policy = FQI(RBFGrid(2), discount=0.8).fit(pd.DataFrame(episode_rows(40))).policy()
    return explorer.known(policy)


def of_warehouse():
    env = gym.wrappers.TimeLimit(Warehouse(), 20)
    agent = OnlineLSPI(env, OneHot(), seed=0).learn(200)
    return explorer.known(agent, find(agent, env))


#: what is served, by the path of its page; each is made when it is asked for
SHOWN = {
    **{f"basis{i}": cache(partial(of_basis, *case)) for i, case in enumerate(CASES)},
    "acrobot": cache(lambda: of_agent("Acrobot-v1")),
    "eight": cache(lambda: of_agent(gym.wrappers.TimeLimit(Drifting(), 50))),
    "lake": cache(lambda: of_agent("FrozenLake-v1")),
    "chain": cache(lambda: of_agent("rblspi/ChainWalk-v0")),
    "words": cache(of_words),
    "warehouse": cache(of_warehouse),
    "pole": cache(lambda: explorer.known(RBLSPI("CartPole-v1", POLE, seed=0).learn(400))),
}
#: what an application is asked for next, in place of what it shows
NEXT = {}


@pytest.fixture(scope="module")
def site():
    """The address of a server with a page for everything that is shown."""
    from bokeh.server.server import Server

    started, servers = threading.Event(), []

    async def serve():
        apps = {
            f"/{name}": explorer.app(lambda name=name: NEXT.get(name) or SHOWN[name]())
            for name in SHOWN
        }
        servers.append(Server(apps, address="localhost", port=0))
        servers[0].start()
        ended = asyncio.Event()
        servers.extend([asyncio.get_running_loop(), ended])
        started.set()
        await ended.wait()
        servers[0].stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(60)
    server, loop, ended = servers
    yield f"http://localhost:{server.port}"
    loop.call_soon_threadsafe(ended.set)
    thread.join()


@pytest.fixture(scope="module")
def page():
    with browser.page() as opened:
        yield opened


def show(page, address):
    """Open a page, and wait until its values are there."""
    page.events.clear()
    page.open(address)
    until(page, "typeof Bokeh === 'object' && Boolean(Bokeh.documents[0]?.is_idle)")


def require_quiet(page, *schemes):
    """Nothing was asked of the network, and nobody complained."""
    asked = [request["request"]["url"] for request in page.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith((*schemes, "data:", "blob:"))] == []
    assert page.complaints() == []


def until(page, condition):
    for _ in range(1200):
        if page.evaluate(condition):
            return
        time.sleep(0.05)
    raise AssertionError(f"never became true: {condition}")


def of_page(page, expression):
    return page.evaluate(f"(() => {{ {FIND} return {expression}; }})()")


def require_values(page, known, point):
    """The page has the values of the library at a point."""
    domain = known.domain._replace(point=np.asarray(point, np.float64))
    pairs = zip(domain.coordinates, domain.point, strict=True)
    place = ", ".join(f"{each.name} = {each.text(value)}" for each, value in pairs)
    place = f"<p>{explorer.html.text(place)}."
    until(page, f"(() => {{ {FIND} return find('words').text.includes({place!r}); }})()")
    said = ask(known.policy, domain, domain.point[None])
    shown = of_page(page, "Array.from(find('values').data.mean)")
    np.testing.assert_allclose(shown, said.mean[0], rtol=1e-12, atol=1e-12)
    if said.std is not None:
        words = of_page(page, "find('words').text")
        assert all(f">{std:.4g}<" in words for std in said.std[0])


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_says_what_the_library_says_also_after_a_control_has_moved(name, page, site):
    show(page, f"{site}/{name}")
    known = SHOWN[name]()
    require_values(page, known, known.domain.point)
    point, last = known.domain.point.copy(), known.domain.coordinates[-1]
    point[-1] = last.points(5)[1 if point[-1] != last.points(5)[1] else 2]
    moved = f"find('control {len(point) - 1}')"
    of_page(page, f"{moved}.value = {moved}.options ? {str(point[-1])!r} : {point[-1]}")
    require_values(page, known, point)
    require_quiet(page, site, site.replace("http", "ws"))


def test_words_and_whole_numbers_are_chosen_from_lists_and_drawn_where_they_can_be(page, site):
    show(page, f"{site}/words")
    domain = SHOWN["words"]().domain
    (place,) = [d for d, each in enumerate(domain.coordinates) if each.words]
    options = of_page(page, f"find('control {place}').options")
    assert [label for _, label in options] == ["Mon", "Tue", "Wed"]
    shape = of_page(page, "find('cells').data.value[0].shape")
    assert 3 in shape
    show(page, f"{site}/warehouse")
    assert of_page(page, "find('cells').data.value[0].shape") == [7, 5]
    names = of_page(page, "find('words').text")
    assert "&lt;/script&gt;&lt;b&gt;bolts&lt;/b&gt;" in names


def test_the_pointer_moves_the_point(page, site):
    show(page, f"{site}/pole")
    left, top = page.evaluate(
        f"(() => {{ {FIND} const map = find('map value');"
        "const view = Bokeh.index.find_one(map);"
        "const box = view.canvas_view.el.getBoundingClientRect(), inner = view.frame.bbox;"
        "return [box.left + inner.left + 0.3 * inner.width,"
        "box.top + inner.top + 0.4 * inner.height]; })()"
    )
    page.ask("Input.dispatchMouseEvent", type="mouseMoved", x=left, y=top)
    known = SHOWN["pole"]()
    until(page, f"(() => {{ {FIND} return find('control 0').value < -0.5; }})()")
    point = [of_page(page, f"find('control {d}').value") for d in range(4)]
    assert point[:2] == pytest.approx([-2.4 + 0.3 * 4.8, 2.5 - 0.4 * 5.0], abs=0.1)
    np.testing.assert_array_equal(point[2:], known.domain.point[2:])
    require_values(page, known, point)


def test_a_slider_changes_the_map_and_other_coordinates_can_be_drawn(page, site):
    show(page, f"{site}/pole")
    values = "Array.from(find('cells').data.value[0])"
    before = of_page(page, values)
    of_page(page, "find('control 2').value = 0.1")
    until(page, f"(() => {{ {FIND} return {values}.some((v, i) => v !== {before}[i]); }})()")
    of_page(page, "find('from left to right').value = '3'")
    label = "find('map value').below[0].axis_label"
    until(page, f"(() => {{ {FIND} return {label} === 'pole angular velocity'; }})()")
    of_page(page, "find('from bottom to top').value = '3'")  # the other axis gets what was here
    until(page, f"(() => {{ {FIND} return {label} === 'cart velocity'; }})()")


def test_a_run_that_learns_on_is_followed_and_what_was_chosen_stays(page, site):
    show(page, f"{site}/pole")
    of_page(page, "find('control 3').value = 1")
    first = SHOWN["pole"]()
    point = [*first.domain.point[:3], 1.0]
    require_values(page, first, point)
    NEXT["pole"] = explorer.known(RBLSPI("CartPole-v1", POLE, seed=1).learn(300))
    until(page, f"(() => {{ {FIND} return find('lead').text.includes('After 300'); }})()")
    require_values(page, NEXT.pop("pole"), point)


def test_a_still_page_is_one_file_that_needs_no_network(page, tmp_path):
    agent = RBLSPI("CartPole-v1", POLE, seed=0).learn(400)
    file = explorer.write(agent, tmp_path / "page.html")
    show(page, file.as_uri())
    require_quiet(page, "file:")
    known = explorer.known(agent)
    require_values(page, known, known.domain.point)
    kinds = of_page(page, "[...Bokeh.documents[0].roots()[0].references()].map((m) => m.type)")
    assert kinds.count("TabPanel") == 6  # pairs of four numbers
    assert not {"CustomJS", "Slider", "Select"} & {*kinds}
