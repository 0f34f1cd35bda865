"""What users write after a fit."""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import assert_type

import numpy as np

import suffice as sf
from suffice.fitting.comparing import ModelComparison
from suffice.fitting.hypotheses import HypothesisTest
from suffice.fitting.named import NamedVector
from suffice.fitting.parameter_table import NumberTable, ParameterTable
from suffice.fitting.pooling import PooledEstimates


def main() -> None:
    """Summaries, intervals, refits, comparisons and tests."""
    rows = np.array([1.0, 2.0, 4.0, 7.0])
    law = sf.Normal().fit(rows)
    assert_type(law.summary(), ParameterTable)
    assert_type(law.summary(0.9).to_latex(), str)
    assert_type(law.summary().conf_int(), NamedVector)
    assert_type(law.confidence_intervals(0.9, method="profile"), NamedVector)
    drawn = law.bootstrap(rows, n=10)
    assert_type(law.parameter_covariance(), NamedVector)
    assert_type(drawn, sf.Bootstrap)
    assert_type(drawn.standard_errors, NamedVector)
    assert_type(drawn.intervals(0.9, method="basic"), NamedVector)
    assert_type(sf.compare(law, sf.Normal(variance=1.0).fit(rows)), ModelComparison)
    test = sf.likelihood_ratio_test(sf.Normal(variance=1.0).fit(rows), law)
    assert_type(test, HypothesisTest)
    assert_type(test.p_value, float)
    assert_type(sf.likelihood_ratio_tests(sf.Normal(variance=1.0).fit(rows), law), NumberTable)
    assert_type(sf.wald_test(law, "mean"), HypothesisTest)
    assert_type(sf.score_test(sf.MarkovNetwork([("a",), ("b",)]).fit({"a": [0, 1], "b": [1, 0]}), "ab"), HypothesisTest)
    pooled = sf.pool([law, sf.Normal().fit(rows + 1.0)])
    assert_type(pooled, PooledEstimates)
    assert_type(pooled.missing_information, NamedVector)
    with TemporaryDirectory() as folder:
        law.write(f"{folder}/law.json")
        assert_type(sf.read(f"{folder}/law.json", sf.Normal), sf.Normal)
