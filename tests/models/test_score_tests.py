"""Score tests of columns and arcs that a fit leaves out, and Wald tests of edges by their nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2_contingency

import suffice as sf

RNG = np.random.default_rng(17)
N = 300
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["x", "z", "w"])
ETA = 0.3 + 0.5 * X["x"] + 0.2 * X["z"]
RESPONSES: dict[str, Any] = {
    "gaussian": ETA + RNG.normal(size=N),
    "poisson": RNG.poisson(np.exp(ETA)).astype(float),
    "binomial": (RNG.random(N) < 1 / (1 + np.exp(-ETA))).astype(float),
}
A = RNG.integers(0, 2, N)
STATES = pd.DataFrame({"a": A, "b": (A + RNG.integers(0, 3, N)) % 3, "c": RNG.integers(0, 2, N)})


@pytest.mark.parametrize("family", RESPONSES)
def test_scores_of_columns_are_those_of_statsmodels(family: Any) -> None:
    sm = pytest.importorskip("statsmodels.api")
    y, small = RESPONSES[family], X[["x"]]
    peers = {"gaussian": sm.families.Gaussian(), "poisson": sm.families.Poisson(), "binomial": sm.families.Binomial()}
    null = sm.GLM(y, sm.add_constant(small), family=peers[family]).fit()
    fit = sf.GLM(family).fit(small, y)
    for names in (["z"], ["z", "w"]):
        statistic, p_value = null.score_test(exog_extra=X[names].to_numpy())[:2]
        test = sf.score_test(fit, names if len(names) > 1 else names[0], X[["x", *names]], y)
        assert (test.statistic, test.df) == pytest.approx((float(np.squeeze(statistic)), len(names)), rel=1e-6)
        assert test.p_value == pytest.approx(float(np.squeeze(p_value)), rel=1e-5)


def test_scores_of_columns_need_the_rows_of_the_fit_and_the_columns_named() -> None:
    y = RESPONSES["poisson"]
    fit = sf.GLM("poisson").fit(X[["x"]], y)
    with pytest.raises(sf.DataError, match="not those of the fit"):
        sf.score_test(fit, "z", X[["x", "z"]], y[::-1].copy())
    with pytest.raises(sf.OptionError, match="bring the coefficients 'z', 'w'"):
        sf.score_test(fit, "z", X, y)
    with pytest.raises(sf.EstimateError, match="say the same"):
        sf.score_test(fit, "k", X[["x"]].assign(k=2.0 * X["x"]), y)


def test_the_score_of_an_arc_is_pearson_within_the_parents() -> None:
    net = sf.BayesianNetwork({"a": [], "b": ["a"], "c": []}).fit(STATES)
    test = sf.score_test(net, ("c", "b"), STATES)
    parts = [chi2_contingency(pd.crosstab(part["c"], part["b"]), correction=False) for _, part in STATES.groupby("a")]
    expected = sum(part.statistic for part in parts), sum(part.dof for part in parts)
    assert (test.statistic, test.df) == pytest.approx(expected)
    root = sf.score_test(net, ("a", "c"), STATES)
    whole = chi2_contingency(pd.crosstab(STATES["a"], STATES["c"]), correction=False)
    assert (root.statistic, root.p_value) == pytest.approx((whole.statistic, whole.pvalue))
    with pytest.raises(sf.OptionError, match="no arc"):
        sf.score_test(net, ("a", "b"), STATES)
    with pytest.raises(sf.OptionError, match="needs the rows"):
        sf.score_test(net, ("c", "b"))
    with pytest.raises(sf.DataError, match="not those of the fit"):
        sf.score_test(net, ("c", "b"), STATES.iloc[[0] * N])


def test_an_edge_is_tested_by_its_nodes() -> None:
    """Of a 2x2 table the effect is the log odds ratio, and its variance the sum of the reciprocals (Woolf 1955)."""
    pair = STATES[["a", "c"]]
    table = pd.crosstab(pair["a"], pair["c"]).to_numpy().astype(float)
    odds = np.log(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))
    test = sf.wald_test(sf.MarkovNetwork([("a", "c")]).fit(pair), ("a", "c"))
    assert (test.statistic, test.df) == pytest.approx((odds**2 / (1.0 / table).sum(), 1.0))
    net = sf.MarkovNetwork([("a", "b"), ("b", "c")]).fit(STATES)
    joint = sf.wald_test(net, ("b", "c"))
    ratio = sf.likelihood_ratio_test(sf.MarkovNetwork([("a", "b"), ("c",)]).fit(STATES), net)
    assert joint.df == ratio.df == 2.0
    assert joint.statistic == pytest.approx(ratio.statistic, rel=0.1)
    assert sf.wald_test(net, ("c", "b")).statistic == pytest.approx(joint.statistic)
    with pytest.raises(sf.OptionError, match="no term of 'a', 'c' together"):
        sf.wald_test(net, ("a", "c"))
    equal = sf.Feature(("a", "c"), lambda a, c: float(a == c), name="equal")
    tied = sf.MarkovNetwork([("a",), ("c",), equal]).fit(pair)
    assert sf.wald_test(tied, ("a", "c")).statistic == pytest.approx(test.statistic, rel=1e-6)


def test_nested_conditional_fields_are_tested_by_their_likelihoods() -> None:
    words = [[{"bias": 1.0, f"w={letter}": 1.0} for letter in RNG.choice(list("xy"), 6)] for _ in range(40)]
    tags = [["A" if RNG.random() < (0.7 if "w=x" in word else 0.4) else "B" for word in each] for each in words]
    bare = [[{"bias": word["bias"]} for word in each] for each in words]
    small, large = (sf.ChainCRF(prior=None, tolerance=1e-8).fit(rows, tags) for rows in (bare, words))
    test = sf.likelihood_ratio_test(small, large)
    assert test.statistic == pytest.approx(2 * (large.log_likelihood_ - small.log_likelihood_))
    assert test.df == large.n_params_ - small.n_params_ == 1.0
    with pytest.raises(sf.OptionError, match="no weights 'state w=x"):
        sf.likelihood_ratio_test(large, small)
    with pytest.raises(sf.DataError, match="different rows"):
        sf.likelihood_ratio_test(sf.ChainCRF(prior=None).fit(bare, [list("ABABAB"), *tags[1:]]), large)
    with pytest.raises(sf.EstimateError, match="without a prior"):
        sf.likelihood_ratio_test(sf.ChainCRF(prior=sf.Normal(variance=1.0)).fit(bare, tags), large)
