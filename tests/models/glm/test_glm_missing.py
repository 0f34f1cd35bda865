"""Rows with missing values left out: the fit is that of the others, and the report says how many."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf

RNG = np.random.default_rng(9)
N = 60
ROWS = pd.DataFrame({"x": RNG.normal(size=N), "z": RNG.normal(size=N), "g": RNG.choice(list("uvw"), N)})
ROWS["n"] = RNG.poisson(np.exp(0.3 * ROWS["x"])).astype(float)
ROWS["w"] = RNG.integers(1, 4, N).astype(float)
ROWS["idle"] = np.nan
ROWS.loc[[3, 8], "x"] = np.nan
ROWS.loc[[8, 20], "g"] = None
ROWS.loc[41, "n"] = np.nan
ROWS.loc[42, "w"] = np.nan
COMPLETE = ROWS.drop(index=[3, 8, 20, 41, 42])
USED = ["x", "g"]
SAID = r"5 of 60 rows left out, as values are missing: x \(2\), g \(2\), n \(1\), w \(1\)"


def expected() -> Any:
    return sf.GLM("poisson").fit(COMPLETE[[*USED, "n", "w"]], "n", "w").parameters_


@pytest.mark.parametrize("kind", ["pandas", "dict", "polars", "pyarrow", "arrays"])
def test_the_fit_is_that_of_the_other_rows(kind: str) -> None:
    frame: Any = ROWS[[*USED, "n", "w", "idle"]]
    given: Any = {"y": "n", "sample_weight": "w", "columns": USED}
    if kind == "dict":
        frame = {name: frame[name].to_numpy() for name in frame}
    elif kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").Table.from_pandas(frame)
    elif kind == "arrays":
        frame, given = frame[USED], {"y": ROWS["n"].to_numpy(), "sample_weight": ROWS["w"].tolist()}
    words = r"5 of 60 .* x \(2\), g \(2\), y \(1\), sample_weight \(1\)" if kind == "arrays" else SAID
    with pytest.warns(sf.LeftOutWarning, match=words):
        model = sf.GLM("poisson", missing="drop").fit(frame, **given)
    np.testing.assert_allclose(model.parameters_, expected(), rtol=1e-10)
    assert model.report_.rows == 55
    assert any("5 of 60 rows left out" in one for one in model.report_.warnings)
    assert "5 of 60 rows left out" in str(model.report_)


def test_matrices_formulas_and_what_reads_rows_again() -> None:
    pytest.importorskip("formulaic")
    matrix = ROWS[["x", "z"]].to_numpy()
    with pytest.warns(sf.LeftOutWarning, match=r"3 of 60 .* x0 \(2\), y \(1\)"):
        model = sf.GLM("poisson", missing="drop").fit(matrix, ROWS["n"])
    with pytest.warns(sf.LeftOutWarning, match="3 of 60"):
        online = sf.GLM("poisson", missing="drop").partial_fit(matrix, ROWS["n"])
    assert online.updates_ == 57
    whole = ROWS[["x", "z", "n"]].dropna()
    plain = sf.GLM("poisson").fit(whole[["x", "z"]], whole["n"])
    np.testing.assert_allclose(model.parameters_, plain.parameters_, rtol=1e-10)
    tests = model.term_tests(matrix, ROWS["n"], method="likelihood-ratio").to_frame()
    other = plain.term_tests(whole[["x", "z"]], whole["n"], method="likelihood-ratio").to_frame()
    np.testing.assert_allclose(tests.to_numpy(), other.to_numpy(), rtol=1e-7)
    np.testing.assert_allclose(
        model.with_covariance("HC3", matrix, ROWS["n"]).covariance_,
        plain.with_covariance("HC3", whole[["x", "z"]], whole["n"]).covariance_,
        rtol=1e-8,
    )
    with pytest.warns(sf.LeftOutWarning, match=r"4 of 60 .* x \(2\), g \(2\), n \(1\)"):
        formula = sf.GLM("poisson", formula="n ~ x + g", missing="drop", covariance="HC1").fit(ROWS)
    rest = ROWS.drop(index=[3, 8, 20, 41])
    again = sf.GLM("poisson", formula="n ~ x + g", covariance="HC1").fit(rest)
    np.testing.assert_allclose(formula.standard_errors_, again.standard_errors_, rtol=1e-9)


def test_nothing_is_said_where_nothing_is_missing(recwarn: pytest.WarningsRecorder) -> None:
    model = sf.GLM("poisson", missing="drop").fit(COMPLETE[[*USED, "n"]], "n")
    assert not recwarn.list
    assert model.report_.warnings == ()


def test_what_cannot_be_dropped(tmp_path: Any) -> None:
    with pytest.raises(sf.MissingValueError):
        sf.GLM("poisson").fit(ROWS[[*USED, "n"]], "n")
    with pytest.raises(sf.DataError, match="no row is left"):
        sf.GLM("poisson", missing="drop").fit(ROWS[["x", "idle", "n"]], "n")
    with pytest.raises(sf.OptionError, match="missing is 'skip'"):
        sf.GLM(missing="skip")  # type: ignore[arg-type]
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    with pytest.raises(sf.OptionError, match="rows in memory"):
        sf.GLM("poisson", missing="drop").fit(path, "n", columns=USED)
