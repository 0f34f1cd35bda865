"""The hundred most likely mistakes with a graph CRF."""

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
    nodes = [rng.normal(size=(3, 2)) for _ in range(4)]
    X = [sf.GraphExample(one, [(0, 1), (1, 2)]) for one in nodes]
    y = [["a", "b", "a"], ["b", "b", "a"], ["a", "a", "b"], ["b", "a", "a"]]
    df = pd.DataFrame(
        {
            "g": [0, 0, 1, 1],
            "id": [0, 1, 0, 1],
            "near": [[1], [0], [1], [0]],
            "x": [0.1, 1.0, 0.4, 0.2],
            "tag": ["a", "b", "b", "a"],
        }
    )
    crf = sf.GraphCRF(sf.Normal(0, 1.0)).fit(X, y)
    return {
        "X": X,
        "y": y,
        "df": df,
        "nodes": nodes,
        "CRF": sf.GraphCRF,
        "raw": sf.GraphCRF(),
        "crf": crf,
        "Example": sf.GraphExample,
    }


N3 = "np.ones((3, 2))"
TABLE: list[Row] = [
    *(
        (
            f"CRF({wrong}=1)",
            NO_ARGUMENT,
            f"GraphCRF has no option '{wrong}' ... Did you mean '{right}'? ... options are: prior",
        )
        for wrong, right in [
            ("C", "prior"),
            ("alpha", "prior"),
            ("c2", "prior"),
            ("l2", "prior"),
            ("penalty", "prior"),
            ("algorithm", "solver"),
            ("max_iterations", "max_iter"),
            ("n_iter", "max_iter"),
            ("tol", "tolerance"),
            ("eps", "tolerance"),
            ("verbose", "progress"),
            ("seed", "random_state"),
            ("edge_weight", "edge_weights"),
            ("template", "templates"),
            ("label", "labels"),
            ("inferences", "inference"),
            ("max_cell", "max_cells"),
            ("n_jobs", "threads"),
        ]
    ),
    ("CRF(sf.Normal(0, 1), 'full')", NO_ARGUMENT, "at most 1 value by position (prior); found 2 ... edge_weights="),
    ("raw.set_params(C=1)", sf.OptionError, "no option 'C' ... Did you mean 'prior'?"),
    ("sf.GraphCrf()", sf.MissingAttributeError, "Did you mean 'GraphCRF'?"),
    ("sf.GraphExampel()", sf.MissingAttributeError, "Did you mean 'GraphExample'?"),
    # values of options
    *(
        (f"CRF({option}={value!r}).fit(X, y)", sf.OptionError, f"{option} is {value!r} ... expected ... {right}")
        for option, value, right in [
            ("solver", "lbfsg", "Did you mean 'lbfgs'?"),
            ("solver", "subgradient", "'auto'"),
            ("solver", 3, "'auto'"),
            ("inference", "lbp", "'auto'"),
            ("inference", 1, "'auto'"),
            ("max_cells", 0, "at least"),
            ("max_cells", "many", "whole number"),
            ("max_iter", -1, "at least 0"),
            ("max_iter", 2.5, "whole number"),
            ("tolerance", -1.0, "at least 0"),
            ("tolerance", "x", "number"),
            ("max_seconds", 0, "positive"),
            ("callback", 3, "function"),
            ("progress", "yes", "True or False"),
            ("shuffle", 1, "True or False"),
            ("average", "no", "True or False"),
            ("random_state", "x", "whole number"),
            ("expectations", "no", "'auto'"),
        ]
    ),
    ("CRF(0.1).fit(X, y)", sf.OptionError, "prior ... 0.1"),
    ("CRF('l2').fit(X, y)", sf.OptionError, "prior ... 'l2'"),
    ("CRF(sf.Beta(1, 1)).fit(X, y)", sf.OptionError, "prior ... Beta"),
    ("CRF(edge_weights='symetric').fit(X, y)", sf.OptionError, "'symetric'; expected one of 'full', 'symmetric'"),
    ("CRF(labels=['a', 'a']).fit(X, y)", sf.DataError, "'a', 'a' ... expected each label once"),
    ("CRF(labels=['a', 'c']).fit(X, y)", sf.UnknownStateError, "'b' is unknown ... 'a', 'c'"),
    ("CRF(templates=['x']).fit(X, y)", sf.OptionError, "templates"),
    ("CRF(batch_size=0, solver='sgd').fit(X, y)", sf.OptionError, "batch_size is 0 ... at least 1"),
    ("CRF(step_size=-1, solver='sgd').fit(X, y)", sf.OptionError, "step_size is -1"),
    ("CRF(decay=-1, solver='sgd').fit(X, y)", sf.OptionError, "decay is -1"),
    # examples
    ("Example()", NO_ARGUMENT, "GraphExample needs nodes ... Give nodes="),
    (f"Example({N3}, egdes=[(0, 1)])", NO_ARGUMENT, "GraphExample has no option 'egdes' ... Did you mean 'edges'?"),
    (f"Example({N3}, [(0, 1)], None, {{}})", NO_ARGUMENT, "at most 3 values by position ... found 4 ... cliques="),
    (f"raw.fit([Example({N3}, [(0, 3)])], [[0, 1, 1]])", sf.DataError, "node 3 does not exist; expected 0 to 2"),
    (f"raw.fit([Example({N3}, [(0, -1)])], [[0, 1, 1]])", sf.DataError, "node -1 does not exist; expected 0 to 2"),
    (f"raw.fit([Example({N3}, [(0, 0)])], [[0, 1, 1]])", sf.DataError, "0"),
    (f"raw.fit([Example({N3}, [(0, 1, 2)])], [[0, 1, 1]])", sf.DataError, "(1, 3)"),
    (f"raw.fit([Example({N3}, [(0, 1), (0, 1)])], [[0, 1, 1]])", sf.DataError, "[0, 1] is there already ... Join"),
    (f"raw.fit([Example({N3}, [('a', 'b')])], [[0, 1, 1]])", sf.DataError, "whole"),
    (f"raw.fit([Example({N3}, [(0.5, 1.0)])], [[0, 1, 1]])", sf.DataError, "whole"),
    (
        f"raw.fit([Example({N3}, [(0, 1)], np.ones((2, 1)))], [[0, 1, 1]])",
        sf.DataError,
        "1 edge and 2 rows ... must be as many",
    ),
    ("raw.fit([Example(np.ones(3))], [[0, 1, 1]])", sf.DataError, "(3,)"),
    ("raw.fit([Example(np.ones((3, 2, 2)))], [[0, 1, 1]])", sf.DataError, "(3, 2, 2)"),
    ("raw.fit([Example([['a', 'b']])], [[0, 1, 1]])", sf.DataError, "Example 0 ... not numbers; expected"),
    ("raw.fit([Example([[1.0, np.nan]])], [[0, 1, 1]])", sf.MissingValueError, "nan"),
    ("raw.fit([Example([[1.0, np.inf]])], [[0, 1, 1]])", sf.MissingValueError, "inf"),
    ("raw.fit([Example(None)], [[0, 1, 1]])", sf.DataError, "shape (); expected (nodes, features)"),
    ("raw.fit([Example([[1.0], [1.0, 2.0]])], [[0, 1, 1]])", sf.DataError, "one length"),
    # data
    ("raw.fit()", NO_ARGUMENT, "GraphCRF.fit needs X ... Give X="),
    ("raw.fit(X)", sf.DataError, "y"),
    ("raw.fit(X, None)", sf.DataError, "y"),
    ("raw.fit([], [])", sf.DataError, "no examples; expected"),
    ("raw.fit(None, y)", sf.DataError, "None"),
    ("raw.fit(7, y)", sf.DataError, "X is a int; expected a list"),
    ("raw.fit(X, 7)", sf.DataError, "y is a int; expected"),
    ("raw.fit(X, y[:1])", sf.DataError, "4 ... 1"),
    ("raw.fit(X, [['a', 'b']] * 4)", sf.DataError, "3 ... 2"),
    ("raw.fit(X[0], y[0])", sf.DataError, "list"),
    ("raw.fit(nodes, y)", sf.DataError, "ndarray; expected a GraphExample"),
    ("raw.fit([7, 7, 7, 7], y)", sf.DataError, "int; expected a GraphExample"),
    ("raw.fit([*X[:3], Example(np.ones((3, 5)), [(0, 1)])], y)", sf.DataError, "5 ... 2"),
    ("raw.fit(X, [['a', None, 'a'], *y[1:]])", sf.MissingValueError, "node 1: the label is None; every node needs"),
    ("raw.fit(X, [['a', ['b'], 'a'], *y[1:]])", sf.DataError, "label"),
    ("raw.fit(X, y, sample_weight=[1.0])", sf.DataError, "sample_weight ... (1,) ... 4"),
    ("raw.fit(X, y, sample_weight=[1.0, -1.0, 1.0, 1.0])", sf.DataError, "sample_weight ... 1 is -1.0 ... at least 0"),
    ("raw.fit(X, y, sample_weight=['a'] * 4)", sf.DataError, "sample_weight ... not numbers"),
    ("raw.fit(X, y, weights=[1.0] * 4)", NO_ARGUMENT, "no argument 'weights' ... Did you mean 'sample_weight'?"),
    ("raw.fit(X, labels=y)", NO_ARGUMENT, "no argument 'labels' ... Did you mean 'y'?"),
    ("raw.fit(X, y, validation=X)", sf.OptionError, "validation is no pair; expected (X, y)"),
    (
        "raw.fit(df, y='tga', group='g', node='id', neighbours='near', columns=['x'])",
        NO_COLUMN,
        "'tga' ... Did you mean 'tag'?",
    ),
    ("raw.fit(df, y='tag', group='grp', node='id', neighbours='near', columns=['x'])", NO_COLUMN, "'grp'"),
    (
        "raw.fit(df, y='tag', group='g', node='idd', neighbours='near', columns=['x'])",
        NO_COLUMN,
        "'idd' ... Did you mean 'id'?",
    ),
    (
        "raw.fit(df, y='tag', group='g', node='id', neighbours='naer', columns=['x'])",
        NO_COLUMN,
        "'naer' ... Did you mean 'near'?",
    ),
    (
        "raw.fit(df, y='tag', group='g', node='id', neighbors='near')",
        NO_ARGUMENT,
        "no argument 'neighbors' ... Did you mean 'neighbours'?",
    ),
    # before the fit
    *(
        (f"raw.{call}", sf.NotFittedError, "Call fit first")
        for call in (
            "predict(X)",
            "predict_marginals(X)",
            "score(X, y)",
            "weights_",
            "labels_",
            "edge_weights_",
            "evaluate(X, y)",
            "report_",
            "log_partitions(X)",
            "classes_",
        )
    ),
    # questions
    ("crf.predict()", NO_ARGUMENT, "needs X ... Give X="),
    ("crf.predict(X[0])", sf.DataError, "list"),
    ("crf.predict(None)", sf.DataError, "None"),
    ("crf.predict([Example(np.ones((3, 5)), [(0, 1)])])", sf.DataError, "5 ... 2"),
    ("crf.sample_labels(X, -1)", sf.OptionError, "n is -1 ... at least"),
    ("crf.sample_labels(X, 1, seed=2)", NO_ARGUMENT, "no argument 'seed' ... Did you mean 'random_state'?"),
    ("crf.sample_labels(X, 1, random_state='x')", sf.OptionError, "random_state is 'x' ... expected"),
    ("crf.score(X, [['a', 'b', 'q'], *y[1:]])", sf.UnknownStateError, "'q' ... 'a', 'b'"),
    ("crf.score(X, y[:1])", sf.DataError, "4 ... 1"),
    ("crf.score(X)", sf.DataError, "y"),
    ("crf.template_weights('node')", sf.OptionError, "'node' ... 'nodes'"),
    ("crf.node_weigths_", sf.MissingAttributeError, "Did you mean 'node_weights_'?"),
    ("crf.weights", sf.MissingAttributeError, "Did you mean 'weights_'?"),
    ("crf.predict_proba(X)", sf.MissingAttributeError, "'predict_proba'"),
    ("crf.unlearn(X)", sf.OptionError, "no finite statistics ... fit it again"),
    ("crf.write('crf.model')", sf.OptionError, "'crf.model' has no known ending ... .json"),
]


@pytest.mark.parametrize("row", rows_of(TABLE))
def test_a_mistake_says_what_was_found_and_what_to_do(row: Row) -> None:
    check(row, names())
