"""A log that is not as it should be is read rightly, or refused in one clear sentence."""

import re
from collections import Counter

import numpy as np

from rblspi.data import DataError, read_log
from tests.support.logs import arrays, joined
from tests.support.mutated_logs import AnotherKind, Refused, mutated, plainly_read


def outcome(seed, folder):
    """What happens to a mutated log: "read", "refused" or "another kind"."""
    name, ending, data = mutated(seed)
    path = folder / f"log{ending}"
    path.write_bytes(data)
    try:
        expected = plainly_read(ending, data)
    except (Refused, AnotherKind) as error:
        expected = type(error)
    log, said = None, ""
    try:
        log = read_log(path)
    except DataError as error:
        said = str(error)
    if log is None:
        assert expected in (Refused, AnotherKind), f"{name}: refused for nothing: {said}"
        assert str(path) in said, f"{name}: the file is not named: {said}"
        assert "\n" not in said
        if name == "a_cell":
            assert re.search(r", row \d+, column \w+: ", said), said
        return name, "refused"
    assert expected is not Refused, f"{name}: read, though something is wrong"
    if expected is AnotherKind:
        return name, "another kind"
    for column, other in zip(arrays(joined(log)), arrays(expected), strict=True):
        np.testing.assert_array_equal(column, other, err_msg=name)
    return name, "read"


def test_mutated_logs_are_read_rightly_or_refused(tmp_path):
    found = Counter(outcome(seed, tmp_path)[1] for seed in range(170))
    assert found["read"] > 30
    assert found["refused"] > 60
