"""Kinds of node: chosen from the columns, named, given, and added from outside."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

import suffice as sf
from suffice.models.bayesian.nodes.contract import NodeKind, NodeLearner, NodeOptions
from suffice.models.bayesian.nodes.kinds import KINDS, register
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode
from suffice.statistics import Counts, Statistic


def counted(n: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, n)
    return {"x": x, "g": np.where(x > 1, "high", "low"), "y": 2.0 * x + rng.normal(0, 0.1, n)}


# -- kinds by name ---------------------------------------------------------------------------------------------------


def test_a_kind_says_how_a_column_is_read() -> None:
    rows = counted()
    plain = sf.BayesianNetwork([("x", "y")]).fit(rows)
    assert plain.node("x").kind == "table"
    real = sf.BayesianNetwork([("x", "y")], nodes={"x": "linear-gaussian"}).fit(rows)
    assert real.node("x").kind == "linear-gaussian"
    assert real.node("x").weights_[0] == pytest.approx(rows["x"].mean())
    assert real.node("y").real_parents == ("x",)
    floats = sf.BayesianNetwork({"x": []}, nodes={"x": "table"}).fit({"x": rows["x"] / 2})
    assert floats.states("x") == (0.0, 0.5, 1.0, 1.5)
    np.testing.assert_allclose(floats.table("x").values, np.bincount(rows["x"]) / 60)
    declared = sf.BayesianNetwork({"x": []}, nodes={"x": "table"}, states={"x": [0, 1, 2, 3, 4]}).fit(rows)
    assert declared.table("x").at(x=4) == 0.0


def test_kinds_that_do_not_fit() -> None:
    rows = counted()
    with pytest.raises(sf.OptionError, match="'y' is discrete and has the real parents 'x'; a table node needs"):
        sf.BayesianNetwork([("x", "y")], nodes={"y": "table"}).fit({"x": rows["y"], "y": rows["x"]})
    with pytest.raises(sf.OptionError, match="'linear-gaussian', whose column is real; states= declares it discrete"):
        sf.BayesianNetwork({"g": []}, nodes={"g": "linear-gaussian"}, states={"g": ["low", "high"]}).fit(rows)
    with pytest.raises(sf.OptionError, match="expected one of 'table', 'linear-gaussian', 'noisy-or'"):
        sf.BayesianNetwork({"g": []}, nodes={"g": "tree"})
    with pytest.raises(sf.OptionError, match="expected one of"):
        sf.BayesianNetwork({"g": []}, nodes={"g": sf.NoisyOr})
    with pytest.raises(sf.OptionError, match="nodes= names 'z', which is no node"):
        sf.BayesianNetwork({"g": []}, nodes={"z": "table"})
    with pytest.raises(sf.OptionError, match="NoisyOr takes leak=True or False"):
        sf.NoisyOr(leak=0.1)  # type: ignore[arg-type]
    with pytest.raises(
        sf.OptionError, match="'linear-gaussian', which needs a column of numbers; found the states 0, 1"
    ):
        sf.BayesianNetwork({"h": [], "g": ["h"]}, hidden={"h": 2}, nodes={"h": "linear-gaussian"}).fit(rows)


# -- fixed nodes -----------------------------------------------------------------------------------------------------


def test_a_fixed_table_goes_by_label_and_keeps_every_bit() -> None:
    rows = counted()
    net = sf.BayesianNetwork([("g", "x")]).fit(rows)
    table = net.table("x")
    turned = sf.Domain([sf.Variable.discrete("x", [3, 2, 1, 0]), sf.Variable.discrete("g", ["low", "high"])])
    values = [[table.at(x=x, g=g) for g in ("low", "high")] for x in (3, 2, 1, 0)]
    for given in (table, sf.Table(turned, values), table.values, net.node("x")):
        again = sf.BayesianNetwork([("g", "x")], fixed={"x": given}).fit(rows)
        np.testing.assert_array_equal(again.table("x").values, table.values)
        assert again.n_params_ == 1
    other = sf.BayesianNetwork({"x": ["g"]}, states={"g": ["low", "high"]}).fit(rows)
    assert other.states("g") != net.states("g")
    again = sf.BayesianNetwork([("g", "x")], fixed={"x": other.node("x")}).fit(rows)
    np.testing.assert_array_equal(again.table("x").values, table.values)


def test_a_fixed_regression_keeps_every_bit() -> None:
    rows = counted()
    real = {"x": rows["x"] + 0.25, "y": rows["y"], "z": rows["y"] ** 2}
    net = sf.BayesianNetwork([("x", "y")]).fit({name: real[name] for name in ("x", "y")})
    node = net.node("y")
    for given in (node, (node.weights_, node.variance_)):
        again = sf.BayesianNetwork([("x", "y"), ("y", "z")], fixed={"y": given}).fit(real)
        np.testing.assert_array_equal(again.node("y").weights, node.weights)
        np.testing.assert_array_equal(again.node("y").variance, node.variance)
        assert again.n_params_ == 2 + 3
        assert again.score_samples(real).sum() == pytest.approx(again.report_.log_likelihood, rel=1e-12)
    with pytest.raises(sf.OptionError, match=r"given as \(weights, variance\)"):
        sf.BayesianNetwork([("x", "y")], fixed={"y": 3.0}).fit(real)
    with pytest.raises(sf.OptionError, match="The fixed node 'y' is over"):
        sf.BayesianNetwork([("z", "y")], fixed={"y": node}).fit(real)


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_fixed_nodes_survive_a_file(tmp_path: Path, ending: str) -> None:
    rows = counted()
    first = sf.BayesianNetwork([("g", "y"), ("g", "x")]).fit(rows)
    fixed = {"y": first.node("y"), "x": first.table("x")}
    net = sf.BayesianNetwork([("g", "y"), ("g", "x")], fixed=fixed).fit(rows)
    net.write(tmp_path / f"net.{ending}")
    back = sf.read(tmp_path / f"net.{ending}")
    np.testing.assert_array_equal(back.node("y").weights, first.node("y").weights)
    refitted = back.fit(rows)
    np.testing.assert_array_equal(refitted.node("y").weights, first.node("y").weights)
    np.testing.assert_array_equal(refitted.table("x").values, first.table("x").values)


def test_fixed_nodes_stay_while_gaps_are_learned() -> None:
    rows = counted(200)
    first = sf.BayesianNetwork([("g", "x")]).fit(rows)
    holes = {"g": [None if k % 7 == 0 else value for k, value in enumerate(rows["g"])], "x": rows["x"]}
    net = sf.BayesianNetwork([("g", "x")], fixed={"x": first.node("x")}).fit(holes)
    np.testing.assert_array_equal(net.table("x").values, first.table("x").values)


# -- standard errors -------------------------------------------------------------------------------------------------


def test_standard_errors_of_every_kind() -> None:
    rows = counted(500)
    rows["s"] = (np.random.default_rng(1).random(500) < np.where(rows["g"] == "high", 0.7, 0.2)).astype(int)
    net = sf.BayesianNetwork([("g", "y"), ("g", "s")], nodes={"s": "noisy-or"}).fit(rows)
    errors = net.standard_errors_
    assert list(errors) == list(net.nodes)
    share = np.mean(rows["g"] == "high")
    assert errors["g"].at(g="high") == pytest.approx(np.sqrt(share * (1 - share) / 500))
    for state in ("high", "low"):
        some = rows["y"][rows["g"] == state]
        assert errors["y"].at(g=state, coefficient="(intercept)") == pytest.approx(some.std() / np.sqrt(len(some)))
        assert errors["y"].at(g=state, coefficient="(variance)") == pytest.approx(some.var() * np.sqrt(2 / len(some)))
    assert errors["s"].variables == ("coefficient",)
    # "high" comes first, so it is inactive and "low" would lower the chance: its weight is 0, on the edge.
    assert np.isnan(errors["s"].at(coefficient=("g", "low")))
    assert errors["s"].at(coefficient="(leak)") > 0


# -- a kind from outside ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConstantNode(TableNode):
    """The same law whatever the parents are."""

    kind: ClassVar[str] = "constant"


@dataclass(frozen=True)
class ConstantLearner(NodeLearner):
    """From the counts of the node alone."""

    def statistics(self, domain: sf.Domain) -> tuple[Statistic, ...]:
        return (Counts(domain.names),)

    def learn(self, domain: sf.Domain, summary: sf.Summary) -> ConstantNode:
        counts = summary[Counts(domain.names)].dense()
        counts = counts.sum(axis=tuple(range(counts.ndim - 1)))
        rows = np.broadcast_to(counts / counts.sum(), (int(np.prod(domain.shape(domain.names[:-1]))), len(counts)))
        return ConstantNode(domain, rows.copy(), rows * 0, rows[0], estimate="mle")


@dataclass(frozen=True)
class Constant(NodeKind):
    """The kind, with no options."""

    kind: ClassVar[str] = "constant"
    node_class: ClassVar[type[Any]] = ConstantNode
    column: ClassVar[Literal["discrete", "real"]] = "discrete"

    def check(self, family: sf.Domain) -> None:
        pass

    def learner(self, family: sf.Domain, options: NodeOptions) -> ConstantLearner:
        return ConstantLearner()

    def given(self, family: sf.Domain, values: Any, options: NodeOptions) -> Any:
        return replace(values)


@pytest.fixture
def _constant() -> Iterator[None]:
    register(Constant())
    yield
    KINDS.remove("constant")


@pytest.mark.usefixtures("_constant")
def test_another_kind_enters_by_one_call(tmp_path: Path) -> None:
    rows = counted()
    for kind in ("constant", Constant()):
        nodes: Mapping[Any, Any] = {"g": kind}
        net = sf.BayesianNetwork([("x", "g"), ("g", "y")], nodes=nodes).fit(rows)
        np.testing.assert_allclose(net.table("g").values, [[np.mean(rows["g"] == s) for s in ("high", "low")]] * 4)
        assert net.query("g", given={"x": 3}).at(g="low") == pytest.approx(np.mean(rows["g"] == "low"))
        assert isinstance(net.node("y"), LinearGaussianNode)
    named = sf.BayesianNetwork([("x", "g"), ("g", "y")], nodes={"g": "constant"}).fit(rows)
    # Its rows are not those of the largest likelihood of a table, as which it is judged.
    with pytest.warns(sf.ConvergenceWarning, match="though its solver says so"):
        named.write(tmp_path / "net.json")
    assert isinstance(sf.read(tmp_path / "net.json").node("g"), ConstantNode)
