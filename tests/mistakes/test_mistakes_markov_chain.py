"""The hundred most likely mistakes with a Markov chain."""

from functools import cache
from typing import Any

import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT, NO_COLUMN, NO_STATE = sf.CallError, sf.MissingColumnError, sf.UnknownStateError


@cache
def names() -> dict[str, Any]:
    paths = [["sun", "sun", "rain", "sun"], ["rain", "rain", "sun"], ["sun", "rain", "rain", "sun"]]
    df = pd.DataFrame({"day": [p for path in paths for p in path], "city": [0] * 4 + [1] * 3 + [2] * 4, "n": 1.0})
    chain = sf.MarkovChain().fit(paths)
    return {
        "paths": paths,
        "df": df,
        "MC": sf.MarkovChain,
        "chain": chain,
        "raw": sf.MarkovChain(),
        "two": sf.MarkovChain(2).fit(paths),
    }


TABLE: list[Row] = [
    *(
        (
            f"MC({wrong}=1)",
            NO_ARGUMENT,
            f"MarkovChain has no option '{wrong}' ... Did you mean '{right}'? ... options are: order",
        )
        for wrong, right in [
            ("n_order", "order"),
            ("k", "order"),
            ("alpha", "prior"),
            ("priors", "prior"),
            ("pseudocount", "prior"),
            ("smooth", "smoothing"),
            ("n_states", "states"),
            ("state_names", "states"),
            ("min_freq", "min_count"),
            ("max_iterations", "max_iter"),
            ("tol", "tolerance"),
            ("verbose", "progress"),
            ("learn_priors", "learn_prior"),
            ("bound", "bounds"),
        ]
    ),
    ("MC(1, 0.5)", NO_ARGUMENT, "at most 1 value by position (order); found 2 ... smoothing="),
    ("MC(1, order=2)", NO_ARGUMENT, "order twice ... once"),
    ("raw.set_params(ordr=1)", sf.OptionError, "no option 'ordr' ... Did you mean 'order'?"),
    ("sf.MarkovChains", sf.MissingAttributeError, "Did you mean 'MarkovChain'?"),
    ("sf.KneserNei()", sf.MissingAttributeError, "Did you mean 'KneserNey'?"),
    # values of options
    *(
        (f"MC({option}={value!r}).fit(paths)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("order", -1, "at least 0"),
            ("order", 1.5, "whole number"),
            ("order", "two", "whole number"),
            ("order", True, "whole number"),
            ("estimate", "bayes", "'map'"),
            ("unseen", "zero", "'uniform'"),
            ("min_count", 0, "at least 1"),
            ("min_count", "few", "whole number"),
            ("learn_prior", "yes", "True or False"),
            ("progress", 2, "True or False"),
            ("smoothing", 3, "KneserNey"),
            ("smoothing", "kneser", "Did you mean 'kneser-ney'?"),
        ]
    ),
    ("MC(prior=-1.0).fit(paths)", sf.OptionError, "prior holds -1 ... above 0"),
    ("MC(prior='bdeu2').fit(paths)", sf.OptionError, "prior is 'bdeu2' ... expected"),
    ("MC(prior=[1.0, 2.0, 3.0]).fit(paths)", sf.OptionError, "3 pseudo-counts; expected 2"),
    ("MC(prior=1.0, smoothing=sf.KneserNey()).fit(paths)", sf.OptionError, "either smoothing= or prior="),
    ("MC(states='sun').fit(paths)", sf.OptionError, "'sun' ... list of states"),
    ("MC(states=['sun', 'sun']).fit(paths)", sf.OptionError, "twice ... must differ"),
    ("MC(states=['sun', None]).fit(paths)", sf.OptionError, "missing value ... Leave it out"),
    ("MC(states=['sun', 'snow']).fit(paths)", NO_STATE, "'rain' ... 'sun', 'snow'"),
    ("MC(bounds='yes').fit(paths)", sf.OptionError, "bounds is 'yes' ... expected"),
    ("MC(bounds=('<s>',)).fit(paths)", sf.OptionError, "bounds ... expected"),
    ("MC(learn_prior=True).fit(paths)", sf.OptionError, "prior"),
    ("MC(smoothing=sf.KneserNey(discounts=2.0)).fit(paths)", sf.OptionError, "discounts is 2.0; expected at most 1"),
    ("MC(smoothing=sf.AbsoluteDiscount(discount=-1)).fit(paths)", sf.OptionError, "discount ... -1 ... expected"),
    ("MC(smoothing=sf.Interpolation(weight='best')).fit(paths)", sf.OptionError, "weight ... 'best' ... expected"),
    ("MC(smoothing=sf.Interpolation(weight=1.5)).fit(paths)", sf.OptionError, "weight ... 1.5 ... expected"),
    ("MC(smoothing=sf.Katz(most=0)).fit(paths)", sf.OptionError, "most ... 0 ... expected"),
    ("sf.KneserNey(discount=0.5)", NO_ARGUMENT, "KneserNey has no option 'discount' ... Did you mean 'discounts'?"),
    ("sf.Interpolation(weights=0.5)", NO_ARGUMENT, "Interpolation has no option 'weights' ... Did you mean 'weight'?"),
    ("sf.Katz(k=5)", NO_ARGUMENT, "Katz has no option 'k' ... are: most"),
    ("MC(max_iter=-1, smoothing=sf.Interpolation()).fit(paths)", sf.OptionError, "max_iter is -1 ... at least 0"),
    ("MC(tolerance='x', smoothing=sf.Interpolation()).fit(paths)", sf.OptionError, "tolerance is 'x' ... number"),
    ("MC(memory_limit='big').fit(paths)", sf.OptionError, "memory_limit is 'big' ... bytes"),
    ("MC(tokens='emoji').fit('a b')", sf.OptionError, "tokens is 'emoji' ... expected"),
    # data
    ("raw.fit([])", sf.DataError, "no sequences ... Give"),
    ("raw.fit([[]])", sf.DataError, "Sequence 0 is empty ... Leave it out"),
    ("raw.fit(None)", sf.DataError, "None ... Accepted are"),
    ("raw.fit(7)", sf.DataError, "int ... Accepted are"),
    ("raw.fit()", NO_ARGUMENT, "MarkovChain.fit needs data ... Give data="),
    ("raw.fit('nosuch.csv', group='city', order='n')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.fit([['sun', None]])", sf.MissingValueError, "Sequence 0 has a missing value at step 1 ... Cut"),
    ("raw.fit([1, 2, 'a'], lengths=[3, 3])", sf.DataError, "lengths ... 6 ... 3"),
    ("raw.fit(['sun', 'rain'], lengths=[-1, 3])", sf.DataError, "lengths must be at least 1 ... sequence 0 has -1"),
    ("raw.fit(['sun', 'rain'], lengths='all')", sf.DataError, "lengths ... 'all' ... expected"),
    ("raw.fit(['sun', 'rain'], lengths=[1.5, 0.5])", sf.DataError, "lengths ... 1.5 ... whole"),
    ("raw.fit(['sun', 'rain'], length=[2])", NO_ARGUMENT, "no argument 'length' ... Did you mean 'lengths'?"),
    ("raw.fit(df, group='town', columns='day')", NO_COLUMN, "no column 'town'"),
    ("raw.fit(df, group='cty', columns='day')", NO_COLUMN, "no column 'cty' ... Did you mean 'city'?"),
    ("raw.fit(df, group='city', columns='dya')", NO_COLUMN, "no column 'dya' ... Did you mean 'day'?"),
    ("raw.fit(df, group='city')", sf.DataError, "2 observations ('day', 'n') ... columns="),
    ("raw.fit(df, groups='city')", NO_ARGUMENT, "no argument 'groups' ... Did you mean 'group'?"),
    ("raw.fit(df, group='city', columns='day', order='tiem')", NO_COLUMN, "no column 'tiem'"),
    ("raw.fit(df, group='city', order='city', columns='day')", sf.OptionError, "both name 'city'"),
    ("raw.fit(paths, group='city')", sf.OptionError, "group='city' ... no column names ... table"),
    ("raw.fit(paths, sample_weight=[1.0])", sf.DataError, "sample_weight ... (1,) ... 3 sequences"),
    (
        "raw.fit(paths, sample_weight=[1.0, -1.0, 1.0])",
        sf.DataError,
        "sample_weight of sequence 1 is -1.0 ... at least 0",
    ),
    ("raw.fit(paths, sample_weight=['a', 'b', 'c'])", sf.DataError, "sample_weight ... not numbers"),
    ("raw.fit(paths, sample_weight=[1.0, np.nan, 1.0])", sf.DataError, "sample_weight of sequence 1 is nan ... finite"),
    ("raw.fit(paths, weights=[1.0, 1.0, 1.0])", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(paths, held_out=paths)", sf.OptionError, "held_out= ... smoothing='held-out'"),
    ("raw.fit(X=paths)", NO_ARGUMENT, "no argument 'X' ... Did you mean 'data'?"),
    ("chain.partial_fit(paths, keep=-1)", sf.OptionError, "keep is -1 ... at least 0"),
    ("chain.unlearn([['sun', 'sun'] * 9])", sf.MergeError, "18 rows out of 11 ... never all in"),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "transitions_",
            "row(['sun'])",
            "probability('sun')",
            "sample(2, 3)",
            "score(paths)",
            "perplexity(paths)",
            "stationary_distribution()",
            "report_",
            "states_",
            "is_ergodic()",
            "hitting_times('sun')",
            "counts(['sun'])",
            "unlearn(paths)",
        )
    ),
    # questions
    *(
        (f"chain.{call}", NO_STATE, "'rian' ... Did you mean 'rain'? ... 'rain', 'sun'")
        for call in (
            "probability('rian')",
            "probability('rian', ['sun'])",
            "probability('sun', ['rian'])",
            "log_probability('rian')",
            "row(['rian'])",
            "counts(['rian'])",
            "hitting_times('rian')",
            "sample(1, 3, history=['rian'])",
        )
    ),
    ("chain.posterior(['sun'])", sf.EstimateError, "prior="),
    ("chain.responsibilities(['sun'])", sf.EstimateError, "prior="),
    ("chain.sample(-1, 3)", sf.OptionError, "n is -1 ... at least"),
    ("chain.sample(1, -3)", sf.OptionError, "length is -3 ... at least"),
    ("chain.sample(1)", sf.OptionError, "length is None ... give length="),
    ("chain.sample(1, 3, seed=1)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("chain.sample(1, 3, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("chain.sample(n_samples=2)", NO_ARGUMENT, "no argument 'n_samples' ... Did you mean 'n'?"),
    (
        "chain.score(paths, legnths=[1])",
        NO_ARGUMENT,
        "MarkovChain.score has no argument 'legnths' ... Did you mean 'lengths'?",
    ),
    ("chain.probability()", NO_ARGUMENT, "needs word ... Give word="),
    ("two.stationary_distribution()", sf.OptionError, "order"),
    ("chain.transition_", sf.MissingAttributeError, "'transition_' ... Did you mean 'transitions_'?"),
    ("chain.transitions", sf.MissingAttributeError, "'transitions' ... Did you mean 'transitions_'?"),
    ("chain.predict(paths)", sf.MissingAttributeError, "'predict'"),
    ("chain.write('x.txt')", sf.OptionError, "'x.txt' has no known ending ... .arpa"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
