"""Tests of a given independence: counts within strata, partial correlations."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

import suffice as sf

RNG = np.random.default_rng(4)
# Berkeley 1973 (Bickel, Hammel and O'Connell 1975): sex, department, admission.
BERKELEY = np.array(
    [
        [[512, 313], [353, 207], [120, 205], [138, 279], [53, 138], [22, 351]],
        [[89, 19], [17, 8], [202, 391], [131, 244], [94, 299], [24, 317]],
    ]
)
NAMES = ["sex", "dept", "admit"]
FIT = sf.MarkovNetwork([("sex",), ("dept",), ("admit",)]).fit(BERKELEY, columns=NAMES)


def test_admissions_given_departments_have_the_published_statistics() -> None:
    """Agresti (2002): G2 = 21.7 and X2 = 19.9 on 6 degrees of freedom; G2 is the deviance of the model that says so."""
    test = sf.independence_test(FIT, "sex", "admit", "dept")
    assert (round(test.statistic, 1), test.df) == (21.7, 6.0)
    apart = sf.MarkovNetwork([("sex", "dept"), ("dept", "admit")]).fit(BERKELEY, columns=NAMES)
    assert test.statistic == pytest.approx(apart.deviance_, rel=1e-9)
    assert test.p_value == pytest.approx(apart.p_value_, rel=1e-9)
    pearson = sf.independence_test(FIT, "sex", "admit", ["dept"], statistic="X2")
    assert (round(pearson.statistic, 1), pearson.df) == (19.9, 6.0)
    assert pearson.statistic == pytest.approx(apart.chi2_, rel=1e-9)
    turned = sf.independence_test(FIT, "admit", "sex", "dept")
    assert turned.statistic == pytest.approx(test.statistic, rel=1e-12)


@pytest.mark.parametrize(("statistic", "power"), [("G2", "log-likelihood"), ("X2", "pearson")])
def test_strata_add_up(statistic: Any, power: Any) -> None:
    """States that a stratum lacks are counted in neither its statistic nor its degrees of freedom."""
    counts = RNG.poisson(4.0, (2, 3, 3, 4)).astype(float)
    counts[0, 0, 1], counts[1, 1], counts[0, 2, :, 3] = 0.0, 0.0, 0.0
    counts[1, 2, 1:] = 0.0
    fit = sf.MarkovNetwork([("u",), ("v",), ("a",), ("b",)]).fit(counts, columns=["u", "v", "a", "b"])
    value, df = 0.0, 0
    for stratum in counts.reshape(-1, 3, 4):
        part = stratum[stratum.any(axis=1)][:, stratum.any(axis=0)]
        if min(part.shape) > 1:
            known = chi2_contingency(part, correction=False, lambda_=power)
            value, df = value + known.statistic, df + known.dof
    test = sf.independence_test(fit, "a", "b", ["u", "v"], statistic=statistic)
    assert test.statistic == pytest.approx(value, rel=1e-10)
    assert test.df == df
    alone = chi2_contingency(counts.sum(axis=(0, 1)), correction=False, lambda_=power)
    assert sf.independence_test(fit, "a", "b", statistic=statistic).p_value == pytest.approx(alone.pvalue, rel=1e-9)


def test_numbers_are_tested_as_a_coefficient_of_a_regression() -> None:
    sm = pytest.importorskip("statsmodels.api")
    rows = pd.DataFrame(RNG.normal(size=(40, 4)) @ (np.eye(4) + 0.3), columns=list("abcd"))
    graph = sf.GaussianGraph([("a", "b"), ("c", "d")]).fit(rows)
    for given in ([], ["c"], ["d", "c"]):
        known = sm.OLS(rows["a"], sm.add_constant(rows[["b", *given]])).fit()
        test = sf.independence_test(graph, "a", "b", given)
        assert test.statistic == pytest.approx(known.tvalues["b"] ** 2, rel=1e-9)
        assert (test.name, test.df, test.df_rest) == ("F", 1.0, known.df_resid)
        assert test.p_value == pytest.approx(known.pvalues["b"], rel=1e-8)
    assert sf.independence_test(sf.summarize(graph, rows), "a", "b", ["c"]) == sf.independence_test(
        graph, "a", "b", "c"
    )


def test_what_has_no_test_is_refused() -> None:
    rows = pd.DataFrame(RNG.normal(size=(3, 3)), columns=list("abc"))
    graph = sf.GaussianGraph([("a", "b")], nodes=list("abc")).fit(rows)
    with pytest.raises(sf.EstimateError, match="3 rows tell no partial correlation of 3 columns"):
        sf.independence_test(graph, "a", "b", "c")
    with pytest.raises(sf.OptionError, match="statistic='X2' is of counts"):
        sf.independence_test(graph, "a", "b", statistic="X2")
    with pytest.raises(sf.OptionError, match="G2"):
        sf.independence_test(FIT, "sex", "admit", statistic="F")  # type: ignore[arg-type]
    with pytest.raises(sf.OptionError, match="asked for twice"):
        sf.independence_test(FIT, "sex", "sex")
    with pytest.raises(sf.OptionError, match="two different variables"):
        sf.independence_test(FIT, "sex", "admit", "sex")
    with pytest.raises(sf.OptionError, match="keeps statistics"):
        sf.independence_test({"sex": [1]}, "sex", "admit")
    with pytest.raises(sf.EstimateError, match="not counted by"):
        sf.independence_test(sf.BayesianNetwork([("a", "b"), ("b", "c")]).fit(rows > 0), "a", "c")
    one = sf.MarkovNetwork([("a",), ("b",)]).fit(table=np.array([[3.0, 4.0]]), columns=["a", "b"])
    with pytest.raises(sf.EstimateError, match="In no stratum"):
        sf.independence_test(one, "a", "b")
    doubled = rows.assign(c=rows["a"] - rows["b"])
    wide = pd.concat([doubled, doubled.add([1.0, 3.0, -2.0])], ignore_index=True)
    with pytest.raises(sf.EstimateError, match="one is a sum of others"):
        sf.independence_test(sf.GaussianGraph([], nodes=list("abc")).fit(wide), "a", "b", "c")
