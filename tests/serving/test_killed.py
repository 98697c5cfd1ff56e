"""A service that is killed under load loses nothing that it acknowledged."""

import pytest

pytest.importorskip("uvicorn", reason="the packages of rblspi[serve] are not installed")

from tests.serving.killed import trial
from tests.support.shop_policy import saved_policy


@pytest.mark.slow
def test_nothing_is_lost_and_nothing_is_doubled(tmp_path):
    found = trial(saved_policy(tmp_path), tmp_path / "decisions.db", seconds=4.0)
    assert found["failed requests"] > 0  # the kill was noticed
    assert found["outcomes"] > 5
    assert found["repeated outcomes"] > 0
