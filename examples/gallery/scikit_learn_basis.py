"""
A scikit-learn pipeline as basis
================================

A fitted transformer of scikit-learn can be passed wherever a basis is asked for: to agents, and
here to fitted Q iteration on a log. The scaler and the kernel approximation are fitted to the
observations of the log itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from rblspi import FQI, TransformerBasis, evaluate
from rblspi.plotting import style
from rblspi.rollout import collect

PENDULUM = "rblspi/InvertedPendulum-v0"
(log,) = collect(PENDULUM, episodes=600, seed=0)

# %%

settings = {"gamma": 0.3, "n_components": 40, "random_state": 0}
pipelines = {
    "Nystroem": make_pipeline(StandardScaler(), Nystroem(**settings)),
    "random Fourier features": make_pipeline(StandardScaler(), RBFSampler(**settings)),
    "polynomials of degree 3": make_pipeline(StandardScaler(), PolynomialFeatures(3)),
}
fits = {}
for name, pipeline in pipelines.items():
    basis = TransformerBasis(pipeline.fit(log.observations), constant="poly" not in name)
    fits[name] = FQI(basis, 3, discount=0.95).fit(log)
    steps = evaluate(fits[name].policy(PENDULUM), episodes=2, longest=1000).lengths.mean()
    print(f"{name:24} {fits[name].features_.size} features, balances for {steps:.0f} steps of 1000")

# %%
# The value of the best action, in each of the bases. Not every basis suits every problem: with the
# polynomials, the pendulum falls.

angle, speed = np.linspace(-1, 1, 61), np.linspace(-2.5, 2.5, 61)
grid = np.stack(np.meshgrid(angle, speed), axis=-1).reshape(-1, 2)
with style.style():
    figure, panels = plt.subplots(1, 3, figsize=(8, 2.6), sharey=True, layout="constrained")
    for axes, (name, fqi) in zip(panels, fits.items(), strict=True):
        values = fqi.policy().values(grid).max(axis=1).reshape(61, 61)
        picture = axes.contourf(
            angle, speed, values, levels=np.linspace(-1.2, 0.2, 15), extend="both"
        )
        axes.set(title=name, xlabel="angle")
    panels[0].set_ylabel("angular velocity")
    figure.colorbar(picture, ax=panels, label="value")
