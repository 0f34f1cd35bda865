"""Published linear-Gaussian and mixed networks, read from their files."""

import json

import numpy as np
import pytest

import suffice as sf
from network_files import shared


@pytest.mark.parametrize(("name", "nodes", "arcs", "params"), [("ecoli70", 46, 70, 162), ("magic-niab", 44, 66, 154)])
def test_a_linear_gaussian_network_has_the_joint_law_of_its_equations(
    name: str, nodes: int, arcs: int, params: int
) -> None:
    net = sf.read(shared(f"bn/{name}.json"))
    assert (len(net.nodes), len(net.edges), net.n_params_, net.notes_) == (nodes, arcs, params, ())
    found = json.loads(shared(f"bn/{name}.json").read_text())
    assert net.nodes == tuple(found["nodes"])
    assert set(net.edges) == {tuple(arc) for arc in found["arcs"]}
    names, cpds = found["nodes"], found["cpds"]
    intercepts = [cpds[node]["coefficients"]["(Intercept)"][0] for node in names]
    noise = [cpds[node]["variance"][0] for node in names]
    slopes = np.zeros((nodes, nodes))
    for at, node in enumerate(names):
        for parent in cpds[node]["parents"]:
            slopes[at, names.index(parent)] = cpds[node]["coefficients"][parent][0]
    spread = np.linalg.inv(np.eye(nodes) - slopes)
    mean = spread @ intercepts
    covariance = spread @ np.diag(noise) @ spread.T
    joint = net.joint_gaussian()
    order = [joint.names.index(node) for node in names]
    np.testing.assert_allclose(joint.mean[order], mean, rtol=1e-9)
    np.testing.assert_allclose(joint.covariance[np.ix_(order, order)], covariance, rtol=1e-9, atol=1e-9)


def test_a_mixed_network_has_the_moments_of_its_equations() -> None:
    net = sf.read(shared("bn/healthcare.json"))
    assert (len(net.nodes), len(net.edges)) == (7, 9)
    cpds = json.loads(shared("bn/healthcare.json").read_text())["cpds"]
    ages = ("young", "adult", "old")
    age = np.array([cpds["A"]["cpt"][a] for a in ages])
    severity, hurt = ([list(cpds[node]["cpt"][f"A={a}"].values()) for a in ages] for node in ("C", "H"))
    # Configurations run with the first discrete parent, the age, fastest.
    means = np.array([cpds["D"]["coefficients"]["(Intercept)"][str(k)] for k in range(6)]).reshape(2, 3).T
    inpatient = [[c[str(k)] for c in cpds["I"]["coefficients"].values()] for k in range(3)]
    outpatient = [cpds["O"]["coefficients"]["(Intercept)"][str(k)] for k in range(3)]
    expected = 0.0
    for a in range(3):
        days = float(np.dot(hurt[a], means[a]))
        cost = sum(severity[a][c] * (inpatient[c][0] + inpatient[c][1] * days) for c in range(3))
        expected += age[a] * (120 + 1.02 * cost + 1.05 * outpatient[a])
    assert net.query("T").mean.item() == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(net.query("C").values, age @ severity, rtol=1e-12)
    assert net.query("T", {"A": "old", "H": "any", "C": "mild"}).mean.item() == pytest.approx(
        120 + 1.02 * (100 + 550 * 7) + 1.05 * 360, rel=1e-10
    )
    rows = net.sample(50, random_state=3)
    assert np.all(rows["D"][rows["H"] == "none"] == 0.0)
    assert np.isfinite(net.score(rows))
