"""Sequences of nested models."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import suffice as sf

NAMES = ["A", "C", "M"]
# Alcohol, cigarettes and marijuana of 2276 students (Agresti 2002, table 8.3).
DRUGS = np.array([[[911, 538], [44, 456]], [[3, 43], [2, 279]]])
STRUCTURES: list[Any] = [
    [("A",), ("C",), ("M",)],
    [("A", "C"), ("M",)],
    [("A", "M"), ("C", "M")],
    list(combinations(NAMES, 2)),
]


def network(structure: list[tuple[str, ...]]) -> sf.MarkovNetwork:
    return sf.MarkovNetwork(structure).fit(DRUGS, columns=NAMES)


def test_drugs_have_the_published_differences() -> None:
    """Agresti (2002), table 8.4: G2 = 1286.0 on 4, 843.8 on 3 and 0.4 on 1 degrees of freedom."""
    chosen = [network(STRUCTURES[number]) for number in (0, 1, 3)]
    table = sf.likelihood_ratio_tests(*chosen, names=["apart", "AC", "pairs"])
    assert [name for name, _ in table.rows] == ["apart", "AC", "pairs"]
    values = np.array([row for _, row in table.rows])
    np.testing.assert_array_equal(values[:, 0], [3, 4, 6])
    assert np.isnan(values[0, 1:]).all()
    np.testing.assert_allclose(values[1:, 1], [1286.0 - 843.8, 843.8 - 0.4], atol=0.11)
    np.testing.assert_array_equal(values[1:, 2], [1, 2])
    for number in (1, 2):
        test = sf.likelihood_ratio_test(chosen[number - 1], chosen[number])
        assert tuple(values[number, [1, 2, 4]]) == (test.statistic, test.df, test.p_value)


def test_regressions_with_a_dispersion_have_the_f_tests_of_statsmodels() -> None:
    sm, lm = pytest.importorskip("statsmodels.api"), pytest.importorskip("statsmodels.stats.anova")
    rng = np.random.default_rng(2)
    X = rng.normal(size=(40, 2))
    y = X @ [0.5, 0.2] + rng.normal(size=40)
    fits = [sf.GLM().fit({f"x{k}": X[:, k] for k in range(size)}, y) for size in (1, 2)]
    table = sf.likelihood_ratio_tests(*fits)
    known = lm.anova_lm(*(sm.OLS(y, sm.add_constant(X[:, :size])).fit() for size in (1, 2)))
    name, values = table.rows[1]
    assert name == "GLM 2"
    assert values[1:] == pytest.approx((known["F"][1], 1.0, 37.0, known["Pr(>F)"][1]), rel=1e-8)
    assert table.marks == ("", "F")


def test_models_that_are_not_nested_are_refused() -> None:
    first, second = network(STRUCTURES[1]), network(STRUCTURES[2])
    with pytest.raises(sf.OptionError, match="not nested"):
        sf.likelihood_ratio_tests(first, second)
    with pytest.raises(sf.OptionError, match="two models or more"):
        sf.likelihood_ratio_tests(first)
    with pytest.raises(sf.OptionError, match="1 names for 2 models"):
        sf.likelihood_ratio_tests(network(STRUCTURES[0]), first, names=["a"])
