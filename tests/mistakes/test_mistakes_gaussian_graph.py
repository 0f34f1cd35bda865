"""The hundred most likely mistakes with a Gaussian graph."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT, NO_COLUMN = sf.CallError, sf.MissingColumnError


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50, 3)) @ np.array([[1.0, 0.5, 0], [0, 1, 0.5], [0, 0, 1]])
    df = pd.DataFrame(x, columns=["height", "weight", "age"]).assign(sex=rng.choice(["f", "m"], 50))
    raw = sf.GaussianGraph([("height", "weight"), ("weight", "age")])
    S = np.cov(x.T)
    return {"df": df, "raw": raw, "graph": raw.clone().fit(df), "GG": sf.GaussianGraph, "S": S, "C": list(df)[:3]}


E1 = "[('height', 'weight'), ('weight', 'age')]"
TABLE: list[Row] = [
    *(
        (
            f"GG({E1}, {wrong}=1)",
            NO_ARGUMENT,
            f"GaussianGraph has no option '{wrong}' ... Did you mean '{right}'? ... options are: structure",
        )
        for wrong, right in [
            ("alpha", "prior"),
            ("priors", "prior"),
            ("l2", "prior"),
            ("penalty", "prior"),
            ("maxiter", "max_iter"),
            ("n_iter", "max_iter"),
            ("tol", "tolerance"),
            ("means", "mean"),
            ("mu", "mean"),
            ("verbose", "progress"),
            ("solvers", "solver"),
            ("node", "nodes"),
        ]
    ),
    ("GG()", NO_ARGUMENT, "GaussianGraph needs structure ... Give structure="),
    ("GG(edges=[('a', 'b')])", NO_ARGUMENT, "no option 'edges' ... Did you mean 'structure'?"),
    (f"GG({E1}, None, 'free')", NO_ARGUMENT, "at most 2 values by position (structure, nodes); found 3 ... mean="),
    (f"GG({E1}).set_params(tol=1)", sf.OptionError, "no option 'tol' ... Did you mean 'tolerance'?"),
    ("sf.GaussianGrap", sf.MissingAttributeError, "Did you mean 'GaussianGraph'?"),
    ("sf.GraphicalLasso", sf.MissingAttributeError, "Did you mean 'GaussianGraph'?"),
    # values of options
    *(
        (f"GG({E1}, {option}={value!r}).fit(df)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("solver", "ipff", "Did you mean 'ipf'?"),
            ("solver", "glasso", "'auto'"),
            ("solver", 3, "'auto'"),
            ("mean", "fixed", "'free'"),
            ("max_iter", -1, "at least 0"),
            ("max_iter", "many", "whole number"),
            ("tolerance", -1.0, "at least 0"),
            ("tolerance", None, "number"),
            ("max_seconds", -3, "positive"),
            ("callback", "f", "function"),
            ("checkpoint", 3, "path"),
        ]
    ),
    (f"GG({E1}, mean=[0.0]).fit(df)", sf.OptionError, "mean ... 1 ... 3"),
    (f"GG({E1}, mean={{'hieght': 1.0}}).fit(df)", sf.OptionError, "'hieght' ... Did you mean 'height'?"),
    (f"GG({E1}, prior=-1.0).fit(df)", sf.OptionError, "prior is -1.0; a Gaussian graph takes Wishart"),
    (f"GG({E1}, prior='ridge').fit(df)", sf.OptionError, "prior is 'ridge'; a Gaussian graph takes Wishart"),
    (f"GG({E1}, prior=sf.Beta(1, 1)).fit(df)", sf.OptionError, "prior is Beta ... takes Wishart"),
    (f"GG({E1}, start=np.eye(2)).fit(df)", sf.OptionError, "start ... (2, 2) ... (3, 3)"),
    (f"GG({E1}, start=-np.eye(3), solver='ipf').fit(df)", sf.OptionError, "start ... positive"),
    (f"GG({E1}, checkpoint='nosuch/folder/x').fit(df)", sf.OptionError, "nosuch ... folder"),
    # the structure
    ("GG([('a', 'a')])", sf.OptionError, "'a' ... twice"),
    ("GG([('a', 'b'), ('b', 'a'), ()])", sf.OptionError, "no variables ... Leave it out"),
    ("GG([])", sf.OptionError, "no nodes ... Give edges"),
    ("GG(None)", sf.OptionError, "None ... expected"),
    ("GG(3)", sf.OptionError, "3 ... expected"),
    ("GG('height weight')", sf.OptionError, "'height weight' ... expected"),
    ("GG('height -> weight')", sf.OptionError, "arrow height -> weight ... lines"),
    ("GG(df)", sf.OptionError, "(50, 4) ... square matrix"),
    ("GG(np.ones((2, 3)))", sf.OptionError, "(2, 3) ... square matrix"),
    ("GG(np.array([[1, 1, 1], [0, 1, 0], [0, 0, 1]]))", sf.OptionError, "symmetric"),
    ("GG(E1, nodes=['height', 'height'])", sf.OptionError, "'height', 'height'; expected each name once"),
    ("GG(E1, nodes='height')", sf.OptionError, "nodes is 'height' ... list"),
    ("GG([sf.Feature(('a', 'b'), lambda a, b: 1.0)])", sf.OptionError, "Feature ... expected edges"),
    # data
    ("raw.fit(df.rename(columns={'age': 'agee'}))", NO_COLUMN, "no column 'age' ... Did you mean 'agee'?"),
    ("raw.fit(df[['height']])", NO_COLUMN, "'weight', 'age' ... Its columns are: 'height'"),
    ("raw.fit(df.iloc[:0])", sf.DataError, "0 sample(s) ... Give"),
    ("raw.fit(df.iloc[:1])", sf.EstimateError, "'height', 'weight', 'age' are constant ... give a prior"),
    ("raw.fit(df.assign(age=7.0))", sf.EstimateError, "'age' ... constant"),
    ("raw.fit(df.assign(age=df.weight))", sf.EstimateError, "'weight' ... 'age'"),
    ("raw.fit(df.assign(age=np.nan))", sf.MissingValueError, "'age' ... row 0 ... Fill"),
    ("raw.fit(df.assign(age=np.inf))", sf.DataError, "'age' holds inf ... finite"),
    ("raw.fit(df.assign(age='old'))", sf.DataError, "'age' holds 'old' ... number"),
    ("GG([('height', 'sex')]).fit(df)", sf.DataError, "'sex' holds ... number"),
    ("raw.fit()", sf.OptionError, "covariance="),
    ("raw.fit(None)", sf.OptionError, "covariance="),
    ("raw.fit(7)", sf.DataError, "int ... Accepted are"),
    ("raw.fit('nosuch.csv')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit(df[['height', 'weight', 'age']].to_numpy())", NO_COLUMN, "0, 1, 2 ... by columns="),
    ("raw.fit(df[['height', 'weight', 'age']].to_numpy(), columns=['height'])", sf.DataError, "1 names ... 3 columns"),
    ("raw.fit(X=df)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'data'?"),
    ("raw.fit(df, weights=np.ones(50))", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(cov=S, n=50)", NO_ARGUMENT, "no argument 'cov' ... Did you mean 'covariance'?"),
    ("raw.fit(S=S, n=50)", NO_ARGUMENT, "no argument 'S' ... Did you mean 'covariance'?"),
    ("raw.fit(covariance=S, n_obs=50)", NO_ARGUMENT, "no argument 'n_obs' ... Did you mean 'n'?"),
    ("raw.fit(df, sample_weight=[1.0])", sf.DataError, "sample_weight has 1 values for 50 rows ... one weight a row"),
    ("raw.fit(df, sample_weight=-np.ones(50))", sf.DataError, "sample_weight holds -1.0 (row 0) ... at least 0"),
    ("raw.fit(df, sample_weight='wieght')", NO_COLUMN, "no column 'wieght' ... Did you mean 'weight'?"),
    ("raw.fit(df, sample_weight=np.zeros(50))", sf.DataError, "weights are zero ... Give"),
    # a covariance
    ("raw.fit(covariance=S)", sf.OptionError, "n is None ... number of rows"),
    ("raw.fit(covariance=S, n=-5)", sf.OptionError, "n is -5 ... expected"),
    ("raw.fit(covariance=S, n='many')", sf.OptionError, "n is 'many' ... expected"),
    ("raw.fit(df, covariance=S, n=50)", sf.OptionError, "covariance= ... not both"),
    ("raw.fit(covariance=S, n=50)", sf.DataError, "without names ... columns="),
    ("raw.fit(covariance=S[:2], n=50)", sf.DataError, "(2, 3) ... square"),
    ("raw.fit(covariance=-S, n=50, columns=C)", sf.DataError, "negative variance ... 'height' ... check it"),
    ("raw.fit(covariance=S + np.triu(S, 1), n=50, columns=C)", sf.DataError, "symmetric"),
    ("raw.fit(covariance=S * np.nan, n=50, columns=C)", sf.DataError, "covariance ... finite"),
    ("raw.fit(covariance='S', n=50)", sf.DataError, "covariance has shape () ... square matrix"),
    (
        "raw.fit(covariance=pd.DataFrame(S, columns=['height', 'weight', 'aeg']), n=50)",
        sf.DataError,
        "'aeg' ... 'age' are missing ... Give",
    ),
    ("raw.fit(covariance=S, n=50, sample_mean=[1.0])", sf.OptionError, "sample_mean has shape (1,) ... expected 3"),
    ("raw.fit(df, n=50)", sf.OptionError, "n= ... covariance="),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "query('age')",
            "predict(df, 'age')",
            "precision_",
            "report_",
            "sample(2)",
            "partial_correlations_",
            "unlearn(df)",
            "score(df)",
            "to_frame()",
            "joint_",
        )
    ),
    # questions
    *(
        (f"graph.{call}", NO_COLUMN, "no variable 'agee' ... Did you mean 'age'? ... 'height', 'weight', 'age'")
        for call in (
            "query('agee')",
            "query(['agee', 'weight'])",
            "query('weight', {'agee': 1.0})",
            "predict(df, 'agee')",
            "sample(2, {'agee': 1.0})",
            "marginal(['agee'])",
        )
    ),
    ("graph.query('age', {'weight': 'heavy'})", sf.DataError, "'weight' the value 'heavy' ... finite number"),
    ("graph.query('age', {'weight': np.nan})", sf.DataError, "'weight' the value nan ... finite number"),
    ("graph.query('age', {'weight': [1.0, 2.0]})", sf.OptionError, "'weight' ... Give one number"),
    ("graph.query('age', evidence={'weight': 1.0})", NO_ARGUMENT, "no argument 'evidence' ... Did you mean 'given'?"),
    ("graph.query('age', ['weight'])", sf.OptionError, "given is a list ... expected a dict"),
    ("graph.query()", NO_ARGUMENT, "needs variables ... Give variables="),
    ("graph.query(['age', 'age'])", sf.OptionError, "asked for twice: 'age', 'age' ... once"),
    ("graph.query([])", sf.OptionError, "No variable ... Name"),
    (
        "raw.fit(covariance=S[:2, :2], n=50, columns=['height', 'weight'])",
        sf.DataError,
        "2 columns ... 'age' are missing",
    ),
    ("graph.query('age', {'weight': {'x': 1.0}})", sf.OptionError, "'weight' holds numbers ... Give one number"),
    ("graph.predict(df)", NO_ARGUMENT, "needs target ... Give target="),
    ("graph.predict(df[['sex']], 'age')", NO_COLUMN, "'sex' ... 'height', 'weight'"),
    ("graph.predict(df.assign(weight='x'), 'age')", sf.DataError, "'weight' holds 'x' ... number"),
    ("graph.sample(-1)", sf.OptionError, "n is -1 ... at least"),
    ("graph.sample(2.5)", sf.OptionError, "n is 2.5 ... whole number"),
    ("graph.sample(size=2)", NO_ARGUMENT, "no argument 'size' ... Did you mean 'n'?"),
    ("graph.sample(2, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("graph.to_frame('partial')", sf.OptionError, "what is 'partial' ... expected ... 'precision'"),
    ("graph.concentration", sf.MissingAttributeError, "'concentration' ... Did you mean 'precision_'?"),
    ("graph.covarance_", sf.MissingAttributeError, "'covarance_' ... Did you mean 'covariance_'?"),
    ("graph.precision", sf.MissingAttributeError, "'precision' ... Did you mean 'precision_'?"),
    ("graph.write('x.csv')", sf.OptionError, "'x.csv' has no known ending ... .json"),
    ("graph.partial_fit(df, keep='half')", sf.OptionError, "keep is 'half' ... number"),
    ("graph.score(df.iloc[:0])", sf.DataError, "0 sample(s) ... Give"),
    ("graph.score(df[['height']])", NO_COLUMN, "'weight', 'age' ... 'height'"),
]
TABLE = [(call.replace("E1", E1), error, pieces) for call, error, pieces in TABLE]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
