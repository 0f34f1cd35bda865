"""Calls that users make by habit mean what they think, or are refused: nothing is misread without a word."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import suffice as sf

RNG = np.random.default_rng(20)
TEXT = pd.DataFrame({"a": RNG.choice(list("xy"), 200), "b": RNG.choice(list("uv"), 200)})
REALS = pd.DataFrame({"u": RNG.normal(size=200), "v": RNG.normal(size=200)})
TARGET = RNG.integers(0, 5, 200)

WITHOUT_TARGET: dict[str, tuple[Any, Any]] = {
    "network": (lambda: sf.BayesianNetwork([("a", "b")]), TEXT),
    "markov network": (lambda: sf.MarkovNetwork([("a", "b")]), TEXT),
    "gaussian graph": (lambda: sf.GaussianGraph([("u", "v")]), REALS),
    "normal": (sf.Normal, REALS["u"].to_numpy()),
    "multivariate normal": (sf.MultivariateNormal, REALS),
    "poisson": (sf.Poisson, TARGET),
    "categorical": (sf.Categorical, TEXT["a"].to_numpy()),
    "chain": (sf.MarkovChain, [["x", "y", "x"], ["y", "y"]]),
}


@pytest.mark.parametrize("name", WITHOUT_TARGET)
def test_a_second_argument_is_no_weight(name: str) -> None:
    make, data = WITHOUT_TARGET[name]
    plain = make().fit(data)
    with pytest.warns(sf.SufficeWarning, match="y is not used.*sample_weight=") as caught:
        given = make().fit(data, TARGET)
    assert [one.filename for one in caught] == [__file__]
    assert given.report_.weight == plain.report_.weight
    assert given.log_likelihood_ == plain.log_likelihood_
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        assert given.score(data, TARGET) == plain.score(data)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        make().partial_fit(data, TARGET)
    with pytest.raises(TypeError):
        plain.unlearn(data, TARGET)


def test_a_summary_takes_weights_by_name_alone() -> None:
    assert sf.summarize(sf.Normal(), [1.0, 2.0, 3.0], sample_weight=[0, 1, 1]).weight == 2
    with pytest.raises(sf.OptionError, match="sample_weight="):
        sf.summarize(sf.Normal(), [1.0, 2.0, 3.0], [0, 1, 1])  # type: ignore[arg-type]


def test_stratified_folds_do_not_weigh_the_rows() -> None:
    selection = pytest.importorskip("sklearn.model_selection")
    folds = selection.KFold(3)
    net = sf.BayesianNetwork([("a", "b")], prior=1.0)
    plain = selection.cross_val_score(net, TEXT, cv=folds)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        np.testing.assert_array_equal(selection.cross_val_score(net, TEXT, TARGET, cv=folds), plain)


def test_an_option_that_is_written_to_is_set() -> None:
    model = sf.MarkovNetwork([("a", "b")])
    model.max_iter = 5
    assert model.get_params()["max_iter"] == 5
    assert model.max_iter == 5  # type: ignore[attr-defined]
    fitted = sf.Normal().fit([1.0, 2.0, 4.0])
    fitted.estimate = "map"
    assert fitted.mean_ == 7 / 3


COUNTS = np.array([[10, 20], [30, 5]])


def test_an_array_that_could_be_a_two_way_table_is_refused_with_both_spellings() -> None:
    names = ["exposed", "case"]
    independent = sf.MarkovNetwork(names)
    with pytest.raises(sf.DataError, match=r"2 x 2 whole numbers could be the table.*fit\(table=array.*rows as fit\("):
        independent.clone().fit(COUNTS, columns=names)
    fitted = independent.clone().fit(table=COUNTS, columns=names)
    # Pearson and likelihood-ratio statistics of the 2 x 2 table by hand.
    expected = np.outer(COUNTS.sum(1), COUNTS.sum(0)) / COUNTS.sum()
    np.testing.assert_allclose(fitted.deviance_, 2 * (COUNTS * np.log(COUNTS / expected)).sum(), rtol=1e-12)
    assert fitted.p_value_ < 1e-4
    rows = independent.clone().fit({"exposed": COUNTS[:, 0], "case": COUNTS[:, 1]})
    assert rows.states("exposed") == (10, 30)
    # The order of the names says which axis is which; without names the variables are taken in their order.
    turned = sf.MarkovNetwork([("exposed", "case")]).fit(table=COUNTS.T, columns=["case", "exposed"])
    np.testing.assert_allclose(turned.marginal(("exposed", "case")).values, COUNTS / COUNTS.sum(), rtol=1e-14)
    assert independent.clone().fit(table=COUNTS).deviance_ == fitted.deviance_


@pytest.mark.parametrize("cells", [[[10, 20], [30, 5]], ((10, 20), (30, 5)), np.array([[10.0, 20.0], [30.0, 5.0]])])
def test_lists_and_floats_that_could_be_a_two_way_table_are_refused_too(cells: Any) -> None:
    net = sf.MarkovNetwork(["exposed", "case"])
    with pytest.raises(sf.DataError, match=r"could be the table of counts of 'exposed' and 'case', or 2 rows"):
        net.fit(cells)
    expected = stats.chi2_contingency([[10, 20], [30, 5]], correction=False, lambda_="log-likelihood").pvalue
    assert net.fit(table=cells).p_value_ == pytest.approx(expected, rel=1e-9)


def test_tables_of_other_shapes_are_named_too() -> None:
    wide = np.array([[10, 20, 30], [30, 5, 9]])
    both = r"2 x 3 whole numbers could be the table.*fit\(table=array, columns=\['exposed', 'case'\]\).*by columns= or"
    for columns in (None, ["exposed", "case"]):
        with pytest.raises(sf.DataError, match=both):
            sf.MarkovNetwork(["exposed", "case"]).fit(wide, columns=columns)
    more = sf.MarkovNetwork(["exposed", "case"]).fit(wide, columns=["exposed", "case", "age"])
    assert more.report_.rows == 2
    with pytest.raises(
        sf.DataError, match=r"2 x 2 x 2 whole numbers can only be the table.*fit\(table=array, columns="
    ):
        sf.MarkovNetwork("a - b - c").fit(np.arange(8).reshape(2, 2, 2))
    assert sf.MarkovNetwork("a - b - c").fit(np.ones((2, 2, 2), int), columns=list("abc")).report_.weight == 8


@pytest.mark.parametrize("cells", [COUNTS, COUNTS.tolist(), COUNTS.astype(float), np.arange(8).reshape(2, 2, 2)])
def test_a_bayesian_network_makes_no_rows_of_a_table_of_counts(cells: Any) -> None:
    names = ["a", "b", "c"][: np.ndim(cells)]
    net = sf.BayesianNetwork(" -> ".join(names), prior=1.0)
    with pytest.raises(sf.DataError, match=r"looks like the table of counts of 'a', 'b'.*sample_weight='count'"):
        net.fit(cells, columns=names)


def test_a_bayesian_network_reads_small_arrays_of_codes() -> None:
    for rows in ([[0, 0], [1, 1]], [[1, 2], [2, 1]], [[0, 3], [1, 3], [0, 4]], [[10, 20], [30, 20]]):
        assert sf.BayesianNetwork("a -> b", prior=1.0).fit(np.array(rows), columns=["a", "b"]).report_.rows == len(rows)
    declared = sf.BayesianNetwork("a -> b", states={"a": [10, 30], "b": [5, 20]}, prior=1.0)
    assert declared.fit(COUNTS, columns=["a", "b"]).report_.rows == 2


def test_rows_that_cannot_be_a_table_are_read_as_rows() -> None:
    codes = RNG.integers(0, 2, (200, 2))
    assert sf.MarkovNetwork(["a", "b"]).fit(codes, columns=["a", "b"]).report_.rows == 200
    declared = sf.MarkovNetwork(["a", "b"], states={"a": [0, 1], "b": [0, 1]})
    assert declared.fit(codes[:5], columns=["a", "b"]).report_.rows == 5


def test_a_table_and_rows_are_not_given_together() -> None:
    with pytest.raises(sf.DataError, match="one of them alone"):
        sf.MarkovNetwork(["a", "b"]).fit(COUNTS, table=COUNTS)
    with pytest.raises(sf.DataError, match="one of them alone"):
        sf.MarkovNetwork(["a", "b"]).fit()
    with pytest.raises(sf.DataError, match="table= is a str without counts"):
        sf.MarkovNetwork(["a", "b"]).fit(table="rows.csv")


def agrum_file(tmp_path: Path, ending: str) -> tuple[str, Any]:
    """A file that pyAgrum wrote, of a node with parents of two and of three states, and its own P(c = 0 | a, b)."""
    gum = pytest.importorskip("pyagrum")
    network = gum.fastBN("a[2]->c[2]<-b[3]")
    network.cpt("c").fillWith([0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.55, 0.45, 0.65, 0.35])
    gum.saveBN(network, str(tmp_path / f"net{ending}"))
    table = [[network.cpt("c")[{"a": i, "b": j}][0] for j in range(3)] for i in range(2)]
    return str(tmp_path / f"net{ending}"), table


@pytest.mark.parametrize("ending", [".uai", ".xdsl", ".dsl", ".bifxml", ".net", ".bif"])
def test_files_of_pyagrum_are_read_with_the_parents_in_their_order(tmp_path: Path, ending: str) -> None:
    path, expected = agrum_file(tmp_path, ending)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        network = sf.read(path)
    a, c, b = (0, 1, 2) if ending == ".uai" else ("a", "c", "b")
    table = network.table(c)
    found = np.moveaxis(table.values, [table.variables.index(name) for name in (a, b, c)], [0, 1, 2])[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert [one.filename for one in caught] == ([__file__] if ending == ".uai" else [])


def test_a_uai_file_does_not_say_the_order_of_parents(tmp_path: Path) -> None:
    _, expected = agrum_file(tmp_path, ".uai")
    text = re.sub(r"#.*", "", (tmp_path / "net.uai").read_text())
    (tmp_path / "bare.uai").write_text(text)
    with pytest.warns(sf.SufficeWarning, match=r"last parent fastest.*parent_order='forward'\) or 'reversed'"):
        forward = sf.read(tmp_path / "bare.uai").table(1)
    assert forward.variables == (0, 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same = sf.read(tmp_path / "bare.uai", parent_order="forward").table(1)
        reverse = sf.read(tmp_path / "bare.uai", parent_order="reversed").table(1)
    np.testing.assert_array_equal(same.values, forward.values)
    assert reverse.variables == (2, 0, 1)
    np.testing.assert_allclose(reverse.values[:, :, 0].T, expected, atol=1e-6)


def test_one_parent_has_no_order(tmp_path: Path) -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit(TEXT)
    net.write(tmp_path / "net.uai")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sf.read(tmp_path / "net.uai")
    net.write(tmp_path / "net.bif")
    with pytest.raises(sf.OptionError, match=r"parent_order= is for '.uai' and '.xdsl' files"):
        sf.read(tmp_path / "net.bif", parent_order="reversed")
    with pytest.raises(sf.OptionError, match="parent_order is 'backwards'"):
        sf.read(tmp_path / "net.uai", parent_order="backwards")  # type: ignore[call-overload]


STEPS = np.concatenate([RNG.normal(0, 1, (100, 2)), RNG.normal(5, 1, (100, 2))])
LENGTHS = [50, 100, 50]


def hidden() -> Any:
    return sf.HiddenMarkovModel(2, emission=sf.MultivariateNormal(), random_state=0)


def test_the_calls_of_hmmlearn() -> None:
    named, model = hidden().fit(STEPS, lengths=LENGTHS), hidden().fit(STEPS, LENGTHS)
    assert model.log_likelihood_ == named.log_likelihood_
    assert model.score(STEPS, LENGTHS) == named.score(STEPS, lengths=LENGTHS) != named.score(STEPS)
    np.testing.assert_array_equal(model.predict(STEPS, LENGTHS), named.predict(STEPS, lengths=LENGTHS))
    np.testing.assert_array_equal(model.predict_proba(STEPS, LENGTHS), named.predict_proba(STEPS, lengths=LENGTHS))
    peer = pytest.importorskip("hmmlearn.hmm").GaussianHMM(2, "full")
    for name in ("startprob_", "transmat_", "means_", "covars_"):
        setattr(peer, name, np.array(getattr(model, name)))
    assert model.score(STEPS, LENGTHS) * len(STEPS) == pytest.approx(peer.score(STEPS, LENGTHS), rel=1e-12)
    np.testing.assert_array_equal(model.score_samples(STEPS, LENGTHS), named.score_samples(STEPS, lengths=LENGTHS))
    parts = np.split(STEPS, np.cumsum(LENGTHS)[:-1])
    np.testing.assert_allclose(model.score_samples(STEPS, LENGTHS), [peer.score(part) for part in parts], rtol=1e-12)
    np.testing.assert_array_equal(model.filter(STEPS, LENGTHS), named.filter(STEPS, lengths=LENGTHS))
    np.testing.assert_allclose(model.filter(STEPS, LENGTHS)[50:150], model.filter(parts[1]), rtol=1e-12)
    assert [len(pairs) for pairs in model.pairwise(STEPS, LENGTHS)] == [49, 99, 49]
    value, path = model.decode(STEPS, LENGTHS)
    theirs = peer.decode(STEPS, LENGTHS)
    assert value == pytest.approx(theirs[0], rel=1e-12)
    np.testing.assert_array_equal(path, theirs[1])


def test_lengths_that_do_not_add_up_are_refused() -> None:
    X = np.random.default_rng(1).normal(size=(200, 2))
    model = sf.HiddenMarkovModel(2, emission=sf.MultivariateNormal(), max_iter=3)
    with pytest.warns(sf.ConvergenceWarning):
        model.fit(X, pd.Series([50, 100, 50]))
    with pytest.warns(sf.ConvergenceWarning):
        by_name = model.clone().fit(X, lengths=[50, 100, 50])
    assert model.log_likelihood_ == by_name.log_likelihood_
    for call in (model.score, model.fit, model.predict):
        with pytest.raises(sf.DataError, match="150"):
            call(X, [50, 100])


@pytest.mark.parametrize("method", ["forecast", "best_paths", "sample_paths"])
def test_lengths_in_the_place_of_a_number_are_told_by_name(method: str) -> None:
    ask = getattr(hidden().fit(STEPS, LENGTHS), method)
    with pytest.raises(sf.OptionError, match=r"is \[50, 100, 50\]; expected a whole number. .* by name: lengths="):
        ask(STEPS, LENGTHS)
    with pytest.raises(sf.OptionError, match="by name: lengths="):
        ask(STEPS, np.array(LENGTHS))


def test_lengths_are_told_from_states() -> None:
    states = [0] * 100 + [1] * 100
    assert hidden().fit(STEPS, states).report_.method != hidden().fit(STEPS, LENGTHS).report_.method
    with pytest.raises(sf.OptionError, match=r"200 times the number 1.*lengths=\[...\], or states=\[\[...\]\]"):
        hidden().fit(STEPS, [1] * 200)
    with pytest.raises(sf.DataError, match="200 steps"):
        hidden().fit(STEPS, [50, 100, 49])
    with pytest.raises(sf.MissingAttributeError, match="no normal distributions"):
        sf.HiddenMarkovModel(2, emission=sf.Poisson()).fit(RNG.poisson(3, 40)).means_  # noqa: B018


def test_a_table_is_an_array_with_labels() -> None:
    table = sf.BayesianNetwork([("a", "b")]).fit(TEXT).table("b")
    array = np.asarray(table)
    assert array.dtype == np.float64
    np.testing.assert_array_equal(array, table.values)
    assert table["x", "u"] == table.at(a="x", b="u") == table.sel(a="x", b="u")
    assert table["x"].variables == ("b",)
    assert table["x"]["u"] == table["x", "u"]
    np.testing.assert_array_equal(np.exp(table), np.exp(table.values))
    assert isinstance(np.ones(2) * table["x"], sf.Table)
    with pytest.raises(sf.OptionError, match=r"'u' is a state of 'b'.*table.sel\(\{'b': 'u'\}\)"):
        table["u"]
    with pytest.raises(sf.UnknownStateError):
        table["z"]
    with pytest.raises(sf.OptionError, match="3 states are given for 2 axes"):
        table["x", "u", "u"]


COLLIDER = {"a": (), "b": ("a", "c"), "c": ()}


def parents(structure: Any) -> dict[Any, tuple[Any, ...]]:
    net: Any = sf.BayesianNetwork(structure)
    return {node: tuple(sorted(net.parents(node))) for node in sorted(net.nodes)}


def test_structures_in_the_forms_that_people_have() -> None:
    for text in ("a -> b <- c", "a->b; c->b", "c -> b\na -> b  # the other one", "[a][c][b|a:c]"):
        assert parents(text) == COLLIDER
    names = ["a", "b", "c"]
    adjacency = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    assert parents(pd.DataFrame(adjacency, names, names)) == COLLIDER
    assert parents(adjacency) == {0: (), 1: (0, 2), 2: ()}
    assert parents(np.array([[0, 1], [2, 1]])) == {0: (), 1: (0, 2), 2: ()}  # Two rows are edges.
    lines = sf.MarkovNetwork("a -- b -- c; {c, d, e}; f")
    assert lines.cliques == (("a", "b"), ("b", "c"), ("c", "d", "e"), ("f",))
    assert set(sf.GaussianGraph("u -- v; w").nodes) == {"u", "v", "w"}


def test_structures_of_other_libraries() -> None:
    gum = pytest.importorskip("pyagrum")
    assert parents(gum.fastBN("a->b<-c")) == COLLIDER
    models = pytest.importorskip("pgmpy.models")
    assert parents(models.DiscreteBayesianNetwork([("a", "b"), ("c", "b")])) == COLLIDER


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ("a -- b", "has the line a -- b; a Bayesian network has arrows"),
        ("[a][b|c]", "the parent 'c', and no node"),
        ("a -> b -> a", "directed cycle"),
        ("nowhere.bif", "no such file"),
        (pd.DataFrame([[0, 2], [0, 0]], ["a", "b"], ["a", "b"]), "other numbers than 0 and 1"),
        (pd.DataFrame([[0, 1], [0, 0]], ["a", "b"], ["b", "a"]), "rows of the adjacency matrix are 'a', 'b'"),
    ],
)
def test_structures_that_cannot_be_read(structure: Any, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        sf.BayesianNetwork(structure)


def test_arrows_make_no_markov_network() -> None:
    with pytest.raises(sf.OptionError, match="has the arrow a -> b; an undirected model has lines"):
        sf.MarkovNetwork("a -> b")


@pytest.mark.parametrize("make", [np.array, list, pd.Series], ids=["array", "list", "series"])
def test_lengths_of_a_chain_may_stand_second(make: Any) -> None:
    steps = make(list("abbaab"))
    named = sf.MarkovChain(prior=1.0).fit(steps, lengths=[2, 4])
    chain = sf.MarkovChain(prior=1.0).fit(steps, [2, 4])
    assert chain.report_.log_likelihood == named.report_.log_likelihood
    assert float(chain.initial_["a"]) == pytest.approx(2 / 4)  # One starts with an a, one with a b.
    assert chain.score(steps, [2, 4]) == named.score(steps, lengths=[2, 4]) != named.score(steps, lengths=[6])
    np.testing.assert_array_equal(chain.score_samples(steps, [2, 4]), named.score_samples(steps, lengths=[2, 4]))
    more = named.clone().fit(steps, lengths=[2, 4]).partial_fit(steps, [3, 3])
    assert more.report_.weight == 12
    with pytest.raises(sf.DataError, match=r"add up to its steps. .* 2 numbers whose sum is 7. Correct the lengths"):
        chain.fit(steps, [3, 4])
    with pytest.raises(sf.OptionError, match=r"6 times the number 1.*a target.*lengths=\[...\], or leave it out"):
        chain.fit(steps, [1] * 6)
    with pytest.warns(sf.SufficeWarning, match=r"y is not used.*Lengths of sequences are lengths="):
        chain.fit(steps, [0, 1, 0, 1, 0, 1])


def test_names_of_columns_say_which_is_which_after_the_fit() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    y = rng.poisson(np.exp(X[:, 0]))
    glm = sf.GLM("poisson").fit(X, y, columns=["dose", "age"])
    turned = X[:, ::-1]
    np.testing.assert_allclose(
        glm.score_samples(turned, y, columns=["age", "dose"]),
        glm.score_samples(X, y, columns=["dose", "age"]),
        rtol=1e-13,
    )
    with pytest.raises(sf.MissingColumnError, match="names 'age', 'weight'; the model has learned 'dose', 'age'"):
        glm.score_samples(X, y, columns=["age", "weight"])
    frame = pd.DataFrame(X, columns=["u", "v"])
    hidden = sf.HiddenMarkovModel(2, sf.MultivariateNormal()).fit(frame)
    np.testing.assert_array_equal(hidden.predict_proba(frame, columns=["v", "u"]), hidden.predict_proba(frame))
    with pytest.raises(sf.OptionError, match="names 'v', 'u'; the observations of a step were learned as 'u', 'v'"):
        hidden.predict(X, columns=["v", "u"])


def test_a_mixture_scores_rows_as_its_density_does() -> None:
    rows = np.array([0.1, 0.2, 5.0, 5.4, 4.9, -0.3])
    mixture = sf.Mixture(sf.Normal(), 2).fit(rows)
    assert mixture.score(rows) == pytest.approx(mixture.log_prob(rows).mean(), rel=1e-12)
    weights = [1, 2, 0, 1, 1, 3]
    repeated = np.repeat(rows, weights)
    assert mixture.score(rows, sample_weight=weights) == pytest.approx(mixture.score(repeated), rel=1e-12)
    with pytest.raises(sf.OptionError, match="'topology' of a Mixture would have no effect"):
        sf.Mixture(sf.Normal(), 2).fit(rows, topology="left-right")
    with pytest.raises(sf.OptionError, match="learned by EM, which needs all rows at once"):
        mixture.partial_fit(rows)


def test_classes_of_later_rows_are_those_of_the_first() -> None:
    frame = pd.DataFrame({"a": [0, 1, 1, 0], "b": [0, 1, 0, 0]})
    net = sf.BayesianNetwork([("a", "b")], target="a").fit(frame)
    assert net.partial_fit(frame, classes=[0, 1]).classes_.tolist() == [0, 1]
    with pytest.raises(sf.OptionError, match="classes= holds 2; the target 'a' has the states 0, 1"):
        net.partial_fit(frame, classes=[0, 1, 2])
    glm = sf.GLM("binomial").partial_fit([[0.0], [1.0]], ["n", "y"], classes=["n", "y"])
    with pytest.raises(sf.OptionError, match="classes= holds 'maybe'"):
        glm.partial_fit([[0.0], [1.0]], ["n", "y"], classes=["n", "maybe"])


def test_rows_beside_intervals_of_wald_are_refused() -> None:
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [4.0]]), np.array([1, 2, 2, 5, 7])
    glm = sf.GLM("poisson").fit(X, y)
    with pytest.raises(sf.OptionError, match="'X=', 'y=' of intervals belong to method='profile'"):
        glm.intervals(X=X, y=y)
    assert glm.intervals(method="profile", X=X, y=y).shape == (2, 2)


def test_probabilities_are_no_states() -> None:
    with pytest.raises(sf.OptionError, match=r"add up to 1.*probabilities=\.\.\."):
        sf.Categorical([0.2, 0.8])
    assert sf.Categorical([0.5, 1.5]).fit([0.5, 1.5, 1.5]).probabilities_ == pytest.approx([1 / 3, 2 / 3])
    assert sf.Categorical([0.2, 0.8], [0.5, 0.5]).states_ == (0.2, 0.8)


def test_a_covariance_is_not_read_as_rows() -> None:
    S = np.array([[2.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.5]])
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")])
    for data in (pd.DataFrame(S, list("abc"), list("abc")), S):
        with pytest.raises(sf.OptionError, match=r"symmetric matrix.*fit\(covariance=\.\.\., n=\.\.\.\)"):
            graph.fit(data)
    with pytest.raises(sf.OptionError, match=r"n= is given without covariance=.*fit\(covariance="):
        graph.fit(S, n=20)
    assert graph.fit(covariance=S, n=20, columns=["a", "b", "c"]).report_.rows == 20
    rows = pd.DataFrame([[1.0, 2.0, 4.0], [2.0, 1.0, 3.0], [0.0, 5.0, 1.0], [1.0, 1.0, 2.0]], columns=list("abc"))
    assert graph.fit(rows).report_.rows == 4


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("cbind(k, r) ~ r", "share of successes.*trials="),
        ("k ~ factor(a)", r"Write C\(\)"),
        ("k ~ I(r^2)", r"Write I\(x\*\*2\)"),
        ("k ~ .", "dot is not known.*Name the columns"),
    ],
)
def test_words_of_formulas_of_r(formula: str, message: str) -> None:
    rows = pd.DataFrame({"k": [1, 2, 3, 1], "r": [0.5, 1.5, 2.5, 3.5], "a": list("xyxy")})
    with pytest.raises(sf.DataError, match=f"{message}.*'k', 'r', 'a'"):
        sf.GLM("poisson", formula=formula).fit(rows)


@pytest.mark.parametrize("make", [np.array, lambda w: np.array(w, dtype=object), pd.Series, lambda w: [w]])
def test_an_array_of_texts_holds_steps_whatever_its_storage(make: Any) -> None:
    words = ["walk", "shop", "clean", "walk"] * 3
    assert sf.MarkovChain().fit(make(words)).states_ == ("clean", "shop", "walk")
    hidden = sf.HiddenMarkovModel(2, sf.Categorical(), max_iter=50, tolerance=0.1).fit(make(words))
    assert hidden.emissions_[0].states_ == ("clean", "shop", "walk")


def test_a_list_of_labels_read_as_texts_is_told() -> None:
    words = ["walk", "shop", "clean"] * 3
    with pytest.warns(
        sf.KindWarning, match=r"9 texts, of which 3 differ.*9 sequences of characters.*give \[texts\]"
    ) as said:
        chain = sf.MarkovChain().fit(words)
    assert said[0].filename == __file__
    assert "w" in chain.states_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sf.MarkovChain().fit([words]).states_ == ("clean", "shop", "walk")
        assert sf.MarkovChain().fit([list(text) for text in words]).states_ == chain.states_
        assert sf.MarkovChain(tokens="characters").fit(words).states_ == chain.states_
        sf.MarkovChain().fit(["ACGT", "GGA", "ACCA", "TTGA", "CAGA", "GATA"])
        sf.MarkovChain().fit(list("abba") * 3)


@pytest.mark.parametrize("make", [lambda: sf.MarkovNetwork(["e", "c"]), lambda: sf.BayesianNetwork("e -> c")])
def test_a_column_of_counts_that_is_not_read_is_told(make: Any) -> None:
    cells = pd.DataFrame({"e": [0, 0, 1, 1], "c": [0, 1, 0, 1], "Freq": [10, 20, 30, 5]})
    with pytest.warns(sf.LeftOutWarning, match=r"'Freq' was not read: every row counted.*sample_weight='Freq'") as said:
        net = make().fit(cells)
    assert said[0].filename == __file__
    assert net.report_.weight == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make().fit(cells, sample_weight="Freq").report_.weight == 65
        assert make().fit(cells.drop(columns="Freq")).report_.weight == 4
