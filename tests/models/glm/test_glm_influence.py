"""What single rows decide, beside statsmodels, by refits without a row, and by definitions of R."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

sm = pytest.importorskip("statsmodels.api")

RNG = np.random.default_rng(4)
N = 60
ROWS = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.exponential(size=N)})
ETA = 0.3 + 0.5 * ROWS["x"] - 0.4 * ROWS["z"]
ROWS["real"] = ETA + RNG.standard_t(3, size=N)
ROWS["count"] = RNG.poisson(np.exp(1.0 + ETA))
ROWS["size"] = RNG.gamma(2.0, np.exp(ETA) / 2.0)
ROWS["ill"] = (RNG.random(N) < 1.0 / (1.0 + np.exp(-ETA))).astype(int)
X = ["x", "z"]
DESIGN = sm.add_constant(ROWS[X])


def test_least_squares() -> None:
    peer = sm.OLS(ROWS["real"], DESIGN).fit().get_influence()
    made = sf.GLM().fit(ROWS[X], ROWS["real"]).influence(ROWS[X], ROWS["real"])
    assert made.names == ("intercept", "x", "z")
    for mine, theirs in (
        (made.leverage, peer.hat_matrix_diag),
        (made.studentized, peer.resid_studentized_internal),
        (made.deleted, peer.resid_studentized_external),
        (made.cooks_distance, peer.cooks_distance[0]),
        (made.dfbetas, peer.dfbetas),
        (made.dffits, peer.dffits[0]),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "y", "peer_family"), [("poisson", "count", "Poisson"), ("binomial", "ill", "Binomial")]
)
def test_one_step_of_other_families(family: Any, y: str, peer_family: str) -> None:
    peer = sm.GLM(ROWS[y], DESIGN, getattr(sm.families, peer_family)()).fit(tol=1e-12).get_influence()
    made = sf.GLM(family).fit(ROWS[X], ROWS[y]).influence(ROWS[X], ROWS[y])
    for mine, theirs in (
        (made.leverage, peer.hat_matrix_diag),
        (made.studentized, peer.resid_studentized),
        (made.cooks_distance, peer.cooks_distance[0]),
        (made.dfbetas, peer.dfbetas),
    ):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-10)


@pytest.mark.parametrize(
    ("family", "link", "y"), [("poisson", "log", "count"), ("gamma", "inverse", "size"), ("gamma", "log", "size")]
)
def test_rows_that_are_left_out(family: Any, link: Any, y: str) -> None:
    """Coefficients without a row, from a fit of its own: the step comes near, the sign always where it is not small."""
    model = sf.GLM(family, link=link).fit(ROWS[X], ROWS[y])
    made = model.influence(ROWS[X], ROWS[y])
    exact = []
    for row in range(N):
        rest = ROWS.drop(index=row)
        without = sf.GLM(family, link=link).fit(rest[X], rest[y])
        unscaled = np.sqrt(np.diagonal(model.covariance_) / model.dispersion_)
        sigma = 1.0 if family == "poisson" else np.sqrt(without.dispersion_)
        exact.append((np.asarray(model.parameters_) - np.asarray(without.parameters_)) / (unscaled * sigma))
    exact_steps = np.array(exact)
    assert np.corrcoef(made.dfbetas.ravel(), exact_steps.ravel())[0, 1] > 0.97
    assert (np.sign(made.dfbetas) == np.sign(exact_steps))[np.abs(exact_steps) > 0.2].all()


def test_deleted_residuals_square_to_the_loss_of_deviance() -> None:
    """Williams (1987): a squared residual is near what the deviance loses with its row."""
    model = sf.GLM("poisson").fit(ROWS[X], ROWS["count"])
    made = model.influence(ROWS[X], ROWS["count"])
    deviance = model.residuals(ROWS[X], ROWS["count"])
    pearson = model.residuals(ROWS[X], ROWS["count"], kind="pearson")
    h = made.leverage
    np.testing.assert_allclose(
        made.deleted, np.sign(deviance) * np.sqrt(deviance**2 + h * pearson**2 / (1 - h)), rtol=1e-10
    )
    for row in range(0, N, 7):
        rest = ROWS.drop(index=row)
        loss = model.deviance_ - sf.GLM("poisson").fit(rest[X], rest["count"]).deviance_
        assert made.deleted[row] ** 2 == pytest.approx(loss, rel=0.05, abs=0.01)


def test_trials_are_one_row(tmp_path: Path) -> None:
    rows = pd.DataFrame({"x": np.arange(8.0), "won": [1, 0, 3, 2, 5, 6, 4, 9], "n": [6, 5, 8, 7, 9, 9, 8, 10]})
    design, pairs = sm.add_constant(rows[["x"]]), np.column_stack((rows["won"], rows["n"] - rows["won"]))
    peer = sm.GLM(pairs, design, sm.families.Binomial()).fit(tol=1e-12).get_influence()
    model = sf.GLM("binomial").fit(rows[["x"]], rows["won"], trials=rows["n"])
    made = model.influence(rows[["x"]], rows["won"], trials=rows["n"])
    np.testing.assert_allclose(made.leverage, peer.hat_matrix_diag, rtol=1e-7)
    np.testing.assert_allclose(made.studentized, peer.resid_studentized, rtol=1e-7)
    np.testing.assert_allclose(made.cooks_distance, peer.cooks_distance[0], rtol=1e-7)
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    np.testing.assert_allclose(model.influence(path, "won", trials="n").dfbetas, made.dfbetas, rtol=1e-9)


def test_weights_are_repetitions_of_which_one_leaves() -> None:
    weights = RNG.integers(0, 4, N)
    repeated = ROWS.loc[ROWS.index.repeat(weights)]
    short = sf.GLM().fit(ROWS[X], ROWS["real"], weights).influence(ROWS[X], ROWS["real"], sample_weight=weights)
    long = sf.GLM().fit(repeated[X], repeated["real"]).influence(repeated[X], repeated["real"])
    first = np.cumsum(weights)[weights > 0] - 1
    for name in ("studentized", "deleted", "cooks_distance", "dfbetas", "dffits"):
        np.testing.assert_allclose(getattr(short, name)[weights > 0], getattr(long, name)[first], rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(short.leverage[weights > 0], long.leverage[first] * weights[weights > 0], rtol=1e-9)
    assert np.isnan(short.cooks_distance[weights == 0]).all()


def test_a_row_that_decides_its_own_fit_has_no_answer() -> None:
    rows = {"x": [0.0, 0.0, 0.0, 1.0], "y": [1.0, 2.0, 4.0, 9.0]}
    made = sf.GLM().fit(rows, "y").influence(rows, "y")
    assert made.leverage[3] == pytest.approx(1.0, abs=1e-12)
    assert np.isnan(made.dfbetas[3]).all()
    assert np.isnan(made.deleted[3])
    assert np.isfinite(made.dfbetas[:3]).all()
    assert list(made.to_frame().columns) == [
        *("leverage", "studentized", "deleted", "cooks_distance", "dffits"),
        *("dfbeta intercept", "dfbeta x"),
    ]


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (sf.GLM("ordinal"), sf.OptionError, "one linear predictor"),
        (sf.GLM("binomial", prior=sf.Normal(variance=1.0)), sf.EstimateError, "has a prior"),
    ],
)
def test_what_is_refused(model: sf.GLM, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        model.fit(ROWS[X], ROWS["ill"]).influence(ROWS[X], ROWS["ill"])
