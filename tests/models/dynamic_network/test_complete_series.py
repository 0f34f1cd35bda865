"""Networks through time learned from series that show everything, against counts made by plain loops."""

import datetime
from collections import Counter
from typing import Any

import numpy as np
import pytest

import suffice as sf

RNG = np.random.default_rng(5)
ARCS = [(("rain", -1), "rain"), (("rain", -2), "rain"), ("rain", "wet"), (("wet", -1), "wet")]


def series(length: int, rng: np.random.Generator = RNG) -> dict[str, list[str]]:
    """Columns of random states."""
    return {"rain": rng.choice(["no", "yes"], length).tolist(), "wet": rng.choice(["a", "b", "c"], length).tolist()}


MANY = [series(length) for length in (1, 2, 3, 7, 12, 40)]


def shares(pairs: list[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], float]:
    """Of each configuration of parents and state, its share."""
    joint, above = Counter(pairs), Counter(parents for parents, _ in pairs)
    return {(*parents, state): count / above[parents] for (parents, state), count in joint.items()}


def test_each_slice_counts_for_the_family_that_holds_there() -> None:
    net = sf.DynamicBayesianNetwork(ARCS).fit(MANY)
    assert net.tables_ == (("rain", 0), ("wet", 0), ("rain", 1), "rain", "wet")
    rains, wets = [one["rain"] for one in MANY], [one["wet"] for one in MANY]
    expected = {
        ("rain", 0): shares([((), rain[0]) for rain in rains]),
        ("rain", 1): shares([((rain[0],), rain[1]) for rain in rains if len(rain) > 1]),
        "rain": shares([((rain[t - 1], rain[t - 2]), rain[t]) for rain in rains for t in range(2, len(rain))]),
        ("wet", 0): shares([((rain[0],), wet[0]) for rain, wet in zip(rains, wets, strict=True)]),
        "wet": shares([((r[t], w[t - 1]), w[t]) for r, w in zip(rains, wets, strict=True) for t in range(1, len(r))]),
    }
    for name, table in expected.items():
        answer = net.table(name)
        for cell, share in table.items():
            assert answer.at(dict(zip(answer.variables, cell, strict=True))) == pytest.approx(share, abs=1e-15)


def test_a_series_scores_as_a_row_of_the_unrolled_network() -> None:
    net = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY)
    for one, score in zip(MANY[:5], net.score_samples(MANY[:5]), strict=True):
        length = len(one["rain"])
        row = {(name, t): [values[t]] for name, values in one.items() for t in range(length)}
        assert score == pytest.approx(float(net.unroll(length).score_samples(row)[0]), abs=1e-12)
    slices = sum(len(one["rain"]) for one in MANY)
    assert net.score(MANY) == pytest.approx(net.score_samples(MANY).sum() / slices, abs=1e-13)
    assert net.log_likelihood_ == pytest.approx(net.score_samples(MANY).sum(), abs=1e-9)


def test_the_probabilities_of_all_series_of_a_length_add_up_to_one() -> None:
    net = sf.DynamicBayesianNetwork(ARCS, prior=0.5).fit(MANY)
    states = [(r, w) for r in ("no", "yes") for w in ("a", "b", "c")]
    every: list[list[tuple[str, str]]] = [[]]
    for _ in range(3):
        every = [[*path, state] for path in every for state in states]
    tables = [{"rain": [r for r, _ in path], "wet": [w for _, w in path]} for path in every]
    assert np.exp(net.score_samples(tables)).sum() == pytest.approx(1.0, abs=1e-12)


def same_tables(left: sf.DynamicBayesianNetwork, right: sf.DynamicBayesianNetwork) -> None:
    assert left.tables_ == right.tables_
    for name in left.tables_:
        assert left.table(name).values == pytest.approx(right.table(name).values, abs=1e-12)
    assert left.log_likelihood_ == pytest.approx(right.log_likelihood_, abs=1e-9)


def test_series_join_and_leave() -> None:
    whole = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY)
    parts = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY[3:]).partial_fit(MANY[:3])
    same_tables(whole, parts)
    same_tables(parts.unlearn(MANY[:3]), sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY[3:]))
    same_tables(whole, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(whole.statistics_))


def test_states_that_later_series_bring_have_their_place_in_every_slice() -> None:
    later = {"rain": ["yes", "snow", "snow"], "wet": ["a", "b", "c"]}
    states = {"rain": ["no", "snow", "yes"]}
    whole = sf.DynamicBayesianNetwork(ARCS, prior=1.0, states=states).fit([*MANY, later])
    parts = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY).partial_fit([later])
    for name in whole.tables_:
        labelled = whole.table(name)
        other = parts.table(name)
        for cell in np.ndindex(*labelled.values.shape):
            at = {v.name: v.states[c] for v, c in zip(labelled.domain.variables, cell, strict=True)}
            assert other.at(at) == pytest.approx(labelled.at(at), abs=1e-13)


def test_weights_repeat_series_and_forgetting_weighs_them_down() -> None:
    weighted = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY, sample_weight=[2, 1, 1, 1, 1, 3])
    same_tables(weighted, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit([*MANY, MANY[0], MANY[5], MANY[5]]))
    forgetting = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY).partial_fit(MANY[3:], keep=0.5)
    halves = [0.5, 0.5, 0.5, 1.5, 1.5, 1.5]
    same_tables(forgetting, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY, sample_weight=halves))


def test_one_table_with_a_group_is_the_same_as_a_list() -> None:
    pd = pytest.importorskip("pandas")
    rows = [
        {"who": number, "day": day, "rain": one["rain"][day], "wet": one["wet"][day]}
        for number, one in enumerate(MANY)
        for day in range(len(one["rain"]))
    ]
    frame = pd.DataFrame(rows)
    whole = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY)
    same_tables(whole, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(frame, group="who", order="day"))
    shuffled = frame.sample(frac=1.0, random_state=0)
    fitted = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(shuffled, group="who", time="day")
    same_tables(whole, fitted)
    assert isinstance(fitted.sample(3), pd.DataFrame)
    assert [len(drawn) for drawn in fitted.sample(4, n=2, random_state=0)] == [4, 4]


def test_the_first_slice_may_be_a_network_of_its_own() -> None:
    net = sf.DynamicBayesianNetwork([(("a", -1), "a"), ("a", "b")], first=[("b", "a")])
    assert net.tables_ == (("b", 0), ("a", 0), "a", "b") or net.tables_ == (("a", 0), ("b", 0), "a", "b")
    assert net.parents(("a", 0)) == (("b", 0),)
    data = [{"a": [0, 1, 1], "b": [1, 1, 0]}, {"a": [1, 0, 0], "b": [1, 0, 0]}]
    net.fit(data)
    assert net.table(("a", 0)).at({("b", 0): 1, ("a", 0): 1}) == pytest.approx(0.5)
    # Of four later slices, a = 1 goes with b = 1 and with b = 0.
    assert net.table("b").at({"a": 1, "b": 1}) == pytest.approx(0.5)
    assert net.table("b").at({"a": 0, "b": 0}) == pytest.approx(1.0)


def test_nodes_of_any_kind_learn_from_series_that_show_everything() -> None:
    rng = np.random.default_rng(0)
    steps, u = 400, rng.normal(size=400)
    mode, x, visits = rng.integers(0, 2, steps), np.zeros(steps), np.zeros(steps, int)
    for t in range(1, steps):
        x[t] = 0.3 + 0.8 * x[t - 1] - 0.5 * u[t] + 0.1 * rng.normal() + mode[t]
    visits = rng.poisson(np.exp(0.2 + 0.3 * x))
    table = {"mode": np.where(mode, "on", "off"), "x": x, "u": u, "visits": visits}
    arcs = [("mode", "x"), (("x", -1), "x"), ("u", "x"), ("x", "visits")]
    net = sf.DynamicBayesianNetwork(
        arcs, inputs=["u"], states={"visits": "count"}, nodes={"visits": sf.GLM(family=sf.Poisson())}
    ).fit(table)
    for state, code in (("off", 0), ("on", 1)):
        some = np.flatnonzero(mode[1:] == code) + 1
        design = np.column_stack([np.ones(len(some)), x[some - 1], u[some]])
        weights = np.linalg.lstsq(design, x[some], rcond=None)[0]
        table_of_x = net.table("x")
        for name, weight in zip(("intercept", ("x", -1), "u"), weights, strict=True):
            found = [
                table_of_x.at({"mode": state, table_of_x.variables[-1]: label})
                for label in table_of_x.domain.variables[-1].states
                if str(name) in str(label)
            ]
            assert found == [pytest.approx(weight, abs=1e-9)]
    glm = sf.GLM("poisson").fit(x[:, None], visits)
    mean = np.exp(glm.intercept_ + float(np.asarray(glm.coefficients_)[-1]) * 0.4)
    log_prob = net.node("visits").log_prob({"x": np.array([0.4]), "visits": np.array([2.0])})
    assert log_prob == pytest.approx(2 * np.log(mean) - mean - np.log(2), abs=1e-6)
    drawn = net.sample(3, inputs={"u": [0.0, 1.0, 2.0]}, random_state=1)
    assert set(drawn) == {"u", "mode", "x", "visits"}
    assert drawn["u"].tolist() == [0.0, 1.0, 2.0]


def test_dates_are_slices_by_their_shortest_step() -> None:
    days = [datetime.date(2024, 1, day) for day in (1, 8, 15, 22)]
    table = {"rain": ["no", "yes", "yes", "no"], "day": days}
    net = sf.DynamicBayesianNetwork([(("rain", -1), "rain")]).fit(table, time="day")
    assert any("7 days" in note for note in net.report_.warnings)
    assert net.table("rain").at({("rain", -1): "no", "rain": "yes"}) == 1.0


def test_files_give_the_model_back(tmp_path: object) -> None:
    net = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(MANY)
    net.write(f"{tmp_path}/net.suffice")
    again = sf.read(f"{tmp_path}/net.suffice")
    same_tables(net, again)
    assert again.report_ == net.report_
    same_tables(again.partial_fit(MANY[:2]), sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit([*MANY, *MANY[:2]]))


def test_posteriors_and_errors_are_those_of_each_table() -> None:
    net = sf.DynamicBayesianNetwork([(("rain", -1), "rain")], prior=1.0).fit(MANY)
    counts = net.statistics_[sf.Counts((("rain", -1), "rain"))].dense()
    alpha = counts + 1
    total = alpha.sum(axis=1, keepdims=True)
    mean = alpha / total
    assert net.posterior_["rain"].mean() == pytest.approx(mean)
    assert net.standard_errors_["rain"].values == pytest.approx(np.sqrt(mean * (1 - mean) / (total + 1)))


def test_tables_that_are_given_need_no_fit() -> None:
    given = {"rain": [[0.7, 0.3], [0.2, 0.8]], ("rain", 0): [0.5, 0.5]}
    net = sf.DynamicBayesianNetwork([(("rain", -1), "rain")], states={"rain": ["no", "yes"]}, fixed=given)
    assert net.score_samples({"rain": ["no", "no", "yes"]})[0] == pytest.approx(np.log(0.5 * 0.7 * 0.3))
    assert net.unroll(3).query(("rain", 2), given={("rain", 0): "yes"}).at({("rain", 2): "yes"}) == pytest.approx(
        0.8 * 0.8 + 0.2 * 0.3
    )


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: sf.DynamicBayesianNetwork([("a", ("a", -1))]), "ends at a slice"),
        (lambda: sf.DynamicBayesianNetwork([(("a", 1), "a")]), "comes from a later slice"),
        (lambda: sf.DynamicBayesianNetwork([("a", "b"), ("b", "a")]), "cycle"),
        (lambda: sf.DynamicBayesianNetwork([(("a", -1), "a")] * 2), "more than once"),
        (lambda: sf.DynamicBayesianNetwork([(("a", -99), "a")]), "99 slices back"),
        (lambda: sf.DynamicBayesianNetwork("a -> b"), "expected arcs"),
        (lambda: sf.DynamicBayesianNetwork([("u", "a"), ("a", "u")], inputs=["u"]), "are given"),
        (lambda: sf.DynamicBayesianNetwork(ARCS, first=[(("rain", -1), "rain")]), "plain names"),
        (lambda: sf.DynamicBayesianNetwork(ARCS, first=[("rian", "rain")]), "rain"),
        (lambda: sf.DynamicBayesianNetwork(ARCS, states={"rain": 2}), "rain"),
        (lambda: sf.DynamicBayesianNetwork(ARCS, fixed={"rian": [1]}), "rain"),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit(MANY, group="who"), "list of tables"),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit({**MANY[3], "t": range(7)}, time="t", order="t"), "one of them"),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit({**MANY[2], "t": ["x", "y", "z"]}, time="t"), "order="),
        (
            lambda: sf.DynamicBayesianNetwork(ARCS).fit({**MANY[2], "t": ["1", "2", "3"]}, time="t"),
            "holds '1'.*whole numbers",
        ),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit({**MANY[2], "t": [0, 1, 9**9]}, time="t"), "larger units"),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit(MANY).sample(3, inputs={}), "has none"),
        (
            lambda: sf.DynamicBayesianNetwork([("u", "a")], inputs="u").fit({"u": [0, 1], "a": [1, None]}, group="x"),
            "x",
        ),
        (lambda: sf.DynamicBayesianNetwork([("u", "a")], inputs="u").fit({"u": [0, None], "a": [1, 0]}), "inputs="),
        (lambda: sf.DynamicBayesianNetwork(ARCS).fit(MANY).table(("wet", 3)), "wet"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call: object, said: str) -> None:
    with pytest.raises((sf.SufficeError, ValueError), match=said):
        call()  # type: ignore[operator]


def test_tables_in_files_and_elsewhere_are_read_as_those_in_memory(tmp_path: object) -> None:
    pd, duckdb = pytest.importorskip("pandas"), pytest.importorskip("duckdb")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "who": np.repeat(range(5), 20),
            "day": np.tile(range(20), 5),
            "rain": rng.choice(["no", "yes"], 100),
            "wet": rng.choice(["a", "b"], 100),
        }
    )
    frame.to_parquet(f"{tmp_path}/rows.parquet")
    frame.to_csv(f"{tmp_path}/rows.csv", index=False)
    form = {"group": "who", "time": "day"}
    here = sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(frame, **form)
    partitions = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)
    for data in (f"{tmp_path}/rows.parquet", f"{tmp_path}/rows.csv", duckdb.from_df(frame), partitions):
        same_tables(here, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(data, **form))
    with pytest.raises(sf.OptionError, match="order"):
        sf.DynamicBayesianNetwork(ARCS).fit(duckdb.from_df(frame))
    summary = sf.summarize(sf.DynamicBayesianNetwork(ARCS), frame, group="who", order="day")
    same_tables(here, sf.DynamicBayesianNetwork(ARCS, prior=1.0).fit(summary))


def test_what_given_tables_lack_is_named() -> None:
    given = {"rain": [[0.7, 0.3], [0.2, 0.8]]}
    with pytest.raises(sf.NotFittedError, match=r"\('rain', 0\)"):
        sf.DynamicBayesianNetwork([(("rain", -1), "rain")], fixed=given).sample(3)
    with pytest.raises(sf.NotFittedError, match="states of 'rain' are not known"):
        sf.DynamicBayesianNetwork([(("rain", -1), "rain")], fixed={**given, ("rain", 0): [0.5, 0.5]}).sample(3)


def test_inputs_hold_on_where_that_is_said() -> None:
    rows = {"who": [0] * 4 + [1] * 2, "t": [1, 2, 4, 5, 7, 9]}
    data: Any = {**rows, "x": [1.0, 2.0, 0.5, 3.0, 1.5, 2.5], "u": [0.0, 1.0, None, 2.0, 3.0, None]}
    arcs: Any = [(("x", -1), "x"), ("u", "x")]
    form: Any = {"group": "who", "time": "t"}
    kinds: dict[str, Any] = {
        "states": {"x": "real", "u": "real"},
        "fixed": {"x": ([1.0, 0.5, 2.0], 0.3), ("x", 0): ([0.0, 1.0], 1.0)},
    }
    filled: Any = [
        {"x": [1.0, 2.0, None, 0.5, 3.0], "u": [0.0, 1.0, 1.0, 1.0, 2.0]},
        {"x": [1.5, None, 2.5], "u": [3.0, 3.0, 3.0]},
    ]
    net = sf.DynamicBayesianNetwork(arcs, inputs="u", **kinds)
    carrying = sf.DynamicBayesianNetwork(arcs, inputs="u", carry="u", **kinds)
    assert carrying.score_samples(data, **form) == pytest.approx(net.score_samples(filled), abs=1e-13)
    for one, two in zip(carrying.smooth(data, **form), net.smooth(filled), strict=True):
        assert one["x"] == pytest.approx(two["x"], abs=1e-13)
    with pytest.raises(sf.DataError, match=r"carry=\['u'\]"):
        net.score_samples(data, **form)
    with pytest.raises(sf.DataError, match="before which there is none"):
        carrying.score_samples({"x": [1.0, 2.0], "u": [None, 1.0]})
    with pytest.raises(sf.OptionError, match="carry= names 'x'"):
        sf.DynamicBayesianNetwork(arcs, inputs="u", carry="x")
    again = sf.DynamicBayesianNetwork.from_dict(carrying.fit(filled).to_dict())
    assert again.score_samples(data, **form) == pytest.approx(carrying.score_samples(data, **form), abs=1e-15)
    fitted = sf.DynamicBayesianNetwork(arcs, inputs="u", carry=["u"], states=kinds["states"], prior=None)
    whole = sf.DynamicBayesianNetwork(arcs, inputs="u", states=kinds["states"])
    many: Any = {"x": [1.0, 2.0, 0.5, 3.0, 1.5, 2.5, 0.1, 0.7], "u": [0.0, None, 1.0, -1.0, None, None, 0.4, 2.0]}
    held = {**many, "u": [0.0, 0.0, 1.0, -1.0, -1.0, -1.0, 0.4, 2.0]}
    assert fitted.fit([many, many]).table("x").values == pytest.approx(
        whole.fit([held, held]).table("x").values, abs=1e-12
    )
