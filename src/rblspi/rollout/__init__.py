"""Acting in environments: the compiled loop, the Python generator, and the tools built on them."""

from rblspi.rollout.calibration import Calibration, calibrate
from rblspi.rollout.collect import collect
from rblspi.rollout.evaluate import Evaluation, evaluate
from rblspi.rollout.steps import Step, episodes, rollout

__all__ = [
    "Calibration",
    "Evaluation",
    "Step",
    "calibrate",
    "collect",
    "episodes",
    "evaluate",
    "rollout",
]
