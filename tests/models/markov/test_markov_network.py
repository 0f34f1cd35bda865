"""Markov networks as objects: files, options, copies, structures and the messages for what cannot be."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf

ROWS: dict[str, list[Any]] = {
    "A": [0, 0, 1, 1, 1, 0, 1],
    "B": ["x", "y", "y", "y", "x", "x", "y"],
    "C": [0, 0, 1, 0, 1, 1, 1],
}
CYCLE = [("A", "B"), ("B", "C"), ("C", "A")]


def same_law(first: Any, second: Any) -> Any:
    return first.to_joint().allclose(second.to_joint(), rtol=1e-14)


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
@pytest.mark.parametrize(
    "network",
    [
        sf.MarkovNetwork(CYCLE),
        sf.MarkovNetwork(CYCLE, prior=sf.Normal(variance=2.0), solver="lbfgs"),
        sf.MarkovNetwork(["A", ("B", "C")], prior=sf.Laplace(scale=0.5)),
        sf.MarkovNetwork([sf.Feature([("A", "C"), ("C", "A")], lambda a, c: a - 0.5 * c, name="tied"), ("B", "C")]),
    ],
    ids=["tables", "normal", "laplace", "features"],
)
def test_files_give_everything_back(network: Any, ending: Any, tmp_path: Any) -> None:
    mrf = network.clone().fit(ROWS)
    path = tmp_path / f"network.{ending}"
    mrf.write(path)
    again = sf.read(path)
    np.testing.assert_array_equal(again.weights_, mrf.weights_)
    assert again.weight_names_ == mrf.weight_names_
    assert again.report_ == mrf.report_
    assert again.n_params_ == mrf.n_params_
    assert again.log_partition_ == mrf.log_partition_
    assert (again.to_joint().values == mrf.to_joint().values).all()
    assert again.statistics_ == mrf.statistics_
    again.write(tmp_path / f"second.{ending}")
    assert sf.read(tmp_path / f"second.{ending}").report_ == mrf.report_
    assert same_law(again.clone().fit(ROWS), mrf)  # The function was saved as its table.


def test_files_keep_a_law_on_a_face(tmp_path: Any) -> None:
    """All pair margins are positive, the maximum is not attained, and two joint states vanish."""
    counts = np.array([0, 3, 2, 4, 5, 1, 6, 0], float).reshape(2, 2, 2)
    mrf = sf.MarkovNetwork(CYCLE).fit(counts, columns=["A", "B", "C"])
    mrf.write(tmp_path / "face.json")
    again = sf.read(tmp_path / "face.json")
    assert again.to_joint().values[0, 0, 0] == again.to_joint().values[1, 1, 1] == 0
    np.testing.assert_array_equal(again.to_joint().values, mrf.to_joint().values)
    assert again.report_.certificate.exists is False
    table = sf.MarkovNetwork([("A", "B"), ("B", "C")]).fit({**ROWS, "B": [0, 1, 1, 1, 0, 0, 1]})
    table.write(tmp_path / "zeros.suffice")
    np.testing.assert_array_equal(sf.read(tmp_path / "zeros.suffice").weights_, table.weights_)


def test_files_of_networks_that_were_not_fitted(tmp_path: Any) -> None:
    given = sf.MarkovNetwork.ising([(0, 1), (1, 2)]).with_weights([0.1, 0.2, -0.3, 0.5, -0.5])
    given.write(tmp_path / "given.json")
    again = sf.read(tmp_path / "given.json")
    assert again.fields_ == {0: 0.1, 1: 0.2, 2: -0.3}
    assert again.couplings_ == {(0, 1): 0.5, (1, 2): -0.5}
    assert again.log_partition_ == given.log_partition_
    bare = sf.MarkovNetwork(CYCLE, max_iter=7)
    bare.write(tmp_path / "bare.json")
    assert sf.read(tmp_path / "bare.json").get_params()["max_iter"] == 7
    with pytest.raises(sf.OptionError, match="cannot be saved before the states are known"):
        sf.MarkovNetwork([sf.Feature("A", lambda a: a)]).write(tmp_path / "function.json")


def test_damaged_files_are_refused(tmp_path: Any) -> None:
    mrf = sf.MarkovNetwork(CYCLE).fit(ROWS)
    plain = mrf.to_dict()
    for key, value in (
        ("weights", np.zeros(3)),
        ("weights", np.full(12, np.nan)),
        ("limits", np.ones(12)),
        ("domain", sf.Domain([sf.Variable.discrete("Q", [1])])),
        ("masks", [[["A", "B"], np.ones((2, 2))]]),
    ):
        with pytest.raises(sf.FileFormatError):
            sf.MarkovNetwork.from_dict({**plain, "fitted": {**plain["fitted"], key: value}})


def test_pickle_and_copies() -> None:
    mrf = sf.MarkovNetwork.ising([(0, 1), (1, 2), (2, 0)]).fit(
        {n: [-1, 1, 1, -1, 1, -1, -1][n:] + [1] * n for n in range(3)}
    )
    for twin in (pickle.loads(pickle.dumps(mrf)), copy.deepcopy(mrf), copy.copy(mrf)):
        np.testing.assert_array_equal(twin.weights_, mrf.weights_)
        assert twin.marginal(0).values.tolist() == mrf.marginal(0).values.tolist()


# -- options ---------------------------------------------------------------------------------------------------------


def test_options_and_clones() -> None:
    mrf = sf.MarkovNetwork(CYCLE, prior=sf.Normal(variance=3.0), tolerance=1e-8)
    assert mrf.get_params()["prior__variance"] == 3.0
    clone = mrf.clone().set_params(prior__variance=5.0, solver="cg")
    assert clone.get_params()["prior__variance"] == 5.0
    assert mrf.get_params()["prior__variance"] == 3.0
    assert clone.solver == "cg"  # type: ignore[attr-defined]
    assert "tolerance=1e-08" in repr(clone)
    mrf.fit(ROWS)
    assert not hasattr(mrf.clone(), "weights_")


def test_another_structure_is_planned_anew() -> None:
    mrf = sf.MarkovNetwork(CYCLE).fit(ROWS)
    assert mrf.n_params_ == 6
    mrf.set_params(structure=[("A", "B"), "C"]).fit(ROWS)
    assert mrf.n_params_ == 4
    assert same_law(mrf, sf.MarkovNetwork([("A", "B"), "C"]).fit(ROWS))


def test_a_failed_fit_leaves_the_network_as_it_was() -> None:
    mrf = sf.MarkovNetwork(CYCLE).fit(ROWS)
    before = mrf.weights_
    with pytest.raises(sf.SufficeError):
        mrf.fit({"A": [0, 1], "B": ["x", "y"]})
    np.testing.assert_array_equal(mrf.weights_, before)
    assert mrf.report_.rows == 7


def test_unfitted_networks_say_so() -> None:
    mrf = sf.MarkovNetwork(CYCLE)
    for ask in (
        lambda: mrf.weights_,
        lambda: mrf.log_partition_,
        lambda: mrf.marginal("A"),
        lambda: mrf.sample(3),
        lambda: mrf.deviance_,
        lambda: mrf.states("A"),
        lambda: mrf.potential(("A", "B")),
        lambda: mrf.score(ROWS),
    ):
        with pytest.raises(sf.NotFittedError):
            ask()
    with pytest.raises(sf.OptionError, match="declare 'A', 'B', 'C'"):
        mrf.with_weights(np.zeros(12))


def test_search_over_priors_with_scikit_learn() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({k: np.tile(v, 6) for k, v in ROWS.items()})
    states = {"A": [0, 1], "B": ["x", "y"], "C": [0, 1]}
    search = selection.GridSearchCV(
        sf.MarkovNetwork(CYCLE, states=states, prior=sf.Normal(variance=1.0)), {"prior__variance": [0.01, 1.0]}, cv=3
    )
    search.fit(frame)
    assert search.best_params_ == {"prior__variance": 1.0}


# -- structures ------------------------------------------------------------------------------------------------------


def test_trivial_structures() -> None:
    single = sf.MarkovNetwork(["A"]).fit({"A": ["u", "v", "v"]})
    np.testing.assert_allclose(single.marginal("A").values, [1 / 3, 2 / 3], rtol=1e-14)
    assert (single.n_params_, single.df_) == (1, 0)
    assert single.deviance_ == pytest.approx(0.0, abs=1e-12)
    nothing = sf.MarkovNetwork([], states={"A": [0, 1, 2], "B": [0, 1]}).fit({"A": [0, 1], "B": [0, 0]})
    assert nothing.report_.log_likelihood == pytest.approx(-2 * math.log(6))
    assert nothing.n_params_ == 0
    assert nothing.weights_.shape == (0,)
    assert nothing.information_.shape == (0, 0)
    constant = sf.MarkovNetwork([("A", "B"), ("B",)]).fit({"A": [1, 1], "B": ["k", "k"]})
    assert constant.n_params_ == 0
    assert constant.report_.log_likelihood == pytest.approx(0.0, abs=1e-14)
    for solver in ("lbfgs", "newton", "gis", "cg", "ipf", "newton-cg"):
        assert sf.MarkovNetwork([], states={"A": [0, 1]}, solver=solver).fit({"A": [0, 1]}).converged_


@pytest.mark.parametrize("solver", ["auto", "ipf", "gis", "gis-cyclic", "lbfgs", "newton", "newton-cg"])
def test_the_same_clique_twice_and_inside_another(solver: Any) -> None:
    plain = sf.MarkovNetwork(CYCLE).fit(ROWS)
    more = [("A", "B"), ("B",), ("B", "A"), ("B", "C"), ("C", "A"), ("A",), ("A", "C")]
    mrf = sf.MarkovNetwork(more, solver=solver).fit(ROWS)
    np.testing.assert_allclose(mrf.to_joint().values, plain.to_joint().values, atol=1e-8)
    assert mrf.n_params_ == plain.n_params_ == 6
    assert len(mrf.weights_) == 4 + 2 + 4 + 4 + 4 + 2 + 4


def test_structures_that_cannot_be() -> None:
    for structure, message in (
        ("AB", "list of cliques"),
        ([()], "no variables"),
        ([("A", "A")], "twice"),
        ([([],)], "cannot be a variable"),
        ([], "no variables"),
        (3, "list of cliques"),
    ):
        with pytest.raises(sf.OptionError, match=message):
            sf.MarkovNetwork(structure)
    for edges, message in (([("A", "A")], "two different"), ([("A", "B"), ("B", "A")], "more than once")):
        with pytest.raises(sf.OptionError, match=message):
            sf.MarkovNetwork.ising(edges)
    with pytest.raises(sf.OptionError, match="inconsistent"):
        sf.MarkovNetwork(CYCLE, on_inconsistent="ignore")  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="no field"):
        sf.MarkovNetwork(CYCLE).fit(ROWS).fields_  # noqa: B018


def test_other_networks_give_their_structure() -> None:
    net = sf.BayesianNetwork([("A", "C"), ("B", "C")])
    assert sf.MarkovNetwork(net).cliques == (("A",), ("A", "B", "C"), ("B",))
    mixed = sf.MarkovNetwork([("A", "B"), sf.Feature("C", lambda c: c)])
    assert sf.MarkovNetwork(mixed).terms == mixed.terms


def test_functions_are_called_once_for_the_same_states() -> None:
    calls: list[tuple[int, int]] = []

    def product(a: int, c: int) -> int:
        calls.append((a, c))
        return a * c

    feature = sf.Feature([("A", "C"), ("C", "A")], product)
    sf.MarkovNetwork([feature]).fit(ROWS).n_params_  # noqa: B018
    assert sorted(calls) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_sets_are_cliques_in_a_fixed_order() -> None:
    assert sf.MarkovNetwork([frozenset(("B", "A")), {"C", "B"}]).cliques == (("A", "B"), ("B", "C"))


def test_the_report_says_what_was_done_and_why() -> None:
    decomposable = sf.MarkovNetwork([("A", "B"), ("B", "C")]).fit(ROWS).report_
    assert "closed form" in decomposable.method
    assert "the model is decomposable" in decomposable.method
    assert "junction tree: width 1" in str(decomposable.plan)
    assert "iterative proportional fitting" in sf.MarkovNetwork(CYCLE).fit(ROWS).report_.method
    prior = sf.MarkovNetwork(CYCLE, prior=sf.Normal(variance=1.0)).fit(ROWS).report_
    assert (prior.estimate, prior.parameterisation) == ("MAP", "in the weights")
    assert "Newton" in prior.method
    assert len(str(prior).splitlines()) <= 25


def test_a_large_grid() -> None:
    """Eight by eight: 64 variables, more joint states than could be listed; margins match, samples come back."""
    rng = np.random.default_rng(0)
    edges = sf.MarkovNetwork.grid_edges(8, 8)
    truth = sf.MarkovNetwork.ising(edges).with_weights(rng.normal(0, 0.3, 64 + len(edges)))
    rows = truth.sample(2000, random_state=1)
    mrf = sf.MarkovNetwork.ising(edges, check_existence=False).fit(rows)
    assert mrf.converged_
    for node in ((0, 0), (3, 4)):
        assert mrf.marginal([node]).at({node: 1}) == pytest.approx((rows[node] == 1).mean(), abs=1e-9)
    assert np.mean([abs(mrf.couplings_[e] - truth.couplings_[e]) for e in edges]) < 0.05
    assert mrf.n_params_ == 64 + len(edges)
    assert mrf.report_.certificate.exists is None
    tables = sf.MarkovNetwork.grid(8, 8, check_existence=False).fit(rows)
    assert tables.report_.log_likelihood == pytest.approx(mrf.report_.log_likelihood, rel=1e-10)
