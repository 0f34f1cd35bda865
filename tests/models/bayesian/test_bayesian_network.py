"""Networks of tables: fitting, priors, inference, gaps, hidden nodes, files; brute force is the judge."""

import itertools
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import suffice as sf
from random_networks import certificate_at
from suffice.domain import Domain, Variable

SPRINKLER: dict[Any, list[Any]] = {
    "season": [],
    "rain": ["season"],
    "sprinkler": ["season"],
    "wet": ["rain", "sprinkler"],
}


def draw(n: int, seed: int = 0) -> dict[Any, list[Any]]:
    """Rows of a small network by hand."""
    rng = np.random.default_rng(seed)
    rows: dict[Any, list[Any]] = {name: [] for name in SPRINKLER}
    for _ in range(n):
        season = rng.choice(["dry", "wet"])
        rain = bool(rng.random() < (0.1 if season == "dry" else 0.6))
        sprinkler = int(rng.random() < (0.5 if season == "dry" else 0.1))
        wet = "yes" if rng.random() < (0.95 if rain or sprinkler else 0.05) else "no"
        for name, value in zip(rows, (str(season), rain, sprinkler, wet), strict=True):
            rows[name].append(value)
    return rows


def joint(net: sf.BayesianNetwork) -> dict[tuple[Any, ...], float]:
    """Every joint state with its probability, multiplied out from the tables by label."""
    found = {}
    for states in itertools.product(*(net.states(node) for node in net.nodes)):
        row: dict[Any, Any] = dict(zip(net.nodes, states, strict=True))
        found[states] = math.prod(
            net.table(node).at({name: row[name] for name in (*net.parents(node), node)}) for node in net.nodes
        )
    return found


# -- tables ----------------------------------------------------------------------------------------------------------


def test_tables_are_the_shares_of_each_parent_row() -> None:
    rows = draw(200)
    net = sf.BayesianNetwork(SPRINKLER).fit(rows)
    seen = Counter(zip(rows["rain"], rows["sprinkler"], rows["wet"], strict=True))
    for (rain, sprinkler, wet), count in seen.items():
        total = sum(n for key, n in seen.items() if key[:2] == (rain, sprinkler))
        assert net.table("wet").at(rain=rain, sprinkler=sprinkler, wet=wet) == pytest.approx(count / total, abs=1e-15)
    assert net.table("wet").variables == ("rain", "sprinkler", "wet")
    np.testing.assert_allclose(net.table("wet").values.sum(axis=-1), 1.0)
    assert net.states("rain") == (False, True)
    assert net.report_.certificate.moment_gap < 1e-12


def test_the_likelihood_is_the_sum_over_rows() -> None:
    rows = draw(50)
    net = sf.BayesianNetwork(SPRINKLER).fit(rows)
    by_hand = [math.log(joint(net)[row]) for row in zip(*(rows[node] for node in net.nodes), strict=True)]
    np.testing.assert_allclose(net.score_samples(rows), by_hand, rtol=1e-12)
    assert net.report_.log_likelihood == pytest.approx(sum(by_hand), rel=1e-12)
    assert net.score(rows) == pytest.approx(np.mean(by_hand), rel=1e-12)
    assert net.report_.n_params == 1 + 2 + 2 + 4


@given(st.permutations(["rain", "sprinkler"]), st.randoms(use_true_random=False))
def test_order_of_rows_columns_and_parents_does_not_matter(parents: list[str], random: Any) -> None:
    rows = draw(40)
    names = list(rows)
    random.shuffle(names)
    order = list(range(40))
    random.shuffle(order)
    shuffled = {name: [rows[name][k] for k in order] for name in names}
    net = sf.BayesianNetwork({**SPRINKLER, "wet": parents}).fit(shuffled)
    plain = sf.BayesianNetwork(SPRINKLER).fit(rows)
    assert net.table("wet").allclose(plain.table("wet"), rtol=1e-15)
    assert net.table("wet").variables == (*parents, "wet")


def test_one_parent_is_not_uniform() -> None:
    rows = {"fruit": ["apple"] * 4 + ["banana"] * 10, "tasty": ["no", "no", "yes", "yes"] + ["no"] * 5 + ["yes"] * 5}
    net = sf.BayesianNetwork([("tasty", "fruit")]).fit(rows)
    assert net.table("fruit").at(tasty="no", fruit="apple") == pytest.approx(2 / 7)


def test_declared_states_keep_place_and_order() -> None:
    states = ["High", "Medium", "Low", "None", "Never"]
    net = sf.BayesianNetwork({"x": []}, states={"x": states}, prior={"x": [10, 1, 1, 1, 1]}).fit({"x": ["Low", "High"]})
    assert net.states("x") == tuple(states)
    np.testing.assert_allclose(net.table("x").values, np.array([11, 1, 2, 1, 1]) / 16)


def test_labels_that_look_like_positions() -> None:
    net = sf.BayesianNetwork([("X", "Y")]).fit({"X": [1, 2, 1, 2], "Y": [1, 2, 1, 2]})
    assert net.table("Y").at(X=2, Y=2) == 1.0
    drawn = net.sample(50, random_state=0)
    np.testing.assert_array_equal(drawn["X"], drawn["Y"])


def test_prior_on_unseen_combinations() -> None:
    alpha = np.array([[[10.0, 10.0], [20.0, 10.0]], [[10.0, 10.0], [10.0, 10.0]]])
    states = {name: [0, 1] for name in "ABC"}
    rows = {"A": [1, 1, 1], "B": [1, 1, 1], "C": [1, 1, 0]}
    net = sf.BayesianNetwork({"C": ["A", "B"]}, states=states, prior={"C": alpha}).fit(rows)
    table = net.table("C")
    found = [table.at(A=a, B=b, C=0) for a in (0, 1) for b in (0, 1)]
    assert found == pytest.approx([0.5, 2 / 3, 0.5, 11 / 23])


def test_unseen_configurations_are_counted_filled_or_refused() -> None:
    rows = {"a": [0, 1, 0, 1], "b": [0, 1, 0, 1], "c": ["x", "y", "x", "x"]}
    net = sf.BayesianNetwork({"c": ["a", "b"]}).fit(rows)
    assert net.node("c").n_unseen == 2
    assert net.node("c").unseen() == [{"a": 0, "b": 1}, {"a": 1, "b": 0}]
    assert net.table("c").at(a=0, b=1, c="x") == 0.5
    assert "2 parent configurations never occur" in net.report_.warnings[0]
    undefined = sf.BayesianNetwork({"c": ["a", "b"]}, unseen="nan").fit(rows)
    assert math.isnan(undefined.table("c").at(a=0, b=1, c="x"))
    assert math.isfinite(undefined.report_.log_likelihood)
    with pytest.raises(sf.EstimateError, match=r"2 parent configurations of 'c' never occur.*\{'a': 0, 'b': 1\}"):
        sf.BayesianNetwork({"c": ["a", "b"]}, unseen="raise").fit(rows)


def test_a_wide_family_follows_the_rows() -> None:
    rng = np.random.default_rng(0)
    parents = [f"p{k}" for k in range(5)]
    rows = {name: rng.integers(0, 20, 2_000) for name in (*parents, "x")}
    net = sf.BayesianNetwork({"x": parents}).fit(rows)
    assert len(net.node("x").rows) <= 2_000
    assert net.report_.log_likelihood == pytest.approx(-5 * 2_000 * math.log(20), rel=0.01)
    with pytest.raises(sf.SizeError, match="64,000,000 cells"):
        net.table("x")


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ([("a", "b"), ("b", "a")], "cycle"),
        ([("a", "a")], "its own parent"),
        ([("a", "b"), ("a", "b")], "more than once"),
        ({"a": "bc"}, "expected a list of names"),
        ("a, b", "expected edges"),
        ([], "no nodes"),
        ([("a", "b", "c")], "pair"),
    ],
)
def test_structures_that_cannot_be(structure: Any, message: str) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.BayesianNetwork(structure)


def test_any_hashable_name() -> None:
    net = sf.BayesianNetwork({0: [], ("a", 1): [0], "": [("a", 1)]})
    net.fit({0: [0, 1, 1], ("a", 1): ["x", "y", "y"], "": [True, True, False]})
    assert net.nodes == (0, ("a", 1), "")
    assert net.query(0, given={"": False}).at({0: 1}) == pytest.approx(1.0)


def test_a_networkx_graph_and_back() -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph([("a", "b")])
    graph.add_node("alone")
    net = sf.BayesianNetwork(graph)
    assert (net.nodes, net.edges) == (("a", "b", "alone"), (("a", "b"),))
    assert networkx.utils.graphs_equal(net.to_networkx(), graph)
    with pytest.raises(sf.OptionError, match="no directions"):
        sf.BayesianNetwork(networkx.Graph([("a", "b")]))
    assert sf.BayesianNetwork(net).edges == net.edges


def test_columns_that_are_not_there() -> None:
    with pytest.raises(sf.MissingColumnError, match="'b'"):
        sf.BayesianNetwork([("a", "b")]).fit({"a": [1, 2]})
    with pytest.raises(sf.OptionError, match="names 'z', which is no node"):
        sf.BayesianNetwork([("a", "b")], fixed={"z": [1.0]})


def test_the_certificate_bounds_what_is_lost() -> None:
    rows = draw(80)
    net = sf.BayesianNetwork(SPRINKLER).fit(rows)
    assert net.report_.certificate.bound
    assert net.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-14)
    smoothed = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(rows)
    moved = certificate_at(net, {name: replace(node, alpha=None) for name, node in smoothed.fitted_.nodes.items()})
    assert moved.moment_gap > 1e-3
    lost = (net.report_.log_likelihood - smoothed.report_.log_likelihood) / 80
    assert moved.value_gap == pytest.approx(lost, rel=1e-9)


# -- priors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "weight", "cell"),
    [
        (2.5, {}, 2.5),
        ("k2", {}, 1.0),
        ("jeffreys", {}, 0.5),
        ("bdeu", {"equivalent_sample_size": 6}, 6.0 / 8),
        ("BDeu", {"equivalent_sample_size": 6}, 6.0 / 8),
        ({"wet": "BDeu"}, {"equivalent_sample_size": 6}, 6.0 / 8),
    ],
)
def test_posterior_means_by_hand(prior: Any, weight: dict[str, Any], cell: float) -> None:
    rows = draw(30)
    net = sf.BayesianNetwork(SPRINKLER, prior=prior, **weight).fit(rows)
    seen = Counter(zip(rows["rain"], rows["sprinkler"], rows["wet"], strict=True))
    for rain, sprinkler, wet in itertools.product((False, True), (0, 1), ("no", "yes")):
        total = sum(n for key, n in seen.items() if key[:2] == (rain, sprinkler)) + 2 * cell
        expected = (seen[rain, sprinkler, wet] + cell) / total
        assert net.table("wet").at(rain=rain, sprinkler=sprinkler, wet=wet) == pytest.approx(expected, rel=1e-14)


def test_the_mode_of_two_is_the_mean_of_one() -> None:
    rows = draw(25)
    mode = sf.BayesianNetwork(SPRINKLER, prior=2.0, estimate="map").fit(rows)
    mean = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(rows)
    assert mode.table("wet").allclose(mean.table("wet"), rtol=1e-14)
    with pytest.raises(sf.EstimateError, match="no single mode"):
        sf.BayesianNetwork(SPRINKLER, prior=0.5, estimate="map").fit(rows)


def test_a_labelled_prior_goes_by_label() -> None:
    domain = Domain([Variable.discrete("wet", ["yes", "no"]), Variable.discrete("rain", [True, False])])
    prior = sf.Table(domain, [[9.0, 1.0], [2.0, 3.0]])  # wet=yes, rain=True has 9
    net = sf.BayesianNetwork(
        [("rain", "wet")], prior={"wet": prior}, states={"rain": [False, True], "wet": ["no", "yes"]}
    )
    net.fit({"rain": [True], "wet": ["no"]})
    assert net.table("wet").at(rain=True, wet="yes") == pytest.approx(9 / 12)
    assert net.table("wet").at(rain=False, wet="no") == pytest.approx(3 / 4)


def test_equivalent_networks_have_equal_evidence_under_bde_and_not_under_k2() -> None:
    rows = {"a": [0, 0, 1, 1, 1, 0], "b": ["x", "y", "y", "y", "z", "x"]}

    def evidence(edge: tuple[str, str], prior: Any) -> float:
        weight: dict[str, Any] = {} if prior == "k2" else {"equivalent_sample_size": 3.0}
        found = sf.BayesianNetwork([edge], prior=prior, **weight).fit(rows).report_.log_evidence
        assert found is not None
        return found

    assert evidence(("a", "b"), "bdeu") == pytest.approx(evidence(("b", "a"), "bdeu"), rel=1e-12)
    assert abs(evidence(("a", "b"), "k2") - evidence(("b", "a"), "k2")) > 1e-3
    belief = sf.BayesianNetwork([("a", "b")], prior=1.0).fit({"a": [0, 1, 1], "b": ["x", "z", "y"]})
    assert evidence(("a", "b"), belief) == pytest.approx(evidence(("b", "a"), belief), rel=1e-12)


def test_evidence_is_the_product_of_sequential_predictions() -> None:
    rows = draw(12)
    total = 0.0
    for k in range(12):
        before = sf.BayesianNetwork(SPRINKLER, prior=0.7, states={n: sorted(set(rows[n]), key=str) for n in rows})
        before.fit({name: values[:k] for name, values in rows.items()})
        row: dict[Any, Any] = {name: values[k] for name, values in rows.items()}
        total += sum(
            math.log(before.table(n).at({name: row[name] for name in (*before.parents(n), n)})) for n in before.nodes
        )
    assert sf.BayesianNetwork(SPRINKLER, prior=0.7).fit(rows).report_.log_evidence == pytest.approx(total, rel=1e-12)


def test_fixed_tables_do_not_move() -> None:
    table = np.array([0.25, 0.75])
    net = sf.BayesianNetwork(SPRINKLER, fixed={"season": table}, prior=1.0).fit(draw(20))
    assert net.table("season").values.tobytes() == table.tobytes()
    with pytest.raises(sf.OptionError, match="not a distribution"):
        sf.BayesianNetwork(SPRINKLER, fixed={"season": [0.5, 0.6]}).fit(draw(20))


# -- inference -------------------------------------------------------------------------------------------------------


def test_queries_by_enumeration() -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(60))
    full = joint(net)
    assert sum(full.values()) == pytest.approx(1.0)
    found = net.query(["sprinkler", "season"], given={"wet": "yes"})
    total = sum(p for states, p in full.items() if states[3] == "yes")
    for season, sprinkler in itertools.product(net.states("season"), net.states("sprinkler")):
        mass = sum(p for s, p in full.items() if s[0] == season and s[2] == sprinkler and s[3] == "yes")
        assert found.at(season=season, sprinkler=sprinkler) == pytest.approx(mass / total, rel=1e-12)
    assert net.log_probability({"wet": "yes"}) == pytest.approx(math.log(total), rel=1e-12)
    best = max((s for s in full if s[3] == "yes"), key=lambda s: full[s])
    assert net.map_query({"wet": "yes"}) == dict(zip(net.nodes, best, strict=True))
    assert net.marginals({"wet": "yes"})["rain"].allclose(net.query("rain", given={"wet": "yes"}))


def test_soft_evidence_weights_states() -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(60))
    soft = net.query("rain", given={"wet": {"yes": 0.8, "no": 0.2}})
    yes, no = (net.joint_marginal(["rain", "wet"]).at(wet=wet) for wet in ("yes", "no"))
    assert soft.allclose((0.8 * yes + 0.2 * no).normalize())
    with pytest.raises(sf.OptionError, match="expected 2 numbers"):
        net.query("rain", given={"wet": [0.0, 0.0]})


def test_impossible_evidence_and_unknown_labels() -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 1], "b": ["x", "y"]})
    assert net.log_probability({"a": 0, "b": "y"}) == -math.inf
    with pytest.raises(sf.EstimateError, match="probability 0"):
        net.query("a", given={"a": 0, "b": "y"})
    with pytest.raises(sf.UnknownStateError, match=r"gives 'b' the state 'z'.*'x', 'y'"):
        net.query("a", given={"b": "z"})
    with pytest.raises(sf.MissingColumnError, match="'c'"):
        net.query("c")


def test_predictions_are_posteriors_of_each_row() -> None:
    rows = draw(60)
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(rows)
    some: dict[str, list[Any]] = {"wet": ["yes", "no", None], "season": ["dry", "wet", "dry"]}
    found = net.predict_proba(some, "rain")
    for k, (wet, season) in enumerate(zip(some["wet"], some["season"], strict=True)):
        evidence = {"season": season} | ({} if wet is None else {"wet": wet})
        np.testing.assert_allclose(found[k], net.query("rain", given=evidence).values, rtol=1e-12)
    assert net.predict(some, "rain").tolist() == [bool(p[1] > p[0]) for p in found]


def test_samples_follow_the_law() -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(60))
    n = 20_000
    drawn = net.sample(n, random_state=0)
    counts = Counter(zip(*(drawn[node].tolist() for node in net.nodes), strict=True))
    law = joint(net)
    chi2 = sum((counts[s] - n * p) ** 2 / (n * p) for s, p in law.items())
    assert chi2 < 37.7  # 99.9 % of chi-square with 15 degrees of freedom
    given_wet = net.sample(n, {"wet": "yes"}, random_state=0)
    assert set(given_wet["wet"]) == {"yes"}
    assert np.mean(given_wet["rain"]) == pytest.approx(net.query("rain", given={"wet": "yes"}).at(rain=True), abs=0.02)
    again, twin = (net.sample(5, random_state=0) for _ in range(2))
    assert {name: values.tolist() for name, values in again.items()} == {n: v.tolist() for n, v in twin.items()}


# -- gaps and hidden nodes -------------------------------------------------------------------------------------------


def with_gaps(rows: dict[str, list[Any]], share: float, seed: int = 1) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    return {name: [None if rng.random() < share else v for v in values] for name, values in rows.items()}


def test_a_row_with_gaps_is_summed_over_its_completions() -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(60))
    full = joint(net)
    found = net.score_samples({"season": [None], "rain": [True], "sprinkler": [None], "wet": ["yes"]})
    mass = sum(p for s, p in full.items() if s[1] is True and s[3] == "yes")
    assert found[0] == pytest.approx(math.log(mass), rel=1e-12)


def test_a_copy_of_a_fair_coin_is_fair() -> None:
    domain = Domain([Variable.discrete("z", [0, 1]), Variable.discrete("x", [0, 1])])
    net = sf.BayesianNetwork.from_tables(
        domain, {"z": [], "x": ["z"]}, {"z": [0.5, 0.5], "x": [[0.9, 0.1], [0.1, 0.9]]}
    )
    assert math.exp(net.score_samples({"x": [1]})[0]) == pytest.approx(0.5)


def test_em_reaches_a_stationary_point_of_the_observed_likelihood() -> None:
    rows = with_gaps(draw(80), 0.3)
    net = sf.BayesianNetwork(SPRINKLER, tolerance=1e-10).fit(rows)
    assert net.converged_
    assert all(np.diff(net.history_) >= -1e-9)
    assert net.report_.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-10)
    base = net.report_.log_likelihood
    for node in net.nodes:  # any small move inside a row lowers the likelihood of the rows as seen
        for direction in (1, -1):
            tables = {n: net.table(n).values.copy() for n in net.nodes}
            inside = (tables[node] > 0.01).all(axis=-1)
            tables[node][inside] += direction * 1e-3 * np.array([1.0, -1.0])
            domain = Domain(net.node(n).domain[n] for n in net.nodes)
            moved = sf.BayesianNetwork.from_tables(domain, SPRINKLER, tables)
            assert moved.score_samples(rows).sum() < base + 1e-9


def test_a_row_that_says_nothing_changes_nothing() -> None:
    rows = draw(50)
    closed = sf.BayesianNetwork(SPRINKLER).fit(rows)
    em = sf.BayesianNetwork(SPRINKLER, tolerance=1e-15).fit({name: [*values, None] for name, values in rows.items()})
    assert (closed.report_.method.split()[0], em.report_.method.split()[0]) == ("closed", "EM,")
    for node in closed.nodes:
        np.testing.assert_allclose(em.table(node).values, closed.table(node).values, rtol=1e-12, atol=1e-12)


def test_gaps_can_be_refused() -> None:
    with pytest.raises(sf.MissingValueError, match="'rain' has"):
        sf.BayesianNetwork(SPRINKLER, missing="raise").fit({**draw(3), "rain": [None, True, False]})


def test_a_hidden_class_leaves_the_symmetric_point_and_beats_independence() -> None:
    rng = np.random.default_rng(5)
    cause = rng.random(400) < 0.4
    rows = {name: np.where(rng.random(400) < 0.85, cause, ~cause).astype(int) for name in "abcd"}
    structure = [("H", name) for name in "abcd"]
    net = sf.BayesianNetwork(structure, hidden={"H": 2}, n_init=4, tolerance=1e-8, random_state=3).fit(rows)
    alone = sf.BayesianNetwork({name: [] for name in "abcd"}).fit(rows)
    assert net.report_.log_likelihood > alone.report_.log_likelihood + 100
    assert len(net.scores_) == 4
    assert max(net.scores_) == pytest.approx(net.report_.objective, rel=1e-9)
    accuracy = np.sort([net.table(x).at({"H": h, x: 1}) for x in "abcd" for h in (0, 1)])
    assert accuracy[:4].mean() == pytest.approx(0.15, abs=0.06)
    again = sf.BayesianNetwork(structure, hidden={"H": 2}, n_init=4, tolerance=1e-8, random_state=3).fit(rows)
    assert again.table("a").values.tobytes() == net.table("a").values.tobytes()


def test_the_limit_is_not_convergence() -> None:
    with pytest.warns(sf.ConvergenceWarning, match="max_iter"):
        net = sf.BayesianNetwork(SPRINKLER, max_iter=1, tolerance=1e-12).fit(with_gaps(draw(40), 0.3))
    assert not net.converged_


# -- the laws --------------------------------------------------------------------------------------------------------


def test_parts_add_up_and_can_be_taken_out() -> None:
    rows = draw(60)

    def part(start: int, stop: int) -> dict[str, list[Any]]:
        return {name: values[start:stop] for name, values in rows.items()}

    whole = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(rows)
    parts = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(part(0, 1)).partial_fit(part(1, 20)).partial_fit(part(20, 60))
    assert parts.table("wet").values.tobytes() == whole.table("wet").values.tobytes()
    back = parts.unlearn(part(20, 60))
    before = sf.BayesianNetwork(SPRINKLER, prior=1.0, states={n: list(whole.states(n)) for n in whole.nodes})
    assert back.table("wet").allclose(before.fit(part(0, 20)).table("wet"), rtol=1e-12)


def test_integer_weights_are_repeated_rows() -> None:
    rows = draw(30)
    weights = np.random.default_rng(0).integers(0, 4, 30)
    repeated = {n: [v for v, w in zip(vs, weights, strict=True) for _ in range(w)] for n, vs in rows.items()}
    weighted = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(rows, sample_weight=weights).table("wet").values
    again = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(repeated).table("wet").values
    assert weighted.tobytes() == again.tobytes()


@pytest.mark.parametrize("name", ["net.json", "net.suffice"])
def test_files_are_exact(tmp_path: Path, name: str) -> None:
    for net in (
        sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(30)),
        sf.BayesianNetwork(SPRINKLER, max_iter=5000).fit(with_gaps(draw(30), 0.2)),
    ):
        net.write(tmp_path / name)
        twin = sf.read(tmp_path / name)
        assert all(twin.table(n).values.tobytes() == net.table(n).values.tobytes() for n in net.nodes)
        assert twin.report_ == net.report_
        assert twin.states("rain") == (False, True)


@pytest.mark.parametrize("ending", [".bif", ".bifxml", ".net", ".bif.gz", ".uai"])
def test_network_files_hold_the_same_law(tmp_path: Path, ending: str) -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0).fit(draw(30))
    net.write(tmp_path / f"net{ending}")
    twin = sf.read(tmp_path / f"net{ending}", parent_order="forward" if ending == ".uai" else None)
    for node, other in zip(net.nodes, twin.nodes, strict=True):
        np.testing.assert_allclose(twin.table(other).values, net.table(node).values, rtol=1e-15)
    assert twin.notes_ == ()
    twin.write(tmp_path / "again.json")
    last = sf.read(tmp_path / "again.json").table(twin.nodes[3])
    assert last.values.tobytes() == twin.table(twin.nodes[3]).values.tobytes()


def test_scikit_learn_style_options() -> None:
    net = sf.BayesianNetwork(SPRINKLER, prior=1.0)
    assert net.get_params()["prior"] == 1.0
    assert net.clone().set_params(prior=2.0).prior == 2.0  # type: ignore[attr-defined]
    with pytest.raises(sf.NotFittedError):
        net.table("wet")


# -- real nodes ------------------------------------------------------------------------------------------------------


def mixed_rows(n: int = 300) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    kind = rng.choice(["a", "b"], size=n)
    x = rng.normal(1.0, 2.0, n)
    y = 0.2 - 2 * x + np.where(kind == "a", 3.0, -1.0) + rng.normal(0, 0.5, n)
    return {"kind": kind, "x": x, "y": y}


def test_real_nodes_are_least_squares_by_discrete_configuration() -> None:
    rows = mixed_rows()
    net = sf.BayesianNetwork({"y": ["kind", "x"]}).fit(rows)
    for state in ("a", "b"):
        at = rows["kind"] == state
        design = np.stack([np.ones(at.sum()), rows["x"][at]], axis=1)
        weights, squares, *_ = np.linalg.lstsq(design, rows["y"][at], rcond=None)
        place = net.states("kind").index(state)
        np.testing.assert_allclose(net.node("y").weights_[place], weights, rtol=1e-9)
        assert net.node("y").variance_[place] == pytest.approx(squares[0] / at.sum(), rel=1e-9)
    assert net.node("x").variance_ == pytest.approx(np.var(rows["x"]), rel=1e-12)
    assert net.report_.log_likelihood == pytest.approx(net.score_samples(rows).sum(), rel=1e-10)
    assert net.report_.certificate.moment_gap < 1e-9


def test_the_variance_is_that_of_the_residuals() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=4_000)
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": a, "b": 2 * a + 1 + rng.normal(size=4_000)})
    assert net.node("b").variance_ == pytest.approx(1.0, abs=0.08)
    np.testing.assert_allclose(net.node("b").weights_, [1, 2], atol=0.06)


def test_mixed_queries_by_quadrature() -> None:
    net = sf.BayesianNetwork({"y": ["kind", "x"]}).fit(mixed_rows())
    grid = np.linspace(-15, 17, 4_001)
    weights = []
    for state in net.states("kind"):
        rows = {"kind": [state] * len(grid), "x": grid, "y": np.full(len(grid), 0.5)}
        weights.append(np.exp(net.score_samples(rows)))
    mass = np.trapezoid(np.array(weights), grid, axis=1)
    np.testing.assert_allclose(net.query("kind", given={"y": 0.5}).values, mass / mass.sum(), rtol=1e-8)
    assert net.log_probability({"y": 0.5}) == pytest.approx(math.log(mass.sum()), rel=1e-8)
    mean = (np.array(weights).sum(axis=0) * grid).sum() / np.array(weights).sum()
    assert net.query("x", given={"y": 0.5}).mean[0] == pytest.approx(mean, rel=1e-7)
    assert net.predict({"y": [0.5]}, "x")[0] == pytest.approx(mean, rel=1e-7)
    np.testing.assert_allclose(net.predict_proba({"y": [0.5]}, "kind")[0], mass / mass.sum(), rtol=1e-8)
    assert net.score_samples({"y": [0.5]})[0] == pytest.approx(math.log(mass.sum()), rel=1e-8)


def test_mixed_networks_sample_save_and_add_up(tmp_path: Path) -> None:
    rows = mixed_rows()
    net = sf.BayesianNetwork({"y": ["kind", "x"]}).fit(rows)
    parts = sf.BayesianNetwork({"y": ["kind", "x"]})
    for start, stop in ((0, 100), (100, 300)):
        parts.partial_fit({name: values[start:stop] for name, values in rows.items()})
    np.testing.assert_allclose(parts.node("y").weights_, net.node("y").weights_, rtol=1e-12)
    net.write(tmp_path / "net.json")
    twin = sf.read(tmp_path / "net.json")
    assert twin.node("y").weights_.tobytes() == net.node("y").weights_.tobytes()
    drawn = twin.sample(20_000, random_state=1)
    assert drawn["y"].std() == pytest.approx(rows["y"].std(), rel=0.1)
    assert set(drawn["kind"]) == {"a", "b"}


def test_what_real_nodes_cannot_do_is_said() -> None:
    rows = mixed_rows(20)
    with pytest.raises(sf.OptionError, match="'kind' is discrete and has the real parents 'x'"):
        sf.BayesianNetwork([("x", "kind")]).fit(rows)
    net = sf.BayesianNetwork({"y": ["kind", "x"]}).fit(rows)
    with pytest.raises(sf.OptionError, match="both kinds of nodes"):
        net.map_query()


def test_one_joint_prior_gives_equivalent_networks_equal_evidence() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=30)
    rows = {"a": a, "b": a + rng.normal(size=30)}
    prior = sf.NormalWishart(mean=[0.0, 0.0], strength=1.0, dof=4.0, inverse_scale=np.eye(2))
    one, other = (
        sf.BayesianNetwork(graph, prior=prior).fit(rows).report_.log_evidence
        for graph in ({"a": [], "b": ["a"]}, {"a": ["b"], "b": []})
    )
    assert one == pytest.approx(other, rel=1e-12)
