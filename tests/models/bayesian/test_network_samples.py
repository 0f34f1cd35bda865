"""Samples of networks: their law, gaps, seeds, and that `fit` takes them."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.domain import Domain, Variable


def weather() -> sf.BayesianNetwork:
    """Strings, whole numbers and booleans as states."""
    domain = Domain(
        [
            Variable.discrete("sky", ["dry", "wet"]),
            Variable.discrete("cars", [0, 1, 2]),
            Variable.discrete("late", [False, True]),
        ]
    )
    tables = {
        "sky": np.array([0.7, 0.3]),
        "cars": np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]),
        "late": np.array([[[0.9, 0.1], [0.8, 0.2], [0.6, 0.4]], [[0.7, 0.3], [0.5, 0.5], [0.1, 0.9]]]),
    }
    return sf.BayesianNetwork.from_tables(domain, {"sky": [], "cars": ["sky"], "late": ["sky", "cars"]}, tables)


def mixed_rows(n: int) -> dict[str, Any]:
    """A state and two numbers."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, n)
    x = rng.normal(size=n) + kind
    return {"kind": np.array(["a", "b"], dtype=object)[kind], "x": x, "y": x + rng.normal(size=n)}


def test_gaps_are_as_many_as_asked_and_leave_the_other_cells_alone() -> None:
    net, n = weather(), 20_000
    whole, holes = (net.sample(n, missing=missing, random_state=3) for missing in (None, 0.2))
    for name in net.nodes:
        gone = np.array([value is None for value in holes[name]])
        assert gone.mean() == pytest.approx(0.2, abs=4 * np.sqrt(0.16 / n))
        assert (holes[name][~gone] == whole[name][~gone]).all()
    some = net.sample(n, missing={"late": 0.5}, random_state=3)
    assert some["sky"].tolist() == whole["sky"].tolist()
    assert np.mean([value is None for value in some["late"]]) == pytest.approx(0.5, abs=4 * np.sqrt(0.25 / n))
    # Completely at random: the gaps of one column know nothing of another's.
    late = np.array([value is None for value in holes["late"]])
    wet = whole["sky"] == "wet"
    assert late[wet].mean() == pytest.approx(late[~wet].mean(), abs=0.03)


def test_gaps_among_numbers_are_nan_and_given_nodes_may_have_gaps() -> None:
    net = sf.BayesianNetwork({"x": ["kind"], "y": ["x"]}).fit(mixed_rows(500))
    drawn = net.sample(2_000, {"kind": "a"}, missing={"x": 0.3, "kind": 1.0}, random_state=0)
    assert drawn["x"].dtype == np.float64
    assert np.isnan(drawn["x"]).mean() == pytest.approx(0.3, abs=0.05)
    assert all(value is None for value in drawn["kind"])
    assert not np.isnan(drawn["y"]).any()
    gone = np.isnan(drawn["x"])
    rows = {name: values[~gone] for name, values in net.sample(2_000, {"kind": "a"}, random_state=0).items()}
    assert drawn["x"][~gone].tobytes() == rows["x"].tobytes()


def test_a_seed_gives_the_same_rows_and_zero_is_a_seed() -> None:
    net = weather()
    one, two, other = (net.sample(200, missing=0.3, random_state=seed) for seed in (0, 0, 1))
    assert all(one[name].tolist() == two[name].tolist() for name in net.nodes)
    assert any(one[name].tolist() != other[name].tolist() for name in net.nodes)
    before = np.random.get_state()[1].tolist()  # type: ignore[index]
    net.sample(10)
    assert np.random.get_state()[1].tolist() == before  # type: ignore[index]


def test_fit_takes_samples_with_gaps_and_comes_near_the_truth() -> None:
    net = weather()
    rows = net.sample(20_000, missing=0.2, random_state=0)
    fitted = sf.BayesianNetwork(net, tolerance=1e-4).fit(rows)
    for name in net.nodes:
        assert fitted.states(name) == net.states(name)
        np.testing.assert_allclose(fitted.table(name).values, net.table(name).values, atol=0.04)
    free = sf.BayesianNetwork({name: net.parents(name) for name in net.nodes}, tolerance=1e-4).fit(rows)
    assert free.states("cars") == (0, 1, 2)
    assert free.states("late") == (False, True)


def test_samples_given_soft_and_hard_evidence_follow_the_posterior() -> None:
    net, n = weather(), 40_000
    evidence = {"late": True, "sky": {"dry": 0.2, "wet": 0.8}}
    drawn = net.sample(n, evidence, random_state=0)
    expected = net.query(["sky", "cars"], evidence)
    for (sky, cars), p in expected.items():
        share = np.mean((drawn["sky"] == sky) & (drawn["cars"] == cars))
        assert share == pytest.approx(p, abs=4 * np.sqrt(p * (1 - p) / n))
    assert drawn["late"].all()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (1.5, r"'sky' is 1.5; expected a number from 0 to 1"),
        ("many", "'many'; expected a number"),
        (True, "True; expected a number"),
        ({"sky": -0.1}, "-0.1"),
        ({"moon": 0.1}, "'moon', which is no node"),
    ],
)
def test_shares_of_gaps_are_checked(missing: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        weather().sample(3, missing=missing)


def test_no_rows_and_a_negative_number_of_rows() -> None:
    net = weather()
    assert [len(values) for values in net.sample(0, missing=0.5).values()] == [0, 0, 0]
    assert [len(values) for values in net.sample(0, {"sky": "wet"}).values()] == [0, 0, 0]
    with pytest.raises(sf.OptionError, match="n is -1"):
        net.sample(-1)
