"""Features of any size and tied features: the same law, honest certificates, errors that do not depend on units."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.models.markov.feature_spread import feature_units, variances
from suffice.models.markov.log_linear import LogLinear
from suffice.solvers.penalties import LaplacePenalty
from suffice.solvers.rank import inverse_and_flat

ROWS = {"A": [0, 1, 1, 1, 0], "B": [0, 0, 1, 1, 1]}
SMOOTH = ("auto", "newton", "newton-cg", "lbfgs", "cg", "ascent", "gis", "gis-cyclic")


def scaled(size: float, **options: Any) -> Any:
    """A feature of its own size beside one of size one."""
    terms = [sf.Feature("A", lambda a: a), sf.Feature(("A", "B"), lambda a, b: size * (a == b))]
    return sf.MarkovNetwork(terms, **options)


@pytest.mark.parametrize("solver", SMOOTH)
@pytest.mark.parametrize("size", [1e-10, 1e-3, 1e12])
def test_the_law_and_the_certificate_do_not_depend_on_the_size_of_a_feature(solver: str, size: float) -> None:
    """w f = (w / c) (c f): the law of a feature c f is that of f, and its weight is w / c with an error / c."""
    plain = scaled(1.0, solver="newton").fit(ROWS)
    mrf = scaled(size, solver=solver).fit(ROWS)
    assert mrf.converged_
    np.testing.assert_allclose(mrf.to_joint().values, plain.to_joint().values, atol=2e-10)
    np.testing.assert_allclose(mrf.weights_ * [1, size], plain.weights_, rtol=1e-8)
    np.testing.assert_allclose(mrf.standard_errors_ * [1, size], plain.standard_errors_, rtol=1e-7)
    certificate = mrf.report_.certificate
    assert certificate.exists is True
    assert certificate.value_gap is not None
    assert 1e-16 < certificate.value_gap < 1e-13  # The rounding of the objective.
    assert certificate.slope < 2e-10
    assert "units of their spread" in certificate.slope_unit or size == 1
    assert mrf.n_params_ == 2


@pytest.mark.parametrize("size", [1e-8, 1e-2, 1.0, 1e6])
def test_the_value_gap_of_a_fit_that_stopped_early_is_what_is_left(size: float) -> None:
    best = scaled(1.0, solver="newton").fit(ROWS).report_.log_likelihood
    with pytest.warns(sf.ConvergenceWarning):
        mrf = scaled(size, solver="gis", max_iter=6).fit(ROWS)
    left = (best - mrf.report_.log_likelihood) / 5
    assert left > 1e-8
    assert mrf.report_.certificate.value_gap == pytest.approx(left, rel=1e-2)


def test_errors_of_features_of_different_size() -> None:
    """A rare event and an income: the information has the diagonal 6e1 and 3e13, and both errors are its inverse."""
    rng = np.random.default_rng(0)
    counts = np.stack([rng.integers(1000, 5000, 50), rng.integers(0, 3, 50)]).astype(float)
    incomes = list(range(0, 50_000, 1000))
    domain = sf.Domain([sf.Variable.discrete("rare", [0, 1]), sf.Variable.discrete("income", incomes)])
    mrf = sf.MarkovNetwork([sf.Feature("rare", lambda r: r), sf.Feature("income", lambda x: x)])
    mrf.fit(sf.Table(domain, counts))
    total = counts.sum()
    share = counts[1].sum() / total
    assert mrf.standard_errors_[0] == pytest.approx(1 / math.sqrt(total * share * (1 - share)), rel=1e-8)
    law = mrf.marginal("income").values
    spread = law @ np.square(incomes) - (law @ np.array(incomes)) ** 2
    assert mrf.standard_errors_[1] == pytest.approx(1 / math.sqrt(total * spread), rel=1e-8)


def test_the_scaled_inverse_is_the_pseudo_inverse() -> None:
    rng = np.random.default_rng(3)
    for rank, size in ((3, 3), (2, 5), (0, 2), (4, 6)):
        root = rng.normal(size=(rank, size))
        matrix = root.T @ root
        np.testing.assert_allclose(
            inverse_and_flat(matrix)[0], np.linalg.pinv(matrix, rcond=1e-10), rtol=1e-7, atol=1e-9
        )
    units = 10.0 ** np.array([-9, 0, 9])
    root = rng.normal(size=(4, 3))
    matrix = root.T @ root
    inverse = inverse_and_flat(matrix * np.outer(units, units))[0]
    np.testing.assert_allclose(inverse, np.linalg.inv(matrix) / np.outer(units, units), rtol=1e-9)


def test_the_rank_sees_small_differences_beside_large_constants() -> None:
    terms = [sf.Feature("A", lambda a: 1e13 + a), "B", sf.Feature(("A", "B"), lambda a, b: 1e-9 * a * b)]
    network = sf.MarkovNetwork(terms, states={"A": [0, 1], "B": [0, 1]}).with_weights(np.zeros(4))
    assert network.n_params_ == 3


# -- tied features ---------------------------------------------------------------------------------------------------

TIED_STATES = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1], "D": [0, 1]}
TIED_COUNTS = np.zeros((2, 3, 2, 2))
for _cell, _count in {(0, 0, 1, 0): 1, (0, 2, 0, 0): 1, (0, 2, 0, 1): 1, (0, 2, 1, 1): 1, (1, 2, 1, 0): 2}.items():
    TIED_COUNTS[_cell] = _count


def tied(**options: Any) -> Any:
    terms = [
        *("A", "B"),
        sf.Feature(("B", "C"), lambda b, c: b * c - 1.0),
        sf.Feature([("A", "C"), ("C", "D")], lambda x, y: float(x == y), name="tied"),
        sf.Feature("D", lambda d: 2 * d - 1),
    ]
    return sf.MarkovNetwork(terms, states=TIED_STATES, **options)


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "lbfgs", "cg", "ascent"])
def test_tied_features_are_fitted_by_every_solver(solver: str) -> None:
    mrf = tied(solver=solver, max_iter=400).fit(TIED_COUNTS, columns=list("ABCD"))
    assert mrf.converged_
    joint = mrf.marginal(list("ABCD")).values
    cells = list(itertools.product(*TIED_STATES.values()))
    functions: list[Any] = [
        lambda a, b, c, d: (a == c) + (c == d),
        lambda a, b, c, d: b * c,
        lambda a, b, c, d: d,
        lambda a, b, c, d: a,
    ]
    for value in functions:
        values = np.array([float(value(*cell)) for cell in cells])
        assert values @ joint.ravel() == pytest.approx(values @ TIED_COUNTS.ravel() / 6, abs=1e-9)


def test_variances_of_tied_features_add_up_over_their_places() -> None:
    """E f^2 - (E f)^2 on each place by itself, never negative, from the definition."""
    states = {name: list(range(k)) for name, k in zip("ABC", (2, 3, 2), strict=True)}
    domain = sf.Domain([sf.Variable.discrete(name, labels) for name, labels in states.items()])
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(2, 3)), rng.normal(size=(3, 2)), rng.normal(size=(2, 3))]
    model = LogLinear(domain, [("C",), sf.Feature([("A", "B"), ("B", "C"), ("C", "B")], tables)])
    joint = rng.dirichlet(np.ones(12)).reshape(2, 3, 2)
    margins = {"C": joint.sum((0, 1)), "AB": joint.sum(2), "BC": joint.sum(0)}
    found = variances(model, np.concatenate([margins[k].ravel() for k in ("C", "AB", "BC")]))
    both = tables[1] + tables[2].T  # Two places on the same pair are one.
    expected = sum(
        (margins[k] * f**2).sum() - (margins[k] * f).sum() ** 2 for k, f in (("AB", tables[0]), ("BC", both))
    )
    np.testing.assert_allclose(found, [*margins["C"] * (1 - margins["C"]), expected], rtol=1e-12)
    units = feature_units(model, np.concatenate([margins[k].ravel() for k in ("C", "AB", "BC")]))
    assert units[:2].tolist() == [1, 1]
    assert 2**-0.5 <= units[2] / math.sqrt(expected) <= 2**0.5


# -- deviance, priors ------------------------------------------------------------------------------------------------


def test_the_deviance_of_a_saturated_model_is_zero_at_any_total() -> None:
    mrf = sf.MarkovNetwork([("A", "B")]).fit({("A", "B"): 1e12 * np.array([[1.0, 2.0], [3.0, 4.0]])})
    assert 0 <= mrf.deviance_ < 1e-15
    assert 0 <= mrf.chi2_ < 1e-15


def test_the_deviance_of_many_joint_states_comes_from_those_that_occur() -> None:
    """G^2 = 2 sum n log(n / (N p)) over the distinct rows, with p from the law cell by cell."""
    rng = np.random.default_rng(1)
    names = [f"v{i}" for i in range(20)]
    rows = {name: rng.integers(0, 2, 300) for name in names}
    mrf = sf.MarkovNetwork(list(itertools.pairwise(names))).fit(rows)
    distinct, counts = np.unique(np.stack(list(rows.values()), axis=1), axis=0, return_counts=True)
    logs = mrf.score_samples(dict(zip(names, distinct.T, strict=True)))
    expected = 2 * (counts * (np.log(counts / 300) - logs)).sum()
    assert mrf.deviance(rows) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(sf.EstimateError, match=r"deviance\(rows\)"):
        mrf.deviance_  # noqa: B018
    few = {name: rng.integers(0, 41, 400) for name in "ABC"}
    wide = sf.MarkovNetwork([("A",), ("B",), ("C",)]).fit(few)
    assert set(wide.statistics_.answers) == {sf.Counts((name,)) for name in "ABC"}
    assert wide.deviance_ == pytest.approx(wide.deviance(few), rel=1e-9)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 10_000])
def test_the_value_gap_of_a_laplace_prior_is_a_bound(steps: int) -> None:
    counts = np.array([4, 1, 2, 2, 7, 3, 2, 2, 5, 1, 1, 6], float).reshape(2, 3, 2)
    pairs = [("A", "B"), ("B", "C"), ("C", "A")]
    best = sf.MarkovNetwork(pairs, prior=sf.Laplace(scale=0.3)).fit(counts, columns=list("ABC")).report_.objective
    mrf = sf.MarkovNetwork(pairs, prior=sf.Laplace(scale=0.3), max_iter=steps)
    if steps < 100:
        with pytest.warns(sf.ConvergenceWarning):
            mrf.fit(counts, columns=list("ABC"))
    else:
        mrf.fit(counts, columns=list("ABC"))
        assert (mrf.report_.certificate.value_gap or 0.0) < 1e-8
    certificate = mrf.report_.certificate
    assert certificate.bound
    assert certificate.value_gap is not None
    assert certificate.value_gap >= (best - mrf.report_.objective) / 36 - 1e-13


def test_the_bound_of_a_laplace_prior_holds_for_a_function_whose_maximum_is_known() -> None:
    """max -log(1 + exp(-x)) - r |x|, a log-likelihood below 0: at x the bound is above what is left."""
    rate = 0.1
    penalty = LaplacePenalty(np.zeros(1), np.array([rate]))
    grid = np.linspace(-5, 10, 200_001)
    best = (-np.log1p(np.exp(-grid)) - rate * np.abs(grid)).max()
    for x in (-3.0, 0.5, 2.0, 2.1972245, 6.0):
        loss = math.log1p(math.exp(-x)) + rate * abs(x)
        slope = 1 / (1 + math.exp(x)) - rate * np.sign(x)
        assert penalty.loss_bound(np.array([slope]), np.array([x]), loss) >= best + loss - 1e-12


def test_weights_that_a_laplace_prior_sets_to_zero_have_no_error_and_are_no_parameters() -> None:
    counts = np.array([40, 10, 22, 21, 70, 30, 25, 20, 50, 10, 10, 60], float).reshape(2, 3, 2)
    mrf = sf.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "A")], prior=sf.Laplace(scale=0.2))
    mrf.fit(counts, columns=list("ABC"))
    used = mrf.weights_ != 0
    assert 0 < used.sum() < 16
    assert np.isnan(mrf.standard_errors_[~used]).all()
    information = counts.sum() * mrf.information_[np.ix_(used, used)]
    np.testing.assert_allclose(mrf.standard_errors_[used], np.sqrt(np.diagonal(np.linalg.pinv(information))), rtol=1e-8)
    assert mrf.report_.n_params == mrf.n_params_ == min(used.sum(), 9)


def test_the_lower_bound_of_iterative_scaling() -> None:
    """Q is the mean log-likelihood at the weights themselves, and nowhere above it."""
    rows = {"A": [0, 1, 1, 1, 0, 0, 1], "B": [0, 0, 1, 1, 1, 0, 1], "C": [0, 1, 1, 0, 1, 0, 0]}
    terms = [("A", "B"), sf.Feature(("B", "C"), lambda b, c: b - 2 * c), ("C", "A")]
    network = sf.MarkovNetwork(terms, states={name: [0, 1] for name in "ABC"})
    mrf = network.clone().fit(rows)
    assert mrf.gis_lower_bound(mrf.weights_) == pytest.approx(mrf.report_.log_likelihood / 7, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(20):
        weights = mrf.weights_ + rng.normal(0, 0.3, 9)
        assert mrf.gis_lower_bound(weights) <= network.with_weights(weights).score_samples(rows).mean() + 1e-12


def test_a_callback_sees_the_weights_as_they_are_returned() -> None:
    seen = []
    mrf = scaled(1e6, solver="lbfgs", callback=lambda state: seen.append(state.parameters)).fit(ROWS)
    np.testing.assert_array_equal(seen[-1], mrf.weights_)
