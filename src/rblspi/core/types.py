"""Names of array types for signatures."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vector: TypeAlias = NDArray[np.float64]  # one axis
Matrix: TypeAlias = NDArray[np.float64]  # two axes
Array: TypeAlias = NDArray[np.float64]  # any number of axes
Integers: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Allowed: TypeAlias = NDArray[np.uint8]  # 1 for every action that is allowed, else 0
