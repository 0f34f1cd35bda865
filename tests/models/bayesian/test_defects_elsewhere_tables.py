"""Tables that come out wrong in other libraries: axes, orders, labels, unseen states, priors, scores.

Each test is named after what goes wrong elsewhere; the docstring says where it was reported.
"""

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.domain import Domain, Variable

FRUIT: dict[Any, list[Any]] = {
    "fruit": list("babababaaabbab"),
    "tasty": ["yes", "no", *["yes"] * 9, "no", "no", "no"],
    "size": ["large"] * 3 + ["small"] + ["large"] * 3 + ["small"] + ["large"] * 4 + ["small"] * 2,
}


def one_parent_rows() -> dict[str, list[int]]:
    """3000 rows of A -> B; the legacy generator is used because the published figures are those of its seed 11."""
    old = np.random.RandomState(11)
    a = old.choice([1, 2, 3], size=3000, p=[0.1, 0.3, 0.6])
    given_a = {1: [0.9, 0.05, 0.05], 2: [0.1, 0.2, 0.7], 3: [0.85, 0.1, 0.05]}
    return {"A": a.tolist(), "B": [int(old.choice([1, 2, 3], p=given_a[int(value)])) for value in a]}


# -- axes, orders, labels --------------------------------------------------------------------------------------------


def test_a_node_with_one_parent_gets_a_uniform_table() -> None:
    """pgmpy#1252, causalnex#35."""
    table = sf.BayesianNetwork([("A", "B")]).fit(one_parent_rows()).table("B")
    found = np.round([[table.at(A=a, B=b) for a in (1, 2, 3)] for b in (1, 2, 3)], 4)
    assert found.tolist() == [[0.9154, 0.1054, 0.8478], [0.0221, 0.2131, 0.1024], [0.0625, 0.6815, 0.0498]]


def test_the_counts_of_a_node_with_one_parent_are_zero() -> None:
    """pgmpy_tutorials#24."""
    net = sf.BayesianNetwork([("fruit", "tasty")]).fit(FRUIT)
    node = net.node("tasty")
    assert (net.states("fruit"), net.states("tasty")) == (("a", "b"), ("no", "yes"))
    assert node.counts.tolist() == [[2.0, 5.0], [2.0, 5.0]]


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_tables_that_are_not_the_shares_of_a_cross_table(size: int) -> None:
    """pgmpy#1564: cardinalities of parents and node swapped."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(size)
    parents = [f"p{k}" for k in range(size)]
    cards = {name: 2 + k % 3 for k, name in enumerate([*parents, "x"])}
    frame = pandas.DataFrame({name: [f"{name}.{v}" for v in rng.integers(0, c, 400)] for name, c in cards.items()})
    table = sf.BayesianNetwork({"x": parents}).fit(frame).table("x")
    if parents:
        counts = pandas.crosstab([frame[p] for p in parents], frame["x"], normalize="index")
        for row, values in counts.iterrows():
            where: dict[Any, Any] = dict(zip(parents, row if size > 1 else (row,), strict=True))
            assert [table.at({**where, "x": s}) for s in counts] == pytest.approx(values.tolist(), abs=1e-15)
    else:
        shares = frame["x"].value_counts(normalize=True)
        assert [table.at(x=s) for s in shares.index] == pytest.approx(shares.tolist(), abs=1e-15)


@settings(max_examples=40)
@given(st.data())
def test_the_order_of_anything_changes_a_probability(data: st.DataObject) -> None:
    """pgmpy#1245, #1053, #1564, #1877: permute rows, columns, parents and states, and rename the states."""
    size = data.draw(st.integers(0, 4), label="parents")
    seed = data.draw(st.integers(0, 2**16), label="seed")
    rng = np.random.default_rng(seed)
    names = [f"v{k}" for k in range(size + 1)]
    cards = dict(zip(names, rng.integers(1, 4, size + 1).tolist(), strict=True))
    codes = {name: rng.integers(0, card, 60) for name, card in cards.items()}
    *parents, node = names
    states: dict[Any, list[Any]] = {name: list(range(card)) for name, card in cards.items()}
    plain = sf.BayesianNetwork({node: parents}, states=states, prior=0.3).fit(codes).table(node)
    # Small numbers again, so that a label could be mistaken for a position.
    renamed = {name: data.draw(st.permutations(range(card)), label=name) for name, card in cards.items()}
    order = rng.permutation(60)
    other = {n: [renamed[n][v] for v in codes[n][order]] for n in data.draw(st.permutations(names), label="columns")}
    turned = data.draw(st.permutations(parents), label="parent order")
    declared: dict[Any, list[Any]] = {n: data.draw(st.permutations(range(c))) for n, c in cards.items()}
    moved = sf.BayesianNetwork({node: turned}, states=declared, prior=0.3).fit(other).table(node)
    for place, value in plain.items():
        codes_at: Any = zip(names, place, strict=True)
        where: dict[Any, Any] = {name: renamed[name][code] for name, code in codes_at}
        assert moved.at(where) == pytest.approx(value, abs=1e-14)


def test_pseudo_counts_land_on_the_state_that_sorting_put_in_place() -> None:
    """pgmpy#1245: the declared order High, Medium, Low, None was replaced by the alphabet."""
    order = ["High", "Medium", "Low", "None"]
    net = sf.BayesianNetwork({"level": []}, states={"level": order}, prior={"level": [7.0, 1.0, 2.0, 4.0]})
    net.fit({"level": ["Low", "None", "Low"]})
    assert net.states("level") == tuple(order)
    assert net.table("level").values.tolist() == pytest.approx([7 / 17, 1 / 17, 4 / 17, 5 / 17])


def test_pseudo_counts_are_added_in_another_order_of_the_parents() -> None:
    """pgmpy#3521: prior over (Z, A), counts over the sorted parents (A, Z)."""
    states = {"Z": ["z0", "z1"], "A": ["a0", "a1", "a2"], "X": ["no", "yes"]}
    wanted = {
        (z, a, x): 1.0 + 7 * iz + 3 * ia + ix
        for (iz, z), (ia, a), (ix, x) in itertools.product(*(enumerate(states[n]) for n in ("Z", "A", "X")))
    }
    values = np.array(list(wanted.values())).reshape(2, 3, 2)
    prior = sf.Table(Domain([Variable.discrete(n, states[n]) for n in ("Z", "A", "X")]), values)
    rows = {"A": ["a0", "a2", "a2"], "Z": ["z1", "z0", "z0"], "X": ["yes", "no", "no"]}
    seen = Counter(zip(rows["Z"], rows["A"], rows["X"], strict=True))
    for parents in (["Z", "A"], ["A", "Z"]):
        for given_prior in (prior, prior.transpose(["A", "X", "Z"])):
            net = sf.BayesianNetwork({"X": parents}, states=states, prior={"X": given_prior}).fit(rows)
            for z, a in itertools.product(states["Z"], states["A"]):
                row = {x: wanted[z, a, x] + seen[z, a, x] for x in states["X"]}
                expected = row["yes"] / sum(row.values())
                assert net.table("X").at(Z=z, A=a, X="yes") == pytest.approx(expected, rel=1e-14)


def test_labels_that_look_like_positions_are_mapped_twice() -> None:
    """pgmpy#1877: with states [1, 2] the label 1 was read as position 1."""
    net = sf.BayesianNetwork([("X", "Y")]).fit({"X": [1, 2], "Y": [1, 2]})
    assert [net.table("Y").at(X=k, Y=k) for k in (1, 2)] == [1.0, 1.0]
    assert net.query("Y", given={"X": 2}).at(Y=2) == 1.0
    drawn = net.sample(200, {"X": 2}, random_state=0)
    assert set(drawn["Y"].tolist()) == {2}
    assert net.predict({"X": [2, 1]}, "Y").tolist() == [2, 1]


def test_a_node_with_the_name_zero_counts_as_no_node() -> None:
    """pgmpy#1037, #3577: the name 0 is false, an integer name is no string."""
    net = sf.BayesianNetwork([(0, 1), (1, 2)]).fit({0: ["a", "b", "b"], 1: ["c", "c", "d"], 2: ["e", "f", "f"]})
    assert net.parents(1) == (0,)
    assert net.query(0, given={1: "d"}).at({0: "b"}) == 1.0
    assert net.table(0).at({0: "a"}) == pytest.approx(1 / 3)
    assert net.sample(3, {0: "a"}, random_state=1)[0].tolist() == ["a"] * 3
    assert net.predict({1: ["d"]}, 0).tolist() == ["b"]


# -- unseen ----------------------------------------------------------------------------------------------------------


def test_a_declared_state_that_never_occurs_loses_its_row() -> None:
    """pgmpy#1532, causalnex#15: five states declared, four seen."""
    states = ["a", "b", "c", "d", "e"]
    rows = {"x": ["a", "b", "c", "e"] * 5, "y": ["p", "q"] * 10}
    net = sf.BayesianNetwork([("x", "y"), ("y", "z")], states={"x": states, "z": states})
    net.fit({**rows, "z": rows["x"]})
    assert net.table("x").values.tolist() == [0.25, 0.25, 0.25, 0.0, 0.25]
    assert net.table("y").values.shape == (5, 2)
    assert net.table("z").values.shape == (2, 5)
    assert net.node("y").unseen() == [{"x": "d"}]


def test_declared_states_bring_nan_into_the_table() -> None:
    """pgmpy#1621, #1696: NaN, and rows that do not sum to one, once state names were given."""
    rng = np.random.default_rng(4)
    rows = {name: rng.integers(0, 2, 30).tolist() for name in "ABCD"}
    states = {name: [0, 1, 2] for name in "ABCD"}
    net = sf.BayesianNetwork([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")], states=states).fit(rows)
    for node in net.nodes:
        np.testing.assert_allclose(net.table(node).values.sum(axis=-1), 1.0, rtol=1e-14)


def test_a_prior_cannot_reach_combinations_that_never_occur() -> None:
    """pgmpy#1042: A = B = 1 in all rows; C = 0 has 10, 20, 10 and 10 pseudo-counts, C = 1 has 10 everywhere."""
    alpha = np.array([[10.0, 20.0, 10.0, 10.0], [10.0, 10.0, 10.0, 10.0]])  # (C, AB)
    prior = np.moveaxis(alpha.reshape(2, 2, 2), 0, -1)
    states = {name: [0, 1] for name in "ABC"}
    net = sf.BayesianNetwork({"C": ["A", "B"]}, states=states, prior={"C": prior})
    net.fit({"A": [1, 1, 1], "B": [1, 1, 1], "C": [1, 1, 0]})
    found = [net.table("C").at(A=a, B=b, C=0) for a, b in itertools.product((0, 1), repeat=2)]
    assert found == pytest.approx([0.5, 2 / 3, 0.5, 11 / 23], rel=1e-14)


def test_a_row_filled_in_as_uniform_looks_like_a_learned_one() -> None:
    """pomegranate#848: a = b in all rows and c = 1 where a = 1, yet P(c = 1 | a = 1) came out near 0.75."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 1000)
    rows = {"a": a, "b": a, "c": np.where(a == 1, 1, rng.integers(0, 2, 1000))}
    net = sf.BayesianNetwork({"c": ["a", "b"]}).fit(rows)
    node = net.node("c")
    assert {"a": 1, "b": 0} in node.unseen()
    assert (node.n_unseen, len(node.unseen())) == (2, 2)
    assert "2 parent configurations never occur" in net.report_.warnings[0]
    assert node.counts.sum(axis=1).reshape(2, 2)[1, 0] == 0  # the row count tells a filled row from a learned one
    told = sf.BayesianNetwork({"c": ["a", "b"]}, unseen="nan").fit(rows)
    assert math.isnan(told.table("c").at(a=1, b=0, c=1))
    with pytest.raises(sf.EstimateError, match=r"undefined rows \(unseen='nan'\)"):
        told.query("c", given={"a": 1})
    with pytest.raises(sf.EstimateError, match="2 parent configurations of 'c' never occur"):
        sf.BayesianNetwork({"c": ["a", "b"]}, unseen="raise").fit(rows)


def test_a_wide_node_asks_for_the_product_of_its_parents() -> None:
    """pgmpy#3203, #1776, #1508: five parents of twenty states hang or ask for terabytes."""
    rng = np.random.default_rng(0)
    parents = [f"p{k}" for k in range(5)]
    rows = {name: rng.integers(0, 20, 3_000) for name in (*parents, "x")}
    net = sf.BayesianNetwork({"x": parents}, prior="bdeu").fit(rows)
    kept = net.node("x")
    distinct = len(set(zip(*(rows[p].tolist() for p in parents), strict=True)))
    assert len(kept.rows) == distinct
    assert kept.rows.nbytes < 20 * 8 * 3_001
    with pytest.raises(sf.SizeError, match=r"'x' given 'p0', .*64,000,000 cells"):
        net.table("x")
    far = sf.BayesianNetwork({"y": [f"q{k}" for k in range(40)]})
    far.fit({f"q{k}": [k % 3, 1, 2, 0] for k in range(40)} | {"y": ["a", "b", "a", "b"]})
    assert len(far.node("y").rows) <= 4
    with pytest.raises(sf.SizeError):
        far.query("y")


# -- priors ----------------------------------------------------------------------------------------------------------


def test_a_smoothing_number_needs_arrays_of_the_right_shape() -> None:
    """pgmpy#1518, #1260, #1411: one number is enough, and pseudo-counts near 0 give maximum likelihood."""
    plain = sf.BayesianNetwork([("fruit", "tasty"), ("size", "tasty")]).fit(FRUIT)
    faint = sf.BayesianNetwork([("fruit", "tasty"), ("size", "tasty")], prior=1e-12).fit(FRUIT)
    for node in plain.nodes:
        np.testing.assert_allclose(faint.table(node).values, plain.table(node).values, atol=1e-11)
    one = sf.BayesianNetwork([("fruit", "tasty")], prior=1.0).fit(FRUIT)
    assert one.table("tasty").at(fruit="a", tasty="no") == pytest.approx((2 + 1) / (7 + 2), rel=1e-15)


def test_all_nodes_must_share_the_strength_of_the_prior() -> None:
    """pgmpy#2432: a dict gives each node its own; a node left out has none."""
    net = sf.BayesianNetwork([("fruit", "tasty")], prior={"tasty": 3.0}).fit(FRUIT)
    assert net.table("fruit").values.tolist() == [0.5, 0.5]
    assert net.table("tasty").at(fruit="a", tasty="no") == pytest.approx((2 + 3) / (7 + 6), rel=1e-15)


def test_a_prior_of_the_wrong_shape_name_or_sign_is_taken() -> None:
    """pgmpy#1042, #1139, #1430: shape errors without names, warnings about priors nobody gave."""
    for prior, message in (
        ({"tasty": [1.0, 2.0, 3.0]}, r"prior of 'tasty'.*array of shape \(2, 2\) \(parents, node\)"),
        ("bdue", "the priors with a name are 'bdeu', 'k2', 'jeffreys'"),
        (-1.0, "not positive"),
        ({"tasty": math.nan}, "not positive"),
        ({"tastey": 1.0}, "prior= names 'tastey', which is no node"),
        ({"bdeu": 10}, "without a dict: prior='bdeu'"),
    ):
        with pytest.raises(sf.OptionError, match=message):
            sf.BayesianNetwork([("fruit", "tasty")], prior=prior).fit(FRUIT)
    with pytest.raises(sf.OptionError, match="needs a prior"):
        sf.BayesianNetwork([("fruit", "tasty")], estimate="map").fit(FRUIT)


# -- scores ----------------------------------------------------------------------------------------------------------


def test_nobody_knows_the_sign_and_the_base_of_bic() -> None:
    """pgmpy#1705, #975: natural logarithm; `bic_score` is the one to maximise, `bic` = -2 `bic_score` to minimise."""
    rows = {"M": [0, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1], "C": [1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 1]}
    report = sf.BayesianNetwork([("M", "C")]).fit(rows).report_
    assert report.n_params == 3
    assert report.log_likelihood == pytest.approx(-12.901672, abs=5e-7)
    assert report.bic_score == pytest.approx(-16.629032, abs=5e-7)
    assert report.bic == pytest.approx(3 * math.log(12) - 2 * report.log_likelihood, rel=1e-14)
    assert report.aic == pytest.approx(2 * 3 - 2 * report.log_likelihood, rel=1e-14)


def test_a_table_cannot_be_had_as_a_frame() -> None:
    """pgmpy#1682, #1933, #299: a frame with labels, and a print that does not flood the screen."""
    pytest.importorskip("pandas")
    net = sf.BayesianNetwork([("fruit", "tasty"), ("size", "tasty")]).fit(FRUIT)
    frame = net.table("tasty").to_frame()
    assert list(frame.index.names) == ["fruit", "size"]
    assert frame.loc[("a", "large"), "no"] == net.table("tasty").at(fruit="a", size="large", tasty="no")
    rng = np.random.default_rng(0)
    wide = sf.BayesianNetwork({"x": ["p", "q", "r"]}, states={n: list(range(32)) for n in "pqrx"}, prior=1.0)
    shown = str(wide.fit({n: rng.integers(0, 32, 100) for n in "pqrx"}).table("x"))
    assert len(shown.splitlines()) < 50
    assert "more rows" in shown
