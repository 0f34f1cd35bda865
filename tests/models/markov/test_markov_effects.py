"""Effects of log-linear models in treatment and sum contrasts."""

from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.choices import Contrasts

RNG = np.random.default_rng(21)
NAMES = ["a", "b", "c"]
COUNTS = 1.0 + RNG.poisson(RNG.uniform(3.0, 40.0, (2, 3, 4)))
MODELS = {
    "independence": [("a",), ("b",), ("c",)],
    "conditional": [("a", "b"), ("b", "c")],
    "pairs": list(combinations(NAMES, 2)),
    "turned and nested": [("c", "a"), ("a",), ("b", "a")],
    "saturated": [("b", "c", "a")],
}
CODINGS: dict[str, tuple[Contrasts, dict[str, int] | None, str]] = {
    "treatment": ("treatment", None, "C({})"),
    "other references": ("treatment", {"b": 1, "c": 3}, "C({}, Treatment({}))"),
    "sum": ("sum", None, "C({}, Sum)"),
}


# Of the saturated model, which leaves nothing over.
@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning:statsmodels", "ignore:Perfect separation")
@pytest.mark.parametrize("structure", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("coding", CODINGS)
def test_they_are_the_coefficients_of_the_poisson_regression(structure: list[tuple[str, ...]], coding: str) -> None:
    sm, smf = pytest.importorskip("statsmodels.api"), pytest.importorskip("statsmodels.formula.api")
    kind, reference, term = CODINGS[coding]
    rows = pd.DataFrame(list(product(*map(range, COUNTS.shape))), columns=NAMES).assign(n=COUNTS.ravel())
    base = reference or {}
    terms = "+".join("*".join(term.format(x, base.get(x, 0)) for x in sorted(clique)) for clique in structure)
    known: Any = smf.glm(f"n ~ {terms}", rows, family=sm.families.Poisson()).fit(tol=1e-14, maxiter=200)

    def name(label: str) -> str:
        parts = []
        for part in label.split(":"):
            variable, state = part[2], part.rpartition("[")[2].rstrip("]")[2:]
            parts.append(f"{variable}[{state}]")
        return ":".join(sorted(parts))

    order = [name(label) for label in known.params.index[1:]]
    table = sf.MarkovNetwork(structure).fit(COUNTS, columns=NAMES).effects(kind, reference=reference, level=0.9)
    names = [":".join(sorted(row.split(":"))) for row, _ in table.rows]
    assert sorted(names) == sorted(order)
    chosen = [order.index(row) + 1 for row in names]
    np.testing.assert_allclose(table.params, known.params.to_numpy()[chosen], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(table.bse, known.bse.to_numpy()[chosen], rtol=1e-6)
    np.testing.assert_allclose(table.conf_int(), known.conf_int(0.1).to_numpy()[chosen], rtol=1e-5, atol=1e-6)
    covariance = known.cov_params().to_numpy()[np.ix_(chosen, chosen)]
    np.testing.assert_allclose(table.cov_params(), covariance, rtol=1e-5, atol=1e-9)


def test_a_two_by_two_table_has_the_log_odds_ratio() -> None:
    table = np.array([[10.0, 20.0], [30.0, 15.0]])
    fit = sf.MarkovNetwork([("x", "y")]).fit(table=table, columns=["x", "y"])
    effects = fit.effects()
    assert [name for name, _ in effects.rows] == ["x[1]", "y[1]", "x[1]:y[1]"]
    assert effects.params[-1] == pytest.approx(np.log(10 * 15 / (20 * 30)), abs=1e-9)
    assert effects.bse[-1] == pytest.approx(np.sqrt((1.0 / table).sum()), rel=1e-8)
    assert fit.effects("sum").params[-1] == pytest.approx(effects.params[-1] / 4.0, abs=1e-9)


def test_what_has_no_effects_is_refused() -> None:
    fit = sf.MarkovNetwork([("a", "b"), ("c",)]).fit(COUNTS, columns=NAMES)
    with pytest.raises(sf.OptionError, match="against the mean"):
        fit.effects("sum", reference={"a": 1})
    with pytest.raises(sf.OptionError, match="'d': 1"):
        fit.effects(reference={"d": 1})
    with pytest.raises(sf.UnknownStateError, match="7"):
        fit.effects(reference={"a": 7})
    with pytest.raises(sf.OptionError, match="treatment"):
        fit.effects("helmert")  # type: ignore[arg-type]
    agree = sf.Feature([("a", "b")], lambda one, other: one == other, name="agree")
    with pytest.raises(sf.OptionError, match="'agree' are features"):
        sf.MarkovNetwork([agree, ("a",), ("b",), ("c",)]).fit(COUNTS, columns=NAMES).effects()
    edge = np.array([[0.0, 3.0], [4.0, 5.0]])
    with pytest.raises(sf.EstimateError, match="not attained"):
        sf.MarkovNetwork([("x", "y")]).fit(table=edge, columns=["x", "y"]).effects()
    held = sf.MarkovNetwork([("x", "y")], prior=sf.Normal(variance=10.0)).fit(table=edge, columns=["x", "y"])
    assert np.isfinite(held.effects().bse).all()
