"""Laws of graph CRFs on graphs drawn at random: answers equal enumeration, whatever the graph and the weights."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import suffice as sf
from graph_labelings import Enumerated
from suffice.models.conditional_field.decoding import spans
from suffice.models.graph_crf.decoding import beliefs_of, best_codes
from suffice.models.graph_crf.graphs import read_graphs
from suffice.models.graph_crf.objective import Engine
from suffice.models.graph_crf.structure import make_structure


@st.composite
def problems(draw: Any) -> Any:
    """Some graphs of up to five nodes, the form of their edges, labels, and a seed for all numbers."""
    graphs = []
    for _ in range(draw(st.integers(1, 3))):
        nodes = draw(st.integers(1, 5))
        pairs = [(a, b) for a in range(nodes) for b in range(a)]
        edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=6)) if pairs else []
        turned = [edge if draw(st.booleans()) else edge[::-1] for edge in edges]
        triples = [[0, 2, 1]] if nodes >= 3 and draw(st.booleans()) else []
        graphs.append((nodes, turned, triples))
    return (
        graphs,
        draw(st.sampled_from(["full", "symmetric", "equal"])),
        draw(st.integers(1, 3)),
        draw(st.integers(0, 99)),
    )


def example_of(rng: Any, nodes: Any, edges: Any, triples: Any) -> Any:
    return sf.GraphExample(
        rng.normal(size=(nodes, 2)),
        np.array(edges, int).reshape(-1, 2),
        rng.normal(size=(len(edges), 2)),
        cliques={"triples": (np.array(triples, int).reshape(-1, 3), rng.normal(size=(len(triples), 1)))},
    )


@settings(max_examples=40, deadline=None)
@given(problems(), st.floats(0.0, 30.0))
def test_answers_equal_enumeration(problem: Any, spread: Any) -> None:
    graphs, form, labels, seed = problem
    rng = np.random.default_rng(seed)
    X = [example_of(rng, *graph) for graph in graphs]
    widths = {"nodes": (1, 2), "edges": (2, 2), "triples": (3, 1)}
    read = read_graphs(X, ["triples"], widths)
    structure = make_structure(tuple(range(labels)), widths, form, {"triples": "full"})
    weights = rng.normal(scale=spread, size=structure.length)
    tables = {t.name: t.whole(structure.block(weights, number)) for number, t in enumerate(structure.templates)}
    found, wide, _ = beliefs_of(structure, read, weights, Engine(), rng)
    codes = best_codes(structure, read, weights, Engine(), rng)
    assert not len(wide)
    for number, ((a, b), example) in enumerate(zip(spans(read.offsets), X, strict=True)):
        law = Enumerated(tables, example, labels)
        size = max(1.0, np.abs(law.scores).max())
        assert abs(found.log_partition[number] - law.log_z) < 1e-11 * size
        assert_allclose(found.tables[0][a:b], law.marginals(), atol=1e-11 * size)
        best = law.scores[int(np.ravel_multi_index(codes[a:b], (labels,) * (b - a)))]
        assert best >= law.scores.max() - 1e-11 * size
