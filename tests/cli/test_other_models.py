"""Models without a graph by ``--model``: GLM, Markov chain, hidden Markov model, CRF; each verb against the library."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from command_line import Command, table
from suffice.families.registry import FAMILIES
from suffice.formats import write as write_file
from suffice.sources.tagged_text import features

NOTES = "Anna NNP B\nran VBD O\n.  . O\n\nBob NNP B\nStone NNP I\nsleeps VBZ O\n\nThe DT O\ndog NN O\nran VBD O\n"
TEXT = "the dog barks\nthe cat sleeps\na dog sleeps\nthe dog sleeps\n"


@pytest.fixture
def texts(place: Path) -> None:
    Path("notes.txt").write_text(NOTES)
    Path("corpus.txt").write_text(TEXT)


# -- glm ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked", [["visits ~ x + z", "rows.csv"], ["rows.csv", "--response", "visits", "--column", "x", "--column", "z"]]
)
def test_glm(good: Command, place: Path, asked: list[str]) -> None:
    good("fit", *asked, "--model", "glm", "--option", "family=poisson", "-o", "glm.json")
    glm = sf.GLM("poisson").fit("rows.csv", "visits", columns=["x", "z"])
    np.testing.assert_array_equal(sf.read("glm.json").parameters_, glm.parameters_)
    found = good("show", "glm.json", "--json").json
    assert (found["family"], found["link"]) == ("poisson", "log")
    assert found["parameters"]["x"]["coefficient"] == glm.coefficients_["x"]
    assert good("table", "glm.json", "coefficients").out == f"{glm.summary()}\n"
    score = good("score", "glm.json", "rows.csv", "--response", "visits", "--weight", "weight", "--json").json
    assert score == {"score": glm.score("rows.csv", "visits", "weight")}
    rows = good("predict", "glm.json", "rows.csv").rows
    assert [float(row["prediction"]) for row in rows] == glm.predict("rows.csv").tolist()
    linear = good("predict", "glm.json", "rows.csv", "--option", "kind=link").rows
    assert [float(row["prediction"]) for row in linear] == glm.predict("rows.csv", kind="link").tolist()
    ends = good("predict", "glm.json", "rows.csv", "--option", "interval=0.9").rows
    assert [float(row["high"]) for row in ends] == glm.predict("rows.csv", interval=0.9)[:, 2].tolist()
    drawn = good("sample", "glm.json", "rows.csv", "-n", "2", "--seed", "4").rows
    first = glm.sample("rows.csv", np.random.default_rng(4))
    assert [float(row["response"]) for row in drawn[:120]] == first.tolist()
    assert drawn[120]["draw"] == "1"


def test_glm_with_labels_priors_and_offsets(good: Command, place: Path) -> None:
    fit = ("fit", "wet ~ x", "rows.csv", "--model", "glm", "--option", "family=binomial", "--prior", "laplace:2")
    good(*fit, "-o", "glm.json")
    glm = sf.GLM("binomial", prior=sf.Laplace(scale=2.0)).fit("rows.csv", "wet", columns=["x"])
    assert [row["prediction"] for row in good("predict", "glm.json", "rows.csv").rows] == list(
        glm.predict("rows.csv", kind="class")
    )
    shares = good("predict", "glm.json", "rows.csv", "--proba").rows
    assert [float(row["yes"]) for row in shares] == glm.predict_proba("rows.csv")[:, 1].tolist()
    counts = ("fit", "visits ~ x", "rows.csv", "--model", "glm", "--option", "family=poisson")
    found = good(*counts, "--option", "exposure=weight", "--json").json
    exposed = sf.GLM("poisson").fit("rows.csv", "visits", exposure="weight", columns=["x"])
    assert found["log_likelihood"] == exposed.report_.log_likelihood


def test_glm_by_any_formula(good: Command, place: Path) -> None:
    pytest.importorskip("formulaic")
    good("fit", "visits ~ x + x:z", "rows.csv", "--model", "glm", "--option", "family=poisson", "-o", "glm.json")
    rows = {name: np.array(column) for name, column in table().items()}
    X = np.column_stack([rows["x"], rows["x"] * rows["z"]])
    glm = sf.GLM("poisson").fit(X, rows["visits"])
    np.testing.assert_allclose(sf.read("glm.json").parameters_, glm.parameters_, rtol=1e-8)
    assert float(good("score", "glm.json", "rows.csv").out) == pytest.approx(glm.score(X, rows["visits"]), rel=1e-12)


# -- chains ------------------------------------------------------------------------------------------------------------


def test_chain_of_words(good: Command, texts: None) -> None:
    fit = ("fit", "corpus.txt", "--model", "chain", "--option", "bounds=true")
    good(*fit, "--prior", "0.5", "-o", "chain.json")
    chain = sf.MarkovChain(bounds=True, prior=0.5).fit("corpus.txt")
    found = good("table", "chain.json", "dog", "--json").json
    assert found["values"] == chain.row(["dog"]).values.tolist()
    # "dog" is followed by "barks" once and "sleeps" twice; there are 6 words and the end.
    assert sf.read("chain.json").probability("sleeps", ["dog"]) == pytest.approx((2 + 0.5) / (3 + 7 * 0.5), rel=1e-12)
    assert good("table", "chain.json", "transitions").out == f"{chain.transitions_}\n"
    score = good("score", "chain.json", "corpus.txt", "--json").json
    assert score == {"score": chain.score("corpus.txt"), "perplexity": chain.perplexity("corpus.txt")}
    piped = good("score", "chain.json", "-", "--json", stdin=TEXT).json
    assert piped["score"] == pytest.approx(score["score"], rel=1e-12)
    rows = good("sample", "chain.json", "-n", "3", "--seed", "5").rows
    drawn = chain.sample(3, random_state=5)
    assert [[row["state"] for row in rows if row["sequence"] == str(k)] for k in range(3)] == drawn
    after = good("predict", "chain.json", "-", stdin="the dog\nthe\n").rows
    assert [row["next"] for row in after] == ["sleeps", "dog"]
    assert float(after[1]["probability"]) == chain.probability("dog", ["the"])
    assert good("show", "chain.json", "--json").json["order"] == 1
    found = good("fit", "-", "--model", "chain", "--option", "bounds=true", "--prior", "0.5", "--json", stdin=TEXT).json
    assert found["log_likelihood"] == pytest.approx(chain.report_.log_likelihood, rel=1e-12)
    write_file(chain.statistics_, "counts.json")
    good(*fit[:1], "counts.json", *fit[2:], "--prior", "0.5", "-o", "again.json")
    np.testing.assert_array_equal(sf.read("again.json").transitions_.values, chain.transitions_.values)
    assert good("score", "chain.json", "counts.json", "--json").json == score


def test_chain_of_a_column_and_of_several_texts(good: Command, texts: None) -> None:
    fit = ("fit", "rows.csv", "--model", "chain", "--group", "game", "--column", "rain")
    good(*fit, "-o", "chain.json")
    rows = table()
    weeks = [rows["rain"][at : at + 12] for at in range(0, 120, 12)]
    chain = sf.MarkovChain().fit(weeks)
    np.testing.assert_array_equal(sf.read("chain.json").transitions_.values, chain.transitions_.values)
    score = good("score", "chain.json", "rows.csv", "--group", "game", "--column", "rain", "--json").json
    assert score["score"] == chain.score(weeks)
    assert len(good("predict", "chain.json", "rows.csv", "--group", "game", "--column", "rain").rows) == 10
    Path("more.txt").write_text("the cat barks\n")
    options = ("--model", "chain", "--option", "order=2", "--option", "smoothing=kneser-ney", "--option", "bounds=true")
    found = good("fit", "corpus.txt", "more.txt", *options, "--json").json
    lines = [line.split() for line in (TEXT + "the cat barks").splitlines()]
    both = sf.MarkovChain(2, smoothing="kneser-ney", bounds=True).fit(lines)
    assert found["log_likelihood"] == pytest.approx(both.report_.log_likelihood, rel=1e-12)


# -- hidden Markov models ----------------------------------------------------------------------------------------------


def test_rows_in_any_order_are_sorted_by_a_column(good: Command, place: Path) -> None:
    """The chain, the path of states and the counts are those of the rows in order."""
    rows = pd.DataFrame(table()).assign(day=np.tile(np.arange(12), 10))
    rows.to_csv("ordered.csv", index=False)
    mixed = rows.sample(frac=1.0, random_state=0)
    mixed.to_csv("mixed.csv", index=False)
    plain, read = ("--group", "game", "--column"), ("--group", "game", "--order", "day", "--column")
    good("fit", "ordered.csv", "--model", "chain", *plain, "rain", "-o", "right.json")
    good("fit", "mixed.csv", "--model", "chain", *read, "rain", "-o", "chain.json")
    good("summarize", "mixed.csv", "--model", "chain", *read, "rain", "-o", "counts.json")
    good("fit", "counts.json", "--model", "chain", "-o", "again.json")
    right = sf.read("right.json")
    for name in ("chain.json", "again.json"):
        np.testing.assert_array_equal(sf.read(name).transitions_.values, right.transitions_.values)
    score = good("score", "chain.json", "mixed.csv", *read, "rain", "--json").json
    assert score == good("score", "right.json", "ordered.csv", *plain, "rain", "--json").json
    options = ("--model", "hmm", "--option", "states=2", "--label", "rain")
    good("fit", "mixed.csv", *options, *read, "level", "-o", "hmm.json")
    good("fit", "ordered.csv", *options, *plain, "level", "-o", "hmm_right.json")
    np.testing.assert_array_equal(sf.read("hmm.json").transitions_, sf.read("hmm_right.json").transitions_)
    found = good("predict", "hmm.json", "mixed.csv", "--group", "game", "--order", "day").rows
    expected = good("predict", "hmm_right.json", "ordered.csv", "--group", "game").rows
    assert [int(row["day"]) for row in found] == mixed["day"].tolist()
    by_place = {(row["game"], row["day"]): row["state"] for row in found}
    assert [by_place[row["game"], str(at % 12)] for at, row in enumerate(expected)] == [r["state"] for r in expected]


def test_hmm(good: Command, place: Path) -> None:
    read = ("--group", "game", "--column", "level")
    good("fit", "rows.csv", "--model", "hmm", "--option", "states=2", *read, "--seed", "1", "-o", "hmm.json")
    rows = table()
    games = [np.array(rows["level"][at : at + 12]) for at in range(0, 120, 12)]
    hmm = sf.HiddenMarkovModel(2, sf.Normal(), random_state=1).fit(games)
    found = good("table", "hmm.json", "transitions", "--json").json
    assert found["values"] == hmm.transitions_.tolist()
    assert good("score", "hmm.json", "rows.csv", "--group", "game", "--json").json == {"score": hmm.score(games)}
    states = [int(row["state"]) for row in good("predict", "hmm.json", "rows.csv", "--group", "game").rows]
    assert states == np.concatenate(hmm.predict(games)).tolist()
    by_step = good("predict", "hmm.json", "rows.csv", "--group", "game", "--option", "method=posterior").rows
    assert [int(row["state"]) for row in by_step] == np.concatenate(hmm.predict(games, method="posterior")).tolist()
    shares = good("predict", "hmm.json", "rows.csv", "--group", "game", "--proba").rows
    assert [float(row["1"]) for row in shares] == np.concatenate(hmm.predict_proba(games))[:, 1].tolist()
    drawn = good("sample", "hmm.json", "-n", "2", "--length", "3", "--seed", "8").rows
    values, path = hmm.sample(3, 2, random_state=8)
    assert [float(row["level"]) for row in drawn] == np.concatenate(values).tolist()
    assert [int(row["state"]) for row in drawn] == np.concatenate(path).tolist()
    assert good("show", "hmm.json", "--json").json["parameters"]["initial"]["values"] == hmm.initial_.tolist()
    assert f"0: {hmm.emissions_[0]}" in good("show", "hmm.json").out


def test_hmm_predicts_in_the_order_of_the_rows(good: Command, place: Path) -> None:
    lines = Path("rows.csv").read_text().splitlines()
    mixed = [line for at in range(12) for line in lines[1 + at :: 12]]
    Path("mixed.csv").write_text("\n".join([lines[0], *mixed]) + "\n")
    read = ("--group", "game", "--column", "level")
    good("fit", "rows.csv", "--model", "hmm", "--option", "states=2", *read, "-o", "hmm.json")
    plain = [row["state"] for row in good("predict", "hmm.json", "rows.csv", "--group", "game").rows]
    found = good("predict", "hmm.json", "mixed.csv", "--group", "game").rows
    order = [at * 12 + step for step in range(12) for at in range(10)]
    assert [row["state"] for row in found] == [plain[at] for at in order]
    assert [row["game"] for row in found] == [str(at % 10) for at in range(120)]


def test_hmm_with_symbols_known_states_and_laws_by_name(good: Command, place: Path) -> None:
    rows = table()
    games = [slice(at, at + 12) for at in range(0, 120, 12)]
    fit = ("fit", "rows.csv", "--model", "hmm", "--option", 'states=["no", "yes"]', "--group", "game")
    good(*fit, "--label", "rain", "--column", "wet", "--prior", "1", "-o", "hmm.json")
    known = sf.HiddenMarkovModel(["no", "yes"], sf.Categorical(), prior=1.0).fit(
        [rows["wet"][g] for g in games], [rows["rain"][g] for g in games]
    )
    assert good("table", "hmm.json", "emissions", "--json").json["values"] == known.emission_probabilities_.tolist()
    found = good(*fit, "--column", "visits", "--option", "emission=poisson", "--json").json
    counted = sf.HiddenMarkovModel(["no", "yes"], sf.Poisson()).fit([np.array(rows["visits"][g]) for g in games])
    assert found["log_likelihood"] == counted.report_.log_likelihood
    assert good(*fit, "--column", "visits", "--option", "emission=Poisson", "--json").json == found
    gaussian = good(*fit, "--column", "x", "--option", "emission=gaussian", "--json").json
    assert gaussian["log_likelihood"] == good(*fit, "--column", "x", "--json").json["log_likelihood"]
    found = good(*fit, "--column", "x", "--column", "wet", "--option", "tolerance=1", "--json").json
    assert found["n_params"] == 1 + 2 + 2 * (2 + 1)


def test_hmm_takes_families_that_others_register(good: Command, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FAMILIES, "_known", {**FAMILIES._known, "waits": lambda: sf.Exponential})
    fit = ("fit", "rows.csv", "--model", "hmm", "--option", "states=2", "--group", "game", "--column", "visits")
    known = good(*fit, "--option", "emission=exponential", "--json").json
    assert good(*fit, "--option", "emission=waits", "--json").json["log_likelihood"] == known["log_likelihood"]


# -- CRFs --------------------------------------------------------------------------------------------------------------


def notes() -> tuple[Any, Any]:
    steps = [[line.split() for line in part.splitlines()] for part in NOTES.split("\n\n")]
    return [features(part, 2) for part in steps], [[step[-1] for step in part] for part in steps]


def test_crf(good: Command, texts: None) -> None:
    good("fit", "notes.txt", "--model", "crf", "--prior", "normal:10", "-o", "crf.json")
    X, y = notes()
    crf = sf.ChainCRF(prior=sf.Normal(variance=10.0)).fit(X, y)
    np.testing.assert_array_equal(sf.read("crf.json").weights_, crf.weights_)
    assert good("score", "crf.json", "notes.txt", "--json").json == {"score": crf.score(X, y), "accuracy": 1.0}
    rows = good("predict", "crf.json", "notes.txt").rows
    assert [row["label"] for row in rows] == [label for path in crf.predict(X) for label in path]
    assert [row["token"] for row in rows][:3] == ["Anna", "ran", "."]
    assert rows[-1]["sequence"] == "2"
    # Without its label a text has one field less, and the same predictions.
    bare = "\n".join(" ".join(line.split()[:2]) for line in NOTES.splitlines())
    assert [row["label"] for row in good("predict", "crf.json", "-", stdin=bare).rows] == [row["label"] for row in rows]
    shares = good("predict", "crf.json", "notes.txt", "--proba").rows
    marginals = np.concatenate([np.asarray(part) for part in crf.predict_marginals(X)])
    assert [float(row["O"]) for row in shares] == marginals[:, crf.labels_.index("O")].tolist()
    drawn = good("sample", "crf.json", "notes.txt", "-n", "2", "--seed", "3").rows
    paths = crf.sample_labels(X, 2, random_state=3)
    assert [row["draw 1"] for row in drawn] == [label for two in paths for label in two[1]]
    found = good("table", "crf.json", "transitions", "--json").json
    assert found["values"] == crf.transition_weights_.tolist()
    assert good("show", "crf.json", "--json").json["features"] == len(crf.feature_names_)
    assert "largest weights of features" in good("show", "crf.json").out


def test_the_template_looks_two_steps_to_each_side() -> None:
    found = features([["Anna", "N"], ["ran", "V"], ["home", "R"], [".", "."]], 2)[2]
    for name in ("bias", "0[-2]=Anna", "0[-1]=ran", "0[0]=home", "0[1]=.", "0[2]=</s>", "1[-2]=N", "1[0]=R"):
        assert name in found
    for name in ("0.low=home", "0.shape=x", "0.pre=h", "0.suf=ome", "0[-1,0]=ran home", "0[0,1]=home ."):
        assert name in found
    assert features([["B12"]], 1)[0][1:4] == ["0[-2]=<s>", "0[-1]=<s>", "0[0]=B12"]
    assert "0.shape=X0" in features([["B12"]], 1)[0]


def test_another_package_registers_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.cli.commands import ModelCommands
    from suffice.cli.kinds import COMMANDS, commands_for, commands_of
    from suffice.fitting.portrait import Portrait

    class Coin(sf.Bernoulli):
        """A model of another package."""

        def portrait(self) -> Portrait:
            return Portrait("Coin", kind="coin")

    class CoinCommands(ModelCommands):
        """Its verbs."""

        def sample(self, n: int, form: Any) -> dict[str, Any]:
            return {"side": ["heads"] * n}

    monkeypatch.setattr(COMMANDS, "_known", dict(COMMANDS._known))
    with pytest.raises(sf.OptionError, match="--model 'coin': expected one of bayes, markov, gaussian, glm"):
        commands_for("coin")
    COMMANDS.register("coin", lambda: CoinCommands)
    assert commands_for("coin") is CoinCommands
    assert commands_of(Coin(0.5)).sample(2, None) == {"side": ["heads", "heads"]}  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="A Coin predicts nothing"):
        commands_of(Coin(0.5)).predict([], None)  # type: ignore[arg-type]
