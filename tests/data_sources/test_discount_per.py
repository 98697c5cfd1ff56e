"""A log says how long its rows take, whichever way it is written down."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rblspi import FQI, LSPI, LinearPolicy, Polynomial
from rblspi.data import Columns, DataError, read_log
from rblspi.data.periods import Period
from rblspi.offline import data_report
from rblspi.serving import Decisions
from tests.support.command import run
from tests.support.logs import arrays, assert_same, joined, write_parquet

PER = 2.0
TIMES = (0.5, 1.0, 2.0, 3.0)
BASIS = Polynomial(1, low=-3, high=3)
COLUMNS = Columns(ends="truncated", discount_per=PER)


def rows(episodes=30, steps=12, seed=0):
    """Episodes of a number, with irregular times."""
    rng = np.random.default_rng(seed)
    found = []
    for episode in range(episodes):
        time, x = 10.0 * episode, float(rng.normal())
        for _ in range(steps):
            action = str(rng.choice(["go left", "stay"]))
            row = {"episode": episode, "time": time, "x": round(x, 6), "action": action}
            found.append({**row, "reward": round(float(rng.normal()), 6)})
            time += float(rng.choice(TIMES))
            x = 0.8 * x + 0.3 * float(rng.normal())
    return found


FRAME = pd.DataFrame(rows())
#: the same with dates instead of hours
DATED = FRAME.assign(
    time=pd.Timestamp("2026-03-29", tz="Europe/Berlin") + pd.to_timedelta(FRAME["time"], unit="h")
)
BY_DATE = Columns(ends="truncated", discount_per="2h")


def elapsed(log):
    return joined(log).elapsed


def fitted(data, columns=COLUMNS, **settings):
    return FQI(BASIS, discount=0.9, columns=columns, **settings).fit(data).weights_


WEIGHTS = fitted(FRAME)


def test_the_time_of_the_next_row_tells():
    log = read_log(FRAME, COLUMNS)
    same = (FRAME["episode"].diff() == 0).to_numpy()
    np.testing.assert_array_equal(elapsed(log), FRAME["time"].diff().to_numpy()[same] / PER)
    assert_same(joined(log), joined(read_log(FRAME, Columns(ends="truncated"))), 6)
    assert "discount_per       2.0" in str(log)
    assert "0.25 to 1.5 times discount_per" in str(data_report(log))
    ordinary = FQI(BASIS, discount=0.9, columns=Columns(ends="truncated")).fit(FRAME).weights_
    assert not np.allclose(ordinary, WEIGHTS, rtol=1e-2)


def test_steps_of_the_same_time_are_ordinary_ones_to_the_last_bit():
    frame = FRAME.assign(time=7.0 * FRAME.index)
    ordinary = fitted(frame, Columns(ends="truncated"))
    np.testing.assert_array_equal(
        fitted(frame, Columns(ends="truncated", discount_per=7)), ordinary
    )
    dated = frame.assign(
        time=pd.Timestamp("2026-01-01 00:00:00.001") + frame.index * timedelta(hours=1)
    )
    np.testing.assert_array_equal(
        fitted(dated, Columns(ends="truncated", discount_per="1h")), ordinary
    )


def test_every_form_of_dates_gives_the_same_weights_to_the_last_bit(tmp_path):
    DATED.to_csv(tmp_path / "log.csv", index=False)
    DATED.astype({"time": str}).to_json(tmp_path / "log.jsonl", orient="records", lines=True)
    DATED.to_parquet(tmp_path / "log.parquet")
    utc = DATED.assign(time=DATED["time"].dt.tz_convert("UTC"))
    naive = utc.assign(time=utc["time"].dt.tz_localize(None))
    durations = FRAME.assign(time=pd.to_timedelta(FRAME["time"], unit="h"))
    shuffled = DATED.sample(frac=1.0, random_state=0).sort_values("episode", kind="stable")
    on_disk = read_log(shuffled, BY_DATE, memory=1)
    forms = [DATED, utc, naive, durations, shuffled, on_disk, pa.Table.from_pandas(DATED)]
    for form in (*forms, *(tmp_path / f"log.{ending}" for ending in ("csv", "jsonl", "parquet"))):
        np.testing.assert_array_equal(fitted(form, BY_DATE), WEIGHTS)


def test_units_of_time_and_of_the_discount_change_together():
    sixty_fourths = FRAME.assign(time=64.0 * FRAME["time"])
    columns = Columns(ends="truncated", discount_per=64.0 * PER)
    np.testing.assert_array_equal(fitted(sixty_fourths, columns), WEIGHTS)


def transitions():
    """The same log as rows of transitions, with how long they took."""
    after = FRAME.shift(-1)
    table = FRAME.assign(next_x=after["x"], took=after["time"] - FRAME["time"], terminated=False)[
        (FRAME["episode"] == after["episode"])
    ]
    return table.drop(columns=["episode", "time"])


def test_rows_of_transitions_have_a_column_of_their_own(tmp_path):
    columns = Columns(elapsed="took", discount_per=PER)
    np.testing.assert_array_equal(fitted(transitions(), columns), WEIGHTS)
    episodes = FRAME.assign(took=FRAME["time"].shift(-1) - FRAME["time"])
    episodes.loc[episodes["episode"].diff(-1) != 0, "took"] = 1.0  # these are left out
    by_column = Columns(ends="truncated", elapsed="took", discount_per=PER)
    np.testing.assert_array_equal(fitted(episodes, by_column), WEIGHTS)
    took = transitions().assign(took=lambda t: pd.to_timedelta(t["took"], unit="h"))
    np.testing.assert_array_equal(fitted(took, Columns(elapsed="took", discount_per="2h")), WEIGHTS)


def test_parquet_files_of_numbers_are_not_copied(tmp_path):
    numbers = transitions().assign(action=lambda t: (t["action"] == "stay").astype(int))
    path = tmp_path / "log.parquet"
    numbers.to_parquet(path, row_group_size=100)
    columns = Columns(elapsed="took", discount_per=PER)
    log = read_log(path, columns)
    np.testing.assert_allclose(fitted(log), WEIGHTS, rtol=1e-10)
    written = write_parquet(tmp_path / "written.parquet", joined(log))
    again = read_log(written, Columns(elapsed="elapsed", discount_per=1))
    np.testing.assert_array_equal(elapsed(again), elapsed(log))
    with pytest.raises(DataError, match="name the column of the time until the next state with"):
        read_log(path, Columns(discount_per=PER))
    with pytest.raises(ValueError, match="discount_per=1h is a duration, but column took holds"):
        read_log(path, Columns(elapsed="took", discount_per="1h"))
    numbers.loc[numbers.index[7], "took"] = 0.0
    numbers.to_parquet(path)
    with pytest.raises(DataError, match=r"row 7, column took: 0\.0 must be a time above 0"):
        list(read_log(path, columns))
    skipped = read_log(path, columns, skip_bad=True)
    assert joined(skipped).size == len(numbers) - 1


def test_the_time_to_a_terminal_state_may_be_missing():
    table = transitions()
    table.iloc[5, table.columns.get_loc("terminated")] = True
    table.iloc[5, table.columns.get_loc("took")] = np.nan
    columns = Columns(elapsed="took", discount_per=PER)
    assert elapsed(read_log(table, columns))[5] == 1.0
    table.iloc[6, table.columns.get_loc("took")] = np.nan
    with pytest.raises(DataError, match="row 6, column took: None must be a time above 0"):
        read_log(table, columns)


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        (FRAME, {"discount_per": "1h"}, "is a duration, but column time holds numbers"),
        (DATED, {"discount_per": 3600}, "is a number, but column time holds dates"),
        (FRAME.drop(columns="time"), {"discount_per": 1}, "the time with time=, or the time until"),
        (FRAME.assign(took="a"), {"discount_per": 1, "elapsed": "took"}, "'a' is not a number"),
        (FRAME.assign(took=-1), {"discount_per": 1, "elapsed": "took"}, "row 0, column took: -1"),
        (FRAME, {"discount_per": 1, "elapsed": "took"}, "has no column 'took' for the elapsed"),
    ],
)
def test_what_does_not_go_together_is_said(frame, settings, message):
    with pytest.raises(ValueError, match=message):
        read_log(frame, Columns(ends="truncated", **settings))


@pytest.mark.parametrize("same", [True, False])
def test_times_that_do_not_increase_are_named(same):
    frame = DATED.copy()
    earlier = frame.loc[2, "time"] - pd.Timedelta(0 if same else "1min")
    frame.loc[3, "time"] = earlier
    columns = Columns(ends="truncated", discount_per="2h")
    if same:
        with pytest.raises(DataError, match=r"row 3, column time: the time 2026-03-2.* is there"):
            read_log(frame, columns)
    else:  # sorted
        assert (elapsed(read_log(frame, columns)) > 0.0).all()
    no_episodes = frame.drop(columns="episode").assign(terminated=False)
    with pytest.raises(DataError, match="row 3, column time: the time 2026-03-2"):
        read_log(no_episodes, Columns(discount_per="2h"))


@pytest.mark.parametrize(
    "per",
    [
        *(0, -1, float("nan"), float("inf"), True, "", "h2", "1M", "1 fortnight", "-1h", [1], "0s"),
        *(np.timedelta64(1, "M"), timedelta(0)),
    ],
)
def test_what_is_no_time_is_refused(per):
    with pytest.raises(ValueError, match="must be a number above 0, or a duration such as 1h"):
        Columns(discount_per=per)


@pytest.mark.parametrize(
    "per",
    [
        *("2h", "120 min", "7200s", "1h 60min", "0.0833333333333333333 days", "2 hours"),
        *(timedelta(hours=2), pd.Timedelta("2h"), np.timedelta64(2, "h")),
    ],
)
def test_a_duration_may_be_said_in_many_ways(per):
    assert Columns(discount_per=per).period.amount == pytest.approx(7200.0, rel=1e-12)


def test_periods_are_read_exactly():
    assert Period.of("3600") == Period.of(3600.0)._replace(text="3600")
    assert Period.of("1 day 12h").amount == 129_600.0
    assert Period.of("250ms").units("dates", "t") == 250_000.0
    assert Columns.from_text("discount_per=1h,time=t").period.amount == 3600.0
    with pytest.raises(ValueError, match="elapsed='took' is of no use without discount_per"):
        Columns(elapsed="took")


def test_arrays_say_it_themselves():
    log = joined(read_log(FRAME, COLUMNS))
    np.testing.assert_array_equal(
        LSPI(BASIS, discount=0.9, columns=COLUMNS).fit(log).weights_,
        LSPI(BASIS, discount=0.9, columns=COLUMNS).fit(FRAME).weights_,
    )
    for data in (replace(log, elapsed=None), arrays(log)):
        with pytest.raises(ValueError, match=r"discount_per=2\.0: arrays of transitions say"):
            LSPI(BASIS, columns=COLUMNS).fit(data)


def test_decisions_say_how_long_it_took(tmp_path):
    path = tmp_path / "decisions.db"
    policy = FQI(BASIS, discount=0.9, columns=BY_DATE).fit(DATED).policy()
    assert policy.provenance["settings"]["discount_per"] == "2h"
    with Decisions(policy, path) as decisions:
        for took in (1800.0, 7200.0, np.float64(3600.0)):
            made = decisions.act({"x": 0.5}, episode="Rome")
            assert decisions.record(made.id, 1.0, {"x": 0.5}, elapsed=took)
            assert not decisions.record(made.id, 1.0, {"x": 0.5}, elapsed=float(took))
            with pytest.raises(ValueError, match="has another outcome already"):
                decisions.record(made.id, 1.0, {"x": 0.5}, elapsed=1.0)
        for wrong in (0.0, -1.0, True, "1h", np.nan):
            with pytest.raises(ValueError, match="elapsed="):
                decisions.record(decisions.act({"x": 0.0}).id, 1.0, {"x": 0.5}, elapsed=wrong)
    log = read_log(path, Columns(discount_per="2h"))
    np.testing.assert_array_equal(elapsed(log), [0.25, 1.0, 0.5])
    np.testing.assert_array_equal(elapsed(read_log(path, Columns(discount_per=3600))), [0.5, 2, 1])
    assert joined(read_log(path)).elapsed is None  # every decision is a step
    both = read_log(DATED, BY_DATE).with_decisions(path)
    np.testing.assert_array_equal(elapsed(both)[-3:], [0.25, 1.0, 0.5])
    with Decisions(policy, path) as decisions:
        decisions.record(decisions.act({"x": 0.5}).id, 1.0, {"x": 0.5})
    with pytest.raises(DataError, match="column elapsed: None must be a time above 0"):
        read_log(path, Columns(discount_per="2h"))
    silent = tmp_path / "silent.db"
    with Decisions(policy, silent) as decisions:
        decisions.record(decisions.act({"x": 0.5}).id, 1.0, {"x": 0.5})
    with pytest.raises(
        DataError, match=r"do not say how long it took .* record them with elapsed="
    ):
        read_log(DATED, BY_DATE).with_decisions(silent)


def test_the_commands_know_it(tmp_path, capsys):
    path = tmp_path / "log.csv"
    DATED.to_csv(path, index=False)
    saved = tmp_path / "policy"
    what = (path, "--columns", "ends=truncated", "--discount-per", "2h")
    basis = ("--basis", "Polynomial(1, low=-3, high=3)", "--set", "discount=0.9")
    assert run("fit", *what, *basis, "--save", saved) == 0
    policy = LinearPolicy.load(saved / "policy.npz")
    np.testing.assert_allclose(policy.weights, WEIGHTS, rtol=1e-9)
    assert policy.provenance["settings"]["discount_per"] == "2h"
    capsys.readouterr()
    assert run("check", *what) == 0
    assert "times discount_per" in capsys.readouterr().out
    assert run("fit", "minari:some", "--discount-per", "5") == 2
    assert "--discount-per: Minari does not say" in " ".join(capsys.readouterr().err.split())
