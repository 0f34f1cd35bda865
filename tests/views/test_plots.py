"""What the plots draw: positions, values and labels."""

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import suffice as sf

pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed (the extra 'viz')")

RNG = np.random.default_rng(3)
VALUES = RNG.normal(2.0, 1.5, 40)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    pyplot.close("all")


def texts(ax: Any) -> list[str]:
    return [text.get_text() for text in ax.texts if text.get_text()]


def segments(collection: Any) -> list[NDArray[np.float64]]:
    """The strokes of a collection of lines, each (points, 2)."""
    return [np.asarray(segment) for segment in collection.get_segments()]


def widths(ax: Any) -> list[float]:
    """How far each bar goes."""
    return [bar.get_width() for bar in ax.patches]


def test_network() -> None:
    ax = sf.plot.network(sf.BayesianNetwork([("top", "low"), ("other", "low")]))
    assert texts(ax) == ["top", "low", "other"]
    where = {text.get_text(): text.get_position() for text in ax.texts if text.get_text()}
    low, high = ax.get_ylim()
    assert low > high
    assert where["top"][1] == where["other"][1] < where["low"][1]
    assert len(ax.patches) == 3
    graph = sf.plot.network(sf.GaussianGraph([("a", "b"), ("b", "c"), ("c", "a")]))
    assert sorted(texts(graph)) == ["a", "b", "c"]
    with pytest.raises(sf.OptionError, match="Normal has no graph"):
        sf.plot.network(sf.Normal())


def test_table() -> None:
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": [0, 0, 1], "b": ["x", "y", "y"]})
    ax = sf.plot.table(net, "b")
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(np.array([[0.5, 0.5], [0.0, 1.0]]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a=0", "a=1"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["x", "y"]
    assert texts(ax) == ["0.5", "0.5", "0", "1"]
    mrf = sf.MarkovNetwork([("a", "b")]).fit({"a": [0, 0, 1], "b": ["x", "y", "y"]})
    drawn = np.asarray(sf.plot.table(mrf, ("a", "b")).images[0].get_array())
    assert drawn == pytest.approx(mrf.potential(("a", "b")).values)
    assert sf.plot.table(net.query("a"), ax=ax) is ax
    with pytest.raises(sf.OptionError, match="Say which table"):
        sf.plot.table(net)


def test_convergence() -> None:
    rows = {name: RNG.choice(2, 60) for name in "ABC"}
    mrf = sf.MarkovNetwork([("A", "B"), ("B", "C"), ("C", "A")], solver="lbfgs").fit(rows)
    (line,) = sf.plot.convergence(mrf).lines
    assert line.get_ydata() == pytest.approx(mrf.history_)
    ax = sf.plot.convergence(mrf, log=True)
    below = max(mrf.history_) - np.array(mrf.history_)
    assert ax.get_yscale() == "log"
    assert ax.lines[0].get_ydata() == pytest.approx(below[below > 0])
    with pytest.raises(sf.OptionError, match="without iterations"):
        sf.plot.convergence(sf.Normal().fit(VALUES))


def test_moments() -> None:
    law = sf.Normal().fit(VALUES)
    ax = sf.plot.moments(law)
    drawn = np.asarray(ax.collections[0].get_offsets())
    assert drawn == pytest.approx(np.repeat([[VALUES.mean()], [np.mean(VALUES**2)]], 2, axis=1))
    assert ax.get_title().startswith("moment gap ")
    assert len(ax.collections) == 1
    with pytest.raises(sf.OptionError, match="keeps no pairs"):
        sf.plot.moments(sf.MarkovNetwork([("a", "b")], hidden={"b": 2}, random_state=0).fit({"a": [0, 0, 1]}))


def test_moments_with_a_prior_and_with_sampled_expectations() -> None:
    glm = sf.GLM(family=sf.Poisson(), prior=sf.Normal(variance=0.01)).fit(VALUES[:, None], RNG.poisson(2, 40))
    matched: Any = glm.matched_statistics()
    strokes, points = sf.plot.moments(glm).collections
    assert np.asarray(points.get_offsets())[:, 0] == pytest.approx(matched.observed)
    ends = np.array([segment[1, 0] for segment in segments(strokes)])
    assert ends == pytest.approx(matched.expected, abs=1e-6)
    rows = {"a": RNG.integers(0, 2, 40), "b": RNG.integers(0, 2, 40)}
    net = sf.MarkovNetwork([("a", "b")], solver="sml", random_state=0).fit(rows)
    bars = segments(sf.plot.moments(net).collections[0])
    errors = net.matched_statistics().errors  # type: ignore[union-attr]
    assert errors is not None
    assert [bar[1, 1] - bar[0, 1] for bar in bars] == pytest.approx(4 * errors)


def test_posterior() -> None:
    net = sf.BayesianNetwork([("a", "b")], prior=2.0).fit({"a": [0, 0, 0, 1], "b": [0, 1, 1, 1]})
    ax = sf.plot.posterior(net, node="a", level=0.8)
    ends = np.array([segment[:, 0] for segment in segments(ax.collections[0])])
    assert ends == pytest.approx(np.array([stats.beta(5, 3).interval(0.8), stats.beta(3, 5).interval(0.8)]), rel=1e-9)
    drawn = {line.get_label(): line.get_xdata() for line in ax.lines}
    assert drawn["maximum likelihood"] == pytest.approx([3 / 4, 1 / 4])
    assert drawn["MAP"] == pytest.approx([4 / 6, 2 / 6])
    assert drawn["posterior mean"] == pytest.approx([5 / 8, 3 / 8])
    with pytest.raises(sf.EstimateError, match="Fit it with a prior="):
        sf.plot.posterior(sf.Normal().fit(VALUES))


def test_mle_vs_map_against_rows() -> None:
    law = sf.Bernoulli(prior=sf.Beta(2, 2), states=(0, 1)).fit([1, 1, 1, 0])
    sizes = [4.0, 40.0, 400.0]
    ax = sf.plot.mle_vs_map(law, sizes=sizes)
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert ax.lines[0].get_xdata() == pytest.approx(sizes)
    n = np.array(sizes)
    assert drawn["maximum likelihood"] == pytest.approx(np.full(3, 0.75))
    assert drawn["MAP"] == pytest.approx((0.75 * n + 1) / (n + 2))
    assert drawn["posterior mean"] == pytest.approx((0.75 * n + 2) / (n + 4))
    assert ax.get_xscale() == "log"


def test_mle_vs_map_on_the_beginnings_of_rows() -> None:
    rows = {"a": [0, 1, 1, 0, 1, 1, 1, 1], "b": [0, 1, 0, 0, 1, 1, 0, 1]}
    net = sf.BayesianNetwork([("a", "b")], prior=1.0, states={"a": [0, 1], "b": [0, 1]}).fit(rows)
    ax = sf.plot.mle_vs_map(net, node="a", parameter="a=1", data=rows, sizes=[2, 5, 8])
    drawn = {line.get_label(): line.get_ydata() for line in ax.lines}
    assert drawn["maximum likelihood"] == pytest.approx([1 / 2, 3 / 5, 6 / 8])
    assert drawn["posterior mean"] == pytest.approx([2 / 4, 4 / 7, 7 / 10])
    glm = sf.GLM(family=sf.Poisson(), prior=sf.Normal(variance=1.0)).fit(VALUES[:, None], RNG.poisson(2, 40))
    with pytest.raises(sf.OptionError, match=r"keeps no statistics.*give data="):
        sf.plot.mle_vs_map(glm)
    with pytest.raises(sf.OptionError, match="no parameter 'z'"):
        sf.plot.mle_vs_map(net, parameter="z")


def contour_at(ax: Any, level: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The points of a contour line."""
    for lines in ax.collections:
        if lines.get_array() is not None and not lines.filled and level in list(lines.levels):
            return np.asarray(lines.get_paths()[list(lines.levels).index(level)].vertices)
    raise AssertionError(f"no contour at {level}")


def test_likelihood_surface_of_a_law() -> None:
    ax = sf.plot.likelihood_surface(sf.Normal().fit(VALUES), points=121)
    mean, variance = VALUES.mean(), VALUES.var()
    star = ax.lines[0]
    assert (np.asarray(star.get_xdata())[0], np.asarray(star.get_ydata())[0]) == pytest.approx((mean, variance))
    # At the estimated variance the log-likelihood is quadratic in the mean: half a nat is one standard error away.
    line = contour_at(ax, -0.5)
    near = np.abs(line[:, 1] - variance) < 0.02 * variance
    assert np.abs(line[near, 0] - mean) == pytest.approx(np.full(near.sum(), np.sqrt(variance / 40)), rel=0.02)
    assert near.sum() >= 2


def test_a_regression_has_no_likelihood_surface() -> None:
    glm = sf.GLM(family=sf.Poisson()).fit(VALUES[:, None], RNG.poisson(2, 40))
    with pytest.raises(sf.OptionError, match="needs a model of two statistics"):
        sf.plot.likelihood_surface(glm)


def test_likelihood_surface_of_two_features() -> None:
    features = [sf.Feature(("A", "B"), lambda a, b: float(a == b)), sf.Feature(("A",), lambda a: float(a == 1))]
    mrf = sf.MarkovNetwork(features).fit({"A": RNG.choice(2, 80, p=[0.4, 0.6]), "B": RNG.choice(2, 80)})
    ax = sf.plot.likelihood_surface(mrf, points=31)
    # The features are independent under the law, each a coin with a logistic parameter.
    line = contour_at(ax, -2.0)
    observed = mrf.matched_statistics().observed  # type: ignore[union-attr]

    def drop(weights: Any) -> Any:
        coins = [w * m - np.log1p(np.exp(w)) for w, m in zip(weights.T, observed, strict=True)]
        best = [w * m - np.log1p(np.exp(w)) for w, m in zip(mrf.weights_, observed, strict=True)]
        return 80 * (sum(coins) - sum(best))

    assert drop(line) == pytest.approx(np.full(len(line), -2.0), abs=0.08)
    with pytest.raises(sf.OptionError, match="this Poisson has 1"):
        sf.plot.likelihood_surface(sf.Poisson().fit([1, 2]))


def test_precision() -> None:
    graph = sf.GaussianGraph([("a", "b"), ("b", "c")]).fit({name: RNG.normal(size=30) for name in "abc"})
    drawn = np.asarray(sf.plot.precision(graph).images[0].get_array())
    assert drawn == pytest.approx(graph.precision_)
    partial = np.asarray(sf.plot.precision(graph, partial=True).images[0].get_array())
    K = graph.precision_
    assert partial[0, 1] == pytest.approx(-K[0, 1] / np.sqrt(K[0, 0] * K[1, 1]))
    assert np.diag(partial) == pytest.approx(np.ones(3))


def test_states_of_a_hidden_markov_model() -> None:
    words = [list("aabbbbabab"), list("bbbaab")]
    hmm = sf.HiddenMarkovModel(["F", "L"], emission=sf.Categorical(), random_state=0).fit(words)
    ax = sf.plot.states(hmm, words[0], truth=list("FFLLLLFLFL"))
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(np.asarray(hmm.predict_proba([words[0]])[0]).T)
    path, truth = ax.lines
    assert ["FL"[int(at)] for at in np.asarray(path.get_ydata())] == list(hmm.predict([words[0]])[0])
    assert list(np.asarray(truth.get_ydata())) == [0, 0, 1, 1, 1, 1, 0, 1, 0, 1]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["F", "L"]
    with pytest.raises(sf.OptionError, match="draws one sequence; there are 2"):
        sf.plot.states(hmm, words)
    with pytest.raises(sf.DataError, match="truth has 2 states"):
        sf.plot.states(hmm, words[0], truth=["F", "L"])


def test_top_features() -> None:
    X = [[{"w": "the"}, {"w": "dog"}], [{"w": "dogs"}, {"w": "bark"}]]
    crf = sf.ChainCRF(prior=sf.Normal(variance=10.0), all_possible_states=True).fit(X, [["D", "N"], ["N", "V"]])
    pairs = {
        f"{f} → {y}": crf.state_weights_[i, j] for i, f in enumerate(crf.feature_names_) for j, y in enumerate("DNV")
    }
    largest = sorted(pairs.values(), key=abs)[-4:]
    ax = sf.plot.top_features(crf, 4)
    bars = dict(zip([tick.get_text() for tick in ax.get_yticklabels()], widths(ax), strict=True))
    assert sorted(bars.values()) == pytest.approx(sorted(largest))
    assert bars == pytest.approx({name: pairs[name] for name in bars})
    assert list(bars.values()) == sorted(bars.values(), reverse=True)
    own = sf.plot.top_features(crf, label="D")
    assert sorted(widths(own)) == pytest.approx(sorted(crf.state_weights_[:, 0]))
    assert own.get_yticklabels()[0].get_text() == "w:the"
    with pytest.raises(sf.DataError, match="'Q' is no label"):
        sf.plot.top_features(crf, label="Q")
    with pytest.raises(sf.OptionError, match="Normal has no weights of features"):
        sf.plot.top_features(sf.Normal())


def test_transitions() -> None:
    crf = sf.ChainCRF(prior=sf.Normal(variance=10.0)).fit([[{"w": "a"}, {"w": "b"}]], [["X", "Y"]])
    ax = sf.plot.transitions(crf)
    assert np.asarray(ax.images[0].get_array()) == pytest.approx(crf.transition_weights_)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["X", "Y"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("to", "from")
    chain = sf.MarkovChain().fit([list("aabbabab")])
    assert np.asarray(sf.plot.transitions(chain).images[0].get_array()) == pytest.approx(chain.transitions_.values)
    hmm = sf.HiddenMarkovModel(2, emission=sf.Categorical(), random_state=0).fit([list("aabbabab")])
    assert np.asarray(sf.plot.transitions(hmm).images[0].get_array()) == pytest.approx(hmm.transitions_)
    with pytest.raises(sf.OptionError, match="has no transitions"):
        sf.plot.transitions(sf.Normal().fit(VALUES))


def test_the_extra_is_named_where_matplotlib_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(sf.MissingExtraError, match=r"plot\.moments needs .*suffice\[viz\]"):
        sf.plot.moments(sf.Normal().fit(VALUES))
