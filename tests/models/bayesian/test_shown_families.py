"""EM beside families that every row shows: they are counted as they are, however many joint states they have."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import suffice as sf
from suffice.errors import EstimateError, SizeError

WIDE = 9


def wide_rows(n: int, seed: int, gaps: int) -> dict[str, Any]:
    """Nine parents of ten states, their child `y`, and `z` below it with gaps; the table of `y` has 2e9 cells."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"p{at}": rng.integers(10, size=n) for at in range(WIDE)}
    y = (columns["p0"] + rng.integers(3, size=n)) % 2
    z = np.where(rng.random(n) < 0.8, y, 1 - y)
    columns["y"] = y
    columns["z"] = [None if at < gaps else int(value) for at, value in enumerate(z)]
    return columns


EDGES = [*((f"p{at}", "y") for at in range(WIDE)), ("y", "z")]


def test_a_family_too_large_for_a_table_is_counted_from_the_rows() -> None:
    data = wide_rows(300, 0, 40)
    net = sf.BayesianNetwork(EDGES, tolerance=1e-10).fit(data)
    node = net.node("y")
    above = np.stack([data[f"p{at}"] for at in range(WIDE)], axis=1)
    kept = {tuple(codes): row for codes, row in zip(node.configurations.tolist(), node.rows, strict=True)}
    assert len(kept) == len(np.unique(above, axis=0))
    for codes, y in zip(above.tolist(), data["y"], strict=True):
        same = (above == codes).all(axis=1)
        assert kept[tuple(codes)][y] == (data["y"][same] == y).mean()
    # `z` is missing at random given `y`, which is always seen: the rows that show it say all.
    seen = np.array([value is not None for value in data["z"]])
    z = np.array([value for value in data["z"] if value is not None])
    for y in (0, 1):
        share = (z[data["y"][seen] == y] == 1).mean()
        assert net.table("z").at(y=y, z=1) == pytest.approx(share, rel=1e-8)
    # One number for each row, from the shares themselves.
    logs = sum(np.log([(data[f"p{at}"] == value).mean() for value in data[f"p{at}"]]) for at in range(WIDE))
    logs += np.log([kept[tuple(codes)][y] for codes, y in zip(above.tolist(), data["y"], strict=True)])
    table = net.table("z").values
    logs[seen] += np.log(table[data["y"][seen], z])
    np.testing.assert_allclose(net.score_samples(data), logs, rtol=1e-12)
    assert net.report_.log_likelihood == pytest.approx(logs.sum(), rel=1e-12)
    assert net.converged_
    assert net.report_.certificate.moment_gap < 1e-5


def test_a_prior_joins_the_counts_of_a_family_too_large_for_a_table() -> None:
    data = wide_rows(200, 1, 20)
    net = sf.BayesianNetwork(EDGES, prior=0.5).fit(data)
    alone = sf.BayesianNetwork([edge for edge in EDGES if edge[1] == "y"], prior=0.5).fit(
        {name: column for name, column in data.items() if name != "z"}
    )
    np.testing.assert_array_equal(net.node("y").rows, alone.node("y").rows)
    assert net.history_[-1] == pytest.approx(net.report_.objective, rel=1e-12)


def test_a_family_too_large_for_a_table_with_gaps_is_refused_by_name_and_size() -> None:
    data = wide_rows(50, 2, 5)
    data["p3"] = [None, *data["p3"][1:].tolist()]
    states = {f"p{at}": range(10) for at in range(WIDE)}
    with pytest.raises(
        SizeError, match=r"'y' and its parents 'p0'.*2,000,000,000 \(16\.0 GB\).*'p3' has missing values.*noisy-or"
    ):
        sf.BayesianNetwork(EDGES, states=states).fit(data)


def test_a_regression_with_many_joint_states_is_learned_from_the_rows() -> None:
    data = wide_rows(120, 3, 10)
    rng = np.random.default_rng(4)
    data |= {"x": rng.normal(size=120), "w": rng.normal(size=120)}
    few = {**data, **{f"p{at}": data[f"p{at}"] % 2 * 9 for at in range(WIDE)}}
    structure = {"x": [f"p{at}" for at in range(5)], "z": ["y"], "w": ["x"]}
    states = {f"p{at}": range(10) for at in range(WIDE)}
    prior = {"x": sf.LinearGaussianPrior(alpha=2.0, beta=1.0)}
    net = sf.BayesianNetwork(structure, states=states, prior=prior).fit(few)
    whole = {name: column for name, column in few.items() if name != "z"}
    alone = sf.BayesianNetwork({"x": structure["x"]}, states=states, prior=prior).fit(whole)
    np.testing.assert_allclose(net.node("x").weights, alone.node("x").weights, rtol=1e-12)
    np.testing.assert_allclose(net.node("x").variance, alone.node("x").variance, rtol=1e-12)


def test_a_family_that_all_rows_show_has_the_table_and_the_errors_of_complete_rows() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.integers(3, size=(2, 200))
    c = (a + rng.integers(2, size=200)) % 3
    data = {"a": a, "b": b, "c": c, "d": [None if r < 0.3 else int(v) for r, v in zip(rng.random(200), c, strict=True)]}
    net = sf.BayesianNetwork({"c": ["a", "b"], "d": ["c"]}).fit(data)
    alone = sf.BayesianNetwork({"c": ["a", "b"]}).fit({"a": a, "b": b, "c": c})
    for name in ("a", "b", "c"):
        np.testing.assert_array_equal(net.table(name).values, alone.table(name).values)
        np.testing.assert_array_equal(net.standard_errors_[name].values, alone.standard_errors_[name].values)
    seen = np.array([value is not None for value in data["d"]])
    size = np.array([seen[c == value].sum() for value in range(3)])[:, None]
    rows = net.table("d").values
    expected = np.sqrt(rows * (1 - rows) / size)
    np.testing.assert_allclose(net.standard_errors_["d"].values, expected, rtol=1e-4, atol=1e-6)


def test_a_fixed_node_that_all_rows_show_is_no_part_of_the_certificate() -> None:
    data = {"a": [0, 0, 0, 1], "b": [0, 1, 1, None]}
    net = sf.BayesianNetwork([("a", "b")], fixed={"a": [0.5, 0.5]}).fit(data)
    assert net.converged_
    assert net.report_.certificate.moment_gap < 1e-6
    np.testing.assert_array_equal(net.table("a").values, [0.5, 0.5])
    assert net.report_.log_likelihood == pytest.approx(4 * np.log(0.5) + np.log(1 / 3) + 2 * np.log(2 / 3), rel=1e-9)


def test_a_row_that_a_fixed_node_makes_impossible_is_refused_whether_or_not_its_family_is_shown() -> None:
    net = sf.BayesianNetwork([("a", "b")], fixed={"a": [1.0, 0.0]})
    with pytest.raises(EstimateError, match=r"fixed 'a' some row has probability 0.*Correct fixed="):
        net.fit({"a": [0, 0, 1], "b": [0, 1, None]})
    with pytest.raises(EstimateError, match="probability 0"):
        net.fit({"a": [0, 0, 1, None], "b": [0, 1, 1, 1]})


def test_the_text_of_a_node_does_not_show_the_rows_of_its_standard_errors() -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 0, 1, 1], "b": [0, 1, 1, None]})
    _ = net.standard_errors_
    assert net.node("b").observed is not None
    assert repr(net.node("b")).startswith("TableNode(domain=")
    assert repr(net.node("b")).endswith("estimate='mle')")


def test_a_wide_table_beside_real_nodes_with_gaps_counts_row_by_row() -> None:
    data = wide_rows(150, 6, 0)
    x = np.random.default_rng(7).normal(size=150) + data["y"]
    x[:15] = np.nan
    structure = {"y": [f"p{at}" for at in range(WIDE)], "x": ["y"]}
    net = sf.BayesianNetwork(structure, tolerance=1e-10).fit({**data, "x": x})
    seen = ~np.isnan(x)
    for y in (0, 1):
        mine = x[seen & (data["y"] == y)]
        assert net.node("x").weights_[y, 0] == pytest.approx(mine.mean(), rel=1e-7)
        assert net.node("x").variance_[y] == pytest.approx(mine.var(), rel=1e-6)
    logs = sum(np.log([(data[f"p{at}"] == value).mean() for value in data[f"p{at}"]]) for at in range(WIDE))
    logs += net.node("y").log_prob({name: data[name].astype(np.int32) for name in (*structure["y"], "y")})
    mean, variance = net.node("x").weights_[data["y"], 0], net.node("x").variance_[data["y"]]
    logs[seen] += norm.logpdf(x, mean, np.sqrt(variance))[seen]
    np.testing.assert_allclose(net.score_samples({**data, "x": x}), logs, rtol=1e-11)


def test_tied_nodes_too_large_for_a_table_are_refused_by_name() -> None:
    data = wide_rows(40, 8, 4) | {"w": np.random.default_rng(9).integers(2, size=40)}
    above = [f"p{at}" for at in range(WIDE)]
    states = {name: range(10) for name in above}
    net = sf.BayesianNetwork({"y": above, "w": above, "z": ["y"]}, tied=[("y", "w")], states=states)
    with pytest.raises(SizeError, match=r"'y' and its parents 'p0'.*'y' is tied"):
        net.fit(data)


def test_a_fixed_table_too_large_to_write_out_stays_as_it_is() -> None:
    data = wide_rows(80, 10, 8)
    above = [edge for edge in EDGES if edge[1] == "y"]
    given = sf.BayesianNetwork(above).fit({name: values for name, values in data.items() if name != "z"}).node("y")
    net = sf.BayesianNetwork(EDGES, fixed={"y": given}).fit(data)
    np.testing.assert_array_equal(net.node("y").rows, given.rows)
    assert net.report_.log_likelihood == pytest.approx(sf.BayesianNetwork(EDGES).fit(data).report_.log_likelihood)
