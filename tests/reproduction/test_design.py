from rblspi.experiments.definitions import unique
from rblspi.reproduction.claims import CLAIMS, claims_within
from rblspi.reproduction.design import FULL, SMALL, needed_by, parts
from rblspi.reproduction.figures import FIGURES
from rblspi.reproduction.readings import DEFAULT, parse

EVERYTHING = {c.digest for f in FIGURES.values() for c in f.curves}


def test_claims_ask_for_all_curves_of_the_paper_and_for_no_others():
    asked = {curve.digest for claim in CLAIMS for curve in needed_by(claim)}
    assert asked == EVERYTHING
    assert {curve.digest for curve in FULL.curves(DEFAULT)} == EVERYTHING


def test_a_smaller_scope_asks_for_less_and_keeps_its_numbers():
    whole = {claim.id: claim for claim in CLAIMS}
    for claim in claims_within(SMALL.scope):
        asked = {curve.digest for curve in needed_by(claim)}
        assert asked <= {curve.digest for curve in needed_by(whole[claim.id])}


def test_runs_are_shared_where_a_reading_changes_nothing():
    """Higher values of alpha add one to the three, or four, that there are."""
    higher, default = (
        {c.digest for c in SMALL.curves(reading)} for reading in (parse(["alphas=higher"]), DEFAULT)
    )
    online = [c for c in SMALL.curves(DEFAULT) if c.algorithm == "rblspi"]
    alphas = {c.settings["prior_precision"] for c in online}
    assert len(higher - default) < len(default) / len(alphas)
    total = sum(len(figure.curves) for figure, _ in parts([SMALL]))
    assert total < sum(len(SMALL.curves(reading)) for reading in SMALL.readings)
    assert total == len(unique(c for figure, _ in parts([SMALL]) for c in figure.curves))


def test_a_reading_affects_the_claims_about_its_domain():
    def curves(claim, reading):
        return [SMALL.curve(reading, curve) for curve in needed_by(claim)]

    def affected(text):
        reading = parse([text])
        return {c.id for c in SMALL.judged() if curves(c, reading) != curves(c, DEFAULT)}

    assert affected("pole-force=1") == {"pole-2"}
    assert affected("integration=euler") == {f"pendulum-{i}" for i in (1, 2, 3, 4)}
    assert affected("epsilon=slow") == {"car-2", "pendulum-4", "pole-2", "puddle-1"}
    assert affected("chain-ratio=1") == {"chain-1", "chain-2"}
    assert affected("lagoudakis-parr") == {f"pendulum-{i}" for i in (1, 2, 3, 4)}


def test_runs_are_short_where_the_design_says_so():
    episodes = {c.environment: c.episodes for c in SMALL.curves(DEFAULT) if c.episodes}
    assert episodes["rblspi/CartPole-v0"] == 300
    assert episodes["rblspi/InvertedPendulum-v0"] == 2000


def test_designs_share_the_runs_of_equal_settings():
    (_, alone), (_, alone_online) = parts([SMALL])
    assert (alone, alone_online) == (100, 10)
    assert parts([SMALL, SMALL]) == parts([SMALL])
    assert parts([]) == []
