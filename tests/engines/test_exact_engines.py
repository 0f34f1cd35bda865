"""Both exact engines, on both paths, against listing every joint state."""

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.factor_graphs import ZOO, Floats, Structure, law, log_sum, models, observe, random_factors, weigh
from suffice.engines.contract import InferencePlan, Model
from suffice.engines.enumeration import plan_enumeration
from suffice.engines.junction_tree import plan_tree
from suffice.errors import DataError, OptionError
from suffice.graphs.nodes import Node
from suffice.kernels import choice

Planner = Callable[[Any, Any], InferencePlan]
ENGINES: dict[str, tuple[Planner, str | None]] = {
    "enumeration": (plan_enumeration, None),
    "numpy tree": (plan_tree, "numpy"),
    "compiled tree": (plan_tree, "compiled"),
}


@pytest.fixture(params=list(ENGINES.values()), ids=list(ENGINES))
def planner(request: pytest.FixtureRequest) -> Iterator[Planner]:
    plan, path = request.param
    with choice.force(path) if path else nullcontext():
        yield plan


def close(found: Any, expected: Any) -> bool:
    return np.shape(found) == np.shape(expected) and bool(np.allclose(found, expected, rtol=1e-11, atol=1e-13))


def check_posterior(model: Model, structure: Structure, weights: dict[tuple[int, ...], float], given: Any) -> None:
    """Everything that `condition` gives, against the weights of joint states given the same evidence."""
    posterior = model.condition(*given)
    assert close(posterior.log_partition, log_sum(weights))
    assert close(model.log_partition(*given), log_sum(weights))
    if log_sum(weights) == -math.inf:
        for ask in (posterior.marginals, lambda: posterior.marginal(()), lambda: posterior.sample(1)):
            with pytest.raises(DataError, match="probability 0"):
                ask()
        with pytest.raises(DataError, match="probability 0"):
            model.most_probable(*given)
        return
    cards, scopes = structure
    for node, vector in posterior.marginals().items():
        assert close(vector, law(structure, weights, (node,)))
    for scope, table in zip(scopes, posterior.factor_marginals(), strict=True):
        assert close(table, law(structure, weights, scope))
    everything = tuple(reversed(cards))
    assert close(posterior.marginal(everything), law(structure, weights, everything))
    best = model.most_probable(*given)
    assert list(best.states) == list(cards)
    assert close(weights[tuple(best.states.values())], max(weights.values()))
    assert close(best.log_value, math.log(max(weights.values())))


@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_the_zoo_without_evidence(planner: Planner, structure: Structure, zeros: float) -> None:
    factors = random_factors(structure, 5, zeros=zeros)
    model = planner(*structure).load(factors)
    check_posterior(model, structure, weigh(structure, factors), ())


@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
def test_the_zoo_with_evidence(planner: Planner, structure: Structure) -> None:
    factors = random_factors(structure, 7)
    nodes = list(structure[0])
    evidence = {node: structure[0][node] - 1 for node in nodes[::3]}
    likelihoods = {node: np.linspace(0.0, 2.0, structure[0][node]) for node in nodes[1::2]}
    model = planner(*structure).load(factors)
    weights = observe(structure, weigh(structure, factors), evidence, likelihoods)
    check_posterior(model, structure, weights, (evidence, likelihoods))


@pytest.mark.parametrize("structure", ZOO.values(), ids=ZOO)
def test_the_zoo_with_log_factors(planner: Planner, structure: Structure) -> None:
    factors = random_factors(structure, 9, zeros=0.2)
    with np.errstate(divide="ignore"):
        model = planner(*structure).load([np.log(factor) for factor in factors], log=True)
    check_posterior(model, structure, weigh(structure, factors), ())


@given(case=models(), data=st.data())
@pytest.mark.parametrize("engine", ENGINES)
def test_random_factor_graphs(engine: str, case: tuple[Structure, list[Floats | None]], data: st.DataObject) -> None:
    structure, factors = case
    cards = structure[0]
    evidence: dict[Node, int] = {}
    likelihoods: dict[Node, Any] = {}
    for node, card in cards.items():
        kind = data.draw(st.sampled_from(["nothing", "hard", "soft", "both"]))
        if kind in ("hard", "both"):
            evidence[node] = data.draw(st.integers(0, card - 1))
        if kind in ("soft", "both"):
            likelihoods[node] = data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 7.0]), min_size=card, max_size=card))
    plan, path = ENGINES[engine]
    with choice.force(path) if path else nullcontext():
        model = plan(*structure).load(factors)
        weights = observe(structure, weigh(structure, factors), evidence, likelihoods)
        check_posterior(model, structure, weights, (evidence, likelihoods))


@given(case=models(), data=st.data())
@pytest.mark.parametrize("engine", ENGINES)
def test_random_rows(engine: str, case: tuple[Structure, list[Floats | None]], data: st.DataObject) -> None:
    """Each row against conditioning on it by listing states; expected counts are their weighted sum."""
    structure, factors = case
    cards, scopes = structure
    columns = data.draw(st.permutations(list(cards)))[: data.draw(st.integers(0, len(cards)))]
    row = st.tuples(*(st.integers(-1, cards[node] - 1) for node in columns))
    rows = data.draw(st.lists(row, max_size=20))
    table = np.array(rows, np.int64).reshape(len(rows), len(columns))
    weights = np.array([data.draw(st.sampled_from([0.0, 1.0, 2.5])) for _ in rows])
    generator = np.random.default_rng(len(rows))
    own = {scopes[0]: np.log(generator.random((len(rows), *(cards[node] for node in scopes[0]))))} if scopes else {}
    if not data.draw(st.booleans()):
        own = {}
    plan, path = ENGINES[engine]
    with choice.force(path) if path else nullcontext():
        model = plan(cards, scopes).load(factors)
        answers = model.solve_rows(table, columns, scopes=scopes, row_factors=own)
        counts = model.expect(table, columns, weights=weights, row_factors=own)
    everything = weigh(structure, factors)
    expected = [np.zeros([cards[node] for node in scope]) for scope in scopes]
    for index, codes in enumerate(rows):
        seen = {node: code for node, code in zip(columns, codes, strict=True) if code >= 0}
        states = observe(structure, everything, seen, {})
        for scope, logs in own.items():
            extra = (cards, [scope]), [np.exp(logs[index])]
            states = {state: weight * weigh(*extra)[state] for state, weight in states.items()}
        total = log_sum(states)
        assert close(answers.log_partition[index], total)
        assert close(counts.log_partition[index], total)
        for number, scope in enumerate(scopes):
            if total > -math.inf:
                part = law(structure, states, scope)
                expected[number] = expected[number] + weights[index] * part
                assert close(answers.marginals[scope][index], part)
            else:
                assert not answers.marginals[scope][index].any()
    for found, wanted in zip(counts.tables, expected, strict=True):
        assert close(found, wanted)


def test_ties_go_to_the_lowest_states(planner: Planner) -> None:
    structure = ZOO["cycle"]
    model = planner(*structure).load([np.ones([structure[0][node] for node in scope]) for scope in structure[1]])
    assert set(model.most_probable().states.values()) == {0}
    assert model.most_probable({2: 1}).states == {0: 0, 1: 0, 2: 1, 3: 0, 4: 0, 5: 0}


def test_log_probability_is_relative_to_all_states(planner: Planner) -> None:
    structure = ZOO["grid"]
    factors = random_factors(structure, 2)
    model = planner(*structure).load(factors)
    evidence: dict[Node, int] = {(0, 0): 1, (2, 1): 0}
    everything = weigh(structure, factors)
    wanted = log_sum(observe(structure, everything, evidence, {})) - log_sum(everything)
    assert close(model.log_probability(evidence), wanted)
    assert model.log_probability() == 0.0


def test_impossible_evidence_has_log_probability_minus_infinity(planner: Planner) -> None:
    model = planner({"a": 2, "b": 2}, [("a", "b")]).load([[[1.0, 0.0], [0.5, 0.5]]])
    assert model.log_probability({"a": 0, "b": 1}) == -math.inf
    assert model.log_partition({"a": 0}, {"b": [0.0, 1.0]}) == -math.inf


def test_factors_that_are_all_zero_define_no_law(planner: Planner) -> None:
    model = planner({"a": 2}, [("a",), ()]).load([[0.0, 0.0], 1.0])
    assert model.log_partition() == -math.inf
    with pytest.raises(DataError, match="define no distribution"):
        model.log_probability({"a": 0})


def test_samples_follow_the_law(planner: Planner) -> None:
    """Pearson's chi-square over all joint states, below its 0.999 quantile for a fixed seed."""
    from scipy.stats import chi2

    structure = ZOO["families"]
    factors = random_factors(structure, 1)
    posterior = planner(*structure).load(factors).condition({"s": 2}, {"q": [1.0, 0.2, 3.0]})
    sample = posterior.sample(20_000, random_state=0)
    assert (sample[:, 3] == 2).all()
    expected = posterior.marginal(tuple(structure[0])).ravel() * len(sample)
    cells = np.ravel_multi_index(list(sample.T), tuple(structure[0].values()))
    counts = np.bincount(cells, minlength=expected.size)
    assert not counts[expected == 0].any()
    used = expected > 0
    statistic = float(((counts[used] - expected[used]) ** 2 / expected[used]).sum())
    assert statistic < chi2.ppf(0.999, used.sum() - 1)


def test_seeds_repeat_samples(planner: Planner) -> None:
    structure = ZOO["grid"]
    posterior = planner(*structure).load(random_factors(structure, 1)).condition()
    first, second = posterior.sample(50, random_state=0), posterior.sample(50, random_state=0)
    assert first.dtype == np.int32
    assert (first == second).all()
    assert (first != posterior.sample(50, random_state=1)).any()
    assert posterior.sample(0, random_state=0).shape == (0, 9)


def test_impossible_states_are_never_drawn(planner: Planner) -> None:
    table = np.array([[0.5, 0.0, 0.5], [0.0, 1e-300, 0.0]])
    sample = planner({"a": 2, "b": 3}, [("a", "b")]).load([table]).condition().sample(5000, random_state=3)
    assert set(map(tuple, sample.tolist())) == {(0, 0), (0, 2)}


WRONG: dict[str, tuple[Callable[[Planner], Any], type[Exception], str]] = {
    "card 0": (lambda plan: plan({"a": 0}, []), OptionError, "card of 'a' is 0"),
    "card 2.5": (lambda plan: plan({"a": 2.5}, []), OptionError, "expected a whole number"),
    "unknown variable": (lambda plan: plan({"a": 2}, [("a", "b")]), OptionError, "names 'b'. The variables are: 'a'"),
    "variable twice": (lambda plan: plan({"a": 2}, [("a", "a")]), OptionError, "names a variable twice"),
    "scope is a word": (lambda plan: plan({"a": 2}, ["a"]), OptionError, "expected a sequence"),
    "too few factors": (lambda plan: plan({"a": 2}, [("a",)]).load([]), OptionError, "0 factors are given for 1"),
    "shape": (lambda plan: plan({"a": 2}, [("a",)]).load([[1.0]]), OptionError, r"shape \(1,\); expected \(2,\)"),
    "negative": (lambda plan: plan({"a": 2}, [("a",)]).load([[1.0, -1.0]]), OptionError, "negative or not finite"),
    "not a number": (lambda plan: plan({"a": 2}, [("a",)]).load([[1.0, math.nan]]), OptionError, "not finite"),
    "log of infinity": (
        lambda plan: plan({"a": 2}, [(), ("a",)]).load([0.0, [1.0, math.inf]], log=True),
        OptionError,
        r"factor of \('a',\) holds NaN or \+inf",
    ),
    "state 2 of 2": (lambda plan: plan({"a": 2}, []).load([]).condition({"a": 2}), DataError, "its states are 0 to 1"),
    "state of no one": (lambda plan: plan({"a": 2}, []).load([]).condition({"z": 0}), OptionError, "names 'z'"),
    "state 0.5": (lambda plan: plan({"a": 2}, []).load([]).condition({"a": 0.5}), OptionError, "whole number"),  # type: ignore[dict-item]
    "short likelihood": (
        lambda plan: plan({"a": 3}, []).load([]).condition({}, {"a": [1.0, 1.0]}),
        DataError,
        "each of its 3 states",
    ),
    "negative likelihood": (
        lambda plan: plan({"a": 2}, []).load([]).condition({}, {"a": [1.0, -1.0]}),
        DataError,
        "negative or not finite",
    ),
    "code 2 of 2": (
        lambda plan: plan({"a": 3, "b": 2}, []).load([]).solve_rows([[0, 1], [2, 2]]),
        DataError,
        "Row 1 has the code 2 for 'b'; its codes are 0 to 1",
    ),
    "columns": (lambda plan: plan({"a": 2}, []).load([]).solve_rows([[0, 1]]), DataError, r"expected .* \(rows, 1\)"),
    "real codes": (lambda plan: plan({"a": 2}, []).load([]).expect([[0.5]]), DataError, "expected whole numbers"),
    "row factor": (
        lambda plan: plan({"a": 2}, []).load([]).expect([[0]], row_factors={("a",): [[0.0, math.nan]]}),
        DataError,
        "row factor of .* holds NaN",
    ),
}


@pytest.mark.parametrize(("act", "kind", "message"), WRONG.values(), ids=WRONG)
def test_errors_say_what_is_wrong(
    planner: Planner, act: Callable[[Planner], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        act(planner)
