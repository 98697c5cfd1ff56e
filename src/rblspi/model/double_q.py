"""Double Q-learning of the weights of a network, compiled by JAX.

Beside its pseudocode, with weights theta, their slow average u, and Q_theta(s, a) linear in the
last hidden layer of the network:

    1   for every batch of transitions s, a, t, s', g:
    2       b = argmax_a' Q_theta(s', a')                           double Q-learning
    3       y = t + g Q_u(s', b)
    4       theta = theta - Adam of the gradient of mean h(Q_theta(s, a) - y)
    5       u = u + 0.01 (theta - u)

Here t is the discounted sum of the rewards of the n steps from s to s', g is gamma^n, or 0 where
the episode terminated, and h is Huber's loss. All batches of a call are in one compiled loop.

References: H. van Hasselt, A. Guez and D. Silver (2016). Deep reinforcement learning with double
Q-learning. AAAI. M. Gallici et al. (2025). Simplifying deep temporal difference learning. ICLR.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

# One core serves a network of this size best. JAX reads the variable when it is first used.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
try:
    import jax
    import jax.numpy as jnp
    import optax
except ImportError as error:
    raise ImportError(
        f"learning a network needs JAX and Optax ({error}): pip install 'rblspi[deep]'"
    ) from error

from rblspi.core.types import Integers, Mask, Vector
from rblspi.features.network import count, split

#: step size of Adam
STEP_SIZE = 5e-4
#: the share of the new weights in their slow average: it forgets in about a hundred updates
AVERAGING = 0.01

_OPTIMISER = optax.adam(STEP_SIZE)


class Learner(NamedTuple):
    """Weights of a network whose last layer has a value for every action, and Adam's moments."""

    latest: Vector  # theta       (P,)
    average: Vector  # u          (P,)
    first_moment: Vector  #       (P,)
    second_moment: Vector  #      (P,)
    updates: Integers  #          (1,)

    @classmethod
    def of(cls, hidden: Vector, sizes: Sequence[int]) -> Learner:
        """Start from the weights of the hidden layers, with values of 0."""
        weights = np.concatenate([hidden, np.zeros(count(sizes) - len(hidden))])
        nothing = np.zeros_like(weights)
        return cls(weights, weights.copy(), nothing, nothing.copy(), np.zeros(1, np.int64))


class Batches(NamedTuple):
    """Batches of transitions, in the units of the network: shape (updates, batch, ...)."""

    inputs: Any  # s, float                (..., d)
    actions: Any  # integers
    rewards: Any  # t, float
    next_inputs: Any  # s', float          (..., d)
    discounts: Any  # g, float
    next_allowed: Any  # which actions in s'  (..., actions)


def train(learner: Learner, sizes: Sequence[int], batches: Batches) -> Learner:
    """Lines 1 to 5, in float32; ``sizes`` has those of inputs, hidden layers and actions."""
    weights = [
        [tuple(np.asarray(part, np.float32) for part in layer) for layer in split(numbers, sizes)]
        for numbers in learner[:4]
    ]
    kinds = Batches(np.float32, np.int32, np.float32, np.float32, np.float32, np.bool_)
    single = Batches(*(np.asarray(p, kind) for p, kind in zip(batches, kinds, strict=True)))
    found, updates = _train(weights, np.int32(learner.updates[0]), single)
    latest, average, first, second = (joined(part) for part in found)
    return Learner(latest, average, first, second, np.array([int(updates)]))


def unit_of_values(rewards: Vector, terminated: Mask, discount: float) -> float:
    """The deviation of sum_t p^t r_t with independent r_t of mean square m: (m/(1-p^2))^1/2.

    Here p = gamma (1 - q), where q is the share of transitions that terminate.
    """
    going = discount * (1.0 - float(np.mean(terminated)))
    return math.sqrt(float(np.mean(rewards**2)) / max(1.0 - going**2, 1e-6))


def joined(layers: Any) -> Vector:
    """Bias and matrix of every layer as one vector, of which `split` gives them back."""
    return np.concatenate([np.ravel(part) for layer in layers for part in layer]).astype(float)


def action_values(layers: Any, inputs: Any) -> Any:
    """Q, shape (..., actions): the layers of `Network`, and a last one without a rectifier."""
    *hidden, (bias, matrix) = layers
    for b, m in hidden:
        inputs = jax.nn.relu(jax.nn.standardize(inputs @ m + b, epsilon=1e-5))
    return inputs @ matrix + bias


def _loss(layers: Any, average: Any, batch: Batches) -> Any:
    ahead = action_values(layers, batch.next_inputs)
    best = jnp.where(batch.next_allowed, ahead, -jnp.inf).argmax(axis=-1)  # line 2
    slow = _chosen(action_values(average, batch.next_inputs), best)
    targets = jax.lax.stop_gradient(batch.rewards + batch.discounts * slow)  # line 3
    values = _chosen(action_values(layers, batch.inputs), batch.actions)
    return optax.huber_loss(values, targets).mean()


def _chosen(values: Any, actions: Any) -> Any:
    return jnp.take_along_axis(values, actions[..., None], axis=-1)[..., 0]


def _update(carried: Any, batch: Batches) -> Any:
    latest, average, state = carried
    step, state = _OPTIMISER.update(jax.grad(_loss)(latest, average, batch), state)
    latest = optax.apply_updates(latest, step)  # line 4
    average = jax.tree.map(lambda u, w: u + AVERAGING * (w - u), average, latest)  # line 5
    return (latest, average, state), None


def _train_all(weights: Any, updates: Any, batches: Batches) -> Any:
    latest, average, first, second = weights
    state = optax.ScaleByAdamState(updates, first, second), optax.EmptyState()
    (latest, average, (adam, _)), _ = jax.lax.scan(_update, (latest, average, state), batches)
    return (latest, average, adam.mu, adam.nu), adam.count


_train = jax.jit(_train_all)
