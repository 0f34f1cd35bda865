"""Parts that another package offers as entry points: models have them by name, without a call."""

import importlib.metadata
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import extend
from suffice.families.registry import FAMILIES as DISTRIBUTIONS
from suffice.models.bayesian.nodes.kinds import KINDS, TableKind
from suffice.models.bayesian.nodes.table import TableNode
from suffice.models.glm.families import PoissonFamily
from suffice.models.glm.registry import FAMILIES
from suffice.models.hidden_markov.emissions import registry as emissions
from suffice.solvers import registry as solvers

ROWS = {"a": [0, 0, 1, 1, 1, 0, 1, 0], "b": [0, 1, 1, 1, 0, 0, 1, 0]}


class Offered:
    """An entry point, as another package declares it."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def load(self) -> Any:
        return self.value


@pytest.fixture
def offers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Offered]]:
    """Groups of entry points to be filled; registries are as they were afterwards."""
    groups: dict[str, list[Offered]] = {}
    others = importlib.metadata.entry_points

    def entry_points(**chosen: Any) -> Any:
        return groups[chosen["group"]] if chosen.get("group") in groups else others(**chosen)

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    registries: tuple[Any, ...] = (DISTRIBUTIONS, KINDS, FAMILIES, emissions._kinds, solvers._solvers)
    for registry in registries:
        monkeypatch.setattr(registry, "_known", dict(registry._known))
    return groups


def test_a_solver(offers: dict[str, list[Offered]]) -> None:
    def newton(objective: extend.Objective) -> extend.Outcome:
        return solvers.named("newton").solve(objective)

    offers["suffice.solvers"] = [Offered("theirs", extend.Solver("theirs", "Their Newton", newton, uses="information"))]
    network = sf.MarkovNetwork([("a", "b")], solver="theirs").fit(ROWS)  # type: ignore[arg-type]
    assert network.report_.method.startswith("Their Newton")
    np.testing.assert_allclose(network.marginal(("a", "b")).values, [[0.375, 0.125], [0.125, 0.375]], atol=1e-9)
    x, y = np.arange(6.0), [0, 1, 0, 2, 3, 3]
    mine, theirs = (sf.GLM("poisson", solver=solver).fit(x[:, None], y) for solver in ("irls", "theirs"))  # type: ignore[arg-type]
    np.testing.assert_allclose(theirs.coefficients_, mine.coefficients_, rtol=1e-6)
    assert "theirs" in solvers.registered()
    for model in (sf.MarkovNetwork, sf.GaussianGraph):
        with pytest.raises(sf.OptionError, match=r"solver is 'nobody'; expected one of 'auto', .*'theirs'"):
            model([("a", "b")], solver="nobody")  # type: ignore[arg-type]
    for other in (sf.GLM, sf.ChainCRF, sf.GraphCRF):
        with pytest.raises(sf.OptionError, match=r"solver is 'nobody'; expected one of 'auto', .*'theirs'"):
            other(solver="nobody")  # type: ignore[arg-type]


class TheirNode(TableNode):
    """A table by another name."""

    kind = "theirs"


@dataclass(frozen=True)
class TheirKind(TableKind):
    """The kind of such nodes."""

    kind = TheirNode.kind
    node_class = TheirNode


def test_a_kind_of_node(offers: dict[str, list[Offered]]) -> None:
    with pytest.raises(
        sf.OptionError,
        match="expected one of 'table', 'linear-gaussian', 'noisy-or', 'noisy-max', 'glm', 'constrained-table'",
    ):
        sf.BayesianNetwork([("a", "b")], nodes={"b": "theirs"}).fit(ROWS)
    offers["suffice.node_kinds"] = [Offered("theirs", TheirKind())]
    network = sf.BayesianNetwork([("a", "b")], nodes={"b": "theirs"}).fit(ROWS)
    np.testing.assert_allclose(network.table("b").values, [[0.75, 0.25], [0.25, 0.75]])


class Shifted:
    """A distribution that no emission of this package takes."""


class TheirEmissions:
    """Normal emissions for it."""

    def takes(self, distribution: Any, options: Any, width: int) -> bool:
        return isinstance(distribution, Shifted)

    def build(self, distribution: Any, options: Any, columns: Any, names: Any, known: Any) -> Any:
        kind = emissions.kind_for(sf.Normal(), options, len(columns))
        assert kind is not None
        return kind.build(sf.Normal(), options, columns, names, known)


def test_a_kind_of_emission(offers: dict[str, list[Offered]]) -> None:
    x = [np.random.default_rng(0).normal(size=40) + np.repeat([0.0, 6.0], 20)]
    with pytest.raises(sf.OptionError, match="expected a distribution"):
        sf.HiddenMarkovModel(2, emission=Shifted()).fit(x)
    offers["suffice.emissions"] = [Offered("shifted", TheirEmissions())]
    theirs, normal = (sf.HiddenMarkovModel(2, emission=emission).fit(x) for emission in (Shifted(), sf.Normal()))
    np.testing.assert_array_equal(theirs.transitions_, normal.transitions_)


class TheirFamily(PoissonFamily):
    """Counts by another name."""

    name = "their_counts"


class Waiting(sf.Exponential):
    """Waiting times; a subclass stands for the family of its distribution."""


def test_a_family_of_regressions(offers: dict[str, list[Offered]]) -> None:
    x, y = np.arange(1.0, 7.0)[:, None], [1, 2, 1, 2, 3, 3]
    with pytest.raises(sf.OptionError, match="family is 'their_counts'; expected a distribution, or one of 'gaussian'"):
        sf.GLM("their_counts")  # type: ignore[arg-type]
    offers["suffice.glm_families"] = [Offered("their_counts", TheirFamily())]
    offers["suffice.families"] = [Offered("waiting", Waiting)]
    theirs, mine = (sf.GLM(family).fit(x, y) for family in ("their-counts", "poisson"))  # type: ignore[arg-type]
    np.testing.assert_array_equal(theirs.coefficients_, mine.coefficients_)
    assert theirs.fitted_.family == "their_counts"
    waiting, exponential = (sf.GLM(family, link="log").fit(x, y) for family in ("waiting", sf.Exponential()))  # type: ignore[arg-type]
    np.testing.assert_array_equal(waiting.coefficients_, exponential.coefficients_)
    assert waiting.dispersion_ == 1.0


def test_a_registered_distribution_is_a_family_by_its_name(offers: dict[str, list[Offered]]) -> None:
    extend.register_family("waiting_time", Waiting)
    x, y = np.arange(1.0, 7.0)[:, None], [1, 2, 1, 2, 3, 3]
    by_name, by_class = (sf.GLM(family, link="log").fit(x, y) for family in ("waiting time", Waiting()))  # type: ignore[arg-type]
    np.testing.assert_array_equal(by_name.coefficients_, by_class.coefficients_)
