"""Standard errors where the information is not definite: inf for what the data do not tell, never a small number."""

import itertools
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import suffice as sf
from log_linear import design_of, law_of, table_features
from suffice.fitting.contract import Found
from suffice.fitting.control import Control
from suffice.fitting.driver import measured


def information(design: Any, weights: Any, total: float) -> Any:
    """N Cov[f], every joint state listed."""
    law = law_of(design, weights)[1]
    away = design - law @ design
    return total * (away.T * law) @ away


def spins(seed: int, rows: int, names: str = "abcd") -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {name: rng.choice([-1, 1], rows) for name in names}


def test_errors_of_a_definite_information_are_those_of_its_inverse() -> None:
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    mrf = sf.MarkovNetwork.ising(edges).fit(spins(0, 300))
    states = {name: [-1, 1] for name in "abcd"}
    fields: list[Any] = [lambda x, name=name: x[name] for name in mrf.nodes]
    pairs: list[Any] = [lambda x, pair=pair: x[pair[0]] * x[pair[1]] for pair in edges]
    design = design_of([*fields, *pairs], states)
    inverse = np.linalg.inv(information(design, mrf.weights_, 300))
    np.testing.assert_allclose(mrf.standard_errors_, np.sqrt(np.diagonal(inverse)), rtol=1e-7)


@pytest.mark.parametrize("existence", [True, False])
def test_a_coupling_that_never_fails_has_no_error_and_nor_have_its_fields(existence: bool) -> None:
    """With a = b in every row only the sum of the fields of a and b is told, and the coupling runs to infinity."""
    rows = spins(1, 40)
    rows["b"] = rows["a"]
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    mrf = sf.MarkovNetwork.ising(edges, check_existence=existence).fit(rows)
    infinite = {name for name, error in zip(mrf.weight_names_, mrf.standard_errors_, strict=True) if np.isinf(error)}
    assert infinite == {"field a", "field b", "coupling a, b"}
    assert mrf.report_.certificate.exists is False


def test_a_runaway_that_was_not_found_has_no_small_error() -> None:
    """Weights on the way to infinity: the law is as good as flat along them, and no error is that of the rest alone."""
    network = sf.MarkovNetwork(
        [sf.Feature("a", lambda a: a), sf.Feature("a", lambda a: a * a)], states={"a": [0, 1, 2]}
    )
    far = network.with_weights([0.0, 0.0]).fit({"a": [0, 1, 1, 0, 1]})
    assert far.report_.certificate.exists is False
    assert np.isinf(far.standard_errors_).all()


@pytest.mark.parametrize("cliques", [[("A", "B"), ("B", "C"), ("C", "A")], [("A", "B"), ("B", "C")]])
def test_tables_keep_the_pseudo_inverse_along_what_changes_no_law(cliques: Any) -> None:
    states = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1]}
    counts = np.array([4.0, 1, 3, 2, 7, 3, 2, 2, 5, 1, 1, 6])
    domain = sf.Domain([sf.Variable.discrete(name, labels) for name, labels in states.items()])
    mrf = sf.MarkovNetwork(cliques).fit(sf.Table(domain, counts.reshape(2, 3, 2)))
    design = design_of(table_features(cliques, states), states)
    inverse = np.linalg.pinv(information(design, mrf.weights_, counts.sum()), rcond=1e-10)
    np.testing.assert_allclose(mrf.standard_errors_, np.sqrt(np.diagonal(inverse)), rtol=1e-7)


def test_a_cell_beyond_reach_makes_the_errors_of_its_table_infinite() -> None:
    """At weights so low that a cell is as good as impossible, the shortest weights of its table are not told."""
    network = sf.MarkovNetwork([("A", "B"), ("C",)], states={name: [0, 1] for name in "ABC"})
    given = network.clone().fit({"A": [0, 0, 1, 1], "B": [0, 1, 0, 1], "C": [0, 1, 1, 0]})
    data = given._learned_data()
    problem = given._task().problem(data, None)
    wrong = replace(given.fitted_, finite=np.array([0.0, 0.0, 0.0, -800.0, 0.0, 0.0]))
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        _, judged = measured(Found(wrong, "", "maximum likelihood"), data, problem, Control())
    errors = problem.standard_errors(wrong, judged)
    assert np.isinf(errors).tolist() == [True, True, True, True, False, False]


@pytest.mark.parametrize("variance", [1e-2, 1.0, 1e12, 1e15])
def test_a_prior_tells_what_the_data_do_not_however_wide_it_is(variance: float) -> None:
    """Two features that say the same: their sum is told by the data, their difference by the prior alone."""
    terms = [sf.Feature("a", lambda a: a, name="x"), sf.Feature("a", lambda a: a, name="y")]
    mrf = sf.MarkovNetwork(terms, prior=sf.Normal(variance=variance)).fit({"a": [0, 1, 1, 1, 0]})
    curve = 5 * mrf.information_[0, 0]
    along, across = 1 / (2 * curve + 1 / variance), variance
    np.testing.assert_allclose(mrf.standard_errors_, np.sqrt((along + across) / 2), rtol=1e-6)


def test_errors_do_not_depend_on_the_unit_of_a_feature_that_depends_on_others() -> None:
    sizes = [1.0, 1e-7, 1e6]
    found = []
    for size in sizes:
        terms = [
            sf.Feature("a", lambda a: a, name="x"),
            sf.Feature("a", lambda a, size=size: size * (3 - a), name="y"),
            sf.Feature("b", lambda b: b, name="z"),
        ]
        rows = {"a": [0, 1, 2, 1, 0, 2, 2], "b": [0, 1, 1, 1, 0, 0, 1]}
        found.append(np.isinf(sf.MarkovNetwork(terms).fit(rows).standard_errors_).tolist())
    assert found == [[True, True, False]] * len(sizes)


def test_errors_of_random_models_are_finite_exactly_where_the_data_tell_the_weight() -> None:
    """A weight is told if and only if its axis lies in the range of the information, by a listed SVD."""
    rng = np.random.default_rng(2)
    states = {"a": [0, 1, 2], "b": [0, 1], "c": [0, 1]}
    untold = 0
    for _ in range(40):
        tables = [rng.integers(0, 2, (3, 2)).astype(float) for _ in range(3)]
        last = rng.integers(-1, 2, (2, 2)).astype(float)
        terms = [sf.Feature(("a", "b"), tables[k], name=f"f{k}") for k in range(3)]
        terms.append(sf.Feature(("b", "c"), last, name="g"))
        rows = {name: rng.choice(labels, 12) for name, labels in states.items()}
        mrf = sf.MarkovNetwork(terms, states=states).fit(rows)
        listed = np.array(list(itertools.product(*states.values())))
        design = np.stack(
            [tables[k][listed[:, 0], listed[:, 1]] for k in range(3)] + [last[listed[:, 1], listed[:, 2]]], 1
        )
        law = np.array([mrf.to_joint().at(a=a, b=b, c=c) for a, b, c in listed])
        away = (design - law @ design) * np.sqrt(law)[:, None]
        _, sizes, right = np.linalg.svd(away)
        null = right[int((sizes > 1e-9).sum()) :]
        told = np.abs(null).max(axis=0, initial=0.0) < 1e-7
        running = ~np.isfinite(mrf.weights_)
        assert np.isfinite(mrf.standard_errors_).tolist() == (told & ~running).tolist()
        untold += int((~told).sum())
    assert untold > 20


def test_errors_are_those_of_the_fit_whatever_is_set_later() -> None:
    rows = {"a": [0, 0, 1, 1, 1, 0, 1, 0], "b": [0, 1, 1, 1, 0, 0, 1, 0]}
    network = sf.MarkovNetwork([("a", "b")], prior=sf.Normal(0.0, 1.0)).fit(rows)
    errors, matched = network.standard_errors_, network.matched_statistics()
    assert matched is not None
    network.set_params(prior=None)
    np.testing.assert_array_equal(network.standard_errors_, errors)
    for after in (network, pickle.loads(pickle.dumps(network))):
        again = after.matched_statistics()
        assert again is not None
        np.testing.assert_array_equal(again.pull, matched.pull)
        np.testing.assert_allclose(after.standard_errors_, errors, rtol=1e-12)
        assert after.portrait().estimates is not None
    assert network.report_.to_html()


def test_a_comparison_is_with_the_variables_of_the_fit() -> None:
    rows = {"a": [0, 0, 1, 1, 1, 0, 1, 0], "b": [0, 1, 1, 1, 0, 0, 1, 0]}
    network = sf.MarkovNetwork([("a", "H"), ("b", "H")], hidden={"H": 2}).fit(rows)
    cells, df, deviance = network.n_cells_, network.df_, network.deviance(rows)
    network.set_params(hidden=None, states={"H": [0, 1]})
    assert (network.n_cells_, network.df_, network.deviance(rows)) == (cells, df, deviance)
