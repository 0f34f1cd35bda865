"""Networks of tables and regressions: against the sum over all joint states of the discrete nodes."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

import suffice as sf
from network_files import shared
from suffice.engines.conditional_gaussian import ConditionalGaussian
from suffice.engines.conditional_gaussian_rows import log_evidence, solve_rows
from suffice.engines.likelihood_weighting import weigh_samples
from suffice.engines.mixed_network import Discrete, MixedNetwork, NodeRegression
from suffice.engines.mixtures import GaussianMixture

Floats = NDArray[np.float64]
Rows = dict[Any, Any]


def random_network(seed: int) -> MixedNetwork:
    """Up to four discrete and four real nodes, with up to two parents of each kind."""
    rng = np.random.default_rng(seed)
    tables: dict[Any, Discrete] = {}
    cards: dict[str, int] = {}
    for k in range(int(rng.integers(1, 5))):
        parents = sorted(rng.choice(list(cards), size=rng.integers(0, min(k, 2) + 1), replace=False)) if k else []
        cards[f"d{k}"] = int(rng.integers(1, 4))
        table = rng.dirichlet(np.ones(cards[f"d{k}"]), size=[cards[p] for p in parents])
        tables[f"d{k}"] = Discrete(tuple(parents), table)
    regressions: dict[Any, NodeRegression] = {}
    for k in range(int(rng.integers(1, 5))):
        discrete = tuple(rng.permutation(list(cards))[: rng.integers(0, 3)].tolist())
        reals = tuple(rng.permutation(list(regressions))[: rng.integers(0, 3)].tolist()) if k else ()
        shape = [cards[name] for name in discrete]
        weights = rng.normal(size=(*shape, len(reals) + 1))
        regressions[f"x{k}"] = NodeRegression(discrete, reals, weights, rng.uniform(0.2, 2.0, size=shape))
    return MixedNetwork(tables, regressions)


def joint_states(network: MixedNetwork) -> list[tuple[dict[Any, int], float, Floats, Floats]]:
    """Every joint state of the discrete nodes: its log probability, mean and covariance of the real nodes."""
    found = []
    names = list(network.regressions)
    for codes in itertools.product(*(range(card) for card in network.cards.values())):
        state = dict(zip(network.cards, codes, strict=True))
        log = 0.0
        for node, (parents, table) in network.tables.items():
            log += math.log(np.asarray(table)[tuple(state[name] for name in (*parents, node))])
        d = len(names)
        b, intercept, variance = np.zeros((d, d)), np.zeros(d), np.zeros(d)
        for at, name in enumerate(names):
            regression = network.regressions[name]
            place = tuple(state[parent] for parent in regression.discrete)
            weights = np.asarray(regression.weights)[place]
            intercept[at], variance[at] = weights[0], np.asarray(regression.variance)[place]
            for parent, weight in zip(regression.reals, weights[1:], strict=True):
                b[at, names.index(parent)] = weight
        half = np.linalg.inv(np.eye(d) - b)
        found.append((state, log, half @ intercept, half @ np.diag(variance) @ half.T))
    return found


class Brute:
    """The posterior by summing over all joint states."""

    def __init__(self, network: MixedNetwork, evidence: Mapping[Any, Any]) -> None:
        self.network, self.names = network, list(network.regressions)
        self.seen = [name for name in self.names if name in evidence]
        at = [self.names.index(name) for name in self.seen]
        values = np.array([evidence[name] for name in self.seen])
        self.states, self.logs, self.means, self.covariances = [], [], [], []
        for state, prior, mean, covariance in joint_states(network):
            if any(state[name] != evidence[name] for name in state if name in evidence):
                continue
            log, gain = prior, np.zeros((len(mean), 0))
            if at:
                inner = covariance[np.ix_(at, at)]
                log += stats.multivariate_normal(mean[at], inner).logpdf(values)
                gain = covariance[:, at] @ np.linalg.inv(inner)
            self.states.append(state)
            self.logs.append(log)
            self.means.append(mean + gain @ (values - mean[at]))
            self.covariances.append(covariance - gain @ covariance[at])
        self.log_evidence = float(logsumexp(self.logs))
        self.weights = np.exp(np.array(self.logs) - self.log_evidence)

    def table(self, names: Sequence[Any]) -> Floats:
        found = np.zeros([self.network.cards[name] for name in names])
        for state, weight in zip(self.states, self.weights, strict=True):
            found[tuple(state[name] for name in names)] += weight
        return found

    def moments(self, names: Sequence[Any]) -> tuple[Floats, Floats]:
        at = [self.names.index(name) for name in names]
        means = np.array(self.means)[:, at]
        mean = self.weights @ means
        within = sum(w * c[np.ix_(at, at)] for w, c in zip(self.weights, self.covariances, strict=True))
        away = means - mean
        return mean, within + (self.weights[:, None] * away).T @ away


def some_evidence(network: MixedNetwork, rng: np.random.Generator) -> dict[Any, Any]:
    evidence: dict[Any, Any] = {}
    for name, card in network.cards.items():
        if rng.random() < 0.3:
            evidence[name] = int(rng.integers(0, card))
    for name in network.regressions:
        if rng.random() < 0.5:
            evidence[name] = float(rng.normal())
    return evidence


@given(st.integers(0, 99_999))
def test_against_the_sum_over_joint_states(seed: int) -> None:
    network = random_network(seed)
    rng = np.random.default_rng(seed)
    evidence = some_evidence(network, rng)
    brute = Brute(network, evidence)
    found = ConditionalGaussian(network).condition(evidence)
    assert found.log_evidence == pytest.approx(brute.log_evidence, rel=1e-9, abs=1e-9)
    assert found.n_points == 0
    discrete = rng.permutation(np.array(list(network.cards))).tolist()
    for names in (discrete, discrete[:1], discrete[:2]):
        np.testing.assert_allclose(found.table(names), brute.table(names), rtol=1e-8, atol=1e-11)
    reals = rng.permutation(np.array(list(network.regressions))).tolist()
    for names in (reals, reals[:1], reals[:2]):
        mixture = found.mixture(names)
        mean, covariance = brute.moments(names)
        assert mixture.weights.sum() == pytest.approx(1.0, rel=1e-12)
        np.testing.assert_allclose(mixture.mean, mean, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(mixture.covariance, covariance, rtol=1e-6, atol=1e-8)


@given(st.integers(0, 99_999))
def test_rows_with_gaps_are_one_evidence_each(seed: int) -> None:
    network = random_network(seed)
    rng = np.random.default_rng(seed)
    rows = [some_evidence(network, rng) for _ in range(6)]
    columns: Rows = {name: np.array([row.get(name, -1) for row in rows]) for name in network.cards}
    columns |= {name: np.array([row.get(name, np.nan) for row in rows]) for name in network.regressions}
    engine = ConditionalGaussian(network)
    expected = [Brute(network, row) for row in rows]
    np.testing.assert_allclose(log_evidence(engine, columns), [b.log_evidence for b in expected], rtol=1e-8, atol=1e-9)
    scope = tuple(network.cards)
    for group in solve_rows(engine, columns, scopes=[scope]):
        for place, number in enumerate(group.rows):
            brute = expected[number]
            assert group.log_evidence[place] == pytest.approx(brute.log_evidence, rel=1e-8, abs=1e-9)
            np.testing.assert_allclose(group.marginals[scope][place], brute.table(scope), rtol=1e-7, atol=1e-10)
            known = {name: group.states[name] for name in network.cards if name in group.states}
            assert set(known) <= set(rows[number])
            hidden: set[str] = set()
            for part in group.parts:
                for component in np.flatnonzero((part.layout.rows == place).any(axis=1)):
                    at = part.layout.rows[component].tolist().index(place)
                    names = [group.order[node] for node in part.layout.hidden[component]]
                    assert hidden.isdisjoint(names)
                    hidden.update(names)
                    weights = part.weights[component, at]
                    np.testing.assert_allclose(weights, brute.table(part.interface).ravel(), rtol=1e-7, atol=1e-10)
                    means = part.means[component, :, at]
                    away = means - weights @ means
                    covariance = np.einsum("c,cuv->uv", weights, part.covariances[component])
                    covariance += (weights[:, None] * away).T @ away
                    wanted = brute.moments(names)
                    np.testing.assert_allclose(weights @ means, wanted[0], rtol=1e-6, atol=1e-8)
                    np.testing.assert_allclose(covariance, wanted[1], rtol=1e-6, atol=1e-8)
            assert hidden == set(network.regressions) - set(rows[number])


def test_hidden_columns_and_no_columns() -> None:
    network = random_network(12)
    engine = ConditionalGaussian(network)
    name = next(iter(network.regressions))
    values = np.array([0.3, -1.0])
    found = log_evidence(engine, {name: values})
    assert found.tolist() == pytest.approx([Brute(network, {name: value}).log_evidence for value in values], rel=1e-9)
    gaps = {name: np.full(3, np.nan)}
    assert log_evidence(engine, gaps).tolist() == [0.0, 0.0, 0.0]
    (group,) = solve_rows(engine, gaps)
    mean, _ = Brute(network, {}).moments([name])
    assert group.means_of(name).tolist() == pytest.approx([mean[0]] * 3, rel=1e-9)
    with pytest.raises(sf.DataError, match="columns of one length"):
        log_evidence(engine, {name: values, "d0": np.zeros(3)})


# -- mixtures ----------------------------------------------------------------------------------------------------------


def test_the_density_of_a_mixture() -> None:
    network = MixedNetwork(
        {"z": Discrete((), [0.3, 0.7])}, {"x": NodeRegression(("z",), (), [[0.0], [4.0]], [1.0, 4.0])}
    )
    mixture = ConditionalGaussian(network).condition().mixture(["x"])
    points = np.linspace(-3, 9, 7)
    expected = 0.3 * stats.norm(0, 1).pdf(points) + 0.7 * stats.norm(4, 2).pdf(points)
    np.testing.assert_allclose(np.exp(mixture.log_prob(points[:, None])), expected, rtol=1e-12)
    assert mixture.mean[0] == pytest.approx(2.8)
    draws = mixture.sample(100_000, random_state=0)
    assert draws.mean() == pytest.approx(2.8, abs=0.03)
    assert draws.var() == pytest.approx(mixture.covariance[0, 0], rel=0.02)
    with pytest.raises(sf.DataError, match="expected 1 columns"):
        mixture.log_prob([1.0])
    with pytest.raises(sf.MissingColumnError, match="no variable 'y'"):
        mixture.marginal(["y"])


def test_points_in_a_mixture_outweigh_densities() -> None:
    mixture = GaussianMixture(("x",), np.array([0.4, 0.6]), np.array([[1.0], [1.0]]), np.array([[[0.0]], [[2.0]]]))
    found = mixture.log_prob([[1.0], [2.0]])
    assert found.tolist() == pytest.approx([math.log(0.4), math.log(0.6) + stats.norm(1, 2).logpdf(2)], rel=1e-12)


# -- point masses ------------------------------------------------------------------------------------------------------


def healthcare() -> MixedNetwork:
    """The shared hybrid network; without a hospital stay its days are 0 for certain."""
    cpds = json.loads(shared("bn/healthcare.json").read_text())["cpds"]
    levels = {node: cpd["levels"] for node, cpd in cpds.items() if cpd["type"] == "discrete"}
    tables, regressions = {}, {}
    for node, cpd in cpds.items():
        if cpd["type"] == "discrete":
            parents = cpd["parents"]
            rows = [cpd["cpt"]] if not parents else [cpd["cpt"][f"{parents[0]}={s}"] for s in levels[parents[0]]]
            table = np.array([[row[state] for state in cpd["levels"]] for row in rows])
            tables[node] = Discrete(tuple(parents), table if parents else table[0])
        else:
            discrete, reals = tuple(cpd.get("dparents", ())), tuple(cpd.get("gparents", cpd["parents"]))
            shape = tuple(len(levels[name]) for name in discrete)
            names = ("(Intercept)", *reals)
            flat = [np.array(list(np.ravel(_values(cpd["coefficients"][name])))) for name in names]
            deviation = np.array(_values(cpd["sd"])) if "sd" in cpd else np.sqrt([cpd["variance"]])
            # The first discrete parent runs fastest in that file.
            weights = np.stack([part.reshape(shape[::-1]).T for part in flat], axis=-1)
            regressions[node] = NodeRegression(discrete, reals, weights, deviation.reshape(shape[::-1]).T ** 2)
    return MixedNetwork(tables, regressions)


def _values(figures: Any) -> list[float]:
    return [float(figures[key]) for key in sorted(figures, key=int)] if isinstance(figures, dict) else [float(figures)]


def test_a_network_with_point_masses() -> None:
    engine = ConditionalGaussian(healthcare())
    nothing = engine.condition()
    age, stay = nothing.table(["A"]), nothing.table(["A", "H"])
    np.testing.assert_allclose(age, [0.35, 0.45, 0.2])
    # E[T] = 120 + 1.02 E[I] + 1.05 E[O], by hand.
    days = {(a, 1): d for a, d in enumerate((1.0, 4.0, 7.0))}
    cost = {0: 300.0, 1: 550.0, 2: 800.0}
    condition = nothing.table(["A", "C"]) / age[:, None]
    stays = 100 + sum(stay[a, 1] * d * condition[a] @ list(cost.values()) for (a, _), d in days.items())
    outpatient = age @ [60, 180, 360]
    assert nothing.mixture(["T"]).mean[0] == pytest.approx(120 + 1.02 * stays + 1.05 * outpatient, rel=1e-12)
    zero = engine.condition({"D": 0.0})
    assert zero.n_points == 1
    assert zero.table(["H"]).tolist() == [1.0, 0.0]
    assert zero.log_evidence == pytest.approx(math.log(stay[:, 0].sum()), rel=1e-9)
    some = engine.condition({"D": 0.3})
    assert some.table(["H"]).tolist() == [0.0, 1.0]
    density = [stay[a, 1] * stats.norm(d, s).pdf(0.3) for a, (d, s) in enumerate(((1, 0.5), (4, 1.0), (7, 1.5)))]
    assert some.log_evidence == pytest.approx(math.log(sum(density)), rel=1e-12)
    np.testing.assert_allclose(some.table(["A"]), np.array(density) / sum(density), rtol=1e-12)


def test_points_outweigh_densities_however_unlikely() -> None:
    network = MixedNetwork(
        {"z": Discrete((), [1e-9, 1 - 1e-9])},
        {
            "x": NodeRegression(("z",), (), [[1.0], [1.0]], [0.0, 1.0]),
            "y": NodeRegression(("z",), ("x",), [[0.0, 1.0], [0.0, 1.0]], [1.0, 1.0]),
        },
    )
    engine = ConditionalGaussian(network)
    found = engine.condition({"x": 1.0, "y": 200.0})
    assert found.table(["z"]).tolist() == [1.0, 0.0]
    assert found.n_points == 1
    assert found.log_evidence == pytest.approx(math.log(1e-9) + stats.norm(1).logpdf(200.0), rel=1e-12)
    rows = {"x": np.array([1.0, 1.0, 3.0]), "y": np.array([200.0, np.nan, 0.0])}
    expected = [
        found.log_evidence,
        math.log(1e-9),
        math.log1p(-1e-9) + stats.norm(1).logpdf(3) + stats.norm(3).logpdf(0),
    ]
    assert log_evidence(engine, rows).tolist() == pytest.approx(expected, rel=1e-9)
    exact = MixedNetwork({"z": Discrete((), [0.5, 0.5])}, {"x": NodeRegression(("z",), (), [[1.0], [2.0]], [0.0, 0.0])})
    assert ConditionalGaussian(exact).condition({"x": 2.0}).table(["z"]).tolist() == [0.0, 1.0]
    impossible = ConditionalGaussian(exact).condition({"x": 3.0})
    assert impossible.log_evidence == -math.inf
    with pytest.raises(sf.DataError, match="evidence is impossible"):
        impossible.table(["z"])
    with pytest.raises(sf.DataError, match="None of 100 samples"):
        weigh_samples(exact, {"x": 3.0}, n=100, random_state=0)


# -- size, samples, errors ---------------------------------------------------------------------------------------------


def wide(count: int) -> MixedNetwork:
    """One real child for each of many binary nodes, and one real node that depends on all children."""
    tables: dict[Any, Discrete] = {f"d{k}": Discrete((), [0.4, 0.6]) for k in range(count)}
    leaves: dict[Any, NodeRegression] = {
        f"x{k}": NodeRegression((f"d{k}",), (), [[0.0], [1.0]], [1.0, 1.0]) for k in range(count)
    }
    weights = [0.0, *([1.0] * count)]
    return MixedNetwork(tables, {**leaves, "sum": NodeRegression((), tuple(leaves), weights, 1.0)})


def test_only_what_belongs_together_is_enumerated() -> None:
    engine = ConditionalGaussian(wide(30))
    values = {f"x{k}": 0.5 * k % 2 for k in range(30)}
    found = engine.condition({**values, "sum": 3.0})
    odds = 0.4 * stats.norm(0).pdf(values["x1"]), 0.6 * stats.norm(1).pdf(values["x1"])
    assert found.table(["d1"])[1] == pytest.approx(odds[1] / sum(odds), rel=1e-12)
    assert engine.condition({"x3": 1.0}).mixture(["x4"]).mean[0] == pytest.approx(0.6)
    with pytest.raises(sf.SizeError, match="1,073,741,824 joint states; the limit is 65,536"):
        engine.condition({"sum": 3.0}).table(["d0"])
    with pytest.raises(sf.SizeError, match="Ask for fewer of them together"):
        engine.condition().mixture([f"x{k}" for k in range(20)])


def test_weighted_samples_come_near_the_exact_answer() -> None:
    engine = ConditionalGaussian(wide(4))
    evidence = {"sum": 3.5, "x1": 0.2, "d0": 1}
    exact = engine.condition(evidence)
    found = engine.approximate(evidence, n=40_000, random_state=0)
    assert 1000 < found.effective_sample_size < 40_000
    assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
    np.testing.assert_allclose(found.table(["d2", "d3"]), exact.table(["d2", "d3"]), atol=0.02)
    np.testing.assert_allclose(found.mixture(["x2"]).mean, exact.mixture(["x2"]).mean, atol=0.05)
    np.testing.assert_allclose(found.mixture(["x2"]).covariance, exact.mixture(["x2"]).covariance, atol=0.07)
    again = engine.approximate(evidence, n=40_000, random_state=0)
    assert again.weights.tolist() == found.weights.tolist()
    large = ConditionalGaussian(wide(40)).approximate({"sum": 20.0}, ["d0"], n=2000, random_state=1)
    assert large.table(["d0"]).sum() == pytest.approx(1.0)
    with pytest.raises(sf.OptionError, match="no real target"):
        found.mixture(["d0"])


def test_weighted_samples_on_point_masses() -> None:
    network = MixedNetwork(
        {"z": Discrete((), [0.2, 0.8])}, {"x": NodeRegression(("z",), (), [[1.0], [1.0]], [0.0, 1.0])}
    )
    found = weigh_samples(network, {"x": 1.0}, n=1000, random_state=0)
    assert found.table(["z"]).tolist() == pytest.approx([1.0, 0.0], rel=1e-12)
    assert found.log_evidence == pytest.approx(math.log(0.2), abs=0.2)
    assert weigh_samples(network, {"x": 1.5}, n=1000, random_state=0).table(["z"])[0] == 0.0


def test_networks_and_evidence_are_checked() -> None:
    z = Discrete((), [0.5, 0.5])
    x = NodeRegression(("z",), (), [[0.0], [1.0]], [1.0, 1.0])
    with pytest.raises(sf.OptionError, match="'d' has real parents 'x'"):
        MixedNetwork({"z": z, "d": Discrete(("x",), [[0.5, 0.5]])}, {"x": x})
    with pytest.raises(sf.OptionError, match=r"weights of shape \(2, 2\)"):
        MixedNetwork({"z": z}, {"x": NodeRegression(("z",), (), [[0.0, 1.0], [1.0, 1.0]], [1.0, 1.0])})
    with pytest.raises(sf.OptionError, match="negative variance"):
        MixedNetwork({"z": z}, {"x": NodeRegression(("z",), (), [[0.0], [1.0]], [1.0, -1.0])})
    with pytest.raises(sf.OptionError, match="which its parents do not have"):
        MixedNetwork({"z": z, "d": Discrete(("z",), [0.5, 0.5])}, {})
    engine = ConditionalGaussian(MixedNetwork({"z": z}, {"x": x}))
    with pytest.raises(sf.MissingColumnError, match="There is no variable 'q'"):
        engine.condition({"q": 1})
    with pytest.raises(sf.DataError, match="in state 2 of 0 to 1"):
        engine.condition({"z": 2})
    with pytest.raises(sf.DataError, match="expected a finite number"):
        engine.condition({"x": math.nan})
    with pytest.raises(sf.OptionError, match="'z' is discrete"):
        engine.condition().mixture(["z"])
    known = engine.condition({"x": 0.7}).mixture(["x"])
    assert (known.mean.tolist(), known.covariance.tolist()) == ([0.7], [[0.0]])
