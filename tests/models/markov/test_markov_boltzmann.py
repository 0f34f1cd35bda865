"""Restricted Boltzmann machines: chains held at rows against exact EM, and machines beyond exact inference."""

from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from log_linear import design_of
from observed_rows import CYCLE, Oracle, cycle_rows
from suffice.models.em import held_rows
from suffice.models.em.held_rows import HeldRows
from suffice.models.em.rows import ObservedRows
from suffice.models.markov.hidden.clamped import open_margins, row_masses
from suffice.models.markov.hidden.positive_phase import ClampedRows
from suffice.models.markov.log_linear import LogLinear

VISIBLE, HIDDEN = [f"v{k}" for k in range(6)], [f"h{k}" for k in range(4)]
EDGES = [(v, h) for v in VISIBLE for h in HIDDEN]
UNITS = dict.fromkeys(HIDDEN, 2)
PRIOR = sf.Normal(0, 0.5)


def machine_rows(n: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    weights = np.concatenate([0.2 * rng.normal(size=10), 0.5 * rng.normal(size=24)])
    law = sf.MarkovNetwork.ising(EDGES).with_weights(weights)
    return {name: values for name, values in law.sample(n, random_state=1).items() if name in VISIBLE}


def exact_machine(weights: Any) -> sf.MarkovNetwork:
    return sf.MarkovNetwork.ising(EDGES, hidden=UNITS).with_weights(weights)


def penalty(weights: Any) -> float:
    return float(np.sum(np.square(weights))) / (2 * 0.5)


def in_a_file(rows: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Rows in a file, too many of them distinct to come here."""
    monkeypatch.setattr(held_rows, "FEW_NUMBERS", 10)
    pd.DataFrame({name: np.array(values, object) for name, values in rows.items()}).to_parquet(folder / "rows.parquet")
    return str(folder / "rows.parquet")


@pytest.mark.parametrize("place", ["here", "in a file"])
def test_chains_held_at_rows_reach_the_optimum_of_the_observed_likelihood(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = machine_rows(600)
    data = rows if place == "here" else in_a_file(rows, tmp_path, monkeypatch)
    sampling = sf.GibbsSampling(chains=256, burn_in=50, draws=400, accuracy=0.15)
    start = 0.3 * np.random.default_rng(3).normal(size=34)
    options: Any = {"hidden": UNITS, "prior": PRIOR, "start": start}
    rbm = sf.MarkovNetwork.ising(EDGES, solver="sml", sampling=sampling, random_state=0, **options).fit(data)
    assert rbm.converged_
    assert ("begun anew" in rbm.report_.method) == (place == "in a file")
    begun = exact_machine(start).score_samples(rows).sum() - penalty(start)
    reached = exact_machine(rbm.weights_).score_samples(rows).sum()
    assert rbm.report_.log_likelihood == pytest.approx(reached, rel=1e-10)
    objective = reached - penalty(rbm.weights_)
    assert rbm.report_.objective == pytest.approx(objective, rel=1e-10)
    near: Any = {**options, "start": rbm.weights_, "acceleration": "lbfgs", "m_steps": 1, "tolerance": 1e-5}
    best = sf.MarkovNetwork.ising(EDGES, solver="lbfgs", **near).fit(rows).report_.objective
    certificate = rbm.report_.certificate
    carlo = certificate.monte_carlo
    assert carlo is not None
    assert carlo.exact_gap is not None
    assert not certificate.exact
    assert certificate.engine.startswith("stochastic: Gibbs sampling, 256 chains free")
    assert abs(certificate.moment_gap - carlo.exact_gap) <= 5 * carlo.error
    # What the prior alone curves bounds the loss by slope^2 / (2 precision), a weight: see `GaussianPenalty`. The slope
    # is at most the gap times sqrt(600 variance + precision), and no product of spins has a variance above 1.
    assert best - objective <= 34 * carlo.exact_gap**2 * (600 + 2.0) / (2 * 2.0)
    assert best - objective < 0.01 * (best - begun)


@pytest.mark.parametrize("place", ["here", "in a file"])
def test_gaps_without_hidden_variables_are_held_chains_too(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, rows = cycle_rows(400, 7, 0.2)
    data = rows if place == "here" else in_a_file(rows, tmp_path, monkeypatch)
    sampling = sf.GibbsSampling(chains=256, burn_in=20, draws=200, accuracy=0.1)
    options: Any = {"solver": "sml", "sampling": sampling, "random_state": 0, "prior": sf.Normal(0, 1.0)}
    mrf = sf.MarkovNetwork(CYCLE, **options).fit(data)
    exact = sf.MarkovNetwork(CYCLE, prior=sf.Normal(0, 1.0)).fit(rows)
    assert mrf.converged_
    np.testing.assert_allclose(mrf.to_joint().values, exact.to_joint().values, atol=0.02)
    assert mrf.report_.objective == pytest.approx(exact.report_.objective, abs=0.5)
    path = tmp_path / "sml.suffice"
    cut = sf.MarkovNetwork(CYCLE, checkpoint=path, callback=lambda s: s.iteration >= 7, **options).fit(data)
    assert cut.stop_reason_ == "callback"
    rest = sf.MarkovNetwork(CYCLE, checkpoint=path, **options).fit(data)
    np.testing.assert_array_equal(rest.weights_, mrf.weights_)


def product(first: str, second: str) -> Any:
    return lambda x: x[first] * x[second]


def test_masses_of_rows_are_sums_over_what_they_do_not_show() -> None:
    rng = np.random.default_rng(5)
    states = {"v0": [-1, 1], "h0": [-1, 1], "h1": [-1, 1], "v1": [-1, 1]}
    edges = [("v0", "h0"), ("v0", "h1"), ("v1", "h0"), ("v1", "h1"), ("h0", "h1"), ("v0", "v1")]
    law = sf.MarkovNetwork.ising(edges, hidden={"h0": 2, "h1": 2}).with_weights(rng.normal(size=10))
    model = law.fitted_.family.model
    columns = {"v0": np.array([0, 1, -1, 1], np.int32), "v1": np.array([1, 1, 0, -1], np.int32)}
    rows = ObservedRows(model.domain, columns, np.ones(4))
    found = row_masses(model, model.log_potentials(law.weights_), rows)
    shown = {"v0": [-1, 1, None, 1], "v1": [1, 1, -1, None]}
    names = [*states]
    features: list[Any] = [itemgetter(name) for name in model.domain.names]
    features += [product(*edge) for edge in edges]
    ordered = {name: states[name] for name in names}
    design = design_of(features, ordered)
    oracle = Oracle(design, ordered, shown)
    total = np.log(np.exp(design @ law.weights_).sum())
    np.testing.assert_allclose(found - total, oracle.rows(law.weights_), rtol=1e-12)


def test_open_margins_fill_in_evenly() -> None:
    domain = sf.MarkovNetwork([("a", "H"), ("a", "b")], states={"a": [0, 1], "b": [0, 1]}, hidden={"H": 2})
    model: LogLinear = domain.with_weights(np.zeros(8)).fitted_.family.model
    columns = {"a": np.array([0, 1, 1], np.int32), "b": np.array([0, -1, 1], np.int32)}
    rows = ObservedRows(model.domain, columns, np.array([2.0, 1.0, 1.0]))
    expected = [0.25, 0.25, 0.25, 0.25, 0.5, 0.0, 0.125, 0.375]
    np.testing.assert_allclose(open_margins(HeldRows.here(rows), model), expected, atol=1e-15)
    held = ClampedRows.of(rows, model, 8, np.random.default_rng(0))
    assert held.weights.sum() == pytest.approx(1.0)
    place = model.domain.names.index("a")
    assert held.weights[held.states[place] == 0].sum() == pytest.approx(0.5)
    assert (held.clamped[model.domain.names.index("H")] == 0).all()


def test_a_machine_beyond_exact_inference_is_scored_with_an_error() -> None:
    """memory_limit forbids the junction tree; the exact figures come from a network that may have one."""
    rows = machine_rows(300)
    options: Any = {"hidden": UNITS, "prior": PRIOR, "random_state": 0, "memory_limit": 100}
    sampling = sf.GibbsSampling(chains=64, burn_in=20, draws=40)
    rbm = sf.MarkovNetwork.ising(
        EDGES, solver="sml", sampling=sampling, callback=lambda s: s.iteration >= 60, **options
    ).fit(rows)
    exact = exact_machine(rbm.weights_).score_samples(rows)
    carlo = rbm.report_.certificate.monte_carlo
    assert carlo is not None
    assert (carlo.exact_gap, rbm.stop_reason_) == (None, "callback")
    error = carlo.log_likelihood_error
    assert error is not None
    assert 0.0 < error < 30.0
    assert rbm.report_.log_likelihood == pytest.approx(exact.sum(), abs=5 * error)
    score = rbm.estimate_score(rows, random_state=1)
    assert score.value == pytest.approx(exact.mean(), abs=5 * score.standard_error)
    assert exact.sum() > 300 * 6 * np.log(0.5)
    with pytest.raises(sf.SizeError, match="estimate_score"):
        rbm.score(rows)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "cd"}, "needs whole rows"),
        ({"solver": "sml", "batch_size": 10}, "batch_size"),
        ({"solver": "sml", "n_init": 2}, "n_init"),
        ({"solver": "sml", "prior": sf.Laplace(scale=1.0)}, "normal prior"),
    ],
)
def test_what_held_chains_do_not_do(options: dict[str, Any], message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.MarkovNetwork.ising(EDGES, hidden=UNITS, **options).fit(machine_rows(20))
