"""Solvers by name: those of others are offered by every model that has an objective."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import suffice as sf
from suffice.fitting.control import Outcome
from suffice.solvers.gradient import lbfgs
from suffice.solvers.registry import Objective, Solver, named, register, registered, unregister

ROWS = {"A": [0, 0, 1, 1, 1, 0, 1], "B": [0, 1, 1, 1, 0, 0, 0], "C": [0, 0, 1, 0, 1, 1, 1]}
PAIRS = [("A", "B"), ("B", "C")]


@pytest.fixture
def patient() -> Iterator[Solver]:
    """L-BFGS of somebody else, which begins somewhere of its own."""

    def solve(objective: Objective) -> Outcome:
        begin = replace(objective, start=objective.start + 0.1)
        return lbfgs(begin.evaluate, begin.start, begin.control, scale=begin.scale())

    solver = Solver("patient", "patient L-BFGS", solve)
    register(solver)
    yield solver
    unregister("patient")


def test_a_markov_network_offers_a_solver_that_was_registered(patient: Solver) -> None:
    prior = sf.Normal(variance=4.0)
    mine = sf.MarkovNetwork(PAIRS, solver="patient", prior=prior).fit(ROWS)  # type: ignore[arg-type]
    theirs = sf.MarkovNetwork(PAIRS, solver="newton", prior=prior).fit(ROWS)
    assert mine.report_.method == "patient L-BFGS on exact moments"
    assert mine.converged_
    np.testing.assert_allclose(mine.weights_, theirs.weights_, atol=1e-8)


SEQUENCES = [[[0.5, 1.0], [1.5, -1.0], [-0.5, 0.2]], [[1.0, 0.3], [-1.0, 0.8]], [[0.2, -0.7], [0.9, 0.4]]]
LABELS = [["a", "b", "a"], ["b", "a"], ["a", "a"]]


def graphs_of(sequences: list[list[list[float]]]) -> list[sf.GraphExample]:
    return [sf.GraphExample.chain(sequence) for sequence in sequences]


def fields(**options: object) -> list[sf.ChainCRF | sf.GraphCRF]:
    """Both conditional random fields, of one prior, fitted to the same labels."""
    prior = sf.Normal(variance=4.0)
    chain = sf.ChainCRF(prior, tolerance=1e-9, **options).fit(SEQUENCES, LABELS)  # type: ignore[arg-type]
    return [chain, sf.GraphCRF(prior, tolerance=1e-9, **options).fit(graphs_of(SEQUENCES), LABELS)]  # type: ignore[arg-type]


def test_conditional_random_fields_offer_a_solver_that_was_registered(patient: Solver) -> None:
    for mine, theirs in zip(fields(solver="patient"), fields(), strict=True):
        assert mine.report_.method == "patient L-BFGS"
        assert mine.converged_
        np.testing.assert_allclose(mine.weights_, theirs.weights_, atol=1e-8)


@pytest.mark.parametrize("solver", ["newton", "newton-cg", "cg", "ascent"])
def test_conditional_random_fields_offer_those_of_the_house(solver: str) -> None:
    for mine, theirs in zip(fields(solver=solver), fields(), strict=True):
        assert mine.report_.method == named(solver).title
        assert mine.converged_
        np.testing.assert_allclose(mine.weights_, theirs.weights_, atol=1e-7)


def test_a_laplace_prior_takes_solvers_that_turn_corners(patient: Solver) -> None:
    for make in (sf.ChainCRF(sf.Laplace(scale=1.0), solver="patient"), sf.ChainCRF(sf.Laplace(scale=1.0), solver="cg")):  # type: ignore[arg-type]
        with pytest.raises(sf.OptionError, match="a Laplace prior has none at 0; use solver='owlqn'"):
            make.fit(SEQUENCES, LABELS)


def test_a_solver_says_what_it_needs() -> None:
    objective = Objective(lambda x: (-float(x @ x), -2.0 * x), np.ones(2), sf.MarkovNetwork(PAIRS)._control())
    for name, words in (("newton", "second derivatives"), ("newton-cg", "products with"), ("owlqn", "an L1 penalty")):
        with pytest.raises(sf.OptionError, match=f"{name}' needs {words}.*there are 'lbfgs', 'cg', 'ascent'"):
            named(name).maximise(objective)
    with pytest.raises(sf.OptionError, match="'cg' needs no L1 penalty; for this objective there are 'owlqn'"):
        named("cg").maximise(replace(objective, rate=np.ones(2)))
    assert named("ascent").maximise(objective).converged


def test_it_is_offered_with_features_and_with_a_penalty(patient: Solver) -> None:
    terms = [*PAIRS, sf.Feature(("A", "C"), lambda a, c: a == c)]
    for prior in (None, sf.Normal(variance=2.0), sf.MultivariateNormal(np.zeros(9), 2.0 * np.eye(9))):
        mine = sf.MarkovNetwork(terms, solver="patient", prior=prior).fit(ROWS)  # type: ignore[arg-type]
        best = sf.MarkovNetwork(terms, prior=prior).fit(ROWS)
        assert mine.converged_
        np.testing.assert_allclose(mine.to_joint().values, best.to_joint().values, atol=1e-8)
    with pytest.raises(sf.OptionError, match="A Laplace prior goes with solver='owlqn'"):
        sf.MarkovNetwork(terms, solver="patient", prior=sf.Laplace(scale=1.0)).fit(ROWS)  # type: ignore[arg-type]
    cornered = Solver("patient-corners", "patient OWL-QN", named("owlqn").solve, corners=True)
    register(cornered)
    try:
        mine = sf.MarkovNetwork(terms, solver="patient-corners", prior=sf.Laplace(scale=1.0)).fit(ROWS)  # type: ignore[arg-type]
        best = sf.MarkovNetwork(terms, prior=sf.Laplace(scale=1.0)).fit(ROWS)
        np.testing.assert_allclose(mine.weights_, best.weights_, atol=1e-8)
    finally:
        unregister("patient-corners")


def test_a_name_belongs_to_one_solver(patient: Solver) -> None:
    for name in ("patient", "lbfgs", "auto"):
        with pytest.raises(sf.OptionError, match="already"):
            register(replace(patient, name=name))


def test_a_solver_that_is_not_there() -> None:
    with pytest.raises(sf.OptionError, match="solver is 'patient'; expected one of 'lbfgs'"):
        named("patient")
    with pytest.raises(sf.OptionError, match="solver is 'patient'; expected one of 'auto'"):
        sf.MarkovNetwork(PAIRS, solver="patient")  # type: ignore[arg-type]


def test_what_a_solver_needs() -> None:
    objective = Objective(
        lambda x: (-float(x @ x), -2.0 * x), np.ones(2), sf.MarkovNetwork(PAIRS)._control(), lambda: lambda x, slope: x
    )
    fitting = [name for name, solver in registered().items() if solver.applies(objective)]
    assert fitting == ["lbfgs", "cg", "ascent"]
    cornered = replace(objective, rate=np.ones(2))
    assert [name for name, solver in registered().items() if solver.applies(cornered)] == ["owlqn"]
