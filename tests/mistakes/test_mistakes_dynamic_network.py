"""The hundred most likely mistakes with a network through time."""

import warnings
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT, NO_COLUMN, NO_STATE = sf.CallError, sf.MissingColumnError, sf.UnknownStateError
DBN = sf.DynamicBayesianNetwork
ARCS: list[Any] = [(("rain", -1), "rain"), ("rain", "wet")]


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    rain = rng.choice(["no", "yes"], 60)
    wet = np.where(rain == "yes", "yes", rng.choice(["no", "yes"], 60, p=[0.8, 0.2]))
    df = pd.DataFrame(
        {
            "rain": rain,
            "wet": wet,
            "person": np.repeat([1, 2, 3], 20),
            "day": np.tile(np.arange(20), 3),
            "t": rng.normal(size=60),
        }
    )
    days = df[["rain", "wet"]]
    holes = days.copy()
    holes.loc[3, "rain"] = None
    raw = DBN(ARCS, prior=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sf.ConvergenceWarning)
        hidden = DBN(ARCS, hidden={"rain": 2}, max_iter=20).fit(df[["wet", "person"]], group="person")
    return {
        "A": ARCS,
        "DBN": DBN,
        "df": df,
        "days": days,
        "holes": holes,
        "raw": raw,
        "bare": DBN(ARCS),
        "net": raw.clone().fit(df, group="person", time="day"),
        "hidden": hidden,
    }


TABLE: list[Row] = [
    *(
        (
            f"DBN(A, {wrong}=1)",
            NO_ARGUMENT,
            f"DynamicBayesianNetwork has no option '{wrong}' ... Did you mean '{right}'? ... options are: structure",
        )
        for wrong, right in [
            ("priors", "prior"),
            ("latents", "hidden"),
            ("seed", "random_state"),
            ("tol", "tolerance"),
            ("max_iterations", "max_iter"),
            ("verbose", "progress"),
            ("n_jobs", "threads"),
            ("state_names", "states"),
            ("n_components", "states"),
            ("pseudo_counts", "prior"),
            ("edges", "structure"),
        ]
    ),
    ("DBN()", NO_ARGUMENT, "DynamicBayesianNetwork needs structure, ... progress, callback, checkpoint."),
    ("DBN(A, 1.0)", NO_ARGUMENT, "DynamicBayesianNetwork takes at most 1 ... estimate=, unseen=, fixed=, hidden=."),
    ("DBN(None)", sf.OptionError, "structure is None; expected arcs ... before, (name, -2) for the one before that."),
    (
        "DBN(3)",
        sf.OptionError,
        "structure is 3; expected arcs [(parent, ... before, (name, -2) for the one before that.",
    ),
    ("DBN([])", sf.OptionError, "The structure has no nodes; expected ... before, (name, -2) for the one before that."),
    (
        "DBN('rain')",
        sf.OptionError,
        "structure is 'rain'; expected arcs ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN('rain -> wet')",
        sf.OptionError,
        "structure is 'rain -> wet'; expected ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN([(('rain', 1), 'rain')])",
        sf.OptionError,
        "The arc ('rain', 1) -> 'rain' comes ... before as negative numbers: ('rain', -1).",
    ),
    (
        "DBN([(('rain', 0), 'rain')])",
        sf.OptionError,
        "Node 'rain' is its own parent. Remove ... the edge from 'rain' to itself.",
    ),
    (
        "DBN([(('rain', -1.5), 'rain')])",
        sf.OptionError,
        "The name ('rain', -1.5) is that of the ... Write ('rain', -1) for the slice before.",
    ),
    (
        "DBN([(('rain', '-1'), 'rain')])",
        sf.OptionError,
        "The name ('rain', '-1') is that of the ... Write ('rain', -1) for the slice before.",
    ),
    (
        "DBN([(('rain', -100), 'rain')])",
        sf.OptionError,
        "The arc ('rain', -100) -> 'rain' ... or carry what matters in a node of its own.",
    ),
    (
        "DBN([('rain', 'rain')])",
        sf.OptionError,
        "Node 'rain' is its own parent. Remove ... the edge from 'rain' to itself.",
    ),
    (
        "DBN([('rain', 'wet'), ('wet', 'rain')])",
        sf.OptionError,
        "The graph has a directed cycle: 'rain' ... 'rain'. Remove or turn one of these edges.",
    ),
    (
        "DBN([('rain', 'wet'), ('rain', 'wet')])",
        sf.OptionError,
        "The edge 'rain' -> 'wet' is given more than once. Give it once.",
    ),
    (
        "DBN([(('rain', -1), ('wet', -1))])",
        sf.OptionError,
        "The arc ('rain', -1) -> ('wet', -1) ... next slice, give the parent as (name, -1).",
    ),
    (
        "DBN([(('rain', 1), ('wet', 0))])",
        sf.OptionError,
        "The arc ('rain', 1) -> ('wet', 0) ends ... next slice, give the parent as (name, -1).",
    ),
    (
        "DBN([('rain', ('wet', 1))])",
        sf.OptionError,
        "The arc 'rain' -> ('wet', 1) ends at a ... next slice, give the parent as (name, -1).",
    ),
    (
        "DBN([('rain', 'wet', 1)])",
        sf.OptionError,
        "An arc is a pair (parent, child); found ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN([('rain',)])",
        sf.OptionError,
        "An arc is a pair (parent, child); found ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN({'wet': 'rain'})",
        sf.OptionError,
        "The parents of 'wet' are 'rain'; ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN([(('rain', -1), 'rain')], first=[('rain', 'wet')])",
        sf.OptionError,
        "first= names 'wet', which is no node. The nodes are: 'rain'.",
    ),
    (
        "DBN(A, first=[(('rain', -1), 'rain')])",
        sf.OptionError,
        "first= is about one slice, and has the ... ('rain', -1); give plain names there.",
    ),
    (
        "DBN(A, first=3)",
        sf.OptionError,
        "first is 3; expected arcs [(parent, ... before, (name, -2) for the one before that.",
    ),
    (
        "DBN(A, inputs='wet')",
        sf.OptionError,
        "'wet' is one of inputs=, which are ... into it out, or leave it out of inputs=.",
    ),
    (
        "DBN(A, carry=['wet'])",
        sf.OptionError,
        "carry= names 'wet', which is none of ... A node that has none is a missing value.",
    ),
    (
        "DBN(A, states=['no', 'yes'])",
        sf.OptionError,
        "states is ['no', 'yes']; expected a ... such as states={'sky': ['clear', 'rain']}.",
    ),
    (
        "DBN(A, states={'rain': 'text'})",
        sf.OptionError,
        "states['rain'] is 'text'; expected a ... 'discrete', 'real', 'count' or a Variable.",
    ),
    (
        "DBN(A, states={'rain': 2})",
        sf.OptionError,
        "states['rain'] is 2; expected a list of ... 'discrete', 'real', 'count' or a Variable.",
    ),
    (
        "DBN(A, hidden=['rain'])",
        sf.OptionError,
        "hidden is ['rain']; expected a dict by ... node, such as hidden={'class': 3}.",
    ),
    ("DBN(A, hidden=2)", sf.OptionError, "hidden is 2; expected a dict by node, ... such as hidden={'class': 3}."),
    ("DBN(A, hidden={'rian': 2})", sf.OptionError, "hidden= names 'rian', which is no node. ... Did you mean 'rain'?"),
    (
        "DBN(A, hidden={'rain': 0}).fit(days)",
        sf.OptionError,
        "hidden['rain'] is 0; expected a number of states of at least 1.",
    ),
    (
        "DBN(A, hidden={'rain': 'two'}).fit(days)",
        sf.OptionError,
        "hidden['rain'] is 'two'; expected a ... of states, a list of states, or 'real'.",
    ),
    (
        "DBN(A, hidden={'rain': 2, 'wet': 2})",
        sf.OptionError,
        "hidden= names all nodes, 'rain', 'wet', ... say nothing. Leave out those that are seen.",
    ),
    (
        "DBN(A, nodes={'rian': 'glm'})",
        sf.OptionError,
        "nodes= names 'rian', which is no node. ... Did you mean 'rain'?",
    ),
    (
        "DBN(A, nodes={'rain': 'gml'})",
        sf.OptionError,
        "nodes['rain'] is 'gml'; expected one of ... such as NoisyOr(...) or GLM(family=...).",
    ),
    (
        "DBN(A, tied=[['rain', 'rian']])",
        sf.OptionError,
        "tied= names 'rian', which is no node. ... Did you mean 'rain'?",
    ),
    ("DBN(A, tied='rain')", sf.OptionError, "tied is 'rain'; expected groups of ... nodes, [('X1', 'X2', 'X3'), ...]."),
    (
        "DBN(A, prior='bde').fit(days)",
        sf.OptionError,
        "prior is 'bde'; the priors with a name ... are 'bdeu', 'k2', 'jeffreys'.",
    ),
    (
        "DBN(A, prior=-1.0).fit(days)",
        sf.OptionError,
        "The prior of the network holds -1.0, ... numbers above 0. Leave prior= out for none.",
    ),
    ("DBN(A, prior={'rian': 1.0})", sf.OptionError, "prior= names 'rian', which is no node. ... Did you mean 'rain'?"),
    (
        "DBN(A, prior='bdeu', equivalent_sample_size=0)",
        sf.OptionError,
        "equivalent_sample_size is 0; expected a ... positive number up to 1e+300.",
    ),
    (
        "DBN(A, equivalent_sample_size=5.0).fit(days)",
        sf.OptionError,
        "equivalent_sample_size=5.0 has no ... network. Leave equivalent_sample_size= out.",
    ),
    ("DBN(A, estimate='mode')", sf.OptionError, "estimate is 'mode'; expected one of None, 'mean', 'map'."),
    ("DBN(A, estimate='map').fit(days)", sf.OptionError, "estimate='map' needs a prior=."),
    ("DBN(A, unseen='zero')", sf.OptionError, "unseen is 'zero'; expected one of 'uniform', 'nan', 'raise'."),
    (
        "DBN(A, fixed={'rian': [[1]]})",
        sf.OptionError,
        "fixed= names 'rian', which is no node. ... Did you mean 'rain'?",
    ),
    (
        "DBN(A, fixed={'rain': [[0.5, 0.6], [0.5, 0.5]]}, states={'rain': ['no', 'yes']}).fit(days)",
        sf.OptionError,
        "The table of 'rain' has a row that is ... numbers of at least 0 that add up to 1.",
    ),
    ("DBN(A, missing='drop')", sf.OptionError, "missing is 'drop'; expected 'em' or 'raise'."),
    (
        "DBN(A, start=3, hidden={'rain': 2}).fit(days[['wet']])",
        sf.OptionError,
        "start is 3; expected a dict of ... parameters by node, or a fitted network.",
    ),
    ("DBN(A, n_init=0)", sf.OptionError, "n_init is 0; expected a whole number of at least 1."),
    (
        "DBN(A, n_init=3).fit(days)",
        sf.OptionError,
        "n_init=3 has no effect: EM begins at ... and hidden= names none. Leave n_init= out.",
    ),
    (
        "DBN(A, random_state='x')",
        sf.OptionError,
        "random_state is 'x'; expected a whole ... of at least 0, a NumPy Generator, or None.",
    ),
    ("DBN(A, acceleration='aitken')", sf.OptionError, "acceleration is 'aitken'; expected None or 'squarem'."),
    (
        "DBN(A, variance_floor=-1)",
        sf.OptionError,
        "variance_floor is -1; expected a share ... of the variance of a column, 0 to 1.",
    ),
    (
        "DBN(A, threads=0, hidden={'rain': 2}).fit(days[['wet']])",
        sf.OptionError,
        "threads is 0; expected a whole number ... of at least 1, or None for all cores.",
    ),
    ("DBN(A, tolerance=-1).fit(days)", sf.OptionError, "tolerance is -1; expected a finite number of at least 0."),
    ("DBN(A, max_seconds=-1).fit(days)", sf.OptionError, "max_seconds is -1; expected a positive number or None."),
    ("DBN(A, progress='yes').fit(days)", sf.OptionError, "progress is 'yes'; expected True or False."),
    ("raw.set_params(priors=1)", sf.OptionError, "DynamicBayesianNetwork has no option ... Did you mean 'prior'?"),
    ("raw.priors", sf.MissingAttributeError, "DynamicBayesianNetwork has no attribute ... Did you mean 'prior'?"),
    ("DBN.hmm(2)", NO_ARGUMENT, "DynamicBayesianNetwork.hmm needs ... Its arguments are: hidden, observed, node."),
    (
        "DBN.hmm(0, ['wet']).fit(days)",
        sf.OptionError,
        "hidden['state'] is 0; expected a number ... of states of at least 1.",
    ),
    (
        "DBN.hmm('two', ['wet']).fit(days)",
        sf.OptionError,
        "hidden['state'] is 'two'; expected a ... of states, a list of states, or 'real'.",
    ),
    (
        "DBN.hmm(2, [])",
        sf.OptionError,
        "There are no nodes. Name at least one ... that is hidden, and one that is observed.",
    ),
    ("DBN.hmm(2, 'rain wet').fit(days)", NO_COLUMN, "There is no column 'rain wet' in the ... Did you mean 'rain'?"),
    (
        "DBN.hmm(2, 'wet', nodes='x')",
        sf.OptionError,
        "nodes is 'x'; expected a dict by node, ... such as nodes={'fever': 'noisy-or'}.",
    ),
    (
        "DBN.factorial_hmm(2, ['wet'])",
        sf.OptionError,
        "hidden is 2; expected a list with the ... number of states of each chain.",
    ),
    ("DBN.linear_system('2', ['wet'])", sf.OptionError, "hidden is '2'; expected a whole number of at least 1."),
    (
        "raw.fit()",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.fit needs data, ... y, sample_weight, group, order, step, time.",
    ),
    ("raw.fit(None)", sf.DataError, "Cannot read a table from NoneType. ... Ray Datasets, and iterators of frames."),
    ("raw.fit(3)", sf.DataError, "Cannot read a table from int. Accepted ... Ray Datasets, and iterators of frames."),
    (
        "raw.fit('nosuch.csv')",
        sf.DataError,
        "There is no file 'nosuch.csv'. Check ... the path and the folder it is read from.",
    ),
    (
        "raw.fit(days.rename(columns={'rain': 'rian'}))",
        NO_COLUMN,
        "There is no column 'rain' in the data. ... Did you mean 'rian'?",
    ),
    ("raw.fit(days[['rain']])", NO_COLUMN, "There is no column 'wet' in the data. Its columns are: 'rain'."),
    ("raw.fit(days.iloc[:0])", sf.DataError, "There are no slices: the table has no rows. Give at least one."),
    (
        "raw.fit(days.to_numpy())",
        sf.DataError,
        "Series are tables with a column for ... or a dict such as {'rain': array[:, 0]}.",
    ),
    (
        "raw.fit({'rain': ['no'], 'wet': ['no', 'yes']})",
        sf.DataError,
        "Column 'rain' has 1 rows and column ... has 2; all columns must be equally long.",
    ),
    (
        "raw.fit([days, days.iloc[:0]])",
        sf.DataError,
        "Series 1 has no slices. Give each at ... least one, or leave it out.",
    ),
    (
        "raw.fit([days, days], group='person')",
        sf.OptionError,
        "group=, order= and time= name columns ... order. Leave them out, or join the tables.",
    ),
    ("raw.fit(df, group='persn')", NO_COLUMN, "There is no column 'persn' in the data. ... Did you mean 'person'?"),
    (
        "raw.fit(df, group='person', time='dya')",
        NO_COLUMN,
        "There is no column 'dya' in the data. ... Did you mean 'day'?",
    ),
    (
        "raw.fit(df, group='person', order='day', time='day')",
        sf.OptionError,
        "order= and time= both put the rows of a ... slices of the gaps too. Give one of them.",
    ),
    (
        "raw.fit(df, time='t')",
        sf.DataError,
        "The time column 't' holds ... rows, whose gaps do not matter, use order=.",
    ),
    ("raw.fit(df, groups='person')", NO_ARGUMENT, "DynamicBayesianNetwork.fit has no ... Did you mean 'group'?"),
    ("raw.fit(df, id='person')", NO_ARGUMENT, "DynamicBayesianNetwork.fit has no ... Did you mean 'group'?"),
    (
        "raw.fit(df, time='day')",
        sf.DataError,
        "The order column 'day' holds 0 twice, ... differs between the steps of a sequence.",
    ),
    (
        "raw.fit(df, group='person', time='day', step='1 day')",
        sf.OptionError,
        "step= has no effect: 'day' holds whole ... numbers, one a slice. Leave it out.",
    ),
    (
        "raw.fit(df, group='person', step='1 day')",
        sf.OptionError,
        "step= is how long a slice is, where ... a column of dates. Give both, or none.",
    ),
    (
        "raw.fit(df, lengths=[20, 20, 20])",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.fit has no ... y, sample_weight, group, order, step, time.",
    ),
    (
        "raw.fit(df, df.person, df.day)",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.fit takes at ... 3. Give others by name: sample_weight=.",
    ),
    (
        "raw.fit(df, group='person', time='day', sample_weight=[1.0] * 60)",
        sf.DataError,
        "sample_weight has shape (60,); expected ... one weight for each of 3 sequences.",
    ),
    (
        "raw.fit(df, group='person', sample_weight=[-1.0, 1, 1])",
        sf.DataError,
        "sample_weight of sequence 0 is -1.0; ... expected finite numbers of at least 0.",
    ),
    (
        "raw.fit(df, group='person', sample_weight='rain')",
        sf.DataError,
        "sample_weight holds values that are not ... 'rain'; expected one for each sequence.",
    ),
    (
        "raw.fit(df, group='person', sample_weights=[1, 1, 1])",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.fit has no ... Did you mean 'sample_weight'?",
    ),
    (
        "DBN(A, states={'rain': ['no', 'maybe'], 'wet': ['no', 'yes']}).fit(days)",
        NO_STATE,
        "Column 'rain' holds 'yes' (str) (row ... Declare it in states=, or correct the data.",
    ),
    (
        "DBN(A, missing='raise').fit(holes)",
        sf.MissingValueError,
        "'rain' has no value in slice 3 of ... values in, or leave those series out.",
    ),
    (
        "DBN([(('d', -1), 'd')]).fit({'d': pd.date_range('2024-01-01', periods=9)})",
        sf.DataError,
        "Column 'd' holds dates (2024-01-01 ... in its place, such as days since the first.",
    ),
    (
        "DBN([(('d', -1), 'd')]).fit({'d': list(range(80))})",
        sf.DataError,
        "Column 'd' holds more than 50 different ... or states={'d': 'real'} for numbers.",
    ),
    (
        "DBN([(('t', -1), 't'), ('t', 'wet')]).fit(df[['t', 'wet']])",
        sf.OptionError,
        "'wet' is discrete and has the real ... node a regression: nodes={'wet': 'glm'}.",
    ),
    (
        "DBN(A, nodes={'rain': 'linear-gaussian'}).fit(days)",
        sf.DataError,
        "Column 'rain' holds 'yes' (str) (row ... Correct the value, or leave its row out.",
    ),
    (
        "bare.table('rain')",
        sf.NotFittedError,
        "This DynamicBayesianNetwork has not ... fit first, or give all tables in fixed=.",
    ),
    (
        "bare.filter(days)",
        sf.NotFittedError,
        "This DynamicBayesianNetwork has not ... fit first, or give all tables in fixed=.",
    ),
    ("bare.report_", sf.NotFittedError, "This DynamicBayesianNetwork has no report_ yet. Call fit first."),
    ("net.table('rian')", NO_COLUMN, "There is no variable 'rian'. ... Did you mean 'rain'?"),
    ("net.table(('rain', -1))", NO_COLUMN, "There is no variable ('rain', -1). ... Did you mean ('rain', 0)?"),
    (
        "net.table('rain', 3)",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.table takes at ... (name); found 2. Leave the others out.",
    ),
    ("net.node('rian')", NO_COLUMN, "There is no variable 'rian'. ... Did you mean 'rain'?"),
    ("net.parents('rian')", NO_COLUMN, "There is no variable 'rian'. ... Did you mean 'rain'?"),
    ("net.states('rian')", NO_COLUMN, "There is no variable 'rian'. ... Did you mean 'rain'?"),
    ("net.table()", NO_ARGUMENT, "DynamicBayesianNetwork.table needs ... out. Give name=. Its arguments are: name."),
    (
        "net.means_",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... statistics_, stop_reason_, tables_.",
    ),
    ("net.edges", sf.MissingAttributeError, "DynamicBayesianNetwork has no attribute ... Did you mean 'parents'?"),
    (
        "net.filter()",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.filter needs ... are: data, nodes, do, ... group, order, step, time.",
    ),
    ("net.filter(days, 'rian')", NO_COLUMN, "There is no variable 'rian'. ... Did you mean 'rain'?"),
    (
        "net.filter(df, variables='rian', group='person')",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.filter has no ... Did you mean 'nodes'?",
    ),
    (
        "net.filter(days.assign(rain='maybe'))",
        NO_STATE,
        "Column 'rain' holds 'maybe' (str) (row ... Declare it in states=, or correct the data.",
    ),
    (
        "net.filter(days.rename(columns={'rain': 'sun', 'wet': 'fog'}))",
        NO_COLUMN,
        "No column of the data is a node: the ... or name those of an array with columns=.",
    ),
    ("net.smooth(df, gruop='person')", NO_ARGUMENT, "DynamicBayesianNetwork.smooth has no ... Did you mean 'group'?"),
    (
        "net.smooth(3)",
        sf.DataError,
        "Cannot read a table from int. Accepted ... Ray Datasets, and iterators of frames.",
    ),
    ("hidden.forecast(days[['wet']], 0)", sf.OptionError, "slices is 0; expected a whole number of at least 1."),
    (
        "hidden.forecast(days[['wet']], 'two')",
        sf.OptionError,
        "slices is 'two'; expected a whole number of at least 1.",
    ),
    (
        "hidden.forecast(days[['wet']], steps=2)",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.forecast has no ... Did you mean 'slices'?",
    ),
    (
        "hidden.map_query(days[['wet']], 'rian')",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.map_query takes ... (data); found 2. Give others by name: do=.",
    ),
    (
        "hidden.predict(days[['wet']])",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... Did you mean 'map_query'?",
    ),
    (
        "hidden.predict_proba(days[['wet']])",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... Did you mean 'smooth'?",
    ),
    (
        "hidden.decode(days[['wet']])",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... Did you mean 'map_query'?",
    ),
    (
        "hidden.viterbi(days[['wet']])",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... Did you mean 'map_query'?",
    ),
    (
        "hidden.query('rain')",
        sf.OptionError,
        "variable names 'rain'; expected a node and the number of a slice, such as ('rain', 3).",
    ),
    (
        "net.forward_inference(['rain'])",
        sf.MissingAttributeError,
        "DynamicBayesianNetwork has no attribute ... Did you mean 'filter'?",
    ),
    ("net.simulate(3)", sf.MissingAttributeError, "DynamicBayesianNetwork has no attribute ... Did you mean 'sample'?"),
    ("net.get_cpds()", sf.MissingAttributeError, "DynamicBayesianNetwork has no attribute ... Did you mean 'table'?"),
    ("net.score(days.iloc[:0])", sf.DataError, "There are no slices: the table has no rows. Give at least one."),
    ("net.score(df, group='persn')", NO_COLUMN, "There is no column 'persn' in the data. ... Did you mean 'person'?"),
    ("net.sample()", NO_ARGUMENT, "DynamicBayesianNetwork.sample needs ... are: slices, n, inputs, do, random_state."),
    ("net.sample(0)", sf.OptionError, "slices is 0; expected a whole number of at least 1."),
    ("net.sample(5, n=0)", sf.OptionError, "n is 0; expected a whole number of at least 1."),
    (
        "net.sample(5, 2, 3)",
        NO_ARGUMENT,
        "DynamicBayesianNetwork.sample takes at ... others by name: inputs=, do=, random_state=.",
    ),
    (
        "net.sample(5, random_state='x')",
        sf.OptionError,
        "random_state is 'x'; expected a whole ... of at least 0, a NumPy Generator, or None.",
    ),
    ("net.sample(5, size=3)", NO_ARGUMENT, "DynamicBayesianNetwork.sample has no ... Did you mean 'n'?"),
    ("net.sample(5, inputs={'a': [1]})", sf.OptionError, "inputs= has no effect: the network has none. Leave it out."),
    ("net.unroll(0)", sf.OptionError, "slices is 0; expected a whole number of at least 1."),
    ("net.unroll()", NO_ARGUMENT, "DynamicBayesianNetwork.unroll needs ... Give slices=. Its arguments are: slices."),
    (
        "net.partial_fit(days.rename(columns={'rain': 'rian'}))",
        NO_COLUMN,
        "There is no column 'rain' in the data. ... Did you mean 'rian'?",
    ),
    (
        "net.unlearn(df.assign(rain='maybe'), group='person')",
        sf.MergeError,
        "Taking these rows out would leave a ... negative count: they were never in.",
    ),
    (
        "hidden.partial_fit(days[['wet']])",
        sf.OptionError,
        "Series with missing values or hidden ... from start= the tables learned so far.",
    ),
    (
        "hidden.posterior_",
        sf.EstimateError,
        "The rows had missing values or hidden ... standard_errors_ give their spread.",
    ),
    ("net.summary(level=2)", sf.OptionError, "level is 2; expected a number between 0 and 1."),
    (
        "net.confidence_intervals(method='boot')",
        sf.OptionError,
        "method is 'boot'; expected one of ... Did you mean 'bootstrap'?",
    ),
    (
        "net.write('net.bif')",
        sf.OptionError,
        "This format holds Bayesian networks; a ... to '.uai' as well. Give another ending.",
    ),
    ("net.bic(days)", sf.MissingAttributeError, "DynamicBayesianNetwork has no attribute ... Did you mean 'bic_'?"),
    (
        "sf.DynamicBayesNet(A)",
        sf.MissingAttributeError,
        "suffice has no 'DynamicBayesNet'. ... Did you mean 'DynamicBayesianNetwork'?",
    ),
    ("sf.DBN(A)", sf.MissingAttributeError, "suffice has no 'DBN'. ... Did you mean 'DynamicBayesianNetwork'?"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())


def test_arcs_of_pgmpy_between_numbered_slices() -> None:
    arcs = [(("rain", 0), ("rain", 1)), (("rain", 0), ("wet", 0)), (("wet", 0), ("rain", 2))]
    plain = [(("rain", -1), "rain"), ("rain", "wet"), (("wet", -2), "rain")]
    theirs, ours = DBN(arcs, prior=1.0), DBN(plain, prior=1.0)
    days = names()["days"]
    assert theirs.tables_ == ours.tables_
    assert theirs.fit(days).log_likelihood_ == ours.fit(days).log_likelihood_


@pytest.mark.parametrize("make", [lambda: DBN(ARCS, prior=1.0), lambda: sf.BayesianNetwork("rain -> wet", prior=1.0)])
def test_a_misspelt_column_of_rows_is_told(make: Any) -> None:
    days = names()["days"]
    net = make().fit(days)
    with pytest.warns(
        sf.LeftOutWarning, match=r"no column of the node 'rain', which is summed out.*mean 'rian'\?"
    ) as said:
        misspelt = net.score(days.rename(columns={"rain": "rian"}))
    assert said[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert misspelt == net.score(days[["wet"]]) == net.score(days[["wet"]].assign(other=1.0))


@pytest.mark.parametrize("option", [{"acceleration": "aitken"}, {"variance_floor": -1}])
def test_options_of_em_are_checked_where_a_fit_needs_none(option: dict[str, Any]) -> None:
    with pytest.raises(sf.OptionError, match="expected"):
        sf.BayesianNetwork("rain -> wet", **option)
    if "acceleration" in option:
        with pytest.raises(sf.OptionError, match="acceleration is 'aitken'; expected"):
            sf.HiddenMarkovModel(2, emission=sf.Categorical(), **option)
