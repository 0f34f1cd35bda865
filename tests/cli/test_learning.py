"""`fit`, `summarize`, `merge` and `plan`: what they write is what the library gives for the same rows."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from command_line import Command, table, write_csv

EDGES = [("rain", "wet"), ("sprinkler", "wet")]
PAIRS = [(first, second) for first in ("yes", "no") for second in ("yes", "no")]
TEXT = "rain -> wet; sprinkler -> wet"


def same(path: str, other: Any) -> None:
    """The network in a file has the very tables of another."""
    found = sf.read(path)
    assert found.edges == other.edges
    for node in other.nodes:
        np.testing.assert_array_equal(found.table(node).values, other.table(node).values)


def test_fit_writes_the_model_and_prints_its_receipt(good: Command, place: Path) -> None:
    net = sf.BayesianNetwork(EDGES, prior=1.0).fit("rows.csv")
    answer = good("fit", TEXT, "rows.csv", "--prior", "1", "-o", "net.json")
    assert answer.out == f"{net.report_}\nwritten to net.json\n"
    same("net.json", net)
    rows = table()
    both = [w == "yes" for r, s, w in zip(rows["rain"], rows["sprinkler"], rows["wet"], strict=True) if r == s == "yes"]
    share = sf.read("net.json").table("wet").at(rain="yes", sprinkler="yes", wet="yes")
    assert share == pytest.approx((sum(both) + 1) / (len(both) + 2), rel=1e-15)


def test_fit_in_json_is_the_report(good: Command, place: Path) -> None:
    found = good("fit", TEXT, "rows.csv", "--json").json
    report = sf.BayesianNetwork(EDGES).fit("rows.csv").report_
    assert found == json.loads(json.dumps(report.to_dict()))


@pytest.mark.parametrize("name", ["edges.txt", "edges.csv", "pairs.json", "parents.json", "named.json", "net.bif"])
def test_every_form_of_a_structure_gives_the_same_model(good: Command, place: Path, name: str) -> None:
    net = sf.BayesianNetwork(EDGES).fit("rows.csv")
    net.write("net.bif")
    Path("edges.txt").write_text("rain -> wet  # a comment\nwet <- sprinkler\n")
    Path("edges.csv").write_text("from,to\nrain,wet\nsprinkler,wet\n")
    Path("pairs.json").write_text(json.dumps(EDGES))
    Path("parents.json").write_text(json.dumps({"rain": [], "wet": ["rain", "sprinkler"], "sprinkler": []}))
    Path("named.json").write_text(json.dumps({"edges": EDGES}))
    good("fit", name, "rows.csv", "-o", "out.json")
    same("out.json", net)


@pytest.mark.parametrize(
    ("structure", "kind"),
    [
        ("rain -> wet", "BayesianNetwork"),
        ("rain -- wet", "MarkovNetwork"),
        ("{rain, wet, sprinkler}", "MarkovNetwork"),
        ("x -- z", "GaussianGraph"),
        ("x -> z", "BayesianNetwork"),
        ("lines.csv", "MarkovNetwork"),
        ("lines.json", "MarkovNetwork"),
    ],
)
def test_the_structure_says_the_kind(good: Command, place: Path, structure: str, kind: str) -> None:
    Path("lines.csv").write_text("rain,wet,--\nwet,sprinkler,--\n")
    Path("lines.json").write_text(json.dumps({"directed": False, "edges": [["rain", "wet"]]}))
    assert good("fit", structure, "rows.csv", "--json").json["model"] == kind


def test_options_reach_the_model(good: Command, place: Path) -> None:
    good("fit", TEXT, "rows.csv", "--prior", "bdeu:4", "--estimate", "mean", "-o", "a.json")
    same("a.json", sf.BayesianNetwork(EDGES, prior="bdeu", equivalent_sample_size=4.0, estimate="mean").fit("rows.csv"))
    good("fit", TEXT, "rows.csv", "--weight", "weight", "-o", "b.json")
    same("b.json", sf.BayesianNetwork(EDGES).fit("rows.csv", sample_weight="weight"))
    edges = "rain--wet; wet--sprinkler; rain--sprinkler"
    found = good("fit", edges, "rows.csv", "--solver", "lbfgs", "--prior", "normal:4", "-o", "c.json", "--json").json
    pairs = [("rain", "wet"), ("wet", "sprinkler"), ("rain", "sprinkler")]
    other = sf.MarkovNetwork(pairs, solver="lbfgs", prior=sf.Normal(variance=4.0)).fit("rows.csv")
    assert found["objective"] == other.report_.objective
    np.testing.assert_array_equal(sf.read("c.json").weights_, other.weights_)


def test_hidden_states_and_seeds(good: Command, place: Path) -> None:
    options = ("--hidden", "h=2", "--seed", "3", "--option", "n_init=2", "-o", "h.json")
    good("fit", "h -> rain; h -> wet", "rows.csv", *options)
    edges = [("h", "rain"), ("h", "wet")]
    same("h.json", sf.BayesianNetwork(edges, hidden={"h": 2}, random_state=3, n_init=2).fit("rows.csv"))


def test_declared_states_keep_their_order_and_place(good: Command, place: Path) -> None:
    Path("states.json").write_text(json.dumps({"wet": ["yes", "no", "unknown"]}))
    for given in (["wet=yes,no,unknown"], ["states.json"], ['wet=["yes", "no", "unknown"]']):
        good("fit", TEXT, "rows.csv", "--states", *given, "--prior", "1", "-o", "net.json")
        assert sf.read("net.json").states("wet") == ("yes", "no", "unknown")
    good("fit", "visits -> x", "rows.csv", "--states", "visits=real", "-o", "real.json")
    assert sf.read("real.json").node("visits").domain["visits"].kind == "real"


@pytest.mark.parametrize("form", ["stdin", "glob", "several", "gzip", "parquet"])
def test_rows_come_in_many_forms(good: Command, place: Path, form: str) -> None:
    net = sf.BayesianNetwork(EDGES).fit("rows.csv")
    text = Path("rows.csv").read_text()
    write_csv("part-1.csv", table(), slice(0, 50))
    write_csv("part-2.csv", table(), slice(50, None))
    data: list[str] = {"stdin": ["-"], "glob": ["part-*.csv"], "several": ["part-1.csv", "part-2.csv"]}.get(form, [])
    if form == "gzip":
        Path("rows.csv.gz").write_bytes(gzip.compress(text.encode()))
        data = ["rows.csv.gz"]
    elif form == "parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(table()), "rows.parquet")
        data = ["rows.parquet"]
    good("fit", TEXT, *data, "-o", "net.json", stdin=text)
    same("net.json", net)


def test_summaries_stand_for_rows_and_add_up(good: Command, place: Path) -> None:
    write_csv("north.csv", table(), slice(0, 50))
    write_csv("south.csv", table(), slice(50, None))
    said = good("summarize", TEXT, "north.csv", "-o", "north.json").out
    assert said == "50 rows in 3 statistics, written to north.json\n"
    found = good("summarize", TEXT, "south.csv", "-o", "south.suffice", "--json").json
    said_all = {"rows": 70, "weight": 70.0, "statistics": 3, "holds_rows": False, "file": "south.suffice"}
    assert found == said_all
    assert good("merge", "north.json", "south.suffice", "-o", "all.json", "--json").json["rows"] == 120
    net = sf.BayesianNetwork(EDGES, prior=1.0).fit("rows.csv")
    for data in (["all.json"], ["north.json", "south.suffice"]):
        good("fit", TEXT, *data, "--prior", "1", "-o", "net.json")
        same("net.json", net)
    assert good("score", "net.json", "all.json").out == f"{net.score('rows.csv')!r}\n"
    assert good("show", "all.json", "--json").json["rows"] == 120
    numbers = good("summarize", "x--z", "rows.csv", "-o", "numbers.json", "--weight", "weight", "--json").json
    assert numbers["weight"] == float(sum(table()["weight"]))
    good("fit", "x--z", "numbers.json", "-o", "graph.json")
    weighted = sf.GaussianGraph([("x", "z")]).fit("rows.csv", sample_weight="weight")
    np.testing.assert_array_equal(sf.read("graph.json").precision_, weighted.precision_)


def test_a_summary_of_rows_is_written_only_when_rows_are_asked_for(
    command: Command, good: Command, place: Path
) -> None:
    Path("site.csv").write_text("sex,income\nf,51234.5\nm,48000\n,73111.25\nf,20500\n", encoding="utf-8")
    refused = command("summarize", "sex -> income", "site.csv", "-o", "site.json")
    assert refused.code != 0
    assert "the distinct rows of 'sex', 'income'" in refused.err
    assert "--with-rows" in refused.err
    assert not Path("site.json").exists()
    said = good("summarize", "sex -> income", "site.csv", "--with-rows", "-o", "site.json").out
    assert said.endswith("it holds the distinct rows of 'sex', 'income'\n")
    assert '"holds_rows": true' in Path("site.json").read_text(encoding="utf-8")
    assert sf.read("site.json").holds_rows
    merged = good("merge", "site.json", "site.json", "-o", "two.json", "--json").json
    assert merged["holds_rows"]
    # Complete rows become counts and sums: nothing to ask for, and no income in the file.
    Path("whole.csv").write_text("sex,income\nf,51234.5\nm,48000\nm,73111.25\nf,20500\n", encoding="utf-8")
    good("summarize", "sex -> income", "whole.csv", "-o", "whole.json")
    text = Path("whole.json").read_text(encoding="utf-8")
    assert '"holds_rows": false' in text
    assert "73111.25" not in text
    Path("items.csv").write_text("a,b\n0,1\n1,1\n0,0\n", encoding="utf-8")
    latent = ("summarize", "class -> a; class -> b", "items.csv", "--hidden", "class=2", "-o", "items.json")
    assert "the distinct rows of 'a', 'b'" in command(*latent).err
    good(*latent, "--with-rows")


def test_rare_cells_are_not_written(command: Command, good: Command, place: Path) -> None:
    cells = {pair: list(zip(table()["rain"], table()["wet"], strict=True)).count(pair) for pair in PAIRS}
    least = min(count for count in cells.values() if count)
    good("summarize", "rain -> wet", "rows.csv", "--minimum-count", str(least), "-o", "site.json")
    Path("site.json").unlink()
    refused = command("summarize", "rain -> wet", "rows.csv", "--minimum-count", str(least + 1), "-o", "site.json")
    assert refused.code != 0
    assert f"have fewer rows than minimum_count={least + 1}" in refused.err
    assert not Path("site.json").exists()


def test_a_report_is_a_page(good: Command, place: Path) -> None:
    assert good("fit", TEXT, "rows.csv", "--report", "net.html").out.endswith("written to net.html\n")
    text = Path("net.html").read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "sprinkler" in text


def test_a_plan_counts_cells_without_fitting(good: Command, place: Path) -> None:
    ring = "a--b; b--c; c--d; d--a"
    found = good("plan", ring, "--states", "3", "--json").json
    assert (found["variables"], found["width"], found["largest table"]) == (4, 2, 27)
    assert found["method"].startswith("iterative")
    found = good("plan", ring, "--states", "3", "--states", "a=x,y", "--json").json
    assert found["assumed"].startswith("3 states of 'b', 'c', 'd'")
    found = good("plan", TEXT, "rows.csv", "--json").json
    assert (found["largest table"], found["method"]) == (8, "closed form for complete rows")
    assert "assumed" not in found
    found = good("plan", "a--b; b--c", "--json").json["method"]
    assert found.startswith("closed form of a decomposable model")
    assert good("plan", "x--z", "rows.csv", "--json").json["method"].startswith("closed form")
    wide = "; ".join(f"a{i}--b{j}" for i in range(50) for j in range(50))
    found = good("plan", wide, "--json").json
    assert found["width"] == 50
    assert "stochastic maximum likelihood" in found["method"]


def test_a_file_without_names_speaks_of_columns_by_number(good: Command, place: Path) -> None:
    write_csv("numbers.csv", {"0": [0, 1, 0, 1, 1], "1": [1, 1, 0, 0, 1], "2": [1, 0, 0, 1, 1]})
    states = {name: [0, 1] for name in range(3)}
    net = sf.BayesianNetwork({0: [], 1: [], 2: [0, 1]}, states=states).fit({0: [0], 1: [1], 2: [1]})
    net.write("net.uai")
    good("fit", "net.uai", "numbers.csv", "--prior", "1", "-o", "out.json")
    share = sf.read("out.json").table("2").at({"0": 1, "1": 1, "2": 1})
    assert share == pytest.approx((1 + 1) / (2 + 2), rel=1e-15)
    Path("field.uai").write_text("MARKOV 3 2 2 2 2 2 0 1 2 1 2 4 1 1 1 1 4 1 1 1 1")
    assert good("fit", "field.uai", "numbers.csv", "--json").json["n_params"] == 5
    assert good("plan", "field.uai", "--json").json["width"] == 1
