"""Residuals of the cells of log-linear models."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.choices import CellResidual

RNG = np.random.default_rng(12)
NAMES = ["a", "b", "c"]
COUNTS = RNG.poisson(RNG.uniform(2.0, 40.0, (2, 3, 4))).astype(float)
MODELS = {
    "independence": [("a",), ("b",), ("c",)],
    "conditional": [("a", "b"), ("b", "c")],
    "pairs": list(combinations(NAMES, 2)),
}


def poisson(structure: list[tuple[str, ...]]) -> Any:
    """The fit of statsmodels to the same terms, treatment contrasts."""
    sm, smf = pytest.importorskip("statsmodels.api"), pytest.importorskip("statsmodels.formula.api")
    rows = pd.DataFrame(list(product(*map(range, COUNTS.shape))), columns=NAMES).assign(n=COUNTS.ravel())
    terms = "+".join("*".join(f"C({name})" for name in clique) for clique in structure)
    return smf.glm(f"n ~ {terms}", rows, family=sm.families.Poisson()).fit(tol=1e-14, maxiter=200)


@pytest.mark.parametrize("structure", MODELS.values(), ids=MODELS)
def test_they_are_those_of_the_poisson_regression(structure: list[tuple[str, ...]]) -> None:
    fit, other = sf.MarkovNetwork(structure).fit(COUNTS, columns=NAMES), poisson(structure)
    hat = other.get_influence().hat_matrix_diag
    expected: dict[CellResidual, Any] = {
        "raw": other.resid_response,
        "pearson": other.resid_pearson,
        "deviance": other.resid_deviance,
        "adjusted": other.resid_pearson / np.sqrt(1.0 - hat),
    }
    for kind, values in expected.items():
        found = fit.residuals(kind)
        assert found.variables == tuple(NAMES)
        np.testing.assert_allclose(found.values.ravel(), values, rtol=1e-7, atol=1e-7)
    assert float((fit.residuals().values ** 2).sum()) == pytest.approx(fit.chi2_, rel=1e-12)
    assert float((fit.residuals("deviance").values ** 2).sum()) == pytest.approx(fit.deviance_, rel=1e-12)


def test_independence_has_the_closed_form() -> None:
    table = COUNTS[0]
    rows, columns, n = table.sum(axis=1), table.sum(axis=0), table.sum()
    m = np.outer(rows, columns) / n
    expected = (table - m) / np.sqrt(m * np.outer(1.0 - rows / n, 1.0 - columns / n))
    fit = sf.MarkovNetwork([("b",), ("c",)]).fit(table=table, columns=["b", "c"])
    np.testing.assert_allclose(fit.residuals("adjusted").values, expected, rtol=1e-10)


def test_hair_and_eye_colour_have_the_residuals_of_r() -> None:
    """R: ``chisq.test(apply(HairEyeColor, 1:2, sum))$residuals``, as the pages on mosaic plots of vcd show them."""
    table = np.array([[68, 20, 15, 5], [119, 84, 54, 29], [26, 17, 14, 14], [7, 94, 10, 16]])
    published = [
        [4.3984, -3.0694, -0.4774, -1.9537],
        [1.2335, -1.9495, 1.3533, -0.3451],
        [-0.0750, -1.7301, 0.8523, 2.2827],
        [-5.8510, 7.0496, -2.2278, 0.6127],
    ]
    fit = sf.MarkovNetwork([("Hair",), ("Eye",)]).fit(table=table, columns=["Hair", "Eye"])
    np.testing.assert_allclose(fit.residuals("pearson").values, published, atol=6e-5)


def test_admissions_at_berkeley_have_the_residuals_of_agresti() -> None:
    """Agresti (2002), Categorical Data Analysis: women admitted by department, if admission depends on it alone."""
    male = [[512, 313], [353, 207], [120, 205], [138, 279], [53, 138], [22, 351]]
    female = [[89, 19], [17, 8], [202, 391], [131, 244], [94, 299], [24, 317]]
    fit = sf.MarkovNetwork([("dept", "admit"), ("dept", "sex")]).fit(
        np.array([male, female]), columns=["sex", "dept", "admit"]
    )
    adjusted = fit.residuals("adjusted").transpose(["sex", "dept", "admit"]).values
    np.testing.assert_allclose(adjusted[1, :, 0], [4.15, 0.50, -0.87, 0.55, -1.00, 0.62], atol=0.005)
    np.testing.assert_allclose(adjusted[0], -adjusted[1], rtol=1e-9)


def test_cells_that_the_fit_makes_equal_or_rules_out_have_no_adjusted_residual() -> None:
    whole = sf.MarkovNetwork([("a", "b", "c")]).fit(COUNTS, columns=NAMES)
    assert np.isnan(whole.residuals("adjusted").values).all()
    edge = np.array([0, 3, 2, 4, 5, 1, 6, 0]).reshape(2, 2, 2)
    limit = sf.MarkovNetwork(list(combinations(NAMES, 2))).fit(edge, columns=NAMES)
    np.testing.assert_allclose(limit.residuals("pearson").values, 0.0, atol=1e-6)
    assert np.isnan(limit.residuals("adjusted").values).all()
    empty = np.array([[0, 0, 0], [5, 2, 9], [3, 8, 4]])
    fit = sf.MarkovNetwork([("a",), ("b",)]).fit(table=empty, columns=["a", "b"])
    rest = sf.MarkovNetwork([("a",), ("b",)]).fit(table=empty[1:], columns=["a", "b"])
    assert np.isnan(fit.residuals("adjusted").values[0]).all()
    np.testing.assert_allclose(fit.residuals("adjusted").values[1:], rest.residuals("adjusted").values, rtol=1e-8)


def test_hidden_variables_and_priors_leave_the_other_kinds() -> None:
    items = ["A", "B", "C", "D"]
    counts = np.array([20, 2, 9, 2, 6, 1, 4, 1, 38, 7, 24, 6, 25, 6, 23, 42]).reshape(2, 2, 2, 2)
    hidden = sf.MarkovNetwork([("class", item) for item in items], hidden={"class": 2}).fit(counts, columns=items)
    assert hidden.residuals().variables == tuple(items)
    assert float((hidden.residuals("deviance").values ** 2).sum()) == pytest.approx(hidden.deviance_, rel=1e-9)
    ridge = sf.MarkovNetwork([("a",), ("b",), ("c",)], prior=sf.Normal(variance=1.0)).fit(COUNTS, columns=NAMES)
    assert float((ridge.residuals().values ** 2).sum()) == pytest.approx(ridge.chi2_, rel=1e-12)
    for fit, words in ((hidden, "hidden variables"), (ridge, "MAP")):
        with pytest.raises(sf.EstimateError, match=words):
            fit.residuals("adjusted")
    with pytest.raises(sf.OptionError, match="raw"):
        ridge.residuals("standard")  # type: ignore[arg-type]
