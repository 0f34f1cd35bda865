"""Hidden Markov models whose states last as a distribution says, against all segmentations and generic optimisers."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

import suffice as sf
from suffice.array_types import Floats
from suffice.models.hidden_markov.durations.distributions import (
    Duration,
    NegativeBinomialDuration,
    PoissonDuration,
    TableDuration,
)

SYMBOLS = ["a", "b", "c"]


def segmented(seed: int, lengths: list[int]) -> tuple[list[Floats], list[list[int]]]:
    """Steps about 0 and 3 of two states that last 1 + Poisson(4) and 1 + Poisson(8) steps."""
    rng = np.random.default_rng(seed)
    values, paths = [], []
    for length in lengths:
        state, path = int(rng.integers(2)), list[int]()
        while len(path) < length:
            path += [state] * (1 + int(rng.poisson((4, 8)[state])))
            state = 1 - state
        paths.append(path[:length])
        values.append(rng.normal(3.0 * np.array(paths[-1])))
    return values, paths


VALUES, PATHS = segmented(0, [40, 60, 25, 50])
EMISSIONS = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.1, 0.8, 0.1]])
MOVES = np.array([[0.0, 0.7, 0.3], [0.4, 0.0, 0.6], [0.3, 0.5, 0.2]])
FIRST = np.array([0.5, 0.2, 0.3])
TABLE = np.array([0.2, 0.5, 0.0, 0.3])


def given(**options: Any) -> sf.HiddenMarkovModel:
    """State 0 has a table, state 1 a Poisson number of steps, state 2 stays by its transitions; nothing is learned."""
    chosen: dict[str, Any] = {
        "durations": [TABLE, sf.Poisson(rate=1.5), sf.Geometric()],
        "initial": FIRST,
        "transitions": MOVES,
        "emissions": EMISSIONS,
        "fixed": ["initial", "transitions", "emissions", "durations"],
    }
    return sf.HiddenMarkovModel(3, sf.Categorical(states=SYMBOLS), **(chosen | options))


def log_durations(state: int, steps: int) -> tuple[float, float]:
    """Log P(steps) and log P(at least so many), by SciPy."""
    if state == 0:
        ending, reaching = (TABLE[steps - 1] if steps <= 4 else 0.0), TABLE[steps - 1 :].sum()
    elif state == 1:
        ending, reaching = stats.poisson.pmf(steps - 1, 1.5), stats.poisson.sf(steps - 2, 1.5)
    else:
        ending = reaching = float(steps == 1)
    with np.errstate(divide="ignore"):
        return float(np.log(ending)), float(np.log(reaching))


def every_path(sequence: str) -> dict[tuple[int, ...], float]:
    """Log P(path, sequence) of every path of states: of each segment its length, of the last one at least that."""
    values = {}
    for path in itertools.product(range(3), repeat=len(sequence)):
        runs = [(state, len(list(run))) for state, run in itertools.groupby(path)]
        segments = [part for s, n in runs for part in ([(s, 1)] * n if s == 2 else [(s, n)])]
        value = math.log(FIRST[path[0]])
        for place, (state, steps) in enumerate(segments):
            final = place == len(segments) - 1
            value += log_durations(state, steps)[int(final)]
            value += 0.0 if final else float(np.log(MOVES[state, segments[place + 1][0]]))
        value += sum(math.log(EMISSIONS[state, SYMBOLS.index(s)]) for state, s in zip(path, sequence, strict=True))
        values[path] = value
    return values


def test_every_answer_equals_the_sum_over_all_paths() -> None:
    sequence = "abcab"
    paths = {path: value for path, value in every_path(sequence).items() if value > -math.inf}
    logs = np.array(list(paths.values()))
    log_z = float(np.logaddexp.reduce(logs))
    shares, codes = np.exp(logs - log_z), np.array(list(paths))
    model = given().fit([sequence])
    np.testing.assert_allclose(model.score_samples([sequence]), [log_z], rtol=1e-13)
    assert model.report_.log_likelihood == pytest.approx(log_z, rel=1e-13)
    posteriors = np.stack([shares @ (codes == state) for state in range(3)], axis=1)
    np.testing.assert_allclose(model.predict_proba([sequence])[0], posteriors, atol=1e-14)
    pairs = np.zeros((4, 3, 3))
    for share, path in zip(shares, codes, strict=True):
        for t in range(4):
            pairs[t, path[t], path[t + 1]] += share
    np.testing.assert_allclose(model.pairwise([sequence])[0], pairs, atol=1e-14)
    best = max(paths, key=lambda path: paths[path])
    value, decoded = model.decode([sequence])
    assert value == pytest.approx(paths[best], rel=1e-13)
    assert decoded[0].tolist() == list(best) == model.predict([sequence])[0].tolist()
    counts = model.statistics_.segments
    assert counts is not None
    cut = np.zeros((5, 3))
    for share, path in zip(shares, codes, strict=True):
        run = len(list(next(itertools.groupby(path[::-1]))[1]))
        cut[0 if path[-1] == 2 else run - 1, path[-1]] += share
    np.testing.assert_allclose(counts.cut, cut, atol=1e-14)
    assert counts.steps.sum() == pytest.approx(5.0, abs=1e-13)


def test_filtered_states_are_the_last_ones_of_beginnings_and_forecasts_those_of_missing_steps() -> None:
    model = given().fit(["abcabca"])
    sequence = list("abcabca")
    filtered = model.filter([sequence])[0]
    for t in range(7):
        np.testing.assert_allclose(filtered[t], model.predict_proba([sequence[: t + 1]])[0][-1], atol=1e-14)
    longer = [*sequence, None, None, None]
    np.testing.assert_allclose(model.forecast([sequence], 3)[0], model.predict_proba([longer])[0][7:], atol=1e-14)
    assert model.score_samples([longer])[0] == pytest.approx(model.score_samples([sequence])[0], rel=1e-13)


def test_geometric_durations_are_the_plain_chain() -> None:
    """A negative binomial number of size 1 is geometric, and goes by segments; `Geometric()` is the plain chain."""
    transitions, first = np.array([[0.9, 0.1], [0.25, 0.75]]), np.array([0.4, 0.6])
    emissions = [sf.Normal(mean=0.0, variance=1.0), sf.Normal(mean=2.0, variance=1.0)]
    held: dict[str, Any] = {"initial": first, "emissions": emissions, "fixed": ["initial", "transitions", "emissions"]}
    plain = sf.HiddenMarkovModel(2, sf.Normal(), transitions=transitions, **held).fit(VALUES)
    durations = [sf.NegativeBinomial(size=1, probability=0.1), sf.NegativeBinomial(size=1, probability=0.25)]
    held["fixed"] = [*held["fixed"], "durations"]
    lasting = sf.HiddenMarkovModel(2, sf.Normal(), transitions=[[0, 1], [1, 0]], durations=durations, **held).fit(
        VALUES
    )
    np.testing.assert_allclose(lasting.score_samples(VALUES), plain.score_samples(VALUES), rtol=1e-12)
    for question in ("predict_proba", "filter", "pairwise"):
        for there, expected in zip(getattr(lasting, question)(VALUES), getattr(plain, question)(VALUES), strict=True):
            np.testing.assert_allclose(there, expected, atol=1e-10)
    assert lasting.decode(VALUES)[0] == pytest.approx(plain.decode(VALUES)[0], rel=1e-12)
    np.testing.assert_allclose(lasting.forecast(VALUES, 4), plain.forecast(VALUES, 4), atol=1e-10)
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    peer = hmmlearn.GaussianHMM(2, covariance_type="diag")
    peer.startprob_, peer.transmat_ = first, transitions
    peer.means_, peer.covars_ = np.array([[0.0], [2.0]]), np.ones((2, 1))
    expected = peer.score(np.concatenate(VALUES)[:, None], [len(one) for one in VALUES])
    assert lasting.score_samples(VALUES).sum() == pytest.approx(expected, rel=1e-12)


def test_geometric_durations_are_learned_as_the_plain_chain_is() -> None:
    tight: dict[str, Any] = {"tolerance": 1e-10, "max_iter": 5000}
    plain = sf.HiddenMarkovModel(2, sf.Normal(), **tight).fit(VALUES)
    same = sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.Geometric(), **tight).fit(VALUES)
    assert np.array_equal(same.transitions_, plain.transitions_)
    assert same.fitted_.parameters.durations == ()
    lasting = sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.NegativeBinomial(size=1), **tight).fit(VALUES)
    assert lasting.report_.log_likelihood == pytest.approx(plain.report_.log_likelihood, rel=1e-11)
    leaving = [one.probability_ for one in lasting.durations_]
    np.testing.assert_allclose(leaving, 1 - np.diag(plain.transitions_), rtol=1e-6)
    np.testing.assert_allclose(leaving, [one.probability_ for one in plain.durations_], rtol=1e-6)
    assert lasting.fitted_.n_params == plain.fitted_.n_params


def by_hand(values: Floats, means: list[float], variances: Floats, rates: Floats) -> float:
    """Log P of a sequence of two normal states that last 1 + Poisson steps, which begins in each as often."""
    steps = len(values)
    logs = np.asarray(stats.norm.logpdf(values[:, None], means, np.sqrt(variances)))
    sums = np.vstack([np.zeros(2), logs.cumsum(axis=0)])
    more = np.arange(steps)[:, None]
    lasts = np.asarray(stats.poisson.logpmf(more, rates))
    stays = np.asarray(stats.poisson.logsf(more - 1, rates))
    begins, total = np.full((steps, 2), -np.inf), -math.inf
    begins[0] = math.log(0.5)
    for t in range(1, steps + 1):
        table = stays if t == steps else lasts
        ends = np.logaddexp.reduce(begins[:t][::-1] + sums[t] - sums[:t][::-1] + table[:t], axis=0)
        if t < steps:
            begins[t] = ends[::-1]
        total = float(np.logaddexp.reduce(ends))
    return total


def test_em_climbs_to_a_maximum_that_a_generic_optimiser_does_not_leave() -> None:
    even: dict[str, Any] = {"initial": [0.5, 0.5]}
    model = sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.Poisson(), **even, fixed=["initial"], tolerance=1e-9)
    assert model.fit(VALUES).converged_

    def value(v: Floats) -> float:
        return sum(by_hand(one, [v[0], v[2]], np.exp([v[1], v[3]]), np.exp(v[4:])) for one in VALUES)

    means, variances = model.means_[:, 0], model.covars_[:, 0, 0]
    rates = [one.rate_ for one in model.durations_]
    here = np.array([means[0], math.log(variances[0]), means[1], math.log(variances[1]), *np.log(rates)])
    assert value(here) == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    slope = optimize.approx_fprime(here, value, 1e-6)
    np.testing.assert_allclose(slope, 0.0, atol=3e-4)
    # Standard errors of the rates, by the curvature of the log-likelihood.
    step, size = 1e-3, len(here)
    curvature = np.zeros((size, size))
    eye = step * np.eye(size)
    for i in range(size):
        for j in range(i, size):
            corners = [value(here + a * eye[i] + b * eye[j]) for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
            curvature[i, j] = curvature[j, i] = (corners[0] - corners[1] - corners[2] + corners[3]) / (4 * step**2)
    errors = np.sqrt(np.diag(np.linalg.inv(-curvature)))[4:] * rates
    there = [float(one[0]) for one in model.standard_errors_["durations"]]
    np.testing.assert_allclose(there, errors, rtol=2e-3)


ENDED = np.array([3.0, 1.0, 4.0, 0.0, 5.0, 2.0, 0.0, 1.0])
CUT = np.array([2.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 1.0])
MORE = np.arange(8)


def test_a_table_is_kaplan_and_meiers_estimate() -> None:
    made = TableDuration(np.full(9, 1 / 9), np.ones(9, bool)).learned(ENDED, CUT, np.zeros(0))
    alive, survival = 1.0, []
    for d in range(8):  # By hand: of those known to last d + 1 steps, and of whom it is known whether they last longer.
        risk = ENDED[d:].sum() + CUT[d + 1 :].sum()
        alive *= 1 - ENDED[d] / risk if risk else 1.0
        survival.append(alive)
    np.testing.assert_allclose(1 - made.probabilities.cumsum()[:8], survival, atol=1e-14)

    def negative(v: Floats) -> float:
        shares = np.exp(v - v.max())
        return -TableDuration(shares / shares.sum(), np.ones(9, bool)).log_likelihood(ENDED, CUT)

    solution = optimize.minimize(negative, np.zeros(9), method="BFGS")
    assert made.log_likelihood(ENDED, CUT) >= -solution.fun - 1e-9
    assert made.log_likelihood(ENDED, CUT) == pytest.approx(-solution.fun, abs=1e-4)
    standing = made.standing(ENDED, CUT, np.zeros(0), "state 'a'")
    assert standing.lost == pytest.approx(0.0, abs=1e-12)
    assert standing.directions == (
        "P(state 'a' lasts 4 steps) -> 0: never seen",
        "P(state 'a' lasts 7 steps) -> 0: never seen",
    )


@pytest.mark.parametrize(
    ("begin", "pmf", "sf_of", "start"),
    [
        (
            PoissonDuration(2.0),
            lambda v: stats.poisson.logpmf(MORE, v[0]),
            lambda v: stats.poisson.logsf(MORE - 1, v[0]),
            [2.0],
        ),
        (
            NegativeBinomialDuration(2.0, 1.5, known=True),
            lambda v: stats.nbinom.logpmf(MORE, 1.5, 1.5 / (1.5 + v[0])),
            lambda v: stats.nbinom.logsf(MORE - 1, 1.5, 1.5 / (1.5 + v[0])),
            [2.0],
        ),
        (
            NegativeBinomialDuration(2.0, 1.0),
            lambda v: stats.nbinom.logpmf(MORE, v[1], v[1] / (v[1] + v[0])),
            lambda v: stats.nbinom.logsf(MORE - 1, v[1], v[1] / (v[1] + v[0])),
            [2.0, 2.0],
        ),
    ],
    ids=["poisson", "negative binomial of known size", "negative binomial"],
)
def test_censored_durations_have_the_maximum_of_a_generic_optimiser(
    begin: Duration, pmf: Any, sf_of: Any, start: list[float]
) -> None:
    made = begin.learned(ENDED, CUT, np.zeros(0))

    def negative(v: Floats) -> float:
        return -float(ENDED @ pmf(np.exp(v)) + CUT @ sf_of(np.exp(v)))

    solution = optimize.minimize(
        negative,
        np.log(start),
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-13, "maxiter": 4000},
    )
    assert made.log_likelihood(ENDED, CUT) == pytest.approx(-solution.fun, abs=1e-10)
    np.testing.assert_allclose(made.numbers, np.exp(solution.x), rtol=2e-4)


def test_known_states_are_counted_and_the_last_segment_is_cut() -> None:
    model = sf.HiddenMarkovModel(2, sf.Normal(), durations={0: sf.Poisson(), 1: 20}).fit(VALUES, PATHS)
    ended: list[list[int]] = [[], []]
    cut: list[list[int]] = [[], []]
    for path in PATHS:
        runs = [(state, len(list(run))) for state, run in itertools.groupby(path)]
        for state, steps in runs[:-1]:
            ended[state].append(steps)
        cut[runs[-1][0]].append(runs[-1][1])
    counts = model.statistics_.segments
    assert counts is not None
    for state in range(2):
        assert (
            counts.ended[:, state].tolist() == np.bincount(ended[state], minlength=len(counts.ended) + 1)[1:].tolist()
        )
        assert counts.cut[:, state].tolist() == np.bincount(cut[state], minlength=len(counts.cut) + 1)[1:].tolist()
    more, last = np.array(ended[0]) - 1, np.array(cut[0]) - 1

    def negative(rate: float) -> float:
        return float(-stats.poisson.logpmf(more, rate).sum() - stats.poisson.logsf(last - 1, rate).sum())

    best = optimize.minimize_scalar(
        negative,
        bounds=(0.1, 20),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert model.durations_[0].rate_ == pytest.approx(best.x, rel=1e-7)
    assert model.report_.certificate.exists is False  # Numbers of steps that state 1 never lasted.
    assert model.transitions_.tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_counts_of_known_states_add_up_and_come_out_again() -> None:
    def model() -> sf.HiddenMarkovModel:
        return sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.Poisson())

    whole = model().fit(VALUES, PATHS)
    parts = model().fit(VALUES[:1], PATHS[:1]).partial_fit(VALUES[1:], PATHS[1:])
    assert [one.rate_ for one in parts.durations_] == pytest.approx([one.rate_ for one in whole.durations_], rel=1e-12)
    parts.unlearn(VALUES[1:], PATHS[1:])
    first = model().fit(VALUES[:1], PATHS[:1])
    assert [one.rate_ for one in parts.durations_] == pytest.approx([one.rate_ for one in first.durations_], rel=1e-12)


def test_pseudo_counts_of_durations_are_added() -> None:
    path = [[0, 0, 1, 1, 1, 0]]
    emission = sf.Categorical(states=["a", "b"])
    model = sf.HiddenMarkovModel(2, emission, durations=4, prior={"durations": 0.5}).fit(["abbbab"], path)
    # State 1: one segment of 3 steps that ended; state 0: one of 2 steps that ended, one of 1 step that was cut.
    np.testing.assert_allclose(model.durations_[1].probabilities_, np.array([0.5, 0.5, 1.5, 0.5]) / 3.0)
    np.testing.assert_allclose(model.durations_[0].probabilities_, np.array([0.5, 1.5, 0.5, 0.5]) / 3.0)
    whole = sf.HiddenMarkovModel(2, emission, durations=4, prior=1.0).fit(["abbbab"], path)
    np.testing.assert_allclose(whole.durations_[1].probabilities_, np.array([1.0, 1.0, 2.0, 1.0]) / 5.0)
    assert sf.HiddenMarkovModel(2, emission, durations=4, prior=1.0).fit(["abbbab"]).report_.certificate.exists


def test_states_sequences_weights_and_threads_change_nothing() -> None:
    make: dict[str, Any] = {"durations": [12, sf.NegativeBinomial(size=2)], "tolerance": 1e-11}
    start: dict[str, Any] = {"initial": [0.5, 0.5], "transitions": [[0, 1], [1, 0]]}
    normals = [sf.Normal(0.0, 1.0), sf.Normal(3.0, 1.0)]
    model = sf.HiddenMarkovModel(2, sf.Normal(), emissions=normals, **start, **make).fit(VALUES)
    turned = make | {"durations": make["durations"][::-1]}
    other = sf.HiddenMarkovModel(2, sf.Normal(), emissions=normals[::-1], **start, **turned).fit(VALUES)
    np.testing.assert_allclose(other.means_[::-1], model.means_, rtol=1e-9)
    assert other.report_.log_likelihood == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    twice = sf.HiddenMarkovModel(2, sf.Normal(), emissions=normals, **start, **make)
    weighted = twice.clone().fit(VALUES, sample_weight=[2, 1, 1, 0]).report_.log_likelihood
    repeated = twice.clone().fit([VALUES[0], *VALUES[:3]]).report_.log_likelihood
    assert weighted == pytest.approx(repeated, rel=1e-11)
    threaded = sf.HiddenMarkovModel(2, sf.Normal(), emissions=normals, threads=2, **start, **make).fit(VALUES)
    assert np.array_equal(threaded.means_, model.means_)


def test_a_table_in_files_gives_the_fit_of_a_list(tmp_path: Path) -> None:
    rows = [(number, value) for number, sequence in enumerate(VALUES) for value in sequence]
    frame = pd.DataFrame(rows, columns=["who", "value"])
    frame.to_parquet(tmp_path / "steps.parquet", row_group_size=30)
    model = sf.HiddenMarkovModel(2, sf.Normal(), durations=sf.Poisson())
    there = model.clone().fit(str(tmp_path / "steps.parquet"), group="who")
    here = model.clone().fit(frame, group="who")
    np.testing.assert_allclose(there.means_, here.means_, rtol=1e-10)
    rates = [one.rate_ for one in here.durations_]
    np.testing.assert_allclose([one.rate_ for one in there.durations_], rates, rtol=1e-10)
    np.testing.assert_allclose(
        there.score_samples(str(tmp_path / "steps.parquet"), group="who"), here.score_samples(VALUES), rtol=1e-10
    )


def test_a_saved_model_is_the_same(tmp_path: Path) -> None:
    durations = {0: sf.NegativeBinomial(), 1: 15}
    model = sf.HiddenMarkovModel(2, sf.Normal(), durations=durations, tolerance=0.01).fit(VALUES)
    model.write(tmp_path / "m.json")
    same = sf.read(tmp_path / "m.json")
    np.testing.assert_array_equal(same.score_samples(VALUES), model.score_samples(VALUES))
    assert repr(same.durations_) == repr(model.durations_)
    assert "lasts" in str(model.portrait().text())
    assert any("lasts" in name for name in model.summary().to_frame().index.astype(str))


def test_samples_last_as_the_durations_say() -> None:
    model = given().fit(["abcabc"])
    _, paths = model.sample(60, 4000, random_state=0)
    lengths: list[list[int]] = [[], []]
    for path in paths:
        runs = [(state, len(list(run))) for state, run in itertools.groupby(path)]
        for state, steps in runs[:8]:
            if state < 2:
                lengths[state].append(steps)
    table = np.bincount(lengths[0], minlength=5)[1:] / len(lengths[0])
    np.testing.assert_allclose(table, TABLE, atol=4 * 0.5 / math.sqrt(len(lengths[0])))
    assert np.mean(lengths[1]) == pytest.approx(2.5, abs=5 * math.sqrt(1.5 / len(lengths[1])))
    drawn = model.sample_paths(["abcab"], 4000, random_state=1)
    shares = np.mean([np.array(one[0])[:, None] == np.arange(3) for one in drawn], axis=0)
    np.testing.assert_allclose(shares, model.predict_proba(["abcab"])[0], atol=4 * 0.5 / math.sqrt(4000))


def test_partly_known_states_are_kept() -> None:
    known = [[0, None, None, None, 0], None]
    sequences = ["abcab", "cabca"]
    model = given().fit(sequences, known)
    allowed = [v for path, v in every_path("abcab").items() if path[0] == 0 and path[4] == 0]
    expected = np.logaddexp.reduce(allowed) + model.score_samples(["cabca"])[0]
    assert model.report_.log_likelihood == pytest.approx(float(expected), rel=1e-13)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"durations": 0}, "longest duration 0"),
        ({"durations": "poisson"}, "durations has 'poisson'"),
        ({"durations": [5]}, "durations has 1 entries"),
        ({"durations": {2: 5}}, "durations names 2"),
        ({"durations": sf.Normal()}, "durations has Normal"),
        ({"durations": sf.Poisson(prior=sf.Gamma(1, 1))}, "take no prior"),
        ({"durations": sf.Geometric(probability=0.5)}, "in transitions="),
        ({"durations": sf.NegativeBinomial(probability=0.5)}, "needs a size="),
        ({"durations": 5, "fixed": ["durations"]}, "needs start values"),
        ({"prior": {"durations": 1.0}}, "no state has a table"),
        ({"durations": 5, "transitions": [[0.5, 0.5], [0.5, 0.5]]}, "expected 0"),
        ({"durations": 5, "topology": "linear"}, "no other state"),
        ({"durations": 5, "initial": "stationary"}, "begins with a segment"),
    ],
)
def test_what_makes_no_sense_is_an_error(options: dict[str, Any], words: str) -> None:
    with pytest.raises(sf.OptionError, match=words):
        sf.HiddenMarkovModel(2, sf.Normal(), **options).fit(VALUES[:1])


def test_what_is_not_there_is_refused_by_name() -> None:
    with pytest.raises(sf.EstimateError, match="for 4 steps from step 1 on; by durations= it lasts 3 at most"):
        sf.HiddenMarkovModel(2, sf.Categorical(), durations=3).fit(["abbbba"], [[0, 1, 1, 1, 1, 0]])
    model = given().fit(["abcab"])
    with pytest.raises(sf.OptionError, match="no second best"):
        model.best_paths(["abc"], 2)
    assert len(model.best_paths(["abc"], 1)[0]) == 1
    with pytest.raises(sf.OptionError, match="no durations"):
        sf.summarize(sf.HiddenMarkovModel(2, sf.Categorical(), durations=9), ["abab"], states=[[0, 1, 1, 0]])
