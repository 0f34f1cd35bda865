"""Numbers at the edges of float64, and families of more columns than an array has axes."""

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError

LINE = [("x", "y")]


def line(scale: float, gaps: bool) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    if gaps:
        x[3] = y[5] = np.nan
    return {"x": x * scale, "y": y * scale}


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("scale", [2.0**-332, 2.0**332, 2.0**460])
def test_a_regression_does_not_depend_on_the_unit(scale: float, gaps: bool) -> None:
    plain = sf.BayesianNetwork(LINE).fit(line(1.0, gaps))
    scaled = sf.BayesianNetwork(LINE).fit(line(scale, gaps))
    weights = scaled.node("y").weights_ / np.array([scale, 1.0])
    np.testing.assert_allclose(weights, plain.node("y").weights_, rtol=1e-9)
    np.testing.assert_allclose(scaled.node("y").variance_ / scale**2, plain.node("y").variance_, rtol=1e-9)
    assert scaled.report_.certificate.moment_gap < 1e-5


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("scale", [1e150, 1e160, 1e267, 1e300])
def test_values_whose_squares_overflow_are_refused_by_name(scale: float, gaps: bool) -> None:
    with pytest.raises(DataError, match=r"The values of 'x', 'y' are so large .* Divide the columns by a constant"):
        sf.BayesianNetwork(LINE).fit(line(scale, gaps))


def test_only_the_column_at_fault_is_named() -> None:
    rows: dict[str, Any] = line(1.0, True)
    rows["y"] = rows["y"] * 1e267
    with pytest.raises(DataError, match=r"The values of 'y' are so large"):
        sf.BayesianNetwork({"x": [], "k": [], "y": ["k", "x"]}).fit({**rows, "k": ["a", "b"] * 25})


# -- many parents ------------------------------------------------------------------------------------------------------

WIDE = 70


def wide_rows(n: int = 300) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    causes = (rng.random((n, WIDE)) < 0.05).astype(int)
    effect = ((causes[:, :5].sum(axis=1) > 0) & (rng.random(n) < 0.8)) | (rng.random(n) < 0.05)
    return {**{f"p{k}": causes[:, k] for k in range(WIDE)}, "y": effect.astype(int)}


def wide(**options: Any) -> sf.BayesianNetwork:
    states = {name: [0, 1] for name in (*(f"p{k}" for k in range(WIDE)), "y")}
    return sf.BayesianNetwork([(f"p{k}", "y") for k in range(WIDE)], states=states, **options)


@pytest.mark.parametrize("prior", [None, 1.0])
def test_a_table_with_seventy_parents(prior: float | None) -> None:
    rows = wide_rows()
    net = wide(prior=prior).fit(rows)
    above = np.stack([rows[f"p{k}"] for k in range(WIDE)], axis=1)
    alpha = prior or 0.0
    same = (above[:, None, :] == above[None, :, :]).all(axis=2)
    share = (same @ rows["y"] + alpha) / (same.sum(axis=1) + 2 * alpha)
    roots = [(above[:, k].sum() + alpha) / (len(above) + 2 * alpha) for k in range(WIDE)]
    expected = np.log(np.where(rows["y"] == 1, share, 1 - share))
    for k, root in enumerate(roots):
        expected += np.log(np.where(above[:, k] == 1, root, 1 - root))
    np.testing.assert_allclose(net.score_samples(rows), expected, rtol=1e-10)
    assert net.report_.log_likelihood == pytest.approx(expected.sum(), rel=1e-12)
    parents = {name: values for name, values in rows.items() if name != "y"}
    np.testing.assert_allclose(net.predict_proba(parents, "y")[:, 1], share, atol=1e-12)
    first = {name: int(values[0]) for name, values in parents.items()}
    assert net.query("y", given=first).at(y=1) == pytest.approx(share[0], abs=1e-12)
    assert net.query("p3").at(p3=1) == pytest.approx(roots[3])


def test_one_of_seventy_parents_given_all_other_nodes() -> None:
    """Bayes' formula over the two states of the parent."""
    rows, net = wide_rows(), wide(prior=1.0).fit(wide_rows())
    some = {name: values[:20] for name, values in rows.items()}
    both = [net.score_samples({**some, "p0": np.full(20, state)}) for state in (0, 1)]
    others = {name: values for name, values in some.items() if name != "p0"}
    np.testing.assert_allclose(net.predict_proba(others, "p0")[:, 1], 1 / (1 + np.exp(both[0] - both[1])), rtol=1e-9)


def test_a_noisy_or_with_seventy_parents() -> None:
    rows = wide_rows()
    net = wide(nodes={"y": "noisy-or"}, prior={"y": 0.5}).fit(rows)
    node = net.node("y")
    above = np.stack([rows[f"p{k}"] for k in range(WIDE)], axis=1)
    absent = np.exp(-(node.weights[0] + above @ node.weights[1:]))
    parents = {name: values for name, values in rows.items() if name != "y"}
    np.testing.assert_allclose(net.predict_proba(parents, "y")[:, 0], absent, rtol=1e-9)
    assert net.score_samples(rows).sum() == pytest.approx(net.report_.log_likelihood, rel=1e-12)
    assert net.report_.certificate.moment_gap < 1e-8


def test_constant_columns_are_parents_like_others() -> None:
    rng = np.random.default_rng(2)
    rows: dict[str, Any] = {f"p{k}": ["only"] * 40 for k in range(WIDE)}
    rows |= {"p7": rng.integers(2, size=40), "y": rng.integers(2, size=40)}
    net = sf.BayesianNetwork([(f"p{k}", "y") for k in range(WIDE)]).fit(rows)
    share = rows["y"][rows["p7"] == 1].mean()
    assert net.query("y", given={"p7": 1}).at(y=1) == pytest.approx(share)
    assert net.node("y").n_params == 2
    summary = sf.summarize(sf.Patterns(tuple(rows)), rows)
    assert net.partial_fit(rows).query("y", given={"p7": 1}).at(y=1) == pytest.approx(share)
    assert summary[sf.Patterns(tuple(rows))].rows.shape == (4, WIDE + 1)
