"""Summaries of rows with and without gaps, passes over the data, and what the report calls the objective."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, dirichlet

import suffice as sf
from suffice.errors import DataError, MergeError, MissingValueError

STATES = {"a": ["no", "yes"], "b": ["low", "mid", "high"]}


def rows(n: int, seed: int, share: float) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.integers(2, size=n)
    b = (a + rng.integers(2, size=n)) % 3
    gaps = rng.random((2, n)) < share
    return {
        "a": [None if g else STATES["a"][v] for g, v in zip(gaps[0], a, strict=True)],
        "b": [None if g else STATES["b"][v] for g, v in zip(gaps[1], b, strict=True)],
    }


def both(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {name: [*first[name], *second[name]] for name in first}


def network(**options: Any) -> sf.BayesianNetwork:
    return sf.BayesianNetwork([("a", "b")], states=STATES, tolerance=1e-11, max_iter=5000, **options)


WHOLE, GAPPY = rows(60, 0, 0.0), rows(60, 1, 0.25)


def tables(net: sf.BayesianNetwork) -> np.ndarray:
    return np.concatenate([net.table(name).values.ravel() for name in net.nodes])


# -- summaries ---------------------------------------------------------------------------------------------------------


def test_a_summary_of_rows_with_gaps_holds_the_distinct_rows() -> None:
    summary = sf.summarize(network(), GAPPY)
    assert [type(question) for question in summary.answers] == [sf.Patterns]
    np.testing.assert_array_equal(tables(network().fit(summary)), tables(network().fit(GAPPY)))


def test_summarising_leaves_the_network_as_it_was() -> None:
    net = network()
    sf.summarize(net, GAPPY)
    assert [type(question) for question in sf.summarize(net, WHOLE).answers] == [sf.Counts, sf.Counts]


def test_a_network_that_takes_no_gaps_refuses_to_summarise_them() -> None:
    with pytest.raises(MissingValueError, match="missing value"):
        sf.summarize(network(missing="raise"), GAPPY)


def test_complete_rows_join_rows_with_gaps() -> None:
    joined = network().fit(GAPPY).partial_fit(WHOLE)
    np.testing.assert_allclose(tables(joined), tables(network().fit(both(GAPPY, WHOLE))), atol=1e-9)
    assert joined.report_.rows == 120
    left = joined.unlearn(WHOLE)
    np.testing.assert_allclose(tables(left), tables(network().fit(GAPPY)), atol=1e-9)


def test_rows_with_gaps_cannot_join_counts_and_the_error_says_what_to_do() -> None:
    net = network().fit(WHOLE)
    before = tables(net)
    with pytest.raises(MergeError, match=r"Fit all rows together, or summarise both parts by summarize\(Patterns\("):
        net.partial_fit(GAPPY)
    np.testing.assert_array_equal(tables(net), before)
    with pytest.raises(MergeError, match="Fit all rows together"):
        sf.summarize(net, GAPPY) + sf.summarize(net, WHOLE)


def test_the_way_that_the_error_names_works() -> None:
    parts = [sf.summarize(sf.Patterns(("a", "b")), part, states=STATES) for part in (WHOLE, GAPPY)]
    merged = network().fit(parts[0] + parts[1])
    np.testing.assert_allclose(tables(merged), tables(network().fit(both(WHOLE, GAPPY))), atol=1e-12)
    begun = network().fit(parts[0])
    np.testing.assert_allclose(tables(begun), tables(network().fit(WHOLE)), atol=1e-12)
    np.testing.assert_allclose(tables(begun.partial_fit(GAPPY)), tables(merged), atol=1e-9)


def test_without_the_last_row_with_a_gap_the_closed_form_is_back() -> None:
    gap = {"a": [None], "b": ["low"]}
    for options in ({}, {"prior": 2.0}, {"prior": 3.0, "estimate": "map"}, {"unseen": "nan"}):
        net = network(**options).fit(both(WHOLE, gap)).unlearn(gap)
        wanted = network(**options).fit(WHOLE)
        np.testing.assert_array_equal(tables(net), tables(wanted))
        assert net.report_.method == wanted.report_.method
        assert net.report_.log_likelihood == wanted.report_.log_likelihood
        assert net.report_.log_evidence == wanted.report_.log_evidence
        assert net.report_.certificate == wanted.report_.certificate
        assert (net.report_.rows, net.n_iter_, net.converged_) == (60, 0, True)
        for name in ("a", "b"):
            ours, theirs = (one.standard_errors_[name].values for one in (net, wanted))
            np.testing.assert_array_equal(ours, theirs)
        assert not hasattr(net, "scores_")
        if "prior" in options:
            np.testing.assert_array_equal(net.posterior_["b"].mean().values, wanted.posterior_["b"].mean().values)
    # The rows are still known, so that others with gaps may join them again.
    again = network().fit(both(WHOLE, gap)).unlearn(gap).partial_fit(GAPPY)
    np.testing.assert_allclose(tables(again), tables(network().fit(both(WHOLE, GAPPY))), rtol=1e-9)


def test_without_the_last_row_with_a_gap_regressions_are_those_of_a_fit(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    x, group = rng.normal(1e3, 1.0, 40), rng.integers(2, size=40)
    whole = {"x": x, "g": group, "y": 2.0 * x - 3.0 * group + rng.normal(size=40)}
    gap = {"x": np.array([np.nan]), "g": np.array([1]), "y": np.array([0.5])}
    together = {name: np.concatenate([whole[name], gap[name]]) for name in whole}
    net = sf.BayesianNetwork({"y": ["x", "g"]}).fit(together).unlearn(gap)
    wanted = sf.BayesianNetwork({"y": ["x", "g"]}).fit(whole)
    net.write(tmp_path / "net.json")
    for one in (net, sf.read(tmp_path / "net.json")):
        np.testing.assert_array_equal(one.node("y").weights_, wanted.node("y").weights_)
        np.testing.assert_array_equal(one.node("y").variance_, wanted.node("y").variance_)
        np.testing.assert_array_equal(one.standard_errors_["y"].values, wanted.standard_errors_["y"].values)
        assert one.report_.log_likelihood == wanted.report_.log_likelihood
        assert one.score(whole) == wanted.score(whole)


def test_a_summary_is_not_summarised_again() -> None:
    with pytest.raises(DataError, match="a Summary already"):
        sf.summarize(network(), sf.summarize(network(), WHOLE))


# -- passes ------------------------------------------------------------------------------------------------------------


def test_the_receipt_counts_the_pass_that_met_a_gap() -> None:
    assert network().fit(WHOLE).report_.passes == 1
    net = network().fit(GAPPY)
    assert net.report_.passes == 2
    assert "in 2 passes" in str(net.report_)
    # From now on the network expects gaps, and reads once.
    assert net.partial_fit(GAPPY).report_.passes == 1
    assert network(hidden=None).fit(sf.summarize(network(), GAPPY)).report_.passes == 0


def test_the_receipt_counts_the_passes_over_a_file(tmp_path: Path) -> None:
    pd.DataFrame(GAPPY).to_csv(tmp_path / "rows.csv", index=False)
    assert network().fit(tmp_path / "rows.csv").report_.passes == 2
    pd.DataFrame(WHOLE).to_csv(tmp_path / "whole.csv", index=False)
    assert network().fit(tmp_path / "whole.csv").report_.passes == 1


# -- objective ---------------------------------------------------------------------------------------------------------


def log_densities(net: sf.BayesianNetwork, alpha: float) -> float:
    """Of the rows of the tables, from scipy."""
    found = float(dirichlet.logpdf(net.table("a").values, [alpha] * 2))
    return found + sum(float(dirichlet.logpdf(row, [alpha] * 3)) for row in net.table("b").values)


def test_the_objective_of_a_mode_is_the_log_posterior_up_to_a_constant() -> None:
    nets = [network(prior=3.0, estimate="map").fit(part) for part in (WHOLE, GAPPY, both(WHOLE, GAPPY))]
    away = [net.report_.objective - net.report_.log_likelihood - log_densities(net, 3.0) for net in nets]
    # The constant is that of the density: the same for closed forms and for EM.
    assert away == pytest.approx([away[0]] * 3, abs=1e-9)
    assert nets[0].report_.objective != nets[0].report_.log_likelihood


def test_the_objective_of_a_posterior_mean_is_the_posterior_it_is_the_mode_of() -> None:
    # The mean under Dirichlet(2) is the mode under Dirichlet(3).
    mean, mode = network(prior=2.0).fit(WHOLE), network(prior=3.0, estimate="map").fit(WHOLE)
    assert mean.report_.objective == pytest.approx(mode.report_.objective, abs=1e-9)


def test_the_objective_is_highest_at_the_fit() -> None:
    net = sf.BayesianNetwork({"a": []}, states={"a": STATES["a"]}, prior=3.0, estimate="map").fit({"a": WHOLE["a"]})
    yes = WHOLE["a"].count("yes")
    grid = np.linspace(0.01, 0.99, 99)
    values = yes * np.log(grid) + (60 - yes) * np.log1p(-grid) + beta.logpdf(grid, 3, 3) - beta.logpdf(0.5, 3, 3)
    value = net.report_.objective - 4 * np.log(0.5)
    assert value >= values.max()
    assert value == pytest.approx(values.max(), abs=0.02)


def test_without_a_prior_the_objective_is_the_log_likelihood() -> None:
    for part in (WHOLE, GAPPY):
        report = network().fit(part).report_
        assert report.objective == report.log_likelihood
