import gymnasium as gym
import numba
import numpy as np
import pytest
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from rblspi.features import FunctionBasis, RBFGrid, TransformerBasis
from rblspi.features.refinement import with_centres

PLANE = gym.spaces.Box(-1.0, 1.0, (2,), dtype=np.float64)
BATCH = np.random.default_rng(0).uniform(-1.0, 1.0, (30, 2))


def quadratic(observation):
    return [1.0, *observation, observation @ observation]


@numba.njit
def shifted(parameters, observation, out):
    out[0] = 1.0
    for d in range(len(observation)):
        out[1 + d] = observation[d] + parameters[d]


@numba.njit
def returns_something(parameters, observation, out):
    return 1.0


@numba.njit
def does_not_compile(parameters, observation, out):
    out.append(observation)


def test_plain_function():
    features = FunctionBasis(quadratic).build(PLANE)
    assert not features.compiled
    assert features.size == 4
    np.testing.assert_array_equal(features(BATCH), [quadratic(row) for row in BATCH])
    np.testing.assert_array_equal(features(BATCH[0]), quadratic(BATCH[0]))
    assert features(np.empty((0, 2))).shape == (0, 4)


def test_size_is_found_without_touching_the_generator_of_the_space():
    space = gym.spaces.Box(-1.0, 1.0, (2,), seed=3)
    FunctionBasis(quadratic).build(space)
    untouched = gym.spaces.Box(-1.0, 1.0, (2,), seed=3)
    np.testing.assert_array_equal(space.sample(), untouched.sample())


def test_jitted_function_is_called_by_compiled_code():
    features = FunctionBasis(shifted, size=3, parameters=[10.0, 20.0]).build(PLANE)
    assert features.compiled
    expected = np.column_stack([np.ones(30), BATCH + np.array([10.0, 20.0])])
    np.testing.assert_array_equal(features(BATCH), expected)


def test_jitted_function_of_the_observation_alone_works_too():
    features = FunctionBasis(numba.njit(lambda observation: observation * 2.0)).build(PLANE)
    np.testing.assert_array_equal(features(BATCH), BATCH * 2.0)


def test_function_receives_what_the_space_gives():
    table = np.random.default_rng(0).normal(size=(5, 3))
    features = FunctionBasis(lambda state: table[state]).build(gym.spaces.Discrete(5))
    np.testing.assert_array_equal(features(np.arange(5)), table)
    pair = FunctionBasis(lambda s: table[s[0], s[1]]).build(gym.spaces.MultiDiscrete([5, 3]))
    assert pair([4, 2]) == table[4, 2]
    image = FunctionBasis(lambda pixels: pixels.sum(axis=0)).build(gym.spaces.Box(0, 1, (2, 4)))
    np.testing.assert_array_equal(image(np.ones((2, 4))), [2.0] * 4)


def test_function_may_change_its_argument():
    def greedy(observation):
        observation += 1.0
        return observation

    batch = BATCH.copy()
    np.testing.assert_array_equal(FunctionBasis(greedy).build(PLANE)(batch), BATCH + 1.0)
    np.testing.assert_array_equal(batch, BATCH)


@pytest.mark.parametrize(
    ("basis", "message"),
    [
        (FunctionBasis(shifted), "size of shifted is not known.*size="),
        (FunctionBasis(shifted, size=0), "size=0"),
        (FunctionBasis(returns_something, size=1), "returns_something does not compile.*returns"),
        (FunctionBasis(does_not_compile, size=1), "does_not_compile does not compile"),
    ],
)
def test_errors_of_functions(basis, message):
    with pytest.raises(ValueError, match=message):
        basis.build(PLANE)


def test_wrong_size_names_both_numbers():
    with pytest.raises(ValueError, match="quadratic returned 4 features, not 5"):
        FunctionBasis(quadratic, size=5).build(PLANE)


@pytest.mark.parametrize(
    "transformer",
    [
        RBFSampler(n_components=7, random_state=0),
        PolynomialFeatures(3),
        make_pipeline(StandardScaler(), PolynomialFeatures(2)),
    ],
    ids=lambda transformer: type(transformer).__name__,
)
def test_fitted_transformer(transformer):
    transformer.fit(BATCH)
    expected = transformer.transform(BATCH)
    features = TransformerBasis(transformer).build(PLANE)
    assert features.size == expected.shape[1]
    np.testing.assert_array_equal(features(BATCH), expected)
    row = np.empty(features.size)
    features.function(features.parameters, BATCH[3], row)
    np.testing.assert_allclose(row, expected[3], rtol=1e-12)
    np.testing.assert_allclose(features(BATCH[3]), expected[3], rtol=1e-12)
    with_constant = TransformerBasis(transformer, constant=True).build(PLANE)
    np.testing.assert_array_equal(with_constant(BATCH), np.column_stack([expected, np.ones(30)]))


def test_a_batch_is_one_call():
    class Counting:
        calls = 0

        def transform(self, observations):
            self.calls += 1
            return observations

    counting = Counting()
    features = TransformerBasis(counting).build(PLANE)
    counting.calls = 0
    features(BATCH)
    assert counting.calls == 1
    assert features(np.empty((0, 2))).shape == (0, 2)


def test_sparse_output():
    encoder = OneHotEncoder().fit(np.arange(4)[:, None])
    features = TransformerBasis(encoder).build(gym.spaces.Discrete(4))
    np.testing.assert_array_equal(features(np.arange(4)), np.eye(4))


def test_transformer_that_is_not_fitted():
    with pytest.raises(ValueError, match="PolynomialFeatures is not fitted: call its fit"):
        TransformerBasis(PolynomialFeatures(2)).build(PLANE)


def test_transformer_fitted_to_other_observations():
    transformer = PolynomialFeatures(2).fit(np.zeros((1, 3)))
    with pytest.raises(ValueError, match=r"cannot transform observations of Box.*2 features.*3"):
        TransformerBasis(transformer).build(PLANE)


@pytest.mark.parametrize(
    "basis",
    [
        TransformerBasis(PolynomialFeatures(2).fit(BATCH)),
        FunctionBasis(lambda s: [s[0], 2.0, s[1]]),
        with_centres(RBFGrid(3), BATCH, 5),
    ],
)
def test_the_weights_of_the_constant_function_give_one_everywhere(basis):
    features = basis.build(PLANE)
    np.testing.assert_allclose(features(BATCH) @ features.constant, 1.0)


def test_a_function_without_a_constant_has_no_such_weights():
    assert FunctionBasis(lambda s: [s[0], s[1]]).build(PLANE).constant is None
