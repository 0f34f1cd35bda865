"""States that emit Student's t or angles, against generic optimisers, enumeration and plain fits."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, special, stats

import suffice as sf
from suffice.array_types import Floats
from suffice.models.hidden_markov.emissions.student import StudentTEmission, most_likely_df

STATES = np.repeat([0, 1, 0, 1, 0, 1], 40)
HEAVY = np.where(STATES == 1, 4.0, 0.0) + np.asarray(stats.t.rvs(3, size=240, random_state=4))
ANGLES = np.asarray(stats.vonmises.rvs(np.where(STATES == 1, 4.0, 1.5), loc=3.1 * STATES, random_state=3))
SINGLE = np.asarray(stats.t.rvs(2.5, 1.0, 2.0, size=200, random_state=5))
TIGHT: dict[str, Any] = {"tolerance": 1e-9, "max_iter": 5000, "acceleration": "squarem"}


def log_likelihood(logs: Floats, first: Floats, moves: Floats) -> float:
    """Of one sequence with log densities (steps, K), forward in log space."""
    row = np.log(first) + logs[0]
    for step in logs[1:]:
        row = np.logaddexp.reduce(row[:, None] + np.log(moves), axis=0) + step
    return float(np.logaddexp.reduce(row))


def test_one_state_is_the_fit_of_the_distribution() -> None:
    alone, law = sf.HiddenMarkovModel(1, sf.StudentT(), **TIGHT).fit([SINGLE]), sf.StudentT().fit(SINGLE)
    assert alone.emissions_[0].parameters_ == pytest.approx(law.parameters_, rel=1e-6)
    assert alone.report_.log_likelihood == pytest.approx(law.report_.log_likelihood, rel=1e-12)
    circle = sf.HiddenMarkovModel(1, sf.VonMises(), **TIGHT).fit([ANGLES])
    assert circle.emissions_[0].parameters_ == pytest.approx(sf.VonMises().fit(ANGLES).parameters_, rel=1e-8)


def test_known_states_of_angles_have_the_fit_of_their_steps() -> None:
    model = sf.HiddenMarkovModel(2, sf.VonMises()).fit([ANGLES], states=[STATES])
    for state in range(2):
        law = sf.VonMises().fit(ANGLES[STATES == state])
        assert model.emissions_[state].parameters_ == pytest.approx(law.parameters_, rel=1e-8)
    known = sf.HiddenMarkovModel(2, sf.StudentT(), **TIGHT).fit([HEAVY], states=[STATES])
    for state in range(2):
        heavy = sf.StudentT().fit(HEAVY[STATES == state])
        assert known.emissions_[state].parameters_ == pytest.approx(heavy.parameters_, rel=1e-5)


@pytest.mark.parametrize("kind", ["student", "von mises"])
def test_em_ends_where_a_generic_optimiser_finds_no_slope(kind: str) -> None:
    first: dict[str, Any] = {"initial": [0.5, 0.5], "fixed": ["initial"]}
    rows = HEAVY if kind == "student" else ANGLES
    emission = sf.StudentT() if kind == "student" else sf.VonMises()
    model = sf.HiddenMarkovModel(2, emission, **first, **TIGHT).fit([rows])

    def logs(v: Floats) -> Floats:
        if kind == "student":
            columns = [stats.t.logpdf(rows, math.exp(a), b, math.exp(c)) for a, b, c in v.reshape(2, 3)]
        else:
            columns = [stats.vonmises.logpdf(rows, math.exp(b), loc=a) for a, b in v.reshape(2, 2)]
        return np.stack(columns, axis=1)

    def value(v: Floats) -> float:
        stay = special.expit(v[:2])
        moves = np.array([[stay[0], 1 - stay[0]], [1 - stay[1], stay[1]]])
        return log_likelihood(logs(v[2:]), np.array([0.5, 0.5]), moves)

    if kind == "student":
        own = [[math.log(d.df_), d.location_, math.log(d.scale_)] for d in model.emissions_]
    else:
        own = [[d.direction_, math.log(d.concentration_)] for d in model.emissions_]
    here = np.concatenate([special.logit(np.diag(model.transitions_)), np.ravel(own)])
    assert value(here) == pytest.approx(model.report_.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(optimize.approx_fprime(here, value, 1e-6), 0.0, atol=2e-3)
    assert model.accuracy([rows], [STATES]) > 0.9
    assert model.report_.certificate.moment_gap < 1e-3


def test_answers_equal_the_sum_over_all_paths() -> None:
    rows, first, moves = HEAVY[[0, 50, 3, 90]], np.array([0.3, 0.7]), np.array([[0.8, 0.2], [0.4, 0.6]])
    laws = [sf.StudentT(3.0, 0.0, 1.0), sf.StudentT(8.0, 4.0, 2.0)]
    fixed = ["initial", "transitions", "emissions"]
    model = sf.HiddenMarkovModel(2, sf.StudentT(), initial=first, transitions=moves, emissions=laws, fixed=fixed).fit(
        [rows]
    )
    logs = np.stack([stats.t.logpdf(rows, 3, 0, 1), stats.t.logpdf(rows, 8, 4, 2)], axis=1)
    values = {
        path: math.log(first[path[0]])
        + sum(math.log(moves[pair]) for pair in itertools.pairwise(path))
        + sum(logs[t, state] for t, state in enumerate(path))
        for path in itertools.product(range(2), repeat=4)
    }
    total = float(np.logaddexp.reduce(list(values.values())))
    assert model.score_samples([rows])[0] == pytest.approx(total, rel=1e-12)
    shares = {path: math.exp(value - total) for path, value in values.items()}
    expected = [[sum(s for path, s in shares.items() if path[t] == k) for k in range(2)] for t in range(4)]
    np.testing.assert_allclose(model.predict_proba([rows])[0], expected, atol=1e-13)
    gap = np.array([*rows[:2], np.nan, *rows[2:]])
    assert np.isfinite(model.score_samples([gap])[0])


def test_the_expected_log_likelihood_rises_to_its_maximum_in_the_m_step() -> None:
    emission = StudentTEmission(1, 0.5, 2.0)
    shares = np.linspace(0.1, 1.0, 240)[:, None]
    before = {"parameters": np.array([[4.0, 0.3, 1.5]])}
    sums = emission.statistics((HEAVY,), shares, before)
    after = emission.maximise(sums, before)
    best = float(emission.expected(sums, after)[0])

    def expected(v: Floats) -> float:
        return float(emission.expected(sums, {"parameters": v[None]})[0])

    np.testing.assert_allclose(optimize.approx_fprime(after["parameters"][0], expected, 1e-6), 0.0, atol=1e-3)
    assert best > float(emission.expected(sums, before)[0])

    # The slope of the expected log-likelihood at the parameters of its expectations is that of the observed one.
    def observed(v: Floats) -> float:
        return float(shares[:, 0] @ stats.t.logpdf(HEAVY, *v))

    here = before["parameters"][0]
    np.testing.assert_allclose(
        optimize.approx_fprime(here, expected, 1e-7), optimize.approx_fprime(here, observed, 1e-7), rtol=1e-4, atol=1e-4
    )
    assert most_likely_df(-1.0) == 1e6
    assert most_likely_df(-1e6) == 0.2


def test_tables_in_files_mixtures_columns_and_copies(tmp_path: Path) -> None:
    frame = pd.DataFrame({"who": np.repeat([0, 1, 2], 80), "far": HEAVY, "angle": ANGLES})
    frame.to_parquet(tmp_path / "steps.parquet", row_group_size=50)
    model = sf.HiddenMarkovModel(2, {"far": sf.StudentT(), "angle": sf.VonMises()}, max_iter=30, tolerance=1e-2)
    here = model.clone().fit(frame, group="who", columns=["far", "angle"])
    there = model.clone().fit(str(tmp_path / "steps.parquet"), group="who", columns=["far", "angle"])
    again = sf.HiddenMarkovModel.from_dict(here.to_dict())
    expected = here.score_samples(frame, group="who")
    np.testing.assert_allclose(there.score_samples(frame, group="who"), expected, rtol=1e-9)
    np.testing.assert_array_equal(again.score_samples(frame, group="who"), expected)
    observed, _ = here.sample(50, random_state=0)
    assert list(observed.columns) == ["far", "angle"]
    mixed = sf.HiddenMarkovModel(1, sf.Mixture(sf.StudentT(), 2), tolerance=1e-4, max_iter=3000).fit([HEAVY])
    assert mixed.report_.log_likelihood > float(stats.t.logpdf(HEAVY, *stats.t.fit(HEAVY)).sum()) + 10


def test_permuting_states_permutes_the_answers_and_tied_states_share_one_distribution() -> None:
    start = [sf.StudentT(5.0, 0.0, 1.0), sf.StudentT(5.0, 4.0, 1.0)]
    even: dict[str, Any] = {"initial": [0.5, 0.5], "transitions": [[0.9, 0.1], [0.1, 0.9]], "tolerance": 1e-6}
    model = sf.HiddenMarkovModel(2, sf.StudentT(), emissions=start, **even).fit([HEAVY])
    other = sf.HiddenMarkovModel(2, sf.StudentT(), emissions=start[::-1], **even).fit([HEAVY])
    for one, two in zip(model.emissions_, other.emissions_[::-1], strict=True):
        assert one.parameters_ == pytest.approx(two.parameters_, rel=1e-8)
    tied = sf.HiddenMarkovModel(2, sf.StudentT(), tied=[(0, 1)], tolerance=1e-4).fit([SINGLE])
    assert tied.emissions_[0].parameters_ == tied.emissions_[1].parameters_
    assert tied.fitted_.n_params == 6


def test_what_makes_no_sense_is_an_error() -> None:
    with pytest.raises(sf.OptionError, match="which is given"):
        sf.HiddenMarkovModel(2, sf.StudentT(df=3.0)).fit([HEAVY])
    with pytest.raises(sf.OptionError, match="expected StudentT"):
        sf.HiddenMarkovModel(2, sf.StudentT(), emissions=[sf.Normal(0.0, 1.0)] * 2).fit([HEAVY])
    with pytest.raises(sf.OptionError, match="rows of df, location"):
        sf.HiddenMarkovModel(2, sf.StudentT(), emissions=[[3.0, 0.0]] * 2).fit([HEAVY])
    with pytest.raises(sf.OptionError, match="below its floor"):
        sf.HiddenMarkovModel(2, sf.StudentT(), emissions=[[3.0, 0.0, 1e-9]] * 2).fit([HEAVY])
    with pytest.raises(sf.OptionError, match="takes none"):
        sf.HiddenMarkovModel(2, sf.StudentT(), prior={"emissions": sf.Normal(0.0, 1.0)}).fit([HEAVY])
    with pytest.raises(sf.DataError, match="take numbers"):
        sf.HiddenMarkovModel(2, sf.StudentT()).fit([["a", "b"]])
