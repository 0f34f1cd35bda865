"""Offsets in formulas: ``y ~ x + offset(log(t))``, in memory, in files, after the fit."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.models.glm.formula_offset import split_offset

pytest.importorskip("formulaic")

RNG = np.random.default_rng(8)
ROWS = pd.DataFrame({"x": RNG.normal(size=120), "t": RNG.uniform(1.0, 5.0, 120), "g": RNG.choice(["u", "v"], 120)})
ROWS["n"] = RNG.poisson(ROWS["t"] * np.exp(0.2 + 0.4 * ROWS["x"]))
ROWS["ill"] = np.where(RNG.random(120) < 0.4, "yes", "no")


@pytest.mark.parametrize(
    ("formula", "bare", "expression"),
    [
        ("y ~ x + offset(log(t))", "y ~ x", "(log(t))"),
        ("y ~ offset(t) + x", "y ~ x", "(t)"),
        ("y ~ offset(log(t + 1))", "y ~ 1", "(log(t + 1))"),
        ("y ~ x + offset(a) + z + offset(b)", "y ~ x + z", "(a) + (b)"),
        ("x + offset(t)", "x", "(t)"),
        ("y ~ x + my_offset(t)", "y ~ x + my_offset(t)", None),
    ],
)
def test_terms_of_offsets_are_taken_out(formula: str, bare: str, expression: str | None) -> None:
    made, own = split_offset(formula)
    assert (" ".join(made.split()), own) == (bare, expression)


def test_an_offset_in_a_formula_is_the_argument() -> None:
    model = sf.GLM("poisson", formula="n ~ x + g + offset(log(t))").fit(ROWS)
    plain = sf.GLM("poisson", formula="n ~ x + g").fit(ROWS, exposure="t")
    np.testing.assert_allclose(model.parameters_, plain.parameters_, rtol=1e-9)
    assert model.log_likelihood_ == pytest.approx(plain.log_likelihood_, rel=1e-12)
    np.testing.assert_allclose(model.predict(ROWS), plain.predict(ROWS, exposure="t"), rtol=1e-9)
    assert model.score(ROWS) == pytest.approx(plain.score(ROWS, exposure="t"), rel=1e-9)
    again = sf.GLM.from_dict(model.to_dict())
    np.testing.assert_array_equal(again.predict(ROWS), model.predict(ROWS))
    both = sf.GLM("poisson", formula="n ~ x + g + offset(log(t))").fit(ROWS, offset=-np.log(ROWS["t"]))
    np.testing.assert_allclose(
        both.parameters_, sf.GLM("poisson", formula="n ~ x + g").fit(ROWS).parameters_, rtol=1e-9
    )
    effects = model.marginal_effects(ROWS, columns=["x", "g"])
    np.testing.assert_allclose(effects.bse, plain.marginal_effects(ROWS, exposure="t").bse, rtol=1e-7)


def test_statsmodels_reads_the_same(tmp_path: Path) -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    peer = smf.poisson("n ~ x + g", ROWS, offset=np.log(ROWS["t"])).fit(disp=0, tol=1e-12)
    model = sf.GLM("poisson", formula="n ~ x + g + offset(np.log(t))").fit(ROWS)
    np.testing.assert_allclose(model.standard_errors_, peer.bse[["Intercept", "x", "g[T.v]"]], rtol=1e-6)


@pytest.mark.parametrize(("family", "y"), [("poisson", "n"), ("binomial", "ill")])
def test_files_have_offsets_too(tmp_path: Path, family: Any, y: str) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.csv"
    ROWS.to_csv(path, index=False)
    formula = f"{y} ~ x + g + offset(log(t) / 2)"
    memory, held = (sf.GLM(family, formula=formula).fit(rows) for rows in (ROWS, path))
    np.testing.assert_allclose(held.parameters_, memory.parameters_, rtol=1e-8)
    kind: Any = "response"
    np.testing.assert_allclose(held.predict(path, kind=kind), memory.predict(ROWS, kind=kind), rtol=1e-8)
    assert held.score(path) == pytest.approx(memory.score(ROWS), rel=1e-8)
    with pytest.raises(sf.OptionError, match="give one of them"):
        sf.GLM(family, formula=formula).fit(path, offset="t")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("n ~ x + offset(log(t)", "not closed"),
        ("n ~ x + offset(center(t))", "number by number"),
        ("n ~ x + offset(open(t))", "number by number"),
        ("n ~ x + offset(g)", "is no number|cannot be read|not finite|could not"),
        ("n ~ x + offset(log(t - 5))", "missing or infinite"),
        ("n ~ x - offset(t)", "term of its own"),
        ("n ~ x + offset(hours)", "hours"),
    ],
)
def test_what_is_no_offset_is_refused(formula: str, words: str) -> None:
    with pytest.raises(sf.SufficeError, match=words):
        sf.GLM("poisson", formula=formula).fit(ROWS)
