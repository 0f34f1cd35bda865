"""Gaps, hidden nodes and EM that go wrong in other libraries.

Each test is named after what goes wrong elsewhere; the docstring says where it was reported.
"""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.domain import Domain, Variable

DIAMOND: dict[Any, list[Any]] = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"]}


def cancer() -> sf.BayesianNetwork:
    """Smoking and pollution cause cancer, which shows in an X-ray and in short breath."""
    states = {"Pollution": ["low", "high"], "Smoker": ["yes", "no"], "Cancer": ["yes", "no"], "Xray": ["pos", "neg"]}
    states["Breath"] = ["short", "normal"]
    parents = {"Pollution": [], "Smoker": [], "Cancer": ["Pollution", "Smoker"], "Xray": ["Cancer"]}
    parents["Breath"] = ["Cancer"]
    sick = np.array([[0.3, 0.01], [0.5, 0.2]])
    tables = {
        "Pollution": [0.9, 0.1],
        "Smoker": [0.3, 0.7],
        "Cancer": np.stack([sick, 1 - sick], axis=-1),
        "Xray": [[0.9, 0.1], [0.2, 0.8]],
        "Breath": [[0.65, 0.35], [0.3, 0.7]],
    }
    domain = Domain([Variable.discrete(name, found) for name, found in states.items()])
    return sf.BayesianNetwork.from_tables(domain, parents, tables)


def diamond(seed: int = 0) -> sf.BayesianNetwork:
    """Five nodes with a loop and random tables of two or three states."""
    rng = np.random.default_rng(seed)
    domain = Domain(
        [Variable.discrete(n, [f"{n}{k}" for k in range(2 + place % 2)]) for place, n in enumerate("abcde")]
    )
    tables = {
        node: rng.dirichlet(np.ones(domain[node].card), size=domain.shape(parents)).reshape(
            domain.shape((*parents, node))
        )
        for node, parents in DIAMOND.items()
    }
    return sf.BayesianNetwork.from_tables(domain, DIAMOND, tables)


# -- gaps ------------------------------------------------------------------------------------------------------------


def test_a_row_with_a_gap_has_probability_one() -> None:
    """pomegranate#591: z is a fair coin, x equals z with probability 0.9, and P(x) came out as 1."""
    domain = Domain([Variable.discrete("z", ["0", "1"]), Variable.discrete("x", ["0", "1"])])
    tables = {"z": [0.5, 0.5], "x": [[0.9, 0.1], [0.1, 0.9]]}
    net = sf.BayesianNetwork.from_tables(domain, {"z": [], "x": ["z"]}, tables)
    found = np.exp(net.score_samples({"z": [None, None, "0", "1", None], "x": ["1", "0", "1", "1", None]}))
    np.testing.assert_allclose(found, [0.5, 0.5, 0.05, 0.45, 1.0], rtol=1e-14)


@settings(max_examples=30)
@given(st.sets(st.sampled_from("abcde"), max_size=4), st.integers(0, 2**16))
def test_gaps_are_dropped_or_filled_instead_of_summed_out(gaps: set[str], seed: int) -> None:
    """pgmpy#2036, hmmlearn#327: the log-probability of a row with gaps is that of the sum over all completions."""
    net = diamond(seed)
    row = {name: values[0] for name, values in net.sample(1, random_state=seed).items()}
    total = 0.0
    for states in itertools.product(*(net.states(n) if n in gaps else (row[n],) for n in net.nodes)):
        full: dict[Any, Any] = dict(zip(net.nodes, states, strict=True))
        total += math.prod(
            net.table(node).at({name: full[name] for name in (*net.parents(node), node)}) for node in net.nodes
        )
    shown = {name: [None if name in gaps else value] for name, value in row.items()}
    assert net.score_samples(shown)[0] == pytest.approx(math.log(total), abs=1e-10)
    assert net.score(shown) == pytest.approx(math.log(total), abs=1e-10)


@pytest.mark.parametrize("gap", ["None", "nan", "NA", "NaT"])
def test_only_whole_columns_may_be_missing(gap: str) -> None:
    """pgmpy#2012, #2018, #2386, #2445: cells with NaN were refused, or read as a state of their own."""
    pandas = pytest.importorskip("pandas")
    hole = {"None": None, "nan": math.nan, "NA": pandas.NA, "NaT": pandas.NaT}[gap]
    rows = {"x": ["u", "v", hole, "u", "v", "v"], "y": ["p", hole, "q", "p", "q", "p"]}
    frame = pandas.DataFrame({name: pandas.Series(values, dtype=object) for name, values in rows.items()})
    plain = {name: [None if value is hole else value for value in values] for name, values in rows.items()}
    wanted = sf.BayesianNetwork([("x", "y")], tolerance=1e-12).fit(plain)
    found = sf.BayesianNetwork([("x", "y")], tolerance=1e-12).fit(frame)
    assert found.states("x") == ("u", "v")
    assert found.table("y").values.tobytes() == wanted.table("y").values.tobytes()
    assert found.report_.rows == 6


def test_whole_numbers_turn_into_floats_where_a_column_has_gaps() -> None:
    """pgmpy#2386, #687: the states 0 and 1 became 0.0 and 1.0, and lookups failed."""
    pandas = pytest.importorskip("pandas")
    for column in ([0, 1, math.nan, 1], pandas.array([0, 1, pandas.NA, 1], dtype="Int64")):
        frame = pandas.DataFrame({"x": column, "y": ["p", "q", "p", "q"]})
        net = sf.BayesianNetwork([("x", "y")], states={"x": [0, 1]}).fit(frame)
        assert [(type(s), s) for s in net.states("x")] == [(int, 0), (int, 1)]
        assert net.query("y", given={"x": 1}).at(y="q") == pytest.approx(1.0, abs=1e-5)
        assert net.predict({"y": ["p", "q"]}, "x").tolist() == [0, 1]


def test_filling_in_the_likeliest_value_goes_by_the_name_of_em() -> None:
    """The default is soft EM: expected counts, said so in the receipt. Hard EM would give 16 : 4 here, not 6 : 4."""
    net = sf.BayesianNetwork({"x": []}, tolerance=1e-13).fit({"x": ["a"] * 6 + ["b"] * 4 + [None] * 10})
    assert net.table("x").values.tolist() == pytest.approx([0.6, 0.4], abs=1e-12)
    assert net.report_.method.startswith("EM, exact expected")


def test_em_forgets_the_weights_of_the_rows() -> None:
    """pomegranate#151 with gaps: a weight of k is a row k times, a weight of 0 no row at all."""
    rows = {"x": ["u", None, "v", "u", "v"], "y": ["p", "q", None, "q", "q"]}
    weights = [2, 1, 3, 1, 0]
    again = {n: [v for v, w in zip(values, weights, strict=True) for _ in range(w)] for n, values in rows.items()}
    model = sf.BayesianNetwork([("x", "y")], prior=1.0, tolerance=1e-12)
    weighted, repeated = model.clone().fit(rows, sample_weight=weights), model.clone().fit(again)
    for node in "xy":
        np.testing.assert_allclose(weighted.table(node).values, repeated.table(node).values, rtol=1e-12)
    assert weighted.report_.log_likelihood == pytest.approx(repeated.report_.log_likelihood, rel=1e-12)


def test_em_needs_a_row_without_gaps() -> None:
    """pgmpy#2447: no row shows both columns, of states and states or of states and numbers."""
    for second in (["p", "q"], [1.5, 2.5]):
        net = sf.BayesianNetwork([("x", "y")], prior={"x": 1.0}).fit(
            {"x": ["u", "v", "v", None, None], "y": [None, None, None, *second]}
        )
        assert net.table("x").values.tolist() == pytest.approx([2 / 5, 3 / 5], abs=1e-4)
        assert np.isfinite(net.table("y").values).all()


# -- hidden nodes ----------------------------------------------------------------------------------------------------


def check_it_moved(net: sf.BayesianNetwork, hidden: str, child: str) -> None:
    """The hidden table and its effect are not uniform, and the likelihood rose at every step."""
    assert np.abs(net.table(hidden).values - 0.5).max() > 1e-3
    first, second = (net.table(child).at({hidden: state}).values for state in net.states(hidden))
    assert np.abs(first - second).max() > 1e-3
    assert net.history_[-1] > net.history_[0]
    assert (np.diff(net.history_) >= -1e-9 * np.abs(net.history_[:-1])).all()


def test_a_hidden_cause_stays_at_one_half() -> None:
    """pgmpy#1542, #1692: CANCER with Smoker never observed."""
    truth = cancer()
    rows = {name: values for name, values in truth.sample(2_000, random_state=1).items() if name != "Smoker"}
    net = sf.BayesianNetwork(truth, hidden={"Smoker": ["yes", "no"]}, tolerance=1e-5).fit(rows)
    check_it_moved(net, "Smoker", "Cancer")


def test_a_column_of_gaps_alone_stays_at_one_half() -> None:
    """pgmpy#1542 again: a column in which every cell is missing is a hidden node too."""
    truth = cancer()
    rows = {**truth.sample(2_000, random_state=1), "Smoker": [None] * 2_000}
    net = sf.BayesianNetwork(truth, states={"Smoker": ["yes", "no"]}, tolerance=1e-5).fit(rows)
    check_it_moved(net, "Smoker", "Cancer")


def test_the_limit_of_iterations_counts_as_convergence() -> None:
    """hmmlearn#75, ipfn#12: `converged` was true after max_iter."""
    gappy = {"x": ["u", None, "v", "u", "v"], "y": ["p", "q", None, "q", "q"]}
    with pytest.warns(sf.ConvergenceWarning) as caught:
        net = sf.BayesianNetwork([("x", "y")], max_iter=1, tolerance=1e-12).fit(gappy)
    assert len(caught) == 1
    assert (net.converged_, net.n_iter_, net.stop_reason_) == (False, 1, "max_iter")
    assert len(net.history_) == 2
    assert "NOT converged" in str(net.report_)


def test_a_fit_says_converged_and_holds_nan() -> None:
    """statsmodels#1539: whatever the gaps, figures are numbers or the fit is an error."""
    for rows in (
        {"x": [None, "u", None], "y": ["p", None, None]},
        {"x": ["u", "u", None], "y": ["p", "p", "p"]},
        {"x": ["u", "v", "w"], "y": ["p", "q", None]},
    ):
        net = sf.BayesianNetwork([("x", "y")]).fit(rows)
        assert net.converged_
        assert all(np.isfinite(net.table(node).values).all() for node in net.nodes)
        assert all(map(math.isfinite, (*net.history_, net.report_.log_likelihood, net.report_.objective)))
    with pytest.raises(sf.DataError, match="'x' has no value in 2 rows and no declared states"):
        sf.BayesianNetwork([("x", "y")]).fit({"x": [None, None], "y": ["p", "q"]})


# -- starts and seeds ------------------------------------------------------------------------------------------------


def latent(random_state: Any, n_init: int = 1, **options: Any) -> sf.BayesianNetwork:
    rows = {name: values for name, values in cancer().sample(400, random_state=3).items() if name != "Cancer"}
    model = sf.BayesianNetwork(cancer(), hidden={"Cancer": 2}, random_state=random_state, n_init=n_init, **options)
    return model.fit(rows)


def test_the_seed_zero_means_forty_two() -> None:
    """pgmpy#2962: 0 and None both became 42."""
    net = cancer()
    zero, again, other = (net.sample(50, random_state=seed)["Smoker"].tolist() for seed in (0, 0, 42))
    assert zero == again
    assert zero != other
    free = [net.sample(50)["Smoker"].tolist() for _ in range(3)]
    assert free[0] != free[1] or free[1] != free[2]
    starts = [latent(seed, tolerance=1e-2).history_[0] for seed in (0, 0, 42)]
    assert starts[0] == starts[1] != starts[2]


def test_the_generator_of_the_whole_process_is_reseeded() -> None:
    """libpgm#16, hmmlearn#457: no call touches NumPy's or Python's global state."""
    import random

    old, mine = np.random.get_state(legacy=False), random.getstate()
    latent(0, tolerance=1e-2).sample(10)
    new = np.random.get_state(legacy=False)
    assert old["state"]["key"].tobytes() == new["state"]["key"].tobytes()
    assert old["state"]["pos"] == new["state"]["pos"]
    assert random.getstate() == mine


def test_a_bad_start_is_all_one_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    """hmmlearn#162, #46, #243: restarts keep the best and report all scores; the same seed gives the same bits."""
    monkeypatch.setenv("SUFFICE_KERNELS", "numpy")  # NumPy and compiled loops may round their last bit differently.
    net = latent(7, n_init=3, tolerance=1e-3)
    assert len(net.scores_) == 3
    assert len(set(net.scores_)) > 1
    assert net.report_.objective == pytest.approx(max(net.scores_), rel=1e-12)
    assert net.table("Cancer").values.tobytes() == latent(7, n_init=3, tolerance=1e-3).table("Cancer").values.tobytes()
