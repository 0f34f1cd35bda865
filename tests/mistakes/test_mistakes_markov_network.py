"""The hundred most likely mistakes with a Markov network."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT, NO_COLUMN, NO_STATE = sf.CallError, sf.MissingColumnError, sf.UnknownStateError


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    a, b = rng.choice(["no", "yes"], 80), rng.choice(["lo", "mid", "hi"], 80)
    c = np.where(rng.random(80) < 0.7, a, "no")
    df = pd.DataFrame({"a": a, "b": b, "c": c, "t": rng.normal(0, 1, 80)})
    raw = sf.MarkovNetwork([("a", "b"), ("b", "c")])
    counts = df.groupby(["a", "b", "c"]).size().rename("n").reset_index()
    bn = sf.BayesianNetwork([("a", "b")]).fit(df)
    long = pd.DataFrame({"smokes": [1, 0] * 20, "cancer": [0, 1] * 20})
    return {
        "df": df,
        "raw": raw,
        "net": raw.clone().fit(df),
        "MN": sf.MarkovNetwork,
        "counts": counts,
        "bn": bn,
        "long": long,
    }


E1 = "[('a', 'b'), ('b', 'c')]"
TABLE: list[Row] = [
    *(
        (
            f"MN({E1}, {wrong}=1)",
            NO_ARGUMENT,
            f"MarkovNetwork has no option '{wrong}' ... Did you mean '{right}'? ... options are: structure",
        )
        for wrong, right in [
            ("priors", "prior"),
            ("alpha", "prior"),
            ("C", "prior"),
            ("l2", "prior"),
            ("solvers", "solver"),
            ("state_names", "states"),
            ("latents", "hidden"),
            ("maxit", "max_iter"),
            ("eps", "tolerance"),
            ("seed", "random_state"),
            ("verbose", "progress"),
            ("n_inits", "n_init"),
        ]
    ),
    ("MN()", NO_ARGUMENT, "MarkovNetwork needs structure ... Give structure="),
    ("MN(cliques=[('a', 'b')])", NO_ARGUMENT, "no option 'cliques' ... Did you mean 'structure'?"),
    ("MN('a', 'b')", NO_ARGUMENT, "at most 1 value by position (structure); found 2"),
    (f"MN({E1}).set_params(solvr='ipf')", sf.OptionError, "no option 'solvr' ... Did you mean 'solver'?"),
    ("sf.MarkovNet", sf.MissingAttributeError, "Did you mean 'MarkovNetwork'?"),
    ("sf.MarkovRandomField", sf.MissingAttributeError, "Did you mean 'MarkovNetwork'?"),
    # values of options
    *(
        (f"MN({E1}, {option}={value!r}).fit(df)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("solver", "ips", "Did you mean 'ipf'?"),
            ("solver", "l-bfgs", "Did you mean 'lbfgs'?"),
            ("solver", 3, "'auto'"),
            ("on_inconsistent", "ignore", "'raise'"),
            ("missing", "drop", "'em'"),
            ("n_init", 0, "at least 1"),
            ("max_iter", -1, "at least 0"),
            ("max_iter", 2.5, "whole number"),
            ("tolerance", -1.0, "at least 0"),
            ("tolerance", "small", "number"),
            ("max_seconds", 0, "positive"),
            ("callback", 3, "function"),
            ("random_state", "x", "whole number"),
            ("check_existence", "no", "True or False"),
            ("memory_limit", "big", "bytes"),
        ]
    ),
    (f"MN({E1}, prior=-1.0).fit(df)", sf.OptionError, "prior is -1.0; weights take Normal"),
    (f"MN({E1}, prior='ridge').fit(df)", sf.OptionError, "prior is 'ridge'; weights take Normal"),
    (f"MN({E1}, prior=('l2', 'x')).fit(df)", sf.OptionError, "prior is ('l2', 'x'); weights take Normal"),
    (f"MN({E1}, states=['no', 'yes']).fit(df)", sf.OptionError, "states is ['no', 'yes'] ... expected a dict"),
    (f"MN({E1}, states={{'a': 'yes'}}).fit(df)", sf.OptionError, "states['a'] is 'yes' ... expected a list"),
    (f"MN({E1}, states={{'a': ['no', 'maybe']}}).fit(df)", NO_STATE, "'a' holds 'yes' ... 'no', 'maybe' ... states="),
    (f"MN({E1}, hidden={{'h': 2}}).fit(df)", sf.OptionError, "hidden= names 'h' ... 'a', 'b', 'c'"),
    (f"MN({E1}, hidden={{'a': 0}}).fit(df)", sf.OptionError, "hidden ... 'a' ... expected"),
    (f"MN({E1}, start=[1.0, 2.0]).fit(df)", sf.OptionError, "start ... (2,) ... expected"),
    (f"MN({E1}, solver='sml', sampling='gibbs').fit(df)", sf.OptionError, "sampling is 'gibbs' ... expected"),
    (f"MN({E1}, solver='sml', batch_size=0).fit(df)", sf.OptionError, "batch_size is 0 ... at least 1"),
    (f"MN({E1}, solver='sml', step_size=-1).fit(df)", sf.OptionError, "step_size is -1 ... expected"),
    # the structure
    ("MN([('a', 'a')])", sf.OptionError, "'a', 'a' names a variable twice ... Name it once"),
    ("MN([()])", sf.OptionError, "no variables ... Leave it out"),
    ("MN([])", sf.OptionError, "no variables ... Give cliques"),
    ("MN(None)", sf.OptionError, "None ... expected a list of cliques"),
    ("MN(7)", sf.OptionError, "7 ... expected a list of cliques"),
    ("MN('a b')", sf.OptionError, "'a b' ... expected a list of cliques"),
    ("MN('a -> b')", sf.OptionError, "arrow a -> b ... lines, 'a -- b'"),
    ("MN(df)", sf.OptionError, "DataFrame of shape (80, 4) ... expected ... go to fit"),
    ("MN(np.ones((3, 3)))", sf.OptionError, "edge (0, 0) ... expected two different variables ... diagonal"),
    ("MN([['a', ['b']]])", sf.OptionError, "['a', ['b']] ... cannot be a variable"),
    ("MN.ising([('a',)])", sf.OptionError, "('a',) ... expected two"),
    ("MN.ising([('a', 'b')], coding='zero')", sf.OptionError, "coding is 'zero' ... expected ... 'spin'"),
    ("MN.ising([('a', 'b')], codings='spin')", NO_ARGUMENT, "no ... 'codings'"),
    ("MN.potts([('a', 'b')])", NO_ARGUMENT, "potts needs states ... Give states="),
    ("MN.grid(0, 3)", sf.OptionError, "rows is 0 ... of at least 1"),
    ("MN.from_bayesian_network(df)", sf.OptionError, "DataFrame ... BayesianNetwork"),
    ("MN.from_potentials([1, 2])", sf.OptionError, "[1, 2] ... expected a dict"),
    ("sf.Feature(('a', 'b'))", NO_ARGUMENT, "Feature needs values ... Give values="),
    (
        "sf.Feature(('a', 'b'), lambda a: a, label='x')",
        NO_ARGUMENT,
        "Feature has no option 'label' ... are: variables, values, name",
    ),
    ("MN([sf.Feature(('a', 'b'), lambda a: 1.0)]).fit(df)", sf.OptionError, "f(a, b) ... 2"),
    ("MN([sf.Feature(('a', 'b'), {('no', 'low'): 1.0})]).fit(df)", NO_STATE, "'low' ... Did you mean 'lo'?"),
    ("MN([sf.Feature(('a', 'b'), np.ones((2, 2)))]).fit(df)", sf.OptionError, "(2, 2) ... (2, 3)"),
    ("MN([sf.Feature('a', lambda a: 'x')]).fit(df)", sf.OptionError, "'x' ... number"),
    # data
    ("raw.fit(df.rename(columns={'a': 'aa'}))", NO_COLUMN, "no column 'a' ... Did you mean 'aa'?"),
    ("raw.fit(df[['a']])", NO_COLUMN, "'b', 'c' ... Its columns are: 'a'"),
    ("raw.fit(df.iloc[:0])", sf.DataError, "no rows ... Give rows"),
    ("raw.fit()", sf.DataError, "rows ... table="),
    ("raw.fit(df, table=df)", sf.DataError, "rows ... table= ... one of them alone"),
    ("raw.fit(None)", sf.DataError, "rows ... table="),
    ("raw.fit(7)", sf.DataError, "int ... Accepted are"),
    ("raw.fit('nosuch.csv')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit(df.to_numpy())", NO_COLUMN, "0, 1, 2, 3 ... by columns="),
    ("raw.fit(X=df)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'data'?"),
    ("raw.fit(df, weights=np.ones(80))", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(df, sample_weight=[1.0])", sf.DataError, "sample_weight has 1 values for 80 rows ... one weight a row"),
    ("raw.fit(df, sample_weight=-np.ones(80))", sf.DataError, "sample_weight holds -1.0 (row 0) ... at least 0"),
    ("raw.fit(counts, sample_weight='N')", NO_COLUMN, "no column 'N' ... Did you mean 'n'?"),
    ("raw.fit(df, sample_weight=np.zeros(80))", sf.EstimateError, "weight is 0 ... above 0"),
    ("MN([('a', 't')]).fit(df)", sf.OptionError, "'t' ... numbers ... needs states. Declare"),
    (
        "MN(['smokes', 'cancer']).fit(np.array([[10, 20], [30, 5]]), columns=['smokes', 'cancer'])",
        sf.DataError,
        "2 x 2 ... table= ... rows as fit(",
    ),
    (
        "MN([('smokes', 'cancer')]).fit(table=[[10, 20], [30]])",
        sf.OptionError,
        "table is [[10, 20], [30]] ... rows of one length",
    ),
    ("MN([('smokes', 'cancer')]).fit(table=np.array([[10, -20], [30, 5]]))", sf.DataError, "-20 ... at least 0"),
    ("MN([('smokes', 'cancer')]).fit(table=np.ones((2, 2, 2)))", sf.DataError, "3 axes ... one name for each axis"),
    ("MN([('smokes', 'cancer')]).fit(table=np.array([[1, np.nan], [3, 5]]))", sf.DataError, "nan ... expected counts"),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "query('a')",
            "predict(df, 'a')",
            "weights_",
            "report_",
            "sample(2)",
            "map_query()",
            "unlearn(df)",
            "score(df)",
            "deviance(df)",
            "summary()",
        )
    ),
    # questions
    *(
        (f"net.{call}", NO_COLUMN, "no variable 'aa' ... Did you mean 'a'? ... 'a', 'b', 'c'")
        for call in (
            "query('aa')",
            "query(['aa', 'b'])",
            "query('b', {'aa': 'yes'})",
            "states('aa')",
            "predict(df, 'aa')",
            "predict_proba(df, 'aa')",
            "marginals({'aa': 'yes'})",
            "map_query({'aa': 'no'})",
            "log_probability({'aa': 'no'})",
            "sample(2, {'aa': 'no'})",
            "marginal('aa')",
        )
    ),
    *(
        (f"net.{call}", NO_STATE, "evidence gives 'a' the state 'yess' ... Did you mean 'yes'? ... 'no', 'yes'")
        for call in (
            "query('b', {'a': 'yess'})",
            "marginals({'a': 'yess'})",
            "map_query({'a': 'yess'})",
            "log_probability({'a': 'yess'})",
            "sample(2, {'a': 'yess'})",
        )
    ),
    ("net.query('b', evidence={'a': 'yes'})", NO_ARGUMENT, "no argument 'evidence' ... Did you mean 'given'?"),
    ("net.query('b', ['a'])", sf.OptionError, "given is a list ... expected a dict"),
    ("net.query()", NO_ARGUMENT, "needs variables ... Give variables="),
    ("net.query(['a', 'a'])", sf.OptionError, "asked for twice: 'a', 'a' ... once"),
    ("net.query('a', engine='exakt')", sf.OptionError, "engine is 'exakt' ... Did you mean 'exact'?"),
    ("net.predict(df)", NO_ARGUMENT, "needs target ... Give target="),
    ("net.predict(df.replace('yes', 'maybe'), 'b')", NO_STATE, "'maybe' ... 'no', 'yes'"),
    ("net.sample(-2)", sf.OptionError, "n is -2 ... of at least 0"),
    ("net.sample(n_samples=5)", NO_ARGUMENT, "no argument 'n_samples' ... Did you mean 'n'?"),
    ("net.potential(('a', 'c'))", sf.OptionError, "'a', 'c'; expected one of ('a', 'b')"),
    ("net.with_weights([1.0])", sf.OptionError, "(1,) ... expected"),
    ("net.log_partition([1.0, 'x'])", sf.OptionError, "expected"),
    ("net.get_partition_function()", sf.MissingAttributeError, "Did you mean 'log_partition_'?"),
    ("net.weigths_", sf.MissingAttributeError, "'weigths_' ... Did you mean 'weights_'?"),
    ("net.coef_", sf.MissingAttributeError, "'coef_' ... Did you mean 'weights_'?"),
    ("net.couplings_", sf.OptionError, "no coupling ... ising"),
    ("net.write('x.bif')", sf.OptionError, "a MarkovNetwork goes to ... .json ... another ending"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
