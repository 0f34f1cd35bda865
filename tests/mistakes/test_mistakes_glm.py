"""The hundred most likely mistakes with a generalised linear model."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of
from suffice.errors import NotOfferedError

NO_ARGUMENT, NO_COLUMN, NO_STATE = sf.CallError, sf.MissingColumnError, sf.UnknownStateError


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    df = pd.DataFrame(
        {"age": rng.normal(50, 10, 60), "dose": rng.normal(1, 0.2, 60), "sex": rng.choice(["f", "m"], 60)}
    )
    y = 0.1 * df.age.to_numpy() + rng.normal(size=60)
    counts, sick = rng.poisson(3, 60), rng.choice(["no", "yes"], 60)
    X = df[["age", "dose"]]
    formula = sf.GLM("gaussian", formula="age ~ dose + sex").fit(df)
    fit = sf.GLM("gaussian").fit(df, y)
    return {
        "df": df,
        "X": X,
        "y": y,
        "counts": counts,
        "sick": sick,
        "GLM": sf.GLM,
        "raw": sf.GLM(),
        "glm": fit,
        "formula": formula,
        "logit": sf.GLM("binomial").fit(X, sick),
    }


TABLE: list[Row] = [
    *(
        (
            f"GLM({wrong}=1)",
            NO_ARGUMENT,
            f"GLM has no option '{wrong}' ... Did you mean '{right}'? ... options are: family",
        )
        for wrong, right in [
            ("alpha", "prior"),
            ("C", "prior"),
            ("l1", "prior"),
            ("l1_ratio", "prior"),
            ("penalty", "prior"),
            ("intercept", "fit_intercept"),
            ("maxiter", "max_iter"),
            ("max_iterations", "max_iter"),
            ("tol", "tolerance"),
            ("seed", "random_state"),
            ("verbose", "progress"),
            ("families", "family"),
            ("links", "link"),
            ("formulas", "formula"),
            ("distribution", "family"),
        ]
    ),
    ("GLM('gaussian', 'identity')", NO_ARGUMENT, "at most 1 value by position (family); found 2 ... link="),
    ("raw.set_params(alpha=1)", sf.OptionError, "no option 'alpha' ... Did you mean 'prior'?"),
    ("sf.LogisticRegression()", sf.MissingAttributeError, "Did you mean 'GLM'?"),
    ("sf.Glm()", sf.MissingAttributeError, "Did you mean 'GLM'?"),
    # values of options
    ("GLM('gausian').fit(X, y)", sf.OptionError, "family is 'gausian' ... Did you mean 'gaussian'?"),
    ("GLM('ols').fit(X, y)", sf.OptionError, "'ols' ... 'gaussian'"),
    ("GLM(3).fit(X, y)", sf.OptionError, "family is 3 ... expected"),
    ("GLM('poisson', link='logg').fit(X, counts)", sf.OptionError, "link ... 'logg' ... 'log'"),
    ("GLM('poisson', link=3).fit(X, counts)", sf.OptionError, "link ... 3 ... 'log'"),
    *(
        (
            f"GLM('gaussian', {option}={value!r}).fit(X, y)",
            sf.OptionError,
            f"{option} is {value!r} ... expected ... {right}",
        )
        for option, value, right in [
            ("fit_intercept", "no", "True or False"),
            ("penalize_intercept", 3, "True or False"),
            ("solver", "newtn", "Did you mean 'newton'?"),
            ("covariance", "HC9", "'expected'"),
            ("unknown", "ignore", "'raise'"),
            ("collinear", "ignore", "'raise'"),
            ("max_iter", -1, "at least 0"),
            ("tolerance", "x", "number"),
            ("max_seconds", -1, "positive"),
            ("callback", 3, "function"),
            ("memory_limit", "big", "bytes"),
        ]
    ),
    ("GLM('gaussian', prior=-1.0).fit(X, y)", sf.OptionError, "prior ... -1.0"),
    ("GLM('gaussian', prior='ridge').fit(X, y)", sf.OptionError, "prior ... 'ridge'"),
    ("GLM('gaussian', dispersion='fixed').fit(X, y)", sf.OptionError, "dispersion is 'fixed' ... expected"),
    ("GLM('gaussian', dispersion=-1.0).fit(X, y)", sf.OptionError, "dispersion is -1.0 ... expected"),
    ("GLM('poisson', dispersion=2.5).fit(X, counts)", sf.OptionError, "dispersion ... poisson"),
    ("GLM('gaussian', categorical=['sx']).fit(df, y)", NO_COLUMN, "categorical= names 'sx' ... Did you mean 'sex'?"),
    ("GLM('gaussian', start=[1.0]).fit(X, y)", sf.EstimateError, "start has 1 numbers; expected 3"),
    (
        "GLM('binomial', reference='maybe').fit(X, sick)",
        sf.OptionError,
        "reference= belongs to the multinomial ... Leave it out",
    ),
    (
        "GLM('gaussian', states=['f', 'x']).fit(df, y)",
        sf.OptionError,
        "states= belongs to families of labels ... Leave it out",
    ),
    # formulas
    (
        "GLM(formula='age ~ dse').fit(df)",
        NO_COLUMN,
        "'age ~ dse' names 'dse' ... Did you mean 'dose'? ... 'age', 'dose', 'sex'",
    ),
    ("GLM(formula='aeg ~ dose').fit(df)", NO_COLUMN, "'aeg' ... Did you mean 'age'?"),
    ("GLM(formula='age ~ ~ dose').fit(df)", sf.DataError, "'age ~ ~ dose' ... Expected a formula"),
    ("GLM(formula='age ~ dose +').fit(df)", sf.DataError, "'age ~ dose +' ... Expected a formula"),
    ("GLM(formula='age ~ (dose').fit(df)", sf.DataError, "'age ~ (dose' ... Expected a formula"),
    ("GLM(formula='age ~ nosuch(dose)').fit(df)", sf.DataError, "'age ~ nosuch(dose)' ... columns"),
    ("GLM(formula='age ~ np.nosuch(dose)').fit(df)", sf.DataError, "'age ~ np.nosuch(dose)' ... columns"),
    ("GLM(formula='').fit(df)", sf.DataError, "no response: give y="),
    ("GLM(formula=3).fit(df)", sf.OptionError, "formula is 3 ... expected"),
    ("GLM(formula='dose').fit(df)", sf.DataError, "response"),
    (
        "GLM(formula='age ~ dose').fit(df.assign(dose=np.nan))",
        sf.MissingValueError,
        "Column 'dose' has 60 missing values, the first in row 0 ... Leave these rows out",
    ),
    (
        "GLM(formula='age ~ dose | sex').fit(df)",
        sf.DataError,
        "'age ~ dose | sex' has several parts ... Write + between",
    ),
    ("GLM('binomial', formula='sex ~ dose | age').fit(df)", sf.DataError, "several parts ... Write +"),
    ("GLM(formula='age | dose ~ sex').fit(df)", sf.DataError, "several parts ... Write +"),
    ("GLM(formula='dose | age').fit(df, y)", sf.DataError, "several parts ... Write +"),
    ("GLM(formula='age ~ (1 | sex)').fit(df)", sf.DataError, "random effects ... Write C(group)"),
    ("GLM(formula='age ~ log(dse)').fit(df)", NO_COLUMN, "names 'dse' in 'log(dse)' ... Did you mean 'dose'?"),
    ("GLM(formula='age ~ C(sx)').fit(df)", NO_COLUMN, "names 'sx' in 'C(sx)' ... Did you mean 'sex'?"),
    ("GLM(formula='age ~ np.log(dse) + sex').fit(df)", NO_COLUMN, "names 'dse' in 'np.log(dse)' ... 'dose'?"),
    (
        "GLM(formula='age ~ centr(dose)').fit(df)",
        sf.DataError,
        "calls centr() ... Did you mean 'center'? ... as np.sqrt()",
    ),
    ("GLM(formula='age ~ sin(dose)').fit(df)", sf.DataError, "calls sin() ... Write np.sin()"),
    ("GLM(formula='age ~ np.logg(dose)').fit(df)", sf.DataError, "calls np.logg() ... Did you mean 'np.log'?"),
    ("GLM(formula='age ~ ns(dose, 3)').fit(df)", sf.DataError, "ns() is not known here. Write cr("),
    ("GLM(formula='age ~ s(dose)').fit(df)", sf.DataError, "smoothness ... Write a spline: cr("),
    ("GLM(formula='age = dose').fit(df)", sf.DataError, "~ between the response and its terms"),
    (
        "GLM(formula='age ~ body mass').fit(df.assign(**{'body mass': 1}))",
        sf.DataError,
        "between backquotes, `body mass`",
    ),
    ("GLM('poisson', formula='sex ~ dose').fit(df)", sf.DataError, "'sex' holds ... expected a real number"),
    ("GLM(formula='age ~ log(dose - 9)').fit(df)", sf.MissingValueError, "60 of 60 rows ... such as log()"),
    (
        "formula.predict(df.assign(dose=df.dose.where(df.index != 3)))",
        sf.MissingValueError,
        "Column 'dose' has a missing value in row 3 ... Leave these rows out, or fill",
    ),
    (
        "formula.score(df.assign(sex=df.sex.where(df.index > 1)))",
        sf.MissingValueError,
        "Column 'sex' has 2 missing values, the first in row 0",
    ),
    ("GLM(formula='age ~ dose').fit(X.to_numpy())", sf.DataError, "names columns; found ... Give a frame"),
    ("formula.predict(df[['age', 'sex']])", NO_COLUMN, "'dose' ... Its columns are: 'age', 'sex'"),
    ("formula.predict(df.rename(columns={'sex': 'gender'}))", NO_COLUMN, "'sex' ... 'gender'"),
    ("formula.predict(df.assign(sex='x'))", NO_STATE, "'sex' holds 'x' (row 0), a level ... 'f', 'm' ... Correct it"),
    ("formula.predict(df.assign(sex=1))", NO_STATE, "'sex' holds 1 (row 0), a level ... 'f', 'm' ... Correct it"),
    ("formula.predict(df.assign(dose='high'))", sf.DataError, "'dose' holds 'high' (row 0) ... had numbers: give"),
    ("formula.predict(df.to_numpy())", sf.DataError, "names columns; found ... Give a frame"),
    # rows
    ("raw.fit(X)", sf.DataError, "no response: give y="),
    ("raw.fit()", NO_ARGUMENT, "GLM.fit needs X ... Give X="),
    ("raw.fit(None, y)", sf.DataError, "NoneType ... Accepted are"),
    ("raw.fit(X, None)", sf.DataError, "no response: give y="),
    ("raw.fit(X, y[:59])", sf.DataError, "59 ... 60"),
    ("raw.fit(X, np.ones((60, 2, 2)))", sf.DataError, "(60, 2, 2)"),
    ("raw.fit(X.iloc[:0], y[:0])", sf.DataError, "0 sample(s) ... Give"),
    ("raw.fit(X, sick)", sf.DataError, "'y' holds 'yes' (str) ... expected a real number"),
    (
        "raw.fit(X, np.where(y > 5, np.nan, y))",
        sf.MissingValueError,
        "response 'y' has a missing value ... (row 0) ... fill",
    ),
    ("raw.fit(X, y + np.inf)", sf.MissingValueError, "response 'y' ... infinite number (row 0)"),
    ("raw.fit(X.assign(age=np.nan), y)", sf.MissingValueError, "'age' has a missing value ... (row 0)"),
    ("raw.fit(X.assign(age=np.inf), y)", sf.MissingValueError, "'age' ... infinite ... (row 0)"),
    ("raw.fit(X.assign(twice=2 * X.age), y)", sf.EstimateError, "'twice' is a combination ... collinear="),
    ("raw.fit(X.assign(one=1.0), y)", sf.EstimateError, "'one'"),
    ("raw.fit('nosuch.csv', y='age')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit(df, y='aeg')", sf.DataError, "y is 'aeg' ... no column ... Did you mean 'age'?"),
    ("raw.fit(X, y, columns=['aeg'])", NO_COLUMN, "no column 'aeg' ... Did you mean 'age'?"),
    ("raw.fit(X, Y=y)", NO_ARGUMENT, "no argument 'Y' ... Did you mean 'y'?"),
    ("raw.fit(data=X, y=y)", NO_ARGUMENT, "no argument 'data' ... are: X, y"),
    ("raw.fit(X, y, weights=y)", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(X, y, freq_weights=y)", NO_ARGUMENT, "no argument 'freq_weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(X, y, sample_weight=[1.0])", sf.DataError, "sample_weight ... 60"),
    ("raw.fit(X, y, sample_weight=-np.ones(60))", sf.DataError, "sample_weight ... -1.0 ... at least 0"),
    ("raw.fit(X, y, sample_weight=np.zeros(60))", sf.DataError, "weights are zero"),
    ("raw.fit(X, y, offset=[1.0])", sf.DataError, "offset ... 60"),
    ("raw.fit(X, y, offset='ofset')", NO_COLUMN, "offset is 'ofset' ... no column ... Give"),
    (
        "GLM('poisson').fit(X, counts, exposure=np.zeros(60))",
        sf.DataError,
        "exposure holds 0.0 (row 0); expected positive",
    ),
    ("GLM('poisson').fit(X, counts, exposure=[1.0])", sf.DataError, "exposure ... 60"),
    ("GLM('poisson').fit(X, -counts - 1)", sf.DataError, "-2.0 (row 0) ... poisson family takes counts"),
    ("GLM('negative_binomial').fit(X, -counts - 1)", sf.DataError, "-2.0 (row 0) ... takes counts"),
    ("GLM('gamma').fit(X, -np.abs(y))", sf.DataError, "gamma family takes positive numbers"),
    ("GLM('binomial').fit(X, counts)", sf.DataError, "labels ... multinomial"),
    ("GLM('binomial').fit(X, ['yes'] * 60)", sf.DataError, "1 label"),
    ("GLM('binomial').fit(X, counts, trials=np.zeros(60))", sf.DataError, "trials"),
    (
        "GLM('gaussian').fit(X, y, trials=np.ones(60))",
        sf.OptionError,
        "trials= belongs to the binomial ... Leave it out",
    ),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "predict(X)",
            "coefficients_",
            "summary()",
            "score(X, y)",
            "intervals()",
            "residuals(X, y)",
            "deviance_",
            "report_",
            "sample(X)",
        )
    ),
    # questions
    ("glm.predict(df[['age', 'dose']])", NO_COLUMN, "no column 'sex'"),
    ("glm.predict(df.rename(columns={'dose': 'dsoe'}))", NO_COLUMN, "no column 'dose' ... Did you mean 'dsoe'?"),
    ("glm.predict(df.assign(sex='x'))", NO_STATE, "'sex' holds 'x' ... 'f', 'm'"),
    ("glm.predict(df.assign(age=np.nan))", sf.MissingValueError, "'age' has a missing value ... (row 0)"),
    ("glm.predict(np.ones((3, 2)))", sf.DataError, "X has 2 features ... expecting 3 features ... Give"),
    ("glm.predict(df, type='link')", NO_ARGUMENT, "no argument 'type' ... Did you mean 'kind'?"),
    ("glm.predict(df, kind='links')", sf.OptionError, "kind is 'links' ... expected ... 'response'"),
    ("glm.predict(df, interval=95)", sf.OptionError, "level is 95 ... between 0 and 1"),
    ("glm.predict_proba(df)", NotOfferedError, "gaussian family has no classes ... Use predict"),
    ("glm.intervals(95)", sf.OptionError, "level is 95 ... expected"),
    ("glm.intervals(method='bootstrap')", sf.OptionError, "method is 'bootstrap' ... expected ... 'wald'"),
    ("glm.intervals(confidence=0.9)", NO_ARGUMENT, "no argument 'confidence' ... Did you mean 'level'?"),
    ("glm.residuals(df, y, kind='raw')", sf.OptionError, "kind is 'raw' ... expected ... 'deviance'"),
    ("glm.residuals(df, y, offest=y)", NO_ARGUMENT, "GLM.residuals has no argument 'offest'"),
    ("glm.score(df, y[:5])", sf.DataError, "5 ... 60"),
    ("glm.anova(7)", sf.OptionError, "other is 7; expected a fitted GLM"),
    ("glm.summary(alpha=0.1)", NO_ARGUMENT, "no argument 'alpha'. Did you mean 'level'? ... level, and the rows"),
    ("glm.summary(2)", sf.OptionError, "level is 2 ... expected"),
    ("glm.coef_", sf.MissingAttributeError, "'coef_' ... Did you mean 'coefficients_'?"),
    ("glm.params", sf.MissingAttributeError, "'params' ... Did you mean 'parameters_'?"),
    ("glm.llf", sf.MissingAttributeError, "'llf' ... Did you mean 'log_likelihood_'?"),
    ("glm.bse", sf.MissingAttributeError, "'bse' ... Did you mean 'standard_errors_'?"),
    ("glm.conf_int()", sf.MissingAttributeError, "'conf_int' ... Did you mean 'intervals'?"),
    ("glm.classes_", sf.NotFittedError, "no classes ... Fit labels"),
    ("glm.unlearn(X)", sf.OptionError, "no finite statistics ... fit it again"),
    ("glm.write('glm.pickle')", sf.OptionError, "'glm.pickle' has no known ending ... .json"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())


@pytest.mark.parametrize("formula", ["age ~ dose +", "age ~ (dose", "age ~ ~ dose", "age ~ 'f'", "age ~ {dose +}"])
def test_a_formula_that_cannot_be_read_is_shown_in_one_line_without_escapes(formula: str) -> None:
    with pytest.raises(sf.DataError) as caught:
        sf.GLM(formula=formula).fit(names()["df"])
    message = str(caught.value)
    assert message.isprintable(), repr(message)
    assert "⧛" not in message
    assert "unknown" not in message


def test_a_family_of_another_library_is_named_without_its_address() -> None:
    families = pytest.importorskip("statsmodels.api").families
    message = r"family is a statsmodels Poisson; expected a distribution .* a name. Did you mean .poisson."
    with pytest.raises(sf.OptionError, match=message):
        sf.GLM(families.Poisson())
