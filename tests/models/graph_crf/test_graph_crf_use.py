"""Graph CRFs in use: what is refused and how, files, options, pictures."""

import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import suffice as sf

PATH = [[0, 1], [1, 2]]


def example_of(seed: Any = 0, edges: Any = PATH, **more: Any) -> Any:
    rng = np.random.default_rng(seed)
    given = {"nodes": rng.normal(size=(3, 2)), "edges": edges, "edge_features": rng.normal(size=(len(edges), 1))}
    return sf.GraphExample(**{**given, **more})


def fitted(**options: Any) -> Any:
    X = [example_of(seed) for seed in range(6)]
    return sf.GraphCRF(sf.Normal(variance=1.0), **options).fit(X, [["a", "b", "a"], ["b", "b", "c"]] * 3)


# -- what is refused -------------------------------------------------------------------------------------------------

GOOD = example_of(0)
WRONG = [
    (sf.GraphExample(nodes=np.zeros((0, 2))), "Example 1 has no nodes"),
    (sf.GraphExample(nodes=np.zeros(3)), r"Example 1: nodes has shape \(3,\); expected \(nodes, features\)"),
    (example_of(edge_features=None, edges=[[0, 3]]), "Example 1, edge 0: node 3 does not exist.*0 to 2"),
    (example_of(edges=[[0, 1], [-1, 2]]), "Example 1, edge 1: node -1 does not exist"),
    (example_of(edges=[[0, 1], [2, 2]]), r"Example 1, edge 1: \[2, 2\] joins a node to itself"),
    (example_of(edges=[[0, 1], [1, 2], [1, 0]]), r"Example 1, edge 2: \[1, 0\] is there already, as number 0"),
    (
        example_of(edges=[[0, 1, 2]], edge_features=[[1.0]]),
        r"Example 1: edges has shape \(1, 3\); expected \(edges, 2\)",
    ),
    (example_of(edges=[[0.0, 1.0]]), "Example 1: the members of 'edges' have type float64; expected whole numbers"),
    (example_of(nodes=[[0.0, 1.0], [np.nan, 0.0], [0.0, 0.0]]), "Example 1, node 1: feature 0 is nan"),
    (example_of(edge_features=[[1.0], [np.inf]]), "Example 1, edge 1: feature 0 is inf"),
    (example_of(edge_features=[[1.0]]), "Example 1: 2 edges and 1 row of edge_features"),
    (example_of(edge_features=[[1.0, 2.0]] * 2), "Example 1: edges have 2 features; expected 1"),
    (example_of(nodes=np.zeros((3, 5))), "Example 1: nodes have 5 features; expected 2"),
    (example_of(nodes=[["x", "y"]] * 3), "Example 1: nodes hold values that are not numbers"),
    (example_of(cliques={"triples": [[0, 1, 2]]}), "Example 1 has cliques of 'triples'.*templates="),
    ("words", "Example 1 is a str; expected a GraphExample"),
]


@pytest.mark.parametrize(("example", "message"), WRONG)
def test_bad_examples_are_named(example: Any, message: Any) -> None:
    with pytest.raises(sf.DataError, match=message):
        sf.GraphCRF().fit([GOOD, example], [[0, 1, 0], [0, 1, 0]])
    with pytest.raises(sf.DataError, match=message):
        fitted().predict([GOOD, example])


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[0, 1, 0]], "X has 2 examples and y has 1"),
        ([[0, 1, 0], [0, 1]], "Example 1: X has 3 nodes and y has 2 labels"),
        ([[0, 1, 0], [0, None, 1]], "Example 1 of y, node 1: the label is None; every node needs a label"),
        ([[0, 1, 0], [0, [1], 1]], "not hashable"),
        ("ab", "y is a str"),
    ],
)
def test_bad_labels_are_named(y: Any, message: Any) -> None:
    with pytest.raises(sf.DataError, match=message):
        sf.GraphCRF().fit([GOOD, example_of(1)], y)


def test_unknown_labels_weights_and_templates_are_named() -> None:
    model = fitted()
    with pytest.raises(
        sf.UnknownStateError, match="Example 1 of y, node 2: the label 'Q' is unknown; the labels are 'a'"
    ):
        model.score([GOOD, GOOD], [["a", "b", "c"], ["a", "b", "Q"]])
    with pytest.raises(sf.DataError, match=r"sample_weight of example 1 is -1\.0"):
        sf.GraphCRF().fit([GOOD, GOOD], [[0, 1, 0]] * 2, sample_weight=[1, -1])
    with pytest.raises(sf.DataError, match="each of 2 examples"):
        sf.GraphCRF().fit([GOOD, GOOD], [[0, 1, 0]] * 2, sample_weight=[1])
    with pytest.raises(sf.DataError, match="templates names 'squares', and no example has such cliques"):
        sf.GraphCRF(templates={"squares": "full"}).fit([GOOD], [[0, 1, 0]])
    odd = example_of(cliques={"pairs": [[0, 1], [2, 2]]})
    with pytest.raises(sf.DataError, match=r"clique of 'pairs' 1: .* names a node twice"):
        sf.GraphCRF(templates={"pairs": "full"}).fit([odd], [[0, 1, 0]])
    with pytest.raises(sf.DataError, match="X is one GraphExample"):
        model.predict(GOOD)
    with pytest.raises(sf.DataError, match="no examples"):
        model.predict([])
    lone = sf.GraphCRF(sf.Normal(variance=1.0)).fit([sf.GraphExample([[1.0]]), sf.GraphExample([[0.0]])], [0, 1])
    with pytest.raises(sf.DataError, match="Example 0 has edges, and the examples of the fit had none"):
        lone.predict([sf.GraphExample([[1.0], [2.0]], [[0, 1]])])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"solver": "best"}, "solver is 'best'"),
        ({"inference": "magic"}, "inference is 'magic'"),
        ({"edge_weights": "odd"}, "weights of edges are 'odd'"),
        ({"templates": ["triples"]}, "templates is"),
        ({"templates": {"edges": "full"}}, "there already"),
        ({"templates": {"triples": 3}}, "weights of triples are 3"),
        ({"max_cells": 0}, "max_cells is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"expectations": "none"}, "expectations is 'none'"),
        ({"inference": "gibbs", "solver": "lbfgs"}, "noisy gradients"),
    ],
)
def test_bad_options_are_refused_at_once(options: Any, message: Any) -> None:
    with pytest.raises(sf.OptionError, match=message):
        sf.GraphCRF(**options)


def test_a_function_that_gives_no_numbers_is_named() -> None:
    with pytest.raises(sf.OptionError, match="function of template 'edges' gives"):
        sf.GraphCRF(edge_weights=lambda a, b: np.nan).fit([GOOD], [[0, 1, 0]])
    with pytest.raises(sf.OptionError, match="function of template 'edges' fails at"):
        sf.GraphCRF(edge_weights=lambda a, b: "x").fit([GOOD], [[0, 1, 0]])


def test_a_failed_fit_leaves_the_model_as_it_was() -> None:
    model = fitted()
    before = model.weights_
    with pytest.raises(sf.DataError):
        model.fit([GOOD], [["a"]])
    assert (model.weights_ == before).all()
    with pytest.raises(sf.NotFittedError, match="Call fit first"):
        sf.GraphCRF().predict([GOOD])


# -- files and options -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["json", "suffice"])
def test_a_file_gives_the_model_back_to_the_bit(tmp_path: Any, ending: Any) -> None:
    X = [example_of(s, cliques={"all": ([[2, 1, 0]], [[0.5]])}) for s in range(4)]
    y = [[("x", 1), "NoneType", True]] * 2 + [[True, ("x", 1), True]] * 2
    model = sf.GraphCRF(
        sf.Normal(variance=1.0),
        edge_weights=lambda a, b: float(a == b),
        templates={"all": lambda *labels: [len(set(labels)), 1]},
    ).fit(X, y)
    path = tmp_path / f"model.{ending}"
    model.write(path)
    back = sf.read(path)
    assert (back.weights_ == model.weights_).all()
    assert back.labels_ == model.labels_
    assert back.predict(X) == model.predict(X)
    assert (back.log_partitions(X) == model.log_partitions(X)).all()
    assert str(back.report_) == str(model.report_)
    again = back.fit(X, y)
    assert_allclose(again.weights_, model.weights_, atol=1e-12)
    with pytest.raises(sf.OptionError, match="before the fit"):
        sf.GraphCRF(edge_weights=lambda a, b: 1.0).write(path)


def test_a_damaged_file_is_refused() -> None:
    for name, value in (
        ("weights", np.zeros(3)),
        ("forms", {"edges": "odd"}),
        ("widths", {"nodes": [1, 2], "edges": [10**9, 1]}),
        ("widths", {"nodes": [1, 2]}),
    ):
        plain = fitted().to_dict()
        plain["fitted"][name] = value
        with pytest.raises(sf.FileFormatError, match="damaged"):
            sf.GraphCRF.from_dict(plain)


def test_cliques_too_large_for_a_table_are_refused() -> None:
    nodes = np.zeros((12, 1))
    example = sf.GraphExample(nodes, cliques={"all": [list(range(12))]})
    with pytest.raises(sf.SizeError, match="clique of template 'all' has 12 nodes with 4 labels each"):
        sf.GraphCRF(templates={"all": "equal"}).fit([example], [[0, 1, 2, 3] * 3])


def test_options_clone_pickle_and_print() -> None:
    model = fitted(edge_weights="equal")
    twin = model.clone()
    assert twin.get_params()["edge_weights"] == "equal"
    assert repr(twin) == "GraphCRF(prior=Normal(variance=1.0), edge_weights='equal')"
    assert twin.set_params(prior__variance=2.0).get_params()["prior__variance"] == 2.0
    assert (pickle.loads(pickle.dumps(model)).weights_ == model.weights_).all()
    assert repr(GOOD) == "GraphExample(3 nodes, 2 edges)"
    with pytest.raises(sf.OptionError, match="fit it again"):
        model.unlearn([GOOD])


def test_callback_limits_and_warm_start() -> None:
    seen = []
    model = fitted(callback=lambda state: seen.append(state.objective))
    assert seen == list(model.history_[1:])
    assert model.n_iter_ == len(seen)
    stopped = fitted(callback=lambda state: state.iteration == 2)
    assert not stopped.converged_
    assert stopped.stop_reason_ == "callback"
    model.set_params(warm_start=True)
    X = [example_of(seed) for seed in range(6)]
    model.fit(X, [["a", "b", "a"], ["b", "b", "c"]] * 3)
    assert model.n_iter_ == 0


def test_tuples_and_dicts_are_examples_too() -> None:
    model = fitted()
    plain = (GOOD.nodes, GOOD.edges, GOOD.edge_features)
    given = {"nodes": GOOD.nodes, "edges": GOOD.edges, "edge_features": GOOD.edge_features}
    assert model.predict([plain, given]) == model.predict([GOOD, GOOD])


def test_marginals_are_read_by_label_and_evaluation_by_class() -> None:
    model = fitted()
    marginals = model.predict_marginals([GOOD])[0]
    assert marginals.shape == (3, 3)
    assert marginals[0]["a"] == marginals[0, 0]
    assert_allclose(np.asarray(marginals).sum(axis=1), 1.0, atol=1e-12)
    found = model.evaluate([GOOD], [model.predict([GOOD])[0]])
    assert found.accuracy == 1.0


# -- pictures --------------------------------------------------------------------------------------------------------


def test_grids_join_each_pixel_to_those_beside_it() -> None:
    four = sf.GraphExample.grid(np.zeros((2, 3)), directions=True)
    assert four.edges.tolist() == [[0, 1], [1, 2], [3, 4], [4, 5], [0, 3], [1, 4], [2, 5]]
    assert four.edge_features.tolist() == [[1, 0]] * 4 + [[0, 1]] * 3
    eight = sf.GraphExample.grid(np.zeros((2, 3, 1)), neighbours=8)
    assert eight.edges[7:].tolist() == [[0, 4], [1, 5], [1, 3], [2, 4]]
    assert eight.edge_features is None
    with pytest.raises(sf.OptionError, match="expected 4 or 8"):
        sf.GraphExample.grid(np.zeros((2, 2)), neighbours=6)
    with pytest.raises(sf.DataError, match="height, width, features"):
        sf.GraphExample.grid(np.zeros(4))
