"""Tied nodes: pooled counts by position are the judge."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

STATES = ["a", "b", "c"]


def chains(n: int, length: int, seed: int = 0) -> dict[str, Any]:
    """Rows of a homogeneous Markov chain, one column for each time."""
    rng = np.random.default_rng(seed)
    law = np.array([[0.7, 0.2, 0.1], [0.3, 0.4, 0.3], [0.05, 0.15, 0.8]])
    codes = np.zeros((n, length), dtype=int)
    codes[:, 0] = rng.integers(0, 3, n)
    for t in range(1, length):
        codes[:, t] = (rng.random(n)[:, None] > law[codes[:, t - 1]].cumsum(axis=1)).sum(axis=1)
    return {f"X{t}": np.array(STATES)[codes[:, t]] for t in range(length)}


def unrolled(length: int, **options: Any) -> sf.BayesianNetwork:
    names = [f"X{t}" for t in range(length)]
    return sf.BayesianNetwork(
        list(itertools.pairwise(names)),
        states=dict.fromkeys(names, STATES),
        tied=[tuple(names[1:])],
        **options,
    )


def transitions(rows: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Counts of (state, next state) over all times."""
    counts = np.zeros((3, 3))
    columns = list(rows.values())
    for before, after in itertools.pairwise(columns):
        for i, a in enumerate(STATES):
            for j, b in enumerate(STATES):
                counts[i, j] += ((before == a) & (after == b)).sum()
    return counts


def test_an_unrolled_chain_has_the_pooled_transitions() -> None:
    rows = chains(50, 5)
    net = unrolled(5).fit(rows)
    counts = transitions(rows)
    law = counts / counts.sum(axis=1, keepdims=True)
    for t in range(1, 5):
        np.testing.assert_allclose(net.table(f"X{t}").values, law, rtol=1e-15)
        np.testing.assert_array_equal(net.table(f"X{t}").values, net.table("X1").values)
        assert net.parents(f"X{t}") == (f"X{t - 1}",)
    assert net.n_params_ == 2 + 6
    start = np.array([(rows["X0"] == state).mean() for state in STATES])
    expected = float((counts * np.log(law)).sum() + 50 * (start * np.log(start)).sum())
    assert net.report_.log_likelihood == pytest.approx(expected, rel=1e-13)
    assert net.report_.certificate.moment_gap < 1e-14
    assert net.report_.certificate.value_gap == pytest.approx(0.0, abs=1e-14)
    errors = np.sqrt(law * (1 - law) / counts.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(net.standard_errors_["X3"].values, errors, rtol=1e-14)


def test_one_prior_for_the_group() -> None:
    rows = chains(20, 4)
    net = unrolled(4, prior=2.0).fit(rows)
    both = transitions(rows) + 2.0
    np.testing.assert_allclose(net.table("X2").values, both / both.sum(axis=1, keepdims=True), rtol=1e-15)
    single = {"before": np.concatenate([rows[f"X{t}"] for t in range(3)])}
    single["after"] = np.concatenate([rows[f"X{t}"] for t in range(1, 4)])
    states = {"before": STATES, "after": STATES}
    pooled = sf.BayesianNetwork({"after": ["before"]}, states=states, prior=2.0).fit(single)
    first = sf.BayesianNetwork({"X0": []}, states={"X0": STATES}, prior=2.0).fit(rows)
    assert net.report_.log_evidence == pytest.approx(
        pooled.node("after").log_evidence() + first.report_.log_evidence, rel=1e-13
    )
    # Given once for the group, or alike; a labelled table counts by position.
    once = unrolled(4, prior={"X2": 2.0, "X0": 2.0}).fit(rows)
    np.testing.assert_array_equal(once.table("X3").values, net.table("X3").values)
    table = sf.Table(net.node("X2").domain, np.full((3, 3), 2.0))
    labelled = unrolled(4, prior={"X2": table, "X0": 2.0}).fit(rows)
    np.testing.assert_array_equal(labelled.table("X1").values, net.table("X1").values)
    with pytest.raises(sf.OptionError, match="'X1' and 'X2' are tied and have different kinds, options or priors"):
        unrolled(4, prior={"X1": 1.0, "X2": 2.0}).fit(rows)


def test_the_predictive_of_a_row_learns_within_the_row() -> None:
    rows = chains(10, 4)
    net = unrolled(4, prior=0.5).fit(rows)
    more = chains(6, 4, seed=9)
    found = net.log_predictive(more)
    for k in range(6):
        row = {name: column[k : k + 1] for name, column in more.items()}
        before, after = net.report_.log_evidence, unrolled(4, prior=0.5).fit(rows).partial_fit(row).report_.log_evidence
        assert before is not None
        assert after is not None
        assert found[k] == pytest.approx(after - before, rel=1e-11)


def test_the_predictive_of_tied_regressions_learns_within_the_row() -> None:
    rng = np.random.default_rng(8)
    x, g = rng.normal(1.0, 2.0, (20, 3)), rng.integers(0, 2, 20)
    rows: dict[str, Any] = {"g": g} | {f"a{k}": x[:, k] for k in range(3)}
    rows |= {f"b{k}": 1.0 + (0.5 + g) * x[:, k] + rng.normal(0, 0.3, 20) for k in range(3)}
    flat = sf.LinearGaussianPrior(3.0, 1.0, 0.1, on="all")

    def made() -> sf.BayesianNetwork:
        structure: dict[Any, Any] = {f"b{k}": ["g", f"a{k}"] for k in range(3)}
        prior = {"g": 1.0, "b0": flat, **{f"a{k}": flat for k in range(3)}}
        return sf.BayesianNetwork(structure, states={"g": [0, 1]}, tied=[("b0", "b1", "b2")], prior=prior)

    first = {name: column[:14] for name, column in rows.items()}
    net = made().fit(first)
    rest = {name: column[14:] for name, column in rows.items()}
    found = net.log_predictive(rest)
    for k in range(6):
        row = {name: column[k : k + 1] for name, column in rest.items()}
        after, before = made().fit(first).partial_fit(row).report_.log_evidence, net.report_.log_evidence
        assert after is not None
        assert before is not None
        assert found[k] == pytest.approx(after - before, rel=1e-9)


def test_rows_join_and_leave() -> None:
    rows, more = chains(30, 4), chains(12, 4, seed=5)
    whole = unrolled(4).fit({name: np.concatenate([rows[name], more[name]]) for name in rows})
    net = unrolled(4).fit(rows).partial_fit(more)
    np.testing.assert_array_equal(net.table("X3").values, whole.table("X3").values)
    np.testing.assert_array_equal(net.unlearn(more).table("X3").values, unrolled(4).fit(rows).table("X3").values)
    merged = sf.summarize(unrolled(4), rows) + sf.summarize(unrolled(4), more)
    np.testing.assert_array_equal(unrolled(4).fit(merged).table("X2").values, whole.table("X2").values)


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_a_tie_survives_a_file(tmp_path: Path, ending: str) -> None:
    rows, more = chains(30, 4), chains(12, 4, seed=5)
    net = unrolled(4, prior=1.0).fit(rows)
    net.write(tmp_path / f"net.{ending}")
    back = sf.read(tmp_path / f"net.{ending}")
    for name in ("X1", "X2", "X3"):
        np.testing.assert_array_equal(back.table(name).values, net.table("X1").values)
    assert back.n_params_ == net.n_params_
    net.partial_fit(more)
    back.partial_fit(more)
    np.testing.assert_array_equal(back.table("X2").values, net.table("X3").values)


def test_a_file_whose_tied_nodes_differ_is_refused() -> None:
    plain = unrolled(3).fit(chains(30, 3)).to_dict()
    nodes = plain["fitted"]["nodes"]
    place = next(k for k, node in enumerate(nodes) if node["domain"].names[-1] == "X2")
    nodes[place] = {**nodes[place], "rows": np.full((3, 3), 1 / 3)}
    with pytest.raises(sf.FileFormatError, match="'X1', 'X2' are tied, and their parameters differ"):
        sf.BayesianNetwork.from_dict(plain)


def test_gaps_are_learned_by_all_members_together() -> None:
    rows = chains(200, 4, seed=1)
    complete = unrolled(4).fit(rows)
    rng = np.random.default_rng(0)
    holes = {name: np.where(rng.random(200) < 0.15, None, column) for name, column in rows.items()}
    net = unrolled(4, tolerance=1e-9).fit(holes)
    for name in ("X2", "X3"):
        np.testing.assert_array_equal(net.table(name).values, net.table("X1").values)
    assert np.abs(net.table("X1").values - complete.table("X1").values).max() < 0.06
    assert (np.diff(net.history_) > -1e-9).all()
    # A maximum of the observed likelihood: no other shared table near it is better.
    best = net.report_.log_likelihood
    for _ in range(5):
        moved = net.table("X1").values * np.exp(0.01 * rng.normal(size=(3, 3)))
        moved /= moved.sum(axis=1, keepdims=True)
        tables = {name: net.table("X0").values if name == "X0" else moved for name in net.nodes}
        domain = sf.Domain(net.node(name).domain[name] for name in net.nodes)
        other = sf.BayesianNetwork.from_tables(domain, {n: net.parents(n) for n in net.nodes}, tables)
        assert other.score_samples(holes).sum() < best


def test_sensors_of_a_hidden_state() -> None:
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 600)
    rows = {f"s{k}": np.where(rng.random(600) < 0.85, truth, 1 - truth) for k in range(3)}
    names = list(rows)
    net = sf.BayesianNetwork(
        [("h", name) for name in names],
        states={name: [0, 1] for name in names},
        hidden={"h": 2},
        tied=[names],
        prior=1.0,
        n_init=3,
        random_state=0,
    ).fit(rows)
    for name in names:
        np.testing.assert_array_equal(net.table(name).values, net.table("s0").values)
    right = np.sort(net.table("s0").values[:, 1])
    np.testing.assert_allclose(right, [0.15, 0.85], atol=0.06)
    assert net.n_params_ == 1 + 2


def test_tied_regressions_share_weights_and_variance() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(3.0, 2.0, (80, 2))
    rows = {"a0": x[:, 0], "a1": x[:, 1]}
    rows |= {f"b{k}": 1.0 + 0.5 * x[:, k] + rng.normal(0, 0.3, 80) for k in range(2)}
    net = sf.BayesianNetwork([("a0", "b0"), ("a1", "b1")], tied=[("b0", "b1")]).fit(rows)
    stacked = {"a": x.T.ravel(), "b": np.concatenate([rows["b0"], rows["b1"]])}
    alone = sf.BayesianNetwork([("a", "b")]).fit(stacked)
    np.testing.assert_allclose(net.node("b0").weights_, alone.node("b").weights_, rtol=1e-11)
    np.testing.assert_array_equal(net.node("b1").weights_, net.node("b0").weights_)
    assert net.node("b1").variance_ == net.node("b0").variance_
    assert net.node("b1").variance_ == pytest.approx(alone.node("b").variance_, rel=1e-11)
    assert net.n_params_ == 4 + 3
    assert net.report_.certificate.moment_gap < 1e-12
    np.testing.assert_allclose(net.standard_errors_["b1"].values, alone.standard_errors_["b"].values, rtol=1e-10)
    assert net.score_samples(rows).sum() == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    law = sf.NormalWishart(mean=np.zeros(4), strength=1.0, dof=6.0, inverse_scale=np.eye(4))
    with pytest.raises(sf.OptionError, match="NormalWishart"):
        sf.BayesianNetwork([("a0", "b0"), ("a1", "b1")], tied=[("b0", "b1")], prior=law).fit(rows)


def test_tied_noisy_or_nodes() -> None:
    rng = np.random.default_rng(5)
    rows = {f"x{k}": rng.integers(0, 2, 100) for k in range(2)}
    rows |= {f"y{k}": (rng.random(100) < 0.1 + 0.6 * rows[f"x{k}"]).astype(int) for k in range(2)}
    net = sf.BayesianNetwork([("x0", "y0"), ("x1", "y1")], nodes={"y0": "noisy-or"}, tied=[("y0", "y1")]).fit(rows)
    pooled = {"x": np.concatenate([rows["x0"], rows["x1"]]), "y": np.concatenate([rows["y0"], rows["y1"]])}
    alone = sf.BayesianNetwork([("x", "y")]).fit(pooled)
    np.testing.assert_allclose(net.table("y1").values, alone.table("y").values, rtol=1e-12)
    np.testing.assert_array_equal(net.node("y1").weights, net.node("y0").weights)


def test_what_does_not_fit_together() -> None:
    rows = {"a": [0, 1], "b": [0, 1], "c": [0, 2], "d": [0.5, 1.5]}
    with pytest.raises(sf.OptionError, match=r"'a' and 'c', at the same place.*the states 0, 1 and the states 0, 2"):
        sf.BayesianNetwork({"a": [], "b": [], "c": [], "d": []}, tied=[("a", "c")]).fit(rows)
    with pytest.raises(sf.OptionError, match="'b' and 'a' are tied; 'b' has the 1 parents 'a' and 'a' the 0 parents"):
        sf.BayesianNetwork({"b": ["a"]}, tied=[("b", "a")]).fit(rows)
    with pytest.raises(sf.OptionError, match="the states 0, 1 and real numbers"):
        sf.BayesianNetwork({"a": [], "d": []}, tied=[("a", "d")]).fit(rows)
    for tied, message in (
        ("ab", "expected groups of nodes"),
        ([("a",)], "two or more nodes"),
        ([("a", "z")], "'z', which is no node"),
        ([("a", "b"), ("b", "c")], "'b' twice"),
        ([("a", "a")], "'a' twice"),
    ):
        with pytest.raises(sf.OptionError, match=message):
            sf.BayesianNetwork({"a": [], "b": [], "c": []}, tied=tied)
    with pytest.raises(sf.OptionError, match="'a' are fixed and tied"):
        sf.BayesianNetwork({"a": [], "b": []}, tied=[("a", "b")], fixed={"a": [0.5, 0.5]})
