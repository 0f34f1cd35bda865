"""Laws of Markov networks against enumeration: log Z, marginals, likelihood, gradients, information."""

import math
from typing import Any

import numpy as np
import pytest

import suffice as sf
from log_linear import counts_of, design_of, joint_states, law_of, table_features

STATES: dict[str, list[Any]] = {"A": [0, 1], "B": ["x", "y", "z"], "C": [False, True], "D": [0, 1, 2, 3], "E": ["only"]}

ZOO = {
    "empty": [],
    "one variable": [("B",)],
    "tree": [("A", "B"), ("B", "C"), ("B", "D")],
    "cycle": [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")],
    "axes turned": [("B", "A"), ("D", "B"), ("C", "D"), ("A", "C")],
    "disconnected": [("A", "B"), ("C", "D")],
    "nested": [("A", "B", "C"), ("A", "B"), ("C",)],
    "twice": [("A", "B"), ("B", "A"), ("A", "B")],
    "three together": [("A", "B", "C"), ("B", "C", "D"), ("A", "D")],
    "single state": [("A", "E"), ("E",), ("E", "B")],
}


def network(cliques: Any) -> Any:
    return sf.MarkovNetwork(cliques, states=STATES)


def given(cliques: Any, seed: Any = 0) -> Any:
    """A network with random weights, and the design and weights of the oracle."""
    design = design_of(table_features(cliques, STATES), STATES)
    weights = np.random.default_rng(seed).normal(size=design.shape[1])
    return network(cliques).with_weights(weights), design, weights


@pytest.mark.parametrize("cliques", ZOO.values(), ids=ZOO)
def test_partition_function_and_joint_law(cliques: Any) -> None:
    mrf, design, weights = given(cliques)
    log_z, law = law_of(design, weights)
    assert mrf.log_partition_ == pytest.approx(log_z, abs=1e-12)
    joint = mrf.marginal(list(STATES)).values
    np.testing.assert_allclose(joint.ravel(), law, rtol=1e-12)
    np.testing.assert_allclose(mrf.to_joint().transpose(list(STATES)).values.ravel(), law, rtol=1e-12)


@pytest.mark.parametrize("cliques", ZOO.values(), ids=ZOO)
def test_information_is_the_covariance_of_the_features(cliques: Any) -> None:
    mrf, design, weights = given(cliques, seed=1)
    law = law_of(design, weights)[1]
    mean = law @ design
    covariance = (design * law[:, None]).T @ design - np.outer(mean, mean)
    np.testing.assert_allclose(mrf.information_, covariance, atol=1e-13)


@pytest.mark.parametrize("cliques", ZOO.values(), ids=ZOO)
def test_the_derivative_of_log_z_is_the_expected_feature(cliques: Any) -> None:
    """Complex step: Im log Z(w + i h e_k) / h = E[f_k], without cancellation."""
    mrf, design, weights = given(cliques, seed=2)
    _, expected = mrf.fitted_.family.moments(weights)
    for k in range(len(weights)):
        step = weights.astype(complex)
        step[k] += 1e-30j
        assert law_of(design, step)[0].imag / 1e-30 == pytest.approx(expected[k], abs=1e-12)


@pytest.mark.parametrize("cliques", ZOO.values(), ids=ZOO)
def test_number_of_parameters_is_the_rank(cliques: Any) -> None:
    mrf, design, _ = given(cliques)
    centred = design - design.mean(axis=0)
    rank = np.linalg.matrix_rank(centred, tol=1e-9) if design.size else 0
    assert mrf.n_params_ == rank


@pytest.mark.parametrize("cliques", [ZOO["cycle"], ZOO["nested"], ZOO["three together"], ZOO["disconnected"]])
def test_likelihood_from_counts_is_the_sum_over_rows(cliques: Any) -> None:
    mrf, design, weights = given(cliques, seed=3)
    sample = mrf.sample(50, random_state=5)
    rows = [{name: sample[name][i] for name in STATES} for i in range(50)]
    log_z, _ = law_of(design, weights)
    scores = design @ weights - log_z
    expected = counts_of(rows, STATES) @ scores
    assert mrf.score(sample) * 50 == pytest.approx(expected, rel=1e-12)
    assert mrf.score_samples(sample).sum() == pytest.approx(expected, rel=1e-12)


def test_gaps_are_summed_out() -> None:
    mrf, _, _ = given(ZOO["cycle"])
    found = mrf.score_samples([{"A": 1, "B": None, "C": True, "D": None, "E": "only"}])
    assert found[0] == pytest.approx(math.log(mrf.marginal(("A", "C")).at(A=1, C=True)), abs=1e-12)


def test_queries_against_the_joint_table() -> None:
    mrf, _, _ = given(ZOO["three together"])
    joint = mrf.to_joint()
    part = joint.at(A=1).marginal(["D", "B"]).normalize()
    assert mrf.query(["D", "B"], given={"A": 1}).allclose(part, rtol=1e-12)
    soft = mrf.query("B", given={"A": {0: 0.2, 1: 0.7}})
    mixed = (joint.at(A=0) * 0.2 + joint.at(A=1) * 0.7).marginal("B").normalize()
    assert soft.allclose(mixed, rtol=1e-12)
    best = mrf.map_query()
    assert joint.at(best) == pytest.approx(joint.values.max(), rel=1e-12)
    assert mrf.log_probability({"A": 1, "C": True}) == pytest.approx(
        math.log(joint.marginal(["A", "C"]).at(A=1, C=True)), abs=1e-12
    )


def test_predictions_against_the_joint_table() -> None:
    mrf, _, _ = given(ZOO["cycle"])
    rows: dict[str, list[Any]] = {"A": [0, 1], "B": ["x", "z"], "C": [True, False], "E": ["only", "only"]}
    found = mrf.predict_proba(rows, "D")
    for i in range(2):
        law = mrf.to_joint().at({name: rows[name][i] for name in rows}).normalize().values
        np.testing.assert_allclose(found[i], law, rtol=1e-12)
    assert mrf.predict(rows, "D").tolist() == found.argmax(axis=1).tolist()


def test_potentials_are_the_exponentials_of_the_weights() -> None:
    mrf, _, weights = given(ZOO["axes turned"])
    np.testing.assert_allclose(mrf.potential(("B", "A")).values.ravel(), np.exp(weights[:6]), rtol=1e-15)
    assert mrf.potential(("A", "B")).at(A=1, B="z") == pytest.approx(math.exp(weights[5]), rel=1e-15)
    assert mrf.weight_names_[5] == "B=z, A=1"
    with pytest.raises(sf.OptionError, match="No term is on exactly"):
        mrf.potential(("A", "D"))


def test_samples_follow_the_law() -> None:
    """Counts of 20,000 exact draws: the chi-squared statistic of the 24 joint states of a cycle."""
    from scipy.stats import chi2

    states = {"A": [0, 1], "B": [0, 1, 2], "C": [0, 1], "D": [0, 1]}
    cliques = [("A", "B"), ("B", "C"), ("C", "D"), ("D", "A")]
    weights = np.random.default_rng(4).normal(size=20)
    mrf = sf.MarkovNetwork(cliques, states=states).with_weights(weights)
    drawn = mrf.sample(20_000, random_state=0)
    codes = np.ravel_multi_index([drawn[name] for name in states], (2, 3, 2, 2))
    expected = 20_000 * mrf.to_joint().transpose(list(states)).values.ravel()
    statistic = ((np.bincount(codes, minlength=24) - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(0.999, 23)
    again = mrf.sample(20_000, random_state=0)
    assert all((again[name] == drawn[name]).all() for name in states)
    assert mrf.sample(5, given={"A": 1}, random_state=1)["A"].tolist() == [1] * 5


# -- features --------------------------------------------------------------------------------------------------------


def test_real_valued_tied_and_mixed_features() -> None:
    """f(a, b) = 0.5 a - b^2 on two pairs with one weight, next to a table and a dict of values."""
    states = {"A": [0, 1, 2], "B": [-1, 1], "C": [0, 3]}
    curve = sf.Feature([("A", "B"), ("C", "B")], lambda a, b: 0.5 * a - b**2 + a * b, name="curve")
    picks = sf.Feature(("C", "A"), {(3, 2): 1.5, (0, 1): -2.0})
    mrf = sf.MarkovNetwork([("B",), curve, picks, ("A", "C")], states=states)
    weights = np.random.default_rng(0).normal(size=2 + 1 + 1 + 6)
    features = [
        *table_features([("B",)], states),
        lambda x: sum(0.5 * x[n] - x["B"] ** 2 + x[n] * x["B"] for n in ("A", "C")),
        lambda x: {(3, 2): 1.5, (0, 1): -2.0}.get((x["C"], x["A"]), 0.0),
        *table_features([("A", "C")], states),
    ]
    design = design_of(features, states)
    log_z, law = law_of(design, weights)
    found = mrf.with_weights(weights)
    assert found.log_partition_ == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(found.marginal(["A", "B", "C"]).values.ravel(), law, rtol=1e-12)
    mean = law @ design
    np.testing.assert_allclose(
        found.information_, (design * law[:, None]).T @ design - np.outer(mean, mean), atol=1e-12
    )
    assert found.n_params_ == np.linalg.matrix_rank(design - design.mean(axis=0), tol=1e-9)
    assert found.weight_names_[2:4] == ("curve", "f(C, A)")


def test_the_model_design_is_the_list_of_features() -> None:
    mrf, design, _ = given(ZOO["three together"])
    model = mrf.fitted_.family.model
    codes = np.array([[STATES[n].index(x[n]) for n in mrf.nodes] for x in joint_states(STATES)])
    np.testing.assert_array_equal(model.design(codes), design)
    np.testing.assert_array_equal(model.design(model.all_states()), model.design(model.all_states()))


def test_labelled_tables_find_their_states_by_label() -> None:
    domain = sf.Domain([sf.Variable.discrete("B", ["z", "x", "y"]), sf.Variable.discrete("A", [1, 0])])
    table = sf.Table(domain, [[1, 2], [3, 4], [5, 6]])
    (values,) = sf.Feature(("A", "B"), table).tables(
        sf.Domain([sf.Variable.discrete(n, STATES[n]) for n in ("A", "B")])
    )
    assert values.tolist() == [[4, 6, 2], [3, 5, 1]]


@pytest.mark.parametrize(
    ("variables", "values", "message"),
    [
        (["A", "B"], lambda a, b: 1, "list of tuples"),
        (("A", "A"), lambda a, b: 1, "different variables"),
        ((), lambda: 1, "one or more"),
        ([("A",), ("B",)], [lambda a: 1], "one for each tuple"),
    ],
)
def test_features_that_cannot_be(variables: Any, values: Any, message: Any) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.Feature(variables, values)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (lambda a, b: "high", "expected a number"),
        (np.zeros((3, 2)), "shape"),
        ({(0, "x", 1): 1.0}, "does not name"),
        (lambda a, b: math.inf, "not finite"),
        ("text", "expected numbers or a function"),
    ],
)
def test_feature_values_that_cannot_be(values: Any, message: Any) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.MarkovNetwork([sf.Feature(("A", "B"), values)], states=STATES).with_weights([1.0]).log_partition_  # noqa: B018


# -- Ising, Potts, grids ---------------------------------------------------------------------------------------------


def test_ising_on_a_grid_against_the_transfer_matrix() -> None:
    """Z of a 3 x 3 grid with one field u and one coupling w: trace over rows of 8 states each."""
    u, w = 0.3, -0.45
    edges = sf.MarkovNetwork.grid_edges(3, 3)
    mrf = sf.MarkovNetwork.ising(edges).with_weights([u] * 9 + [w] * 12)
    spins = np.array([[1 - 2 * ((code >> bit) & 1) for bit in range(3)] for code in range(8)])
    inside = np.exp(u * spins.sum(axis=1) + w * (spins[:, 0] * spins[:, 1] + spins[:, 1] * spins[:, 2]))
    between = np.exp(w * spins @ spins.T)
    z = inside @ between @ (inside * (between @ inside))
    assert mrf.log_partition_ == pytest.approx(math.log(z), abs=1e-12)
    # d log Z / d w_ij = P(++) + P(--) - P(+-) - P(-+), and d log Z / d u_i = P(+) - P(-).
    pair = mrf.marginal([(0, 0), (0, 1)]).values
    expected = mrf.fitted_.family.moments(mrf.weights_)[1]
    place = 9 + edges.index(((0, 0), (0, 1)))
    assert expected[place] == pytest.approx(pair[0, 0] + pair[1, 1] - pair[0, 1] - pair[1, 0], abs=1e-12)
    single = mrf.marginal([(0, 0)]).values
    assert expected[0] == pytest.approx(single[1] - single[0], abs=1e-12)


def test_spin_and_binary_codings_are_the_same_laws() -> None:
    """With x = 2 b - 1: coupling 4 w, and field 2 u - 2 (sum of the couplings at the node)."""
    edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    u = dict(zip("abcd", (0.2, -0.3, 0.1, 0.4), strict=True))
    w = dict(zip(edges, (0.5, -0.2, 0.3, 0.7), strict=True))
    order = list(u)
    spin = sf.MarkovNetwork.ising(edges).with_weights([*u.values(), *w.values()])
    at = {n: sum(v for e, v in w.items() if n in e) for n in order}
    binary = sf.MarkovNetwork.ising(edges, coding="binary").with_weights(
        [*(2 * u[n] - 2 * at[n] for n in order), *(4 * v for v in w.values())]
    )
    np.testing.assert_allclose(spin.marginal(order).values, binary.marginal(order).values, rtol=1e-12)
    assert spin.fields_ == u
    assert spin.couplings_ == w
    with pytest.raises(sf.OptionError, match="coding"):
        sf.MarkovNetwork.ising(edges, coding="ternary")  # type: ignore[arg-type]


def test_potts_against_enumeration() -> None:
    edges = [(0, 1), (1, 2), (2, 0)]
    mrf = sf.MarkovNetwork.potts(edges, ["r", "g", "b"], tied=True)
    weights = np.random.default_rng(0).normal(size=10)
    states = {n: ["r", "g", "b"] for n in range(3)}
    features = [*table_features([(0,), (1,), (2,)], states), lambda x: sum(x[a] == x[b] for a, b in edges)]
    log_z, law = law_of(design_of(features, states), weights)
    found = mrf.with_weights(weights)
    assert found.log_partition_ == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(found.marginal([0, 1, 2]).values.ravel(), law, rtol=1e-12)
    free = sf.MarkovNetwork.potts(edges, 3, fields=False)
    assert [f.name for f in free.features] == ["agreement 0, 1", "agreement 1, 2", "agreement 2, 0"]
    assert free.with_weights([1.0, 2.0, 3.0]).couplings_ == {(0, 1): 1.0, (1, 2): 2.0, (2, 0): 3.0}


def test_grid_and_networkx_graphs() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.grid_2d_graph(3, 4)
    graph.add_node("alone")
    mrf = sf.MarkovNetwork(graph)
    assert {frozenset(edge) for edge in mrf.cliques if len(edge) == 2} == {
        frozenset(edge) for edge in sf.MarkovNetwork.grid(3, 4).cliques
    }
    assert ("alone",) in mrf.cliques
    assert set(mrf.to_networkx().edges) == set(graph.edges)
    with pytest.raises(sf.OptionError, match="from_bayesian_network"):
        sf.MarkovNetwork(networkx.DiGraph([("a", "b")]))


def test_a_bayesian_network_keeps_its_law() -> None:
    rows = {"R": [0, 0, 1, 1, 0], "S": ["n", "y", "n", "n", "y"], "W": [0, 1, 1, 1, 1]}
    net = sf.BayesianNetwork([("R", "W"), ("S", "W")]).fit(rows)
    mrf = sf.MarkovNetwork.from_bayesian_network(net)
    assert mrf.log_partition_ == pytest.approx(0.0, abs=1e-15)
    assert mrf.marginal(["R", "S", "W"]).allclose(net.query(["R", "S", "W"]), rtol=1e-14)
    assert mrf.potential(("R", "S", "W")).allclose(net.table("W"), rtol=1e-14)
    assert ("R", "S") in {tuple(sorted(map(str, edge))) for edge in mrf.edges}  # Parents are joined.
    np.testing.assert_allclose(mrf.score_samples(rows), net.score_samples(rows), rtol=1e-13)


def test_given_potentials_may_hold_zeros() -> None:
    mrf = sf.MarkovNetwork.from_potentials({("A", "B"): [[0, 2.0], [3.0, 1.0]], ("B",): [1.0, 0.5]})
    assert mrf.log_partition_ == pytest.approx(math.log(2 * 0.5 + 3 + 0.5), abs=1e-14)
    np.testing.assert_allclose(mrf.marginal(("A", "B")).values, [[0, 1 / 4.5], [3 / 4.5, 0.5 / 4.5]], rtol=1e-14)
    assert mrf.weights_[0] == -math.inf
    with pytest.raises(sf.OptionError, match="negative"):
        sf.MarkovNetwork.from_potentials({("A",): [1.0, -1.0]})
