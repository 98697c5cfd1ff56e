"""
A scikit-learn pipeline as basis
================================

A fitted transformer of scikit-learn can be passed wherever a basis is asked for. Here a scaler and
random Fourier features are fitted to observations of random actions, which suits observations
without natural bounds.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rblspi import RBLSPI, TransformerBasis, evaluate
from rblspi.plotting import style
from rblspi.rollout import collect

POLE = "rblspi/CartPole-v0"
observations = np.concatenate([chunk.observations for chunk in collect(POLE, episodes=30)])

# %%

pipelines = {
    "random Fourier": make_pipeline(
        StandardScaler(), RBFSampler(gamma=0.05, n_components=50, random_state=0)
    ),
    "Nystroem": make_pipeline(
        StandardScaler(), Nystroem(gamma=0.05, n_components=50, random_state=0)
    ),
    "polynomials": make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False)),
}
curves = {}
for name, pipeline in pipelines.items():
    basis = TransformerBasis(pipeline.fit(observations), constant=True)
    agent = RBLSPI(POLE, basis, seed=0).learn(3_000)
    curves[name] = agent.episodes[:, 0]
    print(f"{name:15} {agent.features.size} features", evaluate(agent, episodes=3).mean_length)

# %%

with style.style():
    figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    for name, lengths in curves.items():
        axes.plot(np.cumsum(lengths), lengths, "o-", markersize=3, label=name)
    axes.set(xlabel="steps of learning", ylabel="length of the episode")
    axes.legend()
