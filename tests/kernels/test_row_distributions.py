"""Kernels of regressions: weighted cross products and the logistic row law, on both paths."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from suffice.kernels.choice import force
from suffice.kernels.row_distributions import logistic_rows
from suffice.kernels.weighted_gram import WeightedGram, block_rows


@pytest.mark.parametrize("mode", ["numpy", "compiled"])
def test_the_logistic_law_keeps_its_digits_far_out(mode: str) -> None:
    eta = np.array([-800.0, -40.0, -1.0, 0.0, 0.5, 40.0, 800.0])
    for y in (0.0, 1.0, 0.25):
        with force(mode):
            value, score, information = logistic_rows(eta, np.full(7, y))
        for at, e in enumerate(eta):
            with localcontext() as context:
                context.prec = 800
                mean = 1 / (1 + (-Decimal(float(e))).exp())
                share = Decimal(y)
                expected = share * mean.ln() + (1 - share) * (1 - mean).ln()
                slope, weight = share - mean, mean * (1 - mean)
            assert value[at] == pytest.approx(float(expected), rel=1e-14, abs=1e-300)
            assert score[at] == pytest.approx(float(slope), rel=1e-14, abs=1e-300)
            assert information[at] == pytest.approx(float(weight), rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("constant", [False, True])
def test_weighted_cross_products_add_up_over_blocks(constant: bool) -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(100, 4)), rng.random(100)
    gram = WeightedGram(4, constant=constant)
    for rows in (slice(0, 7), slice(7, 60), slice(60, 100)):
        gram.add(X[rows], weights[rows])
    design = np.column_stack([np.ones(100), X]) if constant else X
    np.testing.assert_allclose(gram.matrix(), design.T @ (design * weights[:, None]), rtol=1e-12)


def test_blocks_have_some_rows_however_many_the_columns() -> None:
    assert block_rows(1) == 4096
    assert block_rows(10**9) == 256
