"""One record says everything about an algorithm; the command line, files and figures read it."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import rblspi
from rblspi import LSPI, RBLSPI, Agent, OneHot, OnlineLSPI, registry
from rblspi.features import basis_from_text
from rblspi.online.factory import default_for
from rblspi.registry import BASES, OURS, Algorithm, algorithm, algorithms, class_of, loaded, name_of

#: what learns from five numbers and more
MANY_NUMBERS = "deep-q" if algorithm("deep-q").available else "optimistic-lsvi"


def test_every_algorithm_of_ours_is_registered_by_its_class():
    classes = {record.name: record.load() for record in OURS if record.available}
    for name, kind in classes.items():
        assert algorithm(name) is algorithms()[name]
        assert kind is getattr(rblspi, kind.__name__)
        assert name_of(kind) == name
        assert issubclass(kind, Agent) == algorithm(name).online


def test_every_basis_of_ours_is_a_name_of_the_library():
    for short, target in BASES.items():
        kind = loaded(target)
        assert kind is getattr(rblspi, kind.__name__)
        assert basis_from_text(short) == kind()


def test_settings_are_the_arguments_that_have_no_place_of_their_own():
    settings = algorithm("rblspi").settings()
    assert settings["discount"] == 0.99
    assert settings["update_every"] == 20
    assert algorithm("online-lspi").settings()["on_policy"] is True
    assert algorithm("blspi").settings()["pessimism"] == 0.0
    for record in filter(lambda record: record.available, OURS):
        own = {"env", "basis", "seed", "actions", "observation_space", "initial_policy"}
        assert own.isdisjoint(record.settings())


def test_an_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"no algorithm is called 'rblpsi': did you mean rblspi"):
        algorithm("rblpsi")
    with pytest.raises(ValueError, match=r"no algorithm is called 'sarsa': choose from rblspi"):
        algorithm("sarsa")


def test_an_unknown_setting_suggests_the_nearest():
    record = algorithm("rblspi")
    record.require_settings(["discount", "update_every"])
    with pytest.raises(ValueError, match="rblspi has no setting 'update_evry': did you mean upda"):
        record.require_settings(["discount", "update_evry"])
    with pytest.raises(ValueError, match="seed is not a setting: it has a place of its own"):
        record.require_settings(["seed"])


def test_a_file_names_its_class_and_only_that_class_reads_it():
    assert class_of("rblspi", Agent) is RBLSPI
    assert class_of("rblspi", RBLSPI) is RBLSPI
    assert class_of("online-lspi", Agent) is OnlineLSPI
    with pytest.raises(
        ValueError, match=r"holds rblspi, not online-lspi: load it with Agent\.load"
    ):
        class_of("rblspi", OnlineLSPI)
    with pytest.raises(ValueError, match="'os:system', an algorithm that is not registered"):
        class_of("os:system", Agent)


def test_a_class_that_is_not_registered_reads_its_own_files():
    class Mine(RBLSPI):
        pass

    assert name_of(Mine) == "Mine"
    assert class_of("Mine", Mine) is Mine
    with pytest.raises(ValueError, match="'Mine', an algorithm that is not registered"):
        class_of("Mine", Agent)
    with pytest.raises(ValueError, match="holds rblspi, not Mine"):
        class_of("rblspi", Mine)


def test_the_registry_imports_no_algorithm():
    code = (
        "import sys; from rblspi.registry import algorithms; assert len(algorithms()) >= 6; "
        "assert not {'numba', 'scipy', 'rblspi.online', 'rblspi.offline'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# Other packages; tests/examples installs a real one -----------------------------------------------


class Entry(NamedTuple):
    """An entry point of another package."""

    name: str
    value: str
    record: Any
    dist: None = None
    module: str = "their_package"

    def load(self):
        if isinstance(self.record, Exception):
            raise self.record
        return self.record


@pytest.fixture
def entries(monkeypatch):
    found = []
    monkeypatch.setattr("rblspi.core.entry_points.entry_points", lambda group: found)
    algorithms.cache_clear()
    yield found
    algorithms.cache_clear()


def test_another_package_adds_an_algorithm(entries, monkeypatch):
    """Its class may be named where it is imported to, and not only where it is defined."""

    class Theirs(RBLSPI):
        pass

    package = ModuleType("their_package")
    package.Exported = Theirs
    monkeypatch.setitem(sys.modules, "their_package", package)
    entries.append(Entry("x", "x:y", Algorithm("theirs", "their_package:Exported", "online")))
    assert list(algorithms())[-1] == "theirs"
    assert algorithm("theirs").load() is Theirs
    assert name_of(Theirs) == "theirs"
    assert class_of("theirs", Agent) is class_of("theirs", RBLSPI) is Theirs
    assert "update_every" in algorithm("theirs").settings()


def test_a_name_of_ours_stays_ours(entries):
    entries.append(Entry("x", "x:y", Algorithm("lspi", "their_package:LSPI", "policy")))
    assert algorithm("lspi").load() is LSPI


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (RBLSPI, "TypeError: their_package:Theirs is not of the class Algorithm"),
        (ModuleNotFoundError("No module named 'x'"), "ModuleNotFoundError: No module named 'x'"),
        (SyntaxError("invalid syntax"), "SyntaxError: invalid syntax"),
    ],
)
def test_a_broken_package_is_named_and_left_out(entries, record, reason, tmp_path):
    entries.append(Entry("theirs", "their_package:Theirs", record))
    entries.append(Entry("x", "x:y", Algorithm("other", "their_package:Other", "online")))
    agent = RBLSPI("rblspi/ChainWalk-v0", OneHot(), seed=0)
    with pytest.warns(UserWarning, match="the package their_package is broken") as warned:
        agent.save(tmp_path / "agent.npz")
    assert reason in str(warned[0].message)
    assert len(warned) == 1
    assert list(algorithms()) == [*(ours.name for ours in OURS), "other"]
    assert isinstance(Agent.load(tmp_path / "agent.npz"), RBLSPI)


def test_a_table_of_observations_is_learnt_by_counting_and_others_with_features():
    spaces = gym.spaces
    assert default_for(spaces.Discrete(500)).name == "opsrl"
    assert default_for(spaces.Tuple([spaces.Discrete(32), spaces.Discrete(11)])).name == "opsrl"
    assert default_for(spaces.Discrete(10**6)).name == "optimistic-lsvi"
    assert default_for(spaces.Discrete(500), basis=OneHot()).name == "optimistic-lsvi"
    assert default_for(spaces.Box(-1.0, 1.0, (2,))).name == "fitted-rmax"
    assert default_for(spaces.Box(-1.0, 1.0, (5,))).name == MANY_NUMBERS
    assert default_for(spaces.Box(-1.0, 1.0, (2,)), basis=rblspi.Network()).name == "deep-q"
    angles = spaces.Box(-np.pi, np.pi, (2,), np.float64)
    assert default_for(angles).name == "fitted-rmax"


def test_the_cosine_and_the_sine_of_an_angle_are_one_number():
    rng = np.random.default_rng(0)
    turns, rest = rng.uniform(-np.pi, np.pi, (100, 2)), rng.uniform(-1.0, 1.0, (100, 2))
    joints = np.column_stack([np.cos(turns[:, 0]), np.sin(turns), np.cos(turns[:, 1]), rest])
    wide = gym.spaces.Box(-1.0, 1.0, (6,))
    assert default_for(wide, lambda: joints).name == "fitted-rmax"
    assert default_for(wide, lambda: np.roll(joints, 3, axis=1)).name == MANY_NUMBERS
    assert default_for(wide).name == MANY_NUMBERS
    more = np.column_stack([joints, rest[:, 0] * rest[:, 1]])
    assert default_for(gym.spaces.Box(-1.0, 1.0, (7,)), lambda: more).name == MANY_NUMBERS
    more[:, -1] = more[:, -2]
    assert default_for(gym.spaces.Box(-1.0, 1.0, (7,)), lambda: more).name == "fitted-rmax"


def test_without_its_packages_an_algorithm_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(registry, "find_spec", lambda module: None)
    assert default_for(gym.spaces.Box(-1.0, 1.0, (5,))).name == "optimistic-lsvi"
    assert "pip install 'rblspi[deep]'" in capsys.readouterr().err
    with pytest.raises(ImportError, match=r"deep-q needs jax and optax: pip install 'rblspi\[deep"):
        algorithm("deep-q").load()


# The factory --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env", "kind"),
    [
        ("FrozenLake-v1", rblspi.OPSRL),
        ("CartPole-v1", rblspi.FittedRmax),
        ("Acrobot-v1", rblspi.FittedRmax),
        ("LunarLander-v3", algorithm(MANY_NUMBERS).load()),
    ],
)
def test_the_factory_makes_the_agent_that_suits_the_observations(env, kind):
    if env == "LunarLander-v3":
        pytest.importorskip("Box2D")
    assert type(rblspi.agent(env, seed=0)) is kind


def test_the_factory_makes_a_named_agent_with_its_settings_and_a_basis():
    basis = rblspi.RBFGrid(3)
    agent = rblspi.agent(
        "rblspi/PuddleWorld-v0", algorithm="rblspi", basis=basis, seed=5, discount=0.9
    )
    assert isinstance(agent, RBLSPI)
    assert (agent.discount, agent.seed, agent.features.size) == (
        0.9,
        5,
        basis.build(agent.env.observation_space).size,
    )
    unnamed = rblspi.agent("rblspi/PuddleWorld-v0", basis=basis, seed=5)
    assert isinstance(unnamed, rblspi.OptimisticLSVI)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"algorithm": "rblpsi"}, "no algorithm is called 'rblpsi': did you mean rblspi"),
        ({"algorithm": "lspi"}, "lspi learns from logged transitions"),
        ({"discont": 0.9}, "fitted-rmax has no setting 'discont': did you mean discount"),
    ],
)
def test_the_factory_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        rblspi.agent("rblspi/PuddleWorld-v0", **arguments)
