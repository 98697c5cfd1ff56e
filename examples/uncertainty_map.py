"""How certain an agent is of its action values: in single states, and as a map of all states."""

from __future__ import annotations

import sys
from pathlib import Path

from rblspi import RBLSPI, RBFGrid
from rblspi.plotting import maps, style


def main(folder: Path) -> None:
    agent = RBLSPI(
        *("rblspi/PuddleWorld-v0", RBFGrid(8)), prior_precision=0.1, noise_precision=1.0, seed=0
    )
    agent.learn(episodes=100)
    for where, observation in (("near the goal", [0.9, 0.9]), ("in a puddle", [0.3, 0.75])):
        values = agent.action_values(observation)
        print(where)
        for a, likely in enumerate(agent.probability_best(observation)):
            print(
                f"  action {a}: {values.mean[a]:7.2f} ± {values.std[a]:.2f}, "
                f"the best with probability {likely:.2f}"
            )
    with style.style():
        picture, _ = style.save(maps.draw(maps.compute(agent)), folder / "puddle_world")
    print(picture)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
