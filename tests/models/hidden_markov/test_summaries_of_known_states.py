"""Summaries of sequences whose states are all known: their sum is learned like all sequences together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

pytestmark = pytest.mark.filterwarnings("ignore")

STATES = ["F", "L"]
Site = tuple[list[Any], list[list[str]]]


def site(seed: int, emitted: Callable[[np.random.Generator, np.ndarray], Any]) -> Site:
    """Sequences of one to eight steps with their states."""
    rng = np.random.default_rng(seed)
    paths = [rng.integers(0, 2, rng.integers(1, 9)) for _ in range(25)]
    return [emitted(rng, path) for path in paths], [np.array(STATES)[path].tolist() for path in paths]


def symbols(*known: str) -> Callable[[np.random.Generator, np.ndarray], list[Any]]:
    """Symbols of which some are missing."""
    return lambda rng, path: [None if rng.random() < 0.1 else str(rng.choice(known)) for _ in path]


def numbers(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    """Far from zero, and further apart in the second state; some are missing."""
    return np.where(rng.random(len(path)) < 0.1, np.nan, 1e4 + path + rng.normal(size=len(path)))


def vectors(rng: np.random.Generator, path: np.ndarray) -> np.ndarray:
    return np.asarray(rng.normal(size=(len(path), 3)) @ np.array([[1, 0.5, 0], [0, 1, 2], [0, 0, 1]]) + path[:, None])


def pairs(rng: np.random.Generator, path: np.ndarray) -> list[list[Any]]:
    """A symbol and a number."""
    return [[str(rng.choice(["a", "b"])), float(rng.normal())] for _ in path]


CASES: dict[str, tuple[Callable[[], Any], Site, Site]] = {
    "symbols of which each site has its own": (
        lambda: sf.HiddenMarkovModel(STATES, sf.Categorical()),
        site(1, symbols("a", "b")),
        site(2, symbols("0", "b", "z")),
    ),
    "pseudo-counts": (
        lambda: sf.HiddenMarkovModel(STATES, sf.Categorical(), prior=0.5),
        site(3, symbols("a", "b")),
        site(4, symbols("c")),
    ),
    "truth values": (
        lambda: sf.HiddenMarkovModel(STATES, sf.Bernoulli(states=["a", "b"])),
        site(5, symbols("a", "b")),
        site(6, symbols("b")),
    ),
    "normal": (lambda: sf.HiddenMarkovModel(STATES, sf.Normal()), site(7, numbers), site(8, numbers)),
    "normal vectors": (
        lambda: sf.HiddenMarkovModel(STATES, sf.MultivariateNormal()),
        site(9, vectors),
        site(1, vectors),
    ),
    "tied covariances": (
        lambda: sf.HiddenMarkovModel(STATES, sf.MultivariateNormal(), covariance="tied"),
        site(11, vectors),
        site(12, vectors),
    ),
    "a symbol and a number": (
        lambda: sf.HiddenMarkovModel(STATES, [sf.Categorical(), sf.Normal()]),
        site(13, pairs),
        site(14, pairs),
    ),
    "a number of states": (
        lambda: sf.HiddenMarkovModel(2, sf.Categorical(), topology=None),
        site(15, symbols("a")),
        site(16, symbols("b")),
    ),
}


def assert_alike(model: Any, right: Any) -> None:
    assert model.states_ == right.states_
    np.testing.assert_allclose(model.initial_, right.initial_, rtol=1e-10)
    np.testing.assert_allclose(model.transitions_, right.transitions_, rtol=1e-10)
    parameters, expected = model.fitted_.parameters.emission, right.fitted_.parameters.emission
    assert parameters.keys() == expected.keys()
    for name, values in parameters.items():
        np.testing.assert_allclose(values, expected[name], rtol=1e-10, atol=1e-12)
    ours, theirs = model.report_, right.report_
    assert ours.rows == theirs.rows
    np.testing.assert_allclose(ours.log_likelihood, theirs.log_likelihood, rtol=1e-10)
    assert ours.certificate.exists == theirs.certificate.exists
    np.testing.assert_allclose(model.n_params_, right.n_params_)


@pytest.mark.parametrize("name", CASES)
def test_the_sum_of_summaries_is_learned_like_all_sequences(name: str, tmp_path: Path) -> None:
    make, north, south = CASES[name]
    sites = [north, south]
    whole = make().fit(sites[0][0] + sites[1][0], sites[0][1] + sites[1][1])
    summaries = [sf.summarize(make(), sequences, states=paths) for sequences, paths in sites]
    assert_alike(make().fit(summaries[0] + summaries[1]), whole)
    summaries[1].write(tmp_path / "south.suffice")
    assert_alike(make().fit(sum([sf.read(tmp_path / "south.suffice"), summaries[0]])), whole)
    assert not any(summary.holds_rows for summary in summaries)


@pytest.mark.parametrize("name", CASES)
def test_a_summary_joins_what_was_learned_and_leaves_it(name: str) -> None:
    make, north, south = CASES[name]
    if name == "a number of states":
        make = lambda: sf.HiddenMarkovModel(STATES, sf.Categorical())  # noqa: E731
    alone, whole = make().fit(*north), make().fit(north[0] + south[0], north[1] + south[1])
    summary = sf.summarize(make(), south[0], states=south[1])
    joined = make().fit(*north).partial_fit(summary)
    assert_alike(joined, make().fit(*north).partial_fit(*south))
    np.testing.assert_allclose(joined.transitions_, whole.transitions_, rtol=1e-10)
    np.testing.assert_allclose(joined.unlearn(summary).transitions_, alone.transitions_, rtol=1e-9)


def test_weights_and_counts_by_hand() -> None:
    sequences, paths = [["H", "T"], ["T"]], [["F", "L"], ["L"]]
    summary = sf.summarize(
        sf.HiddenMarkovModel(STATES, sf.Categorical()), sequences, sample_weight=[2.0, 1.0], states=paths
    )
    assert (summary.rows, summary.weight) == (3, 5.0)
    model = sf.HiddenMarkovModel(STATES, sf.Categorical(), prior=1.0).fit(summary)
    np.testing.assert_allclose(model.initial_, [3 / 5, 2 / 5])
    np.testing.assert_allclose(model.transitions_, [[1 / 4, 3 / 4], [1 / 2, 1 / 2]])
    np.testing.assert_allclose(model.emission_probabilities_, [[3 / 4, 1 / 4], [1 / 5, 4 / 5]])


def table(sites: list[Site]) -> pd.DataFrame:
    rows = [
        (number, step, state, *(value if isinstance(value, list) else [value]))
        for number, (sequence, path) in enumerate(
            (sequence, path) for one in sites for sequence, path in zip(*one, strict=True)
        )
        for step, (value, state) in enumerate(zip(sequence, path, strict=True))
    ]
    return pd.DataFrame(rows, columns=["person", "step", "hidden", "sign", "size"])


@pytest.mark.parametrize("kind", ["frame", "parquet", "duckdb"])
def test_tables_are_summarised_where_they_are(kind: str, tmp_path: Path) -> None:
    make, *sites = CASES["a symbol and a number"]
    data = table(sites)
    path = tmp_path / "rows.parquet"
    data.to_parquet(path)
    form: dict[str, Any] = {"states": "hidden", "group": "person", "order": "step"}
    given: Any = data
    if kind == "parquet":
        given = str(path)
    if kind == "duckdb":
        given = pytest.importorskip("duckdb").from_parquet(str(path))
    summary = sf.summarize(make(), given, **form)
    assert summary.rows == len(data)
    assert_alike(make().fit(summary), make().fit(data, **form))
    data.loc[3, "hidden"] = None
    with pytest.raises(sf.OptionError, match="the state of every step is known"):
        sf.summarize(make(), data, **form)


def test_minimum_count_counts_steps_behind_every_cell() -> None:
    make, north, _ = CASES["pseudo-counts"]
    sf.summarize(make(), north[0], states=north[1], minimum_count=5)
    rare = [*north[0], ["a", "rare"]], [*north[1], ["F", "F"]]
    with pytest.raises(sf.DataError, match=r"1 of the 5 cells in use of 'state to', 0 have fewer rows"):
        sf.summarize(make(), rare[0], states=rare[1], minimum_count=5)
    with pytest.raises(sf.DataError, match="of 'state from', 'state to' have fewer rows"):
        sf.summarize(make(), [["a"] * 9], states=[["F"] * 9], minimum_count=5)  # One beginning alone.
    normal = sf.HiddenMarkovModel(STATES, sf.Normal())
    with pytest.raises(sf.DataError, match="have fewer rows"):
        sf.summarize(normal, [[1.0, 2.0, 3.0]] * 6, states=[["F", "F", "F"]] * 5 + [["F", "F", "L"]], minimum_count=5)
    with pytest.raises(sf.OptionError, match="leave sample_weight= out"):
        sf.summarize(make(), north[0], sample_weight=np.ones(25), states=north[1], minimum_count=5)


def test_what_has_no_summary_is_refused() -> None:
    make, north, _ = CASES["symbols of which each site has its own"]
    with pytest.raises(sf.OptionError, match="the state of every step is known"):
        sf.summarize(make(), north[0])
    with pytest.raises(sf.OptionError, match="states or normal numbers"):
        sf.summarize(sf.HiddenMarkovModel(STATES, sf.Poisson()), [[1, 2]], states=[["F", "L"]])
    rows = [np.array([[1.0, np.nan], [2.0, 1.0]])]
    with pytest.raises(sf.OptionError, match="lack a part of their columns"):
        sf.summarize(sf.HiddenMarkovModel(STATES, sf.MultivariateNormal()), rows, states=[["F", "L"]])
    summary = sf.summarize(make(), north[0], states=north[1])
    with pytest.raises(sf.OptionError, match="give neither states"):
        make().fit(summary, north[1])
    with pytest.raises(sf.DataError, match="take numbers"):
        sf.HiddenMarkovModel(STATES, sf.Normal()).fit(summary)
    with pytest.raises(sf.MergeError, match="does not answer"):
        make().fit(sf.summarize(sf.MarkovChain(), north[1]))
    with pytest.raises(sf.UnknownStateError, match="'F'"):
        sf.HiddenMarkovModel(["L", "M"], sf.Categorical()).fit(summary)
    with pytest.raises(sf.EstimateError, match=r"(begins in state 'L'|goes from 'L' to 'F').*probability 0"):
        sf.HiddenMarkovModel(STATES, sf.Categorical(), topology="left-right").fit(summary)
    with pytest.raises(sf.SufficeError, match="sequences"):
        make().fit(*north).score(summary)
    with pytest.raises(sf.OptionError, match="y= is the response"):
        sf.summarize(make(), north[0], states=north[1], y="x")
