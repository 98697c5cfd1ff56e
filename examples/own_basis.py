"""Use your own basis: a function of the observation, or a fitted scikit-learn transformer."""

from __future__ import annotations

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rblspi import RBLSPI, FunctionBasis, TransformerBasis, evaluate, jit
from rblspi.rollout import collect

POLE = "rblspi/CartPole-v0"


def squares(observation: np.ndarray) -> np.ndarray:
    """All products of two of 1, position, velocity, angle and angular velocity."""
    z = np.append(observation / [2.4, 2.5, 0.5, 2.5], 1.0)
    return np.outer(z, z)[np.triu_indices(5)]


@jit
def compiled_squares(scale: np.ndarray, observation: np.ndarray, out: np.ndarray) -> None:
    """The same products, compiled and written into ``out``: they run inside the compiled loop."""
    k = 0
    for i in range(5):
        for j in range(i, 5):
            left = observation[i] / scale[i] if i < 4 else 1.0
            right = observation[j] / scale[j] if j < 4 else 1.0
            out[k] = left * right
            k += 1


def fitted_transformer() -> TransformerBasis:
    """Random Fourier features, fitted to the observations of 20 random episodes."""
    observations = np.concatenate([chunk.observations for chunk in collect(POLE, episodes=20)])
    pipeline = make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.05, n_components=60, random_state=0)
    )
    return TransformerBasis(pipeline.fit(observations), constant=True)


def main() -> None:
    bases = {
        "function": squares,
        "compiled": FunctionBasis(compiled_squares, 15, parameters=(2.4, 2.5, 0.5, 2.5)),
        "transformer": fitted_transformer(),
    }
    for name, basis in bases.items():
        agent = RBLSPI(POLE, basis, prior_precision=0.01, noise_precision=0.1, seed=0)
        agent.learn(4_000)
        length = evaluate(agent, episodes=10).mean_length
        print(f"{name:12} {agent.features.size} features, balances for {length} steps")


if __name__ == "__main__":
    main()
