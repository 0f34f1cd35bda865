"""Rubin's rules: published figures, and the rules by hand."""

from __future__ import annotations

import math
from statistics import fmean, variance

import numpy as np
import pytest
from scipy import stats

import suffice as sf

#: Means and standard errors of 31 men, from ten completed tables: SAS/STAT 14.1 User's Guide, Output 76.1.1.
OXYGEN = [47.0120, 47.2407, 47.4995, 47.1485, 47.0042, 47.2949, 46.9617, 46.9729, 46.9864, 46.9587]
OXYGEN_ERRORS = [0.95984, 0.93540, 1.00766, 0.95439, 0.96528, 0.95669, 0.93181, 0.94561, 0.93664, 0.94270]

#: Of five completed tables of the same men, SAS/STAT User's Guide, PROC MI, Getting Started: mean, between, within and
#: total variance, degrees of freedom of 30, relative increase, fraction missing, interval.
PUBLISHED = {
    "Oxygen": (47.094040, 0.056930, 0.954041, 1.022356, 25.549, 0.071606, 0.068898, (45.0139, 49.1742)),
    "RunTime": (10.572073, 0.000811, 0.064496, 0.065469, 27.721, 0.015084, 0.014968, (10.0477, 11.0964)),
    "RunPulse": (171.787793, 0.922032, 3.269089, 4.375528, 15.753, 0.338455, 0.275664, (167.3478, 176.2278)),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_of_the_manual_of_sas(name: str) -> None:
    mean, between, within, total, df, increase, missing, interval = PUBLISHED[name]
    spread = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]) * math.sqrt(between / 2.5)
    pooled = sf.pool(mean + spread, [within] * 5, df=30, names=[name])
    assert pooled.params[name] == pytest.approx(mean, rel=1e-12)
    assert pooled.between[name] == pytest.approx(between, rel=1e-12)
    assert pooled.total[name] == pytest.approx(total, abs=2e-6)
    assert pooled.df[name] == pytest.approx(df, abs=2e-3)
    assert pooled.increase[name] == pytest.approx(increase, abs=2e-5)
    assert pooled.missing_information[name] == pytest.approx(missing, abs=2e-5)
    assert pooled.conf_int()[name] == pytest.approx(interval, abs=1e-4)


def test_the_rules_by_hand() -> None:
    squares = [error**2 for error in OXYGEN_ERRORS]
    m, mean, within, between = 10, fmean(OXYGEN), fmean(squares), variance(OXYGEN)
    total = within + 1.1 * between
    r, share = 1.1 * between / within, 1.1 * between / total
    large = (m - 1) * (1 + 1 / r) ** 2
    seen = 31 / 33 * 30 * (1 - share)
    df = large * seen / (large + seen)
    pooled = sf.pool(OXYGEN, squares, df=30, level=0.9)
    assert pooled.params[0] == pytest.approx(mean, rel=1e-14)
    assert pooled.bse[0] == pytest.approx(math.sqrt(total), rel=1e-12)
    assert pooled.df[0] == pytest.approx(df, rel=1e-12)
    assert pooled.missing_information[0] == pytest.approx((r + 2 / (large + 3)) / (1 + r), rel=1e-12)
    reach = stats.t.ppf(0.95, df) * math.sqrt(total)
    assert pooled.conf_int()[0].tolist() == pytest.approx([mean - reach, mean + reach], rel=1e-12)
    assert pooled.pvalues[0] == pytest.approx(2 * stats.t.sf(mean / math.sqrt(total), df), rel=1e-9, abs=0)
    assert sf.pool(OXYGEN, squares).df[0] == pytest.approx(large, rel=1e-12)


def tables(m: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    x, z, noise = rng.normal(size=40), rng.normal(size=40), rng.normal(size=40)
    filled = []
    for _ in range(m):
        filled.append({"x": np.where(np.arange(40) < 10, rng.normal(size=40), x), "z": z, "y": 1 + x - z + noise})
    return filled


def test_models_pool_as_their_estimates_and_covariances_do() -> None:
    fits = [sf.GLM("gaussian").fit({n: t[n] for n in ("x", "z")}, t["y"]) for t in tables(4)]
    pooled = sf.pool(fits)
    Q = np.array(
        [np.linalg.lstsq(np.column_stack([np.ones(40), t["x"], t["z"]]), t["y"], rcond=None)[0] for t in tables(4)]
    )
    U = []
    for t, q in zip(tables(4), Q, strict=True):
        X = np.column_stack([np.ones(40), t["x"], t["z"]])
        U.append(np.linalg.inv(X.T @ X) * ((t["y"] - X @ q) ** 2).sum() / 37)
    order = [pooled.params.names.index(name) for name in ("intercept", "x", "z")]
    total = np.mean(U, axis=0) + 1.25 * np.cov(Q.T)
    assert np.asarray(pooled.params)[order] == pytest.approx(Q.mean(axis=0), rel=1e-9)
    assert np.asarray(pooled.total)[np.ix_(order, order)] == pytest.approx(total, rel=1e-8)
    by_hand = sf.pool(list(Q), U, df=37, names=["intercept", "x", "z"])
    assert np.asarray(pooled.df)[order] == pytest.approx(np.asarray(by_hand.df), rel=1e-8)
    assert (np.asarray(pooled.df) < 37).all()
    assert pooled.cov_params().shape == (3, 3)
    by_name = sf.pool([dict(zip("abc", q, strict=True)) for q in Q], U, df=37)
    assert by_name.conf_int()["b"].tolist() == pytest.approx(by_hand.conf_int()["x"].tolist(), rel=1e-14)
    assert "4 fits by Rubin's rules" in str(pooled)


def test_tables_that_agree_lack_nothing() -> None:
    pooled = sf.pool([1.5, 1.5, 1.5], [0.25, 0.25, 0.25], df=20)
    assert (pooled.bse[0], pooled.missing_information[0]) == (0.5, 0.0)
    assert pooled.df[0] == pytest.approx(21 / 23 * 20, rel=1e-14)
    unbounded = sf.pool([1.5, 1.5], [0.25, 0.25])
    assert math.isinf(unbounded.df[0])
    assert unbounded.conf_int()[0] == pytest.approx([1.5 - 1.959963984540054 / 2, 1.5 + 1.959963984540054 / 2])


@pytest.mark.parametrize(
    ("given", "options", "text"),
    [
        (([1.0], [0.1]), {}, "fits has 1 entries"),
        (([1.0, 2.0], [0.1, 0.2, 0.3]), {}, "2 estimates and 3 covariances"),
        (([[1.0, 2.0], [2.0, 3.0]], [[0.1, 0.2], [0.1, 0.2]]), {}, r"expected \(2, 2\)"),
        (([1.0, 2.0], [0.1, 0.2]), {"df": -1}, "df is -1"),
        (([1.0, 2.0], [0.1, 0.2]), {"level": 95}, "level is 95"),
        (([1.0, 2.0], [0.1, 0.2]), {"names": ["a", "b"]}, "2 names"),
        (([1.0, math.nan], [0.1, 0.2]), {"names": ["dose"]}, "'dose' are not finite"),
        (([1.0, 2.0], [0.0, 0.0]), {}, "not above 0"),
        (([1.0, 2.0],), {}, "covariances= beside them"),
        ((1.0, [0.1]), {}, "expected a list"),
        (([{"a": 1.0}, {"b": 2.0}], [0.1, 0.2]), {}, "other names"),
        (([sf.Normal().fit([1.0, 2.0, 4.0]), sf.Poisson().fit([1, 2, 4])],), {}, "other parameters"),
        (([sf.Poisson().fit([1, 2]), sf.Poisson().fit([1, 2, 4])],), {"names": ["mean"]}, "names= are for estimates"),
    ],
)
def test_what_cannot_be_pooled_is_refused(given: tuple[object, ...], options: dict[str, object], text: str) -> None:
    with pytest.raises(sf.SufficeError, match=text):
        sf.pool(*given, **options)  # type: ignore[arg-type]
