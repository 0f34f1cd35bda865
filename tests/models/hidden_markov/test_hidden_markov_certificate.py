"""What a hidden chain proves: existence by one definition, and exact gaps where every state is known."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import suffice as sf
from suffice.models.hidden_markov.learning import Learner

HMM = sf.HiddenMarkovModel
SEEN = ["abab", "bbaa", "aabb", "abba"]
PATHS = ["XXYY", "YXXY", "XYYX", "YYXX"]


def counts_of(sequences: Any, paths: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, pairs, symbols = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for seen, path in zip(sequences, paths, strict=True):
        first["XY".index(path[0])] += 1
        for a, b in itertools.pairwise(path):
            pairs["XY".index(a), "XY".index(b)] += 1
        for state, symbol in zip(path, seen, strict=True):
            symbols["XY".index(state), "ab".index(symbol)] += 1
    return first, pairs, symbols


def loss(model: Any, sequences: Any, paths: Any, added: float = 0.0) -> float:
    """Nats a step that tables lose to (n + added) / N, over all rows."""
    lost = 0.0
    tables = (model.initial_[None], model.transitions_, model.emission_probabilities_)
    for counts, table in zip(counts_of(sequences, paths), tables, strict=True):
        for row, shares in zip(np.atleast_2d(counts) + added, table, strict=True):
            used = row > 0
            lost += float((row[used] * (np.log(row[used] / row.sum()) - np.log(shares[used]))).sum())
    return lost / sum(map(len, sequences))


# -- known states ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, 0.5])
def test_counts_are_exact_and_say_so(prior: float | None) -> None:
    model = HMM(["X", "Y"], sf.Categorical(), prior=prior).fit(SEEN, PATHS)
    certificate = model.report_.certificate
    assert (certificate.exists, certificate.bound, certificate.directions) == (True, True, ())
    assert certificate.value_gap is not None
    assert loss(model, SEEN, PATHS, prior or 0.0) <= certificate.value_gap < 1e-13
    assert "at most" in dict(model.report_.lines())["from optimum"]


@pytest.mark.parametrize("prior", [None, 0.5])
def test_a_tampered_m_step_is_seen(prior: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Learner.learn

    def wrong(self: Learner, statistics: Any, before: Any) -> Any:
        found = right(self, statistics, before)
        return replace(found, transitions=0.7 * found.transitions + 0.3 * np.eye(2))

    monkeypatch.setattr(Learner, "learn", wrong)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        model = HMM(["X", "Y"], sf.Categorical(), prior=prior).fit(SEEN, PATHS)
    lost = loss(model, SEEN, PATHS, prior or 0.0)
    assert lost > 1e-3
    assert model.report_.certificate.value_gap == pytest.approx(lost, rel=1e-9)
    assert model.report_.certificate.moment_gap > 0.01


def test_what_was_never_seen_runs_to_zero() -> None:
    model = HMM(["X", "Y"], sf.Categorical(states=["a", "b", "c"])).fit(["ab", "ab"], ["XY", "XY"])
    certificate = model.report_.certificate
    assert certificate.exists is False
    assert model.converged_
    assert set(certificate.directions) == {
        "P(first state 'Y') -> 0: never seen",
        "P('X' -> 'X') -> 0: never seen",
        "P('b' | state 'X') -> 0: never seen",
        "P('c' | state 'X') -> 0: never seen",
        "P('a' | state 'Y') -> 0: never seen",
        "P('c' | state 'Y') -> 0: never seen",
    }  # No step leaves Y, so that its row is not determined.
    with_prior = HMM(["X", "Y"], sf.Categorical(states=["a", "b", "c"]), prior=0.1).fit(["ab", "ab"], ["XY", "XY"])
    assert with_prior.report_.certificate.exists is True
    forbidden = HMM(["X", "Y"], sf.Categorical(), transitions=[[0, 1], [0.5, 0.5]], initial=[1, 0])
    found = forbidden.fit(["abb", "aba"], ["XYY", "XYX"]).report_.certificate.directions
    assert not any("first" in text or "'X' -> 'X'" in text for text in found)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical", "tied"])
def test_normal_laws_of_known_states_have_exact_gaps(covariance: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(40, 2)) @ np.array([[1.0, 0.5], [0.0, 2.0]])
    path = np.tile(["X", "X", "Y", "Y", "X"], 8)
    x, states = [steps[:22], steps[22:]], [path[:22], path[22:]]
    model = HMM(["X", "Y"], sf.MultivariateNormal(), covariance=covariance)
    certificate = model.clone().fit(x, states).report_.certificate
    assert (certificate.exists, certificate.bound) == (True, True)
    assert certificate.value_gap is not None
    assert certificate.value_gap < 1e-12
    best = model.clone().fit(x, states).report_.log_likelihood
    right = Learner.learn

    def wrong(self: Learner, statistics: Any, before: Any) -> Any:
        found = right(self, statistics, before)
        return replace(found, emission={**found.emission, "means": found.emission["means"] + 0.3})

    monkeypatch.setattr(Learner, "learn", wrong)
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        bad = model.clone().fit(x, states).report_
    assert bad.certificate.value_gap == pytest.approx((best - bad.log_likelihood) / 40, rel=1e-8)


def test_a_collapsed_law_of_known_states_names_state_and_column() -> None:
    table = {"level": [1.0, 1.0, 1.0, 2.0, 3.0, 5.0], "other": [1.0, 2.0, 0.0, 2.0, 1.0, 0.5]}
    law = {"level": sf.Normal(), "other": sf.Normal()}
    report = HMM(["X", "Y"], law).fit(table, ["X", "X", "X", "Y", "Y", "Y"]).report_
    assert report.certificate.exists is False
    assert any("'level'" in text and "'X'" in text for text in report.certificate.directions)
    assert report.certificate.value_gap is None
    assert not report.certificate.bound


@pytest.mark.parametrize(
    ("law", "x", "exists"),
    [
        (sf.Poisson(), [0, 0, 0, 3, 1, 2], False),
        (sf.Poisson(), [0, 1, 0, 3, 1, 2], True),
        (sf.Exponential(), [0.5, 1.0, 0.2, 3.0, 1.0, 2.0], True),
        (sf.Gamma(), [0.5, 0.5, 0.5, 3.0, 1.0, 2.0], False),
        (sf.Gamma(), [0.5, 0.7, 0.4, 3.0, 1.0, 2.0], True),
        (sf.Geometric(), [0, 0, 0, 3, 1, 2], False),
        (sf.Geometric(), [0, 2, 0, 3, 1, 2], True),
        (sf.Poisson(prior=sf.Gamma(2.0, 1.0)), [0, 0, 0, 3, 1, 2], True),
    ],
)
def test_families_of_known_states_decide(law: Any, x: list[float], exists: bool) -> None:
    states = ["X", "X", "X", "Y", "Y", "Y"]
    model = HMM(["X", "Y"], law, prior={"initial": 1.0, "transitions": 1.0}).fit(x, states)
    assert model.report_.certificate.exists is exists
    if not exists:
        assert any("'X'" in text for text in model.report_.certificate.directions)


# -- hidden states ---------------------------------------------------------------------------------------------------


def test_a_variance_at_its_floor_does_not_exist() -> None:
    """The same data as a mixture network: the variance of a state runs to 0."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=30), np.full(5, 7.0)])
    report = HMM(2, {"x": sf.Normal()}, n_init=3).fit({"x": x}).report_
    assert report.certificate.exists is False
    assert any("'x'" in text and "-> 0" in text and "state" in text for text in report.certificate.directions)
    apart = np.concatenate([rng.normal(size=30), rng.normal(8.0, size=30)])
    assert HMM(2, sf.Normal()).fit(apart).report_.certificate.exists is None


def test_a_symbol_never_seen_runs_to_zero_in_every_state() -> None:
    data = ["abab", "aabb", "bbab"]
    model = HMM(2, sf.Categorical(states=["a", "b", "c"]), tolerance=1e-3, max_iter=500)
    certificate = model.fit(data).report_.certificate
    assert certificate.exists is False
    assert certificate.directions == ("P('c' | state) -> 0: never seen",)
    assert HMM(2, sf.Categorical(), tolerance=1e-3, max_iter=500).fit(data).report_.certificate.exists is None


@pytest.mark.parametrize(
    ("law", "data", "prior", "exists"),
    [
        (sf.Categorical(), ["abab", "aabb", "bbab"], 0.5, True),
        (sf.Categorical(), ["abab", "aabb", "bbab"], {"transitions": 0.5, "emissions": 0.5}, None),
        (sf.Normal(prior=sf.NormalInverseGamma(2.0, 2.0, 1.0, 0.0)), None, 0.5, True),
        (sf.Normal(), None, 0.5, None),
        (sf.Poisson(prior=sf.Gamma(2.0, 1.0)), [[1, 0, 2, 8, 9, 1, 0, 7]], 0.5, True),
        (sf.Poisson(prior=sf.Gamma(1.0, 1.0)), [[1, 0, 2, 8, 9, 1, 0, 7]], 0.5, None),
    ],
    ids=str,
)
def test_a_prior_that_holds_every_edge_up_decides(law: Any, data: Any, prior: Any, exists: bool | None) -> None:
    data = np.random.default_rng(1).normal(size=30) if data is None else data
    model = HMM(2, law, prior=prior, tolerance=1e-4, max_iter=2000).fit(data)
    assert model.report_.certificate.exists is exists


def test_the_objective_with_such_a_prior_falls_towards_every_edge() -> None:
    """Normal laws with a conjugate prior: collapse onto a point, run away or empty a state, and it falls."""
    x = np.random.default_rng(2).normal(size=12)
    prior = sf.NormalInverseGamma(2.0, 2.0, 1.0, 0.0)
    model = HMM(2, sf.Normal(prior=prior), prior=0.5, tolerance=1e-8, max_iter=5000).fit(x)
    here = model.report_.objective

    def value(initial: Any, rows: Any, means: Any, variances: Any) -> float:
        densities = norm.pdf(x[:, None], means, np.sqrt(variances))
        ahead = np.asarray(initial) * densities[0]
        for row in densities[1:]:
            ahead = (ahead @ np.asarray(rows)) * row
        chain = 0.5 * (np.log(initial).sum() + np.log(rows).sum())
        laws = sum(prior.log_prob({"mean": m, "variance": v}) for m, v in zip(means, variances, strict=True))
        return float(np.log(ahead.sum()) + chain + laws)

    laws = model.emissions_
    means, variances = [law.mean_ for law in laws], [law.variance_ for law in laws]
    assert value(model.initial_, model.transitions_, means, variances) == pytest.approx(here, rel=1e-9)
    for small in 10.0 ** -np.arange(2, 13, 2):
        assert value([1 - small, small], model.transitions_, means, variances) < here
        assert value(model.initial_, [[1 - small, small], [0.5, 0.5]], means, variances) < here
        assert value(model.initial_, model.transitions_, [x[3], means[1]], [small, variances[1]]) < here
        assert value(model.initial_, model.transitions_, [1 / small, means[1]], variances) < here
        assert value(model.initial_, model.transitions_, means, [1 / small, variances[1]]) < here


# -- one unit of gaps --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [None, 0.5])
def test_the_gap_is_in_standard_errors_of_the_complete_counts(prior: float | None) -> None:
    """By Fisher's identity the slope is that of the expected counts; here by their definition, path by path."""
    model = HMM(["X", "Y"], sf.Categorical(), prior=prior, max_iter=3, tolerance=0.0)
    with pytest.warns(sf.ConvergenceWarning):
        model.fit(SEEN)
    first, pairs, symbols = np.zeros(2), np.zeros((2, 2)), np.zeros((2, 2))
    for seen in SEEN:
        paths = ["".join(path) for path in itertools.product("XY", repeat=len(seen))]
        masses = []
        for path in paths:
            codes, letters = ["XY".index(state) for state in path], ["ab".index(symbol) for symbol in seen]
            mass = model.initial_[codes[0]] * np.prod(model.emission_probabilities_[codes, letters])
            masses.append(mass * np.prod([model.transitions_[a, b] for a, b in itertools.pairwise(codes)]))
        for path, share in zip(paths, np.array(masses) / np.sum(masses), strict=True):
            for total, part in zip((first, pairs, symbols), counts_of([seen], [path]), strict=True):
                total += share * part
    gaps, slopes = [], []
    for counts, table in ((first[None], model.initial_[None]), (pairs, model.transitions_)):
        total = (counts + (prior or 0.0)).sum(axis=1, keepdims=True)
        slope = counts + (prior or 0.0) - total * table
        gaps.append(np.abs(slope / np.sqrt(total * table * (1 - table))).max())
        slopes.append(np.abs(slope).max())
    # Of the emissions twice what the expected log-likelihood could rise.
    lost = 0.0
    for row, shares in zip(symbols + (prior or 0.0), model.emission_probabilities_, strict=True):
        lost += float((row * (np.log(row / row.sum()) - np.log(shares))).sum())
    certificate = model.report_.certificate
    assert certificate.moment_gap == pytest.approx(max(*gaps, (2 * lost) ** 0.5), rel=1e-7)
    assert certificate.slope == pytest.approx(max(slopes), rel=1e-9)
    assert "nats" in certificate.slope_unit


# -- files -------------------------------------------------------------------------------------------------------------


def test_a_file_keeps_what_em_has_measured() -> None:
    model = HMM(2, sf.Categorical(), n_init=2, tolerance=1e-3, max_iter=2000).fit(SEEN)
    again = HMM.from_dict(model.to_dict())
    assert again.statistics_.log_likelihood == model.statistics_.log_likelihood == model.report_.log_likelihood
    assert (again.scores_, again.n_expectations_) == (model.scores_, model.n_expectations_)
    assert model.n_expectations_ > 0
    known = HMM(["X", "Y"], sf.Categorical()).fit(SEEN, PATHS)
    assert (known.scores_, known.n_expectations_) == ((), 0)


@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("learned_from", "step", -1.0),
        ("learned_from", "step", float("nan")),
        ("learned_from", "step", "small"),
        ("statistics", "log_likelihood", float("nan")),
        ("statistics", "log_likelihood", None),
    ],
)
def test_a_damaged_file_is_refused(part: str, name: str, value: Any) -> None:
    plain = HMM(2, sf.Categorical(), tolerance=1e-3, max_iter=2000).fit(SEEN).to_dict()
    held = plain["learned_from"] if part == "learned_from" else plain["learned_from"]["statistics"]
    held[name] = value
    with pytest.raises(sf.FileFormatError, match="in this file"):
        HMM.from_dict(plain)


@pytest.mark.parametrize("threads", ["two", 0, 1.5])
def test_threads_are_checked_before_a_fit(threads: Any) -> None:
    model = HMM(2, sf.Categorical(), threads=threads)
    with pytest.raises(sf.OptionError, match=r"threads is .*; expected a whole number of at least 1"):
        model.fit(SEEN)
