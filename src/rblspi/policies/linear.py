"""A policy on its own: what an agent or an estimator has found, without what it was found with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rblspi.core import check
from rblspi.core.archive import printable
from rblspi.core.types import Array, Integers, Mask, Matrix, Vector
from rblspi.data.encoding import Encoding
from rblspi.environments.actions import ActionSet, action_set
from rblspi.environments.lookup import make_described
from rblspi.environments.spaces import action_mask, as_vectors, checked_masks
from rblspi.features import Basis, BasisLike, Features
from rblspi.model.posterior import Posterior
from rblspi.policies.choice import EpsilonGreedy, Greedy, Pessimistic
from rblspi.policies.given import BatchPolicy
from rblspi.policies.values import ActionValues, Draws

#: features that are computed at a time: 64 MB
AT_A_TIME = 2**23


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LinearPolicy:
    """Acts by action values that are linear in features of the observation.

    Q(s, a) = phi(s)'theta_a. The action is the one of the highest value, or of the highest lower
    bound if ``pessimism`` is positive; with probability ``epsilon`` it is drawn uniformly, unless
    a deterministic action is asked for.

    Agents and estimators make policies by their method ``policy()``. A policy shares no memory
    with its maker, can be pickled, and is saved to a file that holds numbers and no code.

    Parameters
    ----------
    basis : Basis
    features : Features
        The basis, built for the observation space.
    weights : ndarray, shape (k,)
        theta, one block of n weights for every action.
    observation_space : gymnasium.Space
    action_space : gymnasium.spaces.Discrete or gymnasium.spaces.Box
    draws : Draws or callable, optional
        What is known of the error of the values: value functions around the mean by which the
        policy acts. A function of the policy finds them when they are first asked for. By default
        they are drawn from the posterior, if there is one.
    posterior : Posterior, optional
        Of the weights, which pessimism needs.
    pessimism : float
        Standard deviations by which the value of an action is lowered before actions are compared;
        a negative number raises it, as exploring agents do.
    epsilon : float
        Probability of a random action.
    discount : float
        gamma, with which the values were estimated.
    environment : mapping, optional
        How to make the environment again, see `rblspi.environments.lookup.describe`.
    action_names : tuple of str
    action_axes : tuple of tuples of float
        Points along each number of a Box of actions; evenly spaced unless given.
    inputs : Encoding, optional
        How a state with names, words or missing values becomes an observation.
    provenance : mapping
        What the policy comes from, as plain data: algorithm, settings, number of transitions.
    seed : tuple of int
        Of samples, which are the same at every call, and of random actions.
    """

    basis: Basis
    features: Features
    weights: Vector
    observation_space: gym.Space[Any]
    action_space: gym.Space[Any]
    draws: Draws | Callable[[LinearPolicy], Draws] | None = None
    posterior: Posterior | None = None
    pessimism: float = 0.0
    epsilon: float = 0.0
    discount: float = 0.99
    environment: Mapping[str, Any] | None = None
    action_names: tuple[str, ...] = ()
    action_axes: tuple[tuple[float, ...], ...] = ()
    inputs: Encoding | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    seed: tuple[int, ...] = (0,)
    rng: np.random.Generator | None = None

    def __post_init__(self) -> None:
        check.finite("pessimism", self.pessimism)
        check.fraction("epsilon", self.epsilon)
        check.fraction("discount", self.discount)
        if self.pessimism and self.posterior is None:
            raise ValueError(
                f"pessimism={self.pessimism} needs a posterior: {self.origin} has none"
            )
        self.require_fit(self.weights, self.features)

    def require_fit(self, weights: Vector, features: Features) -> None:
        """Raise an error if these are not weights of features for every action."""
        if weights.shape != (features.size * self.actions,):
            raise ValueError(
                f"{len(weights)} weights do not fit {features.size} features x "
                f"{self.actions} actions: pass the basis and the environment of the fit"
            )

    @cached_property
    def action_set(self) -> ActionSet:
        """What its actions are to the environment."""
        return action_set(self.action_space, self.action_axes)

    @property
    def actions(self) -> int:
        """The number of actions."""
        return self.action_set.count

    @property
    def weights_by_action(self) -> Matrix:
        """theta, shape (actions, n)."""
        return self.weights.reshape(self.actions, -1)

    def predict(
        self,
        observation: ArrayLike,
        state: Any = None,
        episode_start: Any = None,
        deterministic: bool = False,
        action_masks: ArrayLike | None = None,
    ) -> tuple[Any, Any]:
        """Actions for an observation or a batch of them, in the form of Stable-Baselines3.

        Parameters
        ----------
        observation : array_like, tuple or dict
            As the environment gives it, or a batch as a vector environment does.
        state, episode_start
            Accepted for compatibility; there is no recurrent state.
        deterministic : bool
            Whether random actions are left out.
        action_masks : array_like of bool, shape (actions,) or (N, actions), optional
            Which actions are allowed. By default what a Dict observation says under
            ``"action_mask"``, or all.

        Returns
        -------
        action, state
            An action of the action space, or an array of them; the state as it was passed.
        """
        choose = self._deterministic if deterministic or not self.epsilon else self._exploring
        if action_masks is None:
            action_masks = action_mask(self.observation_space, observation)
        seen = self.observed(observation)
        actions = choose_actions(self.features, choose, seen, self.action_set, action_masks)
        return actions, state

    def act(self, state: Any) -> Any:
        """The best action in a state, or in each of several: its name, if it has one, or numbers.

        A state may be given as in the log, see `rblspi.data.Encoding`: a mapping from names of
        columns to values, for example.
        """
        chosen = self.predict(state, deterministic=True)[0]
        if self.action_axes:  # the log has one number
            chosen = np.asarray(chosen)[..., 0]
            return chosen if chosen.ndim else float(chosen)
        return self.named(chosen - self.action_set.action(0)) if self.action_names else chosen

    def named(self, actions: Any) -> Any:
        """Actions, counted from 0, by their names; as they are if they have none."""
        if not self.action_names:
            return actions
        names = np.array(self.action_names, object)[actions]
        return names if np.ndim(actions) else str(names)

    def observed(self, state: Any) -> Any:
        """The numbers of an observation or a batch, given as the environment or the log does."""
        if self.inputs is not None:
            return self.inputs(state)
        return as_vectors(self.observation_space, state)

    def __call__(self, observations: ArrayLike) -> Integers:
        """Actions in a batch of observations, counted from 0: what estimators call a policy."""
        return self.allowed_actions(observations, None)

    def allowed_actions(self, observations: ArrayLike, allowed: Any) -> Integers:
        """The same among the actions that are allowed, shape (N, actions); None: all of them."""
        seen = np.asarray(self.observed(observations)).reshape(-1, *self.features.shape)
        count = max(1, AT_A_TIME // self.features.size)
        chosen = []
        for start in range(0, max(len(seen), 1), count):
            part = slice(start, start + count)
            masks = () if allowed is None else (allowed[part],)
            chosen.append(self._deterministic(seen[part], self.features(seen[part]), *masks))
        return np.concatenate(chosen)

    @cached_property
    def _deterministic(self) -> BatchPolicy:
        if self.pessimism and self.posterior is not None:
            return Pessimistic(self.posterior, self.pessimism)
        return Greedy(self.weights_by_action)

    @cached_property
    def _exploring(self) -> BatchPolicy:
        rng = np.random.default_rng(self.seed) if self.rng is None else self.rng
        return EpsilonGreedy(self.weights_by_action, self.epsilon, rng)

    def values(self, observation: ArrayLike) -> Array:
        """Q = phi'theta, by which actions are chosen, shape (actions,) or (N, actions)."""
        values: Array = self.features(self.observed(observation)) @ self.weights_by_action.T
        return values

    @cached_property
    def value_draws(self) -> Draws | None:
        """Draws of value functions around the weights; None if nothing is known of errors."""
        if self.draws is None:
            return None if self.posterior is None else Draws.of_posterior(self.posterior)
        return self.draws if isinstance(self.draws, Draws) else self.draws(self)

    def action_values(self, observation: ArrayLike) -> ActionValues:
        """What every action is worth, and how sure that is, in a state or in a batch of them.

        The mean is `values`, by which the policy acts.
        """
        seen = np.asarray(self.observed(observation))
        rows, draws = seen.reshape(-1, *self.features.shape), self.value_draws
        count, parts = max(1, AT_A_TIME // self.features.size), []
        for start in range(0, max(len(rows), 1), count):
            x = self.features(rows[start : start + count])
            mean = x @ self.weights_by_action.T
            parts.append(ActionValues(mean) if draws is None else draws.at(x, mean))
        found = ActionValues.joined(parts)
        return found if seen.ndim > len(self.features.shape) else found.row(0)

    def probability_best(self, observation: ArrayLike) -> Array:
        """How likely each action is the best one, see `ActionValues.probability_best`."""
        return self.action_values(observation).probability_best()

    def little_known(self, values: ActionValues, actions: Integers) -> Mask | None:
        """Whether the data say little about an action in each state; None without draws."""
        draws = self.value_draws
        return None if draws is None else draws.little_known(values, actions)

    def make_environment(self, **arguments: Any) -> gym.Env[Any, Any]:
        """The environment that the policy is for; arguments override those of its description."""
        if self.environment is None:
            raise ValueError(
                "the policy was fitted to logs and names no environment to act in: pass one, or "
                "--env ENV_ID on the command line"
            )
        return make_described(self.environment, arguments)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the policy to one file."""
        from rblspi.policies import policy_file

        policy_file.save(self, path)

    def export(self, path: str | PathLike[str], std: bool = False) -> None:
        """Write the policy for other programs: a graph in float64 for ONNX Runtime.

        Parameters
        ----------
        path : path
            A name that ends in .onnx.
        std : bool, optional
            Whether the graph computes standard deviations.
        """
        from rblspi.policies import onnx_graph

        onnx_graph.write(self, path, bool(std))

    @staticmethod
    def load(path: str | PathLike[str], basis: BasisLike | None = None) -> LinearPolicy:
        """Read a policy from a file; nothing in the file is ever run.

        A basis that was a function of the user's is not stored and has to be passed again.
        """
        from rblspi.policies import policy_file

        return policy_file.load(path, basis)

    @property
    def origin(self) -> str:
        """What the policy was found by."""
        return printable(str(self.provenance.get("algorithm", "the policy")))

    def __repr__(self) -> str:
        rule = "greedy"
        if self.pessimism:
            rule = f"pessimism={self.pessimism:g}"
        elif self.epsilon:
            rule = f"epsilon={self.epsilon:.2g}"
        identifier = (self.environment or {}).get("id")
        name = "" if identifier is None else f" for {printable(str(identifier))}"
        return (
            f"<LinearPolicy by {self.origin}{name}: {self.actions} actions x "
            f"{self.features.size} features of {self.basis}, {rule}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the features, which are built again."""
        left_out = ("features", "_deterministic", "_exploring")
        state = {name: value for name, value in vars(self).items() if name not in left_out}
        return state | {"draws": self.value_draws}

    def __setstate__(self, state: dict[str, Any]) -> None:
        features = state["basis"].build(state["observation_space"])
        vars(self).update(state, features=features)


def choose_actions(
    features: Features,
    choose: BatchPolicy,
    observation: ArrayLike,
    actions: ActionSet,
    action_masks: ArrayLike | None = None,
) -> Any:
    """Actions as the environment takes them: one for one observation, an array for a batch.

    A policy that compares values also finds the best action between the points of a grid.
    """
    x = features(observation)
    rows = np.atleast_2d(x)
    masks: tuple[Any, ...] = ()
    if action_masks is not None:
        masks = (checked_masks(action_masks, actions.count, len(rows)),)
    chosen = np.asarray(choose(np.asarray(observation), rows, *masks))
    if actions.has_between and hasattr(choose, "values"):
        taken = actions.best(chosen, choose.values(rows), *masks)
    else:
        taken = actions.actions(chosen)
    return taken if x.ndim > 1 else actions.single(taken)


def action_names_of(
    env: gym.Env[Any, Any], actions: int, logged: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The names that an environment gives to its actions in its metadata, if it does.

    Actions with names in a log have to have the same ones in the environment.
    """
    names: NDArray[Any] | None = env.metadata.get("action_names")
    own = tuple(map(str, names)) if names is not None and len(names) == actions else ()
    if logged and own != logged:
        raise ValueError(
            f"the log has the actions {', '.join(logged)}, but the environment "
            f"{', '.join(own) or 'numbers without names'}: write the numbers of the environment "
            "into the log, or leave the environment out"
        )
    return own
