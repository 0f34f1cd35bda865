"""Hidden variables and gaps of Markov networks, against joint tables and generic optimisers."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import suffice as sf
from certificates import slope_of
from log_linear import design_of, joint_states, law_of, table_features
from observed_rows import (
    CLASSES,
    CYCLE,
    CYCLE_STATES,
    ITEMS,
    Oracle,
    class_oracle,
    class_rows,
    cycle_oracle,
    cycle_rows,
)
from suffice.statistics import Patterns

Floats = NDArray[np.float64]


# -- the maximum -----------------------------------------------------------------------------------------------------


def test_likelihood_posterior_and_slope_are_those_of_the_joint_table() -> None:
    rows = class_rows()
    rows["a"] = [None if k % 7 == 0 else x for k, x in enumerate(rows["a"])]  # type: ignore[misc]
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(rows)
    oracle, weights = class_oracle(rows), mrf.weights_
    np.testing.assert_allclose(mrf.score_samples(rows), oracle.rows(weights), rtol=1e-12)
    assert mrf.report_.log_likelihood == pytest.approx(oracle.rows(weights).sum(), rel=1e-12)
    assert mrf.score(rows) == pytest.approx(oracle.rows(weights).mean(), rel=1e-12)
    gap = np.abs(oracle.slope(weights)).max() / 150
    assert mrf.report_.certificate.slope == pytest.approx(gap, rel=1e-6)
    assert gap <= 1e-7
    states = {"H": [0, 1], **{item: [0, 1] for item in ITEMS}}
    of_class = np.array([[x["H"] == k for k in (0, 1)] for x in joint_states(states)], dtype=float)
    np.testing.assert_allclose(mrf.predict_proba(rows, "H"), oracle.posterior(weights) @ of_class, atol=1e-12)
    assert (mrf.predict(rows, "H") == (oracle.posterior(weights) @ of_class).argmax(axis=1)).all()


def test_no_generic_optimiser_finds_more() -> None:
    rows = class_rows()
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, n_init=3, acceleration="squarem").fit(rows)
    oracle, rng = class_oracle(rows), np.random.default_rng(5)
    best = max(oracle.rows(oracle.best(rng.normal(size=16))).sum() for _ in range(3))
    assert mrf.report_.log_likelihood == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("solver", ["ipf", "gis", "gis-cyclic", "lbfgs", "newton", "newton-cg", "cg", "ascent"])
@pytest.mark.parametrize("m_steps", [None, 1])
def test_every_m_step_reaches_the_same_law(solver: Any, m_steps: int | None) -> None:
    _, rows = cycle_rows(120, 1, 0.2)
    mrf = sf.MarkovNetwork(CYCLE, solver=solver, m_steps=m_steps, tolerance=1e-8).fit(rows)
    best = cycle_oracle(rows).best(np.zeros(16))
    assert mrf.converged_
    assert np.diff(mrf.history_).min() >= -1e-9
    assert mrf.report_.log_likelihood == pytest.approx(cycle_oracle(rows).rows(best).sum(), abs=1e-8)
    law = law_of(design_of(table_features(CYCLE, CYCLE_STATES), CYCLE_STATES), best)[1]
    np.testing.assert_allclose(mrf.to_joint().values.ravel(), law, atol=1e-5)


@pytest.mark.parametrize("acceleration", ["squarem", "lbfgs"])
def test_accelerated_runs_end_at_the_same_place_with_fewer_expectations(acceleration: Any) -> None:
    rows = class_rows()
    plain = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(rows)
    fast = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, acceleration=acceleration).fit(rows)
    assert fast.converged_
    assert fast.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, abs=1e-8)
    assert fast.n_expectations_ < plain.n_expectations_
    assert np.diff(fast.history_).min() >= -1e-9
    assert len(fast.history_) == fast.n_iter_ + 1


@settings(max_examples=12)
@given(st.integers(0, 10_000), st.sampled_from(["auto", "ipf", "gis", "lbfgs"]), st.sampled_from([None, 1, 2]))
def test_the_observed_likelihood_never_falls(seed: int, solver: str, m_steps: int | None) -> None:
    rng = np.random.default_rng(seed)
    _, rows = cycle_rows(int(rng.integers(5, 60)), seed, 0.3)
    terms = [*CYCLE, ("A", "H"), ("H", "C")]
    states = {**CYCLE_STATES, "H": [0, 1, 2]}
    options: Any = {"solver": solver, "m_steps": m_steps, "random_state": seed, "max_iter": 8, "tolerance": 0.0}
    mrf = sf.MarkovNetwork(terms, states=states, hidden={"H": 3}, callback=lambda s: s.iteration >= 8, **options)
    mrf.fit(rows)
    assert np.diff(mrf.history_).min(initial=0.0) >= -1e-10
    oracle = Oracle(design_of(table_features(terms, states), states), states, rows)
    weights = np.where(np.isfinite(mrf.weights_), mrf.weights_, -600.0)
    assert mrf.history_[-1] == pytest.approx(oracle.rows(weights).sum(), rel=1e-9)
    assert mrf.report_.log_likelihood == pytest.approx(mrf.history_[-1], rel=1e-12)


# -- single steps ----------------------------------------------------------------------------------------------------


def one_step(terms: Any, rows: dict[str, Any], start: Floats, **options: Any) -> sf.MarkovNetwork:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        return sf.MarkovNetwork(terms, start=start, max_iter=1, **options).fit(rows)


def test_one_step_of_scaling_is_the_log_ratio_of_expected_and_model_margins() -> None:
    """Four cliques whose indicators add up to 4: every weight moves by log(m / mu) / 4."""
    rows, start = class_rows(40), np.random.default_rng(2).normal(size=16)
    oracle = class_oracle(rows)
    expected = oracle.posterior(start).mean(axis=0) @ oracle.design
    model = law_of(oracle.design, start)[1] @ oracle.design
    mrf = one_step(CLASSES, rows, start, hidden={"H": 2}, solver="gis", m_steps=1)
    np.testing.assert_allclose(mrf.weights_, start + np.log(expected / model) / 4, rtol=1e-12)
    np.testing.assert_allclose(mrf.history_, [oracle.rows(start).sum(), oracle.rows(mrf.weights_).sum()], rtol=1e-12)


def test_one_step_of_scaling_with_features_that_do_not_add_up() -> None:
    """Features 1{v = h} with a slack: w_k += (log(m_k / mu_k) - log(m_slack / mu_slack)) / C, C = 2."""
    terms = [sf.Feature(("a", "H"), lambda v, h: v == h), sf.Feature(("b", "H"), lambda v, h: v == h)]
    rows, start = {"a": [0, 0, 1, 1, 0, 1, 1], "b": [0, 1, 1, 1, 0, 0, 1]}, np.array([0.7, -0.4])
    states = {"a": [0, 1], "H": [0, 1], "b": [0, 1]}
    design = design_of([lambda x: x["a"] == x["H"], lambda x: x["b"] == x["H"]], states)
    oracle = Oracle(design, states, rows)
    m, mu = oracle.posterior(start).mean(axis=0) @ design, law_of(design, start)[1] @ design
    step = (np.log(m / mu) - np.log((2 - m.sum()) / (2 - mu.sum()))) / 2
    mrf = one_step(terms, rows, start, hidden={"H": 2}, solver="gis", m_steps=1)
    np.testing.assert_allclose(mrf.weights_, start + step, rtol=1e-12)


def test_a_whole_step_has_the_expected_margins() -> None:
    rows, start = class_rows(40), np.random.default_rng(3).normal(size=16)
    oracle = class_oracle(rows)
    expected = oracle.posterior(start).mean(axis=0) @ oracle.design
    for solver in ("closed-form", "newton"):
        mrf = one_step(CLASSES, rows, start, hidden={"H": 2}, solver=solver)
        found = np.concatenate([mrf.marginal(clique).values.ravel() for clique in CLASSES])
        np.testing.assert_allclose(found, expected, atol=1e-13 if solver == "closed-form" else 1e-4)


def test_latent_classes_take_the_same_steps_as_a_bayesian_network() -> None:
    rows, rng = class_rows(80), np.random.default_rng(4)
    share, tables = np.array([0.35, 0.65]), {item: rng.dirichlet([2, 2], size=2) for item in ITEMS}
    options: Any = {"hidden": {"H": 2}, "max_iter": 20, "tolerance": 0.0}
    start = np.concatenate([np.log(tables[item]).ravel() for item in ITEMS])
    start[:4] += np.repeat(np.log(share), 2)
    with pytest.warns(sf.ConvergenceWarning):
        directed = sf.BayesianNetwork(CLASSES, start={"H": share, **tables}, **options).fit(rows)
    with pytest.warns(sf.ConvergenceWarning):
        undirected = sf.MarkovNetwork(CLASSES, start=start, **options).fit(rows)
    np.testing.assert_allclose(undirected.history_, directed.history_, rtol=1e-12)
    assert undirected.n_params_ == directed.n_params_
    np.testing.assert_allclose(undirected.score_samples(rows), directed.score_samples(rows), rtol=1e-9)
    for item in ITEMS:
        np.testing.assert_allclose(
            undirected.query(item, given={"H": 1}).values, directed.query(item, given={"H": 1}).values, rtol=1e-9
        )


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_without_gaps_it_is_the_ordinary_fit() -> None:
    whole, _ = cycle_rows(200, 1, 0.0)
    plain = sf.MarkovNetwork(CYCLE).fit(whole)
    by_rows = sf.MarkovNetwork(CYCLE, tolerance=1e-11).fit(sf.summarize(Patterns(tuple("ABCD")), whole))
    np.testing.assert_allclose(by_rows.to_joint().values, plain.to_joint().values, atol=1e-10)
    assert by_rows.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, abs=1e-9)
    assert by_rows.deviance_ == pytest.approx(plain.deviance_, abs=1e-9)
    assert by_rows.df_ == plain.df_
    assert by_rows.report_.kl_divergence == pytest.approx(plain.report_.kl_divergence)
    np.testing.assert_allclose(by_rows.standard_errors_, plain.standard_errors_, rtol=1e-6)


def test_a_monotone_pattern_of_gaps_has_a_closed_form() -> None:
    """A is always seen, B not: the maximum is P(A) of all rows times P(B | A) of the whole ones."""
    rows = {"A": [0, 0, 0, 1, 1, 1, 1, 1, 0, 1], "B": [0, 0, 1, 1, 1, 0, 1, None, None, None]}
    mrf = sf.MarkovNetwork([("A", "B")], tolerance=1e-12).fit(rows)
    of_a, given_a = np.array([0.4, 0.6]), np.array([[2 / 3, 1 / 3], [1 / 4, 3 / 4]])
    np.testing.assert_allclose(mrf.marginal(("A", "B")).values, of_a[:, None] * given_a, atol=1e-11)
    assert mrf.report_.warnings == ()


@pytest.mark.parametrize("gap", [None, np.nan, pytest.param("NA", id="NA")])
def test_gaps_of_every_kind(gap: Any) -> None:
    pandas = pytest.importorskip("pandas")
    missing = pandas.NA if gap == "NA" else gap
    frame = pandas.DataFrame(
        {"A": [0, 0, 1, 1, 0, 1], "B": pandas.Series([0, 1, 1, missing, 0, missing], dtype=object)}
    )
    mrf = sf.MarkovNetwork([("A", "B")], tolerance=1e-12).fit(frame)
    np.testing.assert_allclose(mrf.marginal("B").values, [1 / 3, 2 / 3], atol=1e-10)


def test_values_missing_at_random_are_learned_without_bias() -> None:
    """B is missing more often where A = 1: whole rows alone would put P(A = 1) far off."""
    rng = np.random.default_rng(8)
    a = rng.integers(0, 2, 4000)
    b = (rng.random(4000) < np.where(a, 0.8, 0.3)).astype(int)
    shown = rng.random(4000) > np.where(a, 0.7, 0.1)
    rows = {"A": a.tolist(), "B": [int(x) if s else None for x, s in zip(b, shown, strict=True)]}
    mrf = sf.MarkovNetwork([("A", "B")]).fit(rows)
    assert mrf.marginal("A").at(A=1) == pytest.approx(a.mean(), abs=1e-7)
    spread = np.sqrt(0.25 / shown.sum())
    assert mrf.marginal("B").at(B=1) == pytest.approx(b.mean(), abs=4 * spread)
    assert abs(b[shown].mean() - b.mean()) > 4 * spread


def test_gaps_can_be_refused() -> None:
    with pytest.raises(sf.MissingValueError, match=r"'B'.*missing='em'"):
        sf.MarkovNetwork([("A", "B")], missing="raise").fit({"A": [0, 1], "B": [0, None]})


def test_a_column_of_gaps_is_hidden() -> None:
    states = {"A": [0, 1], "B": [0, 1]}
    mrf = sf.MarkovNetwork([("A", "B")], states=states).fit({"A": [0, 1, 1], "B": [None, None, None]})
    assert any("no value at all" in note for note in mrf.report_.warnings)
    assert mrf.marginal("A").at(A=1) == pytest.approx(2 / 3, abs=1e-7)


def test_what_no_row_leaves_possible_runs_to_infinity() -> None:
    rows = {"A": [0, 0, 1, 1, 0, 1, 0, 0], "B": [0, 0, 1, 1, 1, 1, 0, 1], "C": [0, 1, 1, 0, 1, 1, 1, 0]}
    terms = [("A", "B"), ("B", "H"), ("H", "C")]
    values = []
    for solver in ("closed-form", "ipf", "gis", "lbfgs", "newton"):
        mrf = sf.MarkovNetwork(terms, hidden={"H": 2}, solver=solver).fit(rows)
        assert mrf.weights_[2] == -np.inf
        assert mrf.marginal(("A", "B")).at(A=1, B=0) == 0.0
        certificate = mrf.report_.certificate
        assert (certificate.exists, certificate.value_gap) == (False, None)
        assert certificate.directions == ("weight of A=1, B=0 -> -inf",)
        values.append(mrf.report_.log_likelihood)
    np.testing.assert_allclose(values, values[0], rtol=1e-9)


# -- features and priors ---------------------------------------------------------------------------------------------


FEATURES = [
    sf.Feature([("u", "H"), ("v", "H")], lambda v, h: v * h, name="tied"),
    sf.Feature(("u",), lambda u: 250.0 * u, name="cents"),
    sf.Feature(("v", "w"), lambda v, w: 0.3 * v - 1.7 * w * v, name="real"),
    ("w", "H"),
]
FEATURE_STATES = {"u": [-1, 1], "H": [-1, 1], "v": [-1, 1], "w": [0, 1]}
FEATURE_DESIGN = design_of(
    [
        lambda x: x["u"] * x["H"] + x["v"] * x["H"],
        lambda x: 250.0 * x["u"],
        lambda x: 0.3 * x["v"] - 1.7 * x["w"] * x["v"],
        *table_features([("w", "H")], FEATURE_STATES),
    ],
    FEATURE_STATES,
)


def feature_rows() -> dict[str, Any]:
    rng = np.random.default_rng(11)
    h = np.where(rng.random(120) < 0.5, 1, -1)
    flip = {name: np.where(rng.random(120) < 0.2, -h, h) for name in ("u", "v")}
    w = (rng.random(120) < np.where(h > 0, 0.7, 0.4)).astype(int)
    rows: dict[str, Any] = {name: values.tolist() for name, values in flip.items()} | {"w": w.tolist()}
    rows["v"] = [None if k % 9 == 0 else x for k, x in enumerate(rows["v"])]
    return rows


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "gis"])
def test_tied_and_real_valued_features(solver: str) -> None:
    rows = feature_rows()
    steps = 1 if solver == "gis" else None
    options: Any = {"solver": solver, "m_steps": steps, "acceleration": "squarem"}
    mrf = sf.MarkovNetwork(FEATURES, hidden={"H": [-1, 1]}, **options).fit(rows)
    oracle = Oracle(FEATURE_DESIGN, FEATURE_STATES, rows)
    assert mrf.report_.log_likelihood == pytest.approx(oracle.rows(mrf.weights_).sum(), rel=1e-12)
    best = max(
        oracle.rows(oracle.best(np.random.default_rng(k).normal(size=7) / [1, 250, 1, 1, 1, 1, 1])).sum()
        for k in range(3)
    )
    assert mrf.report_.log_likelihood == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "newton-cg"])
def test_a_normal_prior_makes_it_map(solver: Any) -> None:
    rows = class_rows(60)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, prior=sf.Normal(0, 2.0), solver=solver).fit(rows)
    oracle = class_oracle(rows)
    slope = oracle.slope(mrf.weights_) - mrf.weights_ / 2.0
    assert np.abs(slope).max() / 60 <= 1e-7
    assert slope_of(mrf.report_.certificate) <= 1e-7
    assert mrf.report_.estimate == "MAP"
    objective = oracle.rows(mrf.weights_).sum() - mrf.weights_ @ mrf.weights_ / 4.0
    assert mrf.report_.objective == pytest.approx(objective, rel=1e-12)
    assert mrf.history_[-1] == pytest.approx(objective, rel=1e-12)
    best = oracle.best(mrf.weights_ + 0.01, precision=0.5)
    assert objective == pytest.approx(oracle.rows(best).sum() - best @ best / 4.0, abs=1e-6)


def test_a_laplace_prior_is_climbed_too() -> None:
    rows = class_rows(60)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, prior=sf.Laplace(scale=1.0)).fit(rows)
    slope, weights = class_oracle(rows).slope(mrf.weights_), mrf.weights_
    held = weights == 0.0
    assert 0 < held.sum() < 16
    assert (np.abs(slope[held]) <= 1.0 + 1e-5).all()
    np.testing.assert_allclose(slope[~held], np.sign(weights[~held]), atol=1e-5)
    with pytest.raises(sf.OptionError, match="smooth prior"):
        sf.MarkovNetwork(CLASSES, hidden={"H": 2}, prior=sf.Laplace(scale=1.0), acceleration="lbfgs").fit(rows)


def test_standard_errors_are_those_of_the_observed_likelihood() -> None:
    rows = class_rows(300)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}, tolerance=1e-9, acceleration="squarem").fit(rows)
    oracle, weights, step = class_oracle(rows), mrf.weights_, 1e-4
    slopes = [oracle.slope(weights + step * unit) - oracle.slope(weights - step * unit) for unit in np.eye(16)]
    information = -np.array(slopes) / (2 * step)
    covariance = np.linalg.pinv((information + information.T) / 2, rcond=1e-7)
    np.testing.assert_allclose(mrf.standard_errors_, np.sqrt(np.diag(covariance)), rtol=1e-4)
    filled_in = np.sqrt(np.diag(np.linalg.pinv(300 * mrf.information_, rcond=1e-9)))
    assert (mrf.standard_errors_ > filled_in).all()


def test_deviance_and_degrees_of_freedom_are_against_what_is_seen() -> None:
    rows = class_rows(200)
    mrf = sf.MarkovNetwork(CLASSES, hidden={"H": 2}).fit(rows)
    cells = list(itertools.product([0, 1], repeat=4))
    seen = list(zip(*(rows[item] for item in ITEMS), strict=True))
    counts = np.array([seen.count(cell) for cell in cells], dtype=float)
    table = {item: [cell[k] for cell in cells] for k, item in enumerate(ITEMS)}
    expected = 200 * np.exp(mrf.score_samples(table))
    used = counts > 0
    assert mrf.df_ == 16 - 1 - 9
    assert mrf.deviance_ == pytest.approx(2 * np.sum(counts[used] * np.log(counts[used] / expected[used])), rel=1e-9)
    assert mrf.chi2_ == pytest.approx(np.sum((counts - expected) ** 2 / expected), rel=1e-8)
    assert mrf.deviance(rows) == pytest.approx(mrf.deviance_, rel=1e-12)
    assert mrf.report_.kl_divergence == pytest.approx(mrf.deviance_ / 400, abs=1e-9)
    assert "Likelihood ratio" in str(mrf.summary())
