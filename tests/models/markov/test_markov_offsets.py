"""Features that are constant, or lie far from 0 beside their spread: the same law, and what no data tell is named."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from log_linear import LogLinear, design_of, maximum

ROWS = {"a": [0, 0, 0, 1, 1, 2], "b": [0, 1, 0, 1, 1, 0]}
STATES = {"a": [0, 1, 2], "b": [0, 1]}
SMOOTH = ("auto", "newton", "newton-cg", "lbfgs", "cg", "ascent", "gis", "gis-cyclic")


def same(a: int, b: int) -> float:
    return float(a == b)


def best(features: Any) -> float:
    """The largest log-likelihood of the rows, every joint state listed, by a generic optimiser."""
    design = design_of(features, STATES)
    cells = np.array([2 * a + b for a, b in zip(ROWS["a"], ROWS["b"], strict=True)])
    return 6 * maximum(LogLinear(design).objective(design[cells].mean(axis=0)), np.zeros(design.shape[1]))


@pytest.mark.parametrize("solver", SMOOTH)
@pytest.mark.parametrize("value", [1.0, -3e7])
def test_a_constant_feature_changes_nothing(solver: Any, value: float) -> None:
    """log Z takes what a constant adds: its weight stays 0, and the report says that no data tell it."""
    terms = [sf.Feature(("a", "b"), same), sf.Feature("a", lambda a: value, name="one")]
    mrf = sf.MarkovNetwork(terms, solver=solver, start=[0.0, 0.7]).fit(ROWS)
    assert mrf.converged_
    assert mrf.report_.log_likelihood == pytest.approx(best([lambda x: same(x["a"], x["b"])]), abs=1e-9)
    assert mrf.weights_[0] == pytest.approx(np.log(4), abs=1e-8)
    assert mrf.weights_[1] == 0.0
    assert np.isinf(mrf.standard_errors_[1])
    assert mrf.n_params_ == 1
    assert any("constant features change no distribution" in note and "'one'" in note for note in mrf.report_.warnings)


def test_the_rounding_of_a_constant_is_no_feature() -> None:
    terms = [sf.Feature(("a", "b"), same), sf.Feature("b", lambda b: 0.1 + 0.2 if b else 0.3)]
    mrf = sf.MarkovNetwork(terms, solver="lbfgs").fit(ROWS)
    assert mrf.weights_[1] == 0.0
    assert mrf.n_params_ == 1


def test_a_prior_tells_the_weight_of_a_constant() -> None:
    terms = [sf.Feature(("a", "b"), same), sf.Feature("a", lambda a: 1.0)]
    mrf = sf.MarkovNetwork(terms, prior=sf.Normal(mean=[0.0, 2.5], variance=[10.0, 4.0])).fit(ROWS)
    assert mrf.weights_[1] == pytest.approx(2.5)
    assert mrf.standard_errors_[1] == pytest.approx(2.0)
    assert not any("no data tell" in note for note in mrf.report_.warnings)


@pytest.mark.parametrize("solver", SMOOTH)
@pytest.mark.parametrize("offset", [1e3, -1e7, 1e10, 1e12])
def test_an_offset_changes_neither_law_nor_weights_nor_errors(solver: str, offset: float) -> None:
    """w (f + c) = w f + w c, and log Z takes w c: with values that offset + f holds exactly, nothing else moves."""

    def network(at: float, solver: Any) -> Any:
        terms = [sf.Feature(("a", "b"), lambda a, b: at + same(a, b)), sf.Feature("a", lambda a: at + 0.25 * a)]
        return sf.MarkovNetwork(terms, solver=solver).fit(ROWS)

    plain, moved = network(0.0, "newton"), network(offset, solver)
    assert moved.converged_
    assert moved.report_.certificate.exists is True
    assert moved.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, abs=1e-8)
    np.testing.assert_allclose(moved.to_joint().values, plain.to_joint().values, atol=1e-9)
    np.testing.assert_allclose(moved.weights_, plain.weights_, rtol=1e-7)
    np.testing.assert_allclose(moved.standard_errors_, plain.standard_errors_, rtol=1e-7)
    np.testing.assert_allclose(moved.information_, plain.information_, atol=1e-8)
    assert moved.log_partition_ == pytest.approx(plain.log_partition_ + moved.weights_.sum() * offset, rel=1e-12)
    assert moved.score_samples(ROWS).sum() == pytest.approx(plain.report_.log_likelihood, abs=1e-8)


def test_offsets_do_not_decide_whether_the_maximum_exists() -> None:
    """Random features on six joint states, with offsets up to 1e12 spreads; the truth is that of the same features
    less their offsets, by the largest step along which no seen state falls and some other does, listed.
    """
    from scipy.optimize import linprog

    rng = np.random.default_rng(5)
    confusion = np.zeros((2, 2), int)
    for _ in range(60):
        values = rng.integers(-3, 4, (2, 3, 2)).astype(float)
        offset = 10.0 ** rng.uniform(2, 12, 2)
        spread = 2.0 ** rng.integers(-4, 5, 2)
        tables = [np.round(offset[k]) + spread[k] * values[k] for k in range(2)]
        terms = [sf.Feature(("a", "b"), table) for table in tables]
        rows = rng.integers(0, 6, rng.integers(1, 5))
        data = {"a": rows // 2, "b": rows % 2}
        mrf = sf.MarkovNetwork(terms, states=STATES).fit(data)
        design = (tables[0].ravel() - np.round(offset[0])), (tables[1].ravel() - np.round(offset[1]))
        away = np.stack(design, axis=1)
        away = away - away[rows].mean(axis=0)
        off = np.setdiff1d(np.arange(6), rows)
        ends = [(-1, 1)] * 2
        falls = linprog(away[off].sum(axis=0), A_ub=away[off], b_ub=np.zeros(len(off)), A_eq=away[rows],
                        b_eq=np.zeros(len(rows)), bounds=ends)  # fmt: skip
        truth = float(falls.fun or 0.0) > -1e-9
        assert mrf.report_.certificate.exists is not None
        confusion[int(truth), int(mrf.report_.certificate.exists)] += 1
    assert confusion[0, 1] == confusion[1, 0] == 0
    assert confusion[0, 0] >= 10
    assert confusion[1, 1] >= 10


def test_features_that_say_the_same_are_named() -> None:
    terms = [
        sf.Feature("a", lambda a: a, name="x"),
        sf.Feature("a", lambda a: 2 * a + 1, name="y"),
        sf.Feature("b", lambda b: b, name="z"),
    ]
    mrf = sf.MarkovNetwork(terms).fit(ROWS)
    assert mrf.n_params_ == 2
    assert np.isinf(mrf.standard_errors_).tolist() == [True, True, False]
    (note,) = mrf.report_.warnings
    assert "'x', 'y'" in note
    assert "'z'" not in note


def test_a_feature_of_a_table_is_named() -> None:
    terms = [("a", "b"), sf.Feature("a", lambda a: a, name="inside")]
    rows = {"a": [0, 0, 1, 1, 2, 2], "b": [0, 1, 0, 1, 0, 1]}
    mrf = sf.MarkovNetwork(terms).fit(rows)
    assert any("'inside'" in note for note in mrf.report_.warnings)
    assert np.isinf(mrf.standard_errors_[-1])


# -- where exact inference does not fit --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["pseudolikelihood", "sml", "loopy-bp", "cd"])
def test_an_offset_does_not_change_what_an_approximate_fit_reports(solver: Any) -> None:
    """The likelihood is that of the plain features at the weights returned, all joint states listed."""
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(6)]
    rows = {name: rng.integers(0, 2, 200) for name in names}
    for one, other in pairwise(names):
        rows[other] = np.where(rng.random(200) < 0.6, rows[one], rows[other])
    states = np.array(list(np.ndindex(*(2,) * 6)))
    design = np.column_stack([states[:, :-1] == states[:, 1:], states]).astype(float)
    seen = np.column_stack([rows[name] for name in names])
    means = np.column_stack([seen[:, :-1] == seen[:, 1:], seen]).mean(axis=0)
    expected = []
    for offset in (0.0, -1e8, 1e12):
        pairs = [sf.Feature(pair, lambda a, b, at=offset: at + same(a, b)) for pair in pairwise(names)]
        terms = [*pairs, *(sf.Feature(name, float) for name in names)]
        mrf = sf.MarkovNetwork(terms, solver=solver, random_state=0).fit(rows)
        likelihood = 200 * (mrf.weights_ @ means - np.log(np.exp(design @ mrf.weights_).sum()))
        assert mrf.report_.log_likelihood == pytest.approx(likelihood, abs=1e-8)
        assert mrf.estimate_score(rows, random_state=1).value == pytest.approx(likelihood / 200, abs=0.1)
        matched = mrf.matched_statistics()
        assert matched is not None
        np.testing.assert_allclose(matched.expected[:5] - offset, matched.observed[:5] - offset, atol=0.1)
        expected.append(mrf.weights_)
    np.testing.assert_allclose(expected, [expected[0]] * 3, rtol=1e-6)


@pytest.mark.parametrize("solver", ["pseudolikelihood", "sml", "loopy-bp", "cd"])
def test_an_approximate_fit_names_constant_features(solver: Any) -> None:
    terms = [sf.Feature(("a", "b"), same), sf.Feature("a", lambda a: 3e7, name="one")]
    mrf = sf.MarkovNetwork(terms, solver=solver, start=[0.0, 0.7], random_state=0).fit(ROWS)
    assert mrf.weights_[1] == 0.0
    assert any("constant features change no distribution" in note and "'one'" in note for note in mrf.report_.warnings)
