"""Steps of a fit that must not slow down with the rows: the search for separation, and the size of counts."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import suffice as sf
from suffice.models.glm import directions
from suffice.models.glm import size as sizes
from suffice.models.glm.directions import programme


def test_the_programme_of_many_rows_decides_the_rows_of_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    found = {True: 0, False: 0}
    for case in range(120):
        n, k = int(rng.integers(5, 60)), int(rng.integers(1, 6))
        rows = rng.integers(-2, 3, size=(n, k)).astype(float) if case % 2 else rng.normal(size=(n, k))
        if case % 3 == 0:
            rows[:, 0] = np.abs(rows[:, 0]) * (rng.random(n) < 0.2)
        fixed = rng.random(n) < rng.choice([0.0, 0.05, 0.3])
        monkeypatch.setattr(directions, "MANY", 5_000)
        one = programme(rows, fixed)
        monkeypatch.setattr(directions, "MANY", 0)
        other = programme(rows, fixed)
        assert one.exists is not None
        found[one.exists] += 1
        assert one.exists is other.exists
        if one.decided is not None and other.decided is not None and other.direction is not None:
            np.testing.assert_array_equal(one.decided, other.decided)
            along = rows @ other.direction
            assert along[other.decided].min() > 0.0
            assert np.abs(along[fixed]).max(initial=0.0) < 1e-9
            assert along[~fixed].min() > -1e-9
    assert min(found.values()) > 20


def test_a_rare_column_separates_many_rows() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20_000, 3))
    y = (rng.random(20_000) < 0.5).astype(float)
    X[:, 1] = 0.0
    X[5:10, 1] = y[5:10] = 1.0
    model = sf.GLM("binomial").fit(X, y)
    assert model.report_.certificate.directions == ("x1 to +infinity",)
    rest = np.setdiff1d(np.arange(len(y)), np.arange(5, 10))
    others = sf.GLM("binomial").fit(X[rest][:, [0, 2]], y[rest])
    np.testing.assert_allclose(np.asarray(model.parameters_)[[0, 1, 3]], others.parameters_, rtol=1e-6)


def test_a_large_size_of_counts_is_found_in_a_few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are the law itself, which is then the best; near it the slope in a large size is rounding alone."""
    calls: list[int] = []
    size, slopes = 1e5, sizes._slopes
    y = np.tile(np.arange(40.0), 2)
    group = np.repeat([0.0, 1.0], 40)
    mean = np.where(group > 0.0, 4.0, 1.0)
    weights = 1e5 * stats.nbinom.pmf(y, size, size / (size + mean))

    def counted(*given: Any) -> tuple[float, float]:
        calls.append(0)
        return slopes(*given)

    monkeypatch.setattr(sizes, "_slopes", counted)
    model = sf.GLM("negative_binomial").fit(group[:, None], y, sample_weight=weights)
    assert len(calls) <= 60
    assert model.fitted_.size == pytest.approx(size, rel=0.01)
    np.testing.assert_allclose(model.parameters_, [0.0, np.log(4.0)], atol=1e-6)


@pytest.mark.parametrize("unit", [1e155, 1e200, 1e-200, 1e-310])
def test_columns_whose_squares_overflow_are_named(unit: float) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(50, 2)) * [1.0, unit]
    with pytest.raises(sf.EstimateError, match="squares of the column 'x1' are too large or too small"):
        sf.GLM("poisson").fit(X, rng.poisson(2.0, 50))
