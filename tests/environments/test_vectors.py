"""Observations of all spaces that hold numbers, as vectors."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Text, Tuple, flatten
from gymnasium.vector.utils import batch_space

from rblspi.environments.spaces import (
    as_vector,
    as_vectors,
    describe_space,
    limits,
    space_from,
    states_of,
    vector_space,
)
from rblspi.features import OneHot, Polynomial, RBFGrid, default_basis

HAND = Tuple((Discrete(32), Discrete(11), Discrete(2)))
MIXED = Dict(
    place=Box(-1.0, 2.0, (2, 2), np.float64),
    inner=Tuple((Discrete(3, start=1), MultiBinary(2))),
    gear=Discrete(4),
)
SPACES = [
    HAND,
    MIXED,
    Dict(cell=MultiDiscrete([3, 4], start=[1, -1]), key=MultiBinary(2)),
    MultiBinary((2, 3)),
    Box(-2, 3, (2,), np.int32),
    Discrete(5, start=2),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_vectors_are_in_their_space_and_batches_are_their_rows(space):
    space.seed(0)
    observations = [space.sample() for _ in range(6)]
    low, high = limits(space)
    rows = np.array([as_vector(space, observation) for observation in observations])
    assert rows.shape == (6, len(low))
    assert ((low <= rows) & (rows <= high)).all()
    batch = batch_space(space, 6)
    stacked = gym.vector.utils.concatenate(
        space, observations, gym.vector.utils.create_empty_array(space, 6)
    )
    assert stacked in batch
    for given in (stacked, observations):
        np.testing.assert_array_equal(np.reshape(as_vectors(space, given), (6, -1)), rows)
    np.testing.assert_array_equal(np.ravel(as_vectors(space, observations[0])), rows[0])
    np.testing.assert_array_equal(as_vectors(space, rows), rows)


def test_parts_of_different_kinds_are_flattened_as_gymnasium_does():
    observation = MIXED.sample()
    np.testing.assert_array_equal(as_vector(MIXED, observation), flatten(MIXED, observation))
    assert vector_space(MIXED) == gym.spaces.flatten_space(MIXED)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_files_describe_every_space(space):
    assert space_from(describe_space(space)) == space


def test_a_file_cannot_nest_spaces_without_end():
    description = describe_space(Discrete(2))
    for _ in range(9):
        description = {"space": "Tuple", "parts": [description]}
    with pytest.raises(ValueError, match="none that a file may describe"):
        space_from(description)


def test_every_combination_has_its_own_place_in_a_table():
    space = Dict(cell=MultiDiscrete([3, 4], start=[1, -1]), key=Discrete(2))
    assert states_of(space) == 24
    assert default_basis(space, lambda: pytest.fail("nothing to scout")) == OneHot(joint=True)
    features = OneHot(joint=True).build(space)
    every = [
        {"cell": np.array([i, j]), "key": k}
        for i in range(1, 4)
        for j in range(-1, 3)
        for k in range(2)
    ]
    rows = features(as_vectors(space, every))
    np.testing.assert_array_equal(rows, np.eye(24))
    np.testing.assert_array_equal(features(np.array([[0, 0, 0], [1, 3, 0]])), 0.0)


def test_tables_are_for_few_combinations():
    default = lambda space: default_basis(space, lambda: pytest.fail("nothing to scout"))  # noqa: E731
    assert default(HAND) == OneHot(joint=True)
    assert default(MultiBinary(9)) == OneHot(joint=True)
    assert default(MultiBinary(10)) == OneHot()
    assert default(MultiDiscrete([100, 100])) == OneHot()
    assert default(Box(0, 9, (2,), np.int64)) == OneHot(joint=True)
    assert isinstance(default(Box(0, 99, (2,), np.int64)), RBFGrid)


def test_images_are_refused_in_a_sentence_and_left_to_bases_of_the_users_own():
    image = Box(0, 255, (84, 84, 3), np.uint8)
    for space in (image, Dict(camera=image, speed=Box(0.0, 1.0))):
        for build in (
            lambda s: default_basis(s, lambda: None),
            RBFGrid().build,
            Polynomial().build,
        ):
            with pytest.raises(TypeError, match=r"has images.*function that makes a vector"):
                build(space)


def test_spaces_without_a_fixed_number_of_numbers_are_refused():
    with pytest.raises(TypeError, match="fixed number of numbers"):
        vector_space(Tuple((Text(5), Discrete(2))))
