"""What a fit keeps to know its rows again: fits to different rows are never set beside one another in silence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.fitting.row_marks import difference, marks_of, state_number

RNG = np.random.default_rng(4)
N = 120
X = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.normal(size=N), "g": RNG.choice(list("abc"), N)})
Y = RNG.poisson(np.exp(0.4 * X["x"])).astype(float)
STATES = pd.DataFrame({name: RNG.choice(list("nym"), N) for name in "abc"})
NUMBERS = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("pqr"))
OTHER = "learned from different rows"


def poisson(columns: list[str] = ["x"], rows: pd.DataFrame = X, y: Any = Y, **more: Any) -> sf.GLM:  # noqa: B006
    return sf.GLM("poisson").fit(rows[columns], y, **more)


CHANGED: dict[str, Callable[[], sf.GLM]] = {
    "response": lambda: poisson(y=Y[::-1].copy()),
    "offset": lambda: poisson(offset=np.linspace(0.0, 1.0, N)),
    "weights": lambda: poisson(sample_weight=np.where(np.arange(N) % 2, 0.5, 1.5)),
    "column": lambda: poisson(rows=pd.DataFrame({"x": X["x"] ** 2})),
    "resampled": lambda: poisson(rows=X.sample(N, replace=True, random_state=1)),
}


@pytest.mark.parametrize("name", CHANGED)
def test_regressions_of_other_rows_are_not_tested_against_one_another(name: str) -> None:
    larger, other = poisson(["x", "z"]), CHANGED[name]()
    assert other.report_.weight == pytest.approx(larger.report_.weight)
    for ask in (sf.likelihood_ratio_test, sf.compare, lambda a, b: a.likelihood_ratio_test(b)):
        with pytest.raises(sf.DataError, match=OTHER):
            ask(other, larger)


def test_the_order_and_the_form_of_rows_do_not_matter() -> None:
    order = RNG.permutation(N)
    turned = poisson(["x"], X.iloc[order], Y[order])
    twice = sf.GLM("poisson").fit(pd.concat([X[["x", "z"]]] * 2), np.tile(Y, 2))
    assert sf.likelihood_ratio_test(turned, poisson(["x", "z"])).df == 1.0
    weighted = poisson(sample_weight=np.full(N, 2.0))
    assert sf.likelihood_ratio_test(weighted, twice).df == 1.0
    factors = poisson(["x", "g"])
    plain = sf.GLM("poisson").fit(X[["x"]].to_numpy(), Y)
    assert sf.compare(plain, factors).names == ("GLM 1", "GLM 2")
    again = sf.GLM.from_dict(poisson().to_dict())
    with pytest.raises(sf.DataError, match=OTHER):
        sf.likelihood_ratio_test(again, CHANGED["offset"]())
    labels = [sf.GLM("multinomial", reference=label).fit(X[["x"]], X["g"]) for label in "ab"]
    assert not difference(marks_of(labels[0]._fit), marks_of(labels[1]._fit))


def networks(kind: Any, rows: pd.DataFrame) -> list[Any]:
    return [kind(edges).fit(rows) for edges in ({"a": [], "b": [], "c": ["a"]}, {"a": [], "b": ["a"], "c": ["a"]})]


def test_networks_of_other_rows_are_not_tested_against_one_another() -> None:
    resampled = STATES.sample(N, replace=True, random_state=1)
    smaller, larger = networks(sf.BayesianNetwork, STATES)
    assert sf.likelihood_ratio_test(smaller, larger).df == 4.0
    with pytest.raises(sf.DataError, match=OTHER):
        sf.likelihood_ratio_test(networks(sf.BayesianNetwork, resampled)[0], larger)
    # One column permuted alone: all margins are equal, the pairs are not.
    permuted = STATES.assign(c=STATES["c"].to_numpy()[::-1])
    with pytest.raises(sf.DataError, match="'a' times 'c'"):
        sf.likelihood_ratio_test(networks(sf.BayesianNetwork, permuted)[0], larger)
    markov = sf.MarkovNetwork([("a", "b"), ("c",)]).fit(STATES)
    assert sf.compare(smaller, markov).names
    with pytest.raises(sf.DataError, match=OTHER):
        sf.compare(smaller, sf.MarkovNetwork([("a", "b"), ("c",)]).fit(resampled))
    edges = [("p", "q"), ("q", "r")]
    graphs = [sf.GaussianGraph(edges[:size], nodes=list("pqr")).fit(NUMBERS) for size in (1, 2)]
    assert sf.likelihood_ratio_test(*graphs).df == 1.0
    moved = sf.GaussianGraph([("p", "q")], nodes=list("pqr")).fit(NUMBERS + 0.1)
    with pytest.raises(sf.DataError, match=OTHER):
        sf.likelihood_ratio_test(moved, graphs[1])
    mixed = NUMBERS[["p", "q"]].assign(a=STATES["a"])
    nets = [sf.BayesianNetwork({"a": [], "p": ["a"], "q": parents}) for parents in (["p"], ["p", "a"])]
    assert sf.likelihood_ratio_test(nets[0].fit(mixed), nets[1].fit(mixed)).df == 6.0
    turned = mixed.assign(a=mixed["a"].to_numpy()[::-1])
    with pytest.raises(sf.DataError, match=OTHER):
        sf.likelihood_ratio_test(nets[0].fit(turned), nets[1])


def test_models_of_other_columns_are_not_compared() -> None:
    """The likelihood of another response, or of more columns, is another number altogether."""
    shifted = Y + 1.0
    with pytest.raises(sf.DataError, match=OTHER):
        sf.compare(sf.GLM().fit(X[["x"]], np.log(shifted)), sf.GLM().fit(X[["x"]], shifted))
    whole, part = sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit(STATES), sf.BayesianNetwork([("a", "b")]).fit(STATES)
    with pytest.raises(sf.DataError, match="'c'"):
        sf.compare(whole, part)
    with pytest.raises(sf.DataError, match=OTHER):
        sf.compare(sf.Normal().fit(shifted), sf.Normal().fit(np.log(shifted)))
    assert sf.compare(sf.Normal().fit(shifted), sf.Exponential().fit(shifted)).best("AIC")


SEQUENCES = [RNG.choice(list("ab"), 12).tolist() for _ in range(8)]
WORDS = [[{f"w={letter}": 1.0} for letter in sequence] for sequence in SEQUENCES]
TAGS = [[("A" if RNG.random() < (0.7 if letter == "a" else 0.4) else "B") for letter in s] for s in SEQUENCES]
SERIES = pd.DataFrame({"u": RNG.choice(list("ab"), N), "v": RNG.choice(list("cd"), N), "s": np.repeat(range(12), 10)})
AGAIN: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "regression": (sf.GLM("poisson"), {"data": X[["x"]], "y": Y}, {"data": X[["x"]], "y": Y[::-1].copy()}),
    "half": (sf.GLM("poisson"), {"data": X[["x"]], "y": Y}, {"data": X[["x"]][:50], "y": Y[:50]}),
    "offset": (sf.GLM("poisson"), {"data": X[["x"]], "y": Y, "offset": X["z"]}, {"data": X[["x"]], "y": Y}),
    "network": (sf.BayesianNetwork([("a", "b")]), {"data": STATES}, {"data": STATES.iloc[[0] * N]}),
    "target": (
        sf.BayesianNetwork([("a", "b")], target="b"),
        {"data": STATES[["a"]], "y": STATES["b"]},
        {"data": STATES[["a"]], "y": STATES["b"][::-1].to_numpy()},
    ),
    "distribution": (sf.Gamma(), {"data": np.exp(NUMBERS["p"])}, {"data": np.exp(NUMBERS["q"])}),
    "chain": (sf.MarkovChain(), {"data": SEQUENCES}, {"data": [list("ab") * 6] * 8}),
    "series": (
        sf.DynamicBayesianNetwork([("u", "v"), (("u", -1), "u")]),
        {"data": [part for _, part in SERIES.groupby("s")]},
        {"data": [part for _, part in SERIES.assign(u="a").groupby("s")]},
    ),
    "hidden": (sf.HiddenMarkovModel(2, "categorical", max_iter=3), {"data": SEQUENCES}, {"data": [list("ab") * 6] * 8}),
    "field": (sf.ChainCRF(), {"data": WORDS, "y": TAGS}, {"data": WORDS, "y": TAGS[::-1]}),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", AGAIN)
def test_a_bootstrap_takes_the_rows_of_the_fit_alone(name: str) -> None:
    model, rows, others = AGAIN[name]
    first = dict(rows)
    data = first.pop("data")
    fitted = model.fit(data, **first)
    assert fitted.bootstrap(**rows, n=2).n == 2
    with pytest.raises(sf.DataError, match="not those of the fit"):
        fitted.bootstrap(**others, n=2)


def test_numbers_of_states_are_those_of_their_labels() -> None:
    assert state_number(1) == state_number(1.0) == state_number(np.int64(1))
    assert len({state_number(label) for label in ("1", 1, True, None, "a")}) == 5
