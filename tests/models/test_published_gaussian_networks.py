"""Published linear-Gaussian and mixed networks, built through the public options from their coefficients."""

import json
from typing import Any

import numpy as np
import pytest

import suffice as sf
from network_files import shared


def linear(name: str) -> tuple[dict[str, list[str]], dict[str, Any], dict[str, Any]]:
    """Parents, fixed=(weights, variance) by node, and the file."""
    found = json.loads(shared(f"bn/{name}.json").read_text())
    parents = {node: found["cpds"][node]["parents"] for node in found["nodes"]}
    fixed = {}
    for node, cpd in found["cpds"].items():
        weights = [cpd["coefficients"][term][0] for term in ("(Intercept)", *cpd["parents"])]
        fixed[node] = (np.array(weights), cpd["variance"][0])
    return parents, fixed, found


@pytest.mark.parametrize(("name", "nodes", "arcs", "params"), [("ecoli70", 46, 70, 162), ("magic-niab", 44, 66, 154)])
def test_a_linear_gaussian_network_has_the_joint_law_of_its_equations(
    name: str, nodes: int, arcs: int, params: int
) -> None:
    parents, fixed, _ = linear(name)
    one_row = {node: [0.0] for node in parents}
    net = sf.BayesianNetwork(parents, states=dict.fromkeys(parents, "real"), fixed=fixed).fit(one_row)
    assert (len(net.nodes), len(net.edges)) == (nodes, arcs)
    assert sum(len(weights) + 1 for weights, _ in fixed.values()) == params
    names = list(parents)
    slopes = np.zeros((nodes, nodes))
    for at, node in enumerate(names):
        slopes[at, [names.index(parent) for parent in parents[node]]] = fixed[node][0][1:]
    spread = np.linalg.inv(np.eye(nodes) - slopes)
    mean = spread @ [fixed[node][0][0] for node in names]
    covariance = spread @ np.diag([fixed[node][1] for node in names]) @ spread.T
    joint = net.joint_gaussian()
    order = [joint.names.index(node) for node in names]
    np.testing.assert_allclose(joint.mean[order], mean, rtol=1e-9)
    np.testing.assert_allclose(joint.covariance[np.ix_(order, order)], covariance, rtol=1e-9, atol=1e-9)


def test_a_mixed_network_has_the_moments_of_its_equations() -> None:
    cpds = json.loads(shared("bn/healthcare.json").read_text())["cpds"]
    parents = {node: cpd["parents"] for node, cpd in cpds.items()}
    states = {node: cpd["levels"] if "levels" in cpd else "real" for node, cpd in cpds.items()}
    fixed: dict[str, Any] = {}
    for node in ("A", "C", "H"):
        rows = [cpds[node]["cpt"]] if node == "A" else [cpds[node]["cpt"][f"A={age}"] for age in states["A"]]
        table = np.array([[row[state] for state in states[node]] for row in rows])
        fixed[node] = table[0] if node == "A" else table
    # Configurations run with the first discrete parent fastest.
    means = np.array([cpds["D"]["coefficients"]["(Intercept)"][str(k)] for k in range(6)]).reshape(2, 3).T
    spreads = np.array([cpds["D"]["sd"][str(k)] for k in range(6)]).reshape(2, 3).T
    fixed["D"] = (means[:, :, None], spreads**2)
    of = {node: [[c[str(k)] for c in cpds[node]["coefficients"].values()] for k in range(3)] for node in ("I", "O")}
    for node, weights in of.items():
        fixed[node] = (np.array(weights), np.array([cpds[node]["sd"][str(k)] for k in range(3)]) ** 2)
    fixed["T"] = (np.array([120, 1.02, 1.05]), 100.0)
    row = {node: [states[node][0] if node in "ACH" else 0.0] for node in parents}
    net = sf.BayesianNetwork(parents, states=states, fixed=fixed).fit(row)

    age = fixed["A"]
    disability = fixed["H"] * means  # (age, H), to be summed
    expected = 0.0
    for a in range(3):
        d = disability[a].sum()
        inpatient = sum(fixed["C"][a, c] * (of["I"][c][0] + of["I"][c][1] * d) for c in range(3))
        expected += age[a] * (120 + 1.02 * inpatient + 1.05 * of["O"][a][0])
    assert net.query("T").mean.item() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(net.query("C").values, age @ fixed["C"], rtol=1e-12)
    assert net.query("T", {"A": "old", "H": "any", "C": "mild"}).mean.item() == pytest.approx(
        120 + 1.02 * (100 + 550 * 7) + 1.05 * 360, rel=1e-10
    )
