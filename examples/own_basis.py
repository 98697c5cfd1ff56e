"""A basis of your own: a function of the observation, or a fitted scikit-learn transformer."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from rblspi import RBLSPI, FunctionBasis, TransformerBasis, jit
from rblspi.agents.evaluation import evaluate

POLE = "rblspi/CartPole-v0"


def squares(observation: np.ndarray) -> np.ndarray:
    """All products of two of 1, position, velocity, angle and angular velocity."""
    z = np.append(observation / [2.4, 2.5, 0.5, 2.5], 1.0)
    return np.outer(z, z)[np.triu_indices(5)]


@jit
def compiled_squares(scale: np.ndarray, observation: np.ndarray, out: np.ndarray) -> None:
    """The same, written into ``out`` and compiled: it runs inside the loop at full speed."""
    k = 0
    for i in range(5):
        for j in range(i, 5):
            left = observation[i] / scale[i] if i < 4 else 1.0
            right = observation[j] / scale[j] if j < 4 else 1.0
            out[k] = left * right
            k += 1


def fitted_transformer() -> TransformerBasis:
    """Random Fourier features of scikit-learn, fitted to observations of a random policy."""
    env = gym.make(POLE)
    env.action_space.seed(0)
    observations = []
    for episode in range(20):
        observation, _ = env.reset(seed=episode)
        ended = False
        while not ended:
            observations.append(observation)
            observation, _, terminated, truncated, _ = env.step(env.action_space.sample())
            ended = terminated or truncated
    pipeline = make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.05, n_components=60, random_state=0)
    )
    return TransformerBasis(pipeline.fit(np.array(observations)), constant=True)


def main() -> None:
    bases = {
        "a function": squares,
        "a compiled one": FunctionBasis(compiled_squares, 15, parameters=(2.4, 2.5, 0.5, 2.5)),
        "a transformer": fitted_transformer(),
    }
    for name, basis in bases.items():
        agent = RBLSPI(POLE, basis, prior_precision=0.01, noise_precision=0.1, seed=0)
        agent.learn(4_000)
        length = evaluate(agent, episodes=10).mean_length
        print(f"{name:15} {agent.features.size} features, balances for {length} steps")


if __name__ == "__main__":
    main()
