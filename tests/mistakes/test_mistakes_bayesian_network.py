"""The hundred most likely mistakes with a Bayesian network."""

import math
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
    rain, sprinkler = rng.choice(["no", "yes"], 60), rng.choice(["off", "on"], 60)
    wet = np.where((rain == "yes") | (sprinkler == "on"), "yes", "no")
    df = pd.DataFrame({"rain": rain, "sprinkler": sprinkler, "wet": wet, "t": rng.normal(20, 3, 60)})
    raw = sf.BayesianNetwork([("rain", "wet"), ("sprinkler", "wet")], prior=1.0)
    mixed = sf.BayesianNetwork([("rain", "t")]).fit(df[["rain", "t"]])
    bare = sf.BayesianNetwork([("rain", "wet")])
    return {"df": df, "raw": raw, "net": raw.clone().fit(df), "mixed": mixed, "bare": bare, "BN": sf.BayesianNetwork}


E1 = "[('rain', 'wet')]"
TABLE: list[Row] = [
    (
        f"BN({E1}, fixed={{'wet': [[0.9, 0.2], [0.1, 0.8]]}}, states={{'rain': ['no', 'yes'], 'wet': ['no', 'yes']}})"
        ".fit(df)",
        sf.OptionError,
        "'rain': 'no' ... adds up to 1.1 ... Its columns do: give its transpose, parents first",
    ),
    (
        f"BN({E1}, fixed={{'wet': [[0.9, 0.2, 1], [0.1, 0.8, 0]]}}, states={{'rain': ['no', 'yes', 'x'], 'wet': "
        "['no', 'yes']}).fit(df)",
        sf.OptionError,
        "shape (2, 3); expected (3, 2). Give its transpose: parents first",
    ),
    # options of the constructor: misspelt, or named as elsewhere
    *(
        (
            f"BN({E1}, {wrong}=1)",
            NO_ARGUMENT,
            f"BayesianNetwork has no option '{wrong}' ... Did you mean '{right}'? ... options are: structure",
        )
        for wrong, right in [
            ("priors", "prior"),
            ("alpha", "prior"),
            ("pseudo_counts", "prior"),
            ("state_names", "states"),
            ("latents", "hidden"),
            ("n_jobs", "threads"),
            ("seed", "random_state"),
            ("max_iterations", "max_iter"),
            ("tol", "tolerance"),
            ("verbose", "progress"),
            ("iss", "equivalent_sample_size"),
            ("n_inits", "n_init"),
        ]
    ),
    ("BN(edges=[('a', 'b')])", NO_ARGUMENT, "no option 'edges' ... Did you mean 'structure'?"),
    ("BN()", NO_ARGUMENT, "BayesianNetwork needs structure ... Give structure="),
    (f"BN({E1}, 1.0)", NO_ARGUMENT, "takes at most 1 value by position (structure); found 2 ... prior="),
    (f"BN({E1}).set_params(priors=1)", sf.OptionError, "has no option 'priors' ... Did you mean 'prior'?"),
    ("sf.BayesNetwork", sf.MissingAttributeError, "no 'BayesNetwork' ... Did you mean 'BayesianNetwork'?"),
    ("sf.DiscreteBayesianNetwork", sf.MissingAttributeError, "Did you mean 'BayesianNetwork'?"),
    # values of options
    (f"BN({E1}, prior='bde').fit(df)", sf.OptionError, "prior is 'bde' ... 'bdeu', 'k2', 'jeffreys'"),
    (f"BN({E1}, prior=-1).fit(df)", sf.OptionError, "prior of the network holds -1.0 ... above 0"),
    (f"BN({E1}, prior=0).fit(df)", sf.OptionError, "prior of the network holds 0.0 ... above 0"),
    (f"BN({E1}, prior=math.nan).fit(df)", sf.OptionError, "prior of the network holds nan ... above 0"),
    (f"BN({E1}, prior={{'wte': 1}}).fit(df)", sf.OptionError, "'wte' ... Did you mean 'wet'?"),
    (f"BN({E1}, prior=[1, 1]).fit(df)", sf.OptionError, "prior is [1, 1] ... expected"),
    (
        f"BN({E1}, prior='bdeu', equivalent_sample_size=-2).fit(df)",
        sf.OptionError,
        "equivalent_sample_size is -2 ... expected",
    ),
    (f"BN({E1}, prior=1.0, estimate='bayes').fit(df)", sf.OptionError, "estimate is 'bayes' ... expected ... 'map'"),
    (f"BN({E1}, unseen='zero').fit(df)", sf.OptionError, "unseen is 'zero' ... expected ... 'uniform'"),
    (f"BN({E1}, missing='drop').fit(df)", sf.OptionError, "missing is 'drop' ... expected ... 'em'"),
    (
        f"BN({E1}, n_init=0).fit(df.replace('yes', None))",
        sf.OptionError,
        "n_init is 0 ... expected a whole number of at least 1",
    ),
    (f"BN({E1}, n_init=2.5).fit(df.replace('yes', None))", sf.OptionError, "n_init is 2.5 ... expected a whole number"),
    (
        f"BN({E1}, max_iter='many').fit(df.mask(df == 'yes'))",
        sf.OptionError,
        "max_iter is 'many' ... expected a whole number",
    ),
    (f"BN({E1}, tolerance=-1).fit(df.mask(df == 'yes'))", sf.OptionError, "tolerance is -1 ... expected"),
    (f"BN({E1}, states=['no', 'yes']).fit(df)", sf.OptionError, "states is ['no', 'yes'] ... expected a dict"),
    (f"BN({E1}, states={{'wett': ['no', 'yes']}}).fit(df)", NO_COLUMN, "'wett' ... Did you mean 'wet'?"),
    (
        f"BN({E1}, states={{'wet': 'yes'}}).fit(df)",
        sf.OptionError,
        "states['wet'] is 'yes' ... expected a list of states",
    ),
    (
        f"BN({E1}, states={{'wet': ['no', 'no']}}).fit(df)",
        sf.OptionError,
        "'wet' declares a state twice ... must differ",
    ),
    (
        f"BN({E1}, states={{'wet': ['no', None]}}).fit(df)",
        sf.OptionError,
        "'wet' contain a missing value ... Leave it out",
    ),
    (f"BN({E1}, states={{'wet': ['no', 'damp']}}).fit(df)", NO_STATE, "'wet' holds 'yes' ... 'no', 'damp' ... states="),
    (f"BN({E1}, nodes={{'wet': 'logistic'}}).fit(df)", sf.OptionError, "'logistic' ... expected ... 'glm'"),
    (f"BN({E1}, nodes={{'wett': 'glm'}}).fit(df)", sf.OptionError, "'wett' ... Did you mean 'wet'?"),
    (f"BN({E1}, hidden={{'h': 2}}).fit(df)", sf.OptionError, "'h' ... 'rain', 'wet'"),
    (f"BN({E1}, hidden={{'rain': 1.5}}).fit(df)", sf.OptionError, "hidden ... 1.5 ... expected"),
    (f"BN({E1}, fixed={{'wett': [0.5, 0.5]}}).fit(df)", sf.OptionError, "'wett' ... Did you mean 'wet'?"),
    (
        f"BN({E1}, fixed={{'rain': [0.5, 0.6]}}, states={{'rain': ['no', 'yes']}}).fit(df)",
        sf.OptionError,
        "'rain' ... 1.1 ... expected",
    ),
    (f"BN({E1}, threads=0).fit(df)", sf.OptionError, "threads is 0 ... expected a whole number of at least 1"),
    (f"BN({E1}, memory_limit='lots').fit(df.mask(df == 'yes'))", sf.OptionError, "memory_limit is 'lots' ... 2GB"),
    (
        f"BN({E1}, random_state='abc').fit(df.mask(df == 'yes'))",
        sf.OptionError,
        "random_state is 'abc' ... expected a whole number",
    ),
    (f"BN({E1}, acceleration='fast').fit(df.mask(df == 'yes'))", sf.OptionError, "acceleration is 'fast' ... expected"),
    # the graph
    ("BN([('a', 'b'), ('b', 'c'), ('c', 'a')])", sf.OptionError, "cycle: 'a' -> 'b' -> 'c' -> 'a' ... Remove or turn"),
    ("BN([('a', 'a')])", sf.OptionError, "'a' is its own parent ... Remove"),
    ("BN([('a', 'b'), ('a', 'b')])", sf.OptionError, "'a' ... 'b' ... more than once ... Give it once"),
    ("BN([('a', 'b', 'c')])", sf.OptionError, "pair (parent, child); found ('a', 'b', 'c') ... Give pairs"),
    ("BN('rain wet')", sf.OptionError, "'rain wet' ... ->"),
    ("BN('rain -- wet')", sf.OptionError, "-- ... ->"),
    ("BN(7)", sf.OptionError, "7 ... expected"),
    ("BN(None)", sf.OptionError, "None ... expected"),
    ("BN([])", sf.OptionError, "no nodes ... Give"),
    ("BN(df)", sf.OptionError, "(60, 4) ... expected ... square"),
    ("BN(np.ones((2, 3)))", sf.OptionError, "(2, 3) ... square"),
    # data
    ("raw.fit(df.rename(columns={'rain': 'rian'}))", NO_COLUMN, "no column 'rain' ... Did you mean 'rian'?"),
    ("raw.fit(df[['rain']])", NO_COLUMN, "'wet', 'sprinkler' ... Its columns are: 'rain'"),
    ("raw.fit(df.iloc[:0])", sf.DataError, "no rows ... Give"),
    ("raw.fit({})", sf.DataError, "no columns; give at least one"),
    ("raw.fit(None)", sf.DataError, "NoneType ... Accepted are"),
    ("raw.fit(7)", sf.DataError, "int ... Accepted are"),
    ("raw.fit('nosuch.csv')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit('nosuch.xlsx')", sf.DataError, "nosuch.xlsx"),
    ("raw.fit(df['rain'])", NO_COLUMN, "'wet', 'sprinkler' ... 'rain'"),
    ("raw.fit(df.to_numpy())", NO_COLUMN, "'rain', 'wet', 'sprinkler' ... Its columns are: 0, 1, 2, 3 ... columns="),
    (
        "raw.fit(df[['rain', 'sprinkler', 'wet']].to_numpy(), columns=['rain', 'wet'])",
        sf.DataError,
        "2 names ... 3 columns",
    ),
    ("raw.fit(df[['rain', 'rain', 'wet', 'sprinkler']])", sf.DataError, "Two columns are named 'rain'; rename"),
    (
        "raw.fit({'rain': ['no', 'yes'], 'sprinkler': ['on'], 'wet': ['no', 'yes']})",
        sf.DataError,
        "2 rows ... 1 ... equally long",
    ),
    ("raw.fit([['no', 'on', 'yes']])", NO_COLUMN, "columns="),
    ("raw.fit()", NO_ARGUMENT, "BayesianNetwork.fit needs data ... Give data="),
    ("raw.fit(X=df)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'data'?"),
    ("raw.fit(df, weights='t')", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(df, None, np.ones(60))", NO_ARGUMENT, "at most 2 values by position ... found 3 ... sample_weight="),
    ("raw.fit(df, sample_weight=[1, 2])", sf.DataError, "sample_weight has 2 values for 60 rows ... one weight a row"),
    ("raw.fit(df, sample_weight=np.full(60, -1.0))", sf.DataError, "sample_weight holds -1.0 (row 0) ... at least 0"),
    ("raw.fit(df, sample_weight=np.full(60, np.nan))", sf.DataError, "sample_weight holds nan (row 0) ... finite"),
    ("raw.fit(df, sample_weight='tt')", NO_COLUMN, "no column 'tt' ... Did you mean 't'?"),
    ("raw.fit(df, sample_weight='rain')", sf.OptionError, "'rain' ... expected"),
    (
        "raw.fit(df, sample_weight=np.ones((60, 2)))",
        sf.DataError,
        "sample_weight ... (60, 2) ... one value for each row",
    ),
    ("raw.fit(df, sample_weight=['a'] * 60)", sf.DataError, "sample_weight ... 'a' ... number"),
    ("BN([('t', 'rain')]).fit(df)", sf.OptionError, "'rain' is discrete and has the real parents 't' ... 'glm'"),
    ("mixed.clone().fit(df.assign(t=np.inf))", sf.DataError, "'t' holds inf ... finite"),
    (
        "sf.BayesianNetwork([('rain', 't')], missing='raise').fit(df.assign(t=np.nan))",
        sf.MissingValueError,
        "'t' has 60 missing values ... row 0 ... Fill",
    ),
    # before the fit
    ("raw.query('rain')", sf.NotFittedError, "'rain', 'wet', 'sprinkler' ... Call fit first"),
    ("raw.predict(df, 'wet')", sf.NotFittedError, "Call fit first"),
    ("raw.table('wet')", sf.NotFittedError, "'wet' ... Call fit first"),
    ("raw.report_", sf.NotFittedError, "no report_ yet. Call fit first"),
    ("raw.unlearn(df)", sf.NotFittedError, "nothing to take rows out of ... Call fit first"),
    # questions
    *(
        (f"net.{call}", NO_COLUMN, "no variable 'rian' ... Did you mean 'rain'? ... 'rain', ... 'wet'")
        for call in (
            "query('rian')",
            "query(['rian', 'wet'])",
            "query('wet', {'rian': 'yes'})",
            "table('rian')",
            "states('rian')",
            "parents('rian')",
            "predict(df, 'rian')",
            "predict_proba(df, 'rian')",
            "marginals({'rian': 'yes'})",
            "map_query({'rian': 'no'})",
            "log_probability({'rian': 'no'})",
            "sample(2, {'rian': 'no'})",
            "joint_marginal(['rian'])",
            "map_query(variables=['rian'])",
        )
    ),
    *(
        (f"net.{call}", NO_STATE, "evidence ... 'wet' ... 'yess' ... Did you mean 'yes'? ... 'no', 'yes'")
        for call in (
            "query('rain', {'wet': 'yess'})",
            "marginals({'wet': 'yess'})",
            "map_query({'wet': 'yess'})",
            "log_probability({'wet': 'yess'})",
            "sample(2, {'wet': 'yess'})",
            "query('rain', {'wet': {'yess': 0.5}})",
        )
    ),
    ("net.query('rain', {'wet': True})", NO_STATE, "'wet' the state True ... 'no', 'yes'"),
    ("net.query('rain', {'wet': 1})", NO_STATE, "'wet' the state 1 ... 'no', 'yes'"),
    (
        "net.query('rain', evidence={'wet': 'yes'})",
        NO_ARGUMENT,
        "BayesianNetwork.query has no argument 'evidence' ... Did you mean 'given'?",
    ),
    ("net.query('rain', wet='yes')", NO_ARGUMENT, "no argument 'wet' ... Its arguments are: variables, given"),
    ("net.query('rain', ['wet'])", sf.OptionError, "given is a list ... expected a dict"),
    ("net.query('rain', 'wet')", sf.OptionError, "given is a str ... expected a dict"),
    ("net.query()", NO_ARGUMENT, "BayesianNetwork.query needs variables ... Give variables="),
    ("net.query(['rain', 'rain'])", sf.OptionError, "asked for twice: 'rain', 'rain'"),
    ("net.query({'rain'})", NO_COLUMN, "{'rain'} ... 'rain'"),
    ("net.query([])", sf.OptionError, "No variable ... Name"),
    ("net.query('wet', engine='exakt')", sf.OptionError, "engine is 'exakt' ... expected ... 'exact'"),
    (
        "net.query('wet', {'rain': [0.2, 0.3, 0.5]})",
        sf.OptionError,
        "'rain' are [0.2, 0.3, 0.5] ... expected 2 numbers",
    ),
    ("net.query('wet', {'rain': {'yes': -1}})", sf.OptionError, "'rain' are {'yes': -1} ... at least 0"),
    ("mixed.query('rain', {'t': 'hot'})", sf.DataError, "'t' the value 'hot' ... finite number"),
    ("mixed.query('rain', {'t': math.nan})", sf.DataError, "'t' the value nan ... finite number"),
    ("net.predict(df)", sf.OptionError, "which node ... predict(rows, 'node'), or ... target="),
    ("net.predict(df, variable='wet')", NO_ARGUMENT, "no argument 'variable' ... Did you mean 'target'?"),
    ("net.predict(df[['t']], 'wet')", NO_COLUMN, "'t' ... 'rain', 'wet', 'sprinkler'"),
    ("net.predict(df.replace('yes', 'maybe'), 'wet')", NO_STATE, "'maybe' ... 'no', 'yes'"),
    ("net.score(df.replace('yes', 'maybe'))", NO_STATE, "'maybe' ... 'no', 'yes'"),
    ("mixed.predict_proba(df, 't')", sf.OptionError, "'t' ... predict"),
    ("net.sample(-1)", sf.OptionError, "n is -1 ... at least"),
    ("net.sample('ten')", sf.OptionError, "n is 'ten' ... expected a whole number"),
    ("net.sample(size=10)", NO_ARGUMENT, "no argument 'size' ... Did you mean 'n'?"),
    ("net.sample(2, seed=1)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("net.sample(2, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    # names of other libraries, and what a fitted network does not have
    ("net.get_cpds()", sf.MissingAttributeError, "no attribute 'get_cpds' ... Did you mean 'table'?"),
    ("net.simulate(10)", sf.MissingAttributeError, "no attribute 'simulate' ... Did you mean 'sample'?"),
    ("net.repport_", sf.MissingAttributeError, "no attribute 'repport_' ... Did you mean 'report_'?"),
    ("net.fitt(df)", sf.MissingAttributeError, "no attribute 'fitt' ... Did you mean 'fit'?"),
    ("net.aic", sf.MissingAttributeError, "no attribute 'aic' ... Did you mean 'aic_'?"),
    ("net.save('x.bif')", sf.MissingAttributeError, "Did you mean 'write'?"),
    ("net.write('x.doc')", sf.OptionError, "'x.doc' has no known ending ... .bif"),
    ("net.partial_fit(df, keep=-1)", sf.OptionError, "keep is -1 ... at least 0"),
    ("net.partial_fit(df[['rain']])", NO_COLUMN, "'wet', 'sprinkler' ... 'rain'"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, {**names(), "math": math})
