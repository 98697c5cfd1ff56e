"""Data sets of Minari with discrete actions, episode by episode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np

from rblspi.datasets.columns import DataError
from rblspi.transitions import Transitions


class MinariData:
    """The transitions of a Minari data set; a chunk is an episode.

    Parameters
    ----------
    dataset : minari.MinariDataset or str
        A data set, or the name of one that is on this machine.

    Raises
    ------
    DataError
        If the actions are not discrete, or the observations are not arrays of numbers.
    """

    def __init__(self, dataset: Any) -> None:
        self.dataset = _load(dataset) if isinstance(dataset, str) else dataset
        self.name = str(self.dataset.spec.dataset_id)
        space = self.dataset.spec.action_space
        if not isinstance(space, gym.spaces.Discrete):
            raise DataError(f"{self.name} has the actions {space}, which are not discrete")
        self.actions = int(space.n)
        self.observation_space = self.dataset.spec.observation_space
        if not isinstance(
            self.observation_space,
            gym.spaces.Box | gym.spaces.Discrete | gym.spaces.MultiDiscrete,
        ):
            raise DataError(
                f"{self.name} has the observations {self.observation_space}, which are not arrays "
                "of numbers"
            )
        self._first_action = int(space.start)

    @property
    def size(self) -> int:
        """Transitions."""
        return int(self.dataset.total_steps)

    @property
    def metadata(self) -> dict[str, Any]:
        """The environment the data were collected in, as far as the data set tells."""
        spec = self.dataset.spec.env_spec
        return {} if spec is None else {"environment": spec.id, "arguments": dict(spec.kwargs)}

    def __iter__(self) -> Iterator[Transitions]:
        """Go through the episodes."""
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
                )
            except (ValueError, TypeError) as error:
                raise DataError(f"{self.name}, episode {episode.id}: {error}") from error


def _load(name: str) -> Any:
    try:
        import minari
    except ImportError as error:
        raise ImportError('Minari data need minari: pip install "rblspi[minari]"') from error
    try:
        return minari.load_dataset(name)
    except (FileNotFoundError, ValueError) as error:
        raise DataError(
            f"there is no Minari data set {name!r} here: minari download {name} ({error})"
        ) from error
