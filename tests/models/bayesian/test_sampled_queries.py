"""Approximate queries by weighted samples: within their own standard errors of the exact answer, for every node."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

import suffice as sf
from random_networks import discrete_nodes, joint_states, mixed_networks, network_of
from suffice.domain import Domain, Variable
from suffice.models.bayesian.nodes.contract import UnitFree
from suffice.models.bayesian.nodes.linear_gaussian import LinearGaussianNode
from suffice.models.bayesian.nodes.table import TableNode

N = 20_000


@dataclass(frozen=True)
class Threshold(UnitFree):
    """A discrete node with a real parent: P(yes | x) = 1 / (1 + exp(-slope x))."""

    domain: Domain
    slope: float
    kind: ClassVar[str] = "logistic"

    def _yes(self, columns: Any) -> NDArray[np.float64]:
        return np.asarray(expit(self.slope * columns[self.domain.names[0]]))

    def log_prob(self, columns: Any) -> NDArray[np.float64]:
        """Log-probability of each code."""
        yes = self._yes(columns)
        return np.log(np.where(columns[self.domain.names[1]] == 1, yes, 1 - yes))

    def sample(self, columns: Any, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One code for each row."""
        return (rng.random(n) < self._yes(columns)).astype(np.int32)


def threshold_network() -> sf.BayesianNetwork:
    """Dose ~ N(0.5, 4), response = yes with a probability that grows with the dose, and an echo of the response."""
    dose, response = Variable("dose", "real"), Variable.discrete("response", ["no", "yes"])
    echo = Variable.discrete("echo", [0, 1, 2])
    nodes: dict[str, Any] = {
        "dose": LinearGaussianNode.given(Domain([dose]), [0.5], 4.0),
        "response": Threshold(Domain([dose, response]), 1.5),
        "echo": TableNode.given(Domain([response, echo]), [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]),
    }
    return network_of({"dose": [], "response": ["dose"], "echo": ["response"]}, nodes)


def density(dose: float) -> float:
    """Of the dose."""
    return float(norm(0.5, 2.0).pdf(dose))


def test_exact_inference_refuses_a_discrete_node_with_real_parents_and_says_what_to_do() -> None:
    net = threshold_network()
    message = r"'response' is discrete and has the real parents 'dose': .* no closed form.*engine='sampling'"
    for ask in (
        lambda: net.query("response"),
        lambda: net.marginals(),
        lambda: net.log_probability({"echo": 1}),
        lambda: net.score_samples({"echo": [1]}),
        lambda: net.sample(3, {"echo": 1}),
    ):
        with pytest.raises(sf.OptionError, match=message):
            ask()


@dataclass(frozen=True)
class Arrivals(UnitFree):
    """A real node that is not linear-Gaussian: a Poisson number of the given rate."""

    domain: Domain
    rate: float
    kind: ClassVar[str] = "poisson"

    def sample(self, columns: Any, rng: np.random.Generator, n: int) -> NDArray[Any]:
        """One number for each row."""
        return rng.poisson(self.rate, n).astype(np.float64)


def test_a_real_node_of_another_kind_is_refused_by_exact_inference_only() -> None:
    net = network_of({"visits": []}, {"visits": Arrivals(Domain([Variable("visits", "count")]), 3.0)})
    with pytest.raises(sf.OptionError, match=r"'visits' is a node of kind 'poisson'.*engine='sampling'"):
        net.query("visits")
    with pytest.raises(sf.OptionError, match="'visits' are not linear-Gaussian"):
        net.joint_gaussian()
    found = net.query("visits", engine="sampling", n=N, random_state=0)
    assert found.mean[0] == pytest.approx(3.0, abs=4 * found.standard_errors[0])


def test_any_node_takes_part_in_sampled_queries() -> None:
    net = threshold_network()
    found = net.query("response", engine="sampling", n=N, random_state=0)
    yes = quad(lambda x: density(x) * expit(1.5 * x), -20, 20)[0]
    assert found.at(response="yes") == pytest.approx(yes, abs=4 * found.standard_errors.at(response="yes"))
    assert found.standard_errors.at(response="yes") == pytest.approx(np.sqrt(yes * (1 - yes) / N), rel=0.05)
    assert found.effective_sample_size == pytest.approx(N, rel=1e-12)
    given_echo = net.query("dose", {"echo": 2}, engine="sampling", n=N, random_state=0)

    def weight(dose: float) -> float:
        return density(dose) * (0.1 + 0.5 * float(expit(1.5 * dose)))

    total = quad(weight, -20, 20)[0]
    mean = quad(lambda x: x * weight(x), -20, 20)[0] / total
    assert given_echo.mean[0] == pytest.approx(mean, abs=4 * given_echo.standard_errors[0])
    assert given_echo.log_probability == pytest.approx(np.log(total), abs=0.05)
    assert given_echo.effective_sample_size < N
    both = net.query(["dose", "response"], {"echo": 2}, engine="sampling", n=N, random_state=0)
    table = both.table("response")
    assert table.at(response="yes") == pytest.approx(
        yes * 0.6 / total, abs=4 * table.standard_errors.at(response="yes")
    )
    with pytest.raises(sf.OptionError, match="'dose' is real"):
        both.table("dose")
    assert set(both.draws["response"]) == {"no", "yes"}


def test_the_answer_says_that_it_is_approximate_and_repeats_with_its_seed() -> None:
    net = threshold_network()
    one, two, other = (net.query("echo", {"dose": 1.0}, engine="sampling", n=500, random_state=s) for s in (0, 0, 1))
    assert one.approximate
    assert "approximate: 500 weighted samples, worth 500; largest standard error 0.0" in str(one)
    assert one.values.tobytes() == two.values.tobytes()
    assert one.values.tobytes() != other.values.tobytes()
    law = net.query("dose", {"response": "yes"}, engine="sampling", n=500, random_state=0)
    assert law.approximate
    assert "approximate: 500 weighted samples" in str(law)
    with pytest.raises(sf.OptionError, match="n is 0"):
        net.query("echo", engine="sampling", n=0)


@settings(max_examples=15, deadline=None)
@given(mixed_networks(4), st.data())
def test_mixed_networks_agree_with_exact_inference(net: sf.BayesianNetwork, data: Any) -> None:
    discrete = discrete_nodes(net)
    row, _ = data.draw(st.sampled_from(list(joint_states(net))))
    known = data.draw(st.lists(st.sampled_from(discrete), unique=True, max_size=1))
    evidence = {node: row[node] for node in known}
    soft = data.draw(st.sampled_from(discrete))
    if soft not in evidence:
        evidence[soft] = {state: 0.5 + k for k, state in enumerate(net.states(soft))}
    for node in net.nodes:
        exact, found = net.query(node, evidence), net.query(node, evidence, engine="sampling", n=N, random_state=0)
        if node in discrete:
            # Rare states are drawn too seldom for their own standard error to be exact: the binomial one is added.
            binomial = np.sqrt(exact.values * (1 - exact.values) / found.effective_sample_size)
            assert (np.abs(exact.values - found.values) <= 4 * (found.standard_errors.values + binomial) + 1e-12).all()
        else:
            assert np.abs(exact.mean - found.mean)[0] <= 5 * found.standard_errors[0]


def test_a_state_that_was_never_drawn_has_a_standard_error() -> None:
    coin = Variable.discrete("coin", ["edge", "side"])
    net = network_of({"coin": []}, {"coin": TableNode.given(Domain([coin]), [1e-9, 1 - 1e-9])})
    found = net.query("coin", engine="sampling", n=100, random_state=0)
    assert found.values.tolist() == [0.0, 1.0]
    np.testing.assert_allclose(found.standard_errors.values, [0.01, 0.01], rtol=1e-12)


def test_point_masses_outweigh_densities_and_impossible_evidence_is_said() -> None:
    kind, x = Variable.discrete("kind", ["point", "spread"]), Variable("x", "real")
    nodes: dict[str, Any] = {
        "kind": TableNode.given(Domain([kind]), [0.1, 0.9]),
        "x": LinearGaussianNode.given(Domain([kind, x]), [[2.0], [2.0]], [0.0, 1.0]),
    }
    net = network_of({"kind": [], "x": ["kind"]}, nodes)
    ways: tuple[dict[str, Any], ...] = ({}, {"engine": "sampling", "random_state": 0})
    for way in ways:
        found = net.query("kind", {"x": 2.0}, **way)
        assert found.values.tolist() == [1.0, 0.0]
        found = net.query("kind", {"x": 2.5}, **way)
        assert found.values.tolist() == [0.0, 1.0]
    with pytest.raises(sf.DataError, match="None of 10 samples agrees"):
        net.query("kind", {"x": 2.5, "kind": "point"}, engine="sampling", n=10, random_state=0)


def test_what_the_evidence_settles_has_no_standard_error() -> None:
    net = threshold_network()
    observed = net.query("echo", {"echo": 1, "dose": 0.3}, engine="sampling", n=200, random_state=0)
    assert observed.values.tolist() == [0.0, 1.0, 0.0]
    assert observed.standard_errors.values.tolist() == [0.0, 0.0, 0.0]
    both = net.query(["response", "echo"], {"echo": 1}, engine="sampling", n=200, random_state=0)
    assert (both.standard_errors.values[:, [0, 2]] == 0).all()
    assert (both.standard_errors.values[:, 1] > 0).all()
    # Soft evidence that leaves one state settles it; one that leaves two does not.
    one = net.query("echo", {"echo": {0: 0.0, 1: 0.4, 2: 0.0}}, engine="sampling", n=200, random_state=0)
    assert one.standard_errors.values.tolist() == [0.0, 0.0, 0.0]
    two = net.query("echo", {"echo": {0: 0.5, 1: 0.4, 2: 0.0}}, engine="sampling", n=200, random_state=0)
    assert two.standard_errors.values[2] == 0.0
    assert (two.standard_errors.values[:2] > 0).all()


def test_standard_errors_with_unequal_weights_are_those_of_repetitions() -> None:
    """Over seeds (estimate - exact) / standard error has variance 1; evidence weighs the draws."""
    flag, level = Variable.discrete("flag", [0, 1, 2]), Variable.discrete("level", [0, 1, 2])
    x, y = Variable("x", "real"), Variable("y", "real")
    nodes: dict[str, Any] = {
        "flag": TableNode.given(Domain([flag]), [0.3, 0.4, 0.3]),
        "level": TableNode.given(Domain([flag, level]), [[0.5, 0.4, 0.1], [0.1, 0.5, 0.4], [0.4, 0.1, 0.5]]),
        "x": LinearGaussianNode.given(Domain([flag, x]), [[0.0], [1.0], [2.0]], [1.0, 1.0, 1.0]),
        "y": LinearGaussianNode.given(Domain([level, x, y]), [[0.0, 0.5], [1.0, 0.5], [2.0, 0.5]], [1.0, 1.0, 1.0]),
    }
    net = network_of({"flag": [], "level": ["flag"], "x": ["flag"], "y": ["level", "x"]}, nodes)
    evidence: dict[str, Any] = {"y": 2.0, "level": {0: 0.2, 1: 0.5, 2: 0.9}}
    table, mean = net.query("flag", evidence).values, net.query("x", evidence).mean[0]
    away = []
    for seed in range(300):
        found = net.query(["flag", "x"], evidence, engine="sampling", n=400, random_state=seed)
        assert found.effective_sample_size < 0.9 * found.n
        flags = found.table("flag")
        errors = np.append(flags.standard_errors.values, found.standard_errors)
        away.append((np.append(flags.values, found.mean) - [*table, mean]) / errors)
    # The standard deviation of 300 standard normal numbers is 1 +- 0.041, their mean 0 +- 0.058.
    np.testing.assert_allclose(np.std(away, axis=0), 1.0, atol=0.16)
    np.testing.assert_allclose(np.mean(away, axis=0), 0.0, atol=0.25)
    # The weights are the only thing the formula sum w^2 (1[cell] - p)^2 needs.
    w, cells = found.weights, found.draws["flag"]
    by_hand = [np.sqrt((w**2 * ((cells == k) - flags.values[k]) ** 2).sum()) for k in range(3)]
    np.testing.assert_allclose(flags.standard_errors.values, by_hand, rtol=1e-9)


# -- rare evidence ---------------------------------------------------------------------------------------------------


def rare_cause(p: float) -> sf.BayesianNetwork:
    """P(a=1) = p, and b=1 is so much likelier then that P(a=1 | b=1) = 0.9."""
    a, b = Variable.discrete("a", [0, 1]), Variable.discrete("b", [0, 1])
    q = p * 0.8 / 9.0 / (1.0 - p)
    nodes = {
        "a": TableNode.given(Domain([a]), [1 - p, p]),
        "b": TableNode.given(Domain([a, b]), [[1 - q, q], [0.2, 0.8]]),
    }
    return network_of({"a": [], "b": ["a"]}, nodes)


@pytest.mark.parametrize("p", [1e-3, 1e-5, 1e-6])
def test_a_cause_that_is_rare_by_itself_is_found(p: float) -> None:
    away = []
    for seed in range(20):
        found = rare_cause(p).query("a", {"b": 1}, engine="sampling", random_state=seed)
        assert found.standard_errors.at(a=1) < 0.005
        assert found.effective_sample_size > 1_000
        away.append((found.at(a=1) - 0.9) / found.standard_errors.at(a=1))
    # Twenty standard normal numbers.
    assert np.abs(away).max() < 4.0
    assert abs(np.mean(away)) < 4.5 / np.sqrt(20)
    assert 0.5 < np.std(away) < 1.6


def random_tables(rng: np.random.Generator, count: int) -> sf.BayesianNetwork:
    """Up to two parents a node, and probabilities down to 1e-6."""
    variables = [Variable.discrete(f"v{k}", list(range(int(rng.integers(2, 4))))) for k in range(count)]
    parents: dict[Any, Any] = {}
    nodes: dict[Any, Any] = {}
    for k, variable in enumerate(variables):
        above = [variables[j] for j in sorted(rng.choice(k, min(k, int(rng.integers(0, 3))), replace=False))]
        shape = [v.card for v in (*above, variable)]
        table = rng.dirichlet(np.full(variable.card, 0.5), size=shape[:-1])
        table = np.maximum(table, 10.0 ** -rng.uniform(2, 6))
        parents[variable.name] = [v.name for v in above]
        nodes[variable.name] = TableNode.given(Domain([*above, variable]), table / table.sum(axis=-1, keepdims=True))
    return network_of(parents, nodes)


def test_standard_errors_under_rare_evidence_cover_the_exact_answer() -> None:
    """Random networks, with evidence of a probability from 1e-6 to 1e-3, against their joint tables."""
    rng, away = np.random.default_rng(7), list[float]()
    while len(away) < 120:
        net = random_tables(rng, int(rng.integers(3, 7)))
        names = list(net.nodes)
        joint = net.query(names).values
        for _ in range(12):
            place = {axis: int(rng.integers(joint.shape[axis])) for axis in rng.choice(len(names), 2, replace=False)}
            kept = joint[tuple(place.get(axis, slice(None)) for axis in range(len(names)))]
            target = int(rng.choice([axis for axis in range(len(names)) if axis not in place]))
            left = [axis for axis in range(len(names)) if axis not in place]
            exact = kept.sum(axis=tuple(k for k, axis in enumerate(left) if axis != target)) / kept.sum()
            cell = int(np.argmax(exact * (1.0 - exact)))
            if 1e-6 < kept.sum() < 1e-3 and exact[cell] * (1.0 - exact[cell]) > 1e-3:
                evidence = {names[axis]: code for axis, code in place.items()}
                found = net.query(names[target], evidence, engine="sampling", n=4_000, random_state=len(away))
                away.append((found.values[cell] - exact[cell]) / found.standard_errors.values[cell])
    # Of 120 standard normal numbers 114 +- 2.4 are within 1.96.
    assert np.mean(np.abs(away) < 1.96) > 0.88
    assert np.std(away) < 1.25
    assert abs(np.mean(away)) < 0.4


def test_a_rare_tail_of_a_real_cause_is_found() -> None:
    """The response is likely only 4.3 standard deviations out, and has a floor that hides it from equal weights."""

    class Floor(Threshold):
        def _yes(self, columns: Any) -> NDArray[np.float64]:
            return 1e-6 + 0.9 * np.asarray(expit(40.0 * (np.asarray(columns["dose"]) - 4.3)))

    dose, response = Variable("dose", "real"), Variable.discrete("response", ["no", "yes"])
    nodes: dict[Any, Any] = {
        "dose": LinearGaussianNode.given(Domain([dose]), [0.0], 1.0),
        "response": Floor(Domain([dose, response]), 1.0),
    }
    net = network_of({"dose": [], "response": ["dose"]}, nodes)

    def weight(x: float) -> float:
        return float(norm.pdf(x) * (1e-6 + 0.9 * expit(40.0 * (x - 4.3))))

    total = quad(weight, -8, 3.5)[0] + quad(weight, 3.5, 8)[0]
    mean = (quad(lambda x: x * weight(x), -8, 3.5)[0] + quad(lambda x: x * weight(x), 3.5, 8)[0]) / total
    assert mean > 3.0
    found = net.query("dose", {"response": "yes"}, engine="sampling", n=20_000, random_state=0)
    assert abs(found.mean[0] - mean) < 4.5 * found.standard_errors[0] < 0.5


def test_a_few_samples_that_decide_are_said() -> None:
    """Twelve real values, each far out: no sample comes near all of them."""
    names = [f"x{k}" for k in range(12)]
    nodes: dict[Any, Any] = {n: LinearGaussianNode.given(Domain([Variable(n, "real")]), [0.0], 1.0) for n in names}
    for n in names:
        y = Variable(f"y{n}", "real")
        nodes[f"y{n}"] = LinearGaussianNode.given(Domain([Variable(n, "real"), y]), [0.0, 1.0], 0.01)
    net = network_of({**{n: [] for n in names}, **{f"y{n}": [n] for n in names}}, nodes)
    with pytest.warns(sf.SamplingWarning, match=r"answer to P\(x0\) is not to be relied on: it is worth 1") as caught:
        found = net.query("x0", {f"y{n}": 2.0 for n in names}, engine="sampling", n=1_000, random_state=0)
    assert found.effective_sample_size < 10
    assert caught[0].filename == __file__
