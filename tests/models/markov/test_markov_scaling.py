"""Iterative scaling of features at the edge of their range, and what it needs to know of them."""

import warnings
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.domain import Domain, Variable
from suffice.models.markov.family import LogLinearFamily
from suffice.models.markov.learning import feature_bounds, largest_sum
from suffice.models.markov.log_linear import LogLinear

SCALING = ["gis", "gis-cyclic"]


def counted(values: Any) -> Any:
    array = np.asarray(values, dtype=np.float64)
    names = "ABC"[: array.ndim]
    domain = sf.Domain([sf.Variable.discrete(name, range(k)) for name, k in zip(names, array.shape, strict=True)])
    return sf.Table(domain, array)


@pytest.mark.parametrize("existence", [True, False])
@pytest.mark.parametrize("solver", SCALING)
def test_a_spin_that_never_turns(solver: Any, existence: bool) -> None:
    """A is always -1, the lower bound of its field and of nothing else: B and C have the law of their counts."""
    rows = {"A": [-1] * 8, "B": [1, -1, 1, 1, -1, 1, 1, -1], "C": [1, 1, -1, 1, -1, -1, 1, -1]}
    mrf = sf.MarkovNetwork.ising([("A", "B"), ("B", "C")], solver=solver, check_existence=existence).fit(rows)
    assert mrf.converged_
    expected = np.zeros((2, 2, 2))
    expected[0] = np.array([[2, 1], [2, 3]]) / 8
    np.testing.assert_allclose(mrf.marginal(["A", "B", "C"]).values, expected, atol=1e-8)


@pytest.mark.parametrize("solver", ["newton", *SCALING])
def test_a_constant_feature_says_nothing(solver: Any) -> None:
    features = [
        sf.Feature("A", lambda a: a),
        sf.Feature("A", lambda a: 3.0),
        sf.Feature(("A", "B"), lambda a, b: a * b),
    ]
    states = {"A": [-1, 1], "B": [-1, 1]}
    mrf = sf.MarkovNetwork(features, states=states, solver=solver).fit({"A": [1, 1, -1, 1], "B": [1, -1, 1, 1]})
    # The mean of A is 1/2 and that of A B is 0: weights artanh(1/2) and 0, and variances 1 / (4 (1 - m^2)).
    np.testing.assert_allclose(mrf.weights_, [np.arctanh(0.5), 0.0, 0.0], atol=1e-9)
    np.testing.assert_allclose(mrf.standard_errors_, [np.sqrt(1 / 3), np.inf, 0.5], rtol=1e-9)
    assert (mrf.n_params_, mrf.df_) == (2, 1)


@pytest.mark.parametrize("solver", ["newton", *SCALING])
def test_blocks_that_the_face_makes_constant(solver: Any) -> None:
    features = [
        sf.Feature("B", np.array([-1.0, 0.5])),
        sf.Feature(("A", "B"), np.array([[0.5, 0.5], [0.5, 1.0]])),
        sf.Feature("A", np.array([2.0, 1.0])),
    ]
    mrf = sf.MarkovNetwork(features, solver=solver).fit(counted([[0, 1], [4, 0]]))
    np.testing.assert_allclose(mrf.marginal(["A", "B"]).values, [[0.0, 0.2], [0.8, 0.0]], atol=1e-9)


def random_case(seed: int) -> tuple[list[Any], Any]:
    """Two or three features with few different values, some of them placed twice, on sparse counts."""
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 4, 2))
    scopes: list[Any] = [("A",), ("B",), ("A", "B"), ("B", "A")]
    cards = dict(zip("AB", shape, strict=True))
    terms = []
    for _ in range(rng.integers(2, 4)):
        chosen = [scopes[i] for i in rng.choice(4, rng.integers(1, 3), replace=False)]
        values = [rng.choice([-1.0, 0.0, 0.5, 1.0, 2.0], [cards[name] for name in scope]) for scope in chosen]
        terms.append(sf.Feature(chosen, values))
    counts = rng.poisson(1.0, shape).astype(float)
    counts.flat[0] += counts.sum() == 0
    return terms, counted(counts)


@pytest.mark.parametrize("solver", SCALING)
def test_random_features_reach_the_law_of_newton(solver: Any) -> None:
    """Any counts, zeros included, so that many features are constant or at an end of their range on the face.

    Scaling may take thousands of iterations; where it stops before it has converged, it never passes the maximum.
    """
    edges, converged = 0, 0
    for seed in range(60):
        terms, counts = random_case(seed)
        best = sf.MarkovNetwork(terms, solver="newton", tolerance=1e-9).fit(counts)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", sf.ConvergenceWarning)
            mrf = sf.MarkovNetwork(terms, solver=solver, tolerance=1e-8, max_iter=400).fit(counts)
        assert np.isfinite(mrf.fitted_.finite).all()
        assert mrf.report_.log_likelihood <= best.report_.log_likelihood + 1e-8
        assert (np.diff(mrf.history_) > -1e-10 * counts.values.sum()).all()
        if mrf.converged_:
            np.testing.assert_allclose(mrf.to_joint().values, best.to_joint().values, atol=1e-5, err_msg=f"seed {seed}")
        edges += best.report_.certificate.exists is False
        converged += mrf.converged_
    assert edges > 5
    assert converged > 30


# -- bounds of features ----------------------------------------------------------------------------------------------

DOMAIN = Domain([Variable.discrete("A", range(2)), Variable.discrete("B", range(3))])


def test_bounds_take_each_place_by_itself() -> None:
    tables = [np.array([3.0, -1.0]), np.array([[5.0, 7.0], [4.0, 9.0], [6.0, -2.5]])]
    model = LogLinear(DOMAIN, [("A", "B"), sf.Feature([("A",), ("B", "A")], tables)])
    np.testing.assert_array_equal(feature_bounds(model), [*[0.0] * 6, -1.0 - 2.5])


def test_the_largest_sum_is_that_of_one_joint_state() -> None:
    """Not the sum of the largest values: those are in different states."""
    tables = [np.array([3.0, -1.0]), np.array([[5.0, 7.0], [4.0, 9.0], [6.0, -2.5]])]
    second = np.array([-4.0, -1.0, 0.0])
    model = LogLinear(DOMAIN, [sf.Feature([("A",), ("B", "A")], tables), sf.Feature("B", second)])
    first = tables[0][:, None] + tables[1].T
    family = LogLinearFamily(model)
    assert largest_sum(family, np.array([0])) == pytest.approx(first.max(), rel=1e-14)
    assert largest_sum(family, np.array([1])) == pytest.approx(0.0, abs=1e-14)
    assert largest_sum(family, np.array([0, 1])) == pytest.approx((first + second).max(), rel=1e-14)
    face = LogLinearFamily(model, [(("B",), np.array([0.0, 0.0, -np.inf]))])
    assert largest_sum(face, np.array([0, 1])) == pytest.approx((first + second)[:, :2].max(), rel=1e-14)


# -- rank ------------------------------------------------------------------------------------------------------------


def test_places_that_cancel_add_no_parameter() -> None:
    constant = sf.Feature([("A", "B"), ("B", "A")], np.array([[1.0, 0.0], [2.0, 1.0]]))
    mrf = sf.MarkovNetwork([constant]).fit(counted([[3, 1], [4, 2]]))
    assert (mrf.n_params_, mrf.df_) == (0, 3)
    np.testing.assert_allclose(mrf.to_joint().values, 0.25, atol=1e-12)
    rounded = sf.Feature([("A", "B"), ("B", "A")], np.array([[0.1, 0.1], [0.3, 0.3 - 0.2]]))  # Off by 3e-17.
    both = sf.MarkovNetwork([rounded, sf.Feature("A", np.array([0.0, 1.0]))]).fit(counted([[3, 1], [4, 2]]))
    design = np.array([[0.2, 0], [0.4, 0], [0.4, 1], [0.2, 1]])
    assert both.n_params_ == np.linalg.matrix_rank(design - design.mean(axis=0))
