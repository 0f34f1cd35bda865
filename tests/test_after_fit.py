"""What comes after a fit: tables of parameters, intervals, comparisons, the bootstrap."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.optimize import brentq
from scipy.stats import beta, chi2, multivariate_normal

import suffice as sf
from curvature import hessian
from label_paths import log_likelihood as chain_log_likelihood
from suffice.fitting.inference import profile_ends

minimize: Any = optimize.minimize
RNG = np.random.default_rng(20)
REACH = math.sqrt(float(chi2.ppf(0.95, 1)))


def gaussian_rows(n: int = 150) -> pd.DataFrame:
    a = RNG.normal(size=n)
    b = 0.6 * a + RNG.normal(size=n)
    c = -0.5 * b + RNG.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": 0.4 * a + 0.4 * c + RNG.normal(size=n)})


# -- errors: a numeric Hessian of the likelihood that its definition gives -------------------------------------------

SAMPLES: dict[str, tuple[Callable[[], Any], Any]] = {
    "normal": (sf.Normal, RNG.normal(2.0, 3.0, 80)),
    "mean of a normal": (lambda: sf.Normal(variance=4.0), RNG.normal(2.0, 2.0, 80)),
    "gamma": (sf.Gamma, RNG.gamma(2.5, 1.5, 80)),
    "beta": (sf.Beta, RNG.beta(2.0, 3.0, 80)),
    "exponential": (sf.Exponential, RNG.exponential(2.0, 80)),
    "poisson": (sf.Poisson, RNG.poisson(3.0, 80)),
    "geometric": (sf.Geometric, RNG.geometric(0.4, 80)),
    "bernoulli": (sf.Bernoulli, RNG.random(80) < 0.3),
    "negative binomial": (lambda: sf.NegativeBinomial(size=3.0), RNG.negative_binomial(3, 0.4, 80)),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_errors_of_distributions_are_those_of_their_curvature(name: str) -> None:
    make, rows = SAMPLES[name]
    law = make().fit(rows)
    table = law.summary()
    best = np.asarray(table.params)

    def value(point: np.ndarray) -> float:
        given = dict(zip(table.params.names, point.tolist(), strict=True))
        known = {key: option for key, option in law.get_params().items() if option is not None and key not in given}
        return float(np.sum(type(law)(**{**known, **given}).log_prob(rows)))

    covariance = np.linalg.inv(-hessian(value, best))
    assert np.asarray(table.bse) == pytest.approx(np.sqrt(np.diag(covariance)), rel=2e-5)
    assert table.cov_params().to_numpy() == pytest.approx(covariance, rel=2e-4, abs=1e-7)
    # A profile by a generic optimiser: the other parameter is found by a search without derivatives.
    top = value(best)
    for number, ends in enumerate(np.asarray(law.confidence_intervals(method="profile"))):

        def fall(held: float, number: int = number) -> float:
            others = np.delete(best, number)
            if not len(others):
                return 2.0 * (top - value(np.array([held]))) - REACH**2
            found = minimize(
                lambda rest: -value(np.insert(rest, number, held)) if (rest > 0).all() or name == "normal" else np.inf,
                others,
                method="Nelder-Mead",
                options={"xatol": 1e-10, "fatol": 1e-12},
            )
            return 2.0 * (top + float(found.fun)) - REACH**2

        for end in ends:
            assert fall(float(end)) == pytest.approx(0.0, abs=2e-6)


def test_errors_of_a_multivariate_normal_are_those_of_its_curvature() -> None:
    rows = gaussian_rows(60)[["a", "b"]].to_numpy()
    law = sf.MultivariateNormal().fit(rows)
    table = law.summary()

    def value(point: np.ndarray) -> float:
        covariance = np.array([[point[2], point[3]], [point[3], point[4]]])
        return float(multivariate_normal(point[:2], covariance).logpdf(rows).sum())

    covariance = np.linalg.inv(-hessian(value, np.asarray(table.params)))
    assert table.cov_params().to_numpy() == pytest.approx(covariance, rel=1e-4, abs=1e-7)
    errors = np.sqrt(np.diag(covariance))
    assert law.standard_errors_["mean"] == pytest.approx(errors[:2], rel=1e-4)
    assert law.standard_errors_["covariance"] == pytest.approx(errors[[[2, 3], [3, 4]]], rel=1e-4)
    assert sf.Normal(variance=4.0).fit([1.0, 2.0, 3.0, 4.0]).standard_errors_ == {"mean": pytest.approx(1.0)}


def test_errors_of_a_categorical_are_those_of_the_multinomial() -> None:
    law = sf.Categorical().fit(list("aabbbcccccc"))
    shares, n = np.array([2, 3, 6]) / 11, 11
    expected = (np.diag(shares) - np.outer(shares, shares)) / n
    assert law.summary().cov_params().to_numpy() == pytest.approx(expected, abs=1e-12)
    low, high = law.confidence_intervals(0.9, method="profile")["probabilities[b]"]
    # The published interval of a binomial proportion is this root: 3 of 11.
    for end in (low, high):
        ratio = 3 * math.log(3 / 11 / end) + 8 * math.log(8 / 11 / (1 - end))
        assert 2.0 * ratio == pytest.approx(float(chi2.ppf(0.9, 1)), abs=1e-8)


def test_errors_and_profiles_of_a_gaussian_graph() -> None:
    rows = gaussian_rows()
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    graph = sf.GaussianGraph(edges).fit(rows)
    table, names = graph.summary(), graph.nodes
    places = [_entry(name, names) for name in table.params.names[4:]]

    def value(point: np.ndarray) -> float:
        precision = np.zeros((4, 4))
        for (i, j), entry in zip(places, point[4:], strict=True):
            precision[i, j] = precision[j, i] = entry
        if np.linalg.eigvalsh(precision)[0] <= 0:
            return -np.inf
        away = rows[list(names)].to_numpy() - point[:4]
        quadratic = float(np.einsum("ni,ij,nj->", away, precision, away))
        return 0.5 * (len(rows) * (float(np.linalg.slogdet(precision)[1]) - 4 * math.log(2 * math.pi)) - quadratic)

    best = np.asarray(table.params)
    assert value(best) == pytest.approx(graph.log_likelihood_, abs=1e-8)
    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(value, best))))
    assert np.asarray(table.bse) == pytest.approx(errors, rel=1e-5)
    ends = graph.confidence_intervals(method="profile")
    number = next(k for k, place in enumerate(places) if set(place) == {0, names.index("b")}) + 4
    for end in np.asarray(ends)[number]:
        start = np.delete(best, number)
        loss = lambda rest, end=end: min(-value(np.insert(rest, number, end)), 1e9)  # noqa: E731
        found = minimize(loss, start, method="BFGS", options={"gtol": 1e-6})
        assert 2.0 * (value(best) + float(found.fun)) == pytest.approx(REACH**2, abs=1e-5)
    # With an edge at 0 the drop is the deviance of the graph without it.
    without = sf.GaussianGraph(edges[:3], nodes=list(names)).fit(rows)
    drop = graph.portrait().inference().drop  # type: ignore[union-attr]
    edge = next(k for k, place in enumerate(places) if set(place) == {0, 3}) + 4
    assert drop is not None
    assert drop(edge)(0.0) == pytest.approx(without.deviance_ - graph.deviance_, abs=1e-8)  # type: ignore[misc]


def _entry(name: str, nodes: tuple[Any, ...]) -> tuple[int, int]:
    first, second = name.removeprefix("precision[").rstrip("]").split(", ")
    return nodes.index(first), nodes.index(second)


def test_errors_and_profiles_of_features() -> None:
    rows = (gaussian_rows(120)[["a", "b"]] > 0).astype(int)
    features = [
        sf.Feature(("a",), lambda a: a, name="a"),
        sf.Feature(("b",), lambda b: b, name="b"),
        sf.Feature(("a", "b"), lambda a, b: a * b, name="ab"),
    ]
    network = sf.MarkovNetwork(features).fit(rows)
    cells = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 1, 1]], dtype=float)
    seen = np.column_stack([rows["a"], rows["b"], rows["a"] * rows["b"]]).sum(axis=0)

    def value(weights: np.ndarray) -> float:
        return float(seen @ weights - len(rows) * np.log(np.exp(cells @ weights).sum()))

    table, best = network.summary(), network.weights_
    covariance = np.linalg.inv(-hessian(value, best))
    assert table.cov_params().to_numpy() == pytest.approx(covariance, rel=1e-5)
    assert np.asarray(table.tvalues) == pytest.approx(best / np.sqrt(np.diag(covariance)), rel=1e-5)
    # The interaction is the log odds ratio, whose profile the table of counts gives.
    for end in network.confidence_intervals(method="profile")["ab"]:
        found = minimize(lambda rest, end=end: -value(np.append(rest, end)), best[:2], method="BFGS")
        assert 2.0 * (value(best) + float(found.fun)) == pytest.approx(REACH**2, abs=1e-6)


def test_a_network_has_the_errors_of_its_nodes() -> None:
    rows = gaussian_rows(100)
    rows["k"] = np.where(rows["a"] > 0, "yes", "no")
    network = sf.BayesianNetwork([("k", "b"), ("a", "b"), ("b", "c")]).fit(rows[["k", "a", "b", "c"]])
    table = network.summary()
    share, n = (rows["k"] == "yes").mean(), len(rows)
    assert table.bse["P(k=yes)"] == pytest.approx(math.sqrt(share * (1 - share) / n))
    inside = rows[rows["k"] == "yes"]
    X = np.column_stack([np.ones(len(inside)), inside["a"]])

    def value(point: np.ndarray) -> float:
        away = inside["b"].to_numpy() - X @ point[:2]
        return float(-0.5 * len(inside) * math.log(2 * math.pi * point[2]) - 0.5 * away @ away / point[2])

    names = [f"b: {part} | k=yes" for part in ("(intercept)", "a", "(variance)")]
    best = np.array([table.params[name] for name in names])
    covariance = np.linalg.inv(-hessian(value, best))
    assert table.cov_params().loc[names, names].to_numpy() == pytest.approx(covariance, rel=1e-4, abs=1e-6)
    ends = network.confidence_intervals(method="profile")
    for number, name in enumerate(names):
        for end in ends[name]:
            found = minimize(
                lambda rest, end=end, number=number: -value(np.insert(rest, number, end)),
                np.delete(best, number),
                method="Nelder-Mead",
                options={"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000},
            )
            assert 2.0 * (value(best) + float(found.fun)) == pytest.approx(REACH**2, abs=1e-5)
    assert "b: a | k=no" in table.params.names


def test_posterior_intervals_are_quantiles_of_the_posterior() -> None:
    rows = pd.DataFrame({"a": ["x", "y", "y", "x", "y"], "b": [0, 1, 1, 1, 0]})
    network = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(rows)

    assert network.confidence_intervals(0.9, method="posterior")["P(a=y)"] == pytest.approx(
        beta(4, 3).ppf([0.05, 0.95])
    )
    law = sf.Bernoulli(prior=sf.Beta(2.0, 2.0)).fit([0, 1, 1])
    assert law.confidence_intervals(method="posterior")["probability"] == pytest.approx(beta(4, 3).ppf([0.025, 0.975]))
    with pytest.raises(sf.EstimateError, match="no posterior"):
        sf.Normal().fit([1.0, 2.0, 4.0]).confidence_intervals(method="posterior")


def test_errors_of_a_chain_crf_are_those_of_its_curvature() -> None:
    X = [RNG.normal(size=(length, 2)) for length in (3, 4, 2, 4, 3, 4, 3)]
    Y = [["u" if value > 0 else "v" for value in (x[:, 0] + RNG.normal(size=len(x)))] for x in X]
    field = sf.ChainCRF(prior=sf.Normal(variance=5.0), tolerance=1e-10).fit(X, Y)
    codes = [[field.labels_.index(label) for label in labels] for labels in Y]

    def value(weights: np.ndarray) -> float:
        states, transitions = weights[:4].reshape(2, 2), weights[4:].reshape(2, 2)
        return float(chain_log_likelihood(X, codes, states, transitions)) - float(weights @ weights) / 10.0

    assert [name[0] for name in field.weight_names_] == ["state"] * 4 + ["transition"] * 4
    covariance = np.linalg.inv(-hessian(value, field.weights_))
    assert field.standard_errors_of(X, Y) == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-5)
    table = field.summary(0.9, X, Y)
    assert table.cov_params().to_numpy() == pytest.approx(covariance, rel=1e-4, abs=1e-6)
    assert np.isnan(field.summary().bse).all()
    assert "examples again" in str(field.summary())
    # Without a prior what changes no distribution is left out: the error of a contrast of labels stays.
    free = sf.ChainCRF(tolerance=1e-10).fit(X, Y)
    spread = np.linalg.pinv(-hessian(lambda w: value(w) + float(w @ w) / 10.0, free.weights_), rcond=1e-6)
    assert free.standard_errors_of(X, Y) == pytest.approx(np.sqrt(np.diag(spread)), rel=1e-4)


def test_some_weights_of_a_wide_field_are_tested_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the information of all is too large, conjugate gradients give the columns that a test needs."""
    X = [RNG.normal(size=(length, 3)) for length in (3, 4, 5, 4, 3, 6, 3)]
    Y = [["u" if value > 0 else "v" for value in (x[:, 0] + RNG.normal(size=len(x)))] for x in X]
    field = sf.ChainCRF(prior=sf.Normal(variance=5.0)).fit(X, Y)
    names = list(field.summary().params.names[:2])
    whole = sf.wald_test(field, names, X, y=Y)
    monkeypatch.setattr("suffice.models.conditional_field.estimates.MOST_WEIGHTS", 4)
    assert sf.wald_test(field, names, X, y=Y).statistic == pytest.approx(whole.statistic, rel=1e-4)
    assert "would take" in str(field.summary(0.9, X, Y))


def test_errors_of_a_graph_crf_are_those_of_its_curvature() -> None:
    graphs, labels = [], []
    for size in (3, 4, 3, 4, 3):
        nodes = RNG.normal(size=(size, 1))
        edges = [(k, k + 1) for k in range(size - 1)] + [(0, size - 1)]
        graphs.append(sf.GraphExample(nodes, edges))
        labels.append(["u" if value > 0 else "v" for value in nodes[:, 0] + RNG.normal(size=size)])
    field = sf.GraphCRF(prior=sf.Normal(variance=4.0), tolerance=1e-10).fit(graphs, labels)

    def value(weights: np.ndarray) -> float:
        total = -float(weights @ weights) / 8.0
        for example, own in zip(graphs, labels, strict=True):
            scores = []
            for codes in np.ndindex(*[2] * len(own)):
                score = 0.0
                for name, weight in zip(field.weight_names_, weights, strict=True):
                    named = [field.labels_.index(part) for part in name[1:-1]]
                    if name[0] == "nodes":
                        score += weight * sum(
                            x for x, c in zip(example.nodes[:, 0], codes, strict=True) if c == named[0]
                        )
                    else:
                        score += weight * sum([codes[a], codes[b]] == named for a, b in example.edges)
                scores.append(score)
            place = np.ravel_multi_index([field.labels_.index(label) for label in own], [2] * len(own))
            total += scores[int(place)] - float(np.log(np.exp(scores).sum()))
        return total

    errors = np.sqrt(np.diag(np.linalg.inv(-hessian(value, field.weights_))))
    assert field.standard_errors_of(graphs, labels) == pytest.approx(errors, rel=1e-5)


def test_a_markov_chain_and_a_hidden_one_have_names_for_their_parameters() -> None:
    sequences = [list("aabab"), list("babba"), list("ab")]
    chain = sf.MarkovChain().fit(sequences)
    table = chain.summary()
    assert table.bse["P(b | a)"] == pytest.approx(chain.standard_errors_["a", "b"])
    assert np.diag(table.cov_params()) == pytest.approx(np.asarray(table.bse) ** 2)
    hidden = sf.HiddenMarkovModel(["F", "L"], emission=sf.Categorical(), prior=1.0).fit(
        ["HTHH", "HHT"], states=["FFLL", "LLF"]
    )
    named = hidden.summary()
    assert named.params["P(L | F)"] == pytest.approx(hidden.transitions_[0, 1])
    assert named.bse["P(H | L)"] == pytest.approx(hidden.standard_errors_["emissions"]["probabilities"][1, 0])


# -- published figures -----------------------------------------------------------------------------------------------


def budworm() -> tuple[pd.DataFrame, np.ndarray]:
    """Moths killed of 20 by log dose and sex (Venables and Ripley 2002, section 7.2)."""
    killed = np.array([1, 4, 9, 13, 18, 20, 0, 2, 6, 10, 12, 16])
    male = np.repeat([1.0, 0.0], 6)
    table = pd.DataFrame({"sexF": 1.0 - male, "sexM": male, "ldose": np.tile(np.arange(6.0), 2)})
    return table, np.column_stack([killed, 20 - killed])


def test_profile_intervals_are_those_of_r() -> None:
    """`confint(budworm.lg0)` in the help page of confint.glm of MASS; R interpolates a grid by a spline."""
    X, y = budworm()
    model = sf.GLM("binomial", fit_intercept=False).fit(X, y)
    ends = model.confidence_intervals(0.95, X, y, method="profile")
    published = {"sexF": (-4.4581438, -2.613736), "sexM": (-3.1728745, -1.655117), "ldose": (0.8228708, 1.339058)}
    for name, expected in published.items():
        assert ends[name] == pytest.approx(expected, rel=1e-4)


def test_a_summary_has_the_figures_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    X, y = budworm()
    theirs = sm.GLM(y, X, family=sm.families.Binomial()).fit(tol=1e-14)
    mine = sf.GLM("binomial", fit_intercept=False).fit(X, y).summary()
    assert np.asarray(mine.params) == pytest.approx(theirs.params.to_numpy(), rel=1e-8)
    assert np.asarray(mine.bse) == pytest.approx(theirs.bse.to_numpy(), rel=1e-6)
    assert np.asarray(mine.pvalues) == pytest.approx(theirs.pvalues.to_numpy(), rel=1e-5)
    assert np.asarray(mine.conf_int()) == pytest.approx(theirs.conf_int().to_numpy(), rel=1e-6)
    assert mine.cov_params().to_numpy() == pytest.approx(theirs.cov_params().to_numpy(), rel=1e-5)
    assert mine.aic == pytest.approx(theirs.aic)


# -- tables ----------------------------------------------------------------------------------------------------------


def test_a_table_is_text_a_frame_a_page_and_latex() -> None:
    table = sf.Normal().fit([1.0, 2.0, 4.0, 7.0]).summary(0.9)
    assert str(table).splitlines()[0].split() == ["model", "Normal"]
    assert list(table.to_frame().columns) == ["estimate", "std. error", "z", "p value", "5%", "95%"]
    assert math.isnan(table.pvalues["variance"])
    assert table.pvalues["mean"] < 0.01
    assert "<th>variance</th>" in table._repr_html_()
    latex = table.to_latex().splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrrrr}"
    assert r"5\%" in latex[2]
    assert table.llf == pytest.approx(sf.Normal().fit([1.0, 2.0, 4.0, 7.0]).log_likelihood_)


def test_names_are_escaped_for_latex() -> None:
    table = sf.BayesianNetwork([("a_1", "b&c")]).fit({"a_1": [0, 1, 1], "b&c": [1, 0, 1]}).summary()
    assert r"P(b\&c=0 \textbar{} a\_1=1)" in table.to_latex()


def test_a_model_without_a_fit_says_so() -> None:
    with pytest.raises(sf.NotFittedError):
        sf.Normal().summary()
    with pytest.raises(sf.NotFittedError):
        sf.BayesianNetwork([("a", "b")]).bootstrap(n=3)


def test_what_has_no_effect_is_refused() -> None:
    law = sf.Normal().fit([1.0, 2.0, 4.0])
    with pytest.raises(sf.OptionError, match="n has no effect"):
        law.confidence_intervals(n=10)
    with pytest.raises(sf.OptionError, match="give no rows"):
        law.confidence_intervals(0.9, [1.0, 2.0, 4.0])
    with pytest.raises(sf.OptionError, match="level is 95"):
        law.summary(95)
    with pytest.raises(sf.OptionError, match="a model keeps none"):
        law.bootstrap(kind="case")


def test_a_target_that_a_model_has_not_is_remarked_on_in_refits() -> None:
    rows = {"a": [0, 1, 1, 0, 1], "b": [1, 0, 1, 0, 1]}
    network = sf.BayesianNetwork([("a", "b")], prior=1.0).fit(rows)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        network.bootstrap(rows, [1, 2, 3, 4, 5], n=3)
    with pytest.warns(sf.SufficeWarning, match="y is not used"):
        sf.compare(network, network, names=["one", "two"], data=rows, y=[1, 2, 3, 4, 5])


def test_a_parametric_bootstrap_that_draws_nothing_is_refused_before_the_refits() -> None:
    X, y = budworm()
    model, law = sf.GLM("binomial", fit_intercept=False).fit(X, y), sf.Normal().fit([1.0, 2.0, 4.0])
    with pytest.raises(sf.OptionError, match=r"^A parametric bootstrap draws all rows from the fit"):
        law.bootstrap([1.0, 2.0, 4.0], kind="parametric")
    with pytest.raises(sf.OptionError, match=r"^Responses are drawn given rows"):
        model.bootstrap(X, kind="parametric")


def test_refits_learn_from_the_columns_of_the_fit_alone() -> None:
    """Columns more or fewer would make refits of another model, whose figures stood beside those of this one."""
    frame = gaussian_rows(80)[["a", "b", "c"]]
    response = 1.0 + frame["a"] + np.sin(np.arange(80.0))
    small, large = sf.GLM("gaussian").fit(frame[["a"]], response), sf.GLM("gaussian").fit(frame, response)
    table = sf.compare(small, large, names=["small", "large"], data=frame, y=response)
    own = sf.compare(small, small, names=["small", "again"], data=frame[["a"]], y=response)
    assert table["held out"]["small"] == own["held out"]["small"] != table["held out"]["large"]
    with pytest.raises(sf.DataError, match=r"no columns 'b', 'c'"):
        sf.compare(small, large, data=frame[["a"]], y=response)
    wide, narrow = (small.bootstrap(rows, response, n=5, threads=1) for rows in (frame, frame[["a"]]))
    assert np.array_equal(wide.estimates, narrow.estimates)
    named = sf.GLM("gaussian").fit(frame[["a", "c"]], "c").bootstrap(frame, "c", n=5, threads=1)
    apart = sf.GLM("gaussian").fit(frame[["a"]], frame["c"]).bootstrap(frame[["a"]], frame["c"], n=5, threads=1)
    assert named.estimates == pytest.approx(apart.estimates)
    array = sf.GLM("gaussian").fit(frame[["a"]].to_numpy(), response)
    with pytest.raises(sf.DataError, match="3 columns, and this GLM was fitted to 1"):
        array.bootstrap(frame.to_numpy(), response, n=5)
    law, joint = sf.MultivariateNormal().fit(frame[["a"]]), sf.MultivariateNormal().fit(frame)
    with pytest.raises(sf.DataError, match="models of different columns: one alone has 'b', 'c'"):
        sf.compare(law, joint, names=["one", "all"], data=frame)


def test_a_bootstrap_of_no_rows_is_refused() -> None:
    law = sf.Normal().fit([1.0, 2.0, 4.0])
    empties: tuple[Any, ...] = ([], {}, np.zeros((0, 2)))
    for empty in empties:
        with pytest.raises(sf.DataError, match=r"no rows to draw from.*Give the rows"):
            law.bootstrap(empty)
    with pytest.raises(sf.DataError, match="all their weights are 0"):
        law.bootstrap([1.0, 2.0], sample_weight=[0, 0])
    with pytest.raises(sf.DataError, match="sample_weight of row 1 is nan"):
        law.bootstrap([1.0, 2.0], sample_weight=[1.0, math.nan])
    strangers: tuple[Any, ...] = (np.array(5.0), {"x": 1.0}, "rows.csv", 3)
    for strange in strangers:
        with pytest.raises(sf.OptionError, match=r"in memory.*Give a frame, an array"):
            law.bootstrap(strange)


def test_ends_of_a_profile_are_roots_and_stop_at_an_edge() -> None:
    low, high = profile_ends(lambda x: (x - 1.0) ** 2 / 4.0, 1.0, 2.0, 1.5)
    assert (low, high) == pytest.approx((-2.0, 4.0), abs=1e-9)
    assert profile_ends(lambda x: 0.01 * x * x, 0.0, 1.0, 2.0, (-1.0, math.inf)) == pytest.approx(
        (-1.0, 20.0), abs=1e-8
    )
    assert profile_ends(lambda x: 0.0 if x > 0 else x * x, 0.0, 1.0, 2.0)[1] == math.inf


def test_a_count_of_zero_has_an_interval_from_zero() -> None:
    """With 0 of n the upper end is 1 - exp(-q / 2n), the root of its only term."""
    ends = sf.Categorical(states=["a", "b"]).fit(["a"] * 10).confidence_intervals(method="profile")
    assert ends["probabilities[b]"] == pytest.approx((0.0, 1.0 - math.exp(-(REACH**2) / 20.0)), abs=1e-9)


# -- comparing -------------------------------------------------------------------------------------------------------


def test_models_are_compared_by_their_figures_and_by_rows_held_out() -> None:
    rows = (gaussian_rows(90)[["a", "b", "c"]] > 0).astype(int)
    chain = sf.MarkovNetwork([("a", "b"), ("b", "c")]).fit(rows)
    net = sf.BayesianNetwork([("a", "b"), ("b", "c")], prior="bdeu").fit(rows)
    table = sf.compare(chain, net, names=["chain", "net"], data=rows, folds=3)
    assert table["AIC"] == {"chain": chain.aic_, "net": net.aic_}
    assert math.isnan(table["log evidence"]["chain"])
    assert table["log evidence"]["net"] == net.report_.log_evidence
    assert table.best("AIC") == min(table["AIC"], key=lambda name: table["AIC"][name])
    parts = np.random.default_rng(0).permutation(90) % 3
    total = 0.0
    for part in range(3):
        fitted = sf.BayesianNetwork([("a", "b"), ("b", "c")], prior="bdeu").fit(rows[parts != part])
        total += float(fitted.score_samples(rows[parts == part]).sum())
    assert table["held out"]["net"] == pytest.approx(total / 90, abs=1e-12)
    assert list(table.to_frame().index) == ["chain", "net"]
    assert "chain" in table._repr_html_()


def test_a_model_without_a_likelihood_leaves_its_cells_empty() -> None:
    X, y = RNG.normal(size=(60, 2)), RNG.poisson(2.0, 60)
    plain, quasi = sf.GLM("poisson").fit(X, y), sf.GLM("quasipoisson").fit(X, y)
    given: list[dict[str, Any]] = [{}, {"data": X, "y": y, "folds": 3}]
    for rows in given:
        table = sf.compare(plain, quasi, names=["plain", "quasi"], **rows)
        assert table["AIC"]["plain"] == plain.aic_
        assert table["parameters"] == {"plain": 3.0, "quasi": quasi.n_params_}
        assert all(math.isnan(table[name]["quasi"]) for name in ("log-likelihood", "AIC", "BIC", "held out"))
        assert table.best("AIC") == "plain"
        assert "nan" not in str(table)


def test_models_of_other_rows_are_not_compared() -> None:
    first, second = sf.Normal().fit([1.0, 2.0]), sf.Normal().fit([1.0, 2.0, 3.0])
    with pytest.raises(sf.DataError, match="the weights 2 and 3"):
        sf.compare(first, second)
    with pytest.raises(sf.OptionError, match="two models"):
        sf.compare(first)
    with pytest.raises(sf.OptionError, match="without data="):
        sf.compare(first, first, folds=3)


# -- the bootstrap ---------------------------------------------------------------------------------------------------


def test_cases_are_drawn_as_rows_would_be() -> None:
    """A weight of two is a row twice: each refit is one to rows that are repeated."""
    rows = gaussian_rows(40)
    graph = sf.GaussianGraph([("a", "b"), ("b", "c"), ("c", "d")]).fit(rows)
    drawn = graph.bootstrap(rows, n=5, random_state=3, threads=1)
    seed = np.random.SeedSequence(int(np.random.default_rng(3).integers(2**63)))
    for own, estimates in zip(seed.spawn(5), drawn.estimates, strict=True):
        times = np.random.default_rng(own).multinomial(40, np.full(40, 1 / 40))
        again = sf.GaussianGraph([("a", "b"), ("b", "c"), ("c", "d")]).fit(rows.loc[np.repeat(rows.index, times)])
        assert estimates == pytest.approx(np.asarray(again.summary().params), abs=1e-10)


def test_threads_change_no_draw() -> None:
    rows = (gaussian_rows(60)[["a", "b"]] > 0).astype(int)
    network = sf.BayesianNetwork([("a", "b")]).fit(rows)
    one, two = (network.bootstrap(rows, n=12, threads=threads) for threads in (1, 2))
    assert np.array_equal(one.estimates, two.estimates)
    assert np.array_equal(
        network.bootstrap(n=6, threads=2).estimates, network.bootstrap(n=6, threads=1, progress=True).estimates
    )


def test_spread_of_refits_is_near_the_standard_errors() -> None:
    X, y = budworm()
    model = sf.GLM("binomial", fit_intercept=False).fit(X, y)
    drawn = model.bootstrap(X, y, n=400, kind="parametric")
    # The standard deviation of 400 draws has itself an error of 1 in 28.
    assert np.asarray(drawn.standard_errors) == pytest.approx(np.asarray(model.standard_errors_), rel=0.15)
    ends = drawn.intervals(0.9)
    assert ends["ldose"][0] < model.parameters_["ldose"] < ends["ldose"][1]
    expected = np.quantile(drawn.estimates[:, 2], [0.05, 0.95], method="weibull")
    assert ends["ldose"] == pytest.approx(expected)
    basic = drawn.intervals(0.9, method="basic")["ldose"]
    assert basic == pytest.approx(2 * model.parameters_["ldose"] - ends["ldose"][::-1])
    assert drawn.covariance == pytest.approx(np.cov(drawn.estimates.T))
    assert drawn.to_frame().shape == (400, 3)


def test_intervals_by_the_bootstrap_are_its_percentiles() -> None:
    law, rows = sf.Poisson().fit([1, 2, 3, 4, 0, 2]), [1, 2, 3, 4, 0, 2]
    ends = law.confidence_intervals(0.8, rows, method="bootstrap", n=50, random_state=1, threads=1)
    assert ends == pytest.approx(law.bootstrap(rows, n=50, random_state=1).intervals(0.8))


def test_ctrl_c_gives_the_refits_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    law, calls, plain = sf.Normal().fit([1.0, 2.0, 4.0, 8.0]), [0], sf.Normal.fit

    def fit(self: Any, *args: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == 8:
            raise KeyboardInterrupt
        return plain(self, *args, **more)

    monkeypatch.setattr(sf.Normal, "fit", fit)
    with pytest.warns(sf.SufficeWarning, match="7 of 50"):
        drawn = law.bootstrap([1.0, 2.0, 4.0, 8.0], n=50, threads=1)
    assert drawn.n == 7
    assert "7 refits of 50 asked for" in str(drawn)


def test_refits_that_fail_are_counted() -> None:
    """Of three equal rows the variance is 0, and there is no maximum: 1 draw in 9 of three rows is of that kind."""
    drawn = sf.Normal().fit([1.0, 2.0, 4.0]).bootstrap([1.0, 2.0, 4.0], n=200)
    assert 5 <= drawn.failed <= 45
    assert drawn.n + drawn.failed == 200
    assert f"{drawn.failed} failed" in str(drawn)


def test_latent_states_keep_their_names_in_refits() -> None:
    rng = np.random.default_rng(2)
    sequences = []
    for _ in range(12):
        state = np.cumsum(rng.random(40) < 0.1) % 2
        sequences.append(rng.normal(size=40) + 4.0 * state)
    model = sf.HiddenMarkovModel(2, sf.Normal(), n_init=2).fit(sequences)
    drawn = model.bootstrap(sequences, n=10)
    means = [number for number, name in enumerate(drawn.names) if name.startswith("means")]
    assert np.abs(drawn.estimates[:, means] - drawn.original[means]).max() < 1.0


def test_weights_that_are_counts_are_rows() -> None:
    cells = pd.DataFrame({"a": [0, 0, 1, 1], "b": [0, 1, 0, 1]})
    network = sf.BayesianNetwork([("a", "b")]).fit(cells, sample_weight=[30, 10, 20, 40])
    drawn = network.bootstrap(cells, sample_weight=[30, 10, 20, 40], n=300)
    assert drawn.standard_errors["P(a=1)"] == pytest.approx(math.sqrt(0.6 * 0.4 / 100), rel=0.15)


def test_a_root_by_hand_is_the_profile_of_a_rate() -> None:
    """Of a Poisson rate with a total of 12 in 6 rows: 2 (12 log(2 / r) - 12 + 6 r) = q."""
    ends = sf.Poisson().fit([1, 2, 3, 4, 0, 2]).confidence_intervals(method="profile")["rate"]
    root = lambda r: 2 * (12 * math.log(2 / r) - 12 + 6 * r) - REACH**2  # noqa: E731
    assert ends == pytest.approx([brentq(root, 0.5, 2), brentq(root, 2, 6)], abs=1e-8)
