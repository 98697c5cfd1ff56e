import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

import rblspi  # noqa: F401  (registers the domains)
from rblspi.environments.base import CompiledEnvironment, Dynamics
from rblspi.environments.chain_walk import ChainWalk
from rblspi.environments.puddle_world import PuddleWorld
from rblspi.environments.rendering import Canvas, box, placed

pytestmark = pytest.mark.slow


def test_a_video_is_recorded(tmp_path):
    environment = gym.wrappers.RecordVideo(
        gym.make("rblspi/CartPole-v0", render_mode="rgb_array"),
        str(tmp_path / "videos"),
        video_length=4,
        disable_logger=True,
    )
    environment.reset(seed=0)
    for _ in range(5):
        environment.step(0)
    environment.close()
    (video,) = tmp_path.glob("videos/*.mp4")
    assert video.stat().st_size > 1000


def test_other_constants_are_drawn():
    for name, arguments, state in (
        ("ChainWalk", {"states": 50, "rewards": [-1.0] + [0.0] * 49}, [25.0]),
        ("MountainCar", {"wall": -3.0, "goal": 1.0}, [0.0, 0.0]),
        ("CartPole", {"edge": 10.0, "length": 2.0}, [0.0, 0.0, 0.0, 0.0]),
        ("PuddleWorld", {"puddles": (), "goal": 0.7}, [0.1, 0.1]),
        ("InvertedPendulum", {"length": 3.0}, [0.3, 0.0]),
        ("DeepSea", {"size": 50}, [77.0, 0.0]),
        ("CombinationLock", {"length": 40, "actions": 20}, [3.0]),
    ):
        environment = gym.make(f"rblspi/{name}-v0", render_mode="rgb_array", **arguments)
        environment.reset(seed=0, options={"state": state})
        assert np.ptp(environment.render()) > 100


def test_the_view_puts_points_where_they_belong_and_keeps_circles_round():
    canvas = Canvas(90, 60, background="white")
    canvas.view(-1.0, 1.0, -1.0, 1.0)
    assert (canvas.left, canvas.right, canvas.bottom, canvas.top) == (-1.5, 1.5, -1.0, 1.0)
    canvas.circle((0.5, 0.5), 0.4, fill="black")
    dark = canvas.picture()[..., 0] < 128
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    assert rows.mean() + 0.5 == pytest.approx(15, abs=0.6)  # a quarter from the top
    assert columns.mean() + 0.5 == pytest.approx(60, abs=0.6)
    assert len(rows) == pytest.approx(24, abs=1)
    assert len(columns) == pytest.approx(24, abs=1)


def test_shapes_are_turned_then_moved():
    np.testing.assert_allclose(
        placed(box(2.0, 1.0), (10.0, 20.0), np.pi / 2),
        [(10, 19), (10, 21), (9, 21), (9, 19)],
        atol=1e-12,
    )


def test_gymnasium_shows_the_pictures_in_a_window(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    with pytest.warns(UserWarning, match="HumanRendering wrapper is being applied"):
        environment = gym.make("rblspi/ChainWalk-v0", render_mode="human")
    environment.reset(seed=0)
    assert pygame.display.get_surface().get_size() == (600, 400)
    environment.step(0)
    environment.close()


def test_making_an_environment_imports_neither_matplotlib_nor_pygame():
    code = (
        "import gymnasium, rblspi, sys; gymnasium.make('rblspi/CartPole-v0').reset(); "
        "print([name for name in ('matplotlib', 'pygame') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_render_mode_is_refused():
    with pytest.raises(ValueError, match="render_mode='ansi'"):
        PuddleWorld(render_mode="ansi")


def test_functions_that_are_not_compiled_are_refused():
    chain = ChainWalk()
    dynamics = Dynamics(chain.dynamics.reset, lambda *_: (0.0, False, False), np.zeros(1), 1)
    with pytest.raises(TypeError, match=r"dynamics\.step is not compiled"):
        CompiledEnvironment(dynamics, chain.observation_space, chain.action_space)
