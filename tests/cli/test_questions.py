"""`query`, `table`, `score`, `predict`, `sample`, `convert` and `show` of networks and graphs, against the library."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from command_line import Command

PAIRS = [("rain", "wet"), ("wet", "sprinkler"), ("rain", "sprinkler")]


@pytest.fixture
def net(place: Path) -> Any:
    found = sf.BayesianNetwork([("rain", "wet"), ("sprinkler", "wet")], prior=1.0).fit("rows.csv")
    found.write("net.json")
    return found


@pytest.fixture
def graph(place: Path) -> Any:
    found = sf.GaussianGraph([("x", "z"), ("z", "level")]).fit("rows.csv")
    found.write("graph.json")
    return found


@pytest.fixture
def field(place: Path) -> Any:
    found = sf.MarkovNetwork(PAIRS).fit("rows.csv")
    found.write("field.json")
    return found


def test_query_is_that_of_the_library(good: Command, net: Any) -> None:
    law = net.query("rain", given={"wet": "yes", "sprinkler": "no"})
    arguments = ("query", "net.json", "rain", "--given", "wet=yes", "--given", "sprinkler=no")
    assert good(*arguments).out == f"{law}\n"
    found = good(*arguments, "--json").json
    assert found == {"variables": ["rain"], "states": {"rain": ["no", "yes"]}, "values": law.values.tolist()}
    joint = good("query", "net.json", "wet", "rain", "--json").json
    assert joint["variables"] == ["wet", "rain"]
    assert joint["values"] == net.query(["wet", "rain"]).values.tolist()


def test_states_that_are_numbers_are_found_by_their_text(good: Command, place: Path) -> None:
    net = sf.BayesianNetwork([("game", "rain")], prior=1.0).fit("rows.csv")
    net.write("net.json")
    found = good("query", "net.json", "rain", "--given", "game=3", "--json").json
    assert found["values"] == net.query("rain", given={"game": 3}).values.tolist()


def test_query_of_numbers(good: Command, graph: Any) -> None:
    law = graph.query(["x"], given={"level": 1.5})
    found = good("query", "graph.json", "x", "--given", "level=1.5", "--json").json
    np.testing.assert_array_equal(found["mean"], law.mean)
    np.testing.assert_array_equal(found["covariance"], law.covariance)


def test_tables_and_potentials(good: Command, net: Any, field: Any) -> None:
    assert good("table", "net.json", "wet").out == f"{net.table('wet')}\n"
    assert good("table", "net.json", "wet", "--json").json["values"] == net.table("wet").values.tolist()
    found = good("table", "field.json", "rain,wet", "--json").json
    assert found["values"] == field.potential(("rain", "wet")).values.tolist()


def test_score(good: Command, net: Any) -> None:
    assert float(good("score", "net.json", "rows.csv").out) == net.score("rows.csv")
    found = good("score", "net.json", "rows.csv", "--weight", "weight", "--json").json
    assert found == {"score": net.score("rows.csv", sample_weight="weight")}


def test_predict(good: Command, net: Any, graph: Any, tmp_path: Path) -> None:
    best = [row["rain"] for row in good("predict", "net.json", "rows.csv", "--target", "rain").rows]
    assert best == list(net.predict("rows.csv", "rain"))
    shares = net.predict_proba("rows.csv", "rain")
    found = good("predict", "net.json", "rows.csv", "--target", "rain", "--proba").rows
    assert [[float(row["no"]), float(row["yes"])] for row in found] == shares.tolist()
    lines = good("predict", "net.json", "rows.csv", "--target", "rain", "--json").out.splitlines()
    assert [json.loads(line)["rain"] for line in lines] == best
    good("predict", "graph.json", "rows.csv", "--target", "x", "-o", "x.csv")
    with (tmp_path / "x.csv").open() as stream:
        means = [float(row["x"]) for row in csv.DictReader(stream)]
    assert means == graph.predict("rows.csv", "x").tolist()


def test_sample_by_seed(good: Command, net: Any, graph: Any, field: Any) -> None:
    drawn = net.sample(5, {"wet": "yes"}, random_state=11)
    rows = good("sample", "net.json", "-n", "5", "--seed", "11", "--given", "wet=yes").rows
    assert {name: [row[str(name)] for row in rows] for name in drawn} == {k: list(v) for k, v in drawn.items()}
    assert len(good("sample", "graph.json", "-n", "3").rows) == 3
    assert good("sample", "field.json", "--seed", "2").out == good("sample", "field.json", "--seed", "2").out
    for name in ("drawn.parquet", "drawn.csv", "drawn.csv.gz"):
        good("sample", "net.json", "-n", "7", "-o", name)
        assert sf.BayesianNetwork([("rain", "wet")]).fit(name).report_.rows == 7
    good("sample", "net.json", "-n", "7", "-o", "drawn.jsonl", "--seed", "1")
    lines = Path("drawn.jsonl").read_text().splitlines()
    assert [json.loads(line)["wet"] for line in lines] == list(net.sample(7, random_state=1)["wet"])


def test_convert(good: Command, net: Any) -> None:
    assert good("convert", "net.json", "net.bif").out == "written to net.bif\n"
    found = good("convert", "net.bif", "net.xmlbif", "--json").json
    assert found == {"model": "BayesianNetwork", "file": "net.xmlbif", "notes": []}
    for name in ("net.bif", "net.xmlbif"):
        np.testing.assert_allclose(sf.read(name).table("wet").values, net.table("wet").values, rtol=1e-12)


def test_show(good: Command, net: Any, graph: Any, field: Any) -> None:
    text = good("show", "net.json").out
    for part in ("rain -> wet; sprinkler -> wet", str(net.table("wet")), str(net.report_)):
        assert part in text
    found = good("show", "net.json", "--json").json
    assert (found["variables"], found["edges"], found["n_params"]) == (3, 2, 6)
    assert found["parameters"]["wet"]["values"] == net.table("wet").values.tolist()
    assert found["report"]["log_likelihood"] == net.report_.log_likelihood
    weights = good("show", "field.json", "--json").json["parameters"]
    assert list(weights.values()) == field.weights_.tolist()
    assert good("show", "graph.json", "--json").json["parameters"]["precision"] == graph.precision_.tolist()
    assert "partial correlations of x, z, level" in good("show", "graph.json").out
    net.write("net.bif")
    assert "report" not in good("show", "net.bif", "--json").json


def test_laws_of_columns_can_be_shown_scored_and_sampled(good: Command, place: Path) -> None:
    law = sf.Normal().fit("rows.csv", columns=["x"])
    law.write("law.json")
    assert f"mean = {law.mean_}" in good("show", "law.json").out
    assert float(good("score", "law.json", "rows.csv", "--column", "x").out) == law.score("rows.csv", columns=["x"])
    drawn = [float(row["x"]) for row in good("sample", "law.json", "-n", "4", "--seed", "1").rows]
    assert drawn == law.sample(4, random_state=1).tolist()


def test_a_mixture_is_told_by_its_laws(good: Command, place: Path) -> None:
    net = sf.BayesianNetwork([("rain", "x")]).fit("rows.csv")
    net.write("net.json")
    law = net.query("x")
    found = good("query", "net.json", "x", "--json").json
    assert (found["weights"], found["means"]) == (law.weights.tolist(), law.means.tolist())
    lines = good("query", "net.json", "x").out.splitlines()
    assert lines[0] == "mixture of 2 normal distributions; the last line is that of all of them"
    assert lines[1].split() == ["weight", "mean", "of", "x", "sd", "of", "x"]
    assert lines[-1].split() == ["1", f"{law.mean[0]:.6g}", f"{law.covariance[0, 0] ** 0.5:.6g}"]


def test_factors_of_a_file_are_asked_as_their_product(good: Command, place: Path) -> None:
    Path("f.uai").write_text("MARKOV 3 2 2 2 3 2 0 1 2 1 2 2 1 2 4 1 2 3 4 4 1 1 1 2 4 1 1 1 2")
    # P(0, 1, 2) ~ f(0, 1) g(1, 2)^2: given 2 = 1 the weights of variable 1 are 1 and 4.
    found = good("query", "f.uai", "0", "--given", "2=1", "--json").json
    np.testing.assert_allclose(found["values"], [9 / 28, 19 / 28], rtol=1e-12)
    assert good("show", "f.uai", "--json").json["structure"]["edges"] == [[0, 1], [1, 2]]
