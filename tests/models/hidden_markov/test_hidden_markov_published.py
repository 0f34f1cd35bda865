"""Figures printed elsewhere: the casino, CpG islands, earthquakes and reaction times; and hmmlearn."""

import gzip
import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

DATA = Path(__file__).resolve().parents[4] / "shared" / "data" / "sequences"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="the published sequences are not here")

FAIR_LOADED: dict[str, Any] = {
    "initial": [2 / 3, 1 / 3], "transitions": [[0.95, 0.05], [0.1, 0.9]],
    "emissions": [[1 / 6] * 6, [0.1] * 5 + [0.5]],
}  # fmt: skip
ALL = ["initial", "transitions", "emissions"]


def expected() -> Any:
    return json.loads((DATA / "expected.json").read_text())


def table(name: str) -> dict[str, list[str]]:
    rows = [line.split(",") for line in (DATA / name).read_text().split()]
    return {head: [row[at] for row in rows[1:]] for at, head in enumerate(rows[0])}


@needs_data
def test_the_casino_of_300_rolls() -> None:
    rolls, path = (DATA / "casino_durbin300.txt").read_text().split()
    known = expected()["casino_durbin300"]["recomputed_here"]
    model = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), **FAIR_LOADED, fixed=ALL, max_iter=0).fit([rolls])
    assert model.report_.log_likelihood == pytest.approx(known["loglik_pi_2_3"], rel=1e-12)
    assert "".join(model.predict([rolls])[0]) == path
    assert model.best_paths([rolls], 1)[0][0][1] == pytest.approx(known["viterbi_logprob_pi_2_3"], rel=1e-12)
    learned = sf.HiddenMarkovModel(["F", "L"], sf.Categorical(), **FAIR_LOADED, tolerance=1e-10, max_iter=5000).fit(
        [rolls]
    )
    trace = known["baum_welch"]["trace"]
    np.testing.assert_allclose(learned.history_[: len(trace)], trace, rtol=1e-12)
    assert learned.report_.log_likelihood == pytest.approx(known["baum_welch"]["from_truth"]["loglik"], abs=1e-6)
    np.testing.assert_allclose(learned.transitions_, known["baum_welch"]["from_truth"]["A"], atol=2e-5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = sf.HiddenMarkovModel(2, sf.Categorical(), n_init=10, acceleration="squarem", max_iter=200).fit([rolls])
    assert best.report_.log_likelihood == pytest.approx(known["baum_welch"]["best"]["loglik"], abs=1e-2)


@needs_data
def test_the_casino_of_30000_rolls_in_both_scenarios() -> None:
    rolls, path = gzip.decompress((DATA / "casino_sim30000.txt.gz").read_bytes()).decode().split()
    known = expected()["casino_sim30000"]["recomputed_here"]
    counted = sf.HiddenMarkovModel(["F", "L"], sf.Categorical()).fit([rolls], states=[path])
    for found, counts in (
        (counted.transitions_, known["supervised_transition_counts"]),
        (counted.emission_probabilities_, known["supervised_emission_counts"]),
    ):
        np.testing.assert_allclose(found, np.array(counts) / np.sum(counts, axis=1, keepdims=True), rtol=1e-14)
    learned = sf.HiddenMarkovModel(["F", "L"], sf.Categorical()).fit([rolls])
    assert learned.report_.log_likelihood == pytest.approx(known["bw"]["loglik"], abs=1e-3)
    order = np.argsort(learned.emission_probabilities_[:, 5])
    np.testing.assert_allclose(learned.emission_probabilities_[order], known["bw"]["B"], atol=1e-3)
    assert learned.accuracy([rolls], [path]) > 0.79


def islands() -> tuple[list[Any], list[Any]]:
    """Bases and labelled bases such as "C+", in pieces without unknown bases."""
    words, paths = [], []
    for line in gzip.decompress((DATA / "cpg_islands.fa.gz").read_bytes()).decode().split(">")[1:]:
        head, _, body = line.partition("\n")
        bases = np.array(list(body.replace("\n", "")))
        inside = np.zeros(len(bases), bool)
        for span in head.split("islands=")[1].split(","):
            first, last = map(int, span.split("-"))
            inside[first:last] = True
        path = np.char.add(bases, np.where(inside, "+", "-"))
        cuts = [-1, *np.flatnonzero(bases == "N").tolist(), len(bases)]
        pieces = [(a + 1, b) for a, b in itertools.pairwise(cuts) if b > a + 1]
        words += [bases[a:b] for a, b in pieces]
        paths += [path[a:b] for a, b in pieces]
    return words, paths


@needs_data
def test_cpg_islands_are_counted_and_found() -> None:
    known = expected()["cpg_islands"]["recomputed_here"]
    words, paths = islands()
    half = len(words) // 2
    model = sf.HiddenMarkovModel(known["order"], sf.Categorical(states=list("ACGT"))).fit(
        words[:half], states=paths[:half]
    )
    # Sequences that the model has not seen: the share of bases on the right side, and of those in islands.
    truth = np.concatenate([np.char.endswith(path, "+") for path in paths[half:]])
    inside = np.concatenate([np.asarray(rows)[:, 4:].sum(axis=1) for rows in model.predict_proba(words[half:])]) > 0.5
    assert np.mean(inside == truth) == pytest.approx(0.8889, abs=1e-4)
    assert np.mean(inside[truth]) == pytest.approx(0.7505, abs=1e-4)
    assert np.mean(truth[inside]) == pytest.approx(0.6385, abs=1e-4)
    check_best_path(model, words[half], paths[half])
    model.partial_fit(words[half:], states=paths[half:])
    counts = np.array(known["transition_counts"], dtype=float)
    np.testing.assert_allclose(model.transitions_, counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(model.emission_probabilities_, np.tile(np.eye(4), (2, 1)))


def check_best_path(model: sf.HiddenMarkovModel, word: Any, path: Any) -> None:
    """The value of the best path is its own, and at least that of the true one."""
    place = {state: at for at, state in enumerate(model.states_)}
    with np.errstate(divide="ignore"):
        first, steps = np.log(model.initial_), np.log(model.transitions_)
    found, true = ([place[state] for state in some] for some in (model.predict([word])[0], path.tolist()))
    value = model.best_paths([word], 1)[0][0][1]
    assert value == pytest.approx(first[found[0]] + steps[found[:-1], found[1:]].sum(), rel=1e-10)
    assert value >= first[true[0]] + steps[true[:-1], true[1:]].sum()
    assert [str(model.states_[code])[0] for code in found] == word.tolist()


@needs_data
@pytest.mark.parametrize(("states", "start"), [(2, "stationary"), (3, "stationary"), (2, None), (3, None)])
def test_earthquakes(states: int, start: str | None) -> None:
    counts = np.array(table("earthquakes.csv")["count"], dtype=float)
    known = expected()["earthquakes"]["published"][f"{states}" if start else f"{states}_free_delta"]
    model = sf.HiddenMarkovModel(states, sf.Poisson(), initial=start, acceleration="squarem", tolerance=1e-5).fit(
        counts
    )
    assert -model.report_.log_likelihood == pytest.approx(known["mllk"], abs=2e-3)
    assert model.report_.aic == pytest.approx(known["AIC"], abs=5e-3)
    if "BIC" in known:
        assert model.report_.bic == pytest.approx(known["BIC"], abs=5e-3)
    if "lambda_" in known:
        rates = sorted(law.rate_ for law in model.emissions_)
        np.testing.assert_allclose(rates, known["lambda_"], rtol=2e-3)


@needs_data
def test_earthquakes_of_one_and_of_four_states() -> None:
    counts = np.array(table("earthquakes.csv")["count"], dtype=float)
    figures = expected()["earthquakes"]
    one = sf.HiddenMarkovModel(1, sf.Poisson()).fit(counts)
    assert -one.report_.log_likelihood == pytest.approx(figures["published"]["1"]["mllk"], abs=5e-5)
    best, values = figures["published"]["4"], figures["recomputed_here"]["4"]
    given = sf.HiddenMarkovModel(
        4, sf.Poisson(), initial=values["delta"], transitions=values["Gamma"],
        emissions=[sf.Poisson(rate) for rate in values["lambda_"]], fixed=ALL, max_iter=0,
    ).fit(counts)  # fmt: skip
    assert -given.report_.log_likelihood == pytest.approx(best["mllk"], abs=5e-5)
    # A free first state: several starts find a higher peak than the printed one.
    free = sf.HiddenMarkovModel(4, sf.Poisson(), n_init=6, acceleration="squarem", tolerance=1e-5).fit(counts)
    assert -free.report_.log_likelihood < figures["published"]["4_free_delta"]["mllk"]
    assert free.report_.aic == pytest.approx(2 * (3 + 12 + 4) - 2 * free.report_.log_likelihood, rel=1e-12)


@needs_data
def test_reaction_times() -> None:
    rows = table("speed.csv")
    frame = {"rt": np.array(rows["rt"], dtype=float), "corr": np.array(rows["corr"], dtype=object)}
    known = expected()["speed"]
    two = sf.Categorical(states=["inc", "cor"])
    laws = [
        [sf.Normal(5.52, 0.202**2), sf.Categorical(["inc", "cor"], [0.472, 0.528])],
        [sf.Normal(6.39, 0.24**2), sf.Categorical(["inc", "cor"], [0.098, 0.902])],
    ]
    given = sf.HiddenMarkovModel(
        2, {"rt": sf.Normal(), "corr": two}, initial=[0, 1], transitions=[[0.899, 0.101], [0.084, 0.916]],
        emissions=laws, fixed=ALL, max_iter=0,
    ).fit(frame, lengths=[168, 134, 137])  # fmt: skip
    assert given.report_.log_likelihood == pytest.approx(
        known["published"]["eval_loglik_given_params"]["loglik"], abs=1e-8
    )
    times = sf.HiddenMarkovModel(2, sf.Normal()).fit(frame["rt"])
    published = known["published"]["rt_only_one_series"]
    assert times.report_.log_likelihood == pytest.approx(published["loglik"], abs=5e-3)
    assert (times.report_.aic, times.report_.bic) == pytest.approx((published["AIC"], published["BIC"]), abs=0.05)
    one = sf.HiddenMarkovModel(1, sf.Normal()).fit(frame["rt"])
    assert one.report_.log_likelihood == pytest.approx(known["published"]["rt_1_state"]["loglik"], abs=5e-3)
    both = sf.HiddenMarkovModel(2, {"rt": sf.Normal(), "corr": two}).fit(frame, lengths=[168, 134, 137])
    assert both.report_.log_likelihood == pytest.approx(known["recomputed_here"]["rtcorr_three"]["loglik"], abs=1e-4)


def test_hmmlearn_takes_the_same_steps() -> None:
    hmm = pytest.importorskip("hmmlearn.hmm")
    rng = np.random.default_rng(0)
    codes, lengths = rng.integers(0, 3, 200), [50, 1, 99, 50]
    symbols, chain = rng.dirichlet(np.ones(3), 2), rng.dirichlet(np.ones(2), 2)
    other = hmm.CategoricalHMM(2, n_iter=7, tol=-1e300, init_params="", implementation="scaling")
    other.startprob_, other.transmat_, other.emissionprob_ = np.array([0.3, 0.7]), chain.copy(), symbols.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other.fit(codes[:, None], lengths)
        model = sf.HiddenMarkovModel(
            2, sf.Categorical(), initial=[0.3, 0.7], transitions=chain, emissions=symbols, max_iter=7, tolerance=0.0
        ).fit(codes, lengths=lengths)
    np.testing.assert_allclose(model.transitions_, other.transmat_, rtol=1e-9)
    np.testing.assert_allclose(model.emission_probabilities_, other.emissionprob_, rtol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(codes, lengths=lengths), other.predict_proba(codes[:, None], lengths), atol=1e-9
    )
    assert model.score_samples(codes, lengths=lengths).sum() == pytest.approx(
        other.score(codes[:, None], lengths), rel=1e-12
    )
