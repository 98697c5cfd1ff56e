import math

import numpy as np
import pytest

from rblspi.environments.puddle_world import DOWN, LEFT, RIGHT, UP, PuddleWorld


def at(state, **arguments):
    world = PuddleWorld(**arguments)
    world.reset(seed=0, options={"state": state})
    return world


@pytest.mark.parametrize(
    ("point", "depth"),
    [
        ((0.3, 0.75), 0.1),  # in the middle of the horizontal puddle
        ((0.3, 0.69), 0.04),  # 0.06 below its middle
        ((0.45, 0.4), 0.1),  # at the lower end of the vertical one
        ((0.45, 0.33), 0.03),  # below that end
        ((0.5, 0.5), 0.05),  # beside the vertical one
        ((0.04, 0.67), 0.0),  # 0.1 from the left end: 0.06 across, 0.08 down
        ((0.06, 0.72), 0.05),  # 0.05 from it: 0.04 across, 0.03 down
        ((0.42, 0.72), 0.07),  # 0.03 from both: not added up
        ((0.2, 0.2), 0.0),
        ((0.7, 0.75), 0.0),
    ],
)
def test_depth_and_reward_by_hand(point, depth):
    world = at(point, move=0.0, noise=0.0)
    assert world.depth(*point) == pytest.approx(depth, abs=1e-12)
    assert world.step(UP)[1] == pytest.approx(-1 - 400 * depth, abs=1e-9)


@pytest.mark.parametrize(
    ("action", "move"),
    [(UP, (0, 0.05)), (DOWN, (0, -0.05)), (LEFT, (-0.05, 0)), (RIGHT, (0.05, 0))],
)
def test_moves_and_their_noise(action, move):
    world = at([0.7, 0.2])
    arrivals = np.empty((2000, 2))
    for arrival in arrivals:
        world.state[:] = 0.7, 0.2
        arrival[:] = world.step(action)[0]
    error = 0.01 / math.sqrt(2000)
    np.testing.assert_allclose(arrivals.mean(axis=0), np.add((0.7, 0.2), move), atol=5 * error)
    np.testing.assert_allclose(arrivals.std(axis=0), 0.01, rtol=5 / math.sqrt(2 * 2000))
    assert abs(np.corrcoef(arrivals.T)[0, 1]) < 5 / math.sqrt(2000)


def test_the_edges_hold():
    assert at([0.7, 0.01], noise=0.0).step(DOWN)[0].tolist() == [0.7, 0.0]
    assert at([0.01, 0.1], noise=0.0).step(LEFT)[0].tolist() == [0.0, 0.1]
    assert at([0.98, 0.1], noise=0.0).step(RIGHT)[0].tolist() == [1.0, 0.1]
    assert at([0.1, 0.98], noise=0.0).step(UP)[0].tolist() == [0.1, 1.0]


def test_the_goal_ends_the_episode_with_zero():
    assert at([0.93, 0.93], noise=0.0).step(RIGHT)[1:4] == (0.0, True, False)
    assert at([0.90, 0.93], noise=0.0).step(RIGHT)[1:4] == (-1.0, False, False)
    # clipped to (1, 0.88): the sum before clipping does not count
    assert at([0.99, 0.88], noise=0.0).step(RIGHT)[1:4] == (-1.0, False, False)


def test_starts_are_uniform_outside_the_puddles_and_the_goal():
    world = PuddleWorld()
    starts = np.array([world.reset(seed=0)[0], *(world.reset()[0] for _ in range(3999))])
    assert all(world.depth(x, y) == 0 for x, y in starts)
    assert (starts.sum(axis=1) < 1.9).all()
    # Two regions without puddles or goal, of the same size, are as likely.
    left = ((starts < (0.3, 0.6)).all(axis=1)).sum()
    right = ((starts >= (0.7, 0.0)) & (starts < (1.0, 0.6))).all(axis=1).sum()
    assert abs(left - right) < 5 * math.sqrt(left + right)
    # The free area: the square less the two capsules (their union, by a grid) and the corner.
    middles = (np.arange(200) + 0.5) / 200
    free = np.mean([x + y < 1.9 and world.depth(x, y) == 0 for x in middles for y in middles])
    assert left / 4000 == pytest.approx(0.18 / free, abs=5 * math.sqrt(0.22 * 0.78 / 4000))


def test_the_first_start_outside_is_taken():
    with_puddles, without = PuddleWorld(), PuddleWorld(puddles=())
    assert any(
        (with_puddles.reset(seed=seed)[0] != without.reset(seed=seed)[0]).any()
        for seed in range(50)
    )
