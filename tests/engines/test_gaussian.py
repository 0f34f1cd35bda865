"""Linear-Gaussian networks as one normal law: against the matrix formulas, scipy, and the nodes themselves."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

import suffice as sf
from network_files import shared
from regression_data import learn
from suffice.engines.gaussian import GaussianJoint, information_form
from suffice.engines.square_root import ObservedColumns

Floats = NDArray[np.float64]


def random_network(seed: int, d: int, points: float = 0.0) -> dict[Any, Any]:
    """A network on d nodes, given in any order, with a share of nodes of variance 0."""
    rng = np.random.default_rng(seed)
    nodes = {}
    for j in rng.permutation(d).tolist():
        parents = sorted(rng.choice(j, size=rng.integers(0, min(j, 3) + 1), replace=False).tolist()) if j else []
        variance = 0.0 if j and rng.random() < points else float(rng.uniform(0.2, 2.0))
        nodes[j] = (parents, rng.normal(size=len(parents) + 1), variance)
    return nodes


def by_matrices(nodes: dict[Any, Any], names: tuple[Any, ...]) -> tuple[Floats, Floats]:
    """Mean and covariance from (I - B)^-1."""
    d = len(names)
    b, intercept = np.zeros((d, d)), np.zeros(d)
    for name, (parents, weights, _) in nodes.items():
        intercept[names.index(name)] = weights[0]
        for parent, weight in zip(parents, weights[1:], strict=True):
            b[names.index(name), names.index(parent)] = weight
    half = np.linalg.inv(np.eye(d) - b)
    variances = np.diag([nodes[name][2] for name in names])
    return half @ intercept, half @ variances @ half.T


def node_sum(nodes: dict[Any, Any], names: tuple[Any, ...], rows: Floats) -> Floats:
    """Sum of the log densities of the nodes."""
    total = np.zeros(len(rows))
    for name, (parents, weights, variance) in nodes.items():
        mean = weights[0] + rows[:, [names.index(parent) for parent in parents]] @ np.asarray(weights[1:])
        total += stats.norm(mean, np.sqrt(variance)).logpdf(rows[:, names.index(name)])
    return total


@given(st.integers(0, 9999), st.integers(1, 8))
def test_the_joint_law_of_a_network(seed: int, d: int) -> None:
    nodes = random_network(seed, d)
    law = GaussianJoint.from_network(nodes)
    mean, covariance = by_matrices(nodes, law.names)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(law.covariance, covariance, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(law.root @ law.root.T, law.covariance, rtol=1e-10, atol=1e-11)
    rows = np.random.default_rng(seed).normal(size=(4, d)) * 3
    np.testing.assert_allclose(law.log_prob(rows), node_sum(nodes, law.names, rows), rtol=1e-9, atol=1e-9)


@given(st.integers(0, 9999), st.integers(1, 8))
def test_information_form(seed: int, d: int) -> None:
    nodes = random_network(seed, d)
    names, h, precision = information_form(nodes)
    mean, covariance = by_matrices(nodes, names)
    np.testing.assert_allclose(precision.toarray() @ covariance, np.eye(d), atol=1e-8)
    np.testing.assert_allclose(h, precision @ mean, rtol=1e-9, atol=1e-9)
    # Entries only between nodes that share an edge or a child.
    joined = {(name, name) for name in names}
    for name, (parents, _, _) in nodes.items():
        joined |= {(one, other) for one in (name, *parents) for other in (name, *parents)}
    assert precision.nnz <= len(joined)
    law = GaussianJoint.from_network(nodes)
    mine = law.information()
    np.testing.assert_allclose(mine[1], precision.toarray(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(mine[0], h, rtol=1e-6, atol=1e-6)


@given(st.integers(0, 9999), st.integers(2, 7))
def test_conditioning_and_marginals(seed: int, d: int) -> None:
    law = GaussianJoint.from_network(random_network(seed, d))
    rng = np.random.default_rng(seed)
    given_ = rng.permutation(d)[: rng.integers(1, d)].tolist()
    rest = [name for name in law.names if name not in given_]
    values = {name: float(rng.normal()) for name in given_}
    at, to = [law.names.index(name) for name in given_], [law.names.index(name) for name in rest]
    s = law.covariance
    gain = s[np.ix_(to, at)] @ np.linalg.inv(s[np.ix_(at, at)])
    found = law.condition(values)
    assert found.names == tuple(rest)
    away = np.array([values[name] for name in given_]) - law.mean[at]
    np.testing.assert_allclose(found.mean, law.mean[to] + gain @ away, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.covariance, s[np.ix_(to, to)] - gain @ s[np.ix_(at, to)], rtol=1e-8, atol=1e-8)
    small = law.marginal(given_)
    np.testing.assert_array_equal(small.covariance, s[np.ix_(at, at)])
    row = np.array([[values[name] for name in given_]])
    expected = stats.multivariate_normal(small.mean, small.covariance, allow_singular=True).logpdf(row)
    assert small.log_prob(row)[0] == pytest.approx(expected, rel=1e-8, abs=1e-8)
    partly = np.full((1, d), np.nan)
    partly[0, at] = row
    assert law.log_prob(partly)[0] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_rows_with_gaps() -> None:
    law = GaussianJoint.from_network(random_network(3, 5))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 5))
    rows[rng.random((60, 5)) < 0.3] = np.nan
    rows[7] = np.nan
    found = law.log_prob(rows)
    filled, logs = law.conditional_means(rows)
    np.testing.assert_array_equal(logs, found)
    for row, log, whole in zip(rows, logs, filled, strict=True):
        seen = {name: v for name, v in zip(law.names, row, strict=True) if not np.isnan(v)}
        rest = law.condition(seen)
        at = [law.names.index(name) for name in rest.names]
        np.testing.assert_allclose(whole[at], rest.mean, rtol=1e-9, atol=1e-10)
        np.testing.assert_array_equal(np.delete(whole, at), list(seen.values()))
        expected = law.marginal(list(seen)).log_prob([list(seen.values())])[0]
        assert log == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert found[7] == 0.0


def test_complete_networks_reproduce_the_sample_covariance() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4)) + [1e4, 0, -3, 8]
    frame = pd.DataFrame(rows, columns=list("abcd"))
    nodes = {}
    for j, name in enumerate("abcd"):
        node = learn(frame, tuple("abcd"[: j + 1]))
        nodes[name] = (node.parents, node.weights_, node.variance_)
    law = GaussianJoint.from_network(nodes)
    np.testing.assert_allclose(law.mean, rows.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(law.covariance, np.cov(rows.T, ddof=0), rtol=1e-10)


def test_samples() -> None:
    law = GaussianJoint.from_network({"a": ((), [2.0], 16.0), "b": (("a",), [0.0, 0.5], 1.0)})
    draws = law.sample(100_000, random_state=0)
    np.testing.assert_allclose(np.cov(draws.T), [[16, 8], [8, 5]], rtol=0.02)
    np.testing.assert_allclose(draws.mean(axis=0), [2, 1], atol=0.05)
    assert law.sample(2, random_state=0).tolist() == law.sample(2, random_state=0).tolist()


# -- nodes without variance --------------------------------------------------------------------------------------------

POINTS = {"x": ((), [0.0], 1.0), "y": (("x",), [1.0, 2.0], 0.0), "w": (("x", "y"), [0.0, 1.0, 1.0], 1.0)}


def test_a_determined_node_is_a_point() -> None:
    law = GaussianJoint.from_network(POINTS)
    logs = law.log_prob([[1.0, 3.0, 2.0], [1.0, 3.1, 2.0], [np.nan, 3.0, np.nan]])
    assert logs[0] == pytest.approx(stats.norm.logpdf(1.0) + stats.norm(4.0).logpdf(2.0), rel=1e-13)
    assert logs[1] == -np.inf
    assert logs[2] == pytest.approx(stats.norm(1.0, 2.0).logpdf(3.0), rel=1e-13)
    rest = law.condition({"y": 3.0})
    np.testing.assert_allclose(rest.mean, [1.0, 4.0], rtol=1e-13)
    np.testing.assert_allclose(rest.covariance, [[0, 0], [0, 1]], atol=1e-14)
    both = law.condition({"x": 1.0, "y": 3.0})
    np.testing.assert_allclose(both.covariance, [[1.0]], rtol=1e-13)
    with pytest.raises(sf.DataError, match="density zero: one of 'x', 'y' is determined by the others"):
        law.condition({"x": 1.0, "y": 2.0})
    with pytest.raises(sf.EstimateError, match="'y' are determined by the other"):
        law.information()
    with pytest.raises(sf.EstimateError, match="'y' have variance 0"):
        information_form(POINTS)


@given(st.integers(0, 9999), st.integers(2, 7))
def test_points_agree_with_vanishing_variances(seed: int, d: int) -> None:
    nodes = random_network(seed, d, points=0.5)
    law = GaussianJoint.from_network(nodes)
    rows = law.sample(3, random_state=seed)
    dense = {name: node for name, node in nodes.items() if node[2] > 0}
    np.testing.assert_allclose(law.log_prob(rows), node_sum_of(nodes, dense, law.names, rows), rtol=1e-7, atol=1e-7)
    values = dict(zip(law.names[: d - 1], rows[0, : d - 1].tolist(), strict=True))
    last = law.names[-1]
    parents, weights, variance = nodes[last]
    rest = law.condition(values)
    expected = weights[0] + sum(w * values[p] for p, w in zip(parents, weights[1:], strict=True))
    np.testing.assert_allclose(rest.mean, [expected], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(rest.covariance, [[variance]], rtol=1e-6, atol=1e-9)


def node_sum_of(nodes: dict[Any, Any], some: dict[Any, Any], names: tuple[Any, ...], rows: Floats) -> Floats:
    total = np.zeros(len(rows))
    for name in some:
        parents, weights, variance = nodes[name]
        mean = weights[0] + rows[:, [names.index(parent) for parent in parents]] @ np.asarray(weights[1:])
        total += stats.norm(mean, np.sqrt(variance)).logpdf(rows[:, names.index(name)])
    return total


def test_a_child_a_hundred_million_times_wider_than_its_noise() -> None:
    law = GaussianJoint.from_network({"x": ((), [0.0], 1.0), "y": (("x",), [1.0, 1e8], 1.0)})
    row = np.array([[1.0, 1e8 + 2.0]])
    assert law.log_prob(row)[0] == pytest.approx(stats.norm.logpdf(1.0) * 2, rel=1e-9)
    assert law.condition({"x": 1.0}).covariance[0, 0] == pytest.approx(1.0, rel=1e-6)


def test_gram_schmidt_on_a_batch() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 4, 6))
    root[1, 2] = root[1, 0] - root[1, 1]
    found = ObservedColumns.of(root)
    np.testing.assert_allclose(found.triangle @ found.basis, root, atol=1e-12)
    assert found.points.sum() == 1
    assert found.points[1, 2]
    assert found.n_points.tolist() == [0, 1, 0]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_laws_from_moments() -> None:
    law = GaussianJoint(["a", "b"], [0.0, 1.0], [[2.0, 2.0], [2.0, 2.0]])
    assert law.log_prob([[0.5, 1.5], [0.5, 1.0]]).tolist() == pytest.approx(
        [stats.norm(0, 2**0.5).logpdf(0.5), -np.inf]
    )
    with pytest.raises(sf.OptionError, match="negative variance in some direction"):
        GaussianJoint(["a", "b"], [0.0, 0.0], [[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(sf.OptionError, match=r"mean of shape \(2,\)"):
        GaussianJoint(["a", "b"], [0.0], [[1.0]])
    with pytest.raises(sf.MissingColumnError, match="There is no variable 'c'"):
        law.condition({"c": 1.0})
    with pytest.raises(sf.DataError, match="not all finite"):
        law.condition({"a": np.nan})
    with pytest.raises(sf.DataError, match="expected one column for each"):
        law.log_prob([[1.0]])
    assert repr(law) == "GaussianJoint('a', 'b')"


def test_networks_are_checked() -> None:
    with pytest.raises(sf.OptionError, match="intercept first"):
        GaussianJoint.from_network({"a": ((), [1.0, 2.0], 1.0)})
    with pytest.raises(sf.OptionError, match="variance of at least 0"):
        GaussianJoint.from_network({"a": ((), [1.0], -1.0)})
    with pytest.raises(sf.OptionError, match="cycle"):
        GaussianJoint.from_network({"a": (("b",), [1.0, 1.0], 1.0), "b": (("a",), [1.0, 1.0], 1.0)})


@pytest.mark.parametrize("name", ["ecoli70", "magic-niab"])
def test_real_networks(name: str) -> None:
    cpds = json.loads(shared(f"bn/{name}.json").read_text())["cpds"]
    nodes = {}
    for node, cpd in cpds.items():
        parents = [key for key in cpd["coefficients"] if key != "(Intercept)"]
        weights = [cpd["coefficients"][key] for key in ("(Intercept)", *parents)]
        nodes[node] = (parents, np.ravel(weights).astype(float), float(np.ravel(cpd["variance"])[0]))
    law = GaussianJoint.from_network(nodes)
    mean, covariance = by_matrices(nodes, law.names)
    np.testing.assert_allclose(law.covariance, covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(law.mean, mean, rtol=1e-9, atol=1e-12)
    rows = law.sample(5, random_state=0)
    np.testing.assert_allclose(law.log_prob(rows), node_sum(nodes, law.names, rows), rtol=1e-9)
