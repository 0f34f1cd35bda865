"""Noisy-OR nodes learned from rows with gaps: by whole families where they are small, by the chain of causes beyond."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import suffice as sf
from suffice.errors import SizeError
from suffice.models.bayesian.nodes import noisy_max_chain


def holes(parents: int, n: int, seed: int = 0, share: float = 0.15, active: float = 0.4) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    causes = (rng.random((n, parents)) < active).astype(int)
    weights = np.linspace(0.3, 1.2, parents)
    effect = (rng.random(n) < -np.expm1(-(0.2 + causes @ weights))).astype(int)
    nothing: Any = None
    rows = {**{f"x{k}": causes[:, k] for k in range(parents)}, "y": effect}
    return {name: np.where(rng.random(n) < share, nothing, values) for name, values in rows.items()}


def network(parents: int, kind: Any = "noisy-or", **options: Any) -> sf.BayesianNetwork:
    states = {**{f"x{k}": [0, 1] for k in range(parents)}, "y": [0, 1]}
    edges = [(f"x{k}", "y") for k in range(parents)]
    return sf.BayesianNetwork(edges, states=states, nodes={"y": kind}, **options)


@pytest.mark.parametrize(
    ("kind", "prior"),
    [("noisy-or", None), (sf.NoisyOr(active={"y": 0, "x1": 0}), {"y": 2.0}), (sf.NoisyOr(leak=False), {"y": 1.0})],
    ids=["leak", "turned", "no leak"],
)
def test_the_chain_leads_to_the_maximum_of_the_family(kind: Any, prior: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = holes(3, 400)
    if isinstance(kind, sf.NoisyOr) and not kind.leak:
        silent = np.array([all(rows[f"x{k}"][at] == 0 for k in range(3)) for at in range(400)])
        rows = {name: values[~silent] for name, values in rows.items()}
    options: dict[str, Any] = {"tolerance": 1e-10, "max_iter": 20_000, "acceleration": "squarem", "prior": prior}
    family = network(3, kind, **options).fit(rows)
    parameters, expected = family.node("y").parameters(), family.standard_errors_["y"].values
    monkeypatch.setattr(noisy_max_chain, "CHAINED_CELLS", 0)
    chain = network(3, kind, **options).fit(rows)
    assert chain.report_.objective == pytest.approx(family.report_.objective, abs=1e-7)
    np.testing.assert_allclose(chain.node("y").parameters(), parameters, atol=1e-5)
    np.testing.assert_allclose(chain.standard_errors_["y"].values, expected, rtol=1e-3)
    assert np.isfinite(expected).any()


def test_the_objective_of_the_chain_never_falls() -> None:
    net = network(14, max_iter=40, tolerance=1e-12)
    with pytest.warns(sf.ConvergenceWarning):
        net.fit(holes(14, 500, active=0.1))
    assert np.diff(net.history_).min() > -1e-9
    assert net.history_[-1] == pytest.approx(net.report_.log_likelihood, rel=1e-12)


def test_thirty_parents_with_gaps() -> None:
    rows = holes(30, 3000, share=0.1, active=0.06)
    net = network(30, tolerance=1e-5).fit(rows)
    assert net.converged_
    assert net.report_.certificate.moment_gap < 1e-4 * math.sqrt(3000)  # In standard errors of the 3000 rows.
    # Twice the log-likelihood ratio of the true weights is chi-squared with 31 degrees of freedom.
    truth = np.array([0.2, *np.linspace(0.3, 1.2, 30)])
    roots = {f"x{k}": net.table(f"x{k}").values for k in range(30)}
    true = network(30, fixed={"y": replace(net.node("y"), weights=truth, observed=None), **roots}).fit(rows)
    ratio = 2 * (net.report_.log_likelihood - true.report_.log_likelihood)
    assert chi2.ppf(0.001, 31) < ratio < chi2.ppf(0.999, 31)
    errors = net.standard_errors_["y"].values
    whole = network(30).fit(holes(30, 3000, share=0.0, active=0.06)).standard_errors_["y"].values
    assert (errors > whole).mean() > 0.8
    deleted = [all(rows[name][at] is not None for name in rows) for at in range(3000)]
    some = network(30).fit({name: values[deleted] for name, values in rows.items()})
    assert np.nanmean((net.node("y").weights - truth) ** 2) < np.nanmean((some.node("y").weights - truth) ** 2)


def test_without_a_leak_a_row_that_nothing_causes_is_named() -> None:
    rows = {"x0": [0, 1, None, 0, 0], "y": [1, 1, 0, 1, 0]}
    with pytest.raises(sf.EstimateError, match=r"no parent is active.*Use NoisyOr\(leak=True\)"):
        network(1, sf.NoisyOr(leak=False)).fit(rows)


def test_a_wide_fixed_node_takes_part_in_em() -> None:
    rows = holes(14, 300, active=0.2)
    first = network(14, prior={"y": 1.0}).fit({name: [v or 0 for v in values] for name, values in rows.items()})
    net = network(14, fixed={"y": first.node("y")}).fit(rows)
    np.testing.assert_array_equal(net.node("y").weights, first.node("y").weights)
    assert net.report_.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-12)


def test_a_wide_node_beside_real_ones_is_refused_in_words() -> None:
    rows = {**holes(14, 60), "z": np.linspace(0, 1, 60)}
    net = sf.BayesianNetwork(
        [*((f"x{k}", "y") for k in range(14)), ("y", "z")],
        states={name: [0, 1] for name in rows if name != "z"},
        nodes={"y": "noisy-or"},
    )
    with pytest.raises(SizeError, match=r"'y' has so many joint states .* networks with real nodes"):
        net.fit(rows)
