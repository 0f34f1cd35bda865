"""The report of a closed-form fit is worked out when it is read, and says what it would have said at once."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Hashable
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import NotFittedError
from suffice.fitting.report import Report

EDGES = [("a", "b"), ("a", "c"), ("b", "c")]


def rows(n: int = 60, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n)
    b = (a + (rng.random(n) < 0.3)) % 2
    return {"a": a, "b": b, "c": (a + b + (rng.random(n) < 0.2)) % 3}


def log_likelihood(data: dict[str, Any], net: sf.BayesianNetwork) -> float:
    """Sum over rows and nodes of the logarithms of the table entries."""
    total = 0.0
    for at in range(len(data["a"])):
        row: dict[Hashable, int] = {name: int(values[at]) for name, values in data.items()}
        for node in net.nodes:
            family = (*net.parents(node), node)
            total += float(np.log(net.table(node).at({name: row[name] for name in family})))
    return total


@pytest.mark.parametrize("prior", [None, "bdeu", 1.0])
def test_figures_are_those_of_the_fit(prior: Any) -> None:
    data = rows()
    net = sf.BayesianNetwork(EDGES, prior=prior).fit(data)
    assert "report_" not in vars(net)
    report = net.report_
    assert report is net.report_
    assert report.log_likelihood == pytest.approx(log_likelihood(data, net), rel=1e-12)
    assert report.n_params == 1 + 2 + 8
    assert (report.log_evidence is None) == (prior is None)
    assert report.certificate.moment_gap < 1e-12
    assert report.rows == 60
    assert report.passes == 1


def test_options_set_later_do_not_reach_back() -> None:
    at_once = sf.BayesianNetwork(EDGES, prior="bdeu").fit(rows())
    expected = at_once.report_
    later = sf.BayesianNetwork(EDGES, prior="bdeu").fit(rows()).set_params(prior=None)
    assert later.report_ == expected
    assert later.report_.log_evidence is not None


def test_rows_scored_in_between_leave_no_note() -> None:
    net = sf.BayesianNetwork(EDGES, missing="em").fit(rows())
    net.score({**rows(seed=1), "a": [None, *rows(seed=1)["a"][1:].tolist()]})
    assert net.report_.warnings == sf.BayesianNetwork(EDGES).fit(rows()).report_.warnings


def test_notes_on_reading_are_in_the_report() -> None:
    data = {"a": [0.0, 1.0, np.nan, 1.0], "h": [0, 1, 0, 1]}
    with pytest.warns(sf.errors.KindWarning, match="read as states"):
        net = sf.BayesianNetwork([("a", "h")]).fit(data)
    assert any("read as states" in note for note in net.report_.warnings)


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_made_before_have_the_same_report(made: Any) -> None:
    net = sf.BayesianNetwork(EDGES).fit(rows())
    other = made(net)
    assert other.report_ == net.report_


def test_each_fit_has_a_report_of_its_own() -> None:
    net = sf.BayesianNetwork(EDGES).fit(rows())
    first = net.report_
    net.partial_fit(rows(seed=1))
    both = {name: np.concatenate([values, rows(seed=1)[name]]) for name, values in rows().items()}
    assert net.report_.rows == 120
    assert net.report_.log_likelihood == sf.BayesianNetwork(EDGES).fit(both).report_.log_likelihood
    assert first.rows == 60


def test_a_fit_that_fails_leaves_the_report_as_it_was() -> None:
    states = {"a": [0, 1], "b": [0, 1], "c": [0, 1, 2]}
    net = sf.BayesianNetwork(EDGES, states=states, unseen="raise").fit(rows())
    with pytest.raises(sf.EstimateError, match="never occur"):
        net.fit({name: values[:1] for name, values in rows().items()})
    assert net.report_.rows == 60


def test_a_file_holds_the_report(tmp_path: Any) -> None:
    net = sf.BayesianNetwork(EDGES).fit(rows())
    net.write(tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json")
    assert isinstance(again.report_, Report)
    assert again.report_ == net.report_


def test_before_the_fit_there_is_none() -> None:
    with pytest.raises(NotFittedError):
        sf.BayesianNetwork(EDGES).report_  # noqa: B018


def test_the_method_speaks_of_tables_only_where_there_are_some() -> None:
    rng = np.random.default_rng(0)
    real = {"x": rng.normal(size=9), "y": rng.normal(size=9)}
    assert sf.BayesianNetwork({"y": ["x"]}).fit(real).report_.method == (
        "closed form: least squares of each node by itself"
    )
    mixed = sf.BayesianNetwork({"y": ["s"]}).fit({"s": ["a", "b", "a"] * 3, "y": real["y"]})
    assert mixed.report_.method == "closed form: each row of each table by itself"
