"""The hundred most likely mistakes with a hidden Markov model."""

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of
from suffice.models.hidden_markov.emissions.reals import StepError

NO_ARGUMENT, NO_COLUMN, NO_STATE = sf.CallError, sf.MissingColumnError, sf.UnknownStateError


@cache
def names() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(5, 1, (20, 2))])
    words = [["a", "b", "a", "c"], ["b", "b", "a", "c", "a"]]
    df = pd.DataFrame(x, columns=["pulse", "temp"]).assign(patient=[0] * 20 + [1] * 20, hour=np.arange(40), ward="A")
    HMM = sf.HiddenMarkovModel
    raw = HMM(["well", "ill"], sf.MultivariateNormal())
    disc = HMM(2, sf.Categorical(["a", "b", "c"]), prior=1.0).fit(words)
    return {
        "x": x,
        "words": words,
        "df": df,
        "HMM": HMM,
        "raw": raw,
        "hmm": raw.clone().fit(x, lengths=[20, 20]),
        "disc": disc,
    }


G = "sf.MultivariateNormal()"
TABLE: list[Row] = [
    # what hmmlearn lets one set
    *(
        (f"setattr(hmm, '{result}', 1)", sf.MissingAttributeError, f"cannot be set ... Did you mean '{option}'?")
        for result, option in (
            ("startprob_", "initial"),
            ("transmat_", "transitions"),
            ("means_", "emissions"),
            ("covars_", "emissions"),
        )
    ),
    ("setattr(hmm, 'max_itr', 5)", sf.MissingAttributeError, "no option 'max_itr' ... Did you mean 'max_iter'?"),
    *(
        (
            f"HMM(2, {G}, {wrong}=1)",
            NO_ARGUMENT,
            f"HiddenMarkovModel has no option '{wrong}' ... Did you mean '{right}'? ... options are: states",
        )
        for wrong, right in [
            ("n_iter", "max_iter"),
            ("max_iterations", "max_iter"),
            ("tol", "tolerance"),
            ("covariance_type", "covariance"),
            ("startprob", "initial"),
            ("transmat", "transitions"),
            ("emissionprob", "emissions"),
            ("startprob_prior", "prior"),
            ("transmat_prior", "prior"),
            ("min_covar", "variance_floor"),
            ("seed", "random_state"),
            ("verbose", "progress"),
            ("n_jobs", "threads"),
            ("n_inits", "n_init"),
            ("alpha", "prior"),
            ("transition", "transitions"),
        ]
    ),
    ("HMM(n_components=2)", NO_ARGUMENT, "no option 'n_components' ... Did you mean 'states'?"),
    ("HMM(n_states=2, emission='normal')", NO_ARGUMENT, "no option 'n_states' ... Did you mean 'states'?"),
    ("HMM(2, distributions='normal')", NO_ARGUMENT, "no option 'distributions' ... Did you mean 'emission'?"),
    ("HMM(2)", NO_ARGUMENT, "HiddenMarkovModel needs emission ... Give emission="),
    (
        "HMM(2, 'normal', 'diag')",
        NO_ARGUMENT,
        "at most 2 values by position (states, emission); found 3 ... covariance=",
    ),
    ("raw.set_params(n_iter=5)", sf.OptionError, "no option 'n_iter' ... Did you mean 'max_iter'?"),
    ("sf.GaussianHMM(2)", sf.MissingAttributeError, "Did you mean 'HiddenMarkovModel'?"),
    ("sf.HiddenMarkov", sf.MissingAttributeError, "Did you mean 'HiddenMarkovModel'?"),
    # values of options
    *(
        (f"HMM(2, {G}, {option}={value!r}).fit(x)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("covariance", "diagnal", "Did you mean"),
            ("covariance", "sphere", "'full'"),
            ("estimate", "bayes", "'map'"),
            ("topology", "left", "'left-right'"),
            ("n_init", 0, "at least 1"),
            ("n_init", 1.5, "whole number"),
            ("random_state", "x", "whole number"),
            ("acceleration", "fast", "'squarem'"),
            ("variance_floor", -1.0, "0 to 1"),
            ("threads", 0, "at least 1"),
            ("memory_limit", "big", "bytes"),
            ("max_iter", -1, "at least 0"),
            ("max_iter", "many", "whole number"),
            ("tolerance", -1.0, "at least 0"),
            ("progress", "yes", "True or False"),
        ]
    ),
    ("HMM(0, 'normal')", sf.OptionError, "states is 0 ... expected"),
    ("HMM(-2, 'normal')", sf.OptionError, "states is -2 ... expected"),
    ("HMM(2.5, 'normal')", sf.OptionError, "states is 2.5 ... expected"),
    ("HMM(['a', 'a'], 'normal')", sf.OptionError, "a state twice: 'a', 'a' ... must differ"),
    ("HMM('two', 'normal')", sf.OptionError, "states is 'two' ... expected"),
    ("HMM(2, 'gaussain').fit(x)", sf.OptionError, "no family 'gaussain' ... Expected one of"),
    ("HMM(2, 'nromal').fit(x)", sf.OptionError, "no family 'nromal' ... Did you mean 'normal'?"),
    ("HMM(2, 7).fit(x)", sf.OptionError, "emission is 7 ... expected"),
    ("HMM(2, None).fit(x)", sf.OptionError, "emission is None ... expected"),
    (f"HMM(2, {G}, prior=-1.0).fit(x)", sf.OptionError, "prior ... -1.0 ... expected"),
    (f"HMM(2, {G}, prior={{'start': 1.0}}).fit(x)", sf.OptionError, "prior names 'start' ... 'initial', 'transitions'"),
    (f"HMM(2, {G}, initial=[0.5, 0.6]).fit(x)", sf.OptionError, "initial holds the row [0.5, 0.6]; expected"),
    (f"HMM(2, {G}, initial=[1.0]).fit(x)", sf.OptionError, "initial ... (1,) ... (2,)"),
    (f"HMM(2, {G}, transitions=[[0.5, 0.5]]).fit(x)", sf.OptionError, "transitions ... (1, 2) ... (2, 2)"),
    (
        f"HMM(2, {G}, transitions=[[0.5, 0.6], [0.5, 0.5]]).fit(x)",
        sf.OptionError,
        "transitions holds the row [0.5, 0.6]; expected",
    ),
    (
        f"HMM(2, {G}, transitions=[[-1, 2], [0.5, 0.5]]).fit(x)",
        sf.OptionError,
        "transitions holds the row [-1.0, 2.0]; expected",
    ),
    (f"HMM(2, {G}, transitions='left-right').fit(x)", sf.OptionError, "transitions ... 'left-right' ... expected"),
    (f"HMM(2, {G}, fixed='transitions')", sf.OptionError, "fixed is 'transitions' ... transitions="),
    (f"HMM(2, {G}, fixed=['transmat'])", sf.OptionError, "fixed names 'transmat' ... 'transitions'"),
    (f"HMM(['a', 'b'], {G}, tied=[('a', 'c')])", sf.OptionError, "tied names 'c' ... 'a', 'b'"),
    # data
    ("raw.fit([])", sf.DataError, "no sequences ... Give"),
    ("raw.fit(None)", sf.DataError, "None ... Accepted are"),
    ("raw.fit(7)", sf.DataError, "int ... Accepted are"),
    ("raw.fit()", NO_ARGUMENT, "needs sequences ... Give sequences="),
    ("raw.fit('nosuch.csv', group='patient', order='hour')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit(X=x)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'sequences'?"),
    ("raw.fit(np.array([['a', 'b']]))", sf.DataError, "'a' ... number"),
    ("raw.fit(x * np.nan)", sf.DataError, "Column 0 holds missing values alone ... Leave it out"),
    ("raw.fit(x + np.inf)", sf.DataError, "inf"),
    ("raw.fit([x, x[:, :1]])", sf.DataError, "2 observations ... 1 observations ... same number"),
    ("raw.fit(x[None, None])", sf.DataError, "(1, 1, 40, 2) ... expected"),
    (
        "hmm.bic(x, [20, 20])",
        sf.MissingAttributeError,
        "Did you mean 'bic_'? It is a number, of the rows that were learned from; of others there is score_samples.",
    ),
    ("raw.fit(x, [20, 30])", sf.DataError, "40 steps: lengths ... 2 numbers whose sum is 50"),
    ("raw.fit(x, lengths=[20, 30])", sf.DataError, "lengths ... 50 ... 40"),
    ("raw.fit(x, lengths=[20, -20, 40])", sf.DataError, "lengths ... -20"),
    ("raw.fit(x, lengths=[20.5, 19.5])", sf.DataError, "lengths ... 20.5 ... whole"),
    ("raw.fit(x, lengths='patient')", sf.DataError, "lengths ... 'patient' ... expected"),
    ("raw.fit(x, legnths=[20, 20])", NO_ARGUMENT, "no argument 'legnths' ... Did you mean 'lengths'?"),
    ("raw.fit(x, group='patient')", sf.OptionError, "group='patient' ... no column names ... table"),
    (
        "raw.fit(df, group='pateint', columns=['pulse', 'temp'])",
        NO_COLUMN,
        "no column 'pateint' ... Did you mean 'patient'?",
    ),
    ("raw.fit(df, group='patient', columns=['pulse', 'tmp'])", NO_COLUMN, "no column 'tmp' ... Did you mean 'temp'?"),
    (
        "raw.fit(df, group='patient', order='huor', columns=['pulse', 'temp'])",
        NO_COLUMN,
        "no column 'huor' ... Did you mean 'hour'?",
    ),
    ("raw.fit(df, group='patient', columns=['pulse', 'ward'])", sf.DataError, "'ward' ... 'A' ... number"),
    (
        "raw.fit(df, group='patient', lengths=[20, 20], columns=['pulse', 'temp'])",
        sf.OptionError,
        "lengths= ... group=",
    ),
    ("raw.fit([x], sample_weight=[1.0, 1.0])", sf.DataError, "sample_weight ... (2,) ... 1 sequence"),
    ("raw.fit([x], sample_weight=[-1.0])", sf.DataError, "sample_weight of sequence 0 is -1.0 ... at least 0"),
    ("raw.fit([x], weights=[1.0])", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit([x], [['well'] * 39])", sf.DataError, "39 ... 40"),
    ("raw.fit([x], [['wll'] * 40])", NO_STATE, "'wll' ... Did you mean 'well'?"),
    ("disc.clone().fit([['a', 'z']])", NO_STATE, "'z' ... 'a', 'b', 'c'"),
    ("disc.clone().fit([[1, 2]])", NO_STATE, "1 ... 'a', 'b', 'c'"),
    ("HMM(2, 'poisson').fit([[1.5, 2.0]])", StepError, "1.5 ... expected a count"),
    ("HMM(2, 'poisson').fit([[-1, 2]])", StepError, "-1"),
    ("raw.unlearn([x])", sf.NotFittedError, "Call fit first"),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "predict(x)",
            "predict_proba(x)",
            "score(x)",
            "decode(x)",
            "transmat_",
            "means_",
            "initial_",
            "report_",
            "sample(3)",
            "filter(x)",
            "forecast(x)",
            "pairwise(x)",
        )
    ),
    # questions
    ("hmm.predict(x[:, :1])", sf.DataError, "1 observations; expected 2"),
    ("hmm.predict([['a', 'b']])", sf.DataError, "'a' ... number"),
    ("hmm.predict(x, [10])", sf.DataError, "lengths ... 10 ... 40"),
    ("hmm.predict(x, method='vitrebi')", sf.OptionError, "method is 'vitrebi' ... Did you mean 'viterbi'?"),
    ("hmm.predict(x, algorithm='map')", NO_ARGUMENT, "no argument 'algorithm' ... Did you mean 'method'?"),
    ("hmm.predict()", NO_ARGUMENT, "needs sequences ... Give sequences="),
    ("disc.predict([['a', 'zz']])", NO_STATE, "'zz' ... 'a', 'b', 'c'"),
    ("disc.score([['a', 'zz']])", NO_STATE, "'zz' ... 'a', 'b', 'c'"),
    ("hmm.best_paths(x, 0)", sf.OptionError, "n is 0 ... at least 1"),
    ("hmm.forecast(x, steps=-1)", sf.OptionError, "steps is -1 ... at least"),
    ("hmm.sample(-3)", sf.OptionError, "steps is -3 ... at least"),
    ("hmm.sample(n_samples=3)", NO_ARGUMENT, "no argument 'n_samples' ... Did you mean 'steps'?"),
    ("hmm.sample(3, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("hmm.sample_paths(x, 1, seed=3)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("hmm.accuracy([x], [['well'] * 39])", sf.DataError, "39 ... 40"),
    ("hmm.forecast_distribution([0.5, 0.6, 0.1])", sf.OptionError, "(3,) ... one probability for each state"),
    ("hmm.forecast_distribution([-0.5, 0.6])", sf.OptionError, "[-0.5, 0.6] ... at least 0"),
    ("disc.means_", sf.MissingAttributeError, "no means ... emissions_"),
    ("hmm.emission_probabilities_", sf.MissingAttributeError, "symbols ... emissions_"),
    ("hmm.n_components", sf.MissingAttributeError, "'n_components' ... Did you mean 'states_'?"),
    ("hmm.transmat", sf.MissingAttributeError, "'transmat' ... Did you mean 'transmat_'?"),
    ("hmm.monitor_", sf.MissingAttributeError, "'monitor_' ... Did you mean 'report_'?"),
    ("hmm.mean_", sf.MissingAttributeError, "'mean_' ... Did you mean 'means_'?"),
    ("hmm.fit_predict(x)", sf.MissingAttributeError, "'fit_predict' ... Did you mean 'predict'?"),
    ("hmm.write('hmm.pkl')", sf.OptionError, "'hmm.pkl' has no known ending ... .json"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
