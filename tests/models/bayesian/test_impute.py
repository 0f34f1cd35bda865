"""Missing values filled in by a network, beside enumeration and the conditional normal distribution."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import suffice as sf

RNG = np.random.default_rng(5)


def network_of_tables() -> sf.BayesianNetwork:
    n = 300
    a = RNG.choice(["u", "v", "w"], n, p=[0.5, 0.3, 0.2])
    b = np.where(RNG.random(n) < 0.7, a, RNG.choice(["u", "v", "w"], n))
    c = np.where((a == b) ^ (RNG.random(n) < 0.3), "yes", "no")
    net = sf.BayesianNetwork([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")], prior=0.5)
    return net.fit({"a": a, "b": b, "c": c, "d": np.where(RNG.random(n) < 0.8, c, "no")})


TABLES = network_of_tables()
NAMES = ("a", "b", "c", "d")
LACKING: dict[str, list[Any]] = {
    "a": ["u", None, None, "w", None, "v"],
    "b": [None, None, "v", "u", None, "v"],
    "c": ["yes", "no", None, None, None, "no"],
    "d": ["no", None, "yes", None, None, "no"],
}


def joint_given(row: dict[str, Any]) -> dict[tuple[str, ...], float]:
    """P(states | row) of all four nodes, as a product of tables."""
    weights = {}
    for states in product(*(TABLES.states(name) for name in NAMES)):
        cell = dict(zip(NAMES, states, strict=True))
        if all(value is None or cell[name] == value for name, value in row.items()):
            weight = 1.0
            for name in NAMES:
                weight *= TABLES.table(name).at(**{str(key): cell[str(key)] for key in (*TABLES.parents(name), name)})
            weights[tuple(map(str, states))] = weight
    total = sum(weights.values())
    return {states: weight / total for states, weight in weights.items()}


def rows_of(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [{name: table[name][k] for name in table} for k in range(len(next(iter(table.values()))))]


def test_the_most_probable_states_are_those_of_the_enumeration() -> None:
    filled = TABLES.impute(LACKING)
    for k, row in enumerate(rows_of(LACKING)):
        assert tuple(filled[name][k] for name in NAMES) == max(joint_given(row).items(), key=lambda item: item[1])[0]


def test_each_cell_by_itself() -> None:
    filled = TABLES.impute(LACKING, "mean")
    for k, row in enumerate(rows_of(LACKING)):
        for place, name in enumerate(NAMES):
            shares: dict[str, float] = {}
            for states, weight in joint_given(row).items():
                shares[states[place]] = shares.get(states[place], 0.0) + weight
            assert filled[name][k] == max(shares.items(), key=lambda item: item[1])[0]


def test_draws_follow_the_joint_distribution() -> None:
    n = 40_000
    many = {name: [values[1]] * n for name, values in LACKING.items()}
    drawn = TABLES.impute(many, "draws", random_state=1)
    seen: dict[tuple[str, ...], int] = {}
    for states in zip(*(drawn[name] for name in NAMES), strict=True):
        seen[states] = seen.get(states, 0) + 1
    expected = joint_given(rows_of(LACKING)[1])
    assert set(seen) <= set(expected)
    chi = sum((seen.get(states, 0) - n * p) ** 2 / (n * p) for states, p in expected.items())
    assert chi < len(expected) - 1 + 4 * np.sqrt(2 * (len(expected) - 1))


def test_columns_that_are_not_there_are_summed_out() -> None:
    part = {name: LACKING[name] for name in ("a", "b")}
    filled = TABLES.impute(part)
    assert list(filled) == ["a", "b"]
    for k, row in enumerate(rows_of(part)):
        shares: dict[tuple[str, ...], float] = {}
        for states, weight in joint_given(row).items():
            shares[states[:2]] = shares.get(states[:2], 0.0) + weight
        assert (filled["a"][k], filled["b"][k]) == max(shares.items(), key=lambda item: item[1])[0]


def test_many_missing_values_of_one_row_are_searched_not_listed() -> None:
    size = 15
    draws = RNG.random((400, size)) < 0.5
    chain = {f"x{k}": draws[:, k] ^ (draws[:, max(k - 1, 0)] & (k % 3 == 1)) for k in range(size)}
    net = sf.BayesianNetwork([(f"x{k}", f"x{k + 1}") for k in range(size - 1)], prior=1.0).fit(chain)
    lacking: dict[str, list[Any]] = {f"x{k}": [None, None] for k in range(size)}
    lacking["x4"] = [True, False]
    filled = net.impute(lacking)
    joint = net.to_joint()
    values = np.moveaxis(joint.values, joint.variables.index("x4"), 0)
    for row, code in ((0, 1), (1, 0)):
        best = {name: filled[name][row] for name in lacking}
        assert joint.at(**best) == pytest.approx(values[code].max(), rel=1e-12)
    with pytest.raises(sf.SizeError, match="method='mean'"):
        net.impute({name: values for name, values in lacking.items() if name != "x14"})


NUMBERS = RNG.multivariate_normal([1.0, -2.0, 0.5], [[2.0, 0.8, 0.3], [0.8, 1.0, -0.2], [0.3, -0.2, 1.5]], 200)
GAUSS = sf.BayesianNetwork([("x", "y"), ("x", "z"), ("y", "z")]).fit(pd.DataFrame(NUMBERS, columns=["x", "y", "z"]))


def conditional(row: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of what a row of numbers lacks: those of a complete graph are the moments of the rows."""
    mean, spread = NUMBERS.mean(axis=0), np.cov(NUMBERS.T, bias=True)
    free = np.isnan(row)
    gain = spread[np.ix_(free, ~free)] @ np.linalg.inv(spread[np.ix_(~free, ~free)])
    return mean[free] + gain @ (row - mean)[~free], spread[np.ix_(free, free)] - gain @ spread[np.ix_(~free, free)]


def test_numbers_have_their_conditional_mean_and_spread() -> None:
    nan = np.nan
    rows = np.array([[1.0, nan, nan], [nan, -1.0, 2.0], [nan, nan, 0.0], [0.0, 1.0, 2.0]])
    for method in ("map", "mean"):
        filled = GAUSS.impute(rows, method, columns=["x", "y", "z"])
        for before, after in zip(rows, filled, strict=True):
            assert after[np.isnan(before)] == pytest.approx(conditional(before)[0], abs=1e-10)
            assert (after[~np.isnan(before)] == before[~np.isnan(before)]).all()
    n = 20_000
    drawn = GAUSS.impute(np.repeat(rows[:1], n, axis=0), "draws", columns=["x", "y", "z"], random_state=0)
    mean, spread = conditional(rows[0])
    assert drawn[:, 1:].mean(axis=0) == pytest.approx(mean, abs=4 * np.sqrt(spread.diagonal().max() / n))
    assert np.cov(drawn[:, 1:].T) == pytest.approx(spread, abs=4 * spread.max() * np.sqrt(2 / n))


def mixed() -> sf.BayesianNetwork:
    kind = RNG.choice(["p", "q"], 400, p=[0.4, 0.6])
    x = np.where(kind == "p", 0.0, 2.0) + RNG.normal(size=400)
    return sf.BayesianNetwork([("kind", "x"), ("kind", "y"), ("x", "y")]).fit(
        {"kind": kind, "x": x, "y": 1.0 + np.where(kind == "p", 1.0, -0.5) * x + 0.5 * RNG.normal(size=400)}
    )


MIXED = mixed()


def test_states_and_numbers_together() -> None:
    y = 0.3
    weights, means, spreads = [], [], []
    for kind in ("p", "q"):
        code = MIXED.states("kind").index(kind)
        (m,), v = MIXED.node("x").weights_[code], MIXED.node("x").variance_[code]
        (b0, b1), s = MIXED.node("y").weights_[code], MIXED.node("y").variance_[code]
        whole = b1 * b1 * v + s
        density = np.exp(-0.5 * (y - b0 - b1 * m) ** 2 / whole) / np.sqrt(whole)
        weights.append(MIXED.table("kind").at(kind=kind) * density)
        means.append(m + b1 * v / whole * (y - b0 - b1 * m))
        spreads.append(v - b1 * b1 * v * v / whole)
    share = np.array(weights) / sum(weights)
    row = {"kind": [None], "x": [np.nan], "y": [y]}
    best = MIXED.impute(row)
    assert best["kind"][0] == "pq"[int(share.argmax())]
    assert best["x"][0] == pytest.approx(means[int(share.argmax())], rel=1e-10)
    assert MIXED.impute(row, "mean")["x"][0] == pytest.approx(share @ means, rel=1e-10)
    n = 20_000
    hidden_kind = MIXED.impute({"x": np.full(n, np.nan), "y": [y] * n}, "draws", random_state=2)
    both = MIXED.impute({"kind": np.full(n, None), "x": np.full(n, np.nan), "y": [y] * n}, "draws", random_state=3)
    for drawn in (hidden_kind, both):
        spread = share @ (np.array(spreads) + np.array(means) ** 2) - (share @ means) ** 2
        assert drawn["x"].mean() == pytest.approx(share @ means, abs=4 * np.sqrt(spread / n))
        assert drawn["x"].var() == pytest.approx(spread, abs=0.05 * spread)
    first = both["kind"] == "p"
    assert first.mean() == pytest.approx(share[0], abs=4 * np.sqrt(share[0] * share[1] / n))
    assert both["x"][first].mean() == pytest.approx(means[0], abs=4 * np.sqrt(spreads[0] / first.sum()))


def test_frames_come_back_as_they_went_in() -> None:
    expected = TABLES.impute(LACKING)
    frame = pd.DataFrame(LACKING, index=[3, 3, 1, 0, 2, 9]).assign(other=range(6))
    frame["b"] = pd.Categorical(frame["b"], categories=["u", "v"])
    kept = frame.copy()
    filled = TABLES.impute(frame)
    pd.testing.assert_frame_equal(frame, kept)
    assert filled.index.tolist() == frame.index.tolist()
    assert filled["other"].tolist() == list(range(6))
    assert str(filled["b"].dtype) == "category"
    arrow, polar = TABLES.impute(pa.table(LACKING)), TABLES.impute(pl.DataFrame(LACKING))
    assert isinstance(arrow, pa.Table)
    assert isinstance(polar, pl.DataFrame)
    array = TABLES.impute(np.array([LACKING[name] for name in NAMES], dtype=object).T, columns=list(NAMES))
    for place, name in enumerate(NAMES):
        assert filled[name].tolist() == expected[name] == arrow[name].to_pylist() == polar[name].to_list()
        assert array[:, place].tolist() == expected[name]
    whole = pl.DataFrame({"x": [1, None], "y": [None, 2], "z": [0, 1]})
    assert GAUSS.impute(whole)["x"][1] == pytest.approx(conditional(np.array([np.nan, 2.0, 1.0]))[0][0])
    nullable = pd.DataFrame({"x": pd.array([1, None], "Int64"), "y": [0.0, 2.0], "z": [0.0, 1.0]})
    assert float(GAUSS.impute(nullable)["x"][1]) == pytest.approx(conditional(np.array([np.nan, 2.0, 1.0]))[0][0])


def test_several_tables_pool() -> None:
    rng = np.random.default_rng(0)
    holes = pd.DataFrame(np.where(rng.random((200, 3)) < [0.3, 0.0, 0.0], np.nan, NUMBERS), columns=["x", "y", "z"])
    tables = GAUSS.impute(holes, "draws", n=5, random_state=4)
    again = GAUSS.impute(holes, "draws", n=5, random_state=4)
    assert len(tables) == 5
    assert all(one.equals(two) for one, two in zip(tables, again, strict=True))
    assert not tables[0].equals(tables[1])
    pooled = sf.pool([sf.GLM("gaussian").fit(table[["x", "z"]], table["y"]) for table in tables])
    assert 0.05 < pooled.missing_information["x"] < 0.9
    complete = TABLES.impute({name: ["u"] if name in "ab" else ["no"] for name in NAMES}, "draws", random_state=0)
    assert [complete[name][0] for name in NAMES] == ["u", "u", "no", "no"]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"method": "mode"}, "method"),
        ({"n": 3}, "n= is the number"),
        ({"random_state": 0}, "random_state=0 has no effect"),
        ({"method": "draws", "n": 0}, "n is 0"),
        ({"rows": {"a": ["strange"]}}, "strange"),
    ],
)
def test_what_has_no_effect_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(sf.SufficeError, match=text):
        TABLES.impute(**{"rows": LACKING, **options})


def test_nodes_of_other_kinds_are_refused() -> None:
    net = sf.BayesianNetwork([("x", "n")], nodes={"n": sf.GLM("poisson")})
    net.fit({"x": [0.5, 1.5, 2.5, 3.5], "n": [0, 1, 4, 9]})
    with pytest.raises(sf.OptionError, match="'n' have kinds of nodes"):
        net.impute({"x": [1.0], "n": [None]})
