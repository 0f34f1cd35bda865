"""Rows of weight 0 are rows that are not there, also where a link does not allow them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

X = np.array([0, 1, 2, 3, 4, 5.0, 20.0])[:, None]
Y = np.array([9.0, 7, 6, 4, 2, 3, 1])
CASES = [
    ("poisson", "identity", Y),
    ("poisson", "sqrt", Y),
    ("gamma", "identity", Y),
    ("gamma", "inverse", 1 / (11 - Y)),
    ("inverse_gaussian", "inverse_square", 1 / np.sqrt(Y)),
    ("negative_binomial", "identity", np.array([19.0, 2, 12, 1, 2, 5, 1])),
    ("binomial", "log", np.column_stack((2 * Y, 20 - 2 * Y))),
    ("binomial", "identity", np.column_stack((2 * Y, 20 - 2 * Y))),
]


@pytest.mark.parametrize(("family", "link", "y"), CASES)
def test_rows_without_weight_leave_the_fit_as_it_is(family: Any, link: Any, y: Any) -> None:
    weights = np.r_[np.ones(6), 0.0]
    alone = sf.GLM(family, link=link).fit(X[:6], y[:6])
    beside = sf.GLM(family, link=link).fit(X, y, weights)
    assert beside.converged_
    assert beside.stop_reason_ == alone.stop_reason_
    np.testing.assert_allclose(beside.parameters_, alone.parameters_, rtol=1e-12)
    np.testing.assert_allclose(beside.standard_errors_, alone.standard_errors_, rtol=1e-12)
    np.testing.assert_allclose(beside.log_likelihood_, alone.log_likelihood_, rtol=1e-12)
    one, other = beside.report_.certificate, alone.report_.certificate
    assert one.exists is other.exists
    assert (one.value_gap is None) == (other.value_gap is None)
    if one.value_gap is not None:
        assert one.value_gap == pytest.approx(other.value_gap, abs=1e-12)
    assert beside.report_.rows == 7
    assert beside.report_.weight == alone.report_.weight == 6


@pytest.mark.parametrize(("family", "link", "y"), CASES[:3])
def test_rows_without_weight_of_a_file_do_so_too(family: Any, link: Any, y: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    lines = [f"{a},{b},{int(at < 6)}" for at, (a, b) in enumerate(zip(X[:, 0], y, strict=True))]
    path.write_text("\n".join(["x,y,w", *lines]) + "\n")
    beside = sf.GLM(family, link=link).fit(path, "y", sample_weight="w")
    alone = sf.GLM(family, link=link).fit(X[:6], y[:6])
    assert beside.converged_
    np.testing.assert_allclose(beside.parameters_, alone.parameters_, rtol=1e-7)
    np.testing.assert_allclose(beside.log_likelihood_, alone.log_likelihood_, rtol=1e-9)


def test_no_trials_are_no_row() -> None:
    trials = np.array([4.0, 4, 5, 2, 4, 5, 0])
    y = np.array([4.0, 3, 3, 1, 1, 1, 0])
    beside = sf.GLM("binomial", link="identity").fit(X, y, trials=trials)
    alone = sf.GLM("binomial", link="identity").fit(X[:6], y[:6], trials=trials[:6])
    np.testing.assert_allclose(beside.parameters_, alone.parameters_, rtol=1e-12)
    np.testing.assert_allclose(beside.null_deviance_, alone.null_deviance_, rtol=1e-12)


def test_rows_without_weight_of_a_node() -> None:
    counts = sf.GLM("poisson", link="identity")
    network = sf.BayesianNetwork([("x", "y")], nodes={"y": counts}, states={"x": "real"})
    rows = {"x": X[:, 0], "y": Y}
    node = network.fit(rows, sample_weight=np.r_[np.ones(6), 0.0]).node("y")
    beside = [node.intercept_, node.coefficients_["x"]]
    alone = sf.GLM("poisson", link="identity").fit(X[:6], Y[:6])
    np.testing.assert_allclose(beside, alone.parameters_, rtol=1e-9)
