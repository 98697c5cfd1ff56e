"""Minari data sets with discrete actions, one episode at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from rblspi.data.columns import DataError
from rblspi.data.dataset import Dataset, Facts
from rblspi.data.transitions import Transitions


class MinariData(Dataset):
    """The transitions of a Minari data set with discrete actions. Each chunk is an episode.

    Parameters
    ----------
    dataset : minari.MinariDataset or str
        A data set, or the name of one that is stored locally.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = _load(dataset) if isinstance(dataset, str) else dataset
        spec = self.dataset.spec
        name, space = str(spec.dataset_id), spec.action_space
        if not isinstance(space, Discrete):
            raise DataError(f"{name} has the actions {space}, which are not discrete")
        if not isinstance(spec.observation_space, Box | Discrete | MultiDiscrete):
            raise DataError(
                f"{name} has the observations {spec.observation_space}, which are not arrays of "
                "numbers"
            )
        env, metadata = spec.env_spec, {}
        if env is not None:  # in which the data were collected
            metadata = {"environment": env.id, "arguments": dict(env.kwargs)}
        size, actions = int(self.dataset.total_steps), int(space.n)
        super().__init__(Facts(name, size, actions, metadata=metadata))
        self._first_action = int(space.start)

    def __iter__(self) -> Iterator[Transitions]:
        """Iterate over the episodes."""
        for episode in self.dataset.iterate_episodes():
            if not len(episode.actions):
                continue
            try:
                yield Transitions.from_arrays(
                    episode.observations[:-1],
                    np.asarray(episode.actions) - self._first_action,
                    episode.rewards,
                    episode.observations[1:],
                    episode.terminations,
                    episode.truncations,
                )
            except (ValueError, TypeError) as error:
                raise DataError(f"{self.facts.name}, episode {episode.id}: {error}") from error


def _load(name: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError('Minari data need minari: pip install "rblspi[minari]"') from error
    try:
        return minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as error:
        raise DataError(
            f"there is no Minari data set {name!r} here: run minari download {name} ({error})"
        ) from error
