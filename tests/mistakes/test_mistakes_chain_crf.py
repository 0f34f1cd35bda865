"""The hundred most likely mistakes with a chain CRF."""

from functools import cache
from typing import Any

import pandas as pd
import pytest

import suffice as sf
from mistakes.checking import Row, check, rows_of

NO_ARGUMENT, NO_COLUMN = sf.CallError, sf.MissingColumnError


@cache
def names() -> dict[str, Any]:
    X = [[{"w": "the"}, {"w": "dog"}, {"w": "runs"}], [{"w": "dogs"}, {"w": "run"}]]
    y = [["D", "N", "V"], ["N", "V"]]
    df = pd.DataFrame(
        {"word": ["the", "dog", "runs", "dogs", "run"], "tag": ["D", "N", "V", "N", "V"], "s": [0, 0, 0, 1, 1]}
    )
    crf = sf.ChainCRF(sf.Normal(0, 1.0)).fit(X, y)
    return {"X": X, "y": y, "df": df, "CRF": sf.ChainCRF, "raw": sf.ChainCRF(), "crf": crf}


TABLE: list[Row] = [
    *(
        (
            f"CRF({wrong}=1)",
            NO_ARGUMENT,
            f"ChainCRF has no option '{wrong}' ... Did you mean '{right}'? ... options are: prior",
        )
        for wrong, right in [
            ("c1", "prior"),
            ("c2", "prior"),
            ("C", "prior"),
            ("alpha", "prior"),
            ("l2", "prior"),
            ("penalty", "prior"),
            ("algorithm", "solver"),
            ("max_iterations", "max_iter"),
            ("n_iter", "max_iter"),
            ("epsilon", "tolerance"),
            ("min_freq", "min_frequency"),
            ("verbose", "progress"),
            ("seed", "random_state"),
            ("all_possible_transition", "all_possible_transitions"),
            ("label", "labels"),
            ("num_threads", "threads"),
        ]
    ),
    ("CRF(sf.Normal(0, 1), 'lbfgs')", NO_ARGUMENT, "at most 1 value by position (prior); found 2 ... solver="),
    ("raw.set_params(c2=1)", sf.OptionError, "no option 'c2' ... Did you mean 'prior'?"),
    ("sf.CRF()", sf.MissingAttributeError, "Did you mean 'ChainCRF'?"),
    ("sf.ChainCrf()", sf.MissingAttributeError, "Did you mean 'ChainCRF'?"),
    # values of options
    *(
        (f"CRF({option}={value!r}).fit(X, y)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("solver", "lbfsg", "Did you mean 'lbfgs'?"),
            ("solver", "arow", "'auto'"),
            ("solver", 3, "'auto'"),
            ("boundaries", "yes", "True or False"),
            ("bias", 1, "True or False"),
            ("max_iter", -1, "at least 0"),
            ("max_iter", 2.5, "whole number"),
            ("tolerance", -1.0, "at least 0"),
            ("tolerance", "x", "number"),
            ("max_seconds", 0, "positive"),
            ("callback", 3, "function"),
            ("min_frequency", -1, "at least 0"),
            ("progress", "yes", "True or False"),
            ("random_state", "x", "whole number"),
        ]
    ),
    ("CRF(0.1).fit(X, y)", sf.OptionError, "prior ... 0.1"),
    ("CRF('l2').fit(X, y)", sf.OptionError, "prior ... 'l2'"),
    ("CRF(sf.Beta(1, 1)).fit(X, y)", sf.OptionError, "prior ... Beta"),
    ("CRF(hashing=0).fit(X, y)", sf.OptionError, "hashing ... is 0; expected a whole number of at least 1"),
    ("CRF(labels=['D', 'D']).fit(X, y)", sf.DataError, "'D', 'D' ... expected each label once"),
    ("CRF(labels=['D', 'N']).fit(X, y)", sf.UnknownStateError, "'V' is unknown ... 'D', 'N'"),
    ("CRF(constraints='BIO2').fit(X, y)", sf.OptionError, "constraints"),
    ("CRF(constraints=[('D', 'Q')]).fit(X, y)", sf.OptionError, "('D', 'Q'); the labels are 'D'"),
    ("CRF(conditioned_transitions=['nosuch']).fit(X, y)", sf.OptionError, "'nosuch' ... no step"),
    ("CRF(batch_size=0, solver='sgd').fit(X, y)", sf.OptionError, "batch_size is 0 ... at least 1"),
    ("CRF(step_size=-1, solver='sgd').fit(X, y)", sf.OptionError, "step_size is -1"),
    ("CRF(expectations='yes', solver='sgd').fit(X, y)", sf.OptionError, "expectations is 'yes' ... expected one of"),
    # data
    ("raw.fit()", NO_ARGUMENT, "ChainCRF.fit needs X ... Give X="),
    ("raw.fit(X)", sf.DataError, "y"),
    ("raw.fit(X, None)", sf.DataError, "y"),
    ("raw.fit([], [])", sf.DataError, "no sequence; expected at least one"),
    ("raw.fit(None, y)", sf.DataError, "None"),
    ("raw.fit(7, y)", sf.DataError, "type int; expected a list"),
    ("raw.fit(X, 7)", sf.DataError, "y is a int; expected a list"),
    ("raw.fit(X, y[:1])", sf.DataError, "2 ... 1"),
    ("raw.fit(X, [['D', 'N'], ['N', 'V']])", sf.DataError, "3 ... 2"),
    ("raw.fit(X[0], y[0])", sf.DataError, "list"),
    ("raw.fit(['a', 'b'], ['X', 'Y'])", sf.DataError, "A single sequence goes into a list"),
    ("raw.fit([[]], [[]])", sf.DataError, "empty"),
    ("raw.fit([[1, 2, 3]], [['D', 'N', 'V']])", sf.DataError, "1"),
    ("raw.fit([[{'w': None}]], [['D']])", sf.MissingValueError, "'w'"),
    ("raw.fit([[{'w': np.nan}]], [['D']])", sf.MissingValueError, "'w' ... nan"),
    ("raw.fit([[{'w': np.inf}]], [['D']])", sf.MissingValueError, "'w' ... inf"),
    ("raw.fit(X, [['D', None, 'V'], ['N', 'V']])", sf.MissingValueError, "step 1: the label is None; every step needs"),
    ("raw.fit(X, [['D', ['N'], 'V'], ['N', 'V']])", sf.DataError, "label"),
    ("raw.fit(X, y, sample_weight=[1.0])", sf.DataError, "sample_weight ... (1,) ... 2"),
    ("raw.fit(X, y, sample_weight=[1.0, -1.0])", sf.DataError, "sample_weight ... 1 is -1.0 ... at least 0"),
    ("raw.fit(X, y, sample_weight=['a', 'b'])", sf.DataError, "sample_weight ... not numbers"),
    ("raw.fit(X, y, [1.0, np.nan])", sf.DataError, "sample_weight ... nan ... finite"),
    ("raw.fit(X, y, weights=[1.0, 1.0])", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(X, labels=y)", NO_ARGUMENT, "no argument 'labels' ... Did you mean 'y'?"),
    ("raw.fit(X, y, X_dev=X)", NO_ARGUMENT, "no argument 'X_dev' ... are: X, y"),
    ("raw.fit(X, y, validation=X)", sf.DataError, "In the validation set"),
    ("raw.fit(X, y, group='s')", sf.OptionError, "group= ... X is a list ... Leave it out"),
    ("raw.fit(df, y='tga', group='s', columns=['word'])", NO_COLUMN, "'tga' ... Did you mean 'tag'?"),
    ("raw.fit(df, y='tag', group='sent', columns=['word'])", NO_COLUMN, "'sent'"),
    ("raw.fit(df, y='tag', group='s', columns=['wrod'])", NO_COLUMN, "'wrod' ... Did you mean 'word'?"),
    ("raw.fit(df, y='tag', columns=['word'])", sf.OptionError, "X is a table ... group="),
    ("raw.fit(df, y='tag', group='s', columns=['tag'])", sf.OptionError, "'tag' ... another part"),
    ("raw.fit('nosuch.csv', y='tag', group='s', order='s')", sf.DataError, "no file 'nosuch.csv' ... Check the path"),
    ("raw.partial_fit(X, y[:1])", sf.DataError, "2 ... 1"),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "predict(X)",
            "predict_marginals(X)",
            "predict_k_best(X)",
            "score(X, y)",
            "weights_",
            "labels_",
            "top_features()",
            "evaluate(X, y)",
            "report_",
            "classes_",
        )
    ),
    # questions
    ("crf.predict()", NO_ARGUMENT, "needs X ... Give X="),
    ("crf.predict(X[0])", sf.DataError, "list"),
    ("crf.predict(None)", sf.DataError, "None"),
    ("crf.predict('the dog')", sf.DataError, "type str; expected a list"),
    ("crf.predict([[1, 2]])", sf.DataError, "1"),
    ("crf.predict_k_best(X, 0)", sf.OptionError, "k is 0 ... at least 1"),
    ("crf.predict_k_best(X, n_best=2)", NO_ARGUMENT, "no argument 'n_best' ... Did you mean 'k'?"),
    ("crf.sample_labels(X, -1)", sf.OptionError, "n is -1 ... at least"),
    ("crf.sample_labels(X, 1, seed=2)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("crf.sample_labels(X, 1, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("crf.score(X, [['D', 'N', 'Q'], ['N', 'V']])", sf.UnknownStateError, "'Q' ... 'D', 'N', 'V'"),
    ("crf.score(X, y[:1])", sf.DataError, "2 ... 1"),
    ("crf.score(X)", sf.DataError, "y"),
    ("crf.evaluate(X, [['D', 'N'], ['N', 'V']])", sf.DataError, "3 ... 2"),
    ("crf.top_features(label='Q')", sf.DataError, "'Q' ... 'D', 'N', 'V'"),
    ("crf.top_features(-1)", sf.OptionError, "n is -1 ... at least"),
    ("crf.top_transitions('all')", sf.OptionError, "n is 'all' ... whole number"),
    ("crf.transition_features_", sf.MissingAttributeError, "Did you mean 'transition_weights_'?"),
    ("crf.state_features_", sf.MissingAttributeError, "Did you mean 'state_weights_'?"),
    ("crf.predict_single(X[0])", sf.MissingAttributeError, "Did you mean 'predict'?"),
    ("crf.tagger_", sf.MissingAttributeError, "Did you mean 'predict'?"),
    ("crf.predict_proba(X)", sf.MissingAttributeError, "'predict_proba'"),
    ("crf.classes", sf.MissingAttributeError, "Did you mean 'classes_'?"),
    ("crf.unlearn(X)", sf.OptionError, "no finite statistics ... fit it again"),
    ("crf.write('crf.model')", sf.OptionError, "'crf.model' has no known ending ... .json"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
