"""Real nodes that come out wrong in other libraries: spreads, intercepts, moments in single precision.

Each test is named after what goes wrong elsewhere; the docstring says where it was reported.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import suffice as sf


def given_linear() -> sf.BayesianNetwork:
    """x1 = N(1, 4^2), x2 = -5 + 0.5 x1 + N(0, 4^2), x3 = 4 - x2 + N(0, 3^2); rows with exactly these moments."""
    signs = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])
    x1 = 1 + 4 * signs[:, 0]
    x2 = -5 + 0.5 * x1 + 4 * signs[:, 1]
    x3 = 4 - x2 + 3 * signs[:, 2]
    return sf.BayesianNetwork([("x1", "x2"), ("x2", "x3")], states={"x1": "real"}).fit({"x1": x1, "x2": x2, "x3": x3})


def test_a_standard_deviation_is_taken_for_a_variance() -> None:
    """pgmpy#2167, #2296, libpgm#10: with a standard deviation of 4 samples spread by 2, or the joint variance was 4."""
    net = given_linear()
    assert [float(net.node(n).variance_) for n in ("x1", "x2", "x3")] == pytest.approx([16.0, 16.0, 9.0])
    drawn = net.sample(40_000, random_state=0)
    assert drawn["x1"].std() == pytest.approx(4.0, rel=0.02)
    # Var x2 = 0.25 * 16 + 16 and Var x3 = Var x2 + 9.
    assert [drawn[n].var() for n in ("x2", "x3")] == pytest.approx([20.0, 29.0], rel=0.03)
    law = net.query(["x1", "x2", "x3"])
    covariance = [[16.0, 8.0, -8.0], [8.0, 20.0, -20.0], [-8.0, -20.0, 29.0]]
    np.testing.assert_allclose(np.asarray(law.covariance), covariance, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(law.mean), [1.0, -4.5, 8.5], rtol=1e-12)


def test_the_spread_of_a_child_is_that_of_its_column() -> None:
    """BayesNets.jl#110: b = 2 a + 1 + N(0, 1) got the standard deviation 2.24 of b, not 1 of the residuals."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=20_000)
    net = sf.BayesianNetwork([("a", "b")]).fit({"a": a, "b": 2 * a + 1 + rng.normal(size=20_000)})
    assert math.sqrt(float(net.node("b").variance_)) == pytest.approx(1.0, abs=0.02)
    assert net.node("b").weights_.tolist() == pytest.approx([1.0, 2.0], abs=0.03)


def test_the_coefficients_are_shifted_by_one_place() -> None:
    """pgmpy#1487, #1605: with beta (0.2, -2, 3, 7) the intercept was used as the first slope."""
    rng = np.random.default_rng(2)
    rows = {name: rng.normal(size=60) for name in ("X1", "X2", "X3")}
    rows["y"] = 0.2 - 2 * rows["X1"] + 3 * rows["X2"] + 7 * rows["X3"]
    net = sf.BayesianNetwork({"y": ["X1", "X2", "X3"]}).fit(rows)
    assert net.node("y").weights_.tolist() == pytest.approx([0.2, -2.0, 3.0, 7.0], abs=1e-9)
    assert net.table("y").states["coefficient"] == ("(intercept)", "X1", "X2", "X3", "(variance)")
    turned = sf.BayesianNetwork({"y": ["X3", "X1", "X2"]}).fit(rows)
    assert turned.node("y").weights_.tolist() == pytest.approx([0.2, 7.0, -2.0, 3.0], abs=1e-9)


def test_moments_in_single_precision_make_a_variance_negative() -> None:
    """scikit-learn#30382, hmmlearn#2: the float32 column (9999, 0) gave a variance of -0.99."""
    net = sf.BayesianNetwork({"x": []}, states={"x": "real"}).fit({"x": np.array([9999, 0], dtype=np.float32)})
    assert float(net.node("x").variance_) == 4999.5**2
    far = np.array([0.0, 1.0, 0.0, 1.0], dtype=np.float32) + np.float32(2**22)
    assert float(sf.BayesianNetwork({"x": []}, states={"x": "real"}).fit({"x": far}).node("x").variance_) == 0.25


@pytest.mark.parametrize("kind", ["constant", "twice", "few rows"])
def test_degenerate_columns_bring_nan(kind: str) -> None:
    """dynamax#316, #404, hmmlearn#285, pomegranate#454: NaN, or a matrix that is not positive definite."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=30), rng.normal(size=30)
    rows = {
        "constant": {"x": np.full(30, 2.5), "z": x, "y": y},
        "twice": {"x": x, "z": x, "y": y},
        "few rows": {"x": x[:2], "z": y[:2], "y": (x * y)[:2]},
    }[kind]
    net = sf.BayesianNetwork({"y": ["x", "z"]}).fit(rows)
    for node in net.nodes:
        assert np.isfinite(net.node(node).weights_).all()
        assert float(net.node(node).variance_) >= 0.0
    # What is wrong with the columns is in the receipt.
    assert net.report_.warnings or net.report_.certificate.exists is False
    fitted = net.node("y").weights_ @ np.stack([np.ones_like(rows["x"]), rows["x"], rows["z"]])
    design = np.column_stack([np.ones_like(rows["x"]), rows["x"], rows["z"]])
    expected = design @ np.linalg.lstsq(design, rows["y"], rcond=None)[0]
    np.testing.assert_allclose(fitted, expected, atol=1e-8)


def test_a_real_column_is_cut_into_states_or_refused() -> None:
    """pgmpy#772, #1072, pomegranate#106: one fit for tables, regressions and both together, chosen by the columns."""
    rows: dict[str, Any] = {"kind": ["a", "b"] * 20, "n": [0, 1, 1, 0] * 10}
    x = np.arange(40) % 7 + 0.5
    rows |= {"x": x, "y": np.where(np.array(rows["kind"]) == "a", 3 * x, 1 - x)}
    net = sf.BayesianNetwork({"n": ["kind"], "x": ["n"], "y": ["kind", "x"]}).fit(rows)
    assert [net.node(name).kind for name in ("kind", "n")] == ["table", "table"]
    np.testing.assert_allclose(net.node("y").weights_, [[0.0, 3.0], [1.0, -1.0]], atol=1e-12)
    np.testing.assert_allclose(net.node("x").weights_[:, 0], [x[np.array(rows["n"]) == k].mean() for k in (0, 1)])


def test_the_version_of_the_array_library_changes_the_fit() -> None:
    """hmmlearn#558, #560: figures of a fit and a query in exact fractions, from every width of number."""
    xs, ys = [1, 2, 4, 7, 11, 16], [3, 1, 4, 1, 5, 9]
    n = len(xs)
    sxx = sum(Fraction(x) ** 2 for x in xs) - Fraction(sum(xs)) ** 2 / n
    sxy = sum(Fraction(x) * y for x, y in zip(xs, ys, strict=True)) - Fraction(sum(xs)) * sum(ys) / n
    syy = sum(Fraction(y) ** 2 for y in ys) - Fraction(sum(ys)) ** 2 / n
    slope = sxy / sxx
    intercept = Fraction(sum(ys), n) - slope * Fraction(sum(xs), n)
    variance = (syy - slope * sxy) / n
    # x given y = 6 by the joint law: mean + cov / var (6 - mean of y).
    expected = Fraction(sum(xs), n) + (sxy / syy) * (6 - Fraction(sum(ys), n))
    whole = sf.BayesianNetwork([("x", "y")], states={"x": "real", "y": "real"})
    for dtype in (np.float64, np.float32):
        net = whole.clone().fit({"x": np.array(xs, dtype), "y": np.array(ys, dtype)})
        node = net.node("y")
        found = [*node.weights_.tolist(), float(node.variance_)]
        assert found == pytest.approx([float(intercept), float(slope), float(variance)], rel=1e-12)
        assert net.query("x", given={"y": 6.0}).mean[0] == pytest.approx(float(expected), rel=1e-12)
    assert whole.fit({"x": xs, "y": ys}).node("y").weights_.tolist() == pytest.approx(
        [float(intercept), float(slope)], rel=1e-12
    )
