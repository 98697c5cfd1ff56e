import gymnasium as gym
import numpy as np
import pytest

from rblspi.features import OneHot


@pytest.mark.parametrize("start", [0, 1, -3])
def test_is_the_identity(start):
    features = OneHot().build(gym.spaces.Discrete(6, start=start))
    np.testing.assert_array_equal(features(np.arange(start, start + 6)), np.eye(6))


def test_components_stand_side_by_side():
    features = OneHot().build(gym.spaces.MultiDiscrete([2, 3], start=[0, 5]))
    assert features.size == 5
    np.testing.assert_array_equal(features([1, 7]), [0, 1, 0, 0, 1])
    np.testing.assert_array_equal(features([[0, 5], [1, 6]]), [[1, 0, 1, 0, 0], [0, 1, 0, 1, 0]])


def test_a_value_not_in_the_space_has_no_feature():
    features = OneHot().build(gym.spaces.Discrete(3, start=1))
    np.testing.assert_array_equal(features([0, 4]), np.zeros((2, 3)))


def test_a_box_is_refused():
    with pytest.raises(TypeError, match=r"OneHot needs a Discrete.*TileCoding"):
        OneHot().build(gym.spaces.Box(0.0, 1.0, (2,)))
