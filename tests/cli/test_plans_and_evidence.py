"""Plans of every kind of graph, evidence as text, summaries of sequences, and what cannot be mistaken any more."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from command_line import Command

RING = "a--b; b--c; c--d; d--a"


@pytest.fixture
def rain(place: Path) -> Path:
    """Six rows of two columns, and six with gaps."""
    Path("six.csv").write_text("rain,wet\nyes,yes\nno,no\nyes,yes\nno,yes\nno,no\nyes,no\n")
    Path("gaps.csv").write_text("rain,wet\nyes,yes\n,no\nyes,yes\nno,\nno,no\nyes,no\n")
    return place


def test_plans_of_real_columns_count_cross_products(good: Command, place: Path) -> None:
    found = good("plan", "x -> z", "rows.csv", "--json").json
    # One number for x alone with its intercept, and a pair: 8 bytes times 2^2 and 3^2.
    assert (found["real variables"], found["bytes"]) == (2, 8 * (4 + 9))
    assert "least squares" in found["method"]
    assert "assumed" not in found
    found = good("plan", "x -- z", "rows.csv", "--json").json
    assert (found["model"], found["width"], found["bytes"]) == ("GaussianGraph", 1, 2 * 8 * 4)


def test_plans_say_em_where_a_fit_would_take_it(good: Command, command: Command, rain: Path) -> None:
    found = good("plan", "rain -> wet", "gaps.csv", "--json").json
    assert found["method"] == "EM with exact expectations (missing values in 'rain', 'wet')"
    assert good("fit", "rain -> wet", "gaps.csv", "--json").json["method"].startswith("EM")
    found = good("plan", "h -> rain; h -> wet", "six.csv", "--hidden", "h=3", "--json").json
    assert (found["largest table"], found["method"]) == (6, "EM with exact expectations ('h' hidden)")
    assert "no column 'h'" in command("plan", "h -> rain; h -> wet", "six.csv").err


def test_a_plan_names_the_method_of_the_fit(good: Command, rain: Path) -> None:
    rows = np.random.default_rng(0).integers(0, 2, (60, 4))
    np.savetxt("four.csv", rows, fmt="%d", delimiter=",", header="a,b,c,d", comments="")
    for edges in (RING, "a--b; b--c; c--d"):
        planned, done = good("plan", edges, "four.csv", "--json").json, good("fit", edges, "four.csv", "--json").json
        assert planned["method"].startswith(done["method"].partition(" (")[0])


def test_evidence_short_of_certainty(good: Command, command: Command, rain: Path) -> None:
    good("fit", "rain -> wet", "six.csv", "-o", "net.json")
    # P(wet) = 1/2 [rain] and P(wet = yes | rain) = 2/3, P(wet = yes | no rain) = 1/3: weights 0.8 and 0.2 mix them.
    found = good("query", "net.json", "wet", "--given", "rain=yes:0.8,no:0.2", "--json").json
    np.testing.assert_allclose(found["values"], [0.8 / 3 + 0.2 * 2 / 3, 0.8 * 2 / 3 + 0.2 / 3], rtol=1e-12)
    assert "'yes:a' is not a state and its weight" in command("query", "net.json", "wet", "--given", "rain=yes:a").err


def test_the_same_thing_said_twice_is_refused(good: Command, command: Command, rain: Path) -> None:
    good("fit", "rain -> wet", "six.csv", "-o", "net.json")
    twice = ("--given", "rain=yes", "--given", "rain=no")
    for arguments in (
        ("query", "net.json", "wet", *twice),
        ("fit", "h -> rain", "six.csv", "--hidden", "h=2", "--hidden", "h=3"),
        ("fit", "rain -> wet", "six.csv", "--option", "unseen=nan", "--option", "unseen=raise"),
        ("fit", "rain -> wet", "six.csv", "--states", "wet=no,yes", "--states", "wet=yes,no"),
    ):
        answer = command(*arguments)
        assert answer.code == 2
        assert "twice" in answer.err


def test_names_with_the_sign_of_evidence(good: Command, place: Path) -> None:
    Path("odd.csv").write_text("x=y,z\np,0\np,0\nq,1\nq,0\n")
    good("fit", "x=y -> z", "odd.csv", "-o", "odd.json")
    assert good("query", "odd.json", "z", "--given", "x=y=p", "--json").json["values"] == [1.0, 0.0]


def test_json_holds_no_numbers_that_json_has_not(good: Command, place: Path) -> None:
    Path("ab.csv").write_text("A,B\n0,0\n0,0\n0,1\n")
    good("fit", "A -> B", "ab.csv", "--states", "A=0,1", "--option", "unseen=nan", "-o", "n.json")
    for arguments in (("table", "n.json", "B", "--json"), ("show", "n.json", "--json")):
        json.loads(good(*arguments).out, parse_constant=pytest.fail)
    assert good("table", "n.json", "B", "--json").json["values"][1] == [None, None]


def test_show_gives_programs_all_edges_and_all_parameters(good: Command, place: Path) -> None:
    edges = "; ".join(f"v{at} -> v{at + 1}" for at in range(30))
    Path("v.csv").write_text(",".join(f"v{at}" for at in range(31)) + "\n" + "\n".join([",".join(["0"] * 31)] * 2))
    good("fit", edges, "v.csv", "-o", "v.json")
    assert len(good("show", "v.json", "--json").json["structure"]["edges"]) == 30
    means = [[0.25, 100.0], [9.125, -7.0]]
    rng = np.random.default_rng(1)
    Path("h.csv").write_text("x,y\n" + "\n".join(f"{a},{b}" for m in means for a, b in rng.normal(m, 1.0, (40, 2))))
    good("fit", "h.csv", "--model", "hmm", "--option", "states=2", "--seed", "0", "-o", "h.json")
    laws = good("show", "h.json", "--json").json["parameters"]["emissions"]
    expected = [law.mean_ for law in sf.read("h.json").emissions_]
    np.testing.assert_array_equal([law["mean"] for law in laws.values()], expected)


def test_summaries_of_sequences_add_up(good: Command, command: Command, place: Path) -> None:
    Path("one.txt").write_text("the dog sat\nthe cat sat\n")
    Path("two.txt").write_text("a dog ran\n")
    for name in ("one", "two"):
        good("summarize", f"{name}.txt", "--model", "chain", "-o", f"{name}.json")
    good("merge", "one.json", "two.json", "-o", "both.json")
    good("fit", "both.json", "--model", "chain", "-o", "sum.json")
    good("fit", "one.txt", "two.txt", "--model", "chain", "-o", "whole.json")
    ours, whole = (sf.read(name).transitions_ for name in ("sum.json", "whole.json"))
    assert ours.equals(whole) if hasattr(ours, "equals") else np.array_equal(ours.values, whole.values)
    assert "a summary holds counts" in command("summarize", "one.txt", "--model", "hmm", "-o", "x.json").err


def test_sites_with_a_hidden_variable_share_patterns(good: Command, rain: Path) -> None:
    edges, absent = "h -> rain; h -> wet", ("--hidden", "h=2")
    good("summarize", edges, "six.csv", *absent, "--with-rows", "-o", "s.json")
    one = good("fit", edges, "s.json", *absent, "--seed", "1", "--json").json
    two = good("fit", edges, "six.csv", *absent, "--seed", "1", "--json").json
    assert one["log_likelihood"] == pytest.approx(two["log_likelihood"], rel=1e-12)


def test_stdin_beside_files_and_gzipped(command: Command, good: Command, rain: Path) -> None:
    text = Path("six.csv").read_text()
    assert good("fit", "rain -> wet", "six.csv", "-", "--json", stdin=text).json["rows"] == 12
    answer = command("fit", "rain -> wet", "-", stdin="a,b\n1\n")
    assert "came from stdin" in answer.err
    assert "tmp" not in answer.err
    Path("six.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert good("fit", "rain -> wet", "six.csv.gz", "--json").json["rows"] == 6


def test_a_markov_network_goes_to_uai_and_comes_back(good: Command, rain: Path) -> None:
    good("fit", "rain -- wet", "six.csv", "-o", "m.uai")
    values = good("query", "m.uai", "0", "1", "--json").json["values"]
    np.testing.assert_allclose(values, [[2 / 6, 1 / 6], [1 / 6, 2 / 6]], rtol=1e-12)
    good("convert", "m.uai", "again.uai")
    assert good("query", "again.uai", "0", "1", "--json").json["values"] == values
    # Variables keep their places, in whatever order factors name them.
    Path("f.uai").write_text("MARKOV 3 2 2 2 2 1 2 2 1 0 2 1 3 4 1 2 3 4")
    good("convert", "f.uai", "g.uai")
    for place in "012":
        ours, theirs = (good("query", name, place, "--json").json["values"] for name in ("f.uai", "g.uai"))
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_edges_in_other_hands(good: Command, rain: Path) -> None:
    Path("bom.csv").write_bytes("\ufefffrom;to\nrain;wet\n".encode())
    assert good("fit", "bom.csv", "six.csv", "--json").json["n_params"] == 3


def test_priors_of_real_nodes(good: Command, place: Path) -> None:
    good("fit", "x -> z", "rows.csv", "--prior", "linear:2:1", "--estimate", "map", "-o", "a.json")
    same = sf.BayesianNetwork([("x", "z")], prior=sf.LinearGaussianPrior(2.0, 1.0), estimate="map").fit("rows.csv")
    np.testing.assert_array_equal(sf.read("a.json").table("z").values, same.table("z").values)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "rain -> wet, wet -> x", "six.csv"), "not written as edges are here"),
        (("fit", "rain \u2192 wet", "six.csv"), "not written as edges are here"),
        (("fit", "rain <-> wet", "six.csv"), "not written as edges are here"),
        (("fit", "rain -> {wet, x}", "six.csv"), "not written as edges are here"),
        (("fit", "[rain][wet|rain", "six.csv"), "cannot be read from '[wet|rain' on"),
        (("fit", "-", "six.csv"), "STRUCTURE cannot come from stdin"),
        (("fit", ".", "six.csv"), "There is no file '.'"),
        (("fit", "ones.json", "six.csv"), "holds the edge 1; expected a list of names"),
        (("fit", "bytes.csv", "six.csv"), "is not text in UTF-8"),
        (("fit", "rain -> wet", "six.csv", "--prior", "bdeu:abc"), "expected a number of rows behind the colon"),
        (("fit", "rain -> wet", "six.csv", "--prior", "linear:2"), "expected two numbers, shape and scale"),
        (("fit", "rain -> wet", "six.csv", "-o", "x.dsl"), "can be read but not written"),
        (("fit", "rain -> wet", "six.csv", "-o", "x.arpa"), "ARPA files hold n-grams"),
        (("fit", "rain -> wet", "six.csv", "--report", "."), "is a folder; name a file"),
        (("fit", "rain -- wet", "six.csv", "--estimate", "map"), "A MarkovNetwork takes no --estimate"),
        (("show", "nofile"), "There is no file 'nofile'"),
        (("plan", "rain -> wet", "--model", "hmm"), "the others have no plan"),
    ],
)
def test_a_mistake_says_what_to_do(command: Command, rain: Path, arguments: tuple[str, ...], said: str) -> None:
    Path("ones.json").write_text('{"edges": [1, 2]}')
    Path("bytes.csv").write_bytes(b"\xff\xfe\x00rain,wet")
    answer = command(*arguments)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.count("\n") == 1
