import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rblspi.model.buffer import TERMINAL
from rblspi.model.statistics import SORTED_ROWS, accumulate, empty
from tests.support.sums import random_batch, sums_of


def by_definition(x, actions, rewards, y, next_actions, discount, choices):
    """One row at a time, with dense feature vectors of state and action."""
    n = x.shape[1]
    sums = empty(choices, n)
    for i, a in enumerate(actions):
        d = np.zeros(choices * n)
        d[a * n : (a + 1) * n] += x[i]
        if next_actions[i] != TERMINAL:
            b = next_actions[i]
            d[b * n : (b + 1) * n] -= discount * y[i]
        sums.gram[a] += np.outer(x[i], x[i])
        sums.cross[a] += np.outer(x[i], [*d, rewards[i]])
        sums.count[a] += 1
    return sums


def assert_close(sums, columns, rtol):
    expected = by_definition(*columns, 0.9, sums.actions)
    for ours, theirs in zip(sums, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol)


@given(st.integers(2, 40), st.integers(1, 6), st.integers(1, 4), st.integers(0, 2**32))
@settings(max_examples=50, deadline=None)
def test_a_batch_adds_what_the_definition_adds(rows, features, choices, seed):
    columns = random_batch(seed, rows, features, choices)
    assert_close(sums_of(columns, 0.9, choices), columns, 1e-12)
    one, other = ([column[part] for column in columns] for part in (slice(1), slice(1, None)))
    assert_close(sums_of(one, 0.9, choices).merge(sums_of(other, 0.9, choices)), columns, 1e-12)


def test_rows_that_are_sorted_some_at_a_time_add_up():
    rows = 2 * SORTED_ROWS + 17
    columns = random_batch(0, rows, 7, 3)
    sums = sums_of(columns, 0.9, 3)
    assert_close(sums, columns, 1e-10)
    assert sums.count.sum() == rows
    # Two orders of one sum of N products differ by at most N eps times the sum of their sizes.
    norms = np.sqrt(np.diagonal(sums.gram, axis1=1, axis2=2))
    bound = rows * np.finfo(np.float64).eps * norms[:, :, None] * norms[:, None, :]
    assert (np.abs(sums.gram - sums.gram.transpose(0, 2, 1)) <= bound).all()


@st.composite
def whole_sums(draw, features=3, choices=2):
    """Sums over small whole numbers, half of them discounted: every addition is exact."""
    seed, rows = draw(st.integers(0, 2**32)), draw(st.integers(1, 5))
    x, actions, rewards, y, after = random_batch(seed, rows, features, choices)
    return sums_of((np.rint(9 * x), actions, np.rint(9 * rewards), np.rint(9 * y), after), 0.5)


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


@given(whole_sums(), whole_sums(), whole_sums())
@settings(deadline=None)
def test_merging_is_associative_and_commutative_and_has_a_zero(a, b, c):
    assert_same(a.merge(b), b.merge(a))
    assert_same(a.merge(b).merge(c), a.merge(b.merge(c)))
    assert_same(a.merge(empty(2, 3)), a)


def test_what_a_terminal_state_looks_like_does_not_matter():
    *state, y, _ = random_batch(3)
    ends = np.full(len(y), TERMINAL)
    assert_same(sums_of((*state, y, ends)), sums_of((*state, 7 * y, ends)))


def test_sums_of_different_sizes_do_not_merge():
    with pytest.raises(ValueError, match="2 actions x 3 features do not merge with those of 2 x 4"):
        empty(2, 3).merge(empty(2, 4))


def changed(place, value, rows=5):
    columns = list(random_batch(4, rows, 2, 3))
    if isinstance(value, np.ndarray):
        columns[place] = value
    else:
        columns[place] = columns[place].astype(np.result_type(columns[place], type(value)))
        columns[place][3] = value
    return columns


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (0, np.nan, r"x in row 3 is \[nan, nan\]: it must be finite"),
        (3, np.inf, r"y in row 3 is \[inf, inf\]: it must be finite"),
        (2, -np.inf, "rewards in row 3 is -inf: it must be finite"),
        (1, 3, "actions in row 3 is 3: it must lie between 0 and 2"),
        (1, -1, "actions in row 3 is -1"),
        (4, -2, "next_actions in row 3 is -2: it must lie between -1 and 2"),
        (0, np.ones(5), r"x of shape \(5,\) must have shape \(N > 0, 2\)"),
        (0, np.ones((5, 3)), r"x of shape \(5, 3\) must have shape \(N > 0, 2\)"),
        (2, np.ones(4), r"rewards of shape \(4,\) must have shape \(5\)"),
        (0, np.ones((0, 2)), r"x of shape \(0, 2\) must have shape \(N > 0, 2\)"),
    ],
)
def test_a_faulty_batch_is_refused_and_nothing_is_added(place, value, message):
    sums = empty(3, 2)
    with pytest.raises(ValueError, match=message):
        accumulate(sums, *changed(place, value), 0.9)
    assert_same(sums, empty(3, 2))


def test_actions_are_whole_numbers():
    with pytest.raises(TypeError, match="actions of type float64 must be whole numbers"):
        accumulate(empty(3, 2), *changed(1, 0.5), 0.9)


def test_the_discount_is_checked():
    with pytest.raises(ValueError, match=r"discount=1\.5 must lie between 0 and 1"):
        accumulate(empty(3, 2), *changed(2, 0.0), 1.5)


@pytest.mark.parametrize("change", [np.asfortranarray, np.float32])
def test_sums_that_are_not_stored_by_rows_are_refused(change):
    sums = empty(2, 3)
    with pytest.raises(ValueError, match="the sums cross have to be float64 and stored by rows"):
        accumulate(sums._replace(cross=change(sums.cross)), *random_batch(0), 0.9)
